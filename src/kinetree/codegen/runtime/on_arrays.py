"""First answers of a kernel from a function of arrays, in place of code that is compiled for it.

Such a function calls other kernels, which serve every robot, and NumPy: it is there at once, and
costs some microseconds more a call. A ``Kernel`` with one takes it until its calls repay compiling,
as ``codegen.tiers`` decides.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

from kinetree.arrays.batch import batch_of
from kinetree.errors import KinetreeError


class ArraysVariant:
    """Stand-in for the machine code of a kernel, see ``Variant``.

    Args:
        kernel: whose ``on_arrays`` takes the inputs with any batch axes, and returns a tuple.

    Attributes:
        status: with ``value``, how many calls failed.
    """

    code = None

    def __init__(self, kernel):
        self.kernel, self.status = kernel, SimpleNamespace(value=0)

    def ufunc(self, *arrays, out=None) -> Any:
        """Results of the kernel's Python function; NaN and a failure count if it raises."""
        try:
            found: tuple[Any, ...] = self.kernel.on_arrays(*arrays)
        except (KinetreeError, np.linalg.LinAlgError):
            self.status.value += 1
            batch = batch_of(self.kernel, [a.shape for a in arrays])
            found = tuple(np.full(batch + o.shape, np.nan) for o in self.kernel.outputs)
        if out is None:
            out = found
        else:
            out = out if isinstance(out, tuple) else (out,)
            for place, x in zip(out, found, strict=True):
                place[...] = x
        return out[0] if len(out) == 1 else out
