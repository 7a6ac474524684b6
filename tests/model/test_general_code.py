"""Code for every robot: the same numbers as code for one, from tables, for every kind of joint."""

import resource
from dataclasses import dataclass, field

import numpy as np
import pytest
from support.effort import assert_quick

import kinetree as kt
from kinetree import joints
from kinetree.algorithms import aba, crba, rnea
from kinetree.codegen import tiers
from kinetree.errors import JointError
from kinetree.model import Coupling, ModelBuilder
from kinetree.model.general import tables
from kinetree.model.parts import JointDynamics
from kinetree.spatial import Force, Motion, rotx, roty, xlt

TEXTS = {
    kt.inverse_dynamics: rnea.inverse_dynamics,
    kt.forward_dynamics: aba.forward_dynamics,
    kt.mass_matrix: crba.joint_space_inertia,
    kt.bias_force: rnea.bias_force,
    kt.gravity_force: rnea.gravity_force,
}
DERIVATIVES = ("rates", "gradients")
PLACEMENT = xlt(0.2, -0.1, 0.3) @ rotx(0.4) @ roty(-0.7)


@pytest.fixture(autouse=True)
def _general():
    with kt.tier("general"):
        yield


def link(seed=0):
    """A body that resists every motion."""
    rng = np.random.default_rng(seed)
    at = xlt(*rng.normal(size=3) / 10)
    return kt.shapes.box(0.3, 0.2, 0.5, mass=1 + rng.random()).transformed(at)


def mechanism(*chain, gravity=(0.3, -0.5, -9.81)):
    """Joints one after the other; each comes with its armature, 0 for none."""
    builder, on = ModelBuilder("chain", gravity=gravity), None
    for k, (joint, armature) in enumerate(chain):
        dynamics = JointDynamics(armature=armature) if armature and joint.nv else None
        builder.body(f"b{k}", on=on, joint=joint, at=PLACEMENT, inertia=link(k), dynamics=dynamics)
        on = f"b{k}"
    return builder.build()


def state(model, batch=()):
    rng = np.random.default_rng(5)
    count = None if batch == () else batch[0]
    q = model.random_configuration(rng, count)
    return q, rng.normal(size=(*batch, model.nv)), rng.normal(size=(*batch, model.nv))


def check(function, model, *arrays):
    """General code against the text in Python, sample by sample."""
    found = function(model, *arrays)
    assert kernel_of(function, model).tier == "general"
    expected = TEXTS[function](model, *arrays)
    scale = max(1.0, np.max(np.abs(expected), initial=0))
    np.testing.assert_allclose(found, expected, 0, 2e-13 * scale)


def kernel_of(function, model):
    return function.definition.kernel(model)


@pytest.mark.parametrize("joint", joints.REPRESENTATIVES, ids=repr)
def test_every_joint_on_the_base_with_armature_and_elsewhere_without(joint):
    model = mechanism((joint, 0.1), (joint, 0.0), (joints.Revolute("y"), 0.0))
    q, qd, x = state(model)
    check(kt.inverse_dynamics, model, q, qd, x)
    check(kt.forward_dynamics, model, q, qd, x)


@pytest.mark.parametrize("joint", [joints.Revolute((1.0, -2.0, 2.0)), joints.Free()], ids=repr)
def test_every_joint_on_the_base_without_armature_and_elsewhere_with(joint):
    model = mechanism((joint, 0.0), (joint, 0.1))
    q, qd, x = state(model)
    check(kt.inverse_dynamics, model, q, qd, x)
    check(kt.forward_dynamics, model, q, qd, x)


@pytest.mark.parametrize("joint", [joints.Free(), joints.Prismatic("x")], ids=repr)
def test_a_robot_of_one_body(joint):
    model = mechanism((joint, 0.0))
    q, qd, x = state(model)
    check(kt.forward_dynamics, model, q, qd, x)
    check(kt.mass_matrix, model, q)


ROBOT = mechanism(
    (joints.Free(), 0.0), (joints.Revolute("x"), 0.1), (joints.Cylindrical("-y"), 0.0),
    (joints.Fixed(), 0.0), (joints.Spherical(), 0.2), (joints.Helical("z", pitch=0.1), 0.0),
)  # fmt: skip


@pytest.mark.parametrize("function", [*TEXTS][:3], ids=lambda f: f.__name__)
def test_both_tiers_and_single_samples_agree(function):
    arrays = state(ROBOT, (7,))[: len(function.definition.required)]
    found = function(ROBOT, *arrays)
    single = [function(ROBOT, *(a[k] for a in arrays)) for k in range(7)]
    np.testing.assert_array_equal(found, single)
    with kt.tier("specialised"):
        expected = function(ROBOT, *arrays)
    assert kernel_of(function, ROBOT).next_tier == "general"
    np.testing.assert_allclose(found, expected, 0, 2e-13 * np.max(np.abs(expected)))


