"""Every public function takes arrays of JAX and returns what NumPy arrays give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.public_calls import FUNCTIONS, ON_HOST, States, converted, leaves

import kinetree as kt


@pytest.fixture(scope="module")
def model():
    return kt.samples.pendulum()


@pytest.fixture
def states(model, rng):
    return States(model, 2, rng)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - set(ON_HOST)))
def test_jax_traces_them(model, states, name):
    function, given = FUNCTIONS[name], states.arguments(FUNCTIONS[name])
    arrays = {n: np.float32(x) for n, x in given.items() if isinstance(x, np.ndarray)}
    rest = {n: x for n, x in given.items() if n not in arrays}
    found = jax.eval_shape(lambda **arrays: function(model, **arrays, **rest), **arrays)
    expected = leaves(function(model, **given))
    assert [x.shape for x in leaves(found)] == [np.shape(x) for x in expected]


@pytest.mark.parametrize("name", ["applied_force", "cartesian_forces", "power_balance"])
def test_jax_arrays_give_jax_arrays(model, states, name):
    function, given = FUNCTIONS[name], states.arguments(FUNCTIONS[name])
    expected = leaves(function(model, **converted(given, np.float32)))
    found = leaves(function(model, **converted(given, jnp.float32)))
    for a, b in zip(expected, found, strict=True):
        assert isinstance(b, jnp.ndarray)
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)
