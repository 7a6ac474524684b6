"""Joint velocities and accelerations from those of a frame — Lynch & Park (9.93), (9.94)."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.task_space import task_rows
from kinetree.samples import random_tree

FRAMES = ["world", "body", "aligned"]
KIND = {"world": "spatial", "body": "spatial", "aligned": "classical"}


@pytest.mark.covers("Lynch & Park 9.6", by=(kt.joint_velocity, kt.joint_acceleration))
@pytest.mark.parametrize("frame", FRAMES)
def test_round_trip_of_an_arm_with_six_joints(frame, rng):
    """LP-61: a square Jacobian, batched and compiled, against NumPy's inverse and its rate."""
    model = kt.samples.ur5()
    tool = model.body_names[-1]
    q = rng.uniform(-1.2, -0.4, (7, 6))
    qd, qdd = rng.standard_normal((2, 7, 6))
    J = kt.jacobian(model, q, tool, frame=frame)
    Jd = kt.jacobian_rate(model, q, qd, tool, frame=frame)
    condition = float(np.max(np.linalg.cond(J)))
    V = kt.velocity(model, q, qd, tool, frame=frame)
    found = kt.joint_velocity(model, q, V, tool, frame=frame)
    assert_close(found, qd, condition=condition)
    inverse = np.linalg.inv(J)
    assert_close(found, (inverse @ V[..., None])[..., 0], condition=condition)
    Vd = kt.acceleration(model, q, qd, qdd, tool, kind=KIND[frame], frame=frame)
    found = kt.joint_acceleration(model, q, qd, Vd, tool, frame=frame)
    assert_close(found, qdd, condition=condition, scale=10)
    # (9.94) word by word: J⁻¹ V̇ - J⁻¹ J̇ J⁻¹ V
    expected = inverse @ Vd[..., None] - inverse @ (Jd @ (inverse @ V[..., None]))
    assert_close(found, expected[..., 0], condition=condition, scale=10)


def test_the_derivative_of_the_inverse_is_that_of_the_source(rng):
    """d(J⁻¹)/dt = -J⁻¹ J̇ J⁻¹, by a difference of joint_velocity along the motion."""
    model = kt.samples.ur5()
    tool, q, (qd, V) = model.body_names[-1], np.full(6, -0.7), rng.standard_normal((2, 6))
    h = 1e-5
    there = [kt.joint_velocity(model, q + s * h * qd, V, tool) for s in (1, -1)]
    J, Jd = kt.jacobian(model, q, tool), kt.jacobian_rate(model, q, qd, tool)
    expected = -np.linalg.solve(J, Jd @ np.linalg.solve(J, V))
    found = (there[0] - there[1]) / (2 * h)
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.max(np.abs(expected)))
    zero = kt.joint_acceleration(model, q, kt.joint_velocity(model, q, V, tool), 0 * V, tool)
    moving = kt.jacobian_rate(model, q, kt.joint_velocity(model, q, V, tool), tool)
    assert_close(J @ zero, -moving @ np.linalg.solve(J, V), condition=np.linalg.cond(J), scale=10)


@pytest.mark.parametrize(
    "options", [{"rows": "linear"}, {"rows": ("x", "rz")}, {"point": [0, 1, 0]}]
)
def test_more_joints_than_coordinates_give_the_shortest_velocity(options, rng):
    model = kt.samples.panda()
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    task = {"frame": "aligned", "relative_to": "link1", **options}
    of_frame = {n: task[n] for n in task if n != "rows"}
    rows = list(task_rows(task.get("rows")))
    J = kt.jacobian(model, q, "tool", **of_frame)[rows]
    V = rng.standard_normal(len(rows))
    assert_close(
        kt.joint_velocity(model, q, V, "tool", **task), np.linalg.pinv(J) @ V,
        condition=np.linalg.cond(J),
    )  # fmt: skip
    bias = kt.bias_acceleration(model, q, qd, "tool", kind="classical", **of_frame)[rows]
    found = kt.joint_acceleration(model, q, qd, V, "tool", **task)
    scale = float(np.max(np.abs(V - bias)))
    assert_close(found, np.linalg.pinv(J) @ (V - bias), condition=np.linalg.cond(J), scale=scale)