def test_bias_and_gravity():
    q, qd, _ = state(ROBOT)
    check(kt.bias_force, ROBOT, q, qd)
    check(kt.gravity_force, ROBOT, q)


@pytest.mark.parametrize("function", [kt.inverse_dynamics, kt.forward_dynamics, kt.bias_force])
def test_external_forces(function):
    q, qd, x = state(ROBOT)
    arrays = (q, qd, x)[: len(function.definition.required)]
    forces = np.random.default_rng(6).normal(size=(ROBOT.body_count, 6))
    expected = TEXTS[function](ROBOT, *arrays, [None, *map(Force.from_array, forces)])
    np.testing.assert_allclose(function(ROBOT, *arrays, f_ext=forces), expected, 0, 1e-10)
    by_name = function(ROBOT, *arrays, f_ext={"b2": forces[2]})
    np.testing.assert_array_equal(
        by_name, function(ROBOT, *arrays, f_ext=forces * (np.arange(6) == 2)[:, None])
    )


def test_single_precision():
    q, qd, x = (a.astype(np.float32) for a in state(ROBOT))
    found = kt.forward_dynamics(ROBOT, q, qd, x)
    assert found.dtype == np.float32
    expected = kt.forward_dynamics(ROBOT, *(a.astype(float) for a in (q, qd, x)))
    np.testing.assert_allclose(found, expected, 0, 1e-3 * np.max(np.abs(expected)))


@pytest.mark.parametrize("function", [kt.inverse_dynamics, kt.forward_dynamics])
def test_rates_and_gradients(function):
    model = mechanism((joints.Spherical(), 0.0), (joints.Revolute("x"), 0.1))
    (q, *others), rng = state(model), np.random.default_rng(8)
    dq = model.configuration_rate(q, rng.normal(size=model.nv))  # off unit length, texts differ
    directions = [dq, *rng.normal(size=(2, model.nv))]
    rates, gradients = (getattr(kernel_of(function, model), n)((0, 1, 2)) for n in DERIVATIVES)
    weights = rng.normal(size=model.nv)
    found = []
    for tier in ("general", "specialised"):
        with kt.tier(tier):
            rate = rates.call(q, *others, *directions)
            to_q, *rest = gradients.call(q, *others, weights)
            assert rates.tier == gradients.tier == tier
            found.append(np.concatenate([rate, [to_q @ dq], *rest]))
            work = to_q @ dq + sum(g @ d for g, d in zip(rest, directions[1:], strict=True))
            np.testing.assert_allclose(weights @ rate, work, 1e-12)
    np.testing.assert_allclose(found[0], found[1], 0, 1e-12 * np.max(np.abs(found[1])))


# --- errors are those of specialised code --------------------------------------------------------


def message(function, *arguments):
    with pytest.raises(kt.errors.KinetreeError) as error:
        function(*arguments)
    return str(error.value)


def test_errors_are_those_of_specialised_code():
    q, qd, x = state(ROBOT, (3,))
    stretched, infinite = q.copy(), qd.copy()
    stretched[1, 3:7] *= 1.1
    infinite[2, 4] = np.nan
    wrong = [(stretched, qd, x), (q, infinite, x), (q, qd[:, :-1], x)]
    general = [message(kt.forward_dynamics, ROBOT, *arrays) for arrays in wrong]
    assert "q of sample (1,), joint 'b0_joint': quaternion" in general[0]
    with kt.tier("specialised"):
        assert general == [message(kt.forward_dynamics, ROBOT, *arrays) for arrays in wrong]


def test_a_joint_that_moves_no_inertia_is_named():
    model = (
        ModelBuilder()
        .body("a", joint=joints.Revolute("z"), inertia=link())
        .body("b", on="a", joint=joints.Revolute("x"), inertia=kt.Inertia.zero())
        .build()
    )
    arrays = np.zeros(2), np.zeros(2), np.zeros(2)
    text = message(kt.forward_dynamics, model, *arrays)
    assert "joint 'b_joint' moves no inertia" in text
    with kt.tier("specialised"):
        assert text == message(kt.forward_dynamics, model, *arrays)


# --- joints of the user's, and joints that time moves --------------------------------------------


