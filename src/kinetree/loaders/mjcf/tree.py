"""Bodies, geoms and sites of a compiled MuJoCo model.

A MuJoCo body may have no joint, or several, and joints sit anywhere on it. Ours sits at its joint,
so several joints become a chain with massless bodies in between, and a body without a joint part
of the one that carries it.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from kinetree.joints import Fixed, Free
from kinetree.loaders.mjcf.joints import FREE, anchor, dynamics_of, joint_of, limits_of
from kinetree.loaders.mjcf.values import (
    POSE,
    AllBut,
    body_names,
    inertia_of,
    is_identity,
    joint_names,
    names_of,
    placement,
    shift,
    unused,
)
from kinetree.model import Body, Frame
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    Mesh,
    Plane,
    Sphere,
)
from kinetree.spatial import Inertia, Plucker

ATTRIBUTES = {
    "body": POSE | {"name", "childclass", "mocap", "gravcomp", "fuse", "simple"},
    "geom": POSE | {
        "name", "class", "type", "size", "fromto", "contype", "conaffinity", "group", "mass",
        "density", "shellinertia", "mesh", "hfield", "fitscale", "rgba", "material",
    },
    "site": POSE | {"name", "class", "fromto"},
    "mesh": {
        "name", "class", "file", "content_type", "vertex", "face", "scale", "inertia", "builtin",
        "params", "maxhullvert", "smoothnormal", "normal",
    },
    "material": {"name", "class", "rgba"},
    **dict.fromkeys(
        ("worldbody", "inertial", "frame", "replicate", "attach", "composite", "flexcomp"), AllBut()
    ),
}  # fmt: skip
"""Attributes of MJCF that a model represents, by element; the rest is noted."""


class Place(NamedTuple):
    """Our body that a body of MuJoCo is part of."""

    body: int
    """Number of ours."""
    X: Plucker
    """From the coordinates of our body to those of MuJoCo's."""


@dataclass
class Tree:
    """Our bodies and frames, and the place of every body of MuJoCo."""

    body_names: list
    joint_names: list
    bodies: list = field(default_factory=list)
    frames: list = field(default_factory=list)
    places: list = field(default_factory=lambda: [Place(0, Plucker.identity())])

    def add(self, name, parent, joint, at, joint_name, **rest):
        """Append a massless body and return its number."""
        self.bodies.append(Body(name, parent, joint, at, Inertia.zero(), joint_name, **rest))
        return len(self.bodies)

    def load(self, place, inertia):
        """Add inertia, in the coordinates of MuJoCo's body, to ours; the base carries any."""
        if place.body > 0 and inertia.mass != 0:
            body = self.bodies[place.body - 1]
            moved = inertia if is_identity(place.X) else inertia.inverse_transformed(place.X)
            total = moved if body.inertia.mass == 0 else body.inertia + moved
            self.bodies[place.body - 1] = replace(body, inertia=total)


def tree_of(mj_model, note, *, lump=True, floating_base=False) -> Tree:
    """All bodies, each with the joints that carry it."""
    tree = Tree(body_names(mj_model), joint_names(mj_model))
    taken = set(tree.body_names)
    for b in range(1, mj_model.nbody):
        name, parent = tree.body_names[b], tree.places[mj_model.body_parentid[b]]
        X = placement(mj_model.body_pos[b], mj_model.body_quat[b]) @ parent.X
        if mj_model.body_mocapid[b] >= 0:
            note("body", name, "a mocap body has no joint to move it; it stays where it is defined")
        if mj_model.body_jntnum[b]:
            place = _on_joints(mj_model, tree, b, parent.body, X, taken, note)
        elif floating_base and mj_model.body_parentid[b] == 0 and mj_model.body_mocapid[b] < 0:
            joint_name = unused(f"{name}_floating", "joint", set(tree.joint_names))
            number = tree.add(name, 0, Free(), Plucker.identity(), joint_name)
            place = Place(number, Plucker.identity())
        elif lump:
            tree.frames.append(Frame(name, parent.body, X))
            place = Place(parent.body, X)
        else:
            joint_name = unused(f"{name}_fixed", "joint", set(tree.joint_names))
            place = Place(tree.add(name, parent.body, Fixed(), X, joint_name), Plucker.identity())
        tree.places.append(place)
        tree.load(place, inertia_of(mj_model, b))
    _link_frames(mj_model, tree, taken)
    return tree


