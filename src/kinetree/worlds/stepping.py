"""Steps of a world, with the memory of the solver, the table of contacts and the report."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.contacts import contact_axes, velocity
from kinetree.contact.engine.engine import Engine, Memory
from kinetree.contact.finding.pairs import names_of
from kinetree.contact.history import Residuals, gathered
from kinetree.contact.stepping.stepper import joint_rows
from kinetree.errors import (
    ShapeError,
    SimulationError,
    SimulationWarning,
    UnknownNameError,
    need,
)
from kinetree.integration.breakdown import NamingTime
from kinetree.quantities.actuators import needs_of
from kinetree.simulation.controllers import call_with_model
from kinetree.simulation.setup import effects_of
from kinetree.spelling import did_you_mean
from kinetree.worlds.drives import Drives, drive


@dataclass(frozen=True)
class Contacts:
    """Contacts of a world at one instant, one row each.

    Attributes:
        names: of the two shapes, with a number for each point: ``"ground/box:0"``.
        bodies: names of the two bodies, the one that the normal leaves first.
        point: where they touch, in world coordinates [m], (n, 3).
        normal: unit vectors from the first body to the second, (n, 3).
        gap: distance along the normal [m], negative where they overlap, (n,).
        force: on the second body, in world coordinates [N], (n, 3).
        slip: velocity of the second body against the first in the plane of contact [m/s], (n, 3).
        moment: on the second body at the point, of torsional friction about the normal and of
            rolling friction about the tangents, in world coordinates [N·m], (n, 3).
        known: names of all bodies and shapes of the world.
    """

    names: tuple[str, ...]
    bodies: tuple[tuple[str, str], ...]
    point: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    force: np.ndarray
    slip: np.ndarray
    moment: np.ndarray
    known: tuple[str, ...] = field(default=(), repr=False)

    def __len__(self):
        return len(self.gap)

    @property
    def normal_force(self) -> np.ndarray:
        """Force along the normal [N], (n,)."""
        return np.einsum("ni,ni->n", self.force, self.normal)

    def between(self, first: str, second: str) -> "Contacts":
        """Those between two bodies or parts, in either order; of a robot, all its bodies."""
        one, two = self._sides(first), self._sides(second)
        return self._some((one & two[:, ::-1]).any(axis=1))

    def of(self, name: str) -> "Contacts":
        """Those of one body or part, such as a robot or the ground."""
        return self._some(self._sides(name).any(axis=1))

    def force_on(self, name: str) -> np.ndarray:
        """Sum of the contact forces on a body or part from others [N], (3,)."""
        side = self._sides(name).astype(float)
        return (side[:, 1] - side[:, 0]) @ self.force

    def _sides(self, name):
        """Which bodies of the contacts have a name, or belong to that part, (n, 2)."""
        shapes = [x.rpartition(":")[0].split("/") for x in self.names]
        found = np.array([
            [_is(body, name) or _is(shape, name) for body, shape in zip(*pair, strict=True)]
            for pair in zip(self.bodies, shapes, strict=True)
        ], dtype=bool).reshape(-1, 2)  # fmt: skip
        if self.known and not any(_is(x, name) for x in self.known):
            hint = did_you_mean(str(name), self.known)
            raise UnknownNameError(f"the world of these contacts has no part {name!r}; {hint}")
        return found

    def _some(self, mask):
        k = np.flatnonzero(mask)
        names = ("point", "normal", "gap", "force", "slip", "moment")
        arrays = {x: getattr(self, x)[k] for x in names}
        rows = {x: tuple(getattr(self, x)[i] for i in k) for x in ("names", "bodies")}
        return Contacts(**rows, **arrays, known=self.known)

    def to_pandas(self) -> Any:
        """A table with a row for each contact."""
        pandas = need("pandas", "Contacts.to_pandas", "tables")
        columns: dict[str, Any] = {"first": [a for a, _ in self.bodies]}
        columns["second"] = [b for _, b in self.bodies]
        columns["gap"] = self.gap
        for name in ("point", "normal", "force", "slip", "moment"):
            for k, axis in enumerate("xyz"):
                columns[f"{name}.{axis}"] = getattr(self, name)[:, k]
        return pandas.DataFrame(columns, index=list(self.names))

    def __repr__(self):
        if not len(self):
            return "no contacts"
        head = ("contact", "gap [m]", "normal force [N]", "friction [N]", "slip [m/s]", "point [m]")
        normal = self.normal_force
        along = np.linalg.norm(self.force - normal[:, None] * self.normal, axis=1)
        rows = [
            (self.names[k], f"{self.gap[k]:.3g}", f"{normal[k]:.4g}", f"{along[k]:.4g}",
             f"{np.linalg.norm(self.slip[k]):.3g}", " ".join(f"{x:.4g}" for x in self.point[k]))
            for k in range(len(self))
        ]  # fmt: skip
        if self.moment.any():
            turning = [f"{x:.3g}" for x in np.linalg.norm(self.moment, axis=1)]
            head = (*head, "moment [N·m]")
            rows = [(*row, x) for row, x in zip(rows, turning, strict=True)]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = ("  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip()
                 for row in (head, *rows))  # fmt: skip
        return "\n".join(lines)


def _is(body, name):
    return body == name or body.startswith((f"{name}.", f"{name}["))


class Report(NamedTuple):
    """Of the last call of ``World.step``.

    Attributes:
        steps: how many were taken.
        residuals: of all of them, the worst, and sums of energies.
        contacts: that exert forces at the end.
        islands: groups of bodies that touch, at the end.
        residual: of the equations and laws of the last step, relative to the largest impulse.
        margin: gap below which contacts counted as able to close in the last step, at least [m].
        asleep: bodies and robots that sleep.
    """

    steps: int
    residuals: Residuals
    contacts: int
    islands: int
    residual: float
    margin: float = 0.0
    asleep: int = 0

    @property
    def penetration(self) -> float:
        """Deepest [m or rad]."""
        return float(self.residuals.penetration)

    def __str__(self):
        r, asleep = self.residuals, f", {self.asleep} asleep" if self.asleep else ""
        return (
            f"{_count(self.steps, 'step')}, {_count(self.contacts, 'contact')} in "
            f"{_count(self.islands, 'island')}{asleep}; velocity "
            f"error {r.velocity:.1e}, cone {r.cone:.1e} N·s, penetration {r.penetration:.1e} m"
        )


def _count(n, what):
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


class Steps:
    """Takes the steps of a world.

    Args:
        model: the whole world.
        contact: a ``TimeStepping``.
        joints: how limits and dry friction of joints are taken.
        tolerance: of impulses, relative to the largest of an island.
        sleeping: whether what rests is left alone.
    """

    def __init__(self, model, contact, joints, tolerance, sleeping):
        self.model, self.scene, self.drives = model, contact.scene, Drives(model)
        effects = effects_of(model, **joints)
        self.has_stops = joints["limits"] == "rigid"
        passive = effects.passive
        laws = () if passive is None else (passive.friction, passive.limits, passive.loops)
        self.laws = tuple(law for law in laws if law is not None)  # springs are in the engine
        self.contact, self.effects = contact, effects
        self.solving = {"tolerance": tolerance, "sleeping": sleeping}
        self.accelerates = "qdd" in needs_of(model.sensors)
        self.forget()

    @cached_property
    def engine(self) -> Engine:
        """What takes the steps, compiled once for all worlds."""
        return self.new_engine()

    def new_engine(self, own: bool = False) -> Engine:
        """Another engine, whose code may read tables of its own."""
        names = ("rest_velocity", "correction_speed", "conserving")
        settings = {name: getattr(self.contact, name) for name in names}
        rows = joint_rows(self.model, self.effects, np.ones(self.model.nv))
        return Engine(self.model, self.scene, joints=rows, own=own, **self.solving, **settings)

    @cached_property
    def resistance(self) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and damping of the joints, (nv,) each."""
        return self.engine.stiffness, self.engine.damping

    def forget(self):
        """Start without memory."""
        self.memory, self.end, self.checked = Memory(), None, False
        self.taken, self.total, self.plain, self.is_driven = 0, None, None, False
        self.inputs: tuple = (np.zeros(self.model.nv), None, None)
        self.rate: Any = None

    def saved(self) -> dict[str, np.ndarray]:
        """Memory of the solver, for ``State``."""
        if self.end is not None and self.engine._current is self.memory:
            return {name: np.array(x) for name, x in self.engine.saved().items()}
        return {name: np.array(x) for name, x in self.memory.arrays.items()}

    def restore(self, memory):
        """Go on with a memory that ``saved`` returned."""
        self.forget()
        self.checked = True
        self.memory = Memory({name: np.array(x) for name, x in memory.items()})

    def advance(self, whole, t, h, n, control, tau, parts):
        """Take ``n`` steps of ``h`` seconds from time ``t``; the state of ``whole`` follows."""
        push = _reader(tau, self.model)
        read, held = (None, True) if control is None else self.drives.reader(control, parts)
        together = held and not callable(tau) and not self.laws
        together = together and (read is None or self.drives.holds)
        total, done = None, 0
        if not self.model.nv:  # nothing moves
            self.taken = done = n
        if done < n and not self.checked:
            self._warn_inside(whole.q)
        while done < n:
            now = t + done * h
            force, K, D = push(now, whole.q, whole.qd), 0.0, 0.0
            u = before = None
            if read is not None:
                u, before = read(now, whole.q, whole.qd), whole.activation
                drive, K, D = self.drives(whole.q, whole.qd, u, before)
                force = force + drive
                whole.activation = self.drives.after(u, before, h)
            for law in self.laws:
                force = force + law(self.model, now, whole.q, whole.qd)
            self.engine.resist(self.resistance, (K, D))
            count = n - done if together else 1
            if self.accelerates and count > 1:  # sensors need the change of the last step alone
                count -= 1
            speed = whole.qd
            found = self._stepped(whole, now, h, force, count)
            self.inputs, total = (force, u, before), _joined(total, found.residuals)
            self.rate = (whole.qd - speed) / h if count == 1 else self.rate
            done += found.taken
            self.taken += found.taken
        self.total = total
        self.plain = h if tau is None and not self.laws else None
        self.is_driven = control is not None

    def go_on(self, whole, h, n, u) -> bool:
        """Take ``n`` more steps in place, if nothing acts but actuators with constant arms.

        Args:
            whole: the world, whose state the engine must have.
            h: length of a step, which must be that of the last ones.
            n: how many.
            u: controls, or None.
        """
        if h != self.plain or not (whole.is_ahead or whole.q is self.end) or self.accelerates:
            return False
        engine, drives = self.engine, self.drives
        if u is not None:
            simple = drives.is_simple and not drives.states.size
            if not simple or type(u) is not np.ndarray or u.shape != (drives.count,):
                return False
            u = np.array(u, dtype=float)
            if not isfinite(u.dot(u)):
                return False
        elif self.is_driven:
            engine.s.tau[:] = 0.0
            engine.resist(self.resistance, (0.0, 0.0))
        each = u is not None and not drives.holds
        total = None
        for _ in range(n if each else 1):
            if u is not None:
                self._drive(u)
            engine.go_on(1 if each else n)
            self.taken += 1 if each else n
            if each and n > 1:
                total = _joined(total, engine._total[:10].copy())
        self.is_driven, self.inputs = u is not None, (self.inputs[0], u, whole.activation)
        self.total, whole.is_ahead = total, True
        if not isfinite(engine._total[10]):
            self._refuse(whole.qd, h)
        return True

    def follow(self, whole, t, h, n, control, parts):
        """Take ``n`` steps with controls that a function of time and state gives before each."""
        (read, _), total = self.drives.reader(control, parts), None
        for k in range(n):
            u = read(t + k * h, whole.q, whole.qd)
            if not self.go_on(whole, h, 1, u):
                self.advance(whole, t + k * h, h, 1, u, None, parts)
            total = _joined(total, self._totals())
        self.total = total

    def _totals(self):
        return self.engine._total[:10].copy() if self.total is None else self.total

    def _drive(self, u):
        """Forces of the actuators, where the engine is."""
        engine, (K, D) = self.engine, self._room
        s, own = engine.s, engine.mechanism
        drive(self.drives.laws, s.q, s.v, u, _NONE, s.tau, K, D)
        np.add(self.resistance[0], K, out=own.stiffness)
        np.add(self.resistance[1], D, out=own.damping)

    @cached_property
    def _room(self):
        return np.zeros(self.model.nv), np.zeros(self.model.nv)

    def current(self) -> tuple[np.ndarray, np.ndarray]:
        """The state that the engine has reached."""
        s = self.engine.s
        self.end = s.q[self.engine.of_q]
        return self.end, s.v[self.engine.of_v]

    def report(self) -> Report:
        """Of the last call."""
        if not self.taken or not self.model.nv:
            return Report(self.taken, Residuals(*[0.0] * len(Residuals._fields)), 0, 0, 0.0)
        rows, problem = self.engine.rows, self.engine.problem
        total = self._totals()
        active = int(np.count_nonzero(rows.force[: rows.contacts, 0]))
        counts = active, int(problem.islands), float(problem.error)
        last = float(self.engine.s.near), int(self.engine.sleep.asleep)
        return Report(self.taken, Residuals(*total.tolist()), *counts, *last)

    def _stepped(self, whole, t, h, force, count):
        with NamingTime(self.model, t, whole.qd):
            found = self.engine.step(whole.q, whole.qd, h, force, count=count, memory=self.memory)
        if not (isfinite(found.q.dot(found.q)) and isfinite(found.qd.dot(found.qd))):
            self._refuse(found.qd, h)
        whole.q, whole.qd, self.end = found.q, found.qd, found.q
        return found

    def _refuse(self, qd, h):
        fastest = int(np.argmax(np.where(np.isfinite(qd), np.abs(qd), np.inf)))
        at = next(i for i, x in enumerate(self.model.v_slice) if x.start <= fastest < x.stop)
        raise SimulationError(
            f"world {self.model.name!r} does not stay finite: forces or velocities are too large "
            f"for steps of {h:g} s, first at joint {self.model.joint_names[at - 1]!r}"
        )

    def _warn_inside(self, q):
        """Name the pairs that start inside each other, and joints that start beyond a limit."""
        low, high = self.model.position_limits
        beyond = np.maximum(low - q, q - high) if self.has_stops else 0.0 * q
        joints = [
            f"{self.model.joint_names[i - 1]!r} by {beyond[at].max():.3g}"
            for i, at in enumerate(self.model.q_slice)
            if i and at.start < at.stop and beyond[at].max() > _DEEP
        ]
        if joints:
            listed = ", ".join(joints[:3]) + (", ..." if len(joints) > 3 else "")
            warnings.warn(
                f"world {self.model.name!r} starts with joints beyond their limits: {listed}; they "
                f"are pushed back slowly. Start elsewhere: world.add(..., q=...); or leave limits "
                f"out: kinetree.World(limits=None)",
                SimulationWarning,
                stacklevel=4,
            )
        self.checked, found = True, self.engine.contacts(q)
        deep = np.flatnonzero(np.asarray(found.gap) < -_DEEP * self.engine.size)
        pairs = dict.fromkeys(found.names[k].rpartition(":")[0] for k in deep)
        if pairs:
            listed = ", ".join(map(repr, list(pairs)[:3])) + (", ..." if len(pairs) > 3 else "")
            warnings.warn(
                f"world {self.model.name!r} starts with bodies inside each other: {listed}, up to "
                f"{-np.min(found.gap[deep]):.3g} m; they are pushed apart slowly. To start apart: "
                f"world.add(..., on='ground'), or at=; to let links of a robot pass through each "
                f"other: world.exclude_overlaps(), or world.exclude(a, b)",
                SimulationWarning,
                stacklevel=4,
            )

    def _touching(self, whole):
        """Contacts, their forces, moments and velocities along normal and tangents, (n, 3)."""
        if self.model.nv and whole.q is self.end:  # which reading q brings up to date
            return listed(self.engine.forces())
        return without_forces(self.model, whole.q, whole.qd, self.engine.contacts(whole.q))

    def contacts(self, whole) -> Contacts:
        """The contacts of the last step; after a change, those at the state of ``whole``."""
        return table(self.model, *self._touching(whole))

    def readings(self, whole, sensors, t):
        """Readings of sensors, with what the last step did."""
        tau, u, before = self.inputs
        moved = whole.q is self.end and self.rate is not None
        given: dict[str, Any] = {"t": np.asarray(t), "qdd" if moved else "tau": tau}
        if moved:
            given["qdd"] = self.rate
        if any(s.kind in ("touch", "force", "torque") for s in sensors.values()):
            given["contacts"], given["contact_forces"] = self._touching(whole)[:2]
        if self.drives.count:
            given["controls"] = np.zeros(self.drives.count) if u is None else u
            if self.drives.states.size:
                given["activation"] = whole.activation if before is None else before
        return sensors(whole.q, whole.qd, **given)


