"""URDF files with what strangers write: one small file for each way to be odd.

``FILES`` by name; ``REFUSED`` are those that have no reading, with the reason. All others are read.
Where several readings are possible it is that of urdfdom and MuJoCo, with a notice.
"""

INERTIAL = (
    '<inertial><origin xyz="0 0 0.1"/><mass value="2"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial>'
)
M = '<mass value="2"/>'
I = '<inertia ixx="0.1" iyy="0.1" izz="0.05" ixy="0" ixz="0" iyz="0"/>'
P = '<parent link="a"/><child link="b"/>'
O = '<origin xyz="0 0 0.1" rpy="0 0 0"/>'
A = '<axis xyz="0 1 0"/>'
L = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'
SIMPLE = "<type>transmission_interface/SimpleTransmission</type>"


def make(
    inertial=INERTIAL,
    inside="",
    *,
    declaration='<?xml version="1.0"?>',
    robot='<robot name="r">',
    joint=P + O + A + L,
    kind="revolute",
    joint_name="j",
    more="",
    tail="",
) -> str:
    """A robot of two links and a joint.

    Args:
        inertial: of the second link;  inside: what else it has.
        declaration, robot: how the file begins.
        joint: what is in the joint;  kind, joint_name: its type and name.
        more: other elements of the robot;  tail: what comes after it.
    """
    link = f'<link name="a"/><link name="b">{inertial}{inside}</link>'
    between = f'<joint name="{joint_name}" type="{kind}">{joint}</joint>'
    return f"{declaration}{robot}{link}{between}{more}</robot>{tail}"


def visual(shape, more="", kind="visual") -> str:
    """A visual, or a collision."""
    return f"<{kind}><geometry>{shape}</geometry>{more}</{kind}>"


def transmission(
    actuator='<actuator name="m"/>', joint="j", begin='<transmission name="t">'
) -> str:
    """A transmission of ROS."""
    return f'{begin}{SIMPLE}<joint name="{joint}"/>{actuator}</transmission>'


def moved(xyz="0 0 0.1", rpy="0 0 0") -> str:
    """The inside of a joint with another origin."""
    return f'{P}<origin xyz="{xyz}" rpy="{rpy}"/>{A}{L}'


def limited(limit="", more="") -> str:
    """The inside of a joint with another limit."""
    return P + O + A + limit + more


def weighing(value) -> str:
    """The robot with another text as mass."""
    return make(INERTIAL.replace('value="2"', f'value="{value}"'))


def reduced(content) -> str:
    """A transmission whose actuator has some reductions."""
    return transmission(f'<actuator name="m">{content}</actuator>')


def commanded(inside='<command_interface name="effort"/>', name="j", times=1) -> str:
    """A block of ros2_control."""
    joint = f'<joint name="{name}">{inside}</joint>' * times
    return make(more=f'<ros2_control name="x" type="system">{joint}</ros2_control>')


def sensing(inside, attributes='type="imu"') -> str:
    """A sensor of Gazebo."""
    sensor = f'<sensor name="s" {attributes}>{inside}</sensor>'
    return make(more=f'<gazebo reference="b">{sensor}</gazebo>')


RED, GREEN = ('<color rgba="1 0 0 1"/>', '<color rgba="0 1 0 1"/>')
BALL = '<sphere radius="0.1"/>'
BRANCH = f'<link name="c">{INERTIAL}</link>'
FIXED = '<joint name="k" type="fixed"><parent link="{}"/><child link="{}"/></joint>'
REDUCTION = "<mechanicalReduction>{}</mechanicalReduction>"
MIMIC = (
    f'{BRANCH}<joint name="k" type="revolute"><parent link="a"/><child link="c"/>'
    f'<axis xyz="1 0 0"/>{L}</joint>'
)
RELATED = P + O + A + L

