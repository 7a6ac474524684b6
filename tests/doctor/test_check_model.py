"""What the doctor finds in models that were built, one fault each; nothing in the samples."""

import numpy as np
import pytest
import trimesh
from support.findings import codes

import kinetree as kt
from kinetree.doctor import check
from kinetree.errors import ModelWarning
from kinetree.model import JointDynamics
from kinetree.model.geometry import Box, Mesh, Sphere

BALL = kt.shapes.sphere(0.1, mass=1.0)
LIMITS = kt.Limits(-1.0, 1.0, 2.0, 30.0)


def builder(name="robot", **fields):
    return kt.ModelBuilder(name, **fields)


def hinge(**changes):
    """One hinge with a ball on it, which nothing is wrong with."""
    parts = {"joint": kt.Revolute("z"), "inertia": BALL, "limits": LIMITS, **changes}
    return builder().body("ball", **parts)


def test_nothing_is_wrong_with_a_ball_on_a_hinge():
    assert check(hinge().build()) == ()


@pytest.mark.parametrize("name", kt.samples.names())
def test_samples_have_neither_errors_nor_warnings(name):
    findings = check(getattr(kt.samples, name)())
    assert [str(f) for f in findings if f.severity != "note"] == []


def inertia(moments, mass=1.0):
    return kt.Inertia.from_mass_center(mass, (0, 0, 0), np.array(moments, dtype=float))


@pytest.mark.parametrize(
    ("moments", "mass", "code"),
    [
        (np.diag([1, 1, 3]) * 1e-3, 1.0, ("error", "inertia-triangle")),
        (np.diag([1, 1, 2.001]) * 1e-3, 1.0, ("warning", "inertia-triangle")),
        (np.diag([1, -1, 1]) * 1e-3, 1.0, ("error", "inertia-positive")),
        (np.diag([1, 1, 1]) * 1e-3, -1.0, ("error", "inertia-mass")),
        ([[1e-3, 1e-4, 0], [0, 1e-3, 0], [0, 0, 1e-3]], 1.0, ("error", "inertia-symmetry")),
    ],
)
def test_impossible_inertias(moments, mass, code):
    place = kt.Plucker.identity()
    body = kt.Body("b", 0, kt.Revolute("z"), place, inertia(moments, mass), "j", LIMITS)
    with pytest.warns(ModelWarning, match="physically impossible"):
        model = kt.Model((body,), strict=False)
    assert codes(model)[0] == code


def test_a_point_is_worth_a_note_and_turns_without_inertia():
    model = hinge(inertia=inertia(np.zeros((3, 3)))).build()
    assert codes(model) == [("error", "joint-without-inertia"), ("note", "inertia-zero")]


def test_a_massless_chain_is_one_finding():
    model = (
        hinge()
        .body("wrist", on="ball", joint=kt.Revolute("x"), inertia=kt.Inertia.zero(), limits=LIMITS)
        .body("tip", on="wrist", joint=kt.Revolute("y"), inertia=kt.Inertia.zero(), limits=LIMITS)
        .build()
    )
    (finding,) = check(model)
    assert (finding.code, finding.part) == ("massless", "joint 'wrist_joint'")
    assert "'wrist', 'tip'" in finding.message


def test_armature_is_inertia_enough():
    dynamics = JointDynamics(armature=0.1)
    model = hinge().body(
        "tip", on="ball", joint=kt.Revolute("x"), inertia=kt.Inertia.zero(), limits=LIMITS,
        dynamics=dynamics,
    )  # fmt: skip
    assert check(model.build()) == ()


def test_joints_that_move_a_point_together_are_named():
    model = builder()
    for k, axis in enumerate("xyz"):
        massive = k == 2
        point = kt.Inertia.from_mass_center(1.0, (1.0, 0.5, 0.3), np.zeros((3, 3)))
        model.body(
            f"b{k}", on=f"b{k - 1}" if k else "base", joint=kt.Revolute(axis),
            inertia=point if massive else kt.Inertia.zero(), limits=LIMITS,
        )  # fmt: skip
    found = {f.code: f for f in check(model.build())}
    assert "'b0_joint', 'b1_joint', 'b2_joint'" in found["dependent-joints"].message


