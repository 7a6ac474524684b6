"""Forward dynamics by divide and conquer, loops included — RBDA §7.5; Featherstone 1999.

Joins the bodies pairwise according to a balanced plan (``assembly_plan``) until the whole
mechanism is one articulated body without handles, then takes it apart again, which yields the
constraint forces from the top down and at last the accelerations of the single bodies. Steps on
the same level of the plan are independent; here they run one after another.

A handle is a place on a body where joints can still be attached — (7.57)-(7.63). ``A12`` has a set
of handles 1 that it keeps and a set 2 that joints are about to connect to set 3 of ``A34``, which
keeps set 4. All is in base coordinates, forces of actuators already in the bias accelerations:
``T_a tau`` on set 3, ``-T_a tau`` on set 2. Inverse inertias, because handles of one body do not
move independently: every body needs its own invertible inertia. Cannot be traced: the rank of
``Y`` is decided by its eigenvalues.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.aba_absolute import bodies_in_base
from kinetree.algorithms.closed.joint_space import joint_constraints, keep_rows
from kinetree.algorithms.closed.rank import kept_rows_at
from kinetree.algorithms.closed.systems import block_diagonal
from kinetree.algorithms.honours import refuses
from kinetree.errors import ShapeError, SingularError
from kinetree.spatial import Force, Motion

RANK_TOLERANCE = 1e-10
"""Eigenvalue of ``Y``, scaled to unit diagonal, below which a constraint counts as repeated."""


class HandleSets(NamedTuple):
    """``(a_k, a_c) = [[Phi_k, Phi_kc], [Phi_kcᵀ, Phi_c]] (f_k, f_c) + (b_k, b_c)`` — RBDA (7.57).

    Set k is kept, set c about to be connected; each has any number of handles, none included.
    """

    Phi_k: np.ndarray
    Phi_kc: np.ndarray
    Phi_c: np.ndarray
    b_k: np.ndarray
    b_c: np.ndarray


class Joined(NamedTuple):
    """The body that results, with what is needed to take it apart again."""

    Phi: np.ndarray
    """Inverse inertia of sets 1 and 4, stacked — RBDA (7.59)."""
    b: np.ndarray
    """Bias acceleration of sets 1 and 4, stacked."""
    gain: np.ndarray
    """``lambda = gain (f_1, f_4) + offset``, the constraint forces — RBDA (7.62)."""
    offset: np.ndarray
    rank: int
    """Number of independent constraints among those of the joints."""
    redundancy: int
    """Number of redundant constraints; ``lambda`` is then one of many."""
    contradiction: float
    """Size of the accelerations that repeated constraints demand and cannot have; zero when the
    positions and velocities obey the constraints."""

    def constraint_forces(self, f):
        """Constraint forces ``lambda`` of the joints for the forces ``f`` on outer handles."""
        return self.gain @ f + self.offset


def as_handle_sets(Phi, b, kept, connected):
    """Response ``a = Phi f + b`` of a body's handles, split into kept and connected handles."""
    if sorted([*kept, *connected]) != list(range(len(b) // 6)):
        raise ShapeError(
            f"handles {list(kept)} and {list(connected)} must be 0 ... {len(b) // 6 - 1}, each in "
            f"one of the two sets"
        )
    k, c = _indices(kept), _indices(connected)
    return HandleSets(Phi[np.ix_(k, k)], Phi[np.ix_(k, c)], Phi[np.ix_(c, c)], b[k], b[c])


def join(A12, A34, T, c, stabilization=None):
    """Join two articulated bodies by joints between their handles — RBDA (7.59)–(7.63).

    Args:
        A12: predecessor side, set 1 kept and set 2 connected.
        A34: successor side, set 4 kept and set 3 connected.
        T: constraint forces of the joints, block diagonal, (6 h, n_c).
        c: velocity-product accelerations of the joints, stacked, (6 h,).
        stabilization: what to add to ``Tᵀ (a_3 - a_2)`` against drift, (n_c,) — RBDA §8.3.
    """
    Phi_1, Phi_12, Phi_2, b_1, b_2 = A12
    Phi_4, Phi_43, Phi_3, b_4, b_3 = A34
    if not len(b_2) == len(b_3) == len(T) == len(c):
        raise ShapeError(
            f"sets 2 and 3 need as many handles as there are joints: got {len(b_2) // 6} and "
            f"{len(b_3) // 6} handles for {len(T) // 6} joints"
        )
    Y = T.T @ (Phi_2 + Phi_3) @ T
    Y_inv, rank = generalised_inverse(Y, pushes=pushing(T))
    W = T @ Y_inv @ T.T
    beta = c - b_3 + b_2
    k = T.T @ beta if stabilization is None else T.T @ beta + stabilization

    Phi_14 = Phi_12 @ W @ Phi_43.T
    Phi = np.block(
        [[Phi_1 - Phi_12 @ W @ Phi_12.T, Phi_14], [Phi_14.T, Phi_4 - Phi_43 @ W @ Phi_43.T]]
    )
    offset = Y_inv @ k
    f_c = T @ offset
    b = np.concatenate([b_1 - Phi_12 @ f_c, b_4 + Phi_43 @ f_c])
    gain = Y_inv @ T.T @ np.hstack([Phi_12.T, -Phi_43.T])
    contradiction = float(np.linalg.norm(k - Y @ offset))
    return Joined(Phi, b, gain, offset, rank, len(Y) - rank, contradiction)


def pushing(T):
    """Mask of the columns of ``T``, (6 h, n_c), that contain a linear force, not moments alone."""
    return np.any(T.reshape(len(T) // 6, 6, T.shape[1])[:, 3:], axis=(0, 1))


def generalised_inverse(Y, size=None, pushes=None):
    """Symmetric generalised inverse of a positive semidefinite matrix ``Y``, and its rank.

    Rows have mixed units (a moment, a force), so ``Y`` is scaled to unit diagonal first. Which
    generalised inverse it is makes no difference to any acceleration.

    Args:
        Y: what the constraints of some joints feel.
        size: the diagonal that rounding errors are relative to; that of ``Y`` by default. It is
            larger, where ``Y`` is a difference.
        pushes: which rows are those of forces; all others are moments, and the two are not
            compared with each other. None to compare all.
    """
    diagonal = np.diagonal(Y) if size is None else size
    pushes = np.zeros(len(Y), dtype=bool) if pushes is None else pushes
    floor = np.zeros(len(Y))
    for kind in (pushes, ~pushes):
        floor[kind] = RANK_TOLERANCE * np.max(diagonal[kind], initial=0.0)
    scale = 1 / np.sqrt(np.where(diagonal > floor, diagonal, np.inf))
    values, vectors = np.linalg.eigh(scale[:, None] * Y * scale)
    good = values > RANK_TOLERANCE
    V = scale[:, None] * vectors[:, good]
    return (V / values[good]) @ V.T, int(np.count_nonzero(good))


def _indices(handles):
    """Indices of the six coordinates of several handles."""
    return [6 * h + n for h in handles for n in range(6)]


class AssemblyStep(NamedTuple):
    """A part of the mechanism, and how it is made from two smaller ones."""

    bodies: tuple
    """Numbers of the bodies in this part, in ascending order."""
    joints: tuple = ()
    """Joints closed in this step; numbers above N_B are loop joints."""
    parts: tuple = ()
    """The part that the tree joint leaves and the part that it enters; none for a single body."""

    @property
    def depth(self) -> int:
        """Number of sequential joining steps in the assembly tree, this one included."""
        return 1 + max(part.depth for part in self.parts) if self.parts else 0


class HandledBody(NamedTuple):
    """An articulated body on the way up: ``a = Phi f + b`` of its handles."""

    step: AssemblyStep
    handles: tuple
    """Joints that are still to be connected to it; each has its own handle."""
    Phi: np.ndarray
    b: np.ndarray
    joined: Joined | None = None
    """How it was joined from two others; None for a single body."""
    parts: tuple = ()
    """The two others."""

    def numbers(self, joints):
        """Positions of the handles of some joints among the body's handles."""
        return [self.handles.index(j) for j in joints]


class DivideAndConquer(NamedTuple):
    """Motion and forces of the whole mechanism; spatial vectors in base coordinates."""

    qdd: np.ndarray
    """Joint accelerations of the tree joints [m/s² or rad/s²], (nv,)."""
    a: list
    """Body accelerations minus gravity; entry 0 for the base."""
    f_J: list
    """Forces across the joints, predecessor to successor: 1 … N_B, then the loop joints."""
    whole: HandledBody
    """The assembled mechanism, with every intermediate part and its rank report."""
    redundancy: int
    """Number of redundant constraints; where there are any, ``f_J`` is not unique."""
    contradiction: float
    """Largest acceleration that repeated constraints contradict one another by; rounding error
    when ``q`` and ``qd`` satisfy the loops."""
    loop_error: float
    """Largest position error of the loop joints [m or rad]; the result has no meaning unless it
    is small."""


@refuses("constraints", "couplings", "armature", use="implicit, which supports all of them")
def divide_and_conquer(model, q, qd, tau, f_ext=None, *, stabilization=None, plan=None, rows=None):
    """Forward dynamics by divide and conquer with constraint forces and intermediate quantities.

    Args:
        model: the mechanism.
        q: position variables [m or rad], (nq,), at which the loops are closed.
        qd: velocity variables [m/s or rad/s], (nv,), which the loops allow.
        tau: joint forces of the tree joints [N or N·m], (nv,).
        f_ext: external force on each body in base coordinates, entry 0 unused.
        stabilization: time constant [s] with which loop errors decay; None for none.
        plan: order of assembly; the balanced one by default.
        rows: numbers of the rows of loop joints that count; those that are not nearly redundant by
            default.
    """
    bodies = bodies_in_base(model, q, qd, f_ext)
    constraints = joint_constraints(model, q, qd, bodies.X_0, bodies.v)
    of_tree, of_loops = constraints[: model.body_count], constraints[model.body_count :]
    kept = [*of_tree, *keep_rows(of_loops, kept_rows_at(model, q) if rows is None else rows)]
    joints = {
        j: _Joint.of(J, stabilization if j > model.body_count else None)
        for j, J in enumerate(kept, start=1)
    }
    active = {
        j: joints[j].Ta @ tau[model.v_slice[j]] if j <= model.body_count else np.zeros(6)
        for j in joints
    }
    single = _single_bodies(model, bodies, active)

    whole = _assemble(assembly_plan(model) if plan is None else plan, model, single, joints)
    a, f_c = [None] * (model.body_count + 1), {}
    _take_apart(whole, np.zeros(0), joints, a, f_c)

    qdd = [
        joints[i].Ta.T @ (a[i] - a[model.parent[i]] - joints[i].c)  # T_aᵀ S = 1
        for i in range(1, model.body_count + 1)
    ]
    return DivideAndConquer(
        np.concatenate(qdd),
        [Motion.from_array(x) for x in a],
        [None] + [Force.from_array(active[j] + f_c[j]) for j in joints],
        whole,
        sum(step.redundancy for step in _reports(whole)),
        max((step.contradiction for step in _reports(whole)), default=0.0),
        max((abs(float(e)) for J in constraints for e in J.error), default=0.0),
    )


def forward_dynamics(model, q, qd, tau, f_ext=None, **options):
    """Joint accelerations (nv,) by the divide-and-conquer algorithm; loops are supported."""
    return divide_and_conquer(model, q, qd, tau, f_ext, **options).qdd


class _Joint(NamedTuple):
    """A joint as dense matrices in base coordinates."""

    predecessor: int
    T: np.ndarray
    Ta: np.ndarray
    c: np.ndarray
    stabilization: np.ndarray

    @classmethod
    def of(cls, J, time):
        """Constraint of a loop joint as arrays, stabilised if a time constant is given."""
        T, Ta, c = (x.to_array().astype(float) for x in (J.T, J.T_a, J.c))
        decay = np.zeros(T.shape[1])
        if time is not None:
            decay = -2 / time * J.rate - J.error / time**2  # RBDA (8.22)
        return cls(J.predecessor, T, Ta, c, decay)


def _single_bodies(model, bodies, active):
    """Response ``Phi``, ``b`` of every single body to handle forces; the base is rigid."""
    single = [(np.zeros((6, 6)), -model.a_g.to_array())]
    for i in range(1, model.body_count + 1):
        I = bodies.I[i].to_matrix()
        try:
            np.linalg.cholesky(I)
        except np.linalg.LinAlgError:
            raise SingularError(
                f"divide and conquer needs the inverse inertia of every single body, and body "
                f"{model.body_names[i]!r} has none: give it mass and rotational inertia, or use "
                f"aba, which lets bodies be massless"
            ) from None
        Phi = np.linalg.inv(I)
        f = active[i] - sum(active[j] for j in model.children[i])
        single.append((Phi, Phi @ (f - bodies.p[i].to_array())))
    return single


def _assemble(step, model, single, joints):
    """Articulated body of an assembly step, joined recursively from its two parts."""
    if not step.joints:
        (body,) = step.bodies
        handles = tuple(j for j, ends in joint_ends(model).items() if body in ends)
        Phi, b = single[body]
        h = len(handles)
        return HandledBody(step, handles, np.tile(Phi, (h, h)), np.tile(b, h))

    parts = [_assemble(s, model, single, joints) for s in step.parts]
    kept = [[j for j in part.handles if j not in step.joints] for part in parts]
    A12, A34 = (
        as_handle_sets(part.Phi, part.b, part.numbers(stay), part.numbers(step.joints))
        for part, stay in zip(parts, kept, strict=True)
    )
    joined = join(
        A12,
        A34,
        block_diagonal([joints[j].T for j in step.joints]),
        np.concatenate([_direction(joints[j], step) * joints[j].c for j in step.joints]),
        np.concatenate(
            [_direction(joints[j], step) * joints[j].stabilization for j in step.joints]
        ),
    )
    return HandledBody(step, (*kept[0], *kept[1]), joined.Phi, joined.b, joined, tuple(parts))


def _take_apart(part, f, joints, a, f_c):
    """Fill in body accelerations and joint constraint forces of a part, given its handle forces."""
    if part.joined is None:
        (body,) = part.step.bodies
        a[body] = (part.Phi @ f + part.b)[:6]
        return
    lam = part.joined.constraint_forces(f)
    known = dict(zip(part.handles, f.reshape(-1, 6), strict=True))
    ends = np.cumsum([joints[j].T.shape[1] for j in part.step.joints])[:-1]
    f_3 = {j: joints[j].T @ x for j, x in zip(part.step.joints, np.split(lam, ends), strict=True)}
    f_c.update({j: _direction(joints[j], part.step) * x for j, x in f_3.items()})
    for side, sign in zip(part.parts, (-1, 1), strict=True):
        forces = known | {j: sign * x for j, x in f_3.items()}
        f_side = np.concatenate([np.zeros(0), *(forces[j] for j in side.handles)])
        _take_apart(side, f_side, joints, a, f_c)


def _direction(joint, step):
    """Sign of a joint in an assembly step: 1 if its predecessor is in the first part, else -1."""
    return 1 if joint.predecessor in step.parts[0].bodies else -1


def _reports(part):
    """Results of all joining steps within a part, from the outermost one inwards."""
    if part.joined is not None:
        yield part.joined
        for side in part.parts:
            yield from _reports(side)


# --- order of assembly, a balanced binary tree: RBDA §3.2, §7.5 ----------------------------------
# Leaves are bodies, the base (0) among them. Every other node joins two parts by all the joints
# that run between them: one joint of the spanning tree, and the loop joints that close there.
# Parts on the same level are independent of one another, so a chain of n bodies is assembled in
# about log2 n parallel steps.


def joint_ends(model):
    """Predecessor and successor body of every joint: tree joints 1 … N_B, then loop joints."""
    tree = {i: (model.parent[i], i) for i in range(1, model.body_count + 1)}
    loops = {
        n: (loop.predecessor, loop.successor)
        for n, loop in enumerate(model.loops, start=model.body_count + 1)
    }
    return tree | loops


def assembly_plan(model):
    """Assembly tree that halves the mechanism as evenly as possible, down to single bodies."""
    ends = joint_ends(model)

    def part(bodies):
        if len(bodies) == 1:
            return AssemblyStep(tuple(bodies))
        beyond = {i: {i} for i in bodies}
        for i in reversed(bodies[1:]):  # the first is the root of this part
            beyond[model.parent[i]] |= beyond[i]
        cut = min(bodies[1:], key=lambda i: abs(len(bodies) - 2 * len(beyond[i])))
        near = [i for i in bodies if i not in beyond[cut]]
        far = [i for i in bodies if i in beyond[cut]]
        joints = [j for j, (p, s) in ends.items() if _crosses(p, s, set(near), beyond[cut])]
        return AssemblyStep(tuple(bodies), tuple(joints), (part(near), part(far)))

    return part(list(range(model.body_count + 1)))


def _crosses(p, s, near, far):
    """Whether a joint between bodies ``p`` and ``s`` connects the two groups of bodies."""
    return (p in near and s in far) or (p in far and s in near)
