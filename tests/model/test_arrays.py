"""What callers may pass as joint vectors."""

from fractions import Fraction

import numpy as np
import pytest

from kinetree.errors import ShapeError
from kinetree.model.arrays import as_configuration, as_joint_vector
from kinetree.samples import humanoid, panda


def test_lists_and_integers_become_floats():
    m = panda()
    assert as_joint_vector(m, [0] * 9, "qd").dtype == float
    assert as_joint_vector(m, np.ones(9, dtype=np.float32), "qd").dtype == np.float32
    assert as_joint_vector(m, np.ones((5, 9), dtype=complex), "qd").shape == (5, 9)
    exact = np.array([Fraction(1)] * 9)
    assert as_configuration(m, exact).dtype == object


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (np.zeros(8), r"q must have shape \(..., nq\) with nq = 9 for model 'panda', got \(8,\)"),
        (0.0, r"got \(\)"),
        (["a"] * 9, "q must hold numbers, got an array of <U1"),
        ([np.nan] * 9, "q must be finite, got nan at index 0"),
        ([[0.0] * 9, [0.0] * 8 + [np.inf]], r"got inf at index 8 of sample \(1,\)"),
    ],
)
def test_messages(q, message):
    with pytest.raises(ShapeError, match=message):
        as_configuration(panda(), q)


def test_positions_mistaken_for_velocities_get_a_hint():
    m = humanoid()
    with pytest.raises(ShapeError, match=r"got \(36,\) = \(..., nv\).*model.integrate\(\)"):
        as_configuration(m, np.zeros(m.nv))
    with pytest.raises(ShapeError, match=r"qd must have shape.*got \(37,\) = \(..., nq\)"):
        as_joint_vector(m, np.zeros(m.nq), "qd")


def test_quaternions_must_have_unit_length():
    m = humanoid()
    q = np.array([m.neutral(), m.neutral()])
    assert as_configuration(m, q).shape == (2, 37)
    q[1, 3:7] = 0.5, 0, 0, 0
    with pytest.raises(ShapeError, match=r"q of sample \(1,\), joint 'root'"):
        as_configuration(m, q)
