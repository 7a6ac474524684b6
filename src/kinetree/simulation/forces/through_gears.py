"""Forces in all joints, also those that follow others, as forces on the variables of a model."""

import numpy as np

from kinetree.errors import ModelError
from kinetree.model.gearing import Gearing
from kinetree.model.travel import ratio_to_leader

__all__ = ["leading_levels", "on_variables"]


def on_variables(model, q, qd, force):
    """``Gᵀ f``, (..., nv), of what ``force(model, q, qd)`` exerts in a model without couplings."""
    if not model.couplings:
        return force(model, q, qd)
    q, qd = np.asarray(q), np.asarray(qd)
    if q.ndim == qd.ndim == 1:
        at = Gearing(model, q, qd)
        return at.G.T @ force(model.uncoupled, at.q, at.qd)
    batch = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1])
    q, qd = (np.broadcast_to(a, (*batch, a.shape[-1])) for a in (q, qd))
    result = np.zeros((*batch, model.nv), np.result_type(q, qd))
    for n in np.ndindex(batch):
        result[n] = on_variables(model, q[n], qd[n], force)
    return result


def leading_levels(model, levels):
    """Dry friction of the variables of a model, (nv,), from that of all joints.

    Joints that follow one other by a constant ratio slide when it slides, and rub that much more.
    """
    if not model.couplings:
        return np.array(levels, dtype=float)
    levels, full = np.array(levels, dtype=float), model.uncoupled
    found = levels[model.independent_variables[1]]
    for c in model.couplings:
        level = levels[full.v_slice[c.joint].start]
        if level == 0 or not c.leaders:
            continue
        driven = ratio_to_leader(model, c.joint)
        if driven is None:
            raise ModelError(
                f"exact friction of joint {model.joint_names[c.joint - 1]!r} needs a joint that "
                f"leads it by a constant ratio, which coupling {c.name!r} does not have: use "
                f"friction='smooth'"
            )
        found[model.v_slice[driven[0]].start] += abs(driven[1]) * level
    return found
