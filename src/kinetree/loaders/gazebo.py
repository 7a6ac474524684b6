"""Sensors of SDF, in SDF files and in ``<gazebo>`` of URDF: IMUs, magnetometers, force and torque.

One element is several sensors here: an IMU called ``imu`` becomes ``imu_acceleration``,
``imu_angular_velocity`` and ``imu_orientation``.
"""

from dataclasses import replace

import numpy as np

from kinetree.loaders.xml import Node
from kinetree.model import Camera, Sensor
from kinetree.spatial import Plucker

MAGNETIC_FIELD = (6e-06, 2.3e-05, -4.2e-05)
"""Of a world that does not say, by the standard [T]."""
IMU = {
    "acceleration": ("accelerometer", "linear_acceleration"),
    "angular_velocity": ("gyro", "angular_velocity"),
    "orientation": ("framequat", ""),
}
"""What an IMU measures: the kind of sensor here, and the element of its noise."""


def on_link(node: Node, link: str, X: Plucker, field=MAGNETIC_FIELD) -> list[Sensor]:
    """Sensors of a ``<sensor>`` on a link, placed at ``X``; empty for unsupported kinds."""
    name, kind = node.get("name") or "sensor", node.get("type")
    node.report.use_all(node.element)
    if kind == "imu":
        imu = node.one("imu")
        return [
            Sensor(f"{name}_{what}", reading, link, placement=X, noise=_noise(imu, tag))
            for what, (reading, tag) in IMU.items()
        ]
    if kind == "magnetometer":
        noise = _noise(node, "magnetometer")
        return [Sensor(name, kind, link, placement=X, noise=noise, data=tuple(field))]
    if kind not in CAMERAS:
        node.ignore(f"kinetree has no sensor of type {kind!r} on a link", effect="control")
    return []


CAMERAS = ("camera", "depth", "depth_camera", "rgbd_camera", "rgbd", "segmentation")
"""Types of sensors that are cameras."""
LOOKS_ALONG_X = Plucker(np.array([[0.0, -1, 0], [0, 0, 1], [-1, 0, 0]]), np.zeros(3))
"""From a sensor that looks along its x axis, z upwards, to our camera."""
_ANGLE, _SIZE = 1.047, (320, 240)  # of a camera that does not say, by the standard


def camera_on_link(node: Node, link: str, X: Plucker) -> Camera | None:
    """Camera of a ``<sensor>`` on a link, which looks along the x axis of the sensor."""
    if node.get("type") not in CAMERAS:
        return None
    given = node.one("camera")
    angle, (width, height), near = _ANGLE, _SIZE, 0.1
    if given is not None:
        pose = given.one("pose")
        if pose is not None:
            node.ignore("a pose of <camera> within its <sensor> is not read", effect="picture")
        angle = _value(given, "horizontal_fov", angle)
        image, clip = given.one("image"), given.one("clip")
        if image is not None:
            width, height = int(_value(image, "width", width)), int(_value(image, "height", height))
        near = near if clip is None else _value(clip, "near", near)
    up = 2 * np.arctan(np.tan(angle / 2) * height / max(width, 1))
    size = width, height
    return Camera(node.get("name") or "camera", link, LOOKS_ALONG_X @ X, float(up), size, near)


def _value(node, tag, default):
    """Number in a child element, or a default."""
    part = node.one(tag)
    return default if part is None else float(part.text_numbers(1)[0])


def on_joint(node: Node, link: str, X: Plucker, pose: Plucker) -> list[Sensor]:
    """Sensor of a ``<sensor>`` on a joint.

    Args:
        node: the element.
        link: the child of the joint.
        X: from there to the frame of the joint on it.
        pose: of the sensor in the frame of the joint.
    """
    name, kind = node.get("name") or "sensor", node.get("type")
    node.report.use_all(node.element)
    if kind != "force_torque":
        node.ignore(f"kinetree has no sensor of type {kind!r} on a joint", effect="control")
        return []
    given = node.one("force_torque")
    frame, direction = (_word(given, tag) for tag in ("frame", "measure_direction"))
    if frame == "parent":
        why = "it measures in axes of the parent, which turn against the child"
        node.ignore(why, effect="control")
        return []
    X = pose @ X if frame == "sensor" else Plucker(Plucker.identity().E, X.r)
    sign = () if direction == "parent_to_child" else (-1.0,)
    return [
        Sensor(
            f"{name}_{what}",
            what,
            link,
            placement=X,
            data=sign,
            noise=0.0 if given is None else _noise(given, what),
        )
        for what in ("force", "torque")
    ]


def named_apart(sensors: list, taken: set) -> list:
    """Sensors or cameras with unique names: duplicates get the name of their link in front."""
    found = []
    for s in sensors:
        name = s.name if s.name not in taken else f"{s.of}_{s.name}"
        while name in taken:
            name += "_"
        taken.add(name)
        found.append(replace(s, name=name))
    return found


def _word(node, tag):
    """Text of a child element, empty if it is missing."""
    part = None if node is None else node.one(tag)
    return "" if part is None else part.text()


def _noise(node, tag):
    """Largest standard deviation of a sensor's Gaussian noise over all axes."""
    part = node.one(tag) if node is not None and tag else None
    deviations = [0.0]
    for axis in part.all("x", "y", "z") if part is not None else ():
        noise = axis.one("noise")
        stddev = None if noise is None else noise.one("stddev")
        if stddev is not None:
            deviations.append(abs(stddev.text_numbers(1)[0]))
    return float(np.max(deviations))
