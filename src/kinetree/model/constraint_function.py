"""User-defined constraints: functions of position, velocity and time — RBDA §3.4, Fig. 3.1.

At velocity level every equality constraint reads ``φ⁰(q, t) + Σ φⁱ(q, t) qdᵢ = 0``, holonomic
(3.30) or not (3.29). A holonomic one is the rate of a position function; a nonholonomic one is
the rate of nothing, and leaves the system more freedom of position than of velocity.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.errors import ModelError, ShapeError, TraceError

UNITS = ("m", "rad")
"""What the error of a constraint is measured in: lengths of the mechanism, or angles."""

_TAKEN = {"position": ("model", "q", "t"), "rate": ("model", "q", "qd", "t")}


@dataclass(frozen=True)
class ConstraintFunction:
    """A constraint of a model, defined by Python functions.

    The functions are written for one sample, as under ``@kt.kernel``: with NumPy, ``kt.select``
    and kinetree's functions, for numbers of any kind. Each takes those of ``model``, ``q``, ``qd``
    and ``t`` that it needs, by name, and returns a number or an array (rows,). ``model`` is the
    spanning tree, without loops and constraints. Derivatives are computed from the functions.

    Attributes:
        name: unique name, among the constraints.
        position: ``position(model, q, t)``, which the constraint keeps at zero; None if there is
            no such function, which makes the constraint nonholonomic.
        rate: ``rate(model, q, qd, t)``, linear in ``qd``, which it keeps at zero; by default the
            time derivative of ``position``.
        rows: number of equations.
        unit: ``"m"`` or ``"rad"``, of the position error, used in messages; one for all rows or
            one for each. The scale of a function is arbitrary: ranks and errors are judged by how
            far joints move to change it.
        equality: False for a contact that may open, which a model cannot have.
        t: the instant [s], of a constraint that depends on time; ``model.at(t)`` changes it.
    """

    name: str
    position: Callable | None = None
    rate: Callable | None = None
    rows: int = 1
    unit: Any = "m"
    equality: bool = True
    t: Any = 0.0

    def __post_init__(self):
        what = f"constraint {self.name!r}"
        if self.position is None and self.rate is None:
            raise ModelError(f"{what} needs a function position(q), or rate(q, qd), or both")
        for role in _TAKEN:
            self._parameters(role)
        if not isinstance(self.rows, (int, np.integer)) or self.rows < 1:
            raise ModelError(f"{what}: rows must be an integer from 1, got {self.rows!r}")
        if isinstance(self.unit, (list, tuple)):
            object.__setattr__(self, "unit", tuple(self.unit))
        if len(self.units) != self.rows or not set(self.units) <= set(UNITS):
            raise ModelError(
                f"{what}: unit must be 'm' or 'rad', or {self.rows} of these for its rows, got "
                f"{self.unit!r}"
            )

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each row of the constraint."""
        return self.unit if isinstance(self.unit, tuple) else (self.unit,) * self.rows

    @property
    def holonomic(self) -> bool:
        """Whether it constrains positions; otherwise velocities only (nonholonomic)."""
        return self.position is not None

    @cached_property
    def rheonomic(self) -> bool:
        """Whether the constraint depends on time: one of its functions takes ``t``."""
        return any("t" in self._parameters(role) for role in _TAKEN)

    @property
    def kind(self) -> str:
        """Kind of constraint, such as "holonomic, scleronomic"."""
        words = [
            "equality" if self.equality else "inequality",
            "holonomic" if self.holonomic else "nonholonomic",
            "rheonomic" if self.rheonomic else "scleronomic",
        ]
        return ", ".join(words)

    def at(self, t: Any) -> "ConstraintFunction":
        """The constraint at time ``t`` [s]; unchanged if it does not depend on time."""
        return replace(self, t=t) if self.rheonomic else self

    def value(self, role: str, /, **values: Any) -> Any:
        """Values (rows,) of the constraint's position or rate function.

        Args:
            role: ``"position"`` or ``"rate"``.
            **values: ``model``, ``q``, ``qd`` and ``t``, of which it gets those that it takes.
        """
        function, model = _source_function(getattr(self, role)), values.get("model")
        given = {name: values[name] for name in self._parameters(role)}
        try:
            found = np.asarray(function(**given))
        except TypeError as error:
            if all(np.asarray(x).dtype.kind in "fiub" for x in given.values() if x is not model):
                raise
            raise TraceError(
                f"{role} of constraint {self.name!r} takes plain numbers alone, and is called with "
                f"traced ones, formulas and numbers with their rates: {error}. Write np.sin for "
                f"math.sin and so on, kinetree.select in place of if, and kinetree.spatial.ops for "
                f"formulas"
            ) from error
        found = found.reshape(1) if found.ndim == 0 else found
        if found.shape != (self.rows,):
            raise ShapeError(
                f"{role} of constraint {self.name!r} must return {self.rows} numbers, as many as "
                f"its rows, got shape {found.shape}"
            )
        return found

    def _parameters(self, role):
        """Names of the parameters of the constraint's position or rate function, checked."""
        function = _source_function(getattr(self, role))
        if function is None:
            return ()
        what = f"{role} of constraint {self.name!r}"
        expected = f"a function of {', '.join(_TAKEN[role])}, or of some of these"
        if not callable(function):
            raise ModelError(f"{what} must be {expected}, got {function!r}")
        parameters = inspect.signature(function).parameters.values()
        names = tuple(p.name for p in parameters if p.name in _TAKEN[role])
        others = [p.name for p in parameters if p.name not in names and p.default is p.empty]
        if others:
            raise ModelError(f"{what} must be {expected}; it takes {others[0]!r}")
        return names


