"""All bodies and all joints at once, without ever storing a zero — RBDA §8.13, (8.64).

    ⎡  I     P T ⎤ ⎡  a   ⎤   ⎡ P T_a tau - v ×* I v + f ⎤
    ⎣ Tᵀ Pᵀ   0  ⎦ ⎣ -lam ⎦ = ⎣ -Tdᵀ Pᵀ v, stabilised    ⎦

The matrix is factorised by blocks in the order that ``elimination_order`` found for the
connectivity of the model, once for all time steps: O(n) on trees, on ladders, and wherever else a
good order exists, while the inertia matrix of any spanning tree of a ladder has O(n²) entries.
Redundant constraints meet pivots that vanish, and are left out there.

The motion may be given by joint variables, or by the bodies themselves (``solve_bodies``). Then
every joint has its own position error, tree joints too, and all of them need stabilisation.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.closed.divide_and_conquer import generalised_inverse, pushing
from kinetree.algorithms.closed.joint_space import (
    joint_constraints,
    keep_rows,
    loop_constraint,
    with_own_rows,
)
from kinetree.algorithms.coupled import AllJoints, all_joints, coupling_rows
from kinetree.algorithms.kinematics import base_velocities
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import SingularError, calling
from kinetree.loops.dynamics.methods import Accelerations, ConstrainedEquations
from kinetree.model import Loop, Model
from kinetree.model.arrays import require_instant
from kinetree.model.memo import remember
from kinetree.spatial import Motion, Plucker, crf, crm
from kinetree.textbook.elimination_order import EliminationOrder, elimination_order


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


def order_of(model: Model) -> EliminationOrder:
    """``EliminationOrder`` of a model's bodies and joints, computed once."""

    def make():
        ends = [(model.parent[i], i) for i in range(1, model.body_count + 1)]
        links = [ends[i - 1] for i in model.armature_joints]
        ends += [(loop.predecessor, loop.successor) for loop in model.loops]
        rows = [
            {b for j in (c.joint, *c.leaders) for b in (j, model.parent[j])}
            for c in model.couplings
        ]
        whole = set(range(model.body_count + 1))  # what depends on what is up to the functions
        rows += [whole] * sum(c.rows for c in model.constraints)
        return elimination_order(model.body_count, ends, rows, links)

    return remember(model, "elimination order", make)


def solve(instant: ConstrainedEquations) -> Accelerations:
    """Joint accelerations and loop forces by sparse elimination in maximal coordinates."""
    of, T = instant.model, instant.stabilization
    every = all_joints(of, instant.q, instant.qd, instant.tau)
    model, q, qd, tau, rows = with_own_rows(of, instant.q, instant.qd, every, T, instant.rows)
    X_0, v = base_velocities(model, q, qd)
    joints = joint_constraints(model, q, qd, X_0, v)
    joints = [*joints[: model.body_count], *keep_rows(joints[model.body_count :], instant.rows)]
    bodies = _Bodies(model, X_0, v, joints)
    moved = _solve_joints(bodies, tau, instant.f_ext, T, rows, order_of(of))
    qdd = [
        J.T_a.T @ (moved.a[J.successor] - moved.a[J.predecessor] - J.c)  # T_aᵀ S = 1
        for J in joints[: model.body_count]
    ]
    lam = moved.lam[model.body_count : len(joints)] + moved.lam[len(joints) + len(of.couplings) :]
    qdd, lam = (np.concatenate([np.zeros(0), *parts]) for parts in (qdd, lam))
    qdd = qdd[of.independent_variables[1]] if of.couplings else qdd
    return Accelerations(qdd, instant.forces(lam))


