"""Loop-closure functions: all joint variables from independent ones — RBDA §8.11.

    q = γ(y)        qd = G yd        qdd = G ydd + g        G = ∂γ/∂y,  g = Gd yd     (8.56)–(8.60)

Where ``γ`` is known in closed form, loops are closed by construction: nothing drifts, nothing is
stabilised, ``y`` and ``yd`` are integrated and ``q`` follows. The price is that ``y`` must stay in
the set ``C`` where ``γ`` is defined. ``G`` and ``g`` come from ``γ`` by differentiation, exactly:
``γ`` is evaluated on numbers that carry two derivatives.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import crba, rnea
from kinetree.algorithms.closed.constraints import loop_signs
from kinetree.algorithms.closed.systems import Explicit, SubsystemEquation, apply_explicit
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import LoopError, ShapeError, UnknownNameError, UnreachableError
from kinetree.joints import AbstractJoint
from kinetree.joints.jet import Jet
from kinetree.loops.dynamics.methods import Accelerations, ConstrainedEquations, smallest_forces
from kinetree.model import Model
from kinetree.quantities.dynamics import external_forces
from kinetree.spatial import Force
from kinetree.spelling import did_you_mean


class ClosedMotion(NamedTuple):
    """The whole mechanism, from its independent variables."""

    q: np.ndarray
    """Position variables of the tree joints, (nq,)."""
    qd: np.ndarray
    """Velocity variables of the tree joints, (nv,)."""
    G: np.ndarray
    """``qd = G yd``, (nv, m)."""
    g: np.ndarray
    """``qdd = G ydd + g``, (nv,)."""


@dataclass(frozen=True, eq=False)
class LoopClosure:
    """A function ``q = γ(y)`` that closes the loops of a model.

    Attributes:
        model: the mechanism.
        gamma: takes ``y`` and returns ``q``; written with ``kinetree.spatial.ops``, or with the
            operators of arithmetic and methods ``sin``, ``cos``, ``sqrt`` of its arguments.
        variables: kinds of joint whose variables ``y`` are, which says how ``yd`` changes ``y``. A
            ``Revolute`` or ``Prismatic`` stands for any plain number.
        names: of these variables.
        margins: takes ``y`` and returns numbers that are positive where ``γ`` is defined, the
            inside of ``C``; None if it is defined everywhere.
        coordinates: takes ``q`` and returns ``y``; needed to start from ``q``.
    """

    model: Any
    gamma: Callable
    variables: tuple[AbstractJoint, ...]
    names: tuple[str, ...]
    margins: Callable | None = None
    coordinates: Callable | None = None

    def configuration(self, y: ArrayLike) -> np.ndarray:
        """Configuration ``q = γ(y)``; UnreachableError for ``y`` outside the valid set."""
        y = self._position(y)
        if self.margins is not None:
            with np.errstate(invalid="ignore"):
                margins = np.asarray(self.margins(y), dtype=float)
            if not np.all(margins > 0):
                worst = int(np.argmin(np.where(np.isnan(margins), -np.inf, margins)))
                raise UnreachableError(
                    f"model {self.model.name!r} cannot be assembled at "
                    f"{', '.join(self.names)} = {np.array2string(y, precision=6)}: margin {worst} "
                    f"of its closure function is {margins[worst]:.3g}, and must be above zero"
                )
        return np.asarray(self.gamma(y), dtype=float)

    def motion(self, y: ArrayLike, yd: ArrayLike) -> ClosedMotion:
        """Configuration, velocity, ``G`` and ``g`` at independent variables ``y, yd``."""
        q = self.configuration(y)
        y, yd = self._position(y), self._velocity(yd)
        G = np.column_stack(
            [np.zeros((self.model.nv, 0)), *(self._along(y, e)[0] for e in np.eye(len(yd)))]
        )
        qd, g = self._along(y, yd)
        return ClosedMotion(q, qd, G, g)

    def forward_dynamics(
        self, y: ArrayLike, yd: ArrayLike, tau: ArrayLike, f_ext: ArrayLike | dict | None = None
    ) -> np.ndarray:
        """Independent accelerations ``ydd`` under joint forces ``tau``, (m,) — RBDA (8.46).

        Args:
            y: independent variables.
            yd: their velocities, (m,).
            tau: joint forces of the tree joints [N, N·m], (nv,).
            f_ext: forces acting on bodies, as in ``inverse_dynamics``.
        """
        q, qd, G, g = self.motion(y, yd)
        forces = None
        if f_ext is not None:
            forces = [None, *(Force.from_array(f) for f in external_forces(self.model, f_ext))]
        H = crba.joint_space_inertia(self.model, q)
        C = rnea.bias_force(self.model, q, qd, forces)
        system = SubsystemEquation(H, C, np.asarray(tau, dtype=float))
        return apply_explicit(system, Explicit(G, g)).ydd

    def solve(self, instant: ConstrainedEquations) -> Accelerations:
        """Joint accelerations and constraint forces for a state given by ``q`` and ``qd``."""
        if self.coordinates is None:
            raise LoopError(
                f"this closure function of model {instant.model.name!r} does not say which y a q "
                f"has: give it coordinates=..., or use its forward_dynamics, which takes y"
            )
        y = np.asarray(self.coordinates(instant.q), dtype=float)
        miss = float(np.max(np.abs(self.configuration(y) - instant.q), initial=0.0))
        if miss > 1e-3:
            raise ShapeError(
                f"q is not on the branch of this closure function: it is {miss:.3g} m or rad away "
                f"from gamma(y); choose the other branch, or count angles from within half a turn"
            )
        G = self.motion(y, np.zeros(sum(j.nv for j in self.variables))).G
        yd = np.linalg.lstsq(G, instant.qd, rcond=None)[0]
        moved = apply_explicit(instant.system, Explicit(G, self.motion(y, yd).g))
        return Accelerations(moved.qdd, smallest_forces(instant, moved.tau_c))

    def integrate(self, y: ArrayLike, dy: ArrayLike) -> np.ndarray:
        """Independent positions reached from ``y`` by the displacement ``dy``."""
        y, dy = self._position(y), self._velocity(dy)
        parts, at, to = [np.zeros(0)], 0, 0
        for joint in self.variables:
            parts.append(joint.integrate(y[at : at + joint.nq], dy[to : to + joint.nv]))
            at, to = at + joint.nq, to + joint.nv
        return np.concatenate(parts)

    def _along(self, y, yd):
        """Joint velocity and acceleration when ``y`` moves at constant velocity ``yd``."""
        rate = _rate(self.variables, y, yd)
        second = [x.first for x in _rate(self.variables, _jets(y, rate), yd)]
        moved = [_as_jet(x) for x in self.gamma(_jets(y, rate, second))]
        q, dq, ddq = (np.array([getattr(x, n) for x in moved], dtype=float) for n in _PARTS)
        return _velocities(self.model, q, dq, ddq)

    def _position(self, y):
        """Independent positions as an array; ShapeError for a wrong size."""
        return _require_size(y, sum(j.nq for j in self.variables), "y", self.names)

    def _velocity(self, yd):
        """Independent velocities as an array; ShapeError for a wrong size."""
        return _require_size(yd, sum(j.nv for j in self.variables), "yd", self.names)


_PARTS = ("value", "first", "second")


def _require_size(x, count, what, names):
    """``x`` as a float array of ``count`` numbers, else ShapeError."""
    x = np.asarray(x, dtype=float)
    if x.shape != (count,):
        raise ShapeError(f"{what} must have shape ({count},) for {', '.join(names)}, got {x.shape}")
    return x


def _as_jet(x):
    """Number as a ``Jet``, with zero derivatives if it is a plain one."""
    return x if isinstance(x, Jet) else Jet(x)


def _jets(x, first, second=None):
    """Array of ``Jet`` numbers from values, first and second derivatives."""
    second = [0] * len(x) if second is None else second
    return np.array([Jet(*parts) for parts in zip(x, first, second, strict=True)], dtype=object)


def _rate(joints, q, qd):
    """Coordinate rates ``dq/dt`` of several joints' variables, as a list."""
    rates, at, to = [], 0, 0
    for joint in joints:
        rates += list(joint.configuration_rate(q[at : at + joint.nq], qd[to : to + joint.nv]))
        at, to = at + joint.nq, to + joint.nv
    return [x if isinstance(q[0], float) else _as_jet(x) for x in rates]


