"""Functions made from functions: what derivatives and products with them have in common.

They are called like the function that they are made from, are compiled for a model when they are
first called, and can be differentiated, compiled and called inside kernels like any other.
``Variables`` of a derivative are symbols, with the directions in which they can move.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.errors import ShapeError, UnknownNameError
from kinetree.expr.forward import substitute
from kinetree.expr.node import Expr, Graph
from kinetree.functional.parameters import DYNAMICS, is_parameter, parameter, with_parameters
from kinetree.functional.prepare import bind, prepare, require_traceable
from kinetree.model.define import is_public


def tangent_shape(call, name):
    """Shape of the tangent space of a call's array or a model parameter."""
    if name in call.arrays:
        return (call.model.nv,) if _is_configuration(call, name) else call.shapes[name]
    return parameter(call.model, name).tangent


def _is_configuration(call, name):
    """Whether an argument is the configuration ``q`` of the model."""
    return name == "q" and call.model is not None and call.shapes[name] == (call.model.nq,)


class Variables:
    """The independent variables of a derivative, as symbols.

    Attributes:
        graph: the graph they are symbols of.
        model: the model, with symbols in place of its parameters.
        arrays: the arrays of the call, with symbols.
        directions: for each name its tangent directions, as dicts from node to rate.
    """

    def __init__(self, call, model, arrays, names):
        self.graph = _graph([*arrays, *_numbers(model)])
        self.values, self.directions = {}, {}
        self.arrays, changes = list(arrays), {}
        for name in names:
            if name in call.arrays:
                place = list(call.arrays).index(name)
                symbols = self.arrays[place] = self._symbols(name, self.arrays[place])
                rates = (
                    _configuration_rates(model, symbols)
                    if _is_configuration(call, name)
                    else np.eye(symbols.size, dtype=int).reshape(*symbols.shape, symbols.size)
                )
            else:
                p = parameter(model, name)
                symbols = changes[name] = self._symbols(name, p.value(model))
                rates = p.rates(symbols)
            self.directions[name] = [
                {x.i: rate for x, rate in zip(symbols.ravel(), column.ravel(), strict=True)}
                for column in np.moveaxis(rates, -1, 0)
            ]
        self.model = with_parameters(model, changes)

    def _symbols(self, name, values):
        """Array of distinct input symbols: the array itself, or new inputs for its entries."""
        values = np.asarray(values, dtype=object)
        nodes = {x.i for x in values.ravel() if isinstance(x, Expr) and self._is_input(x)}
        if len(nodes) == values.size:
            return values
        symbols = np.empty(values.shape, dtype=object)
        for index, value in np.ndenumerate(values):
            symbol = self.graph.input(f"{name} of trace {len(self.graph.nodes)}", index)
            self.values[symbol.i] = self.graph.number(value)
            symbols[index] = symbol
        return symbols

    def _is_input(self, x):
        """Whether a traced number is an input of the graph itself."""
        return x.graph is self.graph and self.graph.nodes[x.i][0] == "input"

    def restore(self, array):
        """Expressions with temporary symbols replaced by the values they stand for."""
        if not self.values:
            return array
        graph = self.graph
        checks = [c[0] for c in graph.checks]
        roots = [graph.number(x) for x in array.ravel()]
        found = substitute(graph, [*roots, *checks], self.values)
        kept = zip(found[len(roots) :], graph.checks, strict=True)
        graph.checks[:] = [(i, *check[1:]) for i, check in kept if graph.nodes[i][0] != "const"]
        result = np.empty(len(roots), dtype=object)
        result[:] = [graph.expr(i) for i in found[: len(roots)]]
        return result.reshape(array.shape)


def _numbers(model):
    """Arrays of a model that may hold traced numbers."""
    if model is None or model.scalar_type().kind != "O":
        return ()
    bodies = model.bodies
    placements = [x for b in bodies for x in (b.placement.E, b.placement.r)]
    values = [getattr(b.dynamics, name) for b in bodies if b.dynamics for name in DYNAMICS]
    return [model.gravity, *placements, *(b.inertia.parameters() for b in bodies), *values]


def _graph(arrays):
    """Graph of the first traced number in some arrays, or a new one."""
    for array in arrays:
        for x in np.asarray(array).ravel():
            if isinstance(x, Expr):
                return x.graph
    return Graph()


def _configuration_rates(model, q):
    """Derivatives of ``q`` for unit velocities, (nq, nv)."""
    rates = np.zeros((model.nq, model.nv), dtype=object)
    for i in range(1, model.body_count + 1):
        at = model.q_slice[i]
        rates[at, model.v_slice[i]] = model.joint[i].rate_matrix(q[at])
    return rates


@dataclass(frozen=True)
class NameGroup:
    """Several names whose tangent spaces stand side by side in one axis."""

    names: tuple


def with_group(wrt, name, group):
    """Variables ``wrt`` with a group of names in place of one name."""
    if isinstance(wrt, (tuple, list)):
        return tuple(NameGroup(group) if w == name else w for w in wrt)
    return NameGroup(group) if wrt == name else wrt


def checked_wrt(function, wrt, what):
    """Variables ``wrt`` as a name or tuple of names; TypeError for anything else."""
    require_traceable(function, what)
    if isinstance(wrt, (str, tuple, list, NameGroup)):
        names = with_group(wrt, "parameters", ("inertia",))
        if names and all(map(_is_name, names if isinstance(names, tuple) else (names,))):
            return names
    raise TypeError(f"wrt must be the name of an argument or a tuple of names, got {wrt!r}")


def _is_name(w):
    """Whether an entry of ``wrt`` is a name or a group of names."""
    return isinstance(w, NameGroup) or (isinstance(w, str) and bool(w))


_KEPT = "_kept_by_kinetree"


