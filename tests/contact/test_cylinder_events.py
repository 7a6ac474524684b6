"""Event-driven contact of cylinders with boxes: standing, rolling, tipping, across edges."""

from collections import Counter

import numpy as np
import pytest
from support.contact_scenes import G, derivatives, free_body, lifted, names, run, state, two_bodies

import kinetree as kt
from kinetree.contact.event_driven.features import Features
from kinetree.contact.event_driven.polyhedra import RIM_CORNERS, polyhedron
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.settings import TimeStepping
from kinetree.model.geometry import Box, Cylinder, Geometry

R, L, TOP, EDGE = 0.1, 0.3, 0.1, 0.5
CAN = free_body(Cylinder(R, L), kt.shapes.cylinder(R, L, mass=2.0))
TABLE = CAN.replace(
    geometry=(*CAN.geometry, Geometry(0, Box((2 * EDGE, 1.0, 2 * TOP)), name="table"))
)


def lying(model=TABLE, x=0.0):
    """On its side on the table, the axis along y."""
    q = lifted(model, TOP + R, (np.pi / 2, 0, 0))
    q[0] = x
    return q


def tilted(angle, model=TABLE, top=TOP):
    """On the lowest point of a rim."""
    return lifted(model, top + L / 2 * np.cos(angle) + R * np.sin(angle), (angle, 0, 0))


def moving(q, spin=(0, 0, 0), velocity=(0, 0, 0)):
    """Velocities of the free joint for those in the base."""
    T = kt.poses(TABLE, q)[0, :3, :3].T
    return np.concatenate([T @ spin, T @ velocity])


# --- geometry -------------------------------------------------------------------------------------


def near_a_corner(rng):
    """A box and a cylinder beside one of its corners or edges, in either order."""
    shapes, first = (Box((1.0, 0.8, 0.4)), Cylinder(0.2, 0.5)), rng.random() < 0.5
    model = two_bodies(*(shapes if first else shapes[::-1]))
    q, qd = state(model, rng, np.zeros(3))
    axes = kt.poses(model, q)[0 if first else 1, :3, :3]
    inside = np.where(rng.random(3) < 0.7, 1, rng.random(3)) * rng.choice([-1, 1], 3)
    apart = axes @ (1.2 * inside * [0.5, 0.4, 0.2])
    q[model.q_slice[2]][:3] = q[:3] + (apart if first else -apart)
    return model, q, qd


def touching(scene, model, q, m):
    """Positions at which the m-th feature touches, and how far it is beyond its borders."""
    q = q.copy()
    for _ in range(20):
        found = scene._follow(model, q)
        q[model.q_slice[2]][:3] -= found.normal[m] * found.gap[m]
    return q, found.beyond[m] if abs(found.gap[m]) < 1e-9 else np.inf


def check_second_order(scene, model, q, qd, m):
    """Rows and biases of a gap that is zero and at rest are its first and second derivatives."""
    row = scene._rows[m]
    J = scene.candidate_terms(model, q, qd)[1][row]
    v = qd - J[0] * (J[0] @ qd) / (J[0] @ J[0])
    acceleration = scene.candidate_terms(model, q, v)[2][row]
    slope, bend = derivatives(lambda t: scene._follow(model, model.integrate(q, t * v)).gap[m])
    assert abs(slope) < 1e-8
    np.testing.assert_allclose(acceleration[0], bend, atol=1e-6)


def test_gaps_of_all_kinds_have_the_rates_that_their_rows_say():
    rng, seen = np.random.default_rng(5), Counter()
    for _ in range(40):
        model, q, qd = near_a_corner(rng)
        scene = Features(Scene(model))
        scene.follow(model, q, qd, 0.05, 1.0)
        first = scene.candidates.size - len(scene.keys)
        for m, row in enumerate(scene._rows):
            kind = scene.keys[row - first][1]
            if seen[kind] < 3:
                there, beyond = touching(scene, model, q, m)
                if beyond < 0.1:
                    check_second_order(scene, model, there, qd, m)
                    seen[kind] += 1
    assert set(seen) == set(range(9))


