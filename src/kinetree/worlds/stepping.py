"""Steps of a world, with the memory of the solver, the table of contacts and the report."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.contacts import contact_axes, velocity
from kinetree.contact.history import Residuals, gathered
from kinetree.errors import ShapeError, need
from kinetree.simulation.controllers import call_with_model
from kinetree.simulation.setup import composed
from kinetree.worlds.drives import Drives


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
    """

    names: tuple[str, ...]
    bodies: tuple[tuple[str, str], ...]
    point: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    force: np.ndarray
    slip: np.ndarray

    def __len__(self):
        return len(self.gap)

    @property
    def normal_force(self) -> np.ndarray:
        """Force along the normal [N], (n,)."""
        return np.einsum("ni,ni->n", self.force, self.normal)

    def between(self, first: str, second: str) -> "Contacts":
        """Those between two bodies, in either order; of a robot ``left``, all its bodies."""
        return self._some([
            (_is(a, first) and _is(b, second)) or (_is(a, second) and _is(b, first))
            for a, b in self.bodies
        ])  # fmt: skip

    def of(self, name: str) -> "Contacts":
        """Those of one body, or of a robot."""
        return self._some([_is(a, name) or _is(b, name) for a, b in self.bodies])

    def force_on(self, name: str) -> np.ndarray:
        """Sum of the contact forces on a body or robot from others [N], (3,)."""
        total = np.zeros(3)
        for (a, b), f in zip(self.bodies, self.force, strict=True):
            total += f * (int(_is(b, name)) - int(_is(a, name)))
        return total

    def _some(self, mask):
        k = np.flatnonzero(mask)
        arrays = {x: getattr(self, x)[k] for x in ("point", "normal", "gap", "force", "slip")}
        rows = {x: tuple(getattr(self, x)[i] for i in k) for x in ("names", "bodies")}
        return Contacts(**rows, **arrays)

    def to_pandas(self) -> Any:
        """A table with a row for each contact."""
        pandas = need("pandas", "Contacts.to_pandas", "tables")
        columns: dict[str, Any] = {"first": [a for a, _ in self.bodies]}
        columns["second"] = [b for _, b in self.bodies]
        columns["gap"] = self.gap
        for name in ("point", "normal", "force", "slip"):
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
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = ("  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip()
                 for row in (head, *rows))  # fmt: skip
        return "\n".join(lines)


def _is(body, name):
    return body == name or body.startswith(f"{name}.")


class Report(NamedTuple):
    """Of the last call of ``World.step``.

    Attributes:
        steps: how many were taken.
        residuals: of all of them, the worst, and sums of energies.
        contacts: active at the end.
        islands: groups of bodies that touch, at the end.
    """

    steps: int
    residuals: Residuals
    contacts: int
    islands: int

    @property
    def penetration(self) -> float:
        """Deepest [m or rad]."""
        return float(self.residuals.penetration)

    def __str__(self):
        r = self.residuals
        return (
            f"{self.steps} steps, {self.contacts} contacts in {self.islands} islands; velocity "
            f"error {r.velocity:.1e}, cone {r.cone:.1e} N·s, penetration {r.penetration:.1e} m"
        )


