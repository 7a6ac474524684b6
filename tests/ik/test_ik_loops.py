"""Inverse kinematics of mechanisms with loops: closed in every result, reached or not."""

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.ik import PoseTask, PositionTask, PostureTask
from kinetree.loops import scaling


def gap(model, q):
    """Largest closure error, in radians and parts of the size of a loop."""
    return np.max(np.abs(kt.loops.closure_error(model, q) * scaling(model).rows))


def closed(model, count, spread, seed=0):
    """Closed configurations around the neutral one, within the limits of the joints."""
    rng = np.random.default_rng(seed)
    steps = spread * rng.standard_normal((count, model.nv))
    guesses = model.integrate(np.tile(model.neutral(), (count, 1)), steps)
    return kt.loops.assemble(model, guesses, limits=True)


REACHED = {
    "four_bar": ("coupler", 0.5),
    "slider_crank": ("rod", 0.5),
    "five_bar": ("link2", 0.4),
    "stewart": ("platform", 0.05),
    "bennett": ("link2", 0.4),
}


@pytest.mark.parametrize("sample", REACHED)
def test_poses_of_closed_configurations_are_reached_with_loops_closed(sample):
    model, (frame, spread) = kt.samples.load(sample), REACHED[sample]
    targets = kt.pose(model, closed(model, 6, spread), frame)
    found = kt.inverse_kinematics(model, frame, targets)
    assert np.all(found.success), found
    np.testing.assert_allclose(kt.pose(model, found.q, frame), targets, atol=2e-8)
    assert gap(model, found.q) <= 1e-10
    if sample != "stewart":  # its code for single targets takes seconds to compile
        one = kt.inverse_kinematics(model, frame, targets[0])
        assert one.success
        assert gap(model, one.q) <= 1e-10


def test_a_start_with_open_loops_is_fine():
    model = kt.samples.five_bar()
    target = kt.pose(model, closed(model, 1, 0.4)[0], "link2")
    start = np.array([2.0, -1.0, 0.3, 1.5])
    assert gap(model, start) > 0.1
    found = kt.inverse_kinematics(model, "link2", target, start)
    assert found.success
    assert gap(model, found.q) <= 1e-10


def test_out_of_reach_is_the_nearest_closed_configuration():
    """The middle pin of a five-bar is within 2.5 m of either support; here the left one decides."""
    model = kt.samples.five_bar()
    direction = np.array([np.cos(0.5), 0, np.sin(0.5)])
    found = kt.inverse_kinematics(model, "link3", 7.5 * direction, restarts=2)
    assert (found.reason, bool(found.success)) == ("out of reach", False)
    assert gap(model, found.q) <= 1e-12
    np.testing.assert_allclose(found.error, 5.0, rtol=1e-12)
    np.testing.assert_allclose(kt.pose(model, found.q, "link3")[:3, 3], 2.5 * direction, atol=1e-6)
    with pytest.raises(kt.errors.UnreachableError, match="out of reach"):
        found.require()


def test_limits_hold_with_loops_and_are_blamed():
    model = kt.samples.stewart()
    targets = np.tile(kt.pose(model, model.neutral(), "platform"), (2, 1, 1))
    targets[:, 2, 3] += 0.5  # the strokes end at 0.2
    found = kt.inverse_kinematics(model, "platform", targets, restarts=2)
    assert np.all(found.reason == "limits")
    assert gap(model, found.q) <= 1e-10
    lower, upper = model.position_limits
    assert np.all((found.q >= lower) & (found.q <= upper))
    assert np.all(kt.inverse_kinematics(model, "platform", targets, limits=False).success)


def test_redundant_and_misaligned_loops_are_tolerated():
    """A planar linkage in space: three of its five constraints repeat others, but for digits."""
    model = kt.samples.four_bar()
    loop = model.loops[0]
    at = kt.rotx(1e-7) @ loop.successor_placement
    tilted = model.replace(loops=[type(loop)(**{**vars(loop), "successor_placement": at})])
    target = kt.pose(model, closed(model, 1, 0.5)[0], "rocker")
    with pytest.warns(kt.errors.MisalignmentWarning):
        found = kt.inverse_kinematics(tilted, "rocker", target)
    assert found.success
    assert gap(tilted, found.q) < 1e-6


def test_a_posture_is_approached_along_closed_loops():
    model = kt.samples.five_bar()
    posture = closed(model, 1, 0.5, seed=3)[0]
    target = kt.pose(model, closed(model, 1, 0.3)[0], "link2")[:3, 3]
    tasks = [PositionTask("link2", target), PostureTask(posture)]
    plain = kt.inverse_kinematics(model, tasks[:1])
    near = kt.inverse_kinematics(model, tasks)
    assert near.success
    assert gap(model, near.q) <= 1e-10
    away = [np.linalg.norm(x.q - posture) for x in (plain, near)]
    assert away[1] <= away[0] + 1e-9


