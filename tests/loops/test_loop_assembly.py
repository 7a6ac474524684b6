"""Assembling mechanisms from guesses, good and bad."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import sample

import kinetree as kt
from kinetree.errors import AssemblyError
from kinetree.joints import REPRESENTATIVES, AbstractJoint
from kinetree.loops.kinematics.all_assemblies import assemblies, assemblies_nearby
from kinetree.loops.kinematics.assembly import assemble
from kinetree.loops.kinematics.constraint import closing, closure_error, constraint, loop_gaps
from kinetree.loops.kinematics.loop_joints import loop_positions
from kinetree.spatial import Motion, Plucker, exp

SHARP = [joint for joint in REPRESENTATIVES if joint.nv < 6]


@cache
def tied(*joints):
    """Free bodies that loop joints tie to the base."""
    bar = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))
    model = kt.ModelBuilder("tied")
    for n, joint in enumerate(joints):
        model.body(f"body{n}", joint=kt.Free(), inertia=bar)
        model.loop(f"tie{n}", predecessor="base", successor=f"body{n}", joint=joint)
    return model.build()


@pytest.mark.covers("RBDA 8.3", "RBDA Table 8.1", "RBDA Example 8.1", by=AbstractJoint.loop_error)
@pytest.mark.parametrize("joint", SHARP[::2], ids=repr)
def test_errors_from_afar_agree_with_those_from_near_to_second_order(joint, rng):
    """The recipe of (8.25)-(8.27) by logarithms, against the formulas that joints have."""
    X_J = joint.transform(joint.random(rng))
    d = Motion.from_array(rng.standard_normal(6))
    sizes = []
    for h in (1e-3, 1e-4):
        X = exp(Motion.from_array(h * d.to_array())) @ X_J
        far, near = AbstractJoint.loop_error(joint, X), joint.loop_error(X)
        sizes.append(np.linalg.norm(far - near) + np.linalg.norm(far) * 1e-16)
    assert sizes[0] < 1e-4
    assert sizes[1] <= 0.05 * sizes[0] + 1e-15  # a hundredth, if it is quadratic


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "bennett", "five_bar"])
def test_on_closed_loops_the_derivative_is_the_constraint_matrix(name):
    model = sample(name)
    q, rest = model.neutral(), np.zeros(model.nv)
    error, derivative = closing(model, q)
    c = constraint(model, q, rest)
    assert_close(derivative, c.K, ulps=100)
    assert_close(error, np.zeros(len(error)), scale=1.0)


def test_away_from_closed_the_slope_is_the_derivative_of_the_error(rng):
    model = sample("bennett")
    q, h = rng.uniform(-1, 1, model.nv), 1e-5
    columns = [
        (closure_error(model, q + h * e) - closure_error(model, q - h * e)) / (2 * h)
        for e in np.eye(model.nv)
    ]
    assert np.allclose(closing(model, q)[1], np.array(columns).T, atol=1e-8)


@pytest.mark.covers("RBDA 8.12", by=assemble)
def test_loops_of_many_kinds_close_from_anywhere(rng):
    model = tied(*SHARP[1::5])
    guesses = np.stack([model.random_configuration(rng) for _ in range(3)])
    q = assemble(model, guesses)
    assert np.max(np.abs(closure_error(model, q))) < 1e-12
    assert q.shape == guesses.shape


def test_a_hinge_that_points_the_wrong_way_is_not_closed():
    """The errors of Table 8.1 vanish with the axes antiparallel; these do not."""
    joint, flipped = kt.Revolute("z"), Plucker(np.diag([1.0, -1.0, -1.0]), np.zeros(3))
    assert np.max(np.abs(joint.loop_error(flipped))) < 1e-15
    model = tied(joint)
    upside_down = np.array([0, 0, 0, 0, 1.0, 0, 0])
    assert np.linalg.norm(closure_error(model, upside_down)) == pytest.approx(np.pi)
    q = assemble(model, upside_down)
    assert kt.poses(model, q)[0, 2, 2] == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "bennett", "excavator"])
def test_samples_assemble_from_random_guesses(name, rng):
    model = sample(name)
    guesses = np.stack([model.random_configuration(rng) for _ in range(20)])
    q = assemble(model, guesses)
    assert np.max(np.abs(closure_error(model, q))) < 1e-12


def test_a_closed_guess_stays():
    model = sample("four_bar")
    assert_close(assemble(model), model.neutral(), scale=1.0, ulps=10)


def test_held_joints_stay_at_their_positions():
    model = sample("four_bar")
    q = assemble(model, hold={"crank_joint": 0.3})
    assert q[0] == 0.3
    other = assemble(model, [0.5, 0.1, 0.1], hold=["crank_joint"])
    assert other[0] == 0.5
    assert assemble(model, [0.5, 0.1, 0.1], hold="crank_joint")[0] == 0.5


def test_couplings_are_obeyed():
    bar = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))
    model = (
        kt.ModelBuilder("gears")
        .body("a", joint=kt.Revolute("z"), inertia=bar)
        .body("b", joint=kt.Revolute("z"), inertia=bar)
        .coupling("gear", joint="b_joint", source="a_joint", coefficients=(0.1, -2.0))
        .build()
    )
    q = assemble(model, [0.4], hold=["a_joint"])
    assert_close(model.expand(q), np.array([0.4, -0.7]))


def test_weights_say_which_joint_gives_way():
    model = sample("four_bar")
    guess = [0.2, 0.2, 0.2]
    stiff_crank = assemble(model, guess, weights=[1e6, 1, 1])
    stiff_rocker = assemble(model, guess, weights=[1, 1, 1e6])
    assert abs(stiff_crank[0] - 0.2) < 1e-3
    assert abs(stiff_rocker[2] - 0.2) < 1e-3


def test_limits_are_respected_on_request():
    model = sample("four_bar")
    model = model.replace(limits={"rocker_joint": kt.Limits(-0.1, 0.1)})
    q = assemble(model, [1.2, 0, 0], limits=True)
    assert abs(q[2]) <= 0.1
    assert np.max(np.abs(closure_error(model, q))) < 1e-12


def test_limits_of_loop_joints_are_respected_too():
    model = sample("four_bar")
    here = loop_positions(model, model.neutral())["pin"]
    pin = replace(model.loops[0], limits=kt.Limits(here + 0.2, here + 0.6))
    limited = model.replace(loops=(pin,))
    q = assemble(limited, limits=True)
    assert 0.2 <= loop_positions(limited, q)["pin"][0] - here[0] <= 0.6
    assert len(assemblies(limited, {"crank_joint": q[0]}, limits=True)) == 1
    with pytest.raises(AssemblyError, match="limits=False") as caught:
        assemble(limited, hold={"crank_joint": 0.0}, limits=True)
    assert caught.value.reason == "limits"


def too_short():
    model = sample("four_bar")
    pin = replace(
        model.loops[0],
        predecessor_placement=kt.xlt(0, 0, 0.2),
        successor_placement=kt.xlt(0, 0, 0.1),
    )
    return model.replace(loops=(pin,))


def test_bars_that_are_too_short_are_out_of_reach():
    """0.2 + 0.2 + 0.1 m of bars do not span 0.6 m: 0.1 m is missing."""
    with pytest.raises(AssemblyError, match=r"loop 'pin' stays open by 0\.1 m") as caught:
        assemble(too_short())
    assert (caught.value.part, caught.value.reason) == ("loop 'pin'", "out of reach")
    assert caught.value.gap == pytest.approx(0.1)
    assert loop_gaps(too_short(), caught.value.q)["loop 'pin'"] == pytest.approx(0.1)


def test_the_sample_of_a_batch_is_named():
    model = sample("four_bar")
    guesses = np.zeros((2, 3))
    guesses[1, 2] = 2.5
    with pytest.raises(AssemblyError, match=r"in sample \(1,\).*closes when 'rocker_joint' may"):
        assemble(model, guesses, hold=["rocker_joint"])


def test_held_joints_and_limits_are_blamed():
    model = sample("four_bar")
    with pytest.raises(AssemblyError, match="hold less") as caught:
        assemble(model, hold={"rocker_joint": 2.5})
    assert caught.value.reason == "held joints"
    tight = {"rocker_joint": kt.Limits(1.0, 1.1), "crank_joint": kt.Limits(-0.1, 0.1)}
    with pytest.raises(AssemblyError, match="limits=False") as caught:
        assemble(model.replace(limits=tight), limits=True)
    assert caught.value.reason == "limits"


def test_a_wrong_number_of_positions_to_hold():
    with pytest.raises(kt.ShapeError, match="'crank_joint' must be held at 1 numbers"):
        assemble(sample("four_bar"), hold={"crank_joint": [0.1, 0.2]})
    with pytest.raises(kt.UnknownNameError, match="crank"):
        assemble(sample("four_bar"), hold=["krank"])


def test_assemblies_beyond_the_limits_count_unless_they_are_required():
    model = sample("four_bar")
    every = assemblies(model, {"crank_joint": 0.3})
    one, other = every[:, 2]
    tight = model.replace(limits={"rocker_joint": kt.Limits(one - 0.1, one + 0.1)})
    assert abs(one - other) > 0.2
    assert len(assemblies(tight, {"crank_joint": 0.3})) == 2
    assert len(assemblies(tight, {"crank_joint": 0.3}, limits=True)) == 1


def test_assembly_ignores_limits_unless_they_are_required():
    model = sample("four_bar").replace(limits={"rocker_joint": kt.Limits(0.1, 0.2)})
    assert_close(assemble(model, np.zeros(3)), np.zeros(3), scale=1.0)
    assert 0.1 <= assemble(model, np.zeros(3), limits=True)[2] <= 0.2


def test_assemblies_nearby_are_about_a_tenth_of_a_radian_away():
    """Starts lie within that in every angle; closing the loop takes a part of it back."""
    model = sample("five_bar")
    home = np.array(model.posture("home").q)
    for seed in range(3):
        away = assemblies_nearby(model, home, seed) - home
        assert away.shape == (24, 4)
        assert 0.03 < np.std(away) < 0.06
        assert np.max(np.abs(away)) < 0.2
