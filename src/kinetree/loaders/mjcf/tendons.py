"""Tendons and gravity compensation of a compiled MuJoCo model.

The length of a fixed tendon is ``Σ c_i qpos_i``; our variables are ``qpos - qpos0``, so that
``Σ c_i qpos0_i`` is our offset and lengths are the same numbers. Spatial tendons run through
frames: those of sites, and of geoms that they wind around.
"""

import math

import numpy as np

from kinetree.loaders.mjcf.joints import actuators_on, is_disabled
from kinetree.loaders.mjcf.values import names_of, placement, unused_name
from kinetree.model import Frame, GravityCompensation, Pulley, Tendon, Wrap
from kinetree.model.rotors import with_rotors

_OF_BOTH = {
    "name", "class", "limited", "range", "springlength", "stiffness", "damping", "frictionloss",
    "springyield", "armature",
}  # fmt: skip
ATTRIBUTES = {
    "tendon": _OF_BOTH,
    "fixed": _OF_BOTH,
    "spatial": _OF_BOTH,
    "tendon/joint": {"joint", "coef"},
    "tendon/site": {"site"},
    "tendon/geom": {"geom", "sidesite"},
    "pulley": {"divisor"},
}
"""Attributes of MJCF that a model represents, by element; the rest is noted."""
_WHY = {
    "springyield": "a spring that yields is taken as elastic",
}
NOTED = dict.fromkeys(("tendon", "fixed", "spatial"), _WHY)
"""Attributes that are noted by name where they act, and why."""

_JOINT, _PULLEY, _SITE, _SPHERE, _CYLINDER = 1, 2, 3, 4, 5  # mjtWrap
_SHAPES = {_SPHERE: "sphere", _CYLINDER: "cylinder"}
_TENDON, _ON_TENDON, _EQUALITY = 18, 3, 3  # mjtObj, mjtTrn, mjtEq


def tendon_names(mj_model):
    """Names of all tendons; unnamed ones by number."""
    taken: set = set()
    given = names_of(mj_model, "tendon")
    return [unused_name(name or f"tendon_{t}", "tendon", taken) for t, name in enumerate(given)]


def terms(mj_model, t):
    """Coefficients of a fixed tendon by MuJoCo joint number; None for spatial ones."""
    first = int(mj_model.tendon_adr[t])
    parts = range(first, first + int(mj_model.tendon_num[t]))
    if any(mj_model.wrap_type[w] != _JOINT for w in parts):
        return None
    found: dict[int, float] = {}
    for w in parts:
        j = int(mj_model.wrap_objid[w])
        found[j] = found.get(j, 0.0) + float(mj_model.wrap_prm[w])
    return found


def wrapped_frames(mj_model, tree, taken) -> dict[int, Frame]:
    """Frames of the geoms that tendons wrap around, by geom number.

    Args:
        mj_model: the compiled model.
        tree: our bodies.
        taken: names that frames cannot have.
    """
    taken, given, found = set(taken), names_of(mj_model, "geom"), {}
    around = np.isin(mj_model.wrap_type, list(_SHAPES))
    for g in sorted({int(g) for g in mj_model.wrap_objid[around]}):
        place = tree.places[mj_model.geom_bodyid[g]]
        X = placement(mj_model.geom_pos[g], mj_model.geom_quat[g]) @ place.X
        found[g] = Frame(unused_name(given[g] or f"geom_{g}", "geom", taken), place.body, X)
    return found


def tendons_of(mj_model, tree, note, sites, shapes):
    """Tendons of a MuJoCo model, except those that only serve an equality.

    Args:
        mj_model: the compiled model.
        tree: our bodies.
        note: for what is not represented.
        sites: our frames of all sites.
        shapes: ``wrapped_frames``.
    """
    number = {b.joint_name: i for i, b in enumerate(tree.bodies, start=1)}
    found = []
    for t, name in enumerate(tendon_names(mj_model)):
        over, used = terms(mj_model, t), _is_used(mj_model, t) or armature_of(mj_model, t) != 0
        equal, kind = t in _equal(mj_model), "spatial" if over is None else "fixed"
        forces = _forces(mj_model, t, kind, name, note)
        if over is None:
            found.append(Tendon(name, path=_path(mj_model, t, sites, shapes), **forces))
            continue
        if equal and not forces and not used:
            continue
        offset = sum(c * mj_model.qpos0[mj_model.jnt_qposadr[j]] for j, c in over.items())
        joints = tuple(number[tree.joint_names[j]] for j in over)
        found.append(Tendon(name, joints, tuple(over.values()), float(offset), **forces))
    return tuple(found)


def _path(mj_model, t, sites, shapes):
    """Path of a spatial tendon: sites, wraps and pulleys."""
    first, found = int(mj_model.tendon_adr[t]), []
    for w in range(first, first + int(mj_model.tendon_num[t])):
        kind, i, x = mj_model.wrap_type[w], int(mj_model.wrap_objid[w]), mj_model.wrap_prm[w]
        if kind == _PULLEY:
            found.append(Pulley(float(x)))
        elif kind == _SITE:
            found.append(sites[i].name)
        else:
            side = sites[round(x)].name if x >= 0 else ""
            radius = float(mj_model.geom_size[i, 0])
            found.append(Wrap(shapes[i].name, _SHAPES[int(kind)], radius, side))
    return tuple(found)


