"""Functions made from functions: what derivatives and products with them have in common.

They are called like the function that they are made from, are compiled for a model when they are
first called, and can be differentiated, compiled and called inside kernels like any other.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.errors import ShapeError, UnknownNameError
from kinetree.functional.parameters import is_parameter
from kinetree.functional.prepare import bind, prepare, require_traceable
from kinetree.functional.variables import tangent_shape
from kinetree.model.define import is_public


@dataclass(frozen=True)
class Group:
    """Several names whose tangent spaces stand side by side in one axis."""

    names: tuple


def with_group(wrt, name, group):
    """``wrt`` with a group of names in the place of one."""
    if isinstance(wrt, (tuple, list)):
        return tuple(Group(group) if w == name else w for w in wrt)
    return Group(group) if wrt == name else wrt


def checked_wrt(function, wrt, what):
    """``wrt`` as a name or tuple of names; raise TypeError for what cannot be meant."""
    require_traceable(function, what)
    if isinstance(wrt, (str, tuple, list, Group)):
        names = with_group(wrt, "parameters", ("inertia",))
        if names and all(map(_is_name, names if isinstance(names, tuple) else (names,))):
            return names
    raise TypeError(f"wrt must be the name of an argument or a tuple of names, got {wrt!r}")


def _is_name(w):
    return isinstance(w, Group) or (isinstance(w, str) and bool(w))


def takes_states(function, call, count):
    """Whether a call with so many positional arguments passes states and forces alone."""
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
        return {**self.__dict__, "_kernels": {}}

    def __repr__(self):
        return f"<kinetree {self.__name__} with respect to {self.wrt!r}>"

    def __call__(self, model=None, *arrays, **options) -> Any:
        """The result for the arguments that the function takes."""
        return self._general((model, *arrays) if model is not None else (), options)

    def _general(self, args, options):
        out = options.pop("out", None)
        call = self.bind(*args, **options)
        if call.model is not None and call.model.scalar_type().kind == "O":
            return self._inside_a_trace(call)
        prepared = self.prepared(call)
        count, model = len(args) - 1, call.model
        if model is not None and out is None and self.is_plain(call, count, options):
            model.memo[self] = count, prepared.kernel if prepared.plain else prepared
        return prepared.call(*call.arrays.values(), out=out)

    @abstractmethod
    def is_plain(self, call, count, options) -> bool:
        """Whether any call that looks like this one passes the same arrays and no more."""

    def prepared(self, call):
        """The compiled form for the model, options and shapes of a call."""
        kernels = self._kernels if call.model is None else call.model.memo
        prepared = kernels.get((self, call.key))
        if prepared is None:
            prepared = kernels[self, call.key] = prepare(self, call)
        return prepared

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

    def bind(self, *args, **options):
        """The model, arrays and options of a call; the same as those of the function."""
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
        """The function, and the call and arrays that it gets from a call of this one."""
        return self.function, call, arrays

    def description(self, of):
        """What identifies it in every process, if something identifies the function."""
        inner = of(self.function)
        if inner is None:
            return None
        entries = tuple(e.names if isinstance(e, Group) else e for e in self.entries())
        return self.kind, inner, entries, isinstance(self.wrt, tuple)

    # --- with respect to what ------------------------------------------------------------------

    def entries(self):
        """The entries of ``wrt``."""
        return self.wrt if isinstance(self.wrt, tuple) else (self.wrt,)

    def names(self):
        """The names of all entries, those of groups one by one."""
        for entry in self.entries():
            yield from entry.names if isinstance(entry, Group) else (entry,)

    def packed(self, parts):
        """One thing for every entry: a tuple of them, or the only one if ``wrt`` is a name."""
        return tuple(parts) if isinstance(self.wrt, tuple) else parts[0]

    def tangent(self, call, entry):
        """Shape of the space in which an entry can move."""
        if not isinstance(entry, Group):
            return tangent_shape(call, entry)
        sizes = [np.prod(tangent_shape(call, name), dtype=int) for name in entry.names]
        return (int(sum(sizes)),)

    # --- what the kinds do -----------------------------------------------------------------------

    def recursion_count(self, call) -> int:
        """How many recursions give the innermost derivative."""
        function, call, _ = self.inside(call, ())
        return function.recursion_count(call) if hasattr(function, "differentiated") else 0

    def estimated_cost(self, call) -> float:
        """Roughly the least number of operations without the recursion; 0 if that is not known."""
        return 0.0

    @abstractmethod
    def result_form(self, call):
        """Shapes of the result, without running anything; None if the function must be run."""

    @abstractmethod
    def differentiated(self, call, model, arrays, recursive=0):
        """The result for one sample of traced arrays, of a model with numbers of any kind.

        ``recursive`` is the number of the recursion to use, counted from 1, or 0 for none.
        """
