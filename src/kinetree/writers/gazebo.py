"""Sensors as SDF has them: what ``kinetree.loaders.gazebo`` reads, the other way round."""

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.loaders.gazebo import IMU, LOOKS_ALONG_X, MAGNETIC_FIELD

_LOOKS_ALONG_X = LOOKS_ALONG_X.inverse()  # as cameras of SDF
_WRENCH = {"force": "force", "torque": "torque"}


class GazeboSensors:
    """Writes the sensors that SDF has words for.

    Args:
        model: the model.
        links: element of each body, by number.
        joints: element of the joint that carries each body, by number, where it is its child.
        writes: functions that write an element with a name, one with numbers or text, and a pose.
        in_world: whether there is a world, which has a magnetic field.

    Attributes:
        left: sensors that are not written yet, by name.
        field: the magnetic field that they measure.
    """

    def __init__(self, model, links, joints, writes, in_world):
        self.model, self.links, self.joints, self.in_world = model, links, joints, in_world
        self.named, self.put, self.put_pose = writes
        self.left = {s.name: s for s in model.sensors}
        self.field = None

    def write(self):
        """Write all sensors that Gazebo has; the others, and cameras, are collected in ``left``."""
        for c in self.model.cameras:
            self._camera(c)
        kinds = {what: kind for what, (kind, _) in IMU.items()}
        for s in self.model.sensors:
            if s.kind == "accelerometer":
                self._imu(self._together(s, "acceleration", kinds))
            elif s.kind == "force":
                self._wrench(self._together(s, "force", _WRENCH))
            elif s.kind == "magnetometer":
                self._magnetometer(s)

    def _camera(self, c):
        """Write a camera as a Gazebo sensor."""
        frame = self.model.frame(c.of or self.model.base_name)
        if frame.body not in self.links:
            self.left[c.name] = c
            return
        element = self.named(self.links[frame.body], "sensor", c.name, type="camera")
        self.put_pose(element, _LOOKS_ALONG_X @ c.placement @ frame.placement)
        given = etree.SubElement(element, "camera")
        width, height = c.size
        wide = 2 * np.arctan(np.tan(c.angle / 2) * width / height)
        self.put(given, "horizontal_fov", float(wide))
        image, clip = etree.SubElement(given, "image"), etree.SubElement(given, "clip")
        self.put(image, "width", width)
        self.put(image, "height", height)
        self.put(clip, "near", c.near)

    def _together(self, s, suffix, kinds):
        """Sensors of one place that a single Gazebo element stands for; empty if they differ."""
        base, (body, X) = s.name.removesuffix(f"_{suffix}"), self._place(s)
        found = [self.left.get(f"{base}_{what}") for what in kinds]
        for x, kind in zip(found, kinds.values(), strict=True):
            if x is None or x.kind != kind or x.reference or x.cutoff or x.inertia is not None:
                return []
            other, Y = self._place(x)
            if other != body or x.data != s.data:
                return []
            if not (np.array_equal(X.E, Y.E) and np.array_equal(X.r, Y.r)):
                return []
        return found

    def _imu(self, sensors):
        """Write the accelerometer and gyroscope of a frame as one IMU."""
        if sensors and self._place(sensors[0])[0] in self.links:
            imu = etree.SubElement(self._element(self.links, "acceleration", "imu", sensors), "imu")
            for s, (_, tag) in zip(sensors, IMU.values(), strict=True):
                self._noise(imu, tag, s.noise)

    def _wrench(self, sensors):
        """Write the force and torque sensors of a frame as one."""
        if sensors and self._place(sensors[0])[0] in self.joints:
            element = self._element(self.joints, "force", "force_torque", sensors)
            given = etree.SubElement(element, "force_torque")
            self.put(given, "frame", "sensor")
            of_child = sensors[0].data == (-1.0,)
            way = "child_to_parent" if of_child else "parent_to_child"
            self.put(given, "measure_direction", way)
            for s in sensors:
                self._noise(given, s.kind, s.noise)

    def _magnetometer(self, s):
        """Write a magnetometer of the world's magnetic field."""
        usual = s.data == MAGNETIC_FIELD or self.in_world
        if usual and self.field in (None, s.data) and self._place(s)[0] in self.links:
            self.field = s.data
            self._noise(self._element(self.links, "", s.kind, [s]), s.kind, s.noise)

    def _element(self, parents, suffix, kind, sensors):
        """Element of a Gazebo sensor with its pose."""
        body, X = self._place(sensors[0])
        name = sensors[0].name.removesuffix(f"_{suffix}")
        element = self.named(parents[body], "sensor", name, type=kind)
        self.put_pose(element, X)
        for s in sensors:
            del self.left[s.name]
        return element

    def _place(self, s):
        """Body of a sensor, and the transform from there to the sensor."""
        frame = self.model.frame(s.of)
        return frame.body, s.placement @ frame.placement

    def _noise(self, parent, tag, deviation):
        """Write the noise of a sensor, equal along all axes."""
        if tag and deviation:
            part = etree.SubElement(parent, tag)
            for axis in "xyz":
                noise = etree.SubElement(etree.SubElement(part, axis), "noise", type="gaussian")
                self.put(noise, "stddev", deviation)
