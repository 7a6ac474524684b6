"""``kinetree bench``."""

import json

from typer.testing import CliRunner

from kinetree.cli.app import app
from kinetree.codegen.runtime.threads import threads


def run(*arguments):
    return CliRunner().invoke(app, ["bench", *arguments, "--seconds", "0.001"])


def test_a_table_of_times(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    result = run("pendulum", "--batch", "1", "--batch", "3")
    assert result.exit_code == 0
    for part in ("pendulum, 1 degrees", "inverse_mass_matrix", "batch of 1", "batch of 3", " ms "):
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


def test_mistakes_are_explained(monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")
    for arguments, part in [
        (["pandas"], "no sample model is called 'pandas'; there are pendulum"),
        (["four_bar"], "four_bar has kinematic loops"),
        (["pendulum", "--batch", "0"], "a batch has at least 1 sample, got 0"),
    ]:
        result = run(*arguments)
        assert result.exit_code == 2
        assert part in result.output


INERTIAL = """<inertial><origin xyz="0 0 0.5"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>"""
URDF = f"""<robot name="rod"><link name="base">{INERTIAL}</link><link name="rod">{INERTIAL}</link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
</joint></robot>"""


def test_a_robot_from_a_file_runs_beside_pinocchio(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    path = tmp_path / "rod.urdf"
    path.write_text(URDF)
    result = run(str(path), "--batch", "4")
    assert result.exit_code == 0
    for part in ("rod.urdf: times faster than Pinocchio", "dABA", "batch of 4", "largest error"):
        assert part in result.output
    rows = json.loads(run(str(path), "--batch", "1", "--floating", "--json").stdout)["results"]
    assert {r["function"] for r in rows} >= {"RNEA", "ABA", "CRBA", "inverse of H", "dRNEA"}
    assert all(r["error"] < 1e-10 for r in rows)


def test_files_that_are_no_robots_are_explained(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")
    path = tmp_path / "broken.urdf"
    path.write_text("<robot>")
    massless = tmp_path / "massless.urdf"
    massless.write_text(URDF.replace(INERTIAL, "", 1))
    singular = run(str(massless), "--floating").output
    assert "'root_joint', 'hinge' can move together without moving any inertia" in singular
    for name, part in [(str(path), "Pinocchio cannot read"), ("no.urdf", "there is no file")]:
        result = run(name)
        assert result.exit_code == 2
        assert part in result.output
