"""Linear models of closed chains: three routes, the numbers of a loader, joints of all kinds."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import allowed_velocity, parallel_four_bar, parallelogram, spatial_chain

import kinetree as kt
from kinetree.loops.linear.linearization import (
    LinearModel,
    _read_coordinates,
    equations,
    linearize_in_coordinates,
    motion_state,
)
from kinetree.samples.earthmovers import loader
from kinetree.samples.random_mechanisms import random_closed_mechanism
from kinetree.textbook.linear_recursions import along_links, recursion
from kinetree.textbook.link_variations import link_variation

LOADER = loader()  # kernels are compiled once for each model
EXPECTED = {
    ("boom_joint", "bucket_joint"): {
        "ydd": (-4.23648, 3.43944),
        "at rest": [[-1.52508, 0.17137], [5.83123, -2.92752]],
        "eigenvalues": (1.85671, 1.00261),
        "moving": [[-1.52507, 0.17567], [5.83008, -3.07178]],
        "damping": [[0.09432, 0.01653], [-0.9533, -0.04696]],
    },
    ("lift_piston_joint", "tilt_piston_joint"): {
        "ydd": (-2.66075, 3.82017),
        "at rest": [[-1.84677, 0.24998], [0.90036, -4.31394]],
        "eigenvalues": (1.32615, 2.0981),
        "moving": [[-2.0972, 0.32676], [0.90771, -4.73728]],
        "damping": [[0.4859, 0.15376], [-1.68682, -0.50993]],
    },
}


@pytest.mark.covers("Spencer 4.5", "Spencer 4.2", by=linearize_in_coordinates)
@pytest.mark.parametrize("independent", EXPECTED, ids=" and ".join)
@pytest.mark.parametrize("method", ["equations", "recursion", "differences"])
def test_a_loader_linkage_in_two_charts(independent, method):
    m, rest, expected = LOADER, np.zeros(8), EXPECTED[independent]
    linear = linearize_in_coordinates(m, rest, rest, rest, independent=independent, method=method)
    assert linear.coordinates == independent
    assert np.abs(linear.rate - [0, 0, *expected["ydd"]]).max() < 5e-6
    assert np.array_equal(linear.A[:2], np.eye(4)[2:])
    assert np.abs(linear.A[2:, :2] - expected["at rest"]).max() < 5.1e-6
    assert np.abs(linear.A[2:, 2:]).max() < 1e-9
    found = np.sort(np.abs(linear.eigenvalues.imag))
    assert np.abs(found - np.sort(2 * expected["eigenvalues"])).max() < 5.1e-6

    qd = linear.G @ np.array([0.3, -0.2])
    A, _ = linearize_in_coordinates(m, rest, qd, rest, independent=independent, method=method)
    assert np.abs(A[2:, :2] - expected["moving"]).max() < 5.1e-6
    assert np.abs(A[2:, 2:] - expected["damping"]).max() < 5.1e-6


@pytest.mark.covers("Spencer 4.5", by=LinearModel)
def test_the_eigenvalues_of_the_printed_matrices():
    """Of the real loader; where the second pair is printed with two negative real parts."""
    printed = {
        0.54643 + 1.5734j: [[-2.3763, -0.38157], [7.853, -1.9778]],
        0.37624 + 1.5642j: [[-1.9649, 2.5565], [-0.58728, -2.6457]],
    }
    for value, A21 in printed.items():
        A = np.block([[np.zeros((2, 2)), np.eye(2)], [np.array(A21), np.zeros((2, 2))]])
        found = LinearModel(A, None, None, ("y1", "y2"), None, None, None).eigenvalues
        pairs = np.array([value, value.conjugate(), -value, -value.conjugate()])
        assert all(np.min(np.abs(found - pair)) < 6e-5 for pair in pairs)


def spatial_four_bar():
    """Joints with one and two variables in space; one degree of freedom."""
    joints = (
        kt.Revolute((1, 2, 2)), kt.Cylindrical("x"), kt.Helical("y", pitch=0.3), kt.Revolute("x"),
        kt.Revolute("y"),
    )  # fmt: skip
    return spatial_chain(np.random.default_rng(7), *joints, cut=kt.Revolute("z"))


FOUR_BAR = parallel_four_bar()
FIXED_AXES = {
    "planar": (FOUR_BAR, parallelogram(0.9, 0.35)),
    "spatial": spatial_four_bar(),
    "overconstrained": (kt.samples.bennett(), np.zeros(3)),
    "three loops": (LOADER, np.zeros(8)),
}


@pytest.mark.covers("Spencer 4.2", "Spencer 4.4", by=(linearize_in_coordinates, recursion))
@pytest.mark.parametrize("chain", FIXED_AXES)
@pytest.mark.parametrize("independent", [None, "tangent"])
def test_equations_recursion_and_differences_agree(chain, independent, rng):
    m, q = FIXED_AXES[chain]
    qd, tau = allowed_velocity(m, q, rng), 3 * rng.standard_normal(m.nv)
    f_ext = rng.standard_normal((m.body_count, 6))
    equations, by_recursion, differences = (
        linearize_in_coordinates(m, q, qd, tau, f_ext, independent=independent, method=method)
        for method in ("equations", "recursion", "differences")
    )
    size = np.abs(equations.A).max()
    assert_close(by_recursion.A, equations.A, ulps=1e5, scale=size)
    assert_close(by_recursion.B, equations.B, ulps=1e5)
    assert np.abs(differences.A - equations.A).max() < 1e-8 * size
    assert_close(differences.B, equations.B, ulps=1e5)


JOINTS = {
    "a ball and a universal joint": lambda rng: spatial_chain(
        rng, kt.Spherical(), kt.Universal("xy"), cut=kt.Spherical()
    ),
    "a free body in a slot": lambda rng: spatial_chain(
        rng, kt.Free(), cut=kt.joints.SphereInCylinder("x")
    ),
    "planar joints": lambda rng: spatial_chain(
        rng, kt.Revolute("x"), kt.Planar("z"), cut=kt.Planar("x")
    ),
    "a universal cut": lambda rng: spatial_chain(
        rng, kt.Spherical(), kt.Prismatic("y"), kt.Revolute("z"), cut=kt.Universal("xz")
    ),
}


@pytest.mark.covers("Spencer 4.2", by=linearize_in_coordinates)
@pytest.mark.parametrize("chain", JOINTS)
def test_joints_of_every_kind(chain, rng):
    m, q = JOINTS[chain](rng)
    qd, tau = allowed_velocity(m, q, rng), 3 * rng.standard_normal(m.nv)
    for independent in (None, "tangent"):
        exact, by_recursion, differences = (
            linearize_in_coordinates(m, q, qd, tau, independent=independent, method=method)
            for method in ("equations", "recursion", "differences")
        )
        p = len(exact.coordinates)
        size = np.abs(exact.A).max()
        assert np.abs((differences.A - exact.A)[p:]).max() < 1e-8 * size
        assert_close(by_recursion.A, exact.A, ulps=1e5, scale=size)
        assert_close(by_recursion.B, exact.B, ulps=1e5)


SAMPLES = ("corner_ladder", "five_bar", "hopping_leg", "parallel_four_bar", "satellite", "ur5")


@pytest.mark.covers("Spencer 4.3", "Spencer 4.4", by=(along_links, link_variation))
@pytest.mark.parametrize("name", [*SAMPLES, "loader", "random_tree"])
def test_the_recursion_takes_every_sample(name, rng):
    """Trees, floating bases, springs, curved loop joints, axes that turn; fixed axes as well."""
    m = LOADER if name == "loader" else getattr(kt.samples, name)(**BODIES.get(name, {}))
    q = kt.loops.project_configuration(m, m.integrate(m.neutral(), 0.1 * rng.normal(size=m.nv)))
    qd, tau = allowed_velocity(m, q, rng), rng.standard_normal(m.nv)
    f_ext = rng.standard_normal((m.body_count, 6))
    state, chosen, basis = motion_state(m, q, qd, tau, f_ext, None)
    found, exact = along_links(state, chosen), equations(state, chosen, basis)
    size = max(np.abs(block).max() for block in exact[:2])
    for a, b in zip(found, exact, strict=True):
        assert_close(a, b, ulps=1e5, scale=max(size, np.abs(b).max()))


BODIES = {"random_tree": {"bodies": 4}}


@pytest.mark.parametrize("kind", ["planar", "spherical", "doubled"])
def test_mechanisms_with_redundant_constraints(kind, rng):
    m, q, qd = random_closed_mechanism(rng, kind=kind, bodies=4, loops=1)
    tau = rng.standard_normal(m.nv)
    exact, differences = (
        linearize_in_coordinates(m, q, qd, tau, independent="tangent", method=method)
        for method in ("equations", "differences")
    )
    assert np.abs(differences.A - exact.A).max() < 1e-8 * max(1.0, np.abs(exact.A).max())


def test_springs_and_dampers_are_part_of_the_system():
    m = kt.samples.stewart()
    rest = np.zeros(m.nv)
    linear, differences = (
        linearize_in_coordinates(
            m, m.neutral(), rest, rest, independent=["platform_pose"], method=method
        )
        for method in ("equations", "differences")
    )
    assert linear.coordinates == tuple(f"platform_pose[{k}]" for k in range(6))
    assert np.abs(linear.A - differences.A).max() < 1e-8 * np.abs(linear.A).max()
    assert linear.eigenvalues.real.max() < -0.5  # it comes to rest
    assert np.abs(linear.eigenvalues.imag).max() > 10


def test_couplings(rng):
    """A wheel that follows the crank of a four-bar by a cam, on its rocker."""
    four = kt.samples.four_bar()
    wheel = kt.Body(
        "wheel", 3, kt.Revolute("x"), kt.Plucker.identity(), kt.samples.random_inertia(rng), "wheel"
    )
    cam = kt.Coupling("cam", 4, 1, (0.1, 0.5, 0.3, -0.2))
    m = four.replace(bodies=(*four.bodies, wheel), couplings=(cam,), postures=())
    q = np.zeros(3)
    qd, tau = allowed_velocity(m, q, rng), rng.standard_normal(3)
    exact, by_recursion, differences = (
        linearize_in_coordinates(m, q, qd, tau, independent=["crank_joint"], method=method)
        for method in ("equations", "recursion", "differences")
    )
    assert np.abs(differences.A - exact.A).max() < 1e-8 * np.abs(exact.A).max()
    assert_close(by_recursion.A, exact.A, ulps=1e4)


def test_variables_of_loop_joints_as_coordinates(rng):
    m = LOADER
    q, names = np.zeros(8), ["tilt_eye", "boom_joint"]
    qd, tau = 0.3 * allowed_velocity(m, q, rng), 100 * rng.standard_normal(8)
    exact, by_recursion, differences = (
        linearize_in_coordinates(m, q, qd, tau, independent=names, method=method)
        for method in ("equations", "recursion", "differences")
    )
    assert exact.coordinates == tuple(names)
    assert_close(by_recursion.A, exact.A, ulps=1e5)
    assert np.abs(differences.A - exact.A).max() < 1e-7 * np.abs(exact.A).max()


def test_batches_are_what_their_samples_are(rng):
    m = FOUR_BAR
    q = np.stack([parallelogram(a, b) for a, b in ((0.9, 0.35), (1.4, -0.2), (2.0, 0.6))])
    qd = np.stack([allowed_velocity(m, one, rng) for one in q])
    tau, names = rng.standard_normal(4), ["q1", "q2"]
    for independent in (names, "tangent"):
        for method in ("equations", "recursion", "differences"):
            many = linearize_in_coordinates(m, q, qd, tau, independent=independent, method=method)
            for k in range(3):
                one = linearize_in_coordinates(
                    m, q[k], qd[k], tau, independent=independent, method=method
                )
                assert_close(many.A[k], one.A, ulps=1e4)
                assert_close(many.B[k], one.B, ulps=1e4)
                assert_close(many.rate[k], one.rate, ulps=1e4)


def test_a_model_is_taken_apart_like_that_of_a_tree():
    m = kt.samples.four_bar()
    linear = kt.linearize(m, np.zeros(3), np.zeros(3), np.zeros(3))
    assert isinstance(linear, LinearModel)
    A, B = linear
    assert (A.shape, B.shape) == ((2, 2), (2, 3))


@pytest.mark.parametrize("method", ["equations", "recursion", "differences"])
def test_coordinates_by_a_matrix(method, rng):
    """``yd = R qd`` mixes coordinates that joints have: the linear model changes with them."""
    m, q, tau = LOADER, np.zeros(8), rng.normal(size=8)
    named = ("boom_joint", "bucket_joint")
    qd = linearize_in_coordinates(m, q, q, q, independent=named).G @ np.array([0.3, -0.2])
    known = linearize_in_coordinates(m, q, qd, tau, independent=named, method=method)
    T = np.array([[2.0, 1.0], [-0.5, 1.0]])
    R = T @ np.eye(8)[[m.joint_names.index(name) for name in named]]
    linear = linearize_in_coordinates(m, q, qd, tau, independent=R, method=method)
    assert linear.coordinates == ("y[0]", "y[1]")
    both = np.kron(np.eye(2), T)
    tolerance = 1e-5 if method == "differences" else 1e-9
    expected = both @ known.A @ np.linalg.inv(both)
    np.testing.assert_allclose(linear.A, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(linear.B, both @ known.B, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(linear.rate, both @ known.rate, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(linear.G @ T, known.G, rtol=1e-9, atol=1e-9)


def test_a_matrix_for_each_sample_and_what_is_none():
    m, rest = LOADER, np.zeros((3, 8))
    tangent = linearize_in_coordinates(m, rest, rest, rest, independent="tangent")
    R = np.stack([np.swapaxes(tangent.G[0], -1, -2)] * 3)
    R[1] *= 2.0
    linear = kt.linearize(m, rest, rest, rest, independent=R)
    assert_close(linear.A[0], tangent.A[0], ulps=1e6)
    assert_close(2 * linear.G[1], tangent.G[0], ulps=1e6)
    kt.control.LQR(m, rest[0], Q=1.0, R=1.0, tau=kt.gravity_force(m.replace(loops=()), rest[0]),
                   independent=R[0])  # fmt: skip
    for wrong in (R[0, :1], R[:2], np.ones(8), np.ones((2, 7))):
        with pytest.raises(
            kt.ShapeError, match=r"independent as a matrix must have shape \(2, 8\)"
        ):
            linearize_in_coordinates(m, rest, rest, rest, independent=wrong)
    with pytest.raises(kt.ShapeError, match="independent must be finite"):
        linearize_in_coordinates(m, rest, rest, rest, independent=np.full((2, 8), np.nan))
    with pytest.raises(kt.SingularError, match=r"'y\[0\]', 'y\[1\]' do not determine the motion"):
        linearize_in_coordinates(m, rest, rest, rest, independent=np.ones((2, 8)))


def test_errors_name_what_is_wrong():
    m, rest = LOADER, np.zeros(8)
    with pytest.raises(kt.LoopError, match=r"2 degrees of freedom here; .* got 1: boom_joint"):
        linearize_in_coordinates(m, rest, rest, rest, independent=["boom_joint"])
    with pytest.raises(
        kt.SingularError, match="'boom_joint', 'lift_piston_joint' do not determine"
    ):
        linearize_in_coordinates(
            m, rest, rest, rest, independent=["boom_joint", "lift_piston_joint"]
        )
    with pytest.raises(kt.UnknownNameError, match="'tangent' or None, got 'boom_joint'"):
        linearize_in_coordinates(m, rest, rest, rest, independent="boom_joint")
    with pytest.raises(kt.UnknownNameError, match="has no method 'magic'"):
        linearize_in_coordinates(m, rest, rest, rest, method="magic")
    with pytest.raises(kt.LoopError, match=r"6 degrees of freedom here; .* got 1: shoulder_joint"):
        linearize_in_coordinates(
            kt.samples.ur5(), *np.zeros((3, 6)), independent=["shoulder_joint"]
        )
    five = kt.samples.five_bar()
    with pytest.raises(kt.LoopError, match=r"'right_support\[0\]', which .* cannot be a"):
        linearize_in_coordinates(
            five,
            np.zeros(4),
            np.zeros(4),
            np.zeros(4),
            independent=["right_support[0]", "right_support[3]"],
        )
    fixed, q = spatial_chain(np.random.default_rng(1), kt.Revolute("z"), cut=kt.Revolute("x"))
    with pytest.raises(kt.LoopError, match="'spatial chain' cannot move here: it has no degree"):
        linearize_in_coordinates(fixed, q, [0.0], [0.0])
    with pytest.raises(kt.ShapeError, match="q does not close loop 'right_support'"):
        linearize_in_coordinates(five, [0.1, 0, 0, 0], np.zeros(4), np.zeros(4))
    both = np.array([five.neutral(), five.postures[1].q])
    with pytest.raises(kt.SingularError, match=r"has 3, 2 degrees of freedom|has 2, 3 degrees"):
        linearize_in_coordinates(five, both, np.zeros(4), np.zeros(4))


def test_variables_of_a_loop_joint_where_axes_turn(rng):
    """A ball in the tree, and the angles of a universal joint that closes the loop."""
    m, q = spatial_chain(
        rng, kt.Spherical(), kt.Prismatic("y"), kt.Revolute("z"), cut=kt.Universal("xz")
    )
    qd, tau = allowed_velocity(m, q, rng), rng.standard_normal(m.nv)
    by_recursion, differences = (
        linearize_in_coordinates(m, q, qd, tau, independent=["cut[0]"], method=method)
        for method in ("recursion", "differences")
    )
    for name in ("A", "B"):
        found, exact = getattr(by_recursion, name), getattr(differences, name)
        assert np.abs(found - exact).max() < 1e-7 * np.abs(exact).max()


def test_coordinates_by_name_are_numbers_of_variables():
    m = kt.samples.four_bar()
    assert _read_coordinates(m, ("rocker_joint",)).at == (2,)
    assert _read_coordinates(m, ("crank_joint",)).chosen.names == ("crank_joint",)
    assert _read_coordinates(LOADER, ("tilt_eye", "boom_joint")).chosen is None
    assert _read_coordinates(LOADER, ("bucket_joint", "boom_joint")).at == tuple(
        LOADER.v_slice[LOADER.joint_index(name)].start for name in ("bucket_joint", "boom_joint")
    )
