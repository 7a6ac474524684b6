"""Where rays meet shapes."""

import numpy as np
import pytest

from kinetree.contact.finding.rays import first_hit
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Sphere,
)

SHAPES = {
    Box((0.6, 0.8, 1.0)): lambda p: np.max(np.abs(p) / [0.3, 0.4, 0.5]) - 1,
    Sphere(0.5): lambda p: np.linalg.norm(p) - 0.5,
    Ellipsoid((0.3, 0.4, 0.5)): lambda p: np.linalg.norm(p / [0.3, 0.4, 0.5]) - 1,
    Cylinder(0.4, 1.0): lambda p: max(np.hypot(*p[:2]) - 0.4, abs(p[2]) - 0.5),
    Capsule(0.4, 1.0): lambda p: np.linalg.norm(p - [0, 0, np.clip(p[2], -0.5, 0.5)]) - 0.4,
    Plane(): lambda p: p[2],
}
"""Each with a function that is zero on its surface."""


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: type(s).__name__)
def test_the_first_point_is_on_the_surface_and_none_is_before_it(shape, rng):
    level, hits = SHAPES[shape], 0
    for _ in range(60):
        p = rng.normal(size=3)
        d = 0.3 * rng.normal(size=3) - p
        t = first_hit(shape, p, d)
        side = np.sign(level(p))
        before = np.linspace(0, min(t, 20.0), 200)[:-1]
        assert all(np.sign(level(p + s * d)) == side for s in before[:-1])
        if np.isfinite(t):
            assert abs(level(p + t * d)) < 1e-13 * (1 + t) ** 2
            hits += 1
    assert hits > 10


def test_triangles_of_meshes_and_ground(tmp_path):
    path = tmp_path / "wedge.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    mesh = Mesh(str(path), (2.0, 2.0, 2.0))
    down = np.array([0, 0, -1.0])
    assert first_hit(mesh, np.array([0.5, 0.5, 5.0]), down) == pytest.approx(4.0)
    assert first_hit(mesh, np.array([0.5, 0.5, 0.3]), down) == pytest.approx(0.3)  # from inside
    assert first_hit(mesh, np.array([1.5, 1.5, 5.0]), down) == np.inf
    ground = HeightField(((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)), (2.0, 4.0))
    assert first_hit(ground, np.array([0, 0, 3.0]), down) == pytest.approx(2.0)
    assert first_hit(ground, np.array([0.5, 0, 3.0]), down) == pytest.approx(2.5)
    assert first_hit(ground, np.array([0.5, -1.0, 3.0]), down) == pytest.approx(2.5)
    assert first_hit(ground, np.array([5.0, 0, 3.0]), down) == np.inf
