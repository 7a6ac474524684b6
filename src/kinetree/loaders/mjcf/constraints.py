"""Equality constraints of a compiled MuJoCo model, as loops and couplings.

MuJoCo's constraints are soft springs and dampers; ours hold exactly.
"""

from types import SimpleNamespace

import numpy as np

from kinetree.joints import Fixed, Spherical
from kinetree.loaders.mjcf.joints import is_disabled
from kinetree.loaders.mjcf.tendons import terms
from kinetree.loaders.mjcf.values import names_of, placement, shift, unused_name
from kinetree.model import Coupling, Loop
from kinetree.model.gearing import with_leaders

ATTRIBUTES = {
    "connect": {"name", "class", "active", "body1", "body2", "anchor", "site1", "site2"},
    "weld": {"name", "class", "active", "body1", "body2", "relpose", "anchor", "site1", "site2"},
    "equality/joint": {"name", "class", "active", "joint1", "joint2", "polycoef"},
    "equality/tendon": {"name", "class", "active", "tendon1", "tendon2", "polycoef"},
    "equality": {"active"},
}
"""Attributes of MJCF that a model represents, by element; the rest is noted."""

CONNECT, WELD, JOINT, TENDON = range(4)  # mjtEq
_TAGS = {CONNECT: "connect", WELD: "weld", JOINT: "joint", TENDON: "tendon"}
_NOTED = {kind: f"equality/{tag}" for kind, tag in _TAGS.items()}
_WOULD_BE = {
    CONNECT: "a spherical loop joint", WELD: "a fixed loop joint", JOINT: "a coupling of joints",
    TENDON: "a coupling of joints",
}  # fmt: skip
_SITE = 6  # mjtObj


def constraints_of(mj_model, tree, note):
    """Loops and couplings for the equality constraints of a MuJoCo model."""
    loops, laws = [], []
    taken = {*tree.joint_names, *(b.joint_name for b in tree.bodies)}
    off = is_disabled(mj_model, "EQUALITY") or is_disabled(mj_model, "CONSTRAINT")
    for e, given in enumerate(names_of(mj_model, "eq")):
        kind = int(mj_model.eq_type[e])
        tag = _TAGS.get(kind, "flex")
        if kind not in _TAGS:
            note("equality/flex", given, "an equality of flexible bodies has no counterpart here")
            continue
        if off or not mj_model.eq_active0[e]:
            why = f"this constraint is switched off, and left out; it would be {_WOULD_BE[kind]}"
            why += _switched_on(mj_model, e, given or tag, tree)
            note(_NOTED[kind], given, why, "setting")
            continue
        name = unused_name(given or f"{tag}_{e}", tag, taken)
        if kind in (JOINT, TENDON):
            laws.append((kind, e, name, given))
            continue
        loop = _loop(mj_model, e, name, kind, tree, note)
        if loop.predecessor == loop.successor:
            why = "both ends are on one body; nothing moves, and it is left out"
            note(_NOTED[kind], given, why, "setting")
        else:
            loops.append(loop)
    return tuple(loops), _couplings(mj_model, tree, laws, note)


def _switched_on(mj_model, e, name, tree):
    """Advice how to enable an inactive equality constraint in a running world."""
    if mj_model.eq_type[e] not in (CONNECT, WELD):
        return (
            f'. With active="true" in the file, World.release({name!r}) switches it off and '
            f"World.hold({name!r}) on"
        )
    ends, what = [int(mj_model.eq_obj1id[e]), int(mj_model.eq_obj2id[e])], "body"
    names = tree.body_names
    if int(mj_model.eq_objtype[e]) == _SITE:
        what, names = "site", names_of(mj_model, "site")
    first, second = (names[i] or f"{what}_{i}" for i in ends)
    joint = ", joint=kt.Spherical(), at=..." if mj_model.eq_type[e] == CONNECT else ""
    return f". World.tie({name!r}, {first!r}, {second!r}{joint}) holds them where they are then"


def _loop(mj_model, e, name, kind, tree, note):
    """Loop joint for an equality constraint between two bodies."""
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
    for b in ends:
        if mj_model.body_mocapid[b] >= 0:
            why = (
                f"it holds a body to mocap body {tree.body_names[b]!r}, which nothing moves here; "
                f"World.release({name!r}) lets it go"
            )
            note(_NOTED[kind], names_of(mj_model, "eq")[e], why)
    places = [tree.places[b] for b in ends]
    (p, X_P), (s, X_S) = ((at.body, x @ at.X) for at, x in zip(places, X, strict=True))
    return Loop(name, p, s, Spherical() if kind == CONNECT else Fixed(), X_P, X_S)