def test_loops_that_the_task_does_not_move_stay_where_they_are():
    linkage = kt.samples.four_bar()
    arm = kt.ModelBuilder("arm")
    arm.body("upper", joint=kt.Revolute("z"), inertia=kt.shapes.sphere(0.1, mass=1.0))
    arm.body("lower", on="upper", joint=kt.Revolute("z"), at=(1, 0, 0),
             inertia=kt.shapes.sphere(0.1, mass=1.0))  # fmt: skip
    arm.frame("tip", on="lower", at=(1, 0, 0))
    model = kt.edit.attach(linkage, arm.build(), on="base", prefix="arm_")
    q0 = model.neutral()
    q0[:3] = closed(linkage, 1, 0.5)[0]
    found = kt.inverse_kinematics(model, "arm_tip", np.array([0.5, 1.0, 0.0]), q0)
    assert found.success
    np.testing.assert_array_equal(found.q[:3], q0[:3])
    q0[:3] += 0.05  # open now: closed, since the result is always closed
    found = kt.inverse_kinematics(model, "arm_tip", np.array([0.5, 1.0, 0.0]), q0)
    assert found.success
    assert gap(model, found.q) <= 1e-10


def test_a_mechanism_that_cannot_be_assembled_raises_an_error():
    b = kt.ModelBuilder("too short")
    bar = kt.shapes.sphere(0.1, mass=1.0)
    b.body("a", joint=kt.Revolute("z"), inertia=bar)
    b.body("b", on="a", joint=kt.Revolute("z"), at=(1, 0, 0), inertia=bar)
    b.loop("pin", predecessor="base", successor="b", joint=kt.Revolute("z"),
           at=(3, 0, 0), successor_at=(1, 0, 0))  # fmt: skip
    found = kt.inverse_kinematics(b.build(), "b", np.array([1.0, 0.0, 0.0]), restarts=1)
    assert found.reason == "open loops"
    assert not found.success


def test_a_floating_linkage_moves_as_a_whole():
    model = kt.edit.floating(kt.samples.four_bar(), inertia=kt.shapes.sphere(0.2, mass=1.0))
    target = np.eye(4)
    target[:3, :3] = kt.rotx(0.4).E.T
    target[:3, 3] = 0.3, -0.2, 0.5
    found = kt.inverse_kinematics(model, [PoseTask("coupler", target)])
    assert found.success
    assert gap(model, found.q) <= 1e-10


def test_constraints_of_ones_own_hold_in_the_result():
    """Three links, the elbow of which slides along the line y = 0.3."""
    b, ball = kt.ModelBuilder("guided"), kt.shapes.sphere(0.1, mass=1.0)
    b.body("a", joint=kt.Revolute("z"), inertia=ball)
    b.body("b", on="a", joint=kt.Revolute("z"), at=(1, 0, 0), inertia=ball)
    b.body("c", on="b", joint=kt.Revolute("z"), at=(1, 0, 0), inertia=ball)
    tree = b.frame("tip", on="c", at=(0.5, 0, 0)).build()

    def guide(model, q):
        return kt.pose(model, q, "b")[1, 3] - 0.3

    model = tree.with_constraint("guide", position=guide)
    target = np.array([1.2, 0.8, 0.0])
    found = kt.inverse_kinematics(model, "tip", target)
    assert found.success
    np.testing.assert_allclose(kt.pose(model, found.q, "tip")[:3, 3], target, atol=1e-8)
    assert abs(guide(tree, found.q)) < 1e-9
    far = kt.inverse_kinematics(model, "tip", 10 * target, restarts=1)
    assert far.reason == "out of reach"
    assert abs(guide(tree, far.q)) < 1e-9


def test_limits_of_the_loop_joint_itself_hold():
    """The crank of a linkage may go where its pin does not turn too far."""
    model = kt.samples.four_bar()
    q = closed(model, 1, 0.5)[0]
    target = kt.pose(model, q, "crank")
    angle = float(kt.loops.loop_positions(model, q)["pin"][0])
    (pin,) = model.loops

    def limited(lower, upper):
        return model.replace(loops=[replace(pin, limits=kt.Limits(lower, upper))])

    wide, narrow = limited(angle - 0.1, angle + 0.1), limited(angle + 0.2, angle + 0.3)
    found = kt.inverse_kinematics(wide, "crank", target, q)
    assert found.success
    found = kt.inverse_kinematics(narrow, "crank", target, q, restarts=1)
    assert (bool(found.success), found.reason) == (False, "limits")
    assert gap(narrow, found.q) <= 1e-10
    assert kt.inverse_kinematics(narrow, "crank", target, q, limits=False).success
