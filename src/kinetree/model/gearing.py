"""Couplings: independent variables to those of all joints, and back — RBDA §3.2, §9.6.

``y`` are the variables that follow nothing, ``q = γ(y)`` those of all joints, and

    qd = G yd,    qdd = G ydd + g,    g = dG/dt yd,    tau_y = Gᵀ tau
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError, ShapeError
from kinetree.model.array_arguments import POSITION, ArrayArgument
from kinetree.model.arrays import as_configuration, as_joint_vector
from kinetree.model.define import quantity
from kinetree.spatial.ops import less

if TYPE_CHECKING:
    from kinetree.model import Model


FOLLOWING_TOLERANCE = 1e-6
"""Largest distance [m or rad], relative to the position, from where a follower belongs."""


class Gearing:
    """``γ``, ``G`` and their derivatives in one configuration; scalar-generic.

    Args:
        model: a model with couplings.
        q: its position variables, (nq,).
        qd: its velocity variables, (nv,); at rest by default.

    Attributes:
        q, qd: positions and velocities of all joints, as ``model.uncoupled`` has them.
        G: from the velocity variables to those of all joints.
        G_rate: ``dG/dt``.
        g: ``dG/dt qd``.
        second: derivatives of rows of ``G`` by the position variables, where there are any.
    """

    def __init__(self, model, q, qd=None):
        full, (of_q, of_v) = model.uncoupled, model.independent_variables
        qd = model.zero_velocity if qd is None else np.asarray(qd)
        dtype = model.scalar_type(q, qd)
        self.q = np.zeros(full.nq, dtype)
        self.q[of_q] = q
        self.G = np.zeros((full.nv, model.nv), dtype)
        self.G[of_v, np.arange(model.nv)] = 1
        self.second = {}
        for c in model.couplings_in_order:
            self._follow(full, c)
        self.qd = self.G @ qd
        self.G_rate, self.g = np.zeros_like(self.G), np.zeros_like(self.G[:, 0] if model.nv else qd)
        for row, second in self.second.items():
            self.G_rate[row] = second @ qd
            self.g[row] = self.G_rate[row] @ qd

    def _follow(self, full, c):
        """Set position, ratios and second derivatives of a coupled joint from its leaders."""
        x = [self.q[full.q_slice[i].start] for i in c.leaders]
        row, leaders = full.v_slice[c.joint].start, [full.v_slice[i].start for i in c.leaders]
        self.q[full.q_slice[c.joint].start] = c.position(x)
        first, second = c.derivatives(x)
        bends = []
        for i, s in enumerate(leaders):
            self.G[row] = self.G[row] + first[i] * self.G[s]
            if s in self.second:
                bends.append(first[i] * self.second[s])
            if not c.is_linear:
                bends += [
                    second[i][j] * np.outer(self.G[s], self.G[t]) for j, t in enumerate(leaders)
                ]
        if bends:
            self.second[row] = sum(bends[1:], bends[0])


def in_order(couplings):
    """Couplings sorted so that each comes after those of its leaders."""
    waiting, found = {c.joint: c for c in couplings}, []

    def take(joint):
        c = waiting.pop(joint)
        for i in c.leaders:
            if i in waiting:
                take(i)
        found.append(c)

    while waiting:
        take(next(iter(waiting)))
    return tuple(found)


def with_leaders(model, joints):
    """Numbers of some joints with all that they follow, directly or not."""
    leaders, found, waiting = {c.joint: c.leaders for c in model.couplings}, set(), list(joints)
    while waiting:
        i = waiting.pop()
        if i not in found:
            found.add(i)
            waiting += leaders.get(i, ())
    return found


def require_leader(model, i, purpose):
    """Raise ModelError if joint ``i`` is coupled and has no independent variables.

    ``purpose`` ends a sentence about the joint: ``"be prescribed"``.
    """
    for c in model.couplings:
        if c.joint == i:
            names, joint = model.joint_names, repr(model.joint_names[i - 1])
            leads = " and ".join(repr(names[k - 1]) for k in c.leaders)
            follows, remedy = f"follows {leads}", f"name {leads} in its place"
            if not c.leaders:
                follows, remedy = "is held", "leave it out"
            raise ModelError(
                f"joint {joint} of model {model.name!r} {follows} by coupling {c.name!r}, so it "
                f"has no independent variables and cannot {purpose}: {remedy}, or remove the "
                f"coupling"
            )


def independent_variables(model):
    """Indices of the position and of the velocity variables of joints that are not coupled."""
    following = {c.joint for c in model.couplings}
    of_joints = model.uncoupled.q_slice, model.uncoupled.v_slice
    return tuple(
        np.array(
            [
                k
                for i, at in enumerate(slices)
                if i not in following
                for k in range(at.start, at.stop)
            ],
            dtype=int,
        )
        for slices in of_joints
    )


# --- arrays of states ----------------------------------------------------------------------------


_ALL = ArrayArgument(
    ("uncoupled.nq",), lambda model, q, name: as_configuration(model.uncoupled, q, name)
)
_ALL_RATES = ArrayArgument(
    ("uncoupled.nv",), lambda model, qd, name: as_joint_vector(model.uncoupled, qd, name)
)


@quantity(("uncoupled.nq",), arrays={"q": POSITION}, public=False)
def expand(model: "Model", q: ArrayLike) -> Any:
    """Positions of all joints, coupled ones included, (..., nq) of ``uncoupled``."""
    full = model.uncoupled
    result = np.zeros(full.nq, np.asarray(q).dtype)
    result[model.independent_variables[0]] = q
    for c in model.couplings_in_order:
        leaders = [result[full.q_slice[i].start] for i in c.leaders]
        result[full.q_slice[c.joint].start] = c.position(leaders)
    return result


@quantity(("uncoupled.nv",), arrays={"q": POSITION}, public=False)
def expand_velocity(model: "Model", q: ArrayLike, qd: ArrayLike) -> Any:
    """Velocities of all joints, ``G(q) qd``, (..., nv) of ``uncoupled``."""
    return Gearing(model, q, qd).qd


@quantity(("uncoupled.nv",), arrays={"q": POSITION}, public=False)
def expand_acceleration(model: "Model", q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Any:
    """Accelerations of all joints, ``G(q) qdd + g(q, qd)``, (..., nv) of ``uncoupled``."""
    at = Gearing(model, q, qd)
    return at.G @ qdd + at.g


@quantity(("nq",), arrays={"q": _ALL}, public=False)
def reduce(model: "Model", q: ArrayLike, *, tolerance: float = FOLLOWING_TOLERANCE) -> Any:
    """Independent position variables (..., nq), from positions of all joints.

    Args:
        model: the model.
        q: positions of all joints, (..., nq) of ``uncoupled``.
        tolerance: largest deviation of a joint from its coupling, [m or rad] and relative to
            its position; infinite not to check.

    Raises:
        ShapeError: a joint violates its coupling.
    """
    y = q[model.independent_variables[0]]
    if model.couplings and np.isfinite(tolerance):
        check = _require_following if np.asarray(q).dtype == object else _check_following
        check(model, q, expand(model, y), tolerance)
    return y


@quantity(("nv",), arrays={"qd": _ALL_RATES}, public=False)
def reduce_velocity(model: "Model", qd: ArrayLike) -> Any:
    """Independent velocity variables (..., nv), from velocities of all joints."""
    return qd[model.independent_variables[1]]


def _check_following(model, q, expanded, tolerance):
    """Raise ModelError if a coupled joint is not where its coupling puts it."""
    for c in model.couplings:
        k = model.uncoupled.q_slice[c.joint].start
        error = np.abs(q[..., k] - expanded[..., k])
        worst = np.max(error / (1 + np.abs(expanded[..., k])), initial=0.0)
        if worst > tolerance:
            raise ShapeError(
                f"q violates coupling {c.name!r}: joint {model.joint_names[c.joint - 1]!r} is "
                f"{np.max(error):.3g} m or rad away from where it belongs; set it by the coupling "
                f"first, or take model.expand of the variables that lead"
            )


def _require_following(model, q, expanded, tolerance):
    """Trace run-time checks that coupled joints are where their couplings put them."""
    for c in model.couplings:
        k = model.uncoupled.q_slice[c.joint].start
        error, bound = q[..., k] - expanded[..., k], tolerance * tolerance
        for x, y in zip(np.ravel(error), np.ravel(expanded[..., k]), strict=True):
            holds: Any = less(x * x, bound * (1 + y * y))
            if hasattr(holds, "require"):
                holds.require()


# --- postures ------------------------------------------------------------------------------------


def leading_posture(model, posture):
    """Posture reduced to the independent variables, if it has those of all joints."""
    joints = [b.joint for b in model.bodies]
    if len(posture.q) != sum(j.nq for j in joints):
        return posture
    kept: tuple[list, list] = [], []
    for values, parts, counts in zip(
        (posture.q, posture.qd), kept, ([j.nq for j in joints], [j.nv for j in joints]), strict=True
    ):
        at = 0
        for i, n in enumerate(counts, start=1):
            if model.joint[i].nv == joints[i - 1].nv:
                parts.extend(values[at : at + n])
            at += n
    return replace(posture, q=tuple(kept[0]), qd=tuple(kept[1]))


def full_posture(model, posture):
    """Posture expanded to the positions and velocities of all joints."""
    q, qd = np.array(posture.q), np.array(posture.qd)
    state = expand(model, q), expand_velocity(model, q, qd) if posture.moves else qd
    return replace(posture, q=tuple(state[0].tolist()), qd=tuple(state[1].tolist()))


# --- sparsity ------------------------------------------------------------------------------------


def elimination_tree(pattern):
    """Elimination tree (parent array) of a symmetric matrix with the given nonzeros.

    Eliminating from the last row to the first, as ``ltl`` does, a row fills in only what its
    ancestors have: where branches make the zeros, these are the branches.
    """
    n = len(pattern)
    filled = np.array(pattern, dtype=bool)
    parent = []
    for k in reversed(range(n)):
        above = np.flatnonzero(filled[k, :k])
        parent.append(int(above[-1]) if len(above) else -1)
        filled[np.ix_(above, above)] = True
    return tuple(reversed(parent))


def inertia_pattern(model):
    """Structural nonzeros of the inertia matrix ``GᵀHG``, (nv, nv) of bool."""
    lam = np.array(model.uncoupled.expanded_parent, dtype=int)
    H = np.eye(len(lam), dtype=bool)
    for k, j in enumerate(lam):
        while j >= 0:
            H[k, j] = H[j, k] = True
            j = lam[j]
    G = np.zeros((len(lam), model.nv), dtype=bool)
    G[model.independent_variables[1], np.arange(model.nv)] = True
    at = model.uncoupled.v_slice
    for c in model.couplings_in_order:
        for i in c.leaders:
            G[at[c.joint].start] |= G[at[i].start]
    G = G.astype(int)
    return (G.T @ H.astype(int) @ G) > 0


def coupled_parent(model):
    """Parent array ``λ′`` over the velocity variables of a model with couplings."""
    return elimination_tree(inertia_pattern(model))
