"""JAX arrays: a primitive with rules for jit, vmap, jvp, grad and all that is made of them.

The primitive is a call of a kernel. Its derivatives are calls of other kernels, see ``derived``;
XLA runs all of them, on the CPU and on CUDA devices, through its C interface for foreign functions,
by ctypes: it calls a C function with a frame that holds addresses and shapes of all arrays. Ours is
a Python function that ctypes makes callable; it takes the interpreter lock, finds the kernel by its
number, and lets it work on the memory of XLA. Nothing is copied. Layouts are those of
``xla/ffi/api/c_api.h``, version 0; later minor versions only add fields at the end.
"""

import ctypes
import secrets
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from functools import cache
from itertools import count, pairwise
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from kinetree.arrays import device
from kinetree.arrays.batch import align_shapes, batch_of
from kinetree.arrays.kinds import precision
from kinetree.errors import DeviceError, DeviceMemoryError

_TYPES = {11: np.dtype(np.float32), 12: np.dtype(np.float64)}
_EXECUTE, _METADATA = 3, 1
_INVALID_ARGUMENT, _RESOURCE_EXHAUSTED = 3, 8
_ERROR_CREATE, _STREAM_GET, _DEVICE_ORDINAL_GET = 0, 4, 17  # places in the table of functions


class _Sized(ctypes.Structure):
    """Every structure begins with its size and a list of extensions."""

    _fields_ = [("size_of_struct", c_size_t), ("extension", c_void_p)]


class _Extension(ctypes.Structure):
    _fields_ = [("size_of_struct", c_size_t), ("type", c_int), ("next", c_void_p)]


class _Version(_Sized):
    _fields_ = [("major", c_int), ("minor", c_int)]


class _Metadata(ctypes.Structure):
    _fields_ = [("size_of_struct", c_size_t), ("version", _Version), ("traits", c_uint32)]


class _MetadataExtension(ctypes.Structure):
    _fields_ = [("base", _Extension), ("metadata", POINTER(_Metadata))]


class _Buffer(_Sized):
    _fields_ = [("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64))]


class _Buffers(_Sized):
    """Arguments, and results."""

    _fields_ = [("count", c_int64), ("types", c_void_p), ("items", POINTER(POINTER(_Buffer)))]


class _Scalar(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("value", POINTER(c_int64))]


class _Attributes(_Sized):
    _fields_ = [
        ("count", c_int64), ("types", c_void_p), ("names", c_void_p),
        ("items", POINTER(POINTER(_Scalar))),
    ]  # fmt: skip


class _Frame(_Sized):
    _fields_ = [
        ("api", c_void_p), ("context", c_void_p), ("stage", c_int), ("arguments", _Buffers),
        ("results", _Buffers), ("attributes", _Attributes),
    ]  # fmt: skip


class _Api(_Sized):
    _fields_ = [("version", _Version), ("internal", c_void_p), ("functions", c_void_p * 18)]


class _ErrorArguments(_Sized):
    _fields_ = [("message", c_char_p), ("code", c_int)]


class _StreamArguments(_Sized):
    _fields_ = [("context", c_void_p), ("stream", c_void_p)]


class _OrdinalArguments(_Sized):
    _fields_ = [("context", c_void_p), ("ordinal", c_int32)]


_HANDLER = ctypes.CFUNCTYPE(c_void_p, POINTER(_Frame))
_FUNCTION = ctypes.CFUNCTYPE(c_void_p, c_void_p)


# --- kernels by number ---------------------------------------------------------------------------

# Executables know kernels by number, and may outlive everything else, so kernels stay. They may
# also come from a cache on disk, written by another process: its numbers mean nothing here.
_numbers = count(secrets.randbits(62))
_by_number: dict = {}


def number_of(kernel):
    """Number by which a JAX executable refers to a kernel."""
    if not hasattr(kernel, "number_in_xla"):
        kernel.number_in_xla = next(_numbers)
        _by_number[kernel.number_in_xla] = kernel
    return kernel.number_in_xla


# --- being called --------------------------------------------------------------------------------


def _handler(run):
    """C function for XLA that reads the call frame and calls ``run``."""

    def handle(pointer):
        frame = pointer.contents
        try:
            if frame.extension and _answer(frame.extension):
                return None
            if frame.stage == _EXECUTE:
                kernel = _by_number[frame.attributes.items[0].contents.value[0]]
                run(kernel, frame, _arrays(frame.arguments), _arrays(frame.results))
        except Exception as error:  # XLA tells it to the caller
            return _error(frame, error)
        return None

    return _HANDLER(handle)


def _answer(address):
    """Answer XLA's registration call with the interface's version."""
    extension = _MetadataExtension.from_address(address)
    if extension.base.type != _METADATA:
        return False
    metadata = extension.metadata.contents
    metadata.version.major, metadata.version.minor, metadata.traits = 0, 1, 0
    return True


def _arrays(buffers):
    """Address, shape and type of every array in XLA's buffers."""
    found = []
    for k in range(buffers.count):
        b = buffers.items[k].contents
        found.append((b.data, tuple(b.dims[: b.rank]), _TYPES[b.dtype]))
    return found


def _error(frame, error):
    """XLA error object for a Python exception."""
    code = _RESOURCE_EXHAUSTED if isinstance(error, DeviceMemoryError) else _INVALID_ARGUMENT
    message = f"{type(error).__name__}: {error}".encode()
    arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message, code)
    return _table(frame, _ERROR_CREATE)(ctypes.addressof(arguments))


def _table(frame, place):
    """Function of XLA's interface at an offset of its table."""
    return _FUNCTION(_Api.from_address(frame.api).functions[place])


def _on_cpu(kernel, frame, arguments, results):
    """Compute a kernel in JAX's memory on the CPU."""
    views = [_view(*a) for a in arguments]
    outs = [_view(*r) for r in results]
    if all(o.size for o in outs):
        kernel.full(*views, out=tuple(outs) if len(outs) > 1 else outs[0])


def _view(address, shape, dtype):
    """NumPy array over memory at an address, without a copy."""
    size = prod(shape) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(address) if size else b""
    return np.ndarray(shape, dtype, memory)


def _on_cuda(kernel, frame, arguments, results):
    """Launch a kernel in JAX's memory on a GPU, on JAX's stream."""
    batch = batch_of(kernel, [shape for _, shape, _ in arguments])
    stream = _StreamArguments(ctypes.sizeof(_StreamArguments), None, frame.context, None)
    _table(frame, _STREAM_GET)(ctypes.addressof(stream))
    where = _OrdinalArguments(ctypes.sizeof(_OrdinalArguments), None, frame.context, 0)
    _table(frame, _DEVICE_ORDINAL_GET)(ctypes.addressof(where))
    cupy = device.require_cupy()
    with cupy.cuda.Device(where.ordinal):
        operands = [
            _operand(cupy, given, i, batch, stream.stream or 0)
            for given, i in zip(arguments, kernel.inputs, strict=True)
        ]
        addresses, dtype = [r[0] for r in results], results[0][2].name
        device.launch(kernel, dtype, where.ordinal, operands, addresses, batch, stream.stream or 0)


def _operand(cupy, given, argument, batch, stream):
    """Address and sample step of an array, copied if its strides are not constant."""
    address, shape, dtype = given
    step = device.step_of(shape, _strides(shape), argument.shape, batch)
    if step is not None:
        return address, step, None
    memory = cupy.cuda.UnownedMemory(address, prod(shape) * dtype.itemsize, None)
    array = cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))
    with device.external_stream(stream):
        copy = cupy.ascontiguousarray(cupy.broadcast_to(array, (*batch, *argument.shape)))
    return copy.data.ptr, argument.size, copy


