"""Tracing and simplifying as two steps: first record everything, then simplify — RBDA Fig. 10.6.

kinetree's own traces simplify as they go. This records an algorithm word for word instead, every
``0 * x`` of it, so that what the rules save can be measured, listed and explained:

    recording = Recording()
    v = recording.array("v", (3,))
    tau = cross(v, I @ v) @ s                  # 29 operations
    graph, roots = recording.simplify([tau])  # 5 operations

The two steps may be two programs with a file between them: ``recording.write(path, tau)`` and
``Recording.read(path)``. The file is text, UTF-8, one statement a line and one assignment to every
variable, numbered in the order of execution; the last line names the results. After ``#`` comes a
comment. With ``k`` the number of a statement, and ``a``, ``b``, ``c`` those of earlier ones:

    tk = 0.1                       a constant, with as many digits as it takes to be exact
    tk = v[0]                      an entry of an input; I[0, 2] of a matrix, t[] of a number
    tk = ta * tb                   one of + - * / < <= == and or
    tk = sin(ta)                   one of neg not abs sqrt sin cos exp log tanh floor
    tk = atan2(ta, tb)             angle of the point (tb, ta)
    tk = select(ta, tb, tc)        tb where the condition ta holds, else tc
    return ta, tb                  the results, flattened; the last line
"""

import re
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import LoadError, UnknownNameError
from kinetree.expr.counting import OperationCount, count_operations
from kinetree.expr.elementary import Elementary
from kinetree.expr.forward import substitute
from kinetree.expr.node import OPERATIONS, Graph
from kinetree.expr.refusals import NotTraceable
from kinetree.files import read_bounded, write_text

_MOST_BYTES = 64 * 2**20  # of a file


class Recording:
    """Everything an algorithm does, in order: nothing shared, nothing left out.

    Attributes:
        nodes: as in ``Graph``, but one for every operation, however often it is repeated.
    """

    def __init__(self):
        self.nodes = []

    def add(self, *node):
        """Append a node to the recording; returns its number."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def array(self, name, shape):
        """Array of recorded input symbols with a name and shape."""
        symbols = np.empty(shape, dtype=object)
        for index in np.ndindex(shape):
            symbols[index] = RecordedNumber(self, self.add("input", name, index))
        return symbols

    def number(self, x):
        """Node number of a recorded number, or of a new constant."""
        return x.i if isinstance(x, RecordedNumber) else self.add("const", float(x))

    @property
    def operations(self) -> int:
        """Number of recorded operations, inputs and constants excluded."""
        return sum(node[0] not in ("const", "input") for node in self.nodes)

    def simplify(self, results):
        """Simplified expression graph of the recording, and its roots for ``results``."""
        graph = Graph()
        return graph, substitute(self, [self.number(x) for x in np.ravel(results)], {}, graph)

    # --- a file of statements -----------------------------------------------------------------

    def write(self, path: str | PathLike, results: Any) -> None:
        """Write all statements and the results to a text file."""
        roots = [self.number(x) for x in np.ravel(results)]
        lines = [f"t{i} = {_statement(node)}" for i, node in enumerate(self.nodes)]
        lines.append(("return " + ", ".join(f"t{i}" for i in roots)).rstrip())
        write_text(path, "\n".join(lines) + "\n")

    @classmethod
    def read(cls, path: str | PathLike) -> "tuple[Recording, np.ndarray]":
        """Recording and its results from a file of ``write``.

        Raises:
            LoadError: names the line that is not a statement of the format.
        """
        try:
            written = read_bounded(path, _MOST_BYTES).decode()
        except UnicodeDecodeError as error:
            raise LoadError(f"{path}: this is not text in UTF-8: {error}") from None
        recording, results = cls(), None
        for number, text in enumerate(written.split("\n"), start=1):
            line = text.partition("#")[0].strip()
            if not line:
                continue
            node = None if results is not None else _parse(line, len(recording.nodes))
            if node is None:
                expected = f"'t{len(recording.nodes)} = ...'"
                raise LoadError(
                    f"{path}, line {number}: expected the statement {expected} of earlier ones, "
                    f"or 'return ...' as the last line; got {line!r}"
                )
            if node[0] == "return":
                results = [RecordedNumber(recording, i) for i in node[1:]]
            else:
                recording.add(*node)
        if results is None:
            raise LoadError(f"{path}: the last line, 'return ...' with the results, is missing")
        return recording, np.array(results, dtype=object)


def _either_way(op):
    """Methods of a binary operator and its reflection that record the operation."""

    def operation(self, a, b):
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return NotImplemented
        if any(hasattr(x, "__array_ufunc__") and x.__array_ufunc__ is None for x in (a, b)):
            return NotImplemented  # a spatial vector, which knows what to do
        return self._record(op, a, b)

    return (lambda a, b: operation(a, a, b)), (lambda b, a: operation(b, a, b))


class RecordedNumber(Elementary, NotTraceable):
    """A number that records what is done to it."""

    __slots__ = ("i", "recording")

    def __init__(self, recording, i):
        self.recording, self.i = recording, i

    def _record(self, op, *operands):
        """New recorded number for an operation on this recording."""
        numbers = [self.recording.number(x) for x in operands]
        return RecordedNumber(self.recording, self.recording.add(op, *numbers))

    __add__, __radd__ = _either_way("+")
    __sub__, __rsub__ = _either_way("-")
    __mul__, __rmul__ = _either_way("*")
    __truediv__, __rtruediv__ = _either_way("/")
    __lt__, __gt__ = _either_way("<")

    def _unary(self, op):
        """New recorded number for an operation with one operand."""
        return self._record(op, self)

    def __neg__(self):
        return self._unary("neg")

    def stop_gradient(self):
        """The number itself, since recordings have no derivatives."""
        return self

    def arctan2(self, x):
        """Recorded angle of the point ``(x, self)``, for NumPy's ``arctan2``."""
        return self._record("atan2", self, x)

    def atan2(self, y, x):
        """Recorded angle of the point ``(x, y)``."""
        return self._record("atan2", y, x)

    def select(self, a, b):
        """Recorded choice: ``a`` where this condition holds, else ``b``."""
        return self._record("select", self, a, b)

    def check_pivot(self, scale, message):
        """The number itself, since checks are not recorded."""
        return self


