"""Choice of the constraint equations to solve: those that imply the others near a motion.

The rank at a start that is singular is less than the rank next to it. So it is also looked at a
little away from the start, on the manifold of closed loops. Off the manifold all constraints of an
overconstrained mechanism are independent, and contradict each other; there a choice made on it
still serves.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import crba
from kinetree.algorithms.closed.joint_space import ClosureErrors, closure_limit
from kinetree.algorithms.closed.rank import scaling
from kinetree.algorithms.closed.scaling import rows_of
from kinetree.algorithms.crba import has_full_inertia
from kinetree.errors import AssemblyError, LoopError, SimulationWarning, SingularError, warn
from kinetree.loops.kinematics.compiled_projection import Chosen
from kinetree.loops.kinematics.constraint import constraint, independent_rows, loop_gaps, rank
from kinetree.loops.kinematics.projection import project_configuration, project_velocity
from kinetree.loops.kinematics.whitening import no_inertia, whitening

_AWAY = 1e-2  # how far to look, in radians and in lengths of the mechanism
_LOOKS = 4
_SINGULAR = 1e-10  # smallest eigenvalue of an inertia matrix that counts, its diagonal being one
_CLOSED = 1e-10  # error of a start that may be the misalignment of redundant constraints
_WORSE = 0.5  # smallest singular value, relative to that of others, with which ours are replaced

NEARLY = 0.02
"""Part of its size by which a loop may be open at a start, to be closed with a warning."""


class EquationChoice(NamedTuple):
    """Choice of equations next to a start."""

    chosen: Chosen
    """Equations that are independent where it was looked."""
    health: float
    """Theirs, see ``ClosedState``, where it was looked."""
    singular: bool
    """Whether the start is singular: its rank is less than that next to it."""


def choose(model, q, prescribed=()) -> EquationChoice:
    """Choice of independent constraint equations for motions from the configuration ``q``.

    ``prescribed`` are the velocity variables of prescribed joints: equations must be independent
    for the others.
    """
    units, at, K = scaling(model), q, _matrix(model, q)
    size = at_start = rank(K, units)
    if size < min(K.shape):
        rng = np.random.default_rng(0)
        for near in (_near(model, q, K, units, rng) for _ in range(_LOOKS)):
            if near is not None and rank(_matrix(model, near), units) > size:
                at, size = near, rank(_matrix(model, near), units)
    K = _of_others(_matrix(model, at), prescribed)
    count = len(prescribed)
    if count and rank(K, units) < size:
        raise LoopError(
            f"the loops and couplings of model {model.name!r} leave too little freedom for all "
            f"prescribed joints: {size - rank(K, units)} of their "
            f"{count} variables {'follow' if count > 1 else 'follows'} from the others; prescribe "
            f"fewer"
        )
    slack = _slack(model, q, units)
    rows, weight = independent_rows(K, units), _weight(model, at, units)
    chosen = Chosen.of_rows(rows, units, prescribed, weight, slack)
    return EquationChoice(chosen, _health(model, at, chosen), singular=size > at_start)


def better_choice(model, q, chosen: Chosen) -> Chosen | None:
    """Better conditioned ``Chosen`` equations at ``q``; None if the present ones suffice."""
    units = scaling(model)
    K, size = _of_others(_matrix(model, q), chosen.prescribed), len(chosen.rows)
    if size == len(K):
        return None
    rows = independent_rows(K, units)
    if len(rows) != size or tuple(rows) == chosen.rows:
        return None
    now, then = (_smallest(units.apply(K)[list(choice)]) for choice in (chosen.rows, rows))
    others = chosen.prescribed, chosen.weight, chosen.slack
    return Chosen.of_rows(rows, units, *others) if now < _WORSE * then else None


def _weight(model, q, units):
    """Penalty weight of the equations, see ``Chosen``: zero unless ``H`` is singular."""
    if all(has_full_inertia(I) for I in model.inertia[1:]):
        return 0.0
    H = units.columns[:, None] * crba.joint_space_inertia(model, q).astype(float) * units.columns
    d = np.diagonal(H)
    size = float(np.max(d, initial=0.0))
    if size == 0:
        raise SingularError(no_inertia(model))
    scale = np.sqrt(np.maximum(d, _SINGULAR * size))
    least = np.linalg.eigvalsh(H / np.outer(scale, scale))[0]
    return float(np.mean(d)) if least <= _SINGULAR else 0.0


def _slack(model, q, units):
    """Errors tolerated in equations that are not solved; computed only if needed."""
    error = constraint(model, q, np.zeros(model.nv)).error
    far = np.max(np.abs(np.asarray(error) * units.rows), initial=0.0)
    known = units.policy.is_known or far > _CLOSED
    return float(units.policy.slack) if known and units.policy.misalignment else 0.0


def _of_others(K, prescribed):
    """Copy of ``K`` with zero columns for prescribed variables."""
    K = np.array(K)
    K[:, list(prescribed)] = 0
    return K


def _health(model, q, chosen):
    """Smallest pivot of the whitened chosen equations relative to their mean; 0 if singular."""
    K = chosen.matrix(_matrix(model, q))
    Y = whitening(model, q, K, chosen.weight).forces(K.T)
    pivots = np.diagonal(np.linalg.qr(Y, mode="r")) ** 2
    return float(np.min(pivots, initial=np.inf) / (np.sum(Y * Y) / max(len(pivots), 1)))


def _smallest(K):
    """Smallest singular value of the constraint matrix ``K``."""
    return np.linalg.svd(K, compute_uv=False)[-1]


def _matrix(model, q):
    """Constraint matrix at configuration ``q`` and rest, (nc, nv)."""
    return np.asarray(constraint(model, q, np.zeros(model.nv)).K)


def _near(model, q, K, units, rng):
    """Random closed configuration next to ``q``, or None if there is none."""
    free = np.linalg.svd(units.apply(K))[2][rank(K, units) :].T  # motions that K allows
    if not free.shape[1]:
        return None
    step = free @ rng.normal(size=free.shape[1])
    step = units.columns * step * (_AWAY / np.linalg.norm(step))
    try:
        return project_configuration(model, model.integrate(q, step))
    except (AssemblyError, SingularError):
        return None


# --- starts --------------------------------------------------------------------------------------


def closed_start(model, q, qd, name="q0"):
    """State with slightly open loops closed, of a batch; warns which.

    Files have positions with few digits. Loops that are open by more than ``NEARLY`` of their size
    stay so.

    Args:
        model: the mechanism.
        q: positions, (..., nq).
        qd: velocities, (..., nv).
        name: what the warning calls the positions.
    """
    if not (model.is_constrained and qd.size):
        return q, qd
    far, _ = ClosureErrors.of(model, constraint(model, q, qd), qd)
    off = (far > closure_limit(model, far)) & (far <= NEARLY)
    if not np.any(off):
        return q, qd
    index, sample = _worst(np.where(off, far, 0.0))
    part, gap = max(loop_gaps(model, q[index]).items(), key=lambda item: item[1])
    closed, velocity = q.copy(), qd.copy()
    closed[off] = project_configuration(model, q[off])
    if np.any(qd[off]):
        velocity[off] = project_velocity(model, closed[off], qd[off])
    way = float(np.abs(model.difference(q, closed)).max())
    warn(
        f"{name}{sample} does not quite close {part} of model {model.name!r}, which is open by "
        f"{gap:.3g} m or rad: the motion starts nearby, where it is closed, with joints moved by "
        f"up to {way:.3g} m or rad. kinetree.loops.project_configuration finds such positions",
        SimulationWarning,
    )
    return closed, velocity


def check_start(model, q, qd):
    """Raise LoopError for a state, of a batch, that violates constraints beyond drift."""
    if not qd.size:
        return
    c = constraint(model, q, qd)
    far, rate = ClosureErrors.of(model, c, qd)
    limit = closure_limit(model, far)
    if not np.all(far <= limit):
        index, sample = _worst(far)
        part, gap = max(loop_gaps(model, q[index]).items(), key=lambda item: item[1])
        raise LoopError(
            f"q0{sample} does not close {part} of model {model.name!r}: it is open by {gap:.3g} m "
            f"or rad, {far[index]:.3g} of its size; at most {limit:.3g} is allowed as drift; "
            f"kinetree.loops.assemble finds positions that close"
        )
    limit = closure_limit(model, rate)
    if not np.all(rate <= limit):
        index, sample = _worst(rate)
        k = int(np.argmax(np.abs(np.asarray(c.rate)[index] * scaling(model).rows)))
        row, torn = rows_of(model)[k], float(np.abs(np.asarray(c.rate)[index][k]))
        raise LoopError(
            f"qd0{sample} tears {row.owner} of model {model.name!r} apart, at {torn:.3g} "
            f"{row.unit}/s, {rate[index]:.3g} of its size and speed; at most {limit:.3g} passes "
            f"for drift; kinetree.loops.project_velocity finds velocities that do not"
        )


def _worst(sizes):
    """Index of the largest size, and its description for messages."""
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(sizes)), np.shape(sizes)))
    return index, f" of sample {index}" if index else ""


def warn_of_singular_start(model):
    """Warn that the motion from a singular start is not unique."""
    warn(
        f"the simulation of {model.name!r} starts in a singular configuration, where it "
        f"has more degrees of freedom than nearby: several branches of the motion begin here, and "
        f"rounding errors may decide which one is followed. Start slightly away from it to choose",
        SimulationWarning,
    )
