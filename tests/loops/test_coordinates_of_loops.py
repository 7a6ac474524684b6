"""Linear models in variables of loop joints, in other units, in any order, and in batches."""

from functools import cache

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import allowed_velocity, spatial_chain

import kinetree as kt
from kinetree.joints import Revolute
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.loop_joints import loop_positions, loop_velocities
from kinetree.loops.linear.coordinate_motion import coordinate_motion
from kinetree.loops.linear.coordinates import coordinates
from kinetree.loops.linear.derivatives import torque_derivatives
from kinetree.loops.linear.linearization import linearize_in_coordinates
from kinetree.loops.linear.velocity_basis import (
    coordinate_rates,
    coordinate_values,
    velocity_basis,
)
from kinetree.model import JointDynamics
from kinetree.samples.earthmovers import loader
from kinetree.textbook.implicit_step import implicit_step


@cache
def spatial(cut):
    """A chain in space, of which a loop joint with one or two variables closes the end."""
    cuts = {"slide": kt.Prismatic("y"), "universal": kt.Universal("xz")}
    joints = [
        kt.Revolute("x"), kt.Revolute((1, 2, 2)), kt.Prismatic("y"), kt.Revolute("y"),
        kt.Revolute((2, 0, 1)), kt.Prismatic("z"),
    ]  # fmt: skip
    return spatial_chain(np.random.default_rng(5), *joints, cut=cuts[cut])


@pytest.mark.parametrize("cut", ["slide", "universal"])
def test_variables_of_a_loop_joint_as_coordinates(cut, rng):
    """Their accelerations have velocity products; differences of motions do not use those."""
    model, q = spatial(cut)
    qd, tau = allowed_velocity(model, q, rng), rng.standard_normal(model.nv)
    options = {"independent": ["cut"]}
    one, other = (
        linearize_in_coordinates(model, q, qd, tau, method=method, **options)
        for method in ("equations", "differences")
    )
    assert len(one.coordinates) == model.loops[0].joint.nv
    size = np.abs(one.A).max()
    assert np.abs(one.A - other.A).max() < 1e-8 * size
    assert_close(one.B, other.B, ulps=1e7)
    assert_close(one.rate, other.rate, ulps=1e7)
    p = len(one.coordinates)
    assert_close(one.rate[:p], loop_velocities(model, q, qd)["cut"], ulps=1e4, scale=1)


def test_values_and_rates_of_all_variables_of_a_loop_joint(rng):
    model, q = spatial("universal")
    qd = allowed_velocity(model, q, rng)
    chosen = coordinates(model, constraint(model, q, qd).K, ["cut"])
    assert_close(coordinate_values(model, q, chosen), loop_positions(model, q)["cut"], ulps=1e4)
    assert_close(
        coordinate_rates(model, q, qd, chosen), loop_velocities(model, q, qd)["cut"], ulps=1e4
    )
    y = coordinate_values(model, q, chosen) + np.array([0.02, -0.03])
    moved = coordinate_motion(model, q, y, 0 * y, 0 * y, independent=["cut"])
    assert_close(loop_positions(model, moved.q)["cut"], y, ulps=1e4)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_coordinates_in_other_units(unit, rng):
    """``yd = R qd`` in millimetres or light years: columns of ``G`` are as many times shorter."""
    model = loader()
    K = constraint(model, np.zeros(8), np.zeros(8)).K
    G = velocity_basis(model, np.zeros(8), K, coordinates(model, K, "tangent")).G
    R = np.linalg.pinv(G)
    found = velocity_basis(model, np.zeros(8), K, coordinates(model, K, unit * R))
    assert_close(unit * found.G, G, ulps=1e5)
    mixed = np.diag([1.0, unit]) @ R
    found = velocity_basis(model, np.zeros(8), K, coordinates(model, K, mixed))
    assert_close(found.G @ np.diag([1.0, unit]), G, ulps=1e5)


LOADER = loader()
NAMES = ["bucket_joint", "boom_joint"]  # not in the order of the tree


def states(rng, count=2):
    y = 0.2 * rng.standard_normal((count, 2))
    return coordinate_motion(LOADER, np.zeros(8), y, rng.standard_normal((count, 2)), 0 * y,
                             independent=NAMES)  # fmt: skip


