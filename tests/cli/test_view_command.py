"""``kinetree view``: files of every kind, the server, and mistakes."""

import numpy as np
import pytest
from typer.testing import CliRunner

import kinetree as kt
from kinetree.cli.app import app
from kinetree.viewer.browser.app import Viewer

DOUBLE = kt.samples.double_pendulum()


def run(*arguments):
    return CliRunner().invoke(app, ["view", *map(str, arguments)])


@pytest.fixture
def motion(tmp_path):
    t = np.linspace(0, 0.1, 4)
    q = np.stack([t, -t], axis=1)
    zero = np.zeros(4)
    return kt.Trajectory(DOUBLE, t, q, q, q, zero, zero, zero).save(tmp_path / "motion.npz")


def test_robots_become_pages_and_pictures(tmp_path):
    result = run("double_pendulum", "--q", "0.5,0.5", "-o", tmp_path / "a.html")
    assert result.exit_code == 0, result.output
    assert "a.html" in result.output
    assert "double pendulum" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_motions_become_films(tmp_path, motion, monkeypatch):
    import kinetree.viewer as viewer

    options = {}
    monkeypatch.setattr(viewer, "record", lambda *a, **o: options.update(o) or a[1])
    result = run(motion, "-o", tmp_path / "a.gif", "--speed", 2, "-s", "frames,forces")
    assert result.exit_code == 0, result.output
    assert options["speed"] == 2
    assert options["show"][-2:] == ("frames", "forces")


def test_the_server_says_where_it_is(motion, monkeypatch):
    waited = []
    monkeypatch.setattr(Viewer, "wait", lambda viewer: waited.append(viewer.url))
    result = run(motion, "--no-browser", "--ghost", motion)
    assert result.exit_code == 0, result.output
    assert f"double pendulum is at {waited[0]}; Ctrl-C ends it" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pendulun",), "did you mean 'pendulum'"),
        (("pendulum", "-o", "a.avi"), "a.avi must end in .html, .png, .jpg, .mp4 or .gif"),
        (("pendulum", "-o", "nowhere/a.png"), "no folder 'nowhere'"),
        (("pendulum", "--ghost", "gone.npz"), "no file 'gone.npz'; kinetree simulate"),
    ],
)
def test_mistakes_are_explained(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_a_motion_has_its_own_positions(motion):
    result = run(motion, "--q", "0,0")
    assert result.exit_code == 2
    assert "--q is for robots" in result.output


def test_an_unknown_layer_is_rejected(tmp_path):
    result = run("pendulum", "-o", tmp_path / "a.png", "-s", "bones")
    assert result.exit_code == 1
    assert "no layer 'bones'" in result.output
