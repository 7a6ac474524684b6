"""Torch tensors on a simulated device: the arguments of launches."""

import contextlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support import fake_cupy

import kinetree as kt
from kinetree.arrays import torch_kind as torch_run


@pytest.fixture
def launches(monkeypatch):
    """Launches so far; tensors count as those of a CUDA device while this is used."""
    found = []
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    monkeypatch.setitem(sys.modules, "kinetree.codegen.runtime.cuda", fake_cupy.runtime(found))
    monkeypatch.setattr(torch_run, "_is_on_cuda", lambda tensor: True)
    monkeypatch.setattr(torch.cuda, "device", lambda place: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)  # as tensors of the CPU say
    stream = SimpleNamespace(cuda_stream=7)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    return found


@pytest.fixture
def model():
    return kt.samples.double_pendulum()


def states(rng, batch=(4,)):
    return [torch.tensor(rng.normal(size=(*batch, 2))) for _ in range(3)]


def test_one_launch_on_the_current_stream(model, launches, rng):
    q, qd, qdd = states(rng)
    expected = kt.inverse_dynamics(model, *(x.numpy() for x in (q, qd, qdd)))
    found = kt.inverse_dynamics(model, q, qd, qdd)
    np.testing.assert_array_equal(found.numpy(), expected)
    assert launches == [("inverse_dynamics", "float64", None, (2, 2, 2), 4, 7)]
    wide = torch.cat([q, qd, qdd], -1)
    found = kt.inverse_dynamics(model, q[0], wide[:, 2:4], qdd.T.contiguous().T)
    assert launches[1][3] == (0, 6, 2)  # the last is not in rows, and is copied
    expected = kt.inverse_dynamics(model, *(x.numpy() for x in (q[0], qd, qdd)))
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.usefixtures("specialised")  # general code is counted first
def test_a_second_call_takes_the_lean_path_but_not_where_derivatives_are_requested(
    model, launches, rng, monkeypatch
):
    given = states(rng)
    kernel = kt.inverse_dynamics.definition.kernel(model)
    first = kt.inverse_dynamics(model, *given)
    seen, lean = [], kernel.lean
    monkeypatch.setattr(kernel, "lean", lambda *arrays: (seen.append(arrays), lean(*arrays))[1])
    torch.testing.assert_close(kt.inverse_dynamics(model, *given), first, rtol=0, atol=0)
    assert not seen
    assert launches[0] == launches[1]
    followed = [x.clone().requires_grad_() for x in given]
    assert kt.inverse_dynamics(model, *followed).requires_grad
    with torch.no_grad():
        assert not kt.inverse_dynamics(model, *followed).requires_grad
    assert len(seen) == 1
    each = torch.func.vmap(lambda *x: kt.inverse_dynamics(model, *x))(*given)
    torch.testing.assert_close(each, first, rtol=0, atol=0)


def test_numbers_with_a_sign_to_come_are_read_with_it(model, launches, rng, monkeypatch):
    q, qd, qdd = states(rng)
    negative = torch.complex(q, -qd).conj().imag  # qd, but its memory holds -qd
    assert negative.is_neg()
    expected = kt.inverse_dynamics(model, q, qd, qdd)
    for _ in range(2):
        torch.testing.assert_close(kt.inverse_dynamics(model, q, negative, qdd), expected)
    monkeypatch.setattr(torch_run, "_is_on_cuda", lambda tensor: False)
    torch.testing.assert_close(kt.inverse_dynamics(model, q, negative, qdd), expected)


def test_out_of_memory_names_the_purpose(model, launches, rng, monkeypatch):
    given = states(rng)
    kt.inverse_dynamics(model, *given)

    def full(*args):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch.Tensor, "new_empty", full)
    message = r"inverse_dynamics: no memory left on the device .* a batch of shape \({},\); split"
    with pytest.raises(kt.errors.DeviceMemoryError, match=message.format(4)):  # the short way
        kt.inverse_dynamics(model, *given)
    with pytest.raises(kt.errors.DeviceMemoryError, match=message.format(3)):
        kt.inverse_dynamics(model, *(x[:3] for x in given))


def test_floating_bases_with_loops_take_tensors_and_gravity_in_numbers():
    model = kt.edit.floating(kt.samples.four_bar(), inertia=kt.shapes.sphere(0.3, mass=2.0))
    base, q = kt.floating.of(model), kt.loops.assemble(model)[7:]
    v_0, qd, tau = np.linspace(-1, 1, 6), np.zeros(base.tree.nv), np.ones(base.tree.nv)
    expected = kt.floating.forward_dynamics(base, q, v_0, qd, tau, (0.0, 0.0, -9.81))
    arrays = [torch.as_tensor(x) for x in (q, v_0, qd, tau)]
    found = kt.floating.forward_dynamics(base, *arrays, (0.0, 0.0, -9.81))
    for x, y in zip(found, expected, strict=True):
        assert isinstance(x, torch.Tensor)
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)
