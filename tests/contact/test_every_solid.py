"""Every solid of ``geometry.SOLIDS``: its class, its kind in collision, files, picture and motion.

The class says extents, inertia and outline, the kind support points, rays and membership. They are
written independently of each other, so each is checked by the others, and by points that are drawn
at random. A new solid is found here by itself.
"""

from itertools import combinations_with_replacement

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.collision.kinds import OF_SOLIDS
from kinetree.contact.collision.kinds.lines import NONE
from kinetree.contact.collision.on_fields import FEET
from kinetree.contact.collision.tables import number_of
from kinetree.errors import ModelError, ModelWarning
from kinetree.model.geometry import SHAPES, SOLIDS, Box, HeightField, Mesh, Plane
from kinetree.rendering.surfaces import surface_of
from tests.support.convex_shapes import unit_vectors

SIZES = (0.2, 0.35, 0.27)
EACH = [kind.from_sizes(SIZES[: sum(kind.counts().values())]) for kind in SOLIDS]
PAIRS = list(combinations_with_replacement(EACH, 2))


def name_of(x):
    """Identifiers of cases."""
    return x.spelling() if isinstance(x, SHAPES) else None


def core(shape):
    """Kind, sizes for its procedures, and the radius of the ball around its core."""
    kind = OF_SOLIDS[type(shape)]
    size = np.array((*shape.half_sizes, 0.0, 0.0)[:3])
    return kind, size, size[0] if kind.is_rounded else 0.0


def farthest(shape, d):
    """The point of a solid farthest along a unit direction."""
    kind, size, radius = core(shape)
    x = np.zeros(3)
    kind.support(size, np.ascontiguousarray(d), x)
    return x + radius * d


def points_inside(shape, rng, n=20000):
    """Points of the box around a solid, and which of them are in it."""
    kind, size, _ = core(shape)
    x = rng.uniform(-1, 1, (n, 3)) * shape.half_extents
    return x, np.array([kind.contains(size, p, 0.0) for p in x])


def test_all_solids_have_a_kind_and_say_how_they_stand_on_height_fields():
    assert set(OF_SOLIDS) == set(SOLIDS)
    with_feet = {number_of(s) for s, kind in OF_SOLIDS.items() if kind.has_feet}
    assert with_feet == set(FEET.cases)