def test_the_polygon_of_a_cylinder_is_inside_and_touches_its_rims():
    shape = polyhedron(Cylinder(R, L))
    assert len(shape.corner) == 2 * RIM_CORNERS
    np.testing.assert_allclose(np.hypot(*shape.corner[:, :2].T), R, rtol=1e-15)
    assert np.max(shape.corner @ shape.normal.T - shape.offset) < 1e-15
    ends = shape.start + shape.along * shape.length[:, None]
    np.testing.assert_allclose(np.hypot(*ends[:-1, :2].T), R, rtol=1e-15)
    np.testing.assert_allclose(ends[-1], [0, 0, L / 2])  # the axis, a rod
    assert shape.radius.tolist() == [0.0] * 2 * RIM_CORNERS + [R]


# --- rest and rolling -----------------------------------------------------------------------------


@pytest.mark.parametrize("q", [lifted(TABLE, TOP + L / 2), lying()], ids=["stands", "lies"])
def test_rest(q):
    found = run(TABLE, q, friction=0.5, duration=0.2, dt=0.02)
    np.testing.assert_allclose(found.q[-1], q, atol=1e-12)
    assert not found.events
    np.testing.assert_allclose(found.contact.force[..., 0].sum(axis=-1), 2.0 * G, rtol=1e-9)


def test_it_slides_then_rolls():
    """Friction turns it until the side is at rest: after v / 3 mu g, with two thirds of v."""
    v, mu = 0.5, 0.2
    q = lying(x=-0.2)
    found = run(
        TABLE, q, moving(q, velocity=(v, 0, 0)), friction=mu, duration=0.3, dt=0.005, error=1e-5
    )
    stop = v / (3 * mu * G)
    assert {event.name.split(" ", 1)[1] for event in found.events} == {"sticks"}
    np.testing.assert_allclose([event.t for event in found.events], stop, atol=2e-8)
    x = -0.2 + v * stop - mu * G * stop**2 / 2 + 2 / 3 * v * (0.3 - stop)
    np.testing.assert_allclose(found.q[-1][:3], [x, 0, TOP + R], atol=1e-7)


def test_it_rolls_around_the_border():
    """About the edge as about a hinge, until nothing presses it on: cos = (4 + 3 v² / g R) / 7.

    Friction of 10 holds it until shortly before: the slip is a thousandth of the angle.
    """
    q, v = lying(x=EDGE), 0.1
    qd = moving(q, spin=(0, v / R, 0), velocity=(v, 0, 0))
    found = run(TABLE, q, qd, friction=10.0, duration=0.4, dt=0.01, error=1e-5)
    slips, leaves = (
        next(event for event in found.events if event.name.endswith(what))
        for what in ("slips", "opens")
    )
    for event in (slips, leaves):
        arm = event.q[:3] - [EDGE, 0, TOP]
        assert abs(np.hypot(*arm[[0, 2]]) - R) < 1e-9
    np.testing.assert_allclose(arm[2] / R, (4 + 3 * v * v / (G * R)) / 7, atol=2e-3)
    cos = (slips.q[2] - TOP) / R
    spin = np.sqrt((v / R) ** 2 + 4 / 3 * G / R * (1 - cos))
    np.testing.assert_allclose(np.linalg.norm(slips.qd[:3]), spin, rtol=1e-6)


def test_a_plank_rocks_on_a_cylinder():
    """Edges of a box on the side of a cylinder; small swings as of a plank on a log."""
    h, width, length = 0.02, 0.1, 0.6
    inertia = kt.shapes.box(length, width, 2 * h, mass=1.0)
    plank = free_body(Box((length, width, 2 * h)), inertia)
    log = Geometry(0, Cylinder(R, L), kt.Plucker.from_pose(_along_y()), name="log")
    model = plank.replace(geometry=(*plank.geometry, log))
    swing = np.sqrt(G * (R - h) / (length**2 / 12 + 4 * h * h / 12 + h * h))
    angle = 0.01
    q = _rolled(model, angle, h)
    found = run(model, q, friction=1e3, duration=np.pi / swing, dt=0.01, error=1e-5)
    np.testing.assert_allclose(found.q[-1], _rolled(model, -angle, h), atol=2e-5)


