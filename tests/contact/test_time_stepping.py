"""Contact in equal steps: nothing penetrates, pulls, creeps or gains energy."""

import numpy as np
import pytest

import kinetree as kt
from kinetree import geometry
from kinetree.contact import Scene, TimeStepping, with_ground

SLOPE = np.radians(20)


def lying(shape, inertia, *, gravity=(0, 0, -9.81)):
    """A free body with a shape, above a plane."""
    model = kt.ModelBuilder("body", gravity=gravity).body("b", joint=kt.Free(), inertia=inertia)
    return with_ground(model.build().replace(geometry=[geometry.Geometry(1, shape, name="b")]))


@pytest.fixture(scope="module")
def block():
    inertia = kt.shapes.box(0.2, 0.2, 0.1, mass=1.0)
    downhill = 9.81 * np.array([np.sin(SLOPE), 0, -np.cos(SLOPE)])
    return lying(geometry.Box((0.2, 0.2, 0.1)), inertia, gravity=downhill)


def slide(block, mu):
    q = block.neutral()
    q[2] = 0.05
    scene = Scene(block, friction=mu)
    return kt.simulate(block, q, duration=0.2, contact=TimeStepping(scene))


def sound(motion):
    """Residuals and energy of a run."""
    residuals = motion.report.contact
    assert residuals.velocity < 1e-9
    assert residuals.cone < 1e-9
    assert residuals.complementarity < 1e-9
    assert residuals.penetration < 1e-9
    assert residuals.gain < 1e-9
    return motion


@pytest.mark.covers("RBDA 11.8", by=TimeStepping)
def test_a_ball_falls_and_stays_where_it_lands():
    ball = lying(geometry.Sphere(0.1), kt.shapes.sphere(0.1, mass=1.0))
    q = ball.neutral()
    q[2] = 0.3
    motion = sound(kt.simulate(ball, q, duration=0.5, contact=TimeStepping(Scene(ball))))
    np.testing.assert_allclose(motion.q[-1, :3], [0, 0, 0.1], atol=1e-9)
    np.testing.assert_allclose(motion.qd[-1], np.zeros(6), atol=1e-9)
    assert np.min(motion.q[:, 2]) > 0.1 - 1e-9
    assert np.max(np.diff(motion.energy)) < 1e-9


def test_a_block_sticks_below_the_limit_of_friction_and_slides_above(block):
    sticks = sound(slide(block, np.tan(SLOPE) * (1 + 1e-6)))
    assert np.max(np.abs(sticks.q[:, :2])) < 1e-9
    mu = 0.1
    slides = sound(slide(block, mu))
    speed = 9.81 * (np.sin(SLOPE) - mu * np.cos(SLOPE)) * slides.t
    np.testing.assert_allclose(slides.qd[:, 3], speed, atol=1e-9)


def test_a_scene_of_another_model_is_refused(block):
    other = lying(geometry.Sphere(0.1), kt.shapes.sphere(0.1, mass=1.0))
    with pytest.raises(kt.ModelError, match="the scene was made for model"):
        kt.simulate(
            block, block.neutral(), duration=0.1,
            contact=TimeStepping(Scene(other.replace(name="other"))),
        )  # fmt: skip


def test_steps_that_adapt_are_refused(block):
    contact = TimeStepping(Scene(block))
    with pytest.raises(kt.UnknownNameError, match="steps with time stepping are equal"):
        kt.simulate(block, block.neutral(), duration=0.1, rtol=1e-6, contact=contact)


def test_settings_are_checked(block):
    scene = Scene(block)
    with pytest.raises(TypeError, match=r"takes a kinetree\.contact\.Scene"):
        TimeStepping(block)
    with pytest.raises(kt.ModelError, match="tolerance must be positive"):
        TimeStepping(scene, tolerance=0.0)
    with pytest.raises(kt.ModelError, match="rest_velocity must not be negative"):
        TimeStepping(scene, rest_velocity=-1.0)
    with pytest.raises(kt.ModelError, match="damping of a controller must be one number"):
        TimeStepping(scene, damping=(1.0, 2.0))


def test_joints_that_move_as_told_are_refused(block):
    told = {block.joint_names[0]: lambda t: (block.neutral(), np.zeros(6), np.zeros(6))}
    with pytest.raises(kt.JointError, match="do not go with TimeStepping"):
        kt.simulate(
            block, block.neutral(), duration=0.1, prescribed=told,
            contact=TimeStepping(Scene(block)),
        )  # fmt: skip
