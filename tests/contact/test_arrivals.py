"""Features that arrive within a step, stops that contact reaches, and reports that measure."""

import numpy as np
import pytest
from numpy.random import default_rng

import kinetree as kt
from kinetree.model.geometry import Box, Sphere


def tumbling_plates(seed):
    """A plate that tumbles onto another."""
    rng = default_rng(seed)
    world = kt.World()
    world.add_ground()
    plate = Box((0.16, 0.12, 0.01))
    world.add(plate, density=1000, at=(0, 0, 0.005), name="a")
    b = world.add(plate, density=1000, at=(0, 0, 0.4), name="b", spin=rng.uniform(-15, 15, 3))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    pose = np.eye(4)
    pose[:3, :3] = turn * np.sign(np.linalg.det(turn))
    pose[:3, 3] = 0.0, 0.02, 0.4
    b.pose = pose
    return world


@pytest.mark.parametrize("seed", [3, 13, 101, 102])
def test_penetration_of_a_report_is_that_of_the_state_reached(seed):
    world = tumbling_plates(seed)
    for _ in range(250):
        world.step()
        gaps = world.scene.contacts(world.q).gap
        deep = -gaps.min(initial=0.0)
        assert world.report().penetration == pytest.approx(deep, rel=1e-3, abs=2e-9)
        assert deep < 1e-4  # 3.6 mm before geometry was looked at again


def test_reports_cover_all_steps_since_the_last_one():
    world = tumbling_plates(7)
    world.step(100)
    world.step(50)
    first = world.report()
    assert first.steps == 150
    assert first is world.report()
    assert first.can_be_trusted
    assert first.first_unsolved is None
    world.step(3)
    assert world.report().steps == 3


def energy(world):
    kinetic = kt.kinetic_energy(world.model, world.q, world.qd)
    return float(kinetic + kt.potential_energy(world.model, world.q))


def test_ledger_of_energy_adds_up():
    world = tumbling_plates(5)
    before = energy(world)
    world.step(200)
    ledger = world.report().energy
    assert ledger.contact < 0
    assert ledger.gain <= 1e-9
    change = ledger.work + ledger.contact - ledger.taken + ledger.gain
    assert energy(world) - before == pytest.approx(change, rel=2e-2)


def box_on_a_ball(mass=1e6, **options):
    """A thousand tons on a ball of a gram, by default, which nobody solves."""
    world = kt.World(**options)
    world.add_ground()
    world.add(Sphere(0.05), mass=1e-3, at=(0, 0, 0.05), name="ball")
    world.add(Box((0.5, 0.5, 0.5)), mass=mass, at=(0.01, 0, 0.36))
    return world


def test_a_ton_on_a_ball_of_a_gram_is_solved():
    world = box_on_a_ball(1e3)
    world.step(100)
    report = world.report()
    assert report.can_be_trusted
    assert report.residuals.velocity <= 1e-5
    assert report.energy.gain <= 1e-9


def test_steps_that_cannot_be_trusted_are_counted_and_named():
    world = box_on_a_ball()
    with pytest.warns(kt.SimulationWarning, match=r"step \d+ of 0.002 s of 'world' cannot be"):
        world.step(100)
    report = world.report()
    assert report.unsolved > 0
    assert not report.can_be_trusted
    assert report.first_unsolved is not None
    assert 0 < report.first_unsolved <= world.time
    assert "not solved, the first at t = " in repr(report)


def test_strict_worlds_raise_and_stay_where_they_were():
    world = box_on_a_ball(strict=True)
    with pytest.raises(kt.SimulationError, match=r"cannot be trusted.*Take shorter steps"):
        world.step(100)
    assert world.time == 0.0
    assert world["ball"].position[2] == 0.05
    assert world.copy().strict


def test_strict_worlds_stay_step_by_step_with_their_memory():
    world = box_on_a_ball(strict=True)
    with pytest.warns(kt.SimulationWarning, match="cannot be trusted"):
        (free := box_on_a_ball()).step(100)
    for _ in range(round(free.report().first_unsolved / free.timestep) - 1):
        world.step()
    state = world.state
    with pytest.raises(kt.SimulationError, match="cannot be trusted"):
        world.step()
    assert world.time == state.time > 0
    np.testing.assert_array_equal(world.q, state.q)
    np.testing.assert_array_equal(world.qd, state.qd)
    assert world.state.memory.keys() == state.memory.keys()
    for name, x in world.state.memory.items():
        np.testing.assert_array_equal(x, state.memory[name], err_msg=name)
    with pytest.raises(kt.SimulationError, match="cannot be trusted"):
        world.step()
    assert world.time == state.time


def test_stops_that_contact_forces_reach_hold():
    builder = kt.ModelBuilder("lever")
    builder.body(
        "lever", joint=kt.Revolute("y"), inertia=kt.shapes.box(0.4, 0.04, 0.04, mass=0.2),
        limits=kt.Limits(lower=-0.02, upper=0.02),
    )  # fmt: skip
    builder.geometry(Box((0.4, 0.04, 0.04)), on="lever", name="bar")
    world = kt.World()
    world.add(builder.build(), at=(0, 0, 0.5))
    world.add(Sphere(0.03), mass=5.0, at=(0.18, 0, 0.5504), velocity=(0, 0, -8.0))
    for _ in range(40):
        world.step()
        assert world.report().penetration < 1e-5
