"""Rollouts of worlds by the engine: against steps, simulations, and the unrolled step."""

import numpy as np
import pytest

import kinetree as kt
from kinetree import geometry as shapes
from kinetree.functional.parameters import with_parameters

N, STEPS = 5, 12
RNG = np.random.default_rng(3)
U = RNG.uniform(-0.3, 0.3, (STEPS, N, 12))


def terrain() -> kt.World:
    """A quadruped and a box on a height field."""
    world = kt.World()
    x = np.linspace(-1, 1, 9)
    heights = 0.02 * np.cos(3 * x)[:, None] * np.sin(2 * x)
    field = shapes.HeightField(heights, size=(4.0, 4.0))
    world.add(field, name="hills")
    world.add("quadruped", name="dog", at=(0, 0, 0.01), on="hills")
    world.add(shapes.Box((0.1, 0.1, 0.1)), mass=1.0, name="box", at=(1.0, 0.3, 0.1), on="hills")
    return world


def test_rollouts_of_worlds_are_their_steps_to_the_bit():
    world = terrain()
    own = {
        "friction": RNG.uniform(0.3, 1, N), "mass": {"box": RNG.uniform(1, 3, N)},
        "gains": RNG.uniform(0.5, 2, N), "size": {"box": RNG.uniform(0.8, 1, N)},
    }  # fmt: skip
    worlds = world.batch(N, **own)
    found = kt.rollout(worlds, steps=STEPS, controls=U, store_every=5)
    assert found.q.shape == (4, N, world.model.nq)
    assert found.tier == "general"
    for k in range(STEPS):
        worlds.step(1, control=U[k])
    np.testing.assert_array_equal(found.q[-1], worlds.q)
    np.testing.assert_array_equal(found.qd[-1], worlds.qd)
    assert found.residuals.shape == (N, 10)
    assert not found.failed.any()
    worlds.reset()
    again = kt.rollout(worlds, steps=STEPS, controls=U, store_every=5)
    np.testing.assert_array_equal(found.q, again.q)


def piled() -> kt.World:
    """Two boxes on each other, whose contacts have no closed form, and a rod on a rough hinge."""
    world = kt.World(timestep=2e-3)
    world.add_ground()
    for k in range(2):
        world.add(
            shapes.Box((0.2, 0.2, 0.1)), mass=1.0, name=f"box{k}", at=(0, 0, 0.051 + 0.101 * k)
        )
    rod = kt.ModelBuilder("rod").body(
        "rod",
        joint=kt.Revolute("y"),
        inertia=kt.shapes.box(0.4, 0.02, 0.02, mass=0.3, at=(0.2, 0, 0)),
        limits=kt.Limits((-1.0,), (0.02,)),
        dynamics=kt.JointDynamics(friction=0.05),
    )
    world.add(rod.build(), name="rod", at=(1.0, 0, 1.0))
    return world


def test_rollouts_have_the_record_of_contact_of_simulations():
    world = piled()
    assert world.scene.open_pairs
    expected = kt.simulate(world, duration=60e-3, store_every=7).contact
    alone = kt.rollout(world, steps=30, store_every=7)
    q, qd = (np.tile(x, (2, 3, 1)) for x in (world.q, world.qd))
    many = kt.rollout(world, q, qd, steps=30, store_every=7)
    assert {x.rpartition(":")[0] for x in expected.names} == {"ground/box0", "box0/box1"}
    for found in (alone.contact, many.contact.at((slice(None), 1, 2))):
        assert found.names == expected.names
        np.testing.assert_array_equal(found.force, expected.force)
        np.testing.assert_array_equal(found.joint_force, expected.joint_force)
        np.testing.assert_array_equal(found.residuals, expected.residuals)
    assert np.count_nonzero(expected.joint_force[-1]) == 2  # the stop and friction of the hinge
    assert many.residuals.shape == (2, 3, 10)
    np.testing.assert_array_equal(alone.residuals, expected.worst)
    motion = many.motion((1, 2))
    np.testing.assert_array_equal(motion.contact.force, expected.force)


@kt.kernel
def servo(model, t, q, qd, target, gain: ()):
    """Springs to a target on the legs of a quadruped."""
    force = gain * (target - q[7:19]) - 0.05 * gain * qd[6:18]
    return np.concatenate([np.zeros(6), force, np.zeros(6)])