@dataclass(frozen=True)
class Parabola(joints.AbstractJoint):
    """A pin in a slot ``y = a x²``; the width of the slot is a number of the model."""

    a: float = 1.0
    nq = nv = 1
    constant_subspace = False

    def parameters(self):
        return (self.a,)

    def with_parameters(self, values):
        return Parabola(*values)

    def jcalc(self, q, qd):
        x, zero = q[0], np.zeros((3, 1), dtype=int)
        S = Motion(zero, np.array([[1], [2 * self.a * x], [0]]))
        c_J = Motion(zero[:, 0], np.array([0, 2 * self.a * qd[0] * qd[0], 0]))
        return xlt(x, self.a * x * x, 0), S, S @ qd, c_J

    def constraint_subspace(self, q):
        raise NotImplementedError

    def coordinates(self, X):
        return X.r[:1]


def test_a_joint_class_of_the_users(compilations):
    model = mechanism((Parabola(0.4), 0.0), (joints.Revolute("x"), 0.0), (Parabola(2.0), 0.1))
    q, qd, x = state(model)
    check(kt.inverse_dynamics, model, q, qd, x)
    check(kt.forward_dynamics, model, q, qd, x)
    before = compilations()
    other = model.replace(joint={"b0_joint": Parabola(-1.5)})
    check(kt.forward_dynamics, other, q, qd, x)
    assert compilations() == before


MOVING_AXES = [j for j in joints.REPRESENTATIVES if not j.constant_subspace]


@pytest.mark.parametrize("joint", [*MOVING_AXES, Parabola(0.3)], ids=repr)
def test_derivatives_with_axes_that_move_are_general_and_compile_nothing_for_another_robot(
    joint, compilations
):
    pin = joints.Revolute("y")
    first = mechanism(*[(joint, 0.0), (pin, 0.2)] * 2)
    second = mechanism((joint, 0.0), (pin, 0.2), (pin, 0.2), (joint, 0.0))
    for function in (kt.inverse_dynamics, kt.forward_dynamics):
        derivative = kt.differentiate(function, wrt=("q", "qd"))
        derivative(first, *state(first))
        before = compilations()
        found = derivative(second, *state(second))
        assert compilations() == before
        assert kt.tier_of(second, derivative) == "general"
        with kt.tier("specialised"):
            expected = derivative(second, *state(second))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 0, 1e-11 * np.max(np.abs(other)))


def test_derivatives_by_inertias_are_general_and_compile_nothing_for_another_robot(compilations):
    kinds = [(joints.Revolute("x"), 0.0), (joints.Universal("xy"), 0.1), (joints.Spherical(), 0.0)]
    first, second = mechanism(*kinds * 2), mechanism(kinds[0], *kinds)
    for function in (kt.inverse_dynamics, kt.bias_force, kt.gravity_force, kt.forward_dynamics):
        count = len(function.definition.required)
        for wrt in ("parameters", "inertia", "inertia:b2"):
            derivative = kt.differentiate(function, wrt=wrt)
            derivative(first, *state(first)[:count])
            before = compilations()
            found = derivative(second, *state(second)[:count])
            assert compilations() == before
            assert kt.tier_of(second, derivative) == "general"
            with kt.tier("specialised"):
                expected = derivative(second, *state(second)[:count])
            np.testing.assert_allclose(found, expected, 0, 1e-12 * np.max(np.abs(expected)))


def test_derivatives_by_an_inertia_and_more_are_specialised():
    model = mechanism((joints.Revolute("x"), 0.0), (joints.Revolute("y"), 0.0))
    derivative = kt.differentiate(kt.forward_dynamics, wrt=("q", "inertia:b1"))
    by_q, by_inertia = derivative(model, *state(model))
    alone = kt.differentiate(kt.forward_dynamics, wrt="inertia:b1")(model, *state(model))
    np.testing.assert_allclose(by_inertia, alone, 0, 1e-12 * np.max(np.abs(alone)))
    assert by_q.shape == (2, 2)
    assert kt.tier_of(model, derivative) == "specialised"


class Stubborn(Parabola):
    """Takes no numbers but floats and traced ones."""

    def jcalc(self, q, qd):
        if type(q[0]).__name__ == "Jet":
            raise TypeError("a joint is no place for experiments")
        return super().jcalc(q, qd)


def test_derivatives_of_joints_that_take_no_other_numbers_are_those_of_their_graph():
    stubborn, like = (
        mechanism((kind(0.3), 0.0), (joints.Revolute("x"), 0.0)) for kind in (Stubborn, Parabola)
    )
    d, arrays = kt.differentiate(kt.forward_dynamics, wrt="q"), state(like)
    np.testing.assert_allclose(d(stubborn, *arrays), d(like, *arrays), 1e-12)
    assert [kt.tier_of(m, d) for m in (stubborn, like)] == ["specialised", "general"]


