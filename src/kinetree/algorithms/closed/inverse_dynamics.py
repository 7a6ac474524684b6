"""Inverse dynamics of closed chains: joint forces that produce a motion — RBDA §8.12.

Forces that differ by ``Kᵀ lam`` move the mechanism alike. So the joint forces ``tau`` that produce
an acceleration need only satisfy (8.62), and those of the actuators, ``tau = B u + tau_p`` with the
springs, dampers and friction ``tau_p`` of the joints, (8.63):

    Gᵀ tau = Gᵀ tau_ID        G_uᵀ u = Gᵀ (tau_ID - tau_p)        G_u = Bᵀ G

where ``tau_ID`` belongs to the spanning tree. A column of ``B`` is one of the unit matrix for a
joint of the tree and ``J_Lᵀ T_a`` for one that closes a loop, which the book leaves out.

Of many solutions of ``A u = b``, the one with the smallest ``Σ w u²`` is taken, within bounds if
there are any. With ``D = 1/√w``,

    u = D (z_0 + N y)       A D N = 0

where ``z_0`` is the solution of least norm and ``N`` an orthonormal basis of the rest. Bounds on
``u`` are linear inequalities on ``y``, and the ``y`` of least norm that satisfies them is a problem
of least distance, which Lawson and Hanson reduce to least squares with non-negative unknowns
(Solving Least Squares Problems, 1974, chapter 23).

``terms`` can be traced; ranks are decisions and are made on the CPU, sample by sample.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms.closed.constraints import closure_errors, loop_constraints
from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.algorithms.closed.joint_space import CLOSURE_TOLERANCE, closure_limit
from kinetree.algorithms.closed.rank import RANK_TOLERANCE, count_values, scaling
from kinetree.algorithms.closed.scaling import rows_of, velocity_turns
from kinetree.algorithms.passive import passive_force
from kinetree.errors import LoopError, ModelError, ShapeError, SingularError, UnknownNameError
from kinetree.model.gearing import Gearing
from kinetree.spelling import did_you_mean

_INFEASIBLE = 1e-12
"""Squared residual of the least-squares problem, of size one, that means that no point exists."""


def least_forces(A, b, rank, weights, low=None, high=None):
    """Forces ``u`` with ``A u = b``, or nearest to it, of least ``Σ w u²``; None if bounds forbid.

    Args:
        A: (m, p), with singular values that fall off after the first ``rank``.
        b: (m,).
        rank: of ``A``.
        weights: ``w``, positive, (p,).
        low: smallest ``u``, -inf where there is no bound, (p,); None for no bounds.
        high: largest ``u``, likewise.
    """
    D = 1 / np.sqrt(weights)
    U, s, Vt = np.linalg.svd(A * D)
    z = Vt[:rank].T @ ((U[:, :rank].T @ b) / s[:rank])
    u = D * z
    if low is None or high is None or np.all((low <= u) & (u <= high)):
        return u
    N = D[:, None] * Vt[rank:].T
    below, above = np.isfinite(low), np.isfinite(high)
    C = np.concatenate([N[below], -N[above]])
    d = np.concatenate([(low - u)[below], (u - high)[above]])
    y = least_distance(C, d)
    if y is None:
        return None
    return np.clip(u + N @ y, low, high)


def least_distance(C, d):
    """Shortest vector ``y`` with ``C y >= d``, or None where there is none."""
    size = np.max(np.abs(C), initial=0.0), np.max(np.abs(d), initial=0.0)
    if size[1] == 0:
        return np.zeros(C.shape[1])
    if size[0] == 0:
        return None if np.any(d > 0) else np.zeros(C.shape[1])
    E = np.concatenate([C.T / size[0], d[None] / size[1]])  # y in units of size[1] / size[0]
    f = np.zeros(len(E))
    f[-1] = 1
    r = E @ nonnegative_least_squares(E, f) - f
    if r @ r < _INFEASIBLE:
        return None
    return -r[:-1] / r[-1] * (size[1] / size[0])


def nonnegative_least_squares(E, f):
    """Nonnegative least squares ``min |E x - f|`` by Lawson and Hanson's active-set method."""
    n = E.shape[1]
    x, passive = np.zeros(n), np.zeros(n, dtype=bool)
    tolerance = 100 * np.finfo(float).eps * np.linalg.norm(E) * np.linalg.norm(f)
    for _ in range(10 * n + 10):
        w = np.where(passive, -np.inf, E.T @ (f - E @ x))
        if not n or np.max(w) <= tolerance:
            return x
        passive[np.argmax(w)] = True
        while True:
            s = np.zeros(n)
            s[passive] = np.linalg.lstsq(E[:, passive], f, rcond=None)[0]
            if np.all(s[passive] > 0):
                break
            falling = passive & (s <= 0)
            drop = np.maximum(x[falling] - s[falling], np.finfo(float).tiny)
            step = np.min(x[falling] / drop)
            x = x + step * (s - x)
            passive &= x > 1e-14 * np.max(x)
            x[~passive] = 0
        x = s
    return x


