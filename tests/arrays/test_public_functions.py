"""Every public function takes arrays of other libraries and returns what NumPy arrays give."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import kinetree as kt
from kinetree.functional.prepare import PUBLIC

FUNCTIONS = {
    name: getattr(module, name)
    for module in PUBLIC
    for name in module.__all__
    if inspect.isfunction(getattr(module, name)) and name != "free_joints"
}
OPTIONS = {"frame": "aligned", "rows": ("x",), "damping": 0.1}


@pytest.fixture(scope="module")
def model():
    return kt.samples.pendulum()


def numbers(model, name):
    """An array for an argument of this name."""
    shapes = {
        "q": (model.nq,), "f_ext": (model.body_count, 6), "torques": (model.body_count, 3),
        "velocities": (model.body_count, 6), "acceleration": (1,),
    }  # fmt: skip
    vectors = ("point", "force", "torque", "at")
    shape = shapes.get(name, (3,) if name in vectors else (model.nv,))
    return np.cos(np.arange(2 * np.prod(shape))).reshape(2, *shape)


def arguments(model, function, convert):
    found = {}
    for name in list(inspect.signature(function).parameters)[1:]:
        if name == "name":
            found[name] = model.body_names[-1]
        elif name in OPTIONS:
            found[name] = OPTIONS[name]
        elif name not in ("relative_to", "kind", "method", "given", "friction", "rotors",
                          "tolerance"):  # fmt: skip
            found[name] = convert(numbers(model, name))
    if function is kt.task_space_forward_dynamics:
        found["force"] = convert(numbers(model, "acceleration"))
    if function is kt.task_freedom:
        found["q"], found["point"] = found["q"][0], None
    return found


def leaves(result):
    if isinstance(result, tuple):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_tensors_give_tensors(model, name):
    function = FUNCTIONS[name]
    expected = leaves(function(model, **arguments(model, function, np.asarray)))
    found = leaves(function(model, **arguments(model, function, torch.from_numpy)))
    for a, b in zip(expected, found, strict=True):
        if isinstance(a, np.ndarray):
            assert type(b) is torch.Tensor
        np.testing.assert_allclose(np.asarray(b), a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["applied_force", "cartesian_forces", "power_balance"])
def test_jax_arrays_give_jax_arrays(model, name):
    function = FUNCTIONS[name]
    expected = leaves(function(model, **arguments(model, function, np.float32)))
    found = leaves(function(model, **arguments(model, function, jnp.float32)))
    for a, b in zip(expected, found, strict=True):
        assert isinstance(b, jnp.ndarray)
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)


def test_forces_on_bodies_by_name(model):
    q, qd = (torch.from_numpy(numbers(model, name)) for name in ("q", "qd"))
    f = torch.from_numpy(numbers(model, "f_ext"))
    (body,) = model.body_names[1:]
    found = kt.bias_force(model, q, qd, {body: f[:, 0], model.base_name: f[0, 0]})
    torch.testing.assert_close(found, kt.bias_force(model, q, qd, f), rtol=0, atol=1e-14)


def test_what_decides_on_the_host_has_no_derivative(model):
    q = torch.zeros(2, 1, requires_grad=True)
    with pytest.raises(kt.ArrayKindError, match=r"cartesian_forces decides .* detach q first"):
        kt.cartesian_forces(model, q, q)
    with pytest.raises(kt.ArrayKindError, match="method 'implicit' runs on the host, with NumPy"):
        kt.forward_dynamics(model, q, q, q, method="implicit")


def test_loops_that_do_not_close_are_not_a_number():
    model = kt.samples.four_bar()
    q = torch.tensor(np.array([model.neutral(), model.neutral()]))
    q[1, 0] += 0.3
    qd = torch.zeros(2, model.nv, dtype=torch.float64)
    found = kt.forward_dynamics(model, q, qd, qd)
    expected = kt.forward_dynamics(model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv))
    np.testing.assert_array_equal(found[0].numpy(), expected)
    assert torch.all(torch.isnan(found[1]))
    with pytest.raises(kt.ArrayKindError, match=r"has loops .* give NumPy arrays"):
        kt.rollout(model, q[0].requires_grad_(), steps=1)
