"""Collision in compiled code: near pairs, who may touch, materials, motion within the step."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from support.contact_scenes import wedge_in

import kinetree as kt
from kinetree.contact import Pair, Scene, with_ground
from kinetree.contact.collision.detect import Detection, detect, found_tables, material
from kinetree.contact.collision.placing import clearance, place_shapes
from kinetree.contact.collision.shape_tables import shape_tables
from kinetree.contact.collision.shapes import polyhedron, triangle_tree
from kinetree.contact.collision.sweep import may_touch as may_touch_in_tables
from kinetree.contact.collision.sweep import near_pairs, pair_tables
from kinetree.contact.collision.tables import ALL, LISTED, WITH_BASE
from kinetree.contact.contacts import bias
from kinetree.contact.finding.pairs import FRICTION, RESTITUTION, ROLLING, TORSION, may_touch
from kinetree.contact.finding.shapes import Hull
from kinetree.model.geometry import (
    Box,
    Capsule,
    ContactPair,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Mesh,
    Plane,
    Sphere,
    Surface,
    joined_surface,
)

SOLID = (
    Box((0.3, 0.2, 0.4)), Sphere(0.15), Capsule(0.1, 0.3), Cylinder(0.1, 0.2),
    Ellipsoid((0.1, 0.2, 0.15)),
)  # fmt: skip
INERTIA = kt.shapes.sphere(0.1, mass=1.0)


def free_bodies(shapes, surfaces=None, ground=True):
    b = kt.ModelBuilder("heap")
    for k, shape in enumerate(shapes):
        b.body(f"b{k}", joint=kt.Free(), inertia=INERTIA)
        b.geometry(shape, on=f"b{k}", name=f"s{k}", surface=surfaces and surfaces[k])
    model = b.build()
    return with_ground(model) if ground else model


def at_random(model, rng, spread):
    q = model.random_configuration(rng.integers(2**31))
    poses = kt.poses(model, q)
    poses[:, :3, 3] = rng.uniform(-spread, spread, (len(poses), 3))
    return poses


def brute_force(detection, poses, margin):
    """Pairs of shapes within a margin among all pairs, since everything is near to everything."""
    found = detection.find(poses, 100.0)
    assert found.pairs == 60 * 61 / 2
    near = found.gap[: found.count] <= margin
    ends = np.sort(np.column_stack([found.first, found.second])[: found.count][near], axis=1)
    return set(map(tuple, ends.tolist()))


def pairs_found(found):
    ends = zip(
        found.first[: found.count].tolist(), found.second[: found.count].tolist(), strict=True
    )
    return {(min(pair), max(pair)) for pair in ends}


@pytest.mark.covers("RBDA 11.6", by=(detect, near_pairs))
def test_all_pairs_within_the_margin_are_found(rng):
    model = free_bodies([SOLID[k % 5] for k in range(60)])
    detection = Detection(Scene(model))
    for margin in (0.0, 0.05, 0.3):
        for spread in (0.4, 1.0, 3.0):
            poses = at_random(model, rng, spread)
            found = detection.find(poses, margin)
            assert found.gap[: found.count].max(initial=0.0) <= margin
            assert found.pairs < 60 * 61 / 2 or spread < 1
            assert pairs_found(found) == brute_force(detection, poses, margin)


def test_the_order_of_contacts_does_not_depend_on_earlier_steps(rng):
    model = free_bodies([SOLID[k % 5] for k in range(40)])
    old = Detection(Scene(model))
    for _ in range(4):
        poses = at_random(model, rng, 0.8)
        a, b = old.find(poses, 0.1), Detection(Scene(model)).find(poses, 0.1)
        for name in ("first", "second", "feature", "point", "normal", "gap"):
            np.testing.assert_array_equal(getattr(a, name)[: a.count], getattr(b, name)[: b.count])


def test_python_and_machine_code_agree(rng):
    model = free_bodies([Sphere(0.2) for _ in range(12)])
    detection = Detection(Scene(model))
    shapes, special, _ = detection.tables
    one = detection.find(at_random(model, rng, 0.4), 0.1)
    two = found_tables(64)
    place_shapes.python(shapes, detection.poses)
    assert detect.python(shapes, special, detection.pairs, detection.touch, 0.1, two) == one.count
    np.testing.assert_array_equal(one.first, two.first)
    np.testing.assert_allclose(one.point, two.point, rtol=0, atol=1e-15)


def test_a_thousand_boxes_are_swept_without_a_list_of_pairs(rng):
    model = free_bodies([Box((0.1, 0.1, 0.1))] * 1000)
    scene = Scene(model)
    detection = Detection(scene)
    shapes, special, _ = detection.tables
    poses = at_random(model, rng, 1.0)
    for _ in range(3):
        detection.find(poses, 0.01)
        n = near_pairs(shapes, special, detection.pairs, 0.01)
        near = set(map(tuple, detection.pairs.near[:n].tolist()))
        low, high, count = shapes.low - 0.005, shapes.high + 0.005, shapes.count
        meet = np.all((low[:, None] <= high) & (high[:, None] >= low), axis=2)
        boxes = np.argwhere(np.triu(meet[: count - 1, : count - 1], 1)).tolist()
        ground = [k for k in range(count - 1) if clearance(shapes, count - 1, k) <= 0.01]
        assert near == {*map(tuple, boxes), *((k, count - 1) for k in ground)}
        poses[:, :3, 3] += rng.normal(scale=0.02, size=(1000, 3))
    assert "pairs" not in vars(scene)


# --- Who may touch -------------------------------------------------------------------------------


def linkage(rng):
    """A tree with welds, shapes of several kinds, masks, exclusions, pairs and a loop."""
    b = kt.ModelBuilder("tree")
    names = ["base"]
    for k in range(12):
        joint = kt.Fixed() if k % 4 == 3 else kt.Revolute("z")
        on = names[rng.integers(len(names))]
        b.body(
            f"b{k}", on=None if on == "base" else on, joint=joint, inertia=INERTIA, at=(0.2, 0, 0)
        )
        names.append(f"b{k}")
    for k in range(30):
        on = names[rng.integers(len(names))]
        masks = {"contype": int(rng.integers(4)), "conaffinity": int(rng.integers(4))}
        surface = Surface(**masks) if k % 2 else None
        b.geometry(
            SOLID[k % 5], on=None if on == "base" else on, name=f"s{k}", surface=surface,
            collision=k % 7 != 0,
        )  # fmt: skip
    b.geometry(Plane(), name="floor")
    b.exclude("b1", "b5").exclude("s3", "s8")
    b.contact_pair("b0", "b1", surface=Surface(friction=0.3, condim=4, margin=0.01))
    return b.build()


@pytest.mark.parametrize("rule", [None, "base"])
def test_filters_are_those_of_the_list_of_pairs(rng, rule):
    for _ in range(5):
        model = linkage(rng)
        scene = Scene(model, rule)
        ignored = [(p.first, p.second) for p in scene.pairs[::9]]
        for s in (scene, Scene(model, rule, ignore=ignored)):
            shapes, special, numbers = shape_tables(s)
            assert special.rule == (ALL if rule is None else WITH_BASE)
            at = {id(g): k for k, g in enumerate(model.geometry)}
            listed = {frozenset((at[id(p.first)], at[id(p.second)])) for p in s.pairs}
            endless = shapes.radius > 1e300
            for i in range(shapes.count):
                for j in range(i + 1, shapes.count):
                    may = may_touch_in_tables(shapes, special, i, j)
                    may = may and not (endless[i] and endless[j])
                    assert may == (frozenset(numbers[[i, j]].tolist()) in listed)
        assert may_touch(model).sum() > 0


def test_a_list_of_pairs_is_all_that_is_looked_at(rng):
    model = free_bodies([SOLID[k % 5] for k in range(30)])
    scene = Scene(model, [("s0", "s1"), ("ground", "s2"), ("s5", "s6")])
    detection = Detection(scene)
    assert detection.tables.special.rule == LISTED
    found = detection.find(at_random(model, rng, 0.05), 1.0)
    assert found.pairs == 3
    names = {
        frozenset(model.geometry[detection.tables.numbers[k]].name for k in pair)
        for pair in pairs_found(found)
    }
    assert names == {frozenset(pair) for pair in (("s0", "s1"), ("ground", "s2"), ("s5", "s6"))}


# --- Materials -----------------------------------------------------------------------------------


def wanted(a, b):
    s = joined_surface(a, b) or Surface()
    usual = (FRICTION, TORSION, ROLLING, RESTITUTION)
    given = (s.friction, s.torsion, s.rolling, s.restitution)
    mu, torsion, rolling, e = (u if x is None else x for x, u in zip(given, usual, strict=True))
    mu = 0.0 if s.condim == 1 else mu
    torsion = torsion if s.condim >= 4 and mu else 0.0
    rolling = rolling if s.condim == 6 and mu else 0.0
    dim = 1 if mu == 0 else 6 if rolling else 4 if torsion else 3
    return (mu, torsion, rolling), e, dim


def test_materials_are_joined_as_in_mujoco(rng):
    def some(low, high):
        return None if rng.random() < 0.3 else float(rng.uniform(low, high))

    surfaces = [
        Surface(
            some(0, 1), some(0, 0.01), some(0, 0.001), some(0, 1), int(rng.choice([1, 3, 4, 6])),
            priority=int(rng.integers(2)), margin=0.01,
        )
        for _ in range(20)
    ]  # fmt: skip
    surfaces[:2] = [None, None]
    model = free_bodies([Sphere(0.1)] * 20, surfaces, ground=False)
    found = Detection(Scene(model)).find(at_random(model, rng, 0.02), 0.1)
    assert found.count == 190
    friction = np.zeros(3)
    for k in range(found.count):
        i, j = found.first[k], found.second[k]
        mu, e, dim = wanted(surfaces[i], surfaces[j])
        np.testing.assert_allclose(found.friction[k], mu)
        assert found.restitution[k] == e
        assert found.dim[k] == dim
    shapes, special, _ = shape_tables(Scene(model, friction=0.4, restitution=0.2))
    for i in range(1, 20):
        assert material(shapes, special, -1, 0, i, friction)[0] == 0.2
        assert friction[0] == 0.4


def test_pairs_with_coefficients_of_their_own():
    model = free_bodies([Sphere(0.1)] * 3, [Surface(margin=0.02)] * 3, ground=False)
    own = Surface(friction=0.3, torsion=0.02, restitution=0.1, condim=4, margin=0.05)
    pair = ContactPair("s0", "s1", surface=own)
    scene = Scene(model.replace(contact_pairs=(pair,)))
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 0, 3] = 0.0, 0.24, 0.48
    found = Detection(scene).find(poses, 0.02)
    assert found.count == 2
    np.testing.assert_allclose(found.gap[:2], (-0.01, 0.0), atol=1e-15)
    np.testing.assert_allclose(found.friction[:2], [(0.3, 0.02, 0), (FRICTION, 0, 0)])
    assert found.dim[:2].tolist() == [4, 3]
    listed = Scene(model, [Pair("s0", "s1", 0.7, 0.5)])
    found = Detection(listed).find(poses, 0.02)
    assert (found.count, found.friction[0, 0], found.restitution[0]) == (1, 0.7, 0.5)


def test_by_a_function_of_two_shapes():
    model = free_bodies([Sphere(0.1)] * 3, ground=False)
    scene = Scene(model, friction=lambda a, b: 0.1 * (a.body + b.body))
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 0, 3] = 0.0, 0.1, 0.2
    found = Detection(scene).find(poses, 0.01)
    pairs = found.bodies[: found.count].sum(axis=1)
    np.testing.assert_allclose(found.friction[: found.count, 0], 0.1 * pairs)


def test_a_conveyor_moves_its_surface():
    belt = Surface(velocity=(0.5, 0.0, 0.0))
    model = free_bodies([Box((1, 1, 0.1)), Sphere(0.1)], [belt, None], ground=False)
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[0, :2, :2] = [[0, -1], [1, 0]]
    poses[1, 2, 3] = 0.15
    found = Detection(Scene(model)).find(poses, 0.01)
    np.testing.assert_allclose(found.drift[0], (0, -0.5, 0), atol=1e-15)


# --- Motion within the step ----------------------------------------------------------------------


def test_a_fast_cube_meets_a_thin_wall():
    b = kt.ModelBuilder("range")
    b.body("cube", joint=kt.Free(), inertia=INERTIA).geometry(Box((0.04,) * 3), on="cube")
    b.geometry(Box((0.01, 1.0, 1.0)), name="wall")
    detection = Detection(Scene(b.build()))
    poses, h = np.eye(4)[None].copy(), 2e-3
    for x in np.linspace(-0.22, -0.03, 40):
        poses[0, 0, 3] = x
        detection.pairs.motion[1] = 0
        assert detection.find(poses, 1e-4).count == (4 if x >= -0.0251 else 0)
        detection.pairs.motion[1] = h * np.array([0, 0, 0, 100.0, 0, 0])
        found = detection.find(poses, 1e-4)
        assert found.count == 4
        np.testing.assert_allclose(found.gap[:4], -x - 0.025, atol=1e-12)
        np.testing.assert_allclose(np.abs(found.normal[:4]), [[1, 0, 0]] * 4, atol=1e-12)
    detection.pairs.motion[1] = h * np.array([0, 0, 0, -100.0, 0, 0])
    assert near_pairs(*detection.tables[:2], detection.pairs, 1e-4) == 0


def test_what_turns_reaches_as_far_as_its_points_go():
    b = kt.ModelBuilder("bat")
    b.body("bat", joint=kt.Revolute("z"), inertia=INERTIA)
    b.geometry(Capsule(0.02, 1.0), on="bat", at=kt.Plucker.identity())
    b.geometry(Sphere(0.05), name="ball", at=(0.0, 0.1, 0.5))
    detection = Detection(Scene(b.build(), [("bat", "ball")]))
    pose = np.eye(4)[None].copy()
    pose[0, 0, 3] = -0.1
    assert detection.find(pose, 0.0).count == 0
    detection.pairs.motion[1, :3] = 0.0, 0.3, 0.0
    assert detection.find(pose, 0.0).count == 1


# --- Tables --------------------------------------------------------------------------------------


def test_tables_grow_when_they_are_full(rng):
    model = free_bodies([Sphere(0.2)] * 50, ground=False)
    detection = Detection(Scene(model))
    detection.pairs = pair_tables(detection.tables.shapes, 51, capacity=10)
    detection.found = found_tables(3)
    found = detection.find(at_random(model, rng, 0.01), 0.0)
    assert found.count == 50 * 49 / 2


def test_fields_and_planes_are_seen_by_everything_below_their_top():
    heights = ((0.0, 0.1), (0.2, 0.0))
    model = free_bodies([Sphere(0.1)] * 2, ground=False)
    field = Geometry(0, HeightField(heights, (2.0, 2.0)), name="field")
    scene = Scene(model.replace(geometry=(*model.geometry, field)), "base")
    shapes, special, _ = shape_tables(scene)
    poses = np.tile(np.eye(4)[:3].reshape(12), (3, 1))
    poses[1:, 11] = 0.29, 0.31 + shapes.box[2, 2] + shapes.box[2, 5] - 0.2
    place_shapes(shapes, poses)
    pairs = pair_tables(shapes, 3)
    assert near_pairs(shapes, special, pairs, 0.0) == 1
    assert pairs.near[0].tolist() == [0, 2]


def test_a_concave_mesh_touches_with_its_triangles(tmp_path):
    dented = wedge_in(tmp_path)
    concave = replace(dented, convex=False)
    poses = np.eye(4)[None].copy()
    poses[0, :3, 3] = 0.29, 0.17, 0.15  # beside the dent at (0.2, 0.1), which the hull fills
    gaps = []
    for mesh in (dented, concave):
        b = kt.ModelBuilder("dent").body("ball", joint=kt.Free(), inertia=INERTIA)
        b.geometry(Sphere(0.02), on="ball").geometry(mesh, name="mesh")
        found = Detection(Scene(b.build())).find(poses, 1.0)
        gaps.append(found.gap[: found.count].min())
    side = np.array([0.4, 0.0]) - [0.2, 0.1]
    away = np.array([0.29, 0.17]) - [0.2, 0.1]
    along = np.clip(away @ side / (side @ side), 0, 1)
    beside = np.array([0.2, 0.5]) - [0.2, 0.1]
    upward = np.clip(away @ beside / (beside @ beside), 0, 1)
    nearest = min(np.linalg.norm(away - along * side), np.linalg.norm(away - upward * beside))
    np.testing.assert_allclose(gaps[1], nearest - 0.02, atol=1e-12)
    assert gaps[0] < 0 < gaps[1]


def test_rates_of_gaps_on_triangles_are_those_on_a_plane(tmp_path, rng):
    path = tmp_path / "ground.off"
    x = np.array([[-2.0, -2, 0], [2, -2, 0], [2, 2, 0], [-2, 2, 0]])
    trimesh.Trimesh(x, [[0, 1, 2], [0, 2, 3]], process=False).export(path)
    for shape in (Sphere(0.2), Box((0.3, 0.2, 0.1)), Ellipsoid((0.1, 0.2, 0.3))):
        found = []
        for ground in (Mesh(str(path), convex=False), Plane()):
            b = kt.ModelBuilder("m").body("body", joint=kt.Free(), inertia=INERTIA)
            model = b.geometry(shape, on="body").geometry(ground, name="ground").build()
            state = np.random.default_rng(5)
            q = model.integrate(model.neutral(), state.normal(size=6))
            qd = state.normal(size=6)
            q[:3] = 0.1, 0.3, 0.4
            contacts = Scene(model).contacts(q, margin=1.0)
            k = int(np.argmin(contacts.gap))
            found.append((contacts.gap[k], *bias(model, q, qd, contacts)[k]))
        np.testing.assert_allclose(*found, atol=1e-9)


def test_faces_of_a_hull_are_polygons_around_their_normals():
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-2, 2) for z in (-3, 3)], dtype=float)
    scipy = pytest.importorskip("scipy.spatial")
    hull = scipy.ConvexHull(corners)
    normals = hull.equations[:, :3]
    triangles = hull.simplices.copy()
    for t, n in zip(triangles, normals, strict=True):
        a, b, c = corners[t]
        if np.cross(b - a, c - a) @ n < 0:
            t[1:] = t[:0:-1]
    vertices, counts, neighbours, sides, polygons, outward = polyhedron(
        Hull(corners, triangles, normals)
    )
    assert sides.tolist() == [4] * 6
    assert len(neighbours) == counts.sum() == 36
    ends = np.cumsum(sides)
    for end, n in zip(ends, outward, strict=True):
        p = vertices[polygons[end - 4 : end]]
        np.testing.assert_allclose(p @ n, np.abs(n) @ [1, 2, 3])
        turns = np.cross(np.roll(p, -1, 0) - p, np.roll(p, -2, 0) - np.roll(p, -1, 0)) @ n
        assert np.all(turns > 0)


def test_a_tree_over_triangles_holds_each_of_them_once(rng):
    corners = rng.uniform(-1, 1, (101, 1, 3)) + rng.uniform(-0.1, 0.1, (101, 3, 3))
    node, child, order = triangle_tree(corners)
    assert sorted(order) == list(range(101))
    seen, waiting = [], [0]
    while waiting:
        k = waiting.pop()
        if child[k, 0] < 0:
            inside = order[-1 - child[k, 0] :][: child[k, 1]]
            seen += inside.tolist()
            assert 1 <= len(inside) <= 4
            assert np.all(corners[inside] >= node[k, :3])
            assert np.all(corners[inside] <= node[k, 3:])
        else:
            for c in child[k]:
                assert np.all(node[c, :3] >= node[k, :3])
                assert np.all(node[c, 3:] <= node[k, 3:])
                waiting.append(c)
    assert sorted(seen) == list(range(101))
