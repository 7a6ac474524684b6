"""Changing the structure of a model without changing its physics.

Every function returns a new model. Bodies and joints keep their names; frames and loops go along.
"""

from dataclasses import replace

import numpy as np

from kinetree.errors import LoopError, ModelError
from kinetree.joints import Fixed, Free
from kinetree.model.mechanism import MechanismGraph
from kinetree.model.model import Model
from kinetree.model.parts import Body, Frame, as_placement
from kinetree.spatial import Inertia, Plucker

__all__ = ["attach", "extract", "floating", "lock", "lump_fixed", "reroot"]


def lump_fixed(model) -> Model:
    """Every body on a fixed joint becomes part of its parent; its name stays as a frame.

    What is fixed to the base loses its mass, which never moved. The variables stay the same.
    """
    owner, X = [0], [Plucker.identity()]  # the new body, and from there to the old body's frame
    inertia, kept, merged = [None], [], []
    for i, b in enumerate(model.bodies, start=1):
        p = b.parent
        if isinstance(b.joint, Fixed):
            owner.append(owner[p])
            X.append(b.placement @ X[p])
            merged.append(Frame(b.name, owner[i], X[i]))
            if owner[i] != 0:
                inertia[owner[i]] = inertia[owner[i]] + b.inertia.inverse_transformed(X[i])
        else:
            kept.append(replace(b, parent=owner[p], placement=b.placement @ X[p]))
            owner.append(len(kept))
            X.append(Plucker.identity())
            inertia.append(b.inertia)
    bodies = [replace(b, inertia=I) for b, I in zip(kept, inertia[1:], strict=True)]
    frames, loops = _carried(model, owner, X)
    for old, new in zip(model.loops, loops, strict=True):
        if new.predecessor == new.successor:
            ends = (model.body_names[k] for k in (old.predecessor, old.successor))
            raise LoopError(
                f"loop joint {old.name!r} connects {' and '.join(map(repr, ends))}, which fixed "
                f"joints make one body: remove the loop first"
            )
    return model.replace(bodies=bodies, frames=(*frames, *merged), loops=loops)


def lock(model, positions, *, lump=False) -> Model:
    """Joints held where they are: each becomes fixed.

    Args:
        model: the model.
        positions: position variables by joint name, a number or (nq,).
        lump: merge the bodies as well, as ``lump_fixed`` does with all fixed joints.
    """
    if not isinstance(positions, dict):
        raise ModelError(
            f"lock needs positions by joint name, such as {{'elbow': 0.5}}, got {positions!r}"
        )
    joints, placements = {}, {}
    for name, q in positions.items():
        body = model.bodies[model.joint_index(name) - 1]
        q = np.atleast_1d(np.asarray(q))
        if q.shape != (body.joint.nq,):
            raise ModelError(
                f"joint {name!r} has {body.joint.nq} position variables, got {q.tolist()}"
            )
        defect = body.joint.defect(q)
        if defect:
            raise ModelError(f"joint {name!r} cannot be locked there: {defect}")
        joints[name] = Fixed()
        placements[name] = body.joint.transform(q) @ body.placement
    locked = model.replace(joint=joints, placement=placements, limits=dict.fromkeys(joints))
    return lump_fixed(locked) if lump else locked


def reroot(model, body) -> Model:
    """The same floating mechanism with its free joint at another body — RBDA §4.1.

    Joints on the way to the old root are turned round, with the same variables. The free joint
    keeps its name and now says where ``body`` is. Frames that had to move leave ``<body>_link``
    behind, as in ``MechanismGraph.to_model``.
    """
    i = model.body_index(body)
    if i == 0:
        raise ModelError(f"{body!r} is the base; choose a moving body as the new root")
    root = model.bodies[model.support[i][0] - 1]
    if not isinstance(root.joint, Free):
        raise ModelError(
            f"body {body!r} hangs on the base by joint {root.joint_name!r}, a "
            f"{type(root.joint).__name__}; only a mechanism on a Free joint can change its root "
            f"(floating(model) makes one)"
        )
    graph = MechanismGraph(model.name, gravity=model.gravity, base_name=model.base_name)
    return (
        graph.add_model(model, without=(root.joint_name,))
        .joint(
            root.joint_name,
            root.joint,
            predecessor=model.base_name,
            successor=body,
            at=root.placement,
            limits=root.limits,
        )
        .to_model(tree_joints=model.joint_names, strict=model.strict)
    )


