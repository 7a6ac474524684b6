"""The deepest overlap of a scene, against the distances of all its pairs."""

import numpy as np
import pytest
import trimesh

import kinetree as kt
from kinetree.contact import Scene, with_ground
from kinetree.contact.collision.detect import Detection, detect, found_tables
from kinetree.contact.collision.overlap import deepest_overlap, detect_overlaps
from kinetree.contact.collision.placing import place_shapes
from kinetree.model.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Sphere,
    Surface,
)

INERTIA = kt.shapes.sphere(0.1, mass=1.0)


@pytest.fixture(scope="module")
def solids(tmp_path_factory):
    path = tmp_path_factory.mktemp("meshes") / "rock.stl"
    points = np.random.default_rng(3).normal(size=(12, 3)) * 0.1
    trimesh.convex.convex_hull(points).export(path)
    return (
        Box((0.3, 0.2, 0.4)), Sphere(0.15), Capsule(0.1, 0.3), Cylinder(0.1, 0.2),
        Ellipsoid((0.1, 0.2, 0.15)), Mesh(str(path)),
    )  # fmt: skip


def scene_of(shapes, surface=None, field=None):
    b = kt.ModelBuilder("heap")
    for k, shape in enumerate(shapes):
        b.body(f"b{k}", joint=kt.Free(), inertia=INERTIA)
        b.geometry(shape, on=f"b{k}", name=f"s{k}", surface=surface)
    if field is not None:
        b.geometry(field, name="hills")
    return Scene(with_ground(b.build(), point=(0, 0, -0.5), surface=surface))


def placed(model, rng, spread):
    q = model.random_configuration(rng.integers(2**31)).reshape(-1, 7)
    q[:, :3] = rng.uniform(-spread, spread, (len(q), 3))
    return q.reshape(-1)


def deepest_by_distances(model, q, names, held=0.0):
    """Largest overlap of all pairs by ``kt.contact.distance``."""
    pairs = [(a, b) for k, a in enumerate(names) for b in names[:k]]
    gaps = kt.contact.distance(model, q, *map(list, zip(*pairs, strict=True))).gap
    k = int(np.argmin(gaps))
    return max(held - gaps[k], 0.0), set(pairs[k])


def overlap(detection, poses, least):
    which = np.zeros(2, dtype=np.int64)
    detection.poses[1:] = poses[:, :3].reshape(-1, 12)
    shapes, special = detection.tables[:2]
    place_shapes(shapes, detection.poses)
    found = deepest_overlap(
        shapes, special, detection.pairs, detection.touch, detection.found, least, which
    )
    return found, which


@pytest.mark.parametrize("margin", [0.0, 0.02])
@pytest.mark.covers("RBDA 11.6", by=(deepest_overlap, detect))
def test_the_deepest_of_all_pairs_is_found_wherever_shapes_have_moved(margin, solids, rng):
    surface = Surface(margin=margin) if margin else None
    scene = scene_of([solids[k % 6] for k in range(18)], surface)
    model, detection = scene.model, Detection(scene)
    names = [f"s{k}" for k in range(18)]
    for spread in (0.3, 1.0, 2.0):
        for step in (0.0, 1e-4, 1.0):
            q = placed(model, rng, spread)
            detection.find(kt.poses(model, q), 1e-3)
            q = model.integrate(q, step * rng.normal(size=model.nv))
            depth, pair = deepest_by_distances(model, q, [*names, "ground"], 2 * margin)
            for least in (0.0, 1e-3):
                found, which = overlap(detection, kt.poses(model, q), least)
                if depth > least:
                    assert found == pytest.approx(depth, abs=1e-12)
                    numbers = detection.tables.numbers[which]
                    assert {model.geometry[k].name for k in numbers} == pair
                else:
                    assert depth - 1e-12 <= found <= least


def test_height_fields_count_too(solids, rng):
    field = HeightField(tuple(map(tuple, rng.uniform(0, 0.1, (5, 5)))), (4.0, 4.0))
    scene = scene_of(solids[:5], field=field)
    model, detection = scene.model, Detection(scene)
    q = placed(model, rng, 1.0).reshape(-1, 7)
    q[:, 2] = 2.0 + np.arange(5)
    q[3, 2] = 0.05
    q = q.reshape(-1)
    detection.find(kt.poses(model, q), 1e-3)
    found, which = overlap(detection, kt.poses(model, q), 0.0)
    gap = kt.contact.distance(model, q, "s3", "hills").gap
    assert found == pytest.approx(-gap, abs=1e-9)
    assert {model.geometry[k].name for k in detection.tables.numbers[which]} == {"s3", "hills"}


def test_pairs_that_may_not_touch_do_not_count(solids, rng):
    model = scene_of(solids[:2]).model
    q = placed(model, rng, 0.05)
    for scene, expected in ((Scene(model, [("s0", "ground")]), False), (Scene(model), True)):
        detection = Detection(scene)
        detection.find(kt.poses(model, q), 1e-3)
        assert (overlap(detection, kt.poses(model, q), 0.0)[0] > 0) == expected


@pytest.mark.parametrize("margin", [0.0, 0.02])
def test_points_of_all_pairs_that_overlap_are_found_again(margin, solids, rng):
    surface = Surface(margin=margin) if margin else None
    scene = scene_of([solids[k % 6] for k in range(18)], surface)
    model, detection, deep = scene.model, Detection(scene), found_tables(1000)
    shapes, special = detection.tables[:2]
    kinds = ("first", "second", "feature", "gap", "point", "normal", "dim", "friction")
    many = 0
    for spread in (0.3, 1.0):
        for step in (0.0, 1e-4, 1e-2, 1.0):
            q = placed(model, rng, spread)
            detection.find(kt.poses(model, q), 0.01)
            q = model.integrate(q, step * rng.normal(size=model.nv))
            poses = kt.poses(model, q)
            overlap(detection, poses, 1e-3)
            n = detect_overlaps(
                shapes, special, detection.pairs, detection.touch, detection.found, 1e-3, deep
            )
            found = detection.find(poses, 0.0)
            wanted = found.gap[: found.count] < -1e-3
            given = deep.gap[:n] < -1e-3
            for name in kinds:
                one, other = getattr(deep, name)[:n], getattr(found, name)[: found.count]
                assert np.array_equal(one[given], other[wanted]), name
            many += np.sum(wanted)
    assert many > 100
