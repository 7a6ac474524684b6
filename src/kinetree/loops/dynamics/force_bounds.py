"""Bounds on the forces of actuated joints: given by name, or those of the model."""

import numpy as np

from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.spelling import did_you_mean

__all__ = ["bounds_of", "weights_of"]


def bounds_of(freedoms, given):
    """Smallest and largest force of every actuated freedom, (p,) each; None for no bounds.

    Args:
        freedoms: the ``Actuated`` freedoms.
        given: by joint name a number, for both directions, or a pair (smallest, largest), each a
            number or one per freedom; ``"model"`` for the bounds of the model; or None.
    """
    if given is None:
        return None, None
    if isinstance(given, str):
        if given != "model":
            raise UnknownNameError(
                f"bounds must be given by joint name, or be 'model' for those of the model, got "
                f"{given!r}"
            )
        given = {name: _of_model(freedoms.model, name) for name in freedoms.names}
    low, high = np.full(freedoms.count, -np.inf), np.full(freedoms.count, np.inf)
    for name, bounds in given.items():
        at = _slice(freedoms, name, "bounds")
        pair = (-np.asarray(bounds), bounds) if np.ndim(bounds) == 0 else bounds
        if len(pair) != 2:
            raise ShapeError(
                f"bounds of joint {name!r} must be one number or a pair (smallest, largest), got "
                f"{bounds!r}"
            )
        for bound, x in zip((low, high), pair, strict=True):
            bound[at] = _sized(x, at, f"bounds of joint {name!r}")
        if not np.all(low[at] <= high[at]):
            raise ModelError(
                f"bounds of joint {name!r} must be the smallest and the largest force, got "
                f"{low[at].tolist()} and {high[at].tolist()}"
            )
    return low, high


def weights_of(freedoms, given):
    """Weight of every actuated freedom's squared force, (p,); 1 where nothing is given."""
    weights = np.ones(freedoms.count)
    for name, x in (given or {}).items():
        at = _slice(freedoms, name, "weights")
        weights[at] = _sized(x, at, f"weight of joint {name!r}")
        if not (np.all(np.isfinite(weights[at])) and np.all(weights[at] > 0)):
            raise ModelError(f"weight of joint {name!r} must be positive and finite, got {x!r}")
    return weights


def _of_model(model, name):
    """What limits and actuators of a joint allow."""
    if name in model.loop_names:
        part = model.loops[model.loop_names.index(name)]
    else:
        part = model.bodies[model.joint_index(name) - 1]
    effort = part.limits.effort if part.limits is not None else ()
    high = np.array(effort) if effort else np.full(part.joint.nv, np.inf)
    low = -high
    actuators = [a for a in model.actuators if model.driven_joint(a) == name]
    if actuators:
        reach = np.zeros((2, part.joint.nv))
        for a in actuators:
            span = max(a.control[0], a.effort[0]), min(a.control[1], a.effort[1])
            for k, gear in enumerate(a.gear):
                if gear != 0:
                    reach[:, k] += sorted(gear * x for x in span)
        low, high = np.maximum(low, reach[0]), np.minimum(high, reach[1])
    return low, high


def _slice(freedoms, name, what):
    if name not in freedoms.slices:
        raise UnknownNameError(
            f"{what}: joint {name!r} is not actuated; {did_you_mean(name, freedoms.slices)}"
        )
    return freedoms.slices[name]


def _sized(x, at, what):
    x, n = np.asarray(x, dtype=float), at.stop - at.start
    if x.shape not in ((), (n,)) or np.any(np.isnan(x)):
        raise ShapeError(f"{what} must be one number or {n}, got {x}")
    return x
