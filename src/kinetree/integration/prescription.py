"""Which joints move as told, and how: positions, velocities and accelerations over time.

At every stage of a step the joints that are told stand exactly where they should, whatever the
integrator made of them; only the others are integrated. Written for numbers of any kind.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.errors import JointError
from kinetree.functional.kernel import UserKernel
from kinetree.integration.recorded_motion import RecordedMotion
from kinetree.model.arrays import as_model
from kinetree.model.gearing import require_leader

__all__ = ["Told", "told_of"]


@dataclass(frozen=True)
class Told:
    """Joints that move as told.

    Attributes:
        joints: their numbers, increasing.
        names: their names.
        motions: of each, a function of time [s] to its position, velocity and acceleration
            variables.
    """

    joints: tuple[int, ...]
    names: tuple[str, ...]
    motions: tuple

    @property
    def traceable(self) -> bool:
        """Whether steps can be compiled: all motions are kernels."""
        return all(isinstance(motion, UserKernel) for motion in self.motions)

    def at(self, model, t, q, qd) -> tuple[Any, Any, Any]:
        """The state with these joints where they are told to be, and their accelerations.

        Args:
            model: the mechanism.
            t: time [s].
            q: joint positions, (..., nq); those of the joints that are told are not read.
            qd: joint velocities, (..., nv), likewise.

        Returns:
            ``q``, ``qd``, and ``qdd`` with zeros for the other joints.
        """
        q, qd, qdd = np.array(q), np.array(qd), 0 * np.asarray(qd)
        for i in self.joints:
            at_q, at_v = model.q_slice[i], model.v_slice[i]
            q[..., at_q], qd[..., at_v], qdd[..., at_v] = self.of(model, i, t)
        return q, qd, qdd

    def of(self, model, i, t):
        """Position, velocity and acceleration of joint ``i`` at time ``t``, (..., n) each."""
        k = self.joints.index(i)
        return _checked(self.names[k], model.joint[i], self.motions[k](t), t)

    def each(self, model, times, q, qd) -> tuple[Any, Any, Any]:
        """The same at several times (n,), with states (n, ..., nq) and (n, ..., nv)."""
        instants = [self.at(model, *instant) for instant in zip(times, q, qd, strict=True)]
        q, qd, qdd = (np.array(x) for x in zip(*instants, strict=True))
        return q, qd, qdd

    def variables(self, model) -> tuple[int, ...]:
        """Numbers of their velocity variables."""
        return tuple(k for i in self.joints for k in range(model.nv)[model.v_slice[i]])

    def others(self, model) -> np.ndarray:
        """1 for the velocity variables of all other joints, 0 for theirs, (nv,)."""
        free = np.ones(model.nv, dtype=int)
        free[list(self.variables(model))] = 0
        return free


def told_of(model, prescribed) -> Told | None:
    """The joints that are told, from motions by the names of joints."""
    if not prescribed:
        return None
    if not hasattr(prescribed, "items"):
        raise TypeError(
            f"prescribed must be motions by the names of joints, {{'shoulder': motion}}, got "
            f"{type(prescribed).__name__}"
        )
    found = {}
    for name, motion in prescribed.items():
        i = as_model(model).joint_index(name)
        require_leader(model, i, "be prescribed")
        if not model.joint[i].nv:
            raise JointError(
                f"prescribed joint {name!r} of model {model.name!r} cannot move at all"
            )
        if not callable(motion):
            raise TypeError(
                f"the motion of joint {name!r} must be a function of time that returns its "
                f"(q, qd, qdd), or kinetree.RecordedMotion(t, q); got {type(motion).__name__}"
            )
        if isinstance(motion, RecordedMotion) and not model.joint[i].rates_are_velocities:
            raise JointError(
                f"joint {name!r} ({type(model.joint[i]).__name__}) has velocities that are not the "
                f"rates of its position variables, and a RecordedMotion takes them for that: give "
                f"a function of time that returns its (q, qd, qdd)"
            )
        found[i] = (name, motion)
    joints = tuple(sorted(found))
    names, motions = zip(*(found[i] for i in joints), strict=True)
    return Told(joints, names, motions)


def _checked(name, joint, values, t):
    """What a motion returned, as arrays (..., n)."""
    sizes = (joint.nq, joint.nv, joint.nv)
    if not isinstance(values, (tuple, list, np.ndarray)) or len(values) != 3:
        raise JointError(
            f"the motion of joint {name!r} must return (q, qd, qdd), got {values!r} at t = {t}"
        )
    arrays = [np.asarray(value) for value in values]
    arrays = [
        a.reshape(1) if not a.ndim and n == 1 else a for a, n in zip(arrays, sizes, strict=True)
    ]
    if any(not a.ndim or a.shape[-1] != n for a, n in zip(arrays, sizes, strict=True)):
        raise JointError(
            f"the motion of joint {name!r} must return (q, qd, qdd) of lengths {sizes}, got shapes "
            f"{tuple(a.shape for a in arrays)}"
        )
    return arrays
