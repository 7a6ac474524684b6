"""Event-driven contact of polyhedra — RBDA §11.6: features that meet, and geometric loss."""

import numpy as np
import pytest
from support.contact_scenes import (
    BLOCK,
    G,
    derivatives,
    lifted,
    names,
    run,
    state,
    two_bodies,
    wedge_in,
)

import kinetree as kt
from kinetree.contact.contacts import bias, jacobian
from kinetree.contact.event_driven.features import Features
from kinetree.contact.event_driven.polyhedra import polyhedron
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.settings import EventDriven
from kinetree.errors import ModelError, PainleveError
from kinetree.model.geometry import Box, Cone, Geometry
from kinetree.spatial import Plucker

TOP = 0.1  # of a table 1 m wide


def on_box(body=BLOCK, edge=0.5, width=1.0):
    """A body on a table, a box whose border is at ``edge`` along x."""
    size = np.array([2 * edge, width, 2 * TOP])
    return body.replace(geometry=(*body.geometry, Geometry(0, Box(tuple(size)), name="table")))


# --- geometry -------------------------------------------------------------------------------------


def test_polyhedra_have_the_corners_faces_and_edges_of_their_shapes(tmp_path):
    box, wedge = polyhedron(Box((0.4, 0.3, 0.2))), polyhedron(wedge_in(tmp_path))
    for shape, corners, faces, edges in ((box, 8, 6, 12), (wedge, 6, 5, 9)):
        counts = len(shape.corner), len(shape.normal), len(shape.start)
        assert counts == (corners, faces, edges)
        assert np.max(shape.corner @ shape.normal.T - shape.offset) < 1e-12
        ends = shape.start + shape.along * shape.length[:, None]
        both = np.stack([shape.start, ends])[:, :, None] - shape.corner
        assert np.max(np.min(np.linalg.norm(both, axis=-1), axis=-1)) < 1e-12
        into = shape.start[:, None] + 0.5 * ends[:, None] - 0.5 * shape.start[:, None]
        inside = (into + 1e-3 * shape.inward) @ shape.normal.T - shape.offset
        on = np.sum(np.abs(inside) < 1e-9, axis=-1)
        assert np.all(on == 1)  # in the face, no longer on the edge
        assert np.max(inside) < 1e-12


@pytest.mark.parametrize("kind", ["boxes", "mesh"])
def test_gaps_of_features_have_the_rates_that_their_rows_say(rng, tmp_path, kind):
    other = Box((0.5, 0.6, 0.3)) if kind == "boxes" else wedge_in(tmp_path)
    model = two_bodies(Box((1.0, 0.8, 0.4)), other)
    scene = Features(Scene(model))
    q, qd = state(model, rng, np.array([0, 0, 0.2]))
    scene.follow(model, q, qd, 0.05, 1.0)
    assert {key[1] for key in scene.keys if key} >= {0, 2}
    at = scene._rows
    _, J, acceleration = scene.candidate_terms(model, q, qd)

    def along(function):
        return derivatives(lambda t: function(model.integrate(q, t * qd)))

    first, second = along(lambda q: scene._follow(model, q).gap)
    np.testing.assert_allclose((J @ qd)[at, 0], first, atol=1e-9)
    np.testing.assert_allclose(acceleration[at, 0], second, atol=1e-6)
    rates, _ = along(lambda q: scene.candidate_velocities(model, q, qd)[1][at])
    np.testing.assert_allclose(acceleration[at], rates, atol=1e-8)
    zeta = scene.candidate_velocities(model, q, qd)[1]
    np.testing.assert_allclose(zeta[at], (J @ qd)[at], atol=1e-12)


