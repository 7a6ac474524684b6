"""Bodies, joints and shapes as MJCF, with their surfaces, and pairs that touch.

MuJoCo wants every moving body to have mass, and lets a body have several joints; so a chain of
massless bodies becomes joints of the body at its end.
"""

import os

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import InteropError
from kinetree.joints import Fixed, Free, Planar
from kinetree.model import geometry
from kinetree.model.geometry import joined_surface
from kinetree.model.names import ShapeNames
from kinetree.model.sensors import KINDS
from kinetree.rendering.surfaces import surface_of_solid
from kinetree.spatial import Plucker, xlt
from kinetree.writers.mjcf.elements import (
    JointElement,
    element,
    numbers,
    parts_of,
    pose_attributes,
    range_attributes,
)

_STL_HEAD = 84  # bytes before the triangles: a text, and their number
_MESHES = (".stl", ".obj", ".msh")
_FRICTION = (1.0, 0.005, 0.0001)  # MuJoCo's, sliding, spinning and rolling


def links_of(model) -> set:
    """Names of lumped links, which are written as bodies on their body."""
    return {g.link for g in model.geometry if g.link} - set(model.body_names)


def is_lost(path) -> bool:
    """Whether a mesh file is missing, so that a file with it could not be read."""
    return "://" in path or (os.path.isabs(path) and not os.path.isfile(path))


def _is_ascii_stl(path) -> bool:
    """Whether an STL file is text: its size does not match its number of triangles."""
    if not path.lower().endswith(".stl") or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(_STL_HEAD)
    count = int.from_bytes(head[80:], "little")
    return head.startswith(b"solid") and os.path.getsize(path) != _STL_HEAD + 50 * count


def write_geometry(model, elements, root, left_out):
    """Write shapes as geoms and meshes as assets; ``left_out`` collects unsupported ones."""
    asset, meshes = etree.SubElement(root, "asset"), {}
    links, names, masked = _Links(model, elements), geom_names(model), _needs_masks(model)
    for k, g in enumerate(model.geometry):
        shape, (parent, X) = g.shape, links.place(g)
        velocity = () if g.surface is None else g.surface.velocity
        if any(velocity) and isinstance(shape, geometry.Mesh):
            left_out.append(f"velocity of the surface of shape {k}, which is a mesh")
            velocity = ()
        if isinstance(shape, geometry.Mesh):
            if g.collision and not shape.convex:
                left_out.append(f"convex=False of mesh {shape.path!r}: MuJoCo takes its hull")
            if os.path.splitext(shape.path)[1].lower() not in _MESHES:
                left_out.append(f"mesh {shape.path!r}, which MuJoCo cannot read")
                continue
            if is_lost(shape.path):
                left_out.append(f"mesh {shape.path!r}, whose file was not found")
                continue
            if _is_ascii_stl(shape.path):
                left_out.append(f"mesh {shape.path!r}: MuJoCo reads binary STL, and this is ASCII")
                continue
            if shape not in meshes:
                meshes[shape] = f"mesh_{len(meshes)}"
                scale = None if shape.scale == (1, 1, 1) else shape.scale
                # inertias are given; that of a shell exists for flat and open meshes, too
                shell = {"file": shape.path, "scale": scale, "inertia": "shell"}
                element(asset, "mesh", name=meshes[shape], **shell)
            attributes = {"type": "mesh", "mesh": meshes[shape]}
        elif isinstance(shape, geometry.HeightField):
            X = _height_field(asset, shape, f"heights_{k}") @ X
            attributes = {"type": "hfield", "hfield": f"heights_{k}"}
        elif isinstance(shape, geometry.Solid) and "mjcf" not in shape.formats:
            if shape not in meshes:
                meshes[shape] = f"mesh_{len(meshes)}"
                corners = surface_of_solid(shape).vertices.reshape(-1)
                element(asset, "mesh", name=meshes[shape], vertex=corners)
            left_out.append(f"round faces of the {shape.spelling()} {k}, written as a mesh")
            attributes = {"type": "mesh", "mesh": meshes[shape]}
        else:
            attributes = shape_attributes(shape)
        element(
            parent,
            "geom",
            name=names.get(k),
            **attributes,
            **pose_attributes(X),
            rgba=None if g.color is None else g.color,
            **_touching(g, masked),
            surfacevel=[*velocity, 0.0, 0.0, 0.0] if any(velocity) else None,
            group=None if g.visual else "3",
        )
    if not len(asset):
        root.remove(asset)
    surfaces = [part.surface for part in (*model.geometry, *model.contact_pairs) if part.surface]
    if any(s.restitution for s in surfaces):
        left_out.append("restitution of surfaces")


