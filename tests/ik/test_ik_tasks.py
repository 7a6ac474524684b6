"""Tasks: errors with their gradients, several at once, on every kind of joint."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.ik import CenterOfMassTask, OrientationTask, PoseTask, PositionTask, PostureTask
from kinetree.ik.problem import TaskProblem, damped_step, solve
from kinetree.joints import REPRESENTATIVES


def random_tasks(model, rng):
    a, b = model.body_names[-1], model.body_names[len(model.body_names) // 2]
    q = model.random_configuration(rng)
    return (
        PoseTask(a, kt.pose(model, q, a), 0.7),
        PositionTask(b, kt.pose(model, q, b)[:3, 3]),
        OrientationTask(b, kt.pose(model, q, b)[:3, :3], 2.0),
        CenterOfMassTask(kt.center_of_mass(model, q)),
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_gradient_is_the_derivative_of_the_squared_error(seed):
    """``Jᵀ e`` is exact, however large the error: no derivative of the logarithm is needed."""
    rng = np.random.default_rng(seed)
    model = kt.samples.random_tree(7, rng, floating_base=seed % 2 == 0)
    q, h = model.random_configuration(rng), 1e-6
    for task in random_tasks(model, rng):
        numbers = task.numbers(model)

        def half_square(q, task=task, numbers=numbers):
            e, _ = task.rows(model, q, numbers)
            return e @ e / 2

        e, J = task.rows(model, q, numbers)
        derivatives = [
            (half_square(model.integrate(q, h * d)) - half_square(model.integrate(q, -h * d)))
            / (2 * h)
            for d in np.eye(model.nv)
        ]
        np.testing.assert_allclose(-(J.T @ e), derivatives, atol=1e-7 * (1 + e @ e))


def test_the_jacobian_of_the_mass_centre_is_the_derivative_of_its_position():
    rng = np.random.default_rng(8)
    model = kt.samples.random_tree(9, rng)
    q = model.random_configuration(rng)
    task = CenterOfMassTask(np.zeros(3))
    e, J = task.rows(model, q, np.zeros(3))
    assert_close(-e, kt.center_of_mass(model, q))
    assert_close(J, kt.differentiate(kt.center_of_mass, wrt="q")(model, q), ulps=1000)


KINDS = {type(joint).__name__: joint for joint in REPRESENTATIVES if joint.nv}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_joint_takes_part(kind):
    rng = np.random.default_rng(3)
    model = kt.samples.random_tree(2, rng, joints=(KINDS[kind],), branching=0)
    goal = np.array([model.random_configuration(rng) for _ in range(4)])
    dv = 0.1 * rng.standard_normal((4, model.nv))
    result = kt.inverse_kinematics(
        model, "body2", kt.pose(model, goal, "body2"), model.integrate(goal, dv)
    )
    assert np.all(result.success)
    assert np.max(np.abs(kt.pose(model, result.q, "body2") - kt.pose(model, goal, "body2"))) < 1e-8


def test_several_frames_and_the_mass_centre_of_a_walking_machine():
    model, rng = kt.samples.quadruped(), np.random.default_rng(1)
    feet = [name for name in model.frame_names if "foot" in name]
    assert len(feet) == 4
    q = model.neutral()
    q = model.integrate(q, 0.2 * rng.standard_normal((10, model.nv)))
    q[..., model.q_slice[1]] = model.neutral()[model.q_slice[1]]
    targets = [PositionTask(foot, kt.pose(model, q, foot)[..., :3, 3]) for foot in feet]
    targets.append(CenterOfMassTask(kt.center_of_mass(model, q)))
    trunk = model.body_names[1]
    targets.append(OrientationTask(trunk, kt.pose(model, q, trunk)[..., :3, :3]))
    result = kt.inverse_kinematics(model, targets, limits=False)
    assert np.all(result.success)
    for foot in feet:
        assert np.max(
            np.abs((kt.pose(model, result.q, foot) - kt.pose(model, q, foot))[..., 3])
        ) < (1e-8)
    assert np.max(np.abs(kt.center_of_mass(model, result.q) - kt.center_of_mass(model, q))) < 1e-8


def test_position_alone_and_orientation_alone():
    model, rng = kt.samples.panda(), np.random.default_rng(2)
    T = kt.pose(model, np.array([model.random_configuration(rng) for _ in range(30)]), "tool")
    position = kt.inverse_kinematics(model, "tool", T[:, :3, 3])
    assert np.all(position.success)
    assert np.max(np.abs(kt.pose(model, position.q, "tool")[:, :3, 3] - T[:, :3, 3])) < 1e-8
    turned = kt.inverse_kinematics(model, OrientationTask("tool", T[:, :3, :3]))
    assert np.all(turned.success)
    assert np.max(np.abs(kt.pose(model, turned.q, "tool")[:, :3, :3] - T[:, :3, :3])) < 1e-8


def test_contradicting_tasks_are_weighed_and_reported():
    """One frame at two points, of weights 1 and 4: it rests at four fifths of the way."""
    model = kt.samples.panda()
    p, way = np.array([0.4, 0.1, 0.5]), np.array([0, 0, 0.1])
    tasks = [PositionTask("tool", p), PositionTask("tool", p + way, weight=4.0)]
    result = kt.inverse_kinematics(model, tasks, restarts=1)
    assert not result.success
    assert result.reason == "out of reach"
    np.testing.assert_allclose(kt.pose(model, result.q, "tool")[:3, 3], p + 0.8 * way, atol=1e-6)


# --- the null space --------------------------------------------------------------------------


def test_a_posture_moves_the_arm_where_the_task_leaves_it_free():
    model, rng = kt.samples.panda(), np.random.default_rng(6)
    T = kt.pose(model, np.array([model.random_configuration(rng) for _ in range(40)]), "tool")
    wish = np.array([0.3, -0.4, 0.2, -2.0, 0.1, 2.0, 0.5, 0.01, 0.01])
    plain = kt.inverse_kinematics(model, "tool", T)
    result = kt.inverse_kinematics(model, [PoseTask("tool", T), PostureTask(wish)])
    assert np.all(result.success)
    assert np.max(np.abs(kt.pose(model, result.q, "tool") - T)) < 1e-8
    before, after = (np.linalg.norm((r.q - wish)[:, :7], axis=1) for r in (plain, result))
    assert np.all(after <= before)
    assert np.mean(after) < 0.95 * np.mean(before)
    # Nothing is left to gain: what remains of the way is across the self-motion of the arm,
    # or against a limit.
    lower = np.array([b.limits.lower[0] for b in model.bodies if b.limits])[:7]
    upper = np.array([b.limits.upper[0] for b in model.bodies if b.limits])[:7]
    left = 0
    for q in result.q:
        J = kt.jacobian(model, q, "tool", frame="aligned")[:, :7]
        free = (q[:7] > lower) & (q[:7] < upper)
        N = np.linalg.svd(J[:, free])[2][6:] if free.sum() > 6 else np.zeros((0, free.sum()))
        if np.linalg.svd(J)[1][-1] > 0.01:  # close to a singularity it creeps
            left = max(left, np.max(np.abs(N @ (wish - q)[:7][free]), initial=0))
    assert left < 1e-4


def test_without_a_configuration_the_posture_is_the_middle_of_the_limits():
    model = kt.samples.panda()
    T = kt.pose(model, model.random_configuration(9), "tool")
    middle = np.array(
        [(b.limits.lower[0] + b.limits.upper[0]) / 2 for b in model.bodies if b.limits]
    )
    a = kt.inverse_kinematics(model, [PoseTask("tool", T), PostureTask()])
    b = kt.inverse_kinematics(model, [PoseTask("tool", T), PostureTask(middle)])
    np.testing.assert_allclose(a.q, b.q, atol=1e-12)


def test_a_posture_moves_joints_that_no_other_task_moves():
    model = kt.samples.panda()
    q0 = model.posture("home").q
    wish = np.concatenate([q0[:7], [0.013, 9.0]])
    tasks = [PositionTask("tool", kt.pose(model, q0, "tool")[:3, 3]), PostureTask(wish)]
    q = kt.inverse_kinematics(model, tasks, q0=q0).require()
    np.testing.assert_allclose(q[7:], [0.013, 0.04])  # the second within its limit
    arm = [n for n in model.joint_names if "finger" not in n]
    q = kt.inverse_kinematics(model, tasks, q0=q0, joints=arm).require()
    np.testing.assert_array_equal(q[7:], q0[7:])


# --- the damped step -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 7), (6, 6), (7, 4)])
def test_the_damped_step_is_the_regularised_least_squares_solution(shape, rng):
    J, e, mu = rng.standard_normal(shape), rng.standard_normal(shape[0]), 0.3
    free = np.ones(shape[1], dtype=int)
    free[1] = 0
    stacked = np.vstack([J * free, np.sqrt(mu) * np.eye(shape[1])])
    expected = np.linalg.lstsq(stacked, np.concatenate([e, np.zeros(shape[1])]), rcond=None)[0]
    assert_close(damped_step(J, e, mu, free).astype(float), expected, ulps=1000)


def test_the_solver_is_exact_on_fractions():
    from fractions import Fraction as F

    A = np.array([[F(4), F(1)], [F(1), F(3)]])
    assert list(A @ solve(A, np.array([F(1), F(2)]))) == [1, 2]


def test_a_problem_is_compiled_once_for_all_targets():
    model = kt.samples.arm()
    tasks = (PositionTask("tool", np.zeros(3)),)
    assert TaskProblem.of(model, tasks) is TaskProblem.of(
        model, (PositionTask("tool", np.ones(3)),)
    )
    assert TaskProblem.of(model, tasks).tasks[0].target is None