@pytest.mark.parametrize(
    ("independent", "method"),
    [(NAMES, "equations"), (["boom_joint", "tilt_eye"], "equations"), (NAMES, "differences")],
    ids=str,
)
def test_a_batch_is_as_its_samples(independent, method, rng):
    """With forces on bodies for each sample, or the same for all."""
    q, qd, _ = states(rng)
    tau = rng.standard_normal((2, 8))
    options = {"independent": independent, "method": method}
    for f_ext in (rng.standard_normal((2, 8, 6)), rng.standard_normal((8, 6))):
        batch = linearize_in_coordinates(LOADER, q, qd, tau, f_ext, **options)
        for n in range(2):
            forces = f_ext[n] if f_ext.ndim == 3 else f_ext
            one = linearize_in_coordinates(LOADER, q[n], qd[n], tau[n], forces, **options)
            for name in ("A", "B", "rate", "qdd"):
                found, expected = getattr(batch, name)[n], getattr(one, name)
                assert_close(found, expected, ulps=1e6 if method == "equations" else 1e9)


def test_the_order_of_names_is_that_of_the_coordinates(rng):
    q, qd, _ = (x[0] for x in states(rng))
    tau, turn = rng.standard_normal(8), np.array([1, 0, 3, 2])
    one, other = (
        linearize_in_coordinates(LOADER, q, qd, tau, independent=n) for n in (NAMES, NAMES[::-1])
    )
    assert_close(one.A[turn][:, turn], other.A, ulps=1e3)
    assert_close(one.B[turn], other.B, ulps=1e3)
    assert_close(one.rate[turn], other.rate, ulps=1e3)
    assert_close(one.G[:, ::-1], other.G, ulps=1e3)


# --- one freedom ----------------------------------------------------------------------------------


def test_torques_of_a_mechanism_with_one_freedom(rng):
    """By the power of the forces, and by differences of motions."""
    model = kt.samples.four_bar()
    y, yd, ydd, crank = np.array([0.3]), np.array([0.7]), np.array([-0.4]), ["crank_joint"]

    def at(y, yd, ydd):
        motion = coordinate_motion(model, np.zeros(3), y, yd, ydd, independent=crank)
        return torque_derivatives(model, *motion, actuated=crank, independent=crank)

    found, motion = at(y, yd, ydd), coordinate_motion(
        model, np.zeros(3), y, yd, ydd, independent=crank
    )  # fmt: skip
    tree = model.replace(loops=())
    power = kt.inverse_dynamics(tree, *motion) @ motion.qd
    assert_close(found.tau[0] * yd[0], power, ulps=1e4)
    h = 1e-5
    for k, derivative in enumerate((found.dy, found.dyd, found.dydd)):
        one, other = (
            at(*(x + s * h * (n == k) for n, x in enumerate((y, yd, ydd)))).tau for s in (1, -1)
        )
        assert_close(derivative, ((one - other) / (2 * h))[None], ulps=1e7, scale=1)
    with pytest.raises(kt.SingularError, match="it has 1 degrees of freedom, and as many forces"):
        torque_derivatives(
            model, *motion, actuated=["crank_joint", "rocker_joint"], independent=crank
        )


def test_drives_that_control_two_of_three_freedoms_are_rejected():
    """Crank and rocker drive the same freedom, and nothing drives the hand."""
    bar = kt.Inertia.from_mass_center(1.0, (0.5, 0, 0), np.eye(3))
    builder = kt.ModelBuilder("ladder and arm")
    builder.body("arm", joint=Revolute("z"), inertia=bar)
    builder.body("hand", on="arm", joint=Revolute("z"), at=(1, 0, 0), inertia=bar)
    builder.body("crank", joint=Revolute("z"), at=(0, 2, 0), inertia=bar)
    builder.body("coupler", on="crank", joint=Revolute("z"), at=(1, 0, 0), inertia=bar)
    builder.body("rocker", joint=Revolute("z"), at=(1, 3, 0), inertia=bar)
    builder.loop("pin", predecessor="coupler", successor="rocker", joint=Revolute("z"),
                 at=(1, 1, 0), successor_at=(1, 0, 0))  # fmt: skip
    model = builder.build()
    rest = np.zeros(5)
    assert np.abs(constraint(model, rest, rest).error).max() < 1e-14
    good = ["arm_joint", "hand_joint", "crank_joint"]
    found = torque_derivatives(model, rest, rest, rest, actuated=good)
    assert found.tau.shape == (3,)
    with pytest.raises(kt.SingularError, match="do not control model 'ladder and arm' here"):
        torque_derivatives(
            model, rest, rest, rest, actuated=["arm_joint", "crank_joint", "rocker_joint"]
        )


