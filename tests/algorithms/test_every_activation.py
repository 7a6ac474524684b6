"""Every activation of an actuator, found by ``ACTIVATIONS``: formula, compiled steps, files."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.algorithms.actuators import AFTER
from kinetree.contact.engine import activations
from kinetree.errors import InteropError
from kinetree.model.actuator import ACTIVATIONS, Activation
from kinetree.quantities.actuators import activation_after

NAMES = [name for name in ACTIVATIONS if name]


def with_actuator(name):
    """A hinge with a motor that has the activation."""
    b = kt.ModelBuilder("m").body("b", joint=kt.Revolute("z"), inertia=kt.shapes.sphere(1, mass=2))
    times = {"time_constant": 0.3 if ACTIVATIONS[name].has_time_constant else 0.0}
    times["deactivation_time"] = 0.5 if ACTIVATIONS[name].falls else 0.0
    b.actuator("a", joint="b_joint", activation=name, **times, control=(-2, 2))
    return b.build()


def within(name, values):
    """Controls and activations that it can have: those of muscles are from 0 to 1."""
    return np.abs(np.tanh(values)) if ACTIVATIONS[name].falls else values


def test_all_have_formulas_and_numbers_in_compiled_steps():
    assert set(AFTER) == set(NAMES)
    assert set(activations.MOVING) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_half_a_time_twice_is_the_time_and_the_start_is_the_start(name, rng):
    """A flow: what a held control does in two steps is what it does in one."""
    after = AFTER[name]
    times = 0.3, 0.5
    for u, x, h in rng.normal(size=(20, 3)):
        (u, x), h = within(name, np.array([u, x])), abs(h)
        half = after(u, after(u, x, times, h / 2), times, h / 2)
        assert after(u, x, times, h) == pytest.approx(half, rel=1e-13, abs=1e-13)
        assert after(u, x, times, 0.0) == pytest.approx(x, abs=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_steps_follow_the_formula(name):
    m = with_actuator(name)
    world = kt.World()
    world.add(m, name="m")
    world.step(50, control=[1.5])
    expected = activation_after(m, [1.5], [0.0], world.time)
    np.testing.assert_allclose(world.activation, expected, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_files_return_it_and_mujoco_reads_it(name, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    m, known = with_actuator(name), ACTIVATIONS[name].dyntype
    for ending in ("json", "toml", "xml")[: 3 if known else 2]:
        path = str(tmp_path / f"m.{ending}")
        kt.save(m, path)
        (a,) = kt.load(path).actuators
        assert (a.activation, a.time_constant) == (name, m.actuators[0].time_constant)
        assert a.deactivation_time == m.actuators[0].deactivation_time
    if not known:
        return
    theirs = mujoco.MjModel.from_xml_path(path)
    data = mujoco.MjData(theirs)
    data.ctrl[:] = 1.5
    for _ in range(50):
        mujoco.mj_step(theirs, data)
    expected = activation_after(m, [1.5], [0.0], 50 * theirs.opt.timestep)
    close = 1e-2 if ACTIVATIONS[name].falls else 1e-10  # MuJoCo takes Euler's steps
    np.testing.assert_allclose(data.act, expected, rtol=close)


def test_mjcf_refuses_an_activation_that_mujoco_does_not_have(tmp_path, monkeypatch):
    monkeypatch.setitem(ACTIVATIONS, "late", Activation(()))
    with pytest.raises(InteropError, match="has the activation 'late', which MJCF does not have"):
        kt.save(with_actuator("late"), str(tmp_path / "m.xml"))
