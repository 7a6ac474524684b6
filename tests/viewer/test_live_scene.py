"""What the live viewer has on its stage, on the side of the server: no browser is needed."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.viewer.browser.live import effective_mass

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
        viewer.layers._set_transparency(True)
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


def box_world():
    world = kt.World()
    world.add_ground()
    world.add(kt.geometry.Box((0.2, 0.2, 0.2)), mass=1.0, at=(0, 0, 0.1), name="box")
    world.step(5)
    return world


def test_a_body_hangs_from_the_mouse_by_a_spring_and_falls_when_it_is_released():
    world = box_world()
    before = world.q.copy()
    with shown(world) as viewer:
        live = viewer.live
        live.drag(1, "start", (0, 0, 0.2), (0, 0, 0.8))
        live.play(False)
        mass = effective_mass(world.model, world.q, 1, np.array([0, 0, 0.1]))
        assert live.grip.mass == pytest.approx(mass)
        # A force at the top turns the cube, too: 1 / m + h² / I, with I = m a² / 6.
        assert mass == pytest.approx(1 / (1 + 0.1**2 / (0.2**2 / 6)))
        for _ in range(60):
            live.advance(1 / 30)
        live.show()
        sag = 9.81 / (mass * 20.0**2)
        assert viewer.q[2] == pytest.approx(0.8 - 0.1 - sag, abs=2e-3)
        assert live._spring is not None
        live.drag(1, "end", None, None)
        for _ in range(30):
            live.advance(1 / 30)
        live.show()
        assert viewer.q[2] == pytest.approx(0.1, abs=1e-3)
        assert live._spring is None
        assert "contact forces" in viewer.drawing.arrows
        live.reset()
        assert_close(live.world.q, before)
    assert_close(world.q, before)  # the viewer has a copy


def test_sliders_put_a_running_world_to_rest_where_they_are():
    with shown(box_world()) as viewer:
        viewer.live.play()
        viewer.live.put(np.array([0.0, 0, 0.5, 1, 0, 0, 0]))
        assert not viewer.live.playing
        assert viewer.live.world.q[2] == 0.5
        assert not np.any(viewer.live.world.qd)
