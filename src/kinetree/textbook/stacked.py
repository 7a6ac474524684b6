"""The equations of all bodies as one matrix equation — Lynch & Park §9.4, (9.62)–(9.84).

The velocities of all bodies, stacked, satisfy ``V = Γ V + A qd + V_base``, where ``Γ`` holds the
transforms from parents; ``L = (1 - Γ)⁻¹`` solves the recursion once and for all. For a base at rest

    H = Aᵀ Lᵀ G L A,    c = Aᵀ Lᵀ (G L (c_J - [ad_Aqd] Γ V) - [ad_V]ᵀ G V),    g = Aᵀ Lᵀ G L V̇_base

in the book's letters: ``A`` are the joint subspaces, ``G`` the inertias. Two printed signs are
corrected, of ``[ad_Aqd]`` in (9.73), (9.78), (9.83) and of the base acceleration, which is
``-g``; and ``c_J`` is added for joints whose axes move in the body. Trees need nothing more than
chains. Dense matrices of size 6 N_B: an oracle, and a form for proofs.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.coupled import columns, congruent, for_all_joints, force
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.jacobians import frame_jacobian
from kinetree.algorithms.kinematics import joint_transforms
from kinetree.spatial import Force, Motion, dense


class StackedOperators(NamedTuple):
    """The operators of (9.64)–(9.68) and (9.76), with N = N_B."""

    A: np.ndarray
    """Joint subspaces, block diagonal, (6N, nv)."""
    G: np.ndarray
    """Inertias, block diagonal, (6N, 6N)."""
    Gamma: np.ndarray
    """Transforms from parent to body, nilpotent, (6N, 6N)."""
    L: np.ndarray
    """Transforms from every ancestor, ``(1 - Γ)⁻¹``, (6N, 6N)."""


class StackedVectors(NamedTuple):
    """Vectors that enter the recursions from the base and the tip, (9.69)–(9.71), (6N,) each."""

    V_base: np.ndarray
    """Velocity of the base, in the coordinates of bodies that stand on it; zero for all others."""
    Vd_base: np.ndarray
    """Acceleration of the base, likewise."""
    F_tip: np.ndarray
    """Force of the tip, at the body that carries it and in its coordinates; zero elsewhere."""


def stacked_operators(model, q) -> StackedOperators:
    """Stacked operators ``A``, ``G``, ``Γ`` and ``L`` of a tree at ``q``."""
    lam, NB = model.parent, model.body_count
    X, S = joint_transforms(model, q)
    dtype = model.scalar_type(q)
    A = np.zeros((6 * NB, model.nv), dtype=dtype)
    G, Gamma, L = (np.zeros((6 * NB, 6 * NB), dtype=dtype) for _ in range(3))
    for i in range(1, NB + 1):
        rows = _rows(i)
        A[rows, model.v_slice[i]] = S[i].to_array()
        G[rows, rows] = model.inertia[i].to_matrix()
        L[rows, rows] = np.eye(6, dtype=int)
        if lam[i] != 0:
            X_i = X[i].to_matrix()
            Gamma[rows, _rows(lam[i])] = X_i
            L[rows] = L[rows] + X_i @ L[_rows(lam[i])]
    return StackedOperators(A, G, Gamma, L)


def stacked_vectors(model, q, V_0=None, Vd_0=None, F_tip=None, tip=None) -> StackedVectors:
    """Stacked base velocity, base acceleration and tip force — Lynch & Park (9.69)–(9.71).

    Args:
        model: the mechanism; several bodies may stand on its base.
        q: configuration, (nq,).
        V_0: velocity of the base in its own coordinates, (6,); zero by default.
        Vd_0: its acceleration, gravity subtracted, (6,); ``-a_g`` by default, a base at rest.
        F_tip: force that the tip exerts on the environment, in the coordinates of its frame, (6,).
        tip: name of the frame, the book's {n+1}, or body; the last body by default.
    """
    X, _ = joint_transforms(model, q)
    parts = np.zeros((3, 6 * model.body_count), dtype=model.scalar_type(q))
    V_0 = model.zero_motion if V_0 is None else Motion.from_array(np.asarray(V_0))
    Vd_0 = -model.a_g if Vd_0 is None else Motion.from_array(np.asarray(Vd_0))
    for i in range(1, model.body_count + 1):
        if model.parent[i] == 0:
            parts[:2, _rows(i)] = (X[i] @ V_0).to_array(), (X[i] @ Vd_0).to_array()
    if F_tip is not None:
        frame = model.frame(model.body_names[-1] if tip is None else tip)
        force = frame.placement.T @ Force.from_array(np.asarray(F_tip))
        parts[2, _rows(frame.body)] = force.to_array()
    return StackedVectors(*parts)


@for_all_joints(force)
def inverse_dynamics(model, q, qd, qdd, V_0=None, Vd_0=None, F_tip=None, tip=None):
    """Joint forces by the stacked equations of all bodies — Lynch & Park (9.77)–(9.80), corrected.

    On a base that may move, with a force at the tip; arguments as in ``stacked_vectors``.
    """
    A, G, Gamma, L = stacked_operators(model, q)
    V_base, Vd_base, F_tip = stacked_vectors(model, q, V_0, Vd_0, F_tip, tip)
    bodies = range(1, model.body_count + 1)
    v_J, c_J = (_stack([model.jcalc(i, q, qd)[k].to_array() for i in bodies]) for k in (2, 3))
    V = L @ (v_J + V_base)  # v_J = A qd, but for prescribed joints
    Vd = L @ (A @ qdd + c_J - _ad(v_J) @ (Gamma @ V + V_base) + Vd_base)
    F = L.T @ (G @ Vd - _ad(V).T @ (G @ V) + F_tip)
    return armature.forces(model, A.T @ F, qdd)


@for_all_joints(congruent)
def joint_space_inertia(model, q):
    """Inertia matrix ``Aᵀ Lᵀ G L A`` by stacked operators — Lynch & Park (9.82)."""
    A, G, _, L = stacked_operators(model, q)
    return armature.inertia(model, A.T @ L.T @ G @ L @ A)


@refuses("couplings", use="rnea.coriolis_force")
def coriolis_force(model, q, qd):
    """Coriolis and centrifugal joint forces by stacked operators — Lynch & Park (9.83)."""
    zero = model.zero_velocity
    return inverse_dynamics(model, q, qd, zero, Vd_0=np.zeros(6, dtype=int))


@refuses("prescribed", use="rnea.gravity_force")
@for_all_joints(force)
def gravity_force(model, q):
    """Gravity joint forces by stacked operators, base accelerating by ``-g`` (9.84)."""
    A, G, _, L = stacked_operators(model, q)
    return A.T @ L.T @ G @ L @ stacked_vectors(model, q).Vd_base


# --- all linear velocities, then all angular ones — tutorial (57)–(60) --------------------------


@for_all_joints(columns)
def global_jacobian(model, q):
    """Jacobian (6m, nv) of mass-centre and angular velocities in base axes, tutorial (60).

    Velocities of the mass centres (origins of bodies without mass) and angular velocities, along
    the axes of the base. The order is not that of ``V`` above, which goes body by body.
    """
    parts = [np.zeros((2, 0, 3, model.nv), dtype=int)]
    for i, name in enumerate(model.body_names[1:], start=1):
        c = None if model.inertia[i].mass == 0 else model.inertia[i].center_of_mass
        J = frame_jacobian(model, q, model.frame(name), "aligned", c)
        parts.append(np.stack([J[3:], J[:3]])[:, None])
    return np.concatenate(parts, axis=1).reshape(-1, model.nv)


def global_order(count):
    """Indices (6 count,) that reorder body-by-body vectors to the order of ``global_jacobian``.

    ``V[global_order(m)]`` is in the order of (60); ``np.argsort(global_order(m))`` leads back.
    """
    rows = np.arange(6 * count).reshape(count, 2, 3)
    return rows[:, ::-1].transpose(1, 0, 2).ravel()


def _rows(i):
    """Slice of body i's six rows in a stacked vector."""
    return slice(6 * (i - 1), 6 * i)


def _stack(parts):
    """Concatenated vectors of all bodies."""
    return np.concatenate([np.zeros(0, dtype=int), *parts])


def _ad(V):
    """Block-diagonal cross operators ``[ad_V]`` of all bodies."""
    ad = np.zeros((len(V), len(V)), dtype=np.asarray(V).dtype)
    for k in range(0, len(V), 6):
        ad[k : k + 6, k : k + 6] = dense.crm(V[k : k + 6])
    return ad
