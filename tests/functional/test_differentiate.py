"""Derivatives of the public functions and of users' kernels.

Complex arrays go through the definition of the operations instead of machine code, which is what
most tests here use to check many mechanisms quickly; others check the machine code against it.
"""

import inspect

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close
from support.states import conditioning, floating_tree, random_state

import kinetree as kt
from kinetree.codegen.program import Argument, cheapest, trace
from kinetree.expr.counting import cost
from kinetree.functional.differentiate import differentiate
from kinetree.joints import REPRESENTATIVES
from kinetree.model import ModelBuilder
from kinetree.model.define import DEFINITIONS
from kinetree.quantities import centroidal, dynamics, kinematics, lagrangian, task_space
from kinetree.samples import random_inertia, random_placement


def small_tree(rng, joint):
    """``joint`` between two hinges, with a tool."""
    return tree_of(rng, kt.Revolute("y"), joint, kt.Revolute((1.0, 2.0, 2.0)))


def tree_of(rng, *joints):
    builder = ModelBuilder("small tree")
    for i, kind in enumerate(joints):
        on, at = (f"body{i - 1}" if i else None), random_placement(rng)
        builder.body(f"body{i}", on=on, joint=kind, at=at, inertia=random_inertia(rng))
    return builder.frame("tool", on=f"body{len(joints) - 1}", at=random_placement(rng)).build()


def along_q(model, function, q, h=1e-30):
    """Derivative along every tangent direction by complex steps, as the last axis."""
    columns = [
        np.imag(function(q + 1j * h * model.configuration_rate(q, e))) / h for e in np.eye(model.nv)
    ]
    return np.stack(columns, axis=-1)


def along(function, x, h=1e-30):
    x = np.asarray(x, dtype=float)
    steps = np.eye(x.size).reshape(-1, *x.shape)
    return np.stack([np.imag(function(x + 1j * h * e)) / h for e in steps], axis=-1).reshape(
        *np.shape(function(x)), *x.shape
    )


def real(x):
    assert np.all(np.imag(x) == 0)
    return np.real(x)


# --- every joint, every function -----------------------------------------------------------------


@pytest.mark.parametrize("joint", REPRESENTATIVES, ids=str)
def test_inverse_dynamics_of_every_joint(joint, rng):
    check_dynamics(kt.inverse_dynamics, "qdd", joint, rng)


VARYING = (
    kt.Universal("zy"),
    kt.joints.Euler("zyx"),
    kt.joints.Exponential(),
    kt.joints.Reversed(kt.Planar("y")),
)


@pytest.mark.parametrize("joint", [*VARYING, kt.Spherical(), kt.Planar("z")], ids=str)
def test_forward_dynamics_of_joints_with_and_without_constant_axes(joint, rng):
    check_dynamics(kt.forward_dynamics, "tau", joint, rng)


def check_dynamics(f, third, joint, rng):
    m = tree_of(rng, joint, kt.Revolute((1.0, 2.0, 2.0)))
    q, qd, x = random_state(m, rng)
    found = differentiate(f, wrt=("q", "qd", third))(m, q + 0j, qd, x)
    expected = (
        along_q(m, lambda q: f(m, q, qd, x), q),
        along(lambda qd: f(m, q, qd, x), qd),
        along(lambda x: f(m, q, qd, x), x),
    )
    for d, exact in zip(found, expected, strict=True):
        scale = max(np.max(np.abs(exact)), 1.0)
        assert_close(real(d), exact, ulps=1000, scale=scale, condition=conditioning(m, q))