class _Links:
    """Places where geoms are written: in the body, or in a body for the link that is part of it."""

    def __init__(self, model, elements):
        self.model, self.elements, self.known = model, elements, links_of(model)
        self.made: dict = {}

    def place(self, g):
        """XML element that a shape belongs to, and the transform from there to the shape."""
        if g.link not in self.known:
            return self.elements[g.body], g.placement
        if (g.body, g.link) not in self.made:
            self.made[g.body, g.link] = self._make(g)
        body, X = self.made[g.body, g.link]
        return body, g.placement @ X.inverse()

    def _make(self, g):
        """Write a body for a link that is lumped into another body in MJCF."""
        frames = [f for f in self.model.frames if (f.name, f.body) == (g.link, g.body)]
        X = frames[0].placement if frames else Plucker.identity()
        parent = self.elements[g.body]
        after = parent.find("body")
        body = element(parent, "body", name=g.link, **pose_attributes(X))
        if after is not None:
            after.addprevious(body)
        return body, X


def geom_names(model) -> dict:
    """Names of geoms by shape number: unique ones, and those that pairs need."""
    known = ShapeNames(model)
    names = {k: g.name for k, g in enumerate(model.geometry) if known.own[k] == g.name}
    for pair in model.contact_pairs:
        if pair.touch:
            both = (*known.find(pair.first), *known.find(pair.second))
            names |= {k: known.own[k] for k in both}
    return names


def shape_attributes(shape) -> dict:
    """MJCF attributes of a geom's or site's type and size."""
    kind, size = _shape(shape)
    return {"type": kind, "size": numbers(size)}


def _shape(shape):
    """MJCF type and half lengths of a shape."""
    if isinstance(shape, geometry.Solid) and "mjcf" in shape.formats:
        return shape.spelling(), shape.half_sizes
    if isinstance(shape, geometry.Plane):
        return "plane", [shape.size[0] / 2, shape.size[1] / 2, 0.1]
    raise InteropError(f"MJCF has no shape {type(shape).__name__}")


def _height_field(asset, shape, name):
    """Write a height field's data; the transform to its lowest height.

    The first row of an elevation is that of the largest y, as in a picture.
    """
    heights = np.array(shape.heights, dtype=float).T
    low, top = heights.min(), float(np.ptp(heights)) or 1.0
    element(
        asset,
        "hfield",
        name=name,
        nrow=[heights.shape[0]],
        ncol=[heights.shape[1]],
        size=[shape.size[0] / 2, shape.size[1] / 2, top, 1.0],
        elevation=(heights[::-1] - low) / top,
    )
    return xlt(np.array([0.0, 0.0, low])) if low else Plucker.identity()


_ALL = str(2**31 - 1)


def _needs_masks(model):
    """Whether shapes have different collision masks, so that all masks must be written."""
    surfaces = [g.surface for g in model.geometry if g.collision and g.surface is not None]
    return any((s.contype, s.conaffinity) != (1, 1) for s in surfaces)


def _touching(g, masked):
    """MJCF attributes of a geom's collision masks and contact parameters."""
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
    """MuJoCo's friction coefficients of a surface, as text."""
    said = (surface.friction, surface.torsion, surface.rolling)
    return [usual if x is None else x for x, usual in zip(said, _FRICTION, strict=True)]


def write_contact_pairs(model, root, left_out):
    """Write contact pairs of geoms and excluded pairs of bodies in MJCF."""
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
                section,
                "pair",
                name=name if len(ends) == 1 else None,
                geom1=names[i],
                geom2=names[j],
                **(_of_pair(surface) if surface else {}),
            )
    if not len(section):
        root.remove(section)


def _of_pair(surface):
    """MJCF attributes of a contact pair's surface."""
    sliding, torsion, rolling = _friction(surface)
    return {
        "condim": [surface.condim],
        "friction": [sliding, sliding, torsion, rolling, rolling],
        "margin": [surface.margin],
        "gap": [surface.gap],
    }


def _exclude(model, section, known, pair, name, left_out):
    """Write an excluded pair of bodies, or of shapes that are all of their bodies."""
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


