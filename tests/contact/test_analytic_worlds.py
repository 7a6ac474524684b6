"""The engine of rigid contact against motions that textbooks solve, with the shapes themselves."""

from typing import Any

import numpy as np
import pytest
from support.contact_scenes import leaning, moved_to, symmetry_axes
from support.only_motion import OnlyMotion

import kinetree as kt
from kinetree.contact.engine.engine import Engine
from kinetree.contact.scene import Scene, with_ground
from kinetree.model.geometry import Box, Cylinder, Ellipsoid, Geometry, Sphere
from kinetree.spatial import Inertia
from kinetree.spatial.rotation import rotation_exp

G = 9.81


def body(shape, inertia, at=(0, 0, 0), normal=(0, 0, 1)):
    """A free body with one shape above the ground."""
    m = kt.ModelBuilder("body").body("body", joint=kt.Free(), inertia=inertia).build()
    return with_ground(m.replace(geometry=(Geometry(1, shape, moved_to(at), name="body"),)), normal)


def principal(mass, moments):
    return Inertia.from_mass_center(mass, np.zeros(3), np.diag(moments))


def turned(axis, angle):
    return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * np.array(axis, dtype=float))])


def run(m, q, qd, h, duration, every=1, tau: Any = 0.0, **scene):
    """Configurations, velocities and energies; energy does not rise, nothing penetrates.

    Penetration is measured at the end of steps, where curved motion leaves a little.
    """
    engine = Engine(m, Scene(m, **scene), tolerance=1e-10)
    motion = OnlyMotion(engine)
    steps = round(duration / h / every)
    qs, qds, worst = [np.asarray(q, float)], [np.asarray(qd, float)], 0.0
    for _ in range(steps):
        s = motion.step(qs[-1], qds[-1], h, tau, count=every)
        qs.append(s.q)
        qds.append(s.qd)
        worst = max(worst, s.residuals[3])
    assert worst < 1e-4 * engine.size
    q, qd = np.array(qs), np.array(qds)
    energy = np.array(
        [kt.kinetic_energy(m, a, b) + kt.potential_energy(m, a) for a, b in zip(q, qd, strict=True)]
    )
    if not np.any(tau):
        assert np.all(np.diff(energy) < 1e-9 * np.abs(energy).max())
    return q, qd, energy


def speeds(m, q, qd):
    """Angular and linear velocities of the body along the axes of the world."""
    return np.array(
        [kt.velocity(m, a, b, "body", frame="aligned") for a, b in zip(q, qd, strict=True)]
    )


# --- Blocks --------------------------------------------------------------------------------------

SLOPE = 0.3  # [rad], about y: down is towards +x
DOWN = np.array([np.cos(SLOPE), 0, -np.sin(SLOPE)])
UP = np.array([np.sin(SLOPE), 0, np.cos(SLOPE)])


@pytest.mark.covers("RBDA 11.3", "RBDA 11.5", by=Engine)
@pytest.mark.parametrize(("friction", "share"), [(0.0, 1.0), (0.1, None), (0.32, 0.0)])
def test_a_block_slides_down_a_slope(friction, share):
    m = body(Box((0.2, 0.2, 0.1)), kt.shapes.box(0.2, 0.2, 0.1, mass=1.5), normal=UP)
    q0 = np.concatenate([0.05 * UP, turned((0, 1, 0), SLOPE)])
    q, qd, _ = run(m, q0, np.zeros(6), 2e-3, 0.4, 20, friction=friction)
    share = 1 - friction / np.tan(SLOPE) if share is None else share
    t = np.linspace(0, 0.4, len(q))
    a = G * np.sin(SLOPE) * share
    assert np.allclose(speeds(m, q, qd)[:, 3:], np.outer(a * t, DOWN), rtol=0, atol=1e-9)
    assert np.allclose(q[:, :3], q0[:3] + np.outer(a * t**2 / 2, DOWN), rtol=0, atol=1e-9)