def solve_bodies(
    model: Model,
    X_0: Sequence[Plucker],
    v: Sequence[Motion],
    tau: ArrayLike,
    f_ext: Sequence | None = None,
    *,
    stabilization: float | None = None,
) -> BodyMotion:
    """``BodyMotion`` of bodies given by individual positions and velocities.

    Args:
        model: the mechanism. Couplings, armature and user-defined constraints, which are about
            joint variables, act on the joint variables that correspond to the positions and
            velocities of the bodies. If a body has no inertia, all equations are solved at once
            instead of block by block.
        X_0: transform from base to body coordinates for every body, entry 0 for the base.
        v: velocity of every body in base coordinates, entry 0 for the base.
        tau: joint forces of the tree joints [N or N·m], (nv,).
        f_ext: force on each body in base coordinates, entry 0 unused.
        stabilization: time constant [s] with which the errors of all joints and couplings decay;
            None for none.
    """
    require_instant(model, "solve_bodies")
    full, joints = model.uncoupled, []
    q, qd = np.zeros(full.nq), np.zeros(full.nv)
    for i, body in enumerate(model.bodies, start=1):
        J, q[full.q_slice[i]], qd[full.v_slice[i]] = _tree_constraint(body, i, X_0, v)
        joints.append(J)
    joints += [loop_constraint(loop, X_0, v) for loop in model.loops]
    rows, order = coupling_rows(model, q, qd), order_of(model)
    if stabilization is not None:
        behind = q - model.expand(q[model.independent_variables[0]]) if model.couplings else q
        error = [behind[full.q_slice[c.joint].start] for c in model.couplings]
        k = rows.k - 2 / stabilization * (rows.K @ qd) - np.array(error) / stabilization**2
        rows = rows._replace(k=k)
    if model.couplings:
        forces = np.zeros(full.nv)
        forces[model.independent_variables[1]] = tau
        tau = forces
    of_q, of_v = model.independent_variables if model.couplings else (slice(None), slice(None))
    every = AllJoints(full, q, qd, tau, rows)
    rows = with_own_rows(model, q[of_q], qd[of_v], every, stabilization).rows
    with calling("solve_bodies"):
        bodies = _Bodies(full, X_0, v, joints)
        return _solve_joints(bodies, tau, f_ext, stabilization, rows, order, massless=True)


def _tree_constraint(body, i, X_0, v):
    """Constraint of a tree joint with its position and velocity variables.

    ``c`` is the acceleration that the constraint demands along ``T``, and that of the joint
    variables, from velocity products, along ``T_a``.
    """
    joint, p = body.joint, body.parent
    J = loop_constraint(Loop(body.joint_name, p, i, joint, body.placement), X_0, v)
    q = joint.coordinates(X_0[i] @ (body.placement @ X_0[p]).inverse())
    v_J, T_a = X_0[i] @ (v[i] - v[p]), body.active_subspace(q)
    qd = T_a.T @ (v_J - joint.jcalc(q, np.zeros(joint.nv))[2])
    c = X_0[i].inv_apply(joint.jcalc(q, qd)[3]) + crm(v[i], v[i] - v[p])
    T_a = X_0[i].T @ T_a
    both = np.concatenate([J.T.to_array(), T_a.to_array()], axis=1).astype(float)
    c = np.linalg.solve(both.T, np.concatenate([J.T.T @ J.c, T_a.T @ c]).astype(float))
    return J._replace(T_a=T_a, c=Motion.from_array(c)), q, qd


class _Bodies(NamedTuple):
    """Bodies at an instant, and the constraints of all joints between them."""

    model: Any
    X_0: Sequence
    v: Sequence
    joints: list


def _solve_joints(bodies, tau, f_ext, stabilization, rows, order, massless=False):
    """``BodyMotion`` of bodies whose joints and couplings are all constraints."""
    model, X_0, v, joints = bodies
    system = BlockSystem(order)
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
    solved = system.solution(lambda node: f"body {model.body_names[node[1]]!r}", massless)

    a = [Motion.zero(), *(Motion.from_array(solved.x["body", i + 1]) for i in range(len(X_0) - 1))]
    lam = [-solved.x["joint", n] for n in range(len(joints))]
    f_c = [None, *(J.T @ x for J, x in zip(joints, lam, strict=True))]
    lam += [-solved.x["row", c] for c in range(0 if rows is None else len(rows.k))]
    return BodyMotion(a, f_c, lam, solved.rank, solved.redundancy)