_SMALLEST_MOMENT = 2e-15  # MuJoCo rejects smaller ones [kg m²]
_WORLD = "world"


def write_bodies(model, worldbody, start):
    """Write the tree below ``worldbody``.

    Args:
        model: the model.
        worldbody: the element.
        start: pose of free bodies, (7,), by joint name, where it is not the origin.

    Returns:
        The element of each body, by number; a body that has become a joint has none.
    """
    elements, busy = {0: worldbody}, _carriers(model)
    for i in range(1, model.body_count + 1):
        if i in elements or model.parent[i] not in elements:
            continue  # part of a chain that is already written
        chain = _chain(model, i, busy)
        elements[chain[-1]] = _write(model, chain, elements[model.parent[i]], start)
    return elements


def _carriers(model):
    """Numbers of bodies that something other than one joint is attached to."""
    carriers = {f.body for f in model.frames} | {g.body for g in model.geometry}
    frames = [s for s in model.sensors if KINDS[s.kind].of == "frame"]
    names = {n for s in frames for n in (s.of, s.reference)}
    carriers |= {i for i, name in enumerate(model.body_names) if name in names}
    return carriers | {end for loop in model.loops for end in (loop.predecessor, loop.successor)}


def _chain(model, i, busy):
    """Chain of bodies from ``i`` on, continued while a body is massless."""
    chain = [i]
    while model.inertia[chain[-1]].mass == 0 and not isinstance(model.joint[chain[-1]], Fixed):
        children = model.children[chain[-1]]
        if len(children) != 1 or isinstance(model.joint[children[0]], (Fixed, Free)):
            break
        if chain[-1] in busy:
            raise InteropError(
                f"body {model.body_names[chain[-1]]!r} has no mass, which MuJoCo does not allow, "
                f"and frames, shapes or loop joints that keep it from becoming a mere joint; move "
                f"those to other bodies"
            )
        chain.append(children[0])
    return chain


def _write(model, chain, parent, start):
    """Write a chain of bodies as one MuJoCo body with several joints."""
    last, name = chain[-1], model.body_names[chain[-1]]
    if name == _WORLD:
        raise InteropError("body 'world': MuJoCo keeps this name for the base; choose another")
    at = {last: Plucker.identity()}  # from each body of the chain to the last, joints at zero
    X = Plucker.identity()
    for i in reversed(chain):
        X = X @ model.tree_transform[i]
        at[model.parent[i]] = X
    parts = [(i, part) for i in chain for part in parts_of(model.joint[i], _joint_name(model, i))]
    if isinstance(model.joint[last], Free) and model.parent[last] == 0 and not pose_attributes(X):
        name_of_joint = _joint_name(model, last)
        parts = [(last, JointElement(name_of_joint, "free", None, slice(0, 7), slice(0, 6)))]
        if name_of_joint in start:
            X = Free().transform(np.asarray(start[name_of_joint], dtype=float))
    body = element(parent, "body", name=name, **pose_attributes(X))
    if parts and not _has_mass(model, last):
        raise InteropError(
            f"body {name!r} moves and has no mass, which MuJoCo does not allow; give it mass, "
            f"or fix it (kinetree.edit)"
        )
    _write_inertia(model.inertia[last], body)
    _check_together(model, chain, [(part, at[i]) for i, part in parts])
    for i, part in parts:
        _write_joint(model.bodies[i - 1], part, at[i], body)
    return body


def _has_mass(model, i):
    """Whether a body, or one fixed to it, has mass."""
    fixed = [k for k in model.children[i] if isinstance(model.joint[k], Fixed)]
    return model.inertia[i].mass != 0 or any(_has_mass(model, k) for k in fixed)


def _joint_name(model, i):
    """Name of joint ``i``."""
    return model.joint_names[i - 1]


def _check_together(model, chain, parts):
    """Raise InteropError for joints that MuJoCo does not allow in one body."""
    kinds = [part.kind for part, _ in parts]
    turned = any(part.kind == "ball" and not np.array_equal(Z.E, np.eye(3)) for part, Z in parts)
    if "ball" in kinds and (turned or kinds.count("ball") > 1 or "hinge" in kinds):
        names = ", ".join(repr(_joint_name(model, i)) for i in chain)
        raise InteropError(
            f"joints {names} have massless bodies between them and would have to be in one body "
            f"of MJCF, which takes a ball joint without other rotations; give the bodies mass"
        )