def test_a_singular_jacobian_is_named(rng):
    model = kt.samples.ur5()
    q = np.array([0.1, -0.5, 0.0, 0.3, 0.7, 0.2])  # the elbow is straight
    tool = model.body_names[-1]
    with pytest.raises(kt.SingularError, match=rf"the Jacobian of '{tool}' is singular.*'ur5'"):
        kt.joint_velocity(model, q, np.ones(6), tool)
    with pytest.raises(kt.SingularError, match=r"sample \(1,\).*is singular"):
        kt.joint_acceleration(model, np.stack([q - 0.3, q]), q, np.ones(6), tool)
    short = random_tree(3, rng, joints=[kt.Revolute("z")])
    with pytest.raises(kt.SingularError, match="fewer coordinates"):
        kt.joint_velocity(short, short.neutral(), np.ones(6), short.body_names[-1])
    with pytest.raises(kt.ShapeError, match="velocity"):
        kt.joint_velocity(model, q, np.ones(5), tool)
    with pytest.raises(kt.UnknownNameError, match="rows must be"):
        kt.joint_velocity(model, q, np.ones(2), tool, rows=("u", "v"))


@pytest.mark.parametrize(
    ("name", "body", "rows"),
    [("four_bar", "rocker", ("ry",)), ("five_bar", "link2", ("ry", "x")),
     ("delta", "plate", ("x", "y", "z"))],
)  # fmt: skip
def test_loops_are_honoured(name, body, rows, rng):
    """Against a motion of the whole mechanism, which as many coordinates of a body determine."""
    model = getattr(kt.samples, name)()
    q, qd = kt.loops.project_state(model, model.neutral(), rng.standard_normal(model.nv))
    qdd = kt.forward_dynamics(model, q, qd, rng.standard_normal(model.nv))
    picked = list(task_rows(rows))
    V = kt.velocity(model, q, qd, body, frame="aligned")[picked]
    a = kt.acceleration(model, q, qd, qdd, body, kind="classical", frame="aligned")[picked]
    found = kt.joint_velocity(model, np.stack([q, q]), V, body, frame="aligned", rows=rows)
    assert_close(found[1], qd, condition=1e3)
    found = kt.joint_acceleration(model, q, qd, a, body, frame="aligned", rows=rows)
    assert_close(found, qdd, condition=1e4)
    with pytest.raises(kt.SingularError, match="is singular"):
        kt.joint_velocity(model, q, np.ones(6), body)
    open_q = model.integrate(q, np.full(model.nv, 0.3))
    with pytest.raises(kt.ShapeError, match="does not close loop"):
        kt.joint_velocity(model, open_q, V, body, frame="aligned", rows=rows)


def test_shapes_are_checked_with_loops_as_well():
    model = kt.samples.delta()
    q = kt.loops.assemble(model)
    for wrong in (np.ones(6), np.ones((2, 1))):
        with pytest.raises(kt.ShapeError, match=r"^joint_velocity: velocity must have shape"):
            kt.joint_velocity(model, q, wrong, "plate", rows="linear")


def test_points_of_a_batch_with_loops(rng):
    """A point for each sample is that of the sample, as without loops."""
    model = kt.samples.five_bar()
    q = kt.loops.assemble(model)
    points, rows = rng.standard_normal((3, 3)), ("ry", "x")
    options = {"frame": "aligned", "rows": rows}
    found = kt.joint_velocity(model, q, np.ones(2), "link2", point=points, **options)
    for k, point in enumerate(points):
        one = kt.joint_velocity(model, q, np.ones(2), "link2", point=point, **options)
        assert_close(found[k], one, ulps=16)
        V = kt.velocity(model, q, one, "link2", frame="aligned", point=point)
        assert_close(V[list(task_rows(rows))], np.ones(2), condition=1e3)
