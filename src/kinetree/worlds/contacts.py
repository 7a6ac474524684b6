"""The table of contacts of a world, with forces along the axes of the world."""

from functools import cached_property
from typing import Any

import numpy as np

from kinetree import notebook
from kinetree.contact.contacts import velocity
from kinetree.contact.engine.listing import NEAR, WIDTH, list_stored
from kinetree.contact.finding.pairs import names_of
from kinetree.errors import UnknownNameError, need
from kinetree.spelling import did_you_mean


class Labels:
    """Names of bodies and of pairs of shapes of a world, for its contacts.

    Args:
        model: the world.
        numbers: of the shapes that can touch, in ``model.geometry``.
    """

    def __init__(self, model, numbers: np.ndarray):
        self.bodies, self._own = model.body_names, names_of(model).own
        self._numbers, self._pairs = numbers, {}

    def pair(self, i: int, j: int) -> str:
        """Name ``first/second`` of a pair of shapes, by their numbers in the tables."""
        found = self._pairs.get((i, j))
        if found is None:
            both = (self._own[int(self._numbers[k])] for k in (i, j))
            found = self._pairs[i, j] = "/".join(both)
        return found

    @cached_property
    def members(self) -> dict[str, tuple[set[int], set[int]]]:
        """Numbers of the bodies and shapes that each name of a part, body or shape covers.

        ``dog.foot[1]`` is also one of ``dog.foot`` and of ``dog``.
        """
        found: dict[str, tuple[set[int], set[int]]] = {}
        shape = {int(k): n for n, k in enumerate(self._numbers)}
        for kind, names in enumerate((self.bodies, self._own)):
            for k, name in enumerate(names):
                number = shape.get(k) if kind else k
                ends = [i for i, letter in enumerate(name) if letter in ".["]
                for label in (name, *(name[:i] for i in ends)):
                    sets = found.setdefault(label, (set(), set()))
                    if number is not None:
                        sets[kind].add(number)
        return found


