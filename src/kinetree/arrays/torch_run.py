"""Computing with torch tensors, without derivatives: on their memory, or by one launch."""

import numpy as np
import torch

from kinetree.arrays import device
from kinetree.codegen.runtime.batches import batch_of

__all__ = ["run"]


def run(kernel, tensors):
    """The results of a kernel for tensors of one device and one precision, a tuple."""
    if tensors and tensors[0].device.type == "cuda":
        return _launch(kernel, tensors)
    result = kernel.lean(*(t.detach().numpy() for t in tensors))
    results = result if len(kernel.outputs) > 1 else (result,)
    dtype = tensors[0].dtype if tensors else torch.float64
    return tuple(torch.from_numpy(np.asarray(r)).to(dtype) for r in results)


def _launch(kernel, tensors):
    batch = batch_of(kernel, [t.shape for t in tensors])
    first = tensors[0]
    with (
        device.memory_errors(kernel, batch, torch.OutOfMemoryError),
        torch.cuda.device(first.device),
    ):
        outputs = [first.new_empty((*batch, *o.shape)) for o in kernel.outputs]
        operands = [
            _operand(t.detach(), i, batch) for t, i in zip(tensors, kernel.inputs, strict=True)
        ]
        device.launch(
            kernel,
            str(first.dtype).removeprefix("torch."),
            first.device.index,
            operands,
            [o.data_ptr() for o in outputs],
            batch,
            torch.cuda.current_stream().cuda_stream,
        )
    return tuple(outputs)


def _operand(tensor, argument, batch):
    step = device.step_of(tensor.shape, tensor.stride(), argument.shape, batch)
    if step is None:
        tensor = tensor.expand(*batch, *argument.shape).contiguous()
        step = argument.size
    return tensor.data_ptr(), step, tensor
