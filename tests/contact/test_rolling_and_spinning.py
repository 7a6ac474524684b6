"""Discs, tops, blocks that rock and wheels without a rim, against their textbook motions."""

import numpy as np
import pytest
from scipy.integrate import quad
from support.contact_scenes import G, leaning, moved_to, run, symmetry_axes

import kinetree as kt
from kinetree.contact import EventDriven, with_ground
from kinetree.model.geometry import Cylinder, Geometry, Sphere
from kinetree.spatial import Inertia

TILT = 0.5  # of an axis of symmetry against the vertical [rad]


def spinning(mass, I1, I3, geometry):
    """A free body with the axis of symmetry z."""
    inertia = Inertia.from_mass_center(mass, np.zeros(3), np.diag([I1, I1, I3]))
    m = kt.ModelBuilder("spinning").body("body", joint=kt.Free(), inertia=inertia).build()
    return with_ground(m.replace(geometry=(geometry,)))


def assert_precesses(found, m, rate, tilt):
    """The axis keeps its tilt and turns about the vertical at a rate."""
    axis, angle = symmetry_axes(m, found.q), rate * found.t
    exact = np.sin(tilt) * np.array([np.sin(angle), -np.cos(angle)]).T
    np.testing.assert_allclose(axis[:, 2], np.cos(tilt), rtol=0, atol=1e-6)
    np.testing.assert_allclose(axis[:, :2], exact, rtol=0, atol=1e-6)


@pytest.mark.covers("RBDA 11.5", by=EventDriven)
@pytest.mark.parametrize("friction", [0.0, 2.0])
def test_top_precesses_at_the_rate_of_its_equation(friction):
    """On a smooth plane about its mass centre, which rests; on a rough one about its tip."""
    mass, length, I1, I3, rate = 0.5, 0.08, 1.5e-3, 2e-3, 6.0
    tip = Geometry(1, Sphere(1e-12), moved_to((0, 0, -length)), name="tip")
    m = spinning(mass, I1, I3, tip)
    about = I1 if friction == 0 else I1 + mass * length**2
    spin = (mass * G * length + about * rate**2 * np.cos(TILT)) / (I3 * rate)
    arm = length * np.array([0, -np.sin(TILT), np.cos(TILT)])
    v = np.zeros(3) if friction == 0 else np.cross([0, 0, rate], arm)
    q, qd = leaning(arm + np.array([0, 0, 1e-12]), TILT, rate, spin, v)
    found = run(m, q, qd, friction=friction, duration=0.3, dt=2e-3, error=1e-6)
    assert set(found.contact.modes[:, 0]) == {"touches" if friction == 0 else "sticks"}
    assert_precesses(found, m, rate, TILT)
    np.testing.assert_allclose(found.contact.force[:, 0, 0], mass * G, rtol=1e-6)
    centre = found.q[-1, :2] - (0 if friction == 0 else symmetry_axes(m, found.q)[-1, :2] * length)
    np.testing.assert_allclose(centre, arm[:2] if friction == 0 else 0, rtol=0, atol=1e-6)


@pytest.mark.covers("RBDA 11.5", by=EventDriven)
def test_disc_rolls_in_a_circle():
    """A thin disc, leaning, whose centre and point of contact both move on circles."""
    mass, a, tilt, rate = 1.0, 0.2, 1.2, 4.0
    I1, I3 = mass * a**2 / 4, mass * a**2 / 2
    thick = 0.01  # all of it on the side that does not touch
    m = spinning(
        mass, I1, I3, Geometry(1, Cylinder(a, thick), moved_to((0, 0, thick / 2)), name="d")
    )
    c, s = np.cos(tilt), np.sin(tilt)
    spin = (I1 * rate**2 * s * c - mass * G * a * c) / ((I3 + mass * a**2) * rate * s)
    q, qd = leaning((0, 0, a * s), tilt, rate, spin, np.array([-spin * a, 0, 0]))
    found = run(m, q, qd, friction=0.8, duration=0.4, dt=5e-3)
    assert_precesses(found, m, rate, tilt)
    radius, angle = -spin * a / rate, rate * found.t
    exact = radius * np.array([np.sin(angle), 1 - np.cos(angle)]).T
    np.testing.assert_allclose(found.q[:, :2], exact, rtol=0, atol=1e-6)
    assert sorted(set(found.contact.modes[-1])) == ["apart", "sticks"]


