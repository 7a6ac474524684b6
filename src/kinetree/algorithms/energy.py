"""Kinetic and potential energy — RBDA (2.67), (6.5), Lynch & Park (9.9), (9.10)."""

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.coupled import for_all_joints
from kinetree.algorithms.kinematics import base_transforms, body_velocities, joint_transforms
from kinetree.algorithms.loop_forces import loop_joint_motion
from kinetree.algorithms.passive import stretch
from kinetree.model.dynamics import has_dynamics

__all__ = ["elastic_energy", "kinetic_energy", "potential_energy", "total_energy"]


@for_all_joints()
def kinetic_energy(model, q, qd):
    """``½ Σ v·Iv`` over the bodies, and that of the armature [J]; equal to ``½ qdᵀ H qd``."""
    _, v = body_velocities(model, q, qd)
    bodies = sum(v[i].dot(model.inertia[i] @ v[i]) for i in range(1, model.body_count + 1))
    return (bodies + armature.quadratic(model, qd)) / 2


def potential_energy(model, q):
    """``-Σ m g·c`` over the bodies [J]; zero for a mass at the origin of the base."""
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    U = 0
    for i in range(1, model.body_count + 1):
        I = model.inertia[i]
        moment = I.mass * X_0[i].r + X_0[i].E.T @ I.first_moment
        U = U - model.gravity @ moment
    return U


@for_all_joints()
def elastic_energy(model, q):
    """``½ Δᵀ k Δ`` of the springs in the joints [J], those that close loops included."""
    energy = 0
    for i, body in enumerate(model.bodies, start=1):
        if has_dynamics(body, "stiffness"):
            energy = energy + _of_spring(body, q[model.q_slice[i]])
    for loop in model.loops:
        if has_dynamics(loop, "stiffness"):
            energy = energy + _of_spring(
                loop, loop_joint_motion(model, q, model.zero_velocity, [loop]).q
            )
    return energy


def _of_spring(part, q):
    away = stretch(part, q)
    return np.array(part.dynamics.stiffness) @ (away * away) / 2


def total_energy(model, q, qd):
    """Kinetic plus potential energy [J]; its rate is the power ``tau·qd`` of the joint forces."""
    return kinetic_energy(model, q, qd) + potential_energy(model, q)
