"""CuPy arrays: one launch, on the current stream.

Calls with arrays of shapes that have been seen before take a short way: all that follows from the
shapes is kept in a ``_Plan``.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import cupy  # pyright: ignore[reportMissingImports]

from kinetree.array_kinds import precision
from kinetree.arrays import device
from kinetree.arrays.shapes import batch_of
from kinetree.errors import DeviceError

__all__ = [
    "call",
    "cast",
    "convert",
    "dtype_of",
    "has_numbers",
    "is_followed",
    "is_on_host",
    "to_numpy",
]


_PLANS = 64  # of a kernel, at most


@dataclass(frozen=True)
class _Plan:
    """What follows from kinds and shapes of arrays."""

    launch: Any
    steps: tuple
    count: int
    place: int
    shapes: tuple
    dtype: str


def call(kernel, arrays):
    """The results of a kernel, a tuple."""
    plans = kernel.__dict__.setdefault("cupy_plans", {})
    key = _key(arrays)
    if key is not None:
        plan = plans.get(key)
        if plan is not None and cupy.cuda.runtime.getDevice() == plan.place:
            return _by_plan(kernel, plan, arrays)
    return _first_call(kernel, arrays, plans, key)


def _key(arrays):
    """What a plan depends on, or None where arrays are to be prepared."""
    parts = []
    for a in arrays:
        if type(a) is not cupy.ndarray:
            return None
        parts += (a.shape, a.strides, a.dtype.char, a.data.device_id)
    return tuple(parts)


def _by_plan(kernel, plan, arrays):
    try:
        outputs = [cupy.empty(shape, plan.dtype) for shape in plan.shapes]
    except cupy.cuda.memory.OutOfMemoryError as error:
        n = len(kernel.outputs[0].shape)
        batch = plan.shapes[0][: len(plan.shapes[0]) - n]
        raise device.memory_error(kernel, batch) from error
    stream = cupy.cuda.get_current_stream().ptr
    addresses = [o.data.ptr for o in outputs]
    plan.launch([a.data.ptr for a in arrays], plan.steps, addresses, plan.count, stream)
    return outputs


def _first_call(kernel, arrays, plans, key):
    given = arrays
    arrays, dtype, place = _prepared(kernel, arrays)
    batch = batch_of(kernel, [a.shape for a in arrays])
    memory = cupy.cuda.memory.OutOfMemoryError
    with device.memory_errors(kernel, batch, memory), cupy.cuda.Device(place):
        outputs = [cupy.empty((*batch, *o.shape), dtype) for o in kernel.outputs]
        operands = [_operand(a, i, batch) for a, i in zip(arrays, kernel.inputs, strict=True)]
        addresses = [o.data.ptr for o in outputs]
        stream = cupy.cuda.get_current_stream().ptr
        launch = device.launch(kernel, dtype, place, operands, addresses, batch, stream)
    as_given = arrays is given and all(o[2] is a for o, a in zip(operands, arrays, strict=True))
    if key is not None and as_given and launch is not None:
        if len(plans) >= _PLANS:
            plans.clear()
        steps, shapes = tuple(o[1] for o in operands), tuple(o.shape for o in outputs)
        plans[key] = _Plan(launch, steps, prod(batch), place, shapes, dtype)
    return tuple(outputs)


def cast(x, dtype):
    """An array in a precision."""
    return x.astype(dtype, copy=False)


def convert(x, like):
    """A NumPy array on the device of another."""
    with cupy.cuda.Device(like.device.id):
        return cupy.asarray(x)


def dtype_of(x):
    """The precision in which an array is computed with."""
    return "float32" if x.dtype == "float32" else "float64"


def has_numbers(x):
    """Whether the numbers can be looked at."""
    return True


def is_on_host(x):
    """Whether NumPy can share the memory."""
    return False


def is_followed(x):
    """Nobody follows what happens to these arrays."""
    return False


def to_numpy(x):
    """A copy of the numbers on the host."""
    return cupy.asnumpy(x)


def _prepared(kernel, arrays):
    """Arrays on one device, in one precision, and both."""
    names, places, types = [i.name for i in kernel.inputs], {}, []
    for name, a in zip(names, arrays, strict=False):
        is_array = isinstance(a, cupy.ndarray)
        types.append(str(a.dtype) if is_array else None)
        if is_array:
            places.setdefault(a.device.id, name)
    if len(places) > 1:
        found = ", ".join(f"{name} on device {place}" for place, name in places.items())
        raise DeviceError(
            f"{kernel.name}: arrays must be on one device, got {found}; copy them with "
            f"cupy.asarray under cupy.cuda.Device"
        )
    dtype, place = precision(kernel.name, names[: len(types)], types), next(iter(places))
    if all(isinstance(a, cupy.ndarray) and a.dtype == dtype for a in arrays):
        return arrays, dtype, place
    with cupy.cuda.Device(place):
        return [cupy.asarray(a, dtype) for a in arrays], dtype, place


def _operand(array, argument, batch):
    size = array.itemsize
    strides = tuple(s // size for s in array.strides)
    step = device.step_of(array.shape, strides, argument.shape, batch)
    if step is None:
        array = cupy.ascontiguousarray(cupy.broadcast_to(array, (*batch, *argument.shape)))
        step = argument.size
    return array.data.ptr, step, array
