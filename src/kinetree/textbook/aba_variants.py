"""Articulated-body algorithms on the other formulae of Table 7.2, and their derivation — RBDA §7.4.

Variant 1 propagates inverse inertias through constraint forces. It can collect the mechanism in
any body, and what it finds there, ``a = Phi f + b``, is right on grounded mechanisms too, where a
handle with less than six degrees of freedom has no inertia. Variant 2 propagates inertias through
constraint forces. Both are dearer than ``aba`` and let no single body (variant 1) or articulated
body (variant 2) be without inertia. ``qdd`` is recovered as ``T_aᵀ (a_s - a_p - c)``. Armature,
which acts against ``qdd`` itself, has no place in them. Dense matrices in base coordinates.

Formulae are derived by elimination — (7.51)-(7.56). Five block equations say what is known about
two handles and the joint between them. They are put in a composite system, as nearly upper
triangular as its zeros allow, brought to triangular form by block elimination, and back-substituted
until the wanted unknown stands alone as an affine function of the given one. The book does this
with symbols for each new set of equations; here it is done with numbers, for any set. Cannot be
traced: pivots are tested for rank.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np

from kinetree.algorithms import ltl
from kinetree.algorithms.aba_absolute import bodies_in_base
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import base_transforms
from kinetree.errors import SingularError
from kinetree.textbook.projection import HandleResponse


@refuses("loops", "couplings", "armature", use="implicit.forward_dynamics, which supports all")
def forward_dynamics_1(model, q, qd, tau, f_ext=None, *, root=None):
    """Joint accelerations by articulated-body variant 1, collected at the body ``root``."""
    joints = _in_base(model, q, qd, tau, f_ext)
    single, _, steps = _collect(model, joints, _number(model, root))

    # Take the joints off in reverse order. What is left of f acts on the bare body.
    f = [np.zeros(6, dtype=int)] * len(single)
    for near, far, j, step in reversed(steps):
        f_c = joints.T[j] @ (step.gain @ f[near] + step.offset)
        f[far], f[near] = f_c, f[near] - f_c
    a = [Phi @ f_i + b for (Phi, b), f_i in zip(single, f, strict=True)]
    return _joint_accelerations(model, joints, a)


@refuses("loops", "couplings", "armature", use="implicit.forward_dynamics, which supports all")
def body_response(model, q, qd, tau, body, f_ext=None):
    """Response ``Phi``, ``b`` of one body with the mechanism attached, variant 1, base frame.

    The body may be any one of a grounded or floating tree. The rank of ``Phi`` is its degree of
    freedom; ``b`` is the true bias acceleration, gravity included — RBDA (7.3).
    """
    joints = _in_base(model, q, qd, tau, f_ext)
    root = _number(model, body)
    _, collected, _ = _collect(model, joints, root)
    Phi, b = collected[root]
    return HandleResponse(Phi, b + model.a_g.to_array())


@refuses("loops", "couplings", "armature", use="implicit.forward_dynamics, which supports all")
def forward_dynamics_2(model, q, qd, tau, f_ext=None):
    """Joint accelerations by articulated-body variant 2 (inertias and constraint forces)."""
    lam, NB = model.parent, model.body_count
    joints = _in_base(model, q, qd, tau, f_ext)
    IA, pA, c, T, Ta, tau_J = joints
    IA, pA, step, a = list(IA), list(pA), [None] * (NB + 1), [None] * (NB + 1)
    IA[0], pA[0] = np.zeros((6, 6), dtype=int), np.zeros(6, dtype=int)
    for i in range(NB, 0, -1):
        p = lam[i]
        _inverse(model, i, IA[i], "the articulated body")  # names the body if it has no inertia
        step[i] = variant_2(IA[p], pA[p], IA[i], pA[i], T[i], Ta[i], c[i], tau_J[i])
        IA[p], pA[p] = step[i].matrix, step[i].bias

    a[0] = -model.a_g.to_array()
    for i in range(1, NB + 1):
        f = Ta[i] @ tau_J[i] + T[i] @ (step[i].gain @ a[lam[i]] + step[i].offset)
        a[i] = _inverse(model, i, IA[i], "the articulated body") @ (f - pA[i])
    return _joint_accelerations(model, joints, a)


class _Joints(NamedTuple):
    """Bodies and joints as dense arrays in base coordinates."""

    I: list
    p: list
    c: list
    T: list
    Ta: list
    tau: list


def _in_base(model, q, qd, tau, f_ext):
    """Inertias, forces, accelerations and joint subspaces of all bodies, in base coordinates."""
    NB = model.body_count
    X_0, _, _, c, I, p = bodies_in_base(model, q, qd, f_ext)
    T, Ta, tau_J = ([None] * (NB + 1) for _ in range(3))
    for i in range(1, NB + 1):
        q_i = q[model.q_slice[i]]
        T[i] = (X_0[i].T @ model.joint[i].constraint_subspace(q_i)).to_array()
        Ta[i] = (X_0[i].T @ model.bodies[i - 1].active_subspace(q_i)).to_array()
        tau_J[i] = tau[model.v_slice[i]]
    I, p, c = ([None] + [_dense(y) for y in x[1:]] for x in (I, p, c))
    return _Joints(I, p, c, T, Ta, tau_J)


def _collect(model, joints, root):
    """Responses ``(Phi, b)`` of bare and of collected bodies, and the assembly steps."""
    single = _single_bodies(model, joints)
    collected, steps = list(single), []
    # Actuators are among the external forces of the single bodies — RBDA §7.4, footnote 1.
    no_actuator, no_force = np.zeros((6, 0), dtype=int), np.zeros(0, dtype=int)
    for near, far, j in reversed(_outward(model, root)):
        c = joints.c[j] if far == j else -joints.c[j]
        (Phi1, b1), (Phi2, b2) = collected[near], collected[far]
        step = variant_1(Phi1, b1, Phi2, b2, joints.T[j], no_actuator, c, no_force)
        collected[near] = step.matrix, step.bias
        steps.append((near, far, j, step))
    return single, collected, steps


def _single_bodies(model, joints):
    """Response ``(Phi, b)`` of every single body under its actuators; zero for the base."""
    f: list = [None if p is None else -p for p in joints.p]
    f[0] = np.zeros(6, dtype=int)
    for i in range(1, model.body_count + 1):
        f_a = joints.Ta[i] @ joints.tau[i]
        f[i], f[model.parent[i]] = f[i] + f_a, f[model.parent[i]] - f_a
    single = [(np.zeros((6, 6), dtype=int), -model.a_g.to_array())]
    for i in range(1, model.body_count + 1):
        Phi = _inverse(model, i, joints.I[i], "the single body")
        single.append((Phi, Phi @ f[i]))
    return single


def _outward(model, root):
    """Triples (near, far, joint) of all joints, ordered outward from the body ``root``."""
    steps, reached = [], [root]
    for near in reached:
        neighbours = [(j, j) for j in model.children[near]]
        neighbours += [(model.parent[near], near)] if near != 0 else []
        for far, j in neighbours:
            if far not in reached:
                steps.append((near, far, j))
                reached.append(far)
    return steps


def _joint_accelerations(model, joints, a):
    """Joint accelerations (nv,) from those of the bodies on both sides."""
    Ta, c, lam = joints.Ta, joints.c, model.parent
    return np.concatenate(
        [joint_acceleration(Ta[i], a[lam[i]], a[i], c[i]) for i in range(1, model.body_count + 1)]
    )


def _inverse(model, i, I, what):
    """Inverse of body i's inertia matrix; the error names the body if it is singular."""
    return ltl.inverse(
        I,
        ltl.dense(6),
        lambda k: (
            f"{what} {model.body_names[i]!r} has no inverse inertia, which this variant needs: "
            f"give it mass and rotational inertia, or use aba.forward_dynamics"
        ),
    )


