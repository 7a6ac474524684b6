"""Tables of the rows of joints, tendons and loop joints: ends of travel and dry friction."""

from typing import Any

import numpy as np

from kinetree.contact.engine.actuator_tables import arms_that_occur, variables_of
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.engine.terms import moving_row_kernel
from kinetree.model.limits import position_index


def joint_row_tables(joints, model, of_q, of_v) -> Rows:
    """``Rows`` record with the stops, dry friction and tendons of a model."""
    stops = [(of_q[i], of_v[k], sign, bound) for i, k, sign, bound in joints.stops]
    stops += [(-1, -1 - t, sign, bound) for t, sign, bound in joints.tendon_stops]
    dry = [(of_v[i], level) for i, level in joints.friction]
    dry += [(-1 - t, level) for t, level in joints.tendon_friction]
    return Rows(
        stops=len(stops),
        stop_q=_column((s[0] for s in stops), np.int64),
        stop_v=_column((s[1] for s in stops), np.int64),
        stop_sign=_column(s[2] for s in stops),
        stop_at=_column(s[3] for s in stops),
        stop_kept=np.zeros(len(stops)),
        stop_was=np.zeros(len(stops)),
        stop_bounce=np.full(len(stops), float(joints.restitution)),
        dry=len(dry),
        dry_v=_column((d[0] for d in dry), np.int64),
        dry_level=_column(d[1] for d in dry),
        dry_kept=np.zeros(len(dry)),
        loop_first=np.zeros(1, dtype=np.int64),
        slots=1,
        **_tendons(joints, model),
    )


def row_kernel(joints, model):
    """Kernel of lengths and arms of tendons with rows whose arms change; None without any."""
    if not joints.has_tendons:
        return None
    return moving_row_kernel(model, loops=joints.has_loop_joints(model))


def _tendons(joints, model):
    """``Rows`` fields with variables and coefficients of all tendons of a model.

    Variables of loop joints follow where they have rows. Arms that change come from a kernel.
    """
    full, first, terms, at = model.uncoupled, [0], [], position_index(model.uncoupled)
    for t in model.tendons:
        if t.path:
            terms += [(k, at[k], 0.0) for k in variables_of(full, t)]
        else:
            own = zip(t.joints, t.coefficients, strict=True)
            terms += sorted((full.v_slice[i].start, full.q_slice[i].start, c) for i, c in own)
        first.append(len(terms))
    kernel = row_kernel(joints, model)
    moving = [k for k, t in enumerate(model.tendons) if t.path] if kernel is not None else []
    loops = 0
    if joints.has_loop_joints(model):
        seen = arms_that_occur(full, kernel)[len(moving) :]
        loops = len(seen)
        for row in np.where(seen > 1e-9 * seen.max(axis=1, keepdims=True), seen, 0.0):
            terms += [(i, at[i], 0.0) for i in np.flatnonzero(row)]
            first.append(len(terms))
        moving += range(len(model.tendons), len(model.tendons) + loops)
    offset = [0.0 if t.path else t.offset for t in model.tendons]
    return {
        "moving": len(moving),
        "moving_of": _column(moving, np.int64),
        "moving_place": np.zeros(len(moving)),
        "moving_arm": np.zeros(len(moving) * full.nv),
        "tendon_first": _column(first, np.int64),
        "tendon_v": _column((x[0] for x in terms), int),
        "tendon_q": _column((x[1] for x in terms), int),
        "tendon_arm": _column(x[2] for x in terms),
        "tendon_offset": _column([*offset, *np.zeros(loops)]),
    }


def _column(values, kind: Any = float):
    """Iterable of values as a flat array of a type."""
    return np.array(list(values), dtype=kind).reshape(-1)
