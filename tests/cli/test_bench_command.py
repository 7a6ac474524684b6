"""``kinetree bench``."""

import json

import pytest
from typer.testing import CliRunner

from kinetree.cli.app import app
from kinetree.codegen.runtime.threads import threads


def run(*arguments):
    return CliRunner().invoke(app, ["bench", *arguments, "--seconds", "0.001"])


def test_a_table_of_times():
    result = run("pendulum", "--batch", "1", "--batch", "3")
    assert result.exit_code == 0
    for part in ("pendulum: ", "nv = 1", "inverse_mass_matrix", "batch of 1", "batch of 3", " ms "):
        assert part in result.output


def test_programs_read_seconds():
    before = threads()
    found = json.loads(run("pendulum", "--batch", "1", "--batch", "3", "--json").stdout)
    assert (found["model"], found["nv"]) == ("pendulum", 1)
    for row in found["functions"]:
        assert row["first"] > 0
        assert set(row["per_sample"]) == {"1", "3"}
        assert all(0 < t < 1 for t in row["per_sample"].values())
    assert threads() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pandas"], "no file 'pandas', and no sample of that name; did you mean 'panda'?"),
        (["four_bar"], "four_bar has loops"),
        (["pendulum", "--batch", "0"], "a batch has at least 1 sample, got 0"),
        (["pendulum", "--against", "drake"], "--against takes 'pinocchio' or 'none', got 'drake'"),
        (["pendulum", "--against", "pinocchio"], "needs a URDF file; there is no file 'pendulum'"),
    ],
)
def test_mistakes_are_explained(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


INERTIAL = """<inertial><origin xyz="0 0 0.5"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>"""
URDF = f"""<robot name="rod"><link name="base">{INERTIAL}</link><link name="rod">{INERTIAL}</link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
</joint></robot>"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rod.urdf"
    path.write_text(URDF)
    return str(path)


def test_a_robot_from_a_file(path):
    options = ("--floating", "--batch", "1", "--json", "--against", "none")
    found = json.loads(run(path, *options).stdout)
    assert found["nv"] == 7


def test_beside_pinocchio(path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    result = run(path, "--batch", "4")
    assert result.exit_code == 0
    for part in ("rod.urdf: times faster than Pinocchio", "dABA", "batch of 4", "largest error"):
        assert part in result.output
    options = ("--against", "pinocchio", "--batch", "1", "--floating", "--json")
    rows = json.loads(run(path, *options).stdout)["results"]
    assert {r["function"] for r in rows} >= {"RNEA", "ABA", "CRBA", "inverse of H", "dRNEA"}
    assert all(r["error"] < 1e-10 for r in rows)


def test_what_cannot_be_timed_is_explained(tmp_path):
    path = tmp_path / "broken.urdf"
    path.write_text("<robot>")
    massless = tmp_path / "massless.urdf"
    massless.write_text(URDF.replace(INERTIAL, "", 1))
    singular = run(str(massless), "--floating")
    assert singular.exit_code == 1
    assert "without moving any inertia" in singular.stderr
    result = run(str(path))
    assert result.exit_code == 1
    assert "not well-formed XML" in result.stderr
