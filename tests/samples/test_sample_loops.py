"""Mechanisms with loops: dimensions, mobility, motions that are known."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import loop_errors, loop_jacobian, mobility
from support.motions import frame_pose

import kinetree as kt
from kinetree import samples
from kinetree.algorithms.passive import passive_force
from kinetree.errors import ModelError
from kinetree.joints import Prismatic, Revolute, Spherical, Universal

FREEDOMS = {
    "four_bar": 1,
    "slider_crank": 1,
    "five_bar": 2,
    "excavator": 2,
    "bennett": 1,
    "ladder": 4,
    "stewart": 6,
    "delta": 3,
}
EXACT = ("five_bar", "ladder", "stewart", "delta")  # no redundant constraints


def test_these_are_all():
    assert set(FREEDOMS) == {name for name in samples.names() if samples.load(name).loops}


@pytest.mark.parametrize("name", FREEDOMS)
def test_mobility_is_as_expected(name):
    model = samples.load(name)
    assert mobility(model, model.neutral()) == FREEDOMS[name]
    constraints = len(loop_errors(model, model.neutral()))
    assert (constraints == model.nv - FREEDOMS[name]) == (name in EXACT)


@pytest.mark.parametrize("name", FREEDOMS)
def test_mobility_is_the_same_nearby(name, rng):
    model = samples.load(name)
    K = loop_jacobian(model, model.neutral())
    motions = np.linalg.svd(K)[2][model.nv - FREEDOMS[name] :]
    q = model.integrate(model.neutral(), 0.1 * rng.standard_normal(len(motions)) @ motions)
    q = assembled(model, q)
    assert mobility(model, q) == FREEDOMS[name]


def assembled(model, q):
    """Newton's method on the loop errors, which converges also where some are redundant."""
    for _ in range(20):
        error = loop_errors(model, q)
        if np.abs(error).max() < 1e-12:
            return q
        q = model.integrate(q, -np.linalg.lstsq(loop_jacobian(model, q), error, rcond=1e-6)[0])
    raise AssertionError(f"{model.name} does not close: {np.abs(error).max():.2g}")


@pytest.mark.covers("RBDA 4.2", by=(samples.four_bar, samples.slider_crank))
def test_four_bar_has_the_lengths_it_says():
    model = samples.four_bar()
    pins = [frame_pose(model, model.neutral(), name)[:3, 3] for name in model.body_names[1:]]
    (loop,) = model.loops
    end = frame_pose(model, model.neutral(), "coupler") @ loop.predecessor_placement.to_pose()
    crank, coupler, rocker = pins
    corners = [crank, coupler, end[:3, 3], rocker]
    distances = [
        np.linalg.norm(a - b) for a, b in zip(corners, np.roll(corners, -1, 0), strict=True)
    ]
    assert_close(np.array(distances), np.array([0.2, 0.5, 0.4, 0.6]))


def test_slider_crank_is_the_mechanism_of_figure_4_1():
    model = samples.slider_crank()
    kinds = [type(j) for j in (*model.joint[1:], *(loop.joint for loop in model.loops))]
    assert sorted(kinds, key=str) == [Prismatic, Revolute, Revolute, Revolute]


def test_five_bar_falls_as_in_the_thesis():
    """Angular accelerations of the links at the start of the second example, to all digits known.

    The posture where the first example starts is singular: the constraints lose one rank.
    """
    model = samples.five_bar()
    zero = np.zeros(4)
    qdd = kt.forward_dynamics(model, model.neutral(), zero, zero)
    expected = np.array([5.51494, -4.27185, 4.27185, -5.51494])
    np.testing.assert_allclose(np.cumsum(qdd), expected, atol=5e-6)
    angles = [_direction(model, model.neutral(), f"link{i}") for i in range(1, 5)]
    assert_close(np.array(angles), np.radians([120, 48.1896851042214, -48.1896851042214, -120]))
    singular = np.array(model.postures[1].q)
    assert mobility(model, singular) == 3
    assert_close(np.abs([_direction(model, singular, f"link{i}") for i in range(1, 5)]),
                 np.array([np.pi, 0, 0, np.pi]), scale=1)  # fmt: skip


def _direction(model, q, name):
    x = frame_pose(model, q, name)[:3, 0]
    return np.arctan2(x[2], x[0])


def test_excavator_moves_as_the_formulas_of_figure_8_3():
    model = samples.excavator()
    l1, l2, start = 0.45, 0.9, np.radians(85)

    def triangle(y):
        d = np.sqrt(l1**2 + l2**2 - 2 * l1 * l2 * np.cos(y))
        return np.arctan2(l2 * np.sin(y), l2 * np.cos(y) - l1), d

    for y in (-0.9, -0.3, 0.2, 0.7):
        turn, length = np.subtract(triangle(start + y), triangle(start))
        q = np.array([y, turn, length, 0.3])
        errors = loop_errors(model, q)
        assert_close(errors, np.zeros(len(errors)), scale=1)
        d = triangle(start + y)[1]
        G = np.array([1, (l2**2 - l1 * l2 * np.cos(start + y)) / d**2,
                      l1 * l2 * np.sin(start + y) / d, 0])  # fmt: skip
        np.testing.assert_allclose(loop_jacobian(model, q) @ G, 0, atol=1e-8)
    driven = [model.joint_names[a.joint - 1] for a in model.actuators]
    assert driven == ["piston_joint", "stick_joint"]


def test_bennett_linkage_turns_all_the_way_though_counting_forbids_it():
    model = samples.bennett()
    assert 4 - 6 * len(model.loops) == -2
    q = model.neutral()
    for turn in np.linspace(0, 2 * np.pi, 25)[1:]:
        q = np.array([turn, *q[1:]])
        for _ in range(8):
            error = loop_errors(model, q)
            step = np.linalg.lstsq(loop_jacobian(model, q)[:, 1:], error, rcond=1e-6)[0]
            q = q - np.array([0, *step])
        np.testing.assert_allclose(loop_errors(model, q), 0, atol=1e-10)
        assert mobility(model, q) == 1


def test_a_ladder_of_any_length_has_one_freedom_for_each_rung():
    for rungs in (0, 1, 3):
        model = samples.ladder(rungs)
        assert (model.nv, len(model.loops)) == (3 * rungs, rungs)
        if rungs:
            assert mobility(model, model.neutral()) == rungs
    with pytest.raises(ModelError, match="ladder needs a number of bodies, 0 or more, got -1"):
        samples.ladder(-1)


def test_stewart_platform_rests_on_its_springs():
    model = samples.stewart()
    still = np.zeros(model.nv)
    tau = passive_force(model, model.neutral(), still)
    assert tau.any()
    qdd = kt.forward_dynamics(model, model.neutral(), still, tau)
    assert_close(qdd, still, ulps=1e4, scale=9.81)
    kinds = {type(j) for j in model.joint[2:]} | {type(loop.joint) for loop in model.loops}
    assert kinds == {Universal, Prismatic, Spherical}


def test_delta_plate_moves_without_turning():
    model = samples.delta()
    K = loop_jacobian(model, model.neutral())
    motions = np.linalg.svd(K)[2][18:]
    np.testing.assert_allclose(motions[:, :3], 0, atol=1e-8)
    assert np.linalg.matrix_rank(motions[:, 3:6]) == 3
    plate = frame_pose(model, model.neutral(), "plate")
    assert_close(plate[2, 3], -np.sqrt(1.244**2 - (0.164 + 0.524 - 0.044) ** 2))