TASKS = ["joint_velocity", "joint_acceleration", *task_space.__all__]
MODULES = (dynamics, kinematics, centroidal, lagrangian, task_space)
NAMES = [n for module in MODULES for n in module.__all__ if n in DEFINITIONS]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_function(name, rng):
    m = small_tree(rng, kt.Free() if name in TASKS else kt.Universal("xy"))
    f, (q, qd, x) = getattr(kt, name), random_state(m, rng)
    arrays = {"q": q, "qd": qd / 9, "qdd": x / 9, "tau": x, "acceleration": x[:6], "force": x[:6],
              "velocity": x[:6]}  # fmt: skip
    if name == "generalized_force":
        arrays["f_ext"] = rng.standard_normal((m.body_count, 6))
    parameters = inspect.signature(f).parameters
    used = [a for a in arrays if a in parameters]
    names, frame = ("tool",) if "name" in parameters else (), {}
    if "frame" in parameters:
        frame = {"frame": "aligned"}
    if "point" in parameters:
        frame["point"] = np.array([0.1, 0.2, 0.3])
    for wrt in used:
        values = [arrays[a] for a in used]

        def function(x, wrt=wrt):
            return f(m, *(x if a == wrt else arrays[a] for a in used), *names, **frame)

        values[0] = values[0] + 0j
        found = differentiate(f, wrt=wrt)(m, *values, *names, **frame)
        exact = along_q(m, function, q) if wrt == "q" else along(function, arrays[wrt])
        condition = conditioning(m, q) ** 2
        assert_close(real(found), exact, ulps=2000, condition=condition)


def test_external_forces_and_points(rng):
    m = small_tree(rng, kt.Spherical())
    q, qd, qdd = random_state(m, rng)
    forces, point = rng.standard_normal((m.body_count, 6)), rng.standard_normal(3)
    for f in (kt.inverse_dynamics, kt.forward_dynamics):
        dq, df = differentiate(f, wrt=("q", "f_ext"))(m, q + 0j, qd, qdd, forces)
        assert_close(
            real(dq), along_q(m, lambda q: f(m, q, qd, qdd, forces), q), ulps=1000,  # noqa: B023
            condition=conditioning(m, q),
        )  # fmt: skip
        assert_close(
            real(df), along(lambda x: f(m, q, qd, qdd, x), forces), ulps=1000,  # noqa: B023
            condition=conditioning(m, q),
        )  # fmt: skip
    by_name = differentiate(kt.bias_force, wrt="q")(m, q, qd, f_ext={"body2": forces[2]})
    alone = np.zeros_like(forces)
    alone[2] = forces[2]
    assert_close(by_name, along_q(m, lambda q: kt.bias_force(m, q, qd, alone), q), ulps=300)
    dv = differentiate(kt.velocity, wrt="point")(m, q, qd, "tool", frame="aligned", point=point)
    exact = along(lambda x: kt.velocity(m, q, qd, "tool", frame="aligned", point=x), point)
    assert_close(dv, exact, ulps=200)


# --- compiled code -------------------------------------------------------------------------------


def test_machine_code_equals_the_definition(rng):
    m = small_tree(rng, kt.Spherical())
    d = differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
    q, qd, qdd = (np.stack(s) for s in zip(*(random_state(m, rng) for _ in range(7)), strict=True))
    batch = d(m, q, qd, qdd)
    exact = d(m, q + 0j, qd, qdd)
    for found, expected in zip(batch, exact, strict=True):
        assert found.shape == (7, m.nv, m.nv)
        assert_close(found, real(expected), ulps=50)
    for found, expected in zip(d(m, q[2], qd[2], qdd[2]), batch, strict=True):
        assert_close(found, expected[2], ulps=50)
    broadcast = d(m, q[:, None], qd[:4], qdd[0])
    assert broadcast[0].shape == (7, 4, m.nv, m.nv)
    assert_close(broadcast[1][2, 2], d(m, q[2], qd[2], qdd[0])[1], ulps=50)
    single = d(m, *(x.astype(np.float32) for x in (q, qd, qdd)))
    assert single[0].dtype == np.float32
    scale = np.max(np.abs(batch[0]))
    assert np.max(np.abs(single[0] - batch[0])) < 1e-4 * scale