@pytest.mark.parametrize("shape", EACH, ids=name_of)
class TestOfItself:
    def test_mass_and_centre_are_those_of_points_inside(self, shape, rng):
        x, inside = points_inside(shape, rng)
        inertia = shape.inertia(2.0)
        volume = inside.mean() * np.prod(2 * np.array(shape.half_extents))
        assert inertia.mass == pytest.approx(2.0 * volume, rel=0.03)
        center = x[inside].mean(axis=0)
        np.testing.assert_allclose(inertia.center_of_mass, center, atol=0.01)
        away = x[inside] - center
        spread = np.trace(inertia.rotational_at_center) / inertia.mass / 2
        assert spread == pytest.approx(np.mean(np.sum(away**2, axis=1)), rel=0.03)

    def test_support_points_are_farther_than_all_points_inside_and_of_the_solid(self, shape, rng):
        kind, size, _ = core(shape)
        x, inside = points_inside(shape, rng)
        for d in unit_vectors(rng, 60):
            p = farthest(shape, d)
            assert np.max(x[inside] @ d) <= p @ d + 1e-15
            assert kind.contains(size, p, 1e-12)
            assert np.linalg.norm(p) <= shape.reach + 1e-15
            assert np.all(np.abs(p) <= np.array(shape.half_extents) + 1e-15)

    def test_rays_end_on_the_surface_with_a_normal_that_supports_it(self, shape, rng):
        kind, size, _ = core(shape)
        met = 0
        for _ in range(300):
            x = rng.normal(size=3)
            v = rng.uniform(-1.5, 1.5, 3) * shape.half_extents - x
            v /= np.linalg.norm(v)
            n = np.zeros(3)
            t = kind.ray(size, x, v, n)
            if t == NONE:
                samples = x + np.linspace(0, 4, 400)[:, None] * v
                assert not any(kind.contains(size, p, -1e-9) for p in samples)
                continue
            met += 1
            p = x + t * v
            assert kind.contains(size, p, 1e-9)
            assert not kind.contains(size, p, -1e-9)
            assert np.linalg.norm(n) == pytest.approx(1, abs=1e-14)
            assert farthest(shape, n) @ n == pytest.approx(p @ n, abs=1e-12)
            if not kind.contains(size, x, 0.0):
                assert v @ n < 0
        assert 100 < met < 300

    def test_points_are_moved_to_the_nearest_point(self, shape, rng):
        kind, size, radius = core(shape)
        for d in unit_vectors(rng, 100):
            p = farthest(shape, d) + 1e-7 * d
            x = p - radius * d
            kind.clip(size, x)
            assert 0.99e-7 < np.linalg.norm(p - (x + radius * d)) < 2e-7
            assert kind.contains(size, x + radius * d, 1e-12)

    def test_faces_are_level_and_of_the_solid(self, shape, rng):
        kind, size, radius = core(shape)
        if kind.face is None:
            return
        out = np.zeros((16, 3))
        directions = np.concatenate([unit_vectors(rng, 60), np.eye(3), -np.eye(3)])
        for d in directions:
            count = kind.face(size, np.ascontiguousarray(d), 0.2, out)
            for p in out[:count] + radius * d:
                assert kind.contains(size, p, 1e-12)
                assert (farthest(shape, d) - p) @ d <= 0.21 * 2 * shape.reach

    def test_the_picture_is_closed_and_as_large(self, shape):
        surface = surface_of(shape)
        corners = surface.vertices[surface.faces]
        volume = np.sum(np.linalg.det(corners)) / 6
        assert volume == pytest.approx(shape.inertia(1.0).mass, rel=0.03)
        kind, size, _ = core(shape)
        assert all(kind.contains(size, p, 1e-9) for p in surface.vertices)

    def test_files_that_have_it_return_it(self, shape, tmp_path):
        b = kt.ModelBuilder("one").body("b", joint=kt.Revolute("x"), inertia=shape.inertia(100.0))
        m = b.geometry(shape, on="b", at=(0.1, 0.2, 0.3)).build()
        for ending in ("json", "toml", "sdf", "urdf", "xml"):
            path = str(tmp_path / f"one.{ending}")
            spelled = {"xml": "mjcf"}.get(ending, ending)
            if spelled in ("urdf", "sdf", "mjcf") and spelled not in shape.formats:
                continue
            kt.save(m, path)
            for g in kt.load(path).geometry:  # of some formats, one to be seen and one to touch
                assert type(g.shape) is type(shape)
                np.testing.assert_allclose(g.shape.sizes, shape.sizes, rtol=1e-12)

    def test_mujoco_has_it_or_a_mesh_of_it(self, shape, tmp_path):
        mujoco = pytest.importorskip("mujoco")
        b = kt.ModelBuilder("one").body("b", joint=kt.Free(), inertia=shape.inertia(100.0))
        m = b.geometry(shape, on="b").build()
        path = str(tmp_path / "one.xml")
        if "mjcf" in shape.formats:
            kt.save(m, path)
        else:
            with pytest.warns(ModelWarning, match=f"round faces of the {shape.spelling()} 0"):
                kt.save(m, path)
        theirs = mujoco.MjModel.from_xml_path(path)
        assert theirs.ngeom == 1

    def test_it_grows_with_a_batch(self, shape):
        grown = shape.grown(1.5)
        np.testing.assert_allclose(grown.sizes, np.multiply(shape.sizes, 1.5))
        world = kt.World()
        world.add(Plane(), name="ground")
        world.add(shape, mass=1.0, at=(0, 0, 1.0), name="it")
        worlds = world.batch(2, size={"it": [1.0, 1.5]})
        assert worlds[1].model.geometry[-1].shape == grown

    def test_it_falls_onto_level_ground_in_any_posture_and_does_not_sink_in(self, shape, rng):
        """The lowest point comes to the ground, the plane or the table, and stays there."""
        world = kt.World()
        world.add(Plane(), name="ground")
        world.add(Box((2.0, 2.0, 0.2)), name="table", at=(3, 0, 0.1))
        for k in range(4):
            turn = kt.rotx(rng.uniform(-3, 3)) @ kt.roty(rng.uniform(-3, 3))
            at = kt.Plucker(turn.E, np.array([3.0 * (k // 2), k % 2 - 0.5, 0.7]))
            world.add(shape, mass=1.0, at=at, name=f"it{k}")
        lowest = []
        for _ in range(20):
            world.step(30)
            poses = [world[f"it{k}"].pose for k in range(4)]
            turns = [(T[:3, :3], T[2, 3] - 0.2 * (k // 2)) for k, T in enumerate(poses)]
            lowest.append([z + (R @ farthest(shape, -R[2]))[2] for R, z in turns])
        assert np.min(lowest) > -1e-3
        assert np.max(lowest[-1]) < 0.05
        assert np.max(np.min(lowest, axis=0)) < 2e-3


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=name_of)
def test_nearest_points_of_all_pairs_are_proved(a, b, rng):
    """The slab along the normal is as wide as the points are apart, and they are of the solids."""
    from kinetree.contact.collision.convex import convex_distance
    from kinetree.contact.finding.shapes import Placed

    (kind_a, size_a, _), (kind_b, size_b, _) = core(a), core(b)
    for k in range(40):
        R, Q = (kt.rotx(rng.uniform(-3, 3)).E @ kt.rotz(rng.uniform(-3, 3)).E for _ in "ab")
        if k % 4 == 0:
            R = Q = np.eye(3)
        x = rng.normal(size=3) * 0.5
        found = convex_distance(Placed(a, R, np.zeros(3)), Placed(b, Q, x))
        n = found.normal
        first = R @ farthest(a, R.T @ n)
        second = x + Q @ farthest(b, -(Q.T @ n))
        assert (second - first) @ n == pytest.approx(found.gap, abs=2e-13)
        if found.gap > 0:  # otherwise a slab alone is the proof that none is thinner nearby
            assert kind_a.contains(size_a, R.T @ found.foot, 1e-7)
            assert kind_b.contains(size_b, Q.T @ (found.foot + found.gap * n - x), 1e-7)


@pytest.mark.parametrize("shape", EACH, ids=name_of)
def test_it_lies_on_a_height_field_as_on_a_plane(shape):
    """On level ground of a height field it comes to rest where it does on a plane."""
    heights = []
    for ground in (Plane(), HeightField(((0.0,) * 5,) * 5, (4.0, 4.0))):
        world = kt.World()
        world.add(ground, name="ground")
        world.add(shape, mass=1.0, at=(0, 0, 0.5), name="it")
        world.step(1000)
        heights.append(world["it"].pose[2, 3])
    assert heights[0] == pytest.approx(heights[1], abs=1e-4)


def test_sizes_of_a_batch_are_for_solids(tmp_path):
    world = kt.World()
    world.add(Plane(), name="ground")
    world.add(Box((1, 1, 1)), mass=1.0, at=(0, 0, 2), name="box")
    text = (
        r"size of a batch, which is for solids with sizes \(Box, Capsule, .*\), .*which is a Plane"
    )
    with pytest.raises(ModelError, match=text):
        world.batch(2, size={"ground": [1.0, 2.0]})
    assert not Mesh.formats
