"""Kinetree's own TOML format: what each key means, and what is said about wrong ones."""

import math

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import LoadError
from kinetree.joints import REPRESENTATIVES, check_joint
from kinetree.loaders import load, loads, read
from kinetree.model import JointDynamics, geometry
from kinetree.spatial.rotation import euler_rotation
from kinetree.writers.native import joint_table, to_toml, value

ARM = """\
kinetree = 1
name = "arm"
gravity = [0, 0, "-g"]

[parameters]
g = 9.81
length = 0.4
half = "length/2"

[[body]]
name = "upper"
at = [0, 0, 0.1]
rpy = [0, "90 deg", 0]
joint = { type = "revolute", axis = "y", name = "shoulder" }
inertia = { box = [0.05, 0.05, "length"], mass = 2, at = [0, 0, "half"] }
limits = { lower = "-170 deg", upper = "170 deg", velocity = inf, effort = 80 }
dynamics = { damping = 0.1, armature = 0.01, stiffness = 3, rest = 0.2 }

[[body]]
name = "fore"
on = "upper"
at = [0, 0, "length"]
joint = "revolute"
inertia = { mass = 1, center = [0, 0, 0.1], moments = [0.02, 0.02, 0.01], products = [1e-3, 0, 0] }

[[frame]]
name = "tool"
on = "fore"
at = [0, 0, 0.3]

[[loop]]
name = "string"
predecessor = "base"
successor = "fore"
joint = "spherical"
predecessor_at = [0, 0, 1]
successor_at = { at = [0, 0, 0.3], axis_angle = ["z", "30 deg"] }

[[coupling]]
name = "belt"
joint = "fore_joint"
source = "shoulder"
ratio = -2
offset = 0.1

[[geometry]]
name = "tube"
on = "upper"
cylinder = [0.02, "length"]
at = [0, 0, "half"]
color = [1, 0, 0]
collision = false

[[actuator]]
name = "motor"
joint = "shoulder"
gear = 100
control = [-1, 1]

[[posture]]
name = "home"
q = { shoulder = "30 deg" }
"""


def arm(old=None, new=None, **options):
    text = ARM if old is None else ARM.replace(old, new, 1)
    assert old is None or text != ARM
    return loads(text, "toml", name="arm.toml", **options)


def body(joint="'fixed'", more=""):
    return f"kinetree = 1\n[[body]]\nname = 'a'\njoint = {joint}\n{more}"


def test_everything_in_its_place():
    m = arm()
    assert (m.name, m.base_name, m.gravity.tolist()) == ("arm", "base", [0, 0, -9.81])
    assert m.body_names == ("base", "upper", "fore")
    assert m.joint_names == ("shoulder", "fore_joint")
    upper, fore = m.bodies
    assert upper.joint == kt.Revolute("y")
    assert upper.placement.E.tolist() == [[0, 0, -1], [0, 1, 0], [1, 0, 0]]
    box = kt.shapes.box(0.05, 0.05, 0.4, mass=2, at=(0, 0, 0.2))
    np.testing.assert_array_equal(upper.inertia.to_matrix(), box.to_matrix())
    turn = math.radians(170)
    assert upper.limits == kt.Limits(-turn, turn, math.inf, 80)
    assert upper.dynamics == JointDynamics(armature=0.01, damping=0.1, stiffness=3, rest=0.2)
    I_C = [[0.02, 1e-3, 0], [1e-3, 0.02, 0], [0, 0, 0.01]]
    given = kt.Inertia.from_mass_center(1, (0, 0, 0.1), I_C)
    np.testing.assert_array_equal(fore.inertia.to_matrix(), given.to_matrix())
    assert m.frames[0].placement.r.tolist() == [0, 0, 0.3]
    (loop,) = m.loops
    assert (loop.predecessor, loop.successor, loop.joint) == (0, 2, kt.Spherical())
    assert loop.predecessor_placement.r.tolist() == [0, 0, 1]
    np.testing.assert_allclose(loop.successor_placement.E, kt.rotz(math.pi / 6).E, atol=1e-16)
    (belt,) = m.couplings
    assert (belt.joint, belt.source, belt.coefficients) == (2, 1, (0.1, -2.0))
    (tube,) = m.geometry
    assert (tube.shape, tube.body) == (geometry.Cylinder(0.02, 0.4), 1)
    assert (tube.visual, tube.collision, tube.color) == (True, False, (1, 0, 0, 1))
    (motor,) = m.actuators
    assert (motor.joint, motor.gear, motor.control) == (1, (100.0,), (-1.0, 1.0))
    assert motor.effort == (-math.inf, math.inf)
    (home,) = m.postures
    assert home.q.tolist() == [math.radians(30)]


