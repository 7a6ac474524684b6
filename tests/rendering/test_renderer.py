"""Pixels of triangles and planes against their definitions; machine code against Python."""

import numpy as np
import pytest

from kinetree.model import geometry
from kinetree.rendering import painting, renderer
from kinetree.rendering.renderer import (
    GROUND,
    LINES,
    PLANE_SURFACE,
    Ground,
    Renderer,
    Sky,
    SurfacePiece,
    Viewpoint,
)
from kinetree.rendering.surfaces import Surface, surface_of

HERE = np.eye(3, 4).reshape(1, 12)
SKY = Sky(np.array([0.5, 0.7, 0.6]), np.array([0.0, 0.0, 1.0]))


def seen(points, faces, width, height):
    """Depths and faces of triangles whose corners are columns, rows and depths."""
    x, y, depth = np.array(points, dtype=float).T
    at = np.column_stack([(x - width / 2) * depth, (height / 2 - y) * depth, -depth])
    pieces = [SurfacePiece(Surface(at, np.array([face])), 0, (1, 1, 1)) for face in faces]
    view = Viewpoint(np.zeros(3), np.eye(3), (width, height), 1.0)
    return Renderer(pieces).measure(HERE, view)


def looking_down(height=4.0, size=(40, 30), pixel=0.02):
    return Viewpoint(np.array([0.0, 0, height]), np.eye(3), size, pixel)


def test_a_triangle_covers_the_pixels_whose_centres_are_in_it():
    depth, owner = seen([[0, 0, 1], [8, 0, 1], [0, 8, 1]], [[0, 1, 2]], 10, 10)
    y, x = np.mgrid[:10, :10] + 0.5
    inside = x + y <= 8
    assert np.array_equal(owner == 0, inside)
    assert np.allclose(depth[inside], 1, rtol=1e-14)
    assert np.all(np.isinf(depth[~inside]))


def test_a_long_thin_triangle_covers_the_same_pixels_tile_by_tile():
    a, b, c = points = np.array([[3.1, 2.2], [57.4, 49.3], [60.2, 58.7]])
    _, owner = seen(np.column_stack([points, np.ones(3)]), [[0, 1, 2]], 64, 64)
    y, x = np.mgrid[:64, :64] + 0.5
    at = np.stack([x, y], axis=-1)
    edges = ((a, b), (b, c), (c, a))
    sides = [(r - p)[0] * (at - p)[..., 1] - (r - p)[1] * (at - p)[..., 0] for p, r in edges]
    inside = np.all(np.array(sides) >= 0, axis=0)
    assert inside.sum() > 100
    assert np.array_equal(owner == 0, inside)


def test_what_is_nearer_hides_what_is_behind():
    square = np.array([[0.0, 0, 0], [9, 0, 0], [0, 9, 0]])
    points = np.concatenate([square + np.array([0, 0, depth]) for depth in (2, 1, 3)])
    _, owner = seen(points, np.arange(9).reshape(3, 3), 9, 9)
    assert set(owner.ravel()) == {-1, 1}


def test_triangles_that_share_an_edge_leave_no_gap_and_slanted_ones_are_as_deep_as_their_plane(rng):
    corners = np.array([[0.0, 0, 1], [32, 0, 2], [32, 32, 3], [0, 32, 1.5]])
    inside = np.array([16.0, 16.0, 1.7])
    fan = [[4, k, (k + 1) % 4] for k in range(4)]
    depth, owner = seen([*corners, inside], fan, 32, 32)
    assert np.all(owner >= 0)
    # 1 / depth is linear in each triangle
    for k in range(4):
        rows, columns = np.nonzero(owner == k)
        A = np.column_stack([columns, rows, np.ones(len(rows))])
        solved = np.linalg.lstsq(A, 1 / depth[rows, columns], rcond=None)[0]
        assert np.abs(A @ solved * depth[rows, columns] - 1).max() < 1e-12


def test_a_triangle_that_reaches_behind_the_eye_is_as_the_plane_that_it_is_in():
    wide = np.array([[-1e3, -1e3, 0], [1e3, -1e3, 0], [0, 1e3, 0.0]])
    axes = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # along y, z upwards
    view = Viewpoint(np.array([0.0, 0, 1.5]), axes, (40, 30), 0.05, near=0.01)
    depth, _ = Renderer([SurfacePiece(Surface(wide, np.array([[0, 1, 2]])), 0, (1, 1, 1))]).measure(
        HERE, view
    )
    plane, _ = Renderer([SurfacePiece(PLANE_SURFACE, 0, (1, 1, 1))]).measure(HERE, view)
    below = (np.arange(30) + 0.5 - 15) * 0.05
    expected = np.where(below > 0, 1.5 / np.maximum(below, 1e-9), np.inf)
    assert np.allclose(plane, expected[:, None], rtol=1e-13)
    assert np.allclose(depth, expected[:, None], rtol=1e-11)


def test_the_silhouette_of_a_sphere_is_a_circle_of_the_known_radius():
    radius, distance, pixel = 0.5, 3.0, 0.004
    view = looking_down(distance, (160, 160), pixel)
    ball = surface_of(geometry.Sphere(radius))
    depth, owner = Renderer([SurfacePiece(ball, 0, (1, 1, 1))]).measure(HERE, view)
    expected = radius / np.sqrt(distance**2 - radius**2) / pixel
    area = np.pi * expected**2
    assert 0.98 * area < np.sum(owner == 0) < area + 2 * expected
    assert depth.min() == pytest.approx(distance - radius, rel=2e-3)


