"""Which states of a motion are drawn, and from where."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.shown_motions import moving

import kinetree as kt
from kinetree import viewer
from kinetree.model import geometry
from kinetree.viewer import motions
from kinetree.viewer.scenes.places import framing

DOUBLE = kt.samples.double_pendulum()


def test_contacts_must_have_the_times_of_the_motion():
    with pytest.raises(kt.ShapeError, match="contacts have 2 times, the motion has 3"):
        viewer.scene(moving(), contacts=viewer.Contacts(np.zeros((2, 1, 3))))


def test_a_long_recording_is_thinned_to_thirty_states_a_second():
    t = np.linspace(0, 1, 1001)
    q = np.stack([t, 2 * t], axis=1)
    scene = viewer.scene(DOUBLE, q, t=t)
    assert len(scene.times) == 31
    assert scene.times[[0, -1]].tolist() == [0.0, 1.0]
    assert np.max(np.abs(np.diff(scene.times) - 1 / 30)) < 1.1e-3


def test_states_that_are_not_finite_are_left_out_and_named():
    broken = moving()
    broken.q[1, 0], broken.qd[2, 1] = np.nan, 1e300
    scene = viewer.scene(broken, ghost=broken, forces=np.zeros((3, 2, 6)))
    assert scene.times.tolist() == [broken.t[0]]
    assert np.all(np.isfinite(scene.box))
    first = f"{broken.t[1]:.6g}"
    assert scene.notices == (f"2 of 3 states are not finite, the first at t = {first} s: left out",)
    broken.q[0] = np.inf
    with pytest.raises(kt.ShapeError, match="no state of the motion is finite, from t = 0 s on"):
        viewer.scene(broken)


def test_a_motion_that_is_too_long_is_thinned_with_a_notice(monkeypatch):
    monkeypatch.setattr(motions, "_MOST", 40)
    scene = viewer.scene(DOUBLE, np.zeros((1000, 2)), t=np.arange(1000.0))
    assert len(scene.times) == 10
    assert scene.times[[0, -1]].tolist() == [0.0, 999.0]
    assert scene.notices == (
        "10 of 1000 states are shown, evenly over time: the motion is long; for more of them, show "
        "a part of it",
    )


@pytest.mark.parametrize("scale", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("aspect", [0.4, 1.3, 3.0])
def test_the_whole_mechanism_is_in_view_in_windows_of_any_shape(scale, aspect):
    wide = geometry.Geometry(1, geometry.Box((4 * scale, 0.2 * scale, 0.5 * scale)))
    scene = viewer.scene(DOUBLE.replace(geometry=(wide,)))
    camera = framing(scene)
    corners = np.array([[scene.box[k, i] for i, k in enumerate(c)] for c in np.ndindex(2, 2, 2)])
    x, y, back = camera.axes() @ (corners - camera.position).T
    high = np.max(np.abs(y) / -back) / camera.half_height(aspect)
    across = np.max(np.abs(x) / -back) / camera.half_height(aspect) / aspect
    assert 0.3 * min(aspect, 1 / aspect) < max(high, across) < 0.9


def test_what_flies_away_is_followed():
    satellite = kt.samples.satellite()
    q = np.tile(satellite.neutral(), (3, 1))
    q[:, 0] = [0.0, 30.0, 90.0]
    scene = viewer.scene(satellite, q)
    assert scene.goes_away
    assert scene.size < 10
    assert not viewer.scene(moving()).goes_away


@pytest.mark.parametrize(
    ("what", "options", "error", "message"),
    [
        ("pendulun", {}, kt.LoadError, r"no file 'pendulun', and no sample .*'pendulum'"),
        (42, {}, TypeError, "only a Model, a Trajectory, a World, a file or the name of a sample"),
        (DOUBLE, {"q": np.zeros((2, 2)), "t": [0.0]}, kt.ShapeError, "t must be 2 times in order"),
        (DOUBLE, {"q": np.zeros((1, 2, 2))}, kt.ShapeError, r"\(nq,\) or \(T, nq\) to be shown"),
    ],
)
def test_what_cannot_be_shown_is_rejected(what, options, error, message):
    with pytest.raises(error, match=message):
        viewer.scene(what, **options)


def test_one_motion_of_many_must_be_chosen():
    q = np.zeros((3, 4, 2))
    many = kt.Trajectory(DOUBLE, np.arange(3.0), q, q, q, q[..., 0], q[..., 0], q[..., 0])
    with pytest.raises(kt.ShapeError, match=r"4 motions; choose one .*trajectory.motion\(0\)"):
        viewer.scene(many)
    with pytest.raises(kt.ShapeError, match="a trajectory has its own positions"):
        viewer.scene(moving(), q=np.zeros(2))
    assert len(viewer.scene(many.motion(1)).times) == 3


def test_joints_whose_limits_exclude_zero_begin_in_the_middle():
    bent = DOUBLE.replace(limits={"elbow": kt.Limits(lower=0.5, upper=1.5)}, postures=())
    assert_close(
        viewer.scene(bent).positions[0, 1:3],
        kt.poses(DOUBLE, np.array([0.0, 1.0]))[:, :3, 3],
        ulps=8,
    )


def test_what_floats_begins_where_its_file_puts_it():
    ball = kt.ModelBuilder().body("ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1))
    model = ball.build()
    for names, expected in ((["qpos0"], 0), (["crouch", "initial"], 1), (["qpos0", "home"], 1)):
        places = [[0, 0, 1 + k, 0, 0, 0, 1] for k in range(len(names))]
        postures = [kt.Posture(n, q) for n, q in zip(names, places, strict=True)]
        shown = motions.motion_of(model.replace(postures=postures))
        assert shown.q[0, 2] == 1 + expected