def _strides(shape):
    """Strides of a contiguous array, in numbers."""
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


HANDLER_CPU, HANDLER_CUDA = _handler(_on_cpu), _handler(_on_cuda)


_TARGET = "kinetree_call"


def call(kernel, arrays):
    """Results of a kernel for JAX arrays, a tuple."""
    arrays = _prepare(kernel, arrays)
    batch_of(kernel, [a.shape for a in arrays])
    shapes = align_shapes(kernel, [a.shape for a in arrays])
    return tuple(
        call_p.bind(
            *(a if a.shape == s else a.reshape(s) for a, s in zip(arrays, shapes, strict=True)),
            kernel=kernel,
        )
    )


def convert(x, like):
    """NumPy array as a JAX array on the device of another."""
    if isinstance(like, Tracer):
        return jnp.asarray(x)
    return jax.device_put(jnp.asarray(x), like.sharding)


def cast(x, dtype):
    """JAX array in another precision."""
    return x.astype(dtype)


def dtype_of(x):
    """Precision in which a JAX array is computed with."""
    return "float32" if x.dtype == "float32" or not _has_doubles() else "float64"


def has_numbers(x):
    """Whether the array's numbers can be read; not those of a tracer."""
    return not isinstance(x, Tracer)


def is_on_host(x):
    """Whether NumPy can share the array's memory."""
    return not isinstance(x, Tracer) and x.devices() <= set(jax.devices("cpu"))


def is_followed(x):
    """Whether an array is a tracer of JAX, inside of ``jit``, ``grad`` or ``vmap``."""
    return isinstance(x, Tracer)


def to_numpy(x):
    """NumPy array with the numbers of a JAX array, copied from a device."""
    return np.asarray(x)


def _has_doubles():
    """Whether 64-bit numbers are enabled in JAX."""
    return jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]


