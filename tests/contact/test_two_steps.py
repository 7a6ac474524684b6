"""The engine and the unrolled step are one discretisation: options of contact, both ways."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.engine.stepper import EngineStepper
from kinetree.contact.scene import Scene
from kinetree.contact.settings import TimeStepping
from kinetree.contact.stepping.choice import tier_of_rollout
from kinetree.contact.stepping.stepper import ContactStepper
from kinetree.model import JointDynamics, Limits
from kinetree.simulation.setup import compose_setup
from tests.support.composed_mechanisms import BEND, crouching, hopper


@kt.kernel
def _swings(t):
    return BEND + 0.1 * np.cos(5 * t) - 0.1, -0.5 * np.sin(5 * t), -2.5 * np.cos(5 * t)


CASES = {
    "nothing": ((), {}, {}),
    "floating": (("floating",), {}, {}),
    "loop": (("loop",), {}, {}),
    "gears": (("gears",), {}, {}),
    "prescribed": ((), {}, {"prescribed": {"hip": _swings}}),
    "limits": (
        (),
        {"limits": {"hip": Limits((BEND - 1e-3,), (BEND + 1e-3,))}},
        {"limits": "rigid"},
    ),
    "dry friction": (
        (),
        {"dynamics": {"hip": JointDynamics(friction=(0.5,))}},
        {"friction": "exact"},
    ),
}


def ends(name, height, dt, count):
    """Where the hopper is after some steps, by the engine and by the unrolled step."""
    features, joints, options = CASES[name]
    scene = hopper(*features)
    if joints:
        scene = Scene(scene.model.replace(**joints), [("ground", "foot")], friction=0.8)
    model, q = scene.model, crouching(scene, height)
    found = []
    for tier, kind in (("general", EngineStepper), ("specialised", ContactStepper)):
        with kt.tier(tier):
            motion = kt.simulate(
                model, q, dt=dt, duration=count * dt, store_every=count,
                contact=TimeStepping(scene), **options,
            )  # fmt: skip
        assert isinstance(motion.acted, kind)
        assert motion.contact.residuals[-1, 9] > 0
        found.append(motion)
    return found


@pytest.mark.parametrize("name", CASES)
def test_engine_and_unrolled_step_agree(name):
    engine, unrolled = ends(name, 0.0, 1e-3, 1)
    assert engine.contact.names == unrolled.contact.names
    assert np.abs(engine.q - unrolled.q).max() < 1e-10
    force = unrolled.contact.force[-1]
    assert np.abs(engine.contact.force[-1] - force).max() < 1e-5 * np.abs(force).max()
    apart = []
    for dt in (2e-3, 1e-3):  # it lands in between: the order is one
        engine, unrolled = ends(name, 1e-3, dt, round(0.1 / dt))
        apart.append(np.abs(engine.q[-1] - unrolled.q[-1]).max())
    assert apart[0] < 5e-3
    assert apart[1] < max(0.6 * apart[0], 1e-4)


@pytest.mark.parametrize("tier", ["general", "specialised"])
def test_what_bounces_is_left_to_the_engine(tier):
    scene = hopper(restitution=0.5)
    with kt.tier(tier):
        contact = TimeStepping(scene)
        q = crouching(scene, 1e-3)
        motion = kt.simulate(scene.model, q, dt=1e-3, duration=0.1, contact=contact)
    assert isinstance(motion.acted, EngineStepper)


@pytest.mark.parametrize("part", ["loop", "gears", "nothing"])
def test_what_differs_unrolled_is_left_to_the_engine_however_many_steps_there_are(part):
    scene = hopper(*CASES[part][0])
    setup = compose_setup("rollout", scene.model, contact=TimeStepping(scene))
    chosen = tier_of_rollout(setup.contact, setup.effects, setup.field, 2**31)
    assert chosen == ("specialised" if part == "nothing" else "general")


def test_a_hopper_with_a_loop_lands_the_same_through_every_door():
    """In the unrolled step, rows of loops where it lands are those of a motion that has stopped."""
    scene = hopper("loop")
    model, q, contact = scene.model, crouching(scene, 1e-3), TimeStepping(scene, flight=False)
    one = kt.simulate(model, q, dt=1e-3, duration=0.05, contact=contact)
    assert one.contact.force[:, 0, 0].max() > 10.0
    many = kt.rollout(model, np.tile(q, (3, 1)), steps=50, dt=1e-3, store_every=50, contact=contact)
    np.testing.assert_allclose(many.qd[-1, 1], one.qd[-1], atol=1e-10)

    @kt.kernel
    def observe(model, q):
        return q

    @kt.kernel
    def reward(model, q):
        return 0 * q[0]

    @kt.kernel
    def reset(model):
        return {"q": q + 0.0}

    env = kt.learning.Environment(
        model, 2, observe=observe, reward=reward, reset=reset, contact=contact, dt=1e-3,
        decimation=50, episode=None,
    )  # fmt: skip
    env.step(np.zeros((2, env.action_size)))
    np.testing.assert_allclose(env.state["qd"][1], one.qd[-1], atol=1e-10)


@pytest.mark.parametrize("dt", [2e-3, 1e-3])
def test_steps_from_the_same_states_have_the_same_velocities(dt):
    """Landing, the step after it, and rolling on: the laws are those of ``engine.targets``."""
    scene, steppers = hopper(), []
    model, q = scene.model, crouching(scene, 1e-3)
    for tier in ("general", "specialised"):
        with kt.tier(tier):
            contact = TimeStepping(scene, conserving=False)
            steppers.append(kt.simulate(model, q, dt=dt, duration=dt, contact=contact).acted)
    engine, unrolled = steppers
    qd, force, apart = np.zeros(model.nv), np.zeros(unrolled.notes.rows), []
    machine = engine.machine
    machine.motions.lists = 1
    machine.restore(0, q, qd, {})
    for k in range(40):
        now = np.array([k * dt, dt, 1.0]), q, qd, np.zeros(model.nv), force
        other = unrolled._kernel.call(*now)
        q, qd, *_ = engine.end_of_step(k * dt, dt, q, qd, np.zeros(model.nv))
        force, held = np.zeros_like(force), machine.forces(0).force
        if len(held) and not machine.motions.bare[0]:
            force[:3] = held[0]
        apart.append(np.abs(other[1] - qd).max() if force[0] > 0 else 0.0)
    assert 20 < np.count_nonzero(apart) < 40
    assert max(apart) < 1e-6
