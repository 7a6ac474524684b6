"""Inequalities of trajectory optimization at all knots, with slacks, multipliers and a barrier.

Inequalities ``c <= 0`` have slacks and multipliers, ``c + s - e = 0`` and ``s z = mu``. Those of
states may be soft: ``e > 0`` is their violation, at a cost of ``rho e``, with ``e (rho - z) = mu``;
for all others ``e = 0`` and ``rho`` is infinite.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.control.shooting import Knots


@dataclass
class Iterate:
    """Variables of some samples: knots, slacks and multipliers.

    Attributes:
        knots: states and controls.
        s, e: slacks and violations of inequalities, (samples, steps + 1, ni) each.
        z: multipliers of inequalities.
        w: ``rho - z``, infinite for hard ones; kept because it may be tiny beside ``rho``.
        y: multipliers of final constraints, (samples, ne).
    """

    knots: Knots
    s: np.ndarray
    e: np.ndarray
    z: np.ndarray
    w: np.ndarray
    y: np.ndarray

    def some(self, which) -> "Iterate":
        """Copy of the variables of some samples."""
        others = (self.s, self.e, self.z, self.w, self.y)
        return Iterate(self.knots.some(which), *(x[which] for x in others))


class Inequalities:
    """Bounds of variables, then path constraints, at all knots.

    Attributes:
        mask: which of them hold at which knot, (steps + 1, ni).
        rho: cost of violating one by one unit, infinite for hard ones, (ni,).
        soft: soft ones by knot, (steps + 1, ni).
    """

    def __init__(self, problem: Any, path_count: int):
        p, steps, m = problem, problem.steps, len(problem.columns)
        self.problem, self.bound_count = p, len(p.index)
        before_end = np.repeat(np.arange(steps + 1)[:, None] < steps, path_count, 1)
        self.mask = np.concatenate([p.bounded, before_end], 1)
        of_states = np.concatenate([p.index >= m, np.ones(path_count, bool)])
        penalty = np.inf if p.limit_penalty is None else p.limit_penalty
        self.rho = np.where(of_states, penalty, np.inf)
        self.soft = self.mask & np.isfinite(self.rho)

    def values(self, knots: Knots, path) -> np.ndarray:
        """Numbers that must be at most zero, (samples, steps + 1, ni)."""
        p, (q, qd, u) = self.problem, knots
        z = np.concatenate([u, np.where(p.position >= 0, q[..., p.position], 0.0), qd], axis=-1)
        bounds = p.sign * (z[..., p.index] - p.value)
        of_path = np.zeros((*bounds.shape[:2], path.shape[-1]))
        of_path[:, :-1] = path
        return np.concatenate([bounds, of_path], axis=-1)

    def gradient(self, weights, by_path) -> np.ndarray:
        """Gradient of the sum of inequalities times weights, (samples, steps + 1, m + n)."""
        nb = self.bound_count
        found = weights[..., :nb] @ self.problem.select
        if by_path.shape[-2]:
            found[:, :-1] += np.einsum("stc,stcz->stz", weights[:, :-1, nb:], by_path)
        return found

    def add_squares(self, H, weights, by_path) -> None:
        """Add the weighted squares of derivatives of inequalities to matrices of knots."""
        nb, at = self.bound_count, np.arange(H.shape[-2])
        H[..., at, at] += weights[..., :nb] @ self.problem.select**2
        if by_path.shape[-2]:
            weighted = by_path * weights[:, :-1, nb:, None]
            H[:, :-1, :, : len(at)] += np.swapaxes(by_path, -1, -2) @ weighted

    def along(self, dz, by_path) -> np.ndarray:
        """Derivatives of inequalities along ``dz``, (samples, steps + 1, ni)."""
        found = dz[..., self.problem.index] * self.problem.sign
        if by_path.shape[-2]:
            inner = np.zeros((*found.shape[:2], by_path.shape[-2]))
            inner[:, :-1] = np.einsum("stcz,stz->stc", by_path, dz[:, :-1])
            found = np.concatenate([found, inner], axis=-1)
        return found

    def complementarity_error(self, x: Iterate, mu) -> np.ndarray:
        """Largest distance of ``s z`` and ``e w`` from ``mu``, (samples,)."""
        mu = mu[:, None, None]
        off = np.where(self.mask, np.abs(x.s * x.z - mu), 0.0)
        off = np.maximum(off, np.where(self.soft, np.abs(x.e * x.w - mu), 0.0))
        return off.max(axis=(1, 2), initial=0.0)

    def merit(self, values, c, slacks, mu) -> tuple[np.ndarray, np.ndarray]:
        """Cost with penalties and barrier, and the sum of all errors, (samples,) each."""
        s, e = slacks
        theta = np.abs(values.gap).sum(axis=(1, 2)) + np.abs(values.final).sum(axis=1)
        theta += (np.abs(c + s - e) * self.mask).sum(axis=(1, 2))
        barrier = (np.log(s) * self.mask).sum(axis=(1, 2))
        barrier += np.log(np.where(self.soft, e, 1.0)).sum(axis=(1, 2))
        paid = np.where(self.soft, self.rho * e, 0.0).sum(axis=(1, 2))
        return values.cost + paid - mu * barrier, theta

    def fitting_slacks(self, c, x: Iterate, least) -> tuple[np.ndarray, np.ndarray]:
        """Slacks and violations that satisfy ``c``, but ``least`` of their sizes at least."""
        least = least[:, None, None]
        s = np.where(self.mask, np.maximum(-c, least * x.s), 1.0)
        e = np.maximum(c + s, least * x.e)
        return s, np.where(self.soft, e, 0.0)
