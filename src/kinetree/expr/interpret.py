"""Meaning of every operation of the graph: the reference for all compiled code.

``evaluate`` computes nodes of a graph from arrays, one operation at a time, in the arithmetic of
the arrays: float64, float32, longdouble, complex (for complex-step derivatives: comparisons look at
real parts), or object arrays of numbers with exact or multi-precision arithmetic. All samples go
together: inputs may have leading batch axes, which broadcast.
"""

import operator
from typing import Any

import numpy as np

from kinetree.errors import ShapeError
from kinetree.expr.calls import call_values
from kinetree.expr.node import CONDITIONS, OPERATIONS
from kinetree.expr.repeat import by_scope, loop_of


def _real(x):
    """Real part of a number of any kind."""
    return x.real if np.iscomplexobj(x) else x


def _absolute(x):
    """Absolute value; for complex numbers with the sign of the real part."""
    return np.where(x.real < 0, -x, x) if np.iscomplexobj(x) else np.abs(x)


def _atan2(y, x):
    """Angle of the point (x, y), which carries complex steps through."""
    if not (np.iscomplexobj(y) or np.iscomplexobj(x)):
        return np.arctan2(y, x)
    a, b = np.real(y), np.real(x)
    rate = (b * np.imag(y) - a * np.imag(x)) / (a * a + b * b)
    return np.arctan2(a, b) + 1j * rate


MEANING = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "abs": _absolute,
    "floor": lambda x: np.floor(_real(x)),
    "held": _real,
    "atan2": _atan2,  # in (-π, π]
    "<": lambda a, b: np.less(_real(a), _real(b)),
    "<=": lambda a, b: np.less_equal(_real(a), _real(b)),
    "==": lambda a, b: np.equal(_real(a), _real(b)),
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "select": np.where,  # both values are computed; the one not chosen may be anything
}
"""Operation: function of arrays. Every result is rounded once, to nearest."""


def _select(condition, a, b):
    """One of two numbers by a condition, elementwise for arrays."""
    if isinstance(condition, np.bool_):
        return a if condition else b
    return np.where(condition, a, b)


_OF_FLOATS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "neg": operator.neg,
    "held": lambda x: x.real,
    "<": lambda a, b: a.real < b.real,
    "<=": lambda a, b: a.real <= b.real,
    "==": lambda a, b: a.real == b.real,
    "select": _select,
}
"""Operations on NumPy's floats and complex numbers, single ones or arrays: functions of arrays
take many times as long for single ones."""


def evaluate(graph, roots, inputs, functions=None, axes=None):
    """Values of graph nodes, interpreted one by one: the reference meaning of operations.

    Args:
        graph: the expressions.
        roots: node numbers.
        inputs: array of each input by name, its leading axes being batches.
        functions: a module with ``sin``, ``cos``, ``sqrt``, ``exp``, ``log``, ``tanh`` and
            ``atan2`` for numbers that NumPy does not know, such as ``mpmath``.
        axes: how many axes of each input belong to one sample, where the graph need not tell: it
            does not know inputs on which nothing depends.

    Returns:
        List of one array per root, in the shape of the batch.
    """
    inputs = {name: np.asarray(x) for name, x in inputs.items()}
    order = graph.reachable(roots)
    batch = _batch(graph, order, inputs, axes)
    run = _Run(graph, order, inputs, functions)
    run.require(i for i in roots if graph.nodes[i][0] in CONDITIONS)
    with np.errstate(all="ignore"):  # the branch of a select that is not chosen may be undefined
        run.compute(None)
    run.value.update(run.required)
    return [np.broadcast_to(run.value[i], batch) for i in roots]


def _batch(graph, order, inputs, axes):
    """Batch shape of the inputs."""
    nodes = graph.nodes
    rank = {nodes[i][1]: len(nodes[i][2]) for i in order if nodes[i][0] == "input"}
    missing = [name for name in rank if name not in inputs]
    if missing:
        raise ShapeError(f"the graph needs a value for its input {missing[0]!r}")
    rank = {**{n: x.ndim for n, x in inputs.items()}, **(axes or {}), **rank}
    return np.broadcast_shapes(*(x.shape[: x.ndim - rank[n]] for n, x in inputs.items()))


