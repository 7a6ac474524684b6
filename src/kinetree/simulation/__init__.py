"""Simulation: integrators on the manifold, forces, events, rollouts, and what comes out of them.

motion = kinetree.simulate(model, q0, qd0, duration=5.0)
"""

from kinetree.arguments import guard_module
from kinetree.integration.integrator import Integrator, Stepped
from kinetree.integration.registry import INTEGRATORS
from kinetree.integration.step import Step
from kinetree.simulation.results.report import Report
from kinetree.simulation.results.trajectory import Trajectory
from kinetree.simulation.simulate import simulate

__all__ = ["INTEGRATORS", "Integrator", "Report", "Step", "Stepped", "Trajectory", "simulate"]

guard_module(__name__)
