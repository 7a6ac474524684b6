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
    """Machine code of a kernel with the addresses of the arrays it reads and writes."""
    if kernel is None:
        return _no_code()
    variant = kernel.code_variant("float64", wide=False, samples=1)
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


def tied_record(procedure, record) -> Code:
    """Machine code of a procedure with its record, in the form of a kernel's tied code.

    Args:
        procedure: takes the record alone: the other arguments of such a call are left alone.
        record: what it reads and writes, whose memory is the ``frame``; its ``status``, (1,),
            counts the calls that failed.
    """
    one = np.ones(1, dtype=np.int64)
    given = {"frame": np.frombuffer(record, dtype=np.int64), "status": record.status}
    code = Code(loop=int(procedure.place[0]), count=one, steps=one, **given)
    code.keeps = procedure, record
    return code


def tied_control(control, t, q, qd, out) -> Code:
    """Machine code of a controller ``(t, q, qd)`` with its arrays, or what its ``tie`` returns."""
    tie = getattr(control, "tie", None)
    return tied_code(control, t, q, qd, out) if tie is None else tie(t, q, qd, out)


@cache
def _no_code() -> Code:
    """Tied code with no function, for places where nothing is called."""
    none = np.zeros(1, dtype=np.int64)
    return Code(loop=0, frame=none, count=none, steps=none, status=none)


@procedure
def run(code: Code):
    """Call tied machine code on its arrays."""
    invoke(code.loop, code.frame, code.count, code.steps, code.status)