def test_a_pushed_block_topples_where_its_weight_no_longer_holds_it():
    """Force at the top edge: it topples about the far edge where F h > m g b / 2, not before."""
    b, h, mass = 0.2, 0.4, 2.0
    m = body(Box((b, b, h)), kt.shapes.box(b, b, h, mass=mass))
    q0 = np.array([0, 0, h / 2, 1, 0, 0, 0])
    limit = mass * G * b / 2 / h
    for share, topples in ((0.999, False), (1.01, True)):
        F = share * limit
        tau = np.array([0, F * h / 2, 0, F, 0, 0])  # at the top, in coordinates of the body
        q, qd, _ = run(m, q0, np.zeros(6), 1e-3, 0.02, tau=tau, friction=0.9)
        if not topples:
            assert np.abs(q - q0).max() < 1e-9
            continue
        I = mass * (b * b + h * h) * (1 / 12 + 1 / 4)  # about the edge
        alpha = (F * h - mass * G * b / 2) / I
        assert qd[-1, 1] == pytest.approx(alpha * 0.02, rel=2e-2)


def test_a_standing_block_on_a_slope_topples_past_its_corner():
    for slope, topples in ((0.45, False), (0.48, True)):  # arctan(1 / 2) = 0.4636
        up = np.array([np.sin(slope), 0, np.cos(slope)])
        m = body(Box((0.1, 0.1, 0.2)), kt.shapes.box(0.1, 0.1, 0.2, mass=1.0), normal=up)
        q0 = np.concatenate([0.1 * up, turned((0, 1, 0), slope)])
        q, _, _ = run(m, q0, np.zeros(6), 2e-3, 0.2, 10, friction=1.0)
        assert (np.abs(q[-1] - q0).max() > 1e-3) == topples
        assert topples or np.abs(q - q0).max() < 1e-9


# --- Spheres, wheels and discs -------------------------------------------------------------------


@pytest.mark.parametrize("friction", [0.05, 0.5])
def test_a_sphere_on_a_slope_rolls_or_slips(friction):
    r = 0.1
    m = body(Sphere(r), kt.shapes.sphere(r, mass=2.0), normal=UP)
    q0 = np.concatenate([r * UP, [1, 0, 0, 0]])
    q, qd, _ = run(m, q0, np.zeros(6), 2e-3, 0.4, 20, friction=friction)
    t = np.linspace(0, 0.4, len(q))
    rolls = friction > 2 / 7 * np.tan(SLOPE)
    a = G * (np.sin(SLOPE) * 5 / 7 if rolls else np.sin(SLOPE) - friction * np.cos(SLOPE))
    turn = a / r if rolls else 5 / 2 * friction * G * np.cos(SLOPE) / r
    v = speeds(m, q, qd)
    assert np.allclose(v[:, 3:], np.outer(a * t, DOWN), rtol=0, atol=1e-8)
    assert np.allclose(v[:, 1], turn * t, rtol=0, atol=1e-7)


@pytest.mark.parametrize("shape", [Cylinder(0.3, 0.1), Sphere(0.3)])
def test_a_wheel_rolls_without_drag(shape):
    """Straight on: less than 1e-4 of its speed in a second, in steps of 2 ms."""
    r, speed = 0.3, 2.0
    m = body(shape, principal(3.0, [0.1, 0.1, 0.15]))
    q0 = np.concatenate([[0, 0, r], turned((1, 0, 0), np.pi / 2)])
    qd0 = np.array([0, 0, -speed / r, speed, 0, 0])
    q, qd, energy = run(m, q0, qd0, 2e-3, 2.0, 100, friction=0.8)
    v = speeds(m, q, qd)
    assert abs(v[-1, 3] / speed - 1) < 2e-4
    assert np.abs(energy / energy[0] - 1).max() < 4e-4
    assert abs(q[-1, 0] - 2 * speed) < 1e-3
    assert np.abs(q[:, 1]).max() < 1e-9


