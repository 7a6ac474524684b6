"""Every public function takes tensors of PyTorch and returns what NumPy arrays give."""

import numpy as np
import pytest
import torch
from support.public_calls import FUNCTIONS, ON_HOST, States, converted, leaves

import kinetree as kt


@pytest.fixture(scope="module")
def model():
    return kt.samples.pendulum()


@pytest.fixture
def states(model, rng):
    return States(model, 2, rng)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_tensors_give_tensors_and_are_followed(model, states, name):
    function, given = FUNCTIONS[name], states.arguments(FUNCTIONS[name])
    expected = leaves(function(model, **given))
    found = leaves(function(model, **converted(given, torch.from_numpy)))
    for a, b in zip(expected, found, strict=True):
        if isinstance(a, np.ndarray):
            assert type(b) is torch.Tensor
        np.testing.assert_allclose(np.asarray(b), a, rtol=1e-12, atol=1e-12)
    followed = converted(given, lambda x: torch.tensor(x, requires_grad=True))
    if name in ON_HOST:
        with pytest.raises(
            kt.errors.ArrayKindError, match=f"{name} computes on the CPU, in Python: it has no"
        ):
            function(model, **followed)
    else:
        assert all(x.requires_grad for x in leaves(function(model, **followed)))


def test_forces_on_bodies_by_name(model, states):
    given = converted(states.arguments(kt.bias_force), torch.from_numpy)
    (body,), f = model.body_names[1:], given.pop("f_ext")
    found = kt.bias_force(model, **given, f_ext={body: f[:, 0], model.base_name: f[0, 0]})
    torch.testing.assert_close(found, kt.bias_force(model, **given, f_ext=f), rtol=0, atol=1e-14)


def test_methods_that_solve_on_the_host_return_tensors(model, states):
    given = states.arguments(kt.forward_dynamics)
    expected = kt.forward_dynamics(model, **given, method="maximal")
    found = kt.forward_dynamics(model, **converted(given, torch.from_numpy), method="maximal")
    np.testing.assert_array_equal(found.numpy(), expected)


def test_loops_that_do_not_close_are_not_a_number():
    model = kt.samples.four_bar()
    q = torch.tensor(np.array([model.neutral(), model.neutral()]))
    q[1, 0] += 0.3
    qd = torch.zeros(2, model.nv, dtype=torch.float64)
    found = kt.forward_dynamics(model, q, qd, qd)
    expected = kt.forward_dynamics(model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv))
    np.testing.assert_array_equal(found[0].numpy(), expected)
    assert torch.all(torch.isnan(found[1]))
