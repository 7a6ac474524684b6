"""What is drawn, and where: bodies, marks, arrows, contacts, loops, ghosts."""

import numpy as np
import pytest
import trimesh
from support.closeness import assert_close
from support.shown_motions import moving

import kinetree as kt
from kinetree import viewer
from kinetree.model import geometry
from kinetree.rendering import meshes
from kinetree.rendering.surfaces import coarser, crease, normals, surface_of
from kinetree.spatial.rotation import quaternions
from kinetree.viewer.scenes.places import along, between, rotations

DOUBLE, FOUR_BAR = kt.samples.double_pendulum(), kt.samples.four_bar()


def volume(surface):
    """Of what a closed surface encloses, by the divergence theorem: positive if it faces out."""
    a, b, c = (surface.vertices[surface.faces[:, k]] for k in range(3))
    return np.sum(a * np.cross(b, c)) / 6


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (geometry.Box((1.0, 2.0, 3.0)), 6.0),
        (geometry.Sphere(0.5), np.pi / 6),
        (geometry.Cylinder(0.5, 2.0), np.pi / 2),
        (geometry.Capsule(0.5, 2.0), np.pi / 2 + np.pi / 6),
        (geometry.Ellipsoid((1.0, 0.5, 2.0)), 4 / 3 * np.pi),
    ],
)
def test_surfaces_are_closed_and_face_outwards(shape, expected):
    assert volume(surface_of(shape)) == pytest.approx(expected, rel=0.04)


def test_edges_are_sharp_and_round_sides_are_smooth():
    cube = surface_of(geometry.Box((1.0, 1.0, 1.0)))
    assert len(cube.vertices) == 24
    assert set(np.abs(normals(cube)).ravel().round(9)) == {0.0, 1.0}
    ball = surface_of(geometry.Sphere(2.0))
    assert np.max(np.abs(normals(ball) - ball.vertices / 2)) < 0.05


def test_surfaces_that_are_too_fine_become_coarser():
    ball = surface_of(geometry.Sphere(1.0))
    less = crease(coarser(ball, 300))
    assert 50 < len(less.faces) <= 300
    assert volume(less) == pytest.approx(volume(ball), rel=0.15)


def test_meshes_are_read_once_and_kept_as_they_are_drawn(tmp_path, monkeypatch):
    file, ball = tmp_path / "ball.stl", surface_of(geometry.Sphere(1.0))
    trimesh.Trimesh(ball.vertices, ball.faces).export(file)
    (first,) = meshes.mesh_pieces(file, (1.0, 1.0, 0.5), most=300)
    assert volume(first.surface) == pytest.approx(volume(ball) / 2, rel=0.15)
    meshes._scaled_pieces.cache_clear()  # as in the next process
    monkeypatch.setattr(meshes, "open_scene", None)
    (again,) = meshes.mesh_pieces(file, (1.0, 1.0, 0.5), most=300)
    assert np.array_equal(again.surface.vertices, first.surface.vertices)
    assert np.array_equal(again.surface.faces, first.surface.faces)
    assert again.color == first.color


def test_quaternions_are_those_of_the_rotations():
    axes = along(np.array([[0.0, 0, 1], [0, 0, -1], [0.6, 0.8, 0], [-1, 0, 0]]))
    assert_close(axes @ np.swapaxes(axes, -1, -2), np.tile(np.eye(3), (4, 1, 1)), ulps=8)
    assert_close(axes[:, :, 2], [[0, 0, 1], [0, 0, -1], [0.6, 0.8, 0], [-1, 0, 0]], ulps=1)
    assert_close(rotations(quaternions(axes)), axes, ulps=16)


def test_bodies_are_where_the_kinematics_has_them(rng):
    q = np.array([DOUBLE.random_configuration(rng) for _ in range(3)])
    scene = viewer.scene(DOUBLE, q, t=[0.0, 0.1, 0.3])
    poses = kt.poses(DOUBLE, q)
    assert scene.nodes == ("base", "upper", "lower", "centre of mass")
    assert_close(scene.positions[:, 1:3], poses[..., :3, 3], ulps=4)
    assert_close(rotations(scene.quaternions[:, 1:3]), poses[..., :3, :3], ulps=32)
    assert_close(scene.positions[:, 3], kt.center_of_mass(DOUBLE, q), ulps=16)
    middle, turn = between(scene, 0.05)
    assert_close(middle, (scene.positions[0] + scene.positions[1]) / 2, ulps=8)
    assert_close(np.linalg.norm(turn, axis=1), np.ones(4), ulps=4)


