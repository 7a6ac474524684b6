"""Results of a step of a world: the table of contacts, and the report."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kinetree import notebook
from kinetree.contact.contacts import contact_axes, velocity
from kinetree.contact.finding.pairs import names_of
from kinetree.contact.history import Residuals
from kinetree.errors import UnknownNameError, need
from kinetree.spelling import did_you_mean

_NEAR = 1e-6  # [m] up to which a contact without force is listed


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
        return notebook.text_table(self._rows()) if len(self) else "no contacts"

    def _repr_html_(self):
        count = "no contacts" if not len(self) else _count(len(self), "contact")
        head, *rows = self._rows()
        return notebook.block(count, notebook.table(head, rows) if rows else "")

    def _rows(self):
        """Cells of a table, the head first."""
        head = ("contact", "gap [m]", "normal force [N]", "friction [N]", "slip [m/s]", "point [m]")
        normal = self.normal_force
        along = np.linalg.norm(self.force - normal[:, None] * self.normal, axis=1)
        rows = [
            (self.names[k], _shown(self.gap[k]), _shown(normal[k], 4), _shown(along[k], 4),
             _shown(np.linalg.norm(self.slip[k])), " ".join(_shown(x, 4) for x in self.point[k]))
            for k in range(len(self))
        ]  # fmt: skip
        if self.moment.any():
            turning = [f"{x:.3g}" for x in np.linalg.norm(self.moment, axis=1)]
            head = (*head, "moment [N·m]")
            rows = [(*row, x) for row, x in zip(rows, turning, strict=True)]
        return [head, *rows]


def _shown(x, digits=3):
    """A number without rounding errors of zero."""
    return f"{x:.{digits}g}" if abs(x) > 1e-12 else "0"


def _is(body, name):
    return body == name or body.startswith((f"{name}.", f"{name}["))


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


class Report(NamedTuple):
    """Accuracy of the last call of ``World.step``, and what touched.

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

    def __repr__(self):
        r, asleep = self.residuals, f", {self.asleep} asleep" if self.asleep else ""
        return (
            f"{_count(self.steps, 'step')}, {_count(self.contacts, 'contact')} in "
            f"{_count(self.islands, 'island')}{asleep}; velocity "
            f"error {r.velocity:.1e}, cone {r.cone:.1e} N·s, penetration {r.penetration:.1e} m"
        )


def _count(n, what):
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
