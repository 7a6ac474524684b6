"""What ``Kernel.general`` calls for arrays that are not NumPy's."""

from kinetree.arrays.kinds import common, kind_of, module_of
from kinetree.codegen.runtime import kernel as runtime
from kinetree.errors import ArrayKindError

__all__ = ["call"]


def call(kernel, arrays, out=None):
    """The results of a kernel for arrays of another library, of their kind; else NotImplemented."""
    if out is None and len({type(a) for a in arrays}) == 1:  # as most calls are
        kind = kind_of(arrays[0])
    else:
        kind = common(kernel.name, kernel.inputs, arrays)
    if kind is None:
        return NotImplemented
    if out is not None:
        raise ArrayKindError(f"{kernel.name}: out= takes NumPy arrays, with NumPy arrays as inputs")
    results = module_of(kind).call(kernel, arrays)
    return results[0] if len(kernel.outputs) == 1 else tuple(results)


runtime.foreign_call = call
