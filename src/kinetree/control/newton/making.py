"""Makes the records of Newton's method for a problem: sizes, arrays, kernels tied to them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kinetree.control.inequalities import Inequalities
from kinetree.control.newton.calls import InnerLoop, no_loop, renew, tie
from kinetree.control.newton.records import Batch, Derivatives, Knots, Search, Steps, WorkerArrays
from kinetree.control.newton.stances import (
    cone_mask,
    contacts_of,
    put_timetable,
    sizes_of_columns,
    sizes_of_factors,
    stance_of,
)
from kinetree.control.riccati import Horizon, panel_of, room_of
from kinetree.control.riccati_team import has_room, team_panel_of
from kinetree.control.shooting import Shooting
from kinetree.control.tiles import pad_to_eight
from kinetree.model.define import kernel_of
from kinetree.model.memo import remember


def batch_of_problem(problem: Any, shooting: Shooting, most: int, samples: int) -> Batch:
    """Batch record of a problem's first samples: sizes, limits and result arrays."""
    f, bounds, S = shooting, problem.bounds, samples
    model, T, m, n = f.model, f.steps, f.m, f.n
    nc, ne = _count(f.values_kernel()), _count(f.final_values_kernel())
    contacts = contacts_of(shooting, nc)
    limits = Inequalities(problem, nc, cone_mask(shooting))
    nc += contacts.cones
    held, E = model.nv if f.held == "tau" else len(model.actuators), S * (T + 1)
    variables = {"q": E * model.nq, "qd": E * model.nv, "u": E * m, "y": S * ne}
    variables["z"] = E * (limits.bound_count + nc)
    return Batch(
        **{name: np.zeros(size) for name, size in variables.items()},
        nq=model.nq,
        nv=model.nv,
        m=m,
        n=n,
        size=m + n,
        nf=held,
        steps=T,
        samples=S,
        ng=sum(g.array[0].size if not g.timed else T * _size(g) for g in _given_arrays(f)),
        nb=limits.bound_count,
        nc=nc,
        ni=limits.bound_count + nc,
        ne=ne,
        flat=int(f.flat),
        touching=int(problem.touching),
        memory=f.transition.memory if f.force_rows else 0,
        rows=f.force_rows,
        exact=int(problem.second_order),
        outside=int(f.on_arrays is not None),
        lanes=1,
        most=most,
        tolerance=problem.tolerance,
        lax=problem.lax,
        h=float(f.run.dt),
        columns=_whole(problem.columns),
        index=_whole(bounds.index),
        sign=_numbers(bounds.sign),
        value=_numbers(bounds.value),
        position=_whole(bounds.position),
        lower=_numbers(bounds.lower),
        upper=_numbers(bounds.upper),
        mask=_numbers(limits.mask),
        soft=_numbers(limits.soft),
        rho=_numbers(limits.rho),
        K=np.zeros(S * T * m * n),
        given=_numbers(given_rows(f)[:S]),
        mu=np.zeros(S),
        optimality=np.full(S, np.inf),
        gap=np.full(S, np.inf),
        cost=np.zeros(S),
        violation=np.zeros(S),
        count=np.zeros(S, np.int64),
        converged=np.zeros(S, np.int64),
        history=np.zeros(S * (most + 1)),
        contacts=contacts,
        f=np.zeros(S * T * contacts.rows),
        impulse=np.zeros(S * T * contacts.rows),
    )


def renew_schedule(b: Batch, shooting: Shooting) -> None:
    """Update a batch's contact schedule after its start time has changed."""
    if shooting.schedule is None:
        return
    put_timetable(b.contacts, shooting)
    cones = cone_mask(shooting)
    at = slice(b.ni - cones.shape[1], b.ni)
    b.mask.reshape(-1, b.ni)[:, at] = cones
    b.soft.reshape(-1, b.ni)[:, at] = cones & np.isfinite(b.rho[at])


def _numbers(x):
    """Flat contiguous float64 copy or view of an array."""
    return np.ascontiguousarray(x, np.float64).reshape(-1)


def _whole(x):
    """Flat contiguous int64 copy or view of an array."""
    return np.ascontiguousarray(x, np.int64).reshape(-1)


