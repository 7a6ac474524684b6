"""Bodies and joints as MJCF.

MuJoCo wants every moving body to have mass, and lets a body have several joints; so a chain of
massless bodies becomes joints of the body at its end.
"""

import numpy as np

from kinetree.errors import InteropError
from kinetree.joints import Fixed, Free, Planar
from kinetree.model.sensors import KINDS
from kinetree.spatial import Plucker
from kinetree.writers.mjcf.elements import (
    Part,
    element,
    numbers,
    parts_of,
    pose_attributes,
    range_attributes,
)

_SMALLEST_MOMENT = 2e-15  # MuJoCo refuses smaller ones [kg m²]
_WORLD = "world"


def write_bodies(model, worldbody, start):
    """Write the tree below ``worldbody``.

    Args:
        model: the model.
        worldbody: the element.
        start: pose of free bodies, (7,), by joint name, where it is not the origin.

    Returns:
        The element of each body, by number; a body that has become a joint has none.
    """
    elements, busy = {0: worldbody}, _carriers(model)
    for i in range(1, model.body_count + 1):
        if i in elements or model.parent[i] not in elements:
            continue  # part of a chain that is already written
        chain = _chain(model, i, busy)
        elements[chain[-1]] = _write(model, chain, elements[model.parent[i]], start)
    return elements


def _carriers(model):
    """Bodies that something other than one joint is attached to."""
    carriers = {f.body for f in model.frames} | {g.body for g in model.geometry}
    frames = [s for s in model.sensors if KINDS[s.kind].of == "frame"]
    names = {n for s in frames for n in (s.of, s.reference)}
    carriers |= {i for i, name in enumerate(model.body_names) if name in names}
    return carriers | {end for loop in model.loops for end in (loop.predecessor, loop.successor)}


def _chain(model, i, busy):
    """Body ``i`` and, while it has no mass, the body that it carries."""
    chain = [i]
    while model.inertia[chain[-1]].mass == 0 and not isinstance(model.joint[chain[-1]], Fixed):
        children = model.children[chain[-1]]
        if len(children) != 1 or isinstance(model.joint[children[0]], (Fixed, Free)):
            break
        if chain[-1] in busy:
            raise InteropError(
                f"body {model.body_names[chain[-1]]!r} has no mass, which MuJoCo does not allow, "
                f"and frames, shapes or loop joints that keep it from becoming a mere joint; move "
                f"those to other bodies"
            )
        chain.append(children[0])
    return chain


def _write(model, chain, parent, start):
    last, name = chain[-1], model.body_names[chain[-1]]
    if name == _WORLD:
        raise InteropError("body 'world': MuJoCo keeps this name for the base; choose another")
    at = {last: Plucker.identity()}  # from each body of the chain to the last, joints at zero
    X = Plucker.identity()
    for i in reversed(chain):
        X = X @ model.tree_transform[i]
        at[model.parent[i]] = X
    parts = [(i, part) for i in chain for part in parts_of(model.joint[i], _joint_name(model, i))]
    if isinstance(model.joint[last], Free) and model.parent[last] == 0 and not pose_attributes(X):
        name_of_joint = _joint_name(model, last)
        parts = [(last, Part(name_of_joint, "free", None, slice(0, 7), slice(0, 6)))]
        if name_of_joint in start:
            X = Free().transform(np.asarray(start[name_of_joint], dtype=float))
    body = element(parent, "body", name=name, **pose_attributes(X))
    _write_inertia(model.inertia[last], body)
    _check_together(model, chain, [(part, at[i]) for i, part in parts])
    for i, part in parts:
        _write_joint(model.bodies[i - 1], part, at[i], body)
    return body


def _joint_name(model, i):
    return model.joint_names[i - 1]