def test_of_closed_surfaces_only_the_outside_is_seen():
    box = surface_of(geometry.Box((1.0, 1.0, 1.0)))
    inside = Viewpoint(np.zeros(3), np.eye(3), (8, 8), 0.1)
    assert np.all(Renderer([SurfacePiece(box, 0, (1, 1, 1))]).measure(HERE, inside)[1] == -1)
    walls = Surface(box.vertices, box.faces)
    depth, _ = Renderer([SurfacePiece(walls, 0, (1, 1, 1))]).measure(HERE, inside)
    assert np.allclose(depth, 0.5, rtol=1e-14)


def scene():
    box = surface_of(geometry.Box((0.4, 0.4, 0.4)))
    pieces = [
        SurfacePiece(PLANE_SURFACE, 0, (0.8, 0.8, 0.8), grid=(0.5, 50.0)),
        SurfacePiece(box, 1, (0.9, 0.2, 0.2)),
        SurfacePiece(box, 2, (0.2, 0.2, 0.9), 0.4, casts=False),
    ]
    poses = np.tile(np.eye(3, 4), (3, 1, 1))
    poses[1, :, 3], poses[2, :, 3] = (0, 0, 1.0), (0.3, 0, 2.0)
    return Renderer(pieces), poses.reshape(-1, 12)


def test_a_shadow_falls_where_the_ray_towards_the_sun_is_blocked():
    renderer, poses = scene()
    view = looking_down(size=(120, 90), pixel=0.012)
    bright = renderer.paint(poses, view, SKY._replace(shadows=False)).astype(int).sum(-1)
    dark = renderer.paint(poses, view, SKY).astype(int).sum(-1)
    poses[1, 3] = poses[2, 3] = np.nan
    depth, owner = renderer.measure(poses, view)
    assert np.all(owner == 0)
    row, column = np.mgrid[:90, :120] + 0.5
    at = np.stack([(column - 60) * 0.012, (45 - row) * 0.012], axis=-1) * depth[..., None]
    sun = SKY.sun / SKY.sun[2]

    def blocked(half):
        """Whether the ray meets a box of this half side at the height 1, slab by slab."""
        low, high = ((s * half - at) / sun[:2] for s in (-1, 1))
        return np.maximum(low.max(-1), 1 - half) < np.minimum(high.min(-1), 1 + half)

    seen_there = renderer.measure(scene()[1], view)[1] == 0
    shaded = (dark < 0.9 * bright) & seen_there
    core = blocked(0.16) & seen_there
    assert core.sum() > 100
    assert np.all(shaded[core])
    assert not np.any(shaded & ~blocked(0.3))


def test_nothing_casts_no_shadow_on_ground_however_far_it_is():
    renderer, poses = scene()
    poses[1, 11], poses[2, 3] = 9.0, np.nan
    view = looking_down(size=(120, 90), pixel=0.25)
    bright, dark = (renderer.paint(poses, view, SKY._replace(shadows=x)) for x in (False, True))
    shaded = np.any(dark.astype(int) < 0.9 * bright, axis=-1)
    assert 0 < shaded.sum() < 8


def test_pictures_are_the_same_to_the_bit_on_any_number_of_threads():
    renderer, poses = scene()
    view = looking_down(size=(200, 300), pixel=0.005)
    one, several = (renderer.paint(poses, view, SKY, most=n) for n in (1, 3))
    assert np.array_equal(one, several)
    one, several = (renderer.measure(poses, view, most=n) for n in (1, 3))
    assert all(np.array_equal(a, b) for a, b in zip(one, several, strict=True))


def test_edges_are_smooth():
    square = Surface(np.array([[-1.0, -2, 0], [0.01, -2, 0], [0.01, 2, 0]]), np.array([[0, 1, 2]]))
    renderer = Renderer([SurfacePiece(square, 0, (0, 0, 0), casts=False)])
    view = looking_down(1.0, (8, 4), 0.05)
    colors = renderer.paint(HERE, view, SKY).astype(int)[2, :, 0]
    steps = [renderer.paint(HERE, view, SKY, samples=n).astype(int)[2, 4, 0] for n in (1, 2, 4)]
    assert colors[0] < 100 < colors[5]
    assert len(set(steps)) > 1  # of the pixel that the edge crosses


def test_machine_code_computes_what_the_text_says(monkeypatch):
    box = surface_of(geometry.Box((0.4, 0.4, 0.4)))
    pieces = [SurfacePiece(box, 0, (0.9, 0.2, 0.2)), SurfacePiece(box, 1, (0.2, 0.2, 0.9), 0.4)]
    poses = np.tile(np.eye(3, 4), (2, 1, 1))
    poses[0, :, 3], poses[1, :, 3] = (0, 0, 1.0), (0.1, 0, 1.5)
    view = looking_down(size=(6, 5), pixel=0.1)
    look = {"normal": SKY.up, "color": GROUND, "lines": LINES}
    ground = Ground(drawn=True, along=np.eye(3)[:2].copy(), step=0.5, reach=5.0, **look)

    def pictures():
        drawn = Renderer(pieces)
        arrays = poses.reshape(-1, 12)
        return drawn.paint(arrays, view, SKY, ground, samples=1), *drawn.measure(arrays, view)

    compiled = pictures()
    for name in ("look", "paint_tiles", "measure_tiles"):
        monkeypatch.setattr(painting, name, getattr(painting, name).python)
    monkeypatch.setattr(renderer, "cast_shadows", renderer.cast_shadows.python)
    for a, b in zip(compiled, pictures(), strict=True):
        assert np.array_equal(a, b)
