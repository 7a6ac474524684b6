"""Bodies of a compiled MuJoCo model as a tree of ours.

A MuJoCo body may have no joint, or several, and joints sit anywhere on it. Ours sits at its joint,
so several joints become a chain with massless bodies in between, and a body without a joint part
of the one that carries it.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kinetree.joints import Fixed, Free
from kinetree.loaders.mjcf.joints import FREE, anchor, dynamics_of, joint_of, limits_of
from kinetree.loaders.mjcf.names import body_names, joint_names, unused
from kinetree.loaders.mjcf.numbers import inertia_of, is_identity, placement, shift
from kinetree.model import Body, Frame
from kinetree.spatial import Inertia, Plucker

__all__ = ["Place", "Tree", "tree_of"]


class Place(NamedTuple):
    """Where a body of MuJoCo has gone."""

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


def tree_of(mj_model, tell, *, lump=True, floating_base=False) -> Tree:
    """All bodies, each with the joints that carry it."""
    tree = Tree(body_names(mj_model), joint_names(mj_model))
    taken = set(tree.body_names)
    for b in range(1, mj_model.nbody):
        name, parent = tree.body_names[b], tree.places[mj_model.body_parentid[b]]
        X = placement(mj_model.body_pos[b], mj_model.body_quat[b]) @ parent.X
        if mj_model.body_mocapid[b] >= 0:
            tell("body", name, "a mocap body has no joint to move it; it stays where it is defined")
        if mj_model.body_jntnum[b]:
            place = _on_joints(mj_model, tree, b, parent.body, X, taken, tell)
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


def _on_joints(mj_model, tree, b, parent, X, taken, tell) -> Place:
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
            limits=limits_of(mj_model, j, joint_name, tell),
            dynamics=dynamics_of(mj_model, j, joint_name, tell),
        )  # fmt: skip
        X = shift(-anchor(mj_model, j))
    return Place(parent, X)


def _joined(at, X):
    if is_identity(at):
        return X
    return at if is_identity(X) else at @ X


def _link_frames(mj_model, tree, taken):
    """Where our body sits at its joint and MuJoCo's elsewhere, the latter stays as a frame."""
    for b in range(1, mj_model.nbody):
        place = tree.places[b]
        if mj_model.body_jntnum[b] and not is_identity(place.X):
            name = unused(f"{tree.body_names[b]}_link", "frame", taken)
            tree.frames.append(Frame(name, place.body, place.X))
