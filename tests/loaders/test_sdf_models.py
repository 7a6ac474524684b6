"""Whole SDF files: what flies, worlds, includes, looks, notices."""

import math

import numpy as np
import pytest
from support.sdf_files import joint, link, links, load, model, notices, poses, sdf

import kinetree as kt
from kinetree.errors import LoadError, ModelWarning
from kinetree.loaders import read
from kinetree.model import geometry
from kinetree.writers.sdf import to_sdf


def test_a_model_flies_unless_joined_to_the_world():
    m = load(
        model(
            "<pose>0 0 2 0 0 1</pose>"
            + link("a", "1 0 0 0 0 0")
            + link("b", "1 0 1 0 0 0")
            + joint("j", "revolute", "a", "b")
        )
    )
    assert m.joint_names == ("a_floating", "j")
    assert m.joint[1] == kt.Free()
    (initial,) = m.postures
    assert initial.name == "initial"
    places = links(m, initial.q)
    np.testing.assert_allclose(places["a"][:3, 3], [math.cos(1), math.sin(1), 2], atol=1e-15)
    np.testing.assert_allclose(places["b"][:3, 3], [math.cos(1), math.sin(1), 3], atol=1e-15)


def test_the_canonical_link_is_what_flies():
    text = model(
        link("a") + link("b") + joint("j", "revolute", "a", "b"), attributes='canonical_link="b"'
    )
    m = load(text)
    assert m.joint_names == ("b_floating", "j")
    assert m.joint[2] == kt.joints.Reversed(kt.Revolute("z"))


def test_links_of_the_model_itself_come_before_those_of_models_in_it():
    inner = '<model name="in">' + link("x") + "</model>"
    m = load(model(inner + link("a") + joint("j", "revolute", "a", "in::x")))
    assert m.joint_names[0] == "a_floating"
    m = load(model(inner + '<frame name="f"/>'))
    assert m.joint_names == ("in::x_floating",)
    assert m.frames[0].body == 1


def test_floating_base_changes_nothing():
    flying = model(link("a"))
    assert load(flying, floating_base=True) == load(flying)


def test_inertia_relative_to_anything_but_its_link_is_noted(tmp_path):
    pose = "<inertial><pose relative_to='b'>1 0 0 0 0 0</pose></inertial>"
    found = notices(model(f"<link name='a'>{pose}</link>" + link("b")), tmp_path)
    assert len(found) == 1
    assert "relative to the link" in found[0]


def test_a_static_model_stands():
    m = load(model("<static>true</static>" + link("a", "1 2 3 0 0 0")))
    assert m.nv == 0
    np.testing.assert_array_equal(poses(m)["a"][:3, 3], [1, 2, 3])
    m = load(model("<static>true</static>" + link("a", "1 2 3 0 0 0")), lump=False)
    assert m.joint_names == ("a_static",)


def test_world_with_two_models_and_gravity():
    world = (
        '<world name="lab"><gravity>0 0 -1.62</gravity>'
        '<model name="one"><pose>1 0 0 0 0 0</pose>' + link("a") + "</model>"
        '<frame name="spot"><pose>0 5 0 0 0 0</pose></frame>'
        '<model name="two"><pose relative_to="spot">0 0 1 0 0 0</pose>' + link("a") + "</model>"
        '<joint name="w" type="fixed"><parent>world</parent><child>two::a</child></joint></world>'
    )
    m = load(sdf(world))
    assert m.name == "lab"
    assert m.body_names == ("world", "one::a")
    assert m.gravity.tolist() == [0, 0, -1.62]
    np.testing.assert_array_equal(poses(m)["two::a"][:3, 3], [0, 5, 1])
    assert (
        load(sdf('<world name="w"><model name="m"><link name="a"/></model></world>')).gravity[2]
        == -9.8
    )


def test_inertia_with_offset_rotation_and_products(rng):
    text = (
        "<link name='a'><inertial><pose>1 2 3 0 0 1.5707963267948966</pose><mass>2</mass><inertia>"
        "<ixx>3</ixx><iyy>4</iyy><izz>5</izz><ixy>0.1</ixy><ixz>0.2</ixz><iyz>0.3</iyz></inertia>"
        "</inertial></link>"
    )
    I = load(model(text)).inertia[1]
    R = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    I_C = R @ np.array([[3, 0.1, 0.2], [0.1, 4, 0.3], [0.2, 0.3, 5]]) @ R.T
    expected = kt.Inertia.from_mass_center(2, (1, 2, 3), I_C)
    np.testing.assert_allclose(I.to_matrix(), expected.to_matrix(), atol=1e-14)


def test_link_without_inertia_has_that_of_the_standard():
    I = load(model('<link name="a"/>')).inertia[1]
    np.testing.assert_array_equal(I.to_matrix(), np.eye(6))


def test_automatic_inertia_from_collisions():
    box = "<geometry><box><size>1 2 3</size></box></geometry>"
    text = (
        "<link name='a'><inertial auto='true'><density>10</density></inertial>"
        f"<collision name='c'><pose>0 0 1 0 0 0</pose>{box}</collision></link>"
    )
    I = load(model(text)).inertia[1]
    expected = kt.shapes.box(1, 2, 3, density=10, at=(0, 0, 1))
    np.testing.assert_allclose(I.to_matrix(), expected.to_matrix())
    half = load(model(text.replace("</density>", "</density><mass>30</mass>"))).inertia[1]
    np.testing.assert_allclose(half.to_matrix(), 0.5 * expected.to_matrix())
    with pytest.raises(LoadError, match="no collision shape"):
        load(model('<link name="a"><inertial auto="true"/></link>'))


