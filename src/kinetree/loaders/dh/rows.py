"""From the entries of a table, as numbers and text, to a chain of links."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kinetree.errors import KinetreeError, LoadError
from kinetree.model import Limits, Model
from kinetree.model.dh import DHRow, from_dh
from kinetree.spatial import Inertia
from kinetree.spatial.vector3 import symmetric

CONVENTIONS = {
    "modified": "modified", "proximal": "modified", "craig": "modified",
    "standard": "standard", "distal": "standard", "classic": "standard",
}  # fmt: skip
MOST_ROWS = 1000
TEXTS = ("joint", "link", "type")
NUMBERS = (
    "a", "alpha", "d", "theta", "offset", "pitch", "mass", "lower", "upper", "velocity", "effort",
)  # fmt: skip
LISTS = ("com", "inertia")  # three numbers; three or six
_TYPES = {
    "revolute": "revolute", "r": "revolute", "prismatic": "prismatic", "p": "prismatic",
    "cylindrical": "cylindrical", "c": "cylindrical", "helical": "helical", "h": "helical",
}  # fmt: skip


@dataclass
class Entry:
    """One row: values by column, and how to complain about it."""

    values: dict
    error: Callable[[str], LoadError]  # puts file and line before a message

    def to_row(self, i) -> DHRow:
        """The row of the table."""
        v, where = self.values, self.error
        kind = _TYPES.get(str(v.get("type") or "revolute").strip().lower())
        if kind is None:
            kinds = ", ".join(sorted(set(_TYPES.values())))
            raise where(f"type must be one of {kinds}, got {v['type']!r}")
        theta, d, offset = v.get("theta", 0), v.get("d", 0), v.get("offset", 0)
        if kind == "prismatic":
            d = d + offset
        else:
            theta = theta + offset
        limits = None
        if any(name in v for name in ("lower", "upper", "velocity", "effort")):
            names = ("lower", "upper", "velocity", "effort")
            if kind == "cylindrical":
                raise where("a cylindrical joint has two variables; limits are for one")
            limits = Limits(**{name: v[name] for name in names if name in v})
        if kind != "helical" and v.get("pitch"):
            raise where(f"pitch is for helical joints; this one is {kind}")
        try:
            return DHRow(
                v.get("a", 0), v.get("alpha", 0), d, theta, kind, v.get("pitch", 0.0),
                self._inertia(), v.get("link") or f"link{i}", limits,
            )  # fmt: skip
        except LoadError:
            raise
        except KinetreeError as error:
            raise where(str(error)) from None

    def _inertia(self):
        v = self.values
        if "mass" not in v:
            for name in LISTS:
                if name in v:
                    raise self.error(f"{name} needs a mass")
            return None
        moments = tuple(v.get("inertia", (0, 0, 0)))
        if len(moments) not in (3, 6):
            raise self.error(
                f"inertia must be 3 numbers, xx yy zz, or 6, xx yy zz xy xz yz, got {len(moments)}"
            )
        xx, yy, zz, xy, xz, yz = (*moments, 0, 0, 0)[:6]
        center = v.get("com", (0, 0, 0))
        return Inertia.from_mass_center(v["mass"], center, symmetric(xx, xy, yy, xz, yz, zz))


def to_model(entries: list[Entry], path, *, convention, strict, **arm) -> Model:
    """The chain of links that the rows describe.

    Args:
        entries: the rows.
        path: for messages.
        convention: ``"modified"`` or ``"standard"``.
        strict: refuse physically impossible inertias instead of warning about them.
        **arm: ``name``, ``gravity``, ``base`` and ``tool``, as ``from_dh`` takes them.
    """
    if not entries:
        raise LoadError(f"{path}: the table has no rows")
    rows = [entry.to_row(i) for i, entry in enumerate(entries, start=1)]
    joints = [
        e.values.get("joint") or f"{r.name}_joint" for e, r in zip(entries, rows, strict=True)
    ]
    seen = {}
    for row, joint, entry in zip(rows, joints, entries, strict=True):
        for what, given in (("link", row.name), ("joint", joint)):
            if seen.setdefault((what, given), entry) is not entry:
                raise entry.error(f"{what} name {given!r} is used twice")
    try:
        bare = from_dh([replace(r, inertia=None) for r in rows], convention=convention, **arm)
        bodies = [
            replace(body, joint_name=joint, inertia=_on_axis(row, convention))
            for body, joint, row in zip(bare.bodies, joints, rows, strict=True)
        ]
        kept = {"frames": bare.frames, "gravity": bare.gravity, "name": bare.name}
        return Model(tuple(bodies), **kept, base_name=bare.base_name, strict=strict)
    except KinetreeError as error:
        raise LoadError(f"{path}: {error}") from None


def _on_axis(row, convention):
    """The inertia in the frame of the body, which is on the axis of its joint."""
    if row.inertia is None:
        return Inertia.zero()
    if convention == "modified":
        return row.inertia
    return row.inertia.inverse_transformed(row.along_x)
