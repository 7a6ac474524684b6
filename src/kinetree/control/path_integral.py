"""Control by sampling: try many plans at once, and keep what did well (MPPI)."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from kinetree.arrays.device import require_cupy
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError
from kinetree.spelling import explains_itself


@explains_itself
class PathIntegral:
    """Model-predictive path integral control.

        plan = kt.control.PathIntegral(cost, horizon=40, size=1, noise=5.0)
        u = plan(q, qd)

    Every call draws plans around the last one, computes their costs, takes their average weighted
    by ``exp(-cost / temperature)`` as the new plan, and returns its first step. Plans of
    the next call begin one step later.

    Williams, Aldrich, Theodorou, 2017: Model predictive path integral control.

    Args:
        cost: function ``cost(*state, plans, *others)`` of the state and plans (samples, horizon,
            size) to costs (samples,); best a ``@kinetree.kernel`` bound to a model by
            ``kinetree.compile``, so that all motions are computed by one compiled function.
        horizon: steps of a plan.
        size: numbers of a step, such as the forces of the motors.
        samples: plans that are tried.
        noise: standard deviation of the perturbations of the plan, a number or (size,).
        temperature: costs that differ by this much differ by a factor of e in weight, where costs
            are counted from the best and divided by their spread.
        lower: lower bounds of a step, a number or (size,).
        upper: upper bounds, likewise.
        others: arrays that follow the plans, such as parameters of every sample (samples, ...).
        arrays: ``"numpy"`` or ``"cupy"``: where the samples are.
        dtype: precision of the samples.
        seed: of the random numbers.
    """

    def __init__(
        self,
        cost: Callable[..., Array],
        *,
        horizon: int,
        size: int,
        samples: int = 1024,
        noise: ArrayLike = 1.0,
        temperature: float = 0.1,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        others: Sequence[ArrayLike] = (),
        arrays: Literal["numpy", "cupy"] = "numpy",
        dtype: str = "float64",
        seed: int = 0,
    ):
        if arrays not in ("numpy", "cupy"):
            raise ShapeError(f"arrays must be 'numpy' or 'cupy', got {arrays!r}")
        xp: Any = np
        if arrays == "cupy":
            require_cupy()
            import cupy  # pyright: ignore[reportMissingImports]

            xp = cupy
        self.cost, self.samples, self.temperature, self.dtype = cost, samples, temperature, dtype
        self.xp, self.rng = xp, xp.random.default_rng(seed)
        self.noise, self.lower, self.upper = (self._array(x) for x in (noise, lower, upper))
        self.others = tuple(self._array(x) for x in others)
        self.plan = xp.zeros((horizon, size), dtype)

    def _array(self, x):
        """Array converted to the device and precision of the controller."""
        return self.xp.asarray(x, self.dtype)

    def __call__(self, *state: ArrayLike) -> np.ndarray:
        """The first step of the new plan, a NumPy array (size,)."""
        xp, shape = self.xp, (self.samples, *self.plan.shape)
        tried = self.plan + self.noise * self.rng.standard_normal(shape, self.dtype)
        tried[0] = self.plan  # which is never lost
        tried = xp.clip(tried, self.lower, self.upper)
        costs = self.cost(*map(self._array, state), tried, *self.others)
        costs = xp.where(xp.isfinite(costs), costs, np.inf)
        best, spread = costs.min(), xp.nanstd(xp.where(xp.isfinite(costs), costs, np.nan))
        weights = xp.exp(-(costs - best) / (self.temperature * spread + 1e-12))
        plan = xp.tensordot(weights / weights.sum(), tried, 1)
        self.plan = xp.concatenate([plan[1:], plan[-1:]])
        return plan[0] if xp is np else xp.asnumpy(plan[0])