def test_shapes_and_colours(tmp_path):
    (tmp_path / "m.stl").write_text("solid\nendsolid\n")
    shapes = {
        "<box><size>1 2 3</size></box>": geometry.Box((1, 2, 3)),
        "<sphere><radius>2</radius></sphere>": geometry.Sphere(2),
        "<cylinder><radius>1</radius><length>2</length></cylinder>": geometry.Cylinder(1, 2),
        "<capsule><radius>1</radius><length>2</length></capsule>": geometry.Capsule(1, 2),
        "<ellipsoid><radii>1 2 3</radii></ellipsoid>": geometry.Ellipsoid((1, 2, 3)),
        "<plane><normal>1 0 0</normal><size>3 4</size></plane>": geometry.Plane((3, 4)),
        "<mesh><uri>m.stl</uri><scale>1 1 2</scale></mesh>": geometry.Mesh(
            str(tmp_path.resolve() / "m.stl"), (1, 1, 2)
        ),
    }
    looks = "".join(
        f"<visual name='v{k}'><pose>{k} 0 0 0 0 0</pose><geometry>{text}</geometry><material>"
        f"<diffuse>0.1 0.2 0.3 1</diffuse></material></visual>"
        for k, text in enumerate(shapes)
    )
    looks += "<collision name='c'><geometry><box/></geometry></collision>"
    path = tmp_path / "robot.sdf"
    path.write_text(model(f"<link name='a'>{looks}</link>"))
    m, found, _ = read(path)
    assert not found
    assert [g.shape for g in m.geometry[:-1]] == list(shapes.values())
    for k, g in enumerate(m.geometry[:-1]):
        assert (g.visual, g.collision, g.name, g.color) == (
            True,
            False,
            f"v{k}",
            (0.1, 0.2, 0.3, 1),
        )
        assert g.placement.r.tolist() == [k, 0, 0]
    plane = m.geometry[5].placement
    np.testing.assert_allclose(plane.to_pose()[:3, 2], [1, 0, 0])  # z of the shape: the normal
    assert (m.geometry[-1].visual, m.geometry[-1].collision) == (False, True)


def test_what_is_not_used_is_listed_with_its_line(tmp_path):
    text = """<sdf version="1.9">
      <model name="m">
        <self_collide>true</self_collide>
        <link name="a" custom="1">
          <gravity>false</gravity>
          <visual name="v"><geometry><heightmap/></geometry></visual>
          <collision name="c"><geometry><sphere/></geometry><surface><x/></surface></collision>
        </link>
        <plugin name="p" filename="x.so"/>
      </model>
    </sdf>"""
    found = notices(text, tmp_path)
    assert [n.split(": ")[:2] for n in found] == [
        ["4", "attribute 'custom' of <link name='a'>"],
        ["5", "<gravity>"],
        ["7", "<x>"],
        ["9", "<plugin name='p'>"],
        ["3", "<self_collide>"],
        ["6", "<heightmap>"],
    ]
    with pytest.raises(LoadError, match=r"strict=True, [^\n]*\n(.*\n)*.*<self_collide>"):
        load(text, strict=True)


def test_impossible_inertia_is_noted_and_kept(tmp_path):
    text = model(link("a", mass=-1))
    assert any("physically impossible" in n for n in notices(text, tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<sdf><model name='m'/></sdf>", "'version' is missing"),
        ("<sdf version='x'><model name='m'/></sdf>", "version must be such as '1.9', got 'x'"),
        (
            "<sdf version='1.4'><model name='m'/></sdf>",
            "SDF 1.4 gave axes and poses other meanings",
        ),
        ("<sdf version='1.9'/>", "neither a <world> nor a <model>"),
        ("<sdf version='1.9'><model name='m'/></sdf>", "the file has no <link>"),
        ("<robot name='m'/>", "the root element of an SDF file is <sdf>"),
    ],
)
def test_bad_file(text, message):
    with pytest.raises(LoadError, match=message):
        load(text)


def test_surfaces_are_read_and_written():
    def ball(name, surface):
        surface = f"<surface>{surface}</surface>" if surface else ""
        shape = "<geometry><sphere><radius>0.1</radius></sphere></geometry>"
        return f"<link name='{name}'><collision name='shape'>{shape}{surface}</collision></link>"

    m = load(
        model(
            ball("a", "<friction><ode><mu>0.4</mu><mu2>0.4</mu2></ode></friction>")
            + ball("b", "<bounce><restitution_coefficient>0.5</restitution_coefficient></bounce>")
            + ball("c", "<contact><collide_bitmask>0x02</collide_bitmask></contact>")
            + ball("d", "<contact><collide_bitmask>4</collide_bitmask></contact>")
            + ball("e", "")
        )
    )
    every = {"contype": 0xFFFF, "conaffinity": 0xFFFF}
    surfaces = [
        geometry.Surface(friction=0.4, **every), geometry.Surface(restitution=0.5, **every),
        geometry.Surface(contype=2, conaffinity=2), geometry.Surface(contype=4, conaffinity=4),
        None,
    ]  # fmt: skip
    assert [g.surface for g in m.geometry] == surfaces
    scene = kt.contact.Scene(m)
    assert len(scene.pairs) == 10 - 1  # all but c and d
    assert "c/d" not in scene.pair_names
    assert scene.friction[scene.pair_names.index("a/c")] == 0.4
    assert scene.restitution[scene.pair_names.index("b/c")] == 0.5
    again = kt.loads(to_sdf(m), format="sdf")
    assert [g.surface for g in again.geometry] == surfaces
    with pytest.warns(ModelWarning, match=r"collide_bitmask.*must be an integer, got 'x'"):
        load(model(ball("a", "<contact><collide_bitmask>x</collide_bitmask></contact>")))