def _is_used(mj_model, t):
    """Whether an actuator drives a tendon or a sensor measures it."""
    pulled = (mj_model.actuator_trntype == _ON_TENDON) & (mj_model.actuator_trnid[:, 0] == t)
    measured = (mj_model.sensor_objtype == _TENDON) & (mj_model.sensor_objid == t)
    return bool(np.any(pulled) or np.any(measured))


def _equal(mj_model):
    """Numbers of the tendons in equality constraints."""
    about = mj_model.eq_type == _EQUALITY
    return {int(t) for ids in (mj_model.eq_obj1id, mj_model.eq_obj2id) for t in ids[about]}


def _forces(mj_model, t, kind, name, note):
    """Spring, damper, friction and limits of a tendon, as fields."""
    found, driven = {}, list(actuators_on(mj_model, t, kind, name, note))
    for ours, theirs, flag in (
        ("stiffness", "stiffness", "SPRING"),
        ("damping", "damping", "DAMPER"),
        ("friction", "frictionloss", "FRICTIONLOSS"),
    ):
        value = float(getattr(mj_model, f"tendon_{theirs}")[t])
        value += float(sum(d for _, d in driven)) if ours == "damping" else 0.0
        if value and is_disabled(mj_model, flag):
            why = f"the option flag switches its {ours} off, so it has none here"
            note(kind, name, why, "setting")
        elif value:
            found[ours] = value
    for field, what in (
        ("tendon_stiffnesspoly", "stiffness beyond the linear term is not represented"),
        ("tendon_dampingpoly", "damping beyond the linear term is not represented"),
        ("tendon_springyield", _WHY["springyield"]),
    ):
        if np.any(getattr(mj_model, field, np.zeros(t + 1))[t]):
            note(kind, name, what)
    if getattr(mj_model, "tendon_actfrclimited", np.zeros(t + 1))[t]:
        note(kind, name, "its actuatorfrcrange is not represented", "control")
    if "stiffness" in found:
        low, high = mj_model.tendon_lengthspring[t]
        found["rest"] = float(low), float(high)
    if mj_model.tendon_limited[t] and not is_disabled(mj_model, "LIMIT"):
        found["lower"], found["upper"] = (float(x) for x in mj_model.tendon_range[t])
    return found


# --- armature ------------------------------------------------------------------------------------


def armature_of(mj_model, t) -> float:
    """Inertia along a tendon, including its actuators' armature."""
    own = getattr(mj_model, "tendon_armature", np.zeros(t + 1))[t]
    driven = actuators_on(mj_model, t, "tendon", "", lambda *_: None)
    return float(own + sum(armature for armature, _ in driven))


def with_armature(mj_model, model, note):
    """Model with a rotor for every tendon that has armature."""
    found, full = {}, model.uncoupled
    for t, name in enumerate(tendon_names(mj_model)):
        armature = armature_of(mj_model, t)
        if not armature:
            continue
        movers = model.tendon(name).moves_with(full)
        several = [full.joint_names[i - 1] for i in movers if full.joint[i].nv != 1]
        if several:
            kind = "spatial" if terms(mj_model, t) is None else "fixed"
            why = f"its armature is not represented: joint {several[0]!r}, which has several "
            note(kind, name, why + "variables, moves it")
        else:
            found[name] = armature
    return with_rotors(model, found) if found else model


# --- gravity compensation ------------------------------------------------------------------------


def gravity_compensation_of(mj_model, tree, note):
    """Gravity compensation of MuJoCo's bodies, combined per body of the model."""
    if is_disabled(mj_model, "SPRING") and is_disabled(mj_model, "DAMPER"):
        return ()  # which switches all passive forces off
    parts: dict[int, list] = {}
    for b in np.flatnonzero(mj_model.body_gravcomp):
        mass = float(mj_model.body_gravcomp[b] * mj_model.body_mass[b])
        body, X = tree.places[b]
        if mass and body:
            part = GravityCompensation(body, mass, tuple(mj_model.body_ipos[b].tolist()))
            parts.setdefault(body, []).append(part.moved(body, X))
    counted = getattr(mj_model, "jnt_actgravcomp", np.zeros(mj_model.njnt))
    for j in np.flatnonzero(counted if parts and not mj_model.nu else 0 * counted):
        why = (
            "actuatorgravcomp compensates nothing in MuJoCo where there are no actuators; here it "
            "compensates"
        )
        note("joint", tree.joint_names[j], why)
    return tuple(g for on in parts.values() for g in _sum(on))


def _sum(parts):
    """Gravity compensations combined at their common centre, unless the total mass is 0."""
    total = math.fsum(g.mass for g in parts)
    if len(parts) == 1 or total == 0:
        return parts
    center = np.sum([g.mass * np.array(g.center) for g in parts], axis=0) / total
    return [GravityCompensation(parts[0].body, total, tuple(center.tolist()))]