def test_euler_angles_at_their_singularity_are_no_missing_inertia():
    assert check(builder().body("b", joint=kt.joints.Euler("zxz"), inertia=BALL).build()) == ()


def test_a_feather_behind_a_rock_is_ill_conditioned():
    rock = kt.shapes.sphere(1.0, mass=1e6, at=(0, 1, 0))
    feather = kt.shapes.sphere(1e-4, mass=1e-9)
    model = (
        builder()
        .body("rock", joint=kt.Prismatic("x"), inertia=feather, limits=LIMITS)
        .body("feather", on="rock", joint=kt.Prismatic((1, 1e-6, 0)), inertia=rock, limits=LIMITS)
        .build()
    )
    finding = next(f for f in check(model) if f.code == "ill-conditioned")
    assert finding.severity == "warning"
    assert "condition number" in finding.message


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (kt.Limits(1.0, 1.0, 2.0, 30.0), ("warning", "limit-equal")),
        (kt.Limits(-1.0, 1.0, 2.0, 0.0), ("warning", "limit-effort")),
        (kt.Limits(-1.0, 1.0, 0.0, 30.0), ("warning", "limit-velocity")),
        (kt.Limits(-180.0, 180.0, 2.0, 30.0), ("warning", "unit-angle")),
    ],
)
def test_limits(limits, code):
    assert codes(hinge(limits=limits).build()) == [code]


def test_unlimited_joints_are_worth_a_note_beside_limited_ones():
    model = hinge().body("b", on="ball", joint=kt.Revolute("x"), inertia=BALL).build()
    assert codes(model) == [("note", "limit-missing")]
    assert check(hinge(limits=None).build()) == ()
    assert check(hinge(limits=kt.Limits(-1e9, 1e9, 2.0, 30.0)).build()) == ()


def test_millimetres():
    model = hinge().body("b", on="ball", at=(0, 0, 316.0), joint=kt.Revolute("x"), inertia=BALL,
                         limits=LIMITS)  # fmt: skip
    found = {f.code: f.message for f in check(model.build())}
    assert "it sits 316 m from its parent" in found["unit-length"]
    big = hinge().geometry(Box((300.0, 50.0, 50.0)), on="ball").build()
    assert ("warning", "unit-length") in codes(big)
    slide = builder().body("b", joint=kt.Prismatic("x"), inertia=BALL,
                           limits=kt.Limits(0.0, 500.0, 1.0, 10.0)).build()  # fmt: skip
    assert [str(f) for f in check(slide)] == [
        "warning [unit-length] joint 'b_joint': it can slide to 500 m"
    ]


def test_grams_and_square_millimetres():
    heavy = kt.shapes.sphere(0.1, mass=3000.0)
    model = hinge(inertia=heavy).geometry(Sphere(0.1), on="ball").build()
    assert codes(model) == [("warning", "unit-mass")]
    for factor in (1e6, 1e-6):
        wide = hinge(inertia=inertia(factor * np.eye(3) * 4e-3))
        found = codes(wide.geometry(Sphere(0.1), on="ball").build())
        assert found == [("warning", "unit-inertia")]


def test_a_mass_that_does_not_fit_its_inertia_needs_no_geometry_to_be_found():
    """3000 kg with the inertia of 3 kg; a ball of lead is fine, and so is a point."""
    ball = kt.shapes.sphere(0.1, mass=3.0)
    (finding,) = check(hinge(inertia=kt.Inertia(3000.0, np.zeros(3), ball.rotational)).build())
    assert finding.code == "unit-inertia"
    assert (
        "3000 kg with so small an inertia would be denser than any metal, 2e+10" in finding.message
    )
    lead = kt.shapes.sphere(0.1, mass=11_340 * 4 / 3 * np.pi * 1e-3)
    assert codes(hinge(inertia=lead).build()) == []
    point = kt.Inertia.from_mass_center(1.0, (0, 0, 0.2), np.zeros((3, 3)))
    assert ("warning", "unit-inertia") not in codes(hinge(inertia=point).build())