def kept_with(function, key, make) -> Any:
    """Result of ``make()``, cached with the function under a key.

    Functions of users have no other table: that would keep them, their code and all that they
    refer to. Who copies the attributes of a function, as ``functools.wraps`` does, has the same
    table, so that keys say whose they are; what is kept refers to that function.
    """
    known = vars(function).setdefault(_KEPT, {})
    found = known.get((id(function), key))
    return known.setdefault((id(function), key), make()) if found is None else found


def takes_states(function, call, count):
    """Whether a call with this many positional arguments passes only states and forces."""
    while isinstance(function, Transformed):
        function = function.function
    return (
        is_public(function)
        and tuple(call.arrays) == tuple(call.signature.parameters)[1 : count + 1]
        and set(call.arrays) <= {"q", "qd", "qdd", "tau"}
    )


class Transformed(ABC):
    """Something made from ``function`` with respect to ``wrt``, a name or a tuple of names."""

    kind = "function"

    def __init__(self, function, wrt):
        self.function, self.wrt = function, wrt
        self.__name__ = f"{self.kind} of {getattr(function, '__name__', function)}"
        self._kernels = {}

    def __getstate__(self):
        """Everything but compiled code, which does not travel."""
        return {**self.__dict__, "_kernels": {}, _KEPT: {}}

    def __repr__(self):
        return f"<kinetree {self.__name__} with respect to {self.wrt!r}>"

    def __call__(self, model=None, *arrays, **options) -> Any:
        """The result for the arguments that the function takes."""
        return self._general((model, *arrays) if model is not None else (), options)

    def _general(self, args, options):
        """Call with arguments of any kind: arrays of other libraries, traced ones, ``out``."""
        out = options.pop("out", None)
        call = self.bind(*args, **options)
        if call.model is not None and call.model.scalar_type().kind == "O":
            return self._inside_a_trace(call)
        prepared = self.prepare_call(call)
        count, model = len(args) - 1, call.model
        if model is not None and out is None and self.is_plain(call, count, options):
            model.memo[self] = count, prepared.kernel if prepared.plain else prepared
        return prepared.call(*call.arrays.values(), out=out)

    @abstractmethod
    def is_plain(self, call, count, options) -> bool:
        """Whether all calls of this form pass the same plain arrays and no other arguments."""

    def prepare_call(self, call):
        """Compiled form for a call's model, options and shapes."""
        kernels = self._kernels if call.model is None else call.model.memo
        prepared = kernels.get((self, call.key))
        if prepared is None:
            prepared = kernels[self, call.key] = prepare(self, call)
        return prepared

    def _inside_a_trace(self, call):
        """Result for a model with traced numbers, within the trace that made it."""
        if any(a.shape != call.shapes[name] for name, a in call.arrays.items()):
            shapes = ", ".join(f"{name} {a.shape}" for name, a in call.arrays.items())
            raise ShapeError(
                f"{self.__name__}: inside a traced function, arrays have no batch axes and the "
                f"shapes {call.shapes}; got {shapes}"
            )
        arrays = list(call.arrays.values())
        recursive = min(self.recursion_count(call), 1)
        return self.trace_sample(call, call.model, arrays, recursive)

    def bind(self, *args, **options):
        """Arguments of a call sorted into model, arrays and options, as for the function."""
        call = bind(self.function, args, options)
        for name in self.names():
            if name not in call.arrays and not (call.model is not None and is_parameter(name)):
                known = [*call.arrays, *(["parameters of the model"] if call.model else [])]
                raise UnknownNameError(
                    f"{call.name} is not called with an array {name!r} here, so it has no "
                    f"derivative with respect to it; it has with respect to {', '.join(known)}"
                )
        return call

    def inside(self, call, arrays):
        """Function with the call and arrays that it receives from this call."""
        return self.function, call, arrays

    def description(self, of):
        """Key that identifies the derivative in every process, or None."""
        inner = of(self.function)
        if inner is None:
            return None
        entries = tuple(e.names if isinstance(e, NameGroup) else e for e in self.entries())
        return self.kind, inner, entries, isinstance(self.wrt, tuple)

    # --- with respect to what ------------------------------------------------------------------

    def entries(self):
        """Entries of ``wrt``: names and groups."""
        return self.wrt if isinstance(self.wrt, tuple) else (self.wrt,)

    def names(self):
        """Names of all variables, those in groups one by one."""
        for entry in self.entries():
            yield from entry.names if isinstance(entry, NameGroup) else (entry,)

    def pack(self, parts):
        """Tuple of parts for the entries of ``wrt``; the only one if ``wrt`` is a name."""
        return tuple(parts) if isinstance(self.wrt, tuple) else parts[0]

    def tangent(self, call, entry):
        """Shape of the tangent space of an entry of ``wrt``."""
        if not isinstance(entry, NameGroup):
            return tangent_shape(call, entry)
        sizes = [np.prod(tangent_shape(call, name), dtype=int) for name in entry.names]
        return (int(sum(sizes)),)

    # --- what the kinds do -----------------------------------------------------------------------

    def recursion_count(self, call) -> int:
        """Number of recursive algorithms for the innermost derivative."""
        function, call, _ = self.inside(call, ())
        return function.recursion_count(call) if hasattr(function, "trace_sample") else 0

    def estimated_cost(self, call) -> float:
        """Estimated number of operations without recursions; 0 if unknown."""
        return 0.0

    @abstractmethod
    def result_form(self, call):
        """Shapes of the result without running the function; None if it must be run."""

    @abstractmethod
    def trace_sample(self, call, model, arrays, recursive=0):
        """Result for one traced sample, of a model with any kind of numbers.

        ``recursive`` is the number of the recursion to use, counted from 1, or 0 for none.
        """