def test_forms_of_the_result(rng):
    m = kt.samples.double_pendulum()
    q, qd, qdd = random_state(m, rng)
    one = differentiate(kt.inverse_dynamics, wrt="q")(m, q, qd, qdd)
    (alone,) = differentiate(kt.inverse_dynamics, wrt=("q",))(m, q, qd, qdd)
    assert isinstance(one, np.ndarray)
    assert np.array_equal(one, alone)
    gradient = differentiate(kt.kinetic_energy, wrt=("q", "qd"))(m, q, qd)
    assert [g.shape for g in gradient] == [(2,), (2,)]
    assert_close(gradient[1], kt.mass_matrix(m, q) @ qd, ulps=20)
    assert differentiate(kt.pose, wrt="q")(m, q, m.body_names[-1]).shape == (4, 4, 2)


def test_results_can_be_written_to_arrays_of_the_caller(rng):
    m = kt.samples.double_pendulum()
    q, qd, qdd = (np.stack(s) for s in zip(*(random_state(m, rng) for _ in range(3)), strict=True))
    d = differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
    out = np.zeros((2, 3, 2, 2))
    results = d(m, q, qd, qdd, out=tuple(out))
    assert all(np.shares_memory(r, out) for r in results)
    assert np.array_equal(out, d(m, q, qd, qdd))
    one = differentiate(kt.gravity_force, wrt="q")
    assert np.array_equal(one(m, q, out=out[0]), one(m, q))
    assert np.array_equal(out[0], one(m, q))


def test_arguments_by_keyword(rng):
    m = kt.samples.double_pendulum()
    q, qd, qdd = random_state(m, rng)
    d = differentiate(kt.inverse_dynamics, wrt="q")
    assert np.array_equal(d(m, q, qdd=qdd, qd=qd), d(m, q, qd, qdd))


def test_the_same_derivative_is_compiled_once(rng):
    m = kt.samples.double_pendulum()
    q, qd, qdd = random_state(m, rng)
    d = differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
    d(m, q, qd, qdd)
    count = len(m.memo)
    assert differentiate(kt.inverse_dynamics, wrt=["q", "qd"]) is d
    d(m, q, qd, qdd)
    assert len(m.memo) == count


def test_identities_of_the_dynamics(rng):
    m = small_tree(rng, kt.Cylindrical("z"))
    q, qd, qdd = random_state(m, rng)
    assert_close(
        differentiate(kt.inverse_dynamics, wrt="qdd")(m, q, qd, qdd), kt.mass_matrix(m, q), ulps=50
    )
    assert_close(differentiate(kt.potential_energy, wrt="q")(m, q), kt.gravity_force(m, q), ulps=50)
    H_inv = differentiate(kt.forward_dynamics, wrt="tau")(m, q, qd, qdd)
    assert np.array_equal(H_inv, H_inv.T)
    assert_close(H_inv, kt.inverse_mass_matrix(m, q), ulps=100, condition=conditioning(m, q))
    v = differentiate(kt.momentum, wrt="qd")(m, q, qd) @ qd
    assert_close(v, kt.momentum(m, q, qd), ulps=50)


def test_the_operation_count_chooses(rng):
    """The recursion wins on a floating tree, the graph where nothing is shared."""
    m = floating_tree(rng, 4, (kt.Revolute("x"), kt.Revolute("z")))
    q, qd, qdd = random_state(m, rng)
    d = differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
    call = d.bind(m, q, qd, qdd)
    programs = [_traced(d, call, way) for way in (False, True)]
    costs = [cost(p.graph, p.roots) for p in programs]
    assert costs[1] < costs[0]
    assert cheapest(programs) is programs[1]
    assert costs[1] < d.estimated_cost(call) < costs[0]
    other = small_tree(rng, kt.Universal("xy"))
    assert d.recursion_count(d.bind(other, *random_state(m, rng))) == 2


