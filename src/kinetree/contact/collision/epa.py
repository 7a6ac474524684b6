"""Depth of two convex cores that overlap: the expanding polytope of G. van den Bergen, "Proximity
queries and penetration depth computation on 3D game objects" (2001).

The differences ``b - a`` of points of both cores fill a convex set around the origin; the nearest
point of its border is the shortest way out. A polytope inside the set grows from the simplex of
``gjk``: its face nearest to the origin gets the farthest difference along its normal, until there
is nothing beyond it. Each such direction is an upper bound of the depth, the nearest face
a lower one.
"""

from kinetree.codegen.procedures import local, procedure, sqrt, vector
from kinetree.contact.collision.polytope import (
    CORNERS,
    EVEN,
    FACES,
    Polytope,
    add_faces,
    begin,
    find_corner,
    foot_on_face,
    is_corner,
    nearest_face,
    remove_seen,
)
from kinetree.contact.collision.refine import refine
from kinetree.contact.collision.simplex import Pair, Simplex, Slab, copy_slab
from kinetree.contact.collision.support import is_curved
from kinetree.contact.collision.tables import Shapes

DONE, FLAT, FULL = 1, 2, 3
"""Status: the bounds met; the set has no thickness; out of room, the depth is an upper bound."""
_CLOSE = 3e-3  # of the depth: how near to a curved surface a face is for Newton's method
_SHUT = 1e-8  # likewise where Newton's method finds nothing
_NEAR = 1e-4  # of the size: likewise where they hardly overlap


@procedure
def refine_face(
    shapes: Shapes, pair: Pair, polytope: Polytope, near: int, height: float, slab: Slab
) -> "(float, bool)":
    """Depth by Newton's method from a polytope face, and whether it is a minimum; may set ``slab``.

    It is set where the depth is the best so far. ``height`` is that of the new corner.
    """
    trial, simplex = local(Slab), local(Simplex)
    f = polytope.normal[near]
    for k in range(3):
        c = polytope.face[near, k]
        simplex.first[k] = polytope.first[c]
        simplex.second[k] = polytope.second[c]
        simplex.corner[k] = polytope.corner[c]
    simplex.count = 3
    foot_on_face(polytope, near, f, trial.first)
    trial.second[:] = trial.first + height * f
    trial.normal[:] = -f
    wide, solved = refine(shapes, pair, simplex, trial, -polytope.offset[near])
    if -wide < polytope.depth:
        polytope.depth = -wide
        polytope.is_refined = True
        copy_slab(trial, slab)
    return -wide, solved


@procedure
def take_face(polytope: Polytope, near: int, height: float, slab: Slab) -> None:
    """Set the polytope's depth to ``height``, and the slab to that along face ``near``'s normal."""
    f = polytope.normal[near]
    polytope.depth = height
    polytope.is_refined = False
    foot_on_face(polytope, near, f, slab.first)
    slab.normal[:] = -f
    slab.second[:] = slab.first + height * f


@procedure
def place_points(polytope: Polytope, slab: Slab) -> None:
    """Set the slab's points from the triangle of a flat face that has the origin's projection."""
    n, a, f = slab.normal, local("float", 3), local("float", 3)
    inside = -1e300
    for k in range(polytope.faces):
        past = polytope.offset[k] - polytope.depth
        if polytope.normal[k] @ n < -1 + 1e-12 and abs(past) <= 1e-12 * polytope.scale:
            f[:] = -n
            weight = foot_on_face(polytope, k, f, a)
            if weight > inside:
                inside = weight
                slab.first[:] = a
                slab.second[:] = a - polytope.depth * n


@procedure
def epa(shapes: Shapes, pair: Pair, simplex: Simplex, slab: Slab) -> "(int, float, float)":
    """Expanding-polytope penetration depth: status, upper and lower bound; sets the slab.

    The simplex comes from ``gjk``; the points of the slab become the nearest points. Faces that are
    close to a curved surface are left to Newton's method, each of them.
    """
    polytope, f = local(Polytope), local("float", 3)
    slab.normal[:] = vector(0.0, 0.0, 1.0)
    if not begin(shapes, pair, simplex, polytope, slab.normal):
        return FLAT, 0.0, 0.0
    curved = is_curved(shapes, pair.i) or is_curved(shapes, pair.j)
    polytope.depth = 1e300
    polytope.is_refined = False
    status = FULL
    lower = 0.0
    while True:
        near = nearest_face(polytope)
        lower = polytope.offset[near]
        best, scale = polytope.depth, polytope.scale
        if lower >= best - 1e-12 * abs(best) - 1e-15 * scale:
            status = DONE
            break
        f[:] = polytope.normal[near]
        find_corner(shapes, pair, polytope, f, polytope.count)
        w = polytope.difference[polytope.count]
        height = f @ w
        old = is_corner(polytope, w)
        beyond = height - lower
        if curved and (old or beyond <= _CLOSE * abs(height) + _NEAR * pair.size):
            depth, solved = refine_face(shapes, pair, polytope, near, height, slab)
            if solved or old or beyond <= _SHUT * (abs(height) + pair.size):
                polytope.offset[near] = depth
                continue
        if height < polytope.depth:
            take_face(polytope, near, height, slab)
        if beyond <= EVEN * scale:
            status = DONE
            break
        if old:
            polytope.offset[near] = height
            continue
        if polytope.count + 2 > CORNERS:
            break
        polytope.scale = max(scale, sqrt(w @ w))
        remove_seen(polytope, near)
        if polytope.faces + polytope.rims > FACES:
            break
        add_faces(polytope)
    if not polytope.is_refined:
        place_points(polytope, slab)
    return status, polytope.depth, lower
