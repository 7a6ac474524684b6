"""A robot file reaches its own folder, packages around it, and what the user allows."""

import os

import pytest

import kinetree as kt
from kinetree.errors import LoadError
from kinetree.loaders.paths import Folders


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """workspace/{arm (a package), hand (a package), secret}/..."""
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH", "SDF_PATH"):
        monkeypatch.delenv(variable, raising=False)
    for name in (
        "arm/urdf/arm.urdf",
        "arm/meshes/a b.stl",
        "arm/package.xml",
        "hand/package.xml",
        "hand/meshes/hand.stl",
        "secret/key",
        "loose/robot.urdf",
        "loose/m.stl",
        "bare/urdf/bare.urdf",
        "bare/m.stl",
        "tasks/__init__.py",
        "tasks/meshes/m.stl",
        "tasks/scenes/arm/arm.xml",
        "cup/model.config",
        "cup/cup.stl",
    ):
        path = tmp_path / "workspace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return tmp_path / "workspace"


@pytest.mark.parametrize(
    ("file", "name", "found"),
    [
        ("arm/urdf/arm.urdf", "package://arm/meshes/a b.stl", "arm/meshes/a b.stl"),
        ("arm/urdf/arm.urdf", "package://arm/meshes/a%20b.stl", "arm/meshes/a b.stl"),
        ("arm/urdf/arm.urdf", "package:///arm/meshes/a b.stl", "arm/meshes/a b.stl"),
        ("arm/urdf/arm.urdf", "package://hand/meshes/hand.stl", "hand/meshes/hand.stl"),
        ("arm/urdf/arm.urdf", "../meshes/a b.stl", "arm/meshes/a b.stl"),
        ("loose/robot.urdf", "m.stl", "loose/m.stl"),
        ("loose/robot.urdf", "./m.stl", "loose/m.stl"),
        ("loose/robot.urdf", "package://loose/m.stl", "loose/m.stl"),
        ("loose/robot.urdf", "model://cup/cup.stl", "cup/cup.stl"),
        ("bare/urdf/bare.urdf", "../m.stl", "bare/m.stl"),
        ("tasks/scenes/arm/arm.xml", "../../meshes/m.stl", "tasks/meshes/m.stl"),
    ],
)
def test_names_that_a_file_may_use(workspace, file, name, found):
    assert Folders(workspace / file).resolve(name) == str(workspace / found)


def test_file_url_inside(workspace):
    url = f"file://{workspace}/arm/meshes/a%20b.stl"
    assert Folders(workspace / "arm/urdf/arm.urdf").resolve(url).endswith("a b.stl")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../tasks/__init__.py", "lies outside the folders that this file may refer to"),
        ("../secret/key", "lies outside the folders that this file may refer to; pass folders="),
        ("/etc/passwd", "lies outside"),
        ("../../../../../../../../etc/passwd", "lies outside"),
        ("file:///etc/passwd", "lies outside"),
        ("file://../../etc/passwd", "lies outside"),
        ("package://loose/../secret/key", "lies outside"),
        ("package://../secret/key", "names no package"),
        ("package://secret/key", "no package 'secret' above or beside the file"),
        ("package://etc/passwd", "no package 'etc'"),
        ("package://tmp/x", "no package 'tmp'"),
        ("package://", "names no package"),
        ("http://localhost:9/a.stl", "is not a file on this machine; kinetree fetches nothing"),
        ("ftp://a/b", "kinetree fetches nothing"),
        ("link.stl", "lies outside"),
        ("folder/key", "lies outside"),
        ("a\0b", "is not a file name"),
        ("  ", "is not a file name"),
        ("missing.stl", "does not exist: no file"),
        ("x" * 5000, "does not exist|is not a file name"),
        (f"package://{'x' * 5000}/a", "no package 'xxx"),
        (f"file:///{'x' * 5000}", "lies outside"),
        (".", "does not exist"),
    ],
)
def test_names_that_lead_nowhere_or_out(workspace, name, message):
    (workspace / "loose/link.stl").symlink_to(workspace / "secret/key")
    (workspace / "loose/folder").symlink_to(workspace / "secret")
    with pytest.raises(LoadError, match=message):
        Folders(workspace / "loose/robot.urdf").resolve(name)