PICTURES = {
    "second material": visual(BALL, f'<material name="x">{RED}</material><material name="y"/>'),
    "mesh scale of four": visual('<mesh filename="x.stl" scale="1 1 1 1"/>'),
    "mesh scale of two": visual('<mesh filename="x.stl" scale="1 1"/>'),
    "rpy of four": visual(BALL, '<origin rpy="0 0 0 0"/>'),
    "xyz of two": visual(BALL, '<origin xyz="0 0"/>'),
    "second geometry": visual(BALL, f"<geometry>{BALL}</geometry>"),
    "two shapes in a geometry": visual(BALL + BALL),
    "colour of five": visual(BALL, '<material name="x"><color rgba="1 0 0 1 1"/></material>'),
    "colour of words": visual(BALL, '<material name="x"><color rgba="red"/></material>'),
    "colour without rgba": visual(BALL, '<material name="x"><color/></material>'),
    "material without name": visual(BALL, f"<material>{RED}</material>"),
    "material undefined": visual(BALL, '<material name="nope"/>'),
    "without geometry": "<visual/>",
    "geometry empty": visual(""),
    "shape unknown": visual('<cone radius="1" length="2"/>'),
    "sphere of radius zero": visual('<sphere radius="0"/>'),
    "box size with commas": visual('<box size="1, 1, 1"/>'),
    "box size of two": visual('<box size="1 1"/>'),
    "radius missing": visual("<sphere/>"),
    "radius in words": visual('<sphere radius="big"/>'),
    "mesh without file name": visual("<mesh/>"),
    "mesh that is missing": visual('<mesh filename="nope.stl"/>'),
    "package that is missing": visual('<mesh filename="package://nope/nope.stl"/>'),
}
"""Oddities of visuals; collisions have the same."""

