"""``kinetree simulate`` and ``kinetree plot``: motions from the shell, kept and drawn."""

import importlib.util
import json

import numpy as np
import pytest
from support.closeness import assert_close
from support.urdf_files import MASS, link, robot
from typer.testing import CliRunner

import kinetree as kt
from kinetree.cli.app import app

DOUBLE = kt.samples.double_pendulum()


def run(*arguments):
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)])


def answer(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_motion_is_that_of_the_library():
    found = answer("double_pendulum", "--q", "1,0.5", "--qd", "0,1", "-d", 0.1, "--dt", 0.01)
    motion = kt.simulate(DOUBLE, [1.0, 0.5], [0.0, 1.0], duration=0.1, dt=0.01)
    assert found["end"] == {"q": motion.q[-1].tolist(), "qd": motion.qd[-1].tolist()}
    assert found["start"]["q"] == [1.0, 0.5]
    assert found["duration"] == pytest.approx(0.1)
    assert found["report"]["energy_error"] == motion.report.energy_error < 1e-4
    assert found["report"]["steps"] == 10
    assert found["report"]["integrator"] == "rk4"


def test_people_get_a_table_and_whether_to_trust_it():
    result = run("double_pendulum", "--q", "1,0.5", "-d", 0.1)
    assert result.exit_code == 0
    assert "double pendulum  0.1 s in 100 steps of rk4" in result.stdout
    assert "shoulder" in result.stdout
    assert "can be trusted" in result.stdout


@pytest.mark.filterwarnings("default::kinetree.SimulationWarning")
def test_a_result_that_cannot_be_trusted_is_marked():
    result = run("double_pendulum", "--qd", "60,0", "-d", 0.04, "--dt", 0.02)
    assert result.exit_code == 0
    assert "look at the warnings" in result.stdout
    assert "warning: the simulation of 'double pendulum'" in result.stderr


def test_gravity_holds_a_robot_where_it_is():
    q = "0.7,-0.4"
    free = answer("double_pendulum", "--q", q, "-d", 0.2)
    held = answer("double_pendulum", "--q", q, "-d", 0.2, "--controller", "gravity")
    assert_close(held["end"]["q"], [0.7, -0.4], ulps=64)
    assert abs(free["end"]["q"][0] - 0.7) > 1e-2


def test_pd_pulls_to_the_goal():
    found = answer(
        "double_pendulum", "--q", "0.3,0.2", "--controller", "pd", "--goal", "neutral", "-d", 1.5,
        "--dt", 0.005,
    )  # fmt: skip
    assert np.max(np.abs(found["end"]["q"])) < 1e-2
    stays = answer("double_pendulum", "--q", "0.3,0.2", "--controller", "pd", "-d", 0.2)
    assert_close(stays["end"]["q"], [0.3, 0.2], ulps=64)


def test_no_motor_acts_on_a_joint_that_floats():
    found = answer("satellite", "--controller", "pd", "--qd", "random:1", "-d", 0.2)
    start, end = found["start"]["qd"], found["end"]["qd"]
    assert found["report"]["momentum_error"] < 1e-12
    assert start != end


def test_a_robot_falls_to_the_ground(tmp_path):
    ball = tmp_path / "ball.urdf"
    shape = "<collision><geometry><sphere radius='0.1'/></geometry></collision>"
    ball.write_text(robot(link("ball", MASS + shape)))
    found = answer(ball, "--floating", "-d", "0.5", "--dt", "0.01", "--ground", "-0.5")
    assert abs(found["end"]["q"][2] + 0.4) < 1e-9
    assert 0 < found["report"]["contact"]["touching"] < 50
    assert "penetration" in run(ball, "--floating", "-d", "0.1", "--ground", "-0.5").output
    deep = run(ball, "--floating", "--ground", "0")
    assert deep.exit_code == 2
    assert "the robot starts 0.1 m deep in the ground; --ground -0.1 is below it" in deep.stderr
    bare = tmp_path / "bare.urdf"
    bare.write_text(robot(link("ball", MASS)))
    thin = run(bare, "--floating", "--ground", "-3")
    assert "r has nothing solid to touch the ground with" in thin.stderr


def test_steps_can_adapt():
    found = answer("double_pendulum", "--q", "1,1", "-d", 1, "--rtol", 1e-8)
    assert found["report"]["integrator"] == "dopri5"
    assert found["report"]["energy_error"] < 1e-6


@pytest.mark.parametrize("suffix", ["npz", "parquet", "nc"])
def test_motions_are_kept_and_drawn(tmp_path, suffix):
    file, picture = tmp_path / f"motion.{suffix}", tmp_path / "now.png"
    result = run(
        "double_pendulum", "--q", "1,0", "-d", 0.2, "-o", file, "--plot", picture, "--every", 10
    )
    assert result.exit_code == 0, result.output
    assert f"wrote {file}" in result.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(kt.Trajectory.load(file)) == 21
    result = CliRunner().invoke(app, ["plot", str(file)])
    assert result.exit_code == 0, result.output
    assert f"wrote {tmp_path / 'motion.png'}" in result.stderr
    assert (tmp_path / "motion.png").stat().st_size > 20_000


def test_some_joints_can_be_drawn(tmp_path):
    file = kt.simulate(DOUBLE, [1.0, 0.0], duration=0.05, dt=0.01).save(tmp_path / "m.npz")
    svg = tmp_path / "m.svg"
    result = CliRunner().invoke(app, ["plot", str(file), "-j", "elbow", "-o", str(svg)])
    assert result.exit_code == 0, result.output
    assert svg.read_text().count("<!-- elbow -->") == 1
    assert "shoulder" not in svg.read_text()
    result = CliRunner().invoke(app, ["plot", str(file), "-j", "elbov"])
    assert result.exit_code == 1
    assert "no joint 'elbov'; did you mean 'elbow'?" in result.stderr


def test_about_a_thousand_states_are_kept(tmp_path):
    assert run("pendulum", "-d", 3, "-o", tmp_path / "m.npz").exit_code == 0
    assert len(kt.Trajectory.load(tmp_path / "m.npz")) == 1001


def test_controls_drive_the_actuators(tmp_path):
    arm = kt.samples.double_pendulum()
    servo = kt.Actuator("servo", 1, gain=(50.0,), bias=(0.0, -50.0, -5.0))
    arm = arm.replace(actuators=[servo], postures=[kt.Posture("hold", [0, 0], controls=[0.3])])
    kt.save(arm, tmp_path / "arm.toml")
    for controls in ("0.3", "hold"):
        found = run(
            tmp_path / "arm.toml", "--controls", controls, "-d", 0.1, "-o", tmp_path / "m.npz"
        )
        assert found.exit_code == 0, found.output
        motion = kt.Trajectory.load(tmp_path / "m.npz")
        expected = kt.simulate(arm, [0, 0], duration=0.1, controls=[0.3])
        np.testing.assert_allclose(motion.q[-1], expected.q[-1], atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["double_pendulum", "--q", "1"], "q needs 2 numbers, got 1", 2),
        (["double_pendulum", "--controller", "pid"], "no controller is called 'pid'; did you", 2),
        (["double_pendulum", "--integrator", "rk5"], "there is no integrator 'rk5'", 1),
        (["double_pendulum", "--goal", "neutral"], "--goal is for --controller pd", 2),
        (["double_pendulum", "--controls", "1"], "controls needs 2 numbers, got 1; one for", 2),
        (
            ["double_pendulum", "--controls", "1,2", "--controller", "pd"],
            "--controls drives the actuators, in place of --controller",
            2,
        ),
        (["double_pendulum", "--duration", "-1"], "duration must be a positive time", 1),
        (["double_pendulum", "--dt", "0"], "dt must be a positive time", 1),
        (
            ["double_pendulum", "-o", "m.txt"],
            "m.txt must end in .npz, .parquet, .nc, .csv or .mcap",
            2,
        ),
        (["double_pendulum", "-o", "no/m.npz"], "there is no folder 'no' to write m.npz to", 2),
        (["double_pendulum", "--plot", "m.txt"], "m.txt must end in .png, .pdf or .svg", 2),
        (
            ["pendulumm"],
            "there is no file 'pendulumm', and no sample of that name; did",
            2,
        ),
    ],
)
def test_mistakes_are_one_line(arguments, message, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_mistakes_of_plot_are_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.npz").write_text("something else")
    for arguments, message in (
        (["none.npz"], "there is no file 'none.npz'; kinetree simulate ROBOT --out none.npz makes"),
        (["other.npz"], "other.npz: this is not a trajectory of kinetree"),
        (["other.npz", "-o", "picture"], "picture must end in .png, .pdf or .svg"),
    ):
        result = CliRunner().invoke(app, ["plot", *arguments])
        assert result.exit_code in (1, 2)
        assert message in result.stderr


def test_without_matplotlib_it_is_said_before_anything_runs(tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else real(name)
    )
    result = run("pendulum", "--plot", tmp_path / "m.png")
    assert result.exit_code == 1
    assert 'no pictures without Matplotlib: pip install "kinetree[plot]"' in result.stderr
