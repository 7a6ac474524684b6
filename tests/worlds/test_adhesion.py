"""Actuators that adhere: what they hold, against the laws of friction and MuJoCo."""

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import loaded

import kinetree as kt
from kinetree.contact import Scene, SoftContact, TimeStepping
from kinetree.errors import ModelError

BODY = (
    '<body name="pad" pos="0 0 {z}"><freejoint/><geom type="box" size=".1 .1 .1" mass="2"/></body>'
)
WORLD = """<mujoco><option cone="elliptic"/><worldbody>
<geom type="box" size="1 1 .1" pos="{at}" friction="0.5"/>{body}</worldbody>
<actuator><adhesion name="stick" body="pad" ctrlrange="0 1" gain="40"/></actuator></mujoco>"""
CEILING = WORLD.format(at="0 0 1.2", body=BODY.format(z="1"))
WEIGHT = 2 * 9.81


def moved(text, control, seconds, q=None, h=2e-3):
    """Positions of a pad after some time, and its world."""
    world = kt.World(timestep=h)
    pad = world.add(loaded(text), q=q)
    world.step(round(seconds / h), control={pad.name: [control]})
    assert not world.report().unsolved
    return pad.q, world


def test_a_pad_hangs_from_the_ceiling():
    held, _ = moved(CEILING, 1.0, 0.5)
    np.testing.assert_allclose(held[:3], [0, 0, 1], rtol=0, atol=1e-6)
    dropped, _ = moved(CEILING, 0.4, 0.2)  # 16 N carry it no longer, and act only while it touches
    assert dropped[2] < 1 - 0.185
    mj_model = mujoco.MjModel.from_xml_string(CEILING)
    data = mujoco.MjData(mj_model)
    data.ctrl[:] = 1.0
    mujoco.mj_step(mj_model, data, 250)
    assert data.qpos[2] == pytest.approx(1.0, abs=1e-3)


def test_it_lets_go():
    """Also when it sleeps: its own force keeps it awake."""
    _, world = moved(CEILING, 1.0, 1.0)
    pad = next(iter(world))
    world.step(100, control={pad: [0.0]})
    assert world[pad].q[2] < 1 - 0.185


@pytest.mark.parametrize(("control", "sticks"), [(1.0, True), (0.5, False)])
def test_friction_by_adhesion(control, sticks):
    """On a wall, a pad slides where ``mu F < m g``; then with what is left."""
    text = CEILING.replace('size="1 1 .1" pos="0 0 1.2"', 'size=".1 1 9" pos=".2 0 0"')
    text = text.replace('gain="40"', 'gain="60"').replace(
        'size=".1 .1 .1"', 'size=".1 .1 .1" friction=".5"'
    )
    at, world = moved(text, control, 0.2)
    a = 0.0 if sticks else 9.81 - 0.5 * 60 * control / 2
    assert at[0] == pytest.approx(0.0, abs=1e-6)
    assert world.qd[5] == pytest.approx(-a * 0.2, rel=1e-3, abs=1e-9)
    assert at[2] == pytest.approx(1 - a * 0.2**2 / 2, rel=1e-3)


def test_doors_agree():
    model = loaded(CEILING)
    q = model.posture("qpos0").q
    held, _ = moved(CEILING, 0.4, 0.1, h=1e-3)
    contact = TimeStepping(Scene(model), flight=False)
    found = kt.simulate(model, q, duration=0.1, dt=1e-3, contact=contact, controls=[0.4])
    np.testing.assert_allclose(found.q[-1], held, rtol=0, atol=1e-9)
    many = kt.rollout(
        model, np.tile(q, (2, 1)), steps=100, dt=1e-3, contact=contact, controls=[0.4]
    )
    np.testing.assert_allclose(many.q[-1][1], held, rtol=0, atol=1e-9)
    worlds = kt.World(timestep=1e-3)
    pad = worlds.add(model)
    batch = worlds.batch(2)
    batch.step(100, control={pad.name: [0.4]})
    np.testing.assert_allclose(batch.q[0], held, rtol=0, atol=1e-12)
    ball = loaded(CEILING.replace('type="box" size=".1 .1 .1"', 'type="sphere" size=".1"'))
    with pytest.raises(ModelError, match=r"actuator 'stick' of .* which adheres"):
        SoftContact(Scene(ball, pairs="base"), stiffness=1e6, damping=0.5)
    smooth = TimeStepping(Scene(ball, pairs="base"), relaxation=0.1)
    with pytest.raises(ModelError, match="bodies that adhere"):
        kt.rollout(ball, q, steps=2, dt=1e-3, contact=smooth)
    free = kt.driving_force(model, q, np.zeros(6), [1.0])
    assert not np.any(free)  # joints feel nothing but by contacts


@pytest.mark.parametrize("suffix", [".toml", ".json", ".xml", ".urdf"])
def test_files_keep_adhesion(tmp_path, suffix):
    file = tmp_path / f"pad{suffix}"
    model = loaded(CEILING)
    kt.save(model, file)
    (again,) = kt.load(file).actuators
    assert (again.kind, again.frame, again.gain[0]) == ("adhesion", "pad", 40.0)


def test_what_cannot_adhere():
    builder = kt.ModelBuilder("m").body("a", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1))
    with pytest.raises(ModelError, match="adheres: its frame must be the name of a body"):
        builder.frame("f", on="a").actuator("stick", frame="f", adhesion=True).build()