def test_rows_where_boxes_touch_are_those_of_the_contacts_that_are_found(rng):
    """A box lies across another: corners, and edges that cross, as clipping has them."""
    model = two_bodies(Box((1.0, 0.2, 0.2)), Box((0.3, 1.0, 0.2)))
    q = model.neutral()
    q[7:10] = 0.02, 0.03, 0.2
    scene, qd = Scene(model), rng.normal(size=model.nv)
    found, features = scene.contacts(q, 1e-9), Features(scene)
    features.follow(model, q, 0 * qd, 0.0, 1e-9)
    gap, point, _ = features.candidate_positions(model, q)
    at = np.flatnonzero(gap < 1e-9)
    assert len(at) == found.size == 4
    _, J, _ = features.candidate_terms(model, q, qd)
    J0 = jacobian(model, q, found)
    for k in at:
        j = int(np.argmin(np.linalg.norm(found.point - point[k], axis=1)))
        np.testing.assert_allclose(point[k], found.point[j], atol=1e-12)
        np.testing.assert_allclose(J[k], J0[j], atol=1e-12)
    still = np.concatenate([qd[:6], qd[:6]])  # both move as one: the normal is that of both
    np.testing.assert_allclose(
        features.candidate_terms(model, q, still)[2][at, 0], bias(model, q, still, found)[:, 0],
        atol=1e-12,
    )  # fmt: skip


# --- geometric loss: RBDA Fig. 11.6 ---------------------------------------------------------------


@pytest.mark.covers("RBDA 11.6", by=Features)
@pytest.mark.parametrize("friction", [0.0, 0.1])
def test_block_slides_off_a_table(friction):
    """Front corners pass the border where x(t) says; it tips where its load comes to the border."""
    m, x0, v, half = on_box(), 0.25, 2.0, np.array([0.2, 0.15, 0.1])
    q = lifted(m, TOP + half[2])
    q[0] = x0
    found = run(
        m, q, np.array([0, 0, 0, v, 0, 0]), friction=friction, duration=0.16, dt=0.02, error=1e-5
    )
    what = [(event.name.split(" ", 1)[1], event.t) for event in found.events]

    def reaches(x):
        a = friction * G
        return 2 * (x - x0) / (v + np.sqrt(v * v - 2 * a * (x - x0)))

    lost = [t for name, t in what if name == "slides off"]
    assert len(lost) == 2
    np.testing.assert_allclose(lost, reaches(0.5 - half[0]), atol=3e-12)
    opens = next(t for name, t in what if name == "opens")
    assert abs(opens - reaches(0.5 - friction * half[2])) < 1e-8
    before = found.t < opens
    assert np.max(np.abs(found.qd[before][:, :3])) < 1e-12
    np.testing.assert_allclose(found.contact.force[before].sum(axis=1)[:, 0], 2 * G, rtol=1e-10)
    assert found.qd[-1, 1] > 1e-3  # it topples over the border


def test_forces_stay_where_they_act_while_features_change():
    """Load of a block beyond the border: corners behind, edges across the border before."""
    m = on_box()
    q = lifted(m, TOP + 0.1)
    q[0] = 0.35  # the front is 5 cm beyond the border
    found = run(m, q, friction=0.5, duration=0.02, dt=0.01)
    assert not found.events
    force, place = found.contact.force[-1], found.contact.place[-1]
    bears = force[:, 0] > 0
    x = place[bears, 0, 0]
    np.testing.assert_allclose(np.sort(x), [0.15, 0.15, 0.5, 0.5], atol=1e-12)
    np.testing.assert_allclose(force[bears, 0] @ x, 2 * G * 0.35, rtol=1e-10)  # moments
    np.testing.assert_allclose(place[bears, 1], np.tile([0, 0, 1.0], (4, 1)), atol=1e-12)


