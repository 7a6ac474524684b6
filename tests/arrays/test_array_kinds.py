"""Whose array is this, and what is said about arrays that do not belong together."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import kinetree as kt
from kinetree.arrays import device
from kinetree.arrays.kinds import is_foreign, kind_of


@pytest.fixture(scope="module")
def model():
    return kt.samples.pendulum()


def test_kinds_are_found_by_type():
    assert kind_of(torch.zeros(2)) == "torch"
    assert kind_of(torch.nn.Parameter(torch.zeros(2))) == "torch"
    assert kind_of(jnp.zeros(2)) == "jax"
    assert kind_of(torch.float64) is None
    assert not any(map(is_foreign, (np.zeros(2), 1.0, [1.0], None, "q", kt)))


def test_kinds_do_not_mix(model):
    q = torch.zeros(2, 1)
    message = (
        "passive_force: arrays of different libraries do not mix: q is a torch tensor, qd is a {}; "
        "convert one of them, for example with from_dlpack of the other library"
    )
    with pytest.raises(kt.errors.ArrayKindError, match=message.format("JAX array")):
        kt.passive_force(model, q, jnp.zeros((2, 1)))
    with pytest.raises(kt.errors.ArrayKindError, match=message.format("NumPy array")):
        kt.passive_force(model, q, np.zeros((2, 1)))


def test_devices_do_not_mix(model):
    q, away = torch.zeros(2, 1), torch.zeros(2, 1, device="meta")
    with pytest.raises(
        kt.errors.DeviceError,
        match=r"must be on one device, got q on cpu, qd on meta; move them with .to",
    ):
        kt.passive_force(model, q, away)
    with pytest.raises(
        kt.errors.DeviceError,
        match=r"gravity_force runs on the CPU and on CUDA devices; .* on meta",
    ):
        kt.gravity_force(model, away)


def test_half_precision_is_rejected(model):
    with pytest.raises(
        kt.ShapeError, match="gravity_force: q must be of float64 or float32, got bfloat16; convert"
    ):
        kt.gravity_force(model, torch.zeros(2, 1, dtype=torch.bfloat16))
    with pytest.raises(kt.ShapeError, match="got complex64"):
        kt.gravity_force(model, jnp.zeros((2, 1), "complex64"))


def test_shapes_are_checked(model):
    with pytest.raises(kt.ShapeError, match=r"gravity_force: q must have shape \(..., 1\), got"):
        kt.gravity_force(model, torch.zeros(3, 2))
    with pytest.raises(kt.ShapeError, match=r"do not broadcast .*: q \(3,\), qd \(2,\); leading"):
        kt.passive_force(model, torch.zeros(3, 1), torch.zeros(2, 1))
    with pytest.raises(TypeError, match=r"gravity_force takes 1 arrays \(q\), got 2"):
        kt.gravity_force.definition.kernel(model).call(*torch.zeros(2, 3, 1))


def test_out_is_for_numpy(model):
    kernel = kt.gravity_force.definition.kernel(model)
    with pytest.raises(kt.errors.ArrayKindError, match="out= takes NumPy arrays"):
        kernel.full(torch.zeros(1), out=np.zeros(1))


def test_out_of_memory_names_the_purpose():
    kernel = SimpleNamespace(name="mass_matrix")
    with (
        pytest.raises(
            kt.errors.DeviceMemoryError,
            match=r"mass_matrix: no memory left .* \(4, 5\); split the batch",
        ),
        device.memory_errors(kernel, (4, 5), torch.OutOfMemoryError),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory")