@dataclass(frozen=True)
class Hidden(Parabola):
    """Joints of this class are equal, whatever their width."""

    a: float = field(default=1.0, compare=False)

    def parameters(self):
        return ()


def test_joints_that_count_as_equal_though_they_differ_are_not_of_one_kind():
    model = mechanism(*((Hidden(a), 0.0) for a in (0.4, 0.8, 2.0)))
    q, qd, x = state(model)
    expected = rnea.inverse_dynamics(model, q, qd, x)
    np.testing.assert_allclose(kt.inverse_dynamics(model, q, qd, x), expected, 0, 1e-11)


@dataclass(frozen=True)
class Narrow(Parabola):
    """A slot that may not be wide."""

    def __post_init__(self):
        if not self.a < 0.9:
            raise ValueError(f"a slot of {self.a} is too wide")

    def with_parameters(self, values):
        return Narrow(*values)


def test_parameters_that_are_checked_too_soon():
    with pytest.raises(JointError, match=r"joint class Narrow .* ValueError: a slot of 1\.0"):
        kt.gravity_force(mechanism((Narrow(0.5), 0.0)), np.zeros(1))


def test_screws_by_whole_numbers_have_general_code():
    model = mechanism(
        (joints.Screw((0, 0, 1, 0, 0, 0)), 0.0), (joints.Screw((0, 0, 0, 1, 2, 2)), 0)
    )
    check(kt.mass_matrix, model, state(model)[0])


def test_a_joint_by_its_placement_alone():
    cam = joints.CustomJoint(lambda q: xlt(0, 0.1 * kt.spatial.ops.cos(q[0]), 0) @ rotx(q[0]), 1)
    model = mechanism((joints.Revolute("x"), 0.0), (cam, 0.0))
    check(kt.inverse_dynamics, model, *state(model))


def test_another_instant_of_a_prescribed_motion_compiles_nothing(compilations):
    turning = joints.Prescribed(
        joints.Revolute("z"), lambda t: (np.array([t * t]), np.array([2 * t]), np.array([2.0]))
    )
    model = mechanism((turning, 0.0), (joints.Revolute("x"), 0.0), (joints.Revolute("y"), 0.0))
    q, qd, x = state(model)
    check(kt.inverse_dynamics, model.at(0.3), q, qd, x)
    before = compilations()
    check(kt.inverse_dynamics, model.at(0.7), q, qd, x)
    assert compilations() == before


# --- parameters are data -------------------------------------------------------------------------


def test_other_parameters_compile_nothing(compilations):
    arrays = state(ROBOT, (3,))
    kt.forward_dynamics(ROBOT, *arrays)
    before = compilations()
    changed = [
        ROBOT.replace(inertia={"b2": link(9)}),
        ROBOT.replace(placement={"b1_joint": xlt(0.1, 0.2, 0.3)}),
        ROBOT.replace(gravity=(0, 0, -1.62)),
        ROBOT.replace(joint={"b5_joint": joints.Helical("z", pitch=-0.3)}),
        ROBOT.replace(dynamics={"b1_joint": JointDynamics(armature=0.7)}),
    ]
    results = [kt.forward_dynamics(model, *arrays) for model in changed]
    assert compilations() == before
    for model, found in zip(changed, results, strict=True):
        expected = [aba.forward_dynamics(model, *(a[k] for a in arrays)) for k in range(3)]
        np.testing.assert_allclose(found, expected, 0, 2e-13 * np.max(np.abs(expected)))


def test_another_robot_of_the_same_kinds_compiles_nothing(compilations):
    first = mechanism(*[(joints.Revolute(axis), 0.0) for axis in "xyzx"])
    second = mechanism(*[(joints.Revolute(axis), 0.0) for axis in "xzyyxzzy"])
    for function in (kt.inverse_dynamics, kt.forward_dynamics):
        check(function, first, *state(first))
        before = compilations()
        check(function, second, *state(second))
        assert compilations() == before


# --- general code that is called: gears, tasks ---------------------------------------------------


def both_tiers(function, model, *arguments):
    """Results of general and of specialised code."""
    found = function(model, *arguments)
    name = function.definition.name
    used = [k.tier for key, k in model.kernels.items() if name in (key, key[0])]
    assert used == ["general"]
    with kt.tier("specialised"):
        return found, function(model, *arguments)


