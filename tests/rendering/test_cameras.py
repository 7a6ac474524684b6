"""Cameras: where they are, what they see compared with rays, and every way to them."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

import kinetree as kt
from kinetree.model import geometry

MJCF = """
<mujoco model="arm"><worldbody>
  <camera name="outside" pos="0.3 -2 1.2" xyaxes="1 0.1 0 0 0.4 1" fovy="50"/>
  <geom name="floor" type="plane" size="0 0 1"/>
  <body name="upper" pos="0 0 .5"><joint name="shoulder" axis="0 1 0"/>
    <geom name="bone" type="box" size=".05 .06 .25" pos="0 0 .25"/>
    <camera name="eye" pos="0.1 0 .6" euler="10 -90 0" resolution="64 48"/></body>
</worldbody></mujoco>"""
ARM = kt.loads(MJCF, "mjcf")
Q = np.array([0.4])


def rays(camera, pose):
    """Directions through the middles of the pixels, of unit depth, (rows, columns, 3)."""
    width, height = camera.size
    half = np.tan(camera.angle / 2)
    y, x = np.mgrid[:height, :width] + 0.5
    local = np.stack([(2 * x - width) / height * half, (1 - 2 * y / height) * half], axis=-1)
    return np.concatenate([local, -np.ones((height, width, 1))], axis=-1) @ pose[:3, :3].T


def objects():
    b = kt.ModelBuilder("objects")
    b.geometry(geometry.Plane(), name="ground")
    for k, shape in enumerate((geometry.Box((0.4, 0.3, 0.5)), geometry.Box((0.2, 0.2, 0.9)))):
        b.body(f"box {k}", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0))
        b.geometry(shape, on=f"box {k}", name=f"shape {k}")
    return b.build()


def test_depths_and_shapes_are_those_of_rays_pixel_by_pixel():
    model = objects()
    camera = kt.camera((1.6, -1.1, 0.9), (0.0, 0.1, 0.2), size=(64, 48), angle=0.9)
    q = model.neutral()
    q[:3], q[7:10] = (0.1, 0.2, 0.3), (-0.4, -0.1, 0.4)
    q[3:7] = np.array([0.9, 0.2, -0.3, 0.25]) / np.linalg.norm([0.9, 0.2, -0.3, 0.25])
    images = kt.render(model, q, camera, ("depth", "shape", "body"))
    way = rays(camera, camera.placement.to_pose()).reshape(-1, 3)
    hit = kt.contact.ray_cast(model, q, (1.6, -1.1, 0.9), way)
    expected = (hit.distance / np.linalg.norm(way, axis=1)).reshape(48, 64)
    assert np.array_equal(images["shape"], hit.shape.reshape(48, 64))
    body = np.array([*(g.body for g in model.geometry), -1])[images["shape"]]
    assert np.array_equal(images["body"], body)
    seen = np.isfinite(expected)
    assert seen.sum() > 1000
    assert np.array_equal(seen, np.isfinite(images["depth"]))
    assert np.abs(images["depth"][seen] / expected[seen] - 1).max() < 1e-12


def test_cameras_of_mjcf_are_where_mujoco_has_them():
    theirs = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(theirs)
    data.qpos[:] = Q
    mujoco.mj_forward(theirs, data)
    for k, camera in enumerate(ARM.cameras):
        frame = kt.pose(ARM, Q, camera.of) if camera.of else np.eye(4)
        pose = frame @ camera.placement.to_pose()
        assert np.allclose(pose[:3, 3], data.cam_xpos[k], atol=1e-15)
        assert np.allclose(pose[:3, :3].ravel(), data.cam_xmat[k], atol=1e-14)
        assert np.degrees(camera.angle) == pytest.approx(theirs.cam_fovy[k])
    assert [c.size for c in ARM.cameras] == [(320, 240), (64, 48)]


@pytest.mark.parametrize("suffix", [".xml", ".toml", ".json", ".sdf"])
def test_cameras_are_written_and_read_again(tmp_path, suffix):
    model = ARM
    if suffix == ".sdf":  # which has no camera that no link carries
        model = ARM.replace(cameras=ARM.cameras[1:])
    path = kt.save(model, tmp_path / f"arm{suffix}")
    again = kt.load(Path(path) if path else tmp_path / f"arm{suffix}")
    for one, two in zip(model.cameras, again.cameras, strict=True):
        assert (one.name, one.of, one.size) == (two.name, two.of, two.size)
        assert one.angle == pytest.approx(two.angle, rel=1e-14)
        for x, y in ((one.placement.E, two.placement.E), (one.placement.r, two.placement.r)):
            assert np.allclose(np.asarray(x, float), np.asarray(y, float), atol=1e-14)


def test_every_door_sees_the_same():
    world = kt.World()
    world.add(ARM, name="arm", q=Q)
    depth = world.render("arm.eye", "depth")
    assert depth.shape == (48, 64)
    assert [c.name for c in world.cameras] == ["arm.outside", "arm.eye"]
    model = world.model
    assert np.array_equal(kt.render(model, world.q, "arm.eye", "depth"), depth)
    both = kt.render(model, np.array([world.q, 0 * world.q]), "arm.eye", ("depth", "color"))
    assert np.array_equal(both["depth"][0], depth)
    assert not np.array_equal(both["depth"][1], depth)
    assert both["color"].shape == (2, 48, 64, 3)
    batch = world.batch(3).render("arm.eye", "depth")
    assert np.array_equal(batch, np.array([depth] * 3))


def test_an_environment_sees_with_the_cameras_of_its_worlds():
    @kt.kernel
    def observe(model, q, qd):
        return np.concatenate([q, qd])

    @kt.kernel
    def reward(model, q):
        return -(q[0] ** 2)

    @kt.kernel
    def reset(model, uniform: (1,)):
        return {"q": uniform}

    arm = ARM.replace(geometry=[g for g in ARM.geometry if g.body])
    env = kt.learning.Environment(arm, 3, observe=observe, reward=reward, reset=reset, dt=0.01)
    depth = env.render("outside", "depth")
    expected = kt.render(arm, env.state["q"], "outside", "depth")
    assert depth.shape == (3, 240, 320)
    assert np.array_equal(depth, expected)


def test_what_does_not_move_and_what_is_not_there_can_be_seen():
    world = kt.World()
    camera = kt.camera((0, -3, 1), (0, 0, 0), size=(8, 6))
    assert np.all(np.isinf(world.render(camera, "depth")))
    world.add_ground()
    world.add(geometry.Box((1, 1, 1)), at=(0, 0, 0.5), name="block")
    seen = world.render(camera, ("shape", "color"))
    assert seen["color"].shape == (6, 8, 3)
    assert {0, 1} <= set(seen["shape"].ravel())


def test_a_camera_looks_at_its_target_with_up_upwards():
    camera = kt.camera((3.0, -1.0, 2.0), (0.5, 0.5, 0.5))
    pose = camera.placement.to_pose()
    to_target = np.array([-2.5, 1.5, -1.5])
    assert np.allclose(pose[:3, 2], -to_target / np.linalg.norm(to_target))
    assert pose[2, 0] == pytest.approx(0, abs=1e-15)
    assert pose[2, 1] > 0
    assert np.linalg.det(pose) == pytest.approx(1)


def test_cameras_move_with_their_parts():
    longer = kt.edit.attach(kt.samples.pendulum(), ARM, prefix="arm.", at=(0, 0, 1))
    outside, eye = longer.cameras
    assert (outside.name, eye.name, eye.of) == ("arm.outside", "arm.eye", "arm.upper")
    pose = longer.frame(outside.of).placement.to_pose() @ outside.placement.to_pose()
    assert np.allclose(pose[:3, 3], [0.3, -2, 2.2])
    assert [c.name for c in ARM.replace(bodies=(), geometry=()).cameras] == ["outside"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: kt.render(ARM, Q, "nose"), kt.UnknownNameError, "camera is 'nose', which the"),
        (lambda: kt.render(ARM, Q, "eye", "colour"), kt.UnknownNameError, "did you mean 'color'"),
        (
            lambda: kt.render(kt.samples.pendulum()),
            kt.ModelError,
            r"has no cameras: give one, such as camera=kinetree.camera\(",
        ),
        (lambda: kt.camera((0, 0, 1), (0, 0, 0)), kt.ModelError, "and not along up"),
        (
            lambda: ARM.replace(cameras=[kt.Camera(size=(0, 5))]),
            kt.ModelError,
            r"size of camera 'camera' must be columns and rows, .* got \(0, 5\)",
        ),
        (lambda: ARM.replace(cameras=[kt.Camera(angle=4.0)]), kt.ModelError, "between 0 and pi"),
        (lambda: ARM.replace(cameras=[kt.Camera(near=0.0)]), kt.ModelError, "positive length"),
        (
            lambda: ARM.replace(cameras=[kt.Camera(of="nose")]),
            kt.UnknownNameError,
            "what carries camera 'camera' is 'nose'",
        ),
    ],
)
def test_what_is_wrong_is_said(make, error, message):
    with pytest.raises(error, match=message):
        make()