def test_controllers_parameters_and_joint_laws_are_those_of_simulate():
    world = terrain()
    model, q0 = world.model, np.tile(world.q, (N, 1))
    gain, mass = np.linspace(1, 9, N), np.linspace(1, 3, N)
    target = RNG.uniform(-0.1, 0.1, (STEPS, 1, 12))
    options = {"dt": 2e-3, "friction": "exact", "limits": "rigid"}
    for parameters in ({"mass:box": mass}, {"mass:box": mass, "gravity": np.array([0, 0.5, -9.0])}):
        found = kt.rollout(
            model, q0, steps=STEPS, contact=world.contact, controller=servo,
            inputs={"target": target}, arguments={"gain": gain}, parameters=parameters, **options,
        )  # fmt: skip
        again = kt.rollout(  # with engines that are there already
            model, q0, steps=STEPS, contact=world.contact, controller=servo,
            inputs={"target": target}, arguments={"gain": gain}, parameters=parameters, **options,
        )  # fmt: skip
        np.testing.assert_array_equal(found.q, again.q)
        for k in (0, N - 1):
            values = {n: x if n == "gravity" else x[k] for n, x in parameters.items()}
            one = with_parameters(model, values)
            contact = kt.contact.TimeStepping(kt.contact.Scene(one), tolerance=1e-12)

            def controller(t, q, qd, k=k, one=one):
                return servo(one, t, q, qd, target[min(round(t / 2e-3), STEPS - 1), 0], gain[k])

            with kt.tier("general"):
                alone = kt.simulate(
                    one, q0[k], duration=STEPS * 2e-3, contact=contact, controller=controller,
                    integrator="semi_implicit_euler", **options,
                )  # fmt: skip
            np.testing.assert_allclose(found.q[-1, k], alone.q[-1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("timed", [True, False])
def test_parameters_and_held_forces_are_those_of_worlds(timed):
    world, mass = terrain(), np.linspace(1, 3, N)
    worlds = world.batch(N, mass={"box": mass})
    tau = np.zeros((STEPS if timed else 1, N, world.model.nv))
    tau[..., world["box"].v_indices[3]] = RNG.uniform(5, 20, tau.shape[:2])
    found = kt.rollout(
        world, np.tile(world.q, (N, 1)), tau=tau, steps=STEPS, parameters={"mass:box": mass}
    )
    for k in range(STEPS):
        worlds.step(1, tau=tau[k if timed else 0])
    np.testing.assert_array_equal(found.q[-1], worlds.q)
    driven = kt.rollout(
        world, np.tile(world.q, (N, 1)), controls=U if timed else U[:1], steps=STEPS,
        parameters={"mass:box": mass},
    )  # fmt: skip
    again = kt.rollout(
        world.batch(N, mass={"box": mass}), controls=U if timed else U[:1], steps=STEPS
    )
    np.testing.assert_array_equal(driven.q, again.q)


def test_the_engine_and_the_unrolled_step_agree_in_forces_too():
    builder = kt.ModelBuilder("ball").body(
        "ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0)
    )
    builder.geometry(shapes.Sphere(0.1), on="ball")
    ball = kt.contact.with_ground(builder.build())
    contact = kt.contact.TimeStepping(kt.contact.Scene(ball), tolerance=1e-12)
    q0, qd0 = np.array([0, 0, 0.1, 1.0, 0, 0, 0]), np.zeros((3, 6))
    qd0[:, 3], qd0[:, 5] = (0.2, 0.4, 0.6), (0, 0, 0.1)
    found = {}
    for tier in ("general", "specialised"):
        with kt.tier(tier):
            found[tier] = kt.rollout(ball, q0, qd0, steps=60, store_every=7, contact=contact)
    a, b = found.values()
    assert (a.tier, b.tier) == ("general", "specialised")
    assert a.contact_force.shape == b.contact_force.shape
    for name in ("q", "qd", "work", "contact_force"):
        x, y = getattr(a, name), getattr(b, name)
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * max(1, np.abs(y).max()))


def test_a_motion_that_fails_does_not_lose_the_others():
    world = terrain()
    q0, qd0 = np.tile(world.q, (3, 1)), np.zeros((3, world.model.nv))
    qd0[1, -1] = 1e200
    with pytest.warns(kt.SimulationWarning, match=r"1 of 3 motions of 'world' became non-finite"):
        found = kt.rollout(world, q0, qd0, steps=4)
    assert found.failed.tolist() == [False, True, False]
    np.testing.assert_array_equal(found.q[-1, 1], q0[1])
    good = kt.rollout(world, q0[::2], steps=4)
    np.testing.assert_array_equal(good.q[-1], found.q[-1, ::2])


def test_messages():
    world = terrain()
    worlds = world.batch(2, friction=[0.5, 1.0])
    with pytest.raises(kt.ModelError, match=r"simulate takes one world.*kinetree.rollout\(worlds"):
        kt.simulate(worlds, duration=0.1)
    with pytest.raises(TypeError, match="rollout needs the positions at the start, q0"):
        kt.rollout(world.model, steps=3)
