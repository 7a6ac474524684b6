"""Steps with contact for GPUs and many potential contacts, of which only a few act at once."""

import itertools
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.dual import rate_of, value_of
from kinetree.algorithms.kinematics import base_transforms, body_velocities, joint_transforms
from kinetree.codegen.procedures.routine import routine
from kinetree.contact.complementarity.traced import largest
from kinetree.contact.contacts import contact_axes, contact_axes_rate
from kinetree.contact.engine.slot_laws import MAX_CHAIN_DOFS, SLOT_SIZE
from kinetree.contact.engine.slot_points import CORNER, ELLIPSOID, FIXED, LOWEST, TRACED
from kinetree.contact.engine.slots import (
    REPORT_SIZE,
    contacts_size,
    slot_contacts,
    slot_forces,
    slot_impulses,
    slot_look,
    slot_missed,
    slot_shift,
)
from kinetree.contact.finding.candidates import moving_touches
from kinetree.contact.finding.closed_forms import round_points
from kinetree.contact.history import Residuals
from kinetree.contact.scheme.inertia import (
    EffectiveInertia,
    alone,
    straight_motion,
    turned,
    turning,
)
from kinetree.contact.settings import PASSES
from kinetree.contact.stepping.balance import Balance, balanced
from kinetree.contact.stepping.drives import Resisting, StepForces, once_for_all
from kinetree.contact.stepping.projection import SWEEPS, TRIES, bounded
from kinetree.contact.stepping.step import FIRST, ContactStep, Ended
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import select
from kinetree.integration.refusals import SLOT_DERIVATIVES, SLOTS
from kinetree.joints import Free, Planar
from kinetree.model.geometry import Cylinder, Ellipsoid, Plane
from kinetree.quantities import dynamics
from kinetree.spatial import Motion, crm
from kinetree.spatial.ops import sqrt

SOLVER = {
    "float32": {"sweeps": 32, "tries": 4, "serious": 2.0, "nearly": 2.0, "proximal_weight": 5e-4,
                "light": 1e-6},
    "float64": {"sweeps": 48, "tries": 8, "serious": 1.0, "nearly": 100.0, "proximal_weight": 1e-4,
                "light": 0.0},
}  # fmt: skip
"""What ``slot_impulses`` wants. A step of Newton in single precision costs as much as some sweeps;
in double precision sweeps disturb what steps have nearly found."""
SWEEPS_ALONE = {"sweeps": 48, "tries": 1, "serious": 1e30}
"""The same in single precision where steps are not ``thorough``."""
AIM = {"float32": 1.0, "float64": 0.1}
"""Times the tolerance: where sweeps end."""


def _is_plain(joint):
    """Whether the columns of a joint are fixed to the body beyond it."""
    return joint.constant_subspace and not isinstance(joint, Planar)


class Divided(NamedTuple):
    """Inertia and forces of a step under some bounds of its drives.

    Attributes:
        inertia: with what resists in the step.
        root: one over the roots of the diagonal of its factor, (nv,).
        explicit: joint forces without what resists, (nv,).
        resists: how forces resist.
    """

    inertia: EffectiveInertia
    root: Any
    explicit: Any
    resists: Resisting

    def response(self, u):
        """Velocities from what slots add to ``root`` times the halves of impulses, (nv,)."""
        return self.inertia.whole(np.diagonal(self.inertia.L) * self.root * u)


