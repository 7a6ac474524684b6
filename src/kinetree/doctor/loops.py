"""Whether loops close, and what they leave of the motion. Ranks, so numbers only."""

from kinetree.doctor.finding import found, named
from kinetree.errors import AssemblyError
from kinetree.loops.kinematics.assembly import assemble
from kinetree.loops.kinematics.closing import loop_gaps
from kinetree.loops.kinematics.mobility import mobility

__all__ = ["loops"]

CLOSED = 1e-6
"""Largest position error [m or rad] of a closed loop."""


def loops(model, seed=0):
    """Loops that do not close, and constraints that repeat others or stop everything."""
    if not model.loops:
        return
    part, model = named("model", model.name), model.at(0.0)
    try:
        q = assemble(model, seed=seed)
    except AssemblyError as error:
        yield from _open(model, error.q)
        return
    gaps = [max(loop_gaps(model, q).values()) for q in (model.neutral(), *_postures(model))]
    if min(gaps) > CLOSED:
        text = f"the neutral position leaves a gap of {gaps[0]:.3g} m or rad in its loops, and no "
        yield found("loop-neutral", part, f"{text}posture closes them")
    report = mobility(model, q, seed=seed)
    left = report.generic_mobility  # a mechanism may be singular where it is closed at first
    count, rank = report.constraints, report.freedoms - left
    if left == 0:
        text = f"{rank} independent constraints hold its {model.nv} freedoms"
        yield found("loop-locked", part, text)
    if rank < count:
        text = f"{count - rank} of the {count} constraints of its loops and couplings repeat "
        text += f"others; {left} {'freedom remains' if left == 1 else 'freedoms remain'}"
        if not report.is_variable:
            text += f". They are, say, {_some(report.redundant)}"
        yield found("loop-redundant", part, text)


def _postures(model):
    return [posture.q for posture in model.postures]


def _some(names, most=6):
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _open(model, q):
    gaps = loop_gaps(model, q)
    for loop in model.loops:
        gap = gaps.get(f"loop {loop.name!r}", 0.0)
        if gap > CLOSED:
            text = f"it stays open by {gap:.3g} m or rad; no position was found that closes it"
            yield found("loop-open", named("loop joint", loop.name), text)