def test_parameters_can_be_changed_by_the_caller(tmp_path):
    path = tmp_path / "arm.toml"
    path.write_text(ARM, encoding="utf-8")
    m = load(path, parameters={"length": 0.8})
    assert m.bodies[1].placement.r[2] == 0.8
    assert m.bodies[0].inertia.center_of_mass[2] == 0.4
    assert m.geometry[0].shape.length == 0.8
    np.testing.assert_array_equal(
        load(path, parameters={"half": "1/8"}).geometry[0].placement.r, [0, 0, 0.125]
    )
    with pytest.raises(LoadError, match=r"no parameter 'lenght'; did you mean 'length'\?"):
        load(path, parameters={"lenght": 1})
    with pytest.raises(LoadError, match=r"length must be finite, got nan \(given by the caller\)"):
        load(path, parameters={"length": math.nan})
    with pytest.raises(LoadError, match="parameters= is for TOML files"):
        loads("<robot name='r'><link name='a'/></robot>", "urdf", parameters={"length": 1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 'b'\nb = 'c + 1'\nc = 'a'", "in a circle: a -> b -> c -> a"),
        ("a = 'a'", "in a circle: a -> a"),
        ("pi = 3", "cannot be called 'pi', which is the name of a unit, function or constant"),
        ("'a b' = 3", "cannot be called 'a b'"),
        ("a = [1]", "a must be a number or an expression"),
        ("a = 'x'", "a: no parameter 'x'"),
        ("a = '9**9**9'", "too large"),
        ("a = nan", "must be finite"),
    ],
)
def test_bad_parameters(text, message):
    with pytest.raises(LoadError) as caught:
        loads(f"kinetree = 1\n[parameters]\n{text}", "toml")
    assert message in str(caught.value)


def test_long_chain_of_parameters():
    chain = "".join(f"a{k} = 'a{k - 1} + 1'\n" for k in range(3000, 0, -1))
    m = loads(f"kinetree = 1\ngravity = [0, 0, 'a3000']\n[parameters]\n{chain}a0 = 0", "toml")
    assert m.gravity[2] == 3000