def _velocities(model, q, dq, ddq):
    """Joint velocities and accelerations from coordinates and their two derivatives."""
    qd, qdd = [np.zeros(0)], [np.zeros(0)]
    for joint, at in zip(model.joint[1:], model.q_slice[1:], strict=True):
        if joint.rates_are_velocities:
            qd.append(dq[at])
            qdd.append(ddq[at])
            continue
        Q = np.asarray(joint.rate_matrix(q[at]), dtype=float)
        qd.append(np.linalg.lstsq(Q, dq[at], rcond=None)[0])
        moving = joint.configuration_rate(_jets(q[at], dq[at]), qd[-1])
        turning = np.array([_as_jet(x).first for x in moving], dtype=float)
        qdd.append(np.linalg.lstsq(Q, ddq[at] - turning, rcond=None)[0])
    return np.concatenate(qd), np.concatenate(qdd)


# --- rules that solve one loop each --------------------------------------------------------------


class Rule(NamedTuple):
    """The solution of one loop."""

    dependent: tuple
    """Numbers of the joints whose variables it gives."""
    solve: Callable
    """Takes ``q`` with the variables of all other joints of the loop in place; returns the
    variables of the dependent joints, one after the other."""
    margins: Callable
    """Takes the same; returns numbers that are positive where there is a solution."""


