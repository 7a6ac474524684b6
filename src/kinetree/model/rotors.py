"""Inertia along tendons: rotors without mass, whose joints follow the lengths of the tendons.

A rotor adds ``a r rᵀ`` to the inertia matrix, with the arms ``r`` of the tendon and the armature
``a`` of the rotor's joint, and to the bias force what belongs to it where the arms change.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kinetree.joints import Prismatic
from kinetree.model.coupling import Coupling
from kinetree.model.parts import Body, JointDynamics
from kinetree.model.pruning import without_bodies
from kinetree.spatial import Inertia, Plucker


def with_rotors(model: Any, armature: Mapping[str, float]) -> Any:
    """Model with a massless rotor body with armature for each named tendon.

    Args:
        model: the mechanism.
        armature: inertia of the rotor by name of the tendon, which joints of one variable move.
    """
    if not armature:
        return model
    bodies, couplings, full = [*model.bodies], [*model.couplings], model.uncoupled
    bodies_taken = {*model.body_names, *model.frame_names}
    joints_taken = {*model.joint_names, *model.loop_names, *(c.name for c in couplings)}
    for name, value in armature.items():
        joints = model.tendon(name).moves_with(full)
        if not joints:
            continue
        body = _free_name(f"{name}_rotor", bodies_taken)
        joint, law = (_free_name(f"{name}_{what}", joints_taken) for what in ("rotor", "length"))
        dynamics = JointDynamics(armature=value)
        at, inertia = Plucker.identity(), Inertia.zero()
        bodies.append(Body(body, joints[0], Prismatic("x"), at, inertia, joint, dynamics=dynamics))
        couplings.append(Coupling(law, len(bodies), tendon=name))
    return model.replace(bodies=bodies, couplings=couplings, postures=model.postures)


def rotors_of(model: Any) -> dict[int, str]:
    """Names of tendons by the number of the massless body that is only their rotor."""
    carried = {*model.parent, *(g.body for g in (*model.geometry, *model.frames))}
    carried |= {i for loop in model.loops for i in (loop.predecessor, loop.successor)}
    carried |= {i for c in model.couplings for i in c.leaders}
    carried |= {i for t in model.tendons for i in t.joints} | {a.joint for a in model.actuators}
    found = {}
    for c in model.couplings:
        body = model.bodies[c.joint - 1]
        if c.tendon and c.joint not in carried and not np.any(body.inertia.parameters()):
            found[c.joint] = c.tendon
    return found


def without_rotors(model: Any) -> tuple[Any, dict[str, float]]:
    """Model without its tendon rotors, and their armature by tendon name."""
    armature: dict[str, float] = {}
    rotors = rotors_of(model)
    for i, name in rotors.items():
        dynamics = model.bodies[i - 1].dynamics
        own = dynamics.armature[0] if dynamics is not None and len(dynamics.armature) else 0.0
        armature[name] = armature.get(name, 0.0) + own
    if not rotors:
        return model, armature
    couplings = [c for c in model.couplings if c.joint not in rotors]
    return without_bodies(model.replace(couplings=couplings), rotors.keys()), armature


def _free_name(name, taken):
    """Unused name: underscores are appended to ``name``; it is added to ``taken``."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