def _number(model, body):
    """Number of a body by name, 0 for None."""
    return 0 if body is None else model.body_index(body)


def _dense(x):
    """Array or matrix of a spatial vector or inertia."""
    return x.to_array() if hasattr(x, "to_array") else x.to_matrix()


# --- Joining two articulated bodies by a joint — RBDA §7.2.2, §7.4, Table 7.2 --------------------
# Dense 6×6 matrices, everything in one coordinate system. Handle 1 is the predecessor of the new
# joint and the handle of the result, handle 2 the successor. ``c`` is the full velocity-product
# acceleration of the joint (``a2 - a1 = S qdd + c``).
#
#     standard    f = I a + p      through S    both handles with six degrees of freedom
#     variant_1   a = Phi f + b    through T    the joint repeats no constraint that is there
# already;
#                                               enough: one handle with six degrees of freedom
#     variant_2   f = I a + p      through T    both handles with six degrees of freedom
#
# The formulae agree wherever they exist: ``Phi`` of variant 1 is the inverse of ``I`` of the others
# and ``b = -Phi p``. ``derivation`` obtains all three by elimination.


class HandleAssembly(NamedTuple):
    """Equation of the new handle, and the new joint's unknown as a function of its variable.

    ``f = matrix a1 + bias`` and ``unknown = gain a1 + offset`` for the standard formulae (the
    unknown is ``qdd``) and variant 2 (the constraint force ``lambda``); in variant 1 ``a1`` and
    ``f`` change places.
    """

    matrix: np.ndarray
    bias: np.ndarray
    gain: np.ndarray
    offset: np.ndarray


