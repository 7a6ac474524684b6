"""Smooth dry friction and stiff limits of joints as tables, and their forces in compiled code.

Exact friction is a row of a step; how large it may be where joints stick more than they slide is
here as well.
"""

from typing import Any

import numpy as np

from kinetree.codegen.procedures import procedure, record, sqrt
from kinetree.contact.scheme.constraints import NO_JOINT_ROWS


@record
class JointLaws:
    """Forces of single variables of the joints that depend on their position and velocity.

    Attributes:
        any: 1 where there are some.
        dry: variables with friction: dry_v: which;  level: force at speed;  width: velocity over
            which it changes sign;  more: additional part of it at rest;  fades: velocity over
            which that is lost.
        stops: ends of travel: stop_q, stop_v: variable;  sign: 1 for a lower one, -1 for an upper
            one;  bound: where;  stiffness, damping: of the stop;  onset: depth over which its
            damper sets in.
        held: variables with exact friction that sticks: held_v, held_level: which, and their level
            at speed;  held_more, held_fades: as of the smooth one.
    """

    any: int
    dry: int
    dry_v: "int[:]"
    level: "float[:]"
    width: "float[:]"
    more: float
    fades: float
    stops: int
    stop_q: "int[:]"
    stop_v: "int[:]"
    sign: "float[:]"
    bound: "float[:]"
    stiffness: "float[:]"
    damping: "float[:]"
    onset: float
    held: int
    held_v: "int[:]"
    held_level: "float[:]"
    held_more: float
    held_fades: float


def joint_laws_of(
    friction: Any = None, limits: Any = None, rows: Any = NO_JOINT_ROWS, of_v: Any = ()
) -> JointLaws:
    """Tables of smooth joint friction, stiff limits and stiction for the compiled step.

    Args:
        friction: the law of friction, or None.
        limits: the stops, or None.
        rows: exact friction, of ``JointRows``.
        of_v: places of their variables among those of all joints.
    """
    more, fades = rows.stiction
    held = rows.friction if more else ()
    found: dict[str, Any] = {"fades": 1.0, "onset": 1.0, "held": len(held)}
    found["held_v"] = np.array([of_v[i] for i, _ in held], dtype=np.int64)
    found["held_level"] = np.array([c for _, c in held], dtype=float)
    found |= {"held_more": more, "held_fades": fades}
    found["any"] = int(friction is not None or limits is not None or bool(held))
    if friction is not None:
        at = np.array(friction.joints, dtype=np.int64)
        level, width = np.array(friction.levels)[at], np.array(friction.width)[at]
        found |= {"dry": len(at), "dry_v": at, "level": level, "width": width}
        found |= {"more": friction.static - 1.0, "fades": friction.stribeck_velocity}
    if limits is not None:
        names = ("stop_q", "stop_v", "sign", "bound", "stiffness", "damping")
        kinds = (np.int64, np.int64, float, float, float, float)
        columns = zip(*limits.stops, strict=True)
        found |= {
            name: np.array(x, dtype=kind)
            for name, x, kind in zip(names, columns, kinds, strict=True)
        }
        found |= {"stops": len(limits.stops), "onset": limits.onset}
    return JointLaws(**found)


@procedure
def add_joint_forces(
    laws: JointLaws, q: "float[:]", v: "float[:]", f: "float[:]", K: "float[:]", D: "float[:]"
):
    """Add forces of joint friction and stops, and the stops' stiffness and damping."""
    for n in range(laws.dry):
        i = laws.dry_v[n]
        u = v[i] / laws.fades
        level = laws.level[n] * (1.0 + laws.more / (1.0 + u * u))
        f[i] -= level * v[i] / sqrt(v[i] * v[i] + laws.width[n] * laws.width[n])
    for n in range(laws.stops):
        i = laws.stop_v[n]
        sign = laws.sign[n]
        p = sign * (laws.bound[n] - q[laws.stop_q[n]])
        if p > 0.0:
            d = laws.damping[n] * (p / (p + laws.onset))
            push = laws.stiffness[n] * p - d * sign * v[i]
            if push > 0.0:
                f[i] += sign * push
                K[i] += laws.stiffness[n]
                D[i] += d


@procedure
def most_friction(laws: JointLaws, v: "float[:]", level: "float[:]"):
    """Write the limits of exact dry friction at velocities ``v`` (Stribeck law)."""
    for n in range(laws.held):
        u = v[laws.held_v[n]] / laws.held_fades
        level[n] = laws.held_level[n] * (1.0 + laws.held_more / (1.0 + u * u))
