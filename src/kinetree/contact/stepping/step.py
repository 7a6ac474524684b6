"""One step with contact: the text of the step that is unrolled for one small scene.

Moreau's midpoint scheme: all terms are those of the middle of the step, where motion at constant
velocity arrives, and velocities follow from the impulses of all rows ``w = G v`` there, in a linear
complementarity problem with friction cones after Stewart and Trinkle, and Anitescu:

    q_m = q + h/2 v,    q⁺ = q_m + h/2 v⁺
    v⁺ = v + M⁻¹ (h (tau - C) + Gᵀ lam),    M = H + h lag
    contact:   0 ≤ lam_n ⟂ w_n + gap/h ≥ 0,  |lam_t| ≤ mu lam_n,  lam_t against w_t
    with ``w = G v⁺ + h/2 Ġ v``, velocities where the step ends

Where motion is smooth the order is two, and wheels roll without drag. From the middle of one step
to that of the next bodies move at ``v⁺``: to first order, gaps end at zero there and not below.
What curvature leaves of penetration is taken out of the positions, see ``projection``. With
constant ``H`` and forces the change of energy is exactly the work of all forces at the mean
velocity,

    ΔE = h tau · (v + v⁺)/2 + lam · (w + w⁺)/2

see ``balance`` for what the nonlinearity adds. Bodies that move farther in half a step than they
are thin are looked at where the step begins, ``q_m = q``, so that they do not pass through others.

Bouncing contacts have the velocity ``-e w⁻`` in place of ``-gap/h`` (Newton's law in the form of
Moreau). Where no row exerts anything, the step is that of the integrator instead. Joints that move
prescribed keep their motion, see ``PrescribedStep``; drives exert what it takes.

With ``TimeStepping.relaxation`` the laws are the relaxed ones of ``complementarity.rows``, whose
gaps stay open: positions are not projected, energies not balanced, and the step is a smooth
function. Its derivatives are those of the text with the forces given, see
``solver.differentiable``.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.passive import fluid_joint_force
from kinetree.contact.complementarity.traced import largest
from kinetree.contact.history import Residuals
from kinetree.contact.scene import Candidates
from kinetree.contact.scheme.constraints import StepConstraints
from kinetree.contact.scheme.inertia import EffectiveInertia, alone, straight_motion, turning
from kinetree.contact.settings import DOUBLE, PASSES, PASSES_ACROSS, Accuracy, TimeStepping
from kinetree.contact.stepping.balance import Balance, balance_energy
from kinetree.contact.stepping.drives import Instant, Resisting, StepForces, once_for_all
from kinetree.contact.stepping.projection import GapProjection, ProjectedState, look
from kinetree.contact.stepping.solver import Problem, solve_by_sweeps, solve_in_kernel
from kinetree.contact.stepping.solver import differentiable as implied_forces
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import select
from kinetree.quantities import dynamics
from kinetree.spatial.ops import sqrt

AIM = 0.02
"""Times the tolerance: where rounds end, so that errors of many steps do not add up to creep."""
SMOOTH = 3.0
"""Times the velocity that its rate gives a contact in half a step: with more it hits."""
ROUGH = 2e-4
"""Error [m/s] that will do for the forces at first, by Newton's method."""
FIRST = 100.0
"""Times the tolerance: what will do for the forces at first, by sweeps."""


class Ended(NamedTuple):
    """The end of a step.

    Attributes:
        q, qd: state.
        work: of all forces, the contact's included [J].
        force: of every row, mean over the step [N or N·m], (m,).
        residuals: numbers of ``Residuals``, in order.
        energy: kinetic and potential [J], if steps balance it, (2,).
    """

    q: Any
    qd: Any
    work: Any
    force: Any
    residuals: Any
    energy: Any


