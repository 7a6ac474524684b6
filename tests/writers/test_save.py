"""Models to files."""

import json

import pytest

import kinetree as kt
from kinetree.errors import ModelError
from kinetree.loaders import load
from kinetree.samples import double_pendulum
from kinetree.writers import WRITERS, save


def test_suffix_says_the_format(tmp_path):
    model = double_pendulum()
    for name in ("a.urdf", "A.URDF", "a.json"):
        assert save(model, tmp_path / name) == tmp_path / name
        assert load(tmp_path / name).joint_names == model.joint_names
    assert load(tmp_path / "a.json") == model
    assert json.loads((tmp_path / "a.json").read_text())["name"] == model.name


def test_format_by_name(tmp_path):
    save(double_pendulum(), str(tmp_path / "robot.txt"), format="urdf")
    assert load(tmp_path / "robot.txt").nv == 2


@pytest.mark.parametrize("name", ["a.step", "a", "a.csv"])
def test_unknown_formats(tmp_path, name):
    with pytest.raises(ModelError, match=f"the format must be one of {', '.join(WRITERS)}"):
        save(double_pendulum(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_only_models_are_written(tmp_path):
    with pytest.raises(ModelError, match="must be a Model, got str"):
        save("robot", tmp_path / "a.urdf")
    with pytest.raises(ModelError, match="must be a Model, got str"):
        save("a.urdf", double_pendulum())


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.urdf"
    path.write_text("old")
    with pytest.raises(ModelError):
        save(None, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
def test_meshes_beside_the_file_are_found_again(suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.stl").write_bytes(bytes(84))
    inertia = kt.shapes.sphere(0.1, mass=1.0)
    builder = kt.ModelBuilder("arm").body("link", joint=kt.Revolute("y"), inertia=inertia)
    model = builder.geometry(kt.geometry.Mesh("a b.stl"), on="link").build()
    (tmp_path / "other").mkdir()
    file = kt.save(model, f"arm.{suffix}")
    monkeypatch.chdir(tmp_path / "other")
    found = [g.shape.path for g in kt.load(tmp_path / file).geometry]
    assert {str(tmp_path / "a b.stl")} == set(found)
