"""A mechanism as tables for steps with contact, and the factors of its inertia matrix.

Blocks of matrices belong to nodes, unbranched runs of velocity variables: see ``newton.problem``.
"""

import numpy as np

from kinetree.codegen.procedures import dot, procedure, record, sqrt, view
from kinetree.contact.newton.problem import Problem
from kinetree.contact.scheme.inertia import alone
from kinetree.model.limits import joint_values


@record
class Mechanism:
    """Trees of bodies, what their joints do by themselves, and their state within a step.

    Attributes:
        bodies: number of them, the base included, which is body 0.
        nq, nv: numbers of position and velocity variables.
        parent: of bodies.
        root: first body of the tree of each body, whose origin ``S`` and ``F`` are about.
        first, count: variables of the joint of a body.
        last: the last variable that moves a body, -1 for none.
        node: that of ``last``, -1 for none.
        armature, damping, stiffness: of the variables;  lead, lag: by how much the force of springs
            and dampers in a step is less for ``v`` before it, and for its change: ``resistance``.
        units: of the variables, in which shifts of positions are bounded.
        free: 0 for variables that move prescribed, 1 for others.
        prescribed: 1 where there are such variables.
        alone: 1 for those of free bodies that are all of their tree: see ``stepping.inertia``.
        all_alone: 1 where all are: velocity products are zero then.
        pose: of bodies, ``[R | p]``.
        S, F: subspaces and forces of composite bodies, see ``terms``.
        twist: velocities of bodies about the points of their trees, angular first.
    """

    bodies: int
    nq: int
    nv: int
    parent: "int[:]"
    root: "int[:]"
    first: "int[:]"
    count: "int[:]"
    last: "int[:]"
    node: "int[:]"
    armature: "float[:]"
    damping: "float[:]"
    stiffness: "float[:]"
    lead: "float[:]"
    lag: "float[:]"
    units: "float[:]"
    free: "float[:]"
    prescribed: int
    alone: "float[:]"
    all_alone: int
    pose: "float[:, 12]"
    S: "float[:, 6]"
    F: "float[:, 6]"
    twist: "float[:, 6]"


def mechanism_of(tree, problem, stiffness, damping, free) -> Mechanism:
    """``Mechanism`` tables of a spanning tree with implicit stiffness and damping."""
    n, nv = tree.body_count + 1, tree.nv
    parent = np.array([0, *tree.parent[1:]], dtype=np.int64)
    first = np.array([0, *(s.start for s in tree.v_slice[1:])], dtype=np.int64)
    count = np.array([0, *(s.stop - s.start for s in tree.v_slice[1:])], dtype=np.int64)
    root, last = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    for i in range(1, n):
        up = parent[i]
        root[i] = root[up] if up else i
        last[i] = first[i] + count[i] - 1 if count[i] else last[up]
    node = np.where(last >= 0, problem.dof_node[np.maximum(last, 0)] if nv else -1, -1)
    pose, by_itself = np.zeros((n, 12)), alone(tree)
    pose[0, [0, 5, 10]] = 1.0
    return Mechanism(
        bodies=n,
        nq=tree.nq,
        nv=nv,
        parent=parent,
        root=root,
        first=first,
        count=count,
        last=last,
        node=node.astype(np.int64),
        armature=np.array(tree.armature, dtype=float),
        damping=np.array(joint_values(tree, "damping") + damping, dtype=float),
        stiffness=np.array(joint_values(tree, "stiffness") + stiffness, dtype=float),
        units=np.ones(nv),
        free=free,
        lead=np.zeros(nv),
        lag=np.zeros(nv),
        prescribed=int(not np.all(free == 1)),
        alone=by_itself,
        all_alone=int(np.all(by_itself == 1)),
        pose=pose,
        S=np.zeros((nv, 6)),
        F=np.zeros((nv, 6)),
        twist=np.zeros((n, 6)),
    )


@procedure
def body_velocities(m: Mechanism, v: "float[:]", twist: "float[:, 6]"):
    """Spatial velocities of all bodies, in world axes about their tree's point (RBDA Ex. 4.4)."""
    twist[0] = 0.0
    for i in range(1, m.bodies):
        twist[i] = twist[m.parent[i]]
        for n in range(m.first[i], m.first[i] + m.count[i]):
            twist[i] += m.S[n] * v[n]


@procedure
def resistance(K: float, D: float, H: float, h: float, alpha: float) -> "(float, float)":
    """Implicit coefficients ``lead`` and ``lag`` of springs K and dampers D on inertias ``H``.

    The force of a spring is that after a displacement ``θ h v + κ h Δv``. For soft springs
    ``θ = 1/2, κ = 1/4``, the trapezoidal rule: second order, and linear springs keep their energy.
    For stiff ones ``θ = 3/2, κ = 1``, the middle of the next step, by which contacts close, too:
    they are at rest after two steps, while with the force at the end of the step velocities would
    change sign for ever. In between, with ``κ ≥ θ/2 ≥ 1/4``, ``T + V + h²/2 vᵀ K (κ - θ/2) v``
    does not grow. Dampers go from the mean velocity to the one after the step. Where ``q_m = q``,
    ``alpha = 0``, all is at the end of the step.
    """
    stiff = h * h * K * (h * h * K)
    damped = h * D * (h * D)
    soft = 2.0 * alpha * (16.0 * H * H)
    loose = soft / (stiff + 16.0 * H * H)
    lead = h * K * (1.0 + alpha - loose)
    lag = h * K * (1.0 - 0.75 * loose) + D * (1.0 - 0.5 * soft / (damped + 16.0 * H * H))
    return lead, lag