def glue(matrix_1, bias_1, matrix_2, bias_2):
    """Inertia and bias force of two handles rigidly connected (RBDA §7.1, Figure 7.2)."""
    return matrix_1 + matrix_2, bias_1 + bias_2


def standard(I1, p1, I2, p2, S, c, tau):
    """Articulated inertia and bias force of handle 1, ``S`` eliminated — RBDA (7.18)–(7.20)."""
    D_inv = inverse(S.T @ I2 @ S, "Sᵀ I2 S: the joint moves no inertia beyond it")
    z = tau - S.T @ (p2 + I2 @ c)
    gain, offset = -D_inv @ S.T @ I2, D_inv @ z
    return HandleAssembly(I1 + I2 + I2 @ S @ gain, p1 + p2 + I2 @ (c + S @ offset), gain, offset)


def variant_1(Phi1, b1, Phi2, b2, T, Ta, c, tau):
    """Response ``Phi``, ``b`` of handle 1 from inverse inertias and ``T`` (RBDA Table 7.2)."""
    Y_inv = inverse(T.T @ (Phi1 + Phi2) @ T, "Tᵀ (Phi1 + Phi2) T: the joint repeats a constraint")
    z = T.T @ (c + b1 - b2 - (Phi1 + Phi2) @ Ta @ tau)
    gain, offset = Y_inv @ T.T @ Phi1, Y_inv @ z
    return HandleAssembly(
        Phi1 - Phi1 @ T @ gain, b1 - Phi1 @ Ta @ tau - Phi1 @ T @ offset, gain, offset
    )


def variant_2(I1, p1, I2, p2, T, Ta, c, tau):
    """Articulated inertia and bias force of handle 1 from ``I``, ``p``, ``T`` (RBDA Table 7.2)."""
    I2_inv = inverse(I2, "I2: handle 2 does not have six degrees of freedom, or no mass")
    Y_inv = inverse(T.T @ I2_inv @ T, "Tᵀ I2⁻¹ T: the joint repeats a constraint")
    z = T.T @ (c - I2_inv @ (Ta @ tau - p2))
    gain, offset = Y_inv @ T.T, Y_inv @ z
    return HandleAssembly(I1 + T @ gain, p1 + Ta @ tau + T @ offset, gain, offset)


def joint_acceleration(Ta, a1, a2, c):
    """Joint acceleration ``T_aᵀ (a2 - a1 - c)``, given ``T_aᵀ S = 1`` (RBDA §7.4)."""
    return Ta.T @ (a2 - a1 - c)


def inverse(A, what):
    """Inverse of a positive-definite matrix; SingularError with the description ``what``."""
    return ltl.inverse(A, ltl.dense(len(A)), lambda k: f"assembly is singular in {what}")


class BlockEquation(NamedTuple):
    """``Σ terms[x] x = constant`` over named vector unknowns ``x``."""

    terms: dict
    constant: np.ndarray


def assembly_equations(handle_1, handle_2, joint, *, inverted=False, implicit=False):
    """The five block equations of two handles and a joint — RBDA (7.51)–(7.55).

    Args:
        handle_1: pair ``(I, p)`` of ``f = I a + p``; with ``inverted`` a pair ``(Phi, b)`` of
            ``a = Phi f + b``.
        handle_2: the same for the other handle.
        joint: ``(S, c, tau)``; with ``implicit`` ``(T, Ta, c, tau)``, where the unknown of the
            joint is ``lam`` in place of ``qdd``.
        inverted: the book's change 1.
        implicit: the book's change 2.
    """
    one = np.eye(6)
    left, right = ("a", "f") if inverted else ("f", "a")
    equations = [
        BlockEquation({f"{left}{n}": one, f"{right}{n}": -matrix}, bias)
        for n, (matrix, bias) in ((1, handle_1), (2, handle_2))
    ]
    equations.append(BlockEquation({"f": one, "f1": -one, "f2": -one}, np.zeros(6)))
    if implicit:
        T, Ta, c, tau = joint
        equations.append(BlockEquation({"f2": one, "lam": -T}, Ta @ tau))
        equations.append(BlockEquation({"a2": T.T, "a1": -T.T}, T.T @ c))
    else:
        S, c, tau = joint
        equations.append(BlockEquation({"a2": one, "a1": -one, "qdd": -S}, c))
        equations.append(BlockEquation({"f2": S.T}, tau))
    return equations


