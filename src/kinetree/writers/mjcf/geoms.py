"""Shapes as geoms of MJCF, with their surfaces, their links as bodies, and pairs that touch."""

import os

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import InteropError
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Sphere,
    joined_surface,
)
from kinetree.model.names import ShapeNames
from kinetree.spatial import Plucker, xlt
from kinetree.writers.mjcf.elements import element, numbers, pose_attributes

_MESHES = (".stl", ".obj", ".msh")
_FRICTION = (1.0, 0.005, 0.0001)  # MuJoCo's, sliding, spinning and rolling


def links_of(model) -> set:
    """Names of the links that are written as bodies on the body that they are part of."""
    return {g.link for g in model.geometry if g.link} - set(model.body_names)


def write_geometry(model, elements, root, left_out):
    """Shapes as geoms, meshes as assets too; ``left_out`` collects what MuJoCo cannot read."""
    asset, meshes = etree.SubElement(root, "asset"), {}
    links, names, masked = _Links(model, elements), geom_names(model), _masked(model)
    for k, g in enumerate(model.geometry):
        shape, (parent, X) = g.shape, links.place(g)
        if g.surface is not None and any(g.surface.velocity):
            left_out.append(f"velocity of the surface of shape {k}, which MJCF has no word for")
        if isinstance(shape, Mesh):
            if g.collision and not shape.convex:
                left_out.append(f"convex=False of mesh {shape.path!r}: MuJoCo takes its hull")
            if os.path.splitext(shape.path)[1].lower() not in _MESHES:
                left_out.append(f"mesh {shape.path!r}, which MuJoCo cannot read")
                continue
            if shape not in meshes:
                meshes[shape] = f"mesh_{len(meshes)}"
                scale = None if shape.scale == (1, 1, 1) else shape.scale
                element(asset, "mesh", name=meshes[shape], file=shape.path, scale=scale)
            attributes = {"type": "mesh", "mesh": meshes[shape]}
        elif isinstance(shape, HeightField):
            X = _height_field(asset, shape, f"heights_{k}") @ X
            attributes = {"type": "hfield", "hfield": f"heights_{k}"}
        else:
            attributes = shape_attributes(shape)
        element(
            parent, "geom",
            name=names.get(k),
            **attributes, **pose_attributes(X),
            rgba=None if g.color is None else g.color,
            **_touching(g, masked),
            group=None if g.visual else "3",
        )  # fmt: skip
    if not len(asset):
        root.remove(asset)
    surfaces = [part.surface for part in (*model.geometry, *model.contact_pairs) if part.surface]
    if any(s.restitution for s in surfaces):
        left_out.append("restitution of surfaces")


class _Links:
    """Where geoms are written: in the body, or in a body for the link that is part of it."""

    def __init__(self, model, elements):
        self.model, self.elements, self.known = model, elements, links_of(model)
        self.made: dict = {}

    def place(self, g):
        """The element for a shape, and the transform from its frame to that of the shape."""
        if g.link not in self.known:
            return self.elements[g.body], g.placement
        if (g.body, g.link) not in self.made:
            self.made[g.body, g.link] = self._make(g)
        body, X = self.made[g.body, g.link]
        return body, g.placement @ X.inverse()

    def _make(self, g):
        frames = [f for f in self.model.frames if (f.name, f.body) == (g.link, g.body)]
        X = frames[0].placement if frames else Plucker.identity()
        parent = self.elements[g.body]
        after = parent.find("body")
        body = element(parent, "body", name=g.link, **pose_attributes(X))
        if after is not None:
            after.addprevious(body)
        return body, X


def geom_names(model) -> dict:
    """Names of geoms by number of the shape: those that are unique, and those that pairs need."""
    known = ShapeNames(model)
    names = {k: g.name for k, g in enumerate(model.geometry) if known.own[k] == g.name}
    for pair in model.contact_pairs:
        if pair.touch:
            both = (*known.find(pair.first), *known.find(pair.second))
            names |= {k: known.own[k] for k in both}
    return names


def shape_attributes(shape) -> dict:
    """Kind and size of a geom or site."""
    kind, size = _shape(shape)
    return {"type": kind, "size": numbers(size)}