class Begun(NamedTuple):
    """A step whose drives have no bounds yet.

    Attributes:
        at: its beginning and middle.
        rows: of the constraints there.
        given: motion of prescribed joints.
        H: inertia matrix, (nv, nv).
        before: velocities of the rows, (m,).
        ahead: what the rates of the rows add to these, (m,).
        forces: of the joints.
        warm: impulses of the rows to start from, of every pass where laws are relaxed.
    """

    at: Instant
    rows: Any
    given: "PrescribedStep"
    H: Any
    before: Any
    ahead: Any
    forces: StepForces
    warm: Any


class System(NamedTuple):
    """The equations of a step under some bounds of its drives.

    Attributes:
        inertia: with what resists in the step.
        Y, A: rows divided by it, see ``EffectiveInertia.halves`` and ``EffectiveInertia.mobility``.
        explicit: joint forces without what resists, (nv,).
        resists: how forces resist.
    """

    inertia: EffectiveInertia
    Y: Any
    A: Any
    explicit: Any
    resists: Resisting


class Solved(NamedTuple):
    """Solution of the equations of a step.

    Attributes:
        after: velocities after it, (nv,);  mean: of these and those before.
        w: velocities of the rows, (m,);  targets: what is added to these in their laws.
        passes: impulses of the rows, of every pass where laws are relaxed.
        error: largest of velocities.
    """

    after: Any
    mean: Any
    w: Any
    targets: Any
    passes: Any
    error: Any