# What to change, into what, where the error must be, and what it must say.
MISTAKES = [
    (
        "inertia =",
        "inerta =",
        "inerta",
        "body 'upper': unknown key 'inerta'; did you mean 'inertia'?",
    ),
    ("[[frame]]", "[[fram]]", "[[fram]]", "unknown key 'fram'; did you mean 'frame'?"),
    ("mass = 2", "mas = 2", "mas =", "inertia: unknown key 'mas'; did you mean 'mass'?"),
    ("mass = 1,", "mas = 1,", "mas =", "has no 'mass', which is needed; is that what 'mas' is"),
    ("mass = 1,", "", "center", "body 'fore': inertia: has no 'mass', which is needed"),
    ('on = "fore"', 'on = "for"', "[[frame]]", "'for', which the builder does not have; did you"),
    ('on = "upper"', 'on = "fore"', '[[body]]\nname = "fore"', "'fore'"),
    (
        'joint = "shoulder"',
        'joint = "elbow"',
        "[[actuator]]",
        "joint of actuator 'motor' is 'elbow'",
    ),
    ('name = "fore"', 'name = "upper"', 'name = "upper"\non', "'upper' is taken, on line 10"),
    (
        'name = "belt"',
        'name = "shoulder"',
        'name = "shoulder"\nj',
        "'shoulder' is taken, on line 10",
    ),
    ('joint = "revolute"', 'joint = "revolut"', '"revolut"', "did you mean 'revolute'?"),
    ('axis = "y"', 'axis = "w"', '"w"', "joint axis must be 'x', 'y', 'z'"),
    ('axis = "y"', 'axes = "y"', "axes", "unknown key 'axes'; did you mean 'axis'?"),
    ("at = [0, 0, 0.1]", "at = [0, 0]", "at = ", "at must be a list of 3 numbers, got [0, 0]"),
    ("at = [0, 0, 0.1]", "at = [0, 0, nan]", "at = ", "at must be finite, got nan"),
    ("at = [0, 0, 0.1]", "at = [0, 0, inf]", "at = ", "at must be finite, got inf"),
    ("at = [0, 0, 0.1]", "at = [0, 0, true]", "at = ", "a number or an expression, got True"),
    ("at = [0, 0, 0.1]", "rotation = [[1]]", "rotation", "give only one of rpy, rotation"),
    ("90 deg", "90 dge", "90 dge", "expected a number or an expression such as"),
    ("cylinder = [0.02", "box = [0.02", "box = [0.02", "box must be a list of 3 numbers"),
    ("cylinder =", "cilinder =", "[[geometry]]", "has no shape; give one of sphere, capsule, box"),
    ("color = [1, 0, 0]", "color = [1, 0, 2]", "color", "color must be 3 or 4 numbers from 0 to 1"),
    ("offset = 0.1", "coefficients = [1]", "ratio", "give only one of coefficients, ratio"),
    ("kinetree = 1", "kinetree = 2", "kinetree", "kinetree = 2, but this kinetree reads version 1"),
    ("kinetree = 1", "", "", "this is not a kinetree model: a line 'kinetree = 1' is missing"),
    ('name = "home"', "name = 3", "name = 3", "name must be text, got 3"),
    ('lower = "-170 deg"', "lower = 4", "[[body]]", "lower bound 4 is above upper bound"),
    ("q = { shoulder", "q = { sholder", "[[posture]]", "did you mean 'shoulder'?"),
    ('q = { shoulder = "30 deg" }', "q = [3]", "q = [3]", "q must be a table, got [3]"),
    ('name = "arm"', "posture = 3", "posture", "not TOML"),
    ('name = "arm"', "posture = [3]", "[[posture]]", "not TOML"),
    ('name = "arm"', "name = ''", "name", "name must not be empty"),
]


@pytest.mark.parametrize(("old", "new", "where", "message"), MISTAKES)
def test_messages_name_line_thing_and_remedy(old, new, where, message):
    with pytest.raises(LoadError) as caught:
        arm(old, new)
    assert message in str(caught.value)
    text = ARM.replace(old, new, 1)
    line = 1 + text[: text.index(where)].count("\n")
    if "not TOML" not in message:
        assert str(caught.value).startswith(f"arm.toml:{line}: ")


def _written(joint):
    return value(joint_table(joint, "j"), "joint")


@pytest.mark.parametrize("joint", REPRESENTATIVES, ids=repr)
def test_every_kind_of_joint(joint):
    assert loads(body(_written(joint)), "toml").joint[1] == joint


def test_defaults_of_joints():
    expected = {
        "revolute": kt.Revolute("z"),
        "planar": kt.Planar("z"),
        "universal": kt.Universal("xy"),
        "euler": kt.joints.Euler("zyx"),
        "free": kt.Free(),
        "spherical": kt.Spherical(),
    }
    for name, joint in expected.items():
        assert loads(body(f"'{name}'"), "toml").joint[1] == joint
    about = "{ type = 'screw', axis = 'x', point = [0, 1, 0], pitch = 0.1 }"
    assert loads(body(about), "toml").joint[1] == kt.Screw.about("x", (0, 1, 0), 0.1)


