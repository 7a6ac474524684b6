"""Event-driven contact with friction: sticking, slipping, rolling, and Painlevé's paradox."""

from functools import cache

import numpy as np
import pytest
from support.contact_scenes import BALL, BLOCK, G, free_body, ladder, lifted, names, on_slope, run

import kinetree as kt
from kinetree.contact.scene import with_ground
from kinetree.contact.settings import EventDriven
from kinetree.errors import PainleveError, SimulationError
from kinetree.model.geometry import Geometry, Sphere
from kinetree.spatial import Inertia, Plucker

SLOPE = 0.4
ON_SLOPE = on_slope(BLOCK, 0.1, SLOPE)


# --- friction -------------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.5", by=EventDriven)
@pytest.mark.parametrize("beyond", [-1e-6, 1e-6])
def test_block_on_a_slope_at_the_friction_limit(beyond):
    mu, T = np.tan(SLOPE) / (1 + beyond), 0.5
    m, q = ON_SLOPE
    found = run(m, q, friction=mu, duration=T, dt=0.05)
    a = G * (np.sin(SLOPE) - mu * np.cos(SLOPE))
    moved = np.linalg.norm(found.q[-1, :3] - found.q[0, :3])
    assert set(found.contact.modes[-1]) == {"apart", "sticks" if beyond < 0 else "slides"}
    assert abs(moved - max(a, 0) * T * T / 2) < (1e-15 if beyond < 0 else 1e-12)
    assert abs(np.linalg.norm(found.qd[-1]) - max(a, 0) * T) < 1e-11
    assert found.events == ()


def test_block_slides_up_a_slope_stops_and_stays_or_returns():
    v, (m, q) = 1.0, ON_SLOPE
    for mu, ends in ((0.5, "sticks"), (0.3, "slides back")):
        found = run(m, q, np.array([0, 0, 0, -v, 0, 0]), friction=mu, duration=0.3, dt=0.02)
        stop = v / (G * (np.sin(SLOPE) + mu * np.cos(SLOPE)))
        assert names(found)[0] == ends
        assert abs(found.events[0].t - stop) < 1e-10
        a = 0.0 if ends == "sticks" else G * (np.sin(SLOPE) - mu * np.cos(SLOPE))
        assert abs(found.qd[-1, 3] - a * (0.3 - stop)) < 1e-9


@cache
def pushed_block():
    """A block of 2 kg on the ground that moves along x and z."""
    m = kt.ModelBuilder("block").body("x", joint=kt.Prismatic("x"), inertia=Inertia.zero())
    inertia = kt.shapes.sphere(0.1, mass=2.0)
    m = m.body("block", on="x", joint=kt.Prismatic("z"), inertia=inertia).build()
    return with_ground(m.replace(geometry=(Geometry(2, Sphere(0.1), name="block"),)))


def test_growing_force_makes_a_block_slip():
    """Stick, the event of slipping, and sliding, under a force that grows with time."""
    m = pushed_block()

    def grows(model, t, q, qd):
        return np.array([20.0 * t, 0.0])

    mu, T = 0.4, 1.0
    found = run(m, np.array([0, 0.1]), friction=mu, duration=T, dt=0.02, forces=grows)
    slip = mu * 2 * G / 20
    assert names(found) == ["slips"]
    assert abs(found.events[0].t - slip) < 1e-8
    assert abs(found.qd[-1, 0] - 20 * (T - slip) ** 2 / 4) < 1e-8


def test_controller_that_jumps_is_felt_at_once():
    m = pushed_block()

    def pushes(t, q, qd):
        return np.array([0.0 if t < 0.0999 else 10.0, 0.0])

    found = run(m, np.array([0, 0.1]), friction=0.4, duration=0.3, dt=0.02, controller=pushes)
    a = (10 - 0.4 * 2 * G) / 2
    assert abs(found.qd[-1, 0] - a * 0.2) < 1e-10


def test_forces_that_switch_without_end_get_advice():
    def switches(model, t, q, qd):
        return np.array([100.0 if qd[0] <= 0 else -100.0, 0.0])

    words = r"'ground/block:0 slides back' happens faster and faster.*smoothly.*TimeStepping"
    start = np.array([0, 0.1]), np.array([1e-4, 0])
    with pytest.raises(SimulationError, match=words):
        run(pushed_block(), *start, friction=0.4, duration=0.1, dt=0.02, forces=switches)


