"""Tendons in worlds: limits and friction as rows of steps, springs and servos beside them."""

import numpy as np
import pytest

import kinetree as kt
from kinetree import geometry as shapes

MASSES, ARMS = (1.0, 2.0, 0.5), (0.8, -0.5, 0.3)
STILL = {"gravity": (0.0, 0.0, 0.0)}


def sliders(**tendon):
    """Three sliders side by side, and a tendon over all of them: length 0.1 + Σ a_i x_i."""
    builder = kt.ModelBuilder("sliders")
    joints = {}
    for k, (mass, arm) in enumerate(zip(MASSES, ARMS, strict=True)):
        inertia = kt.shapes.sphere(0.05, mass=mass)
        builder.body(f"s{k}", joint=kt.Prismatic("x"), at=(0, 0.2 * k, 0), inertia=inertia)
        joints[f"s{k}_joint"] = arm
    return builder.tendon("cable", joints=joints, offset=0.1, **tendon).build()


def arm(**tendon):
    """A chain of three links whose first and last joint a tendon connects."""
    builder = kt.ModelBuilder("arm")
    for k, on in enumerate((None, "l0", "l1")):
        builder.body(
            f"l{k}", on=on, joint=kt.Revolute("y"), at=(0, 0, 0.3),
            inertia=kt.shapes.sphere(0.1, mass=1.0, at=(0, 0, 0.1)),
        )  # fmt: skip
    joints = {"l0_joint": 0.8, "l2_joint": -0.5}
    return builder.tendon("cable", joints=joints, offset=0.1, **tendon).build()


START = np.array([0.1, -0.2, 0.3]), np.array([1.0, 0.5, -0.5])


def world_of(model, h=1e-3, state=START, **options):
    world = kt.World(timestep=h, **options)
    world.add(model, q=state[0], qd=state[1], name="robot")
    return world


def test_the_end_of_a_tendon_is_an_impulse_along_it():
    """With Σ a_i v_i = 0 afterwards: v_i changes by a_i λ / m_i, λ = -Σ a v / Σ a²/m."""
    a, m, v = np.array(ARMS), np.array(MASSES), np.array([1.0, -0.4, 0.2])
    world = world_of(sliders(upper=0.3), state=(np.zeros(3), v), **STILL)
    world.step(500)
    after = v - a / m * (a @ v) / (a @ (a / m))
    np.testing.assert_allclose(world.qd, after, atol=1e-9)
    assert 0.1 + a @ world.q == pytest.approx(0.3, abs=1e-7)


@pytest.mark.parametrize("push", [0.9, 1.5, 4.0])
def test_friction_of_a_tendon_holds_up_to_its_level(push):
    """A push f along the tendon, a_i f at each joint, moves its length by (f - 1) Σ a²/m."""
    a, m = np.array(ARMS), np.array(MASSES)
    world = world_of(sliders(friction=1.0), state=(np.zeros(3), np.zeros(3)), **STILL)
    world.step(400, tau=push * a)
    rate = max(push - 1.0, 0.0) * (a @ (a / m)) * 0.4
    assert a @ world.qd == pytest.approx(rate, abs=1e-9)


def test_limits_and_friction_are_rows_in_a_moving_arm():
    model = arm(lower=-0.4, upper=0.6, friction=0.3)
    ends = []
    for h in (2e-3, 1e-3, 5e-4):
        world, longest = world_of(model, h), 0.0
        for _ in range(round(0.5 / h)):
            world.step()
            longest = max(longest, 0.1 + 0.8 * world.q[0] - 0.5 * world.q[2])
        assert longest == pytest.approx(0.6, abs=1e-8)
        ends.append(world.q)
    change = [np.abs(x - ends[2]).max() for x in ends[:2]]
    assert change[1] < 0.6 * change[0] < 6e-3


def test_friction_of_a_tendon_is_the_limit_of_smooth_friction():
    model = arm(friction=0.3)
    law = kt.Friction(width=1e-5)
    peer = kt.simulate(model, *START, duration=0.5, dt=5e-5, integrator="rk4", friction=law)
    errors = []
    for h in (2e-3, 5e-4):
        world = world_of(model, h)
        world.step(round(0.5 / h))
        errors.append(np.abs(world.q - peer.q[-1]).max())
    assert errors[1] < 0.5 * errors[0] < 5e-3


def test_steps_of_simulate_have_the_same_rows():
    model = arm(lower=-0.4, upper=0.6, friction=0.3)
    world = world_of(model)
    world.step(500)
    contact = kt.contact.TimeStepping(kt.contact.Scene(model, pairs=[]))
    options = {"limits": "rigid", "friction": "exact", "contact": contact}
    end = kt.simulate(model, *START, duration=0.5, dt=1e-3, **options)
    np.testing.assert_allclose(end.q[-1], world.q, atol=1e-8)


def test_stiff_limits_and_smooth_friction_act_in_worlds():
    """As in ``simulate``, single and in batches, compiled into the steps; with couplings, too."""
    model = arm(lower=-0.4, upper=0.6, friction=0.3)
    peer = kt.simulate(model, *START, duration=0.5, dt=1e-4)
    options = {"limits": "stiff", "joint_friction": "smooth"}
    for h, within in ((1e-3, 5e-3), (2.5e-4, 1.5e-3)):
        world = world_of(model, h, **options)
        worlds = world.batch(2)
        world.step(round(0.5 / h))
        worlds.step(round(0.5 / h))
        np.testing.assert_allclose(world.q, peer.q[-1], atol=within)
        np.testing.assert_array_equal(worlds.q[1], world.q)


def test_batches_of_worlds_with_tendons_are_single_worlds():
    world = world_of(arm(lower=-0.4, upper=0.6, friction=0.3))
    worlds = world.batch(2)
    worlds.step(300)
    world.step(300)
    np.testing.assert_array_equal(worlds.q[0], world.q)


def test_rows_of_tendons_are_kept_when_a_world_changes():
    """A tendon at its end holds a weight: another part, added in between, changes nothing."""
    model = sliders(upper=0.2).replace(gravity=(9.81, 0, 0))
    worlds = [kt.World(gravity=(9.81, 0, 0)) for _ in range(2)]
    for world in worlds:
        world.add(model, name="robot")
        world.step(300)
    worlds[1].add(shapes.Sphere(0.05), mass=1.0, at=(0, 5, 0))
    for world in worlds:
        world.step(50)
    np.testing.assert_allclose(worlds[0]["robot"].q, worlds[1]["robot"].q, atol=1e-9)
