"""The bridge to ROS 2: a system of ros2_control in C++ and a node, with stand-ins for ROS."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import kinetree as kt
from kinetree.writers.save import to_srdf

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "examples" / "ros2" / "kinetree_arm"
STUBS = ROOT / "tests" / "support" / "ros2_stubs"
ARM = ROOT / "examples" / "first_hour" / "arm.urdf"
FLAGS = ("-O1", "-Wall", "-Wextra", "-Werror")


def from_file(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The plugin with a driver, compiled against the stand-ins."""
    compiler = next((c for c in ("g++", "clang++", "c++") if shutil.which(c)), None)
    assert compiler, "no C++ compiler here: make compiler installs it"
    folder = tmp_path_factory.mktemp("ros2")
    from_file(PACKAGE / "export.py", "export_for_ros2").export(ARM, folder)
    made_c = [compiler, "-x", "c", "-std=c99", *FLAGS, "-c", folder / "robot.c"]
    subprocess.run([*made_c, "-o", folder / "robot.o"], check=True)
    sources = [PACKAGE / "src" / "kinetree_system.cpp", STUBS / "drive.cpp", folder / "robot.o"]
    folders = [f"-I{x}" for x in (STUBS, folder, PACKAGE / "src")]
    made = [compiler, "-std=c++17", *FLAGS, *folders, *sources, "-o", folder / "drive", "-lm"]
    subprocess.run(made, check=True)
    return folder / "drive"


