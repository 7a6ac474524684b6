"""Narrow phases by the kinds of two shapes."""

from kinetree.codegen.procedures import procedure
from kinetree.contact.collision.boxes import box_box, capsule_box
from kinetree.contact.collision.convex import convex_pair
from kinetree.contact.collision.meshes import convex_mesh, mesh_mesh, plane_mesh
from kinetree.contact.collision.on_fields import field_pair
from kinetree.contact.collision.planes import (
    plane_box,
    plane_capsule,
    plane_cylinder,
    plane_ellipsoid,
    plane_hull,
    plane_sphere,
)
from kinetree.contact.collision.spheres import (
    capsule_capsule,
    sphere_box,
    sphere_capsule,
    sphere_cylinder,
    sphere_sphere,
)
from kinetree.contact.collision.tables import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    FIELD,
    HULL,
    PLANE,
    SPHERE,
    TRIANGLES,
    Shapes,
    Touch,
)


@procedure
def narrow_phase(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Points of shapes i and j (the lower kind first) within ``margin``, after n others."""
    a, b = shapes.kind[i], shapes.kind[j]
    if a == PLANE:
        if b == SPHERE:
            return plane_sphere(shapes, i, j, margin, touch, n)
        if b == CAPSULE:
            return plane_capsule(shapes, i, j, margin, touch, n)
        if b == BOX:
            return plane_box(shapes, i, j, margin, touch, n)
        if b == CYLINDER:
            return plane_cylinder(shapes, i, j, margin, touch, n)
        if b == ELLIPSOID:
            return plane_ellipsoid(shapes, i, j, margin, touch, n)
        if b == HULL:
            return plane_hull(shapes, i, j, margin, touch, n)
        if b == TRIANGLES:
            return plane_mesh(shapes, i, j, margin, touch, n)
        return n
    if a == SPHERE:
        if b == SPHERE:
            return sphere_sphere(shapes, i, j, margin, touch, n)
        if b == CAPSULE:
            return sphere_capsule(shapes, i, j, margin, touch, n)
        if b == BOX:
            return sphere_box(shapes, i, j, margin, touch, n)
        if b == CYLINDER:
            return sphere_cylinder(shapes, i, j, margin, touch, n)
    if a == CAPSULE and b == CAPSULE:
        return capsule_capsule(shapes, i, j, margin, touch, n)
    if a == CAPSULE and b == BOX:
        return capsule_box(shapes, i, j, margin, touch, n)
    if a == BOX and b == BOX:
        return box_box(shapes, i, j, margin, touch, n)
    if b <= HULL:
        return convex_pair(shapes, i, j, margin, touch, n)
    if b == FIELD and a <= HULL:
        return field_pair(shapes, i, j, margin, touch, n)
    if b == TRIANGLES and a <= HULL:
        return convex_mesh(shapes, i, j, margin, touch, n)
    if a == TRIANGLES and b == TRIANGLES:
        return mesh_mesh(shapes, i, j, margin, touch, n)
    return n
