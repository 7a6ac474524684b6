"""``differentiate``: the derivative of a function is a function, compiled like any other.

    d = kt.differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
    dtau_dq, dtau_dqd = d(m, q, qd, qdd)

Derivatives with respect to ``q`` are in the tangent space: column ``j`` is the derivative along
``model.integrate(q, t e_j)`` at ``t = 0``. So are those of derivatives: entry ``[..., j, k]`` of a
second derivative is the derivative along ``e_k`` of entry ``[..., j]`` of the first. Where the axes
of a joint do not commute (spherical, free, planar) it is not symmetric in ``j`` and ``k``.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from kinetree.codegen.program import Argument, trace
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.expr.diff import estimates, jacobian
from kinetree.functional.compiled import CompiledFunction
from kinetree.functional.derivative_recursions import recursions
from kinetree.functional.parameters import is_parameter
from kinetree.functional.prepare import (
    apply,
    bind,
    is_public,
    leaves_of,
    map_leaves,
    prepare,
    require_traceable,
    result_form,
)
from kinetree.functional.variables import Variables, tangent_shape
from kinetree.model import Model

__all__ = ["Derivative", "differentiate"]


def differentiate(function, wrt, *, order=1):
    """The derivative of a function, as a function of the same arguments.

    Args:
        function: a function of kinetree such as ``kinetree.inverse_dynamics``, a function of your
            own under ``@kinetree.kernel``, a derivative of either, or what ``kinetree.compile``
            returned.
        wrt: with respect to what: the name of an array argument; or of a parameter of the model,
            such as ``"gravity"`` or ``"inertia:link3"`` (see ``functional.parameters``); or
            ``"parameters"``, all inertias in one axis of ``10 body_count`` (of a compiled
            function: all its parameters). Or a tuple of names.
        order: how often to differentiate.

    Returns:
        A function that returns one array for a name and a tuple of arrays for a tuple of names,
        nested once for each order. Its arrays have the axes of the function's result, then one
        set of axes for each derivative: (nv,) for ``q``, the shape of the argument otherwise,
        (6,) for a placement. It takes ``out=``, an array or tuple of arrays to write to.
    """
    if isinstance(function, CompiledFunction):
        wrt = _replaced(wrt, "parameters", function.parameters)
        return function.with_function(differentiate(function.function, wrt, order=order))
    require_traceable(function, "kinetree.differentiate")
    if order not in range(1, 9):
        raise ValueError(f"order must be a whole number from 1 to 8, got {order!r}")
    wrt = _replaced(wrt, "parameters", ("inertia",))
    if not wrt or not all(map(_is_name, wrt if isinstance(wrt, tuple) else (wrt,))):
        raise TypeError(f"wrt must be the name of an argument or a tuple of names, got {wrt!r}")
    for _ in range(order):
        function = _derivative(function, wrt)
    return function


def _replaced(wrt, name, group):
    """``wrt`` with a group of names in the place of one."""
    if isinstance(wrt, (tuple, list)):
        return tuple(_Group(group) if w == name else w for w in wrt)
    return _Group(group) if wrt == name else wrt


@dataclass(frozen=True)
class _Group:
    """Several names whose derivatives stand side by side in one axis."""

    names: tuple


def _is_name(w):
    return isinstance(w, _Group) or (isinstance(w, str) and bool(w))


_SHARED = 0.4  # of the operations that are estimated, what remains after simplification; at least


@lru_cache(maxsize=1024)  # the same derivative twice is one object, with one set of kernels
def _derivative(function, wrt):
    return Derivative(function, wrt)


class Derivative:
    """The derivative of ``function`` with respect to ``wrt``, a name or a tuple of names."""

    def __init__(self, function, wrt):
        self.function, self.wrt = function, wrt
        self.__name__ = f"derivative of {getattr(function, '__name__', function)}"
        self._kernels = {}

    def __repr__(self):
        return f"<kinetree {self.__name__} with respect to {self.wrt!r}>"

    def __call__(self, model=None, *arrays, **options):
        """The derivative for the arguments that the function takes."""
        if not options and type(model) is Model:  # as in an earlier call
            known = model.kernels.get(self)
            if known is not None and known[0] == len(arrays):
                return known[1].call(*arrays)
        return self._general((model, *arrays) if model is not None else (), options)

    def _general(self, args, options):
        out = options.pop("out", None)
        call = self.bind(*args, **options)
        if call.model is not None and call.model.scalar_type().kind == "O":
            return self._inside_a_trace(call)
        kernels = self._kernels if call.model is None else call.model.kernels
        prepared = kernels.get((self, call.key))
        if prepared is None:
            prepared = kernels[self, call.key] = prepare(self, call)
        if not options and out is None and self._is_plain(call, len(args) - 1):
            kernels[self] = len(args) - 1, prepared.kernel if prepared.plain else prepared
        return prepared.call(*call.arrays.values(), out=out)

    def _inside_a_trace(self, call):
        """For a model with traced numbers, which belongs to the trace that made it."""
        if any(a.shape != call.shapes[name] for name, a in call.arrays.items()):
            shapes = ", ".join(f"{name} {a.shape}" for name, a in call.arrays.items())
            raise ShapeError(
                f"{self.__name__}: inside a traced function, arrays have no batch axes and the "
                f"shapes {call.shapes}; got {shapes}"
            )
        arrays = list(call.arrays.values())
        recursive = min(self.recursion_count(call), 1)
        return self.differentiated(call, call.model, arrays, recursive)

    def _is_plain(self, call, count):
        """Whether any call with so many positional arguments passes these arrays and no more."""
        root = self.function
        while isinstance(root, Derivative):
            root = root.function
        return (
            is_public(root)
            and tuple(call.arrays) == tuple(call.signature.parameters)[1 : count + 1]
            and set(call.arrays) <= {"q", "qd", "qdd", "tau"}
        )

    def bind(self, *args, **options):
        """The model, arrays and options of a call; the same as those of the function."""
        call = bind(self.function, args, options)
        for name in self._names():
            if name not in call.arrays and not (call.model is not None and is_parameter(name)):
                known = [*call.arrays, *(["parameters of the model"] if call.model else [])]
                raise UnknownNameError(
                    f"{call.name} is not called with an array {name!r} here, so it has no "
                    f"derivative with respect to it; it has with respect to {', '.join(known)}"
                )
        return call

    def _entries(self):
        return self.wrt if isinstance(self.wrt, tuple) else (self.wrt,)

    def _names(self):
        for entry in self._entries():
            yield from entry.names if isinstance(entry, _Group) else (entry,)

    def description(self, of):
        """What identifies it in every process, if something identifies the function."""
        inner = of(self.function)
        if inner is None:
            return None
        entries = tuple(e.names if isinstance(e, _Group) else e for e in self._entries())
        return "derivative", inner, entries, isinstance(self.wrt, tuple)

    # --- forms -------------------------------------------------------------------------------

    def result_form(self, call):
        """Shapes of the result, without running anything; None if the function must be run."""
        form = result_form(self.function, call)
        if form is None:
            return None
        return map_leaves(
            lambda y: self._packed(
                [
                    Argument("out", (*y.shape, *self._tangent(call, entry)))
                    for entry in self._entries()
                ]
            ),
            form,
        )

    def _packed(self, parts):
        return tuple(parts) if isinstance(self.wrt, tuple) else parts[0]

    def _tangent(self, call, entry):
        """Shape of the axes that one derivative adds."""
        if not isinstance(entry, _Group):
            return tangent_shape(call, entry)
        sizes = [np.prod(tangent_shape(call, name), dtype=int) for name in entry.names]
        return (int(sum(sizes)),)

    # --- on traced numbers -------------------------------------------------------------------

    def recursion_count(self, call):
        """How many recursions give the innermost derivative."""
        if isinstance(self.function, Derivative):
            return self.function.recursion_count(call)
        return len(self._recursions(call)) if is_public(self.function) else 0

    def _recursions(self, call) -> Any:
        return recursions(self.function.__name__, call.model, tuple(self._names()))

    def estimated_cost(self, call):
        """Roughly the least number of operations of the derivative of the graph."""
        if isinstance(self.function, Derivative):
            return 0.0
        found = {}

        def of_arrays(*arrays):
            variables = Variables(call, call.model, arrays, tuple(self._names()))
            y = apply(self.function, call, variables.model, variables.arrays)
            graph, roots = variables.graph, [variables.graph.number(x) for x in np.ravel(y)]
            directions = [d for name in self._names() for d in variables.directions[name]]
            seeds = [{i: graph.number(rate) for i, rate in d.items()} for d in directions]
            found.update(estimates(graph, roots, seeds))
            return y

        trace(of_arrays, [Argument(name, shape) for name, shape in call.shapes.items()])
        return _SHARED * min(found.values())

    def differentiated(self, call, model, arrays, recursive=0):
        """The derivative for one sample of traced arrays, of a model with numbers of any kind.

        ``recursive`` is the number of the recursion to use, counted from 1, or 0 for none.
        """
        if recursive and not isinstance(self.function, Derivative):
            found_by = self._recursions(call)[recursive - 1]
            found = found_by(model, **dict(zip(call.arrays, arrays, strict=True)))
            return self._packed([found[entry] for entry in self._entries()])
        variables = Variables(call, model, arrays, tuple(self._names()))
        y = apply(self.function, call, variables.model, variables.arrays, recursive)
        return self._jacobians(call, variables, y)

    def _jacobians(self, call, variables, y):
        leaves = [np.asarray(leaf, dtype=object) for leaf in leaves_of(y)]
        flat = np.concatenate([leaf.ravel() for leaf in leaves])
        directions = [d for name in self._names() for d in variables.directions[name]]
        J = variables.restored(jacobian(variables.graph, flat, directions))
        rows = iter(np.split(J, np.cumsum([leaf.size for leaf in leaves])[:-1]))
        sizes = [int(np.prod(self._tangent(call, entry), dtype=int)) for entry in self._entries()]

        def parts(leaf):
            blocks = np.split(next(rows), np.cumsum(sizes)[:-1], axis=1)
            return self._packed(
                [
                    block.reshape((*np.shape(leaf), *self._tangent(call, entry)))
                    for block, entry in zip(blocks, self._entries(), strict=True)
                ]
            )

        return map_leaves(parts, y)