def _count(kernel) -> int:
    """Number of constraints that a kernel computes."""
    return kernel.outputs[1].shape[0] if kernel is not None and len(kernel.outputs) > 1 else 0


def _given_arrays(shooting):
    """Arrays that step kernels take besides the held controls."""
    return [g for g in shooting.run.arrays.given if g.kind != shooting.held]


def _size(g) -> int:
    """Number of scalars of an argument for one step."""
    return int(np.prod(g.shape, dtype=int))


def given_rows(shooting: Shooting) -> np.ndarray:
    """Arguments of step kernels besides controls, one row per sample."""
    S, T = shooting.samples, shooting.steps
    rows = [
        np.moveaxis(g.array[:T], 0, 1).reshape(S, -1) if g.timed else g.array.reshape(S, -1)
        for g in _given_arrays(shooting)
    ]
    return np.concatenate([np.zeros((S, 0)), *rows], axis=1)


def knots_of(b: Batch) -> Knots:
    """Zero arrays for the knots of a sample, as a record."""
    T, E = b.steps, b.steps + 1
    sizes = [
        (E * b.nq, "q"),
        (E * b.nv, "qd"),
        (E * b.m, "u"),
        (T * b.nf, "held"),
        (T * b.nq, "q_after row"),
        (T * b.nv, "v_after total qdd"),
        (T * b.memory, "start after"),
        (T * b.nc, "path"),
        (b.ne, "final"),
        (T * b.n, "gap"),
        (E * b.ni, "c s e"),
        (T, "work costs"),
        (1, "end"),
        (2, "sums"),
    ]
    return Knots(**zeros(sizes))


def zeros(sizes) -> dict[str, Any]:
    """Dict of zero arrays, from pairs of a size and names."""
    return {name: np.zeros(size) for size, names in sizes for name in names.split()}


def parts(x, sizes) -> dict[str, Any]:
    """Dict of consecutive parts of an array, by name and size."""
    ends = np.cumsum([*sizes.values()])
    return {name: x[end - sizes[name] : end] for name, end in zip(sizes, ends, strict=True)}


IDLE = 4  # workers that are kept of one kind


@contextmanager
def worker(shooting: Shooting, b: Batch) -> Iterator[WorkerArrays]:
    """Worker for a problem, reused from earlier problems of the same structure."""
    if shooting.idle is None:
        shooting.idle = _idle_workers(shooting, b)
    idle = shooting.idle
    try:
        found: Any = idle.pop()
        for loop in found.loops:
            renew(loop, b.steps * b.samples)
    except IndexError:
        found = work_of(shooting, b)
    found.search.sample, found.search.wanted = -1, 0
    yield found
    if len(idle) < IDLE:  # not after an interrupt, which may have left it anywhere
        idle.append(found)


def _idle_workers(f, b):
    """Idle workers of problems with the same structure."""
    given = tuple((g.kind, g.shape, g.timed) for g in f.run.arrays.given)
    stances = () if f.schedule is None else f.schedule.key
    sizes = b.steps, b.h, f.run.t0, b.nb, b.exact, b.outside, f.simple, stances
    return remember(f.model, ("workers", f.transition, f.terms, f.columns, given, sizes), list)


