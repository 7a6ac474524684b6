"""Shapes, colours and materials of USD prims."""

import hashlib
from pathlib import Path

import numpy as np

from kinetree.files import write_text
from kinetree.loaders.usd.stage import OWN, frame_of, name_of, number_of, own, pxr, tag, value_of
from kinetree.model.decomposition import cache_of_meshes, obj_text
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Mesh,
    Plane,
    Sphere,
    Surface,
)
from kinetree.spatial import Plucker

_TURNS = {
    "X": Plucker(np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]), np.zeros(3)),
    "Y": Plucker(np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]), np.zeros(3)),
    "Z": Plucker.identity(),
}
"""From the frame of a USD prim to one whose z is the axis of its shape."""
_ORDER = {"X": (1, 2, 0), "Y": (2, 0, 1), "Z": (0, 1, 2)}
_ROUND = 1e-6  # relative difference of scales that are still the same


class ShapeReader:
    """Reads the prims that are shapes, in metres."""

    def __init__(self, meters: float, report):
        self.meters, self.report = meters, report
        self.geom, self.physics, self.shade = pxr("UsdGeom"), pxr("UsdPhysics"), pxr("UsdShade")

    def read(self, prim, matrix):
        """Shape of a USD prim, its placement and properties; None if it is left out.

        Args:
            prim: a ``UsdGeom.Gprim``.
            matrix: from its coordinates to those of the body [m].
        """
        try:
            X, scale = frame_of(matrix)
            shape, turn = self.solid(prim, scale * self.meters)
        except (ValueError, TypeError) as error:
            collides = prim.HasAPI(self.physics.CollisionAPI)
            effect = "contact" if collides else "picture"
            self.report.ignore(None, str(prim.GetPath()), str(error), effect=effect)
            return None
        X = turn @ X
        return shape, X, self.properties(prim)

    def properties(self, prim) -> dict:
        """Name, visibility, colour and surface of a shape's prim, as fields."""
        gprim = self.geom.Imageable(prim)
        enabled = prim.GetAttribute("physics:collisionEnabled")
        collides = prim.HasAPI(self.physics.CollisionAPI) and (not enabled or bool(enabled.Get()))
        purpose = gprim.ComputePurpose()
        hidden = gprim.ComputeVisibility() == self.geom.Tokens.invisible
        return {
            "name": name_of(prim),
            "collision": collides,
            "visual": purpose != self.geom.Tokens.guide and not hidden,
            "color": self.color(prim),
            "surface": self.surface(prim) if collides else None,
            "link": tag(prim, "link", ""),
        }

    def color(self, prim):
        """RGBA colour of a shape's prim, or None."""
        exact = own(prim, "color")
        if exact is not None:
            return exact
        gprim = self.geom.Gprim(prim)
        color, opacity = gprim.GetDisplayColorAttr(), gprim.GetDisplayOpacityAttr()
        if not color.HasAuthoredValue() or not len(color.Get()):
            return None
        rgb = [min(max(float(x), 0.0), 1.0) for x in color.Get()[0]]
        seen = opacity.Get() if opacity.HasAuthoredValue() else None
        return (*rgb, float(seen[0]) if seen is not None and len(seen) else 1.0)

    def surface(self, prim):
        """Contact surface of a USD prim's physics material, or None."""
        material = self.material(prim)
        if material is None:
            return None
        friction = number_of(material, "physics:dynamicFriction")
        if friction is None:
            friction = number_of(material, "physics:staticFriction")
        return Surface(friction=friction, restitution=number_of(material, "physics:restitution"))

    def material(self, prim):
        """Prim of the physics material bound to a shape."""
        bound, _ = self.shade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
        found = bound.GetPrim() if bound else None
        return found if found and found.HasAPI(self.physics.MaterialAPI) else None

    def density(self, prim):
        """Density of a shape or its material [kg/m³ in the units of the file]."""
        given = value_of(prim, "physics:density")
        if given:
            return given
        material = self.material(prim)
        return (value_of(material, "physics:density") if material else None) or None

    def solid(self, prim, scale):
        """Solid of a USD prim in its scale, and the rotation of its axis to z."""
        kind = prim.GetTypeName()
        size = np.abs(scale)
        if kind == "Cube":
            return Box(tuple(size * self.number(prim, "size", 2.0))), Plucker.identity()
        if kind == "Sphere":
            radii = size * self.number(prim, "radius", 1.0)
            even = np.ptp(radii) <= _ROUND * radii.max()
            return (Sphere(radii[0]) if even else Ellipsoid(tuple(radii))), Plucker.identity()
        if kind == "Mesh":
            return self.mesh(prim, scale), Plucker.identity()
        axis = str(prim.GetAttribute("axis").Get() or "Z")
        if kind == "Plane":
            return Plane(), _TURNS[axis]
        solids = {"Cylinder": Cylinder, "Capsule": Capsule, "Cone": Cone}
        if kind not in solids:
            raise ValueError(f"kinetree has no shape like a {kind}")
        a, b, along = size[list(_ORDER[axis])]
        if abs(a - b) > _ROUND * max(a, b) or (kind == "Capsule" and abs(a - along) > _ROUND * a):
            raise ValueError("its scale differs along its axes")
        radius, height = self.number(prim, "radius", 0.5), self.number(prim, "height", 1.0)
        return solids[kind](a * radius, along * height), _TURNS[axis]

    @staticmethod
    def number(prim, name, default):
        """Positive number of an attribute."""
        value = prim.GetAttribute(name).Get()
        value = default if value is None else float(value)
        if not np.isfinite(value) or value <= 0:
            raise ValueError(f"its {name} must be positive, got {value:g}")
        return value

    def mesh(self, prim, scale):
        """Mesh of a USD prim's triangles, in a cache file."""
        mesh = self.geom.Mesh(prim)
        points = np.array(mesh.GetPointsAttr().Get() or [], dtype=float).reshape(-1, 3)
        counts = np.array(mesh.GetFaceVertexCountsAttr().Get() or [], dtype=int)
        corners = np.array(mesh.GetFaceVertexIndicesAttr().Get() or [], dtype=int)
        fits = counts.sum() == len(corners) and np.all(counts >= 3) and len(counts)
        if not fits or corners.min() < 0 or corners.max() >= len(points):
            raise ValueError("its faces do not fit its points")
        if not np.all(np.isfinite(points)):
            raise ValueError("its points are not finite")
        starts = np.cumsum(counts) - counts
        faces = [
            (corners[s], corners[s + k], corners[s + k + 1])
            for s, n in zip(starts, counts, strict=True)
            for k in range(1, n - 1)
        ]
        faces = np.array(faces)
        if np.prod(scale) < 0 or mesh.GetOrientationAttr().Get() == self.geom.Tokens.leftHanded:
            faces = faces[:, ::-1]
        text = obj_text(points * scale, faces)
        folder = Path(cache_of_meshes()) / "usd"
        path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.obj"
        if not path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
        kind = prim.GetAttribute("physics:approximation")
        exact = kind and str(kind.Get()) in ("none", "meshSimplification", "sdf")
        if kind and str(kind.Get()) == "convexDecomposition":
            exact = True
            why = "its triangles touch; kinetree.edit.decompose makes convex pieces of them"
            self.report.ignore(None, f"approximation of {prim.GetPath()}", why, effect="contact")
        return Mesh(str(path), convex=not exact)


def is_frame(prim) -> bool:
    """Whether a USD prim only stands for a frame."""
    return bool(tag(prim, "frame")) or (
        prim.GetTypeName() == "Xform" and not prim.GetChildren() and not tag(prim, OWN)
    )