def test_eulers_disc_keeps_its_energy():
    """Steady rolling at a small tilt, centre at rest: less than 1 % in 3 s, in steps of 1 ms."""
    mass, a, tilt = 0.4, 0.0375, 0.25
    I1, I3 = mass * a**2 / 4, mass * a**2 / 2
    thick = 2e-3  # all of it on the side that does not touch
    m = body(Cylinder(a, thick), principal(mass, [I1, I1, I3]), (0, 0, thick / 2))
    c, s = np.cos(tilt), np.sin(tilt)
    rate = np.sqrt(mass * G * a * c / (I1 * s * c))  # where the spin is zero: the centre rests
    q0, qd0 = leaning((0, 0, a * s), tilt, rate, 0.0, np.zeros(3))
    q, _, energy = run(m, q0, qd0, 1e-3, 3.0, 50, friction=0.8)
    assert np.abs(energy / energy[0] - 1).max() < 1e-2
    axis = symmetry_axes(m, q)
    assert np.abs(axis[:, 2] - c).max() < 0.02
    assert np.abs(q[:, :2]).max() < 0.1 * a


def test_a_leaning_disc_rolls_in_a_circle():
    mass, a, tilt, rate, thick = 1.0, 0.2, 1.2, 4.0, 0.01
    I1, I3 = mass * a**2 / 4, mass * a**2 / 2
    m = body(Cylinder(a, thick), principal(mass, [I1, I1, I3]), (0, 0, thick / 2))
    c, s = np.cos(tilt), np.sin(tilt)
    spin = (I1 * rate**2 * s * c - mass * G * a * c) / ((I3 + mass * a**2) * rate * s)
    q0, qd0 = leaning((0, 0, a * s), tilt, rate, spin, np.array([-spin * a, 0, 0]))
    q, _, _ = run(m, q0, qd0, 1e-3, 1.0, 10, friction=0.8)
    t = np.linspace(0, 1.0, len(q))
    radius = -spin * a / rate
    exact = radius * np.array([np.sin(rate * t), 1 - np.cos(rate * t)]).T
    assert np.abs(q[:, :2] - exact).max() < 2e-3 * radius


@pytest.mark.parametrize("friction", [0.0, 2.0])
def test_a_top_precesses(friction):
    """A top with a round tip: on a smooth plane its mass centre rests, on a rough one it rolls.

    The moment of the force m (g up - rate² (its distance from the axis)) about the mass centre
    turns the angular momentum about the vertical.
    """
    mass, l, r, I1, I3, rate, tilt = 0.5, 0.08, 5e-3, 1.5e-3, 2e-3, 6.0, 0.5
    m = body(Sphere(r), principal(mass, [I1, I1, I3]), (0, 0, -l))
    c, s = np.cos(tilt), np.sin(tilt)
    if friction == 0:
        spin = (mass * G * l + I1 * rate**2 * c) / (I3 * rate)
        speed = 0.0
    else:
        moment = mass * G * l + mass * (l * c + r) * l * rate**2 + (I1 - I3) * rate**2 * c
        own = moment / (rate * (I3 + mass * (l * c + r) * r))
        spin = own + rate * c
        speed = (l * rate - r * own) * s
    q0, qd0 = leaning((0, 0, l * c + r), tilt, rate, spin, np.array([speed, 0, 0]))
    h = 1e-3
    q, _, energy = run(m, q0, qd0, h, 1.0, 10, friction=friction)
    angle = rate * np.linspace(0, 1.0, len(q))
    exact = s * np.array([np.sin(angle), -np.cos(angle)]).T
    # The first step does not know that the contact goes on from before, which makes it nod.
    assert np.abs(symmetry_axes(m, q)[:, :2] - exact).max() < 0.5 * h * rate
    assert np.abs(energy / energy[0] - 1).max() < 1e-4
    if friction == 0:
        assert np.abs(q[:, :2]).max() < 1e-8


def test_a_rattleback_reverses():
    """A half ellipsoid whose axes of inertia are turned against those of its surface.

    Spun against its sense it begins to rattle, stops, and turns the other way.
    """
    radii = np.array([0.2, 0.03, 0.02])
    c, s = np.cos(0.1), np.sin(0.1)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    mass = 1.0
    I = R @ np.diag([2e-4, 1.6e-3, 1.7e-3]) @ R.T
    m = body(Ellipsoid(tuple(radii)), Inertia.from_mass_center(mass, np.zeros(3), I), (0, 0, 0.01))
    q0 = np.array([0, 0, 0.01, 1, 0, 0, 0])
    found = {}
    for sense in (1.0, -1.0):
        qd0 = np.array([0.02, 0.0, sense * 4.0, 0, 0, 0])
        q, qd, energy = run(m, q0, qd0, 1e-3, 4.0, 20, friction=2.0)
        spin = speeds(m, q, qd)[:, 2]
        found[sense] = (sense * spin).min()
        assert np.abs(energy / energy[0] - 1).max() < 2e-2
    stubborn, willing = sorted(found.values())
    assert stubborn < -0.5
    assert willing > 0


