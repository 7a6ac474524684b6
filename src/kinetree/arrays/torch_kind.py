"""Torch tensors: autograd in both directions and of any order, vmap, and torch.compile.

On the CPU the compiled code works on the memory of the tensors; on a CUDA device a launch gets
their addresses. Derivatives are separate kernels, see ``derived``.
"""

from itertools import count
from math import prod
from typing import Any
from weakref import ref

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from kinetree.arrays import device
from kinetree.arrays.batch import align_shapes, batch_of
from kinetree.arrays.kinds import precision
from kinetree.errors import DeviceError

# --- Computing with torch tensors, without derivatives: on their memory, or by one launch --------
# A launch for tensors of shapes that have been seen before follows a plan, see ``launch_planned``.


def run(kernel, tensors):
    """Results of a kernel for tensors of one device and precision, a tuple."""
    if tensors and _is_on_cuda(tensors[0]):
        return _launch(kernel, tensors)
    result = kernel.lean(*(t.detach().resolve_neg().numpy() for t in tensors))
    results = result if len(kernel.outputs) > 1 else (result,)
    dtype = tensors[0].dtype if tensors else torch.float64
    return tuple(torch.from_numpy(np.asarray(r)).to(dtype) for r in results)


def _is_on_cuda(tensor):
    """Whether a tensor is on a GPU."""
    return tensor.is_cuda


def _launch(kernel, tensors):
    """Launch a kernel on GPU tensors, on PyTorch's current stream."""
    tensors = [t.resolve_neg() for t in tensors]
    batch = batch_of(kernel, [t.shape for t in tensors])
    first = tensors[0]
    with (
        device.memory_errors(kernel, batch, torch.OutOfMemoryError),
        torch.cuda.device(first.device),
    ):
        outputs = [first.new_empty((*batch, *o.shape)) for o in kernel.outputs]
        operands = [_operand(t, i, batch) for t, i in zip(tensors, kernel.inputs, strict=True)]
        compiled = device.launch(
            kernel,
            str(first.dtype).removeprefix("torch."),
            first.device.index,
            operands,
            [o.data_ptr() for o in outputs],
            batch,
            torch.cuda.current_stream().cuda_stream,
        )
    if compiled is not None and all(o[2] is t for o, t in zip(operands, tensors, strict=True)):
        launch = compiled.again(tuple(o[1] for o in operands), prod(batch))
        shapes = [o.shape for o in outputs]
        kernel.plans.keep(_key(tensors), (first.device.index, launch, shapes))
    return tuple(outputs)


def _key(tensors):
    """Key of tensors for launch plans: shapes, strides, precisions, devices."""
    return tuple([x for t in tensors for x in (t.shape, t.stride(), t.dtype, t.device)])


def launch_planned(kernel, tensors):
    """Results by a launch planned before; NotImplemented where there is none."""
    for t in tensors:
        if type(t) is not torch.Tensor or t.is_neg():
            return NotImplemented
        if t.requires_grad and torch.is_grad_enabled():
            return NotImplemented
    plan = kernel.plans.get(_key(tensors)) if kernel.plans else None
    if plan is None or is_transformed() or torch.cuda.current_device() != plan[0]:
        return NotImplemented
    _, launch, shapes = plan
    first = tensors[0]
    try:
        outputs = [first.new_empty(shape) for shape in shapes]
    except torch.OutOfMemoryError as error:
        raise device.out_of_memory(kernel, shapes[0]) from error
    stream = torch.cuda.current_stream().cuda_stream
    launch([t.data_ptr() for t in tensors], [o.data_ptr() for o in outputs], stream)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def is_transformed():
    """Whether a ``torch.func`` transformation or forward mode is active."""
    return has_wrappers() or torch.autograd.forward_ad._current_level >= 0


def has_wrappers():
    """Whether ``torch.func`` is active, whose tensors have no readable numbers."""
    return torch._C._functorch.peek_interpreter_stack() is not None  # pyright: ignore[reportAttributeAccessIssue]


def _operand(tensor, argument, batch):
    """Address and sample step of a tensor for a kernel, copied if its strides do not fit."""
    step = device.step_of(tensor.shape, tensor.stride(), argument.shape, batch)
    if step is None:
        tensor = tensor.detach().expand(*batch, *argument.shape).contiguous()
        step = argument.size
    return tensor.data_ptr(), step, tensor