def test_meshes_in_millimetres_and_broken_ones(tmp_path, monkeypatch):
    (tmp_path / "broken.stl").write_text("solid nothing")
    (tmp_path / "scene.dae").write_text("not read here")
    trimesh.creation.box((300.0, 50.0, 50.0)).export(tmp_path / "beam.stl")

    def with_mesh(name, scale=(1.0, 1.0, 1.0)):
        return hinge().geometry(Mesh(str(tmp_path / name), scale), on="ball").build()

    (finding,) = check(with_mesh("beam.stl"))
    assert str(finding) == (
        "warning [unit-length] body 'ball': the mesh 'beam.stl' measures 308.2 m across"
    )
    assert codes(with_mesh("beam.stl", (1e-3, 1e-3, 1e-3))) == []
    assert codes(with_mesh("scene.dae")) == []
    assert codes(with_mesh("broken.stl")) == [("warning", "mesh-broken")]
    monkeypatch.setattr("kinetree.doctor.plausibility.find_spec", lambda name: None)
    (finding,) = check(with_mesh("beam.stl"))
    assert "its 1 meshes were not opened, since trimesh is not installed" in finding.message


def test_a_mass_centre_far_from_its_body():
    model = hinge(inertia=kt.shapes.sphere(0.1, mass=1.0, at=(0, 0, 3)))
    found = codes(model.geometry(Sphere(0.1), on="ball").build())
    assert found == [("warning", "center-outside")]


def test_gravity_in_centimetres():
    model = kt.Model(hinge().build().bodies, gravity=(0, 0, -981.0))
    assert codes(model) == [("warning", "unit-gravity")]


def test_a_mesh_that_is_not_there(tmp_path):
    model = hinge().geometry(Mesh(str(tmp_path / "no.stl")), on="ball").build()
    (finding,) = check(model)
    assert (finding.code, finding.part) == ("mesh-missing", "body 'ball'")
    assert "no.stl" in finding.message


def test_actuators():
    free = hinge(limits=None)
    assert codes(free.actuator("motor", joint="ball_joint").build()) == [
        ("note", "actuator-effort")
    ]
    assert check(hinge().actuator("motor", joint="ball_joint").build()) == ()
    idle = hinge().actuator("motor", joint="ball_joint", gear=(0.0,)).build()
    assert codes(idle) == [("warning", "actuator-gear")]


def test_followers_beyond_their_limits():
    model = hinge().body("b", on="ball", joint=kt.Revolute("x"), inertia=BALL, limits=LIMITS)
    model.coupling("gear", joint="b_joint", source="ball_joint", coefficients=(0.0, 3.0))
    (finding,) = check(model.build())
    assert (finding.code, finding.part) == ("coupling-limits", "joint 'b_joint'")
    assert "as it follows 'ball_joint', it would go from -3 to 3" in finding.message


def test_formulas_are_left_alone():
    from fractions import Fraction

    model = hinge().build().map_numbers(lambda x: Fraction(float(x)))
    assert codes(model) == [("note", "formulas")]


def test_a_tree_that_is_too_large_is_not_examined_in_silence():
    assert ("note", "too-large") in codes(kt.samples.chain(250))


def test_dampers_that_explicit_steps_of_a_millisecond_do_not_survive():
    stiff = hinge(dynamics=JointDynamics(damping=40.0)).build()
    (finding,) = check(stiff)
    assert (finding.severity, finding.code) == ("note", "stiff")
    assert finding.message == (
        "the damper at joint 'ball_joint' acts within 100 µs: explicit steps, those of 'rk4' say, "
        "must be shorter than 279 µs"
    )
    assert "integrator='auto', which takes 'rosenbrock_w'" in finding.fix
    assert check(hinge(dynamics=JointDynamics(damping=1.0)).build()) == ()


