"""Virtual links: a loop joint carries a massless link that must meet a body — Spencer A.2.

A loop is cut at its loop joint. The joint stays, on its predecessor, and moves a *virtual link*
without mass and without children. The loop is closed while that link coincides with a frame on the
successor. So ``q̂ = (q, q_v)`` and ``v̂ = (qd, v_v)`` hold the variables of all joints alike, and
one recursion reaches them all. Links are numbered like bodies, virtual ones last.

The virtual variables of a closed loop follow from the bodies (Spencer A.3.3, end): they are
measured and never stored.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.kinematics import base_transforms, body_accelerations, joint_transforms
from kinetree.model import tree
from kinetree.spatial import Motion, crm


class ClosedChain:
    """The links of a model, with one virtual link for each of its loops.

    Attributes:
        model: the mechanism.
        real: number of links that are bodies.
        parent: ``P``, for every link; entry 0 unused.
        reference: ``R``: the body that a virtual link must meet; None for real links.
        joint: the joint that moves a link.
        v_slice: where the variables of a link are in ``v̂``.
        nv: number of variables, the virtual ones included.
    """

    def __init__(self, model):
        self.model, self.real = model, model.body_count
        loops = model.loops
        self.parent: tuple[int, ...] = (*model.parent, *(loop.predecessor for loop in loops))
        self.reference = (*(None for _ in model.joint), *(loop.successor for loop in loops))
        self.joint = (*model.joint, *(loop.joint for loop in loops))
        sizes = [0, *(joint.nv for joint in self.joint[1:])]
        stops = [int(n) for n in np.cumsum(sizes)]
        self.v_slice = [slice(b - n, b) for n, b in zip(sizes, stops, strict=True)]
        self.nv = stops[-1]
        self.subtrees_with_virtual = tree.subtrees(self.parent)

    @property
    def links(self):
        """Numbers of all links, parents first."""
        return range(1, len(self.parent))

    @property
    def virtual(self):
        """Numbers of the virtual links, which stand for loop joints."""
        return range(self.real + 1, len(self.parent))

    def children(self, i):
        """Real children ``C_i`` of a link."""
        return tuple(j for j in range(1, self.real + 1) if self.parent[j] == i)

    def subtree_with_virtual(self, i):
        """Subtree ``T_i^v`` of joint ``i``: all links it carries, with virtual ones."""
        return tuple(sorted(self.subtrees_with_virtual[i]))

    def subtree(self, i):
        """Subtree ``T_i`` of joint ``i`` without virtual links."""
        return tuple(j for j in self.subtree_with_virtual(i) if j <= self.real)

    @property
    def has_fixed_axes(self) -> bool:
        """Whether axes are fixed in their links, and velocities are derivatives of positions."""

        def is_fixed(joint):
            _, _, v_J, c_J = joint.jcalc(joint.neutral(), np.zeros(joint.nv, dtype=int))
            moves = np.any(v_J.to_array() != 0) or np.any(c_J.to_array() != 0)
            return joint.constant_subspace and joint.rates_are_velocities and not moves

        return all(is_fixed(self.joint[i]) for i in self.links)


class LinkStates(NamedTuple):
    """Position and motion of all joints, entry 0 unused."""

    X: list[Any]
    """From parent to link coordinates."""
    S: list[Any]
    """Axes of the joints, in link coordinates."""
    v: np.ndarray
    """``v̂``: velocity variables of all joints, virtual ones last, (nv,)."""
    vdot: np.ndarray
    """Their derivatives, (nv,)."""
    q_v: np.ndarray
    """Position variables of the virtual joints."""


def link_states(chain, q, qd, qdd) -> LinkStates:
    """Positions, velocities and accelerations of all joints, virtual ones included.

    Args:
        chain: a ``ClosedChain``.
        q: position variables that close the loops, (nq,).
        qd: velocity variables that keep them closed, (nv,) of the model.
        qdd: accelerations that keep them closed, (nv,) of the model.
    """
    model = chain.model
    X, v, a = body_accelerations(model, q, qd, qdd)
    X_0 = base_transforms(model, X)
    _, S = joint_transforms(model, q)
    v_hat, vdot_hat, q_v = [qd], [qdd], [q[:0]]
    for loop in model.loops:
        p, s, joint = loop.predecessor, loop.successor, loop.joint
        to_p, to_s = loop.predecessor_placement, loop.successor_placement
        X_ps = to_s @ X_0[s] @ (to_p @ X_0[p]).inverse()
        v_s, a_s = to_s @ v[s], to_s @ a[s]
        v_J = v_s - X_ps @ (to_p @ v[p])
        q_J = joint.coordinates(X_ps)
        qd_J = joint.velocity_variables(q_J, v_J)
        X_J, S_J, _, c_J = joint.jcalc(q_J, qd_J)
        a_J = a_s - X_ps @ (to_p @ a[p]) - crm(v_s, v_J) - c_J
        X.append(X_J @ to_p)
        S.append(S_J)
        v_hat.append(qd_J)
        q_v.append(q_J)
        vdot_hat.append(joint.velocity_variables(q_J, a_J))
    return LinkStates(X, S, *(np.concatenate(part) for part in (v_hat, vdot_hat, q_v)))


# --- derivatives of the Jacobian: Spencer 4.4 ----------------------------------------------------
# ``J_i`` has a column for every variable of every joint, virtual ones included, so that the
# velocity of link ``i`` is ``J_i v̂`` in its own coordinates. From the root to the tips, with
# ``v_J = S_i v̂_i``:
#
#     J_i        =  X_i J_P         + [0 … S_i … 0]
#     ∂J_i/∂q_j  =  X_i ∂J_P/∂q_j                             j ≠ i
#     ∂J_i/∂q_i  = -S_i × X_i J_P
#     Jdot_i     =  X_i Jdot_P      - v_J × X_i J_P
#     Jddot_i    =  X_i Jddot_P     - 2 v_J × X_i Jdot_P + v_J × v_J × X_i J_P - v_Jdot × X_i J_P
#
# The thesis writes ``S_i × J_i`` for ``S_i × X_i J_P``, which is the same for a joint with one
# axis; as they stand the equations hold for any joint with axes fixed in its link. (The dots of
# ``Jddot`` are misprinted there.) A virtual link ``i`` and the frame ``i'`` on the body that it
# must meet have the same velocity, ``Ĝ v̂ = 0`` with ``Ĝ = A J``, where the constant ``A`` takes
# ``J_i - J_i'`` (A.9).


class ClosureDerivatives(NamedTuple):
    """``Ĝ v̂ = 0`` and its derivatives; six rows for each loop."""

    G: Any
    """``Ĝ``, (rows, n̂)."""
    dG: Any
    """``∂Ĝ/∂q̂_j`` in entry [:, :, j], (rows, n̂, n̂)."""
    Gdot: Any
    """Time derivative, (rows, n̂)."""
    Gddot: Any
    """Second time derivative, (rows, n̂)."""


def closure_derivatives(model, q, qd, qdd) -> ClosureDerivatives:
    """The closure of all loops to second order, for a motion that keeps them closed."""
    chain = ClosedChain(model)
    X, S, v, vdot, _ = link_states(chain, q, qd, qdd)
    J = jacobians(chain, X, S)
    dJ = jacobian_derivatives(chain, X, S, J)
    Jdot, Jddot = jacobian_rates(chain, X, S, J, v, vdot)

    loops = [closed_rows(chain, J), closed_rows(chain, Jdot), closed_rows(chain, Jddot)]
    gradient = np.stack([closed_rows(chain, dJ_j) for dJ_j in dJ], axis=-1)
    return ClosureDerivatives(loops[0], gradient, *loops[1:])


# --- Jacobians of all links ----------------------------------------------------------------------


def jacobians(chain, X, S):
    """Jacobians ``J_i`` of every link, motion columns in its coordinates — Spencer 4.4.1."""
    J = [_still(chain)] * len(chain.parent)
    for i in chain.links:
        J[i] = _plus_columns(chain, X[i] @ J[chain.parent[i]], i, S[i])
    return J


def jacobian_derivatives(chain, X, S, J):
    """Derivatives ``∂J_i/∂q̂_j``: for every variable a list over the links — Spencer 4.4.1."""
    derivatives = []
    for k in chain.links:
        beyond = set(chain.subtree_with_virtual(k))
        for column in range(chain.joint[k].nv):
            dJ: list[Any] = [_still(chain)] * len(chain.parent)
            for i in sorted(beyond):
                P = chain.parent[i]
                axis = Motion(S[i].angular[:, column], S[i].linear[:, column]) if i == k else None
                dJ[i] = X[i] @ dJ[P] if axis is None else -crm(axis, X[i] @ J[P])
            derivatives.append(dJ)
    return derivatives


def jacobian_rates(chain, X, S, J, v, vdot):
    """Time derivatives ``Jdot_i``, ``Jddot_i`` of every link's Jacobian — Spencer 4.4.1."""
    Jdot, Jddot = [_still(chain)] * len(chain.parent), [_still(chain)] * len(chain.parent)
    for i in chain.links:
        P, at = chain.parent[i], chain.v_slice[i]
        v_J, v_Jdot = S[i] @ v[at], S[i] @ vdot[at]
        turned = crm(v_J, X[i] @ J[P])
        XJdot = X[i] @ Jdot[P]
        Jdot[i] = XJdot - turned
        Jddot[i] = (
            X[i] @ Jddot[P] - 2 * crm(v_J, XJdot) + crm(v_J, turned) - crm(v_Jdot, X[i] @ J[P])
        )
    return Jdot, Jddot


def _still(chain):
    """Motion columns of zeros, one for each joint variable."""
    return Motion(*(np.zeros((3, chain.nv), dtype=int) for _ in range(2)))


def _plus_columns(chain, J, i, S):
    """Jacobian ``J`` with the axes of joint ``i`` in that joint's columns."""
    at, parts = chain.v_slice[i], []
    for part, axes in ((J.angular, S.angular), (J.linear, S.linear)):
        part = np.array(part, dtype=np.result_type(part, axes))
        part[:, at] = axes
        parts.append(part)
    return Motion(*parts)


# --- the rows of the constraint ------------------------------------------------------------------


def closed_rows(chain, J):
    """Constraint rows ``A J``: the relative motion at the loops due to each variable."""
    parts = [np.zeros((0, *np.shape(J[0].angular)[1:]), dtype=int)]
    for i, loop in zip(chain.virtual, chain.model.loops, strict=True):
        parts.append((J[i] - loop.successor_placement @ J[chain.reference[i]]).to_array())
    return np.concatenate(parts)