# --- Impacts -------------------------------------------------------------------------------------


def test_newtons_cradle_passes_the_impact_on():
    """Balls on a wire, a little apart: the last one leaves with the speed of the first."""
    n, r, speed, apart = 5, 0.05, 1.0, 5e-3
    builder = kt.ModelBuilder("cradle")
    for k in range(n):
        builder.body(f"ball{k}", joint=kt.Prismatic("x"), inertia=kt.shapes.sphere(r, mass=0.3))
        builder.geometry(Sphere(r), on=f"ball{k}", name=f"ball{k}")
    m = builder.build()
    q0 = np.arange(n) * (2 * r + apart)
    qd0 = np.array([speed, *np.zeros(n - 1)])
    motion = OnlyMotion(Engine(m, Scene(m, restitution=1.0, friction=0.0)))
    s = motion.step(q0, qd0, 1e-3, count=40)
    assert np.allclose(s.qd, [0, 0, 0, 0, speed], rtol=0, atol=1e-9)
    assert s.q.sum() == pytest.approx(q0.sum() + 0.04 * speed, abs=1e-4)


def test_painleves_rod_jams():
    """A rod whose tip slides on rough ground, in a posture where no finite force fits.

    A normal force with its friction would turn the tip into the ground, faster than it lifts it: an
    impulse stops the tip at once, an impact without collision. It is the one that stops it.
    """
    mass, half, r, angle, friction, speed = 1.0, 0.5, 5e-3, np.arctan(2.0), 2.0, 1.0
    inertia = mass * half**2 / 3
    m = body(Sphere(r), principal(mass, [1e-4, inertia, inertia]), (-half, 0, 0))
    c, s = np.cos(angle), np.sin(angle)
    q0 = np.concatenate([[half * c, 0, half * s + r], turned((0, 1, 0), -angle)])
    arm = np.array([-half * c, -half * s - r])  # in the plane x-z, from the mass centre to the tip
    W = (
        np.eye(2) / mass
        + np.array([[arm[1] ** 2, -arm[0] * arm[1]], [-arm[0] * arm[1], arm[0] ** 2]]) / inertia
    )  # velocities of the tip by impulses there
    R = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])  # body to world
    qd0 = np.concatenate([np.zeros(3), R.T @ [-speed, 0, 0]])
    assert W[1] @ [friction, 1] < 0  # friction is towards +x: the paradox
    h = 1e-4
    q, qd, energy = run(m, q0, qd0, h, 3 * h, friction=friction)
    p = np.linalg.solve(W, [speed, 0.0])
    assert abs(p[0]) <= friction * p[1]
    v = speeds(m, q, qd)[-1]
    assert np.allclose(v[[3, 5]], np.array([-speed, 0.0]) + p / mass, rtol=0, atol=0.01 * speed)
    assert energy[-1] < energy[0]


def test_boxes_pressed_into_each_other_nearly_flat_do_not_sink():
    """Their least depth is along edges that cross, others in every step: a point is not enough."""
    world = kt.World()
    world.add_ground()
    for k in range(4):
        turn = rotation_exp(np.array([0.02, 0.01, 0.35 * k]))
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = turn, (0, 0, 0.085 + 0.175 * k)
        world.add(Box((0.16, 0.16, 0.16)), mass=4.0, name=f"box{k}", at=pose)
    world.add(Box((0.3, 0.3, 0.1)), mass=200.0, name="weight", at=(0, 0, 0.8))
    world.step(300)
    assert world.report().penetration < 5e-3  # in the step that the weight arrives in
    world.step()
    heights = [world[f"box{k}"].pose[2, 3] for k in range(4)]
    assert world.report().penetration < 1e-9
    assert np.all(np.diff(heights) > 0.1599)