class _Run:
    """Values of nodes, one operation after the other.

    Attributes:
        value: by node.
        required: conditions that must hold in every run of a loop, by node.
    """

    def __init__(self, graph, order, inputs, functions):
        self.graph, self.inputs = graph, inputs
        dtype = np.result_type(*inputs.values()) if inputs else np.dtype(float)
        self.dtype = np.dtype(float) if dtype.kind in "iub" else dtype
        self.quick = self.dtype.kind in "fc"
        lifted = _lift(functions) if functions else {}
        self.meaning = MEANING | (_OF_FLOATS if self.quick else {}) | lifted
        self.scopes, self.value = by_scope(graph, order), {}
        self.required: dict[int, Any] = {}

    def require(self, conditions):
        """Record conditions that must hold."""
        self.required = dict.fromkeys(conditions, True)

    def compute(self, scope):
        """Values of the nodes of a loop, or of those outside all loops."""
        nodes, value, meaning, required = self.graph.nodes, self.value, self.meaning, self.required
        for i in self.scopes.get(scope, ()):
            node = nodes[i]
            op = node[0]
            if op not in meaning:
                value[i] = self._other(i, node)
            elif len(node) == 3:  # most have two operands
                value[i] = meaning[op](value[node[1]], value[node[2]])
            else:
                value[i] = meaning[op](*[value[a] for a in node[1:]])
            if i in required:
                required[i] = np.logical_and(required[i], value[i])

    def _other(self, i, node):
        """Value of a node that is no arithmetic operation."""
        op, value = node[0], self.value
        if op == "const":
            return node[1] if self.dtype.kind == "O" else self.dtype.type(node[1])
        if op == "input":
            x = self.inputs[node[1]][(..., *node[2])]
            return x[()] if self.quick else x
        if op == "repeat":
            return self._loop(loop_of(self.graph, i))
        if op == "callee":
            return node[1]
        if op == "call":
            return call_values(value[node[1]], [value[a] for a in node[2:]])
        if op == "result":
            return value[node[1]][int(self.graph.nodes[node[2]][1])]
        return value[node[1]][node[2]]  # "final"

    def _loop(self, it):
        """Values of a loop's carries after its last iteration."""
        value, select = self.value, self.meaning["select"]
        state, done = [value[i] for i in it.initial], 0
        while np.any(done < value[it.times]):
            value.update(zip(it.carries, state, strict=True))
            self.compute(it.number)
            active = done < value[it.times]
            following = [value[i] for i in it.next]
            state = [select(active, *pair) for pair in zip(following, state, strict=True)]
            done += 1
        return dict(zip(it.carries, state, strict=True))


def run(program, *arrays, functions=None):
    """Results of a program by interpretation, a tuple of arrays with batch axes."""
    values = _values(program, program.roots, arrays, functions)
    results, position = [], 0
    for output in program.outputs:
        size = output.size
        part = values[position : position + size]
        batch = values[0].shape if values else ()
        flat = np.stack(part, axis=-1) if part else np.empty((*batch, 0))
        results.append(flat.reshape((*batch, *output.shape)))
        position += size
    return tuple(results)


def holds(program, *arrays, functions=None):
    """Whether all run-time checks of a program hold, per sample."""
    checks = [i for i, *_ in program.checks]
    values = _values(program, (*program.roots, *checks), arrays, functions)
    good = np.ones(values[0].shape if values else (), dtype=bool)
    return np.all([good, *values[len(program.roots) :]], axis=0)


def _values(program, roots, arrays, functions):
    """Values of a program's nodes for arrays of one or many samples."""
    if len(arrays) != len(program.inputs):
        names = ", ".join(i.name for i in program.inputs)
        raise ShapeError(
            f"{program.name} takes {len(program.inputs)} arrays ({names}), got {len(arrays)}"
        )
    named = {i.name: x for i, x in zip(program.inputs, arrays, strict=True)}
    axes = {i.name: len(i.shape) for i in program.inputs}
    return evaluate(program.graph, roots, named, functions, axes)


def _lift(functions):
    """Functions of a module, applied elementwise to arrays."""
    names = ("sin", "cos", "sqrt", "exp", "log", "tanh", "atan2")
    return {name: np.frompyfunc(getattr(functions, name), OPERATIONS[name], 1) for name in names}
