"""JAX arrays: the same numbers under jit, vmap, grad, jacfwd and jacrev."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from support.public_calls import DIFFERENTIABLE, differentiable_functions, end_of_rollout

import kinetree as kt


@pytest.fixture(autouse=True)
def double():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture(scope="module")
def model():
    return kt.samples.double_pendulum()


@pytest.fixture
def state(model, rng):
    return [jnp.asarray(rng.normal(size=(3, model.nv))) for _ in range(3)]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_in_both_directions_and_of_second_order(model, state, name):
    f = differentiable_functions(model)[name]
    expected = f(*map(np.asarray, state))
    np.testing.assert_array_equal(f(*state), expected)
    np.testing.assert_array_equal(jax.jit(f)(*state), expected)
    check_grads(jax.jit(f), state, order=1, modes=("fwd",))
    check_grads(jax.jit(f), state, order=2, modes=("rev",))
    each = jax.jit(jax.vmap(f))
    np.testing.assert_allclose(each(*state), expected, rtol=0, atol=1e-13)
    check_grads(each, state, order=1, modes=("rev",))


def test_derivatives_of_shared_inputs_are_added_up(model, state):
    q, qd, tau = state
    check_grads(
        jax.jit(differentiable_functions(model)["forward dynamics"]), (q[0], qd, tau[:1]), order=1
    )


def test_vmap_and_jacobians(model, state):
    q, qd, tau = state
    f = differentiable_functions(model)["forward dynamics"]
    each = jax.jit(jax.vmap(f, in_axes=(1, None, 0)))(q.T, qd[0], tau)
    np.testing.assert_allclose(each, f(q, qd[0], tau), rtol=0, atol=1e-13)
    expected = kt.differentiate(kt.forward_dynamics, wrt=("q", "qd"))(model, q, qd, tau)
    for jacobian in (jax.jacrev, jax.jacfwd):
        found = jax.jit(jax.vmap(jacobian(f, argnums=(0, 1))))(q, qd, tau)
        for a, b in zip(found, expected, strict=True):
            assert isinstance(b, jax.Array)
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_what_is_linear_can_be_transposed(model, state):
    q, qd, tau = (a[0] for a in state)
    f = differentiable_functions(model)["forward dynamics"]
    _, push = jax.linearize(lambda tau: f(q, qd, tau), tau)
    pull = jax.linear_transpose(push, tau)
    inverse = kt.inverse_mass_matrix(model, q)
    np.testing.assert_allclose(pull(qd)[0], inverse @ qd, rtol=1e-12)
    again = jax.linear_transpose(lambda w: pull(w)[0], qd)
    np.testing.assert_allclose(again(tau)[0], inverse @ tau, rtol=1e-12)


def test_without_64_bit_numbers_results_are_float32(model, state):
    jax.config.update("jax_enable_x64", False)
    found = kt.inverse_dynamics(model, *(jnp.asarray(np.asarray(a), "float32") for a in state))
    assert found.dtype == "float32"
    expected = kt.inverse_dynamics(model, *(np.asarray(a, "float32") for a in state))
    np.testing.assert_array_equal(found, expected)


def test_numpy_arrays_go_along_and_constants_do(model, state):
    q, qd, qdd = state
    found = kt.inverse_dynamics(model, q, np.asarray(qd), qdd)
    assert isinstance(found, jax.Array)
    np.testing.assert_array_equal(found, kt.inverse_dynamics(model, q, qd, qdd))
    assert kt.zero_moment_point(model, q, qd, qdd).shape == (3, 3)
    assert kt.inverse_dynamics(model, q[:0], qd[:0], qdd[:0]).shape == (0, 2)


def test_errors_of_samples_come_through(model, state):
    q, qd, qdd = state
    with pytest.raises(ValueError, match="q must be finite, got nan at index 1 of sample"):
        kt.inverse_dynamics(model, q.at[2, 1].set(jnp.nan), qd, qdd).block_until_ready()


def test_rollouts_have_derivatives_under_jit():
    end = end_of_rollout(kt.samples.pendulum(), steps=2)
    q0, tau = jnp.array([[0.3], [1.0]]), jnp.full((2, 1, 1), 0.2)
    expected = end(q0, 0 * q0, tau)
    each = jax.jit(jax.vmap(end, in_axes=(0, 0, None)))(q0, 0 * q0, tau[:, 0])
    for found in (jax.jit(end)(q0, 0 * q0, tau), each):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-15)
    check_grads(jax.jit(end), (q0, 0 * q0, tau), order=1, modes=("fwd",))
    check_grads(jax.jit(end), (q0, 0 * q0, tau), order=2, modes=("rev",))


def test_devices_do_not_mix(model, state):
    q, qd, qdd = state
    away = jax.device_put(qd, jax.devices()[1])
    with pytest.raises(
        kt.errors.DeviceError,
        match="arrays must be on one device, got q on cpu:0, qd on cpu:1; move them with jax",
    ):
        kt.inverse_dynamics(model, jax.device_put(q, jax.devices()[0]), away, qdd)
    there = [jax.device_put(x, jax.devices()[1]) for x in state]
    assert kt.inverse_dynamics(model, *there).devices() == {jax.devices()[1]}
    moved = kt.cartesian_forces(model, *there[:2]).force  # from the host to where they were
    assert moved.devices() == {jax.devices()[1]}