def _ends(J, F):
    """Forces ``F`` of a joint on each of its bodies, by body number."""
    return {b: sign * F for b, sign in ((J.predecessor, -1), (J.successor, 1)) if b != 0}


def _constrain(system, node, ends, k):
    """Add the constraint ``Σ Fᵀ a = k`` of several bodies to the block system."""
    system.diagonal[node], system.right[node] = np.zeros((len(k), len(k))), k
    system.size[node] = np.zeros(len(k))
    system.pushes[node] = np.any([pushing(F) for F in ends.values()], axis=0)
    for b, F in ends.items():
        system.add(("body", b), node, F)
        I = system.diagonal["body", b]
        system.size[node] += np.einsum("im,im->m", F, _spread(I, F))


def _spread(I, F):
    """Accelerations ``I⁻¹ F`` of a body; zero where it has no separate inertia."""
    return np.linalg.lstsq(I, F, rcond=1e-12)[0]


def _drive(system, model, i, J, tau):
    """Add a tree joint's force and armature to the block system."""
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
    """Add a coupling ``K qdd = k`` of joint accelerations to the block system."""
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


# --- block factorisation in a given order: RBDA §8.13 --------------------------------------------
# ``A = L D Lᵀ`` with blocks of ``A``, ``L`` and ``D`` where the order of elimination has them, and
# nowhere else. Every pivot block is either positive definite or negative semidefinite; the rank of
# the latter is decided here.

_DEPENDENT = 1e-11  # singular value, relative to the largest, of redundant equations
_NO_INERTIA = 64 * np.finfo(float).eps
"""Relative pivot below which a body counts as massless."""


class BlockSolution(NamedTuple):
    """Solution of a block system."""

    x: dict
    """By node."""
    rank: int
    """Number of independent constraints."""
    redundancy: int
    """Number of constraints whose pivots vanish."""