_NONE = np.zeros(0)
_NEAR = 1e-6  # [m] up to which a contact without force is listed
_DEEP = 1e-3  # of the largest shape, from which on bodies count as inside each other


def listed(found):
    """Contacts that touch or exert forces, with forces, moments and velocities, (n, 3) each."""
    near = (found.contacts.gap <= _NEAR) | np.any(found.force, axis=1)
    rest = (x[near] for x in (found.force, found.moment, found.velocity))
    return found.contacts.chosen(near), *rest


def without_forces(model, q, qd, found):
    """The same for contacts at a state to which no step has led."""
    none = np.zeros((found.size, 3))
    moving = found.size and model.nv
    return found, none, none, np.array(velocity(model, q, qd, found)) if moving else none


def table(model, found, force, moment, speed) -> Contacts:
    """Contacts of a world, from what is known along normal and tangents."""
    axes = contact_axes(found.normal) if found.size else np.zeros((0, 3, 3))
    parts = force, speed * np.array([0.0, 1.0, 1.0]), moment
    names = model.body_names
    bodies = zip(found.predecessor, found.successor, strict=True)
    return Contacts(
        found.names, tuple((names[a], names[b]) for a, b in bodies), found.point, found.normal,
        found.gap, *(np.einsum("nk,nki->ni", x, axes) for x in parts),
        known=(*names, *names_of(model).own),
    )  # fmt: skip


