"""Records of collision: shapes and their places, special pairs, and the contacts found.

Transforms are rows of a (3, 4) matrix ``[R | p]``, from shape or body to world; body 0 is the
world. Shapes are numbered as in ``model.geometry``; those that cannot touch are left out.
"""

from kinetree.codegen.procedures import record
from kinetree.model import geometry

KINDS: tuple[type[geometry.Shape], ...] = (
    geometry.Plane,
    *geometry.SOLIDS,
    geometry.Mesh,
    geometry.HeightField,
    geometry.Mesh,
)
"""Kinds of shapes by number. Narrow phases see a pair with the lower kind first."""
HULL, FIELD, TRIANGLES = range(len(KINDS) - 3, len(KINDS))
"""Meshes as their convex hulls, height fields, and meshes that are not convex."""


def number_of(kind: type[geometry.Shape]) -> int:
    """Number of a kind of shape in ``KINDS``, by which tables dispatch."""
    return KINDS.index(kind)


PLANE, SPHERE, CAPSULE, BOX, CYLINDER, ELLIPSOID = (
    number_of(kind)
    for kind in (
        geometry.Plane,
        geometry.Sphere,
        geometry.Capsule,
        geometry.Box,
        geometry.Cylinder,
        geometry.Ellipsoid,
    )
)
"""Kinds that narrow phases in closed form name."""

BALL = 16
"""Vertices of a hull in a ball around some of them."""
ENDLESS = 1e300  # [m] how far planes and height fields go
TOUCHES = 64
"""Rows of ``Touch``: room for the points of one pair before they are reduced."""

LEFT_OUT, MAY_TOUCH = 0, 1
"""Whether a pair of ``Special`` is looked at."""

ALL, WITH_BASE, LISTED = range(3)
"""Pairs that a ``Special`` leaves to the rules: all, those with a fixed shape, or none."""


@record
class Shapes:
    """The shapes that may touch; sizes and coefficients may be changed between steps.

    Attributes:
        kind: number of the kind in ``KINDS``.
        body: number of the body that carries the shape.
        place: shape to body.
        size: ``half_sizes`` of solids; FIELD: half edges along x and y of the grid.
        data: HULL, and solids that stand on height fields as polyhedra: first vertex, number of
            them, first face, number of them; FIELD: first
            coefficient in ``height``, their numbers along x and y (each two more than heights);
            TRIANGLES: first node, number of them, first triangle, number of them.
        radius: of the ball around the centre of ``box``; infinite for PLANE and FIELD.
        box: around the shape in its coordinates: centre and half edges.
        thin: smallest half extent [m], for continuous detection; infinite for PLANE and FIELD,
            which are solid below.
        condim: 1, 3, 4 or 6; 0: not given.
        friction: sliding, torsion [m], rolling [m]; NaN: not given.
        restitution: NaN: not given.
        drift: velocity of the surface along the shape's axes [m/s], as of a conveyor.
        weld: first of the bodies that the body is welded to; 0 where it is fixed to the world.
        weld_parent: weld that carries that one, 0 for the world.
        vertex: corners of hulls and of triangle meshes, in shape coordinates.
        neighbour_first: of the vertices of hulls: their neighbours along edges are
            ``neighbour[neighbour_first[v]:neighbour_first[v + 1]]``, numbers of vertices.
        ahead: of directions in the cells of ``cell_of``: the vertex of a hull, counted from its
            first, that is farthest along the middle one.
        cluster: vertices of hulls, counted likewise, so that ``BALL`` in a row are near each
            other;  ball: around these: centre and radius.
        firsts: of hulls: first row in ``ahead`` and in ``ball``.
        face_first: of the faces of hulls: corners in order, counter-clockwise from outside, are
            ``face_vertex[face_first[f]:face_first[f + 1]]``, numbers of vertices.
        face_normal: outward, unit.
        facets: HULL: first row in ``facet``, number of them, first row in ``edge``, number of them.
        facet: outward unit normal and a point of the facets of hulls, flat neighbours apart.
        edge: of the edges between them a point, the unit direction, and the normals of both facets,
            whose vector product is along it.
        height: coefficients of the bicubic B-splines of fields, x major.
        node: boxes of the trees over triangles, in shape coordinates: low and high corner.
        child: numbers of two nodes; or, at a leaf, -1 - first triangle and how many there are.
        triangle: numbers of vertices, counter-clockwise from outside.
        triangle_next: across each edge (0-1, 1-2, 2-0) the neighbouring triangle, -1: none.
        triangle_normal: outward, unit.
        pose: shape to world, written by ``place_shapes``.
        low: of the box in the world, written by ``place_shapes``.
        high: likewise.
    """

    count: int
    kind: "int[:]"
    body: "int[:]"
    place: "float[:, 12]"
    size: "float[:, 3]"
    data: "int[:, 4]"
    radius: "float[:]"
    box: "float[:, 6]"
    thin: "float[:]"
    margin: "float[:]"
    contype: "int[:]"
    conaffinity: "int[:]"
    priority: "int[:]"
    condim: "int[:]"
    friction: "float[:, 3]"
    restitution: "float[:]"
    drift: "float[:, 3]"
    weld: "int[:]"
    weld_parent: "int[:]"
    vertex: "float[:, 3]"
    neighbour_first: "int[:]"
    neighbour: "int[:]"
    ahead: "int[:]"
    cluster: "int[:]"
    ball: "float[:, 4]"
    firsts: "int[:, 2]"
    face_first: "int[:]"
    face_vertex: "int[:]"
    face_normal: "float[:, 3]"
    facets: "int[:, 4]"
    facet: "float[:, 6]"
    edge: "float[:, 12]"
    height: "float[:]"
    node: "float[:, 6]"
    child: "int[:, 2]"
    triangle: "int[:, 3]"
    triangle_next: "int[:, 3]"
    triangle_normal: "float[:, 3]"
    pose: "float[:, 12]"
    low: "float[:, 3]"
    high: "float[:, 3]"


