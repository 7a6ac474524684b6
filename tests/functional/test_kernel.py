"""``@kernel``: the user's own functions, compiled."""

import functools

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.errors import ShapeError, SingularError, TraceError, UnknownNameError
from kinetree.expr.repeat import repeat
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import UserKernel, kernel
from kinetree.model import JointDynamics
from kinetree.quantities import cartesian, centroidal, dynamics, kinematics, lagrangian, task_space

ARM = kt.samples.double_pendulum()
TIP = "tip"


@kernel
def reach_cost(m, q, target):
    p = kt.pose(m, q, TIP)[:3, 3]
    return (p - target) @ (p - target)


@pytest.fixture
def q(rng):
    return rng.normal(size=(7, ARM.nq))


# --- calling -------------------------------------------------------------------------------------


def test_one_sample_is_the_function_itself(q):
    target = np.array([0.1, 0.2, 0.3])
    assert_close(reach_cost(ARM, q[0], target), reach_cost.function(ARM, q[0], target))
    assert isinstance(reach_cost(ARM, q[0], target), float)


def test_batches_broadcast_as_in_numpy(q, rng):
    targets = rng.normal(size=(5, 1, 3))
    cost = reach_cost(ARM, q, targets)
    assert cost.shape == (5, 7)
    assert_close(cost, reach_cost.reference(ARM, q, targets))
    assert_close(cost[3, 2], reach_cost(ARM, q[2], targets[3, 0]))


def test_empty_batch(rng):
    assert reach_cost(ARM, np.zeros((0, ARM.nq)), np.zeros(3)).shape == (0,)
    assert reach_cost.reference(ARM, np.zeros((0, ARM.nq)), np.zeros(3)).shape == (0,)


def test_single_precision_stays_single(q):
    cost = reach_cost(ARM, q.astype(np.float32), np.ones(3, np.float32))
    assert cost.dtype == np.float32
    np.testing.assert_allclose(cost, reach_cost(ARM, q, np.ones(3)), rtol=1e-5)


def test_lists_integers_and_keywords_are_taken_as_arrays(q):
    expected = reach_cost(ARM, q[0], np.array([1.0, 0.0, 0.0]))
    assert_close(reach_cost(ARM, list(q[0]), [1, 0, 0]), expected)
    assert_close(reach_cost(ARM, q=q[0], target=[1, 0, 0]), expected)


def test_one_compilation_serves_all_batches_of_one_model(q):
    first = reach_cost.compiled(ARM, q, np.zeros(3))
    assert reach_cost.compiled(ARM, q[0], np.zeros((4, 3))) is first
    other = ARM.replace(gravity=(0.0, 0.0, -1.0))
    assert reach_cost.compiled(other, q, np.zeros(3)) is not first


def test_every_shape_has_its_own_code():
    @kernel
    def norm(x):
        return kt.spatial.ops.sqrt(x @ x)

    assert_close(norm(np.array([3.0, 4.0])), 5.0)
    assert_close(norm(np.array([2.0, 3.0, 6.0])), 7.0)
    assert_close(norm(np.array([[3.0, 4.0], [6.0, 8.0]])), [5.0, 10.0])
    assert norm.compiled(np.ones(2)) is not norm.compiled(np.ones(3))


def test_kernel_without_a_model():
    @kernel
    def spring(x, stiffness):
        return -stiffness * x

    assert spring(np.array([1.0, 2.0]), 3.0) == pytest.approx([-3.0, -6.0], abs=0)


def test_annotations_give_shapes(rng):
    @kernel
    def weighted(m, q, W: (2, 2), scale: ()):
        return scale * (q @ W @ q)

    W, q, scale = rng.normal(size=(2, 2)), rng.normal(size=(4, 2)), rng.normal(size=4)
    expected = [s * (x @ W @ x) for s, x in zip(scale, q, strict=True)]
    assert_close(weighted(ARM, q, W, scale), expected, ulps=32)


def test_annotations_may_name_sizes_of_the_model(rng):
    @kernel
    def damped(m, qd, D: ("nv", "nv")):  # noqa: F821
        return -D @ qd

    D, qd = rng.normal(size=(2, 2)), rng.normal(size=2)
    assert_close(damped(ARM, qd, D), -D @ qd, ulps=16)


