"""What makes pictures quick changes none of their bits."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.rendering.shading import nearest, whole
from kinetree.rendering.tiles import fill


@pytest.mark.parametrize("x", [0.0, 0.5, 1.5, 254.49999, 254.5, -3.2, 1e12 + 0.25, 2.0**50 + 0.5])
def test_numbers_are_rounded_without_integers(x):
    assert whole(x) == whole.python(x) == np.floor(x)
    assert nearest(x) == nearest.python(x) == np.rint(x)


@pytest.mark.parametrize("size", [(64, 40), (70, 40)])  # rows of tiles, and others
def test_pictures_do_not_depend_on_the_width_in_tiles(size):
    world = kt.World()
    world.add_ground()
    world.add(kt.geometry.Box((0.5, 0.4, 0.3)), at=(0, 0, 0.15), name="box")
    camera = kt.camera((1.5, -1.0, 0.8), (0, 0, 0.1), size=size, angle=0.8)
    wide = kt.camera((1.5, -1.0, 0.8), (0, 0, 0.1), size=(96, 40), angle=0.8)
    ours, theirs = (world.render(c, shadows=False) for c in (camera, wide))  # their map has a size
    cut = (96 - size[0]) // 2
    assert np.abs(ours.astype(int) - theirs[:, cut:-cut]).max() <= 1
    assert len(np.unique(ours)) > 20
    both = world.render(camera, ("depth", "color"), shadows=False)
    np.testing.assert_array_equal(both["color"], ours)
    np.testing.assert_array_equal(both["depth"], world.render(camera, "depth"))


def test_samples_of_triangles_are_those_of_python(rng):
    from kinetree.rendering.tables import TileWork

    side, count = 32, 12
    linear = 0.3 * rng.standard_normal((count, 12))
    linear[:, 2::3] += 4.0
    bounds = np.sort(rng.integers(0, side, (count, 2, 2)), axis=2).reshape(count, 4)
    work = TileWork(linear=linear, bounds=bounds.astype(np.int64))
    found = []
    for run in (fill, fill.python):
        near, face = np.zeros(side * side), np.full(side * side, -1)
        for k in range(count):
            run(work, k, 0, 0, side, 20.0, near, face)
        found.append((near, face))
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-13)  # a product is rounded twice
    assert (found[0][1] >= 0).sum() > 50
