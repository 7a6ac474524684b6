"""Whether loops close, and what they leave of the motion. Ranks, so numbers only."""

import warnings

import numpy as np

from kinetree.algorithms.loop_rank import rank_policy, scaling
from kinetree.algorithms.loop_scaling import rows_of
from kinetree.doctor.finding import found, named
from kinetree.errors import AssemblyError, MisalignmentWarning
from kinetree.loops.kinematics.assembly import assemble
from kinetree.loops.kinematics.constraint import closing, loop_gaps
from kinetree.loops.kinematics.mobility import mobility

__all__ = ["loops"]

CLOSED = 1e-6
"""Largest position error of a closed loop [rad, or parts of the size of the loop]."""


def loops(model, seed=0):
    """Loops that do not close, and constraints that repeat others or stop everything."""
    if not model.loops:
        return
    part, model = named("model", model.name), model.at(0.0)
    policy = rank_policy(model)
    with warnings.catch_warnings():  # it is reported below
        warnings.simplefilter("ignore", MisalignmentWarning)
        slack = policy.slack
    try:
        q = assemble(model, seed=seed)
    except AssemblyError as error:
        yield from _open(model, error.q)
        return
    report = mobility(model, q, seed=seed)
    errors = [_error(model, q) for q in (model.neutral(), *_postures(model))]
    if min(errors) > CLOSED + slack:
        gap = max(loop_gaps(model, model.neutral()).values())
        text = f"the neutral position leaves a gap of {gap:.3g} m or rad in its loops, and no "
        yield found("loop-neutral", part, f"{text}posture closes them")
    left = report.generic_mobility  # a mechanism may be singular where it is closed at first
    count, rank = report.constraints, report.freedoms - left
    if policy.explanation():
        text = f"{policy.explanation()}; they are left out, and {_freedoms(left)}"
        yield found("loop-misaligned", part, text)
    if left == 0:
        text = f"{rank} independent constraints hold its {model.nv} freedoms"
        yield found("loop-locked", part, text)
    if rank < count and not policy.explanation():
        text = f"{count - rank} of the {count} constraints of its loops and couplings repeat "
        text += f"others; {_freedoms(left)}"
        if not report.is_variable:
            text += f". They are, say, {_some(report.redundant)}"
        yield found("loop-redundant", part, text)


def _freedoms(left):
    return f"{left} {'freedom remains' if left == 1 else 'freedoms remain'}"


def _error(model, q):
    return np.max(np.abs(closing(model, q)[0] * scaling(model).rows), initial=0.0)


def _postures(model):
    return [posture.q for posture in model.postures]


def _some(names, most=6):
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _open(model, q):
    gaps, errors = loop_gaps(model, q), np.abs(closing(model, q)[0] * scaling(model).rows)
    owners = [row.owner for row in rows_of(model)]
    for loop in model.loops:
        owner = f"loop {loop.name!r}"
        gap = gaps.get(owner, 0.0)
        if np.max(errors[[o == owner for o in owners]], initial=0.0) > CLOSED:
            text = f"it stays open by {gap:.3g} m or rad; no position was found that closes it"
            yield found("loop-open", named("loop joint", loop.name), text)
