"""Event-driven contact — RBDA §11.4, §11.5, Table 11.1: phases, and located events between them."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import BALL, TABLE, G, ladder, lifted, names, particle, run
from support.mechanisms import arm as jointed_arm

import kinetree as kt
from kinetree.contact.event_driven.modes import centre
from kinetree.contact.event_driven.stepper import ContactEvents
from kinetree.contact.event_driven.transitions import Transitions
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.settings import EventDriven
from kinetree.errors import ModelError, ShapeError, SimulationError, UnknownNameError
from kinetree.model.geometry import Geometry, Plane, Sphere
from kinetree.samples.linkages import four_bar
from kinetree.spatial import Plucker

# --- bouncing -------------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.4", "RBDA 11.5", "RBDA Table 11.1", by=(EventDriven, Transitions))
def test_bouncing_ball_has_exact_event_times_and_comes_to_rest():
    e = 0.8
    found = run(BALL, lifted(BALL, 1.1), restitution=e, duration=4.2, dt=0.02)
    first = np.sqrt(2 / G)
    exact = first * (1 + 2 * np.cumsum(e ** np.arange(100)) - 2)
    t = np.array([event.t for event in found.events])
    assert np.max(np.abs(t[:20] - exact[:20])) < 1e-10
    assert abs(t[9] - exact[9]) < 1e-11  # the tenth
    assert len(t) > 40
    assert names(found)[:-1] == ["bounces"] * (len(t) - 1)
    assert names(found)[-1] == "stops bouncing"
    assert 0 < exact[-1] - t[-1] < 1e-3  # all bounces that were left out
    assert found.contact.modes[-1].tolist() == ["touches"]
    assert abs(found.contact.force[-1, 0, 0] - G) < 1e-12
    assert abs(found.q[-1, 2] - 0.1) < 1e-12
    energy = np.array([event.energy for event in found.events])
    assert np.all(energy < 0)
    assert abs(energy.sum() + G) < 1e-9
    assert (
        found.contact.worst.problems == 1
    )  # only where it comes to rest is there anything to solve


@pytest.mark.covers("RBDA 11.4", by=Transitions)
def test_plastic_impact_goes_straight_into_contact():
    found = run(BALL, lifted(BALL, 0.6), duration=0.5, dt=0.02)
    assert names(found) == ["lands"]
    assert abs(found.events[0].t - np.sqrt(2 * 0.5 / G)) < 1e-11
    modes = found.contact.modes[:, 0]
    assert set(modes[found.t < found.events[0].t]) == {"apart"}
    assert set(modes[found.t > found.events[0].t]) == {"touches"}


def test_elastic_ball_keeps_its_energy():
    found = run(BALL, lifted(BALL, 0.6), restitution=1.0, duration=2.0, dt=0.02)
    assert len(found.events) == 3
    assert np.ptp(found.energy) < 1e-12 * abs(found.energy[0])


# --- leaving --------------------------------------------------------------------------------------


@pytest.mark.covers("RBDA Table 11.1", by=(EventDriven, ContactEvents))
def test_particle_leaves_a_smooth_sphere_at_two_thirds_of_its_height():
    m = particle()
    m = m.replace(geometry=(Geometry(0, Sphere(0.99), name="dome"), *m.geometry))
    q = np.array([np.sin(0.1), 0, np.cos(0.1)])
    found = run(m, q, duration=1.2, dt=0.02, integrator="dopri5", error=1e-9)
    assert names(found) == ["opens"]
    assert abs(found.events[0].q[2] - 2 / 3 * np.cos(0.1)) < 2e-8
    assert found.contact.worst.problems == 2  # at the start, and at the event
    radius = np.linalg.norm(found.q, axis=1)
    before = found.t < found.events[0].t
    assert np.max(np.abs(radius[before] - 1)) < 1e-14
    assert np.all(radius[~before] > 1)


@pytest.mark.covers("RBDA Table 11.1", by=EventDriven)
def test_ladder_leaves_the_wall_at_two_thirds_of_its_height():
    m, q, length = ladder(0.2)
    pairs = [("floor", "foot"), ("wall", "top"), ("floor", "top")]
    options = {"duration": 0.9, "dt": 0.02, "rtol": 1e-9, "atol": 1e-11, "pairs": pairs}
    found = run(m, q, error=1e-8, **options)
    assert names(found) == ["opens", "lands"]
    height = found.events[0].q[1]
    assert abs(height - 2 / 3 * length / 2 * np.cos(0.2)) < 1e-8
    assert found.contact.modes[-1].tolist() == ["touches", "apart", "touches"]


# --- several contacts -----------------------------------------------------------------------------


@pytest.mark.covers("RBDA Table 11.1", by=EventDriven)
def test_tumbling_box_comes_to_rest_and_never_gains_energy():
    q, qd = lifted(TABLE, 0.3, (0.3, 0.2, 0.1)), np.array([0.5, 0.2, 0.3, 0.4, 0, 0])
    found = run(TABLE, q, qd, friction=0.4, duration=0.6, dt=0.02)
    assert np.all(np.diff(found.energy) < 1e-7)
    assert sorted(found.contact.modes[-1]) == ["apart"] * 4 + ["sticks"] * 4
    assert np.max(np.abs(found.qd[-1])) < 1e-12
    assert abs(found.contact.force[-1, :, 0].sum() - 2 * G) < 1e-10
    assert abs(found.q[-1, 2] - 0.1) < 1e-12


@pytest.mark.covers("RBDA Table 11.1", by=(Transitions, centre))
def test_box_shifts_its_load_between_its_corners_until_it_tips_over_an_edge():
    """Four corners share the load in many ways: none opens before all ways are exhausted."""

    def tilts(model, t, q, qd):
        return np.array([4.0 * t, 8.0 * t, 0, 0, 0, 0])

    found = run(TABLE, lifted(TABLE, 0.1), duration=0.52, dt=0.02, forces=tilts, error=1e-5)
    event, *others = found.events
    tips = 2 * G * 0.2 / 8.0
    assert event.name.endswith("opens")
    assert abs(event.t - tips) < 1e-9
    assert all(e.t == event.t for e in others)
    assert sorted(found.contact.modes[-1]) == ["apart"] * 6 + ["touches"] * 2
    force, before = found.contact.force[:, :, 0], found.t < tips
    assert np.all(np.sort(force[before])[:, 4:] > 1e-3)
    np.testing.assert_allclose(force[before].sum(axis=1), 2 * G, rtol=1e-12)
    assert found.contact.worst.problems == 2  # at the start, and at the event


# --- loops, other events --------------------------------------------------------------------------


def test_one_ball_of_a_cradle_that_touches_goes_out_when_one_comes_in():
    builder = kt.ModelBuilder("cradle")
    for k in range(3):
        builder.body(
            f"ball{k}", joint=kt.Prismatic("x"), at=(0.1 * k, 0, 0),
            inertia=kt.shapes.sphere(0.05, mass=0.5),
        )  # fmt: skip
        builder.geometry(Sphere(0.05), on=f"ball{k}", name=f"ball{k}")
    model = builder.build()
    pairs = [("ball0", "ball1"), ("ball1", "ball2")]
    scene = Scene(model, pairs=pairs, friction=0.0, restitution=1.0)
    contact = EventDriven(scene, order="sequential")
    motion = kt.simulate(model, [-0.1, 0, 0], [1.0, 0, 0], duration=0.2, dt=0.01, contact=contact)
    assert_close(motion.qd[-1], [0.0, 0.0, 1.0], ulps=64)
    assert_close(motion.q[-1], [0.0, 0.0, 0.1], ulps=2**20)


def test_linkage_lands_and_keeps_its_loop_closed():
    m = four_bar()
    ball = Geometry(2, Sphere(0.02), name="knee")
    height = kt.poses(m, m.neutral())[1, 2, 3]
    plane = Geometry(0, Plane(), Plucker(np.eye(3), np.array([0, 0, height - 0.1])), name="floor")
    m = m.replace(geometry=(ball, plane))
    found = run(m, m.neutral(), duration=0.8, dt=0.02, pairs=[("floor", "knee")], restitution=0.5)
    assert found.events
    assert names(found)[0] == "bounces"
    event = found.events[0]
    assert np.max(np.abs(found.loop_error)) < 1e-12
    assert event.energy < 0
    assert abs(event.qd_after[0] / event.qd[0] + 0.5) < 1e-9  # one freedom: all turns back


def test_kick_into_the_ground_and_start_that_closes():
    kick = kt.Event(
        lambda t, q, qd: t - 0.1,
        action=lambda t, q, qd: (q, qd - [0, 0, 0, 0, 0, 1.0]),
        name="kick",
    )
    found = run(BALL, lifted(BALL, 0.1), restitution=0.5, duration=0.15, dt=0.02, events=kick)
    assert [e.name for e in found.events] == ["kick", "ground/body:0 hits"]
    assert abs(found.events[1].qd_after[5] - 0.5) < 1e-12
    falling = np.array([0, 0, 0, 0, 0, -2.0])
    found = run(BALL, lifted(BALL, 0.1), falling, restitution=0.5, duration=0.1, dt=0.02)
    assert names(found) == ["hits"]
    assert found.events[0].t == 0
    assert abs(found.q[-1, 2] - (0.1 + 1.0 * 0.1 - G * 0.005)) < 1e-12


# --- refusals -------------------------------------------------------------------------------------


def test_what_event_driven_contact_cannot_do():
    scene, q = Scene(BALL), lifted(BALL, 0.5)
    contact = EventDriven(scene)

    def simulate(q=q, m=BALL, **options):
        kt.simulate(m, q, duration=0.1, dt=0.01, contact=contact, **options)

    with pytest.raises(ShapeError, match=r"a batch of shape .2,.*one motion.*TimeStepping"):
        simulate(q=np.stack([q, q]))
    with pytest.raises(UnknownNameError, match="'implicit_midpoint': contacts are equations"):
        simulate(integrator="implicit_midpoint")
    with pytest.raises(SimulationError, match=r"'ground/body:0' 0.05 m inside each other"):
        simulate(q=lifted(BALL, 0.05))
    with pytest.raises(ModelError, match="the scene was made for model 'body'"):
        simulate(m=TABLE)
    arm = jointed_arm(kt.Limits(-1.0, 1.0), friction=0.5)
    arm = with_ground(
        arm.replace(geometry=(Geometry(2, Sphere(0.1), name="hand"),)), point=(0, 0, -5)
    )
    for option, message in (
        ({"limits": "rigid"}, "rigid limits"),
        ({"friction": "exact"}, "exact friction"),
    ):
        with pytest.raises(ModelError, match=f"cannot be combined with {message}"):
            kt.simulate(arm, [0.1, 0.1], duration=0.1, contact=EventDriven(Scene(arm)), **option)


def test_settings_are_checked():
    with pytest.raises(TypeError, match=r"takes a kinetree.contact.Scene, got Model"):
        EventDriven(BALL)
    with pytest.raises(UnknownNameError, match="no law of restitution 'hertz'"):
        EventDriven(Scene(BALL), law="hertz")
    with pytest.raises(ModelError, match="order must be"):
        EventDriven(Scene(BALL), order="random")
    with pytest.raises(ModelError, match="rest_velocity must be positive, got 0"):
        EventDriven(Scene(BALL), rest_velocity=0)


def test_events_have_the_names_and_times_of_their_contacts():
    """Two balls on rails: each in its own time, and where friction is enough it stops sliding."""
    builder = kt.ModelBuilder("balls")
    for name in ("a", "b"):
        shape = kt.shapes.sphere(0.1, mass=1.0)
        builder.body(f"rail {name}", on="base", joint=kt.Prismatic("x"), inertia=shape)
        builder.body(name, on=f"rail {name}", joint=kt.Prismatic("z"), inertia=shape)
        builder.geometry(Sphere(0.1), on=name, name=name)
    m = with_ground(builder.build())
    heights, e = np.array([0.3, 0.2]), 0.5
    q, qd = np.array([0, 0.1 + heights[0], 5.0, 0.1 + heights[1]]), np.array([0.02, 0, 1.0, 0])
    pairs = [("ground", "a", 0.5, 0.0), ("ground", "b", 0.1, e)]  # friction, restitution
    found = kt.simulate(m, q, qd, duration=0.45, dt=0.01, contact=EventDriven(Scene(m, pairs)))
    lands = np.sqrt(2 * heights / G)
    expected = [(lands[1], "ground/b:0 bounces"), (lands[0], "ground/a:0 lands"),
                (lands[1] * (1 + 2 * e), "ground/b:0 bounces")]  # fmt: skip
    assert [event.name for event in found.events] == [name for _, name in expected]
    assert_close([event.t for event in found.events], [t for t, _ in expected], ulps=1e6)
    assert found.contact.modes[-1].tolist() == ["sticks", "apart"]
    speed = G * lands  # the rails are pulled by friction: half the normal impulse of each landing
    hits = 1.0 - 0.1 * (1 + e) * speed[1] * (1 + e) / 2
    assert_close(found.qd[-1][[0, 2]], [0.0, hits], scale=1, ulps=1e6)
