"""Nothing of an MJCF file is dropped in silence."""

import mujoco
import numpy as np
import pytest

from kinetree.errors import LoadError
from kinetree.loaders import loads, read
from kinetree.model.triangles import read_triangles

_BODY = '<body name="b"><joint name="j"/><geom name="g" size=".1"/></body>'


def world(inside=_BODY, before="", after=""):
    return f"<mujoco>\n{before}\n<worldbody>\n{inside}\n</worldbody>\n{after}\n</mujoco>"


def notices(tmp_path, text):
    path = tmp_path / "robot.xml"
    path.write_text(text)
    return read(path).notices


JOINT = '<body><joint name="j" {}/><geom size=".1"/></body>'


@pytest.mark.parametrize(
    ("text", "line", "what", "why"),
    [
        (world(before="<visual><map zfar='3'/></visual>"), 2, "<visual>", "pictures"),
        (world(before="<statistic extent='3'/>"), 2, "<statistic>", "simulation"),
        (world(before="<option timestep='.1'/>"), 2, "attribute 'timestep' of <option>", "simulat"),
        (world(before="<size njmax='3'/>"), 2, "<size>", "simulation"),
        (world(before="<compiler settotalmass='3'/>"), None, "MuJoCo", "deprecated"),
        (world("<light/><camera/>" + _BODY), 4, "<light>", "pictures"),
        (world(JOINT.format("margin='1'")), 4, "attribute 'margin' of <joint>", "exact"),
        (world(JOINT.format("type='ball' range='0 90'")), 4, "<joint name='j'>", "largest angle"),
        (world(JOINT.format("damping='1 2'")), 4, "<joint name='j'>", "beyond the linear"),
        (world(JOINT.format("stiffness='1 2'")), 4, "<joint name='j'>", "beyond the linear"),
        (world(JOINT.format("stiffness='1' springyield='2'")), 4, "<joint name='j'>", "yields"),
        (
            world(JOINT.format("type='free' stiffness='1'")),
            4,
            "<joint name='j'>",
            "spring of a free",
        ),
        (
            world(
                "<body name='b' gravcomp='1'><joint name='j' actuatorgravcomp='true' "
                "actuatorfrcrange='-1 1'/><geom size='.1'/></body>"
            ),
            4,
            "<joint name='j'>",
            "actuatorgravcomp compensates nothing in MuJoCo where there are no actuators",
        ),
        (
            world("<body name='b' mocap='true'><geom size='.1'/></body>"),
            4,
            "<body name='b'>",
            "mocap",
        ),
        (
            world(
                before="<option><flag damper='disable'/></option>",
                inside=JOINT.format("damping='1'"),
            ),
            4,
            "<joint name='j'>",
            "switches its damping off",
        ),
        (
            world(
                "<geom type='hfield' hfield='h'/>",
                "<asset><hfield name='h' nrow='2' ncol='2' size='1 1 1 1'/></asset>",
            ),
            4,
            "<geom>",
            "smooth surface through its heights",
        ),
        (world(after="<sensor><user dim='3'/></sensor>"), 6, "<user>", "no such sensor"),
        (
            world(after="<sensor><jointpos joint='no'/></sensor>"),
            None,
            "<sensor>",
            "all sensors are left out",
        ),
        (
            world(before="<option><flag contact='disable'/></option>"),
            2,
            "<flag>",
            "contact is switched off",
        ),
        (
            world(
                _BODY + "<site name='s'/><body pos='1 0 0'><joint type='ball'/><geom size='.1'/>"
                "<site name='e'/></body>",
                after="<tendon><spatial name='t' armature='1'><site site='s'/><site site='e'/>"
                "</spatial></tendon>",
            ),
            6,
            "<spatial name='t'>",
            "its armature is not represented: joint",
        ),
        (
            world(
                _BODY + "<body><joint name='k'/><geom size='.1'/></body>",
                after="<tendon><fixed name='t'><joint joint='j' coef='1'/><joint joint='k' "
                "coef='2'/></fixed><fixed name='s'><joint joint='k' coef='1'/></fixed></tendon>"
                "<equality><tendon name='e' tendon1='t' tendon2='s' polycoef='0 1 2 0 0'/>"
                "</equality>",
            ),
            6,
            "<tendon name='e'>",
            "a polynomial law in which no joint can follow the others alone",
        ),
        (
            world(after="<equality><joint joint1='j'/><joint name='e' joint1='j'/></equality>"),
            6,
            "<joint name='e'>",
            "it says nothing beside the other equalities",
        ),
        (
            world(
                _BODY + "<body name='m' mocap='true'/>",
                after="<equality><weld name='e' body1='m' body2='b'/></equality>",
            ),
            6,
            "<weld name='e'>",
            "mocap body 'm', which nothing moves here; World.release('e') lets it go",
        ),
        (
            world(
                after="<equality><connect name='e' body1='b' anchor='0 0 0' active='false'/>"
                "</equality>"
            ),
            6,
            "<connect name='e'>",
            "it would be a spherical loop joint. World.tie('e', 'b', 'world', joint=kt.Spherical()",
        ),
        (
            world(
                after="<equality><connect name='e' body1='b' anchor='0 0 0' solref='1 1'/>"
                "</equality>"
            ),
            6,
            "attribute 'solref' of <connect>",
            "exact",
        ),
        (
            world(after="<keyframe><key qpos='1' ctrl='' time='3'/></keyframe>"),
            6,
            "attribute 'time' of <key>",
            "a posture has no time",
        ),
        (
            world("<geom size='1' solref='1 1'/><geom size='1' solmix='2' solimp='.9'/>" + _BODY),
            4,
            "soft contact (solref, solimp, solmix) (2 times)",
            "no such parameters",
        ),
    ],
)
def test_what_is_not_represented_is_noted(text, line, what, why, tmp_path):
    found = notices(tmp_path, text)
    matching = [n for n in found if n.what == what and why in n.why]
    assert matching, [str(n) for n in found]
    assert matching[0].line == line


