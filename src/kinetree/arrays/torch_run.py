"""Computing with torch tensors, without derivatives: on their memory, or by one launch.

A launch for tensors of shapes that have been seen before follows a plan, see ``planned``.
"""

from math import prod

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from kinetree.arrays import device
from kinetree.arrays.batch import batch_of


def run(kernel, tensors):
    """The results of a kernel for tensors of one device and one precision, a tuple."""
    if tensors and _is_on_cuda(tensors[0]):
        return _launch(kernel, tensors)
    result = kernel.lean(*(t.detach().resolve_neg().numpy() for t in tensors))
    results = result if len(kernel.outputs) > 1 else (result,)
    dtype = tensors[0].dtype if tensors else torch.float64
    return tuple(torch.from_numpy(np.asarray(r)).to(dtype) for r in results)


def _is_on_cuda(tensor):
    return tensor.is_cuda


def _launch(kernel, tensors):
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
    return tuple([x for t in tensors for x in (t.shape, t.stride(), t.dtype, t.device)])


def planned(kernel, tensors):
    """The results by a launch that was planned before; NotImplemented where there is none."""
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
    """Whether a transformation of ``torch.func`` or forward mode is under way."""
    return has_wrappers() or torch.autograd.forward_ad._current_level >= 0


def has_wrappers():
    """Whether ``torch.func`` is at work, whose tensors have no numbers."""
    return torch._C._functorch.peek_interpreter_stack() is not None  # pyright: ignore[reportAttributeAccessIssue]


def _operand(tensor, argument, batch):
    step = device.step_of(tensor.shape, tensor.stride(), argument.shape, batch)
    if step is None:
        tensor = tensor.detach().expand(*batch, *argument.shape).contiguous()
        step = argument.size
    return tensor.data_ptr(), step, tensor