@dataclass(frozen=True)
class ContactStep:
    """A step with contact, traced into the kernel that uses it.

    Attributes:
        constraints: of the mechanism.
        settings: ``TimeStepping``.
        tree: the mechanism without loops and couplings.
        prescription: of prescribed joints, or None.
        accuracy: of the numbers that it is compiled for.
        bounds: how many bounds of drives steps pass on, for derivatives.
    """

    constraints: StepConstraints
    settings: TimeStepping
    tree: Any
    prescription: Any = None
    accuracy: Accuracy = DOUBLE
    bounds: int = 0

    @property
    def columns(self) -> Candidates:
        """Table of all potential contacts by pair: the scene's candidates."""
        return self.constraints.scene.candidates

    @property
    def rows(self) -> int:
        """Size of the memory passed between steps: row forces, and drive bounds."""
        rows = self.constraints.count(self.constraints.scene.candidates.size)
        return (rows * PASSES if self.is_relaxed else rows) + self.bounds

    def contact_forces(self, memory, numbers):
        """Forces (..., contacts, 3) of all potential contacts from memories (..., n).

        Memories begin with what a step passes on; ``numbers`` makes arrays of their kind.
        """
        count = self.constraints.scene.candidates.size
        return memory[..., : 3 * count].reshape(*memory.shape[:-1], count, 3)

    def forces_of(self, memory):
        """Forces (contacts, 3) of all potential contacts from a traced memory."""
        return self.contact_forces(memory, np.asarray)

    @property
    def is_relaxed(self) -> bool:
        """Whether the contact laws are relaxed (smoothed)."""
        return self.settings.relaxation > 0

    def of(self, model, friction=None, levels=None) -> "ContactStep":
        """Step of a model with other parameters, friction or joint friction levels.

        Args:
            model: the mechanism.
            friction: coefficients of the contacts, (c,), if they are others.
            levels: of exact friction of the joints, (nv,), if they are others.
        """
        rows = self.constraints if friction is None else self.constraints.with_friction(friction)
        if levels is not None:
            rows = rows.with_levels(levels)
        return replace(self, constraints=rows, tree=model.spanning_tree)

    def energies(self, q, qd):
        """Kinetic and potential energy (2,) [J]; zeros if energy is not balanced."""
        if not self.settings.conserving or self.prescription is not None:
            return np.zeros(2)
        T = dynamics.kinetic_energy(self.tree, q, qd)
        return np.array([T, dynamics.potential_energy(self.tree, q)])

    def __call__(self, method, field, model, start, force, energy=None, found=None) -> Ended:
        """The state after a step.

        Args:
            method: integrator for flight, or None.
            field: gives all joint forces, by ``joint_force``.
            model: the mechanism.
            start: ``Start`` of the step.
            force: forces of the rows to start from, those of the last step.
            energy: ``energies`` at the start, where they are known.
            found: forces of the rows that this step has found before, for its derivatives.
        """
        energy = self.energies(start.q, start.qd) if energy is None else energy
        begun = self._begin(field, model, start, force)
        system = once_for_all(partial(self._system, begun), begun.forces)
        bound, solved = self._settle(begun, system, found)
        lam, divided = solved.passes[: len(begun.rows.G)], system(bound)
        work = self._joint_impulses(begun, divided, solved, lam) @ solved.mean
        end = self._end_state(model, begun, divided, solved.after, once=found is not None)
        there = solved.w + begun.ahead
        balance = Balance(work, lam @ there, lam @ (there - (begun.before + solved.w) / 2))
        if self.settings.conserving and self.prescription is None:
            at_end = self.energies(end.q, end.qd)
            qd, balance, energy = balance_energy(energy, at_end, end.qd, balance)
            end = end._replace(qd=qd)
        residuals = self._residuals(begun.rows, solved, end, balance)
        exerted = self._passed_on(solved.passes / start.h, bound)
        contact = Ended(end.q, end.qd, balance.work, exerted, np.array([*residuals]), energy)
        return (
            contact
            if method is None
            else self._or_flight(contact, lam, method, field, model, start)
        )

    def _begin(self, field, model, start, force) -> Begun:
        """Rows, inertia and forces at the middle of the step."""
        h = start.h
        fast = self._looks_back and self.constraints.is_fast(model, start.q, start.qd, h / 2)
        at = start.halfway(model, select(fast, 0.0, h / 2))
        rows = self.constraints.at(model, at.middle, at.v)
        given = prescribed_over(self.prescription, model, at)
        H, before, warm = dynamics.mass_matrix(self.tree, at.middle), rows.G @ at.v, h * force
        forces = StepForces(self.settings, field, model, at, H)
        ahead, gap = self._ahead(rows, at.half, h - at.half, warm[: len(rows.G)], before)
        return Begun(at, rows._replace(gap=gap), given, H, before, ahead, forces, warm)

    def _settle(self, begun, system, found):
        """Drive bounds and solution of the step, recomputed from ``found`` forces if given."""
        solve = partial(self._solve, begun, system)
        if found is not None:
            bound = found[len(found) - self.bounds :]
            return bound, solve(begun.at.h * found, bound, implied=True)
        nothing = self._nothing(len(begun.at.v), len(begun.rows.G))
        bound, results = begun.forces.settle(partial(solve, begun.warm), nothing)
        return bound, Solved(*results)

    def _joint_impulses(self, begun, system, solved, lam):
        """Joint-space impulses (nv,) of all forces but contact, with prescribed drives."""
        at, given, change = begun.at, begun.given, solved.after - begun.at.v
        fluid = self._fluid(at.middle, solved.mean)
        pushes = at.h * (system.explicit + fluid - system.resists.against(change))
        if self.prescription is None:
            return pushes
        held = lam @ begun.rows.G
        bias = self._bias(at.middle, solved.mean) - fluid
        taken = system.inertia.H @ change + at.h * bias - held
        return pushes * given.free + taken * (1 - given.free)

    def _end_state(self, model, begun, system, after, *, once) -> ProjectedState:
        """State at the end of the step from velocities ``after``, projected out of overlap."""
        at, rows = begun.at, begun.rows
        q, qd = straight_motion(model, at.middle, after, at.h - at.half)
        if self.prescription is not None:
            q, qd, _ = self.prescription.at(model, at.t + at.h, q, qd)
        if self.is_relaxed:
            *_, deep, opened = look(self.constraints, model, q)
            return ProjectedState(q, qd, deep, opened)
        inertia, Y, A, *_ = system
        back = GapProjection(self.constraints, rows, inertia, Y, A, self.accuracy)
        return back.of(model, q, qd, at.h * self.settings.correction_speed, once=once)

    @staticmethod
    def _residuals(rows, solved, end, balance) -> Residuals:
        """``Residuals`` of a step: law violations, penetration and energy."""
        lam = solved.passes[: len(rows.G)]
        return Residuals(
            velocity=solved.error,
            cone=_cone_error(rows.mu, lam),
            complementarity=_power_error(rows, lam, solved.w + solved.targets),
            penetration=end.penetration,
            opening=end.opening,
            contact_work=balance.contact,
            loss=balance.lost,
            taken=balance.taken,
            gain=balance.gained,
            touching=1.0,
        )

    def _passed_on(self, forces, bound):
        """Memory for the next step: forces of all rows, and bounds of limited drives."""
        if not self.bounds:
            return forces
        return np.concatenate([forces, bound if len(bound) else np.zeros(self.bounds)])

    def _nothing(self, nv, rows):
        """Zero arrays in the shapes of the results of ``_solve``."""
        passes = PASSES * rows if self.is_relaxed else rows
        return *(np.zeros(n) for n in (nv, nv, rows, rows, passes)), 0.0

    def _system(self, begun, bound) -> System:
        """Factored equations of the step with drives at these force bounds."""
        at, given, forces = begun.at, begun.given, begun.forces
        resists = forces.resisting(bound)
        inertia = EffectiveInertia(self.tree, begun.H, at.h * resists.lag, given.free)
        Y, explicit = (
            inertia.halves(begun.rows.G),
            forces.applied_force(bound) - resists.lead @ at.v,
        )
        return System(inertia, Y, inertia.mobility(Y), explicit, resists)

    def _solve(self, begun, system, start, bound, *, implied=False) -> Solved:
        """Solution of the step's equations under given drive bounds.

        Args:
            begun: what does not depend on bounds.
            system: function from bounds to what ``_system`` returns.
            start: impulses of the rows to start from, of every pass where laws are relaxed.
            bound: bounds of the drives.
            implied: whether impulses are those at the start, with their derivatives.
        """
        v, count = begun.at.v, len(begun.rows.G)
        divided = system(bound)
        once = partial(self._pass, begun, divided, implied=implied)
        if self.is_relaxed or implied:  # every pass is part of the function that has derivatives
            state: Any = (v,)
            passes = []
            for k in reversed(range(PASSES)):
                begin = k * count if self.is_relaxed else 0
                state = once((state[0], start[begin : begin + count], 1.0))
                passes = [state[1], *passes]
            passes = np.concatenate(passes if self.is_relaxed else passes[:1])
        else:
            most, settled = PASSES, self.accuracy.settled
            if divided.resists.crosses:
                most, settled = PASSES_ACROSS, self.accuracy.settled_across

            def if_needed(state):
                return repeat(once, state, select(state[-1] > settled, 1, 0))

            nothing = (v, *[np.zeros(count)] * 2, 0.0, 1.0)
            loose = max(ROUGH / (AIM * self.settings.tolerance), 2.0)
            state = repeat(if_needed, (v, start[:count], loose, *nothing), most)
            passes = state[1]
        mean, _, _, after, w, targets, error, _ = state
        return Solved(after, mean, w, targets, passes, error)

    def _pass(self, begun, system, state, *, implied):
        """Velocities and impulses after one pass, with bias forces at a mean velocity."""
        mean, lam, loose = state[:3]
        at, rows, given, before = begun.at, begun.rows, begun.given, begun.before
        inertia, Y, A, explicit, resists = system
        h, v, smooth = at.h, at.v, self.is_relaxed or implied  # without decisions on positions
        felt = (begun.H + h * resists.lag) @ given.change
        bias = self._bias(at.middle, mean) + resists.more(2 * (mean - v))
        bias = bias - self._fluid(at.middle, mean)
        unheld = (h * (explicit - bias) - felt) * given.free + given.change
        z, moves = inertia.half(unheld), before + rows.G @ given.change
        w = moves + inertia.along(Y, z)
        targets = self._targets(rows, h, w, before, smooth) + begun.ahead
        bounds = _times(h, rows.low), _times(h, rows.high)
        problem = Problem(A, w + targets, rows.mu, *bounds, self.settings.relaxation)
        aim = 1.0 if self.is_relaxed else AIM
        tolerance = aim * self.settings.tolerance * (1 + largest(np.abs(w)))
        if implied:
            lam, error = implied_forces(problem, lam, self.accuracy.least), 0.0
        else:
            lam, error = self._solve_problem(problem, lam, tolerance, loose)
        z = inertia.half_of(Y, lam, z)
        after, w = v + inertia.whole(z), moves + inertia.along(Y, z)
        moved = (v + after) / 2
        change = select(error > tolerance, 1.0, largest(np.abs(moved - mean)))
        return moved, lam, 1.0, after, w, targets, error, change

    @property
    def _looks_back(self) -> bool:
        """Whether fast bodies need contacts from the step's start against tunnelling.

        In double precision steps are those of the engine, which looks at all of them.
        """
        return not self.accuracy.sweeps or not self.constraints.on_grounds

    def _solve_problem(self, problem, warm, tolerance, loose):
        """Contact forces and their error; a loose tolerance suffices if ``loose``."""
        if not self.accuracy.sweeps or self.is_relaxed:
            return solve_in_kernel(problem, warm, tolerance, self.settings.rounds, loose)
        tolerance = select(loose > 1, FIRST * tolerance, tolerance)
        return solve_by_sweeps(problem, warm, tolerance, self.accuracy.sweeps)

    def _bias(self, q, qd):
        """Bias forces without gyroscopic terms of single free bodies, (nv,)."""
        qd = np.where(alone(self.tree) > 0, 0, qd)
        return dynamics.inverse_dynamics(self.tree, q, qd, turning(self.tree, qd))

    def _fluid(self, q, qd):
        """Joint forces of fluids, (nv,), or 0 without any."""
        return fluid_joint_force(self.tree, q, qd) if self.tree.fluid_forces else 0

    def _ahead(self, rows, half, time, force, before):
        """Velocity targets and gaps of rows from their curvature rates and impacts.

        A contact that goes on, with a force in the last step, arrives with the velocity that its
        rate gave it, and the gap that this opened in the ``half`` step before is closed by the
        other half, as in ``engine.known_contacts.bending``. New ones have no rate. Where one
        would get inside, something hits, velocities change, and the rates of loops with them.

        Relaxed contacts all exert something. There the speed decides, smoothly, and of those that
        are faster only what leads away counts: corners that a rolling body turns towards the ground
        are on their way up again before they arrive.
        """
        ahead, hits, gap = list(time * rows.rate), 0.0, list(rows.gap)
        others = ahead[3 * len(rows.mu) :]
        for n in range(0, 3 * len(rows.mu), 3):
            size, speed = np.abs(ahead[n]), np.abs(before[n])
            goes_on = force[n] > 0
            inside = rows.gap[n // 3] + 2 * time * before[n] < -self.accuracy.closed
            hits = select(goes_on, hits, select(inside & (speed > SMOOTH * size), 1.0, hits))
            opened = half * half * rows.rate[n] / 2
            if self.is_relaxed:
                v = self.settings.relaxation
                square = ahead[n] * ahead[n]
                x = (SMOOTH * SMOOTH * square - before[n] * before[n]) / (v * v)
                part = (1 + x / sqrt(1 + x * x)) / 2
                away = (ahead[n] + sqrt(square + v * v) - v) / 2
                gap[n // 3] = gap[n // 3] - part * opened
                for k, other in ((n, away), (n + 1, 0.0), (n + 2, 0.0)):
                    ahead[k] = other + part * (ahead[k] - other)
                continue
            gap[n // 3] = gap[n // 3] - select(goes_on, opened, 0.0)
            for k in range(n, n + 3):
                ahead[k] = select(goes_on, ahead[k], 0.0)
        others = [select(hits > 0, 0.0, x) for x in others]
        return np.array([*ahead[: 3 * len(rows.mu)], *others]), np.array(gap)

    def _targets(self, rows, h, w, before, smooth):
        """Velocity offsets (m,) of all rows from gaps and restitution."""
        targets, deep = [0.0] * len(rows.G), self.accuracy.deep
        if smooth:  # velocities take out what penetration there is, at the speed of positions
            deep = h * self.settings.correction_speed * self.constraints.size
        for k, gap, e in zip(rows.one_sided, rows.gap, rows.restitution, strict=True):
            targets[k] = select(gap > -deep, gap, -deep) / h
            if e:
                closes = (gap + h * w[k] <= 0) & (before[k] < -self.settings.rest_velocity)
                targets[k] = select(closes, e * before[k], targets[k])
        for k, error in enumerate(rows.error, len(targets) - len(rows.error)):
            small = select(error > deep, deep, select(error < -deep, -deep, error))
            targets[k] = small / h
        return np.array(targets)

    def _or_flight(self, contact, lam, method, field, model, start):
        """State by the smooth integrator if nothing touches in the step, else by contact."""

        def fly(state):
            q, qd, *_ = state
            after = method.step(field, model, start.t, start.h, q, qd, start.inputs)
            gaps, _ = self.constraints.gaps(model, after.q)
            clear = -largest(-gaps, -1.0)
            return after.q, after.qd, after.work, self.energies(after.q, after.qd), clear

        untouched = largest(np.abs(lam)) <= 0
        flown: Any = repeat(
            fly, (start.q, start.qd, 0.0, np.zeros(2), -1.0), select(untouched, 1, 0)
        )
        clear = untouched & (flown[4] >= 0)
        nothing = Residuals(0.0, *[0.0] * (len(contact.residuals) - 1))
        flight = (*flown[:3], 0 * contact.force, np.array([*nothing]), flown[3])
        return Ended(*(select(clear, *both) for both in zip(flight, contact, strict=True)))


def _times(h, bounds):
    """Impulse bounds from force bounds over ``h`` seconds; infinite ones unchanged."""
    return np.array([x if isinstance(x, float) and np.isinf(x) else h * x for x in bounds])


def _cone_error(mu, lam):
    """Largest excess of tangential impulses over ``mu`` times normal impulses, at least 0."""
    contacts = [lam[3 * k : 3 * k + 3] for k in range(len(mu))]
    excess = [
        np.sqrt(x[1] * x[1] + x[2] * x[2]) - m * x[0] for m, x in zip(mu, contacts, strict=True)
    ]
    return largest(excess, 0.0)


def _power_error(rows, lam, w):
    """Largest violation of complementarity ``lam_n w_n`` and of maximal dissipation."""
    found = [np.abs(lam[k] * w[k]) for k in rows.one_sided]
    for k, mu in enumerate(rows.mu):
        n, t = lam[3 * k], slice(3 * k + 1, 3 * k + 3)
        slip = np.sqrt(w[t] @ w[t])
        found.append(np.abs(lam[t] @ w[t] + mu * n * slip))
    return largest(found, 0.0)


# --- Prescribed joints over one step -------------------------------------------------------------
# Their velocities change as prescribed, whatever acts on them, and the others feel that through
# the inertia matrix.


class PrescribedStep(NamedTuple):
    """Motion of prescribed joints during a step; zero for all others.

    Attributes:
        free: 1 for the variables of all other joints, 0 for theirs, (nv,).
        change: of their velocities, (nv,).
    """

    free: Any
    change: Any


def prescribed_over(prescription, model, at: Instant) -> PrescribedStep:
    """Velocity changes of prescribed joints over a step, and the mask of free variables.

    Args:
        prescription: ``at(model, t, q, qd)`` gives the state with prescribed joints in place,
            ``others(model)`` is 1 for variables of other joints; or None.
        model: the mechanism.
        at: beginning and middle of the step.
    """
    if prescription is None:
        nothing = np.zeros(model.nv, dtype=int)
        return PrescribedStep(nothing + 1, nothing)
    free = prescription.others(model)
    there = prescription.at(model, at.t + at.h, at.q, at.qd)[1]
    end = straight_motion(model, at.q, there, at.half - at.h)[1]
    return PrescribedStep(free, (end - at.v) * (1 - free))