@pytest.mark.parametrize(("scheme", "share"), [("trapezoid", 0.5), ("backward_euler", 1.0)])
def test_an_implicit_step_of_an_oscillator(scheme, share):
    """Linear, so that one step of Newton's method is exact, and its size is known."""
    k, c, m, h = 30.0, 0.7, 2.0, 0.1
    model = (
        kt.ModelBuilder("oscillator", gravity=(0, 0, 0))
        .body("mass", joint=kt.Prismatic("x"),
              inertia=kt.Inertia.from_mass_center(m, (0, 0, 0), np.eye(3)))
        .build()
        .replace(dynamics={"mass_joint": JointDynamics(stiffness=k, damping=c)})
    )  # fmt: skip
    z0, A = np.array([0.3, -1.2]), np.array([[0, 1], [-k / m, -c / m]])
    step = implicit_step(model, z0[:1], z0[1:], np.zeros(1), h, scheme=scheme)
    z1 = np.linalg.solve(np.eye(2) - share * h * A, (np.eye(2) + (1 - share) * h * A) @ z0)
    assert_close([*step.q, *step.qd], z1, ulps=1e3)
    guess = z0 + h * A @ z0
    assert_close(step.corrections[0], np.max(np.abs(z1 - guess)), ulps=1e4)
    assert len(step.corrections) == 2


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_coordinates_that_depend_on_each_other_are_rejected_in_any_unit(unit):
    """Two rows that differ by a billionth are one."""
    K = constraint(LOADER, np.zeros(8), np.zeros(8)).K
    G = velocity_basis(LOADER, np.zeros(8), K, coordinates(LOADER, K, "tangent")).G
    R = np.linalg.pinv(G)
    nearly = unit * np.array([R[0] + R[1], (R[0] + R[1]) * (1 + 1e-12) + 1e-12 * R[0]])
    with pytest.raises(kt.SingularError, match="do not determine the motion of model"):
        linearize_in_coordinates(LOADER, np.zeros(8), np.zeros(8), np.zeros(8), independent=nearly)
    fine = unit * np.array([R[0] + R[1], R[0]])
    rest = np.zeros(8)
    found = linearize_in_coordinates(LOADER, rest, rest, rest, independent=fine)
    other = linearize_in_coordinates(LOADER, rest, rest, rest, independent=fine / unit)
    assert_close(found.A[2:, :2], other.A[2:, :2], ulps=1e6)
    assert_close(found.B, unit * other.B, ulps=1e6)


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_dependent_coordinates_of_a_mechanism_of_any_size(size):
    """Crossed slides, and a coordinate that repeats another one up to a billionth."""
    ball = kt.Inertia.from_mass_center(1.0, (0, 0, 0), size**2 * np.eye(3))
    model = (
        kt.ModelBuilder("slides")
        .body("a", joint=kt.Prismatic("x"), inertia=ball)
        .body("b", on="a", joint=kt.Prismatic("y"), at=(size, 0, 0), inertia=ball)
        .build()
    )
    rest, R = np.zeros(2), np.array([[1.0, 2.0], [1.0, 2.0 + 1e-10]])
    with pytest.raises(kt.SingularError, match="do not determine the motion of model 'slides'"):
        linearize_in_coordinates(model, rest, rest, rest, independent=R)
    fine = linearize_in_coordinates(model, rest, rest, rest, independent=R + np.diag([1.0, 0.0]))
    assert_close(fine.B[2:], (R + np.diag([1.0, 0.0])) @ np.diag([0.5, 1.0]), ulps=1e4)
