"""Constraints of a mechanism in a step: contacts, ends of travel, dry joint friction, loops.

Every one is a row of ``w = G qd``, three for a contact, with its own force. Contacts come
first; then, one row each, ends of travel, joints with dry friction, and loops and couplings.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.constraints import loop_constraints, loop_errors
from kinetree.algorithms.closed.rank import rank_policy
from kinetree.algorithms.closed.scaling import typical_length
from kinetree.contact.complementarity.traced import largest
from kinetree.contact.finding.candidates import origin_speeds
from kinetree.contact.scheme.inertia import turning
from kinetree.model.geometry import HeightField, Plane

UNBOUNDED = np.inf


class JointRows(NamedTuple):
    """Rows of the joints: rigid stops and dry friction.

    Attributes:
        stops: ends of travel: ``(position variable, velocity variable, sign, bound)``, the sign 1
            for a lower bound and -1 for an upper one.
        restitution: of the stops.
        friction: ``(velocity variable, level)`` of joints with dry friction [N or N·m].
        stiction: additional part of the friction at rest, and the velocity over which it fades.
        tendon_stops: ends of travel of tendons: ``(number, sign, bound)``; numbers after those of
            the tendons are velocity variables of joints that close loops.
        tendon_friction: ``(number, level)`` of tendons with dry friction [N], and of these.
    """

    stops: tuple = ()
    restitution: float = 0.0
    friction: tuple = ()
    stiction: tuple[float, float] = (0.0, 1.0)
    tendon_stops: tuple = ()
    tendon_friction: tuple = ()

    def level(self, c: Any, v: Any) -> Any:
        """Dry friction limit of a variable of level ``c`` at sliding velocity ``v``."""
        more, fades = self.stiction
        return c + more * c / (1 + (v / fades) ** 2) if more else c

    @property
    def has_tendons(self) -> bool:
        """Whether tendons or loop joints have rows, which only the engine supports."""
        return bool(self.tendon_stops or self.tendon_friction)

    def has_loop_joints(self, model: Any) -> bool:
        """Whether joints that close loops have rows of stops or friction."""
        numbers = [number for number, *_ in (*self.tendon_stops, *self.tendon_friction)]
        return max(numbers, default=-1) >= len(model.tendons)


NO_JOINT_ROWS = JointRows()


class ConstraintInstant(NamedTuple):
    """The rows at one configuration, ``c`` contacts and ``m`` rows in all.

    Attributes:
        G: the rows, (m, nv).
        mu: coefficients of friction, (c,).
        gap: of contacts and ends of travel [m or rad], (c + s,).
        restitution: of these, (c + s,).
        one_sided: rows of ``G`` that belong to the gaps, a list.
        low: smallest force of each row that is not of a contact [N or N·m], (m - 3 c,).
        high: largest force, (m - 3 c,).
        error: how far loops and couplings are open [m or rad]; they are the last rows.
        rate: of ``G qd`` in straight motion, see ``inertia.straight_motion``, (m,).
        names: of the contacts.
    """

    G: Any
    mu: Any
    gap: Any
    restitution: Any
    one_sided: list
    low: Any
    high: Any
    error: Any
    rate: Any
    names: tuple = ()


@dataclass(frozen=True)
class StepConstraints:
    """Constraints of a mechanism, as rows at any state.

    Attributes:
        model: the mechanism.
        scene: what can touch, a ``Scene``.
        joints: ends of travel and dry friction.
        friction: coefficients of the contacts, (c,), in place of those of the scene; or None.
    """

    model: Any
    scene: Any
    joints: JointRows = NO_JOINT_ROWS
    friction: Any = None

    def with_friction(self, friction) -> "StepConstraints":
        """Copy with other friction coefficients of the contacts, (c,), traceable."""
        return replace(self, friction=friction)

    def with_levels(self, levels) -> "StepConstraints":
        """Copy with other dry-friction levels of the joints, (nv,), traceable."""
        friction = tuple((i, levels[i]) for i, _ in self.joints.friction)
        return replace(self, joints=self.joints._replace(friction=friction))

    @cached_property
    def size(self) -> float:
        """Length scale of the mechanism [m]: its largest shape, or a joint distance."""
        shapes = self.scene.detection.tables.shapes
        moving = (shapes.body > 0) & np.isfinite(shapes.radius)
        spans = 2 * np.linalg.norm(shapes.box[moving, 3:], axis=1)
        return float(max(spans)) if len(spans) else typical_length(self.model)

    @cached_property
    def units(self):
        """Scales of the velocity variables: 1 for angles, ``size`` for lengths, (nv,)."""
        followers = {c.joint for c in self.model.couplings}
        joints = [joint for i, joint in enumerate(self.model.joint) if i and i not in followers]
        units = [unit for joint in joints for unit in joint.velocity_units()]
        return np.array([1.0 if unit == "rad/s" else self.size for unit in units])

    @property
    def on_grounds(self) -> bool:
        """Whether every contact pair includes a plane or height field."""
        grounds = (Plane, HeightField)
        return all(any(isinstance(g.shape, grounds) for g in p[:2]) for p in self.scene.pairs)

    @property
    def closes(self) -> bool:
        """Whether the model has loops to keep closed."""
        return self.model.is_constrained

    @property
    def _counting(self):
        """Indices of the loop rows that are not nearly redundant."""
        rows = rank_policy(self.model).rows
        return slice(None) if rows is None else rows

    def count(self, contacts) -> int:
        """Total number of rows for this number of contacts."""
        every = loop_errors(self.model, self.model.neutral()) if self.closes else np.zeros(0)
        errors = len(every[self._counting]) if self.closes else 0
        return 3 * contacts + len(self.joints.stops) + len(self.joints.friction) + errors

    def at(self, model, q, qd) -> ConstraintInstant:
        """Constraint rows (Jacobian, gaps, limits) at a state, traceable."""
        gap, J, bias, mu, e, names = self._contacts(model, q, qd)
        stops, friction = self.joints.stops, self.joints.friction
        unit, c = np.eye(model.nv, dtype=int), len(mu)
        parts = [J.reshape(3 * c, model.nv)]
        parts += [(sign * unit[i])[None] for _, i, sign, _ in stops]
        parts += [unit[i][None] for i, _ in friction]
        limit = [self.joints.level(level, qd[i]) for i, level in friction]
        error, rates = np.zeros(0), [*np.reshape(bias, -1), *[0] * (len(stops) + len(friction))]
        if self.closes:
            closing = loop_constraints(model, q, qd, coordinates="loop")
            parts, error = [*parts, closing.K[self._counting]], closing.error[self._counting]
            rates = [*rates, *-closing.k[self._counting]]
        wide, G = [UNBOUNDED] * len(error), np.concatenate(parts)
        return ConstraintInstant(
            G,
            mu,
            _join([*gap, *self._travel(q)]),
            np.concatenate([e, np.full(len(stops), self.joints.restitution)]),
            [3 * k for k in range(c)] + [3 * c + k for k in range(len(stops))],
            _join([0.0] * len(stops) + [-x for x in limit] + [-x for x in wide]),
            _join([UNBOUNDED] * len(stops) + limit + wide),
            error,
            _join(rates) + G @ turning(model, qd),
            names,
        )

    def is_fast(self, model, q, qd, time):
        """Whether some shape moves farther than its thickness within ``time`` seconds."""
        tables = self.scene.detection.tables
        moving = [int(k) for k in np.flatnonzero(tables.shapes.body > 0)]
        geometry = [self.model.geometry[tables.numbers[k]] for k in moving]
        squares = origin_speeds(model, q, qd, geometry)
        thin = tables.shapes.thin[moving]
        ways = [x * time * time - d * d for x, d in zip(squares, thin, strict=True)]
        return largest(ways, 0.0) > 0 if ways else False

    def gaps(self, model, q):
        """Gaps of contacts and stops, and errors of loops, at a configuration."""
        gap = self.scene.candidate_positions(model, q)[0] if self.scene.candidates.size else []
        errors = loop_errors(model, q)[self._counting] if self.closes else np.zeros(0)
        return _join([*gap, *self._travel(q)]), errors

    def _contacts(self, model, q, qd):
        """Gaps, Jacobians, biases, coefficients and names of the potential contacts."""
        known = self.scene.candidates
        if not known.size:
            return [], np.zeros((0, 3, model.nv), dtype=int), [], np.zeros(0), np.zeros(0), ()
        terms = self.scene.candidate_terms(model, q, qd)
        mu = known.friction if self.friction is None else self.friction
        return *terms, mu, known.restitution, known.names

    def _travel(self, q):
        """Distances of joint variables to their stops, as a list."""
        return [sign * (q[k] - bound) for k, _, sign, bound in self.joints.stops]


def _join(numbers):
    """Array of numbers, some of which may be traced; (0,) for none."""
    return np.array(numbers) if len(numbers) else np.zeros(0)


# --- Groups of coupled rows, and the amount of code for them -------------------------------------
# Rows are in one group if they move the same mechanism, or mechanisms that may touch. The code
# for the equations of a group grows with the cube of its size, that for all else with the size.

_EACH = 500  # as much code for each row as the equations of this number of pairs of rows


def is_short(constraints: StepConstraints, most) -> bool:
    """Whether an unrolled step has no more code than one coupled group of ``most`` rows."""
    if 3 * _EACH * len(constraints.scene.pairs) > _length(most):  # a contact each, at least
        return False
    return sum(map(_length, coupled_rows(constraints))) <= _length(most)


def _length(rows):
    """Estimated code size of a step with ``rows`` coupled rows."""
    return rows * (_EACH + rows * rows)


def coupled_rows(constraints: StepConstraints) -> list[int]:
    """Row counts of the groups that a step couples: one per tree, or one with loops."""
    model, known = constraints.model, constraints.scene.candidates
    if constraints.closes or model.couplings:
        return [constraints.count(known.size)]
    root = [0]
    for i in range(1, model.body_count + 1):
        root.append(root[model.parent[i]] or i)
    joints = [i for i in range(1, model.body_count + 1) for _ in range(model.joint[i].nv)]
    rows = [({root[p], root[s]} - {0}, 3) for p, s in zip(*known[:2], strict=True)]
    rows += [({root[joints[stop[1]]]}, 1) for stop in constraints.joints.stops]
    rows += [({root[joints[i]]}, 1) for i, _ in constraints.joints.friction]
    groups: list[tuple[set[int], int]] = []
    for trees, count in rows:
        joined = [group for group in groups if group[0] & trees]
        groups = [group for group in groups if not group[0] & trees]
        whole = trees.union(*(group[0] for group in joined))
        groups.append((whole, count + sum(group[1] for group in joined)))
    return sorted(count for _, count in groups)