def attach(model, other, *, on=None, at=None, prefix="") -> Model:
    """Mount ``other`` on a body or frame of ``model``: its base becomes part of that body.

    Args:
        model: what carries; its gravity holds for both.
        other: what is carried.
        on: name of a body or frame of ``model``; the base by default.
        at: where on it the base of ``other`` sits: a position (3,) or a ``Plucker``.
        prefix: put before every name of ``other``; its base stays as a frame of that name.
    """
    frame = model.frame(model.base_name if on is None else on)
    mount, shift = as_placement(at) @ frame.placement, model.body_count
    count = other.body_count + 1
    number = [frame.body, *(shift + i for i in range(1, count))]
    X = [mount] + [Plucker.identity()] * (count - 1)
    bodies = [
        replace(
            b,
            name=prefix + b.name,
            joint_name=prefix + b.joint_name,
            parent=number[b.parent],
            placement=b.placement @ X[b.parent],
        )
        for b in other.bodies
    ]
    frames, loops = _carried(other, number, X)
    frames = [replace(f, name=prefix + f.name) for f in frames]
    if prefix + other.base_name not in (*model.body_names, *model.frame_names):
        frames.append(Frame(prefix + other.base_name, frame.body, mount))
    loops = [replace(loop, name=prefix + loop.name) for loop in loops]
    return model.replace(
        bodies=(*model.bodies, *bodies),
        frames=(*model.frames, *frames),
        loops=(*model.loops, *loops),
    )


def extract(model, body) -> Model:
    """A body with everything beyond it, as a model of its own; the parent becomes the base.

    Base coordinates are then those of the parent body, gravity included: it is as if the parent
    stood still and level. A loop that leads out of the subtree has no place here and is an error.
    """
    i = model.body_index(body)
    if i == 0:
        return model
    inside = model.subtree[i]
    number = [None] * (model.body_count + 1)
    number[model.parent[i]] = 0
    for new, old in enumerate(inside, start=1):
        number[old] = new
    for loop in model.loops:
        if (loop.predecessor in inside) != (loop.successor in inside):
            raise LoopError(
                f"loop joint {loop.name!r} leads out of the subtree of {body!r}: remove it first "
                f"(model.replace(loops=...))"
            )
    part = model.replace(
        frames=[f for f in model.frames if f.body in inside],
        loops=[loop for loop in model.loops if loop.predecessor in inside],
    )
    frames, loops = _carried(part, number, [Plucker.identity()] * len(number))
    bodies = [replace(model.bodies[k - 1], parent=number[model.parent[k]]) for k in inside]
    base_name = model.body_names[model.parent[i]]
    return part.replace(bodies=bodies, frames=frames, loops=loops, base_name=base_name, name=body)


def floating(model, *, inertia=None, world="world", joint_name="floating") -> Model:
    """The base set free: it becomes body 1, on a free joint.

    Args:
        model: a model with a fixed base.
        inertia: of the former base; massless by default.
        world: name of the new base.
        joint_name: name of the free joint.
    """
    inertia = Inertia.zero() if inertia is None else inertia
    root = Body(model.base_name, 0, Free(), Plucker.identity(), inertia, joint_name)
    number = range(1, model.body_count + 2)
    frames, loops = _carried(model, number, [Plucker.identity()] * len(number))
    bodies = [replace(b, parent=b.parent + 1) for b in model.bodies]
    return model.replace(bodies=(root, *bodies), frames=frames, loops=loops, base_name=world)


def _carried(model, number, X):
    """Frames and loops on new body numbers, ``X[i]`` from there to the frame of old body ``i``."""
    frames = [
        replace(f, body=number[f.body], placement=f.placement @ X[f.body]) for f in model.frames
    ]
    loops = [
        replace(
            loop,
            predecessor=number[loop.predecessor],
            successor=number[loop.successor],
            predecessor_placement=loop.predecessor_placement @ X[loop.predecessor],
            successor_placement=loop.successor_placement @ X[loop.successor],
        )
        for loop in model.loops
    ]
    return frames, loops
