"""``kinetree info``."""

import json

import pytest
from typer.testing import CliRunner

import kinetree as kt
from kinetree.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, ["info", *arguments])


def lines(text):
    return [line.rstrip() for line in text.splitlines()]


def test_the_tree_is_drawn():
    shown = lines(run("double_pendulum").stdout)
    assert shown[0].startswith("double pendulum  2 bodies, nq = 2, nv = 2, ")
    body, joint = kt.samples.double_pendulum().body_names, kt.samples.double_pendulum().joint_names
    assert shown[4].split()[:5] == ["└", body[1], joint[0], "revolute", "y"]
    assert shown[5].split()[:3] == ["└", body[2], joint[1]]
    assert shown[5].startswith("  └")
    assert any(line.startswith("gravity") and "-9.81" in line for line in shown)


def test_branches_loops_and_limits_are_shown():
    output = run("four_bar").stdout
    assert "├ crank" in output
    assert "│ └ coupler" in output
    assert "loop" in output
    assert "revolute y from coupler to rocker" in output
    assert "mobility    1: 3 degrees of freedom of the tree, 2 independent of 5 con" in output
    assert "redundant   loop 'pin': rotation about z" in output
    assert " rad " in run("panda").stdout
    assert " m " in run("panda").stdout


URDF = """<robot name="r"><link name="stand"><inertial><mass value="5"/><inertia ixx="1" iyy="1"
izz="1" ixy="0" ixz="0" iyz="0"/></inertial><visual><geometry><sphere radius="1"/></geometry>
<material name="m"><color rgba="a b c d"/></material></visual><visual><geometry><mesh/></geometry>
</visual></link><link name="arm"/><joint name="j" type="continuous"><parent link="stand"/>
<child link="arm"/></joint></robot>"""


def test_a_root_on_the_ground_and_notes_of_pictures_are_told(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(URDF)
    shown = run(str(path))
    assert "stand: fixed, its mass is not counted; --floating lets it move" in shown.stdout
    assert "1 note about the file" in shown.stderr  # of two about pictures
    assert "fixed, its mass" not in run(str(path), "--floating").stdout
    assert "fixed, its mass" not in run("four_bar").stdout


def test_long_names_are_not_cut_in_a_pipe(tmp_path):
    name = "a_link_with_a_very_long_name_" * 5
    model = kt.ModelBuilder("long").body(
        name, joint=kt.Revolute("z"), inertia=kt.shapes.sphere(0.1, mass=1)
    )
    path = tmp_path / "long.json"
    path.write_text(json.dumps(model.build().to_dict()))
    assert name in run(str(path)).stdout


@pytest.mark.parametrize("name", ["panda", "four_bar", "quadruped", "stewart"])
def test_programs_read_the_same(name):
    found = json.loads(run(name, "--json").stdout)
    model = getattr(kt.samples, name)()
    assert (found["nq"], found["nv"]) == (model.nq, model.nv)
    assert [b["name"] for b in found["bodies"]] == list(model.body_names[1:])
    assert [b["joint"] for b in found["bodies"]] == list(model.joint_names)
    assert len(found["loops"]) == len(model.loops)
    assert found["mobility"] == {"four_bar": 1, "stewart": 6}.get(name, model.nv)
    assert found["total_mass"] == pytest.approx(sum(b.inertia.mass for b in model.bodies))
    for body, facts in zip(model.bodies, found["bodies"], strict=True):
        if body.limits is not None and body.limits.effort:
            assert facts["effort"] == list(body.limits.effort)


def test_what_the_file_says_beyond_the_model_is_counted(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text("""<robot name="r"><link name="a"/><gazebo/></robot>""")
    result = run(str(path))
    assert result.exit_code == 0
    assert result.stderr == f"1 note about the file: kinetree check {path}\n"
    assert len(json.loads(run(str(path), "--json").stdout)["notices"]) == 1


def test_a_floating_base_and_fixed_joints_that_stay(tmp_path):
    path = tmp_path / "robot.urdf"
    inertia = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        "</inertial>"
    )
    path.write_text(
        f'<robot name="r"><link name="a">{inertia}</link><link name="b">{inertia}</link>'
        '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>'
    )
    assert json.loads(run(str(path), "--floating", "--json").stdout)["nv"] == 6
    bodies = json.loads(run(str(path), "--floating", "--keep-fixed", "--json").stdout)["bodies"]
    assert [b["name"] for b in bodies] == ["a", "b"]


def test_couplings_are_equations():
    from kinetree.cli.info import coupling_text

    ball = kt.shapes.sphere(0.1, mass=1)
    model = kt.ModelBuilder("gears")
    for name, on in (("a", "base"), ("b", "a"), ("c", "b")):
        model.body(name, on=on, joint=kt.Revolute("x"), inertia=ball)
    model.coupling("g", joint="b_joint", source="a_joint", coefficients=(0.5, -2.0, 1.0))
    model.coupling("h", joint="c_joint", source=None, coefficients=(0.25,))
    model = model.build()
    texts = [coupling_text(model, c) for c in model.couplings]
    assert texts == ["b_joint = 0.5 - 2 a_joint + a_joint^2", "c_joint = 0.25"]


@pytest.mark.parametrize(
    ("axis", "text"),
    [
        ("x", "revolute x"),
        ("-z", "revolute -z"),
        ((1e-6, -1, 0), "revolute ~-y"),
        ((3, 4, 0), "revolute (0.6, 0.8, 0)"),
    ],
)
def test_axes(axis, text):
    from kinetree.cli.info import kind_of

    assert kind_of(kt.Revolute(axis)) == text
    assert kind_of(kt.Free()) == "free"
