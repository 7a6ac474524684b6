"""CuPy arrays: one launch, on the current stream."""

import cupy  # pyright: ignore[reportMissingImports]

from kinetree.array_kinds import precision
from kinetree.arrays import device
from kinetree.arrays.shapes import batch_of
from kinetree.errors import DeviceError

__all__ = ["call", "cast", "convert", "dtype_of", "is_followed", "is_on_host", "to_numpy"]


def call(kernel, arrays):
    """The results of a kernel, a tuple."""
    arrays, dtype, place = _prepared(kernel, arrays)
    batch = batch_of(kernel, [a.shape for a in arrays])
    memory = cupy.cuda.memory.OutOfMemoryError
    with device.memory_errors(kernel, batch, memory), cupy.cuda.Device(place):
        outputs = [cupy.empty((*batch, *o.shape), dtype) for o in kernel.outputs]
        operands = [_operand(a, i, batch) for a, i in zip(arrays, kernel.inputs, strict=True)]
        addresses = [o.data.ptr for o in outputs]
        stream = cupy.cuda.get_current_stream().ptr
        device.launch(kernel, dtype, place, operands, addresses, batch, stream)
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
