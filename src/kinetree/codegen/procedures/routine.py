"""Procedures inside traced programs: a call of one is a node, like calls of other kernels.

    (after, L), = routine(step, {"nv": 3, "up": up}, {"v": v}, {"after": (3,), "L": (9,)}, work=12)

Arguments that are plain numbers are constants of the code; results are new arrays. So far programs
with routines are rendered as CUDA C only, and interpreted.
"""

import ast
import copy
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.codegen.procedures.language import FLOAT, INT, ArrayType, is_record
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
            Of a record that is not given, fields take their place.
        given: numbers and arrays that are constant, by name.
        inputs: shapes of the arrays that a call gives, by name.
        results: shapes of the arrays that the procedure fills, by name.
        work: numbers of the array ``work``, which the procedure may use as it likes; or of several
            such arrays, by name.
        own: records that every lane has for itself, by name; what they contain is not passed on.
        shared: names of their arrays that are tables, which all lanes read.
        lanes: of a GPU that take a sample; 0 for as many as usual.

    Attributes:
        inputs, outputs: ``Argument``s.
    """

    constants: Mapping[int, float] = {}
    cost = COST

    def __init__(self, procedure, given, inputs, results, work=0, own=None, shared=(), lanes=0):
        self.procedure, self.given, self.lanes = procedure, given, lanes
        self.rooms = dict(work) if isinstance(work, Mapping) else {"work": work} if work else {}
        self.shared = tuple(shared)
        self.own = dict(own or {})
        self.name = procedure.name
        self.inputs = tuple(Argument(n, tuple(s)) for n, s in inputs.items())
        self.outputs = tuple(Argument(n, tuple(s)) for n, s in results.items())

    def __repr__(self):
        return f"<routine {self.name}>"

    @cached_property
    def places(self) -> dict[str, Any]:
        """Arguments that the procedure needs, by name, with types; TypeError for others."""
        wanted = wanted_by(self.procedure, {*self.given, *self.own})
        several = [*self.given, *self.own, *(a.name for a in (*self.inputs, *self.outputs))]
        known = {*several, *self.rooms}
        known |= {LIVE, *(f"{name}{STEP}" for name in known)} & set(wanted)
        twice = {name for name in several if several.count(name) > 1}
        if known != set(wanted) or twice:
            wrong = ", ".join(sorted(known ^ set(wanted) | twice))
            raise TypeError(f"arguments of {self.procedure!r} and of its routine differ: {wrong}")
        return wanted

    @property
    def work(self) -> int:
        """Size of the routine's workspace [numbers]."""
        return sum(self.rooms.values())

    def room_before(self, name: str) -> int:
        """Offset of an array in the routine's workspace [numbers]."""
        names = list(self.rooms)
        return sum(self.rooms[n] for n in names[: names.index(name)])

    @property
    def bound(self) -> dict[str, Any]:
        """Record arguments whose fields are the routine's arrays, with their classes, by name."""
        arguments, known = self.procedure.arguments, {*self.given, *self.own}
        return {n: kind for n, kind in arguments if is_record(kind) and n not in known}

    def has_step(self, name: str) -> bool:
        """Whether an array's numbers may have a stride, which is an argument of the procedure."""
        return f"{name}{STEP}" in self.places

    def record(self, name: str) -> Any:
        """Record by name: given as a constant, or one that every lane has."""
        return self.own[name] if name in self.own else self.given[name]

    def own_arrays(self, name: str) -> set[str]:
        """Names of a record's arrays that every lane has for itself, not shared ones."""
        return {*self.own[name].types} - {*self.shared} if name in self.own else set()

    def table(self, name: str, kind) -> np.ndarray:
        """A constant array with the number type and shape that the procedure declares."""
        array = np.ascontiguousarray(self.given[name], dtype=kind.dtype)
        return array.reshape([-1 if d is None else d for d in kind.dims])

    def reference(self, arrays):
        """Results for arrays with any batch axes, by the CPU's machine code of the procedure."""
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
            has = {n: self._argument(n, kind, one, out) for n, kind in self.places.items()}
            for n, kind in self.bound.items():
                has[n] = kind(**{field: has[field] for field in kind.types if field in has})
            self.procedure(*(has[n] for n, _ in self.procedure.arguments))
            for n, a in out.items():
                found[n][index] = a
        return tuple(found.values())

    def _argument(self, name, kind, inputs, outputs):
        """Argument of the procedure for one sample when the routine runs on the CPU."""
        if name == LIVE or name.endswith(STEP):
            return 1
        if is_record(kind):
            return copy.deepcopy(self.record(name))
        if not isinstance(kind, ArrayType):
            return {FLOAT: float, INT: int}[kind](self.given[name])
        if name in self.given:
            return self.table(name, kind)
        shape = [-1 if d is None else d for d in kind.dims]
        if name in self.rooms:
            return np.zeros(self.rooms[name], kind.dtype).reshape(shape)
        if name in outputs:
            return outputs[name].reshape(shape)
        return np.array(inputs[name], float, order="C").reshape(shape)  # it may be overwritten


def wanted_by(procedure, known) -> dict[str, Any]:
    """Arguments that a procedure needs, by name; for records not given, the fields it uses.

    Args:
        procedure: takes numbers, arrays and records.
        known: names of records that are given. Of others, what they want are the fields that the
            procedure, or one that it calls, reads or writes.
    """
    wanted = {}
    for name, kind in procedure.arguments:
        if not is_record(kind) or name in known:
            wanted[name] = kind
            continue
        for p in procedure.reached:
            own = {n for n, its in p.arguments if its is kind}
            for node in ast.walk(p.tree):
                if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) in own:
                    wanted[node.attr] = kind.types[node.attr]
    return wanted


def routine(
    procedure, given, arguments, results, work=0, own=None, shared=(), lanes=0
) -> tuple[Any, ...]:
    """Call a procedure on arrays of numbers, or trace the call for symbolic arrays; its results.

    Args:
        procedure: what to call.
        given: sizes and tables, by name.
        arguments: arrays by name.
        results: shapes of the results by name.
        work: numbers of its workspace, or of its arrays by name.
        own: records that every lane has for itself, by name.
        shared: names of their arrays that are tables.
        lanes: of a GPU that take a sample; 0 for as many as usual.
    """
    arrays = {n: np.asarray(a) for n, a in arguments.items()}
    traced = {n: a for n, a in arrays.items() if _graph(a) is not None}
    constant = {n: a.astype(float) for n, a in arrays.items() if n not in traced}
    shapes = {n: a.shape for n, a in traced.items()}
    made = Routine(procedure, {**given, **constant}, shapes, results, work, own, shared, lanes)
    if not traced:
        return made.reference([])
    graph = _graph(next(iter(traced.values())))
    return call(graph, made, list(traced.values()))


def _graph(array):
    """Graph that the traced numbers of an array belong to, or None."""
    if array.dtype != object:
        return None
    return next((x.graph for x in array.ravel() if isinstance(x, Expr)), None)
