"""Denavit–Hartenberg tables from files, against the closed form of both conventions."""

import math

import numpy as np
import pytest
from support.sdf_files import poses

import kinetree as kt
from kinetree.errors import LoadError
from kinetree.loaders import load, loads

PUMA = """\
# Puma 560, Craig's table; metres and degrees
# convention: modified
# name: puma560
joint,type,a,alpha[deg],d,theta,lower[deg],upper[deg],mass,com,inertia
waist,revolute,0,0,0,q1,-160,160,,,
shoulder,revolute,0,-90,0,q2,-225,45,17.4,0.068 0.006 -0.016,0.13 0.524 0.539
elbow,revolute,0.4318,0,0.15005,q3,-45,225,4.8,0 -0.07 0.014,0.066 0.0125 0.0785
wrist roll,revolute,0.0203,-90,0.4318,q4,-110,170,,,
wrist pitch,revolute,0,90,0,q5,-100,100,,,
flange,revolute,0,-90,0,q6,-266,266,0.09,0 0 0.032,1.5e-4 1.5e-4 4e-5
"""
UR5 = """\
dh = "standard"
name = "ur5"

[parameters]
d1 = 0.089159

[[joint]]
name = "shoulder_pan"
d = "d1"
alpha = "90 deg"

[[joint]]
name = "shoulder_lift"
a = -0.425
[[joint]]
name = "elbow"
a = -0.39225
[[joint]]
name = "wrist_1"
d = 0.10915
alpha = "90 deg"
[[joint]]
name = "wrist_2"
d = 0.09465
alpha = "-90 deg"
[[joint]]
name = "wrist_3"
d = 0.0823
mass = 0.1879
com = [0, 0, -0.001159]
inertia = [1e-4, 1e-4, 1.3e-4]
"""


def rotation_x(angle):
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def rotation_z(angle):
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def shift(x, z):
    T = np.eye(4)
    T[0, 3], T[2, 3] = x, z
    return T


def modified(a, alpha, d, theta):
    return rotation_x(alpha) @ shift(a, 0) @ rotation_z(theta) @ shift(0, d)


def standard(a, alpha, d, theta):
    return rotation_z(theta) @ shift(0, d) @ shift(a, 0) @ rotation_x(alpha)


def test_puma_from_csv_is_where_its_table_says(tmp_path, rng):
    path = tmp_path / "puma.csv"
    path.write_text(PUMA, encoding="utf-8")
    m = load(path)
    assert (m.name, m.nv) == ("puma560", 6)
    assert m.joint_names[3] == "wrist roll"
    right = math.pi / 2
    table = [
        (0, 0, 0), (0, -right, 0), (0.4318, 0, 0.15005), (0.0203, -right, 0.4318), (0, right, 0),
        (0, -right, 0),
    ]  # fmt: skip
    q = rng.uniform(-2, 2, 6)
    T = np.eye(4)
    found = poses(m, q)
    for i, (a, alpha, d) in enumerate(table):
        T = T @ modified(a, alpha, d, q[i])
        np.testing.assert_allclose(found[f"link{i + 1}"], T, atol=1e-14)
    np.testing.assert_allclose(found["tool"], T, atol=1e-14)
    np.testing.assert_allclose(m.bodies[0].limits.upper, math.radians(160))
    assert m.bodies[0].inertia.mass == 0
    I = kt.Inertia.from_mass_center(17.4, (0.068, 0.006, -0.016), np.diag([0.13, 0.524, 0.539]))
    np.testing.assert_allclose(m.bodies[1].inertia.to_matrix(), I.to_matrix())


def test_ur5_from_toml_is_where_its_table_says(rng):
    m = loads(UR5, "toml")
    right = math.pi / 2
    table = [
        (0, right, 0.089159), (-0.425, 0, 0), (-0.39225, 0, 0), (0, right, 0.10915),
        (0, -right, 0.09465), (0, 0, 0.0823),
    ]  # fmt: skip
    q = rng.uniform(-3, 3, 6)
    T, found = np.eye(4), poses(m, q)
    for i, row in enumerate(table):
        T = T @ standard(*row, q[i])
        np.testing.assert_allclose(found[f"dh{i + 1}"], T, atol=1e-14)
    # Published closed form of the x coordinate of the tool.
    c, s = np.cos, np.sin
    q1, q2, q3, q4, q5, _ = q
    x = c(q1) * (-0.425 * c(q2) - 0.39225 * c(q2 + q3) + 0.09465 * s(q2 + q3 + q4))
    x += 0.10915 * s(q1) + 0.0823 * (s(q1) * c(q5) - c(q1) * c(q2 + q3 + q4) * s(q5))
    np.testing.assert_allclose(found["tool"][0, 3], x, atol=1e-14)
    # The inertia is given in the frame of the convention, here that of the tool.
    tool = m.frames[-1].placement
    last = kt.Inertia.from_mass_center(0.1879, (0, 0, -0.001159), np.diag([1e-4, 1e-4, 1.3e-4]))
    np.testing.assert_allclose(
        m.bodies[-1].inertia.to_matrix(), last.inverse_transformed(tool).to_matrix(), atol=1e-17
    )
    assert loads(UR5, "toml", parameters={"d1": 0.2}).bodies[0].placement.r[2] == 0.2
    assert loads(UR5, "dh") == m


