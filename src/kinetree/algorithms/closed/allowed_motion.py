"""Motions that loops allow in a state, and the forces they take — RBDA §3.2, §8.5.

In independent coordinates ``y``, with ``qd = G yd`` and ``qdd = G ydd + g``, a mechanism with loops
has the equation of motion of a tree,

    H_y ydd + C_y = Gᵀ tau        H_y = Gᵀ H G        C_y = Gᵀ (C + H g)

because the forces of the loops do no work along ``G``. Everything that a tree has follows from it:

    G H_y⁻¹ Gᵀ                    accelerations for unit joint forces
    Gᵀ (C G + H dG/dt)            a Coriolis matrix, with ``dH_y/dt - 2 C_y`` skew-symmetric
    J G H_y⁻¹ Gᵀ Jᵀ               accelerations of a frame for unit forces on it

``independent`` finds ``G`` and ``g``.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from kinetree.algorithms import coriolis, ltl
from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms.closed.elimination import orthogonal_solution, positive_solution
from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.algorithms.closed.forward_dynamics import SMALLEST_PIVOT
from kinetree.algorithms.closed.rank import scaling
from kinetree.algorithms.closed.scaling import velocity_turns
from kinetree.algorithms.dual import Dual, duals, rate_of
from kinetree.algorithms.honours import timed_joints
from kinetree.errors import JointError, SingularError
from kinetree.model.views import condensed_view

SMALLEST_INERTIA = 1e-12
"""Smallest pivot of ``H_y``, relative to its diagonal."""


class AllowedMotion:
    """Motions that loops allow in a state, and the forces they take; scalar-generic.

    Attributes:
        model: the mechanism.
        q: position variables, (nq,).
        qd: velocity variables, (nv,).
        G: ``qd = G yd``, (nv, p).
        g: ``qdd = G ydd + g``, (nv,).
        columns: numbers of the velocity variables that are ``yd``; from ``nv`` on those of loop
            joints.
        pivots: of ``H_y``, relative to its diagonal, once something was solved.
        ratios: how far the coordinates are from dependent, at least 1 if it is far enough.
    """

    rates_of_coordinates: Callable | None = None
    """Of loop joints among the coordinates: ``yd`` as a function of ``q`` and ``qd``."""
    matrix: Callable | None = None
    """``K`` as a function of the model and ``q``, where numbers are no symbols: columns of its rate
    one by one cost fewer operations, and in Python more calls."""

    def __init__(self, model, q, qd, G, g, columns, rates, solve):
        self.model, self.q, self.qd, self.G, self.g = model, q, qd, G, g
        self.columns, self.pivots, self.ratios = tuple(columns), [], []
        self._rates, self._solve = rates, solve  # of constraints; x with K x = b, zero along y

    @cached_property
    def H(self):
        """Inertia matrix of the spanning tree, (nv, nv)."""
        return fewest.joint_space_inertia(self.model, self.q)

    @cached_property
    def inertia(self):
        """Inertia in independent coordinates, ``H_y = Gᵀ H G``, (p, p), exactly symmetric."""
        F, p = self.H @ self.G, self.G.shape[1]
        H_y = np.zeros((p, p), dtype=F.dtype)
        for i in range(p):
            H_y[i, : i + 1] = H_y[: i + 1, i] = self.G[:, i] @ F[:, : i + 1]
        return H_y

    def tree_force(self, qdd, f_ext=None):
        """Joint forces of the spanning tree that produce the acceleration ``qdd``, (nv,)."""
        return fewest.inverse_dynamics(self.model, self.q, self.qd, qdd, f_ext)

    def solve(self, b, rows=None):
        """Solve ``H_y x = b`` for a vector or columns, with all or some rows of ``H_y``."""
        H_y = self.inertia if rows is None else self.inertia[np.ix_(rows, rows)]
        b = np.asarray(b)
        if H_y.dtype.kind == "f":
            _require_inertia(self.model, H_y)
        x, D = positive_solution(H_y, b)
        self.pivots = [d / H_y[k, k] for k, d in enumerate(D)]
        return np.array(x, dtype=None if len(x) else float).reshape(b.shape)

    def factors(self):
        """Factors ``L``, ``D`` of ``H_y = Lᵀ D L``, (p, p), in the layout of ``ltl``."""
        if self.inertia.dtype.kind == "f":
            _require_inertia(self.model, self.inertia)
        p = len(self.inertia)
        L = ltl.ltdl(self.inertia, ltl.dense(p), check=lambda pivot, scale, message: pivot)
        self.pivots = [L[k, k] / self.inertia[k, k] for k in range(p)]
        return L

    def response(self, tau):
        """Joint accelerations due to joint forces, ``G H_y⁻¹ Gᵀ tau``, for a vector or columns."""
        return self.G @ self.solve(self.G.T @ tau)

    def free_acceleration(self, f_ext=None):
        """Joint accelerations without joint forces, (nv,)."""
        return self.g - self.response(self.tree_force(self.g, f_ext))

    def rate_along(self, qd):
        """Rate ``dG/dt`` of the motion basis at the velocity ``qd``, (nv, p)."""
        model = self.model
        require_unmoved(model, "the rate of G", constraints=False)
        q, drift = duals(self.q, model.configuration_rate(self.q, qd)), 0
        if model.is_rheonomic:  # time goes on with it
            model = model.at(Dual(model.instant, 1))
            drift = rate_of(self._rates(model, q, model.zero_velocity))
        if not self.G.size:
            return 0 * self.G
        if self.matrix is not None:
            K_rate_G = rate_of(self.matrix(model, q)) @ self.G
        else:
            columns = [rate_of(self._rates(model, q, v)) - drift for v in self.G.T]
            K_rate_G = np.stack(columns, axis=-1)
        G_rate = self._solve(-K_rate_G)
        if self.rates_of_coordinates is not None:  # R dG/dt = -dR/dt G
            bends = [rate_of(self.rates_of_coordinates(q, v)) for v in self.G.T]
            G_rate = G_rate - self.G @ np.stack(bends, axis=-1)
        return G_rate

    def in_coordinates(self, columns) -> "AllowedMotion":
        """Allowed motions expressed in other independent variables, those of loop joints included.

        With ``yd = R qd``, ``G (R G)⁻¹`` takes the place of ``G``, and ``ydd = R qdd + dR/dt qd``.

        Args:
            columns: numbers of the variables; from ``nv`` on those of loop joints, in order.
        """
        model, q, qd = self.model, self.q, self.qd
        require_unmoved(model, "a loop joint as a coordinate")

        def rates(q, qd):
            loops = loop_joint_motion(model, q, qd).qd
            return np.array([qd[c] if c < model.nv else loops[c - model.nv] for c in columns])

        units = np.append(scaling(model).columns, _loop_units(model))
        old, new = units[list(self.columns)], units[list(columns)]
        R_G = np.stack([rates(q, v) for v in self.G.T], axis=-1) * old / new[:, None]
        inverse, parts, _ = orthogonal_solution(R_G, np.diag(1 / new))
        self.ratios = [part * (1 / SMALLEST_PIVOT**2) for part in parts]
        G = self.G @ (old[:, None] * inverse)
        bend = rate_of(rates(duals(q, model.configuration_rate(q, qd)), qd))
        g = self.g - G @ (rates(q, self.g) + bend)

        def solve(b):
            x = self._solve(b)
            return x - G @ np.stack([rates(q, v) for v in x.T], axis=-1)

        found = AllowedMotion(model, q, qd, G, g, columns, self._rates, solve)
        found.rates_of_coordinates, found.matrix = rates, self.matrix
        return found

    # --- the equation of motion of the coordinates -----------------------------------------------

    def bias(self, f_ext=None):
        """Bias force in independent coordinates, ``Gᵀ (C + H g)``, gravity included, (p,)."""
        return self.G.T @ self.tree_force(self.g, f_ext)

    def coriolis(self, qd=None):
        """Coriolis matrix ``Gᵀ (C G + H dG/dt)``, (p, p), at the state's velocity or another."""
        require_unmoved(self.model, "a Coriolis matrix")
        return self._half_inertia_rate(self.qd if qd is None else qd)

    def _half_inertia_rate(self, qd):
        """Matrix ``Gᵀ (C G + H dG/dt)``, whose sum with its transpose is ``dH_y/dt``."""
        C = coriolis.half_inertia_rate(condensed_view(self.model), self.q, qd)
        return self.G.T @ (C @ self.G + self.H @ self.rate_along(qd))

    def inertia_rate(self):
        """Time derivative of the inertia in independent coordinates, ``dH_y/dt``, (p, p)."""
        C = self._half_inertia_rate(self.qd)
        return C + C.T

    def christoffel(self):
        """Christoffel symbols ``Γ`` with ``C_ij = Σ Γ_ijk yd_k``, (p, p, p)."""
        p = self.G.shape[1]
        parts = [self.coriolis(self.G[:, k]) for k in range(p)]
        return np.stack(parts, axis=-1) if parts else np.zeros((p, p, p))


