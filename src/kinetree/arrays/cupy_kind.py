"""CuPy arrays: one launch, on the current stream.

A launch for arrays of shapes that have been seen before follows a plan, see ``_launch_planned``.
"""

from functools import partial
from math import prod

import cupy  # pyright: ignore[reportMissingImports]
import numpy as np

from kinetree.arrays import device
from kinetree.arrays.batch import batch_of
from kinetree.arrays.kinds import precision
from kinetree.errors import DeviceError

_ndarray, _OutOfMemory = cupy.ndarray, cupy.cuda.memory.OutOfMemoryError
_stream, _device = cupy.cuda.get_current_stream, cupy.cuda.runtime.getDevice


def call(kernel, arrays):
    """Results of a kernel for CuPy arrays, a tuple."""
    kernel.take(_ndarray, partial(_launch_planned, kernel))
    return _first_call(kernel, arrays)


def _launch_planned(kernel, *arrays):
    """Results by a launch planned before; NotImplemented where there is none."""
    key = []
    for a in arrays:
        if type(a) is not _ndarray:
            return NotImplemented
        key += (a.shape, a.strides, a.dtype.char, a.data.device_id)
    plan = kernel.plans.get(tuple(key))
    if plan is None or _device() != plan[0]:
        return NotImplemented
    _, launch, shapes, dtype = plan
    try:
        outputs = [_ndarray(shape, dtype) for shape in shapes]
    except _OutOfMemory as error:
        raise device.out_of_memory(kernel, shapes[0]) from error
    launch([a.data.ptr for a in arrays], [o.data.ptr for o in outputs], _stream().ptr)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _first_call(kernel, arrays):
    """Result of the first call with such arrays, which plans the launch of later calls."""
    given = arrays
    arrays, dtype, place = _prepare(kernel, arrays)
    batch = batch_of(kernel, [a.shape for a in arrays])
    with device.memory_errors(kernel, batch, _OutOfMemory), cupy.cuda.Device(place):
        outputs = [_ndarray((*batch, *o.shape), np.dtype(dtype)) for o in kernel.outputs]
        operands = [_operand(a, i, batch) for a, i in zip(arrays, kernel.inputs, strict=True)]
        addresses, stream = [o.data.ptr for o in outputs], _stream().ptr
        compiled = device.launch(kernel, dtype, place, operands, addresses, batch, stream)
    as_given = arrays is given and all(o[2] is a for o, a in zip(operands, arrays, strict=True))
    if as_given and compiled is not None:
        launch = compiled.again(tuple(o[1] for o in operands), prod(batch))
        key = [x for a in arrays for x in (a.shape, a.strides, a.dtype.char, a.data.device_id)]
        kernel.plans.keep(tuple(key), (place, launch, [o.shape for o in outputs], np.dtype(dtype)))
    return tuple(outputs)


def cast(x, dtype):
    """CuPy array in another precision."""
    return x.astype(dtype, copy=False)


def convert(x, like):
    """NumPy array copied to the device of another array."""
    with cupy.cuda.Device(like.device.id):
        return cupy.asarray(x)


def dtype_of(x):
    """Precision in which a CuPy array is computed with."""
    return "float32" if x.dtype == "float32" else "float64"


def has_numbers(x):
    """Whether the array's numbers can be read: always True for CuPy."""
    return True


def is_on_host(x):
    """Whether NumPy can share the array's memory: False for CuPy."""
    return False


def is_followed(x):
    """Whether derivatives of the array are recorded: never for CuPy."""
    return False


def to_numpy(x):
    """Copy of a CuPy array in the memory of the CPU."""
    return cupy.asnumpy(x)


def _prepare(kernel, arrays):
    """CuPy arrays on one device in one precision, with both."""
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
    """Address and sample step of an array for a kernel, copied if its strides do not fit."""
    size = array.itemsize
    strides = tuple(s // size for s in array.strides)
    step = device.step_of(array.shape, strides, argument.shape, batch)
    if step is None:
        array = cupy.ascontiguousarray(cupy.broadcast_to(array, (*batch, *argument.shape)))
        step = argument.size
    return array.data.ptr, step, array
