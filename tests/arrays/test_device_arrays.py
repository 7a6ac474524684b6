"""How arrays on a device lie in memory, and what is needed to compute there."""

import sys

import numpy as np
import pytest

import kinetree as kt
from kinetree.arrays import device
from kinetree.arrays.kinds import precision


def test_precision_is_that_of_numpy_arrays():
    assert precision("f", "ab", ["float32", None]) == "float32"
    assert precision("f", "ab", ["float32", "float64"]) == "float64"
    assert precision("f", "ab", ["float32", "int32"]) == "float64"
    assert precision("f", "a", [None]) == "float64"


def test_a_device_needs_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(
        kt.errors.MissingPackageError,
        match=r'needs the package cupy.*pip install "kinetree\[gpu\]"',
    ):
        device.require_cupy()


def strides(array):
    return tuple(s // array.itemsize for s in array.strides)


@pytest.mark.parametrize(
    ("array", "core", "batch"),
    [
        (np.arange(24.0).reshape(4, 6), (6,), (4,)),
        (np.arange(24.0).reshape(2, 2, 6), (6,), (2, 2)),
        (np.arange(24.0).reshape(4, 6)[::2], (6,), (2,)),
        (np.arange(24.0).reshape(2, 12)[:, 3:6], (3,), (2,)),
        (np.arange(24.0).reshape(4, 2, 3), (2, 3), (4,)),
        (np.arange(6.0), (6,), (4, 3)),
        (np.arange(6.0).reshape(1, 6), (6,), (4, 3)),
        (np.arange(4.0), (), (4,)),
        (np.arange(4.0).reshape(4, 1, 1), (1,), (4, 1)),
    ],
)
def test_one_step_leads_from_sample_to_sample(array, core, batch):
    step, memory = device.step_of(array.shape, strides(array), core, batch), array.base
    memory = array if memory is None else memory
    flat, first = memory.ravel(), (array.ctypes.data - memory.ctypes.data) // 8
    size = int(np.prod(core))
    samples = np.broadcast_to(array, (*batch, *core)).reshape(-1, size)
    for k, sample in enumerate(samples):
        np.testing.assert_array_equal(flat[first + k * step :][:size], sample)


@pytest.mark.parametrize(
    ("array", "core", "batch"),
    [
        (np.zeros((6, 4)).T, (6,), (4,)),
        (np.zeros((4, 6)), (6,), (3, 4)),
        (np.zeros((4, 4, 6))[:, :2], (6,), (4, 2)),
        (np.zeros((4, 12))[:, ::2], (6,), (4,)),
    ],
)
def test_other_arrays_have_no_such_step(array, core, batch):
    assert device.step_of(array.shape, strides(array), core, batch) is None
