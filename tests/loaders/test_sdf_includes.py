"""SDF files that include others from disk, and no others."""

import numpy as np
import pytest
from support.sdf_files import joint, link, model, poses, sdf

from kinetree.errors import LoadError
from kinetree.loaders import load, read

GRIPPER = model(
    link("palm")
    + link("finger", "0 0 0.1 0 0 0")
    + joint("slide", "prismatic", "palm", "finger")
    + '<frame name="tip" attached_to="finger"><pose>0 0 0.05 0 0 0</pose></frame>',
    name="gripper",
)


@pytest.fixture
def folder(tmp_path):
    inner = tmp_path / "gripper"
    inner.mkdir()
    (inner / "model.config").write_text(
        "<model><sdf version='1.6'>old.sdf</sdf><sdf version='1.9'>model.sdf</sdf></model>"
    )
    (inner / "model.sdf").write_text(GRIPPER)
    return tmp_path


def arm(include, more=""):
    return model(
        link("hand", "0 0 1 0 0 0") + joint("w", "fixed", "world", "hand") + include + more,
        name="arm",
    )


def write(folder, text, name="arm.sdf"):
    (folder / name).write_text(text)
    return folder / name


def test_include_by_model_name_or_relative_path(folder):
    for uri in ("model://gripper", "gripper", "gripper/model.sdf"):
        pose = "<pose relative_to='hand'>0 0 0.2 0 0 0</pose>"
        include = f"<include><uri>{uri}</uri><name>g</name>{pose}</include>"
        m = load(write(folder, arm(include, joint("j", "revolute", "hand", "g::palm"))))
        assert m.body_names == ("world", "g::palm", "g::finger")
        np.testing.assert_allclose(poses(m)["g::tip"][:3, 3], [0, 0, 1.35])


def test_merged_include_has_no_prefix(folder):
    include = "<include merge='true'><uri>gripper</uri><pose relative_to='hand'/></include>"
    m = load(write(folder, arm(include, joint("j", "revolute", "hand", "palm"))))
    assert m.body_names == ("world", "palm", "finger")
    np.testing.assert_allclose(poses(m)["tip"][:3, 3], [0, 0, 1.15])


def test_include_into_a_world_static_and_placed(folder):
    include = (
        "<world name='w'><include><uri>gripper</uri><static>true</static>"
        "<placement_frame>tip</placement_frame><pose>0 0 2 0 0 0</pose></include></world>"
    )
    m = load(write(folder, sdf(include), "lab.world"))
    assert m.nv == 0
    np.testing.assert_allclose(poses(m)["gripper::tip"][:3, 3], [0, 0, 2])
    np.testing.assert_allclose(poses(m)["gripper::palm"][:3, 3], [0, 0, 1.85])


def test_notices_name_the_included_file(folder):
    (folder / "gripper" / "model.sdf").write_text(
        GRIPPER.replace("</model>", "<plugin name='p'/></model>")
    )
    found = read(write(folder, arm("<include><uri>gripper</uri></include>"))).notices
    (notice,) = found
    assert notice.file.endswith("gripper/model.sdf")
    assert "plugin" in notice.what


def test_files_that_include_each_other(folder):
    (folder / "gripper" / "model.sdf").write_text(model("<include><uri>../arm.sdf</uri></include>"))
    path = write(folder, arm("<include><uri>gripper</uri></include>"))
    with pytest.raises(LoadError, match="outside the folders"):
        load(path)
    with pytest.raises(LoadError, match="include each other"):
        load(path, folders=[folder])


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("/etc/passwd", "outside the folders"),
        ("../../../../etc/passwd", "outside the folders"),
        ("file:///etc/passwd", "outside the folders"),
        ("model://gripper/../../../etc/passwd", "outside the folders"),
        ("https://fuel.gazebosim.org/1.0/x", "kinetree fetches nothing"),
        ("nothing.sdf", "there is no file"),
        ("model://nothing", "no package 'nothing'"),
        ("", "is not a file name"),
    ],
)
def test_nothing_else_is_opened(folder, uri, message):
    path = write(folder, arm(f"<include><uri>{uri}</uri></include>"))
    with pytest.raises(LoadError, match=message) as caught:
        load(path)
    assert "arm.sdf:1: <uri>" in str(caught.value)


def test_model_config_cannot_point_outside(folder):
    (folder / "secret.sdf").write_text(GRIPPER)
    (folder / "gripper" / "model.config").write_text("<model><sdf>../secret.sdf</sdf></model>")
    with pytest.raises(LoadError, match="outside the folder of the model"):
        load(write(folder, arm("<include><uri>gripper</uri></include>")))


def test_symbolic_links_do_not_help(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "x.sdf").write_text(GRIPPER)
    (folder / "x.sdf").symlink_to(other / "x.sdf")
    with pytest.raises(LoadError, match="outside the folders"):
        load(write(folder, arm("<include><uri>x.sdf</uri></include>")))


def test_included_errors_name_their_own_file(folder):
    (folder / "gripper" / "model.sdf").write_text("<sdf version='1.9'>\n<model/></sdf>")
    with pytest.raises(
        LoadError, match=r"gripper/model.sdf:2: <model>: attribute 'name' is missing"
    ):
        load(write(folder, arm("<include><uri>gripper</uri></include>")))


def test_includes_that_double_each_time_are_stopped(folder):
    for k in range(12):
        twice = "".join(f"<include><uri>m{k + 1}.sdf</uri><name>{n}</name></include>" for n in "ab")
        write(folder, model(link("x") + twice, name="m"), f"m{k}.sdf")
    write(folder, model(link("x")), "m12.sdf")
    with pytest.raises(LoadError, match="more than 1000 files are included"):
        load(folder / "m0.sdf")
