"""The linear model by moving the independent coordinates a little — Spencer 4.1, 4.5.

Every column takes a few closed configurations, found by Newton's method, and their accelerations:
slow, and independent of all derivatives. For checks.
"""

import numpy as np

from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.linear.motion_state import accelerations
from kinetree.loops.linear.velocity_basis import (
    coordinate_accelerations,
    coordinate_rates,
    moved,
    velocity_basis,
)

__all__ = ["differences"]

_STEP = 1e-3
"""In units of the coordinates [m or rad], and of their rates: errors of the order of its square's
square."""


def differences(state, chosen, basis):
    """Lower blocks of ``A`` and ``B``, sample by sample."""
    model, q, qd, _, tau, f_ext = state
    batch, p = qd.shape[:-1], len(chosen.names)
    blocks = [np.zeros((*batch, p, n)) for n in (p, p, model.nv)]
    for sample in np.ndindex(batch):
        forces = None if f_ext is None else f_ext[sample] if f_ext.ndim > 2 else f_ext
        one = chosen.at(sample)
        found = _differences(model, q[sample], qd[sample], tau[sample], forces, one)
        for block, value in zip(blocks, found, strict=True):
            block[sample] = value
    return blocks


def _differences(model, q, qd, tau, f_ext, chosen):
    p, yd = len(chosen.names), coordinate_rates(model, q, qd, chosen)

    def acceleration(dy, dyd, dtau):
        """``ydd`` of the local state-space form — Spencer (4.8)–(4.10)."""
        here = moved(model, q, dy, chosen) if np.any(dy) else q
        K = constraint(model, here, np.zeros(model.nv)).K
        basis = velocity_basis(model, here, K, chosen)
        v = basis.G @ (yd + dyd)
        qdd = accelerations(model, here, v, tau + dtau, f_ext, constraint(model, here, v), basis)
        return coordinate_accelerations(model, here, v, qdd, chosen)

    still, no_force = np.zeros(p), np.zeros(model.nv)
    y_slope = _slope(lambda d: acceleration(d, still, no_force), p)
    yd_slope = _slope(lambda d: acceleration(still, d, no_force), p)
    return y_slope, yd_slope, _slope(lambda d: acceleration(still, still, d), model.nv, 1.0)


def _slope(f, n, step=_STEP):
    """Central differences of fourth order, (…, n)."""
    columns = []
    for e in step * np.eye(n):
        columns.append((8 * (f(e) - f(-e)) - (f(2 * e) - f(-2 * e))) / (12 * step))
    return np.stack(columns, axis=-1)