def test_layers_are_those_that_have_something_on_them():
    assert viewer.scene(DOUBLE).layers == ("bodies", "center", "inertias", "frames")
    assert "loops" in viewer.scene(FOUR_BAR).layers
    scene = viewer.scene(DOUBLE)
    assert {p.layer for p in scene.parts} == set(scene.layers)
    assert scene.duration == 0
    assert scene.size == pytest.approx(1.86)


def test_inertia_ellipsoids_have_the_mass_distribution_of_the_bodies():
    scene = viewer.scene(DOUBLE)
    part = next(p for p in scene.parts if p.layer == "inertias")
    body = DOUBLE.bodies[part.node - 1]
    points = part.surface.vertices
    center = np.asarray(body.inertia.first_moment) / body.inertia.mass
    assert_close((points.max(axis=0) + points.min(axis=0)) / 2, center, ulps=1e6)
    radii = np.ptp(points, axis=0) / 2
    solid = kt.shapes.ellipsoid(*radii, mass=body.inertia.mass, at=center)
    assert np.allclose(solid.rotational, body.inertia.rotational, rtol=0.02, atol=1e-4)


def test_a_model_without_shapes_becomes_sticks():
    bare = DOUBLE.replace(geometry=())
    parts = [p for p in viewer.scene(bare).parts if p.layer == "bodies"]
    assert {p.node for p in parts} == {1, 2}


def test_arrows_are_velocities_and_joint_forces():
    motion = moving()
    scene = viewer.scene(motion)
    speed, turning, torque = (
        next(a for a in scene.arrows if a.name == name)
        for name in ("velocities", "angular velocities", "joint moments")
    )
    com = np.asarray(DOUBLE.bodies[1].inertia.first_moment) / DOUBLE.bodies[1].inertia.mass
    found = kt.velocity(DOUBLE, motion.q, motion.qd, "lower", frame="aligned", point=com)
    scale = np.linalg.norm(speed.vectors[0, 1]) / np.linalg.norm(found[0, 3:])
    assert_close(speed.vectors[:, 1], scale * found[:, 3:], ulps=64)
    turn_scale = np.linalg.norm(turning.vectors[0, 1]) / np.linalg.norm(found[0, :3])
    assert_close(turning.vectors[:, 1], turn_scale * found[:, :3], ulps=64)
    lengths = np.linalg.norm(torque.vectors, axis=-1)
    assert_close(lengths[:, 1:] / lengths[-1, 2], motion.tau / motion.tau[-1, 1], ulps=64)
    assert np.max(lengths) == pytest.approx(0.35 * 1.86)
    assert torque.legend == "joint moments: 0.22 m for 2 N·m"


def test_forces_on_bodies_act_at_their_mass_centres():
    f = kt.Force([0, 0, 0], [0, 0, 5.0])
    scene = viewer.scene(moving(), forces={"lower": f})
    force, moment = (
        next(a for a in scene.arrows if a.name == n) for n in ("applied forces", "applied moments")
    )
    point = force.origins[0, 1]
    assert force.vectors[0, 1, 2] > 0
    unit = 5.0 / np.linalg.norm(force.vectors[0, 1])
    largest = np.linalg.norm(np.cross(force.origins[:, 1], [0, 0, 5.0]), axis=-1).max()
    scale = largest / np.linalg.norm(moment.vectors, axis=-1).max()
    assert_close(
        scale * moment.vectors[0, 1], -np.cross(point, unit * force.vectors[0, 1]), ulps=99
    )
    with pytest.raises(kt.ShapeError, match=r"for each of the 3 times, of shape \(3, 2, 6\)"):
        viewer.scene(moving(), forces=np.zeros((4, 2, 6)))


