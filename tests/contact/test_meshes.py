"""Triangle meshes: patches on flat ones, edges inside of a surface, concave ones, mesh on mesh."""

import re
import warnings

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact import Scene, TimeStepping
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Sphere
from kinetree.spatial.rotation import rotation_exp

INERTIA = kt.shapes.box(0.3, 0.2, 0.4, mass=1.0)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of triangles: a flat floor of 800, a box, a trough, a ball."""
    import trimesh

    folder = tmp_path_factory.mktemp("meshes")
    x = np.linspace(-2, 2, 21)
    points = np.stack([*np.meshgrid(x, x, indexing="ij"), np.zeros((21, 21))], axis=-1)
    k = np.arange(21 * 21).reshape(21, 21)
    a, b, c, d = k[:-1, :-1], k[1:, :-1], k[1:, 1:], k[:-1, 1:]
    faces = np.stack([np.stack([a, b, c], -1), np.stack([a, c, d], -1)]).reshape(-1, 3)
    made = {
        "floor": trimesh.Trimesh(points.reshape(-1, 3), faces),
        "box": trimesh.creation.box((0.3, 0.2, 0.4)),
        "ball": trimesh.creation.icosphere(3, 0.2),
        "trough": trimesh.Trimesh(
            [[-1, -1, 1], [-1, 1, 1], [0, -1, 0], [0, 1, 0], [1, -1, 1], [1, 1, 1]],
            [[0, 2, 3], [0, 3, 1], [2, 4, 5], [2, 5, 3]],
        ),
    }
    for name, mesh in made.items():
        mesh.export(folder / f"{name}.stl")
    return {name: str(folder / f"{name}.stl") for name in made}


def on(shape, ground):
    b = kt.ModelBuilder("thing")
    b.body("thing", joint=kt.Free(), inertia=INERTIA)
    b.geometry(shape, on="thing", name="thing")
    b.geometry(ground, name="ground")
    return b.build()


def at(R, p):
    """Configuration of a free body."""
    w = np.sqrt(max(1 + np.trace(R), 0)) / 2
    v = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w)
    return np.array([*p, w, *v])


def shape_of(name, files):
    return {
        "sphere": Sphere(0.2),
        "capsule": Capsule(0.1, 0.3),
        "box": Box((0.3, 0.2, 0.4)),
        "cylinder": Cylinder(0.1, 0.4),
        "ellipsoid": Ellipsoid((0.1, 0.2, 0.2)),
        "hull": Mesh(files["box"]),
        "mesh": Mesh(files["box"], convex=False),
    }[name]


@pytest.mark.parametrize(
    "name", ["sphere", "capsule", "box", "cylinder", "ellipsoid", "hull", "mesh"]
)
def test_a_flat_mesh_is_a_plane_for_all_shapes(name, files, rng):
    shape = shape_of(name, files)
    mesh, plane = (Scene(on(shape, g)) for g in (Mesh(files["floor"], convex=False), Plane()))
    height = 0.25 if name == "capsule" else 0.2
    for depth in (0.0, 1e-9, 1e-4, 1e-3, -1e-4):
        for _ in range(4):
            R = rotation_exp(np.array([0, 0, rng.uniform(-3, 3)]))
            q = at(R, [*rng.uniform(-1, 1, 2), height - depth])
            one, other = mesh.contacts(q, margin=2e-4), plane.contacts(q, margin=2e-4)
            size = max(np.ptp(other.point, axis=0).max(), 0.1)
            assert 1 <= one.size <= 16
            np.testing.assert_allclose(np.abs(one.normal[:, 2]), 1, rtol=0, atol=1e-12)
            np.testing.assert_allclose(one.gap.min(), other.gap.min(), rtol=0, atol=2e-8)
            if name in ("box", "hull", "mesh"):  # the corners carry it, as on a plane
                far = np.linalg.norm(one.point[:, None] - other.point, axis=2).min(axis=0)
                assert far.max() < 1e-6 * size


def test_a_box_slides_over_the_edges_of_a_mesh_as_over_a_plane(files):
    found = []
    for ground in (Mesh(files["floor"], convex=False), Plane()):
        model = on(Box((0.3, 0.2, 0.4)), ground)
        scene = Scene(model, friction=0.2)
        q = at(rotation_exp(np.array([0, 0, 0.3])), [-1.0, 0.1, 0.2])
        qd = np.array([0, 0, 0, 2.0, 0.3, 0])
        motion = kt.simulate(model, q, qd, contact=TimeStepping(scene), duration=0.4)
        found.append(motion.q[-1])
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-6)


def test_a_ball_lies_in_a_trough_and_on_its_border(files):
    scene = Scene(on(Sphere(0.2), Mesh(files["trough"], convex=False)))
    r = 0.2 * np.sqrt(2)
    both = scene.contacts(at(np.eye(3), [0, 0.1, r]), margin=1e-9)
    np.testing.assert_allclose(np.sort(both.normal[:, 0]), [-np.sqrt(0.5), np.sqrt(0.5)], atol=1e-9)
    np.testing.assert_allclose(both.gap, 0, atol=1e-12)
    # over the upper border, which belongs to one side only, it is held by the edge
    edge = scene.contacts(at(np.eye(3), [1.05, 0.1, 1.0 + np.sqrt(0.2**2 - 0.05**2)]), margin=1e-9)
    assert edge.size == 1
    np.testing.assert_allclose(edge.point[0], [1, 0.1, 1], rtol=0, atol=1e-9)


def test_outer_edges_of_a_mesh_hold(files):
    scene = Scene(on(Sphere(0.1), Mesh(files["box"], convex=False)))
    s = 0.1 * np.sqrt(0.5)
    found = scene.contacts(at(np.eye(3), [0.15 + s, 0.03, 0.2 + s]), margin=1e-9)
    np.testing.assert_allclose(
        found.normal, [[np.sqrt(0.5), 0, np.sqrt(0.5)]] * found.size, atol=1e-9
    )
    np.testing.assert_allclose(found.point, [[0.15, 0.03, 0.2]] * found.size, atol=1e-9)


def test_mesh_on_mesh_is_as_hull_on_hull(files, rng):
    solid, hollow = (Mesh(files["box"], convex=c) for c in (True, False))
    for _ in range(10):
        R = rotation_exp(np.array([0, 0, rng.uniform(-3, 3)]))
        q = at(R, [*rng.uniform(-0.1, 0.1, 2), 0.4 - rng.choice([0, 1e-4, -1e-4])])
        one, other = (Scene(on(m, m)).contacts(q, margin=3e-4) for m in (hollow, solid))
        np.testing.assert_allclose(one.gap.min(), other.gap.min(), rtol=0, atol=1e-9)
        np.testing.assert_allclose(np.abs(one.normal[:, 2]), 1, rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            np.ptp(one.point, axis=0), np.ptp(other.point, axis=0), atol=1e-6
        )


def test_thin_sheets_stop_what_is_fast_or_warn_of_its_turns(files):
    """Cubes of 4 cm at 100 m/s, 20 cm a step, against a sheet of single triangles."""
    for seed, spin in ((0, 0.0), (1, 0.0), (2, 0.0), (13, 20.0), (4, 20.0)):
        rng = np.random.default_rng(seed)
        world = kt.World()
        world.add(Mesh(files["floor"], convex=False))
        v = np.array([*(20 * rng.normal(size=2) * (spin > 0)), -100.0])
        place = *(0 * v[:2]), rng.uniform(0.05, 0.4)
        spins = spin * rng.normal(size=3)
        world.add(Box((0.04,) * 3), mass=0.1, at=place, velocity=v, spin=spins, name="cube")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            world.step(3)
            world.step(3)
        texts = [str(w.message) for w in said]
        overlaps = [x for x in texts if "cannot be trusted: " in x]  # what was inside is named, too
        texts = [x for x in texts if x not in overlaps]
        assert max(len(texts), len(overlaps)) <= 1  # once
        assert texts or not overlaps
        if texts:
            assert spin
            assert re.match(
                r"body 'cube' turns by \d\S* rad in one step of 0\.002 s\. .*Take steps of",
                texts[0],
            )
        else:
            assert world["cube"].position[2] > 0.0199
    assert texts


@pytest.mark.parametrize("spin", [0.0, 20.0, 100.0, 300.0])
@pytest.mark.parametrize("speed", [10.0, 100.0])
def test_a_thin_rod_stops_at_walls_and_sheets_or_is_named(files, spin, speed):
    """30 cm long and 4 mm thick, broadside; a wall of 1 mm, and a sheet of single triangles."""
    for wall in (Box((2.0, 2.0, 1e-3)), Mesh(files["floor"], convex=False)):
        for k in range(4):
            world = kt.World(gravity=(0, 0, 0))
            world.add(wall)
            place = 0.03, 0.02, 0.3 + k / 4 * speed * world.timestep
            world.add(Box((0.3, 0.004, 0.004)), mass=0.1, at=place, velocity=(0, 0, -speed),
                      spin=(0, spin, 0), name="rod")  # fmt: skip
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                world.step(round(0.6 / speed / world.timestep) + 5)
            assert said or world["rod"].position[2] > 0
            first = "body 'rod' turns by", "cannot be trusted: "
            assert all(any(x in str(w.message) for x in first) for w in said)
            assert not said or (spin >= 100.0 or speed > 10)


def test_bodies_that_turn_over_1_rad_in_a_step_are_named():
    for rate, shape in ((400.0, Box((0.1,) * 3)), (900.0, Sphere(0.05)), (700.0, Box((0.1,) * 3))):
        world = kt.World(friction=0.0)
        world.add_ground()
        world.add(shape, mass=1.0, at=(0, 0, 0.05), spin=(0, 0, rate), name="top")
        if rate != 700.0:
            world.step(2)
    worlds = world.batch(2)
    for x in (world, worlds):
        with pytest.warns(kt.SimulationWarning, match=r"body 'top' turns by 1\.4 rad in one step"):
            x.step(2)
        x.step(2)  # said once
