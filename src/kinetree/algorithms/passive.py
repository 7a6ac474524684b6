"""Forces on the mechanism itself: springs, dampers, friction, tendons, carried weight, fluids."""

import numpy as np

from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.algorithms.coupled import for_all_joints, force
from kinetree.algorithms.fluid import fluid_force
from kinetree.algorithms.kinematics import joint_transforms
from kinetree.model.coupling import exact
from kinetree.model.limits import has_dynamics
from kinetree.model.tendon_paths import tendon_motion
from kinetree.spatial import Force, Inertia
from kinetree.spatial.ops import less, select


@for_all_joints(force)
def passive_force(model, q, qd):
    """Passive joint forces ``-k Δ - d qd - c sign(qd)``, (nv,); dry friction is zero at rest.

    ``Δ`` is the displacement from the rest position on the manifold of the joint,
    ``joint.difference(rest, q)``. Joints that close loops add ``B tau_k``, see ``closed.forces``,
    tendons the same law of their lengths, gravity compensation ``-Σ J_iᵀ m_i g``, and fluids what
    ``algorithms.fluid`` says.
    """
    tau = _of_joints(model, q, qd, own_force)
    names = ("stiffness", "damping", "friction")
    tau = _with_tendons(model, q, qd, tau, _pull)
    return _with_loops(model, q, qd, tau, own_force, names)


def _of_joints(model, q, qd, force):
    """Sum of a force function over the joints of the tree, (nv,)."""
    tau = model.table(model.zero_velocity[:0])
    for i in model.outward():
        tau[i] = force(model.bodies[i - 1], q[model.q_slice[i]], qd[model.v_slice[i]])
    return model.join_rows(tau)


def own_force(part, q, qd):
    """Spring, damper and dry-friction force of one tree or loop joint, (nv,)."""
    return _spring_and_damper(part, q, qd) + _friction(part, qd)


@for_all_joints(force)
def spring_and_damper_force(model, q, qd):
    """Passive joint forces ``-k Δ - d qd``, (nv,), without dry friction."""
    tau = _of_joints(model, q, qd, _spring_and_damper)
    tau = _with_tendons(model, q, qd, tau, _spring_and_damper_pull)
    return _with_loops(model, q, qd, tau, _spring_and_damper, ("stiffness", "damping"))


@for_all_joints(force)
def joint_spring_force(model, q, qd):
    """Spring and damper forces ``-k Δ - d qd`` of tree joints alone, (nv,)."""
    return _of_joints(model, q, qd, _spring_and_damper)


@for_all_joints(force)
def fluid_joint_force(model, q, qd):
    """Joint forces of the fluids around bodies, (nv,)."""
    return fluid_force(model, q, qd)


def _with_loops(model, q, qd, tau, force, names):
    """Joint forces ``tau`` plus those of loop joints that have springs, dampers or friction."""
    for loop in model.loops:
        if any(has_dynamics(loop, name) for name in names):
            q_k, qd_k, B = loop_joint_motion(model, q, qd, [loop])
            tau = tau + B @ force(loop, q_k, qd_k)
    return tau


def _spring_and_damper(part, q, qd):
    """Spring and damper force ``-k Δ - d qd`` of one tree or loop joint."""
    f = np.zeros(part.joint.nv, dtype=int)
    if has_dynamics(part, "stiffness"):
        f = f - np.array(part.dynamics.stiffness) * stretch(part, q)
    if has_dynamics(part, "damping"):
        f = f - np.array(part.dynamics.damping) * qd
    return f


def _friction(part, qd):
    """Dry friction ``-c sign(qd)`` of a joint, (nv,)."""
    if not has_dynamics(part, "friction"):
        return np.zeros(part.joint.nv, dtype=int)
    return -np.array(part.dynamics.friction) * np.array([_sign(x) for x in qd])


def stretch(part, q):
    """Displacement ``Δ`` of a joint's spring from rest, tree or loop joint, (nv,)."""
    rest = np.array(part.dynamics.rest) if part.dynamics.rest else part.joint.neutral()
    return part.joint.difference(rest, q)


# --- tendons: ``tau = ∂L/∂q f`` ------------------------------------------------------------------


def _with_tendons(model, q, qd, tau, pull):
    """Joint forces ``tau`` plus those of tendons, gravity compensation and fluids."""
    for t in model.tendons:
        if t.has("stiffness", "damping", "friction"):
            L, arms = tendon_motion(model, t, q)
            tau = tau + arms * pull(t, L, arms @ qd)
    tau = tau + compensation_force(model, q) if model.gravity_compensation else tau
    return tau + fluid_force(model, q, qd) if model.fluid_forces else tau


def _pull(t, L, Ld):
    """Tension of a tendon by its spring, damper and friction [N]."""
    f = _spring_and_damper_pull(t, L, Ld)
    return f - t.friction * _sign(Ld) if t.has("friction") else f


def _spring_and_damper_pull(t, L, Ld):
    """Tension of a tendon's spring and damper [N]."""
    f = -t.stiffness * tendon_stretch(t, L) if t.has("stiffness") else 0
    return f - t.damping * Ld if t.has("damping") else f


def tendon_stretch(t, L):
    """Extension of a tendon beyond its rest lengths, between which it is slack [m]."""
    low, high = t.rest
    if low == high:
        return L - exact(low)
    return select(less(high, L), L - exact(high), select(less(L, low), L - exact(low), 0 * L))


# --- gravity compensation: the passes of RNEA at rest, with the masses that are carried ----------


def compensation_force(model, q):
    """Gravity-compensation forces ``-Σ J_iᵀ m_i g``, (nv,), without couplings."""
    I = {}
    for g in model.gravity_compensation:
        c, m = np.array(g.center), g.mass
        part = Inertia(m, m * c, np.zeros((3, 3), dtype=int))
        I[g.body] = I[g.body] + part if g.body in I else part
    bodies = sorted({k for i in I for k in model.support[i]})
    X, S = joint_transforms(model, q, bodies=bodies)
    a, f = {0: -model.a_g}, {0: Force.zero()}
    for i in bodies:
        a[i] = X[i] @ a[model.parent[i]]
        f[i] = I[i] @ a[i] if i in I else Force.zero()
    tau = [np.zeros(joint.nv, dtype=int) for joint in model.joint[1:]]
    for i in reversed(bodies):
        tau[i - 1] = S[i].T @ f[i]
        f[model.parent[i]] = f[model.parent[i]] + X[i].T @ f[i]
    return np.concatenate(tau)


def _sign(x):
    """Sign of a number, 0 at zero."""
    return select(less(0, x), 1, select(less(x, 0), -1, 0))