class Steps:
    """Takes the steps of a world.

    Args:
        model: the whole world.
        contact: a ``TimeStepping``.
        joints: how limits and dry friction of joints are taken.

    Attributes:
        report: of the last call.
    """

    def __init__(self, model, contact, joints):
        self.model, self.contact, self.joints = model, contact, joints
        self.drives = Drives(model)
        self.forget()

    def forget(self):
        """Start without memory."""
        self.report = Report(0, Residuals(*[0.0] * len(Residuals._fields)), 0, 0)
        self._stepper, self._held, self._memory = None, None, None
        self._before: Any = None

    def saved(self) -> dict[str, np.ndarray]:
        """Memory of the solver, for ``State``."""
        if self._stepper is None:
            return {} if self._memory is None else self._memory
        held = self._stepper.notes.force
        if isinstance(held, np.ndarray) and held.dtype != object:
            return {"force": held.copy()}
        held = held.item() if isinstance(held, np.ndarray) else held
        return {} if held is None else {"names": np.array(held[0], dtype=str), "force": held[1]}

    def restore(self, memory):
        """Go on with a memory that ``saved`` returned."""
        self.forget()
        self._memory = memory or None

    def advance(self, whole, t, h, n, control, tau, parts):
        """Take ``n`` steps of ``h`` seconds from time ``t``; the state of ``whole`` follows."""
        read, _ = (None, True) if control is None else self.drives.reader(control, parts)
        push = _reader(tau, self.model)
        self._held = None
        residuals = None
        for k in range(n):
            now = t + k * h
            force, K, D = push(now, whole.q, whole.qd), 0.0, 0.0
            if read is not None:
                u = read(now, whole.q, whole.qd)
                drive, K, D = self.drives(whole.q, whole.qd, u.copy(), whole.activation)
                force, self._held = force + drive, (u, whole.activation)
                whole.activation = self.drives.after(u, whole.activation, h)
            self._before = whole.q, whole.qd, force
            stepper = self._stepping(whole, h, K, D)
            end = stepper.stepped(now, h, whole.q, whole.qd, force)
            whole.q, whole.qd = end.q, end.qd
            found = stepper.notes._steps[-1][1]
            stepper.notes._steps.clear()
            residuals = found if residuals is None else gathered([residuals, found])
        if residuals is not None:
            count = len(self.contacts(whole))
            self.report = Report(n, Residuals(*residuals.tolist()), count, 0)

    def _stepping(self, whole, h, K, D):
        if self._stepper is None:
            setup = composed("step", self.model, contact=self.contact, **self.joints)
            self._stepper, _ = setup.stepper(whole.q, whole.qd, (), h)
            if self._memory is not None:
                m = self._memory
                force: Any = m["force"]
                if "names" in m:
                    force = np.empty((), dtype=object)
                    force[()] = (tuple(m["names"].tolist()), m["force"])
                self._stepper.notes.force = force
        return self._stepper

    def _touching(self, whole):
        """Contacts now, and their forces along normal and tangents, (n, 3)."""
        scene = self.contact.scene
        found = scene.contacts(whole.q, 1e-4)
        forces = np.zeros((found.size, 3))
        if self._stepper is not None:
            held = self._stepper.notes.force
            fixed = self._stepper.contact_step.constraints.compiled
            if isinstance(held, np.ndarray) and held.dtype == object:
                held = held.item()
            names, force = (scene.candidates.names, held) if fixed else held or ((), ())
            column = {name: j for j, name in enumerate(names)}
            for k, name in enumerate(found.names):
                if name in column:
                    forces[k] = force[3 * column[name] : 3 * column[name] + 3]
        return found, forces

    def contacts(self, whole) -> Contacts:
        """The contacts of the last step; without one, those at the state of ``whole``."""
        found, forces = self._touching(whole)
        axes = contact_axes(found.normal) if found.size else np.zeros((0, 3, 3))
        slip = np.array(velocity(self.model, whole.q, whole.qd, found)) if found.size else forces
        slip[:, 0] = 0.0
        names = self.model.body_names
        bodies = zip(found.predecessor, found.successor, strict=True)
        return Contacts(
            found.names, tuple((names[a], names[b]) for a, b in bodies), found.point, found.normal,
            found.gap, np.einsum("nk,nki->ni", forces, axes), np.einsum("nk,nki->ni", slip, axes),
        )  # fmt: skip

    def readings(self, whole, sensors, t):
        """Readings of sensors, with what the last step did."""
        found, forces = self._touching(whole)
        given: dict[str, Any] = {"t": np.asarray(t)}
        if self._before is not None:
            given["tau"] = self._before[2]
        if self.drives.count:
            u, act = self._held or (np.zeros(self.drives.count), whole.activation)
            given |= {"controls": u, "activation": act if self.drives.states.size else None}
        return sensors(whole.q, whole.qd, contacts=found, contact_forces=forces, **given)


def _reader(tau, model):
    """A function ``(t, q, qd)`` to joint forces, (nv,)."""
    if callable(tau):
        function = call_with_model(tau, model)
        return lambda t, q, qd: _checked(function(t, q, qd), model)
    value = np.zeros(model.nv) if tau is None else _checked(tau, model)
    return lambda t, q, qd: value


def _checked(tau, model):
    tau = np.asarray(tau, dtype=float)
    if tau.shape != (model.nv,) or not np.all(np.isfinite(tau)):
        raise ShapeError(
            f"tau must be {model.nv} finite numbers for world {model.name!r}, got shape {tau.shape}"
        )
    return tau