@procedure
def inertia_blocks(m: Mechanism, p: Problem, h: float, alpha: float):
    """Build ``M = H + armature + h lag`` in blocks by nodes, ``H_kl = F_k · S_l`` — RBDA (6.20)."""
    for a in range(p.nodes):
        for n in range(p.node_blocks_first[a], p.node_blocks_first[a + 1]):
            b = p.block_ancestor[n]
            at = p.block_at[n]
            wide = p.node_count[b]
            for i in range(p.node_count[a]):
                k = p.node_first[a] + i
                F = m.F[k]
                most = i + 1 if a == b else wide
                for j in range(most):
                    l = p.node_first[b] + j
                    x = dot(F[:3], m.S[l, :3]) + dot(F[3:], m.S[l, 3:])
                    x *= m.free[k] * m.free[l]
                    p.M[at + i * wide + j] = x
                    if a == b:
                        p.M[at + j * wide + i] = x
                if a == b:
                    own = view(p.M, at + i * wide + i)
                    own[0] += m.armature[k] * m.free[k] + (1.0 - m.free[k])
                    K = m.stiffness[k] * m.free[k]
                    D = m.damping[k] * m.free[k]
                    m.lead[k] = m.lag[k] = 0.0
                    if K > 0.0 or D > 0.0:
                        m.lead[k], m.lag[k] = resistance(K, D, own[0], h, alpha)
                        own[0] += h * m.lag[k]


@procedure
def factor(p: Problem, L: "float[:]", size: int) -> int:
    """Factor ``M`` into ``L`` without fill-in (RBDA §6.5); the failing variable, or -1.

    Of a node its block is ``D = C Cᵀ``, and those with its ancestors are ``C⁻¹ B``. The number
    of the variable that moves no inertia comes back, or -1.
    """
    L[:size] = p.M[:size]
    for r in range(p.nodes):
        i = p.nodes - 1 - r
        n = p.node_count[i]
        first = p.node_blocks_first[i]
        C = view(L, p.block_at[first])
        for k in range(n):
            for l in range(k + 1):
                x = C[k * n + l]
                for t in range(l):
                    x -= C[k * n + t] * C[l * n + t]
                if k == l:
                    if not x > 1e-15 * abs(p.M[p.block_at[first] + k * n + k]):
                        return p.node_first[i] + k
                    C[k * n + k] = sqrt(x)
                else:
                    C[k * n + l] = x / C[l * n + l]
        last = p.node_blocks_first[i + 1]
        for a in range(first + 1, last):
            w = p.node_count[p.block_ancestor[a]]
            B = view(L, p.block_at[a])
            for k in range(n):
                for t in range(k):
                    c = C[k * n + t]
                    for s in range(w):
                        B[k * w + s] -= c * B[t * w + s]
                c = 1.0 / C[k * n + k]
                for s in range(w):
                    B[k * w + s] *= c
        for a in range(first + 1, last):
            j = p.block_ancestor[a]
            w = p.node_count[j]
            A = view(L, p.block_at[a])
            for b in range(a, last):
                u = p.node_count[p.block_ancestor[b]]
                B = view(L, p.block_at[b])
                D = view(L, p.block_at[p.node_blocks_first[j] + b - a])
                for k in range(n):
                    for s in range(w):
                        x = A[k * w + s]
                        for t in range(u):
                            D[s * u + t] -= x * B[k * u + t]
    return -1


@procedure
def divide(p: Problem, L: "float[:]", x: "float[:]"):
    """Solve in place ``x := M⁻¹ x`` with the factors ``L`` of ``M``."""
    divide_by_lower(p, L, x, 0, p.nodes)
    divide_by_upper(p, L, x)


@procedure
def divide_by_lower(p: Problem, L: "float[:]", x: "float[:]", first_node: int, nodes: int):
    """First half of ``divide``, by the lower factor: ``y`` with ``x' M⁻¹ x = y' y``.

    ``nodes``: those before it are the only ones with numbers other than zero;  ``first_node``: the
    first node of their trees.
    """
    for r in range(nodes - first_node):
        i = nodes - 1 - r
        n = p.node_count[i]
        y = view(x, p.node_first[i])
        any_number = False
        for k in range(n):
            any_number = any_number or y[k] != 0.0
        if not any_number:
            continue
        first = p.node_blocks_first[i]
        C = view(L, p.block_at[first])
        for k in range(n):
            for t in range(k):
                y[k] -= C[k * n + t] * y[t]
            y[k] /= C[k * n + k]
        for a in range(first + 1, p.node_blocks_first[i + 1]):
            j = p.block_ancestor[a]
            w = p.node_count[j]
            B = view(L, p.block_at[a])
            z = view(x, p.node_first[j])
            for k in range(n):
                for s in range(w):
                    z[s] -= B[k * w + s] * y[k]


@procedure
def divide_by_upper(p: Problem, L: "float[:]", x: "float[:]"):
    """Second half of ``divide``: back substitution with the upper factor of ``M``."""
    for i in range(p.nodes):
        n = p.node_count[i]
        y = view(x, p.node_first[i])
        first = p.node_blocks_first[i]
        C = view(L, p.block_at[first])
        for a in range(first + 1, p.node_blocks_first[i + 1]):
            j = p.block_ancestor[a]
            w = p.node_count[j]
            B = view(L, p.block_at[a])
            z = view(x, p.node_first[j])
            for k in range(n):
                for s in range(w):
                    y[k] -= B[k * w + s] * z[s]
        for r in range(n):
            k = n - 1 - r
            for t in range(k + 1, n):
                y[k] -= C[t * n + k] * y[t]
            y[k] /= C[k * n + k]