def test_all_types_base_and_tool(rng):
    text = """# convention: standard
    # gravity: 0 0 -1.62
    # base: pi/2 0.5
    # tool: 0.1 0 0.2 0
    type;a;alpha;d;theta;offset;pitch
    revolute;0.1;0.2;0.3;0.4;0.5;
    P;0.1;0.2;0.3;0.4;0.5;
    c;0.1;0.2;0.3;0.4;;
    helical;0.1;0.2;0.3;0.4;0.5;0.05
    """
    m = loads(text, "dh")
    kinds = (kt.Revolute("z"), kt.Prismatic("z"), kt.Cylindrical("z"), kt.Helical("z", pitch=0.05))
    assert m.joint[1:] == kinds
    assert m.gravity[2] == -1.62
    q = rng.uniform(-1, 1, 5)
    T = rotation_z(math.pi / 2) @ shift(0, 0.5)
    T = T @ standard(0.1, 0.2, 0.3, 0.9 + q[0]) @ standard(0.1, 0.2, 0.8 + q[1], 0.4)
    T = T @ standard(0.1, 0.2, 0.3 + q[3], 0.4 + q[2])
    T = T @ standard(0.1, 0.2, 0.3 + 0.05 * q[4], 0.9 + q[4])
    np.testing.assert_allclose(poses(m, q)["dh4"], T, atol=1e-14)


def csv(*rows, head="# convention: modified\n"):
    return head + "\n".join(rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (csv("a,alpha", "0,1", head=""), "<text>:1: a line '# convention: standard' or"),
        (csv("a", "1", head="# convention: dh\n"), "got 'dh'"),
        (csv("a,alfa", "0,1"), "<text>:2: unknown column 'alfa'; did you mean 'alpha'?"),
        (csv("a,a", "0,1"), "<text>:2: column 'a' is there twice"),
        (csv("a,alpha[grad]", "0,1"), "column 'alpha': unknown unit 'grad'; known: rad, deg"),
        (csv("a,alpha", "0,1", "0"), "<text>:4: row 2 has 1 cells, the heading has 2"),
        (csv("a,alpha", "0,x"), "<text>:3: row 1, column 'alpha': no parameter 'x'"),
        (csv("a,alpha", "0,9**9**9"), "<text>:3: row 1, column 'alpha': '9**9**9' is too large"),
        (csv("a,alpha", "0,nan"), "row 1, column 'alpha': no parameter 'nan'"),
        (csv("a,alpha", "0,inf"), "row 1, column 'alpha' must be finite, got 'inf'"),
        (csv("a,alpha[deg]", "0,90 deg"), "'90 deg' has a unit, and so has the heading: [deg]"),
        (csv("type,a", "x,0"), "<text>:3: row 1: type must be one of cylindrical, helical"),
        (csv("a,com", "0,1 2 3"), "<text>:3: row 1: com needs a mass"),
        (csv("mass,com", "0,1 2"), "row 1, column 'com': expected 3 numbers, got '1 2'"),
        (csv("mass,inertia", "1,1 2"), "row 1: inertia must be 3 numbers, xx yy zz, or 6"),
        (csv("type,pitch", "r,1"), "row 1: pitch is for helical joints; this one is revolute"),
        (csv("type,upper", "c,1"), "row 1: a cylindrical joint has two variables"),
        (csv("joint,a", "j,1", "j,2"), "<text>:4: row 2: joint name 'j' is used twice"),
        (csv("link,a", "j,1", "j,2"), "<text>:4: row 2: link name 'j' is used twice"),
        (csv("lower,upper", "2,1"), "lower bound 2 is above upper bound 1"),
        (csv("a"), "<text>: the table has no rows"),
        (csv(), "<text>:1: the table is empty"),
        (csv("a", '"1'), "<text>:3: not CSV: unexpected end of data"),
        (csv("a", *["1"] * 100_000), "more than 1000 rows"),
        (csv("a", "1" * 20_000), "a line of 20000 characters"),
        (csv("# tool: 1 2", "a", "1"), "<text>:2: tool must be 4 numbers"),
    ],
)  # fmt: skip
def test_bad_csv(text, message):
    with pytest.raises(LoadError) as caught:
        loads(text, "dh")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"standard"', '"standart"', "<text>:1: file: dh must be 'modified' or 'standard', got"),
        ("a = -0.425", "b = -0.425", "<text>:14: row 2: unknown key 'b'"),
        ('"d1"', '"d2"', "<text>:9: row 1: d: no parameter 'd2'; known: 'd1'"),
        ("a = -0.425", "a = true", "row 2: a must be a number or an expression, got True"),
        ("com = [0, 0, -0.001159]", "com = [0, 0]", "row 6: com must be a list of 3 numbers"),
        ("[[joint]]", "[[jont]]", "unknown key 'jont'"),
    ],
)
def test_bad_toml(old, new, message):
    with pytest.raises(LoadError) as caught:
        loads(UR5.replace(old, new, 1), "toml")
    assert message in str(caught.value)


def test_text_that_is_not_a_table():
    for source in (b"\xff\xfe\0a", b"a\0b", "é".encode("latin-1")):
        with pytest.raises(LoadError, match=r"is not UTF-8 text|zero byte"):
            loads(source, "dh")
    with pytest.raises(LoadError, match="the table has no rows; each joint is a"):
        loads('dh = "modified"', "toml")


def test_impossible_inertia_is_an_error_only_when_strict():
    text = PUMA.replace("0.0785", "0.086")  # as measured and published
    with pytest.warns(kt.ModelWarning, match="inertia of body 'link3' is physically impossible"):
        loads(text, "dh")
    with pytest.raises(LoadError, match="inertia of body 'link3' is physically impossible"):
        loads(text, "dh", strict=True)


def test_a_csv_table_has_no_parameters():
    with pytest.raises(LoadError, match="a CSV table has no parameters"):
        loads(PUMA, "dh", parameters={"a": 1})
