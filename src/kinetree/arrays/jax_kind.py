"""JAX arrays: a primitive with rules for jit, vmap, jvp, grad and all that is made of them.

The primitive is a call of a kernel. Its derivatives are calls of other kernels, see ``derived``;
XLA runs all of them through ``xla_call``, on the CPU and on CUDA devices.
"""

from functools import cache
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from kinetree.arrays import xla_call
from kinetree.arrays.batch import aligned, batch_of
from kinetree.arrays.kinds import precision
from kinetree.errors import DeviceError

_TARGET = "kinetree_call"


def call(kernel, arrays):
    """The results of a kernel, a tuple."""
    arrays = _prepared(kernel, arrays)
    batch_of(kernel, [a.shape for a in arrays])
    shapes = aligned(kernel, [a.shape for a in arrays])
    return tuple(
        call_p.bind(
            *(a if a.shape == s else a.reshape(s) for a, s in zip(arrays, shapes, strict=True)),
            kernel=kernel,
        )
    )


def convert(x, like):
    """A NumPy array as a JAX array, where another one is."""
    if isinstance(like, Tracer):
        return jnp.asarray(x)
    return jax.device_put(jnp.asarray(x), like.sharding)


def cast(x, dtype):
    """An array in a precision, given as one of NumPy's."""
    return x.astype(dtype)


def dtype_of(x):
    """The precision in which an array is computed with."""
    return "float32" if x.dtype == "float32" or not _has_doubles() else "float64"


def has_numbers(x):
    """Whether the numbers can be looked at; a tracer has none."""
    return not isinstance(x, Tracer)


def is_on_host(x):
    """Whether NumPy can share the memory."""
    return not isinstance(x, Tracer) and x.devices() <= set(jax.devices("cpu"))


def is_followed(x):
    """Whether a transformation follows what happens to an array."""
    return isinstance(x, Tracer)


def to_numpy(x):
    """An array's numbers; from a device they are copied."""
    return np.asarray(x)


def _has_doubles():
    return jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]


def _prepared(kernel, arrays):
    """Arrays in one precision; without 64-bit numbers in JAX that is float32."""
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


def differentiable_walk(rollout, state, marks):
    """States of a rollout by ``lax.scan``; ``rollout`` says what goes into each step."""
    run, kernel = rollout.run, rollout.run.transition.one_step()
    h, given = rollout.numbers(run.dt), rollout.given

    def step(state, now):
        t, timed = now
        timed = iter(timed)
        held = [next(timed) if g.timed else x for g, x in given]
        return tuple(kernel.call(t, h, *state, *held)), None

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
def _compiled(kernel):
    return jax.jit(lambda *arrays: call_p.bind(*arrays, kernel=kernel))


@call_p.def_impl
def _(*arrays, kernel):
    return _compiled(kernel)(*arrays)


@call_p.def_abstract_eval
def _(*arrays, kernel):
    batch = batch_of(kernel, [a.shape for a in arrays])
    return [ShapedArray((*batch, *o.shape), arrays[0].dtype) for o in kernel.outputs]


def _lowered(ctx, *arrays, kernel):
    rule = jax.ffi.ffi_lowering(_TARGET)
    return rule(ctx, *arrays, kernel=np.int64(xla_call.number_of(kernel)))


mlir.register_lowering(call_p, _lowered)
for _platform, _function in (("cpu", xla_call.HANDLER_CPU), ("CUDA", xla_call.HANDLER_CUDA)):
    jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(_function), platform=_platform)


def _batched(arrays, dims, *, kernel):
    front = [
        a[None] if d is None else jnp.moveaxis(a, d, 0) for a, d in zip(arrays, dims, strict=True)
    ]
    return call_p.bind(*front, kernel=kernel), [0] * len(kernel.outputs)


batching.primitive_batchers[call_p] = _batched


def _jvp(arrays, tangents, *, kernel):
    wrt = tuple(k for k, t in enumerate(tangents) if type(t) is not ad.Zero)
    results = call_p.bind(*arrays, kernel=kernel)
    found = call_p.bind(*arrays, *(tangents[k] for k in wrt), kernel=kernel.rates(wrt))
    return results, found


ad.primitive_jvps[call_p] = _jvp


def _transposed(weights, *arrays, kernel):
    wrt = tuple(k for k, a in enumerate(arrays) if ad.is_undefined_primal(a))
    known = [a for a in arrays if not ad.is_undefined_primal(a)]
    weights = [ad.instantiate_zeros(w) for w in weights]
    found = call_p.bind(*known, *weights, kernel=kernel.transposed(wrt))
    result: list[Any] = [None] * len(arrays)
    for k, gradient in zip(wrt, found, strict=True):
        result[k] = _summed(gradient, arrays[k].aval.shape)
    return result


ad.primitive_transposes[call_p] = _transposed


def _summed(x, shape):
    """Gradients of what was repeated along an axis, added up."""
    axes = tuple(k for k, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m)
    return jnp.sum(x, axes, keepdims=True) if axes else x
