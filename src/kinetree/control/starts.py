"""Start of a trajectory optimization: knots and multipliers from a guess."""

from typing import Any

import numpy as np

from kinetree.control.optimized_motion import OptimizedMotion
from kinetree.errors import ShapeError, UnknownNameError

COLD, WARM = 1e-2, 1e-4  # distance of controls from limits, relative


class FirstIterate:
    """First iterate of all samples of a problem, from a guess.

    Args:
        problem: with bounds and a goal.
        arrays: of the ``Run``: initial states and the shape of the batch.
        guess: ``q``, ``qd``, ``tau``, ``controls``, ``u`` and ``multipliers``, of which any may
            be missing or None; time first.
        xp: the library of these arrays.
    """

    def __init__(self, problem: Any, arrays: Any, guess: dict[str, Any], xp: Any = np):
        self.problem, self.arrays, self.guess, self.xp = problem, arrays, guess, xp
        self.is_warm = guess.get("multipliers") is not None
        self.least = WARM if self.is_warm else COLD

    def knots(self) -> tuple[Any, Any, Any]:
        """Initial knots: positions, velocities, and controls within their limits."""
        return *self._states(), self._controls()

    def _states(self):
        """Initial states: of the guess, else a straight line to the goal, else the start."""
        p, arrays, guess, T, model = (
            self.problem,
            self.arrays,
            self.guess,
            self.problem.steps,
            self.problem.model,
        )
        xp, size = self.xp, arrays.size
        q, qd = xp.empty((size, T + 1, model.nq)), xp.empty((size, T + 1, model.nv))
        q[:], qd[:] = arrays.q0[:, None], arrays.qd0[:, None]
        if guess.get("q") is not None:
            q[:, 1:] = self._spread(guess["q"], "q", T + 1, model.nq)[:, 1:]
            qd[:, 1:] = 0
        elif p.goal is not None:
            ends = xp.broadcast_to(xp.asarray(p.goal), (*arrays.batch, model.nq)).reshape(
                len(q), model.nq
            )
            way = model.difference(arrays.q0, ends)[:, None]
            part = xp.linspace(0, 1, T + 1)[:, None]
            q = xp.ascontiguousarray(model.integrate(q, part * way))
            qd[:, 1:-1] = way / (T * p.dt)
        if guess.get("qd") is not None:
            qd[:, 1:] = self._spread(guess["qd"], "qd", T + 1, model.nv)[:, 1:]
        return q, qd

    def _controls(self):
        """Initial controls: of the guess, else zero, moved inside their limits."""
        p, T, m = self.problem, self.problem.steps, len(self.problem.columns)
        u = self.xp.zeros((self.arrays.size, T + 1, m))
        full = {"tau": (p.model.nv, p.columns), "controls": (m, p.columns), "u": (m, slice(None))}
        for name, (size, columns) in full.items():
            if (given := self.guess.get(name)) is not None:
                called = "tau" if name == "u" else name
                u[:, :-1] = self._spread(given, called, T, size)[..., columns]
        if p.bounds.index.size and p.bounds.index.min() < m:  # some control has a limit
            u[:, :-1] = self.xp.clip(u[:, :-1], *map(self.xp.asarray, self._inner_limits()))
        return u

    def _inner_limits(self):
        """Control limits moved inward by a fraction of their distance."""
        (lower, upper), push = (self.problem.bounds.lower, self.problem.bounds.upper), self.least
        with np.errstate(invalid="ignore"):
            width = np.where(np.isfinite(upper - lower), upper - lower, np.inf)
            off = np.minimum(push * width, push * np.maximum(1.0, np.abs(lower)))
            above = np.where(np.isfinite(lower), lower + off, -np.inf)
            off = np.minimum(push * width, push * np.maximum(1.0, np.abs(upper)))
            below = np.where(np.isfinite(upper), upper - off, np.inf)
        return above, below

    def multipliers(self, inequality_count, final_count) -> tuple[Any, Any]:
        """Initial multipliers of inequalities and final constraints, (samples, ...)."""
        T, size = self.problem.steps, self.arrays.size
        if not self.is_warm:
            shapes = (size, T + 1, inequality_count), (size, final_count)
            return self.xp.zeros(shapes[0]), self.xp.zeros(shapes[1])
        z, y = self.guess["multipliers"]
        if (z.shape[0], z.shape[-1]) != (T + 1, inequality_count) or y.shape[-1] != final_count:
            raise ShapeError(
                "the guess is the result of a problem with other steps or constraints: give "
                "its q, qd and tau as a dict"
            )
        z = self._spread(z, "multipliers", T + 1, inequality_count)
        return z, self._spread(y[None], "multipliers", 1, final_count)[:, 0]

    def _spread(self, array, name, length, size):
        """Array of a guess as (samples, time, size), from one with time first."""
        xp, batch = self.xp, self.arrays.batch
        array = xp.asarray(array, dtype="float64")
        if array.ndim < 2 or array.shape[0] != length or array.shape[-1] != size:
            raise ShapeError(
                f"guess of {name} must have shape ({length}, ..., {size}), time first, "
                f"got {array.shape}"
            )
        if not batch and array.ndim == 2:
            return array[None]
        full = xp.broadcast_to(
            array.reshape(length, *[1] * (len(batch) - array.ndim + 2), *array.shape[1:]),
            (length, *batch, size),
        )
        return xp.array(xp.moveaxis(full.reshape(length, self.arrays.size, size), 0, 1))


def as_guess(guess) -> dict[str, Any]:
    """Arrays of a guess by name, from a dict or an earlier result."""
    if guess is None:
        return {}
    if isinstance(guess, OptimizedMotion):
        u = guess.tau[..., list(guess.columns)] if guess.tau is not None else guess.controls
        return {"q": guess.q, "qd": guess.qd, "u": u, "multipliers": guess.multipliers}
    unknown = set(guess) - {"q", "qd", "tau", "controls", "u", "multipliers"}
    if unknown:
        raise UnknownNameError(
            f"guess has q, qd, tau and controls, or is an earlier result; got {sorted(unknown)}"
        )
    return dict(guess)


def later_guess(plan, k):
    """Guess from a plan shifted by ``k`` steps; its last knots are repeated."""
    found = as_guess(plan)

    def shift(x):
        found, rest = np.empty_like(x), max(len(x) - k, 0)
        found[:rest], found[rest:] = x[k:], x[-1:]
        return found

    z, y = found.pop("multipliers")
    shifted = {name: shift(x) for name, x in found.items()}
    inner = z.copy()
    inner[:-1] = shift(z[:-1])
    return shifted | {"multipliers": (inner, y)}