def test_options_are_compiled_in(q):
    @kernel
    def place(m, q, frame=TIP, *, power=1, flip=False):
        p = kt.pose(m, q, frame)[:3, 3]
        return -(p**power) if flip else p**power

    p = kt.pose(ARM, q, TIP)[:, :3, 3]
    assert_close(place(ARM, q), p)
    assert_close(place(ARM, q, power=2), p**2)
    assert_close(place(ARM, q, TIP, flip=True), -p)
    first = ARM.body_names[1]
    assert_close(place(ARM, q, first), kt.pose(ARM, q, first)[:, :3, 3])


def test_whole_numbers_by_position_are_numbers_and_by_keyword_options():
    @kernel
    def power(x, n=2):
        return x**n

    @kernel
    def scaled(x, factor):
        return factor * x

    assert_close(power(np.array([2.0, 3.0]), n=3), [8.0, 27.0])
    assert [a.name for a in power.compiled(np.ones(2), n=3).inputs] == ["x"]
    assert [a.name for a in scaled.compiled(np.ones(2), 3).inputs] == ["x", "factor"]
    assert_close(scaled(np.ones(2), 3), [3.0, 3.0])


def test_annotated_int_is_an_option_wherever_it_stands():
    @kernel
    def total(x, n: int):
        return sum(x[k] for k in range(n))

    assert total(np.array([1.0, 2.0, 4.0]), 2) == 3.0


def test_defaults_may_be_arrays():
    @kernel
    def shifted(x, offset=(1.0, 2.0)):
        return x + offset

    assert_close(shifted(np.zeros((3, 2))), [[1.0, 2.0]] * 3)


# --- results -------------------------------------------------------------------------------------


def test_tuple_results(q):
    @kernel
    def two(m, q):
        H = kt.mass_matrix(m, q)
        return H, H[0, 0]

    H, h = two(ARM, q)
    assert_close(H, kt.mass_matrix(ARM, q))
    assert_close(h, H[:, 0, 0])
    assert_close(two.reference(ARM, q)[1], h)
    H, h = two(ARM, q[0])
    assert H.shape == (2, 2)
    assert isinstance(h, float)


def test_tuple_of_one_stays_a_tuple(q):
    @kernel
    def one(m, q):
        return (kt.potential_energy(m, q),)

    for result in (one(ARM, q), one(ARM, q[0]), one.reference(ARM, q)):
        assert isinstance(result, tuple)
        assert len(result) == 1


def test_dict_results(q):
    @kernel
    def energies(m, q, qd):
        return {"kinetic": kt.kinetic_energy(m, q, qd), "potential": kt.potential_energy(m, q)}

    E = energies(ARM, q, q)
    assert list(E) == ["kinetic", "potential"]
    assert_close(E["kinetic"], kt.kinetic_energy(ARM, q, q))
    assert_close(energies.reference(ARM, q, q)["potential"], E["potential"])


def test_results_that_do_not_depend_on_the_inputs(q):
    @kernel
    def constant(m, q):
        return np.array([m.nv, 2.5])

    assert_close(constant(ARM, q), [[2.0, 2.5]] * len(q))


def test_without_arrays_the_function_itself_is_called():
    @kernel
    def total_mass(m):
        return sum(body.inertia.mass for body in m.bodies)

    assert total_mass(ARM) == total_mass.function(ARM)


# --- other numbers -------------------------------------------------------------------------------


def test_kernels_call_kernels(q):
    @kernel
    def gradient_free(m, q):
        return reach_cost(m, q, np.zeros(3)) + reach_cost(m, 2 * q, np.ones(3))

    expected = reach_cost(ARM, q, np.zeros(3)) + reach_cost(ARM, 2 * q, np.ones(3))
    assert_close(gradient_free(ARM, q), expected, ulps=32)


def test_complex_numbers_go_through_the_function(q):
    step = 1e-30
    derivative = reach_cost(ARM, q[0] + 1j * step * np.eye(2)[0], np.zeros(3)).imag / step
    h = 1e-6 * np.eye(2)[0]
    difference = reach_cost(ARM, q[0] + h, np.zeros(3)) - reach_cost(ARM, q[0] - h, np.zeros(3))
    assert derivative == pytest.approx(difference / 2e-6, rel=1e-6, abs=1e-8)