@pytest.mark.parametrize("speed", [1.0, 2.0])
def test_edge_slides_past_the_end_of_an_edge(speed):
    """A beam across a narrow wall slides along until the wall's end: edges part at their end."""
    beam = kt.ModelBuilder("beam").body(
        "beam", joint=kt.Translation(), inertia=kt.shapes.box(1.0, 0.1, 0.1, mass=1.0)
    )
    m = beam.build().replace(geometry=(Geometry(1, Box((1.0, 0.1, 0.1)), name="beam"),))
    wall = Geometry(0, Box((0.1, 1.0, 0.2)), name="wall")
    m = m.replace(geometry=(*m.geometry, wall))
    q, qd = np.array([0, 0.45 - 0.075 * speed, 0.15]), np.array([0, speed, 0])
    found = run(m, q, qd, duration=0.08 + 0.12 / speed, dt=0.02)
    lost = [event.t for event in found.events if "slides off" in event.name]
    np.testing.assert_allclose(lost[:2], 0.075, atol=3e-12)  # front edge of the beam
    np.testing.assert_allclose(lost[2:], 0.075 + 0.1 / speed, atol=3e-12)  # rear edge
    assert len(lost) == 6  # two edges and two corners
    fall = found.t[-1] - (0.075 + 0.1 / speed)
    assert abs(found.q[-1, 2] - (0.15 - G * fall**2 / 2)) < 1e-10


# --- impacts, stacks, meshes ----------------------------------------------------------------------


def test_boxes_land_on_each_other_and_stay():
    """A box falls flat onto one on the ground, turned: eight corners of an octagon at once."""
    builder = kt.ModelBuilder("stack")
    for name in ("low", "high"):
        inertia = kt.shapes.box(0.4, 0.4, 0.2, mass=1.0)
        builder.body(name, on="base", joint=kt.Free(), inertia=inertia)
        builder.geometry(Box((0.4, 0.4, 0.2)), on=name, name=name)
    m = with_ground(builder.build())
    q = m.neutral()
    q[2], q[9] = 0.1, 0.3 + 0.02
    q = m.integrate(q, np.array([0] * 8 + [0.4, 0.01, 0, 0]))
    pairs = [("ground", "low"), ("low", "high")]
    found = run(m, q, friction=0.6, pairs=pairs, duration=0.08, dt=0.02)
    assert np.max(np.diff(found.energy)) < 1e-12
    assert np.max(np.abs(found.qd[-1])) < 1e-9
    np.testing.assert_allclose(found.events[0].t, np.sqrt(2 * 0.02 / G), atol=1e-11)
    np.testing.assert_allclose(found.q[-1][[2, 9]], [0.1, 0.3], atol=1e-11)
    force = dict(zip(found.contact.names, found.contact.force[-1, :, 0], strict=True))
    of = {pair: sum(f for name, f in force.items() if pair in name) for pair in ("ground", "low/")}
    np.testing.assert_allclose([of["ground"], of["low/"]], [2 * G, G], rtol=1e-9)
    sensed = found.contact.place[-1][[f > 0 for f in force.values()], 0]
    assert np.max(np.abs(sensed[:, :2])) < 0.21


def test_equal_boxes_drop_flat_on_each_other():
    """Corner on corner, edge on edge: one contact at each place, and no paradox of choice."""
    m = on_box(edge=0.2, width=0.3)
    found = run(m, lifted(m, 0.5), restitution=0.5, friction=0.3, duration=0.3, dt=0.02)
    t = np.sqrt(2 * 0.3 / G)
    bounce = [event for event in found.events if event.t < 2 * t]
    np.testing.assert_allclose([event.t for event in bounce], t, atol=1e-11)
    assert set(names(found)[: len(bounce)]) == {"bounces"}
    assert len(bounce) == 4
    assert abs(bounce[0].qd_after[5] - 0.5 * G * t) < 1e-11


def test_hull_of_a_mesh_lands_on_a_box(tmp_path):
    m = kt.ModelBuilder("wedge").body(
        "wedge", joint=kt.Free(), inertia=kt.shapes.box(0.3, 0.3, 0.3, mass=1.0)
    )
    at = Plucker(np.eye(3), np.array([-0.13, -0.15, -0.15]))
    m = m.build().replace(geometry=(Geometry(1, wedge_in(tmp_path), at, name="wedge"),))
    m = on_box(m)
    found = run(m, lifted(m, 0.5), friction=0.5, duration=0.4, dt=0.02)
    assert abs(found.q[-1, 2] - 0.25) < 1e-11
    assert abs(found.contact.force[-1, :, 0].sum() - G) < 1e-9
    assert abs(found.events[0].t - np.sqrt(2 * 0.25 / G)) < 1e-11


