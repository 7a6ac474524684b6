"""Contacts of all shapes: near pairs, their narrow phases, and the materials of each contact."""

import threading

import numpy as np

from kinetree.codegen.procedures import ProcedureTable, local, procedure, view
from kinetree.contact.collision import tables
from kinetree.contact.collision.boxes import box_box, capsule_box
from kinetree.contact.collision.convex import convex_pair
from kinetree.contact.collision.meshes import convex_mesh, mesh_mesh, plane_mesh
from kinetree.contact.collision.on_fields import field_pair
from kinetree.contact.collision.placing import place_shapes
from kinetree.contact.collision.planes import (
    plane_box,
    plane_capsule,
    plane_convex,
    plane_cylinder,
    plane_ellipsoid,
    plane_hull,
    plane_sphere,
)
from kinetree.contact.collision.shape_tables import shape_tables
from kinetree.contact.collision.spheres import (
    capsule_capsule,
    sphere_box,
    sphere_capsule,
    sphere_cylinder,
    sphere_sphere,
)
from kinetree.contact.collision.sweep import (
    PAIRS_FULL,
    Pairs,
    approach,
    enlarge_pairs,
    near_pairs,
    pair_tables,
    special_number,
)
from kinetree.contact.collision.tables import Found, Shapes, Special, Touch
from kinetree.contact.finding.pairs import FRICTION, RESTITUTION, ROLLING, TORSION

FOUND_FULL = -2
"""Code of a ``Found`` that is too small."""


def found_tables(capacity) -> Found:
    """Empty ``Found`` record with room for ``capacity`` contacts."""
    return Found(capacity=capacity, **_rows(Found, capacity))


def touch_table() -> Touch:
    """Empty ``Touch`` record with ``TOUCHES`` rows for the contacts of one pair."""
    return Touch(**_rows(Touch, tables.TOUCHES))


def _rows(record, count):
    """Zero arrays of ``count`` rows, by name, for the array fields of a record type."""
    arrays = {name: kind for name, kind in record.types.items() if hasattr(kind, "dims")}
    return {name: np.zeros((count, *kind.dims[1:]), kind.dtype) for name, kind in arrays.items()}


class Detection:
    """Finding the contacts of a scene, with room that grows as it is needed.

    Args:
        scene: the ``Scene``.

    Attributes:
        tables: ``ShapeTables``.
        pairs: ``Pairs``; ``pairs.motion`` is zero unless the caller sets it.
        found: ``Found`` of the last call.
        lock: for callers that share it.
    """

    def __init__(self, scene):
        self.tables = shape_tables(scene)
        self.poses = np.tile(np.eye(4)[:3].reshape(12), (scene.model.body_count + 1, 1))
        self.pairs = pair_tables(self.tables.shapes, len(self.poses))
        self.found, self.touch = found_tables(64), touch_table()
        self.lock = threading.Lock()

    def find(self, poses: np.ndarray, margin: float) -> Found:
        """Contacts with gaps up to ``margin`` [m] for body poses (n, 4, 4), without the base."""
        shapes, special = self.tables[:2]
        self.poses[1:] = poses[:, :3].reshape(-1, 12)
        place_shapes(shapes, self.poses)
        while True:
            n = detect(shapes, special, self.pairs, self.touch, margin, self.found)
            if n >= 0:
                return self.found
            if n == PAIRS_FULL:
                enlarge_pairs(self.pairs)
            else:
                self.found = found_tables(2 * self.found.capacity)


