"""What the live viewer has on its stage, on the side of the server: no browser is needed."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt

DOUBLE = kt.samples.double_pendulum()
LIFT = np.array([0.0, 0, 0, 0, 0, 5.0])


def shown(what, **options):
    return kt.view(what, open=False, shadows=False, **options)


def test_a_still_keeps_its_ghost_its_contacts_and_its_forces_while_joints_are_dragged():
    contacts = kt.viewer.Contacts(np.zeros((1, 1, 3)), forces=np.ones((1, 1, 3)))
    forces = np.tile(LIFT, (2, 1))
    layers = ("bodies", "ghost", "contacts", "forces")
    with shown(DOUBLE, q=[0.1, 0.2], ghost=np.array([1.0, 0.0]), contacts=contacts, forces=forces,
               show=layers) as viewer:  # fmt: skip
        for q in ([0.1, 0.2], [0.5, 0.6]):
            viewer.pose(q)
            assert all(node.visible for node in viewer.drawing.nodes)
            assert set(viewer.drawing.arrows) >= {"contact forces", "applied forces"}
        ghost = viewer.scene.nodes.index("ghost of lower")
        expected = kt.poses(DOUBLE, np.array([1.0, 0.0]))[1, :3, 3]
        assert_close(np.array(viewer.drawing.nodes[ghost].position), expected, ulps=8)


def test_the_ghost_of_a_motion_goes_when_its_joints_are_dragged():
    with shown(DOUBLE, q=np.zeros((3, 2)), ghost=np.array([1.0, 0.0])) as viewer:
        ghost = viewer.scene.nodes.index("ghost of lower")
        assert viewer.drawing.nodes[ghost].visible
        viewer.pose([0.5, 0.6])
        assert not viewer.drawing.nodes[ghost].visible


def test_files_show_the_mechanism_as_the_sliders_have_it(tmp_path):
    with shown(DOUBLE) as viewer:
        before = viewer.picture(size=(40, 30))
        viewer.pose([1.5, 0.0])
        after = viewer.picture(size=(40, 30))
        viewer.save_html(tmp_path / "a.html")
    assert np.any(before != after)
    assert (tmp_path / "a.html").stat().st_size > 10_000


def test_what_goes_away_stays_in_view_while_the_ground_passes_by():
    satellite = kt.samples.satellite()
    q = np.tile(satellite.neutral(), (3, 1))
    q[:, 0], q[:, 2] = [0.0, 30.0, 90.0], [0.0, 0.0, 7.0]
    with shown(satellite, q=q) as viewer:
        stage, step = viewer.drawing, 10 * viewer.scene.grid_step
        height = viewer.drawing.ground.position[2]
        viewer.player.go(viewer.scene.duration)
        assert_close(np.array(stage.world.position), [-90.0, 0, -7.0], ulps=8)
        assert stage.ground.position[2] == pytest.approx(height - 7)
        passed = 90 + stage.ground.position[0]
        assert passed / step == pytest.approx(round(passed / step))
        stage.follow = False
        viewer.player.go(viewer.scene.duration)
        assert tuple(stage.world.position) == (0, 0, 0)


def test_bodies_can_be_seen_through():
    with shown(DOUBLE) as viewer:
        handles = [h for part, h in viewer.drawing.parts if part.layer == "bodies"]
        assert {h.opacity for h in handles} == {None}
        viewer.layers._clear(True)
        assert {h.opacity for h in handles} == {0.3}


def test_a_mechanism_without_joints_has_no_sliders():
    with shown(kt.ModelBuilder("nothing").build()) as viewer:
        assert viewer.sliders == []


def test_a_narrow_window_looks_from_farther_away_and_above_the_panel():
    with shown("cart_pole") as viewer:
        wide, narrow = (viewer.drawing._camera(aspect) for aspect in (1.6, 0.46))
    assert np.linalg.norm(narrow.position - narrow.target) > 2 * np.linalg.norm(
        wide.position - wide.target
    )
    assert narrow.target[2] < wide.target[2]


def test_long_motions_can_be_played_faster():
    for duration, fastest in ((2.0, "5"), (600.0, "100")):
        with shown(DOUBLE, q=np.zeros((2, 2)), t=[0.0, duration]) as viewer:
            assert viewer.player.speed.options[-1] == fastest
