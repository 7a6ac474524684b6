"""Derivatives of a joint's own equations, where its axes depend on its position.

So it is with universal joints, Euler angles, racks and pinions, many a joint of the user's, and
what is reversed: in child coordinates ``S``, ``v_J = S qd`` and ``c_J`` change with its variables.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.joints.jet import jets
from kinetree.spatial import Motion


class JointVariation(NamedTuple):
    """How a joint's equations change with its variables, at a fixed velocity of its parent."""

    S_q: tuple
    """``∂S/∂q_k`` for each variable ``k``."""
    v_q: Any
    """``∂v_J/∂q_k``, one column for each variable."""
    c_J: Any
    """``c_J`` itself."""
    c_q: Any
    """``∂c_J/∂q_k``."""
    c_qd: Any
    """``∂c_J/∂qd_k``."""

    def map(self, function) -> "JointVariation":
        """Copy of the variation with ``function`` applied to each motion, e.g. a transform."""
        return JointVariation(tuple(map(function, self.S_q)), *map(function, self[1:]))

    def acceleration(self, qdd) -> Any:
        """Derivatives ``∂(S qdd + c_J)/∂q_k`` of a joint's acceleration, a column per variable."""
        columns = [(S_k @ qdd).to_array() for S_k in self.S_q]
        return Motion.from_array(np.stack(columns, axis=1)) + self.c_q

    def force(self, f) -> np.ndarray:
        """Derivatives ``(∂S/∂q_k)ᵀ f`` of a joint's force, a column per variable."""
        return np.stack([S_k.T @ f for S_k in self.S_q], axis=1)


def can_vary(joint) -> bool:
    """Whether a joint's equations can be differentiated; user-defined classes may fail."""
    if joint.constant_subspace or type(joint).__module__.startswith("kinetree."):
        return True
    try:
        joint.jcalc(jets(joint.neutral(), np.ones(joint.nq)), np.ones(joint.nv))
    except Exception:  # whatever it does with numbers of a kind that it does not know
        return False
    return True


def joint_variation(model, i, q, qd) -> JointVariation | None:
    """Derivatives of joint ``i``'s axes and velocity by its variables; None for constant axes."""
    joint = model.joint[i]
    if joint.constant_subspace or joint.nv == 0:
        return None
    q_i, qd_i = q[model.q_slice[i]], qd[model.v_slice[i]]
    units = np.eye(joint.nv, dtype=int)
    along_q = [joint.jcalc(jets(q_i, joint.configuration_rate(q_i, e)), qd_i) for e in units]
    along_qd = [joint.jcalc(q_i, jets(qd_i, e)) for e in units]
    return JointVariation(
        tuple(Motion.from_array(_rates(S.to_array())) for _, S, _, _ in along_q),
        _columns(v_J for _, _, v_J, _ in along_q),
        joint.jcalc(q_i, qd_i)[3],
        _columns(c_J for _, _, _, c_J in along_q),
        _columns(c_J for _, _, _, c_J in along_qd),
    )


def _columns(motions):
    """Motions side by side as the columns of one."""
    return Motion.from_array(np.stack([_rates(m.to_array()) for m in motions], axis=1))


def _rates(x):
    """First derivatives in an array of jets; zero for plain numbers."""
    found = np.empty(x.size, dtype=object)
    found[:] = [getattr(a, "first", 0) for a in x.ravel()]
    found = found.reshape(x.shape)
    return found if any(hasattr(a, "graph") for a in found.ravel()) else np.array(found.tolist())