def _joined(total, residuals):
    return residuals if total is None else gathered([total, residuals])


def _reader(tau, model):
    """A function ``(t, q, qd)`` to joint forces, (nv,)."""
    if callable(tau):
        return lambda t, q, qd: _checked(tau(t, q, qd), model)
    value = np.zeros(model.nv) if tau is None else _checked(tau, model)
    return lambda t, q, qd: value


def by_part(tau, world, n=None):
    """Joint forces, (nv,) or (n, nv), where they are given by part, ``{"left": (nv,)}``."""
    if callable(tau):
        function = call_with_model(tau, world.model)
        return lambda t, q, qd: by_part(function(t, q, qd), world, n)
    if not isinstance(tau, Mapping):
        return tau
    found = np.zeros((n or 1, world.model.nv))
    for name, values in tau.items():
        at = world[name].v_indices
        if np.shape(values) not in ((len(at),), (n, len(at))):
            raise ShapeError(
                f"tau of {name!r} must be {len(at)} numbers, one for each of its velocities, got "
                f"shape {np.shape(values)}"
            )
        found[:, at] = values
    return found if n else found[0]


def _checked(tau, model):
    tau = np.asarray(tau, dtype=float)
    if tau.shape != (model.nv,) or not np.all(np.isfinite(tau)):
        raise ShapeError(
            f"tau must be {model.nv} finite numbers for world {model.name!r}, got shape {tau.shape}"
        )
    return tau
