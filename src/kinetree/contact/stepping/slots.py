"""Steps with contact for GPUs and many potential contacts, of which only a few act at once."""

import itertools
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.dual import rate_of, value_of
from kinetree.algorithms.kinematics import base_transforms, body_velocities, joint_transforms
from kinetree.codegen.procedures.routine import routine, wanted_by
from kinetree.contact.collision.shallow import MOST
from kinetree.contact.collision.tables import Shapes, Touch
from kinetree.contact.complementarity.traced import largest
from kinetree.contact.contacts import contact_axes, contact_axes_rate
from kinetree.contact.engine.slot_classes import coupled_rows, odd
from kinetree.contact.engine.slot_coupled import coupled_impulses, coupled_shift
from kinetree.contact.engine.slot_laws import MAX_CHAIN_DOFS, SLOT_SIZE
from kinetree.contact.engine.slot_pairs import (
    NARROW,
    POINT_SIZE,
    SHARED,
    PairTables,
    pairs_work,
    points_of_kinds,
    slot_pairs_of,
)
from kinetree.contact.engine.slot_points import CORNER, ELLIPSOID, FIXED, LOWEST, TRACED
from kinetree.contact.engine.slot_trees import MAX_COUPLED_DOFS, MAX_TREES
from kinetree.contact.engine.slots import (
    REPORT_SIZE,
    contacts_size,
    newton_size,
    rows_size,
    slot_contacts,
    slot_forces,
    slot_impulses,
    slot_look,
    slot_missed,
    slot_rows,
    slot_shift,
)
from kinetree.contact.finding.candidates import moving_touches
from kinetree.contact.finding.closed_forms import round_points
from kinetree.contact.history import Residuals
from kinetree.contact.scene import Candidates, Scene
from kinetree.contact.scheme.inertia import (
    EffectiveInertia,
    alone,
    straight_motion,
    turn_velocities,
    turning,
)
from kinetree.contact.settings import PASSES
from kinetree.contact.stepping.balance import Balance, balance_energy
from kinetree.contact.stepping.drives import Resisting, StepForces, once_for_all
from kinetree.contact.stepping.projection import SWEEPS, TRIES, limit_shift
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
COUPLED = {"sweeps": 8, "tries": 6}
"""The same in single precision where bodies that move rest on each other: Newton's method comes
first there, and sweeps, of which stacks need hundreds, only before it is tried again."""
LANES_OF_ROWS = 32
"""Lanes of a GPU that take a world where bodies that move touch each other, for rows of contacts:
those that share no tree are solved side by side, and no world waits for another one."""
LANES_OF_CONTACTS = 8
"""The same for contacts: few of them are near."""
LANES_OF_BLOCK = 256
"""Those of all worlds that a multiprocessor takes at once; for impulses, worlds share them."""
SHARED_OF_BLOCK, MAX_SHARED = 229_000, 96 * 1024
"""Bytes of memory that lanes share: of all these worlds, and of one at most."""
MAX_TRACED = 16
"""Pairs of shapes with fixed ones other than planes whose closed forms are part of the code."""
AIM = {"float32": 1.0, "float64": 0.1}
"""Times the tolerance: where sweeps end."""


def _is_plain(joint):
    """Whether a joint's motion subspace is constant in its child body (and not planar)."""
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
        """Velocity change (nv,) of impulses given as scaled half solutions ``u``."""
        return self.inertia.whole(np.diagonal(self.inertia.L) * self.root * u)


