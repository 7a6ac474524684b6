"""Parts of a trajectory, and the trajectory at other times: on the manifold, to its order."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.functional import layout
from kinetree.integration.events import Event

DOUBLE = kt.samples.double_pendulum()
SATELLITE = kt.samples.satellite()


@pytest.fixture(scope="module")
def swing():
    return kt.simulate(DOUBLE, [2.0, 0.5], duration=0.5, dt=1e-2)


@pytest.fixture(scope="module")
def tumble():
    """A free body, which turns about its middle axis: quaternions and child velocities."""
    start = SATELLITE.integrate(SATELLITE.neutral(), np.full(SATELLITE.nv, 0.3))
    spin = np.zeros(SATELLITE.nv)
    spin[:6] = [0.1, 1.5, 0.2, 0.3, -0.2, 0.5]
    return kt.simulate(SATELLITE, start, spin, duration=1.0, dt=1e-3)


@pytest.fixture(scope="module")
def many():
    starts = np.linspace(0, 1, 12).reshape(3, 2, 2)
    return kt.simulate(DOUBLE, starts, duration=0.1, dt=1e-2)


def test_a_joint_by_its_name(swing):
    elbow = swing["elbow"]
    assert np.array_equal(elbow.q, swing.q[:, 1])
    assert np.array_equal(elbow.qd, swing.qd[:, 1])
    assert np.array_equal(elbow.tau, swing.tau[:, 1])


def test_a_joint_of_several_variables_keeps_their_axis(tumble):
    name = SATELLITE.joint_names[0]
    assert tumble[name].q.shape == (len(tumble), 7)
    assert tumble[name].qd.shape == (len(tumble), 6)


def test_an_unknown_joint_is_named(swing):
    with pytest.raises(kt.UnknownNameError, match="no joint 'elbov'; did you mean 'elbow'"):
        swing["elbov"]


def test_some_of_the_times(swing):
    for which in (slice(0, 20, 5), [0, 5, 10, 15], np.isin(np.arange(51), [0, 5, 10, 15])):
        part = swing[which]
        assert_close(part.t, [0.0, 0.05, 0.1, 0.15], ulps=4)
        assert np.array_equal(part.q, swing.q[0:20:5])
        assert len(part) == len(part.energy) == 4


def test_one_motion_of_a_batch(many):
    one = many.motion((2, 1))
    assert one.q.shape == (len(many), 2)
    assert np.array_equal(one.qd, many.qd[:, 2, 1])
    assert many.motion(1).q.shape == (len(many), 2, 2)
    assert many["elbow"].q.shape == (len(many), 3, 2)
    with pytest.raises(kt.ShapeError, match=r"no motion 3 in a batch of shape \(3, 2\)"):
        many.motion(3)


def test_events_belong_to_their_motions():
    half = Event(lambda t, q, qd: q[0] - 0.5, name="half")
    starts = [[0.4, 0.0], [0.51, 0.0], [0.505, 0.0]]
    motion = kt.simulate(DOUBLE, starts, duration=0.1, dt=1e-2, events=[half])
    assert {e.sample for e in motion.events} == {(1,), (2,)}
    assert motion.motion(0).events == ()
    (last,) = motion.motion(-1).events
    assert last.sample == ()
    assert len(motion.motion(slice(0, 2)).events) == 2
    assert len(motion[:1].events) == 0


def test_stored_times_come_back_as_they_are(swing, tumble, many):
    for motion in (swing, tumble, many):
        again = motion.resample(motion.t)
        assert_close(again.q, motion.q, ulps=64)
        assert_close(again.qd, motion.qd, ulps=256)
        assert np.array_equal(again.tau, motion.tau)
        assert_close(again.energy, motion.energy, ulps=1024)


@pytest.mark.parametrize("motion", ["swing", "tumble"])
def test_error_between_times_is_of_fourth_order_for_positions_and_third_for_velocities(
    motion, request
):
    if motion == "swing":
        fine = kt.simulate(DOUBLE, [2.0, 0.5], duration=0.64, dt=1e-3)
    else:
        fine = request.getfixturevalue("tumble")
    model, errors = fine.model, []
    for every in (8, 16) if motion == "swing" else (16, 32):
        coarse = fine[:641:every]
        found = coarse.resample(fine.t[:641])
        dq = [model.difference(a, b) for a, b in zip(found.q, fine.q[:641], strict=True)]
        errors.append((np.max(np.abs(dq)), np.max(np.abs(found.qd - fine.qd[:641]))))
    order = np.log2(np.array(errors[1]) / errors[0])
    assert order[0] > 3.6
    assert order[1] > 2.7


def test_quaternions_between_times_have_unit_length(tumble):
    coarse = tumble[::100]
    found = coarse.resample(0.013)
    lengths = np.linalg.norm(found.q[:, 3:7], axis=-1)
    assert_close(lengths, np.ones(len(found)), ulps=16)
    energy = kt.kinetic_energy(SATELLITE, found.q, found.qd)
    assert np.ptp(energy) < 2e-3 * energy[0]  # of the interpolation, 0.1 s apart


def test_a_number_is_the_distance_of_times(swing):
    assert_close(swing.resample(0.1).t, [0, 0.1, 0.2, 0.3, 0.4, 0.5], ulps=4)
    assert_close(swing.resample(0.2).t, [0, 0.2, 0.4], ulps=4)


def test_forces_are_held_and_work_is_interpolated():
    motion = kt.simulate(
        DOUBLE, [0.0, 0.0], duration=0.2, dt=0.1, controller=lambda t, q, qd: [t, 0.0]
    )
    found = motion.resample([0.0, 0.05, 0.15, 0.2])
    assert_close(found.tau[:, 0], [0.0, 0.0, 0.1, 0.2], ulps=4)
    assert_close(found.work[2], (motion.work[1] + motion.work[2]) / 2, ulps=16)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0.0, 0.6], "known from 0 s to 0.5 s; requested were 0 s to 0.6 s"),
        ([0.2, 0.1], "must be a sorted array"),
        ([[0.1]], r"one axis, got shape \(1, 1\)"),
        (-0.1, "distance of times must be positive"),
    ],
)
def test_times_without_motion_are_rejected(swing, times, message):
    with pytest.raises(kt.ShapeError, match=message):
        swing.resample(times)
    with pytest.raises(kt.ShapeError, match="only one"):
        swing[:1].resample([0.0])


def test_variables_have_names_and_units():
    humanoid = kt.samples.humanoid()
    q, qd = layout.positions(humanoid), layout.velocities(humanoid)
    assert len(q) == humanoid.nq
    assert len(qd) == humanoid.nv
    root = humanoid.joint_names[0]
    parts = ("x", "y", "z", "qw", "qx", "qy", "qz")
    assert [v.name for v in q[:7]] == [f"{root}.{part}" for part in parts]
    assert [v.unit for v in q[:8]] == ["m"] * 3 + ["1"] * 4 + ["rad"]
    assert [v.unit for v in qd[:7]] == ["rad/s"] * 3 + ["m/s"] * 3 + ["rad/s"]
    assert [v.force_unit for v in qd[:7]] == ["N·m"] * 3 + ["N"] * 3 + ["N·m"]


def test_every_kind_of_joint_has_names_for_its_variables():
    inertia = kt.Inertia.from_mass_center(1.0, np.zeros(3), np.eye(3))
    for joint in (
        kt.Cylindrical("z"), kt.Planar("z"), kt.Spherical(), kt.joints.Euler("xyz"),
        kt.joints.Exponential(),
        kt.Universal("xy"), kt.Translation(), kt.Free(), kt.joints.SphereInCylinder("z"),
        kt.Helical("z", pitch=0.1), kt.joints.RackAndPinion(0.1),
        kt.joints.Reversed(kt.Free()), kt.Fixed(),
        kt.Prismatic("x"),
    ):  # fmt: skip
        builder = kt.ModelBuilder()
        builder.body("b", joint=joint, joint_name="j", inertia=inertia)
        model = builder.build()
        assert len({v.name for v in layout.positions(model)}) == model.nq
        assert len({v.name for v in layout.velocities(model)}) == model.nv
