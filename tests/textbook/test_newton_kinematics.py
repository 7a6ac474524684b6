"""The textbook's inverse kinematics: its golden numbers, and where it fails."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.spatial import displacement_velocity, rotx, rotz, xlt
from kinetree.textbook.newton_kinematics import newton_history, newton_step


def six_axes():
    """The arm of the golden numbers: six revolute joints about z."""
    half = np.pi / 2
    placements = [
        xlt(0, 0, 0),
        rotx(half) @ xlt(0, 0, 0.4),
        xlt(0.4, 0, 0),
        rotx(-half) @ xlt(0.05, 0.35, 0),
        rotx(half),
        rotx(-half) @ xlt(0, 0.1, 0),
    ]
    builder = kt.ModelBuilder("six axes")
    for i, at in enumerate(placements, start=1):
        builder.body(
            f"body{i}", on=f"body{i - 1}" if i > 1 else "base", joint=kt.Revolute("z"), at=at
        )
    return builder.build()


GOAL = np.array([0.3, -0.4, 0.5, 0.6, -0.7, 0.8])
OFFSET = 0.1 * np.array([1, -1, 1, -1, 1, -1])


def pose_of(model, q, b=6):
    return kt.Plucker.from_pose(kt.pose(model, q, f"body{b}"))


@pytest.mark.covers(
    "6-D Guide 2: Kinematics", "6-D Guide 2: Jacobians", by=(newton_history, newton_step)
)
def test_the_errors_of_the_golden_example():
    model = six_axes()
    history, errors = newton_history(model, GOAL + OFFSET, 6, pose_of(model, GOAL))
    assert len(errors) == 5
    np.testing.assert_allclose(errors[:4], [1.5e-1, 1.1e-2, 4.8e-4, 1.7e-7], rtol=0.05)
    assert errors[4] < 1e-13
    np.testing.assert_allclose(history[-1], GOAL, atol=1e-12)


@pytest.mark.covers("6-D Guide 2: Arithmetic", by=displacement_velocity)
def test_the_error_vanishes_at_a_half_turn_and_reverses_the_shift():
    assert np.max(np.abs(displacement_velocity(rotz(np.pi)).to_array())) < 1e-15
    v = displacement_velocity(rotz(np.pi) @ xlt(1, 2, 3)).to_array()
    np.testing.assert_allclose(v, [0, 0, 0, 0, 0, -3], atol=1e-15)
    v = displacement_velocity(rotz(0.1) @ xlt(0, 0, 0.02)).to_array()
    np.testing.assert_allclose(v, [0, 0, 0.0998334166, 0, 0, 0.0199000833], atol=1e-10)


def test_a_half_turn_deceives_the_textbook_and_not_the_solver():
    model = six_axes()
    target = rotz(np.pi) @ pose_of(model, GOAL)  # the last joint, turned by 180°
    history, errors = newton_history(model, GOAL, 6, target)
    assert errors[-1] < 1e-10
    assert len(history) == 1  # it takes itself to be there
    wrong = kt.pose(model, history[-1], "body6")[:3, :3].T @ target.E.T
    assert np.trace(wrong) == pytest.approx(-1)
    result = kt.inverse_kinematics(model, "body6", target.to_pose(), GOAL, restarts=0)
    assert result.success
    np.testing.assert_allclose(kt.pose(model, result.q, "body6"), target.to_pose(), atol=1e-8)


def test_a_singular_jacobian_is_named():
    model = six_axes()
    straight = np.zeros(6)  # two wrist axes in line
    with pytest.raises(kt.SingularError, match="Jacobian of body 'body6' has no full row rank"):
        newton_step(model, straight, 6, pose_of(model, GOAL))


def test_a_target_out_of_reach_only_uses_up_the_steps():
    model = six_axes()
    history, errors = newton_history(model, GOAL, 6, pose_of(model, GOAL) @ xlt(3, 0, 0), steps=20)
    assert len(history) == len(errors) == 20
    assert errors[-1] > 1e-3
