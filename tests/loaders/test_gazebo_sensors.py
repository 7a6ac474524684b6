"""Sensors of SDF files and of ``<gazebo>`` in URDF files."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.writers.sdf import to_sdf

SDF = """
<sdf version="1.9"><world name="w"><gravity>0 0 -9.81</gravity>
<magnetic_field>1e-5 2e-5 3e-5</magnetic_field><model name="m">
  <joint name="post" type="fixed"><parent>world</parent><child>a</child></joint>
  <link name="a"><inertial><mass>2</mass></inertial>
    <sensor name="imu" type="imu"><pose>0.1 0 0 0 0.3 0</pose><update_rate>100</update_rate>
      <imu><angular_velocity><x><noise type="gaussian"><stddev>0.01</stddev></noise></x>
      </angular_velocity></imu></sensor>
    <sensor name="mag" type="magnetometer"/>{more}</link>
  <link name="b"><pose>0 0 1 0 0 0</pose><inertial><mass>3</mass></inertial>
    <sensor name="imu" type="imu"/></link>
  <joint name="j" type="revolute"><pose>0 0 -0.2 0 0 0.5</pose><parent>a</parent><child>b</child>
    <axis><xyz>0 1 0</xyz></axis>
    <sensor name="ft" type="force_torque"><force_torque>{frame}</force_torque></sensor></joint>
</model></world></sdf>"""
URDF = """
<robot name="r"><link name="base"/>
  <link name="a"><inertial><mass value="2"/>{inertia}</inertial></link>
  <link name="b"><inertial><mass value="3"/>{inertia}</inertial></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="a"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="f" type="fixed"><parent link="a"/><child link="b"/><origin xyz="0 0 1"/></joint>
  <gazebo reference="b"><sensor name="imu" type="imu"><pose>0 0 0.1 0 0 0</pose></sensor></gazebo>
  <gazebo reference="f"><sensor name="ft" type="force_torque"><force_torque>
    <measure_direction>parent_to_child</measure_direction></force_torque></sensor></gazebo>
</robot>"""
SOLID = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'


def at_rest(model):
    zero = np.zeros(model.nv)
    return kt.sensors(model)(model.neutral(), zero, zero)


def test_sdf_has_imus_magnetometers_and_force_sensors():
    model = kt.loads(SDF.format(frame="", more=""), "sdf")
    readings = at_rest(model)
    assert list(readings) == [
        "imu_acceleration", "imu_angular_velocity", "imu_orientation", "mag",
        "m::b_imu_acceleration", "m::b_imu_angular_velocity", "m::b_imu_orientation",
        "ft_force", "ft_torque",
    ]  # fmt: skip
    assert kt.sensors(model)["imu_angular_velocity"].noise == 0.01
    up = 9.81 * np.array([-np.sin(0.3), 0, np.cos(0.3)])
    assert_close(readings["imu_acceleration"], up, condition=10)
    assert_close(readings["mag"], [1e-5, 2e-5, 3e-5])
    assert_close(readings["ft_force"], [0, 0, -3 * 9.81], condition=10)  # on the parent


def test_frames_of_force_sensors():
    frame = "<frame>sensor</frame><measure_direction>parent_to_child</measure_direction>"
    model = kt.loads(SDF.format(frame=frame, more=""), "sdf")
    q, qd, qdd = np.array([0.4]), np.array([0.7]), np.array([1.3])
    wrench = kt.sensors(model)(q, qd, qdd)
    expected = kt.joint_reactions(model, q, qd, qdd, joint="m::j")
    assert_close(wrench["ft_force"], expected[3:], condition=100)
    assert_close(wrench["ft_torque"], expected[:3], condition=100)
    model = kt.loads(SDF.format(frame="<frame>parent</frame>", more=""), "sdf")
    assert "axes of the parent, which turn against the child" in str(model.report)
    assert "ft_force" not in kt.sensors(model)


def test_other_sensors_are_noted():
    model = kt.loads(SDF.format(frame="", more='<sensor name="eye" type="lidar"/>'), "sdf")
    assert "<sensor name='eye'>: kinetree has no sensor of type 'lidar'" in str(model.report)
    model = kt.loads(URDF.format(inertia=SOLID).replace('reference="b"', 'reference="x"'), "urdf")
    assert "no link or joint 'x'" in str(model.report)


CAMERA = """<sensor name="eye" type="depth_camera"><pose>0.1 0 0.2 0 0 0.3</pose>
  <camera><horizontal_fov>1.2</horizontal_fov><image><width>80</width><height>60</height></image>
  <clip><near>0.05</near></clip></camera></sensor>"""


def test_cameras_look_along_the_x_axis_of_their_sensor():
    (camera,) = kt.loads(SDF.format(frame="", more=CAMERA), "sdf").cameras
    pose = camera.placement.to_pose()
    assert (camera.name, camera.size, camera.near) == ("eye", (80, 60), 0.05)
    assert np.tan(camera.angle / 2) == pytest.approx(np.tan(0.6) * 60 / 80)
    assert_close(pose[:3, 3], [0.1, 0, 0.2])
    assert_close(-pose[:3, 2], [np.cos(0.3), np.sin(0.3), 0], condition=10)
    assert_close(pose[:3, 1], [0, 0, 1])
    gazebo = URDF.format(inertia=SOLID).replace(
        "</robot>", f'<gazebo reference="b">{CAMERA}</gazebo></robot>'
    )
    (other,) = kt.loads(gazebo, "urdf").cameras
    assert_close(other.placement.to_pose(), pose)


@pytest.mark.parametrize("lump", [True, False])
def test_urdf_has_those_of_gazebo(lump):
    readings = at_rest(kt.loads(URDF.format(inertia=SOLID), "urdf", lump=lump))
    assert_close(readings["imu_acceleration"], [0, 0, 9.81])
    assert_close(readings["ft_force"], [0, 0, 3 * 9.81], condition=10)


def test_sdf_is_written_with_them():
    model = kt.loads(SDF.format(frame="", more=""), "sdf", lump=False)
    text = to_sdf(model)
    again = kt.loads(text, "sdf", lump=False)
    assert [(s.name, s.kind, s.noise) for s in again.sensors] == [
        (s.name, s.kind, s.noise) for s in model.sensors
    ]
    state = np.array([0.4]), np.array([0.7]), np.array([1.3])
    one, other = (kt.sensors(m)(*state).values for m in (model, again))
    assert_close(other, one, condition=100, scale=np.abs(one).max())
    assert to_sdf(again) == text
    other = kt.Sensor("angle", "jointpos", model.joint_names[-1])
    with pytest.warns(kt.ModelWarning, match="SDF cannot hold it: sensors angle"):
        to_sdf(model.replace(sensors=[other]))
