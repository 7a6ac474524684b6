"""What cannot be reached is reported, with the reason; what makes no sense is refused by name."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.ik import CenterOfMassTask, OrientationTask, PoseTask, PositionTask, PostureTask


def two_links(limits=None, at=1.0):
    """Two links of length 1 in the x-y plane, outstretched along x at zero."""
    inertia = kt.shapes.sphere(0.1, mass=1.0)
    return (
        kt.ModelBuilder("two links")
        .body("upper", joint=kt.Revolute("z"), inertia=inertia, limits=limits)
        .body(
            "lower",
            on="upper",
            joint=kt.Revolute("z"),
            at=(1, 0, 0),
            inertia=inertia,
            limits=limits,
        )
        .frame("tip", on="lower", at=(at, 0, 0))
        .build()
    )


@pytest.mark.parametrize("angle", [0.0, 0.7, 2.5])
def test_a_target_out_of_reach_leaves_the_arm_outstretched_towards_it(angle):
    direction = np.array([np.cos(angle), np.sin(angle), 0])
    result = kt.inverse_kinematics(two_links(), "tip", 3 * direction)
    assert not result.success
    assert result.reason == "out of reach"
    np.testing.assert_allclose(result.error, 1, atol=1e-9)
    np.testing.assert_allclose(
        kt.pose(two_links(), result.q, "tip")[:3, 3], 2 * direction, atol=1e-6
    )
    assert result.restarts == 10


def test_a_target_off_the_plane_is_out_of_reach():
    result = kt.inverse_kinematics(two_links(), "tip", [1.0, 0.5, 0.25], restarts=1)
    assert result.reason == "out of reach"
    np.testing.assert_allclose(result.error, 0.25, atol=1e-9)


def test_poses_beyond_the_reach_of_robots_are_out_of_reach():
    for make in (kt.samples.panda, kt.samples.arm):
        model = make()
        rng = np.random.default_rng(4)
        T = kt.pose(model, np.array([model.random_configuration(rng) for _ in range(12)]), "tool")
        T[:, :3, 3] *= 4 / np.linalg.norm(T[:, :3, 3], axis=1)[:, None]
        result = kt.inverse_kinematics(model, "tool", T, restarts=3)
        assert not np.any(result.success)
        assert set(result.reason) == {"out of reach"}


def test_a_valley_of_redundant_joints_is_followed_to_its_end():
    """An xArm7, whose file says 1.5708 for a right angle: stretched out, it moves on and on."""
    turns = np.array([0, -1.5708, 1.5708, 1.5708, 1.5708, 1.5708, -1.5708])
    x, y = [0, 0, 0, 0.0525, 0.0775, 0, 0.076], [0, 0, -0.293, 0, -0.3425, 0, 0.097]
    b, on, bar = kt.ModelBuilder("seven joints"), "base", kt.shapes.rod(0.3, mass=1.0)
    for k in range(7):
        at = kt.rotx(turns[k]) @ kt.xlt(x[k], y[k], 0)
        b = b.body(f"l{k}", on=on, joint=kt.Revolute("z"), at=at, inertia=bar)
        on = f"l{k}"
    away = np.random.default_rng(1).normal(size=(20, 3))
    away *= 3 / np.linalg.norm(away, axis=1)[:, None]
    assert set(kt.inverse_kinematics(b.build(), on, away).reason) == {"out of reach"}


def test_the_edge_of_the_workspace_is_reached():
    """There the Jacobian is singular at the solution itself, and Newton's method merely creeps."""
    result = kt.inverse_kinematics(two_links(), "tip", [[0.0, 2.0, 0.0], [-2.0, 0.0, 0.0]])
    assert np.all(result.success)


def test_limits_are_blamed_when_they_are_to_blame():
    model = two_links(kt.Limits(-1, 1))
    target = [np.cos(2.0) + np.cos(2.5), np.sin(2.0) + np.sin(2.5), 0]
    result = kt.inverse_kinematics(model, "tip", target)
    assert result.reason == "limits"
    assert np.all(np.abs(result.q) <= 1)
    assert kt.inverse_kinematics(model, "tip", target, limits=False).success


def test_a_singular_start_is_left_or_named():
    """Outstretched, with the target on the line: no small step helps, to first order."""
    model = two_links()
    assert kt.inverse_kinematics(model, "tip", [0.5, 0, 0], np.zeros(2), restarts=0).success
    short = kt.inverse_kinematics(model, "tip", [0.5, 0, 0], np.zeros(2), restarts=0, iterations=8)
    assert short.reason == "singular"
    np.testing.assert_allclose(short.error, 1.5)


def test_one_unreached_target_among_many_is_named():
    targets = np.array([[1.0, 0.5, 0], [0.2, 1.1, 0], [5.0, 0, 0], [0, 1.5, 0]])
    result = kt.inverse_kinematics(two_links(), "tip", targets)
    assert list(result.success) == [True, True, False, True]
    assert repr(result) == "<inverse kinematics of 4 targets: 3 converged, 1 out of reach>"
    message = r"1 of 4 targets were not reached; the first, target \(2,\): out of reach.* is 3,"
    with pytest.raises(kt.errors.UnreachableError, match=message):
        result.require()
    with pytest.raises(ValueError, match="the target was not reached: out of reach"):
        kt.inverse_kinematics(two_links(), "tip", targets[2]).require()