@pytest.mark.parametrize("floor", ["plane", "box"])
def test_rocking_block_loses_what_housner_says(floor):
    """Onto the other edge: the rate falls by 1 - 3/2 sin² a, with a between side and diagonal."""
    width, height = 0.2, 0.4
    inertia = kt.shapes.box(width, 0.3, height, mass=1.0)
    m = kt.ModelBuilder("block").body("block", joint=kt.Planar("y"), inertia=inertia).build()
    m = m.replace(geometry=(Geometry(1, Box((width, 0.3, height)), name="block"),))
    m = with_ground(m) if floor == "plane" else on_box(m)
    radius, slope, tilt = np.hypot(width, height) / 2, np.arctan2(width, height), 0.02
    up = 0.0 if floor == "plane" else TOP
    at = kt.poses(m, m.neutral())[0, :3, 3]
    q = m.neutral()
    angle = next(k for k in range(3) if abs(kt.poses(m, np.eye(3)[k])[0, 0, 0] - 1) > 0.1)
    q[angle] = tilt
    R = kt.poses(m, q)[0, :3, :3]
    lowest = min((R @ [x * width / 2, 0, z * height / 2])[2] for x in (1, -1) for z in (1, -1))
    rise = next(k for k in range(3) if abs(kt.poses(m, np.eye(3)[k])[0, 2, 3] - at[2]) > 0.5)
    q[rise] += up - lowest
    found = run(m, q, friction=1.0, duration=0.14, dt=0.01, error=1e-5)
    event = next(event for event in found.events if "lands" in event.name)
    ratio = 1 - 1.5 * np.sin(slope) ** 2
    assert abs(event.qd_after[angle] / event.qd[angle] - ratio) < 1e-9
    fall = 9.81 * radius * (np.cos(slope - tilt) - np.cos(slope))  # of the mass centre
    rate = np.sqrt(2 * fall / (4 / 3 * radius**2))
    assert abs(abs(event.qd[angle]) - rate) < 1e-5
    kinetic = [kt.kinetic_energy(m, event.q, v) for v in (event.qd, event.qd_after)]
    assert abs(kinetic[1] / kinetic[0] - ratio**2) < 1e-9


def test_beam_pushed_like_chalk_over_a_box_is_painleves_paradox():
    """Too much friction at an edge that slides ahead of the mass centre: named, not a crash."""
    builder = kt.ModelBuilder("beam")
    builder.body("x", joint=kt.Prismatic("x"), inertia=kt.Inertia.zero())
    builder.body("z", on="x", joint=kt.Prismatic("z"), inertia=kt.Inertia.zero())
    inertia = kt.shapes.box(0.02, 0.3, 1.0, mass=1.0)
    builder.body("beam", on="z", joint=kt.Revolute("y"), inertia=inertia)
    builder.geometry(Box((0.02, 0.3, 1.0)), on="beam", name="beam")
    m = on_box(builder.build(), edge=2.0)
    lean, caught = np.pi / 2 - np.arctan(2), []
    foot = np.sin(lean) * 0.01 + np.cos(lean) * 0.5
    contact = EventDriven(Scene(m, [("table", "beam")], friction=2.0))
    for speed in (1.0, -1.0):
        try:
            kt.simulate(
                m, [0, TOP + foot, lean], [speed, 0, 0], duration=0.01, dt=0.005, contact=contact
            )
        except PainleveError as error:
            caught.append(error)
    assert len(caught) == 1  # pushed, not dragged
    assert caught[0].kind in ("inconsistent", "indeterminate")
    assert caught[0].resistance < 0
    assert caught[0].friction > caught[0].critical_friction


def test_shapes_that_are_no_polyhedra_are_named():
    m = on_box(BLOCK.replace(geometry=(Geometry(1, Cone(0.1, 0.2), name="cone"),)))
    with pytest.raises(
        ModelError, match=r"polyhedra .*'table/cone', which is Box and Cone.*TimeStep"
    ):
        kt.simulate(m, m.neutral(), duration=0.1, contact=EventDriven(Scene(m)))