@pytest.mark.filterwarnings("ignore::kinetree.errors.IndeterminateWarning")
def test_reactions_of_joints_are_arrows_at_their_origins():
    motion = moving()
    scene = viewer.scene(motion, reactions="bearing")
    force, moment = (
        next((a for a in scene.arrows if a.name == f"reaction {n}"), None)
        for n in ("forces", "moments")
    )
    f = motion.reactions(part="bearing", frame="aligned")
    scale = np.linalg.norm(force.vectors[0, 0]) / np.linalg.norm(f[0, 0, 3:])
    assert_close(force.vectors, scale * f[..., 3:], ulps=99)
    assert_close(force.origins, scene.positions[:, 1:3], ulps=1)
    assert moment is None or moment.layer == "reactions"  # hinges of a plane mechanism: hardly any
    given = viewer.scene(motion, reactions=f).arrows
    assert_close(next(a for a in given if a.name == "reaction forces").vectors, force.vectors)
    still = viewer.scene(FOUR_BAR, FOUR_BAR.neutral(), reactions="total")
    force = next(a for a in still.arrows if a.name == "reaction forces")
    assert force.origins.shape == (1, 4, 3)  # three joints, and the one that closes the loop
    with pytest.raises(kt.ShapeError, match=r"'total', 'bearing' or 'drive', or those .*\(3, 2, 6"):
        viewer.scene(motion, reactions=np.zeros((4, 2, 6)))


def test_loops_that_are_open_show_by_how_much():
    closed = viewer.scene(FOUR_BAR, FOUR_BAR.neutral())
    gap = next(a for a in closed.arrows if a.layer == "loops")
    assert np.linalg.norm(gap.vectors) < 1e-12
    q = FOUR_BAR.neutral() + np.array([0.1, 0, 0])
    opened = next(a for a in viewer.scene(FOUR_BAR, q).arrows if a.layer == "loops")
    assert np.linalg.norm(opened.vectors) == pytest.approx(
        np.linalg.norm(kt.loops.error(FOUR_BAR, q)[-3:]), rel=0.02
    )
    assert "m" in opened.legend


def test_contacts_have_points_cones_and_forces_where_they_touch():
    points = np.zeros((3, 2, 3))
    points[0, 1] = np.nan  # not yet there
    forces = np.tile([0.0, 3.0, 4.0], (3, 2, 1))
    touching = viewer.Contacts(points, forces=forces, friction=0.8)
    scene = viewer.scene(moving(), contacts=touching)
    assert scene.nodes[-2:] == ("contact 1", "contact 2")
    assert np.isnan(scene.positions[0, -1, 0])
    assert np.isfinite(scene.positions[1, -1, 0])
    arrows = next(a for a in scene.arrows if a.layer == "contacts")
    assert np.linalg.norm(arrows.vectors[0, 1]) == 0
    assert arrows.vectors[1, 1, 1] / arrows.vectors[1, 1, 2] == pytest.approx(0.75)
    cone = next(p for p in scene.parts if p.name == "friction cone 1")
    wide, high = np.ptp(cone.surface.vertices, axis=0)[[0, 2]]
    assert wide / 2 / high == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"points": np.zeros((3, 2))}, r"3 coordinates, \(T, K, 3\), got shape \(3, 2\)"),
        ({"points": np.zeros((2, 3))}, r"must be of shape \(T, K, 3\), got \(2, 3\)"),
        (
            {"points": np.zeros((2, 1, 3)), "normals": np.zeros((3, 1, 3))},
            r"normals of contacts must be of the shape of their points, \(2, 1, 3\)",
        ),
        ({"points": np.zeros((2, 1, 3)), "friction": [1, 2]}, "one for each of the 1 contacts"),
    ],
)
def test_contacts_of_the_wrong_shape_are_rejected(arguments, message):
    with pytest.raises(kt.ShapeError, match=message):
        viewer.Contacts(**arguments)


def test_a_ghost_is_a_second_motion_of_the_same_mechanism():
    scene = viewer.scene(moving(), ghost=np.array([1.0, 0.0]))
    assert scene.nodes[4] == "ghost of base"
    poses = kt.poses(DOUBLE, np.array([1.0, 0.0]))
    assert_close(scene.positions[2, 5:7], poses[:, :3, 3], ulps=8)
    again = viewer.scene(moving(), ghost=moving())
    assert_close(again.positions[:, 5:7], again.positions[:, 1:3], ulps=1)
    with pytest.raises(kt.ShapeError, match="same model, 'double pendulum'; got one of 'pendulum'"):
        viewer.scene(moving(), ghost="pendulum")


