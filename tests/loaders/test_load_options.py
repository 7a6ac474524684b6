"""``floating_base`` and ``lump`` are honoured in every format, or a warning names them."""

import json

import mujoco
import pytest
from support.quiet import without_warnings

import kinetree as kt
from kinetree.interop import mujoco as ours
from kinetree.joints import Fixed, Free
from kinetree.loaders import load, loads
from kinetree.writers import save

FORMATS = ("urdf", "mjcf", "sdf", "toml", "json", "dh")
SDF = """<sdf version="1.9"><model name="arm">
  <link name="arm"/><link name="bulb"/>
  <joint name="hinge" type="revolute"><parent>world</parent><child>arm</child>
    <axis><xyz>0 1 0</xyz></axis></joint>
  <joint name="socket" type="fixed"><parent>arm</parent><child>bulb</child></joint>
</model></sdf>"""
DH = "# convention: modified\na,alpha,d,theta\n0,0,0,0\n1,0,0,0\n"


def lamp(base=None):
    """A hinged arm, and a bulb fixed to its end."""
    ball = kt.shapes.sphere(0.1, mass=1.0)
    builder = kt.ModelBuilder("lamp")
    if base is not None:
        builder.body("foot", joint=base, inertia=ball)
    on = None if base is None else "foot"
    builder.body("arm", on=on, joint=kt.Revolute("y"), inertia=ball, joint_name="hinge")
    builder.body("bulb", on="arm", joint=Fixed(), at=(0.0, 0, 0.4), inertia=ball)
    return builder.build()


@pytest.fixture
def files(tmp_path):
    """The lamp in every format; a table of Denavit–Hartenberg parameters has no fixed joints."""
    found = {name: tmp_path / f"lamp.{name}" for name in FORMATS}
    found["mjcf"], found["dh"] = tmp_path / "lamp.xml", tmp_path / "lamp.csv"
    for name in ("urdf", "mjcf", "toml", "json"):
        save(lamp(), found[name])
    found["sdf"].write_text(SDF)
    found["dh"].write_text(DH)
    return found


@pytest.mark.parametrize("name", ["urdf", "mjcf", "sdf", "toml", "json"])
def test_lump_is_honoured(files, name):
    merged, kept = (without_warnings(load, files[name], lump=lump) for lump in (True, False))
    assert [type(j) for j in merged.joint[1:]] == [kt.Revolute]
    assert merged.frame("bulb").body == 1
    assert [type(j) for j in kept.joint[1:]] == [kt.Revolute, Fixed]
    assert without_warnings(load, files[name]) == (kept if name in ("toml", "json") else merged)


def test_models_are_read_as_they_are_written(files):
    assert load(files["json"]) == load(files["toml"]) == lamp()


@pytest.mark.parametrize("name", ["sdf", "toml", "json", "dh"])
def test_floating_base_has_an_effect_or_says_that_it_has_none(files, name):
    with pytest.warns(kt.ModelWarning, match="floating_base=True: ") as caught:
        model = load(files[name], floating_base=True)
    assert model == without_warnings(load, files[name])
    if name != "sdf":
        assert f"a file of {name} says which joints are free" in str(caught[0].message)
        assert "kinetree.edit.floating adds one" in str(caught[0].message)


def test_floating_base_has_nothing_to_free_in_a_world_of_joints():
    text = "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    with pytest.warns(
        kt.ModelWarning, match="frees bodies on the world without a joint, and there are none"
    ):
        loads(text, floating_base=True)
    with pytest.warns(kt.ModelWarning, match="floating_base=True: the world has no body"):
        ours.from_model(mujoco.MjModel.from_xml_string(text), floating_base=True)


def test_floating_base_is_content_with_what_floats_already():
    floating = lamp(base=Free())
    assert loads(json.dumps(floating.to_dict()), floating_base=True) == floating


def test_floating_base_that_has_no_effect_is_an_error_if_strict(files):
    with pytest.raises(kt.LoadError, match="floating_base=True"):
        load(files["json"], floating_base=True, strict=True)


def test_a_table_in_toml_warns_too():
    text = 'dh = "modified"\n[[joint]]\na = 0\nalpha = 0\nd = 0\n'
    with pytest.warns(kt.ModelWarning, match="floating_base=True"):
        loads(text, "toml", floating_base=True)