def _write_inertia(inertia, body):
    """Write the inertia of a body, if it has mass."""
    if inertia.mass == 0:
        return
    I_C = np.asarray(inertia.rotational_at_center, dtype=float)
    if np.any(I_C - np.diag(np.diagonal(I_C))):
        moments, R = np.linalg.eigh(I_C)  # MuJoCo's principal axes of a full matrix are less exact
        R = R if np.linalg.det(R) > 0 else -R
    else:
        moments, R = np.diagonal(I_C), np.eye(3)
    moments = _possible(np.maximum(moments, _SMALLEST_MOMENT))
    if 2 * np.max(moments) > np.sum(moments) * (1 + 1e-9):
        shown = ", ".join(f"{x:g}" for x in moments)
        raise InteropError(
            f"body {body.get('name')!r} has principal moments {shown} kg m², of which the largest "
            f"exceeds the sum of the others: MuJoCo does not load such a body. kinetree.check says "
            f"more; model.replace(inertia=...) corrects it"
        )
    pose = pose_attributes(Plucker(R.T, inertia.center_of_mass))
    pose.setdefault("pos", "0 0 0")  # which MJCF wants here
    element(body, "inertial", **pose, mass=float(inertia.mass), diaginertia=moments)


def _possible(moments):
    """Principal moments with rounding errors of flat bodies removed."""
    k = int(np.argmax(moments))
    others = float(np.sum(np.delete(moments, k)))
    if others < moments[k] < others * (1 + 1e-9):
        moments = moments.copy()
        moments[k] = others
    return moments


def _write_joint(body, part, Z, parent):
    """Write a joint; ``Z`` transforms to the chain's last body at zero."""
    attributes = {"type": part.kind}
    if part.kind in ("hinge", "slide"):
        attributes["axis"] = numbers(Z.E @ np.asarray(part.axis))
    if part.kind in ("hinge", "ball") and np.any(Z.r):
        attributes["pos"] = numbers(-Z.E @ Z.r)
    attributes |= _limit_attributes(body.limits, part)
    attributes |= _dynamics_attributes(body, part)
    element(parent, "joint", name=part.name, **attributes)


def _limit_attributes(limits, part):
    """Attributes of the limits of a hinge or slide."""
    if limits is None or part.kind not in ("hinge", "slide"):
        return {}
    low, high = limits.lower or (-np.inf,) * 9, limits.upper or (np.inf,) * 9
    found = range_attributes("range", (low[part.q.start], high[part.q.start]), "limited")
    if limits.effort or limits.effort_lower or limits.effort_upper:
        effort = limits.effort[part.v.start] if limits.effort else np.inf
        low, high = limits.effort_lower or (-effort,) * 9, limits.effort_upper or (effort,) * 9
        ends = low[part.v.start], high[part.v.start]
        found |= range_attributes("actuatorfrcrange", ends, "actuatorfrclimited")
    if any(limits.effort_compensation[part.v]):
        found["actuatorgravcomp"] = "true"
    return found


def _dynamics_attributes(body, part):
    """MJCF attributes of a joint's spring, damping, friction and armature."""
    if body.dynamics is None:
        return {}
    found = {}
    for ours, theirs in (
        ("armature", "armature"),
        ("damping", "damping"),
        ("friction", "frictionloss"),
        ("stiffness", "stiffness"),
    ):
        given = getattr(body.dynamics, ours)
        values = given[part.v]
        if any(values):
            moving = isinstance(body.joint, (Free, Planar)) and part.kind != "hinge"
            if len(set(values)) > 1 or (moving and (ours == "stiffness" or len(set(given)) > 1)):
                raise InteropError(
                    f"joint {body.joint_name!r} has {ours} {list(given)}; a {part.kind} joint of "
                    f"MJCF {'has none' if ours == 'stiffness' else 'has one for all directions'}"
                )
            found[theirs] = numbers(values[0])
    rest = body.dynamics.rest[part.q]
    if "stiffness" in found and any(rest) and tuple(rest) != (1, 0, 0, 0):
        if part.kind == "ball":
            raise InteropError(
                f"joint {body.joint_name!r} has a spring that is slack at {list(rest)}; that of a "
                f"ball joint of MJCF is slack at the neutral position"
            )
        found["springref"] = numbers(rest)
    return found
