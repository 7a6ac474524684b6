"""Bodies and sites of a compiled MuJoCo model.

A MuJoCo body may have no joint, or several, and joints sit anywhere on it. Ours sits at its joint,
so several joints become a chain with massless bodies in between, and a body without a joint part
of the one that carries it.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kinetree.joints import Fixed, Free
from kinetree.loaders.mjcf import joints
from kinetree.loaders.mjcf.values import (
    POSE,
    AllBut,
    body_names,
    inertia_of,
    joint_names,
    names_of,
    placement,
    shift,
    unused_name,
)
from kinetree.model import Body, Frame
from kinetree.model.parts import is_identity
from kinetree.spatial import Inertia, Plucker

ATTRIBUTES = {
    "body": POSE | {"name", "childclass", "mocap", "gravcomp", "fuse", "simple"},
    "site": POSE | {"name", "class", "fromto"},
    **dict.fromkeys(
        ("worldbody", "inertial", "frame", "replicate", "attach", "composite", "flexcomp"), AllBut()
    ),
}  # fmt: skip
"""Attributes of MJCF that a model represents, by element; the rest is noted."""


HERE = Plucker.identity()


class BodyPlace(NamedTuple):
    """Our body that a body of MuJoCo is part of."""

    body: int
    """Number of the body in the model."""
    X: Plucker
    """From the coordinates of kinetree's body to those of MuJoCo's."""


@dataclass
class Tree:
    """Our bodies and frames, and the place of every body of MuJoCo."""

    body_names: list
    joint_names: list
    bodies: list = field(default_factory=list)
    inertias: list = field(default_factory=list)
    frames: list = field(default_factory=list)
    places: list = field(default_factory=lambda: [BodyPlace(0, Plucker.identity())])

    def add(self, name, parent, joint, placement, joint_name, limits=None, dynamics=None):
        """Append a massless body to the tree; its number."""
        self.bodies.append((name, parent, joint, placement, joint_name, limits, dynamics))
        self.inertias.append(Inertia.zero())
        return len(self.bodies)

    def load(self, place, inertia):
        """Add the inertia of a MuJoCo body to the tree's body; ignored for the base."""
        if place.body > 0 and inertia.mass != 0:
            moved = inertia if is_identity(place.X) else inertia.inverse_transformed(place.X)
            carried = self.inertias[place.body - 1]
            self.inertias[place.body - 1] = moved if carried.mass == 0 else carried + moved

    def finish(self):
        """Make the bodies with their accumulated inertias."""
        self.bodies = [
            Body(name, parent, joint, placement, inertia, joint_name, limits, dynamics)
            for (name, parent, joint, placement, joint_name, limits, dynamics), inertia in zip(
                self.bodies, self.inertias, strict=True
            )
        ]


def tree_of(mj_model, note, *, lump=True, floating_base=False, free=None) -> Tree:
    """Tree of all MuJoCo bodies and joints; ``free`` as in ``from_compiled``."""
    names, free = joint_names(mj_model, free)
    tree = Tree(body_names(mj_model), names)
    taken, taken_joints = set(tree.body_names), {*names, *free.values()}
    passive, moves = joints.have_dynamics(mj_model), mj_model.body_jntnum > 0
    for b, above in enumerate(mj_model.body_parentid.tolist()[1:], start=1):
        name, parent, mocap = tree.body_names[b], tree.places[above], mj_model.body_mocapid[b] >= 0
        if mocap:
            note("body", name, "a mocap body has no joint to move it; it stays where it is defined")
        floats = b in free or (floating_base and above == 0 and not (mocap or moves[b]))
        X = HERE if floats else placement(mj_model.body_pos[b], mj_model.body_quat[b]) @ parent.X
        if moves[b]:
            place = _on_joints(mj_model, tree, b, parent.body, X, taken, note, passive)
        elif floats:  # its position variables are the pose in the world
            joint_name = free.get(b) or unused_name(f"{name}_floating", "joint", taken_joints)
            place = BodyPlace(tree.add(name, 0, Free(), HERE, joint_name), HERE)
        elif lump:
            tree.frames.append(Frame(name, parent.body, X))
            place = BodyPlace(parent.body, X)
        else:
            joint_name = unused_name(f"{name}_fixed", "joint", taken_joints)
            place = BodyPlace(tree.add(name, parent.body, Fixed(), X, joint_name), HERE)
        tree.places.append(place)
        tree.load(place, inertia_of(mj_model, b))
    tree.finish()
    _link_frames(mj_model, tree, taken)
    return tree


def _on_joints(mj_model, tree, b, parent, X, taken, note, passive) -> BodyPlace:
    """Append one body for each joint of a MuJoCo body; the last one is the body itself."""
    first, count = int(mj_model.body_jntadr[b]), int(mj_model.body_jntnum[b])
    for k, j in enumerate(range(first, first + count), start=1):
        last = k == count
        name = (
            tree.body_names[b] if last else unused_name(f"{tree.body_names[b]}_{k}", "body", taken)
        )
        at = shift(joints.anchor(mj_model, j))
        if mj_model.jnt_type[j] == joints.FREE:  # its position variables are the pose in the world
            X = Plucker.identity()
        joint_name = tree.joint_names[j]
        parent = tree.add(
            name,
            parent,
            joints.joint_of(mj_model, j),
            _join(at, X),
            joint_name,
            limits=joints.limits_of(mj_model, j, joint_name, note),
            dynamics=joints.dynamics_of(mj_model, j, joint_name, note) if passive[j] else None,
        )
        X = shift(-joints.anchor(mj_model, j))
    return BodyPlace(parent, X)


def _join(at, X):
    """Product of two transforms, cheap if one is the identity."""
    if is_identity(at):
        return X
    return at if is_identity(X) else at @ X


def _link_frames(mj_model, tree, taken):
    """Add frames at the origins of MuJoCo bodies whose joint is elsewhere."""
    for b in np.flatnonzero(mj_model.body_jntnum):
        place = tree.places[b]
        if not is_identity(place.X):
            name = unused_name(f"{tree.body_names[b]}_link", "frame", taken)
            tree.frames.append(Frame(name, place.body, place.X))


# --- Sites ----------------------------------------------------------------------------------------


def sites_of(mj_model, tree):
    """Frames for all sites."""
    taken = {*tree.body_names, *(b.name for b in tree.bodies), *(f.name for f in tree.frames)}
    frames = []
    for s, given in enumerate(names_of(mj_model, "site")):
        place = tree.places[mj_model.site_bodyid[s]]
        X = placement(mj_model.site_pos[s], mj_model.site_quat[s]) @ place.X
        frames.append(Frame(unused_name(given or f"site_{s}", "site", taken), place.body, X))
    return tuple(frames)