@pytest.mark.parametrize("function", TEXTS, ids=lambda f: f.__name__)
def test_gears_call_the_code_of_all_joints(function):
    chain = [(joints.Revolute(axis), 0.1) for axis in "xyz"]
    model = mechanism(*chain, (joints.Prismatic("y"), 0.0)).replace(
        couplings=[
            Coupling("gear", 2, source=1, coefficients=(0.1, -2.0)),
            Coupling("cam", 4, source=3, coefficients=(0.1, 0.5, 0.3)),
        ]
    )
    arrays = state(model, (2,))[: len(function.definition.required)]
    found, expected = both_tiers(function, model, *arrays)
    np.testing.assert_allclose(found, expected, 0, 1e-12 * np.max(np.abs(expected)))


DIFFERENTIATED = [kt.inverse_dynamics, kt.forward_dynamics, kt.bias_force, kt.gravity_force]


@pytest.mark.parametrize("function", DIFFERENTIATED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("bend", [(), (0.3,)], ids=["gear", "cam"])
def test_derivatives_with_gears_call_those_of_all_joints(function, bend):
    chain = [(joints.Revolute(axis), 0.1) for axis in "xyz"]
    model = mechanism((joints.Free(), 0.0), *chain).replace(
        couplings=[Coupling("gear", 3, source=2, coefficients=(0.1, -2.0, *bend))]
    )
    names = function.definition.required
    arrays = state(model, (2,))[: len(names)]
    derivative = kt.differentiate(function, wrt=names)
    found, tier = derivative(model, *arrays), kt.tier_of(model, derivative)
    assert tier == ("specialised" if bend else "general")
    with kt.tier("specialised"):
        expected = derivative(model, *arrays)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, 0, 1e-12 * np.max(np.abs(b)))


@pytest.mark.parametrize("function", [kt.operational_space_inertia, kt.task_space_inverse_dynamics])
def test_tasks_call_the_code_of_the_mechanism(function):
    model = mechanism(*[(joints.Revolute(axis), 0.1) for axis in "xyzxyz"])
    q, qd, x = state(model)
    arrays = (q, qd, x)[: len(function.definition.required)]
    found, expected = both_tiers(function, model, *arrays, "b5")
    worst = np.linalg.cond(kt.jacobian(model, q, "b5")) ** 2
    np.testing.assert_allclose(found, expected, 0, 1e-14 * worst * np.max(np.abs(expected)))


# --- what general code does not serve ------------------------------------------------------------


def test_robots_of_many_kinds_have_specialised_code(monkeypatch):
    monkeypatch.setattr(tables, "MOST_KINDS", 3)
    model = mechanism(*[(Notched(k), 0.0) for k in range(4)])
    kt.inverse_dynamics(model, *state(model))
    assert kernel_of(kt.inverse_dynamics, model).tier == "specialised"


@dataclass(frozen=True)
class Notched(joints.Revolute):
    """A hinge whose parameter is no number of the model, so that every value is a kind."""

    notch: int = 0

    def __init__(self, notch):
        super().__init__("z")
        object.__setattr__(self, "notch", notch)


# --- thousands of bodies -------------------------------------------------------------------------


def chain(count):
    builder, body = ModelBuilder("chain"), kt.shapes.sphere(0.1, mass=1)
    for k in range(count):
        on = f"b{k - 1}" if k else None
        joint = joints.Revolute("xyz"[k % 3])
        builder.body(f"b{k}", on=on, joint=joint, at=(0.01, 0, 0.02), inertia=body)
    return builder.build()


def test_large_robots_stay_with_general_code(monkeypatch):
    monkeypatch.setattr(tiers, "MANY", 2)
    model = chain(260)
    with kt.tier("auto"):
        kt.gravity_force(model, np.zeros((5, model.nq)))
        assert kernel_of(kt.gravity_force, model).tier == "general"
        assert kt.tier_of(model, kt.gravity_force) == "general"


def test_ten_thousand_bodies():
    """In time and memory that grow like the number of bodies; goals are 10 s and 2 GB."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = []

    def work():
        model = chain(10_000)
        q, qd, x = (a / 100 for a in state(model))
        qdd = kt.forward_dynamics(model, q, qd, x)
        found[:] = model, q, x, kt.inverse_dynamics(model, q, qd, qdd)

    assert_quick(work, 10)
    model, q, x, tau = found
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 1e6  # kB
    weight = np.max(np.abs(kt.gravity_force(model, q)))  # torques that cancel in the first joints
    np.testing.assert_allclose(tau, x, 0, 10_000 * np.finfo(float).eps * weight)
