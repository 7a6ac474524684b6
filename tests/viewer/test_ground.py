"""The ground, slopes, walls and hills: what is drawn of what has no end."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree import viewer
from kinetree.contact import with_ground
from kinetree.model import geometry

LEG = kt.samples.hopping_leg()


def with_shape(shape, body=0, **options):
    piece = geometry.Geometry(body, shape, **options)
    return LEG.replace(geometry=(*LEG.geometry, piece))


def parts_named(scene, name):
    return [part for part in scene.parts if part.name == name]


def test_level_ground_is_the_floor_and_nothing_else():
    bare, scene = viewer.scene(LEG), viewer.scene(with_ground(LEG, point=(0, 0, -0.2)))
    assert scene.ground == scene.floor == -0.2
    assert bare.ground is None
    assert len(scene.parts) == len(bare.parts)
    assert_close(scene.box, bare.box, ulps=1)


def test_a_slope_is_a_sheet_around_the_motion():
    q = np.tile(LEG.neutral(), (3, 1))
    q[:, 0] = 0, 2, 4  # it slides away
    normal = np.array([0.3, 0.0, 1.0]) / np.hypot(0.3, 1)
    scene = viewer.scene(with_ground(LEG, normal=normal), q)
    (sheet,), (lines,) = parts_named(scene, "ground"), parts_named(scene, "lines on ground")
    assert scene.ground is None
    assert sheet.opacity < 1
    assert np.max(np.abs(sheet.surface.vertices @ normal)) < 1e-12
    assert 4 < np.ptp(sheet.surface.vertices[:, 0]) < 10
    assert np.all(lines.surface.vertices @ normal > 0)
    assert_close(scene.box, viewer.scene(LEG, q).box, ulps=1)


@pytest.mark.parametrize("size", [(0.0, 0.0), (50.0, 50.0)])
def test_planes_without_end_are_the_ground(size):
    assert viewer.scene(with_shape(geometry.Plane(size))).ground == 0.0


def test_a_small_plane_is_a_table_of_its_own_size():
    scene = viewer.scene(with_shape(geometry.Plane((0.4, 0.3)), name="table"))
    (table,) = parts_named(scene, "table")
    assert scene.ground is None
    assert_close(np.ptp(table.surface.vertices, axis=0), [0.4, 0.3, 0.0], ulps=4)


def test_a_plane_on_a_body_goes_with_it():
    scene = viewer.scene(
        with_shape(geometry.Plane((0.4, 0.3)), 2, name="tray", color=(1, 0, 0, 1.0))
    )
    (tray,) = parts_named(scene, "tray")
    assert (tray.node, tray.color, tray.opacity) == (2, (1, 0, 0), 0.5)


def test_hills_pass_through_their_heights_and_do_not_move_the_camera():
    heights = tuple(tuple(map(float, row)) for row in np.arange(12).reshape(3, 4) % 5)
    scene = viewer.scene(with_shape(geometry.HeightField(heights, (20.0, 30.0)), name="hills"))
    (hills,) = parts_named(scene, "hills")
    corners = {tuple(v) for v in np.round(hills.surface.vertices, 9)}
    for i, x in enumerate((-10.0, 0.0, 10.0)):
        for j, y in enumerate((-15.0, -5.0, 5.0, 15.0)):
            assert (x, y, heights[i][j]) in corners
    a, b, c = (hills.surface.vertices[hills.surface.faces[:, k]] for k in range(3))
    assert np.all(np.cross(b - a, c - a)[:, 2] > 0)  # seen from above
    assert_close(scene.box, viewer.scene(LEG).box, ulps=1)


def test_shapes_that_touch_are_drawn_where_only_the_ground_can_be_seen():
    hidden = [geometry.Geometry(1, geometry.Sphere(0.1), name="ball", visual=False)]
    model = with_ground(LEG.replace(geometry=tuple(hidden)))
    assert parts_named(viewer.scene(model), "ball of " + model.body_names[1])