@pytest.mark.covers("RBDA 11.5", by=EventDriven)
def test_ball_rolls_down_a_slope():
    ball, angle = free_body(Sphere(0.1), kt.shapes.sphere(0.1, mass=1.0)), 0.3
    m, q = on_slope(ball, 0.1, angle)
    options = {"duration": 0.5, "dt": 0.05, "rtol": 1e-10, "atol": 1e-11}
    found = run(m, q, friction=0.5, **options)
    assert abs(np.linalg.norm(found.qd[-1, 3:]) - 5 / 7 * G * np.sin(angle) * 0.5) < 1e-8
    smooth = run(m, q, friction=0.0, **options)
    assert abs(np.linalg.norm(smooth.qd[-1, 3:]) - G * np.sin(angle) * 0.5) < 1e-10
    assert found.events == smooth.events == ()


@pytest.mark.covers("RBDA 11.5", by=EventDriven)
def test_billiard_ball_slides_until_it_rolls():
    """A ball with spin about all axes: straight friction, and a parabola until it rolls."""
    mu, v0, w0 = 0.2, np.array([1.0, 0.3, 0]), np.array([3.0, 5.0, 4.0])
    qd = np.concatenate([w0, v0])
    options = {"duration": 0.3, "dt": 0.02, "rtol": 1e-10, "atol": 1e-11}
    found = run(BALL, lifted(BALL, 0.1), qd, friction=mu, error=1e-8, **options)
    slip = v0 + np.cross(w0, [0, 0, -0.1])
    rolls = 2 / 7 * np.linalg.norm(slip) / (mu * G)
    assert "sticks" in names(found)
    assert abs(found.events[-1].t - rolls) < 1e-8
    v = kt.poses(BALL, found.q[-1])[0, :3, :3] @ found.qd[-1, 3:]
    assert np.max(np.abs(v - (v0 - 2 / 7 * slip))) < 1e-8


# --- Painlevé ---


@pytest.mark.covers("RBDA 11.5", by=PainleveError)
def test_painleve_is_reported_with_the_time():
    m, q, _ = ladder(np.pi / 2 - np.arctan(2.0))
    qd = np.array([2.0, 0, 0])  # the foot slides away from the wall, behind it the rod
    for adapt in ({}, {"rtol": 1e-8}):
        with pytest.raises(PainleveError, match=r"at t = 0 s: Painlevé's paradox.*'floor/foot:0'"):
            run(m, q, qd, friction=1.5, pairs=[("floor", "foot")], duration=0.1, dt=0.02, **adapt)
    less = run(m, q, qd, friction=0.5, pairs=[("floor", "foot")], duration=0.1, dt=0.01)
    assert less.contact.modes[0].tolist() == ["slides"]


def test_friction_locks_a_rod_that_is_pushed():
    """A rod hinged to a heavy carriage that lifts it: steeper and steeper, until it jams."""
    M, mu, length = 1e7, 1.25, 1.0
    builder = kt.ModelBuilder("chalk")
    builder.body("x", joint=kt.Prismatic("x"), inertia=Inertia.zero())
    builder.body("z", on="x", joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(0.1, mass=M))
    rod = kt.shapes.box(length, 0.01, 0.01, mass=1.0, at=(length / 2, 0, 0))
    builder.body("rod", on="z", joint=kt.Revolute("y"), inertia=rod)
    tip = Geometry(3, Sphere(1e-9), Plucker(np.eye(3), np.array([length, 0, 0])), name="tip")
    m = with_ground(builder.build().replace(geometry=(tip,)))

    def support(model, t, q, qd):
        return np.array([0.0, (M * G), 0.0])

    theta, v, lift = 0.6, 1.0, 0.3
    q = np.array([0.0, length * np.sin(theta), theta])
    qd = np.array([v, lift, lift / np.cos(theta)])
    with pytest.raises(PainleveError, match=r"at t = 0\.\d+ s: .*no motion") as caught:
        run(m, q, qd, friction=mu, duration=1.0, dt=0.01, forces=support)
    assert abs(caught.value.critical_friction - mu) < 1e-6
    assert caught.value.acceleration < 0