def test_a_file_of_which_everything_is_represented_has_no_notices(tmp_path):
    text = world(
        before="<compiler angle='radian' autolimits='true'/><option gravity='0 0 -1'/>"
        "<default><joint damping='1'/><default class='x'><geom size='.2'/></default></default>",
        after="<equality><joint joint1='j'/></equality><actuator><motor joint='j'/></actuator>"
        "<keyframe><key qpos='1'/></keyframe>",
    )
    assert notices(tmp_path, text) == ()


def test_settings_of_an_element_are_one_notice(tmp_path):
    text = world(before="<option timestep='.1' cone='elliptic'/><option cone='pyramidal'/>")
    (notice,) = notices(tmp_path, text)
    assert notice.what == "attributes 'timestep', 'cone' of <option> (2 times)"
    assert (notice.effect, notice.why) == ("setting", "it is a setting of MuJoCo's simulation")


def test_attributes_of_other_namespaces_say_nothing_about_the_robot(tmp_path):
    text = world().replace(
        "<mujoco>", '<mujoco xmlns:x="http://www.w3.org/2001/XMLSchema-instance" x:schema="y">'
    )
    assert notices(tmp_path, text) == ()


@pytest.mark.parametrize("kind", ["mesh", "sdf"])
@pytest.mark.parametrize(
    "mesh", ['vertex="0 0 0  1 0 0  0 1 0  0 0 1"', 'builtin="sphere" params="1"']
)
def test_meshes_without_a_file_are_kept_in_the_cache(tmp_path, kind, mesh):
    """Corners in coordinates of the body are those of MuJoCo's mesh."""
    asset = f'<asset><mesh name="m" {mesh}/></asset>'
    geom = f'<geom name="g" type="{kind}" mesh="m" pos="1 2 3" euler="10 20 30"/>'
    text = world(f'<body name="b"><joint/>{geom}</body>', asset)
    assert notices(tmp_path, text) == ()
    (shape,) = loads(text).geometry
    mj_model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj_model)
    mujoco.mj_forward(mj_model, data)
    X = shape.placement
    ours = read_triangles(shape.shape.path).vertices @ X.E + X.r
    theirs = mj_model.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
    assert shape.collision


def test_strict_makes_it_an_error():
    text = world("<light/>" + _BODY)
    with pytest.raises(LoadError, match=r"<text>:4: <light>: it is for pictures"):
        loads(text, "mjcf", strict=True)
    assert "<text>:4: <light>" in str(loads(text, "mjcf").report)


@pytest.mark.parametrize(
    ("before", "inside", "after", "effect"),
    [
        ("", JOINT.format("damping='1 2'"), "", "motion"),
        ("", "<body mocap='true'><geom size='.1'/></body>" + _BODY, "", "motion"),
        ("", _BODY.replace("<geom", "<geom solref='1 1'"), "", "setting"),
        ("<option><flag contact='disable'/></option>", _BODY, "", "contact"),
        ("", _BODY.replace("<geom", "<geom surfacevel='1 0 0 0 0 1'"), "", "contact"),
        ("", _BODY, "<actuator><motor joint='j' delay='.1' nsample='3'/></actuator>", "control"),
        ("", _BODY, "<sensor><clock/><user dim='1'/></sensor>", "control"),
        ("<option timestep='.1'/>", _BODY, "", "setting"),
        ("<option><flag damper='disable'/></option>", JOINT.format("damping='1'"), "", "setting"),
        ("", _BODY, "<equality><joint joint1='j' active='false'/></equality>", "setting"),
        ("<custom><numeric name='n' data='1'/></custom>", _BODY, "", "setting"),
        ("", "<light/>" + _BODY, "", "picture"),
        ("", _BODY.replace("<geom", "<site rgba='1 1 1 1'/><geom"), "", "picture"),
    ],
)
def test_what_is_different_without_it(before, inside, after, effect, tmp_path):
    found = notices(tmp_path, world(inside, before, after))
    assert {n.effect for n in found} == {effect}, [str(n) for n in found]