_INFIX = ("+", "-", "*", "/", "<", "<=", "==", "and", "or")
_CALLS = ("neg", "not", "abs", "sqrt", "sin", "cos", "exp", "log", "tanh", "floor", "held",
          "atan2", "select")  # fmt: skip


def _statement(node):
    """Python source text of a recorded operation."""
    op, *operands = node
    if op == "const":
        return repr(float(operands[0]))
    if op == "input":
        name, index = operands
        if not str(name).isidentifier():
            raise UnknownNameError(f"inputs in a file need names such as 'qd', got {name!r}")
        return f"{name}[{', '.join(map(str, index))}]"
    names = [f"t{i}" for i in operands]
    return f" {op} ".join(names) if op in _INFIX else f"{op}({', '.join(names)})"


def _parse(line, count):
    """Node of a statement of a recording's file; None for anything else."""
    if line == "return" or line.startswith("return "):
        operands = _operands(line.removeprefix("return"), count)
        return None if operands is None else ("return", *operands)
    head, _, text = line.partition(" = ")
    if head != f"t{count}":
        return None
    if found := re.fullmatch(r"([^\W\d]\w*)\[([\d, ]*)\]", text):
        index = [i.strip() for i in found[2].split(",")] if found[2].strip() else []
        valid = all(i.isdigit() for i in index)
        return ("input", found[1], tuple(int(i) for i in index)) if valid else None
    if found := re.fullmatch(r"(t\d+) (\S+) (t\d+)", text):
        op, arguments, allowed = found[2], f"{found[1]}, {found[3]}", _INFIX
    elif found := re.fullmatch(r"(\w+)\((.*)\)", text):
        op, arguments, allowed = found[1], found[2], _CALLS
    else:
        try:
            return "const", float(text)
        except ValueError:
            return None
    operands = _operands(arguments, count) if op in allowed else None
    return (op, *operands) if operands is not None and len(operands) == OPERATIONS[op] else None


def _operands(text, count):
    """Operand numbers from text such as "t1, t2"; None unless all are earlier statements."""
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    if not all(re.fullmatch(r"t\d+", name) and int(name[1:]) < count for name in names):
        return None
    return [int(name[1:]) for name in names]


class SimplificationSavings(NamedTuple):
    """Savings by simplification: RBDA §10.4 reports factors from near 1 to 10."""

    recorded: int
    """Operations of the algorithm as it is written."""
    simplified: OperationCount
    """What is left of them."""

    @property
    def factor(self) -> float:
        """Ratio of recorded operations to those left after simplification."""
        after = self.simplified
        left = after.total + after.trigonometric + after.exponentials + after.sign_changes
        return self.recorded / left if left else float("inf")


def savings(function, inputs):
    """Numbers of operations of a function of arrays, before and after symbolic simplification.

    Args:
        function: takes one array per input and returns an array or number.
        inputs: the name and shape of each, as pairs.
    """
    recording = Recording()
    result = function(*(recording.array(name, shape) for name, shape in inputs))
    graph, roots = recording.simplify(result)
    return SimplificationSavings(recording.operations, count_operations(graph, roots))