def _traced_functions(m):
    """Every public array function as a function of (q, qd, qdd, tau, f_ext, point)."""
    tip = m.body_names[-1]
    return {
        "inverse_dynamics": lambda f, q, v, a, t, e, p: f(m, q, v, a, f_ext=e),
        "forward_dynamics": lambda f, q, v, a, t, e, p: f(m, q, v, t, f_ext=e),
        "mass_matrix": lambda f, q, v, a, t, e, p: f(m, q),
        "inverse_mass_matrix": lambda f, q, v, a, t, e, p: f(m, q),
        "bias_force": lambda f, q, v, a, t, e, p: f(m, q, v, f_ext={tip: e[-1]}),
        "gravity_force": lambda f, q, v, a, t, e, p: f(m, q),
        "passive_force": lambda f, q, v, a, t, e, p: f(m, q, v),
        "coriolis_matrix": lambda f, q, v, a, t, e, p: f(m, q, v),
        "christoffel": lambda f, q, v, a, t, e, p: f(m, q),
        "bias_acceleration": lambda f, q, v, a, t, e, p: f(m, q, v, tip, frame="body", point=p),
        "hessian": lambda f, q, v, a, t, e, p: f(m, q, tip, frame="aligned", point=p),
        "joint_velocity": lambda f, q, v, a, t, e, p: f(m, q, a[:6], tip, frame="body", point=p),
        "joint_acceleration": lambda f, q, v, a, t, e, p: f(m, q, v, a[:6], tip, frame="aligned"),
        "jacobians": lambda f, q, v, a, t, e, p: f(m, q, frame="body"),
        "poses": lambda f, q, v, a, t, e, p: f(m, q),
        "applied_force": lambda f, q, v, a, t, e, p: f(m, q, tip, force=p, frame="aligned", at=p),
        "forces_of_joint_torques": lambda f, q, v, a, t, e, p: f(m, q, e[:, :3]),
        "generalized_force": lambda f, q, v, a, t, e, p: f(m, q, e),
        "generalized_momentum": lambda f, q, v, a, t, e, p: f(m, q, v),
        "kinetic_energy_rate": lambda f, q, v, a, t, e, p: f(m, q, v, a),
        "mass_matrix_rate": lambda f, q, v, a, t, e, p: f(m, q, v),
        "potential_energy_rate": lambda f, q, v, a, t, e, p: f(m, q, v),
        "power_balance": lambda f, q, v, a, t, e, p: f(m, q, v, t, e).kinetic,
        "center_of_mass_acceleration": lambda f, q, v, a, t, e, p: f(m, q, v, a),
        "center_of_mass_jacobian": lambda f, q, v, a, t, e, p: f(m, q),
        "center_of_mass_jacobian_rate": lambda f, q, v, a, t, e, p: f(m, q, v),
        "center_of_mass_velocity": lambda f, q, v, a, t, e, p: f(m, q, v),
        "centroidal_inertia": lambda f, q, v, a, t, e, p: f(m, q),
        "centroidal_momentum": lambda f, q, v, a, t, e, p: f(m, q, v),
        "centroidal_momentum_bias": lambda f, q, v, a, t, e, p: f(m, q, v),
        "centroidal_momentum_matrix": lambda f, q, v, a, t, e, p: f(m, q),
        "centroidal_momentum_matrix_rate": lambda f, q, v, a, t, e, p: f(m, q, v),
        "centroidal_momentum_rate": lambda f, q, v, a, t, e, p: f(m, q, v, a),
        "zero_moment_point": lambda f, q, v, a, t, e, p: f(m, q, v / 9, a / 9, point=p),
        "operational_space_inertia": lambda f, q, v, a, t, e, p: f(
            m, q, tip, frame="body", point=p
        ),
        "inverse_operational_space_inertia": lambda f, q, v, a, t, e, p: f(
            m, q, tip, frame="body", point=p
        ),
        "operational_space_bias": lambda f, q, v, a, t, e, p: f(m, q, v, tip, rows="linear"),
        "operational_space_gravity": lambda f, q, v, a, t, e, p: f(m, q, tip, rows="angular"),
        "operational_space_dynamics": lambda f, q, v, a, t, e, p: f(m, q, v, tip).coriolis,
        "dynamically_consistent_inverse": lambda f, q, v, a, t, e, p: f(m, q, tip, damping=0.1),
        "null_space_projector": lambda f, q, v, a, t, e, p: f(m, q, tip, rows=("x", "rz")),
        "task_space_forward_dynamics": lambda f, q, v, a, t, e, p: f(
            m, q, v, p, tip, frame="aligned", rows="linear"
        ),
        "task_space_inverse_dynamics": lambda f, q, v, a, t, e, p: f(
            m, q, v, p, tip, frame="aligned", rows="linear"
        ),
        "pose": lambda f, q, v, a, t, e, p: f(m, q, tip),
        "jacobian": lambda f, q, v, a, t, e, p: f(m, q, tip, frame="aligned", point=p),
        "jacobian_rate": lambda f, q, v, a, t, e, p: f(m, q, v, tip, frame="body", point=p),
        "velocity": lambda f, q, v, a, t, e, p: f(m, q, v, tip, frame="aligned", point=p),
        "acceleration": lambda f, q, v, a, t, e, p: f(
            m, q, v, a, tip, kind="classical", frame="aligned", point=p
        ),
        "kinetic_energy": lambda f, q, v, a, t, e, p: f(m, q, v),
        "potential_energy": lambda f, q, v, a, t, e, p: f(m, q),
        "momentum": lambda f, q, v, a, t, e, p: f(m, q, v),
        "center_of_mass": lambda f, q, v, a, t, e, p: f(m, q),
    }


