"""A linkage on a free base: followed, moved by its coordinates, and stepped implicitly."""

import numpy as np
import pytest

import kinetree as kt

PATH = np.linspace(0.0, 0.6, 7)


@pytest.fixture(scope="module")
def model():
    return kt.edit.floating(kt.samples.four_bar(), inertia=kt.shapes.box(0.6, 0.2, 0.1, mass=3.0))


@pytest.fixture(scope="module")
def start(model):
    p = np.array([0.9, 0.1, -0.3, 0.2])
    q = model.neutral()
    q[:7] = [0.3, -0.2, 0.5, *(p / np.linalg.norm(p))]
    return kt.loops.assemble(model, q)


def first_joint(model):
    return model.joint_names[1]


def test_a_free_joint_is_an_input_like_any_other(model, start):
    """The order of the inputs does not matter; the linkage moves as it does on the ground."""
    free, crank = model.joint[1], first_joint(model)
    turn = np.array([0.5, -0.4, 0.8, 0.1, 0.2, -0.3])
    poses = np.array([free.integrate(start[:7], s * turn) for s in PATH])
    angles = start[7] + PATH
    found = kt.loops.follow(model, start, {crank: angles, "floating": poses})
    np.testing.assert_allclose(found.q[:, :7], poses, atol=1e-12)
    fixed = kt.loops.follow(kt.samples.four_bar(), start[7:], {crank: angles})
    np.testing.assert_allclose(found.q[:, 7:], fixed.q, atol=1e-9)
    with pytest.raises(kt.errors.ShapeError, match="position 1 of joint 'floating'"):
        kt.loops.follow(model, start, {crank: angles[:2], "floating": poses[:2] * [[1], [2]]})


def test_motion_of_a_free_joint_and_a_crank_moves_all_joints(model, start):
    """Velocities are those of the positions, and accelerations those of the velocities."""
    free, crank = model.joint[1], first_joint(model)
    origin, rate = free.difference(free.neutral(), start[:7]), np.array([0.3, 0.5, -0.2, 0.4, 0, 1])
    h = 1e-4
    pose = [free.integrate(start[:7], s * rate) for s in (-h, 0, h)]  # at constant velocity
    y = np.array(
        [
            [*free.difference(free.neutral(), p), start[7] + 2 * s]
            for p, s in zip(pose, (-h, 0, h), strict=True)
        ]
    )
    np.testing.assert_allclose(y[1, :6], origin, atol=1e-12)
    yd, ydd = np.tile([*rate, 2.0], (3, 1)), np.zeros((3, 7))
    found = kt.loops.coordinate_motion(model, start, y, yd, ydd, independent=["floating", crank])
    np.testing.assert_allclose(found.q[:, :7], pose, atol=1e-12)
    speed = model.difference(found.q[0], found.q[2]) / (2 * h)
    np.testing.assert_allclose(found.qd[1], speed, atol=1e-6)
    change = (found.qd[2] - found.qd[0]) / (2 * h)
    np.testing.assert_allclose(found.qdd[1], change, atol=1e-5)


def test_variables_of_a_free_joint_that_do_not_determine_the_motion_are_named(model, start):
    names = ["floating[0]", *(f"floating[{k}]" for k in range(2, 6)), *model.joint_names[1:3]]
    with pytest.raises(kt.SingularError, match=r"'floating\[0\]'.* do not determine the motion"):
        kt.loops.coordinate_motion(
            model, start, np.zeros(7), np.zeros(7), np.zeros(7), independent=names
        )


def test_implicit_steps_of_a_floating_linkage_are_of_second_order(model, start):
    rng = np.random.default_rng(0)
    qd = kt.loops.project_velocity(model, start, rng.standard_normal(model.nv))
    tau = 0.2 * rng.standard_normal(model.nv)
    exact = kt.simulate(model, start, qd, duration=0.1, controller=lambda t, q, v: tau)
    errors = []
    for steps in (5, 10):
        q, v = start, qd
        for _ in range(steps):
            q, v, corrections = kt.loops.implicit_step(model, q, v, tau, 0.1 / steps)
            assert len(corrections) <= 6
        assert np.max(np.abs(kt.loops.closure_error(model, q))) < 1e-12
        errors.append(np.linalg.norm([*model.difference(exact.q[-1], q), *(exact.qd[-1] - v)]))
    assert 3.0 < errors[0] / errors[1] < 5.0