_TYPES = {"float32": torch.float32, "float64": torch.float64}


def call(kernel, arrays):
    """Results of a kernel for tensors, a tuple; differentiable by autograd."""
    tensors = _prepare(kernel, arrays)
    if not hasattr(kernel, "number"):
        way = traceable(kernel)
        kernel.take(torch.Tensor, way)
        kernel.take(torch.nn.Parameter, way)
    if _is_plain(tensors):
        return run(kernel, tensors)
    return _Apply.apply(kernel, *tensors)


def convert(x, like):
    """NumPy array as a tensor on the device of another."""
    x = np.asarray(x)
    return torch.as_tensor(x if x.flags.writeable else x.copy(), device=like.device)


def cast(x, dtype):
    """Tensor in another precision."""
    return x.to(_TYPES[dtype.name])


def dtype_of(x):
    """Precision in which a tensor is computed with."""
    return "float32" if x.dtype is torch.float32 else "float64"


def has_numbers(x):
    """Whether the tensor's numbers can be read; not within ``torch.func``."""
    return not has_wrappers()


def is_on_host(x):
    """Whether NumPy can share the tensor's memory."""
    return x.device.type == "cpu"


def is_followed(x):
    """Whether autograd or a transformation records the tensor's derivatives."""
    return not _is_plain([x])


def to_numpy(x):
    """NumPy array with the numbers of a tensor, copied from a device."""
    return x.numpy(force=True)


def _prepare(kernel, arrays):
    """Tensors on one device, in one precision, with shapes that fit a kernel."""
    places, types, first = {}, [], None
    for argument, a in zip(kernel.inputs, arrays, strict=False):
        is_tensor = isinstance(a, torch.Tensor)
        types.append(str(a.dtype).removeprefix("torch.") if is_tensor else None)
        if is_tensor and (a.dim() > 0 or argument.shape):
            places.setdefault(a.device, argument.name)
            first = a if first is None else first
    if len(places) > 1:
        found = ", ".join(f"{name} on {place}" for place, name in places.items())
        raise DeviceError(
            f"{kernel.name}: tensors must be on one device, got {found}; move them with .to(...)"
        )
    place = next(iter(places), torch.device("cpu"))
    if place.type not in ("cpu", "cuda"):
        raise DeviceError(
            f"{kernel.name} runs on the CPU and on CUDA devices; got tensors on {place}"
        )
    dtype = _TYPES[precision(kernel.name, [i.name for i in kernel.inputs], types)]
    tensors = [
        a
        if isinstance(a, torch.Tensor) and a.dtype is dtype and a.device == place
        else torch.as_tensor(a, dtype=dtype, device=place)
        for a in arrays
    ]
    batch_of(kernel, [t.shape for t in tensors])
    return tensors


def _is_plain(tensors):
    """Whether no derivatives are requested and no transformation of functions is active."""
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return False
    return not is_transformed()


# --- derivatives ---------------------------------------------------------------------------------


class _Apply(torch.autograd.Function):
    """A kernel, as autograd sees it."""

    @staticmethod
    def forward(kernel, *tensors):  # pyright: ignore[reportIncompatibleMethodOverride]
        """Results of a kernel, for PyTorch's autograd."""
        return run(kernel, tensors)

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Store the kernel and its inputs for derivatives, for PyTorch's autograd."""
        ctx.kernel, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx, *weights):
        """Gradients with respect to the tensors that need them, for PyTorch's autograd."""
        wanted = tuple(k for k, needed in enumerate(ctx.needs_input_grad[1:]) if needed)
        found = _backward(ctx.kernel, ctx.saved_tensors, weights, wanted)
        return None, *found

    @staticmethod
    def jvp(ctx, _, *given):  # pyright: ignore[reportIncompatibleMethodOverride]
        """Forward derivative of a kernel along given rates, for PyTorch's autograd."""
        wrt = tuple(k for k, rate in enumerate(given) if rate is not None)
        return call(ctx.kernel.rates(wrt), (*ctx.saved_tensors, *(given[k] for k in wrt)))

    @staticmethod
    def vmap(info, in_dims, kernel, *tensors):
        """Batching rule of a kernel call: mapped axes come first."""
        moved = [
            t if d is None else t.movedim(d, 0) for t, d in zip(tensors, in_dims[1:], strict=True)
        ]
        ones = [d is None for d in in_dims[1:]]
        inner = [t.shape if one else t.shape[1:] for t, one in zip(moved, ones, strict=True)]
        shapes = align_shapes(kernel, inner)
        front = [1 if one else info.batch_size for one in ones]
        moved = [t.reshape(n, *s) for t, n, s in zip(moved, front, shapes, strict=True)]
        return call(kernel, moved), (0,) * len(kernel.outputs)


