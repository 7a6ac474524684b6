"""``AbstractJoint``, the interface of every joint — RBDA §3.5, §4.4.

A joint goes from a predecessor frame ``p`` to a successor frame ``s``. All its vectors are in
successor coordinates. Algorithms call ``jcalc`` and never test what kind of joint it is.

To add a kind, subclass ``AbstractJoint`` as a frozen dataclass whose fields are the parameters,
set ``nq`` and ``nv``, and write three methods: ``jcalc``, ``constraint_subspace`` and
``coordinates``. A pin in a parabolic slot, say:

    @dataclass(frozen=True)
    class Parabola(AbstractJoint):
        nq = nv = 1
        constant_subspace = False

        def jcalc(self, q, qd):
            x, zero = q[0], np.zeros((3, 1), dtype=int)
            S = Motion(zero, np.array([[1], [2 * x], [0]]))
            c_J = Motion(zero[:, 0], np.array([0, 2 * qd[0] * qd[0], 0]))
            return xlt(x, x * x, 0), S, S @ qd, c_J

        def constraint_subspace(self, q):
            columns = np.zeros((6, 5), dtype=q.dtype)
            columns[[0, 1, 2, 5], [0, 1, 2, 3]] = 1
            columns[3:5, 4] = -2 * q[0], 1
            return Force.from_array(columns)

        def coordinates(self, X):
            return X.r[:1]

Velocity variables that make ``S`` constant save the ``c_J``; if they are then not the derivatives
of ``q``, set ``rates_are_velocities = False`` and write ``configuration_rate``, ``integrate`` and
``difference`` too. ``check_joint(Parabola())`` verifies that all of it fits together. Use the
functions of ``kinetree.spatial.ops`` and no ``if`` on a value, and the joint compiles like ours.

Everything else that the library knows about a kind of joint is here as well, with defaults that
work for any: names and units of its variables, its spelling in files, its group, its loop errors,
the inertia that can move across it. Files can name the class after ``kinetree.joints.register``.
"""

import numbers
import re
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import fields
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import JointError
from kinetree.joints.axis import dual_basis
from kinetree.spatial import Force, Inertia, Motion, Plucker, log

UNIT_TOLERANCE = 5e-7
"""How far from one the length of a quaternion may be: four roundings of single precision.

Quaternions that were stored in float32, or printed with seven digits, pass; steps of integrators
stay far below. Beyond it, a quaternion was not normalised: rotations would stretch vectors.
"""


