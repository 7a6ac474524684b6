"""Values in tables of recorded loops: ``arrays`` takes them apart, ``like`` makes them again."""

import numpy as np
import pytest

from kinetree.algorithms.coriolis import BodyCoriolis
from kinetree.algorithms.ltl import Inverse
from kinetree.spatial import ArticulatedInertia, Force, Inertia, Motion, Plucker, rotx, xlt


def _values(rng):
    v = Motion(*rng.standard_normal((2, 3)))
    I = Inertia.from_mass_center(2.0, rng.standard_normal(3), np.diag([1.0, 2.0, 3.0]))
    A = rng.standard_normal((3, 3))
    return [
        v, Force(*rng.standard_normal((2, 3, 2))), rotx(0.3) @ xlt(rng.standard_normal(3)), I,
        ArticulatedInertia.from_rigid(I), BodyCoriolis.of(I, v), Inverse(A @ A.T + np.eye(3)),
    ]  # fmt: skip


@pytest.mark.parametrize("k", range(7))
def test_a_value_is_the_same_from_its_arrays(k, rng):
    value, other = _values(rng)[k], _values(np.random.default_rng(5))[k]
    found = other.like(value.arrays())
    assert type(found) is type(value)
    for a, b in zip(found.arrays(), value.arrays(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_symmetric_is_kept_once(rng):
    _, _, X, I, IA, _, _ = _values(rng)
    sizes = [sum(a.size for a in x.arrays()) for x in (X, I, IA)]
    assert sizes == [12, 10, 21]
    assert isinstance(X, Plucker)
    np.testing.assert_array_equal(IA.like(IA.arrays()).to_matrix(), IA.to_matrix())