@record
class Special:
    """Pairs with their own coefficients or left out.

    Attributes:
        rule: which other pairs may touch: ``ALL`` that the rules of MuJoCo let, of these those
            ``WITH_BASE``, or none but the ``LISTED`` ones.
        reach: largest margin of these pairs [m].
        key: ``first * 2**32 + second`` with ``first < second``, numbers of shapes; sorted.
        allowed: ``MAY_TOUCH`` or ``LEFT_OUT``.
        friction: sliding, torsion, rolling; NaN: that of the shapes.
        restitution: NaN: that of the shapes.
        condim: 0: that of the shapes.
        margin: NaN: that of the shapes.
    """

    count: int
    rule: int
    reach: float
    key: "int[:]"
    allowed: "int[:]"
    friction: "float[:, 3]"
    restitution: "float[:]"
    condim: "int[:]"
    margin: "float[:]"


@record
class Touch:
    """Points of one pair, of ``TOUCHES`` rows."""

    point: "float[:, 3]"
    """Half-way across the gap, in the world."""
    normal: "float[:, 3]"
    """Unit, from the first shape to the second."""
    gap: "float[:]"
    """[m]; negative where they overlap."""
    feature: "int[:]"
    """Key of the point within the pair, stable from step to step."""
    count: int
    """How many there are so far; this and what follows serve height fields."""
    first: int
    """Number of the convex shape."""
    second: int
    """Number of the field."""
    margin: float
    """Gaps up to which points count [m]."""
    size: float
    """Of the pair, for tolerances."""
    way: "float[:]"
    """Of two convex shapes without points: a unit vector along which they are apart, if the first
    three are one."""


@record
class Found:
    """Contacts at one configuration."""

    count: int
    """How many there are."""
    capacity: int
    """Rows of the arrays."""
    pairs: int
    """Near pairs looked at."""
    first: "int[:]"
    """Shapes of the lower body."""
    second: "int[:]"
    """Shapes of the higher body."""
    bodies: "int[:, 2]"
    """Of both."""
    feature: "int[:]"
    """Key of the point within the pair, stable from step to step."""
    point: "float[:, 3]"
    """Half-way across the gap, in the world."""
    normal: "float[:, 3]"
    """Unit, from first to second."""
    gap: "float[:]"
    """[m], less what the surfaces are held apart."""
    apart: "float[:]"
    """How far that is [m]."""
    friction: "float[:, 3]"
    """Sliding, torsion [m], rolling [m]."""
    restitution: "float[:]"
    """Coefficient."""
    dim: "int[:]"
    """1 (no friction), 3, 4 (with torsion) or 6 (with rolling)."""
    drift: "float[:, 3]"
    """Velocity of the surface of the second against that of the first, in the world."""
