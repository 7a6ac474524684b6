"""Taking along what is attached to bodies and joints when these get other numbers and frames."""

from dataclasses import replace

import numpy as np

from kinetree.errors import LoopError
from kinetree.model.parts import Posture

__all__ = ["carried", "carried_postures", "inside"]


def carried(model, number, X):
    """Frames, loops, couplings, geometry and actuators on new numbers, as fields of a model.

    Args:
        model: what had them.
        number: new body number of every old body, which is also that of its joint.
        X: from the frame of the new body to that of the old one.

    Loop joints keep their numbers.
    """
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
    couplings = [
        replace(
            c,
            joint=number[c.joint],
            source=c.source and number[c.source],
            sources=tuple(number[i] for i in c.sources),
        )
        for c in model.couplings
    ]
    geometry = [
        replace(g, body=number[g.body], placement=g.placement @ X[g.body]) for g in model.geometry
    ]
    actuators = [a if a.loop else replace(a, joint=number[a.joint]) for a in model.actuators]
    return {
        "frames": frames,
        "loops": loops,
        "couplings": couplings,
        "geometry": geometry,
        "actuators": actuators,
    }


def carried_postures(joints, old):
    """Postures for other joints: what they say of each joint stays, the rest is neutral.

    Args:
        joints: those of the new model, in order, also those that follow others.
        old: number that each had in the old model, or None, and the old model.
    """
    numbers, model = old
    result, model = [], model.uncoupled
    for p in model.postures:
        q = [
            joint.neutral() if i is None else p.q[model.q_slice[i]]
            for i, joint in zip(numbers, joints, strict=True)
        ]
        qd = [
            np.zeros(joint.nv) if i is None else p.qd[model.v_slice[i]]
            for i, joint in zip(numbers, joints, strict=True)
            if p.moves
        ]
        result.append(Posture(p.name, *(tuple(float(x) for y in z for x in y) for z in (q, qd))))
    return result


def inside(model, bodies, body):
    """The model with only what is attached to some bodies; ``body`` is where they begin.

    Raises:
        LoopError: for a loop or a coupling between one of them and another body.
    """
    for loop in model.loops:
        if (loop.predecessor in bodies) != (loop.successor in bodies):
            raise LoopError(
                f"loop joint {loop.name!r} leads out of the subtree of {body!r}: remove it first "
                f"(model.replace(loops=...))"
            )
    for c in model.couplings:
        if any((c.joint in bodies) != (i in bodies) for i in c.leaders):
            raise LoopError(
                f"coupling {c.name!r} leads out of the subtree of {body!r}: remove it first "
                f"(model.replace(couplings=...))"
            )
    kept = model.replace(
        frames=[f for f in model.frames if f.body in bodies],
        loops=[loop for loop in model.loops if loop.predecessor in bodies],
        couplings=[c for c in model.couplings if c.joint in bodies],
        geometry=[g for g in model.geometry if g.body in bodies],
    )
    return kept.replace(actuators=[a for a in kept.actuators if a.loop or a.joint in bodies])