def closure(model: Model, *rules: Rule) -> LoopClosure:
    """``LoopClosure`` of a model whose loops are solved by the rules, in order."""
    dependent = [j for rule in rules for j in rule.dependent]
    twice = {model.joint_names[j - 1] for j in dependent if dependent.count(j) > 1}
    if twice:
        raise LoopError(f"two rules determine joint {', '.join(sorted(twice))}; one will do")
    joint: Any = model.joint
    free = [j for j in range(1, model.body_count + 1) if j not in dependent]

    def fill(y, until=None):
        q, at = np.zeros(model.nq, dtype=np.asarray(y).dtype), 0
        for j in free:
            count = joint[j].nq
            q[model.q_slice[j]], at = y[at : at + count], at + count
        for rule in rules[:until]:
            values, at = rule.solve(q), 0
            for j in rule.dependent:
                count = joint[j].nq
                q[model.q_slice[j]], at = values[at : at + count], at + count
        return q

    def margins(y):
        return np.concatenate(
            [np.zeros(0), *(rule.margins(fill(y, until)) for until, rule in enumerate(rules))]
        )

    return LoopClosure(
        model,
        fill,
        tuple(joint[j] for j in free),
        tuple(model.joint_names[j - 1] for j in free),
        margins,
        lambda q: np.concatenate([np.zeros(0), *(q[model.q_slice[j]] for j in free)]),
    )


def loop_chains(model, loop, shapes):
    """Both joint chains of a loop, ordered to match ``shapes``, and the pin on each side."""
    names = [known.name for known in model.loops]
    if loop not in names:
        hint = did_you_mean(loop, names, f"there are {', '.join(names) or 'none'}")
        raise UnknownNameError(f"model {model.name!r} has no loop joint {loop!r}; {hint}")
    closing = model.loops[names.index(loop)]
    p, s = closing.predecessor, closing.successor
    signs = loop_signs(model, p, s)
    sides = [sorted(j for j, sign in signs.items() if sign == way) for way in (-1, 1)]
    pins = [closing.predecessor_placement.r, closing.successor_placement.r]
    for shape in shapes:
        for one, other in ((0, 1), (1, 0)):
            if _fits(model, sides[one], shape[0]) and _fits(model, sides[other], shape[1]):
                return sides[one], sides[other], (pins[one], pins[other])
    found = " and ".join(
        "-".join(type(model.joint[j]).__name__ for j in side) or "nothing" for side in sides
    )
    wanted = " and ".join("any" if x == "*" else x for x in shapes[0])
    raise LoopError(
        f"loop {loop!r} of model {model.name!r} does not have this closed form: it runs through "
        f"{found}, not through {wanted} (R revolute, P prismatic, U universal)"
    )


def _fits(model, joints, shape):
    """Whether joints match a pattern of joint symbols, such as "RP"; "*" matches all."""
    if shape == "*":
        return True
    return len(joints) == len(shape) and all(
        model.joint[j].symbol == kind for j, kind in zip(joints, shape, strict=True)
    )
