"""Inverse dynamics of mechanisms with loops: what the actuators must exert — RBDA §8.12.

Forces that differ by ``Kᵀ lam`` move the mechanism alike. So the joint forces ``tau`` that produce
an acceleration need only satisfy (8.62), and those of the actuators, ``tau = B u + tau_p`` with the
springs, dampers and friction ``tau_p`` of the joints, (8.63):

    Gᵀ tau = Gᵀ tau_ID        G_uᵀ u = Gᵀ (tau_ID - tau_p)        G_u = Bᵀ G

where ``tau_ID`` belongs to the spanning tree. A column of ``B`` is one of the unit matrix for a
joint of the tree and ``J_Lᵀ T_a`` for one that closes a loop, which the book leaves out. Where that
has many solutions, the smallest is returned, in a norm and within bounds of the caller's choice.
"""

from dataclasses import dataclass

import numpy as np

from kinetree.algorithms.closed.joint_space import CLOSURE_TOLERANCE, closure_limit
from kinetree.algorithms.closed.rank import scaling
from kinetree.algorithms.closed.scaling import rows_of
from kinetree.arrays.batch import batch_shape
from kinetree.arrays.functions import on_host
from kinetree.errors import ShapeError, SingularError, TraceError
from kinetree.loops.dynamics.actuation import (
    Actuated,
    Actuation,
    actuated_freedoms,
    bounds_of,
    driven_rank,
    velocity_space,
    weights_of,
)
from kinetree.loops.kinematics.constraint import Constraint, closure_error, constraint, dependencies
from kinetree.loops.linear.velocity_basis import spanning_tree
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.quantities import dynamics

__all__ = [
    "ActuatorForces",
    "inverse_dynamics",
    "least_distance",
    "least_forces",
    "nonnegative_least_squares",
]

_MISSING = 1e-7
"""Part of the joint forces that actuators may fail to supply, for rounding errors."""
_IDLE = 1e-9
"""Part of a unit vector that counts as none."""


@dataclass(frozen=True, eq=False)
class ActuatorForces:
    """What the actuators of a mechanism with loops must exert, and what it comes to.

    Attributes:
        u: forces of the actuated joints by name [N or N·m], each (..., nv of the joint).
        tau: all joint forces, (..., nv): those of the actuators and of springs, dampers and
            friction. ``forward_dynamics`` takes these and returns the acceleration again.
        lam: constraint forces of the loop joints along ``T``, then of the couplings, (..., nc); the
            smallest, where they are not unique.
        unique: which of them are unique, (..., nc).
        actuation: how the mechanism is actuated in these configurations.
    """

    u: dict[str, np.ndarray]
    tau: np.ndarray
    lam: np.ndarray
    unique: np.ndarray
    actuation: Actuation


