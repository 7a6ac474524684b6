"""Kernels as steps of the graphs of torch.compile: one operator, nothing of ours to look into."""

from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import torch  # pyright: ignore[reportMissingImports]

from kinetree.arrays.derived import gradients
from kinetree.arrays.shortcuts import short_ways
from kinetree.arrays.torch_run import run

__all__ = ["traceable"]

_numbers = count(1)
_by_number: Any = WeakValueDictionary()  # models keep kernels, and graphs refer to both


def _number_of(kernel):
    """The number by which a graph refers to a kernel."""
    if not hasattr(kernel, "number"):
        kernel.number = next(_numbers)
        _by_number[kernel.number] = kernel
    return kernel.number


def traceable(kernel):
    """``kernel.call`` for tensors that are part of a graph, and for all others."""
    short_ways(kernel)
    otherwise = kernel.call
    number, single = _number_of(kernel), len(kernel.outputs) == 1

    def call(*arrays):
        if torch.compiler.is_compiling():
            results = _operator(_of_one_type(arrays), number)
            return results[0] if single else tuple(results)
        return otherwise(*arrays)

    return call


def _of_one_type(arrays):
    """Tensors of one precision, in words that a graph can hold."""
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
    return list(run(_by_number[number], tensors))


@_operator.register_fake
def _(tensors, number):
    kernel = _by_number[number]
    leads = [t.shape[: t.dim() - len(i.shape)] for t, i in zip(tensors, kernel.inputs, strict=True)]
    batch = torch.broadcast_shapes(*leads)
    return [tensors[0].new_empty((*batch, *o.shape)) for o in kernel.outputs]


def _remember(ctx, inputs, output):
    tensors, ctx.number = inputs
    ctx.save_for_backward(*tensors)


def _operator_backward(ctx, slopes):
    kernel, tensors = _by_number[ctx.number], ctx.saved_tensors
    found = _operator(
        [*tensors, *slopes], _number_of(gradients(kernel, tuple(range(len(tensors)))))
    )
    return [g.sum_to_size(t.shape) for g, t in zip(found, tensors, strict=True)], None


_operator.register_autograd(_operator_backward, setup_context=_remember)
