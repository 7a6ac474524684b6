"""Simulation: integrators on the manifold, forces, events, rollouts, and what comes out of them.

motion = kinetree.simulate(model, q0, qd0, duration=5.0)
"""

from kinetree.simulation.integrators.integrator import Integrator, Stepped
from kinetree.simulation.integrators.registry import INTEGRATORS
from kinetree.simulation.results.report import Report
from kinetree.simulation.results.trajectory import Trajectory
from kinetree.simulation.simulate import simulate
from kinetree.simulation.step import Step

__all__ = ["INTEGRATORS", "Integrator", "Report", "Step", "Stepped", "Trajectory", "simulate"]
