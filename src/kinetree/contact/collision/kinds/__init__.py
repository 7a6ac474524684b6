"""Kinds of solids: for each of ``geometry.SOLIDS`` what collision knows of it, in one table."""

from collections.abc import Callable
from typing import Any

from kinetree.codegen.procedures import ProcedureTable
from kinetree.contact.collision.kinds import box, capsule, cone, cylinder, ellipsoid, sphere
from kinetree.contact.collision.kinds.kind import SolidKind
from kinetree.contact.collision.tables import KINDS, number_of
from kinetree.model import geometry

OF_SOLIDS: dict[type[geometry.Solid], SolidKind] = {
    geometry.Sphere: sphere.KIND,
    geometry.Capsule: capsule.KIND,
    geometry.Box: box.KIND,
    geometry.Cylinder: cylinder.KIND,
    geometry.Ellipsoid: ellipsoid.KIND,
    geometry.Cone: cone.KIND,
}


def choice_of(name: str, otherwise: Any, **more: Any) -> ProcedureTable:
    """Dispatch table by kind of shape of the procedures of one name, with a default."""
    found = {number_of(solid): getattr(kind, name) for solid, kind in OF_SOLIDS.items()}
    return ProcedureTable({k: p for k, p in found.items() if p is not None} | more, otherwise)


def trait(of: Callable[[SolidKind], int]) -> tuple[int, ...]:
    """Tuple with an integer property of every kind of shape; 0 for kinds that are not solids."""
    by_number = {number_of(solid): int(of(kind)) for solid, kind in OF_SOLIDS.items()}
    return tuple(by_number.get(k, 0) for k in range(len(KINDS)))