@on_host
def inverse_dynamics(
    model, q, qd, qdd, *, actuated=None, weights=None, bounds=None, f_ext=None,
    closure_tolerance=CLOSURE_TOLERANCE,
) -> ActuatorForces:  # fmt: skip
    """Forces of actuated joints that produce the acceleration ``qdd``.

    Args:
        model: the mechanism, with loops, couplings, or neither.
        q: positions of the tree joints [m, rad], (..., nq), at which the loops are closed.
        qd: velocities of the tree joints [m/s, rad/s], (..., nv), which the loops allow.
        qdd: accelerations of the tree joints [m/s², rad/s²], (..., nv), likewise.
        actuated: names of the actuated joints, of the tree or closing loops; by default those with
            actuators, or all joints of the tree if there are none.
        weights: by joint name; of many solutions, that with the smallest ``Σ w u²`` is returned. 1
            by default, newtons and newton-metres alike.
        bounds: largest forces by joint name: a number for both directions, or a pair; or
            ``"model"`` for the efforts of its limits and actuators.
        f_ext: forces acting on bodies, as in ``kinetree.inverse_dynamics``.
        closure_tolerance: loop error [rad, or parts of the size of the loop] above which the motion
            is refused.

    Raises:
        ShapeError: for positions, velocities or accelerations that the loops do not allow.
        SingularError: where the actuated joints cannot produce the acceleration, or not within
            the bounds.
    """
    freedoms = actuated_freedoms(as_model(model), actuated)
    w, limits = weights_of(freedoms, weights), bounds_of(freedoms, bounds)
    q, qd, qdd = _motion(model, q, qd, qdd)
    equations = constraint(model, q, qd)
    _check_motion(model, equations, q, qd, qdd, closure_tolerance)

    total = dynamics.inverse_dynamics(spanning_tree(model), q, qd, qdd, f_ext)
    passive = np.broadcast_to(dynamics.passive_force(model, q, qd), total.shape)
    batch, nc = total.shape[:-1], equations.k.shape[-1]
    B = np.broadcast_to(freedoms.matrix(q), (*batch, model.nv, freedoms.count))
    K = np.broadcast_to(equations.K, (*batch, nc, model.nv))
    found = _Sample.empty(batch, freedoms.count, nc, model.nv)
    for index in np.ndindex(batch):
        sample = _Sample(B[index], K[index], total[index], passive[index])
        try:
            sample.solve(model, freedoms, w, *limits)
        except SingularError as error:
            raise SingularError(f"sample {index}: {error}" if index else str(error)) from None
        for name, array in found.items():
            array[index] = getattr(sample, name)
    parts = freedoms.slices.items()
    return ActuatorForces(
        u={name: found["u"][..., at] for name, at in parts},
        tau=found["tau"],
        lam=found["lam"],
        unique=found["unique"],
        actuation=Actuation(
            freedoms.names, freedoms.count, found["mobility"][()], found["rank"][()]
        ),
    )


class _Sample:
    """One instant: ``B``, ``K``, the joint forces of the tree, and those of springs and so on."""

    def __init__(self, B, K, total, passive):
        self.B, self.K, self.total, self.passive = B, K, total, passive

    @staticmethod
    def empty(batch, p, nc, nv):
        """Arrays for the results of all samples."""
        sizes = {"u": (p,), "tau": (nv,), "lam": (nc,)}
        arrays = {name: np.zeros((*batch, *shape)) for name, shape in sizes.items()}
        arrays["unique"] = np.ones((*batch, nc), dtype=bool)
        return arrays | {name: np.zeros(batch, dtype=int) for name in ("mobility", "rank")}

    def solve(self, model, freedoms: Actuated, weights, low, high):
        """Forces of the actuators, and of the constraints."""
        units, G = scaling(model), velocity_space(model, self.K)
        G_u = self.B.T @ G
        self.mobility, self.rank = G.shape[1], driven_rank(G_u, freedoms)
        wanted = G.T @ (self.total - self.passive)
        u = least_forces(G_u.T, wanted, self.rank, weights, low, high)
        if u is None:
            raise SingularError(
                f"the actuated joints {', '.join(freedoms.names)} of model {model.name!r} cannot "
                f"produce this acceleration within their bounds: allow them more, or actuate "
                f"others too"
            )
        missing = float(np.linalg.norm(wanted - G_u.T @ u))
        forces = (self.total, self.passive, self.B @ u)
        size = max(float(np.linalg.norm(units.columns * f)) for f in forces)
        if missing > _MISSING * size:
            raise SingularError(
                f"the actuated joints {', '.join(freedoms.names)} of model {model.name!r} drive "
                f"{self.rank} of its {self.mobility} freedoms here and cannot produce this "
                f"acceleration: {missing:.3g} N·m are missing. Actuate other joints, or keep away "
                f"from this configuration"
            )
        self.u, self.tau = u, self.B @ u + self.passive
        # Kᵀ lam = tau_ID - tau, of least norm in units of the mechanism
        scaled = units.apply(self.K)
        known = units.columns * (self.total - self.tau)
        rest = len(self.K) - (model.nv - self.mobility)
        U, s, Vt = np.linalg.svd(scaled, full_matrices=False)
        r = model.nv - self.mobility
        self.lam = units.rows * (U[:, :r] @ ((Vt[:r] @ known) / s[:r]))
        self.unique = np.ones(len(self.K), dtype=bool)
        if rest:
            self.unique = np.all(np.abs(dependencies(self.K, units)) < _IDLE, axis=0)


