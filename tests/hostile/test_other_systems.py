"""What Windows and macOS lack or do otherwise, simulated: modules, functions, names of files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kinetree as kt
from kinetree.errors import LoadError
from kinetree.loaders.paths import Folders

PROGRAM = """
import os, sys, warnings
for name in ("fcntl", "resource", "pwd", "grp", "termios", "readline"):  # of POSIX alone
    sys.modules[name] = None
for name in ("geteuid", "getuid", "sched_getaffinity", "O_NOFOLLOW", "fork"):
    if hasattr(os, name):
        delattr(os, name)
import kinetree as kt

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    robot = kt.load("Größe 1/mein robot.urdf")
    H = kt.mass_matrix(robot, [0.3])
assert [w.category.__name__ for w in caught] == ["CacheWarning"], caught  # no home to write to
assert abs(H[0, 0] - 0.35) < 1e-12
kt.save(robot, "Größe 1/noch einmal.urdf")
assert kt.load("Größe 1/noch einmal.urdf").nv == 1
print(kt.viewer.save_html(robot, "Größe 1/seite.html").name, robot.geometry[0].shape.path)
"""
ROBOT = """<?xml version="1.0" encoding="utf-8"?>
<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/>
<origin xyz="0 0 -0.5"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="{mesh}"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint>
</robot>"""
STL = b"\0" * 80 + (1).to_bytes(4, "little") + b"\0" * 50


def robot_with(folder, mesh):
    folder.mkdir(exist_ok=True)
    path = folder / "mein robot.urdf"
    path.write_text(ROBOT.format(mesh=mesh), encoding="utf-8")
    return path


def test_without_posix_and_without_a_home_in_folders_with_spaces(tmp_path):
    path = robot_with(tmp_path / "Größe 1", "Teile\\arm 1.stl")
    (path.parent / "Teile").mkdir()
    (path.parent / "Teile" / "arm 1.stl").write_bytes(STL)
    home = tmp_path / "home"
    home.write_text("a file, in which no folder can be made")
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("XDG", "KINETREE"))}
    settings |= {"HOME": str(home), "PYTHONUTF8": "1", "KINETREE_OPTIMIZATION": "0"}
    settings["PYTHONPATH"] = str(Path(kt.__file__).parents[1])
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "seite.html"
    assert done.stdout.rstrip().endswith(os.path.join("Teile", "arm 1.stl"))


@pytest.mark.parametrize(
    "name", ["meshes\\arm.stl", ".\\meshes\\arm.stl", "package://r\\meshes\\arm.stl"]
)
def test_names_of_meshes_written_on_windows(tmp_path, name):
    (tmp_path / "r" / "meshes").mkdir(parents=True)
    (tmp_path / "r" / "package.xml").write_text("<package/>")
    (tmp_path / "r" / "meshes" / "arm.stl").write_bytes(STL)
    model = kt.load(robot_with(tmp_path / "r", name))
    assert Path(model.geometry[0].shape.path) == (tmp_path / "r" / "meshes" / "arm.stl").resolve()


def test_a_backslash_leads_no_further_than_a_slash(tmp_path):
    (tmp_path / "arm.stl").write_bytes(STL)
    folders = Folders(robot_with(tmp_path / "r", "x.stl"))
    for name in ("..\\arm.stl", "package://r\\..\\..\\arm.stl"):
        with pytest.raises(LoadError, match=r"lies outside the folders|no package"):
            folders.locate(name)


def test_a_backslash_may_be_part_of_a_name(tmp_path):
    path = robot_with(tmp_path / "r", "a\\b.stl")
    (path.parent / "a\\b.stl").write_bytes(STL)
    assert kt.load(path).geometry[0].shape.path.endswith("a\\b.stl")
