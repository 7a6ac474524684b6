"""Broken robot files by the thousand: mutations of real ones, and random structures.

``hurt`` spoils the bytes of a file; ``random_xml`` grows a tree of tags that the loaders know, put
together at random. ``survives`` reads a file and says how long it took.
"""

import contextlib
import json
import random
import re
import time
from pathlib import Path
from xml.sax.saxutils import quoteattr

from support.example_robots import ROOT

from kinetree import samples
from kinetree.errors import KinetreeError
from kinetree.loaders import read

URDF = [
    (ROOT / name).read_bytes()
    for name in (
        "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
        "asr_twodof_description/urdf/TwoDofs.urdf",
        "so_arm_description/urdf/so100.urdf",
        "ur_description/urdf/ur3_robot.urdf",
        "panda_description/urdf/panda.urdf",
        "finger_edu_description/robots/finger_edu.urdf",
        "iris_description/robots/iris_simple.urdf",
    )
] + [
    b"""<robot name="four bar" xmlns:kinetree="urn:kinetree:urdf:1">
  <link name="ground"/><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/>
  </inertial></link><link name="b"/><link name="c"/>
  <joint name="1" type="revolute"><parent link="ground"/><child link="a"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/><dynamics damping="1" friction="1"/>
  <kinetree:dynamics armature="0.1" stiffness="2" rest="0.3"/></joint>
  <joint name="2" type="continuous"><parent link="a"/><child link="b"/><mimic joint="1"/></joint>
  <joint name="3" type="planar"><parent link="ground"/><child link="c"/><axis xyz="0 1 0"/></joint>
  <kinetree:loop name="4" type="helical" pitch="0.1"><predecessor link="b"><origin xyz="1 0 0"/>
  </predecessor><successor link="c"><origin rpy="0 0 1"/></successor></kinetree:loop>
  <kinetree:posture name="home"><joint name="1" q="0.5"/><control name="s" value="1"/>
  </kinetree:posture><ros2_control name="r" type="system"><joint name="1"><param name="kp">3</param>
  <command_interface name="position"><param name="max">2</param></command_interface></joint>
  </ros2_control><kinetree:actuator name="s" frame="c" gear="0 0 0 1 0 0" gain="1 0 2"/>
  <kinetree:tendon name="t" joints="1" coefficients="2" lower="-1"/>
</robot>"""
]
MJCF = [
    b"""<mujoco model="m"><compiler angle="degree"/><default><joint damping="1" armature="0.1"/>
<default class="leg"><geom size="0.1" density="500"/></default></default><worldbody>
<body name="a" pos="0 0 1"><freejoint name="root"/><geom type="box" size="0.1 0.2 0.3"/>
<body name="b" pos="0.1 0 0" childclass="leg"><joint name="hip" axis="0 1 0" range="-90 90"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.05"/><site name="foot" pos="0 0 -0.3"/></body>
<body name="c" pos="-0.1 0 0"><joint name="knee" type="slide"/><geom size="0.1"/></body>
</body></worldbody><equality><joint joint1="hip" joint2="knee" polycoef="0 1 0 0 0"/>
<connect body1="b" body2="c" anchor="0 0 0"/></equality><actuator>
<motor name="m" joint="hip" gear="50"/><position site="foot" kp="3" timeconst="0.2"/>
</actuator><keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.1 0.2" ctrl="1 2" act="3"/></keyframe>
</mujoco>"""
]
SDF = [
    b"""<sdf version="1.7"><model name="m"><link name="base"><inertial><mass>1</mass><inertia>
<ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial><collision name="c"><geometry><box>
<size>1 1 1</size></box></geometry></collision></link><link name="a"><pose>0 0 1 0 0.1 0</pose>
<inertial><mass>2</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link>
<link name="b"><pose relative_to="a">0 0 1 0 0 0</pose></link><frame name="f" attached_to="b"/>
<joint name="j" type="revolute"><parent>base</parent><child>a</child><axis><xyz>0 1 0</xyz><limit>
<lower>-1</lower><upper>1</upper></limit><dynamics><damping>1</damping></dynamics></axis></joint>
<joint name="k" type="ball"><parent>a</parent><child>b</child></joint>
<joint name="l" type="fixed"><parent>b</parent><child>base</child></joint></model></sdf>"""
]
TOML = [
    b"""kinetree = 1
name = "arm"
gravity = [0.0, 0.0, -9.81]

[parameters]
length = 0.4

[[body]]
name = "upper"
joint = { type = "revolute", axis = "y" }
at = [0, 0, "length / 2"]
rpy = [0, "90 deg", 0]
inertia = { mass = 1.5, center = [0, 0, 0.1], moments = [0.1, 0.1, 0.05] }
limits = { lower = -inf, upper = inf, velocity = 50.0, effort = 50.0 }

[[body]]
name = "fore"
on = "upper"
joint = { type = "prismatic", axis = [0, 0, 1] }

[[frame]]
name = "tool"
on = "fore"
at = [0, 0, 0.3]

[[loop]]
name = "pin"
predecessor = "fore"
successor = "upper"
joint = { type = "revolute", axis = "y" }

[[geometry]]
on = "fore"
box = [0.1, 0.1, 0.2]

[[posture]]
name = "home"
q = {}
"""
]
DH = [
    b"# convention: standard\n# name: arm\njoint,a,alpha[deg],d,theta\n"
    b"one,0.3,0,0,0\ntwo,0.2,90,0,0\nthree,0,0,0,0\n"
]
JSON = [json.dumps(samples.four_bar().to_dict()).encode()]
SEEDS = {"urdf": URDF, "mjcf": MJCF, "sdf": SDF, "toml": TOML, "dh": DH, "json": JSON}
SUFFIX = {
    "urdf": ".urdf",
    "mjcf": ".xml",
    "sdf": ".sdf",
    "toml": ".toml",
    "dh": ".csv",
    "json": ".json",
}

