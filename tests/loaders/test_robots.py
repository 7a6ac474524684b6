"""Robots of installed packages, by name."""

import json

import pytest

import kinetree as kt
from kinetree.loaders.robots import catalogs

MODULE = """
from os import path as _path
from ._cache import clone_to_cache as _clone_to_cache
REPOSITORY_PATH: str = _clone_to_cache("arms", commit=None)
PACKAGE_PATH: str = _path.join(REPOSITORY_PATH, "lamp_description")
URDF_PATH: str = _path.join(PACKAGE_PATH, "urdf", "lamp.urdf")
"""
REPOSITORIES = 'REPOSITORIES = {"arms": Repository(url="x", commit="0", cache_path="arms")}'
LAMP = """<robot name="lamp"><link name="foot"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link><joint name="hinge" type="continuous">
<parent link="foot"/><child link="arm"/></joint></robot>"""


@pytest.fixture
def descriptions(tmp_path, monkeypatch):
    """A package as robot_descriptions is, with one robot in its cache and one that is not."""
    package = tmp_path / "robot_descriptions"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "_repositories.py").write_text(REPOSITORIES)
    (package / "lamp_description.py").write_text(MODULE)
    (package / "crane_description.py").write_text(MODULE.replace("lamp", "crane"))
    file = tmp_path / "cache/arms/lamp_description/urdf/lamp.urdf"
    file.parent.mkdir(parents=True)
    file.write_text(LAMP)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path / "cache"))
    return file


def test_robots_of_example_robot_data_load_by_name():
    assert "ur5" in kt.robots.names()
    assert kt.load("robots:ur5").nv == 6
    assert kt.load("robots:Example-Robot-Data/UR5").fingerprint == kt.load("robots:ur5").fingerprint
    assert kt.load("robots:ur3").nv == 6  # beside it lies what is left of an xacro file
    assert kt.robots.find("hector").name == "quadrotor_base"  # the only one of its folder
    assert {"anymal_b", "anymal_c"} <= set(kt.robots.names())  # two files of one name


def test_every_name_is_that_of_one_robot_with_a_file():
    for name in kt.robots.names():
        assert kt.robots.find(name).file.is_file()
        assert kt.robots.find(f"robots:{name}") == kt.robots.find(name)


def test_descriptions_are_found_without_importing_them(descriptions):
    assert kt.robots.find("lamp").file == descriptions
    assert kt.robots.find("lamp_description").package == "robot_descriptions"
    assert kt.load("robots:lamp").joint_names == ("hinge",)
    assert "crane" not in kt.robots.names()
    with pytest.raises(kt.LoadError) as error:
        kt.load("robots:crane")
    assert str(error.value) == (
        "robots:crane is not on this machine: "
        "python -m robot_descriptions pull crane_description fetches it"
    )


def test_a_robot_of_two_packages_needs_the_package(descriptions, monkeypatch):
    both = [*catalogs.CATALOGS, catalogs.Catalog("other", catalogs.CATALOGS[1].robots)]
    monkeypatch.setattr("kinetree.loaders.robots.CATALOGS", both)
    robots = catalogs.CATALOGS[1].robots()
    assert robots is not None
    lamp = next(r for r in robots if r.name == "lamp")
    other = catalogs.Robot("lamp", "other", lamp.file)
    both[-1] = catalogs.Catalog("other", lambda: (other,))
    with pytest.raises(kt.LoadError, match="write robots:robot_descriptions/lamp or robots:other"):
        kt.load("robots:lamp")
    assert kt.robots.find("other/lamp") == other
    assert {"other/lamp", "robot_descriptions/lamp"} <= set(kt.robots.names())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ur55", "no installed package has a robot named 'ur55'; did you mean ur5"),
        ("talos", "talos_full_v2 or .*talos_left_arm"),
        ("absent/x", "'absent' is not one of example-robot-data, robot_descriptions"),
        ("dm_control/x", "the package dm_control is not installed: pip install dm_control"),
        ("qqqq", "packages with robots that are not installed: .*dm_control"),
    ],
)
def test_unknown_names_are_explained(name, message, monkeypatch):
    kept = [c for c in catalogs.CATALOGS if c.package != "dm_control"]
    absent = catalogs.Catalog("dm_control", lambda: None)
    monkeypatch.setattr("kinetree.loaders.robots.CATALOGS", (*kept, absent))
    with pytest.raises(kt.LoadError, match=message):
        kt.load(f"robots:{name}")


def test_the_command_lists_them(descriptions):
    from typer.testing import CliRunner

    from kinetree.cli.app import app

    run = CliRunner().invoke
    rows = json.loads(run(app, ["robots", "--json"]).stdout)
    assert {"name": "lamp", "package": "robot_descriptions", "file": str(descriptions)} in rows
    assert run(app, ["robots", "lamp"]).stdout.strip() == str(descriptions)
    assert "robot_descriptions\n  lamp\n" in run(app, ["robots"]).stdout
    assert "hinge" in run(app, ["info", "robots:lamp"]).stdout