# --- refusals --------------------------------------------------------------------------------

REFLECTION = np.diag([1.0, 1.0, -1.0, 1.0])
HALF = np.diag([0.5, 0.5, 0.5, 1.0])
NAN = np.array([0.0, np.nan, 0.0])
REFUSED = {
    "a misspelt frame": (("tol", np.eye(4)), {}, kt.UnknownNameError, "did you mean 'tool'"),
    "no target": (("tool",), {}, TypeError, "needs a target for frame 'tool'"),
    "a number": (("tool", 1.0), {}, kt.ShapeError, r"\(\.\.\., 4, 4\) or positions"),
    "a rotation": (("tool", np.eye(3)), {}, kt.ShapeError, "OrientationTask"),
    "a reflection": (("tool", REFLECTION), {}, kt.ShapeError, "it is a reflection"),
    "a scaling": (("tool", np.stack([np.eye(4), HALF])), {}, kt.ShapeError, r"sample \(1,\)"),
    "a transposed pose": (
        ("tool", np.eye(4) + np.eye(4)[3][:, None] * [0.5, 0, 0, 0]), {}, kt.ShapeError,
        "is it transposed",
    ),
    "not a number": (("tool", NAN), {}, kt.ShapeError, "must be finite, got nan at index 1"),
    "a short q0": (("tool", np.eye(4), np.zeros(7)), {}, kt.ShapeError, "q0 must have shape"),
    "batches": (
        ("tool", np.tile(np.eye(4), (3, 1, 1)), np.zeros((2, 9))), {}, kt.ShapeError, "broadcast",
    ),
    "negative restarts": (("tool", np.eye(4)), {"restarts": -1}, kt.ShapeError, "restarts must"),
    "no iterations": (("tool", np.eye(4)), {"iterations": 0}, kt.ShapeError, "iterations must"),
    "no tolerance": (("tool", np.eye(4)), {"tolerance": 0}, kt.ShapeError, "tolerance must"),
    "odd limits": (("tool", np.eye(4)), {"limits": 3}, kt.ShapeError, "limits must be True"),
    "crossed limits": (
        ("tool", np.eye(4)), {"limits": (np.ones(9), -np.ones(9))}, kt.ShapeError, r"of q\[0\]",
    ),
    "short limits": (
        ("tool", np.eye(4)), {"limits": (-np.ones(7), np.ones(7))}, kt.ShapeError, "lower limits",
    ),
    "tasks with a target": (
        ([PoseTask("tool", np.eye(4))], np.eye(4)), {}, TypeError, "their own targets",
    ),
    "no tasks": (([],), {}, TypeError, "one task or more"),
    "a posture alone": (([PostureTask()],), {}, TypeError, "one task or more"),
    "not a task": ((["tool"],), {}, TypeError, "a task must be one of PoseTask"),
    "not a frame": ((3,), {}, TypeError, "name of a frame, or a list of tasks"),
    "no weight": (
        ([PositionTask("tool", np.zeros(3), weight=0)],), {}, kt.ShapeError, "weight of a Position",
    ),
    "the base": (("base", np.eye(4)), {}, kt.ModelError, "nothing in model 'panda' moves"),
    "a flat orientation": (
        (OrientationTask("tool", np.zeros(3)),), {}, kt.ShapeError, r"\(\.\.\., 3, 3\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_sense_is_rejected_by_name(what):
    args, options, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        kt.inverse_kinematics(kt.samples.panda(), *args, **options)


def test_a_model_without_mass_has_no_mass_centre():
    model = kt.ModelBuilder("light").body("a", joint=kt.Revolute("z")).build()
    with pytest.raises(kt.ModelError, match="has no mass"):
        kt.inverse_kinematics(model, CenterOfMassTask(np.zeros(3)))


def test_limits_of_joints_that_cannot_be_kept_are_rejected():
    builder = kt.ModelBuilder("cart")
    builder.body("cart", joint=kt.Planar("z"), limits=kt.Limits([-1] * 3, [1] * 3))
    model = builder.build()
    with pytest.raises(kt.ModelError, match=r"joint '.*', a Planar, within limits.*limits=False"):
        kt.inverse_kinematics(model, "cart", [0.5, 0.2, 0])
    assert kt.inverse_kinematics(model, "cart", [0.5, 0.2, 0], limits=False).success


def test_it_cannot_be_traced():
    model = kt.samples.panda()

    @kt.kernel
    def nested(m, target: (3,)):
        return kt.inverse_kinematics(m, "tool", target).q

    with pytest.raises(kt.errors.TraceError, match="cannot be traced"):
        nested(model, np.zeros(3))