def _on_joints(mj_model, tree, b, parent, X, taken, note) -> Place:
    """One body of ours for every joint; the last is the body itself."""
    first, count = int(mj_model.body_jntadr[b]), int(mj_model.body_jntnum[b])
    for k, j in enumerate(range(first, first + count), start=1):
        last = k == count
        name = tree.body_names[b] if last else unused(f"{tree.body_names[b]}_{k}", "body", taken)
        at = shift(anchor(mj_model, j))
        if mj_model.jnt_type[j] == FREE:  # its position variables are the pose in the world
            X = Plucker.identity()
        joint_name = tree.joint_names[j]
        parent = tree.add(
            name, parent, joint_of(mj_model, j), _joined(at, X), joint_name,
            limits=limits_of(mj_model, j, joint_name, note),
            dynamics=dynamics_of(mj_model, j, joint_name, note),
        )  # fmt: skip
        X = shift(-anchor(mj_model, j))
    return Place(parent, X)


def _joined(at, X):
    if is_identity(at):
        return X
    return at if is_identity(X) else at @ X


def _link_frames(mj_model, tree, taken):
    """Frames for bodies of MuJoCo whose origin is not at their joint, where ours is."""
    for b in range(1, mj_model.nbody):
        place = tree.places[b]
        if mj_model.body_jntnum[b] and not is_identity(place.X):
            name = unused(f"{tree.body_names[b]}_link", "frame", taken)
            tree.frames.append(Frame(name, place.body, place.X))


# --- Geoms and sites -----------------------------------------------------------------------------

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)  # mjtGeom
_DEFAULT_COLOR = np.array([0.5, 0.5, 0.5, 1], dtype=np.float32)
_SHOWN_GROUPS = 3  # MuJoCo's viewers show groups 0, 1 and 2


def geometry_of(mj_model, tree, note, paths=None):
    """Every geom that has a shape of ours; ``paths`` are those of mesh files by MuJoCo's name."""
    found = []
    for g, name in enumerate(names_of(mj_model, "geom")):
        collides = mj_model.geom_contype[g] or mj_model.geom_conaffinity[g]
        X = placement(mj_model.geom_pos[g], mj_model.geom_quat[g])
        if mj_model.geom_type[g] == MESH:
            shape, X = _mesh(mj_model, mj_model.geom_dataid[g], X, paths or {})
        else:
            shape = _shape(int(mj_model.geom_type[g]), [float(x) for x in mj_model.geom_size[g]])
        if shape is None:
            effect = "contact" if collides else "picture"
            note("geom", name, "its shape, such as a height field, has no counterpart here", effect)
            continue
        place = tree.places[mj_model.geom_bodyid[g]]
        found.append(
            Geometry(
                place.body, shape, X @ place.X, name,
                visual=bool(mj_model.geom_group[g] < _SHOWN_GROUPS),
                collision=bool(collides),
                color=_color(mj_model, g),
            )
        )  # fmt: skip
    return tuple(found)


def _shape(kind, size):
    """Sizes of MuJoCo are half lengths."""
    if kind == PLANE:
        return Plane((2 * size[0] or 10.0, 2 * size[1] or 10.0))
    if kind == SPHERE:
        return Sphere(size[0])
    if kind == CAPSULE:
        return Capsule(size[0], 2 * size[1])
    if kind == ELLIPSOID:
        return Ellipsoid((size[0], size[1], size[2]))
    if kind == CYLINDER:
        return Cylinder(size[0], 2 * size[1])
    if kind == BOX:
        return Box((2 * size[0], 2 * size[1], 2 * size[2]))
    return None


def _mesh(mj_model, mesh, X, paths):
    """MuJoCo moves a mesh to its principal frame; the file has it where it was."""
    start = int(mj_model.mesh_pathadr[mesh]) if mesh >= 0 else -1
    if start < 0:
        return None, X
    text = bytes(mj_model.paths)
    file = text[start : text.index(b"\0", start)].decode("utf-8", "replace")
    moved = placement(mj_model.mesh_pos[mesh], mj_model.mesh_quat[mesh])
    x, y, z = (float(s) for s in mj_model.mesh_scale[mesh])
    return Mesh(paths.get(file, file), (x, y, z)), moved.inverse() @ X


def _color(mj_model, g):
    color, material = mj_model.geom_rgba[g], int(mj_model.geom_matid[g])
    if material >= 0 and np.array_equal(color, _DEFAULT_COLOR):
        color = mj_model.mat_rgba[material]
    red, green, blue, opacity = (float(str(c)) for c in np.asarray(color, dtype=np.float32))
    return red, green, blue, opacity


def sites_of(mj_model, tree):
    """Every site as a frame."""
    taken = {*tree.body_names, *(b.name for b in tree.bodies), *(f.name for f in tree.frames)}
    frames = []
    for s, given in enumerate(names_of(mj_model, "site")):
        place = tree.places[mj_model.site_bodyid[s]]
        X = placement(mj_model.site_pos[s], mj_model.site_quat[s]) @ place.X
        frames.append(Frame(unused(given or f"site_{s}", "site", taken), place.body, X))
    return tuple(frames)
