"""What every joint can do — RBDA §3.5, §4.4.

A joint goes from a predecessor frame ``p`` to a successor frame ``s``. All its vectors are in
successor coordinates. Algorithms call ``jcalc`` and never ask what kind of joint it is; to add a
kind, subclass ``AbstractJoint`` and run ``check_joint`` on it.
"""

from abc import ABC, abstractmethod

import numpy as np

from kinetree.spatial import Force, Motion, log

__all__ = ["AbstractJoint"]


class AbstractJoint(ABC):
    """One kind of joint, with its parameters. Immutable; a frozen dataclass does well.

    Attributes:
        nq: number of position variables.
        nv: number of velocity variables, the degree of freedom.
        constant_subspace: whether ``S`` is the same in every configuration (then ``c_J = 0``).
        rates_are_velocities: whether ``qd`` is the time derivative of ``q``; if not, see
            ``configuration_rate``.
    """

    nq: int
    nv: int
    constant_subspace: bool = True
    rates_are_velocities: bool = True

    @abstractmethod
    def jcalc(self, q, qd):
        """``X_J, S, v_J, c_J`` for position and velocity variables — RBDA §4.4.

        ``X_J`` takes predecessor to successor coordinates, ``v_J = S qd`` is the velocity across
        the joint, and ``c_J`` the part of its rate that ``qd`` alone causes (``S° qd``).
        """

    @abstractmethod
    def constraint_subspace(self, q):
        """Constraint forces ``T``: columns that span the complement of ``S``, ``Tᵀ S = 0``."""

    @abstractmethod
    def coordinates(self, X):
        """Position variables that bring ``X_J`` as close as possible to the transform ``X``."""

    def transform(self, q):
        """``X_J`` alone."""
        return self.jcalc(q, np.zeros(self.nv, dtype=int))[0]

    def motion_subspace(self, q):
        """``S`` alone."""
        return self.jcalc(q, np.zeros(self.nv, dtype=int))[1]

    def active_subspace(self, q):
        """Forces ``T_a`` with ``T_aᵀ S = 1`` through which the joint force acts — RBDA (3.36).

        Any choice moves the mechanism alike; it decides which loads the bearings see.
        """
        S = self.motion_subspace(q).to_array().astype(float)
        return Force.from_array(np.linalg.pinv(S).T)

    def loop_error(self, X):
        """Position error of ``X`` against this joint, with rate ``Tᵀ v_J`` — RBDA (8.23)–(8.27)."""
        q = self.coordinates(X)
        d = log(X @ self.transform(q).inverse())
        return self.constraint_subspace(q).T @ d

    def configuration_rate(self, q, qd):
        """``dq/dt`` for the velocity variables ``qd`` — RBDA (3.7)."""
        return qd

    def integrate(self, q, dv):
        """Position reached from ``q`` by the constant velocity ``dv`` in one second."""
        return q + dv

    def difference(self, q0, q1):
        """The ``dv`` for which ``integrate(q0, dv)`` is ``q1``; angles are not wrapped."""
        return q1 - q0

    def neutral(self):
        """Position variables at which predecessor and successor frames coincide."""
        return np.zeros(self.nq)

    def random(self, rng):
        """A random position: angles within ±π, lengths within ±1."""
        return rng.uniform(-1, 1, self.nq)

    def normalize(self, q):
        """``q`` put back on its manifold, for coordinates that are not independent."""
        return q

    def defect(self, q) -> str | None:
        """What is wrong with the numbers ``q`` as a position, or None."""
        return None


def unit_motions(*indices):
    """Motion columns with a single 1 each, numbered as in the book: 1–3 angular, 4–6 linear."""
    return Motion.from_array(_unit_columns(indices))


def unit_forces(*indices):
    """Force columns with a single 1 each, numbered as in the book."""
    return Force.from_array(_unit_columns(indices))


def _unit_columns(indices):
    columns = np.zeros((6, len(indices)), dtype=int)
    for n, i in enumerate(indices):
        columns[i - 1, n] = 1
    return columns
