"""Inertias that no body can have, and joints that would move none."""

import numpy as np

from kinetree.doctor.finding import found
from kinetree.loaders.report import short

__all__ = ["idle_joints", "impossible_inertias", "massless_leaves"]

ROUNDING = 0.01
"""Part of the largest moment by which published, rounded numbers may break the rules."""

NOTHING = 1e-16
"""Square of a radius of gyration [m²] that is none."""


def impossible_inertias(facts):
    """Every body whose mass or moments contradict each other."""
    for link in facts.links:
        if link.mass is None or not np.isfinite(link.mass):
            continue
        I = link.inertia
        if link.mass < 0:
            text = f"its mass is {link.mass:g} kg"
            yield found("inertia-mass", link.part, text, link.mass_place)
        if I is None or not np.all(np.isfinite(I)):
            continue
        if link.mass == 0 and np.any(I):
            text = "it has a rotational inertia and no mass"
            yield found("inertia-mass", link.part, text, link.inertia_place)
        yield from _moments(link, I)


def _moments(link, I):
    size = float(np.max(np.abs(I)))
    asymmetry = float(np.max(np.abs(I - I.T)))
    if asymmetry > 1e-6 * size:
        text = f"entries on either side of the diagonal differ by {asymmetry:.3g} kg m²"
        yield found("inertia-symmetry", link.part, text, link.inertia_place)
        return
    scaled = I / max(size, np.finfo(float).tiny)
    low, middle, high = size * np.linalg.eigvalsh((scaled + scaled.T) / 2)
    if size <= NOTHING * abs(link.mass):
        if link.mass > 0:
            text = f"its rotational inertia is {'zero' if size == 0 else 'next to nothing'}, "
            text += f"its mass {link.mass:g} kg"
            yield found("inertia-zero", link.part, text, link.inertia_place)
        return
    moments = (x if abs(x) > 1e-12 * size else 0.0 for x in (low, middle, high))
    listed = ", ".join(f"{x:.4g}" for x in moments) + " kg m²"
    if low < -1e-9 * size:
        yield found(
            "inertia-positive", link.part, f"principal moments are {listed}", link.inertia_place
        )
    elif high > (low + middle) * (1 + 1e-9):
        excess = (high - low - middle) / high
        text = f"principal moments are {listed}: the largest exceeds the sum of the others by "
        text += f"{100 * excess:.3g} %"
        severity = "error" if excess > ROUNDING else "warning"
        yield found("inertia-triangle", link.part, text, link.inertia_place, severity=severity)


def idle_joints(facts) -> dict:
    """The moving joints all of whose bodies have no mass, by name, each with its bodies."""
    massless = facts.subtrees()
    return {
        joint.name: (joint, massless[joint.child])
        for joint in facts.joints
        if joint.moves and joint.armature == 0 and joint.child in massless
    }


def massless_leaves(facts):
    """Joints that move nothing that has mass, each chain of them once."""
    idle = idle_joints(facts)
    below = {x.name for joint, moved in idle.values() for x in moved if x.name != joint.child}
    for joint, moved in idle.values():
        if joint.child not in below:
            names = ", ".join(short(x.name) for x in moved[:3]) + (" ..." if len(moved) > 3 else "")
            text = f"it moves nothing that has mass: {names}"
            yield found("massless", joint.part, text, joint.place)
