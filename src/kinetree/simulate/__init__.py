"""Simulation: integrators on the manifold, forces, events, rollouts, and what comes out of them.

The package is also the function: ``kinetree.simulate(model, q0, qd0, duration=5.0)``.
"""

import sys
import types
from importlib import import_module

from kinetree.simulate.integrator import Integrator, Stepped
from kinetree.simulate.integrators import INTEGRATORS
from kinetree.simulate.report import Report
from kinetree.simulate.simulate import simulate
from kinetree.simulate.step import Step
from kinetree.simulate.trajectory import Trajectory

__all__ = ["INTEGRATORS", "Integrator", "Report", "Step", "Stepped", "Trajectory", "simulate"]


class _Simulate(types.ModuleType):
    """A module that is called like its function of the same name."""

    def __call__(self, *args, **options):
        return self.simulate(*args, **options)

    def __reduce__(self):
        """By name, as other modules travel: functions sent to a cluster may refer to us."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Simulate
