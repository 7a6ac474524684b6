"""Constraints of a world that come and go: parts that are held to each other, loops that are open.

A world is put together again with the loops that hold at the moment, so that its model, batches,
copies and files are those of the moment.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.errors import ModelError, require_known
from kinetree.joints import AbstractJoint, Fixed
from kinetree.model import Loop, Model
from kinetree.model.geometry import ContactPair
from kinetree.model.numbering import with_joints
from kinetree.model.parts import as_placement
from kinetree.quantities import kinematics
from kinetree.spatial import Plucker

if TYPE_CHECKING:
    from kinetree.worlds.core import WorldCore


def tie(world: "WorldCore", name: str, first: str, second: str, joint: Any, at: Any) -> None:
    """Connect two bodies or frames by a loop joint at their present relative pose."""
    model, whole = world.model, world._whole
    joint = Fixed() if joint is None else joint
    if not isinstance(joint, AbstractJoint):
        raise ModelError(f"joint of {name!r} must be a joint such as Spherical(), got {joint!r}")
    taken = {*model.joint_names, *model.loop_names, *world._ties, *world._released}
    if name in taken:
        raise ModelError(f"world {world.name!r} has a joint {name!r} already; choose another name")
    one, other = model.frame(first), model.frame(second)
    if one.body == other.body:
        raise ModelError(
            f"{first!r} and {second!r} are on one body, {model.body_names[one.body]!r}"
        )
    poses = [
        as_placement(np.asarray(kinematics.pose(model, whole.q, model.body_names[i])))
        if i
        else Plucker.identity()
        for i in (one.body, other.body)
    ]
    between = poses[1] @ poses[0].inverse()  # from the first body to the second
    if at is None:
        there = other.placement
        here = there @ between
    else:
        here = as_placement(at) @ one.placement
        there = here @ between.inverse()
    names = tuple(model.body_names[i] for i in (one.body, other.body))
    world._note_change(wakes=True)
    world._ties[name] = (names, Loop(name, 0, 0, joint, here, there))


def release(world: "WorldCore", name: str) -> None:
    """Open a loop joint, coupling or tie by name."""
    if name in world._ties:
        world._note_change(wakes=True)
        del world._ties[name]
        return
    if name in [coupling.name for coupling in world.model.couplings]:
        _uncouple(world, name)
        return
    require_known(
        name, (*world.model.loop_names,), f"world {world.name!r} holds nothing by {name!r}"
    )
    world._note_change(wakes=True)
    world._released.add(name)


def hold(world: "WorldCore", name: str) -> None:
    """Close a released loop joint, or enforce a released coupling, again."""
    known = (*world._released, *world._uncoupled)
    require_known(name, known, f"world {world.name!r} has not released {name!r}")
    if name in world._uncoupled:
        _couple(world, name)
        return
    world._note_change(wakes=True)
    world._released.discard(name)


def _uncouple(world, name):
    """Give a coupled joint independent variables, at its present position and velocity."""
    world._note_change(wakes=True)
    for piece in world._pieces:
        model = piece.model
        if model is None:
            continue
        for c in model.couplings:
            if piece.prefix + c.name == name:
                world._uncoupled[name] = piece, _by_name(model, c)
                others = [x for x in model.couplings if x is not c]
                _recouple(piece, model.replace(couplings=others))
                return


def _by_name(model, coupling):
    """Coupling with joint names instead of numbers, which may change."""
    names = ("", *model.joint_names)
    return with_joints(coupling, lambda i, _: names[i])


def _couple(world, name):
    """Enforce a released coupling again; the joint takes the velocity of its leaders."""
    piece, given = world._uncoupled[name]
    require_known(piece.name, world._parts, f"{name!r} cannot hold: its robot was removed")
    world._note_change(wakes=True)
    coupling = with_joints(given, lambda joint, _: piece.model.joint_index(joint))
    _recouple(piece, piece.model.replace(couplings=(*piece.model.couplings, coupling)))
    del world._uncoupled[name]


def _recouple(piece, model):
    """Replace a piece's model by one with other couplings, in the same state."""
    found = []
    for q, qd in ((piece.q, piece.qd), piece.start):
        full = piece.model.expand(q), piece.model.expand_velocity(q, qd)
        found.append((model.reduce(full[0]), model.reduce_velocity(full[1])))
    (piece.q, piece.qd), piece.start = found
    piece.model, piece.mounted = model, {}


def with_ties(world: "WorldCore", model: Model) -> Model:
    """Copy of the world's model with ties added and released loops removed.

    Bodies that a loop connects do not touch; where it is released, they overlap at its joint still.
    """
    if not (world._ties or world._released):
        return model
    loops = [loop for loop in model.loops if loop.name not in world._released]
    number = {name: i for i, name in enumerate(model.body_names)}
    for (first, second), loop in world._ties.values():
        if first in number and second in number:  # else a part was removed
            loops.append(replace(loop, predecessor=number[first], successor=number[second]))
    names = model.body_names
    apart = [
        ContactPair(names[loop.predecessor], names[loop.successor], touch=False)
        for loop in model.loops
        if loop.name in world._released and loop.predecessor and loop.successor
    ]
    return model.replace(loops=loops, contact_pairs=(*model.contact_pairs, *apart))