def _along_y():
    T = np.eye(4)
    T[:3, :3] = [[1, 0, 0], [0, 0, 1], [0, -1, 0]]
    return T


def _rolled(model, angle, h):
    """The plank after it has rolled on the log by an angle."""
    up = np.array([np.sin(angle), 0, np.cos(angle)])
    along = np.array([np.cos(angle), 0, -np.sin(angle)])
    q = model.neutral()
    q[:3] = (R + h) * up - R * angle * along
    return model.integrate(q, np.array([0, angle, 0, 0, 0, 0]))


# --- tipping --------------------------------------------------------------------------------------


def height(angle):
    """Of the centre over the lowest point of the rim."""
    return L / 2 * np.cos(angle) + R * np.sin(angle)


def test_it_falls_without_friction():
    """The centre falls straight down; the speed is that of the energy that is lost."""
    start = 0.7
    found = run(TABLE, tilted(start), friction=0.0, duration=0.15, dt=0.005, error=1e-5)
    np.testing.assert_allclose(found.q[:, :2], 0, atol=1e-9)
    q, qd = found.q[-1], found.qd[-1]
    angle = 2 * np.arctan2(q[4], q[3])
    np.testing.assert_allclose(q[2], TOP + height(angle), atol=1e-10)
    slope = -L / 2 * np.sin(angle) + R * np.cos(angle)
    inertia = (3 * R**2 + L**2) / 12
    speed = np.sqrt(2 * G * (height(start) - height(angle)) / (inertia + slope**2))
    np.testing.assert_allclose(qd[0], speed, rtol=1e-5)
    assert angle > start


@pytest.mark.parametrize("spin", [(0, 0, 0), (0.5, 1.0, 3.0)])
def test_a_box_is_a_plane_where_it_has_no_borders(spin):
    """Tilted, rolling on its rim: as on the ground, whose contact has a closed form."""
    ground = with_ground(CAN)
    options = {"friction": 0.6, "duration": 0.12, "dt": 0.005, "error": 1e-4}
    q = tilted(0.5)
    qd = moving(q, spin=spin)
    box = run(TABLE, q, qd, **options)
    q = tilted(0.5, ground, 0.0)
    plane = run(ground, q, qd, **options)
    np.testing.assert_allclose(box.q[-1] - [0, 0, TOP, 0, 0, 0, 0], plane.q[-1], atol=2e-7)


def test_it_comes_to_stand():
    """Falling back from a small tilt: the end lands flat, and it rocks on or stands."""
    found = run(TABLE, tilted(0.1), friction=0.8, duration=0.16, dt=0.01, error=1e-4)
    assert "closes" in names(found) or "lands" in names(found)
    assert found.q[-1][2] <= TOP + L / 2 + 0.02


@pytest.mark.parametrize("case", ["border", "falls over", "overhangs"])
def test_as_by_small_steps(case):
    """The same motion by ``TimeStepping``, which finds contacts in another way."""
    if case == "border":
        q = lying(x=EDGE)
        qd, duration = moving(q, spin=(0, 1, 0), velocity=(0.1, 0, 0)), 0.45
    elif case == "falls over":
        q = tilted(0.8)
        qd, duration = np.zeros(6), 0.4
    else:
        q = lifted(TABLE, TOP + L / 2)
        q[0] = EDGE + 0.03
        qd, duration = np.zeros(6), 0.3
    found = run(TABLE, q, qd, friction=0.4, duration=duration, dt=0.01, error=1e-4)
    steps = TimeStepping(Scene(TABLE, friction=0.4))
    other = kt.simulate(TABLE, q, qd, duration=duration, dt=2e-4, contact=steps)
    np.testing.assert_allclose(found.q[-1], other.q[-1], atol=3e-3)