def _source_function(function):
    """Python function behind a compiled kernel, or the function itself."""
    return getattr(function, "function", function)


@dataclass(frozen=True)
class PartFunction:
    """A function of a constraint for a model that its own one is a part of.

    Attributes:
        own: the function, written for the model of the part.
        tree: spanning tree of that model.
        q, v: where its variables begin and end among those of the whole.
    """

    own: Callable
    tree: Any
    q: tuple[int, int]
    v: tuple[int, int]

    def __post_init__(self):
        object.__setattr__(self, "__signature__", inspect.signature(self.own))

    def __call__(self, **given: Any) -> Any:
        """Value of the function for the variables of its part."""
        places = {"q": slice(*self.q), "qd": slice(*self.v)}
        own = {name: x[places[name]] if name in places else x for name, x in given.items()}
        return self.own(**own | ({"model": self.tree} if "model" in given else {}))


def constraints_of_part(model: Any, prefix: str, q: slice, v: slice) -> list[ConstraintFunction]:
    """Constraints of a model rewritten for a larger model that contains it.

    Args:
        model: the part.
        prefix: put before their names.
        q: position variables of the part in the whole.
        v: velocity variables, likewise.
    """
    found = []
    for c in model.constraints:
        functions = {
            role: PartFunction(own, model.spanning_tree, (q.start, q.stop), (v.start, v.stop))
            for role in _TAKEN
            if (own := _source_function(getattr(c, role))) is not None
        }
        found.append(replace(c, name=prefix + c.name, **functions))
    return found


def require_none_written(model, where):
    """Raise ModelError for user-defined constraints, which cannot be written to a file."""
    if model.constraints:
        raise ModelError(
            f"constraint {model.constraints[0].name!r} of model {model.name!r} consists of Python "
            f"functions, which {where} cannot hold: write model.replace(constraints=()), and add "
            f"them after loading with model.with_constraint(...)"
        )


def require_none_moved(*models):
    """Raise ModelError for user-defined constraints whose functions expect other variables."""
    for model in models:
        if model.constraints:
            raise ModelError(
                f"constraint {model.constraints[0].name!r} of model {model.name!r} is written for "
                f"its joint variables, which would change: start from "
                f"model.replace(constraints=()), and add constraints to the result with "
                f"model.with_constraint(...)"
            )
