"""Attachments and states of bodies and joints when editing numbers and places them anew."""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from kinetree.errors import LoopError, ModelError
from kinetree.joints import AbstractJoint
from kinetree.model.actuator import fit_postures
from kinetree.model.parts import OF_BODIES, OF_JOINTS
from kinetree.model.sensors import KINDS
from kinetree.spatial import Plucker


def transfer_parts(model, number, X) -> dict[str, Any]:
    """Attachments of a model on new body and joint numbers, as fields of a model.

    Args:
        model: what had them.
        number: new body number of every old body, which is also that of its joint.
        X: from the frame of the new body to that of the old one.

    Loop joints keep their numbers.
    """
    kinds = ("frames", "loops", "couplings", "geometry", "actuators", "tendons")
    parts = {kind: [_move(p, number, X) for p in getattr(model, kind)] for kind in kinds}
    carried = (g for g in model.gravity_compensation if number[g.body])
    parts["gravity_compensation"] = [g.moved(number[g.body], X[g.body]) for g in carried]
    wet = (f for f in model.fluid_forces if number[f.body])
    parts["fluid_forces"] = [_move(f, number, X) for f in wet]
    return parts


def _move(part, number, X):
    """Part with new body and joint numbers, and placements on the new bodies."""
    changes = {}
    for f in fields(part):
        x, on = getattr(part, f.name), f.name.removesuffix("placement").rstrip("_") or "body"
        if isinstance(x, Plucker):
            changes[f.name] = x @ X[getattr(part, on)]
        elif f.name in OF_BODIES:
            changes[f.name] = number[x]
        elif f.name in OF_JOINTS and not isinstance(x, AbstractJoint):
            many = isinstance(x, tuple)
            changes[f.name] = tuple(number[i] for i in x) if many else x and number[x]
    return replace(part, **changes)


