"""Procedures inside traced programs: a call of one is a node, like calls of other kernels.

    (after, L), = routine(step, {"nv": 3, "up": up}, {"v": v}, {"after": (3,), "L": (9,)}, work=12)

Arguments that are plain numbers are constants of the code; results are new arrays. So far programs
with routines are rendered as CUDA C only, and interpreted.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.codegen.procedures.language import FLOAT, INT, ArrayType
from kinetree.codegen.program import Argument
from kinetree.expr.calls import call
from kinetree.expr.node import Expr

STEP = "_step"
"""Ends the names of arguments that say how far apart the numbers of an array are, as in
``pose_step``; without one they are next to each other."""
LIVE = "live"
"""An argument of procedures for worlds in lockstep: 1, or 0 for one that is masked out."""
COST = 100_000
"""Operations of a routine, about: how many depends on values."""


class Routine:
    """A procedure with some of its arguments given; what ``expr.calls`` calls.

    Args:
        procedure: takes its arguments by these names, arrays being flat or of their declared shape.
        given: numbers and arrays that are constant, by name.
        inputs: shapes of the arrays that a call gives, by name.
        results: shapes of the arrays that the procedure fills, by name.
        work: numbers of the array ``work``, which the procedure may use as it likes; 0 for none.

    Attributes:
        inputs, outputs: ``Argument``s.
    """

    constants: Mapping[int, float] = {}
    cost = COST

    def __init__(self, procedure, given, inputs, results, work=0):
        self.procedure, self.given, self.work = procedure, given, work
        self.name = procedure.name
        self.inputs = tuple(Argument(n, tuple(s)) for n, s in inputs.items())
        self.outputs = tuple(Argument(n, tuple(s)) for n, s in results.items())

    def __repr__(self):
        return f"<routine {self.name}>"

    @cached_property
    def places(self) -> list[tuple[str, Any]]:
        """Names and types of the procedure's arguments, in order."""
        known = {*self.given, *(a.name for a in (*self.inputs, *self.outputs))}
        known |= {"work"} if self.work else set()
        named = [name for name, _ in self.procedure.arguments]
        known |= {LIVE, *(f"{name}{STEP}" for name in known)} & set(named)
        several = [*self.given, *(a.name for a in (*self.inputs, *self.outputs))]
        twice = {name for name in several if several.count(name) > 1}
        if known != set(named) or twice:
            wrong = ", ".join(sorted(known ^ set(named) | twice))
            raise TypeError(f"arguments of {self.procedure!r} and of its routine differ: {wrong}")
        return self.procedure.arguments

    def has_step(self, name: str) -> bool:
        """Whether numbers of an array may be apart."""
        return any(argument == f"{name}{STEP}" for argument, _ in self.procedure.arguments)

    def table(self, name: str, kind) -> np.ndarray:
        """A constant array, as its type wants it."""
        array = np.ascontiguousarray(self.given[name], dtype=kind.dtype)
        return array.reshape([-1 if d is None else d for d in kind.dims])

    def reference(self, arrays):
        """Results for arrays with any batch axes: the meaning, by the machine code of the CPU."""
        given = [np.asarray(a, float) for a in arrays]
        leads = [a.shape[: a.ndim - len(i.shape)] for a, i in zip(given, self.inputs, strict=True)]
        batch = np.broadcast_shapes(*leads)
        full = {
            i.name: np.broadcast_to(a, (*batch, *i.shape))
            for a, i in zip(given, self.inputs, strict=True)
        }
        found = {o.name: np.zeros((*batch, *o.shape)) for o in self.outputs}
        for index in np.ndindex(batch):
            one = {n: a[index] for n, a in full.items()}
            out = {o.name: np.zeros(o.shape) for o in self.outputs}
            self.procedure(*(self._argument(n, kind, one, out) for n, kind in self.places))
            for n, a in out.items():
                found[n][index] = a
        return tuple(found.values())

    def _argument(self, name, kind, inputs, outputs):
        if name == LIVE or name.endswith(STEP):
            return 1
        if not isinstance(kind, ArrayType):
            return {FLOAT: float, INT: int}[kind](self.given[name])
        if name in self.given:
            return self.table(name, kind)
        if name == "work" and self.work:
            return np.zeros(self.work)
        shape = [-1 if d is None else d for d in kind.dims]
        if name in outputs:
            return outputs[name].reshape(shape)
        return np.array(inputs[name], float, order="C").reshape(shape)  # it may be overwritten


def routine(procedure, given, arguments, results, work=0) -> tuple[Any, ...]:
    """Results of a procedure for arrays of numbers or of traced numbers; see ``Routine``.

    Args:
        procedure: what to call.
        given: sizes and tables, by name.
        arguments: arrays by name.
        results: shapes of the results by name.
        work: numbers of its workspace.
    """
    arrays = {n: np.asarray(a) for n, a in arguments.items()}
    traced = {n: a for n, a in arrays.items() if _graph(a) is not None}
    constant = {n: a.astype(float) for n, a in arrays.items() if n not in traced}
    shapes = {n: a.shape for n, a in traced.items()}
    made = Routine(procedure, {**given, **constant}, shapes, results, work)
    if not traced:
        return made.reference([])
    graph = _graph(next(iter(traced.values())))
    return call(graph, made, list(traced.values()))


def _graph(array):
    """The graph of the traced numbers of an array, or None."""
    if array.dtype != object:
        return None
    return next((x.graph for x in array.ravel() if isinstance(x, Expr)), None)
