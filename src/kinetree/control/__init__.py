"""Feedback for mechanisms, and what it is designed with.

A controller is a function ``controller(t, q, qd)`` that returns the forces ``tau`` of the motors;
springs, dampers and friction of the joints add to them (``kinetree.passive_force``). Those here
take states with any leading batch axes:

    GravityCompensation      carries the weight
    ComputedTorque           follows a motion by inverse dynamics
    PDWithFeedforward        follows a motion with springs, dampers and forces computed ahead
    OperationalSpaceControl  moves a frame, and the posture where that leaves a choice
    LQR                      stays at an equilibrium, with some joints driven or all
    WholeBody                does several tasks at once, with contacts, within limits

``PathIntegral`` plans by sampling, ``u = plan(q, qd)``, on the CPU and on GPUs. ``optimize`` finds
motions of least cost within limits, by derivatives, thousands at once; ``MPC`` controls by it.
``Phase``, ``Schedule``, ``trot`` and ``gait`` say which contacts are closed meanwhile.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kinetree.arguments import guard, guard_module
from kinetree.control.algebraic_riccati import (
    continuous_lyapunov,
    continuous_riccati,
    discrete_lyapunov,
    discrete_riccati,
)
from kinetree.control.costs import QuadraticCost
from kinetree.control.equilibria import Equilibrium, equilibrium
from kinetree.control.joint_space import ComputedTorque, GravityCompensation, PDWithFeedforward
from kinetree.control.linearization import Linearization, linearize
from kinetree.control.lqr import LQR, LQRGain, lqr_gain
from kinetree.control.operational_space import OperationalSpaceControl, pose_error
from kinetree.control.path_integral import PathIntegral
from kinetree.control.phases import Phase, Schedule, gait, trot
from kinetree.control.whole_body import WholeBody, WholeBodySolution
from kinetree.control.whole_body_tasks import (
    CenterOfMassTask,
    Contact,
    ForceTask,
    FrameTask,
    MomentumTask,
    PostureTask,
)
from kinetree.spelling import suggesting

__all__ = [
    "LQR", "MPC", "CenterOfMassTask", "ComputedTorque", "Contact", "Equilibrium", "ForceTask",
    "FrameTask", "GravityCompensation", "LQRGain", "Linearization", "MomentumTask",
    "OperationalSpaceControl", "OptimizedMotion", "PDWithFeedforward", "PathIntegral", "Phase",
    "PostureTask", "QuadraticCost", "Schedule", "WholeBody", "WholeBodySolution",
    "continuous_lyapunov", "continuous_riccati", "discrete_lyapunov", "discrete_riccati",
    "equilibrium", "gait", "linearize", "lqr_gain", "optimize", "pose_error", "trot",
]  # fmt: skip

_LATER = {"MPC": "mpc", "OptimizedMotion": "optimized_motion", "optimize": "optimization"}
"""Modules that are loaded on first use: plans need simulation, controllers are there sooner."""

if TYPE_CHECKING:
    from kinetree.control.mpc import MPC
    from kinetree.control.optimization import optimize
    from kinetree.control.optimized_motion import OptimizedMotion
else:
    _missing = suggesting(__name__, __all__)

    def __getattr__(name):
        if name not in _LATER:
            return _missing(name)
        found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        globals()[name] = found = guard(found)
        return found

    def __dir__():
        return sorted({*globals(), *_LATER})


guard_module(__name__)