def _traced(d, call, recursive):
    inputs = [Argument(name, shape) for name, shape in call.shapes.items()]
    return trace(lambda *x: d.trace_sample(call, call.model, x, recursive), inputs)


# --- higher orders -------------------------------------------------------------------------------


def test_second_derivatives_are_derivatives_of_the_first(rng):
    m = small_tree(rng, kt.Spherical())
    q, qd, qdd = random_state(m, rng)
    first = differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
    second = differentiate(kt.inverse_dynamics, wrt=("q", "qd"), order=2)(m, q + 0j, qd, qdd)
    assert_close(real(second[0][0]), along_q(m, lambda q: first(m, q, qd, qdd)[0], q), ulps=1000)
    assert_close(real(second[0][1]), along(lambda v: first(m, q, v, qdd)[0], qd), ulps=1000)
    assert_close(real(second[1][0]), along_q(m, lambda q: first(m, q, qd, qdd)[1], q), ulps=1000)
    assert_close(real(second[1][0]), np.swapaxes(real(second[0][1]), -1, -2), ulps=1000)


def test_second_derivatives_follow_the_tangent(rng):
    """Central differences of the compiled first derivative along ``integrate``."""
    m = small_tree(rng, kt.Spherical())
    q = m.random_configuration(rng)
    first = differentiate(kt.potential_energy, wrt="q")
    second = differentiate(kt.potential_energy, wrt="q", order=2)(m, q)
    h = 1e-5
    ahead, back = (first(m, m.integrate(q, s * h * np.eye(m.nv))) for s in (1, -1))
    assert np.max(np.abs((ahead - back).T / (2 * h) - second)) < 1e-8 * np.max(np.abs(second))


def test_axes_that_do_not_commute_make_the_second_derivative_asymmetric(rng):
    """The difference is the derivative along the bracket of the two directions."""
    m = small_tree(rng, kt.Spherical())
    q = m.random_configuration(rng)
    g = differentiate(kt.potential_energy, wrt="q")(m, q + 0j)
    H = real(differentiate(kt.potential_energy, wrt="q", order=2)(m, q + 0j))
    at = m.v_slice[2]
    bracket = [[np.cross(a, b) @ real(g)[at] for b in np.eye(3)] for a in np.eye(3)]
    assert_close(H[at, at].T - H[at, at], bracket, ulps=200, scale=np.max(np.abs(H)))
    assert np.max(np.abs(bracket)) > 1e-3
    hinges = [0, 4]
    assert_close(H[np.ix_(hinges, hinges)], H[np.ix_(hinges, hinges)].T, ulps=100)


def test_derivatives_nest(rng):
    m = kt.samples.double_pendulum()
    q, qd, _ = random_state(m, rng)
    mixed = differentiate(differentiate(kt.kinetic_energy, wrt="qd"), wrt="q")(m, q, qd)
    exact = along_q(m, lambda q: kt.mass_matrix(m, q) @ qd, q)
    assert_close(mixed, exact, ulps=50)
    third = differentiate(kt.kinetic_energy, wrt="qd", order=3)(m, q, qd)
    assert np.array_equal(third, np.zeros((2, 2, 2)))


def test_thirty_digits():
    """The graph evaluated with 50 digits equals differences with 50 digits."""
    rng = np.random.default_rng(5)
    m = kt.samples.double_pendulum()
    q, qd, qdd = random_state(m, rng)
    d = differentiate(kt.inverse_dynamics, wrt="q")
    with mpmath.workdps(50):
        q, qd, qdd = (np.array([mpmath.mpf(x) for x in s.tolist()]) for s in (q, qd, qdd))
        found, h = d(m, q, qd, qdd), mpmath.mpf(10) ** -16
        for j, e in enumerate(np.eye(2, dtype=int)):
            ahead, back = (kt.inverse_dynamics(m, q + s * h * e, qd, qdd) for s in (1, -1))
            assert max(abs((ahead - back) / (2 * h) - found[:, j])) < 1e-29
