"""Products of the path's tangent, for contacts with several discs of friction: by definition."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.islands import begun, filled

from kinetree.contact.newton.discs import (
    CHANGE,
    H0,
    SIZE,
    keep_discs,
    mix_discs,
    product_along_discs,
)
from kinetree.contact.newton.problem import CONE


@pytest.mark.parametrize("dim", [4, 6])
def test_each_number_counts_in_units_of_its_own_size(dim, rng):
    """Impulses of a disc in units of ``mu lam_n``, its slack and other speeds in ``h_0``."""
    rows = [(CONE, rng.normal(size=(n, 6)), np.zeros(n), 0.7, 0.0, 0.0) for n in (3, dim)]
    problem = filled([-1, 0, 1, 2, 3, 4], np.eye(6), rows)
    work, _ = begun(problem)
    g, first, last = 1, 3, 3 + dim
    for name in ("lam", "dlam", "dw"):
        getattr(work, name)[:last] = rng.uniform(0.3, 2.0, last)
    forces, speeds = (x[2 * work.rows_room :][:last] for x in (work.impulses, work.changes))
    forces[:], speeds[:] = rng.normal(size=(2, last))
    discs = work.discs[g * 3 * SIZE :][: 3 * SIZE].reshape(3, SIZE)
    discs[:] = rng.uniform(0.3, 2.0, discs.shape)
    ends = {4: [(1, 3), (3, 4)], 6: [(1, 3), (3, 4), (4, 6)]}[dim]
    most = 0.7 * work.lam[first]
    own = other = 0.0
    for z, (a, b) in zip(discs, ends, strict=False):
        at = slice(first + a, first + b)
        path = np.array([*forces[at] / most, *speeds[at] / z[H0], z[2] / z[H0]])
        step = np.array([*work.dlam[at] / most, *work.dw[at] / z[H0], z[CHANGE] / z[H0]])
        own, other = own + path @ path, other + path @ step
    assert_close(product_along_discs(problem, work, g), (own, other))


def test_changes_are_kept_and_mixed(rng):
    rows = [(CONE, rng.normal(size=(6, 6)), np.zeros(6), 0.7, 0.0, 0.0)] * 2
    work, _ = begun(filled([-1, 0, 1, 2, 3, 4], np.eye(6), rows))
    discs = work.discs[: 6 * SIZE].reshape(2, 3, SIZE)
    discs[:] = rng.normal(size=discs.shape)
    before = discs.copy()
    keep_discs(work, 1, 2)
    discs[1, :, CHANGE] = rng.normal(size=3)
    new = discs[1, :, CHANGE].copy()
    keep_discs(work, 1, 3)
    discs[1, :, CHANGE] = rng.normal(size=3)
    last = discs[1, :, CHANGE].copy()
    mix_discs(work, 1, 2.0, 0.5, -3.0)
    mixed = 2 * last + 0.5 * before[1, :, CHANGE] - 3 * new
    assert_close(discs[1, :, CHANGE], mixed, scale=5.0)
    assert np.array_equal(discs[0], before[0])
    others = [k for k in range(SIZE) if k not in (CHANGE, 2, 3)]
    assert np.array_equal(discs[1][:, others], before[1][:, others])