NASTY = [
    b"nan", b"inf", b"-inf", b"1e999", b"1e308", b"-1e308", b"1e-320", b"0", b"-1", b"", b" ", b"x",
    b"1 2", b"1 2 3 4 5 6 7", b"0 0 0", b"99999999999999999999", b"0x10", b"1_0", b"../../etc/a",
    b"file:///etc/passwd", b"package://a/../../b", b"http://localhost:9/", b"${a}", b"$(find a)",
    b"&lt;", b"&x;", b"<!DOCTYPE a>", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?a?>", b"<a>",
    b"'", b'"', b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f\xa4\x96", b"A" * 5000, b"\n" * 50,
    b"; rm -rf /", b"base", b"world", b"true", b"revolute", b"fixed", b"[", b"]", b"{", b"}", b"=",
]  # fmt: skip


_NUMBER = re.compile(rb"-?\d+(\.\d+)?(e-?\d+)?")
_NUMBERS = [
    b"0", b"-0.0", b"1", b"-1", b"3", b"1e-9", b"1e-30", b"1e-300", b"1e9", b"-1e30", b"1e49",
    b"1e300", b"1.7976931348623157e308", b"5e-324", b"0.1", b"7", b"1000000", b"-3.14159265",
]  # fmt: skip


def hurt(source: bytes, rng: random.Random) -> bytes:
    """The file with one to six things wrong: bytes, values, or only numbers."""
    ways = rng.choice((_WAYS, (_value,), (_number,)))
    for _ in range(rng.randint(1, 6)):
        source = rng.choice(ways)(source, rng)
    return source


def _flip(s, rng):
    return s if not s else _put(s, rng.randrange(len(s)), 1, bytes([rng.randrange(256)]))


def _delete(s, rng):
    return _put(s, rng.randrange(len(s) + 1), rng.choice((1, 5, 50, 500)), b"")


def _insert(s, rng):
    return _put(s, rng.randrange(len(s) + 1), 0, rng.choice(NASTY))


def _repeat(s, rng):
    start = rng.randrange(len(s) + 1)
    return _put(s, start, 0, s[start : start + rng.choice((5, 50, 500))])


def _cut(s, rng):
    return s[: rng.randrange(len(s) + 1)]


