"""From what was asked for to what takes steps of a mechanism with loops or couplings."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kinetree.errors import LoopError, UnknownNameError
from kinetree.loops.equation_choice import choose
from kinetree.simulation.constrained.field import Constrained
from kinetree.simulation.constrained.options import WAYS, Baumgarte, Projection, Uncorrected
from kinetree.simulation.constrained.projected import Projected
from kinetree.loops.start import check_start, warn_of_singular_start
from kinetree.simulation.integrators.explicit import ExplicitRungeKutta
from kinetree.simulation.prescribed.method import Driven
from kinetree.simulation.step import Stepper
from kinetree.spelling import did_you_mean

__all__ = ["constraints_named", "projected", "stepper_maker"]


def constraints_named(given):
    """The way to keep constraints, by name or as given."""
    if isinstance(given, str):
        if given not in WAYS:
            raise UnknownNameError(
                f"there is no way to keep constraints called {given!r}; "
                f"{did_you_mean(given, tuple(WAYS))}"
            )
        return WAYS[given]
    if not hasattr(given, "stepper"):
        raise TypeError(
            f"constraints must be one of {', '.join(map(repr, WAYS))}, or an instance such as "
            f"Projection or Baumgarte; got {type(given).__name__}"
        )
    return given


def projected(model, method, field, q, qd):
    """Integrator and field of steps that end on the constraints, for starts ``q, qd`` (n, ...)."""
    check_start(model, np.asarray(q, dtype=float), np.asarray(qd, dtype=float))
    told = () if field.told is None else field.told.variables(model)
    choice = choose(model, np.asarray(q, dtype=float).reshape(-1, model.nq)[0], told)
    return Projected(_looped(method), choice.chosen), Constrained(field, choice.chosen)


def _looped(method):
    """The method with its stages in a loop: equations of motion with constraints are long."""
    if isinstance(method, Driven):
        return replace(method, inner=_looped(method.inner))
    return replace(method, looped=True) if isinstance(method, ExplicitRungeKutta) else method


def stepper_maker(model, constraints, q, qd, *, dt, adaptive, told=None) -> Callable:
    """A function of model, method and field that makes what takes steps from a start.

    Args:
        model: the mechanism.
        constraints: how loops and couplings are kept, or the name of that.
        q: positions at the start, (..., nq).
        qd: velocities at the start, (..., nv).
        dt: length of a step [s].
        adaptive: whether steps are as long as their error allows.
        told: joints that move as told, or None.
    """
    way = constraints_named(constraints)
    if not model.loops:
        return Stepper
    check_start(model, q, qd)
    first = np.zeros(model.nq) if not q.size else q.reshape(-1, model.nq)[0]
    if told is not None:
        _require_fit(way, told)
    choice = choose(model, first, () if told is None else told.variables(model))
    if choice.singular:
        warn_of_singular_start(model)
    way = way.of(model, dt) if isinstance(way, Baumgarte) else way

    def make(model, method, field, *, compiled):
        method = _looped(method)
        stepper = way.stepper(
            model, method, field, choice, q.shape[:-1], compiled=compiled, adaptive=adaptive
        )
        stepper.constraints = way.name
        return stepper

    return make


def _require_fit(way, told):
    """Raise for ways to keep constraints that move all joints, also those that move as told."""
    if not isinstance(way, (Projection, Baumgarte, Uncorrected)) or getattr(way, "energy", False):
        raise LoopError(
            f"constraints={way.name!r} changes the motion of all joints, also of those that move "
            f"as told ({', '.join(map(repr, told.names))}): use 'projection' or 'baumgarte'"
        )