def work_of(shooting: Shooting, b: Batch) -> WorkerArrays:
    """New worker: its arrays, and kernels tied to them."""
    T, E, m, n, nv, size = b.steps, b.steps + 1, b.m, b.n, b.nv, b.size
    slope = b.h if shooting.simple or b.contacts.count else 0.0
    exact, simple = b.exact * E * size * size, shooting.simple * T * nv
    arrays = zeros(
        [
            (b.ng, "given"),
            (T * n * size, "F"),
            (E * size, "g gradient dz"),
            (E * size * size, "H"),
            (exact, "mixed exact"),
            (E * size * pad_to_eight(size + 1), "square"),
            (max(room_of(n, m, b.contacts.turns), 2 * n), "room"),
            (0, "scratch"),
            (T * b.nc * size, "path"),
            (b.ne * size, "final"),
            (max(b.ne, 1), "y dy"),
            (T * max(nv + b.nq + b.nc, 1), "weights"),
            (T * max(size, b.nq), "row"),
            (T * n, "costates"),
            (E * b.ni, "z w ratio give pull push ds de dlam reach reach_dual"),
            (T * m * n, "K kept"),
            (E * n, "change"),
            (E, "curve_of_step"),
            (E * nv, "lines"),
            (b.nq, "reached"),
            (nv, "away"),
            (simple * nv, "A_q A_v A_f"),
            (simple * size, "f_z"),
            (T * nv * b.nq, "back"),
            (T * nv * nv, "bending"),
        ]
    )
    now, tried = knots_of(b), knots_of(b)
    factors = sizes_of_factors(b)  # in the same memory as rows, which are needed at other times
    rows = 2 * b.nc * pad_to_eight(size + 1) + 8 * (b.nc > 0)
    columns, panel = sizes_of_columns(b), panel_of_worker(b, slope)
    together = panel if 8 * panel <= PANEL else 0
    bench = np.zeros(max(rows, together, sum(factors.values()), sum(columns.values())))
    arrays["acting"] = bench[:rows]
    tied = Tying(shooting, b, arrays)
    kernels = {"steps": tied.steps(tried), "derivatives": tied.derivatives(now)}
    kernels |= tied.on_manifold(now, tried)
    linear = {"F": "F", "H": "square", "K": "K", "z": "dz", "room": "room"}
    of_knots = {name: arrays[own] for name, own in linear.items()}
    of_knots["panel"] = bench[:panel] if together else np.zeros(panel)
    kernels["stance"] = stance = stance_of(
        tied, b, now, tried, parts(bench, factors) | parts(bench, columns)
    )
    c = b.contacts
    blocks = {"turns": c.turns, "turn": c.turn, "width": c.width}
    blocks |= {"turned": stance.turned, "spun": stance.spun}
    sizes = {"n": n, "m": m, "steps": T, "wide": pad_to_eight(size + 1)}
    horizon = Horizon(**sizes, h=slope, gap=now.gap, **of_knots, **blocks)
    work = WorkerArrays(
        search=Search(sample=-1), now=now, horizon=horizon, tried=tried, **kernels, **arrays
    )
    work.loops = tied.loops
    return work


def panel_of_worker(b: Batch, slope: float) -> int:
    """Numbers of the matrices of a step of the horizon."""
    of_team = team_panel_of(b.n, b.m, b.contacts.turns) if has_teams(b, slope) else 0
    return max(panel_of(b.n, b.m, slope), of_team)


def has_teams(b: Batch, slope: float) -> bool:
    """Whether teams have lanes enough for tiles of the linear-quadratic problem."""
    return slope != 0.0 and b.exact == 0 and has_room(b.n, b.m, b.team)


PANEL = 25_000
"""Bytes of the matrices of a step of the horizon that lie with the factors of one, at most."""