def planar(points, inertia):
    """A body in the plane x-z with points that touch the ground."""
    m = kt.ModelBuilder("planar").body("x", joint=kt.Prismatic("x"), inertia=Inertia.zero())
    m = m.body("z", on="x", joint=kt.Prismatic("z"), inertia=Inertia.zero())
    m = m.body("body", on="z", joint=kt.Revolute("y"), inertia=inertia).build()
    shapes = [Geometry(3, Sphere(1e-12), moved_to(p), name=f"p{k}") for k, p in enumerate(points)]
    return with_ground(m.replace(geometry=shapes))


def test_block_rocks_as_housner_says_and_comes_to_rest():
    """Plastic impacts from one edge to the other, ever faster; there is no last one."""
    b, h, start = 0.2, 0.4, 0.05  # halves of width and height [m], tilt [rad]
    m = planar([(-b, 0, -h), (b, 0, -h)], kt.shapes.box(2 * b, 0.1, 2 * h, mass=1.0))
    centre = h * np.cos(start) + b * np.sin(start)
    found = run(m, np.array([0, centre + 1e-12, start]), friction=2.0, duration=1.1, dt=0.02)
    lands = [e for e in found.events if e.name.endswith("lands")]
    assert len(lands) > 10
    R, alpha = np.hypot(b, h), np.arctan2(b, h)

    def slowness(x):  # dt/dx where the tilt is start - x², smooth at the start
        drop = R * (np.cos(alpha - start) - np.cos(alpha - start + x * x))
        return 2 * x / np.sqrt(2 * G * drop / (4 / 3 * R * R)) if x > 0 else 0.0

    assert lands[0].t == pytest.approx(quad(slowness, 1e-9, np.sqrt(start))[0], abs=1e-6)
    for event in lands[:5]:
        ratio = event.qd_after[2] / event.qd[2]
        assert ratio == pytest.approx(1 - 1.5 * np.sin(alpha) ** 2, abs=1e-9)
    assert np.max(np.abs(found.qd[-1])) < 1e-12
    assert abs(found.q[-1, 1] - h) < 1e-10
    assert np.all(np.diff(found.energy) < 1e-7)


def test_wheel_of_flat_sides_rolls_in_a_train_of_impacts():
    """What a smooth wheel does without any: each side that lands takes its share of the speed."""
    n, R, mass = 6, 0.2, 1.0
    angles = 2 * np.pi * np.arange(n) / n
    corners = [(R * np.cos(x), 0, R * np.sin(x)) for x in angles]
    I = 0.3 * mass * R * R
    m = planar(
        [corners[k] for k in (4, 5, 0, 1)],
        Inertia.from_mass_center(mass, np.zeros(3), np.diag([I, I, I])),
    )
    apothem, w = R * np.cos(np.pi / n), 6.2
    q = np.array([0, apothem + 1e-12, 0.0])
    at = R * np.sin(np.pi / n)  # it turns about the corner ahead
    qd = np.array([w * apothem, w * at, w])
    found = run(m, q, qd, friction=5.0, duration=0.65, dt=0.01)
    lands = [e for e in found.events if e.name.endswith("lands")]
    assert len(lands) == 2
    for event in lands:
        share = (I + mass * R**2 * np.cos(2 * np.pi / n)) / (I + mass * R**2)
        assert event.qd_after[2] / event.qd[2] == pytest.approx(share, abs=1e-9)