def require_unmoved(model, what, constraints=True):
    """Raise JointError if joints or constraints move with time, since ``qd = G yd`` fails then."""
    timed = [model.joint_names[i - 1] for i in timed_joints(model)]
    timed += [p.name for p in model.loops if p.joint.moves_by_itself]
    timed += [c.name for c in model.constraints if constraints and c.rheonomic]
    if timed:
        raise JointError(
            f"{what} has no meaning for model {model.name!r}, whose prescribed joint or constraint "
            f"{timed[0]!r} moves by itself: the mechanism is never at rest, and qd is not G yd. "
            f"bias_force and inverse_dynamics take its velocity into account"
        )


def _require_inertia(model, H_y):
    """Raise SingularError if some motion that the loops allow moves no inertia."""
    d = np.diagonal(H_y)
    scaled = H_y / np.sqrt(np.outer(d, d)) if np.all(d > 0) else np.diag(d)
    if np.min(np.linalg.eigvalsh(scaled), initial=1.0) < SMALLEST_INERTIA:
        raise SingularError(
            f"the inertia matrix of model {model.name!r} is singular: some motion that its loops "
            f"allow moves no inertia; give mass to the bodies that take part in it"
        )


def _loop_units(model):
    """Units of loop joints' velocities: 1 for angles, the mechanism's length for translations."""
    turns = [turn for loop in model.loops for turn in velocity_turns(loop.joint)]
    return [1.0 if turn else scaling(model).length for turn in turns]