def _prepare(kernel, arrays):
    """JAX arrays in one precision: float32 unless JAX has 64-bit numbers enabled."""
    names = [i.name for i in kernel.inputs]
    types = [
        str(a.dtype) if isinstance(a, jax.Array) or (isinstance(a, np.ndarray) and a.ndim) else None
        for a in arrays
    ]
    dtype = precision(kernel.name, names[: len(types)], types)
    if not _has_doubles():
        dtype = "float32"
    places = {}
    for name, a in zip(names, arrays, strict=False):
        if isinstance(a, jax.Array) and not isinstance(a, Tracer) and a.committed:
            places.setdefault(frozenset(a.devices()), name)
    if len(places) > 1:
        found = ", ".join(
            f"{name} on {', '.join(sorted(map(str, place)))}" for place, name in places.items()
        )
        raise DeviceError(
            f"{kernel.name}: arrays must be on one device, got {found}; move them with "
            f"jax.device_put"
        )
    return [
        a if isinstance(a, jax.Array) and a.dtype == dtype else jnp.asarray(a, dtype)
        for a in arrays
    ]


def constant(x):
    """Array without gradient: derivatives do not pass through it."""
    return jax.lax.stop_gradient(x)


def differentiable_walk(rollout, state, marks):
    """States of a rollout by ``lax.scan``, differentiable by JAX."""
    run = rollout.run
    h, given = rollout.numbers(run.dt), rollout.given

    def step(state, now):
        t, timed = now
        timed = iter(timed)
        held = [next(timed) if g.timed else x for g, x in given]
        return tuple(rollout.differentiable_step(t, h, state, held)), None

    def between(state, first, end):
        now = rollout.numbers(run.time(np.arange(first, end)))
        return jax.lax.scan(step, state, (now, [x[first:end] for g, x in given if g.timed]))[0]

    state, stored = tuple(state), [tuple(state)]
    for first, end in pairwise(marks):
        state = between(state, first, end)
        stored.append(state)
    return [jnp.stack(x) for x in zip(*stored, strict=True)]


# --- the primitive -------------------------------------------------------------------------------

call_p = Primitive("kinetree_call")
call_p.multiple_results = True


@cache
def _compile(kernel):
    """Jitted JAX function that calls a kernel."""
    return jax.jit(lambda *arrays: call_p.bind(*arrays, kernel=kernel))


@call_p.def_impl
def _(*arrays, kernel):
    """Results of a kernel call outside of transformations, for its JAX primitive."""
    return _compile(kernel)(*arrays)


@call_p.def_abstract_eval
def _(*arrays, kernel):
    """Shapes and types of a kernel call's results, for its JAX primitive."""
    batch = batch_of(kernel, [a.shape for a in arrays])
    return [ShapedArray((*batch, *o.shape), arrays[0].dtype) for o in kernel.outputs]


def _lower(ctx, *arrays, kernel):
    """Lowering rule of a kernel call to XLA's intermediate code."""
    rule = jax.ffi.ffi_lowering(_TARGET)
    return rule(ctx, *arrays, kernel=np.int64(number_of(kernel)))


mlir.register_lowering(call_p, _lower)
for _platform, _function in (("cpu", HANDLER_CPU), ("CUDA", HANDLER_CUDA)):
    jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(_function), platform=_platform)


def _batch(arrays, dims, *, kernel):
    """Batching rule of a kernel call for ``vmap``: mapped axes come first."""
    front = [
        a[None] if d is None else jnp.moveaxis(a, d, 0) for a, d in zip(arrays, dims, strict=True)
    ]
    return call_p.bind(*front, kernel=kernel), [0] * len(kernel.outputs)


batching.primitive_batchers[call_p] = _batch


def _jvp(arrays, tangents, *, kernel):
    """Forward derivative of a kernel call, by the kernel of rates."""
    wrt = tuple(k for k, t in enumerate(tangents) if type(t) is not ad.Zero)
    results = call_p.bind(*arrays, kernel=kernel)
    found = call_p.bind(*arrays, *(tangents[k] for k in wrt), kernel=kernel.rates(wrt))
    return results, found


ad.primitive_jvps[call_p] = _jvp


def _transpose(weights, *arrays, kernel):
    """Reverse derivative of a kernel call, by the kernel of gradients."""
    wrt = tuple(k for k, a in enumerate(arrays) if ad.is_undefined_primal(a))
    known = [a for a in arrays if not ad.is_undefined_primal(a)]
    weights = [ad.instantiate_zeros(w) for w in weights]
    found = call_p.bind(*known, *weights, kernel=kernel.linear_transpose(wrt))
    result: list[Any] = [None] * len(arrays)
    for k, gradient in zip(wrt, found, strict=True):
        result[k] = _sum_to_shape(gradient, arrays[k].aval.shape)
    return result


ad.primitive_transposes[call_p] = _transpose


def _sum_to_shape(x, shape):
    """Gradient summed over the axes along which an array was broadcast."""
    axes = tuple(k for k, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m)
    return jnp.sum(x, axes, keepdims=True) if axes else x