def _shape(shape):
    """Kind and size, in half lengths."""
    if isinstance(shape, Box):
        return "box", np.array(shape.size) / 2
    if isinstance(shape, Sphere):
        return "sphere", [shape.radius]
    if isinstance(shape, (Cylinder, Capsule)):
        return type(shape).__name__.lower(), [shape.radius, shape.length / 2]
    if isinstance(shape, Ellipsoid):
        return "ellipsoid", shape.radii
    if isinstance(shape, Plane):
        return "plane", [shape.size[0] / 2, shape.size[1] / 2, 0.1]
    raise InteropError(f"MJCF has no shape {type(shape).__name__}")


def _height_field(asset, shape, name):
    """Write the heights above the lowest, and return the transform to where that is.

    The first row of an elevation is that of the largest y, as in a picture.
    """
    heights = np.array(shape.heights, dtype=float).T
    low, top = heights.min(), float(np.ptp(heights)) or 1.0
    element(
        asset, "hfield", name=name, nrow=[heights.shape[0]], ncol=[heights.shape[1]],
        size=[shape.size[0] / 2, shape.size[1] / 2, top, 1.0],
        elevation=(heights[::-1] - low) / top,
    )  # fmt: skip
    return xlt(np.array([0.0, 0.0, low])) if low else Plucker.identity()


_ALL = str(2**31 - 1)


def _masked(model):
    """Whether shapes are of different kinds, so that those without a surface are of all kinds."""
    surfaces = [g.surface for g in model.geometry if g.collision and g.surface is not None]
    return any((s.contype, s.conaffinity) != (1, 1) for s in surfaces)


def _touching(g, masked):
    """Attributes of a geom that say what it touches, and how."""
    if not g.collision:
        return {"contype": "0", "conaffinity": "0"}
    s = g.surface
    if s is None:
        return {"contype": _ALL, "conaffinity": _ALL} if masked else {}
    usual = {"contype": 1, "conaffinity": 1, "priority": 0, "condim": 3, "margin": 0.0, "gap": 0.0}
    said = {name: [getattr(s, name)] for name, x in usual.items() if getattr(s, name) != x}
    friction = _friction(s)
    return said | ({} if tuple(friction) == _FRICTION else {"friction": friction})


def _friction(surface):
    said = (surface.friction, surface.torsion, surface.rolling)
    return [usual if x is None else x for x, usual in zip(said, _FRICTION, strict=True)]


def write_contact_pairs(model, root, left_out):
    """Pairs of geoms and excluded pairs of bodies."""
    if not model.contact_pairs:
        return
    section, known, names = etree.SubElement(root, "contact"), ShapeNames(model), geom_names(model)
    given = [p.name for p in model.contact_pairs]
    written = {geom.get("name") for geom in root.iter("geom")}
    for pair in model.contact_pairs:
        name = pair.name if pair.name and given.count(pair.name) == 1 else None
        if not pair.touch:
            _exclude(model, section, known, pair, name, left_out)
            continue
        ends = [(i, j) for i in known.find(pair.first) for j in known.find(pair.second)]
        for i, j in ends:
            a, b = model.geometry[i], model.geometry[j]
            if not {names[i], names[j]} <= written:  # a shape that MuJoCo cannot read
                continue
            surface = pair.surface or joined_surface(a.surface, b.surface)
            element(
                section, "pair", name=name if len(ends) == 1 else None, geom1=names[i],
                geom2=names[j], **(_of_pair(surface) if surface else {}),
            )  # fmt: skip
    if not len(section):
        root.remove(section)


def _of_pair(surface):
    sliding, torsion, rolling = _friction(surface)
    return {
        "condim": [surface.condim],
        "friction": [sliding, sliding, torsion, rolling, rolling],
        "margin": [surface.margin],
        "gap": [surface.gap],
    }


def _exclude(model, section, known, pair, name, left_out):
    """An excluded pair of bodies, or of shapes, where these are all that their bodies have."""
    bodies = []
    for end in (pair.first, pair.second):
        shapes = known.of_link(end)
        owners = {
            model.geometry[k].link or model.body_names[model.geometry[k].body] for k in shapes
        }
        if not owners:
            return  # nothing that touches
        owner = owners.pop()
        if owners or known.links[owner] != shapes:
            left_out.append(f"that {pair.first!r} and {pair.second!r} do not touch: one of several")
            return
        bodies.append("world" if owner == model.base_name else owner)
    if bodies[0] != bodies[1]:
        element(section, "exclude", name=name, body1=bodies[0], body2=bodies[1])