_MISSING = 1e-7
"""Part of the joint forces that actuators may fail to supply, for rounding errors."""
_IDLE = 1e-9
"""Part of a unit vector that counts as none."""


class ClosedChainTerms(NamedTuple):
    """Parts of the inverse dynamics of a closed chain; leading axes for batches."""

    K: Any
    """Constraint matrix, (..., nc, nv)."""
    k: Any
    """``K qdd = k``, (..., nc)."""
    error: Any
    """Closure error [m or rad], (..., nc)."""
    rate: Any
    """Velocity error [m/s or rad/s], (..., nc)."""
    total: Any
    """``tau_ID`` of the spanning tree, (..., nv)."""
    passive: Any
    """Forces of springs, dampers and friction, (..., nv)."""
    B_loops: Any
    """Joint forces for unit forces along the loop joints, (..., nv, nv_L); empty if not needed."""


def terms(model, q, qd, qdd, f_ext=None, *, with_loop_joints=False) -> ClosedChainTerms:
    """Constraint rows, errors, forces of the tree and passive forces for one state's motion.

    Args:
        model: the mechanism, with loops, couplings, or neither.
        q: position variables of the tree joints, (nq,).
        qd: velocity variables, (nv,).
        qdd: accelerations, (nv,).
        f_ext: external force on each body in base coordinates, entry 0 unused.
        with_loop_joints: whether ``B_loops`` is needed, for actuators in loop joints.
    """
    c = loop_constraints(model, q, qd)
    B = loop_joint_motion(model, q, qd, None if with_loop_joints else ()).B
    total = fewest.inverse_dynamics(model, q, qd, qdd, f_ext)
    passive = passive_force(model, q, qd)
    return ClosedChainTerms(c.K, c.k, closure_errors(model, q), c.rate, total, passive, B)


class InverseSolution(NamedTuple):
    """Forces of one sample."""

    u: np.ndarray
    """Forces of the actuated degrees of freedom, (p,)."""
    tau: np.ndarray
    """All joint forces, those of springs, dampers and friction included, (nv,)."""
    lam: np.ndarray
    """Constraint forces, (nc,); the smallest, where they are not unique."""
    unique: np.ndarray
    """Which of them are unique, (nc,)."""
    mobility: Any
    """Freedoms of the mechanism."""
    rank: Any
    """Independent motions that the actuators drive."""