# --- Joints and tendons: ``Σ c_i q_i = p(Σ d_j q_j)``, in deviations from ``qpos0``, as ours are --


def _couplings(mj_model, tree, laws, note):
    """Couplings for joint and tendon equalities: one joint of each follows the others."""
    number = {b.joint_name: i for i, b in enumerate(tree.bodies, start=1)}
    found: list[Coupling] = []
    for kind, e, name, given in sorted(laws, key=lambda law: law[0]):
        sides = []
        for end in (int(mj_model.eq_obj1id[e]), int(mj_model.eq_obj2id[e])):
            side = {end: 1.0} if kind == JOINT else terms(mj_model, end)
            sides.append({} if end < 0 else side)
        if None in sides:
            note(_NOTED[kind], given, "an equality of tendons through sites is not represented")
            continue
        left, right = ({number[tree.joint_names[j]]: c for j, c in s.items()} for s in sides)
        polynomial = [float(c) for c in mj_model.eq_data[e, : 5 if right else 1]]
        while len(polynomial) > 1 and polynomial[-1] == 0:
            polynomial.pop()
        coupling = _coupling(name, left, right, polynomial, found)
        if isinstance(coupling, Coupling):
            found.append(coupling)
        else:
            note(_NOTED[kind], given, *coupling)
    return tuple(found)


def _coupling(name, left, right, polynomial, others):
    """Coupling of a polynomial equality, or the reason why there is none and its effect.

    The joint that follows is the only one of the left side, or that of the largest coefficient
    that follows nothing yet and that no other joint of the law follows.
    """
    following = {c.joint for c in others}

    def can_follow(joint, leaders):
        led = with_leaders(SimpleNamespace(couplings=others), leaders)
        return joint not in following and joint not in led

    if len(polynomial) > 2:
        joint = next(iter(left))
        if len(left) > 1 or not can_follow(joint, right):
            why = "a polynomial law in which no joint can follow the others alone is left out"
            return why, "motion"
        c = left[joint]
        return _law(name, joint, right, tuple(p / c for p in polynomial))
    constant, ratio = (*polynomial, 0.0)[:2]
    total = {j: left.get(j, 0.0) - ratio * right.get(j, 0.0) for j in {**left, **right}}
    for law in ((constant, total), _in_leaders(constant, total, others)):
        constant, total = law[0], {j: c for j, c in law[1].items() if abs(c) > 1e-14}
        if not total:
            if abs(constant) < 1e-14:
                return "it says nothing beside the other equalities: it is left out", "setting"
            return "nothing can satisfy it beside the other equalities: it is left out", "motion"
        order = sorted(total, key=lambda j: (j not in left or len(left) > 1, -abs(total[j])))
        for joint in order:
            leaders = {j: -c / total[joint] for j, c in total.items() if j != joint}
            if can_follow(joint, leaders):
                return _law(name, joint, leaders, (constant / total[joint] + 0.0, 1.0))
    return "its joints follow others already, by other equalities: it is left out", "motion"


def _in_leaders(constant, total, others):
    """Linear equality ``Σ c_i q_i = constant`` rewritten in independent joints."""
    total, linear = dict(total), {c.joint: c for c in others if c.is_linear}
    while joint := next((j for j in total if j in linear), None):
        c, share = linear[joint], total.pop(joint)
        first, ratio = (*c.coefficients, 0.0)[:2]
        constant = constant - share * first
        for j, w in zip(c.leaders, c.shares, strict=True):
            total[j] = total.get(j, 0.0) + share * ratio * w
    return constant, total


def _law(name, joint, leaders, polynomial):
    """Coupling by a polynomial of ``Σ w_i q_i``; a single leader absorbs its weight."""
    if not leaders:
        return Coupling(name, joint, 0, polynomial[:1])
    if len(leaders) > 1:
        sources, weights = zip(*leaders.items(), strict=True)
        return Coupling(name, joint, 0, polynomial, sources, weights)
    ((leader, w),) = leaders.items()
    return Coupling(name, joint, leader, tuple(p * w**k for k, p in enumerate(polynomial)))
