"""Bodies, frames, loops and limits keep what they were given."""

import numpy as np
import pytest

import kinetree as kt
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


def test_placements_take_the_pose_of_a_frame():
    """The 4×4 matrix that ``pose`` returns puts a frame where the original is."""
    arm = kt.samples.panda()
    q = arm.posture("home").q
    T = kt.pose(arm, q, "tool")
    box = kt.ModelBuilder("box").frame("there", at=T).build()
    assert np.allclose(kt.pose(box, [], "there"), T, atol=1e-15)
    moved = arm.replace(placement={arm.joint_names[0]: T})
    assert np.array_equal(moved.tree_transform[1].to_pose(), T)
    assert np.array_equal(Frame("there", 0, T).placement.to_pose(), T)
    chain = kt.from_dh([(0, 0, 0.3, 0)], base=T, tool=T)
    assert np.allclose(chain.tree_transform[1].r, T[:3, 3] + 0.3 * T[:3, 2])


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (
            np.eye(3),
            r"'at' must be a position.*4x4 pose .* shape .3, 3.; for a rotation alone",
        ),
        (xlt((1, 2, 3)).to_pose().T, r"last row \(0, 0, 0, 1\), got \[1, 2, 3, 1\]; it looks tran"),
        (2 * np.eye(4), r"last row \(0, 0, 0, 1\), got \[0.0, 0.0, 0.0, 2.0\]$"),
        (np.diag([1.1, 1, 1, 1]), r"orthonormal.*differs from 1 by 0.21 \(at most 1e-06\)"),
        (np.diag([1, 1, -1, 1]), r"with determinant 1: .* det R = -1"),
        (np.full((4, 4), np.nan), r"last row \(0, 0, 0, 1\), got \[nan"),
    ],
)
def test_poses_that_are_none(at, message):
    with pytest.raises(ModelError, match=message):
        as_placement(at)