def test_folders_that_the_user_allows(workspace):
    folders = Folders(workspace / "loose/robot.urdf", [workspace / "secret", workspace])
    assert folders.resolve("../secret/key") == str(workspace / "secret/key")
    assert folders.resolve("package://secret/key") == str(workspace / "secret/key")
    assert Folders(None, str(workspace / "secret")).resolve("key").endswith("key")


def test_folders_of_the_environment(workspace, monkeypatch):
    monkeypatch.setenv("ROS_PACKAGE_PATH", os.pathsep.join(["/none", str(workspace)]))
    found = Folders(workspace / "loose/robot.urdf").resolve("package://secret/key")
    assert found == str(workspace / "secret/key")


def test_text_without_a_file_reaches_nothing(workspace):
    for name in ("m.stl", "package://arm/meshes/a b.stl", f"file://{workspace}/loose/m.stl"):
        with pytest.raises(LoadError, match="pass folders="):
            Folders(None).resolve(name)


def test_a_file_behind_a_link_refers_to_where_it_really_is(workspace):
    (workspace / "here").mkdir()
    (workspace / "here/robot.urdf").symlink_to(workspace / "loose/robot.urdf")
    assert Folders(workspace / "here/robot.urdf").resolve("m.stl") == str(workspace / "loose/m.stl")


def test_a_user_without_a_home(workspace, monkeypatch):
    """As in containers: no HOME, and no entry for the user's number."""

    def nobody(number):
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    folders = Folders(workspace / "arm/urdf/arm.urdf")
    found = folders.resolve("package://hand/meshes/hand.stl")
    assert found == str(workspace / "hand/meshes/hand.stl")
    bare = workspace / "bare" / "urdf" / "bare.urdf"
    bare.write_text('<robot name="r"><link name="a"/></robot>')
    assert kt.load(bare).name == "r"


def test_the_home_folder_is_not_one_robots(workspace, monkeypatch):
    """Not even where it is a link, which the path of the file is not."""
    (workspace.parent / "me").symlink_to(workspace / "bare")
    monkeypatch.setenv("HOME", str(workspace.parent / "me"))
    with pytest.raises(LoadError, match="outside the folders"):
        Folders(workspace / "bare/urdf/bare.urdf").resolve("../m.stl")


def test_a_package_goes_by_the_name_in_its_package_xml(tmp_path):
    package = tmp_path / "arm-main"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    (package / "meshes/m.stl").write_bytes(b"")
    (package / "package.xml").write_text("<package><name> arm_description </name></package>")
    folders = Folders(package / "urdf/arm.urdf")
    assert folders.resolve("package://arm_description/meshes/m.stl").endswith("m.stl")
    with pytest.raises(LoadError, match="no package 'other'"):
        folders.resolve("package://other/meshes/m.stl")


def test_folders_above_are_packages_only_with_a_package_xml(tmp_path):
    """A name alone reached files outside the robot's own package."""
    deep = tmp_path / "things/robots/arm/urdf"
    deep.mkdir(parents=True)
    (tmp_path / "things/secret").write_text("x")
    (tmp_path / "things/robots/arm/m.stl").write_bytes(b"")
    folders = Folders(deep / "arm.urdf")
    assert folders.resolve("package://arm/m.stl").endswith("m.stl")  # may be referred to anyway
    with pytest.raises(LoadError, match="no package 'things' above or beside the file"):
        folders.resolve("package://things/secret")
    (tmp_path / "things/package.xml").write_text("<package><name>things</name></package>")
    assert Folders(deep / "arm.urdf").resolve("package://things/secret").endswith("secret")