def derive(equations, wanted, given):
    """Matrix and vector ``M, n`` with ``wanted = M given + n``, by block elimination."""
    for rows, columns in orders(equations, wanted, given):
        solution = _solve(*composite(equations, rows, columns, given))
        if solution is not None:
            return solution
    raise SingularError(
        f"the equations do not determine {wanted!r} as a function of {given!r}: in every order "
        f"some pivot block is singular"
    )


def composite(equations, rows, columns, given):
    """Block matrix, constants and right sides of block equations, with rows and columns ordered.

    Returns the blocks: ``A`` and ``B`` as lists of matrices (None where a block is zero), the
    constants as a list of vectors.
    """
    ordered = [equations[r] for r in rows]
    A = [[e.terms.get(x) for x in columns] for e in ordered]
    B = [-e.terms[given] if given in e.terms else None for e in ordered]
    return A, [e.constant for e in ordered], B


def orders(equations, wanted, given):
    """Orders of equations and unknowns by the book's rules, fewest lower blocks first."""
    size = {x: block.shape[1] for e in equations for x, block in e.terms.items()}
    unknowns = [x for x in size if x != given]
    bottom = [x for x in unknowns if size[x] != 6] or [unknowns[-1]]
    middle = [x for x in unknowns if x != wanted and x not in bottom]
    last = [r for r, e in enumerate(equations) if len(e.constant) != 6] or [len(equations) - 1]
    upper = [r for r in range(len(equations)) if r not in last]
    found = []
    for rows in permutations(upper):
        for columns in permutations(middle):
            order = ([*rows, *last], [wanted, *columns, *bottom])
            A, _, _ = composite(equations, *order, given)
            below = sum(A[r][k] is not None for r in range(len(A)) for k in range(r))
            found.append((below, order))
    return [order for _, order in sorted(found, key=lambda item: item[0])]


def _solve(A, constant, B):
    """First unknown of a composite block system as ``(M, n)``; None at a singular pivot."""
    A, right = [list(row) for row in A], _right_hand_sides(constant, B)
    N = len(A)
    for k in range(N):
        pivot = A[k][k]
        if pivot is None or len(pivot) != pivot.shape[1] or _is_singular(pivot):
            return None
        for r in range(k + 1, N):
            if A[r][k] is not None:
                factor = A[r][k] @ np.linalg.inv(pivot)
                for j in range(k, N):
                    if A[k][j] is not None:
                        change = factor @ A[k][j]
                        A[r][j] = -change if A[r][j] is None else A[r][j] - change
                right[r] = right[r] - factor @ right[k]
    x = {}
    for k in reversed(range(N)):
        known = sum(A[k][j] @ x[j] for j in range(k + 1, N) if A[k][j] is not None)
        x[k] = np.linalg.solve(A[k][k], right[k] - known)
    return x[0][:, 1:], x[0][:, 0]


def _right_hand_sides(constant, B):
    """Constants and coefficients of the given unknown as columns side by side."""
    width = next(b.shape[1] for b in B if b is not None)
    zero = [np.zeros((len(c), width)) for c in constant]
    return [
        np.column_stack([c, z if b is None else b])
        for c, b, z in zip(constant, B, zero, strict=True)
    ]


def _is_singular(block):
    """Whether a matrix block cannot be inverted with usable accuracy."""
    return block.size > 0 and np.linalg.cond(block) > 1e12


# --- accelerations with gravity: RBDA §7.3 -------------------------------------------------------


def true_accelerations(model, bodies):
    """Accelerations of all bodies with gravity added back, in body coordinates."""
    X_0 = base_transforms(model, bodies.X)
    return [a + X @ model.a_g for a, X in zip(bodies.a, X_0, strict=True)]