def test_custom_joint_by_formulas():
    text = body(
        "{ type = 'custom', variables = ['s'], at = ['r*cos(s)', 's**2/2', 0], "
        "rpy = [0, 0, '2*s + 10 deg'] }",
        "[parameters]\nr = 0.1",
    )
    joint = loads(text, "toml").joint[1]
    check_joint(joint)
    X = joint.transform(np.array([0.7]))
    np.testing.assert_allclose(X.r, [0.1 * math.cos(0.7), 0.245, 0])
    np.testing.assert_allclose(X.E, kt.rotz(1.4 + math.radians(10)).E)
    two = "{ type = 'custom', variables = ['u', 'v'], at = ['u', 'v', 'u*v'] }"
    check_joint(loads(body(two), "toml").joint[1])
    curve = "{ type = 'custom', at = ['exp(q)', 'tanh(q)', 'log(2 + q**2)'] }"
    check_joint(loads(body(curve), "toml").joint[1])


def test_prescribed_joint_by_formulas():
    text = "{ type = 'prescribed', joint = 'revolute', motion = ['a*sin(3*t) + t**2'] }"
    joint = loads(body(text, "[parameters]\na = 0.2"), "toml").joint[1]
    check_joint(joint)
    q, qd, qdd = joint.motion(0.5)
    np.testing.assert_allclose(q, 0.2 * math.sin(1.5) + 0.25)
    np.testing.assert_allclose(qd, 0.6 * math.cos(1.5) + 1.0)
    np.testing.assert_allclose(qdd, -1.8 * math.sin(1.5) + 2.0)
    with pytest.raises(LoadError, match="give velocity and acceleration as formulas of t too"):
        loads(body("{ type = 'prescribed', joint = 'planar', motion = ['t', 0, 0] }"), "toml")
    planar = (
        "{ type = 'prescribed', joint = 'planar', motion = ['t', 0, 0], velocity = [1, 0, 0], "
        "acceleration = [0, 0, 0] }"
    )
    check_joint(loads(body(planar), "toml").joint[1])


