"""Kernels that procedures call: machine code tied to the arrays that it reads and writes."""

# pyright: reportInvalidTypeForm=false, reportInvalidTypeArguments=false
from functools import cache

import numpy as np

from kinetree.codegen.procedures import invoke, procedure, record


@record
class Code:
    """Machine code of a kernel, tied to arrays; NumPy's convention of an inner loop.

    Attributes:
        loop: address of the code.
        frame: addresses of arguments and results.
        count: 1;  steps: from sample to sample, and strides;  status: how many calls failed.
    """

    loop: int
    frame: "int[:]"
    count: "int[:]"
    steps: "int[:]"
    status: "int[:]"


def tied_code(kernel, *arrays) -> Code:
    """The machine code of a kernel, tied to the arrays that it reads and writes."""
    if kernel is None:
        return _no_code()
    variant = kernel.variant("float64", wide=False, samples=1)
    steps = [a.nbytes for a in arrays] + [
        x
        for a, of in zip(arrays, (*kernel.inputs, *kernel.outputs), strict=True)
        for x in np.zeros(of.shape).strides
    ]
    code = Code(
        loop=variant.code.address("loop"),
        count=np.ones(1, dtype=np.int64),
        frame=np.array([a.ctypes.data for a in arrays], dtype=np.int64),
        steps=np.array(steps, dtype=np.int64),
        status=np.zeros(1, dtype=np.int64),
    )
    code.keeps = (variant, arrays, kernel)
    return code


@cache
def _no_code() -> Code:
    """Code that is never run."""
    none = np.zeros(1, dtype=np.int64)
    return Code(loop=0, frame=none, count=none, steps=none, status=none)


@procedure
def run(code: Code):
    """Call the machine code of a kernel."""
    invoke(code.loop, code.frame, code.count, code.steps, code.status)