def _value(s, rng):
    """A quoted value replaced by another, or by something nasty."""
    marks = [i for i, c in enumerate(s) if c in b"\"'"]
    if len(marks) < 4:
        return _insert(s, rng)
    k = rng.randrange(len(marks) - 1)
    j = rng.randrange(len(marks) - 1)
    other = s[marks[j] + 1 : marks[j + 1]] if rng.random() < 0.5 else rng.choice(NASTY)
    return _put(s, marks[k] + 1, marks[k + 1] - marks[k] - 1, other)


def _number(s, rng):
    """A number replaced by one that is out of place."""
    found = list(_NUMBER.finditer(s))
    if not found:
        return _insert(s, rng)
    spot = rng.choice(found)
    return _put(s, spot.start(), len(spot.group()), rng.choice(_NUMBERS))


def _line(s, rng):
    """A line moved to another place."""
    lines = s.split(b"\n")
    lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
    return b"\n".join(lines)


def _recode(s, rng):
    return s.decode("utf-8", "replace").encode(
        rng.choice(("utf-16", "utf-32", "latin-1")), "replace"
    )


def _put(s, start, count, what):
    return s[:start] + what + s[start + count :]


_WAYS = (_flip, _delete, _insert, _repeat, _cut, _value, _value, _value, _line, _line, _recode)

_TAGS = {
    "urdf": [
        "robot", "link", "joint", "inertial", "mass", "inertia", "origin", "axis", "parent",
        "child", "limit", "dynamics", "mimic", "visual", "collision", "geometry", "box",
        "sphere", "mesh", "material", "color", "transmission", "actuator", "type",
        "kinetree:loop", "predecessor", "successor", "kinetree:posture", "kinetree:coupling",
        "kinetree:dynamics", "kinetree:limits", "kinetree:gravity", "kinetree:actuator",
        "kinetree:tendon", "ros2_control", "command_interface", "param", "mechanicalReduction",
    ],
    "sdf": [
        "sdf", "model", "link", "joint", "pose", "inertial", "mass", "inertia", "ixx", "frame",
        "parent", "child", "axis", "xyz",
    ],
    "mjcf": [
        "mujoco", "worldbody", "body", "joint", "geom", "freejoint", "inertial", "equality",
        "connect", "weld", "site", "actuator", "position", "general", "intvelocity", "key",
    ],
}  # fmt: skip
_ATTRIBUTES = [
    "name", "type", "link", "joint", "xyz", "rpy", "value", "ixx", "iyy", "izz", "lower", "upper",
    "effort", "velocity", "damping", "friction", "size", "radius", "length", "filename",
    "multiplier", "offset", "q", "gear", "coefficients", "pos", "axis", "relative_to",
]  # fmt: skip
_VALUES = [
    "a", "b", "c", "world", "revolute", "continuous", "prismatic", "fixed", "floating", "planar",
    "ball", "hinge", "helical", "box", "sphere", "0", "1", "-1", "0 0 1", "1 2 3", "0.5", "nan",
    "1e300", "1 1 1 1 1 1 1",
]  # fmt: skip


def random_xml(format: str, rng: random.Random) -> bytes:
    """A well-formed file whose content makes no sense, or hardly any."""
    tags = _TAGS[format]

    def grow(tag, depth):
        given = rng.sample(_ATTRIBUTES, rng.randint(0, 6))
        attributes = "".join(f" {name}={quoteattr(rng.choice(_VALUES))}" for name in given)
        if depth > 5 or rng.random() < 0.3:
            return f"<{tag}{attributes}>{rng.choice(_VALUES)}</{tag}>"
        inside = "".join(grow(rng.choice(tags[1:]), depth + 1) for _ in range(rng.randint(0, 5)))
        return f"<{tag}{attributes}>{inside}</{tag}>"

    return grow(tags[0], 0).encode()


def survives(source: bytes, format: str, folder: Path, rng: random.Random) -> float:
    """Seconds of processor time to read a file, which may only fail with an error of ours."""
    path = folder / f"robot{SUFFIX[format]}"
    path.write_bytes(source)
    start = time.thread_time()
    with contextlib.suppress(KinetreeError):
        read(path, floating_base=rng.random() < 0.3, lump=rng.random() < 0.8)
    return time.thread_time() - start
