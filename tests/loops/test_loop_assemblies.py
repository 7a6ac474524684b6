"""All assemblies of linkages, and following one of them."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import L1, L2, L3, D, four_bar, sample

import kinetree as kt
from kinetree.errors import AssemblyError, LoopError, SingularError
from kinetree.loops.kinematics.all_assemblies import assemblies
from kinetree.loops.kinematics.branches import Branch, SingularPoint, follow
from kinetree.loops.kinematics.constraint import closure_error


def closed_form(y):
    """Both assemblies of the textbook four-bar for the crank angle ``y``."""
    px, py = D - L1 * np.cos(y), -L1 * np.sin(y)
    e = np.hypot(px, py)
    found = []
    for sign in (1, -1):
        a = np.arctan2(py, px) + sign * np.arccos((L2**2 + e**2 - L3**2) / (2 * L2 * e))
        b = np.arctan2(-py + L2 * np.sin(a), -px + L2 * np.cos(a))
        found.append((y, a - y, b))
    return np.array(found)


def wrapped(angles):
    return (np.asarray(angles) + np.pi) % (2 * np.pi) - np.pi


@pytest.mark.covers("RBDA 8.10", by=assemblies)
@pytest.mark.parametrize("y", [0.3, 1.9, -2.4])
def test_a_four_bar_has_the_two_assemblies_of_its_closed_form(y):
    found = assemblies(four_bar(), {"crank_joint": y})
    assert len(found) == 2
    for expected in closed_form(y):
        off = np.min(np.max(np.abs(wrapped(found - expected)), axis=1))
        assert off < 1e-12


def test_the_nearest_comes_first_and_angles_are_near_the_guess():
    model = four_bar()
    for expected in closed_form(0.3):
        guess = wrapped(expected) + np.array([0, 0.1, 0.05])
        found = assemblies(model, ["crank_joint"], q=guess)
        assert_close(found[0], wrapped(expected), ulps=1e4)
        assert np.all(np.abs(found - guess) <= np.pi)


def test_other_linkages():
    slider = sample("slider_crank")
    found = assemblies(slider, {"main bearing": 0.4})
    assert len(found) == 2
    reach = 0.3**2 - (0.1 * np.cos(0.4)) ** 2  # the piston's place, by Pythagoras
    places = sorted(0.1 * np.sin(0.4) + np.array([-1, 1]) * np.sqrt(reach) - np.sqrt(0.08))
    assert_close(np.sort(found[:, 2]), np.array(places), ulps=1e4)
    assert len(assemblies(sample("five_bar"), ["link1_joint", "link4_joint"])) == 2
    assert len(assemblies(sample("bennett"), {"link1_joint": 0.2})) == 1


def test_an_input_that_is_out_of_reach_has_no_assembly():
    assert assemblies(sample("four_bar"), {"rocker_joint": 2.5}).shape == (0, 3)


def test_a_stewart_platform_has_several():
    """Mirror images in the plane of the base come in pairs."""
    model = sample("stewart")
    strokes = [f"leg{i}_stroke" for i in range(1, 7)]
    found = assemblies(model, strokes, by=["platform"], starts=192)
    assert len(found) >= 4
    assert_close(found[0], model.neutral(), scale=1.0, ulps=100)
    assert np.max(np.abs(closure_error(model, found))) < 1e-12
    heights = kt.poses(model, found)[:, 0, 2, 3]
    assert_close(np.sort(heights), np.sort(-heights), ulps=1e4)
    within = assemblies(model, strokes, by=["platform"], limits=True, starts=32)
    assert len(within) == 1


def test_assemblies_that_are_not_isolated_are_rejected():
    with pytest.raises(LoopError, match=r"leave model 'four-bar' 1 degree of freedom,.*hold more"):
        assemblies(sample("four_bar"))
    with pytest.raises(kt.ShapeError, match="one configuration"):
        assemblies(sample("four_bar"), ["crank_joint"], q=np.zeros((2, 3)))


# --- following a branch -----------------------------------------------------------------------


def parallelogram():
    z, bar = kt.Revolute("z"), kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))
    return (
        kt.ModelBuilder("parallelogram")
        .body("a", joint=z, inertia=bar)
        .body("c", on="a", joint=z, at=(1, 0, 0), inertia=bar)
        .body("b", joint=z, at=(2, 0, 0), inertia=bar)
        .loop("pin", predecessor="c", successor="b", joint=z, at=(2, 0, 0), successor_at=(1, 0, 0))
        .build()
    )


@pytest.mark.covers("RBDA 8.10", by=follow)
@pytest.mark.parametrize("start", [0, 1])
def test_a_full_turn_of_the_crank_stays_on_its_branch(start):
    model, turn = four_bar(), np.linspace(0.3, 0.3 + 2 * np.pi, 19)
    q = closed_form(0.3)[start]
    branch = follow(model, q, {"crank_joint": turn})
    assert branch.end is None
    assert branch.singular == ()
    expected = np.array([closed_form(y)[start] for y in turn])
    assert np.max(np.abs(wrapped(branch.q - expected))) < 1e-11
    assert np.max(np.abs(np.diff(branch.q[:, 2]))) < 0.6  # no jump


def test_long_steps_of_the_inputs_do_not_jump_either():
    model = four_bar()
    for start in (0, 1):
        branch = follow(model, closed_form(0.3)[start], {"crank_joint": [2.0, 4.5]})
        assert (
            np.max(np.abs(wrapped(branch.q - [closed_form(y)[start] for y in (2.0, 4.5)]))) < 1e-11
        )


def test_a_branch_ends_at_the_dead_point_of_its_input():
    """The rocker turns back where crank and coupler are in line: L1 + L2 from its pivot."""
    model = sample("four_bar")
    branch = follow(model, model.neutral(), {"rocker_joint": np.linspace(0, 3, 16)})
    assert branch.end is not None
    assert len(branch.q) == 1 + int(branch.end.place)
    coupler = branch.end.q[1] + np.arctan2(*(kt.poses(model, model.neutral())[1, [0, 2], 2]))
    assert abs(np.sin(coupler)) < 1e-3  # in line with the crank
    assert "ends at inputs" in str(branch.end)


@pytest.mark.parametrize("path", [np.linspace(1, 9, 12), [2.0, np.pi, 4.0, 9.0]])
def test_a_parallelogram_goes_straight_through_its_flat_positions(path):
    model = parallelogram()
    branch = follow(model, [1.0, -1.0, 1.0], {"a_joint": path})
    assert_close(branch.q, np.array([[y, -y, y] for y in path]), scale=1.0, ulps=1e8)
    assert [p.kind for p in branch.singular] == ["pass", "pass"]
    assert [p.inputs[0] for p in branch.singular] == pytest.approx([np.pi, 2 * np.pi], abs=1e-6)
    assert "may have changed branch" in str(branch.singular[0])


def test_paths_that_make_no_sense_are_rejected():
    model = sample("four_bar")
    q = model.neutral()
    with pytest.raises(AssemblyError, match="loop 'pin' is open by"):
        follow(model, q + 0.1, {"crank_joint": [0.1]})
    with pytest.raises(LoopError, match="has 1 degrees of freedom here, the inputs are 2"):
        follow(model, q, {"crank_joint": [0.1], "rocker_joint": [0.1]})
    with pytest.raises(kt.ShapeError, match=r"\(count, 1\)"):
        follow(model, q, {"crank_joint": [[0.1, 0.2]]})
    five = sample("five_bar")
    with pytest.raises(kt.ShapeError, match="equally long"):
        follow(five, five.neutral(), {"link1_joint": [0.1], "link2_joint": [0.1, 0.2]})
    flat = parallelogram()
    with pytest.raises(SingularError, match="singular configuration"):
        follow(flat, [0.0, 0.0, 0.0], {"a_joint": [1.0]})
    platform = sample("stewart")
    with pytest.raises(kt.ShapeError, match="position 0 of joint 'platform_pose' in its path"):
        follow(platform, platform.neutral(), {"platform_pose": np.zeros((1, 7))})


def test_a_branch_ends_at_a_dead_point_and_nowhere_else():
    model = kt.samples.four_bar()
    home = np.array(model.posture("home").q)
    there = follow(model, home, {"crank_joint": home[0] + np.linspace(0, 0.1, 3)})
    assert there.singular == ()
    assert there.end is None
    passed, ended = (SingularPoint(0.5, np.zeros(1), home, kind) for kind in ("pass", "end"))
    assert Branch(home[None], (ended, passed)).end is None
    assert Branch(home[None], (passed, ended)).end is ended