def two_balls(gap, **posture):
    """Two balls on sliders with ``gap`` between them at q = 0, and a third far away."""
    robot = builder()
    for name, x in (("a", 0.0), ("b", 0.2 + gap), ("c", 9.0)):
        robot.body(name, joint=kt.Prismatic("x"), at=(x, 0, 0), inertia=BALL, limits=LIMITS)
        robot.geometry(Sphere(0.1), on=name, name=f"{name} shell")
    return robot.posture("home", q=posture) if posture else robot


def test_shapes_that_overlap_at_home():
    assert check(two_balls(0.01).build()) == ()
    (finding,) = check(two_balls(-0.045).build())
    assert str(finding) == (
        "warning [overlap] shapes 'a shell' and 'b shell': they overlap by 0.045 m at q = 0, or "
        "the nearest that its limits allow"
    )
    assert "disable_collisions in SRDF" in finding.fix
    (finding,) = check(two_balls(0.1, b_joint=-0.15).build())
    assert finding.message == "they overlap by 0.05 m in posture 'home'"
    assert check(two_balls(-0.045, b_joint=0.1).build()) == ()
    assert check(two_balls(-0.045).exclude("a", "b").build()) == ()
    apart = two_balls(-0.045).build()
    bodies = [
        kt.Body(b.name, b.parent, b.joint, b.placement, b.inertia, b.joint_name, limits)
        for b, limits in zip(
            apart.bodies, (LIMITS, kt.Limits(0.1, 1.0, 2, 30), LIMITS), strict=True
        )
    ]
    assert check(apart.replace(bodies=bodies)) == ()  # neutral is not within the limits


def test_hulls_of_meshes_overlap(tmp_path):
    path = tmp_path / "ball.stl"
    trimesh.creation.icosphere(subdivisions=2, radius=0.1).export(path)
    robot = two_balls(0.1, b_joint=-0.15).geometry(Mesh(str(path)), on="a", name="mesh")
    found = {f.part: f for f in check(robot.build())}
    assert found["shapes 'mesh' and 'b shell'"].message.endswith("'home', as convex hulls")
    assert found["shapes 'mesh' and 'b shell'"].severity == "warning"
    robot = two_balls(-0.05).geometry(Mesh(str(path)), on="a", name="mesh")
    assert {f.part: f.severity for f in check(robot.build())} == {
        "shapes 'mesh' and 'b shell'": "note", "shapes 'a shell' and 'b shell'": "warning",
    }  # fmt: skip
    robot = two_balls(-0.05).geometry(Mesh(str(tmp_path / "none.stl")), on="a", name="mesh")
    assert [f.code for f in check(robot.build())] == ["overlap", "mesh-missing"]


def test_many_shapes_are_not_compared():
    robot = hinge()
    for _ in range(401):
        robot.geometry(Sphere(0.1), on="ball")
    assert codes(robot.build()) == [("note", "too-large")]


@pytest.mark.parametrize(
    ("mass", "sides", "code"),
    [
        (10.0, (0.02, 0.02, 0.05), "unit-mass"),  # grams
        (0.01, (0.02, 0.02, 0.05), None),
        (0.02, (0.3, 0.3, 0.4), "mass-light"),  # tonnes
        (20.0, (0.3, 0.3, 0.4), None),
        (1e-6, (0.01, 0.01, 0.01), None),  # a frame with a mark
    ],
)
def test_masses_out_of_scale_with_size(mass, sides, code):
    model = hinge(inertia=kt.shapes.box(*sides, mass=mass)).geometry(Box(sides), on="ball").build()
    found = [f for f in check(model) if f.code in ("unit-mass", "mass-light")]
    assert [f.code for f in found] == ([code] if code else [])
    if code == "mass-light":
        assert found[0].message == "0.02 kg in a box of 0.3 x 0.3 x 0.4 m is lighter than air"


