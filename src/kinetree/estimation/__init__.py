"""Estimates of the state of robots with floating bases, from what their sensors read.

BaseFilter     error-state Kalman filter on the manifold
MovingHorizon  least squares over a window of readings, on the same models
"""

from typing import TYPE_CHECKING

from kinetree.arguments import guard_module
from kinetree.estimation.base_filter import BaseFilter
from kinetree.estimation.estimate import Estimate
from kinetree.estimation.estimator import Uncertainty
from kinetree.estimation.legs import Foot, Noise
from kinetree.estimation.moving_horizon import MovingHorizon
from kinetree.spelling import suggesting

__all__ = ["BaseFilter", "Estimate", "Foot", "MovingHorizon", "Noise", "Uncertainty"]

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__, __all__)

guard_module(__name__)
