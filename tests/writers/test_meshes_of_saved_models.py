"""Mesh files of a robot that is saved elsewhere."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from kinetree.model.geometry import Mesh

CORNERS = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


def _obj(path):
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS] + [
        "f " + " ".join(str(i + 1) for i in face) for face in FACES
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def robot(tmp_path):
    builder = kt.ModelBuilder("robot")
    for folder in ("a", "b"):  # of the same name, in two folders
        inertia = kt.shapes.sphere(0.1, mass=1.0)
        builder.body(folder, joint=kt.Revolute("z"), inertia=inertia)
        builder.geometry(Mesh(_obj(tmp_path / "meshes" / folder / "part.obj")), on=folder)
    return builder.build()


@pytest.mark.parametrize("suffix", ["urdf", "toml", "sdf"])
def test_copies_of_meshes_go_with_the_file(robot, suffix, tmp_path):
    path = tmp_path / "here" / f"robot.{suffix}"
    path.parent.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kt.save(robot, path, meshes="copy")
        kt.save(robot, path, meshes="copy")  # again, over the first
    moved = path.parent.rename(tmp_path / "there")
    again = kt.load(moved / path.name)
    paths = [g.shape.path for g in again.geometry]
    assert len({*paths}) == 2
    assert all(str(moved) in p for p in paths)
    original = (tmp_path / "meshes" / "a" / "part.obj").read_text()
    assert all(Path(p).read_text() == original for p in paths)


def test_meshes_that_load_will_not_open_are_named(robot, tmp_path):
    path = tmp_path / "here" / "robot.urdf"
    path.parent.mkdir()
    message = r"2 shapes refer to meshes outside .*robot\.urdf.*folders=\['.*meshes'\]; .*'copy'"
    with pytest.warns(kt.ModelWarning, match=message) as warned:
        kt.save(robot, path)
    assert warned[0].filename == __file__
    again = kt.load(path, folders=[tmp_path / "meshes"])
    assert {g.shape for g in again.geometry} == {g.shape for g in robot.geometry}
    with pytest.raises(kt.UnknownNameError, match="meshes must be 'refer' or 'copy', got 'move'"):
        kt.save(robot, path, meshes="move")
    with pytest.raises(kt.ModelError, match="JSON holds a model as it is"):
        kt.save(robot, tmp_path / "robot.json", meshes="copy")
