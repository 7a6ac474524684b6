"""Runs that are simulations, given by options of ``kt.simulate`` instead of a function."""

import inspect

import numpy as np

from kinetree.errors import SweepError
from kinetree.simulation.simulate import simulate
from kinetree.simulation.sweep.work import Work, model_parameters
from kinetree.spelling import did_you_mean

__all__ = ["simulation_work"]

_KEPT = ("t", "q", "qd", "tau", "energy")
_STATES = {"q0", "qd0"}
_SAME_FOR_ALL = {"duration", "dt", "store_every", "t0", "integrator"}


def simulation_work(model, options, names, *, batched=None) -> Work:
    """The work of simulating ``model`` with some options fixed and others, by name, varied.

    Runs that differ in nothing but their initial state, and which no function of the user's acts
    on, move together as one batch; every one comes out as it would alone.
    """
    known = [name for name in inspect.signature(simulate).parameters if name != "model"]
    changes = model_parameters(model, names)
    for name in (*options, *(name for name in names if name not in changes)):
        if name not in known:
            hint = did_you_mean(name, [*known, "gravity"])
            raise SweepError(
                f"a simulation has no option {name!r}, and a model no such parameter; {hint} For "
                f"values of your own, give a function instead of options"
            )
        elif name in options and name in names:
            raise SweepError(f"{name!r} is among the options and among the values; give it once")
    for name in ("q0", "duration"):
        if name not in options and name not in names:
            raise SweepError(
                f"a simulation needs {name}: give it among the options, or among the values"
            )
    if batched is None:
        batched = set(names) <= _STATES and set(options) <= _STATES | _SAME_FOR_ALL
    return Work(model, _Simulation(options, batched), batched, (), changes, "simulate")


class _Simulation:
    """A simulation, or a batch of them, as arrays by name, with what its report warns of."""

    def __init__(self, options, batched):
        self.options, self.batched = options, batched

    def __call__(self, model, **values):
        if not self.batched:
            return self._arrays(self._simulate(model, values))
        count = len(next(iter(values.values())))
        if count == 1:  # errors and warnings then speak of no batch
            alone = self._simulate(model, {name: column[0] for name, column in values.items()})
            return {name: array[None] for name, array in self._arrays(alone).items()}
        trajectory = self._simulate(model, values)
        if trajectory.report.warnings:
            raise _SomeoneIsSuspectError
        arrays = self._arrays(trajectory)
        shared = {name: np.stack([arrays.pop(name)] * count) for name in ("t", "warning")}
        return shared | {name: np.moveaxis(array, 1, 0) for name, array in arrays.items()}

    def _simulate(self, model, values):
        options = {**self.options, **values}
        return simulate(model, options.pop("q0"), **options)

    def _arrays(self, trajectory):
        arrays = {name: np.asarray(getattr(trajectory, name)) for name in _KEPT}
        return arrays | {"warning": np.array("; ".join(trajectory.report.warnings))}


class _SomeoneIsSuspectError(Exception):
    """A batch whose report warns: done again run by run, it is known of which."""
