"""The kernel of a public function that computes with NumPy around other kernels."""

from operator import attrgetter

from kinetree.codegen.inline import evaluated
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.model.arrays import require_unit_parts

__all__ = ["kernel_of"]


def kernel_of(function, shapes, rest):
    """A function of a model and arrays as one kernel, kept with the model.

    Args:
        function: takes the model and all arrays by name.
        shapes: for each array the shape of one sample; text in it is an attribute of the model,
            and ``"configuration"`` is (nq,) with quaternions of unit length.
        rest: all other arguments, the model among them.
    """
    model = rest["model"]
    key = (function, tuple(shapes), *((n, x) for n, x in rest.items() if n != "model"))
    if key not in model.kernels:
        model.kernels[key] = _kernel(function, shapes, rest)
    return model.kernels[key]


def _argument(model, name, shape):
    shape = ("nq",) if shape == "configuration" else shape
    sizes = (attrgetter(n)(model) if isinstance(n, str) else n for n in shape)
    return Argument(name, tuple(sizes))


def _kernel(function, shapes, rest):
    model = rest["model"]
    inputs = [_argument(model, name, shape) for name, shape in shapes.items()]

    def of_arrays(*arrays):
        return function(**dict(zip(shapes, arrays, strict=True)), **rest)

    def checked(*symbols):
        for symbol, shape in zip(symbols, shapes.values(), strict=True):
            if shape == "configuration":
                require_unit_parts(model, symbol)
        return of_arrays(*symbols)

    program = trace(checked, inputs, function.__name__)

    def validate(arrays):
        of_arrays(*arrays)  # which knows what the arrays should be

    return Kernel(
        function.__name__,
        inputs,
        program.outputs,
        lambda: program,
        reference=lambda arrays: evaluated(program, arrays),
        validate=validate,
    )