class BlockSystem:
    """``A x = b`` in blocks by node: positive ones for bodies, constraints for all others.

    Attributes:
        order: the order of elimination.
        diagonal: blocks on the diagonal; those of constraints start from zero.
        right: right-hand sides.
        size: for each constraint, the diagonal that its pivot is a remainder of.
        pushes: for each constraint, which of its rows are forces and not moments alone.
    """

    def __init__(self, order):
        self.order = order
        self.diagonal, self.right, self.size, self.pushes = {}, {}, {}, {}
        self.off = {node: {} for node in order.nodes}

    def add(self, u, v, block):
        """Add a block at row ``u``, column ``v``, and its mirror image."""
        _add(self.diagonal, self.off, u, v, block)

    def solution(self, describe, massless=False) -> BlockSolution:
        """Solution by sparse factorisation with one step of iterative refinement.

        Args:
            describe: what to call a node whose pivot should be positive definite and is not.
            massless: whether to solve all at once where there is such a node.
        """
        try:
            factors = self._factors(describe)
        except SingularError:
            if not massless:
                raise
            return self._all_at_once(describe)
        x = factors.substitute(self.order, self.right)
        correction = factors.substitute(self.order, self._remainder(x))
        x = {node: x[node] + correction[node] for node in x}
        return BlockSolution(x, factors.rank, factors.redundancy)

    def _all_at_once(self, describe):
        """Solution of the dense matrix, if it determines all body accelerations."""
        nodes = list(self.order.nodes)
        place = np.cumsum([0, *(len(self.right[v]) for v in nodes)])
        at = {v: slice(place[n], place[n + 1]) for n, v in enumerate(nodes)}
        A = np.zeros((place[-1], place[-1]))
        for v in nodes:
            A[at[v], at[v]] = self.diagonal[v]
            for u, B in self.off[v].items():
                A[at[u], at[v]] = B
        size = np.sqrt(np.maximum(np.abs(A).max(axis=1, initial=0.0), np.finfo(float).tiny))
        U, s, Vt = np.linalg.svd(A / np.outer(size, size))
        rank = int(np.sum(s > _DEPENDENT * np.max(s, initial=0.0)))
        bodies = np.concatenate([np.full(len(self.right[v]), v[0] == "body") for v in nodes])
        loose = np.any(np.abs(Vt[rank:]) > np.sqrt(_DEPENDENT), axis=0)
        undetermined = [describe(v) for v in nodes if v[0] == "body" and np.any(loose[at[v]])]
        if undetermined:
            raise SingularError(
                f"nothing determines the acceleration of {undetermined[0]}, which has no inertia: "
                f"give it mass and rotational inertia, or constrain it"
            )
        b = np.concatenate([self.right[v] for v in nodes]) / size
        x = Vt[:rank].T @ ((U[:, :rank].T @ b) / s[:rank]) / size
        redundancy = len(s) - rank
        rows = int(np.sum(~bodies))
        return BlockSolution({v: x[at[v]] for v in nodes}, rows - redundancy, redundancy)

    def _factors(self, describe):
        """Block factors of the system, by eliminating nodes in order."""
        diagonal, off = dict(self.diagonal), {v: dict(column) for v, column in self.off.items()}
        sizes = {v: np.abs(np.diagonal(A)) for v, A in diagonal.items()}
        pivots, lower, rank, redundancy = {}, {}, 0, 0
        for v, neighbours in zip(self.order.nodes, self.order.neighbours, strict=True):
            if v[0] == "body":
                pivots[v] = _inverse(diagonal[v], sizes[v], v, describe)
            else:
                inverse, r = generalised_inverse(-diagonal[v], self.size[v], self.pushes.get(v))
                pivots[v] = -inverse
                rank, redundancy = rank + r, redundancy + len(inverse) - r
            lower[v] = [(u, off[v][u]) for u in neighbours if u in off[v]]
            for n, (u, B) in enumerate(lower[v]):
                W = -B @ pivots[v]
                for w, other in lower[v][n:]:
                    block = W @ other.T
                    _add(diagonal, off, u, w, block)
                    if u == w:
                        sizes[u] = sizes[u] + np.abs(np.diagonal(block))
        return _Factors(pivots, lower, rank, redundancy)

    def _remainder(self, x):
        """Residual ``b - A x`` of the block system, by node."""
        return {
            v: sum(
                (-(B.T @ x[u]) for u, B in self.off[v].items()),
                start=self.right[v] - self.diagonal[v] @ x[v],
            )
            for v in self.order.nodes
        }


class _Factors(NamedTuple):
    """``L D Lᵀ``: inverses of the blocks of ``D``, and columns of ``L D``."""

    pivots: dict
    lower: dict
    rank: int
    redundancy: int

    def substitute(self, order, right):
        """Solution ``A⁻¹ b`` by forward and back substitution, by node."""
        right, x = dict(right), {}
        for v in order.nodes:
            b = self.pivots[v] @ right[v]
            for u, B in self.lower[v]:
                right[u] = right[u] - B @ b
        for v in reversed(order.nodes):
            b = right[v]
            for u, B in self.lower[v]:
                b = b - B.T @ x[u]
            x[v] = self.pivots[v] @ b
        return x


def _add(diagonal, off, u, v, block):
    """Add a block to a symmetric block matrix, in place."""
    if u == v:
        diagonal[u] = diagonal[u] + block
        return
    known = off[v].get(u)
    off[v][u] = block if known is None else known + block
    off[u][v] = off[v][u].T


def _inverse(A, size, node, describe):
    """Inverse of a pivot block; SingularError if rounding errors would pass for inertia."""
    scale = 1 / np.sqrt(np.maximum(size, np.finfo(float).tiny))
    if np.linalg.eigvalsh(A * scale * scale[:, None])[0] <= _NO_INERTIA:
        raise SingularError(
            f"the sparse method needs an invertible inertia for every single body, and "
            f"{describe(node)} has none: give it mass and rotational inertia, or use null_space, "
            f"which lets bodies be massless"
        )
    return np.linalg.inv(A)
