"""Whether loops close, and what they leave of the motion. Ranks, so numbers only."""

import numpy as np

from kinetree.algorithms import implicit
from kinetree.algorithms.couplings import coupling_rows
from kinetree.doctor.finding import found, named

__all__ = ["assemble", "loops"]

CLOSED = 1e-6
"""Largest position error [m or rad] of a closed loop."""
_STEPS, _LONGEST_STEP, _RANK = 100, 0.5, 1e-8


def loops(model, seed=0):
    """Loops that do not close, and constraints that repeat others or stop everything."""
    if not model.loops:
        return
    part = named("model", model.name)
    states = [model.neutral(), *(np.array(posture.q) for posture in model.postures)]
    gaps = [_gap(model, q) for q in states]
    q = states[int(np.argmin(gaps))]
    if min(gaps) > CLOSED:
        q = assemble(model, q)
        if _gap(model, q) > CLOSED:
            yield from _open(model, q)
            return
        text = f"the neutral position leaves a gap of {gaps[0]:.3g} m or rad in its loops, and no "
        yield found("loop-neutral", part, f"{text}posture closes them")
    count, rank = _ranks(model, q, seed)
    if rank == model.nv:
        text = f"{rank} independent constraints hold its {model.nv} freedoms"
        yield found("loop-locked", part, text)
    if rank < count:
        left = model.nv - rank
        text = f"{count - rank} of the {count} constraints of its loops and couplings repeat "
        text += f"others; {left} {'freedom remains' if left == 1 else 'freedoms remain'}"
        yield found("loop-redundant", part, text)


def _open(model, q):
    for loop, joint in zip(model.loops, _constraint(model, q).loops, strict=True):
        if joint.gap > CLOSED:
            text = (
                f"it stays open by {joint.gap:.3g} m or rad; no position was found that closes it"
            )
            yield found("loop-open", named("loop joint", loop.name), text)


def assemble(model, q):
    """A configuration near ``q`` that closes the loops, or comes close: Gauss–Newton steps."""
    best, smallest = q, _gap(model, q)
    for _ in range(_STEPS):
        if smallest < 1e-3 * CLOSED:
            break
        c = _constraint(model, q).implicit
        step = -np.linalg.lstsq(c.K, c.error, rcond=_RANK)[0]
        length = max(float(np.linalg.norm(step)), 1e-300)
        q = model.integrate(q, step * min(1.0, _LONGEST_STEP / length))
        gap = _gap(model, q)
        if gap < smallest:
            best, smallest = q, gap
    return best


def _ranks(model, q, seed):
    """Number of constraints, and of independent ones, in a configuration that is not special.

    A mechanism may be singular where it is closed at first; nearby it shows its true rank.
    """
    K = _constraint(model, q).implicit.K
    rng, rank = np.random.default_rng(seed), _rank(K)
    if rank < min(K.shape):
        near = assemble(model, model.integrate(q, 0.1 * rng.standard_normal(model.nv)))
        if _gap(model, near) <= CLOSED:
            rank = max(rank, _rank(_constraint(model, near).implicit.K))
    return len(K), rank


def _rank(K):
    singular = np.linalg.svd(K, compute_uv=False)
    return int(np.sum(singular > _RANK * singular[0])) if singular.size else 0


def _constraint(model, q):
    return implicit.constraint(model.at(0.0), q, np.zeros(model.nv))


def _gap(model, q):
    coupled = coupling_rows(model, q, np.zeros(model.nv)).error
    gaps = [joint.gap for joint in _constraint(model, q).loops]
    return float(np.max(np.abs([*gaps, *coupled])))
