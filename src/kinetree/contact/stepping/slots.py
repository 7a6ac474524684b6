"""Steps with contact for GPUs and many potential contacts, of which only a few act at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.algorithms.dual import rate_of, value_of
from kinetree.algorithms.kinematics import base_transforms, body_velocities, joint_transforms
from kinetree.codegen.procedures.routine import routine
from kinetree.contact.complementarity.traced import largest
from kinetree.contact.contacts import contact_axes, contact_axes_rate
from kinetree.contact.engine.slots import FOUND, slot_shift, slot_step, work_size
from kinetree.contact.finding.candidates import moving_touches
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
from kinetree.joints import Free, Planar
from kinetree.spatial import cross

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
        known, tables = self.constraints.scene.candidates, self._tables
        mu = known.friction if self.constraints.friction is None else self.constraints.friction
        dtype = "float32" if self.accuracy.sweeps else "float64"
        tolerance = AIM[dtype] * self.settings.tolerance
        numbers = [h, half, tolerance, self.accuracy.settled, self.accuracy.deep,
                   self.settings.rest_velocity, FIRST]  # fmt: skip
        nv, deep = model.nv, tables["deep"]
        results = {
            "after": (nv,), "held": (4 * self.slots,), "found": (FOUND,), "L": (nv * nv,),
            "Y": (3 * deep * self.slots,), "A": (9 * self.slots * (self.slots + 1) // 2,),
            "taken": (self.slots,),
        }  # fmt: skip
        placed = self._placed(model, middle, v)
        after, held, found, *factors = routine(
            slot_step,
            {**tables, "sweeps": SWEEPS, "passes": PASSES, "again": AGAIN[dtype],
             "restitution": known.restitution},
            {**placed, "v": v, "tau": tau_all, "K": K, "D": D,
             "friction": mu, "force": force, "numbers": np.array(numbers)},
            results, work_size(tables["bodies"], nv, self.slots, AGAIN[dtype]),
        )  # fmt: skip
        end, after = straight_motion(model, middle, after, h - half)
        farthest = h * self.settings.correction_speed
        factors = found, *factors
        end, after, deepest = self._projected(model, end, after, placed["gap"], factors, farthest)
        balance = Balance(found[5], found[3], found[4])
        at_end = energy
        if self.settings.conserving:
            after, balance, at_end = balanced(energy, self.energies(end, after), after, balance)
        residuals = Residuals(
            found[0], found[1], found[2], deepest, 0.0, balance.contact, balance.lost,
            balance.taken, balance.gained, 1.0,
        )  # fmt: skip
        return Ended(end, after, balance.work, held, np.array([*residuals]), at_end)

    @property
    def _tables(self) -> dict[str, Any]:
        """Sizes and integers of the model and the scene, for ``slot_step``."""
        model, known = self.constraints.model, self.constraints.scene.candidates
        n, nv = model.body_count + 1, model.nv
        support = [[k for i in model.support[b] for k in range(nv)[model.v_slice[i]]] if b else []
                   for b in range(n)]  # fmt: skip
        deep = max(1, *map(len, support))
        common = [[_alike(a, b) for b in support] for a in support]
        return {
            "bodies": n, "nv": nv, "contacts": known.size, "slots": self.slots, "deep": deep,
            "parent": [0, *model.parent[1:]],
            "first": [0, *(s.start for s in model.v_slice[1:])],
            "count": [0, *(s.stop - s.start for s in model.v_slice[1:])],
            "flies": [0, *(int(isinstance(j, Free)) for j in model.joint[1:])],
            "up": model.spanning_tree.expanded_parent,
            "moves": [len(s) for s in support],
            "chain": [k for s in support for k in (*s, *[0] * (deep - len(s)))],
            "common": [k for row in common for k in row],
            "body": known.successor, "group": known.pair,
        }  # fmt: skip

    def _placed(self, model, q, v) -> dict[str, Any]:
        """Poses, columns of the joints and potential contacts, about the origins of their trees."""
        X, S = joint_transforms(model, q)
        X_0 = base_transforms(model, X)
        _, velocity = body_velocities(model, q, v)
        n = model.body_count + 1
        speed = [X_0[i].inv_apply(velocity[i]) for i in range(n)]
        root = [0] * n
        for i in range(1, n):
            root[i] = root[model.parent[i]] or i
        origin = [X_0[r].r if r else np.zeros(3) for r in root]
        pose, columns = [np.zeros(12)], [np.zeros((0, 6))]
        for i in range(1, n):
            pose.append(np.concatenate([X_0[i].E.T.ravel(), X_0[i].r - origin[i]]))
            if model.joint[i].nv:
                world = X_0[i].inv_apply(S[i])
                angular, linear = np.asarray(world.angular), np.asarray(world.linear)
                both = zip(angular.T, linear.T, strict=True)
                shifted = [b + cross(a, origin[i]) for a, b in both]
                columns.append(np.concatenate([angular.T, np.array(shifted)], axis=1))
        gap, point, point_rate, axes, axes_rate = [], [], [], [], []
        for pair in self.constraints.scene.pairs:
            o = origin[pair.second.body]
            for touch in moving_touches(pair, X_0, speed):
                p, rate = value_of(touch.point), rate_of(touch.point)
                normal, turn = value_of(touch.normal), rate_of(touch.normal)
                gap.append(value_of([touch.gap])[0])
                point.append(p - o)
                point_rate.append(rate)
                axes.append(np.ravel(contact_axes(normal)))
                axes_rate.append(np.ravel(contact_axes_rate(normal, turn)))
        inertia = [np.zeros(10), *(model.inertia[i].parameters() for i in range(1, n))]
        return {
            "inertia": np.array(inertia), "gravity": model.gravity,
            "armature": model.spanning_tree.armature, "pose": np.array(pose),
            "S": np.concatenate(columns), "gap": np.array(gap), "point": np.array(point),
            "point_rate": np.array(point_rate), "axes": np.array(axes),
            "axes_rate": np.array(axes_rate),
        }  # fmt: skip

    def _projected(self, model, q, qd, gap, factors, farthest):
        """Positions without penetration, ``qd`` there, and what remains: ``step.projected``."""
        tables = {n: self._tables[n] for n in ("nv", "deep", "up", "moves", "chain", "body")}
        closed, units = self.accuracy.closed, self.constraints.units
        there = largest(-gap, self.accuracy.grown) + self.accuracy.same
        most = select(there < closed, there, closed)
        names = ("found", "L", "Y", "A", "taken")

        def look(q):
            gap = self.constraints.gaps(model, q)[0]
            return q, gap, largest(-gap)

        def move(state):
            (q, gap, _), qd, left = state
            (wanted,) = routine(
                slot_shift, {**tables, "rounds": _SWEEPS},
                {"gap": gap, **dict(zip(names, factors, strict=True))},
                {"shift": (model.nv,)}, 2 * self.slots,
            )  # fmt: skip
            shift, left = bounded(wanted, units, left)
            return look(model.integrate(q, shift)), turned(model, qd, shift), left

        def some(state):
            (found, qd, left), many = state
            open_ = (found[2] > most) & (left > 0)
            return repeat(move, (found, qd, left), select(open_, many, 0)), 3 * many

        (state, qd, _), _ = repeat(some, ((look(q), qd, farthest), 1.0), _TRIES)
        return state[0], qd, state[2]


def _alike(a, b):
    """How many numbers two lists begin with alike."""
    same = [x == y for x, y in zip(a, b, strict=False)]
    return [*same, False].index(False)