def test_upwards_is_against_gravity():
    sideways = DOUBLE.replace(gravity=(0.0, -9.81, 0.0))
    assert_close(viewer.scene(sideways).up, [0, 1, 0], ulps=1)
    assert_close(viewer.scene(DOUBLE.replace(gravity=(0, 0, 0))).up, [0, 0, 1], ulps=1)


def test_the_path_of_a_frame_appears_as_it_is_passed():
    q = np.array([[0.0, 0.0], [0.0, 0.0], [0.2, 0.1], [0.5, 0.3]])  # at rest at first
    scene = viewer.scene(DOUBLE, q, t=[0.0, 0.1, 0.2, 0.3], trace="tip")
    pieces = [p for p in scene.parts if p.layer == "paths"]
    assert [p.node for p in pieces] == [4, 5]
    assert np.isfinite(scene.positions[:, 4:, 0]).tolist() == [
        [False, False], [False, False], [True, False], [True, True]
    ]  # fmt: skip
    tips = kt.pose(DOUBLE, q, "tip")[:, :3, 3]
    for part, start, end in zip(pieces, tips[1:-1], tips[2:], strict=True):
        ends = part.surface.vertices.mean(axis=0)
        assert_close(ends, (start + end) / 2, ulps=64, scale=1.0)
    assert viewer.picture(scene, at=0.3, size=(80, 60)).shape == (60, 80, 3)
    with pytest.raises(kt.errors.KinetreeError, match="tipp"):
        viewer.scene(DOUBLE, q, trace="tipp")


def test_a_second_motion_stands_beside_the_first_without_touching_it():
    t = np.linspace(0, 1, 5)
    q = np.stack([t, -t], axis=1)
    scene = viewer.scene(DOUBLE, q, t=t, ghost=viewer.Beside(np.array([0.3, 0.4])))
    first, second = (scene.nodes.index(name) for name in ("lower", "lower, beside"))
    alone = viewer.scene(DOUBLE, np.array([0.3, 0.4]))
    shift = scene.positions[0, second] - alone.positions[0, first]
    assert_close(scene.positions[:, second], np.tile(scene.positions[0, second], (5, 1)), ulps=1)
    assert shift[0] > 0
    assert_close(shift[1:], [0, 0], scale=1)
    parts = [p.name for p in scene.parts if p.layer == "bodies"]
    assert sum(name.endswith(", beside") for name in parts) == len(parts) // 2
    assert scene.box[1, 0] > scene.positions[:, second, 0].max()
    with pytest.raises(kt.ShapeError, match="a Beside must be a motion of the same model, 'double"):
        viewer.scene(DOUBLE, ghost=viewer.Beside(kt.samples.pendulum()))


def test_what_stands_beside_has_its_base():
    panda = kt.samples.panda()
    scene = viewer.scene(panda, ghost=viewer.Beside(panda.neutral()))
    nodes = [p.node for p in scene.parts if p.layer == "bodies" and p.name.startswith("base")]
    assert nodes.count(0) == len(nodes) // 2 > 0
    assert scene.positions[0, nodes[-1], 0] > 0.5


def test_arrows_of_contact_forces_are_no_longer_than_the_largest_body():
    world = kt.World()
    world.add_ground()
    for k in range(5):
        world.add(geometry.Box((0.05, 0.05, 0.05)), mass=0.05, at=(0.1 * k, 0, 0.025))
    world.step(20)
    (forces,) = viewer.scene(world).arrows
    longest = np.linalg.norm(forces.vectors, axis=-1).max()
    assert 0.01 < longest <= 0.05 * (1 + 1e-9)


def test_cameras_and_sensors_are_layers_on_what_carries_them():
    sensor = kt.Sensor("imu", "gyro", "lower")
    model = DOUBLE.replace(sensors=[sensor], cameras=[kt.Camera("eye", "upper")])
    found = {p.layer: (p.name, p.node) for p in viewer.scene(model).parts}
    assert found["cameras"] == ("camera eye", 1)
    assert found["sensors"] == ("sensor imu", 2)
