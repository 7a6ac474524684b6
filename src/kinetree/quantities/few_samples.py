"""Few samples of large mechanisms with loops: one after the other, in Python.

A quantity of a mechanism with loops is compiled for it, and before that an order of elimination is
chosen: a second for a delta robot, which a few samples do not repay. The algorithm that decides
ranks anew for every sample, on which those rely that the compiled code does not suit, needs
neither. Both agree to rounding errors; the rule is that of tiers.
"""

import numpy as np

from kinetree.codegen import tiers
from kinetree.codegen.tiers import TierChoice
from kinetree.model.memo import remember

LARGE = 8
"""Velocity variables from which compiling takes longer than a first answer may."""
REPAID = 16
"""Samples that repay it."""


def are_few(model, key, arrays, core) -> bool:
    """Whether a call has so few samples that they are computed one by one, uncompiled.

    Args:
        model: the mechanism.
        key: of what is computed, for the number of samples that were requested of it.
        arrays: all arguments, of any kind that NumPy takes.
        core: number of trailing axes of each that belong to one sample.
    """
    if model.nv < LARGE or tiers.setting() != "auto":
        return False
    arrays = [np.asarray(a) for a in arrays]
    if any(a.dtype.kind not in "fi" or a.dtype == np.float32 for a in arrays):
        return False
    try:
        batch = np.broadcast_shapes(
            *(a.shape[: a.ndim - n] for a, n in zip(arrays, core, strict=True))
        )
    except ValueError:  # which whoever computes explains
        return False
    choice = remember(model, ("few samples", *key), lambda: TierChoice(REPAID))
    return choice.tier_for(int(np.prod(batch))) == "general"
