"""The table of a model."""

from dataclasses import replace
from fractions import Fraction

from support.mechanisms import gripper

from kinetree.cli.info import facts
from kinetree.joints import Revolute
from kinetree.model import Coupling, JointDynamics, ModelBuilder, shapes
from kinetree.model.describe import summary
from kinetree.samples import four_bar, pendulum


def test_summary_of_a_linkage():
    assert summary(four_bar()) == four_bar().summary() == "\n".join(
        [
            "Model('four-bar': 3 bodies, nq=3, nv=3, 1 loop)",
            "body  name     parent  joint          kind      dof  mass [kg]",
            "   0  base",
            "   1  crank    base    crank_joint    Revolute    1        0.4",
            "   2  coupler  crank   coupler_joint  Revolute    1          1",
            "   3  rocker   base    rocker_joint   Revolute    1        0.8",
            f"total mass {four_bar().total_mass:g} kg",
            "loop pin: Revolute from coupler to rocker",
            "actuators: crank_joint_motor",
            "postures: home",
            "geometry: 7 visual shapes, 3 collision shapes",
        ]
    )  # fmt: skip


def test_summary_names_frames_and_takes_exact_numbers():
    assert summary(pendulum()).endswith("frames: tip")
    assert "6/5" in summary(pendulum().map_numbers(lambda x: Fraction(x).limit_denominator(1000)))


def test_summary_tells_what_joints_do_and_who_drives_them(rng):
    lines = gripper(rng).summary().splitlines()
    assert lines[0] == "Model('gripper': 5 bodies, nq=12, nv=10, 1 loop, 1 coupling)"
    for line in (
        "coupling gear: follow = 0.1 - 2 lead + 0.3 lead^2",
        "armature in lead, follow",
        "damping in lead",
        "friction in lead",
        "springs in lead",
        "actuators: motor, muscle",
        "postures: home, thrown",
        "geometry: 3 visual shapes, 3 collision shapes",
    ):
        assert line in lines


def test_formulas_of_couplings(rng):
    model = gripper(rng)
    for coefficients, text in (
        ((0.0, 1.0), "lead"),
        ((0.0, -1.0), "-lead"),
        ((-0.5, 0.0, 2.0), "-0.5 + 2 lead^2"),
        ((0.0,), "0"),
    ):
        changed = model.replace(couplings=[replace(model.couplings[0], coefficients=coefficients)])
        assert f"coupling gear: follow = {text}" in changed.summary()


def test_sums_of_leaders_read_as_formulas():
    rod = shapes.sphere(0.1, mass=1)
    builder = ModelBuilder()
    for name in "abc":
        builder.body(name, joint=Revolute("x"), inertia=rod, joint_name=f"{name}_joint")
    for weights, factor, text in (
        ({"a_joint": -1, "b_joint": -1}, 1, "-a_joint - b_joint"),
        ({"a_joint": 1, "b_joint": 0.5}, 1, "a_joint + 0.5 b_joint"),
        ({"a_joint": 1, "b_joint": -1}, 2, "2 (a_joint - b_joint)"),
    ):
        model = builder.build()
        sources = tuple(model.joint_names.index(name) + 1 for name in weights)
        law = Coupling("sum", 3, 0, (0.0, factor), sources, tuple(weights.values()))
        lines = model.replace(couplings=[law]).summary().splitlines()
        assert f"coupling sum: c_joint = {text}" in lines


def test_armature_is_inertia_too():
    bare = ModelBuilder().body("a", joint=Revolute("x"))
    assert "no forward dynamics" in bare.build().summary()
    rotor = ModelBuilder().body("a", joint=Revolute("x"), dynamics=JointDynamics(armature=0.1))
    assert "no forward dynamics" not in rotor.build().summary()


def test_followers_have_no_freedom_of_their_own(rng):
    """The listed freedoms add up to nv, and a follower says what it follows."""
    model = gripper(rng)
    for coefficients, text in (
        ((0.0, 1.0), "follows lead"),
        ((0.1, -1.0), "follows lead × -1 + 0.1"),
        ((-0.1, 0.5), "follows lead × 0.5 - 0.1"),
        ((0.0, 0.0, 2.0), "follows 2 lead^2"),
        ((0.2,), "held at 0.2"),
        ((0.2, 0.0), "held at 0.2"),
    ):
        changed = model.replace(couplings=[replace(model.couplings[0], coefficients=coefficients)])
        rows = changed.summary().splitlines()[3 : 3 + model.body_count]
        assert sum(int(row.split()[-2]) for row in rows) == changed.nv == model.nv
        assert f"Prismatic, {text}  " in rows[3]
        listed = facts(changed)["bodies"]
        assert sum(b["nv"] for b in listed) == changed.nv
        assert [b.get("follower") for b in listed] == [None, None, None, text, None]
