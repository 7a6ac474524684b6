"""Newton's method with a barrier on problems of multiple shooting, all samples at once.

Inequalities ``c <= 0`` have slacks and multipliers, ``c + s - e = 0`` and ``s z = mu``. Those of
states may be soft: ``e > 0`` is their violation, at a cost of ``rho e``, with ``e (rho - z) = mu``;
for all others ``e = 0`` and ``rho`` is infinite.
"""

from typing import Any

import numpy as np

from kinetree.control.riccati import control_gradients, solve
from kinetree.control.shooting import Shooting, Values
from kinetree.errors import ShapeError

PROXIMAL = 1e-7  # inverse penalty of final constraints between updates of their multipliers
NEAR = 10.0  # the barrier falls once errors are below this multiple of it
PARTS = 1.0, 0.5, 0.1  # of second derivatives of steps, until matrices are positive
TRIALS = 12  # halvings of a step before its matrices are damped instead
SHORT, FAR = 0.3, 0.5  # parts of a step from which on matrices are damped more, and less
MOST = 1e-3  # damping because of short steps
DAMPING = 1e-6, 1e8  # the first damping of matrices, and that at which a sample is given up
TOGETHER = 128  # samples that are computed together, so that their arrays stay in the cache


class Iterations:
    """Newton's method on all samples of a problem; those that are done drop out."""

    def __init__(self, problem: Any, shooting: Shooting):
        self.p, self.f = problem, shooting
        self.S, self.T, self.n, self.m = (
            shooting.samples, shooting.steps, shooting.n, shooting.m,
        )  # fmt: skip

    # --- start -------------------------------------------------------------------------------

    def begin(self, guess, barrier):
        """Fill all arrays."""
        p, f, S, T, m = self.p, self.f, self.S, self.T, self.m
        model, arrays = p.model, f.run.arrays
        self.which = np.arange(S)
        self.q = np.repeat(arrays.q0[:, None], T + 1, axis=1)
        self.qd = np.repeat(arrays.qd0[:, None], T + 1, axis=1)
        self.u = np.zeros((S, T + 1, m))
        if guess.get("q") is not None:
            self.q[:, 1:] = self._spread(guess["q"], "q", T + 1, model.nq)[:, 1:]
            self.qd[:, 1:] = 0
        elif p.goal is not None:
            ends = np.broadcast_to(p.goal, (*arrays.batch, model.nq)).reshape(S, model.nq)
            way = model.difference(arrays.q0, ends)[:, None]
            part = np.linspace(0, 1, T + 1)[:, None]
            self.q = np.ascontiguousarray(model.integrate(self.q, part * way))
            self.qd[:, 1:-1] = way / (T * p.dt)
        if guess.get("qd") is not None:
            self.qd[:, 1:] = self._spread(guess["qd"], "qd", T + 1, model.nv)[:, 1:]
        given = guess.get("u")
        for name in ("tau", "controls"):
            if guess.get(name) is not None:
                full = model.nv if name == "tau" else m
                given = self._spread(guess[name], name, T, full)[..., p.columns]
        if given is not None:
            own = guess.get("u") is not None
            self.u[:, :-1] = self._spread(given, "tau", T, m) if own else given
        warm = guess.get("multipliers") is not None
        self._into_bounds(1e-4 if warm else 1e-2)
        self.memory = None
        if f.force_rows:
            self.memory = np.zeros((S, T, f.transition.memory))
        self.values = self._evaluated(self.which, self.q, self.qd, self.u, self.memory)
        c = self._inequalities(self.q, self.qd, self.u, self.values)
        self.mask = np.concatenate(
            [p.bounded, np.repeat(np.arange(T + 1)[:, None] < T, c.shape[-1] - len(p.index), 1)], 1
        )
        self.mu = np.empty(S)
        size = np.clip(np.abs(self.values.cost) / T, 0.1, 1e3)
        self.mu[:] = barrier if barrier is not None else (1e-3 if warm else 0.1) * size
        self.s = np.where(self.mask, np.maximum(-c, 1e-4 if warm else 1e-2), 1.0)
        of_states = np.concatenate([p.index >= m, np.ones(c.shape[-1] - len(p.index), bool)])
        penalty = np.inf if p.limit_penalty is None else p.limit_penalty
        self.rho = np.where(of_states, penalty, np.inf)
        self.soft = self.mask & np.isfinite(self.rho)
        mu = self.mu[:, None, None]
        self.e = np.where(self.soft, np.maximum(c + self.s, mu / self.rho), 0.0)
        self.z = np.where(self.mask, np.minimum(mu / self.s, 0.5 * self.rho), 0.0)
        self.y = np.zeros((S, self.values.final.shape[-1]))
        if warm:
            z, y = guess["multipliers"]
            if (z.shape[0], z.shape[-1]) != self.z.shape[1:] or y.shape[-1] != self.y.shape[-1]:
                raise ShapeError(
                    "the guess is the result of a problem with other steps or constraints: give "
                    "its q, qd and tau as a dict"
                )
            z = self._spread(z, "multipliers", T + 1, z.shape[-1])
            z = np.minimum(np.maximum(z, 1e-2 * self.z), 0.99 * self.rho)
            self.z = np.where(self.mask, z, 0.0)
            self.y = self._spread(y[None], "multipliers", 1, y.shape[-1])[:, 0]
        self.w = np.where(self.soft, self.rho - self.z, np.inf)  # kept: it may be tiny beside rho
        self.damping, self.penalty = np.zeros(S), np.zeros(S)
        self.K = np.zeros((S, T, m, self.n))
        self.count, self.done = np.zeros(S, int), np.zeros(S, bool)
        self.converged = np.zeros(S, bool)
        self.optimality = np.full(S, np.inf)
        self.gap = np.full(S, np.inf)
        self.history = [self.values.cost.copy()]

    def _spread(self, array, name, length, size):
        """A guess with time first as (samples, time, size)."""
        array = np.asarray(array, float)
        batch = self.f.run.arrays.batch
        if array.ndim < 2 or array.shape[0] != length or array.shape[-1] != size:
            raise ShapeError(
                f"guess of {name} must have shape ({length}, ..., {size}), time first, "
                f"got {array.shape}"
            )
        full = np.broadcast_to(
            array.reshape(length, *[1] * (len(batch) - array.ndim + 2), *array.shape[1:]),
            (length, *batch, size),
        )
        return np.array(np.moveaxis(full.reshape(length, self.S, size), 0, 1))

    def _into_bounds(self, push):
        lower, upper = self.p.lower, self.p.upper
        with np.errstate(invalid="ignore"):
            width = np.where(np.isfinite(upper - lower), upper - lower, np.inf)
            off = np.minimum(push * width, push * np.maximum(1.0, np.abs(lower)))
            above = np.where(np.isfinite(lower), lower + off, -np.inf)
            off = np.minimum(push * width, push * np.maximum(1.0, np.abs(upper)))
            below = np.where(np.isfinite(upper), upper - off, np.inf)
        self.u[:, :-1] = np.clip(self.u[:, :-1], above, below)

    # --- values ------------------------------------------------------------------------------

    def _evaluated(self, which, q, qd, u, memory):
        values = self.f.evaluate(which, q, qd, u[:, :-1], memory)
        values.gap = self._gaps(q, qd, values)
        return values

    def _gaps(self, q, qd, values):
        nv = self.p.model.nv
        gap = np.empty((*q.shape[:1], self.T, 2 * nv))
        finite = np.isfinite(values.q).all(axis=-1) & np.isfinite(values.qd).all(axis=-1)
        after = np.where(finite[..., None], values.q, q[:, 1:])
        gap[..., :nv] = self.p.model.difference(np.ascontiguousarray(q[:, 1:]), after)
        gap[..., nv:] = values.qd - qd[:, 1:]
        gap[~finite] = np.inf
        return gap

    def _inequalities(self, q, qd, u, values):
        """All numbers that must be at most zero, (samples, steps + 1, ni)."""
        p = self.p
        z = np.concatenate([u, np.where(p.position >= 0, q[..., p.position], 0.0), qd], axis=-1)
        bounds = p.sign * (z[..., p.index] - p.value)
        path = np.zeros((*bounds.shape[:2], values.path.shape[-1]))
        path[:, :-1] = values.path
        return np.concatenate([bounds, path], axis=-1)

    def _merit(self, values, c, s, e, mu, penalty):
        theta = np.abs(values.gap).sum(axis=(1, 2)) + np.abs(values.final).sum(axis=1)
        theta += (np.abs(c + s - e) * self.mask).sum(axis=(1, 2))
        barrier = (np.log(s) * self.mask).sum(axis=(1, 2))
        barrier += np.log(np.where(self.soft, e, 1.0)).sum(axis=(1, 2))
        paid = np.where(self.soft, self.rho * e, 0.0).sum(axis=(1, 2))
        return values.cost + paid - mu * barrier + penalty * theta, theta

    # --- iterations --------------------------------------------------------------------------

    def run(self, iterations):
        """Largest number of iterations."""
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

    def _iterate(self, a, last):
        """One iteration of samples ``a``; only their errors if it is the last."""
        p, v, mask = self.p, _part(self.values, a), self.mask
        q, qd, u, s, z, y = (x[a] for x in (self.q, self.qd, self.u, self.s, self.z, self.y))
        e, w = self.e[a], self.w[a]
        memories = None if self.memory is None else (self.memory[a], v.memory)
        F, g, H, by_path, by_final = self.f.derivatives(a, q, qd, u[:, :-1], v.q, memories)
        c, nb = self._inequalities(q, qd, u, v), len(p.index)

        def through(weights):
            """Gradients of the sum of inequalities times these weights."""
            found = weights[..., :nb] @ p.select
            if by_path.shape[-2]:
                found[:, :-1] += np.einsum("stc,stcz->stz", weights[:, :-1, nb:], by_path)
            return found

        # errors
        lagrangian = g + through(z)
        lagrangian[:, -1] += np.einsum("se,sez->sz", y, by_final)
        gradients, costates = control_gradients(F, lagrangian)
        scale = np.maximum(1.0, np.abs(gradients - lagrangian[:, :-1, : self.m]).max(axis=(1, 2)))
        dual = np.abs(gradients).max(axis=(1, 2)) / scale
        primal = np.abs(v.gap).max(axis=(1, 2))
        self.gap[a] = primal
        if c.shape[-1]:
            primal = np.maximum(primal, (np.abs(c + s - e) * mask).max(axis=(1, 2)))
        if v.final.shape[-1]:
            primal = np.maximum(primal, np.abs(v.final).max(axis=1))

        def distance(mu):
            """Of complementarity from ``mu``."""
            mu = mu[:, None, None]
            off = np.where(mask, np.abs(s * z - mu), 0.0)
            off = np.maximum(off, np.where(self.soft, np.abs(e * w - mu), 0.0))
            return off.max(axis=(1, 2), initial=0.0)

        self.optimality[a] = dual
        error = np.maximum(dual, primal)
        fine = np.maximum(error, distance(np.zeros(len(a)))) <= p.tolerance
        self.converged[a], self.done[a] = fine, fine
        if last or fine.all():
            return
        least = p.tolerance / NEAR
        for _ in range(8):
            lower = (np.maximum(error, distance(self.mu[a])) <= NEAR * self.mu[a]) & (
                self.mu[a] > least
            )
            if not lower.any() or not c.shape[-1]:
                break
            mu = self.mu[a]
            self.mu[a] = np.where(lower, np.maximum(least, np.minimum(0.2 * mu, mu**1.5)), mu)
            self.penalty[a[lower]] = 0.0

        # the linear-quadratic problem, with second derivatives where they leave it convex
        mu, give = self.mu[a][:, None, None], np.where(self.soft, e / w, 0.0)
        ratio = np.where(mask, z / (s + z * give), 0.0)
        force = np.where(mask, ratio * ((c + s) + (mu / z + give * z - mu / w)), 0.0)
        gradient = g + through(force)
        gradient[:, -1] += np.einsum("se,sez->sz", y + v.final / PROXIMAL, by_final)

        def solved(H, some):
            full = np.empty((*H.shape[:-1], H.shape[-1] + 1))
            full[..., :-1], full[..., -1] = H, gradient[some]
            at = np.arange(H.shape[-1])
            full[..., at, at] += ratio[some, ..., :nb] @ p.select**2
            if by_path.shape[-2]:
                weighted = by_path[some] * ratio[some, :-1, nb:, None]
                full[:, :-1, :, :-1] += np.swapaxes(by_path[some], -1, -2) @ weighted
            if by_final.shape[-2]:
                full[:, -1, :, :-1] += (
                    np.swapaxes(by_final[some], -1, -2) @ by_final[some] / PROXIMAL
                )
            return solve(F[some], full, np.ascontiguousarray(v.gap[some]), damping[some])

        damping, every = self.damping[a], np.arange(len(a))
        dz = np.zeros((*u.shape[:2], self.m + self.n))
        K = np.zeros((len(a), self.T, self.m, self.n))
        rest, failed = every, np.zeros(len(a), bool)
        if p.second_order:
            path = np.ascontiguousarray(z[:, :-1, nb:])
            kept = np.empty_like(H)
            exact = self.f.curvature(a, q, qd, u[:, :-1], v, F, costates, path, y)
            for part in PARTS:  # less of what is not convex, until nothing is left of it
                mixed = H[rest] + part * (exact[rest] - H[rest])
                dz[rest], K[rest], failed[rest] = solved(mixed, rest)
                kept[rest] = mixed
                rest = np.flatnonzero(failed)
                if not len(rest):
                    break
            H = np.where(failed[:, None, None, None], H, kept)
        if len(rest):
            dz[rest], K[rest], failed[rest] = solved(H[rest], rest)
        failed |= ~np.isfinite(dz).all(axis=(1, 2))
        self.K[a] = np.where(failed[:, None, None, None], self.K[a], K)
        dz[failed] = 0.0

        # directions of slacks and multipliers
        along = dz[..., p.index] * p.sign
        if by_path.shape[-2]:
            inner = np.zeros((*along.shape[:2], by_path.shape[-2]))
            inner[:, :-1] = np.einsum("stcz,stz->stc", by_path, dz[:, :-1])
            along = np.concatenate([along, inner], axis=-1)
        dmul = np.where(mask, force - z + ratio * along, 0.0)
        de = np.where(self.soft, mu / w - e + give * dmul, 0.0)
        ds = np.where(mask, -(c + s - e) - along + de, 0.0)
        dy = (v.final + np.einsum("sez,sz->se", by_final, dz[:, -1])) / PROXIMAL
        stay = np.maximum(0.99, 1 - self.mu[a])
        alpha = np.minimum(_farthest(s, ds, stay), _farthest(e, de, stay))
        reach = np.minimum(_farthest(z, dmul, stay), _farthest(w, -dmul, stay))
        allowed = alpha.copy()

        # the merit function and how it falls at first
        merit, theta = self._merit(v, c, s, e, self.mu[a], 0.0)
        slope = (g * dz).sum(axis=(1, 2)) - self.mu[a] * (ds / s * mask).sum(axis=(1, 2))
        slope += np.where(self.soft, (self.rho - mu / e) * de, 0.0).sum(axis=(1, 2))
        curve = np.einsum("stz,stzw,stw->s", dz, H, dz) + (z / s * ds**2 * mask).sum(axis=(1, 2))
        curve += np.where(self.soft, w / e * de**2, 0.0).sum(axis=(1, 2))
        curve = np.maximum(curve, 0.0)
        needed = np.where(theta > 1e-12, (slope + 0.5 * curve) / (0.9 * theta), 0.0)
        self.penalty[a] = np.maximum(self.penalty[a], needed)
        penalty = self.penalty[a]
        merit, fall = merit + penalty * theta, penalty * theta - slope

        # how far
        waiting, accepted = np.flatnonzero(~failed), np.zeros(len(a), bool)
        for _ in range(TRIALS):
            if not len(waiting):
                break
            i, some = waiting, a[waiting]
            here, memory = (q[i], qd[i], u[i]), None if self.memory is None else v.memory[i]
            if p.touching:
                trial = self._rolled(some, *here, dz[i], K[i], alpha[i], v.gap[i], memory, stay[i])
            else:
                trial = self._moved(*here, alpha[i, None, None] * dz[i])
            slacks = s[i] + alpha[i, None, None] * ds[i], e[i] + alpha[i, None, None] * de[i]
            values = self._evaluated(some, *trial, memory)
            c_new = self._inequalities(*trial, values)
            if p.touching:
                least_part = (1 - stay[i])[:, None, None]
                s_new = np.where(mask, np.maximum(-c_new, least_part * s[i]), 1.0)
                e_new = np.maximum(c_new + s_new, least_part * e[i])
                slacks = s_new, np.where(self.soft, e_new, 0.0)
            new, _ = self._merit(values, c_new, *slacks, self.mu[some], penalty[i])
            good = new <= merit[i] - 1e-4 * alpha[i] * fall[i] + 1e-12 * (1 + np.abs(merit[i]))
            self._keep(some, good, trial, slacks, values)
            accepted[i[good]] = True
            alpha[i[~good]] *= 0.5
            waiting = i[~good]
        taken = a[accepted]
        change = reach[accepted, None, None] * dmul[accepted]
        self.z[taken], self.w[taken] = z[accepted] + change, w[accepted] - change
        self.y[taken] = y[accepted] + alpha[accepted, None] * dy[accepted]
        if c.shape[-1]:  # multipliers stay near mu / s
            middle = np.where(mask, self.mu[taken, None, None] / self.s[taken], 0.0)
            moved = np.clip(self.z[taken], 1e-10 * middle, np.minimum(1e10 * middle, self.rho))
            self.w[taken] -= moved - self.z[taken]
            self.z[taken] = moved
        first, most = DAMPING
        less = np.where(damping > first, damping / 10, 0.0)
        more = np.maximum(10 * damping, first)
        far, short = alpha >= FAR * allowed, ~accepted | (alpha < SHORT * allowed)
        more = np.where(accepted, np.minimum(more, np.maximum(damping, MOST)), more)
        self.damping[a] = np.where(accepted & far, less, np.where(short, more, damping))
        self.count[a] += 1
        self.done[a] |= self.damping[a] > most

    def _moved(self, q, qd, u, dz):
        m, nv = self.m, self.p.model.nv
        moved = self.p.model.integrate(q, np.ascontiguousarray(dz[..., m : m + nv]))
        return moved, qd + dz[..., m + nv :], u + dz[..., :m]

    def _rolled(self, which, q, qd, u, dz, K, alpha, gap, memory, stay):
        """A part of a step, as a motion: knots follow each other but for what is left of gaps.

        Feet that stand on the ground stay there, where knots that move on their own would be
        pushed through it and thrown off.
        """
        p, m, nv = self.p, self.m, self.p.model.nv
        found = q.copy(), qd.copy(), u.copy()
        part, rest = alpha[:, None], (1 - alpha)[:, None]
        near = 1 - stay[:, None]
        for k in range(self.T):
            dx = np.concatenate(
                [
                    p.model.difference(q[:, k].copy(), found[0][:, k].copy()),
                    found[1][:, k] - qd[:, k],
                ],
                axis=-1,
            )
            change = part * dz[:, k, :m] + np.einsum(
                "smn,sn->sm", K[:, k], dx - part * dz[:, k, m:]
            )
            with np.errstate(invalid="ignore"):  # where there are no limits
                low, high = (near * (u[:, k] - x) + x for x in (p.lower, p.upper))
            low, high = np.fmax(low, p.lower), np.fmin(high, p.upper)
            found[2][:, k] = np.clip(u[:, k] + change, low, high)
            held = None if memory is None else memory[:, k]
            after = self.f.step(which, k, found[0][:, k], found[1][:, k], found[2][:, k], held)
            good = np.isfinite(after[0]).all(axis=-1) & np.isfinite(after[1]).all(axis=-1)
            away = -rest * gap[:, k]
            q_next = p.model.integrate(np.where(good[:, None], after[0], q[:, k + 1]), away[:, :nv])
            found[0][:, k + 1] = q_next
            found[1][:, k + 1] = np.where(good[:, None], after[1] + away[:, nv:], np.inf)
        return found

    def _keep(self, which, good, trial, slacks, values):
        if good.all() and len(which) == self.S:
            self.q, self.qd, self.u = trial
            (self.s, self.e), self.memory, self.values = slacks, self.values.memory, values
            return
        taken = which[good]
        for own, new in zip((self.q, self.qd, self.u), trial, strict=True):
            own[taken] = new[good]
        self.s[taken], self.e[taken] = (x[good] for x in slacks)
        if self.memory is not None:
            self.memory[taken] = self.values.memory[taken]
        for name in ("q", "qd", "memory", "cost", "path", "final", "gap"):
            own, new = getattr(self.values, name), getattr(values, name)
            if own is not None:
                own[taken] = new[good]

    # --- the end -----------------------------------------------------------------------------

    def _closed(self):
        """States that are exactly the rollout of the controls, corrected by the feedback."""
        f, p = self.f, self.p
        q, qd, u = self.q.copy(), self.qd.copy(), self.u.copy()
        memory = None if self.memory is None else self.values.memory.copy()
        with np.errstate(all="ignore"):
            for k in range(self.T):
                dq = p.model.difference(self.q[:, k].copy(), q[:, k].copy())
                dx = np.concatenate([dq, qd[:, k] - self.qd[:, k]], axis=-1)
                change = np.einsum("smn,sn->sm", self.K[:, k], dx)
                u[:, k] = np.clip(u[:, k] + change, p.lower, p.upper)
                held = None if memory is None else memory[:, max(k - 1, 0)]
                after = f.step(self.which, k, q[:, k], qd[:, k], u[:, k], held)
                good = np.isfinite(after[0]).all(axis=-1) & np.isfinite(after[1]).all(axis=-1)
                q[:, k + 1] = np.where(good[:, None], after[0], self.q[:, k + 1])
                qd[:, k + 1] = np.where(good[:, None], after[1], self.qd[:, k + 1])
                if memory is not None:
                    memory[:, k] = after[2]
        return q, qd, u

    def result(self) -> dict[str, Any]:
        """Arrays of the result, in the shapes of the caller: time first, then the batch."""
        p, batch = self.p, self.f.run.arrays.batch
        q, qd, u = self._closed()
        values = self._evaluated(self.which, q, qd, u, self.memory)
        c = np.where(self.mask, self._inequalities(q, qd, u, values), 0.0)
        violation = np.maximum(c.reshape(self.S, -1).max(axis=1, initial=0.0), 0.0)
        final = np.abs(values.final).max(axis=1, initial=0.0)
        violation = np.maximum(violation, final)
        closed = np.abs(values.gap).max(axis=(1, 2)) < p.tolerance
        hard = np.where(self.soft, 0.0, c).reshape(self.S, -1).max(axis=1, initial=0.0)
        converged = self.converged & closed & (np.maximum(hard, final) < NEAR * p.tolerance)

        def timed(x):
            x = np.moveaxis(x, 0, 1)
            return np.ascontiguousarray(x.reshape(len(x), *batch, *x.shape[2:]))

        single = {
            "cost": values.cost, "converged": converged, "optimality": self.optimality,
            "gap": self.gap, "violation": violation, "iterations": self.count,
        }  # fmt: skip
        found: dict[str, Any] = {name: x.reshape(batch) for name, x in single.items()}
        found["history"] = np.array(self.history).reshape(-1, *batch)
        found["multipliers"] = timed(self.z), self.y.reshape(*batch, -1)
        return found | {
            "q": timed(q),
            "qd": timed(qd),
            "gains": timed(self.K),
            "u": timed(u[:, :-1]),
        }


def _part(values, which) -> Values:
    """Values of some samples."""
    names = ("q", "qd", "memory", "cost", "path", "final")
    own = (getattr(values, name) for name in names)
    found = Values(*(None if x is None else x[which] for x in own))
    found.gap = values.gap[which]
    return found


def _farthest(x, dx, stay):
    """Largest part of a step, at most 1, that leaves every number ``1 - stay`` of itself."""
    if not x.shape[-1]:
        return np.ones(len(x))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(dx < 0, -stay[:, None, None] * x / dx, np.inf)
    return np.minimum(1.0, ratio.min(axis=(1, 2)))