def solution(model, terms: ClosedChainTerms, B, freedoms: "Actuated", weights, low=None, high=None):
    """Actuator and constraint forces of one sample that produce a motion, as InverseSolution.

    Args:
        model: the mechanism.
        terms: its terms, of one sample.
        B: joint forces for unit forces of the degrees of freedom, (nv, p).
        freedoms: the actuated degrees of freedom.
        weights: of their squared forces, (p,).
        low: smallest forces, (p,), or None.
        high: largest forces, (p,), or None.

    Raises:
        SingularError: the actuated joints cannot produce the acceleration, or not within bounds.
    """
    K, total, passive = terms.K, terms.total, terms.passive
    units, G = scaling(model), velocity_space(model, K)
    G_u = B.T @ G
    mobility, rank = G.shape[1], driven_rank(G_u, freedoms)
    wanted = G.T @ (total - passive)
    u = least_forces(G_u.T, wanted, rank, weights, low, high)
    if u is None:
        raise SingularError(
            f"the actuated joints {', '.join(freedoms.names)} of model {model.name!r} cannot "
            f"produce this acceleration within their bounds: allow them more, or actuate "
            f"others too"
        )
    missing = float(np.linalg.norm(wanted - G_u.T @ u))
    size = max(float(np.linalg.norm(units.columns * f)) for f in (total, passive, B @ u))
    if missing > _MISSING * size:
        raise SingularError(
            f"the actuated joints {', '.join(freedoms.names)} of model {model.name!r} drive "
            f"{rank} of its {mobility} degrees of freedom here and cannot produce this "
            f"acceleration: {missing:.3g} N·m are missing. Actuate other joints, or keep away "
            f"from this configuration"
        )
    tau = B @ u + passive
    # Kᵀ lam = tau_ID - tau, of least norm in units of the mechanism
    U, s, Vt = np.linalg.svd(units.apply(K))
    r = model.nv - mobility
    lam = units.rows * (U[:, :r] @ ((Vt[:r] @ (units.columns * (total - tau))) / s[:r]))
    idle = U[:, int(count_values(s, units)) :]
    return InverseSolution(u, tau, lam, np.all(np.abs(idle) < _IDLE, axis=1), mobility, rank)


def velocity_space(model, K, *, tolerance: float | None = None):
    """Basis ``G`` of the velocities that ``K`` allows in one configuration, (nv, n - r).

    They are orthonormal in units of the mechanism.
    """
    units = scaling(model)
    if len(K) == 0:
        return np.diag(units.columns)
    _, s, V = np.linalg.svd(units.apply(K))
    return units.columns[:, None] * V[int(count_values(s, units, tolerance)) :].T


def driven_rank(G_u, freedoms: "Actuated", *, tolerance=RANK_TOLERANCE) -> int:
    """Rank of ``G_u = Bᵀ G``, (p, n - r): how many motions the actuators drive."""
    if 0 in G_u.shape:
        return 0
    s = np.linalg.svd(G_u / freedoms.lengths[:, None], compute_uv=False)
    return int(np.sum(s > tolerance * max(s[0], 1.0)))


# --- actuated degrees of freedom -----------------------------------------------------------------


class Actuated:
    """Actuated degrees of freedom of a model, in joint space.

    Attributes:
        names: joints, of the tree or closing loops.
        slices: where the degrees of freedom of each are among all actuated ones, by name.
        lengths: unit of each freedom's velocity: 1 for angles, the mechanism's length for shifts.
    """

    def __init__(self, model, names):
        self.model, self.names = model, tuple(names)
        self.slices, lengths, start = {}, [], 0
        for name in self.names:
            joint = _joint(model, name)
            self.slices[name] = slice(start, start + joint.nv)
            start += joint.nv
            lengths += [1.0 if turns else scaling(model).length for turns in velocity_turns(joint)]
        self.lengths = np.array(lengths)

    @property
    def count(self) -> int:
        """Number of actuated degrees of freedom."""
        return len(self.lengths)

    @property
    def in_loop_joints(self) -> bool:
        """Whether some actuated joints close loops."""
        return bool(set(self.names) & set(self.model.loop_names))

    def matrix(self, q, B_loops=None):
        """Matrix ``B``, (..., nv, p), with ``tau = B u`` and actuator velocities ``Bᵀ qd``.

        Args:
            q: joint positions, (..., nq).
            B_loops: joint forces for unit forces along all loop joints, (..., nv, nv_L); needed if
                ``in_loop_joints``.
        """
        model, loops = self.model, loop_slices(self.model)
        B = np.zeros((*q.shape[:-1], model.nv, self.count))
        for name, at in self.slices.items():
            if name in loops and B_loops is not None:
                B[..., at] = B_loops[..., loops[name]]
                continue
            i = model.joint_index(name)
            if model.joint[i].nv:
                B[..., model.v_slice[i], at] = np.eye(at.stop - at.start)
            else:
                B[..., at] = follower_ratios(model, q, i)[..., None]
        return B