class AbstractJoint(ABC):
    """One kind of joint, with its parameters. Immutable; a frozen dataclass does well.

    Attributes:
        nq: number of position variables.
        nv: number of velocity variables, the degree of freedom.
        constant_subspace: whether ``S`` is the same in every configuration (then ``c_J = 0``).
        position_parts: names of the entries of ``q`` in labels; numbers where there are none.
        velocity_parts: names of the entries of ``qd`` in labels; numbers where there are none.
        spelling: what files in the native format call the kind; the class name in snake case.
        symbol: letter of the kind in the notation of chains such as ``"RRP"``, if it has one.
        bracket: the function ``[u, v]`` of two velocities, if ``integrate`` is the exponential map
            of a group; None if the group is not known. See ``kinetree.integration.manifold``.
        unit_parts: slices of ``q`` that are unit quaternions.
        angles: numbers of the position variables that count alike modulo 2π.
        turns_over: whether ``reparameterize`` goes over to other variables for the same state.
        rates_are_velocities: whether ``qd`` is the time derivative of ``q``; if not, see
            ``configuration_rate``.
    """

    nq: int
    nv: int
    constant_subspace: bool = True
    rates_are_velocities: bool = True
    position_parts: tuple[str, ...] = ()
    velocity_parts: tuple[str, ...] = ()
    spelling: str
    symbol: str = ""
    bracket: Any = None
    unit_parts: tuple[slice, ...] = ()
    angles: tuple[int, ...] = ()
    turns_over: bool = False

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "spelling" not in vars(cls):
            cls.spelling = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def examples(cls) -> "tuple[AbstractJoint, ...]":
        """Example joints of the class that differ in structure, for tests of every kind."""
        return (cls(),)

    @classmethod
    def from_table(cls, table: Any) -> "AbstractJoint":
        """Joint that a table of the native file format describes.

        By default every field of the dataclass is a key, read by its type.

        Args:
            table: reads keys: see ``kinetree.loaders.native.joints.JointTable``.
        """
        return cls(**table.parameters(fields(cls)))  # pyright: ignore[reportArgumentType]

    @abstractmethod
    def jcalc(self, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
        """Transform, axes, velocity, velocity product ``X_J, S, v_J, c_J`` — RBDA §4.4.

        ``X_J`` takes predecessor to successor coordinates, ``v_J = S qd`` is the velocity across
        the joint, and ``c_J`` the part of its rate that ``qd`` alone causes (``S° qd``). A joint
        that time itself moves adds ``σ`` to ``v_J`` and ``σ°`` to ``c_J`` — RBDA (3.32), (3.41).
        """

    @abstractmethod
    def constraint_subspace(self, q: Array) -> Force:
        """Constraint force columns ``T``, spanning the complement of ``S`` — RBDA (3.36)."""

    @abstractmethod
    def coordinates(self, X: Plucker) -> np.ndarray:
        """Position variables whose ``X_J`` is closest to ``X``; exact if the joint allows ``X``."""

    def transform(self, q: Array) -> Plucker:
        """Transform ``X_J`` from predecessor to successor coordinates at ``q``."""
        return self.jcalc(q, np.zeros(self.nv, dtype=int))[0]

    def motion_subspace(self, q: Array) -> Motion:
        """Motion subspace ``S`` of the joint at ``q``."""
        return self.jcalc(q, np.zeros(self.nv, dtype=int))[1]

    def active_subspace(self, q: Array) -> Force:
        """Active force columns ``T_a``, ``T_aᵀ S = 1``, of the joint forces — RBDA (3.35).

        Any choice moves the mechanism alike; it decides which loads the bearings see. This
        default is the pseudoinverse of ``S``.
        """
        S = self.motion_subspace(q).to_array()
        if S.dtype.kind in "fi":  # also where S has lost rank
            return Force.from_array(np.linalg.pinv(S).T)
        return Force.from_array(dual_basis(S))

    def velocity_variables(self, q: Array, v_J: Motion) -> Array:
        """Velocity variables ``qd = T_aᵀ v_J`` for a joint velocity ``v_J`` — (3.33), (3.35)."""
        return self.active_subspace(q).T @ v_J

    def loop_subspace(self, X: Plucker) -> Force:
        """Constraint forces ``T`` of a loop joint at the pose ``X``, closed or nearly so."""
        return self.constraint_subspace(self.coordinates(X))

    def loop_error(self, X: Plucker) -> Array:
        """Loop position error of the pose ``X``, with rate ``Tᵀ v_J`` — RBDA (8.23)–(8.27)."""
        q = self.coordinates(X)
        d = log(X @ self.transform(q).inverse())
        return self.constraint_subspace(q).T @ d

    def loop_gap(self, X: Plucker) -> Array:
        """Loop position error of the pose ``X`` that is zero only where the loop is closed.

        ``loop_error`` is made for small errors and may vanish elsewhere, too.
        """
        return AbstractJoint.loop_error(self, X)

    def loop_alignment(self, X: Plucker) -> Any:
        """Number that is positive where ``loop_error`` grows with the distance from closure.

        An error that is a sine vanishes at half a turn, too; there this is negative.
        """
        return 1

    def configuration_rate(self, q: Array, qd: Array) -> Array:
        """Rate ``dq/dt`` of the position variables for ``qd`` — RBDA (3.7)."""
        return qd

    def rate_matrix(self, q: Array) -> Array:
        """Matrix ``Q`` with ``dq/dt = Q qd``, (nq, nv) — RBDA (3.7)."""
        if self.nv == 0:
            return np.zeros((self.nq, 0), dtype=int)
        return np.column_stack([self.configuration_rate(q, e) for e in np.eye(self.nv, dtype=int)])

    def integrate(self, q: Array, dv: Array) -> Array:
        """Position reached from ``q`` at the constant velocity ``dv`` after unit time."""
        return q + dv

    def difference(self, q0: Array, q1: Array) -> Array:
        """Velocity ``dv`` for which ``integrate(q0, dv)`` is ``q1``; angles are not wrapped."""
        return q1 - q0

    def neutral(self) -> Array:
        """Neutral position variables, at which both frames coincide if they can."""
        return np.zeros(self.nq)

    def random(self, rng: "np.random.Generator") -> Array:
        """Random position: angles in ±π, lengths in ±1, away from singularities."""
        return rng.uniform(-1, 1, self.nq)

    def normalize(self, q: Array) -> Array:
        """Position with its quaternions scaled to unit length."""
        q = np.array(q)
        for part in self.unit_parts:
            q[part] = q[part] / np.linalg.norm(q[part])
        return q

    def reparameterize(self, q: Array, qd: Array, near: Array | None = None) -> tuple[Array, Array]:
        """State ``q, qd`` in the chart of variables that contains ``near``.

        Rounding errors of many steps take quaternions away from unit length; here they are brought
        back from close to it. Joints whose variables become singular (``turns_over``) leave for
        others; with ``near``, for those close to another position, so that a motion has no jump.
        """
        q = np.array(q)
        for part in self.unit_parts:
            q[part] = q[part] * (3 - q[part] @ q[part]) / 2  # to first order divided by the length
        return q, qd

    def singularity(self, q: Array) -> Any:
        """Distance of ``q`` from a singularity: 1 far away, 0 where ``S`` loses rank."""
        return 1

    @property
    def may_be_singular(self) -> bool:
        """Whether the joint's variables have singular positions, see ``singularity``."""
        return type(self).singularity is not AbstractJoint.singularity

    def defect(self, q: Array) -> str | None:
        """Reason why ``q`` is no valid position of the joint, or None."""
        for part in self.unit_parts:
            length = float(np.linalg.norm(q[part]))
            if not abs(length - 1) <= UNIT_TOLERANCE:
                return (
                    f"quaternion (w, x, y, z) must have unit length, got length {length:.9g}; "
                    f"model.normalize(q) scales it"
                )
        return None

    def velocity_units(self) -> list[str]:
        """``"rad/s"`` or ``"m/s"`` for every entry of ``qd``: angular where it turns the body."""
        if not self.nv:  # as of joints that follow others
            return []
        S = self.motion_subspace(self.neutral())
        turns = np.abs(np.asarray(S.angular, dtype=float)).reshape(3, -1).max(axis=0) > 0
        return ["rad/s" if turn else "m/s" for turn in turns]

    def position_units(self) -> list[str]:
        """Units of the entries of ``q``: ``"rad"``, ``"m"``, or ``"1"`` for quaternions."""
        units = ["m"] * self.nq
        if self.nq == self.nv:
            units = [unit.removesuffix("/s") for unit in self.velocity_units()]
        for part in self.unit_parts:
            units[part] = ["1"] * (part.stop - part.start)
        return units

    def movable_inertia(self, inertia: Inertia) -> Inertia | None:
        """Part of a body's inertia that can move to its parent without effect — RBDA §9.7.

        It must resist no motion of the joint, and look the same from the parent in every position.
        Both in coordinates of the body; None for nothing.
        """
        return None

    def parameters(self) -> tuple:
        """Parameters of the joint that code for every robot reads at run time.

        None by default: joints of a class with other fields are then another kind, with its
        own code. A class that names some takes others, traced ones too, in ``with_parameters``.
        """
        return ()

    def with_parameters(self, values: Any) -> "AbstractJoint":
        """Joint of the same kind with other ``parameters``."""
        return self

    def at(self, t: Any) -> "AbstractJoint":
        """Joint at time ``t`` [s], for joints whose motion depends on time — RBDA §3.5."""
        return self

    @property
    def moves_by_itself(self) -> bool:
        """Whether the joint's motion is prescribed, so that it moves without ``qd``."""
        if type(self).__module__.startswith("kinetree."):  # those that do override this
            return False
        _, _, v_J, c_J = self.jcalc(self.neutral(), np.zeros(self.nv, dtype=int))
        return bool(np.any(v_J.to_array() != 0) or np.any(c_J.to_array() != 0))


def with_fields(joint, /, **fields):
    """Copy of a joint with other field values, which are not checked and may be traced."""
    made = copy(joint)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def unit_motions(*indices):
    """Motion columns with a single 1 each, numbered as in the book: 1–3 angular, 4–6 linear."""
    return Motion.from_array(_unit_columns(indices))


def unit_forces(*indices):
    """Force columns with a single 1 each, numbered as in the book."""
    return Force.from_array(_unit_columns(indices))


def _unit_columns(indices):
    """Columns of the 6×6 identity, by numbers from 1."""
    columns = np.zeros((6, len(indices)), dtype=int)
    for n, i in enumerate(indices):
        columns[i - 1, n] = 1
    return columns


def point_mass(inertia):
    """Point mass at a body's origin with the body's mass, as an inertia."""
    return Inertia(inertia.mass, 0 * inertia.first_moment, 0 * inertia.rotational)


# --- checks of parameters ------------------------------------------------------------------------


def as_number(value, what, remedy=""):
    """``value`` if it is one finite number of any kind, else an error that names it."""
    refused = isinstance(value, (bool, str, bytes)) or value is None or np.shape(value) != ()
    if refused or (isinstance(value, numbers.Complex) and not np.isfinite(complex(value))):
        raise JointError(f"{what} must be a finite number, got {value!r}{remedy}")
    return value


def as_choice(value, what, choices):
    """``value`` if it is one of ``choices``, else an error that lists them."""
    if not isinstance(value, str) or value not in choices:
        raise JointError(f"{what} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value
