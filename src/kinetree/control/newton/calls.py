"""Kernels that a solver calls for all knots at once, or for some: machine code tied to arrays."""

from typing import Any

import numpy as np

from kinetree.codegen.procedures import invoke, procedure, record
from kinetree.codegen.procedures.language import address_of
from kinetree.codegen.runtime.loops import LoopVariant


@record
class InnerLoop:
    """Machine code of a kernel, tied to rows of arrays; NumPy's convention of an inner loop.

    Attributes:
        code: its address, 0 for none;  alone: address of code for one knot, 0 for the same.
        frame: addresses of arguments and results at the first knot;  arrays: how many they are.
        count: of knots in a call;  steps: bytes from knot to knot, then strides within.
        status: how many calls failed.
    """

    code: int
    alone: int
    arrays: int
    frame: "int[:]"
    count: "int[:]"
    steps: "int[:]"
    status: "int[:]"


@procedure(inline=False)
def call(loop: InnerLoop, first: int, count: int):
    """Call a tied kernel for ``count`` knots from ``first`` on."""
    for i in range(loop.arrays):
        loop.frame[i] += first * loop.steps[i]
    loop.count[0] = count
    code = loop.alone if count == 1 and loop.alone != 0 else loop.code
    invoke(code, loop.frame, loop.count, loop.steps, loop.status)
    for i in range(loop.arrays):
        loop.frame[i] -= first * loop.steps[i]


def no_loop() -> InnerLoop:
    """Tied kernel that is never called, as a placeholder."""
    return InnerLoop(code=0, alone=0, arrays=0)


def tie(kernel: Any, arrays: Any, samples: int) -> InnerLoop:
    """Machine code of a kernel tied to arrays with one axis for knots.

    Args:
        kernel: with machine code.
        arrays: of its arguments and results, with one axis for knots; those that lack it are the
            same for all.
        samples: that are about to be requested.
    """
    ends = (*kernel.inputs, *kernel.outputs)
    outer, inner = [], []
    for a, of in zip(arrays, ends, strict=True):
        strides = a.strides
        timed = len(strides) > len(of.shape)
        outer.append(strides[0] if timed else 0)
        inner += strides[1:] if timed else strides
    loop = InnerLoop(
        arrays=len(outer),
        frame=np.array([address_of(a) for a in arrays], dtype=np.int64),
        count=np.ones(1, dtype=np.int64),
        steps=np.array([*outer, *inner], dtype=np.int64),
        status=np.zeros(1, dtype=np.int64),
    )
    loop.kernel, loop.keeps, loop.variant = kernel, arrays, None
    renew(loop, samples)
    return loop


def renew(loop: Any, samples: int) -> None:
    """Replace a tied kernel's machine code by the kernel's current code."""
    variant = loop.kernel.code_variant("float64", wide=True, samples=samples)
    if variant is loop.variant:
        return
    loop.code, loop.variant = variant.code.address("loop"), variant
    loop.alone, loop.single = 0, None
    if isinstance(variant, LoopVariant):  # lanes that nobody needs take as long as the others
        loop.single = loop.kernel.code_variant("float64", wide=False, samples=0)
        loop.alone = loop.single.code.address("loop")
