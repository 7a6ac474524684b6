"""Newton's method with a barrier on problems of multiple shooting, all samples at once.

An iteration linearizes steps and constraints, measures errors, lowers the barrier where they are
small, solves a linear-quadratic problem for a direction, and goes along it as far as a merit
function falls. ``inequalities`` explains slacks and multipliers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.codegen.progress import working
from kinetree.control.inequalities import Inequalities, Iterate
from kinetree.control.riccati import control_gradients, solve
from kinetree.control.shooting import Derivatives, Knots, Multipliers, Shooting, Values
from kinetree.control.starts import Start

PROXIMAL = 1e-7  # inverse penalty of final constraints between updates of their multipliers
NEAR = 10.0  # the barrier falls once errors are below this multiple of it
PARTS = 1.0, 0.5, 0.1  # of second derivatives of steps, until matrices are positive
TRIALS = 12  # halvings of a step before its matrices are damped instead
SHORT, FAR = 0.3, 0.5  # parts of a step from which on matrices are damped more, and less
MOST = 1e-3  # damping because of short steps
DAMPING = 1e-6, 1e8  # the first damping of matrices, and that at which a sample is given up
TOGETHER = 128  # samples that are computed together, so that their arrays stay in the cache


@dataclass
class Linearization:
    """Variables of some samples, with all values and derivatives there.

    Attributes:
        which: numbers of the samples.
        x: their variables.
        values: next states, costs and constraints.
        c: values of inequalities, (samples, steps + 1, ni).
        by: derivatives.
    """

    which: np.ndarray
    x: Iterate
    values: Values
    c: np.ndarray
    by: Derivatives


@dataclass
class Condensed:
    """Inequalities as parts of a linear-quadratic problem: slacks and multipliers eliminated.

    Attributes:
        mu: barrier parameters, (samples, 1, 1).
        give: change of violations with multipliers.
        ratio: weights of squares of inequalities.
        force: multipliers of a step that leaves the knots where they are.
        gradient: of the problem, (samples, steps + 1, m + n).
    """

    mu: np.ndarray
    give: np.ndarray
    ratio: np.ndarray
    force: np.ndarray
    gradient: np.ndarray


@dataclass
class Direction:
    """Newton steps of some samples, and how far they may go.

    Attributes:
        dz: of knots, (samples, steps + 1, m + n).
        K: feedback of controls, (samples, steps, m, n).
        H: matrices of the problems that were solved.
        failed: samples whose matrices were not positive; their ``dz`` are zero.
        ds, de, dlam, dy: of slacks, violations, multipliers of inequalities, and of final
            constraints.
        keep: part of themselves by which slacks and multipliers may fall, (samples,).
        primal, dual: largest parts of the step for slacks and for multipliers, (samples,).
    """

    dz: np.ndarray
    K: np.ndarray
    H: np.ndarray
    failed: np.ndarray
    ds: np.ndarray
    de: np.ndarray
    dlam: np.ndarray
    dy: np.ndarray
    keep: np.ndarray
    primal: np.ndarray
    dual: np.ndarray


class Iterations:
    """Newton's method on all samples of a problem; those that are done drop out."""

    x: Iterate
    limits: Inequalities

    def __init__(self, problem: Any, shooting: Shooting):
        self.problem, self.shooting = problem, shooting
        self.S, self.T = shooting.samples, shooting.steps
        self.n, self.m = shooting.n, shooting.m

    def begin(self, guess, barrier):
        """Fill all arrays."""
        f, S = self.shooting, self.S
        start = Start(self.problem, f.run.arrays, guess)
        knots = start.knots()
        self.which = np.arange(S)
        self.memory = np.zeros((S, self.T, f.transition.memory)) if f.force_rows else None
        self.values = self._evaluated(self.which, knots, self.memory)
        path, final = self.values.path, self.values.final
        self.limits = Inequalities(self.problem, path.shape[-1])
        c = self.limits.values(knots, path)
        self.mu = np.empty(S)
        self.mu[:] = barrier if barrier is not None else start.barrier(self.values.cost)
        self.x = start.iterate(self.limits, knots, c, self.mu, final.shape[-1])
        self.damping, self.penalty = np.zeros(S), np.zeros(S)
        self.K = np.zeros((S, self.T, self.m, self.n))
        self.count, self.done = np.zeros(S, int), np.zeros(S, bool)
        self.converged = np.zeros(S, bool)
        self.optimality = np.full(S, np.inf)
        self.gap = np.full(S, np.inf)
        self.history = [self.values.cost.copy()]

    # --- values ------------------------------------------------------------------------------

    def _evaluated(self, which, knots, memory):
        values = self.shooting.evaluate(which, knots, memory)
        values.gap = self._gaps(knots, values)
        return values

    def _gaps(self, knots, values):
        nv, (q, qd, _) = self.problem.model.nv, knots
        gap = np.empty((*q.shape[:1], self.T, 2 * nv))
        finite = np.isfinite(values.q).all(axis=-1) & np.isfinite(values.qd).all(axis=-1)
        after = np.where(finite[..., None], values.q, q[:, 1:])
        gap[..., :nv] = self.problem.model.difference(np.ascontiguousarray(q[:, 1:]), after)
        gap[..., nv:] = values.qd - qd[:, 1:]
        gap[~finite] = np.inf
        return gap

    def _linearized(self, a) -> Linearization:
        """Values and derivatives at the current variables of samples ``a``."""
        x, values = self.x.some(a), _some_values(self.values, a)
        memories = None if self.memory is None else (self.memory[a], values.memory)
        by = self.shooting.derivatives(a, x.knots, values.q, memories)
        return Linearization(a, x, values, self.limits.values(x.knots, values.path), by)

    # --- iterations --------------------------------------------------------------------------

    def run(self, iterations):
        """Iterate until all samples are done, ``iterations`` times at most."""
        with working("optimizing a motion", iterations, "iterations") as work:
            self._run(iterations, work)

    def _run(self, iterations, work):
        for _ in range(iterations + 1):
            a = np.flatnonzero(~self.done)
            if not len(a):
                break
            last = self.count[a[0]] >= iterations
            for part in np.array_split(a, -(-len(a) // TOGETHER)):
                with np.errstate(all="ignore"):  # samples that fail are given up below
                    self._iterate(part, last)
            if last or self.done.all():
                break
            self.history.append(self.values.cost.copy())
            work.advance()

    def _iterate(self, a, last):
        """One iteration of samples ``a``; only their errors if it is the last."""
        at = self._linearized(a)
        error, costates = self._errors(at)
        exact = self.limits.complementarity_error(at.x, np.zeros(len(a)))
        fine = np.maximum(error, exact) <= self.problem.tolerance
        self.converged[a], self.done[a] = fine, fine
        if last or fine.all():
            return
        self._lower_barrier(at, error)
        step = self._direction(at, costates)
        accepted, alpha = self._search(at, step)
        self._move_multipliers(at, step, accepted, alpha)
        self._adapt_damping(at, step, accepted, alpha)
        self.count[a] += 1

    def _errors(self, at):
        """Largest error of constraints and of derivatives of the Lagrangian; costates."""
        a, x, v, by = at.which, at.x, at.values, at.by
        lagrangian = by.g + self.limits.gradient(x.z, by.path)
        lagrangian[:, -1] += np.einsum("se,sez->sz", x.y, by.final)
        gradients, costates = control_gradients(by.F, lagrangian)
        scale = np.maximum(1.0, np.abs(gradients - lagrangian[:, :-1, : self.m]).max(axis=(1, 2)))
        dual = np.abs(gradients).max(axis=(1, 2)) / scale
        primal = np.abs(v.gap).max(axis=(1, 2))
        self.gap[a], self.optimality[a] = primal, dual
        if at.c.shape[-1]:
            off = np.abs(at.c + x.s - x.e) * self.limits.mask
            primal = np.maximum(primal, off.max(axis=(1, 2)))
        if v.final.shape[-1]:
            primal = np.maximum(primal, np.abs(v.final).max(axis=1))
        return np.maximum(dual, primal), costates

    def _lower_barrier(self, at, error):
        """Lower the barrier parameters of samples that are near the solution for theirs."""
        a, least = at.which, self.problem.tolerance / NEAR
        for _ in range(8):
            mu = self.mu[a]
            off = np.maximum(error, self.limits.complementarity_error(at.x, mu))
            lower = (off <= NEAR * mu) & (mu > least)
            if not lower.any() or not at.c.shape[-1]:
                break
            self.mu[a] = np.where(lower, np.maximum(least, np.minimum(0.2 * mu, mu**1.5)), mu)
            self.penalty[a[lower]] = 0.0

    # --- directions --------------------------------------------------------------------------

    def _direction(self, at, costates) -> Direction:
        x, by, limits, part = at.x, at.by, self.limits, self._condensed(at)
        dz, K, H, failed = self._knot_direction(at, part, costates)
        self.K[at.which] = np.where(failed[:, None, None, None], self.K[at.which], K)
        dz[failed] = 0.0
        along = limits.along(dz, by.path)
        dlam = np.where(limits.mask, part.force - x.z + part.ratio * along, 0.0)
        de = np.where(limits.soft, part.mu / x.w - x.e + part.give * dlam, 0.0)
        ds = np.where(limits.mask, -(at.c + x.s - x.e) - along + de, 0.0)
        dy = (at.values.final + np.einsum("sez,sz->se", by.final, dz[:, -1])) / PROXIMAL
        keep = np.maximum(0.99, 1 - self.mu[at.which])
        primal = np.minimum(_farthest(x.s, ds, keep), _farthest(x.e, de, keep))
        dual = np.minimum(_farthest(x.z, dlam, keep), _farthest(x.w, -dlam, keep))
        return Direction(dz, K, H, failed, ds, de, dlam, dy, keep, primal, dual)

    def _condensed(self, at) -> Condensed:
        x, by, mask, mu = at.x, at.by, self.limits.mask, self.mu[at.which][:, None, None]
        give = np.where(self.limits.soft, x.e / x.w, 0.0)
        ratio = np.where(mask, x.z / (x.s + x.z * give), 0.0)
        off = (at.c + x.s) + (mu / x.z + give * x.z - mu / x.w)
        force = np.where(mask, ratio * off, 0.0)
        gradient = by.g + self.limits.gradient(force, by.path)
        gradient[:, -1] += np.einsum("se,sez->sz", x.y + at.values.final / PROXIMAL, by.final)
        return Condensed(mu, give, ratio, force, gradient)

    def _knot_direction(self, at, part, costates):
        """Steps of knots, gains, matrices of the problem solved, and samples that failed.

        Second derivatives of steps are used as far as they leave the problem convex.
        """
        H, x, count = at.by.H, at.x, len(at.which)
        dz = np.zeros((count, self.T + 1, self.m + self.n))
        K = np.zeros((count, self.T, self.m, self.n))
        rest, failed = np.arange(count), np.zeros(count, bool)
        if self.problem.second_order:
            path = np.ascontiguousarray(x.z[:, :-1, self.limits.bound_count :])
            multipliers = Multipliers(costates, path, x.y)
            exact = self.shooting.curvature(at.which, x.knots, at.values, at.by.F, multipliers)
            kept = np.empty_like(H)
            for share in PARTS:  # less of what is not convex, until nothing is left of it
                mixed = H[rest] + share * (exact[rest] - H[rest])
                dz[rest], K[rest], failed[rest] = self._solved(at, part, mixed, rest)
                kept[rest] = mixed
                rest = np.flatnonzero(failed)
                if not len(rest):
                    break
            H = np.where(failed[:, None, None, None], H, kept)
        if len(rest):
            dz[rest], K[rest], failed[rest] = self._solved(at, part, H[rest], rest)
        failed |= ~np.isfinite(dz).all(axis=(1, 2))
        return dz, K, H, failed

    def _solved(self, at, part, H, some):
        """Solutions of the linear-quadratic problems with matrices ``H`` of ``some`` samples."""
        by_final, full = at.by.final[some], np.empty((*H.shape[:-1], H.shape[-1] + 1))
        full[..., :-1], full[..., -1] = H, part.gradient[some]
        self.limits.add_squares(full, part.ratio[some], at.by.path[some])
        if by_final.shape[-2]:
            full[:, -1, :, :-1] += np.swapaxes(by_final, -1, -2) @ by_final / PROXIMAL
        gap = np.ascontiguousarray(at.values.gap[some])
        return solve(at.by.F[some], full, gap, self.damping[at.which][some])

    # --- steps -------------------------------------------------------------------------------

    def _search(self, at, step):
        """Go as far as the merit function falls: which samples moved, and parts of their steps."""
        a, x, merit = at.which, at.x, self.limits.merit
        now, theta = merit(at.values, at.c, (x.s, x.e), self.mu[a])
        slope = self._slope(at, step, theta)
        penalty = self.penalty[a]
        now, fall = now + penalty * theta, penalty * theta - slope
        alpha, accepted = step.primal.copy(), np.zeros(len(a), bool)
        i = np.flatnonzero(~step.failed)
        for _ in range(TRIALS):
            if not len(i):
                break
            knots, slacks, values, c = self._trial(at, step, i, alpha[i])
            new, theta = merit(values, c, slacks, self.mu[a[i]])
            new += penalty[i] * theta
            good = new <= now[i] - 1e-4 * alpha[i] * fall[i] + 1e-12 * (1 + np.abs(now[i]))
            self._keep(a[i], good, knots, slacks, values)
            accepted[i[good]] = True
            alpha[i[~good]] *= 0.5
            i = i[~good]
        return accepted, alpha

    def _slope(self, at, step, theta):
        """Slope of the merit function without penalty at first; raises penalties as needed."""
        a, x, mask, soft = at.which, at.x, self.limits.mask, self.limits.soft
        dz, ds, de = step.dz, step.ds, step.de
        mu = self.mu[a]
        slope = (at.by.g * dz).sum(axis=(1, 2)) - mu * (ds / x.s * mask).sum(axis=(1, 2))
        by_e = self.limits.rho - mu[:, None, None] / x.e
        slope += np.where(soft, by_e * de, 0.0).sum(axis=(1, 2))
        curve = np.einsum("stz,stzw,stw->s", dz, step.H, dz)
        curve += (x.z / x.s * ds**2 * mask).sum(axis=(1, 2))
        curve += np.where(soft, x.w / x.e * de**2, 0.0).sum(axis=(1, 2))
        curve = np.maximum(curve, 0.0)
        needed = np.where(theta > 1e-12, (slope + 0.5 * curve) / (0.9 * theta), 0.0)
        self.penalty[a] = np.maximum(self.penalty[a], needed)
        return slope

    def _trial(self, at, step, i, alpha):
        """Knots, slacks, values and inequalities of samples ``i`` after a part of their steps."""
        x, far = at.x, alpha[:, None, None]
        memory = None if self.memory is None else at.values.memory[i]
        if self.problem.touching:
            knots = self._rolled(at, step, i, alpha, memory)
        else:
            knots = self._moved(x.knots.some(i), far * step.dz[i])
        values = self._evaluated(at.which[i], knots, memory)
        c = self.limits.values(knots, values.path)
        if self.problem.touching:
            slacks = self.limits.fitting_slacks(c, x.some(i), 1 - step.keep[i])
        else:
            slacks = x.s[i] + far * step.ds[i], x.e[i] + far * step.de[i]
        return knots, slacks, values, c

    def _moved(self, knots, dz) -> Knots:
        m, nv, (q, qd, u) = self.m, self.problem.model.nv, knots
        moved = self.problem.model.integrate(q, np.ascontiguousarray(dz[..., m : m + nv]))
        return Knots(moved, qd + dz[..., m + nv :], u + dz[..., :m])

    def _rolled(self, at, step, i, alpha, memory) -> Knots:
        """A part of a step, as a motion: knots follow each other but for what is left of gaps.

        Feet that stand on the ground stay there, where knots that move on their own would be
        pushed through it and thrown off.
        """
        p, m, nv = self.problem, self.m, self.problem.model.nv
        which, start = at.which[i], at.x.knots.some(i)
        dz, K, gap = step.dz[i], step.K[i], at.values.gap[i]
        found, u = Knots(*(x.copy() for x in start)), start.u
        part, rest = alpha[:, None], (1 - alpha)[:, None]
        near = 1 - step.keep[i][:, None]
        for k in range(self.T):
            dx = self._deviation(k, start, found)
            feedback = np.einsum("smn,sn->sm", K[:, k], dx - part * dz[:, k, m:])
            change = part * dz[:, k, :m] + feedback
            with np.errstate(invalid="ignore"):  # where there are no limits
                low, high = (near * (u[:, k] - x) + x for x in (p.bounds.lower, p.bounds.upper))
            low, high = np.fmax(low, p.bounds.lower), np.fmin(high, p.bounds.upper)
            found.u[:, k] = np.clip(u[:, k] + change, low, high)
            held = None if memory is None else memory[:, k]
            after = self.shooting.step(which, k, found.q[:, k], found.qd[:, k], found.u[:, k], held)
            good = _finite_rows(after)
            away = -rest * gap[:, k]
            reached = np.where(good, after[0], start.q[:, k + 1])
            found.q[:, k + 1] = p.model.integrate(reached, away[:, :nv])
            found.qd[:, k + 1] = np.where(good, after[1] + away[:, nv:], np.inf)
        return found

    def _deviation(self, k, knots, moved):
        """Deviation of the states of moved knots from others at step ``k``, (samples, n)."""
        dq = self.problem.model.difference(knots.q[:, k].copy(), moved.q[:, k].copy())
        return np.concatenate([dq, moved.qd[:, k] - knots.qd[:, k]], axis=-1)

    def _keep(self, which, good, knots, slacks, values):
        """Make trials the variables of those samples of ``which`` for which they are ``good``."""
        x = self.x
        if good.all() and len(which) == self.S:
            x.knots, (x.s, x.e) = knots, slacks
            self.memory, self.values = self.values.memory, values
            return
        taken = which[good]
        for own, new in zip((*x.knots, x.s, x.e), (*knots, *slacks), strict=True):
            own[taken] = new[good]
        if self.memory is not None:
            self.memory[taken] = self.values.memory[taken]
        for name in ("q", "qd", "memory", "cost", "path", "final", "gap"):
            own, new = getattr(self.values, name), getattr(values, name)
            if own is not None:
                own[taken] = new[good]

    def _move_multipliers(self, at, step, accepted, alpha):
        x, new, taken = at.x, self.x, at.which[accepted]
        change = step.dual[accepted, None, None] * step.dlam[accepted]
        new.z[taken], new.w[taken] = x.z[accepted] + change, x.w[accepted] - change
        new.y[taken] = x.y[accepted] + alpha[accepted, None] * step.dy[accepted]
        if at.c.shape[-1]:  # multipliers stay near mu / s
            middle = np.where(self.limits.mask, self.mu[taken, None, None] / new.s[taken], 0.0)
            most = np.minimum(1e10 * middle, self.limits.rho)
            moved = np.clip(new.z[taken], 1e-10 * middle, most)
            new.w[taken] -= moved - new.z[taken]
            new.z[taken] = moved

    def _adapt_damping(self, at, step, accepted, alpha):
        """Damp matrices more after short steps, less after long ones; give up where that fails."""
        a, (first, most) = at.which, DAMPING
        damping = self.damping[a]
        less = np.where(damping > first, damping / 10, 0.0)
        more = np.maximum(10 * damping, first)
        far, short = alpha >= FAR * step.primal, ~accepted | (alpha < SHORT * step.primal)
        more = np.where(accepted, np.minimum(more, np.maximum(damping, MOST)), more)
        self.damping[a] = np.where(accepted & far, less, np.where(short, more, damping))
        self.done[a] |= self.damping[a] > most

    # --- the end -----------------------------------------------------------------------------

    def _closed(self) -> Knots:
        """States that are exactly the rollout of the controls, corrected by the feedback."""
        f, p, (q0, qd0, _) = self.shooting, self.problem, self.x.knots
        found = q, qd, u = Knots(*(x.copy() for x in self.x.knots))
        memory = None if self.memory is None else self.values.memory.copy()
        with np.errstate(all="ignore"):
            for k in range(self.T):
                dx = self._deviation(k, self.x.knots, found)
                change = np.einsum("smn,sn->sm", self.K[:, k], dx)
                u[:, k] = np.clip(u[:, k] + change, p.bounds.lower, p.bounds.upper)
                held = None if memory is None else memory[:, max(k - 1, 0)]
                after = f.step(self.which, k, q[:, k], qd[:, k], u[:, k], held)
                good = _finite_rows(after)
                q[:, k + 1] = np.where(good, after[0], q0[:, k + 1])
                qd[:, k + 1] = np.where(good, after[1], qd0[:, k + 1])
                if memory is not None:
                    memory[:, k] = after[2]
        return found

    def result(self) -> dict[str, Any]:
        """Arrays of the result, in the shapes of the caller: time first, then the batch."""
        p, batch = self.problem, self.shooting.run.arrays.batch
        knots = self._closed()
        values = self._evaluated(self.which, knots, self.memory)
        c = np.where(self.limits.mask, self.limits.values(knots, values.path), 0.0)
        violation = np.maximum(c.reshape(self.S, -1).max(axis=1, initial=0.0), 0.0)
        final = np.abs(values.final).max(axis=1, initial=0.0)
        violation = np.maximum(violation, final)
        closed = np.abs(values.gap).max(axis=(1, 2)) < p.tolerance
        hard = np.where(self.limits.soft, 0.0, c).reshape(self.S, -1).max(axis=1, initial=0.0)
        converged = self.converged & closed & (np.maximum(hard, final) < NEAR * p.tolerance)

        def timed(x):
            x = np.moveaxis(x, 0, 1)
            return np.ascontiguousarray(x.reshape(len(x), *batch, *x.shape[2:]))

        single = {
            "cost": values.cost,
            "converged": converged,
            "optimality": self.optimality,
            "gap": self.gap,
            "violation": violation,
            "iterations": self.count,
        }
        found: dict[str, Any] = {name: x.reshape(batch) for name, x in single.items()}
        found["history"] = np.array(self.history).reshape(-1, *batch)
        found["multipliers"] = timed(self.x.z), self.x.y.reshape(*batch, -1)
        timed_arrays = {"q": knots.q, "qd": knots.qd, "gains": self.K, "u": knots.u[:, :-1]}
        return found | {name: timed(x) for name, x in timed_arrays.items()}


def _some_values(values, which) -> Values:
    names = ("q", "qd", "memory", "cost", "path", "final")
    own = (getattr(values, name) for name in names)
    found = Values(*(None if x is None else x[which] for x in own))
    found.gap = values.gap[which]
    return found


def _finite_rows(state):
    """Samples that have finite positions and velocities, (samples, 1) of bool."""
    return np.isfinite(np.concatenate(state[:2], axis=-1)).all(axis=-1, keepdims=True)


def _farthest(x, dx, keep):
    """Largest part of a step, at most 1, that leaves every number ``1 - keep`` of itself."""
    if not x.shape[-1]:
        return np.ones(len(x))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(dx < 0, -keep[:, None, None] * x / dx, np.inf)
    return np.minimum(1.0, ratio.min(axis=(1, 2)))
