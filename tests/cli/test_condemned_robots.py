"""``kinetree simulate`` of a robot that the doctor condemns."""

import json

import pytest
from support.urdf_files import joint, link, robot
from typer.testing import CliRunner

from kinetree.cli.app import app

BROKEN = (
    "<inertial><mass value='1'/><origin xyz='0 0 -0.1'/>"
    "<inertia ixx='1' iyy='1' izz='9' ixy='0' ixz='0' iyz='0'/></inertial>"
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(robot(link("base"), link("arm", BROKEN), joint("hinge", "base", "arm")))
    return str(path)


def test_its_motion_is_not_called_one_that_can_be_trusted(path):
    arguments = ["simulate", path, "--duration", "0.01"]
    shown = " ".join(CliRunner().invoke(app, arguments).output.split())
    assert "can be trusted" not in shown
    assert "computed well, but the robot is wrong (body 'arm': " in shown
    assert f"kinetreecheck{path}" in shown.replace(" ", "")  # lines may end within a path
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert [e["part"] for e in found["robot_errors"]] == ["body 'arm'"]
    assert found["report"]["warnings"] == []


def test_a_link_that_is_merged_into_another_counts(tmp_path):
    """Its inertia is impossible, and the sum of both is not."""
    path = tmp_path / "r.urdf"
    heavy = BROKEN.replace("mass value='1'", "mass value='50'").replace("'9'", "'1'")
    merged = joint("weld", "arm", "badge", "fixed", "")
    links = link("base"), link("arm", heavy), link("badge", BROKEN.replace("0 0 -0.1", "1 1 1"))
    path.write_text(robot(*links, joint("hinge", "base", "arm"), merged))
    found = CliRunner().invoke(app, ["simulate", str(path), "--duration", "0.01", "--json"])
    assert [e["part"] for e in json.loads(found.stdout)["robot_errors"]] == ["body 'badge'"]
