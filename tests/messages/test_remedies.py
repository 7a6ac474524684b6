"""What messages say to do instead, word by word."""

import copy
import pickle

import numpy as np
import pytest

import kinetree as kt
from kinetree.control import FrameTask
from kinetree.ik import OrientationTask, PositionTask

ARM = kt.samples.double_pendulum()
SIX = kt.samples.ur5()


@kt.kernel
def far_from(model, q, goal):
    return kt.pose(model, q, "tool")[:3, 3] - goal[:3, 3]


def test_a_matrix_of_a_kernel_is_declared():
    with pytest.raises(kt.ShapeError) as error:
        far_from(SIX, SIX.neutral(), np.eye(4))
    assert str(error.value) == (
        "far_from: too many indices for array: array is 1-dimensional, but 2 were indexed; goal "
        "has shape (4, 4), which is a batch of 4 vectors of 4 numbers. If it is one matrix, "
        "declare it: goal: (4, 4)"
    )


def test_joints_are_found_by_name():
    name = ARM.joint_names[1]
    assert ARM.joint(name) is ARM.joint[2]
    for other in (copy.deepcopy(ARM), pickle.loads(pickle.dumps(ARM)), kt.edit.floating(ARM)):
        assert other.joint(name) == ARM.joint(name)
    coupled = kt.samples.panda()
    assert coupled.joint(coupled.joint_names[0]) is coupled.joint[1]
    with pytest.raises(kt.UnknownNameError, match=f"no joint is called .*; did you mean {name!r}"):
        ARM.joint(f"{name}_")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("add_box", "write world.add(kinetree.geometry.Box(...), name=...)"),
        ("add_height_field", "write world.add(kinetree.geometry.HeightField(...), name=...)"),
        ("add_plane", "write world.add_ground()"),
        ("add_robot", "write world.add('robot.urdf')"),
        ("remove_box", "write world.remove(name)"),
        ("camera", "write world.render(camera); world.cameras lists them"),
        ("picture", "write world.render(camera), or kinetree.viewer.picture(world, 'world.png')"),
        ("step_simulation", "write world.step()"),
        ("show", "write world.view()"),
        ("floor", "write world.add_ground()"),
        ("get_image", "write world.render(camera)"),
        (
            "save_video",
            "write kinetree.viewer.record(kinetree.simulate(world, duration=...), 'world.mp4')",
        ),
        ("timestpe", "did you mean 'timestep'?"),
        ("ball", "parts are found by name: world['ball']"),
    ],
)
def test_attributes_of_worlds(name, advice):
    world = kt.World()
    world.add(kt.geometry.Sphere(0.1), name="ball", mass=1)
    with pytest.raises(AttributeError) as error:
        getattr(world, name)
    assert str(error.value) == f"a World has no attribute {name!r}; {advice}"


def push(t, q, qd):
    return -q


def of_time(t):
    return np.array([0.0, 0.0, 1.0])


def test_forces_are_called_by_the_name_that_the_user_gave():
    with pytest.raises(kt.errors.TraceError) as error:
        kt.simulate(ARM, [0, 0.1], duration=0.01, forces=push)
    assert str(error.value).endswith(
        "force 'push' is called as push(model, t, q, qd), and takes (t, q, qd)"
    )
    force = kt.ExternalForce(ARM.body_names[-1], of_time)
    with pytest.raises(kt.KinetreeError, match="force 'of_time', a Python function") as error:
        kt.rollout(ARM, [0, 0.1], [0, 0], steps=2, dt=0.01, forces=force)
    assert "ExternalForce" not in str(error.value).split("a Python function")[0]


def test_control_may_be_a_controller():
    with pytest.raises(TypeError, match="did you mean 'controller' or 'controls'"):
        kt.simulate(ARM, [0, 0.1], duration=0.01, control=push)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kt.simulate(ARM, [0, 0.1], policy=push), "did you mean 'controller'"),
        (lambda: kt.simulate(ARM, [0, 0.1], u=push), "did you mean 'controls'"),
        (lambda: kt.simulate(ARM, [0, 0.1], external_forces=push), "did you mean 'forces'"),
        (lambda: kt.simulate(ARM, [0, 0.1], steps=100), "did you mean 'duration'"),
        (lambda: kt.camera((1, 1, 1), look_at=(0, 0, 0)), "did you mean 'target'"),
        (lambda: kt.camera((1, 1, 1), fov=1.0), "did you mean 'angle'"),
        (lambda: kt.render(ARM, None, kt.camera((1, 1, 1)), "rgb"), "did you mean 'color'"),
    ],
)
def test_arguments_of_elsewhere(call, message):
    with pytest.raises((TypeError, kt.UnknownNameError), match=message):
        call()


@pytest.mark.parametrize("task", ["orientation", "position"])
def test_frame_tasks_take_their_part_of_a_pose(task):
    driven = np.ones(SIX.nv, dtype=bool)
    FrameTask("tool", np.eye(4), task=task).rows(SIX, driven, None)
    with pytest.raises(kt.ShapeError) as error:
        FrameTask("tool", np.ones(5), task=task).rows(SIX, driven, None)
    shape = "3, 3" if task == "orientation" else "3"
    assert str(error.value) == (
        f"FrameTask('tool', task={task!r}): reference {task} must have shape (..., {shape}), or "
        "(..., 4, 4) as that of a pose, got (5,)"
    )


def test_inverse_kinematics_says_which_task_is_off():
    tasks = [OrientationTask("tool", np.eye(3)), PositionTask("tool", [3.0, 0, 0])]
    found = kt.inverse_kinematics(SIX, tasks, restarts=0)
    assert not found.success
    assert str(found.worst).startswith("PositionTask('tool'), by 2.")
    with pytest.raises(kt.errors.UnreachableError, match=r"farthest off is PositionTask\('tool'\)"):
        found.require()
    reached = kt.pose(SIX, [0.1, -1, 1, 0, 0.5, 0], "tool")
    assert kt.inverse_kinematics(SIX, "tool", reached, restarts=3).worst == ""


def test_a_robot_is_added_to_a_world():
    with pytest.raises(
        kt.ModelError, match=r"string, got Model\(.*; world\.add\(model\) puts a robot"
    ):
        kt.World(ARM)
