"""Sliders: one for each variable, three angles for an orientation, loops stay closed."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.viewer.knobs import Knobs

DOUBLE, FOUR_BAR = kt.samples.double_pendulum(), kt.samples.four_bar()


def test_a_knob_has_the_name_the_unit_and_the_limits_of_its_joint():
    knobs = Knobs(DOUBLE.replace(limits={"elbow": kt.Limits(lower=-1.0, upper=0.5)})).knobs
    assert [k.label for k in knobs] == ["shoulder", "elbow"]
    assert knobs[1][2:] == (-1.0, 0.5, "rad")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (None, (-np.pi, np.pi)),
        (kt.Limits(lower=2.0, upper=np.inf), (2.0, 2.0 + np.pi)),
        (kt.Limits(lower=-np.inf, upper=-4.0), (-4.0 - 2 * np.pi, -4.0)),
    ],
)
def test_a_knob_without_limits_has_room(limits, expected):
    knob = Knobs(DOUBLE.replace(limits={"shoulder": limits})).knobs[0]
    assert (knob.lower, knob.upper) == pytest.approx(expected)


def test_an_orientation_is_three_angles():
    satellite = kt.samples.satellite()
    knobs = Knobs(satellite, size=2.0)
    labels = [k.label for k in knobs.knobs]
    root = satellite.joint_names[0]
    assert labels[:6] == [f"{root}.{x}" for x in ("x", "y", "z", "yaw", "pitch", "roll")]
    assert knobs.knobs[0][2:] == (-4.0, 4.0, "m")


def test_knobs_and_configurations_agree(rng):
    satellite = kt.samples.satellite()
    knobs = Knobs(satellite)
    for _ in range(5):
        q = satellite.random_configuration(rng)
        again = knobs.configuration(knobs.values(q))
        assert_close(kt.poses(satellite, again), kt.poses(satellite, q), ulps=64)


def test_turning_a_knob_keeps_loops_closed():
    knobs, q = Knobs(FOUR_BAR), FOUR_BAR.neutral()
    turned = knobs.turn(q, 0, 0.3)
    assert turned[0] == 0.3
    assert np.max(np.abs(kt.loops.error(FOUR_BAR, turned))) < 1e-9
    opened = knobs.turn(q, 0, 0.3, closed=False)
    assert_close(opened, q + np.array([0.3, 0, 0]), ulps=1)


def test_a_knob_cannot_be_turned_to_where_no_loop_closes():
    knobs, q = Knobs(FOUR_BAR), FOUR_BAR.neutral()
    assert knobs.turn(q, 2, 2.6) is None