FREE = (
    kt.ModelBuilder("free")
    .body("trunk", joint=kt.Free(), inertia=kt.shapes.box(0.3, 0.2, 0.1, mass=2.0))
    .body(
        "leg",
        on="trunk",
        joint=kt.Revolute("y"),
        at=(0.1, 0, 0),
        inertia=kt.shapes.box(0.05, 0.05, 0.4, mass=0.5),
        dynamics=JointDynamics(armature=0.1, damping=0.2, friction=0.3, stiffness=0.4),
    )
    .build()
)


@pytest.mark.parametrize("name", sorted(_traced_functions(FREE)))
def test_every_public_function_works_inside_a_kernel(name, rng):
    call, function, m = _traced_functions(FREE)[name], getattr(kt, name), FREE

    @kernel
    def inside(m, q, qd, qdd, tau, f_ext, point):
        return call(function, q, qd, qdd, tau, f_ext, point)

    q = m.random_configuration(rng)
    v, a, t = rng.normal(size=(3, m.nv))
    e, p = rng.normal(size=(m.body_count, 6)), rng.normal(size=3)
    expected = call(function, q, v, a, t, e, p)
    scale = np.max(np.abs(expected), initial=1.0)  # some are zero: in them numbers of size 1 cancel
    condition = np.linalg.cond(kt.mass_matrix(m, q))
    assert_close(inside(m, q, v, a, t, e, p), expected, scale=scale, condition=condition)


def test_every_array_function_is_in_that_test():
    modules = (cartesian, centroidal, dynamics, kinematics, lagrangian, task_space)
    names = {name for module in modules for name in module.__all__ if name.islower()}
    on_the_host = {"cartesian_forces", "generalized_velocity", "joint_torques", "task_freedom"}
    on_the_host |= {"support_margin"}
    assert set(_traced_functions(FREE)) == names - on_the_host


def test_manifold_operations_work_inside_a_kernel(rng):
    @kernel
    def there_and_back(m, q, qd):
        return m.difference(q, m.integrate(q, qd)), kt.pose(m, m.integrate(q, qd), "leg")

    q, qd = FREE.random_configuration(rng), 0.3 * rng.normal(size=FREE.nv)
    back, pose = there_and_back(FREE, q, qd)
    assert_close(back, qd, ulps=256)
    assert_close(pose, kt.pose(FREE, FREE.integrate(q, qd), "leg"), ulps=256)


# --- refusals ------------------------------------------------------------------------------------


def test_wrong_shapes_are_named(q):
    with pytest.raises(ShapeError, match=r"q must have shape \(\.\.\., nq\) with nq = 2"):
        reach_cost(ARM, np.zeros(3), np.zeros(3))

    @kernel
    def annotated(m, q, target: (3,)):
        return q @ q + target @ target

    with pytest.raises(
        ShapeError, match=r"annotated: target must have shape \(\.\.\., 3\), got \(2,\)"
    ):
        annotated(ARM, q, np.zeros(2))
    with pytest.raises(ShapeError, match=r"batch axes do not broadcast.*q \(7,\), target \(4,\)"):
        annotated(ARM, q, np.zeros((4, 3)))


