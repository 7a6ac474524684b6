"""Joint vectors of one mechanism in kinetree and in another library, in either direction.

Couplings are expanded on the way: other libraries have a variable for every joint.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import ShapeError
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_numbers, check_finite
from kinetree.model.gearing import Gearing


class JointPair(NamedTuple):
    """A joint of kinetree and its counterpart: where their variables are, how they translate."""

    name: str
    q: slice
    v: slice
    other_q: Any
    other_v: Any
    map: Any
    """With ``to_position(q)``, ``from_position(p)``, ``to_velocity(q, qd)``,
    ``from_velocity(q, v)``,
    ``to_acceleration(q, qd, qdd)``, ``from_acceleration(q, v, a)``. ``q`` is always kinetree's;
    forces translate like velocities."""
    reference: Any = 0
    """Of the other's positions, where kinetree's are zero."""


class FollowingJoint(NamedTuple):
    """A joint of kinetree that has no variables in the other library, and the one it follows."""

    q: slice
    v: slice
    leader_q: slice
    leader_v: slice
    scaling: float
    offset: float


@dataclass(frozen=True)
class States:
    """Conversion of joint vectors, (..., n), of one model."""

    model: Model
    """The model of kinetree."""
    library: str
    """For messages, such as ``"MuJoCo"``."""
    name: str
    """Of the other model."""
    nq: int
    """Number of its position variables."""
    nv: int
    """Number of its velocity variables."""
    match: Callable[[Model], tuple[list[JointPair], list[FollowingJoint]]]
    """Of ``model.uncoupled`` to lists of ``JointPair`` and ``FollowingJoint``."""
    settle: Callable
    """Of a pair, the other's positions and kinetree's to the latter, checked."""

    def to_position(self, q):
        """Positions of the other library from kinetree's configuration."""
        model, q = _all_joints(self.model, q)
        q = as_configuration(model, q)
        pairs, _ = self.match(model)
        parts = [(p.other_q, p.map.to_position(q[..., p.q]) + p.reference) for p in pairs]
        return _assemble(parts, self.nq, q)

    def from_position(self, x, name="q"):
        """Kinetree's configuration from the other library's positions."""
        q = self._positions(x, name)
        return q[..., self.model.independent_variables[0]] if self.model.couplings else q

    def to_tangent(self, what, q, **vectors):
        """Velocities, accelerations or forces of the other library from kinetree's.

        Args:
            what: ``"velocity"`` or ``"acceleration"``.
            q: kinetree's configuration.
            **vectors: ``qd``; ``qd`` and ``qdd``; or ``tau``.
        """
        model, q, *arrays = _all_joints(self.model, q, **vectors)
        q = as_configuration(model, q)
        arrays = [as_joint_vector(model, x, n) for n, x in zip(vectors, arrays, strict=True)]
        pairs, followers = self.match(model)
        if "tau" in vectors and followers:
            arrays[-1] = np.array(arrays[-1])
            for f in followers:
                arrays[-1][..., f.leader_v] += f.scaling * arrays[-1][..., f.v]
        parts = [
            (p.other_v, getattr(p.map, f"to_{what}")(q[..., p.q], *(x[..., p.v] for x in arrays)))
            for p in pairs
        ]
        return _assemble(parts, self.nv, arrays[-1], q, *arrays)

    def from_tangent(self, what, x, *, position="q", **vectors):
        """Kinetree's velocities, accelerations or forces from the other library's.

        Args:
            what: ``"velocity"`` or ``"acceleration"``.
            x: the other's positions.
            position: their name, for messages.
            **vectors: the other's velocities and accelerations by name, or ``tau``.
        """
        model, q = self.model.uncoupled, self._positions(x, position)
        arrays = [self._vector(x, name, self.nv) for name, x in vectors.items()]
        pairs, followers = self.match(model)
        parts = [
            (p.v, getattr(p.map, f"from_{what}")(q[..., p.q], *(x[..., p.other_v] for x in arrays)))
            for p in pairs
        ]
        ours = _assemble(parts, model.nv, arrays[-1], q, *arrays)
        for f in followers:
            ours[..., f.v] = 0 if "tau" in vectors else f.scaling * ours[..., f.leader_v]
        if not self.model.couplings:
            return ours
        if "tau" in vectors:
            return _leading_forces(self.model, q, ours)
        return ours[..., self.model.independent_variables[1]]

    def _positions(self, x, name):
        """Positions of all joints, from the other library's."""
        model, x = self.model.uncoupled, self._vector(x, name, self.nq)
        pairs, followers = self.match(model)
        parts = []
        for p in pairs:
            theirs = x[..., p.other_q]
            parts.append((p.q, self.settle(p, theirs, p.map.from_position(theirs - p.reference))))
        q = _assemble(parts, model.nq, x)
        for f in followers:
            q[..., f.q] = f.scaling * q[..., f.leader_q] + f.offset
        return as_configuration(model, q, f"q from {self.library}")

    def _vector(self, x, name, size):
        """State vector of the other library as an array; an error for wrong sizes."""
        a = as_numbers(x, f"{self.library}'s {name}")
        if a.ndim == 0 or a.shape[-1] != size:
            raise ShapeError(
                f"{self.library}'s {name} must have shape (..., {size}) for its model "
                f"{self.name!r}, got {a.shape}"
            )
        return check_finite(a, f"{self.library}'s {name}")


def _all_joints(model, q, *, qd=None, qdd=None, tau=None):
    """Model without couplings, and the given arrays for all its joints.

    Forces of followers are zero: what they would add is in those of the leaders.
    """
    if not model.couplings:
        return model, q, *(x for x in (qd, qdd, tau) if x is not None)
    q = as_configuration(model, q)
    found = [model.uncoupled, model.expand(q)]
    if qd is not None:
        found.append(model.expand_velocity(q, qd))
    if qdd is not None:
        found.append(model.expand_acceleration(q, qd, qdd))
    if tau is not None:
        tau = as_joint_vector(model, tau, "tau")
        forces = np.zeros((*tau.shape[:-1], model.uncoupled.nv), tau.dtype)
        forces[..., model.independent_variables[1]] = tau
        found.append(forces)
    return tuple(found)


def _leading_forces(model, q, tau):
    """Joint forces ``Gᵀ tau`` of a coupled model, from those of all joints."""
    y = q[..., model.independent_variables[0]]
    batch = np.broadcast_shapes(y.shape[:-1], tau.shape[:-1])
    y, tau = (np.broadcast_to(a, (*batch, a.shape[-1])) for a in (y, tau))
    result = np.zeros((*batch, model.nv), tau.dtype)
    for n in np.ndindex(batch):
        result[n] = Gearing(model, y[n]).G.T @ tau[n]
    return result


def _assemble(parts, size, *arrays):
    """Array assembled from (indices, values) parts; zero elsewhere.

    The batch axes are those of all ``arrays``, broadcast.
    """
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    out = np.zeros((*batch, size), dtype=arrays[0].dtype)
    for at, values in parts:
        out[..., at] = values
    return out