@dataclass(frozen=True)
class SlotStep(ContactStep):
    """A step in which the closest potential contacts act, at most ``TimeStepping.slots``.

    What has no slot counts in the error of the velocities.
    """

    @property
    def slots(self) -> int:
        """Number of contact slots: how many contacts may act at once."""
        return min(int(self.settings.slots), self.columns.size)

    def require(self) -> None:
        """Raise ModelError, with the reason, if slot steps do not support the model or scene."""
        constraints, model = self.constraints, self.constraints.model
        scene, joints = constraints.scene, constraints.joints
        checks = (
            (self._without_narrow_phase(), self._without_narrow_phase()),
            ("surfaces move, or resist rolling", scene.moving_surfaces or scene.resisting_pairs),
            ("it has loops, couplings or tendons",
             constraints.closes or model.couplings or model.tendons),
            ("it has rigid stops or exact joint friction (limits='stiff', friction='smooth')",
             joints.stops or joints.friction),
            ("joints are prescribed", self.prescription is not None),
            ("its laws are relaxed", self.is_relaxed),
            ("it has joints with axes that are not fixed to the body that they move",
             not all(map(_is_plain, model.joint[1:]))),
            (f"more than {MAX_CHAIN_DOFS} variables move two bodies that may touch",
             self._tables["deep"] > MAX_CHAIN_DOFS),
            (f"more than {MAX_COUPLED_DOFS} variables move bodies that may touch each other",
             bool(self._couples) and model.nv > MAX_COUPLED_DOFS),
        )  # fmt: skip
        for reason, holds in checks:
            if holds:
                raise SLOTS.of(
                    f"a rollout on a GPU with {self.columns.size} potential contacts, too many "
                    f"to be unrolled,",
                    f"the scene of {model.name!r}, where {reason}",
                )

    def _without_narrow_phase(self) -> str:
        """Message about a pair without a narrow phase for slots, or ""."""
        scene = self.constraints.scene
        for name, pair in zip(scene.pair_names, scene.pairs, strict=True):
            if self._is_found(pair) and not self._has_narrow_phase(pair):
                what = " and ".join(type(g.shape).__name__ for g in pair[:2])
                return f"pair {name!r} is of a {what}, which slots have no narrow phase for"
        return ""

    def _has_narrow_phase(self, pair) -> bool:
        """Whether slots have a narrow phase for the kinds of a pair's two shapes."""
        return self._kinds_of(pair) in NARROW

    def _kinds_of(self, pair) -> tuple[int, int]:
        """Numbers of the kinds of a pair's two shapes, the lower one first."""
        shapes, numbers = self.constraints.scene.detection.tables.shapes, self._numbers_of_shapes
        first, second = sorted(int(shapes.kind[numbers[id(g)]]) for g in pair[:2])
        return first, second

    @cached_property
    def columns(self) -> Candidates:
        """Table of all potential contacts by pair, each a column of the contact forces.

        Pairs without a closed form have as many as ``points_of_kinds`` says.
        """
        scene = self.constraints.scene
        if not scene.open_pairs:
            return scene.candidates
        parts = []
        for k, p in enumerate(scene.pairs):
            is_open = k in scene.open_pairs
            most = points_of_kinds(*self._kinds_of(p))
            parts.append(most if is_open else Scene(scene.model, [p]).candidates.size)
        pair = np.repeat(np.arange(len(parts)), parts)
        bodies = np.array([[p.first.body, p.second.body] for p in scene.pairs])[pair]
        names = tuple(f"{scene.pair_names[k]}:{j}" for k, n in enumerate(parts) for j in range(n))
        mu, e = scene.friction[pair], scene.restitution[pair]
        return Candidates(bodies[:, 0], bodies[:, 1], names, mu, e, pair)

    def _is_found(self, pair) -> bool:
        """Whether a pair's contacts come from narrow phases rather than fixed points."""
        return id(pair) in self._found

    @cached_property
    def _found(self) -> set[int]:
        """Ids of the pairs whose contacts come from narrow phases."""
        scene = self.constraints.scene
        others = [(k, p) for k, p in enumerate(scene.pairs) if _points(p) is None]
        found = {id(p) for k, p in others if p.first.body or k in scene.open_pairs}
        traced = [p for _, p in others if id(p) not in found]
        if len(traced) > MAX_TRACED:
            found |= {id(p) for p in traced if self._has_narrow_phase(p)}
        return found

    @property
    def rows(self) -> int:
        """Size of the memory passed between steps: contact number and 3 forces per slot."""
        return 4 * self.slots

    def contact_forces(self, memory, numbers):
        """Forces (..., contacts, 3) of all potential contacts from memories (..., n)."""
        known = numbers(np.arange(1.0, self.columns.size + 1))
        slots = memory[..., : self.rows].reshape(*memory.shape[:-1], self.slots, 4)
        each = [
            (slots[..., k, :1] == known)[..., None] * slots[..., k, None, 1:]
            for k in range(self.slots)
        ]
        return sum(each[1:], each[0])

    def forces_of(self, memory):
        """Forces (contacts, 3) of all potential contacts from a traced memory."""
        count = self.columns.size
        sizes, force = {"columns": count, "slots": self.slots}, memory[: self.rows]
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
        H, there = (
            dynamics.mass_matrix(self.tree, at.middle),
            self._place_bodies(model, at.middle, at.v, at.h),
        )
        forces = StepForces(self.settings, field, model, at, H)
        bounded_inertia = once_for_all(partial(self._bounded_inertia, forces, at, H), forces)
        known = self._enter_slots(at, there, force)
        enter = once_for_all(lambda b: self._with_rows(bounded_inertia(b), there, known), forces)
        sizes = model.nv, model.nv, 4 * self.slots, REPORT_SIZE
        bound, (after, mean, held, reported) = forces.settle(
            lambda b: self._solve_slots(bounded_inertia(b), at, *enter(b)),
            tuple(map(np.zeros, sizes)),
        )
        system, (entered, _) = bounded_inertia(bound), enter(bound)
        error = self._worst_error(at, there, entered["found"], after, reported)
        work = h * (system.explicit - system.resists.against(after - at.v)) @ mean
        q, qd = straight_motion(model, at.middle, after, h - at.half)
        farthest = h * self.settings.correction_speed
        q, qd, deepest = self._project_positions(model, q, qd, farthest, system, entered)
        balance = Balance(work, reported[3], reported[4])
        if self.settings.conserving:
            qd, balance, energy = balance_energy(energy, self.energies(q, qd), qd, balance)
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
        """Largest velocity error of contacts, with a slot and without."""
        given = {**there, "found": found, "after": after, "numbers": self._numbers(at)}
        work = 6 * self._tables["bodies"]
        (missed,) = self._routine(slot_missed, given, {"missed": (1,)}, work)
        return select(missed[0] > reported[0], missed[0], reported[0])

    def _numbers(self, at) -> list:
        """Step lengths and tolerances that the slot procedures take, as a list."""
        tolerance = AIM[self._dtype] * self.settings.tolerance
        nothing = self.accuracy.deep / 2 if self.accuracy.sweeps and self._couples else 0.0
        deep = self.accuracy.deep
        return [at.h, at.half, tolerance, deep, self.settings.rest_velocity, nothing]

    @property
    def _dtype(self) -> str:
        """Name of the float type in which slot steps are solved."""
        return "float32" if self.accuracy.sweeps else "float64"

    def _bounded_inertia(self, forces, at, H, bound) -> "Divided":
        """Factored inertia and forces of the step with drives at these force bounds."""
        resists = forces.resisting(bound)
        inertia = EffectiveInertia(self.tree, H, at.h * resists.lag, np.ones(len(H)))
        root = np.array([1 / sqrt(d) for d in np.diagonal(inertia.L)])
        return Divided(inertia, root, forces.applied_force(bound) - resists.lead @ at.v, resists)

    def _solve_slots(self, system, at, entered, start):
        """Velocities after the step, their mean, held contact forces and reports.

        Args:
            system: what ``_bounded_inertia`` returns.
            at: beginning and middle of the step.
            entered: arrays of the slots by name.
            start: impulses to start from.
        """
        slots, nv, solver = self.slots, len(at.v), self._solver
        known = {"numbers": self._numbers(at), **entered}
        results = {"held": (4 * slots,), "u": (nv,), "reported": (REPORT_SIZE,)}
        procedure, work = slot_impulses, self._unknowns
        matrix = newton_size(self._tables)
        if self._couples:
            procedure, work = coupled_impulses, {**self._unknowns, **self._coupled_unknowns}
            matrix = nv * (nv + 1)
        lanes, size = 0, 4 if self._dtype == "float32" else 8
        if self._couples and size * (matrix + sum(work.values())) <= MAX_SHARED:
            work["K"] = matrix
        else:
            results["K"] = (matrix,)
        if self._couples:
            lanes = lanes_that_fit(size * sum(work.values()))

        def once(state):
            mean, held, loose = state[:3]
            bias = self._bias(at.middle, mean) + system.resists.more(2 * (mean - at.v))
            z = system.root * system.inertia.half(at.h * (system.explicit - bias))
            given = {**known, "loose": [loose], "z": z, "start": held}
            found = self._routine(procedure, given, results, work, solver, lanes=lanes)
            held, u, reported = found[:3]
            after = at.v + system.response(z + u)
            return (at.v + after) / 2, held, loose - 1, after, reported

        passes = self._passes
        begin = (at.v, start, passes - 1.0, at.v, np.zeros(REPORT_SIZE))
        mean, held, _, after, reported = repeat(once, begin, passes)
        return after, mean, held, reported

    @property
    def _unknowns(self) -> dict[str, int]:
        """Sizes of the arrays of the contact unknowns (record ``Unknowns``) of a world, by name."""
        slots, nv = self.slots, len(self._chains)
        return {
            "carrier": slots,
            "mu": slots,
            "target": slots,
            "b": 3 * slots,
            "lam": 3 * slots,
            "v": nv + 1,
            "w": 3 * slots,
            "W": 9 * slots,
            "older": nv + 1,
        }

    @property
    def _coupled_unknowns(self) -> dict[str, int]:
        """Sizes of the unknowns' arrays that are needed where contacts couple trees, by name."""
        tables, slots = self._tables, self.slots
        sizes = sorted(np.diff(tables["trunk"]).tolist())
        return {
            "rows": 3 * tables["deep"] * odd(slots),
            "best": 3 * slots,
            "ends": slots + 1,
            "joined": tables["trees"],
            "order": 3 * tables["trees"],
            "listed": sum(sum(sizes[k:]) for k in range(len(sizes))),
        }

    def _enter_slots(self, at, there, force):
        """Arrays of the contacts assigned to slots, by name, with initial impulses."""
        known, slots = self.columns, self.slots
        mu = known.friction if self.constraints.friction is None else self.constraints.friction
        given = {**there, "friction": mu, "force": force, "numbers": self._numbers(at)}
        results = {
            "found": (3,),
            "taken": (slots,),
            "place": (12 * slots,),
            "slot": (SLOT_SIZE * slots,),
            "start": (4 * slots,),
            "classes": (slots + 1 if self._couples else 1,),
        }
        made = self._routine(slot_contacts, given, results, contacts_size(self._tables))
        return dict(zip(results, made, strict=True))

    def _with_rows(self, system, there, known):
        """Arrays for ``slot_impulses`` with contact rows ``Y``, and initial impulses."""
        tables, slots = self._tables, self.slots
        given = {**there, **known, "inverse": self._inverse(system.inertia.L, system.root)}
        results = {"Y": (3 * slots * tables["deep"],), "own": (6 * slots,)}
        procedure = coupled_rows if self._couples else slot_rows
        made = self._routine(procedure, given, results, rows_size(tables))
        made = {**known, **dict(zip(results, made, strict=True))}
        names = ["found", "taken", "slot", "Y", "own", *(["classes"] if self._couples else [])]
        return {n: made[n] for n in names}, made["start"]

    @property
    def _passes(self) -> int:
        """Number of passes over the step's equations: 1 if no force depends on mean velocity."""
        model, settings = self.constraints.model, self.settings
        plain = not (np.any(settings.damping) or np.any(settings.stiffness))
        free = plain and not model.fluid_forces and bool(np.all(alone(model)))
        return 1 if free else PASSES

    @property
    def _solver(self) -> dict[str, Any]:
        """Solver settings of ``slot_impulses`` by name."""
        only_sweeps = self._dtype == "float32" and not self.settings.thorough
        solver = {**SOLVER[self._dtype], **(SWEEPS_ALONE if only_sweeps else {})}
        if self._couples and self._dtype == "float32" and not only_sweeps:
            solver |= COUPLED
        restitution = self.columns.restitution
        return {**solver, "first": FIRST, "restitution": restitution}

    @cached_property
    def _tables(self) -> dict[str, Any]:
        """Sizes and index tables of model and contacts for the slot procedures."""
        model, known = self.constraints.model, self.columns
        n, nv, tree = model.body_count + 1, model.nv, [0] * (model.body_count + 1)
        support, couples = self._support, self._couples
        moves = support + [self._moved_by(a, b) for a, b in couples]
        deep = max(1, *map(len, moves))
        each = 4 if couples else 8
        deep = -(-deep // each) * each
        for i in range(1, n):
            above = model.parent[i]
            tree[i] = tree[above] if above else max(tree) + 1
        first = [0, *itertools.accumulate(map(len, self._chains))]
        trees = min(max(tree), MAX_TREES) if couples else 0
        group = [max(0, tree[i] - 1) * trees // max(1, max(tree)) for i in range(n)]
        of_tree = [next(group[i] for i in range(n) if k in support[i]) for k in range(nv)]
        touched = [1 << group[i] if support[i] else 0 for i in range(n)]
        touched += [1 << group[a] | 1 << group[b] for a, b in couples]
        sides = [(group[i],) * 2 for i in range(n)] + [(group[a], group[b]) for a, b in couples]
        kept = np.array([not self._is_found(p) for p in self.constraints.scene.pairs])[known.pair]
        fixed = np.where(kept, np.cumsum(kept) - 1, -1)
        return {
            "bodies": n,
            "nv": nv,
            "contacts": int(kept.sum()),
            "slots": self.slots,
            "deep": deep,
            "inverses": first[-1],
            "trees": trees,
            "trunk": [sum(t < k for t in of_tree) for k in range(trees + 1)],
            "touched": touched,
            "sides": np.array(sides, dtype=np.int64),
            "tree": tree,
            "moves": [len(s) for s in moves],
            "chain": [k for s in moves for k in (*s, *[nv] * (deep - len(s)))],
            "begin": [first[k] for s in support for k in (*s, *[0] * (deep - len(s)))],
            "owner": [next(i for i in range(n) if k in support[i]) for k in range(nv)],
            "level": [len(chain) - 1 for chain in self._chains],
            "body": known.successor[kept],
            "group": known.pair[kept],
            "fixed": fixed,
            "pair": known.pair,
            "pairs": self._pair_tables(np.flatnonzero(kept)),
            **self._shapes,
        }

    @cached_property
    def _couples(self) -> list[tuple[int, int]]:
        """Ordered pairs of moving bodies that may touch each other."""
        known = self.columns
        pairs = zip(known.predecessor.tolist(), known.successor.tolist(), strict=True)
        support = self._support
        return sorted({(a, b) for a, b in pairs if support[a]})

    def _moved_by(self, a, b) -> list[int]:
        """Variables that move body a or b: common ones, others of b, then others of a."""
        one, other = self._support[a], self._support[b]
        both = [k for k in one if k in other]
        return [*other, *(k for k in one if k not in both)]

    @cached_property
    def _numbers_of_shapes(self) -> dict[int, int]:
        """Number in the detection tables of every shape, by id."""
        tables, shapes = self.constraints.scene.detection.tables, self.constraints.model.geometry
        return {id(shapes[k]): n for n, k in enumerate(tables.numbers)}

    def _pair_tables(self, column) -> PairTables:
        """``PairTables`` of the pairs whose contacts come from narrow phases."""
        scene, known, n = self.constraints.scene, self.columns, self.constraints.model.body_count
        shapes, numbers = scene.detection.tables.shapes, self._numbers_of_shapes
        carrier = {pair: n + 1 + k for k, pair in enumerate(self._couples)}
        rows, apart = [], []
        for k, pair in enumerate(scene.pairs):
            if self._is_found(pair):
                at = np.flatnonzero(known.pair == k)
                both = sorted((numbers[id(g)] for g in pair[:2]), key=lambda i: shapes.kind[i])
                rows.append((*both, at[0], len(at)))
                apart.append(pair.margin)
        each = max([points_of_kinds(*shapes.kind[row[:2]]) for row in np.array(rows)], default=1)
        room, couple = min(len(rows), 2 * self.slots), [(0, i, 0) for i in range(n + 1)]
        couple += [(a, b, len({*self._support[a]} & {*self._support[b]})) for a, b in self._couples]
        bodies = zip(known.predecessor.tolist(), known.successor.tolist(), strict=True)
        place = shapes.place.reshape(-1, 3, 4)
        radius = np.where(np.isfinite(shapes.radius), shapes.radius, 0.0)  # planes are not here
        centre = place[:, :, :3] @ shapes.box[:, :3, None] + place[:, :, 3:]
        return PairTables(
            count=len(rows),
            shapes=len(shapes.kind),
            each=each,
            room=room,
            most=min(each * room, 2 * self.slots),
            pair=np.array(rows, dtype=np.int64).reshape(-1, 4),
            apart=np.array(apart, dtype=float),
            body=shapes.body,
            kind=shapes.kind,
            place=shapes.place,
            size=shapes.size,
            radius=radius,
            box=shapes.box,
            data=shapes.data,
            firsts=shapes.firsts,
            ball=np.concatenate([centre[..., 0], radius[:, None]], axis=1),
            couple=np.array(couple, dtype=np.int64),
            carrier=np.array([carrier.get(pair, pair[1]) for pair in bodies], dtype=np.int64),
            column=np.array(column, dtype=np.int64),
        )

    @cached_property
    def _support(self) -> list[list[int]]:
        """Velocity variables that move each body, from the base outward."""
        model = self.constraints.model
        at = [list(range(model.nv)[s]) if s else [] for s in [None, *model.v_slice[1:]]]
        moving = [model.support[b] if b else () for b in range(model.body_count + 1)]
        return [[k for i in chain for k in at[i]] for chain in moving]

    @property
    def _chains(self) -> list[list[int]]:
        """For each velocity variable its chain from the base outward, itself last."""
        nv, support = self.constraints.model.nv, self._support
        return [next(s[: s.index(k) + 1] for s in support if k in s) for k in range(nv)]

    @cached_property
    def _shapes(self) -> dict[str, Any]:
        """Tables of fixed potential contacts with planes; indices of the traced others."""
        kind, shape, ground, frame, spot, plane = [], [], [], [], [], []
        pairs = self.constraints.scene.pairs
        counts = np.bincount(self.columns.pair, minlength=len(pairs))
        for pair, count in zip(pairs, counts, strict=True):
            if self._is_found(pair):
                continue
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

    def _near_pairs(self, there, time) -> dict[str, Any]:
        """Contact points of moving shapes that may touch within ``time`` seconds."""
        pairs = self._tables["pairs"]
        room = max(pairs.each * pairs.room, 1)
        most = max(pairs.most, 1)
        results = {"points": (POINT_SIZE * room,), "which": (most,), "near": (3,)}
        if not pairs.count:
            return {name: np.zeros(shape) for name, shape in results.items()}
        given, own = {**there, "time": [time]}, self._rows_of_a_pair()
        procedure = slot_pairs_of(map(tuple, pairs.kind[pairs.pair[:, :2]].tolist()))
        work = pairs_work(pairs.room, pairs.shapes)
        found = self._routine(procedure, given, results, work, own=own)
        return dict(zip(results, found, strict=True))

    def _rows_of_a_pair(self) -> dict[str, Any]:
        """Workspace records for one pair's two shapes and its contact points."""
        shapes = self.constraints.scene.detection.tables.shapes
        own = Shapes(
            pose=np.zeros((2, 12)),
            size=np.zeros((2, 3)),
            kind=np.zeros(2, dtype=np.int64),
            radius=np.zeros(2),
            box=np.zeros((2, 6)),
            data=np.zeros((2, 4), dtype=np.int64),
            firsts=np.zeros((2, 2), dtype=np.int64),
            **{name: getattr(shapes, name) for name in SHARED},
        )
        touch = Touch(
            point=np.zeros((MOST, 3)),
            normal=np.zeros((MOST, 3)),
            gap=np.zeros(MOST),
            feature=np.zeros(MOST, dtype=np.int64),
        )
        return {"shapes": own, "touch": touch}

    def _routine(self, procedure, arguments, results, work, given=None, own=None, lanes=0):
        """Traced results of a slot procedure, called with those of ``arguments`` that it takes."""
        names = wanted_by(procedure, {"pairs", *(own or {})})
        known = {n: x for n, x in self._tables.items() if n in names}
        arguments = {n: x for n, x in arguments.items() if n in names}
        given = {**known, **(given or {})}
        if self._couples and not lanes:
            several = procedure in (coupled_rows, coupled_shift)
            lanes = LANES_OF_ROWS if several else LANES_OF_CONTACTS
        return routine(procedure, given, arguments, results, work, own, SHARED, lanes)

    def _poses(self, model, q):
        """Body transforms relative to their tree's origin, poses, and the origins."""
        X, S = joint_transforms(model, q)
        origin = [np.zeros(3)]
        for i in range(1, model.body_count + 1):
            if model.parent[i] == 0:
                origin.append(X[i].r)
                X[i] = type(X[i])(X[i].E, np.zeros(3))
        X_0 = base_transforms(model, X)
        pose = [np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])]
        pose += [np.concatenate([x.E.T.ravel(), x.r]) for x in X_0[1:]]
        return X_0, S, {"pose": np.array(pose), "origin": np.array(origin)}

    def _place_bodies(self, model, q, v, h) -> dict[str, Any]:
        """Poses, joint columns and motions of all bodies in world axes, by name."""
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
        twist, rate = (np.array([x.to_array() for x in y]) for y in (twist, rate))
        return {
            **found,
            "S": np.concatenate(columns),
            "twist": twist,
            "rate": rate,
            "traced": self._trace_contacts(model, q, v),
            # Impulses make bodies faster, by about as much as they were.
            **self._near_pairs({**found, "twist": twist}, 2 * h),
        }

    def _inverse(self, L, root):
        """Rows of ``L⁻¹ D^{-1/2}`` along each variable's chain, concatenated (RBDA Table 6.5)."""
        found = []
        for k, chain in enumerate(self._chains):
            x = {k: 1.0}
            for e in range(len(chain) - 2, -1, -1):
                x[chain[e]] = -sum(x[f] * L[f, chain[e]] for f in chain[e + 1 :])
            found += [x[e] * root[e] for e in chain]
        return np.array(found)

    def _trace_contacts(self, model, q, v):
        """Gap, point, axes and rates of contacts evaluated by traced code, (n, 25)."""
        pairs = self.constraints.scene.pairs
        pairs = [p for p in pairs if _points(p) is None and not self._is_found(p)]
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

    def _project_positions(self, model, q, qd, farthest, system, entered):
        """State moved out of penetration, and the remaining penetration."""
        closed, units = self.accuracy.closed, self.constraints.units
        there = largest([entered["found"][2]], self.accuracy.grown) + self.accuracy.same
        most = select(there < closed, there, closed)
        slots, nv, count = self.slots, model.nv, self._tables["contacts"]

        def look(q, qd):
            traced = {"traced": self._trace_contacts(model, q, 0 * qd)}
            there = {**self._poses(model, q)[2], "twist": np.zeros(6 * self._tables["bodies"])}
            given = {**entered, **there, **traced, **self._near_pairs(there, 0.0)}
            results = {"opening": (slots,), "depth": (1,)}
            near, depth = self._routine(slot_look, given, results, count)
            return q, qd, near, depth

        def move(state):
            (q, qd, near, _), left = state
            given, rounds = {**entered, "opening": near}, {"rounds": SWEEPS}
            procedure = coupled_shift if self._couples else slot_shift
            (u,) = self._routine(procedure, given, {"shift": (nv,)}, nv + 1 + slots, rounds)
            shift, left = limit_shift(system.response(u), units, left)
            return look(model.integrate(q, shift), turn_velocities(model, qd, shift)), left

        def some(state):
            (found, left), many = state
            open_ = (found[3][0] > most) & (left > 0)
            return repeat(move, (found, left), select(open_, many, 0)), 3 * many

        (state, _), _ = repeat(some, ((look(q, qd), farthest), 1.0), TRIES)
        return state[0], state[1], state[3][0]


def lanes_that_fit(size: int) -> int:
    """Number of lanes for a world of ``size`` bytes, if a block's shared memory is filled."""
    worlds = max(1, SHARED_OF_BLOCK // max(size, 1))
    return max(LANES_OF_ROWS, 1 << (LANES_OF_BLOCK // worlds).bit_length() - 1)


def _points(pair):
    """Kind, position and radius of a shape's contacts with a plane; None for other pairs."""
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
