"""``kinetree check``."""

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from kinetree.cli.app import app

DATA = Path(__file__).parents[1] / "doctor" / "data"


def run(*arguments):
    return CliRunner().invoke(app, ["check", *arguments])


def test_a_sample_has_nothing_wrong_with_it():
    result = run("panda")
    assert result.exit_code == 0
    assert result.stdout == "panda: nothing to find fault with\n"


def test_errors_fail_and_every_kind_is_explained_once():
    result = run(str(DATA / "broken.urdf"))
    assert result.exit_code == 1
    output = result.stdout
    assert output.count("error  duplicate-name") == 1
    for part in (
        "broken.urdf:56",
        "broken.urdf:62",
        "  why   references to this name",
        "  fix   give every",
    ):
        assert part in output
    assert output.rstrip().endswith("17 errors, 5 warnings")


def test_programs_read_the_same():
    result = run(str(DATA / "suspicious.urdf"), "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["passed"]) == (1, False)
    assert (found["errors"], found["warnings"], found["notes"]) == (1, 8, 1)
    first = found["findings"][0]
    assert (first["code"], first["line"]) == ("massless", 59)
    assert first["why"]
    assert first["fix"]


ROBOT = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1e-2" iyy="1e-2" izz="1e-2" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="0" velocity="1"/></joint>{more}</robot>"""


def test_warnings_fail_only_when_strict(tmp_path):
    path = tmp_path / "weak.urdf"
    path.write_text(ROBOT.format(more=""))
    assert run(str(path)).exit_code == 0
    assert run(str(path), "--strict").exit_code == 1
    assert json.loads(run(str(path), "--json").stdout)["passed"]
    assert not json.loads(run(str(path), "--strict", "--json").stdout)["passed"]


def test_long_lists_are_cut_unless_all_are_wanted(tmp_path):
    path = tmp_path / "noisy.urdf"
    links, unknown = "".join(f"<a{k}/>" for k in range(9)), '<gazebo reference="b"/>\n' * 9
    path.write_text(ROBOT.format(more=links + unknown))
    short, full = run(str(path)).stdout, run(str(path), "--all").stdout
    assert re.search(r"and \d+ more +\(--all lists them\)", short)
    assert full.count("<gazebo reference='b'>") == 9
    path.write_text(ROBOT.format(more=unknown))
    assert "(and 8 like it)" in run(str(path)).stdout


def test_losses_that_change_motion_are_warnings_and_pictures_one_line(tmp_path):
    path = tmp_path / "lossy.urdf"
    shape = "<smoke/><geometry><sphere radius='1'/></geometry>"
    links = "".join(
        f'<link name="c{k}"><rope{k}/><visual>{shape}</visual></link>' for k in range(9)
    )
    joints = "".join(
        f'<joint name="j{k}" type="fixed"><parent link="a"/><child link="c{k}"/></joint>'
        for k in range(9)
    )
    path.write_text(ROBOT.format(more="<gazebo/>" + links + joints))
    shown = run(str(path)).stdout
    assert all(f"<rope{k}>" in shown for k in range(9))
    heads = [shown.index(head) for head in ("warning  ignored-motion", "note  ignored")]
    assert heads[0] < shown.index("<rope0>") < heads[1]
    assert heads[1] < shown.index("<gazebo>") < shown.index("for pictures only")
    assert shown.count("<smoke>") == 1
    shown = CliRunner().invoke(app, ["info", str(path)]).stderr
    assert "9 notes about motion:\n" in shown
    assert "<rope8>: kinetree does not use it" in shown
    assert f"2 other notes about the file: kinetree check {path}" in shown


def test_names_from_strangers_are_no_markup(tmp_path):
    path = tmp_path / "odd.urdf"
    path.write_text(ROBOT.format(more='<link name="[bold]x[/red]"/>'))
    result = run(str(path))
    assert result.exit_code == 1
    assert "[bold]x[/red]" in result.stdout