class Tying:
    """Ties kernels to the arrays of a worker.

    Args:
        shooting: gives the kernels.
        b: sizes.
        arrays: of the worker, by name.
    """

    def __init__(self, shooting: Shooting, b: Batch, arrays: dict[str, Any]):
        self.shooting, self.b, self.arrays = shooting, b, arrays
        self.times, self.h = shooting.times.copy(), np.array(float(b.h))
        self.samples = b.steps * b.samples
        self.loops: list[InnerLoop] = []

    def steps(self, k: Knots) -> Steps:
        """Tied step kernels of the trial knots ``k``."""
        f, b, T, given = self.shooting, self.b, self.b.steps, self.given_inputs(k)
        state = self.state(k)
        values, final = f.values_kernel(), f.final_values_kernel()
        found: dict[str, Any] = {"simple": int(f.simple), "forced": int(f.simple and f.forced)}
        found |= {"costly": int(values is not None), "ending": int(final is not None)}
        found |= dict.fromkeys(Steps.types.keys() - found.keys(), no_loop())
        if f.simple:
            force = k.total if f.forced else k.held
            if f.forced:
                found["force"] = self.tie(f.force_kernel(), *state, *given, self.rows(k.total))
            state_alone = *state[2:], self.rows(force), self.rows(k.qdd)
            found["accelerate"] = self.tie(f.acceleration_kernel(), *state_alone)
        elif not b.outside and not b.contacts.count:
            found["step"] = self.step(k, state, given)
        if not b.flat:
            ends = k.q.reshape(T + 1, -1)[1:], self.rows(k.row), k.gap.reshape(T, -1)[:, : b.nv]
            found["difference"] = self.tie(kernel_of(f.model, "difference"), *ends)
        if values is not None:
            before = b.contacts.before
            ends = k.costs, *([self.rows(k.path)[:, :before]] if before else [])
            found["running"] = self.tie(values, *state, *given, *ends)
        if final is not None:
            ends = k.end, *([k.final] if b.ne else [])
            found["final"] = self.tie(final, *self.end(k), *ends)
        return Steps(**found)

    def step(self, k, state, given):
        """Tied kernel of an integration step, with contact memory."""
        kernel, one = self.shooting.step_kernel(), np.array(1.0)
        memory = [self.rows(k.start)] if self.b.memory else []
        after = [self.rows(k.after)] if self.b.memory else []
        begin = *state[:2], one, *state[2:], np.array(0.0), *memory, *given
        ends = [self.rows(k.q_after), self.rows(k.v_after), k.work, *after]
        ends += [np.zeros(self.b.steps) for _ in kernel.outputs[len(ends) :]]  # doubts
        return self.tie(kernel, *begin, *ends)

    def derivatives(self, k: Knots) -> Derivatives:
        """Tied kernels of derivatives at the current knots ``k``."""
        f, b, T, a, size = self.shooting, self.b, self.b.steps, self.arrays, self.b.size
        state, given = self.state(k), self.given_inputs(k)
        knots, ending = f.knots_kernel(), f.final_values_kernel() is not None
        found: dict[str, Any] = {"simple": int(f.simple), "forced": int(f.simple and f.forced)}
        found |= {"by_rows": int(f.by_rows), "costly": int(knots is not None)}
        found |= {"ending": int(ending), "curved": 0, "end_curved": 0}
        found["weights_of_knot"] = max(b.nq + b.nv + b.nc, 1)
        found |= dict.fromkeys(Derivatives.types.keys() - found.keys(), no_loop())
        if f.simple:
            force = self.rows(k.total if f.forced else k.held)
            A = [a[name].reshape(T, b.nv, b.nv) for name in ("A_q", "A_v", "A_f")]
            kernel = f.acceleration_derivatives_kernel()
            found["accelerate"] = self.tie(kernel, *state[2:], force, *A)
        if f.simple and f.forced:
            f_z = a["f_z"].reshape(T, b.nv, size)
            found["force"] = self.tie(f.force_derivatives_kernel(), *state, *given, f_z)
        if f.by_rows:
            found["rows"] = self.by_rows(k, state, given)
        g, H = a["g"].reshape(T + 1, size), a["H"].reshape(T + 1, size, size)
        if knots is not None:
            ends = [a["F"].reshape(T, b.n, size)] * f.knots_have_steps + [g[:T], H[:T]]
            before = b.contacts.before
            path = [a["path"].reshape(T, b.nc, size)[:, :before]] * bool(before)
            ends += self.other_curve(found, "curve", len(knots.outputs) - len(ends + path), T)
            found["knots"] = self.tie(knots, *state, *given, *ends, *path)
        if ending:
            kernel, ends = f.end_kernel(), [g[T], H[T]]
            final = [a["final"].reshape(b.ne, size)] * bool(b.ne)
            missing = len(kernel.outputs) - len(ends + final)
            ends += [x[0] for x in self.other_curve(found, "end_curve", missing, 1)]
            found["end"] = self.tie(kernel, *self.end(k), *ends, *final)
        self.curvature(found, k, state, given)
        return Derivatives(**found)

    def other_curve(self, found, name, missing, count):
        """Array for second derivatives of costs that are not half squares, in a list; or empty."""
        if not missing:
            return []
        found["curved" if name == "curve" else "end_curved"] = 1
        self.arrays[name] = np.zeros(count * self.b.size**2)
        self.arrays["scratch"] = np.zeros(2 * self.b.size**2)
        return [self.arrays[name].reshape(count, self.b.size, self.b.size)]

    def by_rows(self, k, state, given):
        """Tied kernel of the step's gradients, row by row."""
        b, T = self.b, self.b.steps
        memories = [self.rows(k.start), self.rows(k.after)] if b.memory else []
        weights = self.arrays["weights"][: T * (b.nq + b.nv)].reshape(T, -1)
        row = self.arrays["row"][: T * b.size].reshape(T, -1)
        return self.tie(self.shooting.rows_kernel(), *state, *memories, *given, weights, row)

    def curvature(self, found, k, state, given):
        """Tied kernels of the Lagrangian's second derivatives, if they are used."""
        f, b, T, a, size = self.shooting, self.b, self.b.steps, self.arrays, self.b.size
        after = self.rows(k.q_after), self.rows(k.v_after)
        if not b.flat and not b.outside and (b.exact or f.by_rows):
            back = a["back"].reshape(T, b.nv, b.nq)
            found["back"] = self.tie(f.back_kernel(), *after, back)
        if not b.exact:
            return
        exact = a["exact"].reshape(T + 1, size, size)
        if not b.outside:
            weights = a["weights"].reshape(T, -1)
            kernel = f.curvature_kernel(b.nc)
            found["curve"] = self.tie(kernel, *state, *given, weights, exact[:T])
        if not b.flat and not b.outside:
            by_q = a["row"][: T * b.nq].reshape(T, -1)
            bending = a["bending"].reshape(T, b.nv, b.nv)
            found["bending"] = self.tie(f.bending_kernel(), *after, by_q, bending)
        if found["ending"]:
            kernel = f.final_curvature_kernel(b.ne)
            y = a["y"][: max(b.ne, 1)]
            found["end_curve"] = self.tie(kernel, *self.end(k), y, exact[T])

    def on_manifold(self, now: Knots, tried: Knots) -> dict[str, InnerLoop]:
        """Tied kernels of moves and differences on the manifold, between knots and a trial."""
        if self.b.flat:
            return dict.fromkeys(("move", "deviate", "shift"), no_loop())
        b, a, model, E = self.b, self.arrays, self.shooting.model, self.b.steps + 1
        move, difference = kernel_of(model, "integrate"), kernel_of(model, "difference")
        q, other = now.q.reshape(E, -1), tried.q.reshape(E, -1)
        change = a["change"].reshape(E, -1)[:, : b.nv]
        return {
            "move": self.tie(move, q, a["lines"].reshape(E, -1), other),
            "deviate": self.tie(difference, q, other, change),
            "shift": self.tie(move, a["reached"], a["away"], other),
        }

    # --- arguments ---------------------------------------------------------------------------

    def tie(self, kernel, *arrays) -> InnerLoop:
        """Tie a kernel's machine code to arrays."""
        self.loops.append(tie(kernel, arrays, self.samples))
        return self.loops[-1]

    def rows(self, x):
        """Numbers of steps as an array with one row per step."""
        return x.reshape(self.b.steps, -1)

    def state(self, k: Knots):
        """Arrays of time, step length and state at every knot but the last."""
        T = self.b.steps
        return self.times[:T], self.h, k.q.reshape(T + 1, -1)[:T], k.qd.reshape(T + 1, -1)[:T]

    def given_inputs(self, k: Knots):
        """Argument arrays of step kernels, in their order."""
        found, at = [], 0
        for g in self.shooting.run.arrays.given:
            if g.kind == self.shooting.held:
                found.append(self.rows(k.held))
                continue
            count = _size(g) * (self.b.steps if g.timed else 1)
            shape = (self.b.steps, *g.shape) if g.timed else g.shape
            found.append(self.arrays["given"][at : at + count].reshape(shape))
            at += count
        return found

    def end(self, k: Knots):
        """Arguments of final-state kernels; controls are those of the last step."""
        T, given = self.b.steps, self.shooting.run.arrays.given
        q, qd = k.q.reshape(T + 1, -1)[T], k.qd.reshape(T + 1, -1)[T]
        steps = [g.timed or g.kind == self.shooting.held for g in given]
        held = (x[-1] if timed else x for timed, x in zip(steps, self.given_inputs(k), strict=True))
        return self.times[T:].reshape(()), self.h, q, qd, *held