@procedure
def nowhere(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Narrow phase of two shapes that never touch, such as two planes; appends no contacts."""
    return n


CLOSED_FORMS = {
    (tables.PLANE, tables.SPHERE): plane_sphere,
    (tables.PLANE, tables.CAPSULE): plane_capsule,
    (tables.PLANE, tables.BOX): plane_box,
    (tables.PLANE, tables.CYLINDER): plane_cylinder,
    (tables.PLANE, tables.ELLIPSOID): plane_ellipsoid,
    (tables.PLANE, tables.HULL): plane_hull,
    (tables.SPHERE, tables.SPHERE): sphere_sphere,
    (tables.SPHERE, tables.CAPSULE): sphere_capsule,
    (tables.SPHERE, tables.BOX): sphere_box,
    (tables.SPHERE, tables.CYLINDER): sphere_cylinder,
    (tables.CAPSULE, tables.CAPSULE): capsule_capsule,
    (tables.CAPSULE, tables.BOX): capsule_box,
    (tables.BOX, tables.BOX): box_box,
}
"""Narrow phases that are quicker than those for all shapes, the lower kind first."""


def _general_procedure(a, b):
    """Narrow-phase procedure for two kinds of shapes, the lower kind first, by class alone."""
    if a == tables.PLANE:
        return {tables.PLANE: nowhere, tables.FIELD: nowhere, tables.TRIANGLES: plane_mesh}.get(
            b, plane_convex
        )
    if a > tables.HULL:
        return mesh_mesh if a == b == tables.TRIANGLES else nowhere
    return {tables.FIELD: field_pair, tables.TRIANGLES: convex_mesh}.get(b, convex_pair)


_ALL = range(len(tables.KINDS))
NARROW = ProcedureTable(
    {
        (a, b): CLOSED_FORMS.get((a, b), _general_procedure(a, b))
        for b in _ALL
        for a in _ALL[: b + 1]
    },
    nowhere,
)


@procedure
def detect(
    shapes: Shapes, special: Special, pairs: Pairs, touch: Touch, margin: float, found: Found
) -> int:
    """Find all contacts within ``margin``, or reachable during the step; their number, or an error.

    Shapes are in their places (``place_shapes``), and ``pairs.motion`` says how bodies move until
    the end of the step. A pair is looked at up to the margin, what its surfaces are held apart, and
    how far the two can approach each other on the way.

    Returns:
        How many there are; negative (``PAIRS_FULL``, ``FOUND_FULL``) where a table is too small.
    """
    near = near_pairs(shapes, special, pairs, margin)
    found.count = 0
    found.pairs = near
    if near < 0:
        return near
    for k in range(near):
        within = margin + approach(pairs, pairs.near[k, 0], pairs.near[k, 1])
        if append_pair(shapes, special, pairs, touch, k, within, found) < 0:
            return FOUND_FULL
    return found.count


@procedure
def append_pair(
    shapes: Shapes,
    special: Special,
    pairs: Pairs,
    touch: Touch,
    k: int,
    within: float,
    found: Found,
) -> int:
    """Append the contacts of near pair ``k`` with gaps up to ``within``; 0, or ``FOUND_FULL``."""
    i, j = pairs.near[k, 0], pairs.near[k, 1]
    number = special_number(special, i, j) if special.count > 0 else -1
    apart = shapes.margin[i] + shapes.margin[j]
    if number >= 0 and special.margin[number] == special.margin[number]:
        apart = special.margin[number]
    if shapes.kind[i] > shapes.kind[j]:
        i, j = j, i
    touch.way[:3] = 0.0
    count = narrow_phase(shapes, i, j, within + apart, touch, 0)
    pairs.way[k] = touch.way[:3]
    if count == 0:
        return 0
    n = found.count
    if n + count > found.capacity:
        return FOUND_FULL
    friction = local("float", 3)
    restitution, dim = material(shapes, special, number, i, j, friction)
    swap = shapes.body[i] > shapes.body[j]
    sign = -1.0 if swap else 1.0
    first, second = (j, i) if swap else (i, j)
    for x in range(count):
        found.first[n] = first
        found.second[n] = second
        found.bodies[n, 0] = shapes.body[first]
        found.bodies[n, 1] = shapes.body[second]
        found.feature[n] = touch.feature[x]
        found.point[n] = touch.point[x]
        found.normal[n] = sign * touch.normal[x]
        found.gap[n] = touch.gap[x] - apart
        found.apart[n] = apart
        found.friction[n] = friction
        found.restitution[n] = restitution
        found.dim[n] = dim
        surface_drift(shapes, first, second, found.drift[n])
        n += 1
    found.count = n
    return 0


@procedure
def surface_drift(shapes: Shapes, i: int, j: int, drift: "float[3]") -> None:
    """Write the surface velocity (conveyor motion) of shape j relative to shape i, in the world."""
    p, q, a, b = shapes.pose[i], shapes.pose[j], shapes.drift[i], shapes.drift[j]
    drift[:] = view(q, 0, 3, 4)[:, :3] @ b - view(p, 0, 3, 4)[:, :3] @ a


@procedure
def combine_coefficients(a: float, b: float, way: int, usual: float) -> float:
    """Coefficient of two surfaces: the first's (way 1), second's (-1) or larger; NaN is unset.

    One that is not given (NaN) leaves it to the other, and both to what is usual.
    """
    if a != a:
        return usual if b != b else b
    if b != b or way > 0:
        return a
    return b if way < 0 else max(a, b)


@procedure
def material(
    shapes: Shapes, special: Special, number: int, i: int, j: int, friction: "float[3]"
) -> "(float, int)":
    """Restitution and dimension of a pair's contacts; writes its friction, by MuJoCo's rules.

    ``number`` is that of the pair in ``special``, or -1.
    """
    a, b = shapes.priority[i], shapes.priority[j]
    way = 1 if a > b else -1 if a < b else 0
    dim = max(shapes.condim[i], shapes.condim[j])
    if way > 0 and shapes.condim[i] > 0:
        dim = shapes.condim[i]
    elif way < 0 and shapes.condim[j] > 0:
        dim = shapes.condim[j]
    elif dim == 0:
        dim = 3
    mu, nu = shapes.friction[i], shapes.friction[j]
    friction[0] = combine_coefficients(mu[0], nu[0], way, FRICTION)
    friction[1] = combine_coefficients(mu[1], nu[1], way, TORSION)
    friction[2] = combine_coefficients(mu[2], nu[2], way, ROLLING)
    e = combine_coefficients(shapes.restitution[i], shapes.restitution[j], way, RESTITUTION)
    if number >= 0 and special.condim[number] > 0:
        dim = special.condim[number]
        e = special.restitution[number]
        friction[0] = special.friction[number, 0]
        friction[1] = special.friction[number, 1]
        friction[2] = special.friction[number, 2]
    if dim < 6 or friction[2] <= 0.0:
        friction[2] = 0.0
        dim = min(dim, 4)
    if dim < 4 or friction[1] <= 0.0:
        friction[1] = 0.0
        dim = min(dim, 3) if friction[2] <= 0.0 else dim
    if dim < 3 or friction[0] <= 0.0:  # nothing resists where nothing slides with friction
        friction[0] = 0.0
        friction[1] = 0.0
        friction[2] = 0.0
        dim = 1
    return e, dim


@procedure
def narrow_phase(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Append contacts of shapes i and j (lower kind first) within ``margin``; the new count."""
    return NARROW[shapes.kind[i], shapes.kind[j]](shapes, i, j, margin, touch, n)