def servo(**changes):
    limits = kt.Limits(-1.0, 1.0, 2.0)
    robot = builder().body("ball", joint=kt.Revolute("z"), inertia=BALL, limits=limits)
    return [
        (f.severity, f.message)
        for f in check(robot.actuator("s", joint="ball_joint", **changes).build())
        if f.code != "stiff"
    ]


def test_servos_without_range():
    text = "it is a position servo without a range of commands"
    assert servo(kp=10.0) == [("warning", f"{text}, and without a largest force")]
    assert servo(kp=10.0, effort=(-5, 5)) == [("note", text)]
    assert servo(kp=10.0, control=(-1, 1)) == []
    assert servo(kp=10.0, control=(-1, 1), effort=(-5, 5)) == []
    slow = {"kp": 10.0, "effort": (-5, 5), "time_constant": 0.1, "activation": "filter"}
    assert servo(**slow, control=(-1, 1)) == servo(**slow, activation_range=(-1, 1)) == []
    assert servo(**slow) == [("note", text)]
    drifting = {"kp": 10.0, "effort": (-5, 5), "activation": "integrator"}
    assert servo(**drifting, control=(-1, 1)) == [("note", text)]
    assert servo(**drifting, activation_range=(-1, 1)) == []
    assert servo(kv=10.0)[0] == ("note", "neither it nor joint 'ball_joint' has a largest force")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "r.urdf",
            "<robot name='r'><link name='a'/><link name='b'/>\n<joint name='j' type='fixed'>"
            "<parent link='a'/><child link='b'/>\n<origin rpy='0 -90 0'/></joint></robot>",
            "r.urdf:3: joint 'j': the angles of its rpy are 0 -90 0 rad, and -90 rad is 14.3 turns",
        ),
        (
            "r.xml",
            "<mujoco><compiler angle='radian'/><worldbody>\n<body name='b' euler='0 0 180'>"
            "<joint type='hinge'/><geom size='0.1'/></body></worldbody></mujoco>",
            "r.xml:2: body 'b': the angles of its euler are 0 0 180 rad, and 180 rad is 28.6 turns",
        ),
        (
            "r.sdf",
            "<sdf version='1.9'><model name='m'>\n<link name='b'><pose>0 0 1 0 45 0</pose></link>"
            "</model></sdf>",
            "r.sdf:2: body 'b': the angles of its pose are 0 45 0 rad, and 45 rad is 7.2 turns",
        ),
    ],
)
def test_rotations_in_degrees(name, text, message, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    found = [f for f in check(path) if f.code == "unit-angle"]
    assert [str(f).replace(str(tmp_path), "").replace("/r.", "r.") for f in found] == [
        f"warning [unit-angle] {message}"
    ]
    for old, new in (("-90", "-1.5"), ("180", "3.1"), ("45", "7.853981633974483")):
        path.write_text(path.read_text().replace(old, new))
    assert [f for f in check(path) if f.code == "unit-angle"] == []
    path.write_text(text.replace("<pose>", "<pose degrees='true'>").replace("'radian'", "'degree'"))
    assert len([f for f in check(path) if f.code == "unit-angle"]) == (name == "r.urdf")


def test_what_changes_motion_comes_before_contact_control_and_pictures(tmp_path):
    robot = two_balls(-0.045).actuator("s", joint="d_joint", kp=1.0)
    robot.geometry(Mesh(str(tmp_path / "none.stl")), on="a", collision=False)
    model = robot.body("d", joint=kt.Revolute("x"), inertia=BALL, limits=kt.Limits(-90, 90, 1))
    found = [f.code for f in check(model.build()) if f.severity == "warning"]
    assert found == ["unit-angle", "overlap", "servo-range", "mesh-missing"]
