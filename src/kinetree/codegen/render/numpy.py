"""A program as Python source that computes with NumPy: to read, and to check others against."""

import linecache
from itertools import count

import numpy as np

from kinetree.codegen.render.cstyle import Language, assignments, identifier


class _NumPy(Language):
    inputs_have_names = True
    calls = {
        "sqrt": "np.sqrt({})", "sin": "np.sin({})", "cos": "np.cos({})", "abs": "np.abs({})",
        "exp": "np.exp({})", "log": "np.log({})", "tanh": "np.tanh({})",
        "floor": "np.floor({})", "held": "({})",
        "atan2": "np.arctan2({}, {})", "select": "np.where({}, {}, {})",
        "and": "np.logical_and({}, {})", "or": "np.logical_or({}, {})",
        "not": "np.logical_not({})",
    }  # fmt: skip

    def constant(self, x):
        """NumPy text of a constant."""
        return repr(x) if np.isfinite(x) else "np.inf" if x > 0 else "-np.inf"

    def input(self, argument, index):
        """NumPy text of an element of an argument, with batch axes."""
        return _element(argument, index)

    def output(self, argument, index, text):
        """Line that assigns an element of a result, with batch axes."""
        return [f"{_element(argument, index)} = {text}"]

    def define(self, name, text, is_condition=False):
        """Line that defines a variable."""
        return [f"{name} = {text}"]

    def require(self, text):
        """Line that checks a condition, for all samples."""
        return [f"_require({text})"]

    def loop(self, counter, times, carries, initial, body, following):
        """Lines of a loop with as many runs as the slowest sample needs."""
        # Samples that end earlier than others hold their state by themselves.
        return [
            *(f"{c} = {x}" for c, x in zip(carries, initial, strict=True)),
            f"for {counter} in range(int(np.ceil(np.max({times}, initial=0)))):",
            *(f"    {line}" for line in body),
            f"    {', '.join(carries)} = {', '.join(following)}",
        ]


def _element(argument, index):
    """Text of an element of an array with batch axes."""
    return f"{argument.name}[{', '.join(['...', *map(str, index)])}]"


def render(program, labels=None) -> str:
    """Source of a Python module whose function computes the program by NumPy, with batch axes."""
    language, name = _NumPy(), identifier(program.name)
    inputs, outputs = program.inputs, program.outputs
    body = [line for a in assignments(program, language, labels) for line in a.lines]
    names = ", ".join(a.name for a in inputs)
    leads = ", ".join(f"{a.name}.shape[:{a.name}.ndim - {len(a.shape)}]" for a in inputs)
    prepare = [f"{a.name} = np.asarray({a.name})" for a in inputs]
    prepare += [f"_batch = np.broadcast_shapes({leads})", f"_dtype = _precision({names})"]
    prepare += [f"{o.name} = np.zeros((*_batch, *{o.shape}), _dtype)" for o in outputs]
    results = ", ".join(f"{o.name}[()]" for o in outputs)
    lines = [
        f'"""{program.name}, written by kinetree: NumPy, one assignment per value."""',
        "",
        "import numpy as np",
        "",
        "",
        '@np.errstate(all="ignore")',
        f"def {name}({names}):",
        f'    """{_summary(program)}"""',
        *(f"    {line}" for line in prepare),
        "",
        *(f"    {line}" for line in body),
        f"    return {results}",
        _HELPERS,
    ]
    return "\n".join(lines)


_HELPERS = """

def _precision(*arrays):
    return np.float32 if all(a.dtype == np.float32 for a in arrays) else np.float64


def _require(condition):
    if not np.all(condition):
        raise ValueError(
            "a check failed: a quaternion that does not have unit length, or a matrix that "
            "cannot be inverted safely"
        )
"""


def _summary(program):
    """Line that lists results and inputs with their shapes."""

    def shapes(arguments):
        return ", ".join(f"{a.name} ({', '.join(['...', *map(str, a.shape)])})" for a in arguments)

    return f"{shapes(program.outputs)} from {shapes(program.inputs)}."


_serial = count()


def function(program, labels=None):
    """Compile the NumPy listing of a program to a Python function with readable tracebacks."""
    source, filename = render(program, labels), f"<kinetree {program.name} {next(_serial)}>"
    namespace: dict = {"__name__": "kinetree.listing"}
    exec(compile(source, filename, "exec"), namespace)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    result = namespace[identifier(program.name)]
    result.source = source
    return result
