"""Derivatives of users' kernels, and what is refused."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import random_state

import kinetree as kt
from kinetree.errors import LoopError, ShapeError, SingularError, TraceError, UnknownNameError
from kinetree.expr.repeat import repeat
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia


def along(function, x, h=1e-30):
    """Derivative by complex steps; ``q`` of hinges is a vector like any other."""
    return np.stack([np.imag(function(x + 1j * h * e)) / h for e in np.eye(len(x))], axis=-1)


@kernel
def reach_cost(m, q, target: (3,)):
    error = kt.pose(m, q, m.body_names[-1])[:3, 3] - target
    return error @ error


@kernel
def linearised(m, q, qd):
    gradient = differentiate(kt.gravity_force, wrt="q")(m, q)
    return {"work": gradient @ qd, "twice": 2 * kt.kinetic_energy(m, q, qd)}


@kernel
def norm(x: (3,)):
    return np.sqrt(x @ x)


@kernel
def exponentials(x: (3,)):
    return np.exp(-x[0]) * np.log(x[1]) + np.tanh(x[2] * x[0])


def test_exponentials_of_users(rng):
    x = rng.uniform(0.5, 2.0, (6, 3))
    assert_close(exponentials(x), exponentials.reference(x), ulps=4)
    derivatives = [along(exponentials.function, row) for row in x]
    assert_close(differentiate(exponentials, wrt="x")(x), np.array(derivatives), ulps=10)


@pytest.mark.parametrize("function", [np.sqrt, np.log])
def test_functions_where_they_are_not_defined_are_nan(function):
    @kernel
    def outside(x: ()):
        return function(x)

    with np.errstate(invalid="ignore"):
        assert np.isnan(outside(-1.0))
        assert list(np.isnan(outside(np.array([1.0, -1.0])))) == [False, True]


def test_kernels_of_users(rng):
    m = kt.samples.double_pendulum()
    q = m.random_configuration(rng)
    target = rng.standard_normal(3)
    dq, dtarget = differentiate(reach_cost, wrt=("q", "target"))(m, q, target)
    assert_close(dq, along(lambda q: reach_cost(m, q, target), q), ulps=50)
    tip = kt.pose(m, q, m.body_names[-1])[:3, 3]
    assert_close(dtarget, 2 * (target - tip), ulps=20)
    batch = differentiate(reach_cost, wrt="q")(m, np.tile(q, (5, 1)), target)
    assert batch.shape == (5, 2)


def test_a_derivative_inside_a_kernel_and_the_derivative_of_that(rng):
    m = kt.samples.double_pendulum()
    q, qd, _ = random_state(m, rng)
    hessian = differentiate(kt.potential_energy, wrt="q", order=2)(m, q)
    assert_close(linearised(m, q, qd)["work"], hessian @ qd, ulps=50)
    d = differentiate(linearised, wrt="qd")(m, q, qd)
    assert set(d) == {"work", "twice"}
    assert_close(d["work"], hessian, ulps=50)
    assert_close(d["twice"], 2 * kt.mass_matrix(m, q) @ qd, ulps=50)
    by_mass = differentiate(linearised, wrt=f"mass:{m.body_names[1]}")(m, q, qd)
    assert by_mass["work"].shape == (2,)


@kernel
def rollout(m, q, qd, tau):
    def step(state):
        q, qd = state
        qd = qd + 0.01 * kt.forward_dynamics(m, q, qd, tau)
        return q + 0.01 * qd, qd

    return repeat(step, (q, qd), 5)


def test_loops_of_kernels(rng):
    m = kt.samples.double_pendulum()
    q, qd, tau = random_state(m, rng)
    (dq_dq, dq_dtau), (dqd_dq, dqd_dtau) = differentiate(rollout, wrt=("q", "tau"))(m, q, qd, tau)
    for k, d in enumerate((dq_dq, dqd_dq)):
        assert_close(d, along(lambda q: rollout(m, q, qd, tau)[k], q), ulps=200)  # noqa: B023
    for k, d in enumerate((dq_dtau, dqd_dtau)):
        assert_close(d, along(lambda x: rollout(m, q, qd, x)[k], tau), ulps=200)  # noqa: B023


def test_kernels_without_a_model():
    x = np.array([[2.0, 3.0, 6.0], [1.0, 2.0, 2.0]])
    lengths = np.array([7.0, 3.0])
    unit = x / lengths[:, None]
    assert_close(differentiate(norm, wrt="x")(x), unit, ulps=4)
    second = differentiate(norm, wrt="x", order=2)(x)
    exact = (np.eye(3) - unit[:, :, None] * unit[:, None, :]) / lengths[:, None, None]
    assert_close(second, exact, ulps=10)


# --- refusals ------------------------------------------------------------------------------------


def test_errors_name_what_is_wrong(rng):
    m = kt.samples.double_pendulum()
    q, qd, qdd = random_state(m, rng)
    with pytest.raises(UnknownNameError, match=r"no derivative with respect to it; it has with"):
        differentiate(kt.inverse_dynamics, wrt="tau")(m, q, qd, qdd)
    with pytest.raises(UnknownNameError, match="not called with an array 'f_ext' here"):
        differentiate(kt.inverse_dynamics, wrt="f_ext")(m, q, qd, qdd)
    with pytest.raises(UnknownNameError, match=r"model .* has no body 'elbow2'"):
        differentiate(kt.inverse_dynamics, wrt="inertia:elbow2")(m, q, qd, qdd)
    with pytest.raises(TypeError, match=r"or one of your own under @kinetree\.kernel; got"):
        differentiate(np.sin, wrt="x")
    with pytest.raises(TypeError, match="wrt must be the name of an argument"):
        differentiate(kt.pose, wrt=())
    with pytest.raises(ValueError, match="order must be an integer from 1 to 8, got 0"):
        differentiate(kt.pose, wrt="q", order=0)
    with pytest.raises(TypeError, match="takes a model first, got ndarray"):
        differentiate(kt.gravity_force, wrt="q")(q, q)
    with pytest.raises(ShapeError, match="q must be finite, got nan"):
        differentiate(kt.gravity_force, wrt="q")(m, np.array([0.0, np.nan]))
    with pytest.raises(ShapeError, match=r"q must have shape \(\.\.\., nq\)"):
        differentiate(kt.gravity_force, wrt="q")(m, np.zeros(3))


def test_loops():
    """Of a closed chain there is forward dynamics, by the method that can be compiled."""
    m = kt.samples.four_bar()
    q, v = m.neutral(), np.zeros(m.nv)
    by_gravity = differentiate(kt.forward_dynamics, wrt="gravity")(m, q, v, v)
    assert_close(by_gravity @ m.gravity, kt.forward_dynamics(m, q, v, v), ulps=1e4)
    with pytest.raises(LoopError, match="method 'implicit' decides ranks for every sample, on the"):
        differentiate(kt.forward_dynamics, wrt="q")(m, q, v, v, method="implicit")
    with pytest.raises(TraceError, match="has loops, decides ranks and cannot be traced"):
        differentiate(kt.inverse_dynamics, wrt="q")(m, q, v, v)
    assert differentiate(kt.center_of_mass, wrt="q")(m, q).shape == (3, m.nv)


def test_a_singular_sample_is_named():
    m = ModelBuilder("rod").body("link", joint=kt.Revolute("z"), joint_name="idle").build()
    with pytest.raises(SingularError, match="joint 'idle' moves no inertia"):
        differentiate(kt.forward_dynamics, wrt="q")(m, np.zeros(1), np.zeros(1), np.zeros(1))


def test_a_mechanism_without_freedom(rng):
    m = ModelBuilder("statue").body("stone", joint=kt.Fixed(), inertia=random_inertia(rng)).build()
    none = np.zeros(0)
    assert differentiate(kt.potential_energy, wrt="q")(m, none).shape == (0,)
    assert differentiate(kt.inverse_dynamics, wrt="q")(m, none, none, none).shape == (0, 0)