# --- checking ------------------------------------------------------------------------------------


def _motion(model, q, qd, qdd):
    """Arrays of one batch."""
    q = as_configuration(model, q)
    qd, qdd = as_joint_vector(model, qd, "qd"), as_joint_vector(model, qdd, "qdd")
    if any(x.dtype == object for x in (q, qd, qdd)):
        raise TraceError(
            "loops.inverse_dynamics decides ranks and cannot be traced: call it outside the kernel"
        )
    batch = batch_shape({"q": q, "qd": qd, "qdd": qdd}, [1, 1, 1])
    return (np.broadcast_to(x, (*batch, x.shape[-1])).astype(float) for x in (q, qd, qdd))


def _check_motion(model, equations: Constraint, q, qd, qdd, tolerance):
    """Raise ShapeError for a motion that the loops do not allow."""
    units = scaling(model)
    K, k = units.apply(equations.K), np.asarray(equations.k) * units.rows
    size = np.linalg.norm(K, axis=-1)

    def moving(x):
        return np.maximum(size * np.linalg.norm(x / units.columns, axis=-1)[..., None], 1.0)

    for what, error, scale, cure in (
        ("q", closure_error(model, q) * units.rows, 1.0, "assemble the mechanism first"),
        (
            "qd", equations.rate * units.rows, moving(qd),
            "project it onto the velocities that the loops allow",
        ),
        (
            "qdd", (K * (qdd / units.columns)[..., None, :]).sum(-1) - k, moving(qdd) + np.abs(k),
            "accelerations that the loops allow satisfy K qdd = k (kinetree.loops.constraint)",
        ),
    ):  # fmt: skip
        excess = np.abs(np.asarray(error)) / scale
        if np.max(excess, initial=0.0) > closure_limit(model, excess, tolerance):
            *index, row = np.unravel_index(int(np.argmax(excess)), excess.shape)
            at = f"sample {tuple(map(int, index))}: " if index else ""
            off = float(np.abs(error)[(*index, row)])
            of_size = ", in sizes of the loop" if rows_of(model)[row].unit == "m" else ""
            raise ShapeError(
                f"{at}{what} does not satisfy {rows_of(model)[row]}: it is off by {off:.3g}"
                f"{of_size}, and {tolerance:.3g} passes for drift; {cure}"
            )


# --- forces of least norm within bounds: RBDA §8.12 ----------------------------------------------
# ``A u = b`` has many solutions where there are more actuators than freedoms. The one returned
# makes
# ``Σ w u²`` smallest, among those within bounds if there are any:
#
#     u = D (z_0 + N y)       D = 1/√w        A D N = 0
#
# where ``z_0`` is the solution of least norm and ``N`` an orthonormal basis of the rest. Bounds on
# ``u`` are linear inequalities on ``y``, and the ``y`` of least norm that satisfies them is a
# problem
# of least distance, which Lawson and Hanson reduce to least squares with non-negative unknowns
# (Solving Least Squares Problems, 1974, chapter 23). Host-only.

_INFEASIBLE = 1e-12
"""Squared residual of the least-squares problem, of size one, that means that there is no point."""


def least_forces(A, b, rank, weights, low=None, high=None):
    """``u`` with ``A u = b``, or nearest to it, that makes ``Σ w u²`` smallest; None if none fits.

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
    """The shortest ``y`` with ``C y >= d``, or None where there is none."""
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
    """``x >= 0`` that makes ``|E x - f|`` smallest: the active-set method of Lawson and Hanson."""
    n = E.shape[1]
    x, passive = np.zeros(n), np.zeros(n, dtype=bool)
    tolerance = 10 * np.finfo(float).eps * max(E.shape) * np.max(np.abs(E), initial=1.0)
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
            drop = x[falling] - s[falling]
            step = np.min(np.where(drop > 0, x[falling] / np.where(drop > 0, drop, 1), 0))
            x = x + step * (s - x)
            passive &= x > tolerance
            x[~passive] = 0
        x = s
    return x
