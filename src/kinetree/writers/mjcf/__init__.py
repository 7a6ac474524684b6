"""A model as MJCF."""

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import InteropError, ModelWarning, warn
from kinetree.joints import Free
from kinetree.model.arrays import as_model
from kinetree.model.constraint_function import require_none_written
from kinetree.model.rotors import without_rotors
from kinetree.model.tendon import is_wrap
from kinetree.writers.mjcf.attachments import (
    write_actuators,
    write_cameras,
    write_constraints,
    write_frames,
    write_gravity_compensation,
    write_postures,
    write_sensors,
)
from kinetree.writers.mjcf.elements import element
from kinetree.writers.mjcf.fluids import write_fluid_forces
from kinetree.writers.mjcf.geoms import write_bodies, write_contact_pairs, write_geometry
from kinetree.writers.mjcf.tendons import write_tendons

__all__ = ["to_mjcf"]

_INITIAL = "qpos0"


def to_mjcf(model) -> str:
    """MJCF text of a model, for MuJoCo.

    Bodies, joints, frames (as sites), loops, couplings, tendons, actuators and postures keep names;
    the base is MuJoCo's world. Loop joints and couplings become equality constraints, which
    MuJoCo treats as stiff springs. A posture called "qpos0" says where free bodies start.

    Raises:
        InteropError: for joints that MJCF does not have, massless bodies that must have mass, and
            numbers that are formulas.

    Warns:
        ModelWarning: for velocity limits, and meshes that MuJoCo cannot read.
    """
    require_none_written(as_model(model), "an MJCF")
    coupled, armature = without_rotors(model)
    model = coupled.uncoupled
    if model.scalar_type().hasobject:
        raise InteropError(
            f"MJCF holds numbers, and model {model.name!r} has formulas; give its parameters values"
        )
    left_out, root = [], element(etree.Element("file"), "mujoco", model=model.name)
    element(
        root,
        "compiler",
        angle="radian",
        autolimits="false",
        inertiafromgeom="false",
        fusestatic="false",
    )
    element(root, "option", gravity=model.gravity)
    start, postures = _start(model)
    worldbody = etree.Element("worldbody")
    elements = write_bodies(model, worldbody, start)
    write_geometry(model, elements, root, left_out)
    write_frames(model, elements)
    root.append(worldbody)
    write_contact_pairs(model, root, left_out)
    write_constraints(coupled, elements, root)
    left_out += [
        f"armature of tendon {t.name!r}, which winds around a shape"
        for t in model.tendons
        if t.name in armature and any(map(is_wrap, t.path))
    ]
    write_tendons(model, elements, root, armature)
    write_gravity_compensation(model, elements, left_out)
    write_fluid_forces(model, elements, root, left_out)
    write_actuators(model, elements, root)
    write_sensors(model, elements, root, left_out)
    write_cameras(model, elements)
    write_postures(model, root, postures)
    left_out += _not_in_mjcf(model)
    _warn_of_order(model, root)
    if left_out:
        what = "; ".join(left_out[:4]) + (f" and {len(left_out) - 4} more" * (len(left_out) > 4))
        warn(f"model {model.name!r}: not in the MJCF: {what}", ModelWarning)
    return etree.tostring(root, pretty_print=True, encoding="unicode")


def _warn_of_order(model, root):
    """Warn if positions are in another order in the file, which is depth first."""
    place = {name: i for i, name in enumerate(model.joint_names)}
    written = [e.get("name") or "" for e in root.iter("joint", "freejoint")]
    names = [name for name in written if name in place]
    if names != sorted(names, key=place.__getitem__):
        shown = ", ".join(names[:6]) + ", ..." * (len(names) > 6)
        warn(
            f"model {model.name!r}: the file has its joints in another order, depth first as "
            f"MuJoCo counts them: {shown}. Take positions by name (model.q_indices), not by number",
            ModelWarning,
        )


def _not_in_mjcf(model) -> list[str]:
    """Features of a model that MJCF cannot express, as texts."""
    found = []
    fast = [
        b.joint_name for b in model.bodies if b.limits and np.any(np.isfinite(b.limits.velocity))
    ]
    if fast:
        found.append(f"velocity limits of joints {', '.join(map(repr, fast[:4]))}")
    limited = [loop.name for loop in model.loops if loop.limits is not None]
    if limited:
        found.append(f"limits of loop joints {', '.join(map(repr, limited[:4]))}")
    driven = [b.joint_name for b in model.bodies if b.dynamics and b.dynamics.drive]
    if driven:
        found.append(f"where drives push, of joints {', '.join(map(repr, driven[:4]))}")
    if model.groups:
        found.append(f"groups {', '.join(repr(g.name) for g in model.groups[:4])}")
    return found


def _start(model):
    """Initial poses of free bodies by joint name, and the remaining postures."""
    start, others = {}, []
    for p in model.postures:
        moved = model.neutral()
        for i, joint in enumerate(model.joint[1:], start=1):
            if isinstance(joint, Free):
                moved[model.q_slice[i]] = p.q[model.q_slice[i]]
        if (
            p.name == _INITIAL
            and tuple(moved) == tuple(p.q)
            and not np.any(p.qd)
            and not p.controls.size
        ):
            start = {
                model.joint_names[i - 1]: p.q[model.q_slice[i]].tolist()
                for i, joint in enumerate(model.joint[1:], start=1)
                if isinstance(joint, Free)
            }
        else:
            others.append(p)
    return start, others