def test_numbers_that_are_not_finite_are_named(q):
    target = np.zeros((7, 3))
    target[4, 1] = np.nan
    with pytest.raises(ShapeError, match=r"target must be finite, got nan at index \(4, 1\)"):
        reach_cost(ARM, q, target)
    q[2, 1] = np.inf
    with pytest.raises(ShapeError, match=r"q must be finite, got inf at index 1 of sample \(2,\)"):
        reach_cost(ARM, q, np.zeros(3))


def test_quaternions_that_are_not_of_unit_length_are_rejected(rng):
    @kernel
    def height(m, q):
        return q[2]

    q = np.stack([FREE.random_configuration(rng) for _ in range(3)])
    assert_close(height(FREE, q), q[:, 2])
    q[1, 3:7] *= 2
    with pytest.raises(ShapeError, match=r"of sample \(1,\)"):
        height(FREE, q)


def test_singular_samples_are_named():
    @kernel
    def inverse(m, q, scale):
        return kt.spatial.ops.check_pivot(q[0], scale, lambda: "q[0] is not positive") ** -1

    assert_close(inverse(ARM, np.array([[2.0, 0], [4.0, 0]]), 1.0), [0.5, 0.25])
    with pytest.raises(SingularError, match=r"sample \(1,\): q\[0\] is not positive"):
        inverse(ARM, np.array([[2.0, 0], [-4.0, 0]]), 1.0)


def test_errors_of_the_function_itself_pass_unchanged(q):
    @kernel
    def typo(m, q):
        return kt.pose(m, q, "no such frame")

    @kernel
    def bug(m, q):
        return q[5]

    with pytest.raises(UnknownNameError, match="no such frame"):
        typo(ARM, q)
    with pytest.raises(IndexError, match="out of bounds"):
        bug(ARM, q)


def test_functions_that_return_nothing_are_rejected(q):
    @kernel
    def nothing(m, q):
        q + 1

    with pytest.raises(TraceError, match="'nothing' returned None"):
        nothing(ARM, q)


def test_arguments_that_are_no_arrays_are_rejected(q):
    with pytest.raises(TypeError, match="target must be an array of numbers, got dict"):
        reach_cost(ARM, q, {"x": 1.0})
    with pytest.raises(TypeError, match=r"argument: 'target'; it is reach_cost\(m, q, target\)"):
        reach_cost(ARM, q)


def test_parameters_must_have_names():
    with pytest.raises(TypeError, match=r"parameter \*arrays"):
        kernel(lambda *arrays: arrays[0])
    with pytest.raises(TypeError, match="takes a function"):
        kernel(3)


def test_any_callable_will_do():
    scaled = kernel(functools.partial(lambda factor, x: factor * x, 3.0))
    assert_close(scaled(np.array([1.0, 2.0])), [3.0, 6.0])


def test_what_it_looks_like():
    assert isinstance(reach_cost, UserKernel)
    assert repr(reach_cost) == "<kinetree kernel reach_cost(m, q, target)>"
    assert reach_cost.__name__ == "reach_cost"


# --- loops ---------------------------------------------------------------------------------------


def test_repeat_inside_a_kernel_with_the_count_as_an_option_or_an_argument():
    def doubled(x, times):
        return repeat(lambda y: 2 * y, x, times)

    twice = kernel(doubled)
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert_close(twice(x, times=5), 32 * x)

    @kernel
    def each(x, times: ()):
        return repeat(lambda y: 2 * y, x, times)

    assert_close(each(x, np.array([1, 3])), [[2.0, 4.0], [24.0, 32.0]])


# --- derivatives ---------------------------------------------------------------------------------


def test_kernels_are_differentiable(q):
    d = differentiate(reach_cost, wrt=("q", "target"))
    target = np.array([0.1, 0.2, 0.3])
    by_q, by_target = d(ARM, q, target)
    p = kt.pose(ARM, q, TIP)[:, :3, 3]
    J = kt.jacobian(ARM, q, TIP, frame="aligned")[:, 3:]
    assert_close(by_q, 2 * np.einsum("ni,nij->nj", p - target, J), ulps=200)
    assert_close(by_target, 2 * (target - p), ulps=200)


def test_derivatives_of_several_results_have_their_form(q):
    @kernel
    def energies(m, q, qd):
        return {"kinetic": kt.kinetic_energy(m, q, qd), "potential": kt.potential_energy(m, q)}

    d = differentiate(energies, wrt="q")(ARM, q, q)
    assert_close(d["potential"], kt.gravity_force(ARM, q), ulps=200)
