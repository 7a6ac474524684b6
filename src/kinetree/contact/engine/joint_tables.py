"""Tables of the rows of joints, tendons and loop joints: ends of travel and dry friction."""

from typing import Any

import numpy as np

from kinetree.contact.engine.drives import arms_that_occur
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.engine.terms import loop_joint_kernel
from kinetree.model.limits import position_index


def joint_row_tables(joints, model, of_q, of_v) -> Rows:
    """Rows of the joints and tendons of a model, which come after those of its joints."""
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
        stop_bounce=np.full(len(stops), float(joints.restitution)),
        dry=len(dry),
        dry_v=_column((d[0] for d in dry), np.int64),
        dry_level=_column(d[1] for d in dry),
        dry_kept=np.zeros(len(dry)),
        loop_first=np.zeros(1, dtype=np.int64),
        slots=1,
        **_tendons(model, joints.has_loop_joints(model)),
    )


def _tendons(model, with_loops):
    """Variables and coefficients of the tendons of a model, in the variables of all joints.

    ``with_loops``: whether variables of loop joints follow, with arms that a kernel gives.
    """
    full, first, terms = model.uncoupled, [0], []
    for t in model.tendons:
        own = [
            (full.v_slice[i].start, full.q_slice[i].start, c)
            for i, c in zip(t.joints, t.coefficients, strict=True)
        ]
        terms += sorted(own)
        first.append(len(terms))
    arms = np.zeros((0, full.nv))
    if with_loops:
        seen, at = arms_that_occur(full, loop_joint_kernel(model)), position_index(full)
        arms = np.where(seen > 1e-9 * seen.max(axis=1, keepdims=True), seen, 0.0)
        for row in arms:
            terms += [(i, at[i], 0.0) for i in np.flatnonzero(row)]
            first.append(len(terms))
    return {
        "tendons": len(model.tendons),
        "loop_joints": len(arms),
        "joint_place": np.zeros(len(arms)),
        "joint_arm": np.zeros(arms.size),
        "tendon_first": _column(first, np.int64),
        "tendon_v": _column((x[0] for x in terms), int),
        "tendon_q": _column((x[1] for x in terms), int),
        "tendon_arm": _column(x[2] for x in terms),
        "tendon_offset": _column([*(t.offset for t in model.tendons), *np.zeros(len(arms))]),
    }


def _column(values, kind: Any = float):
    return np.array(list(values), dtype=kind).reshape(-1)
