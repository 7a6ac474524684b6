"""Time stepping against closed forms: rolling, bouncing, sliding, stops, dry friction, loops."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.engine.stepper import EngineStepper
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.scheme.constraints import JointRows, StepConstraints, coupled_rows, is_short
from kinetree.contact.settings import TimeStepping
from kinetree.contact.stepping.step import ContactStep
from kinetree.model import JointDynamics, Limits, geometry

pytestmark = pytest.mark.usefixtures("specialised")  # the step that is unrolled for a scene

G = 9.81


def _ball():
    builder = kt.ModelBuilder("ball").body(
        "ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=2.0)
    )
    builder.geometry(geometry.Sphere(0.1), on="ball", name="ball")
    return with_ground(builder.build())


def _at(model, height, **more):
    q = model.neutral()
    q[2] = height
    return q


@pytest.fixture(scope="module")
def ball():
    return _ball()


@pytest.fixture(scope="module")
def rough(ball):
    return TimeStepping(Scene(ball, friction=0.3), tolerance=1e-12)


# --- one ball ------------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.3", "RBDA 11.5", by=ContactStep)
def test_a_ball_that_slides_ends_up_rolling_at_five_sevenths_of_its_speed(ball, rough):
    q, qd = _at(ball, 0.1), np.array([0, 0, 0, 1.4, 0, 0])
    motion = kt.simulate(ball, q, qd, duration=1.0, contact=rough, store_every=50)
    v = kt.velocity(ball, motion.q, motion.qd, "ball", frame="aligned")
    assert np.abs(v[-1] - [0, 10.0, 0, 1.0, 0, 0]).max() < 1e-12
    slides = motion.t < 2 / 7 * 1.4 / (0.3 * G) - 1e-9
    assert np.allclose(v[slides, 3], 1.4 - 0.3 * G * motion.t[slides], rtol=0, atol=1e-12)
    assert np.abs(motion.q[:, 2] - 0.1).max() < 1e-15
    assert motion.report.contact.velocity < 1e-13
    assert abs(motion.report.contact.contact_work + 0.5 * 2.0 * 1.4**2 * 2 / 7) < 1e-2


def test_forces_balance_the_weight_and_residuals_are_reported(ball, rough):
    motion = kt.simulate(ball, _at(ball, 0.1), duration=0.1, contact=rough)
    assert motion.contact.names == ("ground/ball:0",)
    assert np.allclose(motion.contact.force[1:, 0, 0], 2.0 * G, rtol=1e-14)
    assert not motion.contact.force[0].any()
    worst = motion.report.contact
    assert max(worst.velocity, worst.cone, worst.complementarity, worst.penetration) < 1e-12
    assert worst.touching == 100
    assert "contact: penetration" in str(motion.report)
    assert motion[::10].contact.force.shape == (11, 1, 3)


def test_flight_is_the_integrators_and_ends_without_penetration(ball, rough):
    qd = np.array([3.0, -2.0, 5.0, 0.5, 0, 0])
    motion = kt.simulate(ball, _at(ball, 0.6), qd, duration=1.0, contact=rough)
    flying = motion.contact.residuals[:, 9] == 0
    landed = np.flatnonzero(~flying)[0]
    assert np.allclose(motion.q[:landed, 2], 0.6 - G / 2 * motion.t[:landed] ** 2, rtol=1e-13)
    assert motion.q[:, 2].min() > 0.1 - 1e-9
    assert abs(motion.t[landed] - np.sqrt(2 * 0.5 / G)) < 1.1e-3


def test_a_bouncing_ball_loses_what_its_restitution_says_and_comes_to_rest(ball):
    contact = TimeStepping(Scene(ball, restitution=0.8))
    motion = kt.simulate(ball, _at(ball, 1.1), duration=4.4, dt=1e-4, contact=contact)
    z = motion.q[:, 2] - 0.1
    peaks = z[1:-1][(z[1:-1] > z[:-2]) & (z[1:-1] >= z[2:])][:10]
    assert np.allclose(peaks, 0.8 ** (2 * np.arange(1, 11)), rtol=3e-2)
    assert z.min() > -1e-9
    assert np.all(np.diff(motion.energy) < 1e-9 * motion.energy[0])
    assert np.array_equal(motion.q[-1], motion.q[-500])


def test_forces_in_python_make_the_engine_take_the_same_steps(ball, rough):
    qd = np.array([0, 2.0, 0, 1.0, 0.5, 0.0])
    start = (ball, _at(ball, 0.1), qd)
    ours = kt.simulate(*start, duration=0.02, contact=rough)

    def nothing(model, t, q, qd):
        return np.zeros(6)

    words = r"contact of 'ball' leave compiled code: force 'nothing' is Python .*@kinetree\.kernel"
    with pytest.warns(kt.SimulationWarning, match=words) as found:
        plain = kt.simulate(*start, duration=0.02, contact=rough, forces=nothing)
    assert len(found) == 1
    assert found[0].filename == __file__
    assert isinstance(plain.acted, EngineStepper)
    assert np.allclose(plain.q, ours.q, rtol=0, atol=1e-12)
    assert np.allclose(plain.contact.force, ours.contact.force, rtol=0, atol=1e-6)


# --- a block -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sled():
    """A block of 1 kg on three small feet, on a slope of 0.4 rad, friction just at the limit."""
    builder = kt.ModelBuilder("sled").body(
        "sled", joint=kt.Free(), inertia=kt.shapes.box(0.3, 0.2, 0.05, mass=1.0)
    )
    for k, (x, y) in enumerate(((0.1, 0.08), (0.1, -0.08), (-0.1, 0.0))):
        builder.geometry(geometry.Sphere(0.01), on="sled", at=(x, y, -0.03), name=f"foot{k}")
    c, s = np.cos(0.4), np.sin(0.4)
    model = with_ground(builder.build(), normal=(s, 0, c))
    q = np.concatenate([0.04 * np.array([s, 0, c]), [np.cos(0.2), 0, np.sin(0.2), 0]])
    return model, q, TimeStepping(Scene(model, friction=np.tan(0.4)), tolerance=1e-12)


def test_a_block_at_the_friction_limit_sticks_below_it_and_slides_above(sled):
    model, q, contact = sled
    share = np.array([-1e-6, 1e-6, 0.1])  # of the weight, down the slope

    def push(t, q, qd):
        tau = np.zeros((3, 6))
        tau[:, 3] = share * G
        return tau

    motion = kt.simulate(model, np.tile(q, (3, 1)), duration=0.2, contact=contact, controller=push)
    speed = motion.qd[-1, :, 3]
    assert np.abs(motion.q[:, 0] - q).max() < 1e-14
    assert np.allclose(speed[1:], 0.2 * G * share[1:], rtol=1e-6)
    assert motion.report.contact.velocity < 1e-12


def test_a_block_on_a_slope_does_not_creep_in_a_minute(sled):
    model, q, contact = sled

    def hold(t, q, qd):
        return np.array([[0, 0, 0, -share * G, 0, 0] for share in (1e-3, 0.01, 0.1)])

    motion = kt.simulate(
        model,
        np.tile(q, (3, 1)),
        duration=60.0,
        dt=1e-2,
        contact=contact,
        controller=hold,
        store_every=100,
    )
    assert np.abs(motion.q - q).max() < 1e-13
    assert motion.report.contact.penetration < 1e-13


# --- stops, dry friction, loops ------------------------------------------------------------------


def _slider(**joint):
    builder = kt.ModelBuilder("slider", gravity=(0, 0, 0)).body(
        "mass", joint=kt.Prismatic("x"), inertia=kt.shapes.sphere(0.1, mass=2.0), **joint
    )
    model = builder.build()
    return model, TimeStepping(Scene(model))


def test_dry_friction_stops_a_joint_and_holds_it():
    model, contact = _slider(dynamics=JointDynamics(friction=3.0))
    motion = kt.simulate(
        model, [0.0], [1.5], duration=3.0, contact=contact, friction="exact",
        controller=lambda t, q, qd: np.array([2.9 if t > 2 else 0.0]),
    )  # fmt: skip
    assert np.allclose(motion.qd[:900, 0], 1.5 - 1.5 * motion.t[:900], rtol=0, atol=1e-13)
    assert np.ptp(motion.q[1002:]) < 1e-14
    assert abs(motion.q[-1, 0] - 0.75) < 1e-3
    assert np.allclose(motion.contact.joint_force[-1], -2.9, rtol=1e-12)


def test_a_rigid_stop_stops_a_joint_and_does_not_pull():
    model, contact = _slider(limits=Limits(-1.0, 0.5))

    def push(t, q, qd):
        return np.array([4.0 if t < 1.5 else -4.0])

    motion = kt.simulate(model, [0.0], duration=2.0, contact=contact, limits="rigid",
                         controller=push)  # fmt: skip
    held = (motion.t > 0.75) & (motion.t < 1.49)
    assert motion.q.max() < 0.5 + 1e-9
    assert np.abs(motion.q[held] - 0.5).max() < 1e-12
    assert np.allclose(motion.contact.joint_force[held, 1], 4.0, rtol=1e-12)
    assert np.allclose(motion.qd[-1], -1.0, rtol=1e-2)


def test_loops_stay_closed_while_something_touches():
    linkage = kt.samples.four_bar()
    parts = [g for g in linkage.geometry if not g.collision]
    ball = geometry.Geometry(2, geometry.Sphere(0.05), name="ball")
    model = with_ground(linkage.replace(geometry=(*parts, ball)), point=(0, 0, 0.1), name="floor")
    contact = TimeStepping(Scene(model, friction=0.4))
    q = np.array(model.posture("home").q)
    motion = kt.simulate(
        model, q, [1.0, *np.zeros(model.nv - 1)], duration=0.5, contact=contact, limits=None
    )
    assert motion.contact.force[:, 0, 0].max() > 1.0
    assert motion.loop_error.max() < 1e-9
    assert motion.report.contact.penetration < 1e-9
    assert np.all(np.diff(motion.energy)[1:] < 1e-9)


# --- how much is compiled ------------------------------------------------------------------------


def test_rows_are_in_groups_of_what_may_touch():
    builder = kt.ModelBuilder("balls")
    for name in ("a", "b", "c", "d"):
        builder.body(name, joint=kt.Prismatic("z"), limits=Limits(0.0, 1.0), joint_name=name,
                     inertia=kt.shapes.sphere(0.1, mass=1.0))  # fmt: skip
        builder.geometry(geometry.Sphere(0.1), on=name, name=name)
    model = with_ground(builder.build())
    scene = Scene(model, [*(("ground", name) for name in "abcd"), ("a", "b"), ("d", "b")])
    joints = JointRows(stops=((0, 0, 1.0, 0.0), (2, 2, 1.0, 0.0)), friction=((2, 1.0),))
    constraints = StepConstraints(model, scene, joints)
    assert coupled_rows(constraints) == [3 + 1 + 1, 3 * 5 + 1]
    assert is_short(constraints, 20)
    assert not is_short(constraints, 16)
    linkage = kt.samples.four_bar()
    assert coupled_rows(StepConstraints(linkage, Scene(linkage, []))) == [5]


def test_long_steps_are_taken_by_the_engine(ball, rough):
    engine = TimeStepping(rough.scene, compiled_rows=2)
    ends = [
        kt.simulate(ball, _at(ball, 0.1), [0, 0, 0, 1.0, 0, 0], duration=0.005, contact=contact)
        for contact in (rough, engine)
    ]
    assert isinstance(ends[1].acted, EngineStepper)
    assert np.abs(ends[0].q - ends[1].q).max() < 1e-14


# --- shapes without closed form ------------------------------------------------------------------


def test_a_box_comes_to_rest_on_a_box():
    builder = kt.ModelBuilder("boxes").body(
        "upper", joint=kt.Free(), inertia=kt.shapes.box(0.2, 0.2, 0.1, mass=1.0)
    )
    builder.geometry(geometry.Box((0.2, 0.2, 0.1)), on="upper", name="upper")
    builder.geometry(geometry.Box((0.3, 0.3, 0.1)), on="base", name="lower")
    model = builder.build()
    contact = TimeStepping(Scene(model, friction=0.5))
    motion = kt.simulate(model, _at(model, 0.105), duration=0.05, dt=2e-3, contact=contact)
    assert abs(motion.q[-1, 2] - 0.1) < 1e-9
    assert np.abs(motion.qd[-1]).max() < 1e-9
    assert abs(motion.contact.force[-1, :, 0].sum() - G) < 1e-6
    assert motion.report.contact.penetration < 1e-9


# --- what is refused -----------------------------------------------------------------------------


def test_impossible_arguments_are_rejected(ball, rough):
    start = (ball, _at(ball, 0.2))
    with pytest.raises(TypeError, match=r"contact must be one of .*TimeStepping.*got dict"):
        kt.simulate(*start, duration=1.0, contact={})
    with pytest.raises(kt.UnknownNameError, match="adaptive steps: its steps have a fixed length"):
        kt.simulate(*start, duration=1.0, contact=rough, rtol=1e-6)
    with pytest.raises(kt.UnknownNameError, match="needs derivatives of all forces"):
        kt.simulate(*start, duration=1.0, contact=rough, integrator="rosenbrock")
    other = _ball().replace(name="other")
    with pytest.raises(kt.ModelError, match="made for model 'ball'"):
        kt.simulate(other, start[1], duration=1.0, contact=rough)
    with pytest.raises(TypeError, match=r"takes a kinetree.contact.Scene, got Model"):
        TimeStepping(ball)
    for name, value in (("tolerance", 0.0), ("rounds", 0), ("correction_speed", -1.0)):
        with pytest.raises(kt.ModelError, match=f"{name} must be positive"):
            TimeStepping(rough.scene, **{name: value})
    for name in ("rest_velocity", "compiled_rows"):
        with pytest.raises(kt.ModelError, match=f"{name} must not be negative"):
            TimeStepping(rough.scene, **{name: -1})
    for name in ("stiffness", "damping"):
        with pytest.raises(kt.ModelError, match=f"{name} of a controller must be one number"):
            TimeStepping(rough.scene, **{name: [1.0, 2.0]})
