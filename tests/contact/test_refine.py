"""Ways in which a normal stands on a solid: points, their derivatives, edges; and corners of hulls.

Where one of them is wrong another way to the nearest points is found.
"""

import numpy as np
import pytest
import trimesh
from support.closeness import assert_close

from kinetree.codegen.procedures import local
from kinetree.contact.collision.kinds.kind import EDGE, FACE, SINGLE
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.collision.standing import Side, stand, within
from kinetree.contact.collision.support import MODES, farthest_vertex, support
from kinetree.contact.finding.shapes import Placed
from kinetree.model.geometry import Cone, Cylinder, Ellipsoid, Mesh
from kinetree.spatial.rotation import rotation_exp

SOLIDS = {"ellipsoid": Ellipsoid((0.1, 0.2, 0.3)), "cylinder": Cylinder(0.2, 0.5),
          "cone": Cone(0.2, 0.5)}  # fmt: skip
ORIGIN = np.zeros(3)


def stood(shapes, mode, n, other):
    """How a normal stands on the first shape in a mode, all in the world."""
    side = local(Side)
    side.shape, side.count, side.mode = 0, 0, mode
    side.normal[:] = n
    side.bend[:], side.line[:] = 7.0, 7.0
    assert stand(shapes, side, ORIGIN, other) == side.status
    return side


@pytest.mark.parametrize("name", SOLIDS)
def test_points_on_which_a_normal_stands(name, rng):
    """The farthest one is among them; it moves with the normal as the derivative says."""
    seen, h = set(), 1e-6
    for _ in range(40):
        R, o = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
        shapes = placed_table(Placed(SOLIDS[name], R, o))
        kind, n = shapes.kind[0], rng.normal(size=3)
        n /= np.linalg.norm(n)
        farthest, corners = np.zeros(3), np.zeros((6, 3))
        support(shapes, 0, corners, np.zeros(3), n, 0, farthest)
        best, other = -np.inf, farthest + 0.1 * rng.normal(size=3)
        for mode in range(MODES[kind]):
            side = stood(shapes, mode, n, other)
            status, p, bend = side.status, side.point, side.bend
            if status == SINGLE:
                best = max(best, p @ n if inside(shapes, p) else -np.inf)
                for t in np.linalg.svd(n[None])[2][1:]:
                    ahead = stood(shapes, mode, n + h * t, other).point
                    behind = stood(shapes, mode, n - h * t, other).point
                    np.testing.assert_allclose(bend @ t, (ahead - behind) / (2 * h), atol=1e-7)
                    assert_close(bend, bend.T, scale=1.0)
                on = within(shapes, side, ORIGIN, 1e-9)
                assert on or not inside(shapes, p) or abs(p @ n - farthest @ n) > 1e-9
            elif status in (EDGE, FACE):
                assert_close(np.linalg.norm(side.line[:3]), 1.0, scale=1.0)
                assert inside(shapes, p) or status == EDGE
            seen.add(status)
        if best > -np.inf:
            assert best <= farthest @ n + 1e-12
    assert SINGLE in seen
    assert len(seen) > 1 or name == "ellipsoid"


def inside(shapes, p):
    """Whether a point is in the first shape, but for rounding."""
    x = shapes.pose[0].reshape(3, 4)[:, :3].T @ (p - shapes.pose[0, 3::4])
    corners, best = np.zeros((6, 3)), -np.inf
    for d in DIRECTIONS:
        far = np.zeros(3)
        d = shapes.pose[0].reshape(3, 4)[:, :3] @ d
        support(shapes, 0, corners, np.zeros(3), d, 0, far)
        best = max(best, (p - far) @ d)
    return best < 1e-9 and bool(np.all(np.isfinite(x)))


DIRECTIONS = trimesh.creation.icosphere(subdivisions=2).vertices


def test_farthest_corners_of_hulls_wherever_the_search_begins(tmp_path, rng):
    """Also from what is no corner of this hull, but of the next one in the tables."""
    sizes = (0.1, 0.3, 0.2)
    for k, size in enumerate(sizes):
        trimesh.creation.icosphere(subdivisions=2, radius=size).export(tmp_path / f"{k}.stl")
    meshes = [Mesh(str(tmp_path / f"{k}.stl")) for k in range(3)]
    shapes = placed_table(*(Placed(m, np.eye(3), np.zeros(3)) for m in meshes))
    for i in range(3):
        first, count = shapes.data[i, :2]
        corners = shapes.vertex[first : first + count]
        for d in rng.normal(size=(20, 3)):
            expected = corners @ d
            for start in (-1, 0, first, first + count - 1, first + count, len(shapes.vertex) - 1):
                found = farthest_vertex(shapes, i, *d, int(start))
                assert first <= found < first + count
                assert_close(shapes.vertex[found] @ d, expected.max(), scale=1.0)