def _check_together(model, chain, parts):
    """Raise InteropError for joints that MuJoCo does not allow in one body."""
    kinds = [part.kind for part, _ in parts]
    turned = any(part.kind == "ball" and not np.array_equal(Z.E, np.eye(3)) for part, Z in parts)
    if "ball" in kinds and (turned or kinds.count("ball") > 1 or "hinge" in kinds):
        names = ", ".join(repr(_joint_name(model, i)) for i in chain)
        raise InteropError(
            f"joints {names} have massless bodies between them and would have to be in one body "
            f"of MJCF, which takes a ball joint without other rotations; give the bodies mass"
        )


def _write_inertia(inertia, body):
    if inertia.mass == 0:
        return
    I_C = np.asarray(inertia.rotational_at_center, dtype=float)
    if np.any(I_C - np.diag(np.diagonal(I_C))):
        moments, R = np.linalg.eigh(I_C)  # MuJoCo's principal axes of a full matrix are less exact
        R = R if np.linalg.det(R) > 0 else -R
    else:
        moments, R = np.diagonal(I_C), np.eye(3)
    moments = _possible(np.maximum(moments, _SMALLEST_MOMENT))
    pose = pose_attributes(Plucker(R.T, inertia.center_of_mass))
    pose.setdefault("pos", "0 0 0")  # which MJCF wants here
    element(body, "inertial", **pose, mass=float(inertia.mass), diaginertia=moments)


def _possible(moments):
    """Rounding may make a flat body's largest moment exceed the sum of the others."""
    k = int(np.argmax(moments))
    others = float(np.sum(np.delete(moments, k)))
    if others < moments[k] < others * (1 + 1e-9):
        moments = moments.copy()
        moments[k] = others
    return moments


def _write_joint(body, part, Z, parent):
    """``Z`` takes the body that the joint moves to the last one of the chain, at zero."""
    attributes = {"type": part.kind}
    if part.kind in ("hinge", "slide"):
        attributes["axis"] = numbers(Z.E @ np.asarray(part.axis))
    if part.kind in ("hinge", "ball") and np.any(Z.r):
        attributes["pos"] = numbers(-Z.E @ Z.r)
    attributes |= _limit_attributes(body.limits, part)
    attributes |= _dynamics_attributes(body, part)
    element(parent, "joint", name=part.name, **attributes)


def _limit_attributes(limits, part):
    if limits is None or part.kind not in ("hinge", "slide"):
        return {}
    low, high = limits.lower or (-np.inf,) * 9, limits.upper or (np.inf,) * 9
    found = range_attributes("range", (low[part.q.start], high[part.q.start]), "limited")
    if limits.effort:
        effort = limits.effort[part.v.start]
        found |= range_attributes("actuatorfrcrange", (-effort, effort), "actuatorfrclimited")
    return found


def _dynamics_attributes(body, part):
    if body.dynamics is None:
        return {}
    found = {}
    for ours, theirs in (
        ("armature", "armature"), ("damping", "damping"), ("friction", "frictionloss"),
        ("stiffness", "stiffness"),
    ):  # fmt: skip
        given = getattr(body.dynamics, ours)
        values = given[part.v]
        if any(values):
            moving = isinstance(body.joint, (Free, Planar)) and part.kind != "hinge"
            if len(set(values)) > 1 or (moving and (ours == "stiffness" or len(set(given)) > 1)):
                raise InteropError(
                    f"joint {body.joint_name!r} has {ours} {list(given)}; a {part.kind} joint of "
                    f"MJCF {'has none' if ours == 'stiffness' else 'has one for all directions'}"
                )
            found[theirs] = numbers(values[0])
    rest = body.dynamics.rest[part.q]
    if "stiffness" in found and any(rest) and tuple(rest) != (1, 0, 0, 0):
        if part.kind == "ball":
            raise InteropError(
                f"joint {body.joint_name!r} has a spring that is slack at {list(rest)}; that of a "
                f"ball joint of MJCF is slack at the neutral position"
            )
        found["springref"] = numbers(rest)
    return found
