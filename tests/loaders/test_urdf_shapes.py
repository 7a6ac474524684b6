"""Visual and collision geometry, colours, meshes."""

import numpy as np
import pytest
from support.urdf_files import joint, link, quietly, read, robot

from kinetree.errors import LoadError
from kinetree.loaders import read as read_file
from kinetree.model.geometry import Box, Capsule, Cylinder, Mesh, Sphere
from kinetree.writers.urdf import to_urdf


def look(shape, kind="visual", more=""):
    return f"<{kind}>{more}<geometry>{shape}</geometry></{kind}>"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("<box size='1 2 3'/>", Box((1.0, 2.0, 3.0))),
        ("<sphere radius='0.5'/>", Sphere(0.5)),
        ("<cylinder radius='0.5' length='2'/>", Cylinder(0.5, 2.0)),
        ("<capsule radius='0.5' length='2'/>", Capsule(0.5, 2.0)),
    ],
)
def test_shapes(text, shape):
    for kind in ("visual", "collision"):
        model = quietly(robot(link("a", look(text, kind))))
        [found] = model.geometry
        assert found.shape == shape
        assert (found.visual, found.collision) == (kind == "visual", kind == "collision")
        assert found.body == 0


def test_place_and_name_survive_lumping():
    at = "<origin xyz='1 0 0'/>"
    inside = look("<box size='1 1 1'/>", more=at).replace("<visual", "<visual name='lid'")
    text = robot(
        link("a", ""),
        link("b"),
        link("c", inside),
        joint("j", "a", "b", "continuous", ""),
        joint("k", "b", "c", "fixed", at),
    )
    [lid] = quietly(text).geometry
    assert (lid.body, lid.name) == (1, "lid")
    assert lid.placement.r.tolist() == [2, 0, 0]


def test_several_shapes_on_a_link():
    model = quietly(
        robot(
            link("a", look("<sphere radius='1'/>") * 2 + look("<sphere radius='1'/>", "collision"))
        )
    )
    assert len(model.geometry) == 3


RED = "<color rgba='1 0 0 0.5'/>"


@pytest.mark.parametrize(
    ("first", "second", "colors"),
    [
        (f"<material name='m'>{RED}</material>", "", [(1, 0, 0, 0.5), None]),
        (f"<material name='m'>{RED}</material>", "<material name='m'/>", [(1, 0, 0, 0.5)] * 2),
        ("<material name='m'/>", f"<material name='m'>{RED}</material>", [(1, 0, 0, 0.5)] * 2),
        (
            f"<material>{RED}</material>",
            "<material><color rgba='0 2 0'/></material>",
            [(1, 0, 0, 0.5), (0, 1, 0, 1)],
        ),
    ],
)
def test_colours_by_name_and_in_place(first, second, colors):
    ball = "<sphere radius='1'/>"
    model = quietly(robot(link("a", look(ball, more=first) + look(ball, more=second))))
    assert [g.color for g in model.geometry] == colors


def test_colours_of_the_whole_robot():
    text = robot(
        f"<material name='m'>{RED}</material>",
        link("a", look("<sphere radius='1'/>", more="<material name='m'/>")),
    )
    assert quietly(text).geometry[0].color == (1, 0, 0, 0.5)


@pytest.mark.parametrize(
    ("inside", "notice"),
    [
        (look("<box size='1 0 1'/>"), "<box>: a shape of size 0 cannot be seen or touched"),
        (look(""), "<visual>: it has no shape that can be drawn"),
        ("<visual/>", "<visual>: it has no shape that can be drawn"),
        (look("<teapot/>"), "<visual>: it has no shape that can be drawn"),
        (
            look("<sphere radius='1'/>", more="<material name='m'/>"),
            "nothing in the file defines it",
        ),
        (
            look(
                "<sphere radius='1'/>", more="<material name='m'><texture filename='x'/></material>"
            ),
            "<texture>: kinetree does not use it",
        ),
        (
            look("<sphere radius='1'/>", "collision", "<material name='m'/>"),
            "<material name='m'>: ",
        ),
    ],
)
def test_what_cannot_be_drawn_is_noted(inside, notice):
    _, notices = read(robot(link("a", inside)))
    assert any(notice in n for n in notices)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (look("<box/>"), "<box>: attribute 'size' is missing"),
        (look("<box size='1 2'/>"), "'size' must be 3 numbers"),
        (look("<mesh/>"), "<mesh>: attribute 'filename' is missing"),
        (look("<mesh filename='a' scale='1 2'/>"), "'scale' must be 3 numbers, got 2"),
        (
            look("<sphere radius='1'/>", more="<material><color rgba='1'/></material>"),
            "4 numbers, got 1",
        ),
    ],
)
def test_a_shape_that_cannot_be_read_is_left_out(inside, message):
    for kind in ("visual", "collision"):
        model, notices = read(robot(link("a", inside.replace("visual", kind))))
        colored = "material" in inside  # loses its colour alone
        assert len(model.geometry) == colored
        assert message in " ".join(notices) or (kind == "collision" and colored)