def transferred_postures(joints, old, actuators=None):
    """Postures for other joints: values of known joints kept, the rest neutral.

    Args:
        joints: those of the new model, in order, also those that follow others.
        old: number that each had in the old model, or None, and the old model.
        actuators: those of the new model, if they are not all of the old one.
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
        q, qd = (tuple(float(x) for y in z for x in y) for z in (q, qd))
        result.append(replace(p, q=q, qd=qd))
    return result if actuators is None else fit_postures(result, model.actuators, actuators)


def inside(model, bodies, body):
    """Model restricted to attachments on some bodies; LoopError if loops cross the cut.

    Raises:
        LoopError: for a loop, a coupling or a tendon between one of them and another body.
    """
    for loop in model.loops:
        ends = (loop.predecessor, loop.successor)
        if (ends[0] in bodies) != (ends[1] in bodies):
            outside = model.body_names[ends[0] if ends[1] in bodies else ends[1]]
            whole = max(set(model.support[ends[0]]) & set(model.support[ends[1]]), default=0)
            raise LoopError(
                f"loop joint {loop.name!r} ties the subtree of {body!r} to body {outside!r} "
                f"outside of it, and alone it would not move as it does there: take the subtree "
                f"of {model.body_names[whole]!r}, which has the whole loop, or remove the loop "
                f"first (model.replace(loops=...))"
            )
    for c in model.couplings:
        if any((c.joint in bodies) != (i in bodies) for i in c.leaders):
            raise LoopError(
                f"coupling {c.name!r} leads out of the subtree of {body!r}: remove it first "
                f"(model.replace(couplings=...))"
            )
    for t in model.tendons:
        on = [model.frame(name).body for name in t.frames]
        if len({i in bodies for i in (*t.joints, *on)}) > 1:
            raise LoopError(
                f"tendon {t.name!r} leads out of the subtree of {body!r}: remove it first "
                f"(model.replace(tendons=...))"
            )
    model = model.replace(actuators=[a for a in model.actuators if _within(model, a, bodies)])
    on = (
        s for s in model.sensors if KINDS[s.kind].of != "frame" or model.frame(s.of).body in bodies
    )
    seen_from = [c for c in model.cameras if model.frame(c.of or model.base_name).body in bodies]
    return model.replace(sensors=on, cameras=seen_from).replace(
        frames=[f for f in model.frames if f.body in bodies],
        loops=[loop for loop in model.loops if loop.predecessor in bodies],
        couplings=[c for c in model.couplings if c.joint in bodies],
        geometry=[g for g in model.geometry if g.body in bodies],
        tendons=[t for t in model.tendons if _runs_within(model, t, bodies)],
        gravity_compensation=[g for g in model.gravity_compensation if g.body in bodies],
        fluid_forces=[f for f in model.fluid_forces if f.body in bodies],
    )


def _runs_within(model, tendon, bodies):
    """Whether a tendon runs only over joints and frames of some bodies."""
    return {*tendon.joints, *(model.frame(name).body for name in tendon.frames)} <= {*bodies}


def _within(model, actuator, bodies):
    """Whether an actuator drives only joints and frames of some bodies."""
    ends = [model.frame(name).body for name in (actuator.frame, actuator.reference) if name]
    return all(i in bodies for i in (*ends, *([actuator.joint] if actuator.joint else [])))


# --- held joints, and those that follow them alone -----------------------------------------------


def held_positions(model, positions):
    """Positions (nq,) of every joint that is fixed, by number, coupled ones included.

    Args:
        model: the model.
        positions: position variables by joint name, a number or (nq,).
    """
    held = {model.joint_index(name): _position(model, name, q) for name, q in positions.items()}
    leader = {c.joint: c for c in model.couplings}
    for i in list(held):
        if i in leader and not leader[i].leaders:
            _follow(model, leader[i], held)
    waiting = [c for c in model.couplings if c.leaders]
    while ready := [c for c in waiting if all(i in held for i in c.leaders)]:
        for c in ready:
            waiting.remove(c)
            _follow(model, c, held)
    for i in held:
        if i in leader and not all(k in held for k in leader[i].leaders):
            c, names = leader[i], model.joint_names
            leads = " and ".join(repr(names[k - 1]) for k in c.leaders)
            raise ModelError(
                f"joint {names[i - 1]!r} follows {leads} by coupling {c.name!r} "
                f"and cannot be locked alone: lock {leads}, or remove the coupling"
            )
    return held


def _position(model, name, q):
    """Position of a joint as an array; ModelError for a wrong size or value."""
    joint = model.bodies[model.joint_index(name) - 1].joint
    q = np.atleast_1d(np.asarray(q))
    if q.shape != (joint.nq,):
        raise ModelError(f"joint {name!r} has {joint.nq} position variables, got {q.tolist()}")
    defect = joint.defect(q)
    if defect:
        raise ModelError(f"joint {name!r} cannot be locked there: {defect}")
    return q


def _follow(model, c, held):
    """Set the position of the joint that follows fixed leaders; ModelError if it differs."""
    names = model.joint_names
    q = np.atleast_1d(c.position([held[i][0] for i in c.leaders]))
    given = held.setdefault(c.joint, q)
    if abs(given[0] - q[0]) > 1e-9 * (1 + abs(q[0])):
        raise ModelError(
            f"coupling {c.name!r} holds joint {names[c.joint - 1]!r} at {q[0]:.6g}; it cannot be "
            f"locked at {given[0]:.6g}"
        )


# --- motion of bodies and loops ------------------------------------------------------------------


def body_motion(model, i, q, qd):
    """Transform from the base to body ``i``, and its velocity, in its coordinates."""
    if model.couplings:
        return body_motion(model.uncoupled, i, model.expand(q), model.expand_velocity(q, qd))
    X, v = model.identity_transform, model.zero_motion
    for k in model.support[i]:
        X_J, _, v_J, _ = model.jcalc(k, q, qd)
        X_k = X_J @ model.tree_transform[k]
        X, v = X_k @ X, X_k @ v + v_J
    return X, v


def loop_state(model, loop, q, qd):
    """Position and velocity variables of a loop joint, from the poses of its bodies."""
    (X_p, v_p), (X_s, v_s) = (
        body_motion(model, i, q, qd) for i in (loop.predecessor, loop.successor)
    )
    X_p, X_s = loop.predecessor_placement @ X_p, loop.successor_placement @ X_s
    X_J = X_s @ X_p.inverse()
    v_J = loop.successor_placement @ v_s - X_J @ (loop.predecessor_placement @ v_p)
    q_k = loop.joint.coordinates(X_J)
    _, _, sigma, _ = loop.joint.jcalc(q_k, np.zeros(loop.joint.nv))
    return q_k, loop.joint.velocity_variables(q_k, v_J - sigma)
