"""Copies of a model with some parts replaced, or with numbers of another kind."""

from dataclasses import replace

import numpy as np

from kinetree.errors import ModelError
from kinetree.model.names import is_known, names_that_touch
from kinetree.model.parts import as_placement
from kinetree.spatial import Inertia, Plucker


def replaced_parts(model, fields, *, inertia, **of_joints):
    """Model fields of a copy with replaced inertias, placements, joints, limits or dynamics.

    Args:
        model: the original.
        fields: whole fields that the caller replaces.
        inertia: new inertias by body name, or None.
        **of_joints: new placements, joints, limits and dynamics by joint name, or None.
    """
    for what, given in {"inertia": inertia, **of_joints}.items():
        if given is not None and not isinstance(given, dict):
            raise ModelError(
                f"Model.replace: {what} must be a dictionary from names to new values, got "
                f"{type(given).__name__}"
            )
    bodies, loops = list(fields.get("bodies", model.bodies)), list(fields.get("loops", model.loops))
    for name, value in (inertia or {}).items():
        i = model.body_index(name)
        if i == 0:
            raise ModelError(f"the base {name!r} does not move and has no inertia to replace")
        bodies[i - 1] = replace(bodies[i - 1], inertia=value)
    loop_number = {loop.name: k for k, loop in enumerate(loops)}
    for attribute, changes in of_joints.items():
        for name, value in (changes or {}).items():
            value = as_placement(value) if attribute == "placement" else value
            if name in loop_number:
                k = loop_number[name]
                loops[k] = _with(loops[k], attribute, value)
            else:
                i = model.joint_index(name)
                bodies[i - 1] = replace(bodies[i - 1], **{attribute: value})
    actuators, tendons = fields.get("actuators"), tuple(fields.get("tendons", model.tendons))
    if actuators is None:
        actuators = _actuators(model, loop_number, {t.name for t in tendons})
    parts = {"bodies": tuple(bodies), "loops": tuple(loops), "actuators": tuple(actuators)}
    parts["tendons"] = tendons
    if model.contact_pairs and "contact_pairs" not in fields:
        names = names_that_touch(
            fields.get("base_name", model.base_name),
            bodies,
            fields.get("frames", model.frames),
            fields.get("geometry", model.geometry),
        )
        pairs = model.contact_pairs
        parts["contact_pairs"] = tuple(
            p for p in pairs if is_known(p.first, names) and is_known(p.second, names)
        )
    if model.groups and "groups" not in fields:
        joints = {*(b.joint_name for b in bodies), *loop_number}
        frames = {f.name for f in fields.get("frames", model.frames)}
        frames |= {fields.get("base_name", model.base_name), *(b.name for b in bodies)}
        left = (group.within(joints, frames) for group in model.groups)
        parts["groups"] = tuple(group for group in left if group.joints or group.tip)
    return parts


def _with(loop, attribute, value):
    """Loop joint with one attribute replaced; ModelError for its placements."""
    if attribute == "placement":
        raise ModelError(
            f"Model.replace: loop joint {loop.name!r} has two placements; replace the loop itself, "
            f"model.replace(loops=...)"
        )
    return replace(loop, **{attribute: value})


def _actuators(model, loop_number, tendons):
    """Actuators with new numbers of loop joints; those of removed loop joints are left out."""
    for a in model.actuators:
        if not a.loop and (not a.tendon or a.tendon in tendons):
            yield a
        elif a.loop and model.driven_joint(a) in loop_number:
            yield replace(a, loop=loop_number[model.driven_joint(a)] + 1)


# --- numbers of another kind: exact, symbolic, complex -------------------------------------------


def map_numbers(model, fn):
    """Copy of ``model`` with ``fn`` applied to inertias, placements, gravity and dynamics.

    Positions stay floats: rest positions, couplings, postures; so do geometry and actuators.
    """
    bodies = [
        replace(
            b,
            placement=_transform(b.placement, fn),
            inertia=_inertia(b.inertia, fn),
            dynamics=b.dynamics and _dynamics(b.dynamics, fn),
        )
        for b in model.bodies
    ]
    frames = [replace(f, placement=_transform(f.placement, fn)) for f in model.frames]
    loops = [
        replace(
            loop,
            predecessor_placement=_transform(loop.predecessor_placement, fn),
            successor_placement=_transform(loop.successor_placement, fn),
            dynamics=loop.dynamics and _dynamics(loop.dynamics, fn),
        )
        for loop in model.loops
    ]
    tendons = [
        replace(t, **{n: fn(getattr(t, n)) for n in ("stiffness", "damping", "friction")})
        for t in model.tendons
    ]
    carried = [
        replace(g, mass=fn(g.mass), center=tuple(map(fn, g.center)))
        for g in model.gravity_compensation
    ]
    return model.replace(
        bodies=bodies,
        frames=frames,
        loops=loops,
        gravity=_array(model.gravity, fn),
        tendons=tendons,
        gravity_compensation=carried,
    )


def _transform(X, fn):
    """Transform with a function applied to its arrays."""
    return Plucker(_array(X.E, fn), _array(X.r, fn))


def _inertia(I, fn):
    """Inertia with a function applied to its numbers."""
    mass = _array(np.asarray(I.mass), fn)[()]
    return Inertia(mass, _array(I.first_moment, fn), _array(I.rotational, fn))


def _dynamics(dynamics, fn):
    """Joint dynamics with a function applied to its numbers."""
    names = ("armature", "damping", "friction", "stiffness")
    return replace(dynamics, **{n: tuple(map(fn, getattr(dynamics, n))) for n in names})


def _array(a, fn):
    """Array with ``fn`` applied to every entry; integer arrays are structure and stay."""
    if np.issubdtype(a.dtype, np.integer):
        return a
    return np.array([fn(x) for x in a.ravel().tolist()]).reshape(a.shape)