FILES = {
    "plain": make(),
    "origin of a link": make(INERTIAL + O),
    # XML
    "version 0.0": make(declaration='<?xml version="0.0"?>'),
    "version 1.1": make(declaration='<?xml version="1.1"?>'),
    "no declaration": make(declaration=""),
    "encoding unknown": make(declaration='<?xml version="1.0" encoding="utf8mb4"?>'),
    "blank before the declaration": "\n " + make(),
    "byte order mark": "\ufeff" + make(),
    "two hyphens in a comment": make(more="<!-- a -- b --->"),
    "ampersand": make(robot='<robot name="r&d">'),
    "plain doctype": make(declaration='<?xml version="1.0"?><!DOCTYPE robot>'),
    "namespace": make(robot='<robot name="r" xmlns="urn:x">'),
    "undeclared prefix": make(more="<controller:foo/>"),
    "comment before the declaration": "<!-- x -->" + make(),
    "text after the end": make(tail="x"),
    "robot after the end": make(tail='<robot name="s"/>'),
    "entity": make(declaration='<!DOCTYPE robot [<!ENTITY m "2">]>').replace('"2"', '"&m;"'),
    "attribute twice": make().replace('type="revolute"', 'type="revolute" type="revolute"'),
    "not closed": make()[:-8],
    # what may be there once
    "second axis": make(joint=limited(L, '<axis xyz="1 0 0"/>')),
    "second origin": make(joint=limited(L, '<origin xyz="9 0 0"/>')),
    "second limit": make(joint=limited(L, L.replace("-1", "-2"))),
    "second parent": make(joint=P + '<parent link="b"/>' + O + A + L),
    "second dynamics": make(joint=limited(L, '<dynamics damping="1"/><dynamics damping="2"/>')),
    "second mimic": make(joint=limited(L, '<mimic joint="k"/><mimic joint="z"/>'), more=MIMIC),
    "second inertial": make(INERTIAL + INERTIAL.replace('"2"', '"7"')),
    "second mass": make(f'<inertial>{M}<mass value="7"/>{I}</inertial>'),
    "second inertia": make(f"<inertial>{M}{I}{I.replace('0.1', '0.3')}</inertial>"),
    "material twice": make(more=f'<material name="m">{RED}</material>' * 2),
    "material in two colours": make(
        more=f'<material name="m">{RED}</material><material name="m">{GREEN}</material>'
    ),
    # placements
    "joint rpy of four": make(joint=moved(rpy="0 0.3 0 0")),
    "joint rpy of two": make(joint=moved(rpy="0 0.3")),
    "joint xyz of four": make(joint=moved("0 0 0.1 0.7")),
    "joint xyz of two": make(joint=moved("0 0.1")),
    "joint xyz empty": make(joint=moved("")),
    "joint xyz with commas": make(joint=moved("0, 0, 0.1")),
    # masses
    "decimal comma": weighing("2,5"),
    "number with f": weighing("2.5f"),
    "number with a unit": weighing("2 kg"),
    "number with two points": weighing("2.5.1"),
    "mass nan": weighing("nan"),
    "mass zero": weighing("0"),
    "mass negative": weighing("-2"),
    "mass missing": make(f"<inertial>{I}</inertial>"),
    "mass without value": make(f"<inertial><mass/>{I}</inertial>"),
    "inertia missing": make(f"<inertial>{M}</inertial>"),
    "inertia without ixy": make(f'<inertial>{M}<inertia ixx="1" iyy="1" izz="1"/></inertial>'),
    "inertia without izz": make(f'<inertial>{M}<inertia ixx="1" iyy="1"/></inertial>'),
    "inertia impossible": make(f"<inertial>{M}{I.replace('0.05', '5')}</inertial>"),
    "inertial empty": make("<inertial/>"),
    # joints
    "axis zero": make(joint=P + O + '<axis xyz="0 0 0"/>' + L),
    "axis not unit": make(joint=P + O + '<axis xyz="0 2 0"/>' + L),
    "axis without xyz": make(joint=P + O + "<axis/>" + L),
    "fixed axis zero": make(kind="fixed", joint=P + O + '<axis xyz="0 0 0"/>'),
    "fixed axis of two": make(kind="fixed", joint=P + O + '<axis xyz="0 0"/>'),
    "type in capitals": make(kind="Revolute"),
    "type unknown": make(kind="screw"),
    "type missing": make().replace('type="revolute"', ""),
    "limit missing": make(joint=limited()),
    "limit without effort": make(joint=limited('<limit lower="-1" upper="1" velocity="2"/>')),
    "limit without lower": make(joint=limited('<limit upper="1" effort="5" velocity="2"/>')),
    "limit empty": make(joint=limited("<limit/>")),
    "limit infinite": make(joint=limited(L.replace('"-1"', '"-inf"').replace('"1"', '"inf"'))),
    "limit in words": make(joint=limited(L.replace('"5"', '"max"'))),
    "limits swapped": make(joint=limited(L.replace('"-1"', '"2"'))),
    "damping negative": make(joint=limited(L, '<dynamics damping="-1"/>')),
    "damping in words": make(joint=limited(L, '<dynamics damping="low"/>')),
    "dynamics empty": make(joint=limited(L, "<dynamics/>")),
    "safety without k_velocity": make(joint=limited(L, "<safety_controller/>")),
    "safety in words": make(joint=limited(L, '<safety_controller k_velocity="x"/>')),
    "calibration in words": make(joint=limited(L, '<calibration rising="x"/>')),
    "calibration empty": make(joint=limited(L, "<calibration/>")),
    "mimic of nobody": make(joint=limited(L, '<mimic joint="nobody"/>')),
    "mimic of itself": make(joint=limited(L, '<mimic joint="j"/>')),
    "mimic in words": make(joint=limited(L, '<mimic joint="k" multiplier="half"/>'), more=MIMIC),
    "mimic without joint": make(joint=limited(L, '<mimic multiplier="2"/>')),
    # the tree
    "parent unknown": make(joint=RELATED.replace('"a"', '"z"')),
    "parent missing": make(joint=RELATED.replace('<parent link="a"/>', "")),
    "parent of itself": make(joint=RELATED.replace('"a"', '"b"')),
    "two roots": make(more='<link name="c"/>'),
    "no root": make(more=FIXED.format("b", "a")),
    "two parents": make(
        more=BRANCH + FIXED.format("a", "c") + FIXED.format("c", "b").replace('"k"', '"l"')
    ),
    "link name twice": make(more='<link name="b"/>'),
    "joint name twice": make(more=BRANCH + FIXED.format("a", "c").replace('"k"', '"j"')),
    "link without name": make(more="<link/>"),
    "joint without name": make().replace('name="j"', ""),
    "joint named like a link": make(joint_name="b"),
    "robot without name": make(robot="<robot>"),
    "no links": '<robot name="r"/>',
    "unknown element": make(more='<foo bar="1"/>'),
    "unknown element in a link": make(inside="<foo/>"),
    "unknown attribute": make().replace('type="revolute"', 'type="revolute" foo="1"'),
    # drives and sensors
    "reduction in words": make(more=reduced(REDUCTION.format("one"))),
    "reduction empty": make(more=reduced("<mechanicalReduction/>")),
    "reduction zero": make(more=reduced(REDUCTION.format("0"))),
    "second reduction": make(more=reduced(REDUCTION.format("2") + REDUCTION.format("3"))),
    "transmission without actuator": make(more=transmission("")),
    "transmission without type": make(more=transmission().replace(SIMPLE, "")),
    "transmission of nobody": make(more=transmission(joint="zz")),
    "transmission without name": make(more=transmission(begin="<transmission>")),
    "transmission twice": make(more=transmission() * 2),
    "ros2_control in words": commanded(
        '<command_interface name="effort"><param name="min">low</param></command_interface>'
    ),
    "ros2_control of nobody": commanded(name="zz"),
    "ros2_control joint twice": commanded(times=2),
    "sensor without type": sensing("", attributes=""),
    "sensor pose of three": sensing("<pose>0 0 0</pose>"),
    "friction in words": make(more='<gazebo reference="b"><mu1>high</mu1></gazebo>'),
    "friction of nobody": make(more='<gazebo reference="zz"><mu1>1</mu1></gazebo>'),
}
for name, text in PICTURES.items():
    FILES[f"visual: {name}"] = make(inside=text)
    FILES[f"collision: {name}"] = make(inside=text.replace("visual", "collision"))