@dataclass(frozen=True)
class SlotStep(ContactStep):
    """A step in which the closest potential contacts act, at most ``TimeStepping.slots``.

    What has no slot counts in the error of the velocities.
    """

    @property
    def slots(self) -> int:
        """Contacts that may act at once."""
        return min(int(self.settings.slots), self.constraints.scene.candidates.size)

    def require(self) -> None:
        """Raise ModelError, with the reason, where there are no such steps."""
        constraints, model = self.constraints, self.constraints.model
        scene, joints = constraints.scene, constraints.joints
        known = scene.candidates
        checks = (
            ("shapes that move touch each other (Scene(model, pairs='base') leaves them out)",
             np.any(known.predecessor != 0)),
            ("surfaces move, or resist rolling", scene.moving_surfaces or scene.resisting_pairs),
            ("it has loops, couplings or tendons",
             constraints.closes or model.couplings or model.tendons),
            ("it has rigid stops or exact joint friction (limits='stiff', friction='smooth')",
             joints.stops or joints.friction),
            ("joints are prescribed", self.prescription is not None),
            ("its laws are relaxed", self.is_relaxed),
            ("it has free bodies that carry nothing", np.any(alone(model))),
            ("it has joints with axes that are not fixed to the body that they move",
             not all(map(_is_plain, model.joint[1:]))),
            (f"more than {MAX_CHAIN_DOFS} variables move a body",
             max(map(len, self._support)) > MAX_CHAIN_DOFS),
        )  # fmt: skip
        for reason, holds in checks:
            if holds:
                raise SLOTS.of(
                    f"a rollout on a GPU with {known.size} potential contacts, too many to be "
                    f"unrolled,",
                    f"the scene of {model.name!r}, where {reason}",
                )

    @property
    def rows(self) -> int:
        """Numbers that a step passes on: of every slot its contact, from 1 on, and three forces."""
        return 4 * self.slots

    def contact_forces(self, memory, numbers):
        """Forces of all potential contacts, (..., contacts, 3), from memories (..., n)."""
        known = numbers(np.arange(1.0, self.constraints.scene.candidates.size + 1))
        slots = memory[..., : self.rows].reshape(*memory.shape[:-1], self.slots, 4)
        each = [
            (slots[..., k, :1] == known)[..., None] * slots[..., k, None, 1:]
            for k in range(self.slots)
        ]
        return sum(each[1:], each[0])

    def forces_of(self, memory):
        """Forces of all potential contacts, (contacts, 3), from a memory that is traced."""
        count = self.constraints.scene.candidates.size
        sizes, force = {"contacts": count, "slots": self.slots}, memory[: self.rows]
        return routine(slot_forces, sizes, {"force": force}, {"found": (count, 3)})[0]

    def __call__(self, method, field, model, start, force, energy=None, found=None) -> Ended:
        """The state after a step: see ``ContactStep``."""
        if found is not None or self.is_relaxed:
            raise SLOT_DERIVATIVES.of(
                "derivatives on a GPU", f"steps of {model.name!r} with slots for contacts"
            )
        h, energy = start.h, self.energies(start.q, start.qd) if energy is None else energy
        fast = self._looks_back and self.constraints.is_fast(model, start.q, start.qd, h / 2)
        at = start.halfway(model, select(fast, 0.0, h / 2))
        H, there = dynamics.mass_matrix(self.tree, at.middle), self._placed(model, at.middle, at.v)
        forces = StepForces(self.settings, field, model, at, H)
        divided = once_for_all(partial(self._divided, forces, at, H), forces)
        bound, results = forces.settle(
            partial(self._solve_slots, divided, at, there, force),
            tuple(np.zeros(n) for n in self._results(model.nv).values()),
        )
        after, mean, held, reported, *entered = results
        entered = dict(zip(list(self._results(model.nv))[4:], entered, strict=True))
        system = divided(bound)
        error = self._worst_error(at, there, entered["found"], after, reported)
        work = h * (system.explicit - system.resists.against(after - at.v)) @ mean
        q, qd = straight_motion(model, at.middle, after, h - at.half)
        farthest = h * self.settings.correction_speed
        q, qd, deepest = self._projected(model, q, qd, farthest, system, entered)
        balance = Balance(work, reported[3], reported[4])
        if self.settings.conserving:
            qd, balance, energy = balanced(energy, self.energies(q, qd), qd, balance)
        residuals = Residuals(
            velocity=error,
            cone=reported[1],
            complementarity=reported[2],
            penetration=deepest,
            opening=0.0,
            contact_work=balance.contact,
            loss=balance.lost,
            taken=balance.taken,
            gain=balance.gained,
            touching=1.0,
        )
        return Ended(q, qd, balance.work, held, np.array([*residuals]), energy)

    def _worst_error(self, at, there, found, after, reported):
        """Largest error of velocity: of contacts with a slot, and of those without."""
        given = {**there, "found": found, "after": after, "numbers": self._numbers(at)}
        work = 6 * self._tables["bodies"]
        (missed,) = self._routine(slot_missed, given, {"missed": (1,)}, work)
        return select(missed[0] > reported[0], missed[0], reported[0])

    def _numbers(self, at) -> list:
        """Lengths of the step and of its first half, and tolerances, for the procedures."""
        tolerance = AIM[self._dtype] * self.settings.tolerance
        return [at.h, at.half, tolerance, self.accuracy.deep, self.settings.rest_velocity]

    @property
    def _dtype(self) -> str:
        return "float32" if self.accuracy.sweeps else "float64"

    def _results(self, nv) -> dict[str, int]:
        """Sizes of what ``_solve_slots`` returns, by name."""
        slots, deep = self.slots, self._tables["deep"]
        return {
            "after": nv,
            "mean": nv,
            "held": 4 * slots,
            "reported": REPORT_SIZE,
            "found": 3,
            "taken": slots,
            "slot": SLOT_SIZE * slots,
            "Y": 3 * slots * deep,
            "own": 6 * slots,
        }

    def _divided(self, forces, at, H, bound) -> "Divided":
        """Inertia and forces of the step, with drives at bounds."""
        resists = forces.resisting(bound)
        inertia = EffectiveInertia(self.tree, H, at.h * resists.lag, np.ones(len(H)))
        root = np.array([1 / sqrt(d) for d in np.diagonal(inertia.L)])
        return Divided(inertia, root, forces.applied(bound) - resists.lead @ at.v, resists)

    def _solve_slots(self, divided, at, there, force, bound):
        """Velocities after the step, their mean, what slots hold and report, and the slots.

        Args:
            divided: function from bounds to what ``_divided`` returns.
            at: beginning and middle of the step.
            there: places of the bodies.
            force: what the last step has passed on.
            bound: bounds of the drives.
        """
        system = divided(bound)
        entered, start = self._enter_slots(system, at, there, force)
        slots, nv, solver = self.slots, len(at.v), self._solver
        known = {"numbers": self._numbers(at), **entered}
        results = {
            "held": (4 * slots,),
            "u": (nv,),
            "reported": (REPORT_SIZE,),
            "K": (2 * self._tables["inverses"] + 3 * slots,),
        }
        work = 2 * nv + 2 + 21 * slots

        def once(state):
            mean, held, loose = state[:3]
            bias = self._bias(at.middle, mean) + system.resists.more(2 * (mean - at.v))
            z = system.root * system.inertia.half(at.h * (system.explicit - bias))
            given = {**known, "loose": [loose], "z": z, "start": held}
            held, u, reported, _ = self._routine(slot_impulses, given, results, work, solver)
            after = at.v + system.response(z + u)
            return (at.v + after) / 2, held, loose - 1, after, reported

        begin = (at.v, start, PASSES - 1.0, at.v, np.zeros(REPORT_SIZE))
        mean, held, _, after, reported = repeat(once, begin, PASSES)
        return after, mean, held, reported, *entered.values()

    def _enter_slots(self, system, at, there, force):
        """Arrays of the slots for ``slot_impulses``, by name, and impulses to start from."""
        known, tables, slots = self.constraints.scene.candidates, self._tables, self.slots
        mu = known.friction if self.constraints.friction is None else self.constraints.friction
        given = {
            **there,
            "inverse": self._inverse(system.inertia.L, system.root),
            "friction": mu,
            "force": force,
            "numbers": self._numbers(at),
        }
        results = {
            "found": (3,),
            "taken": (slots,),
            "place": (12 * slots,),
            "slot": (SLOT_SIZE * slots,),
            "start": (4 * slots,),
            "Y": (3 * slots * tables["deep"],),
            "own": (6 * slots,),
        }
        made = self._routine(slot_contacts, given, results, contacts_size(tables))
        made = dict(zip(results, made, strict=True))
        return {n: made[n] for n in ("found", "taken", "slot", "Y", "own")}, made["start"]

    @property
    def _solver(self) -> dict[str, Any]:
        """Settings of ``slot_impulses``."""
        alone = self._dtype == "float32" and not self.settings.thorough
        solver = {**SOLVER[self._dtype], **(SWEEPS_ALONE if alone else {})}
        restitution = self.constraints.scene.candidates.restitution
        return {**solver, "first": FIRST, "restitution": restitution}

    @cached_property
    def _tables(self) -> dict[str, Any]:
        """Sizes and tables of the model, for the procedures of ``engine.slots``."""
        model, known = self.constraints.model, self.constraints.scene.candidates
        n, nv, tree = model.body_count + 1, model.nv, [0] * (model.body_count + 1)
        support = self._support
        deep = -(-max(1, *map(len, support)) // 8) * 8
        for i in range(1, n):
            above = model.parent[i]
            tree[i] = tree[above] if above else max(tree) + 1
        first = [0, *itertools.accumulate(map(len, self._chains))]
        return {
            "bodies": n,
            "nv": nv,
            "contacts": known.size,
            "slots": self.slots,
            "deep": deep,
            "inverses": first[-1],
            "tree": tree,
            "moves": [len(s) for s in support],
            "chain": [k for s in support for k in (*s, *[nv] * (deep - len(s)))],
            "begin": [first[k] for s in support for k in (*s, *[0] * (deep - len(s)))],
            "owner": [next(i for i in range(n) if k in support[i]) for k in range(nv)],
            "level": [len(chain) - 1 for chain in self._chains],
            "body": known.successor,
            "group": known.pair,
            **self._shapes,
        }

    @cached_property
    def _support(self) -> list[list[int]]:
        """Variables that move each body, from the base outward."""
        model = self.constraints.model
        at = [list(range(model.nv)[s]) if s else [] for s in [None, *model.v_slice[1:]]]
        moving = [model.support[b] if b else () for b in range(model.body_count + 1)]
        return [[k for i in chain for k in at[i]] for chain in moving]

    @property
    def _chains(self) -> list[list[int]]:
        """For each variable those above it, from the base outward, and itself."""
        nv, support = self.constraints.model.nv, self._support
        return [next(s[: s.index(k) + 1] for s in support if k in s) for k in range(nv)]

    @cached_property
    def _shapes(self) -> dict[str, Any]:
        """Tables of the contacts; of those with other shapes than planes, places in ``traced``."""
        kind, shape, ground, frame, spot, plane = [], [], [], [], [], []
        counts = np.bincount(self.constraints.scene.candidates.pair)
        for pair, count in zip(self.constraints.scene.pairs, counts, strict=True):
            a, b = pair[:2]
            points = _points(pair)
            if points is None:
                for _ in range(count):
                    shape.append(sum(k == TRACED for k in kind))
                    kind.append(TRACED)
                    ground.append(0)
                    spot.append((0.0, 0.0, 0.0, 0.0))
                continue
            for its_kind, point, radius in points:
                kind.append(its_kind)
                shape.append(len(frame))
                ground.append(len(plane))
                fixed = b.placement.E.T @ point + b.placement.r
                place = fixed if its_kind == FIXED else point
                spot.append((*place, radius + getattr(pair, "margin", 0)))
            frame.append((*np.ravel(b.placement.E.T), *b.placement.r))
            axes = contact_axes(a.placement.E[2])
            plane.append((*np.ravel(axes), axes[0] @ a.placement.r))
        return {
            "sort": np.argsort(kind, kind="stable"),
            "kind": kind,
            "shape": shape,
            "ground": ground,
            "frame": np.reshape(np.array(frame, float), (-1, 12)),
            "spot": np.array(spot, float),
            "plane": np.reshape(np.array(plane, float), (-1, 10)),
        }

    def _routine(self, procedure, arguments, results, work, given=None):
        """Results of a procedure of ``engine.slots``, which takes of these what it wants."""
        names = {name for name, _ in procedure.arguments}
        known = {n: x for n, x in self._tables.items() if n in names}
        arguments = {n: x for n, x in arguments.items() if n in names}
        return routine(procedure, {**known, **(given or {})}, arguments, results, work)

    def _poses(self, model, q):
        """Transforms of bodies relative to the origin of their tree, their poses, these origins."""
        X, S = joint_transforms(model, q)
        origin = [np.zeros(3)]
        for i in range(1, model.body_count + 1):
            if model.parent[i] == 0:
                origin.append(X[i].r)
                X[i] = type(X[i])(X[i].E, np.zeros(3))
        X_0 = base_transforms(model, X)
        pose = [np.zeros(12)]
        pose += [np.concatenate([x.E.T.ravel(), x.r]) for x in X_0[1:]]
        return X_0, S, {"pose": np.array(pose), "origin": np.array(origin)}

    def _placed(self, model, q, v) -> dict[str, Any]:
        """Poses, columns and motion of bodies along the axes of the world; other contacts."""
        X_0, S, found = self._poses(model, q)
        columns, zero = [np.zeros((0, 6))], Motion(np.zeros(3), np.zeros(3))
        twist, rate, turn = [zero], [zero], turning(model, v)
        for i in range(1, model.body_count + 1):
            at, above = model.v_slice[i], model.parent[i]
            its, own = X_0[i].inv_apply(S[i]), zero
            if model.joint[i].nv:
                columns.append(np.concatenate([its.angular.T, its.linear.T], axis=1))
                own = its @ v[at]
            twist.append(twist[above] + own)
            change = rate[above] + crm(twist[above], own)
            rate.append(change + its @ turn[at] if isinstance(model.joint[i], Free) else change)
        twist, rate = ([x.to_array() for x in y] for y in (twist, rate))
        return {
            **found,
            "S": np.concatenate(columns),
            "twist": np.array(twist),
            "rate": np.array(rate),
            "traced": self._traced(model, q, v),
        }

    def _inverse(self, L, root):
        """Rows of ``L⁻¹ D^{-1/2}`` along chains, one after the other — RBDA Table 6.5."""
        found = []
        for k, chain in enumerate(self._chains):
            x = {k: 1.0}
            for e in range(len(chain) - 2, -1, -1):
                x[chain[e]] = -sum(x[f] * L[f, chain[e]] for f in chain[e + 1 :])
            found += [x[e] * root[e] for e in chain]
        return np.array(found)

    def _traced(self, model, q, v):
        """Gap, point, its rate, axes and their rates of the contacts that no table has, (n, 25)."""
        pairs = [p for p in self.constraints.scene.pairs if _points(p) is None]
        if not pairs:
            return np.zeros((0, 25))
        X_0 = base_transforms(model, joint_transforms(model, q)[0])
        _, velocity = body_velocities(model, q, v)
        n = model.body_count + 1
        speed = [X_0[i].inv_apply(velocity[i]) for i in range(n)]
        root, found = [0] * n, []
        for i in range(1, n):
            root[i] = root[model.parent[i]] or i
        for pair in pairs:
            origin = X_0[root[pair.second.body]].r
            for touch in moving_touches(pair, X_0, speed):
                normal, turn = value_of(touch.normal), rate_of(touch.normal)
                row = [value_of([touch.gap]), value_of(touch.point) - origin, rate_of(touch.point)]
                axes = contact_axes(normal), contact_axes_rate(normal, turn)
                found.append(np.concatenate([*row, *map(np.ravel, axes)]))
        return np.array(found)

    def _projected(self, model, q, qd, farthest, system, entered):
        """State without penetration, and what remains of it: see ``projection``."""
        closed, units = self.accuracy.closed, self.constraints.units
        there = largest([entered["found"][2]], self.accuracy.grown) + self.accuracy.same
        most = select(there < closed, there, closed)
        slots, nv, count = self.slots, model.nv, self._tables["contacts"]

        def look(q, qd):
            traced = {"traced": self._traced(model, q, 0 * qd)}
            given = {**entered, **self._poses(model, q)[2], **traced}
            results = {"near": (slots,), "depth": (1,)}
            near, depth = self._routine(slot_look, given, results, count)
            return q, qd, near, depth

        def move(state):
            (q, qd, near, _), left = state
            given, rounds = {**entered, "near": near}, {"rounds": SWEEPS}
            (u,) = self._routine(slot_shift, given, {"shift": (nv,)}, nv + 1 + slots, rounds)
            shift, left = bounded(system.response(u), units, left)
            return look(model.integrate(q, shift), turned(model, qd, shift)), left

        def some(state):
            (found, left), many = state
            open_ = (found[3][0] > most) & (left > 0)
            return repeat(move, (found, left), select(open_, many, 0)), 3 * many

        (state, _), _ = repeat(some, ((look(q, qd), farthest), 1.0), TRIES)
        return state[0], state[1], state[3][0]


def _points(pair):
    """Kind, place and radius of the contacts of a shape with a plane; None of other pairs."""
    a, b = pair[:2]
    if not isinstance(a.shape, Plane) or a.body != 0:
        return None
    if isinstance(b.shape, Ellipsoid):
        return [(ELLIPSOID, b.shape.radii, 0.0)]
    corners = round_points(b.shape)
    if not isinstance(b.shape, Cylinder):
        return [(FIXED, point, radius) for point, radius in corners]
    lowest = [(b.shape.radius, 0.0, end * b.shape.length / 2) for end in (1, -1)]
    return [*((LOWEST, p, 0.0) for p in lowest), *((CORNER, p, 0.0) for p, _ in corners)]
