"""The public functions of a model: one definition each, compiled on first use."""

# ruff: noqa: F403
from kinetree.arguments import guard_module
from kinetree.model.define import FUNCTIONS as FUNCTIONS
from kinetree.quantities import (
    actuators,
    cartesian,
    centroidal,
    dynamics,
    hybrid,
    kinematics,
    lagrangian,
    maximal,
    reactions,
    regressors,
    task_space,
    tendons,
)
from kinetree.quantities.actuators import *
from kinetree.quantities.cartesian import *
from kinetree.quantities.centroidal import *
from kinetree.quantities.dynamics import *
from kinetree.quantities.hybrid import *
from kinetree.quantities.kinematics import *
from kinetree.quantities.lagrangian import *
from kinetree.quantities.maximal import *
from kinetree.quantities.reactions import *
from kinetree.quantities.regressors import *
from kinetree.quantities.task_space import *
from kinetree.quantities.tendons import *

__all__: list[str] = []
__all__ += actuators.__all__
__all__ += cartesian.__all__
__all__ += centroidal.__all__
__all__ += dynamics.__all__
__all__ += hybrid.__all__
__all__ += kinematics.__all__
__all__ += lagrangian.__all__
__all__ += maximal.__all__
__all__ += reactions.__all__
__all__ += regressors.__all__
__all__ += task_space.__all__
__all__ += tendons.__all__

guard_module(__name__)