def run(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    values = dict(line.split() for line in done.stdout.splitlines())
    return done.returncode, {name: float(x) for name, x in values.items()}


@pytest.mark.parametrize(("what", "compensated"), [("effort", True), ("position", False)])
def test_the_plugin_moves_as_kinetree(program, what, compensated):
    m = kt.load(ARM)
    code, found = run(program, what, str(compensated).lower(), *m.joint_names)
    assert code == 0
    command = 0.3 * (-0.9) ** np.arange(1, 5)
    q, qd, dt = np.zeros(4), np.zeros(4), 1e-3
    for _ in range(400):
        motor = command if what == "effort" else 200 * (command - q) - 20 * qd
        motor = motor + compensated * kt.gravity_force(m, q)
        motor = np.clip(motor, -m.effort_limits, m.effort_limits)
        qd = qd + dt * kt.forward_dynamics(m, q, qd, motor + kt.passive_force(m, q, qd))
        q = q + dt * qd
    assert np.abs(q).max() > 0.05
    for k, name in enumerate(m.joint_names):
        assert found[f"{name}/position"] == pytest.approx(q[k], rel=1e-9, abs=1e-12)
        assert found[f"{name}/velocity"] == pytest.approx(qd[k], rel=1e-9, abs=1e-12)
        assert found[f"{name}/effort"] == pytest.approx(motor[k], rel=1e-6, abs=1e-9)


def test_other_joints_than_those_of_the_robot_are_an_error(program):
    names = kt.load(ARM).joint_names
    assert run(program, "effort", "true", *names[:3])[0] == 3
    assert run(program, "effort", "true", *names[:3], "rist")[0] == 3


def test_the_description_lists_every_joint():
    from lxml import etree

    control = etree.parse(PACKAGE / "arm.ros2_control.xml").getroot()
    assert tuple(j.get("name") for j in control.findall("joint")) == kt.load(ARM).joint_names
    plugin = etree.parse(PACKAGE / "kinetree_arm.xml").getroot().find("class").get("name")
    assert control.findtext("hardware/plugin") == plugin


# --- the node ------------------------------------------------------------------------------------


class Message(SimpleNamespace):
    """Fields that appear when they are set or read."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = Message()
        setattr(self, name, made)
        return made


class Node:
    """What ``rclpy.node.Node`` does for the bridge."""

    def __init__(self, name):
        self.name, self.now, self.sent, self.said = name, 0, {}, []

    def declare_parameter(self, name, usual):
        return SimpleNamespace(value=usual)

    def create_subscription(self, kind, topic, call, quality):
        del kind, quality

    def create_timer(self, period, call):
        del period

    def create_publisher(self, kind, topic, depth):
        return SimpleNamespace(publish=lambda message: self.sent.__setitem__(topic, message))

    def get_clock(self):
        return SimpleNamespace(now=lambda: Time(self.now))

    def get_logger(self):
        return SimpleNamespace(info=self.said.append, error=self.said.append)


class Time(int):
    def __sub__(self, other):
        return SimpleNamespace(nanoseconds=int(self) - int(other))

    def to_msg(self):
        return int(self)


@pytest.fixture
def bridge(monkeypatch):
    names = {
        "rclpy": {"init": None, "spin": None},
        "rclpy.node": {"Node": Node},
        "rclpy.qos": {
            "DurabilityPolicy": SimpleNamespace(TRANSIENT_LOCAL=1),
            "QoSProfile": SimpleNamespace,
        },
        "std_msgs.msg": {"Float64MultiArray": Message, "String": Message},
        "sensor_msgs.msg": {"JointState": Message},
        "geometry_msgs.msg": {"PointStamped": Message, "PoseStamped": Message},
    }
    for name, values in names.items():
        module = ModuleType(name)
        module.__dict__.update(values)
        monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setitem(sys.modules, name.partition(".")[0], ModuleType("package"))
    sys.modules["rclpy"].__dict__.update(names["rclpy"])
    return from_file(ROOT / "examples" / "ros2" / "bridge.py", "bridge").Bridge()


def state(names, q, qd):
    return Message(name=list(names), position=list(q), velocity=list(qd))


def test_the_node_holds_the_arm_and_pulls_its_tool(bridge):
    m = kt.load(ARM)
    bridge.on_robot(Message(data=ARM.read_text()))
    assert bridge.said[0].startswith("arm: 4 joints")
    bridge.control()
    assert not bridge.sent  # no state yet
    q = np.array([0.2, 0.4, 0.6, 0.1])
    order = [2, 0, 3, 1]
    names = [m.joint_names[k] for k in order]
    bridge.on_state(state([*names, "lift"], [*q[order], 9.0], np.zeros(5)))
    bridge.control()
    tau = bridge.sent["effort_controller/commands"].data
    np.testing.assert_allclose(tau, kt.gravity_force(m, q), atol=1e-12)
    T = kt.pose(m, q, "tool")
    pose = bridge.sent["tool_pose"].pose
    np.testing.assert_allclose([pose.position.x, pose.position.y, pose.position.z], T[:3, 3])
    o = pose.orientation
    turned = 2 * np.array([o.x * o.z + o.w * o.y, o.y * o.z - o.w * o.x])  # where z of the tool is
    np.testing.assert_allclose(turned, T[:2, 2], atol=1e-12)
    bridge.on_target(Message(point=SimpleNamespace(x=0.5, y=0.0, z=0.5)))
    motion = kt.simulate(
        m, q, duration=1.0, dt=2e-3, controller=lambda t, q, qd: held(bridge, q, qd)
    )
    there = kt.pose(m, motion.q[-1], "tool")[:3, 3]
    np.testing.assert_allclose(there, [0.5, 0.0, 0.5], atol=0.01)


def held(bridge, q, qd):
    """Forces of the node for a state that arrives now."""
    bridge.now += 2_000_000
    bridge.on_state(state(bridge.model.joint_names, q, qd))
    bridge.control()
    return np.array(bridge.sent["effort_controller/commands"].data)


def test_the_node_stops_without_states_and_says_what_is_wrong(bridge):
    bridge.on_robot(Message(data="<robot name='x'><link/></robot>"))
    assert "robot_description:1" in bridge.said[-1]
    assert bridge.model is None
    bridge.tool = "claw"
    bridge.on_robot(Message(data=ARM.read_text()))
    assert "no frame 'claw'" in bridge.said[-1]
    bridge.tool = "tool"
    bridge.on_robot(Message(data=ARM.read_text()))
    srdf = kt.loads(ARM.read_text()).replace(postures=())
    text = to_srdf(srdf.replace(groups=[kt.Group("all", joints=srdf.joint_names)]))
    bridge.on_semantics(Message(data=text))
    assert [g.name for g in bridge.model.groups] == ["all"]
    bridge.on_state(state(bridge.model.joint_names, [0.1, 0.2, 0.3, 0.4], np.zeros(4)))
    bridge.control()
    assert np.abs(bridge.sent["effort_controller/commands"].data).max() > 1
    bridge.now = 200_000_000
    bridge.control()
    assert not np.any(bridge.sent["effort_controller/commands"].data)