def _joint(model, name):
    """Joint with a name, of the tree or of a loop."""
    if name in model.loop_names:
        return model.loops[model.loop_names.index(name)].joint
    return model.bodies[model.joint_index(name) - 1].joint


def actuated_freedoms(model, joints=None) -> Actuated:
    """Degrees of freedom of some joints; by default of those with actuators, or else of all.

    Args:
        model: the mechanism.
        joints: names of joints, of the tree or closing loops; or None.
    """
    if joints is None:
        driven = dict.fromkeys(filter(None, map(model.driven_joint, model.actuators)))
        joints = zip(model.joint_names, model.joint[1:], strict=True)
        moving = (name for name, joint in joints if joint.nv)
        return Actuated(model, driven or moving)
    if isinstance(joints, str):
        raise UnknownNameError(f"actuated must be names of joints in a list, got {joints!r}")
    known = (*model.joint_names, *model.loop_names)
    for name in joints:
        if name not in known:
            raise UnknownNameError(
                f"actuated: model {model.name!r} has no joint {name!r}; {did_you_mean(name, known)}"
            )
        if joints.count(name) > 1:
            raise ModelError(f"actuated names joint {name!r} {joints.count(name)} times")
        if _joint(model, name).nv == 0:
            raise LoopError(f"actuated: joint {name!r} has no freedom that could be driven")
    return Actuated(model, joints)


def follower_ratios(model, q, joint) -> np.ndarray:
    """Gear ratios of a dependent joint: its velocity per velocity variable, (..., nv)."""
    row = model.uncoupled.v_slice[joint].start
    ratios = np.zeros((*q.shape[:-1], model.nv))
    for n in np.ndindex(q.shape[:-1]):
        ratios[n] = Gearing(model, q[n]).G[row]
    return ratios


def loop_slices(model, size="nv") -> dict:
    """Slices of each loop joint's variables among those of all loop joints, by name."""
    slices, start = {}, 0
    for loop in model.loops:
        slices[loop.name] = slice(start, start + getattr(loop.joint, size))
        start += getattr(loop.joint, size)
    return slices


# --- checks --------------------------------------------------------------------------------------


def check_motion(model, terms: ClosedChainTerms, qd, qdd, tolerance=CLOSURE_TOLERANCE):
    """Raise ShapeError for a motion, or a batch, that the loops do not allow."""
    units = scaling(model)
    K, k = units.apply(terms.K), np.asarray(terms.k) * units.rows
    size = np.linalg.norm(K, axis=-1)

    def moving(x):
        return np.maximum(size * np.linalg.norm(x / units.columns, axis=-1)[..., None], 1.0)

    for what, error, scale, cure in (
        ("q", terms.error * units.rows, 1.0, "assemble the mechanism first"),
        (
            "qd",
            terms.rate * units.rows,
            moving(qd),
            "project it onto the velocities that the loops allow",
        ),
        (
            "qdd",
            (K * (qdd / units.columns)[..., None, :]).sum(-1) - k,
            moving(qdd) + np.abs(k),
            "accelerations that the loops allow satisfy K qdd = k (kinetree.loops.constraint)",
        ),
    ):
        excess = np.abs(np.asarray(error)) / scale
        if np.max(excess, initial=0.0) > closure_limit(model, excess, tolerance):
            *index, row = np.unravel_index(int(np.argmax(excess)), excess.shape)
            at = f"sample {tuple(map(int, index))}: " if index else ""
            off = float(np.abs(error)[(*index, row)])
            of_size = ", in sizes of the loop" if rows_of(model)[row].unit == "m" else ""
            raise ShapeError(
                f"{at}{what} does not satisfy {rows_of(model)[row]}: it is off by {off:.3g}"
                f"{of_size}, and {tolerance:.3g} is allowed as drift; {cure}"
            )
