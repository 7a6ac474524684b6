"""Equality constraints of a compiled MuJoCo model as loop joints and couplings.

MuJoCo's constraints are soft springs and dampers; ours hold exactly.
"""

import numpy as np

from kinetree.joints import Fixed, Spherical
from kinetree.loaders.mjcf.joints import disabled
from kinetree.loaders.mjcf.names import names_of, unused
from kinetree.loaders.mjcf.numbers import placement, shift
from kinetree.model import Coupling, Loop

__all__ = ["constraints_of"]

CONNECT, WELD, JOINT = range(3)  # mjtEq
_TAGS = {CONNECT: "connect", WELD: "weld", JOINT: "joint", 3: "tendon"}
_SITE = 6  # mjtObj


def constraints_of(mj_model, tree, tell):
    """Loops and couplings."""
    loops, couplings = [], []
    taken = {*tree.joint_names, *(b.joint_name for b in tree.bodies)}
    number = {b.joint_name: i for i, b in enumerate(tree.bodies, start=1)}
    off = disabled(mj_model, "EQUALITY") or disabled(mj_model, "CONSTRAINT")
    for e, given in enumerate(names_of(mj_model, "eq")):
        kind = int(mj_model.eq_type[e])
        tag = _TAGS.get(kind, "flex")
        if off or not mj_model.eq_active0[e]:
            tell(tag, given, "this constraint is switched off, and left out")
            continue
        if kind not in (CONNECT, WELD, JOINT):
            tell(tag, given, f"an equality of {tag}s has no counterpart here")
            continue
        name = unused(given or f"{tag}_{e}", tag, taken)
        if kind == JOINT:
            couplings.append(_coupling(mj_model, e, name, tree.joint_names, number))
        else:
            loop = _loop(mj_model, e, name, kind, tree.places)
            if loop.predecessor == loop.successor:
                tell(tag, given, "both ends are on one body; nothing moves, and it is left out")
            else:
                loops.append(loop)
    return tuple(loops), tuple(couplings)


def _coupling(mj_model, e, name, joint_names, number):
    """The polynomial is in deviations from ``qpos0``, which our variables are."""
    follower, leader = int(mj_model.eq_obj1id[e]), int(mj_model.eq_obj2id[e])
    coefficients = [float(c) for c in mj_model.eq_data[e, :5]]
    if leader < 0:
        return Coupling(name, number[joint_names[follower]], 0, (coefficients[0],))
    while len(coefficients) > 2 and coefficients[-1] == 0:
        coefficients.pop()
    ends = number[joint_names[follower]], number[joint_names[leader]]
    return Coupling(name, *ends, tuple(coefficients))


def _loop(mj_model, e, name, kind, places):
    ends = [int(mj_model.eq_obj1id[e]), int(mj_model.eq_obj2id[e])]
    data = np.array(mj_model.eq_data[e])
    if int(mj_model.eq_objtype[e]) == _SITE:
        X = [placement(mj_model.site_pos[s], mj_model.site_quat[s]) for s in ends]
        ends = [int(mj_model.site_bodyid[s]) for s in ends]
        if kind == CONNECT:
            X = [shift(x.r) for x in X]
    elif kind == CONNECT:
        X = [shift(data[:3]), shift(data[3:6])]
    else:
        X = [placement(data[3:6], data[6:10]), shift(data[:3])]
    (p, X_P), (s, X_S) = ((places[b].body, x @ places[b].X) for b, x in zip(ends, X, strict=True))
    return Loop(name, p, s, Spherical() if kind == CONNECT else Fixed(), X_P, X_S)
