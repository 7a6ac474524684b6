"""Normals where rays meet shapes, against the surface that neighbouring rays find."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Sphere,
)
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import rotation_exp

ROW = np.arange(9)
HEIGHTS = 0.1 * np.sin(1.3 * ROW)[:, None] + 0.15 * np.cos(0.9 * ROW + ROW[:, None])
SHAPES = [
    Box((0.6, 0.8, 1.0)), Sphere(0.5), Ellipsoid((0.3, 0.4, 0.5)), Cylinder(0.4, 1.0),
    Capsule(0.4, 1.0), Cone(0.4, 1.0), Plane(), HeightField(HEIGHTS, size=(3.0, 3.0)),
]  # fmt: skip
H = 1e-5


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: type(s).__name__)
def test_neighbouring_rays_meet_the_tangent_plane(shape, rng):
    """The hit of a ray beside is farther along by what the normal says, to second order."""
    turn = np.eye(3) if isinstance(shape, HeightField) else rotation_exp(rng.normal(size=3))
    at = np.array([0.2, -0.1, 0.3])
    b = kt.ModelBuilder("still")
    b.body("far", joint=kt.Revolute("z"), inertia=kt.shapes.sphere(0.1, mass=1.0))
    b.geometry(shape, at=Plucker(turn, at), name="met")
    model, seen = b.build(), 0
    for _ in range(200):
        target = at + turn.T @ (rng.uniform(-0.25, 0.25, 3) * (1, 1, 0.5))
        start = target + turn.T @ (rng.normal(size=3) * 0.6 + (0, 0, 2.0))
        d = (target - start) / np.linalg.norm(target - start)
        hit = kt.contact.ray_cast(model, np.zeros(1), start, d)
        if not np.isfinite(hit.distance) or abs(hit.normal @ d) < 0.2:
            continue
        if isinstance(shape, (HeightField, Plane)):
            assert (turn @ hit.normal)[2] > 0  # also of a ray that comes from below
        side = np.cross(d, rng.normal(size=3))
        side /= np.linalg.norm(side)
        near = [kt.contact.ray_cast(model, np.zeros(1), start + s * H * side, d) for s in (-1, 1)]
        if any(np.linalg.norm(x.normal - hit.normal) > 1e-3 for x in near):
            continue  # an edge lies between
        rate = (near[1].distance - near[0].distance) / (2 * H)
        assert abs(rate + (hit.normal @ side) / (hit.normal @ d)) < 1e-4
        seen += 1
    assert seen > 30