class Contacts:
    """Contacts of a world at one instant, one row each.

    Args:
        numbers: point, normal, gap, force, moment and slip of each, (n, 16).
        which: numbers of the two shapes, of the feature, and of the two bodies, (n, 5).
        labels: names of these.
    """

    def __init__(self, numbers: np.ndarray, which: np.ndarray, labels: Labels):
        self._numbers, self._which, self._labels = numbers, which, labels

    # Names are put together when they are read: most callers read forces alone.

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of contacts: both shapes and a feature number, such as ``"ground/box:0"``."""
        pair = self._labels.pair
        return tuple(f"{pair(i, j)}:{feature}" for i, j, feature, *_ in self._which.tolist())

    @cached_property
    def bodies(self) -> tuple[tuple[str, str], ...]:
        """Names of both bodies of every contact, the one that the normal leaves first."""
        names = self._labels.bodies
        return tuple((names[a], names[b]) for *_, a, b in self._which.tolist())

    @property
    def known(self) -> tuple[str, ...]:
        """Names of all bodies, shapes and parts of the world that queries accept."""
        return tuple(self._labels.members)

    @property
    def point(self) -> np.ndarray:
        """Contact points in world coordinates [m], (n, 3)."""
        return self._numbers[:, 0:3]

    @property
    def normal(self) -> np.ndarray:
        """Unit contact normals from the first body to the second, (n, 3)."""
        return self._numbers[:, 3:6]

    @property
    def gap(self) -> np.ndarray:
        """Distance along the normal [m], negative where they overlap, (n,)."""
        return self._numbers[:, 6]

    @property
    def force(self) -> np.ndarray:
        """Contact forces on the second body, in world coordinates [N], (n, 3)."""
        return self._numbers[:, 7:10]

    @property
    def moment(self) -> np.ndarray:
        """Contact moments on the second body about the points, in the world [N·m], (n, 3).

        Torsional friction acts about the normal, rolling friction about the tangents.
        """
        return self._numbers[:, 10:13]

    @property
    def slip(self) -> np.ndarray:
        """Tangential velocity of the second body relative to the first [m/s], (n, 3)."""
        return self._numbers[:, 13:16]

    def __len__(self):
        return len(self._numbers)

    @property
    def normal_force(self) -> np.ndarray:
        """Contact force along the normal, positive in compression [N], (n,)."""
        return np.einsum("ni,ni->n", self.force, self.normal)

    def between(self, first: str, second: str) -> "Contacts":
        """``Contacts`` between two bodies or parts, in either order."""
        one, two = self._sides(first), self._sides(second)
        return self._some((one & two[:, ::-1]).any(axis=1))

    def of(self, name: str) -> "Contacts":
        """``Contacts`` of one body or part, such as a robot or the ground."""
        return self._some(self._sides(name).any(axis=1))

    def force_on(self, name: str) -> np.ndarray:
        """Resultant contact force on a body or part from all others [N], (3,)."""
        side = self._sides(name).astype(float)
        return (side[:, 1] - side[:, 0]) @ self.force

    def _sides(self, name):
        """Mask (n, 2) of contact sides whose body or shape belongs to the named part."""
        members = self._labels.members
        if name not in members:
            hint = did_you_mean(str(name), list(members))
            raise UnknownNameError(f"the world of these contacts has no part {name!r}; {hint}")
        bodies, shapes = members[name]
        found = [
            (a in bodies or i in shapes, b in bodies or j in shapes)
            for i, j, _, a, b in self._which.tolist()
        ]
        return np.array(found, dtype=bool).reshape(-1, 2)

    def _some(self, mask):
        """``Contacts`` selected by a mask (n,)."""
        return Contacts(self._numbers[mask], self._which[mask], self._labels)

    def to_pandas(self) -> Any:
        """``pandas.DataFrame`` of the contacts, one row for each."""
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
        """HTML table of the contacts, for notebooks."""
        count = "no contacts" if not len(self) else _count(len(self), "contact")
        head, *rows = self._rows()
        return notebook.block(count, notebook.table(head, rows) if rows else "")

    def _rows(self):
        """Rows of text cells of the contact table, the header first."""
        head = ("contact", "gap [m]", "normal force [N]", "friction [N]", "slip [m/s]", "point [m]")
        normal = self.normal_force
        along = np.linalg.norm(self.force - normal[:, None] * self.normal, axis=1)
        rows = [
            (
                self.names[k],
                _round(self.gap[k]),
                _round(normal[k], 4),
                _round(along[k], 4),
                _round(np.linalg.norm(self.slip[k])),
                " ".join(_round(x, 4) for x in self.point[k]),
            )
            for k in range(len(self))
        ]
        if self.moment.any():
            turning = [f"{x:.3g}" for x in np.linalg.norm(self.moment, axis=1)]
            head = (*head, "moment [N·m]")
            rows = [(*row, x) for row, x in zip(rows, turning, strict=True)]
        return [head, *rows]


def _round(x, digits=3):
    """Number as text with significant digits; "0" for rounding errors of zero."""
    return f"{x:.{digits}g}" if abs(x) > 1e-12 else "0"


def _count(n, what):
    """Count with its noun, such as "1 contact" or "2 contacts"."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


# --- tables of steps and states ------------------------------------------------------------------


def of_stored(place: np.ndarray, ids: np.ndarray, labels: Labels) -> Contacts:
    """``Contacts`` from the engine's lists of a world's last step."""
    n = len(place)
    numbers, which = np.empty((n, WIDTH)), np.empty((n, 5), dtype=np.int64)
    if n:
        n = list_stored(place, ids, n, NEAR, numbers, which)
    return Contacts(numbers[:n], which[:n], labels)


def contacts_at(engine, found, q, qd, labels: Labels) -> Contacts:
    """``Contacts`` just detected at a state, without forces."""
    f = engine.found
    at = np.flatnonzero(f.gap[: f.count] <= 0.0)
    place, ids = np.zeros((found.size, 18)), np.zeros((found.size, 5), dtype=np.int64)
    if found.size:
        columns = f.first, f.second, f.feature, f.bodies[:, 0], f.bodies[:, 1]
        ids[:] = np.stack([x[at] for x in columns], axis=1)
        place[:, :3], place[:, 3:6], place[:, 6] = found.point, found.normal, found.gap
        place[:, 15:] = velocity(engine.model, q, qd, found) if engine.model.nv else 0.0
    return of_stored(place, ids, labels)


def contact_rows(found):
    """Contacts that touch or exert forces, with forces, moments and slip, (n, 3) each."""
    near = (found.contacts.gap <= NEAR) | np.any(found.force, axis=1)
    rest = (x[near] for x in (found.force, found.moment, found.velocity))
    return found.contacts.chosen(near), *rest


def without_forces(model, q, qd, found):
    """Contacts at a state, with zero forces and their relative velocities, (n, 3)."""
    none = np.zeros((found.size, 3))
    moving = found.size and model.nv
    return found, none, none, np.array(velocity(model, q, qd, found)) if moving else none