def _backward(kernel, tensors, weights, wanted):
    """Gradients with respect to the ``wanted`` inputs of a kernel, None for the others."""
    result: list[Any] = [None] * len(tensors)
    if wanted:
        found: Any = call(kernel.gradients(wanted), (*tensors, *weights))
        for k, gradient in zip(wanted, found, strict=True):
            result[k] = gradient.sum_to_size(tensors[k].shape)
    return result


def constant(x):
    """Tensor without gradient: derivatives do not pass through it."""
    return x.detach()


def differentiable_walk(rollout, state, marks):
    """States of a rollout step by step, differentiable by autograd."""
    run, stored = rollout.run, [state]
    times, h = rollout.numbers(run.time(np.arange(run.steps))), rollout.numbers(run.dt)
    for k in range(run.steps):
        state = rollout.differentiable_step(times[k], h, state, rollout.held_inputs(k))
        if k + 1 in marks:
            stored.append(state)
    return [torch.stack(x) for x in zip(*stored, strict=True)]


# --- Kernels as steps of the graphs of torch.compile: one opaque operator ---------------------

_numbers = count(1)
_by_number: dict[int, ref] = {}  # models keep kernels, and graphs refer to both


def _number_of(kernel):
    """Number by which a PyTorch graph refers to a kernel."""
    if not hasattr(kernel, "number"):
        kernel.number = next(_numbers)
        _by_number[kernel.number] = ref(kernel)
    return kernel.number


def _kernel_of(number) -> Any:
    """Kernel of a number in a PyTorch graph."""
    return _by_number[number]()


def traceable(kernel):
    """Function that calls a kernel on tensors, as an operator while a graph is traced."""
    number, single = _number_of(kernel), len(kernel.outputs) == 1

    def call(*arrays):
        if torch.compiler.is_compiling():
            results = _operator(_of_one_type(arrays), number)
            return results[0] if single else tuple(results)
        return launch_planned(kernel, arrays)

    return call


def _of_one_type(arrays):
    """Arrays converted to tensors of one precision, by operations that PyTorch can trace."""
    tensors = [a for a in arrays if isinstance(a, torch.Tensor)]
    single = all(t.dtype == torch.float32 for t in tensors)
    dtype, place = torch.float32 if single else torch.float64, tensors[0].device
    return [
        a.to(dtype) if isinstance(a, torch.Tensor) else torch.tensor(a, dtype=dtype, device=place)
        for a in arrays
    ]


# The schema in words: PyTorch before 2.7 does not read it from ``list[torch.Tensor]``.
@torch.library.custom_op(
    "kinetree::call", mutates_args=(), schema="(Tensor[] tensors, SymInt number) -> Tensor[]"
)
def _operator(tensors, number):
    """Results of the kernel with a number, for ``torch.compile``."""
    return list(run(_kernel_of(number), tensors))


@_operator.register_fake
def _(tensors, number):
    """Empty results with the shapes of a kernel's, for tracing by ``torch.compile``."""
    kernel = _kernel_of(number)
    leads = [t.shape[: t.dim() - len(i.shape)] for t, i in zip(tensors, kernel.inputs, strict=True)]
    batch = torch.broadcast_shapes(*leads)
    return [tensors[0].new_empty((*batch, *o.shape)) for o in kernel.outputs]


def _remember(ctx, inputs, output):
    """Store the inputs of a kernel operator for its derivative."""
    tensors, ctx.number = inputs
    ctx.save_for_backward(*tensors)


def _operator_backward(ctx, weights):
    """Gradients of a kernel operator's inputs, from those of its results."""
    kernel, tensors = _kernel_of(ctx.number), ctx.saved_tensors
    found = _operator(
        [*tensors, *weights], _number_of(kernel.gradients(tuple(range(len(tensors)))))
    )
    return [g.sum_to_size(t.shape) for g, t in zip(found, tensors, strict=True)], None


_operator.register_autograd(_operator_backward, setup_context=_remember)
