"""Steps with contact for GPUs and many potential contacts, of which only a few act at once."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.algorithms.dual import rate_of, value_of
from kinetree.algorithms.kinematics import base_transforms, body_velocities, joint_transforms
from kinetree.codegen.procedures.routine import routine
from kinetree.contact.complementarity.traced import largest
from kinetree.contact.contacts import contact_axes, contact_axes_rate
from kinetree.contact.engine.slot_tree import CORNER, ELLIPSOID, FIXED, LOWEST, TRACED
from kinetree.contact.engine.slots import (
    FOUND,
    look_size,
    slot_forces,
    slot_look,
    slot_shift,
    slot_step,
    work_size,
)
from kinetree.contact.finding.candidates import moving_touches
from kinetree.contact.finding.closed_forms import round_points
from kinetree.contact.history import Residuals
from kinetree.contact.settings import PASSES
from kinetree.contact.stepping.inertia import alone, straight_motion, turned
from kinetree.contact.stepping.step import (
    FIRST,
    Balance,
    ContactStep,
    Ended,
    balanced,
    bounded,
    of_leaders,
)
from kinetree.errors import ModelError
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import select
from kinetree.joints import Free, Planar, Prismatic, Revolute
from kinetree.model.geometry import Cylinder, Ellipsoid, Plane

SWEEPS = 48
"""Of Gauss and Seidel, at most."""
AGAIN = {"float32": 0, "float64": 8}
"""How often steps of Newton, then sweeps again, follow sweeps that do not end."""
AIM = {"float32": 0.4, "float64": 0.1}
"""Times the tolerance: where sweeps end."""
_TRIES, _SWEEPS = 3, 2  # of the projection of positions, see ``step.projected``


def _is_plain(joint):
    """Whether the columns of a joint are fixed to the body beyond it."""
    return joint.constant_subspace and not isinstance(joint, Planar)


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
        )  # fmt: skip
        for reason, holds in checks:
            if holds:
                raise ModelError(
                    f"the scene of {model.name!r} has {known.size} potential contacts, too many to "
                    f"be unrolled for a GPU, and steps with slots for those that are close do not "
                    f"apply: {reason}. Give NumPy arrays, whose engine takes any scene, or fewer "
                    f"pairs, Scene(model, pairs)"
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
        given = {"contacts": count, "slots": self.slots}
        return routine(slot_forces, given, {"force": memory[: self.rows]}, {"found": (count, 3)})[0]

    def __call__(
        self, method, field, model, t, h, q, qd, tau, force, energy=None, found=None
    ) -> Ended:
        """The state after ``h`` seconds: see ``ContactStep``."""
        if found is not None or self.is_relaxed:
            raise ModelError(
                f"steps of {model.name!r} with slots for contacts have no derivatives: a scene "
                f"that can be unrolled has them, Scene(model, pairs='feet')"
            )
        energy = self.energies(q, qd) if energy is None else energy
        fast = self._looks_back and self.constraints.is_fast(model, q, qd, h / 2)
        half = select(fast, 0.0, h / 2)
        middle, v = straight_motion(model, q, qd, half)
        K = of_leaders(model, "stiffness") + self.settings.stiffness
        D = of_leaders(model, "damping") + self.settings.damping
        if field.actuators is not None:
            servos = field.actuators.resistance(model, t, q, qd, tau)
            K, D = K + servos[0], D + servos[1]
        tau_all = field.joint_force(model, t, q, qd, tau)
        known, tables, slots = self.constraints.scene.candidates, self._tables, self.slots
        mu = known.friction if self.constraints.friction is None else self.constraints.friction
        dtype = "float32" if self.accuracy.sweeps else "float64"
        tolerance = AIM[dtype] * self.settings.tolerance
        numbers = [h, half, tolerance, self.accuracy.settled, self.accuracy.deep,
                   self.settings.rest_velocity, FIRST]  # fmt: skip
        nv, deep = model.nv, tables["deep"]
        results = {
            "after": (nv,), "held": (4 * slots,), "found": (FOUND,), "X": (nv * deep,),
            "Y": (deep * max(3 * slots, nv),), "own": (slots, 9), "taken": (slots,),
        }  # fmt: skip
        after, held, found, *factors = routine(
            slot_step,
            {**tables, "sweeps": SWEEPS, "passes": PASSES, "again": AGAIN[dtype],
             "restitution": known.restitution},
            {**self._placed(model, middle, v), "tau": tau_all, "K": K, "D": D, "friction": mu,
             "force": force, "numbers": np.array(numbers)},
            results, work_size(tables, AGAIN[dtype]),
        )  # fmt: skip
        end, after = straight_motion(model, middle, after, h - half)
        farthest = h * self.settings.correction_speed
        factors = found, *factors
        end, after, at_end = self._projected(model, end, after, found[9], factors, farthest)
        balance, deepest, at_end = Balance(found[5], found[3], found[4]), at_end[2], at_end[:2]
        if self.settings.conserving:
            after, balance, at_end = balanced(energy, at_end, after, balance)
        residuals = Residuals(
            found[0], found[1], found[2], deepest, 0.0, balance.contact, balance.lost,
            balance.taken, balance.gained, 1.0,
        )  # fmt: skip
        return Ended(end, after, balance.work, held, np.array([*residuals]), at_end)

    def energies(self, q, qd):
        """Kinetic and potential energy [J], (2,), or zero where steps do not balance it."""
        if not self.settings.conserving:
            return np.zeros(2)
        return self._look(self.tree, q, qd, np.zeros(FOUND), np.zeros(self.slots))[1][:2]

    @cached_property
    def _tables(self) -> dict[str, Any]:
        """Sizes and tables of the model, for the procedures of ``engine.slots``."""
        model, known = self.constraints.model, self.constraints.scene.candidates
        n, nv = model.body_count + 1, model.nv
        support = [[k for i in model.support[b] for k in range(nv)[model.v_slice[i]]] if b else []
                   for b in range(n)]  # fmt: skip
        deep = max(1, *map(len, support))
        owner = [i for i in range(1, n) for _ in range(nv)[model.v_slice[i]]]
        level = [support[i].index(k) for k, i in enumerate(owner)]
        depth, tree = [0] * n, [0] * n
        for i in range(1, n):
            depth[i] = depth[model.parent[i]] + 1
            first = depth[i] == 1
            tree[i] = max(tree[:i], default=0) + 1 if first else tree[model.parent[i]]
        order, starts = _by_level(depth)
        return {
            "bodies": n, "nv": nv, "contacts": known.size, "slots": self.slots, "deep": deep,
            "levels": len(starts) - 2, "trees": max(tree) + 1,
            "parent": [0, *model.parent[1:]], "tree": tree, "other": _others(model),
            "first": [0, *(s.start for s in model.v_slice[1:])],
            "flies": [0, *(int(isinstance(j, Free)) for j in model.joint[1:])],
            "order": order[starts[1]:], "starts": [s - starts[1] for s in starts[1:]],
            "owner": owner, "level": level,
            "deepest": np.argsort(level, kind="stable")[::-1],
            "corner": [e for e in range(deep) for _ in range(e + 1)],
            "count": [0, *(s.stop - s.start for s in model.v_slice[1:])],
            "moves": [len(s) for s in support],
            "chain": [k for s in support for k in (*s, *[0] * (deep - len(s)))],
            "common": [_alike(a, b) for a in support for b in support],
            "body": known.successor, "group": known.pair, **self._shapes,
        }  # fmt: skip

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
            "sort": np.argsort(kind, kind="stable"), "kind": kind, "shape": shape, "ground": ground,
            "frame": np.reshape(np.array(frame, float), (-1, 12)), "spot": np.array(spot, float),
            "plane": np.reshape(np.array(plane, float), (-1, 10)),
        }  # fmt: skip

    def _placed(self, model, q, v) -> dict[str, Any]:
        """Poses relative to parents, inertias, and the contacts that no table has."""
        n, other = model.body_count + 1, _others(model)
        X, S = joint_transforms(model, q)
        mount, axis, travel = [np.zeros(12)], [np.zeros((0, 6))], [0]
        for i in range(1, n):
            its = model.tree_transform[i]
            mount.append(np.concatenate([its.E.T.ravel(), its.r]))
            travel.append(0 if other[i] >= 0 else q[model.q_slice[i]][0])
            if model.joint[i].nv:
                angular, linear = np.asarray(S[i].angular), np.asarray(S[i].linear)
                axis.append(np.concatenate([angular.T, linear.T], axis=1))
        given = [np.concatenate([X[i].E.T.ravel(), X[i].r]) for i in range(1, n) if other[i] >= 0]
        inertia = [np.zeros(10), *(model.inertia[i].parameters() for i in range(1, n))]
        return {
            "inertia": np.array(inertia), "gravity": model.gravity,
            "armature": model.spanning_tree.armature, "mount": np.array(mount),
            "given": np.reshape(np.array(given), (-1, 12)), "travel": np.array(travel),
            "axis": np.concatenate(axis), "v": v, "traced": self._traced(model, q, v, X),
        }  # fmt: skip

    def _traced(self, model, q, v, X):
        """Gap, point, its rate, axes and their rates of the contacts that no table has, (n, 25)."""
        pairs = [p for p in self.constraints.scene.pairs if _points(p) is None]
        if not pairs:
            return np.zeros((0, 25))
        X_0 = base_transforms(model, X)
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
                found.append(np.concatenate([
                    value_of([touch.gap]), value_of(touch.point) - origin, rate_of(touch.point),
                    np.ravel(contact_axes(normal)), np.ravel(contact_axes_rate(normal, turn)),
                ]))  # fmt: skip
        return np.array(found)

    def _look(self, model, q, v, found, taken):
        """Gaps of slots, and energies with the largest depth, at a configuration."""
        names = [name for name, _ in slot_look.arguments]
        tables = {n: x for n, x in self._tables.items() if n in names}
        return routine(
            slot_look, tables, {**self._placed(model, q, v), "found": found, "taken": taken},
            {"near": (self.slots,), "energy": (3,)}, look_size(tables),
        )  # fmt: skip

    def _projected(self, model, q, qd, deep, factors, farthest):
        """State without penetration, what remains of it, and energies: ``step.projected``."""
        names = [name for name, _ in slot_shift.arguments]
        tables = {n: x for n, x in self._tables.items() if n in names}
        closed, units = self.accuracy.closed, self.constraints.units
        there = largest([deep], self.accuracy.grown) + self.accuracy.same
        most = select(there < closed, there, closed)
        names = ("found", "X", "Y", "own", "taken")

        def look(q, qd):
            return q, qd, *self._look(model, q, qd, factors[0], factors[-1])

        def move(state):
            (q, qd, near, _), left = state
            (wanted,) = routine(
                slot_shift, {**tables, "rounds": _SWEEPS},
                {"near": near, **dict(zip(names, factors, strict=True))},
                {"shift": (model.nv,)}, self.slots + model.nv,
            )  # fmt: skip
            shift, left = bounded(wanted, units, left)
            return look(model.integrate(q, shift), turned(model, qd, shift)), left

        def some(state):
            (found, left), many = state
            open_ = (found[3][2] > most) & (left > 0)
            return repeat(move, (found, left), select(open_, many, 0)), 3 * many

        (state, _), _ = repeat(some, ((look(q, qd), farthest), 1.0), _TRIES)
        return state[0], state[1], state[3]


def _by_level(level):
    """Numbers in order of their level, and where each level begins among them."""
    order = sorted(range(len(level)), key=lambda k: (level[k], k))
    counts = np.bincount(level, minlength=1)
    return order, [0, *np.cumsum(counts).tolist()]


def _others(model):
    """Numbers of the bodies whose joints do not turn about or slide along one axis; else -1."""
    plain = [isinstance(j, Revolute | Prismatic) for j in model.joint[1:]]
    return [-1, *(-1 if p else plain[:k].count(False) for k, p in enumerate(plain))]


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


def _alike(a, b):
    """How many numbers two lists begin with alike."""
    same = [x == y for x, y in zip(a, b, strict=False)]
    return [*same, False].index(False)
