"""Bodies, frames, loops and limits keep what they were given."""

import numpy as np
import pytest

from kinetree.errors import ModelError
from kinetree.joints import Revolute
from kinetree.model import Body, Frame, Limits, Loop
from kinetree.model.parts import as_placement
from kinetree.spatial import Inertia, Plucker, xlt


def test_parts_hold_read_only_copies():
    r, h = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    body = Body("a", 0, Revolute("z"), xlt(r), Inertia(1.0, h, np.eye(3)), "j")
    r[0], h[0] = 9.0, 9.0
    assert body.placement.r[0] == 1.0
    assert body.inertia.first_moment[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        body.placement.r[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        body.inertia.rotational[0, 0] = 5.0
    for X in (
        Frame("f", 0, xlt(r)).placement,
        Loop("l", 0, 1, successor_placement=xlt(r)).successor_placement,
    ):
        with pytest.raises(ValueError, match="read-only"):
            X.r[0] = 5.0


def test_limits_take_numbers_and_sequences():
    assert Limits(-1, [2]) == Limits((-1.0,), (2.0,))
    assert Limits() == Limits((), ())
    assert Limits(lower=[1, 2]).lower == (1.0, 2.0)


def test_placements():
    assert as_placement(None).r.tolist() == [0, 0, 0]
    assert as_placement((1, 2, 3)).r.tolist() == [1, 2, 3]
    X = Plucker.identity()
    assert as_placement(X) is X
    with pytest.raises(ModelError, match="'at' must be a position of 3 numbers"):
        as_placement("here")