NO_XML = "not XML that can be repaired without guessing"
NO_NUMBER = "a number of the motion that cannot be read; one of the other programs refuses it"
NO_TREE = "links and joints are not a tree"
NO_NAME = "things without a name, or of one name"
NO_JOINT = "a joint whose motion is not known"
REFUSED = {
    **dict.fromkeys(
        ("comment before the declaration", "text after the end", "robot after the end", "entity",
         "attribute twice", "not closed"), NO_XML,
    ),
    **dict.fromkeys(
        ("joint rpy of four", "joint rpy of two", "joint xyz of four", "joint xyz of two",
         "joint xyz empty", "joint xyz with commas", "decimal comma", "number with f",
         "number with a unit", "number with two points", "mass nan", "mass missing",
         "mass without value", "inertia missing", "inertia without izz", "inertial empty",
         "limit in words", "damping in words", "mimic in words"), NO_NUMBER,
    ),
    **dict.fromkeys(
        ("axis zero", "axis without xyz", "type in capitals", "type unknown", "type missing",
         "mimic of itself", "mimic without joint"), NO_JOINT,
    ),
    **dict.fromkeys(
        ("parent unknown", "parent missing", "parent of itself", "two roots", "no root",
         "two parents", "no links"), NO_TREE,
    ),
    **dict.fromkeys(
        ("link name twice", "joint name twice", "link without name", "joint without name"),
        NO_NAME,
    ),
}  # fmt: skip
"""Files that are refused, and why."""

QUIET = {
    "plain", "no declaration", "byte order mark", "version 1.1", "namespace", "axis not unit",
    "limit infinite", "dynamics empty", "joint named like a link", "inertia without ixy",
    "fixed axis zero", "fixed axis of two", "robot without name", "material twice",
    "material in two colours", "visual: material without name", "reduction zero",
    "second reduction", "transmission without name", "friction of nobody", "limit without lower",
    "limit without effort",
}  # fmt: skip
"""Files that are read without a notice: they are right, or one way of saying it."""
