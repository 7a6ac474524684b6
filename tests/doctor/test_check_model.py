"""What the doctor finds in models that were built, one fault each; nothing in the samples."""

import numpy as np
import pytest
import trimesh

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


def codes(model):
    return [(f.severity, f.code) for f in check(model)]


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
    assert "3000 kg with so small an inertia are denser than any metal, 2e+10" in finding.message
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