@pytest.mark.parametrize(
    ("joint", "message"),
    [
        ("{ type = 'custom', at = ['x', 0, 0] }", "no variable or parameter 'x'; known: q"),
        ("{ type = 'custom', at = ['q**0.5', 0, 0] }", "a power in a formula"),
        ("{ type = 'custom', at = ['q**99', 0, 0] }", "a power in a formula"),
        ("{ type = 'custom', at = ['max(q, 1)', 0, 0] }", "may use sin, cos"),
        ("{ type = 'custom', at = [0, 0] }", "at must be a list of 3"),
        ("{ type = 'custom', variables = ['sin'] }", "'sin' cannot name a variable"),
        ("{ type = 'custom', variables = [] }", "a custom joint has 1 to 6 degrees of freedom"),
        ("{ type = 'helical' }", "has no 'pitch', which is needed"),
        ("{ type = 'reversed' }", "has no 'joint'"),
        ("{ axis = 'x' }", "has no 'type'"),
        ("3", "joint must be a table such as"),
        ("{ type = 'screw', twist = [0, 0, 0, 0, 0, 0] }", "not all zero"),
        ("{ type = 'euler', sequence = 'xxy' }", "Euler sequence must be"),
        ("{type='reversed',joint=" * 20 + "'free'" + "}" * 20, "nested too deeply"),
    ],
)
def test_bad_joint(joint, message):
    with pytest.raises(LoadError) as caught:
        loads(body(joint), "toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("<text>:4: body 'a': ")


@pytest.mark.parametrize(
    ("text", "E"),
    [
        ("rpy = [0.1, 0.2, 0.3]", euler_rotation("zyx", (0.3, 0.2, 0.1))),
        ("quaternion = [0.8, 0, 0, 0.6]", kt.rotz(2 * math.atan2(0.6, 0.8)).E),
        ("quaternion = [8e200, 0, 0, 6e200]", kt.rotz(2 * math.atan2(0.6, 0.8)).E),
        ("axis_angle = ['x', 0.3]", kt.rotx(0.3).E),
        ("axis_angle = [[0, 2, 0], '20 deg']", kt.roty(math.radians(20)).E),
        ("rotation = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]", kt.rotz(math.pi / 2).E),
    ],
)  # fmt: skip
def test_orientations(text, E):
    placement = loads(body(more=text), "toml").bodies[0].placement
    np.testing.assert_allclose(placement.E, E, atol=1e-15)
    assert placement.r.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("quaternion = [0, 0, 0, 0]", "quaternion must not be zero"),
        ("axis_angle = [[0, 0, 0], 1]", "not all zero"),
        ("axis_angle = 3", "axis_angle must be [axis, angle]"),
        ("rotation = [[1, 0, 0], [0, 1, 0], [0, 0, -1]]", "not a proper rotation"),
        ("rotation = [[2, 0, 0], [0, 1, 0], [0, 0, 1]]", "not a proper rotation"),
    ],
)
def test_bad_orientation(text, message):
    with pytest.raises(LoadError) as caught:
        loads(body(more=text), "toml")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "inertia"),
    [
        ("{ sphere = 0.1, density = 1000 }", kt.shapes.sphere(0.1, density=1000)),
        ("{ cylinder = [0.1, 0.3], mass = 2, axis = 'x' }",
         kt.shapes.cylinder(0.1, 0.3, mass=2, axis="x")),
        ("{ rod = 0.5, mass = 2 }", kt.shapes.rod(0.5, mass=2)),
        ("{ capsule = [0.1, 0.3], mass = 2, at = [1, 0, 0] }",
         kt.shapes.capsule(0.1, 0.3, mass=2, at=(1, 0, 0))),
        ("[{ sphere = 0.1, mass = 1 }, { box = [1, 1, 1], mass = 2 }]",
         kt.shapes.sphere(0.1, mass=1) + kt.shapes.box(1, 1, 1, mass=2)),
        ("{ mass = 2, first_moment = [1, 0, 0], rotational = [[1, 0, 0], [0, 2, 0], [0, 0, 2]] }",
         kt.Inertia(2, (1, 0, 0), np.diag([1, 2, 2]))),
        ("{ mass = 2, moments = [1, 2, 2.5], rpy = [0, 0, '90 deg'] }",
         kt.Inertia(2, (0, 0, 0), np.diag([2, 1, 2.5]))),
    ],
)  # fmt: skip
def test_inertias(text, inertia):
    found = loads(body(more=f"inertia = {text}"), "toml").bodies[0].inertia
    np.testing.assert_allclose(found.to_matrix(), inertia.to_matrix(), atol=1e-16)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ sphere = 0.1 }", "give either mass or density"),
        ("{ sphere = -0.1, mass = 1 }", "must be finite and not negative"),
        ("{ sphere = 1, box = [1, 1, 1], mass = 1 }", "give only one of box, sphere"),
        ("{ box = 1, mass = 1 }", "box must be a list of 3 numbers"),
        ("3", "inertia must be a table such as"),
        ("{ mass = 1e308, center = [1e308, 0, 0] }", "must be finite"),
    ],
)
def test_bad_inertia(text, message):
    with pytest.raises(LoadError) as caught, np.errstate(all="ignore"):
        loads(body(more=f"inertia = {text}"), "toml")
    assert message in str(caught.value)


def test_impossible_inertia_is_an_error_only_when_strict():
    text = body(more="inertia = { mass = 1, moments = [1, 1, 5] }")
    with pytest.warns(kt.ModelWarning, match="physically impossible"):
        loads(text, "toml")
    with pytest.raises(LoadError, match="physically impossible"):
        loads(text, "toml", strict=True)


def test_meshes_are_found_beside_the_file_and_nowhere_else(tmp_path):
    (tmp_path / "a.stl").write_text("solid\nendsolid\n")
    path = tmp_path / "arm.toml"
    path.write_text(body(more="[[geometry]]\non = 'a'\nmesh = 'a.stl'\nscale = [1, 1, 2]"))
    m, notices, _ = read(path)
    assert m.geometry[0].shape == geometry.Mesh(str(tmp_path.resolve() / "a.stl"), (1, 1, 2))
    assert not notices
    concave = geometry.Mesh(m.geometry[0].shape.path, (1, 1, 2), convex=False)
    path.write_text(to_toml(m.replace(geometry=(geometry.Geometry(1, concave),))))
    assert read(path)[0].geometry[0].shape == concave
    path.write_text(body(more="[[geometry]]\nmesh = '/etc/passwd'"))
    m, (notice,), _ = read(path)
    assert not m.geometry
    assert notice.line == 6
    assert "outside the folders" in notice.why
