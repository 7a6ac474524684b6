"""All bodies and all joints at once, without ever storing a zero — RBDA §8.13, (8.64).

    ⎡  I     P T ⎤ ⎡  a   ⎤   ⎡ P T_a tau - v ×* I v + f ⎤
    ⎣ Tᵀ Pᵀ   0  ⎦ ⎣ -lam ⎦ = ⎣ -Tdᵀ Pᵀ v, stabilised    ⎦

The matrix is factorised by blocks in the order that ``elimination_order`` found for the
connectivity of the model, once for all time steps: O(n) on trees, on ladders, and wherever else a
good order exists, while the inertia matrix of any spanning tree of a ladder has O(n²) entries.
Redundant constraints meet pivots that vanish, and are left out there.

The motion may be given by joint variables, or by the bodies themselves (``solve_bodies``). Then
every joint has a position error of its own, tree joints too, and all of them need stabilisation.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.couplings import all_joints
from kinetree.algorithms.handles import pushing
from kinetree.algorithms.kinematics import base_velocities
from kinetree.algorithms.maximal_joints import (
    joint_constraints,
    loop_constraint,
    reduced,
)
from kinetree.errors import ModelError, calling
from kinetree.loops.dynamics.block_factorization import BlockSystem
from kinetree.loops.dynamics.elimination_order import EliminationOrder, elimination_order
from kinetree.loops.dynamics.instant import Accelerations, Instant
from kinetree.model import Loop
from kinetree.model.arrays import require_instant
from kinetree.spatial import Motion, crf

__all__ = ["BodyMotion", "order_of", "solve", "solve_bodies"]


class BodyMotion(NamedTuple):
    """Accelerations of the bodies and forces of the joints, in base coordinates."""

    a: list
    """Body accelerations, entry 0 for the base; gravity not subtracted."""
    f_c: list
    """Constraint force of each joint on its successor, tree joints 1 … N_B and then loop joints;
    entry 0 is None. One of many, where constraints are redundant."""
    lam: list
    """The same along the columns of ``T``, joint by joint; then one entry for each coupling."""
    rank: int
    """Number of independent constraints among those of all joints and couplings."""
    redundancy: int
    """Number of the others."""


def order_of(model) -> EliminationOrder:
    """The order of elimination for a model, found once."""
    key = "loops.elimination_order"
    if key not in model.kernels:
        ends = [(model.parent[i], i) for i in range(1, model.body_count + 1)]
        links = [ends[i - 1] for i in model.armature_joints]
        ends += [(loop.predecessor, loop.successor) for loop in model.loops]
        rows = [
            {b for j in (c.joint, *c.leaders) for b in (j, model.parent[j])}
            for c in model.couplings
        ]
        model.kernels[key] = elimination_order(model.body_count, ends, rows, links)
    return model.kernels[key]


def solve(instant: Instant) -> Accelerations:
    """Joint accelerations, and the forces of the loops."""
    of, T = instant.model, instant.stabilization
    model, q, qd, tau, rows = all_joints(of, instant.q, instant.qd, instant.tau)
    X_0, v = base_velocities(model, q, qd)
    joints = joint_constraints(model, q, qd, X_0, v)
    joints = [*joints[: model.body_count], *reduced(joints[model.body_count :], instant.rows)]
    moved = _solved(model, X_0, v, joints, tau, instant.f_ext, T, rows, order_of(of))
    qdd = [
        J.T_a.T @ (moved.a[J.successor] - moved.a[J.predecessor] - J.c)  # T_aᵀ S = 1
        for J in joints[: model.body_count]
    ]
    lam = moved.lam[model.body_count : len(joints)]
    qdd, lam = (np.concatenate([np.zeros(0), *parts]) for parts in (qdd, lam))
    qdd = qdd[of.independent_variables[1]] if of.couplings else qdd
    return Accelerations(qdd, instant.forces(lam))


def solve_bodies(model, X_0, v, tau, f_ext=None, *, stabilization=None) -> BodyMotion:
    """Accelerations of bodies whose positions and velocities are given one by one.

    Args:
        model: the mechanism, without couplings and armature, which are about joint variables.
        X_0: transform from base to body coordinates for every body, entry 0 for the base.
        v: velocity of every body in base coordinates, entry 0 for the base.
        tau: joint forces of the tree joints [N or N·m], (nv,).
        f_ext: force on each body in base coordinates, entry 0 unused.
        stabilization: time constant [s] with which the errors of all joints decay; None for none.
    """
    armature.refuse(model, "solve_bodies")
    require_instant(model, "solve_bodies")
    if model.couplings:
        raise ModelError(
            f"solve_bodies has no joint variables to couple, as {model.couplings[0].name!r} of "
            f"model {model.name!r} does; use the method 'sparse' of solve"
        )
    joints = []
    for i, body in enumerate(model.bodies, start=1):
        as_loop = Loop(body.joint_name, body.parent, i, body.joint, body.placement)
        X_J = X_0[i] @ (body.placement @ X_0[body.parent]).inverse()
        T_a = body.joint.active_subspace(body.joint.coordinates(X_J))
        joints.append(loop_constraint(as_loop, X_0, v)._replace(T_a=X_0[i].T @ T_a))
    joints += [loop_constraint(loop, X_0, v) for loop in model.loops]
    with calling("solve_bodies"):
        return _solved(model, X_0, v, joints, tau, f_ext, stabilization)


def _solved(model, X_0, v, joints, tau, f_ext, stabilization, rows=None, order=None):
    system = BlockSystem(order_of(model) if order is None else order)
    for i in range(1, model.body_count + 1):
        I = X_0[i].inv_apply(model.inertia[i])
        f = I @ model.a_g - crf(v[i], I @ v[i])
        system.diagonal["body", i] = np.asarray(I.to_matrix(), dtype=float)
        system.right["body", i] = (f if f_ext is None else f + f_ext[i]).to_array().astype(float)
    for n, J in enumerate(joints):
        k = J.T.T @ J.c
        if stabilization is not None:
            k = k - 2 / stabilization * J.rate - J.error / stabilization**2
        _constrain(system, ("joint", n), _ends(J, J.T.to_array().astype(float)), k)
    for i, J in enumerate(joints[: model.body_count], start=1):
        _drive(system, model, i, J, tau[model.v_slice[i]])
    if rows is not None:
        for c, (K, k) in enumerate(zip(rows.K, rows.k, strict=True)):
            _couple(system, model, ("row", c), joints, K, k)
    solved = system.solution(lambda node: f"body {model.body_names[node[1]]!r}")

    a = [Motion.zero(), *(Motion.from_array(solved.x["body", i + 1]) for i in range(len(X_0) - 1))]
    lam = [-solved.x["joint", n] for n in range(len(joints))]
    f_c = [None, *(J.T @ x for J, x in zip(joints, lam, strict=True))]
    lam += [-solved.x["row", c] for c in range(0 if rows is None else len(rows.k))]
    return BodyMotion(a, f_c, lam, solved.rank, solved.redundancy)


def _ends(J, F):
    """``P F`` for the columns of forces ``F`` of a joint: what acts on each of its bodies."""
    return {b: sign * F for b, sign in ((J.predecessor, -1), (J.successor, 1)) if b != 0}


def _constrain(system, node, ends, k):
    """The constraint ``Σ Fᵀ a = k``, for forces ``F`` on the bodies that it involves."""
    system.diagonal[node], system.right[node] = np.zeros((len(k), len(k))), k
    system.size[node] = np.zeros(len(k))
    system.pushes[node] = np.any([pushing(F) for F in ends.values()], axis=0)
    for b, F in ends.items():
        system.add(("body", b), node, F)
        I = system.diagonal["body", b]
        system.size[node] += np.einsum("im,im->m", F, _spread(I, F))


def _spread(I, F):
    """``I⁻¹ F``; zero where a body has no inertia of its own."""
    return np.linalg.lstsq(I, F, rcond=1e-12)[0]


def _drive(system, model, i, J, tau):
    """The joint force of a tree joint, and its armature: ``f = T_a (tau - A qdd)``."""
    A = np.diag(model.armature[model.v_slice[i]])
    T_a, bias = J.T_a.to_array().astype(float), J.T_a.T @ J.c
    ends = _ends(J, T_a)
    for b, F in ends.items():
        system.right["body", b] = system.right["body", b] + F @ (tau + A @ bias)
    if armature.is_present(model, i):
        pairs = [(b, c) for b in ends for c in ends if b <= c]
        for b, c in pairs:
            system.add(("body", b), ("body", c), ends[b] @ A @ ends[c].T)


def _couple(system, model, node, joints, K, k):
    """The coupling ``K qdd = k``, with ``qdd = T_aᵀ (Pᵀ a - c)``."""
    ends = {}
    for i, J in enumerate(joints[: model.body_count], start=1):
        K_i = K[model.v_slice[i]]
        if not np.any(K_i):
            continue
        F = J.T_a.to_array().astype(float) @ K_i[:, None]
        k = k + K_i @ (J.T_a.T @ J.c)
        for b, part in _ends(J, F).items():
            ends[b] = ends[b] + part if b in ends else part
    _constrain(system, node, ends, np.atleast_1d(k))
