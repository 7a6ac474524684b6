"""Impossible joint parameters are refused by name."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

from kinetree.errors import JointError
from kinetree.joints import (
    CustomJoint,
    Euler,
    Free,
    Helical,
    Planar,
    Prescribed,
    RackAndPinion,
    Reversed,
    Revolute,
    Screw,
    Universal,
)
from kinetree.spatial import xlt


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Helical("z", pitch=np.inf), r"pitch must be a finite number, got inf .*Prismatic"),
        (lambda: Helical("z", pitch=np.nan), r"pitch must be a finite number, got nan"),
        (lambda: Helical("z", pitch="1"), r"pitch must be a finite number, got '1'"),
        (lambda: Helical("z", pitch=None), r"pitch must be a finite number, got None"),
        (lambda: Helical("z", pitch=(1, 2)), r"pitch must be a finite number, got \(1, 2\)"),
        (lambda: RackAndPinion(-np.inf), r"pinion radius must be a finite number, got -inf"),
        (lambda: Planar("z", translation="up"), r"must be one of 'parent', 'child', got 'up'"),
        (lambda: Free("world"), r"translation of a free joint must be one of 'parent', 'child'"),
        (lambda: Universal("xx"), r"two different letters of x, y, z, such as 'xy', got 'xx'"),
        (lambda: Universal("xw"), r"two different letters"),
        (lambda: Universal(3), r"two different letters"),
        (lambda: Euler("zzx"), r"three of the letters x, y, z with neighbours different"),
        (lambda: Reversed("z"), r"Reversed needs a joint such as Revolute\('z'\), got 'z'"),
        (lambda: Prescribed("z", abs), r"Prescribed needs a joint .* got 'z'"),
        (lambda: Prescribed(Revolute(), 3.0), r"motion\(t\) -> \(q, qd, qdd\), got 3.0"),
        (lambda: Screw((0,) * 6), r"screw twist must be six finite numbers, not all zero"),
        (lambda: Screw((1, 0, 0)), r"screw twist must be six finite numbers"),
        (lambda: Screw("z"), r"screw twist must be six finite numbers, not all zero, got 'z'"),
        (lambda: Screw.about("w"), r"screw axis must be 'x', 'y', 'z'"),
        (lambda: CustomJoint(xlt, 0), r"a custom joint has 1 to 6 degrees of freedom, got 0"),
        (lambda: CustomJoint("xlt", 1), r"placement must be a function q -> X_J, got 'xlt'"),
    ],
)  # fmt: skip
def test_message_names_the_parameter_and_the_value(make, message):
    with pytest.raises(JointError, match=message):
        make()


def test_numbers_of_any_kind_are_taken():
    for pitch in (1, 0.5, Fraction(1, 3), mpmath.mpf("0.1"), sympy.Symbol("h"), 1 + 1e-30j):
        assert Helical("z", pitch=pitch).pitch == pitch