def test_of_two_shapes_in_one_geometry_the_first_counts():
    model, notices = read(robot(link("a", look("<sphere radius='1'/><box size='1 1 1'/>"))))
    assert [g.shape for g in model.geometry] == [Sphere(1.0)]
    assert "<box>: a second shape, where the first counts" in notices[0]


def test_of_a_scale_of_four_numbers_three_count(tmp_path):
    (tmp_path / "m.stl").write_bytes(b"")
    (tmp_path / "r.urdf").write_text(
        robot(link("a", look("<mesh filename='m.stl' scale='1 2 3 4'/>")))
    )
    loaded = read_file(tmp_path / "r.urdf")
    assert loaded.model.geometry[0].shape.scale == (1.0, 2.0, 3.0)
    assert "'scale' has 4 numbers: the first three count" in str(loaded.notices[0])


def mesh_file(tmp_path, filename, scale=""):
    (tmp_path / "robot").mkdir(exist_ok=True)
    path = tmp_path / "robot" / "r.urdf"
    shape = f"<mesh filename='{filename}' {scale}/>"
    path.write_text(robot(link("a", look(shape))))
    return path


def test_mesh_is_found_but_not_opened(tmp_path):
    path = mesh_file(tmp_path, "part.stl", "scale='0.001 0.001 0.001'")
    (path.parent / "part.stl").write_bytes(b"not a mesh at all")
    loaded = read_file(path)
    assert loaded.notices == ()
    assert loaded.model.geometry[0].shape == Mesh(str(path.parent / "part.stl"), (0.001,) * 3)


def test_missing_mesh_is_noted_and_kept(tmp_path):
    loaded = read_file(mesh_file(tmp_path, "part.stl", "scale='2'"))
    assert "there is no file" in str(loaded.notices[0])
    assert loaded.model.geometry[0].shape.scale == (2.0,) * 3


def test_mesh_of_an_unknown_package_is_noted_and_kept_by_name(tmp_path):
    loaded = read_file(mesh_file(tmp_path, "package://nowhere/a.stl"))
    assert "no package 'nowhere' above or beside the file" in str(loaded.notices[0])
    assert loaded.model.geometry[0].shape.path == "package://nowhere/a.stl"


@pytest.mark.parametrize(
    "filename",
    [
        "../../../etc/passwd",
        "file:///etc/passwd",
        "/etc/passwd",
        "http://localhost:9/a.stl",
        "package://robot/../../x",
    ],
)
def test_meshes_outside_are_left_out(tmp_path, filename):
    loaded = read_file(mesh_file(tmp_path, filename))
    assert loaded.model.geometry == ()
    assert len(loaded.notices) == 2
    with pytest.raises(LoadError):
        read_file(mesh_file(tmp_path, filename), strict=True)


def test_shapes_keep_their_link_and_its_friction():
    ball = look("<sphere radius='0.1'/>", "collision", "<origin xyz='0 0 0.1'/>")
    text = robot(
        link("a", ball),
        link("calf", ball),
        link("foot", ball + ball),
        joint("knee", "a", "calf", "continuous", ""),
        joint("ankle", "calf", "foot", "fixed", "<origin xyz='0 0 -0.3' rpy='0.3 0 0'/>"),
        "<gazebo reference='foot'><mu1>0.6</mu1><mu2>0.7</mu2></gazebo>",
        "<gazebo reference='calf'><mu1>${mu}</mu1></gazebo>",
    )
    model, found = read(text)
    assert [g.link for g in model.geometry] == ["", "", "foot", "foot"]
    assert [g.surface and g.surface.friction for g in model.geometry] == [None, None, 0.7, 0.7]
    assert len(found) == 1
    assert "<gazebo reference='calf'>" in found[0]
    again = quietly(to_urdf(model))
    assert [g.link for g in again.geometry] == ["", "", "foot", "foot"]
    assert [g.surface for g in again.geometry] == [g.surface for g in model.geometry]
    for one, other in zip(again.geometry, model.geometry, strict=True):
        np.testing.assert_allclose(one.placement.r, other.placement.r, atol=1e-15)
        np.testing.assert_allclose(one.placement.E, other.placement.E, atol=1e-15)
