"""Flexible bodies and plugins are left out of MJCF by name, and the rest of the robot is loaded."""

import numpy as np
import pytest

from kinetree.errors import LoadError
from kinetree.loaders import read

_ARM = '<body name="b"><joint name="j"/><geom name="g" size=".1"/><site name="s"/></body>'


def world(inside=_ARM, before="", after=""):
    return f"<mujoco>\n{before}\n<worldbody>\n{inside}\n</worldbody>\n{after}\n</mujoco>"


def loaded(tmp_path, text):
    path = tmp_path / "robot.xml"
    path.write_text(text)
    model, notices, _ = read(path)
    return model, [(n.effect, n.line, n.what, n.why) for n in notices]


CLOTH = (
    '<flexcomp name="rag" type="grid" count="3 3 1" spacing=".1 .1 .1" mass="1" radius=".01" '
    'dim="2">{}</flexcomp>'
)


@pytest.mark.parametrize(
    "flexible",
    [
        CLOTH.format('<edge equality="true"/>'),
        CLOTH.format(
            '<plugin plugin="mujoco.elasticity.shell"><config key="young" value="1"/></plugin>'
        ),
        '<body name="rag"><flexcomp name="rag" type="mesh" file="not there.obj" dim="2"/></body>',
        '<composite prefix="rag" type="cable" count="9 1 1" curve="s" size="1"/>',
        '<composite prefix="rag" type="cloth" count="9 9 1" spacing=".1"/>',
    ],
)
def test_a_robot_loads_without_its_flexible_parts(flexible, tmp_path):
    model, notices = loaded(
        tmp_path,
        world(
            _ARM + flexible,
            after='<equality><connect name="c" body1="b" body2="rag_4" anchor="0 0 0"/>'
            "</equality>\n"
            '<sensor><framepos objtype="body" objname="rag_0"/></sensor>\n'
            '<keyframe><key name="k" qpos="1 2 3 4 5 6 7 8 9"/></keyframe>',
        ),
    )
    plain, _ = loaded(tmp_path, world())
    assert model.joint_names == ("j",)
    np.testing.assert_array_equal(
        model.bodies[0].inertia.parameters(), plain.bodies[0].inertia.parameters()
    )
    tag = "composite" if "composite" in flexible else "flexcomp"
    (effect, line, what, why), *rest = [n for n in notices if n[0] == "motion"]
    assert (effect, line) == ("motion", 4)
    assert what.startswith(f"<{tag}")
    assert why == (
        "a flexible body, and kinetree has rigid ones only: left out with its mass and shape; the "
        "rest is loaded"
    )
    assert rest == [("motion", 6, "<connect name='c'>", "it refers to 'rag_4', which is left out")]
    assert ("control", 7, "<framepos>", "it refers to 'rag_0', which is left out") in notices
    assert ("control", 8, "<key name='k'>", "it has variables of what is left out") in notices


def test_bodies_at_the_vertices_of_a_flex_stay(tmp_path):
    flex = (
        '<deformable><flex name="f" dim="1" body="b c" element="0 1" radius=".01"/></deformable>'
        '<equality><flex flex="f"/></equality>'
    )
    other = _ARM.replace('name="', 'name="c').replace('"cb"', '"c"')
    model, notices = loaded(tmp_path, world(_ARM + other, after=flex))
    assert model.body_names == ("world", "b", "c")
    motion = [n for n in notices if n[0] == "motion"]
    assert [n[2] for n in motion] == ["<flex name='f'>", "<flex>"]
    assert "nothing holds the bodies at its vertices together" in motion[0][3]
    assert motion[1][3] == "it refers to 'f', which is left out"


def test_a_file_of_nothing_but_flexible_bodies_is_rejected_by_name(tmp_path):
    with pytest.raises(
        LoadError,
        match=r"robot.xml:4: <flexcomp name='rag'>: nothing moves here but what kinetree leaves "
        r"out: flexible bodies, and shapes of plugins",
    ):
        loaded(tmp_path, world(CLOTH.format("")))


def test_a_body_goes_with_its_only_mass(tmp_path):
    rope = '<composite prefix="r" type="rope" count="9 1 1"/>'
    body = f'<body name="h"><freejoint name="f"/><frame><body name="i">{rope}</body></frame></body>'
    after = (
        '<actuator><motor joint="f"/><motor joint="j"/></actuator>\n'
        '<equality><weld body1="h" body2="b"/></equality>'
    )
    model, notices = loaded(tmp_path, world(_ARM + body, after=after))
    assert model.body_names == ("world", "b")
    assert [(n[1], n[2]) for n in notices if n[0] == "motion"] == [
        (4, "<composite>"), (4, "<body name='h'>"), (7, "<weld>"),
    ]  # fmt: skip
    assert notices[1][3] == "without what is left out it has no mass: left out, too"
    assert len(model.actuators) == 1
    with pytest.raises(LoadError, match=r"robot.xml:4: <composite>: nothing moves here but what"):
        loaded(tmp_path, world(body))


def test_a_rigid_flexcomp_is_a_shape_alone(tmp_path):
    rigid = '<flexcomp name="f" type="grid" count="2 2 2" dim="3" rigid="true" radius=".01"/>'
    arm = _ARM.replace("<site", rigid + "<site")
    key = '<keyframe><key name="k" qpos="1"/></keyframe>'
    model, notices = loaded(tmp_path, world(arm, after=key))
    assert notices == [
        (
            "contact",
            4,
            "<flexcomp name='f'>",
            "a shape that collides as a flexible body does, which kinetree has not: left out",
        )
    ]
    assert model.posture("k").q == (1.0,)


EXTENSION = (
    '<extension><plugin plugin="mine.drive"><instance name="pid"><config key="kp" value="4"/>'
    '</instance></plugin><plugin plugin="mujoco.sdf.torus"><instance name="ring"/></plugin>'
    "</extension>"
)
RING = '<geom name="r" type="sdf"><plugin instance="ring"/></geom>'
BY = "which kinetree does not run"


@pytest.mark.parametrize(
    ("inside", "after", "expected"),
    [
        (
            _ARM,
            '<actuator><motor joint="j"/>\n<plugin name="a" joint="j" instance="pid" actdim="1" '
            'ctrlrange="-1 1"/></actuator>',
            ("control", 7, "<plugin name='a'>",
             f"its force comes from plugin 'mine.drive', {BY}: the actuator exerts none"),
        ),
        (
            _ARM,
            '<sensor><plugin name="t" plugin="mujoco.sensor.touch_grid" objtype="site" objname="s">'
            '<config key="size" value="7 7"/></plugin></sensor>',
            ("control", 6, "<plugin name='t'>",
             f"a sensor of plugin 'mujoco.sensor.touch_grid', {BY}: left out"),
        ),
        (
            _ARM.replace("<geom", '<plugin plugin="mine.wind"/><geom'), "",
            ("motion", 4, "<plugin>", f"passive forces of plugin 'mine.wind', {BY}: left out"),
        ),
        (
            _ARM.replace("<site", f"{RING}<site"),
            '<contact><pair geom1="g" geom2="r"/></contact>',
            ("motion", 4, "<geom name='r'>",
             f"its shape comes from plugin 'mujoco.sdf.torus', {BY}: left out, with the mass that "
             "it gives the body"),
        ),
        (
            RING + _ARM, "",
            ("contact", 4, "<geom name='r'>",
             f"its shape comes from plugin 'mujoco.sdf.torus', {BY}: left out"),
        ),
    ],
)  # fmt: skip
def test_what_a_plugin_would_compute_is_left_out_by_name(inside, after, expected, tmp_path):
    model, notices = loaded(tmp_path, world(inside, EXTENSION, after))
    assert model.joint_names == ("j",)
    assert expected in notices
    assert not any("extension" in n[2] for n in notices)
    if "pair" in after:
        assert ("contact", 6, "<pair>", "it refers to 'r', which is left out") in notices
    if "actuator" in after:
        assert [a.name for a in model.actuators][1:] == ["a"]


def test_meshes_of_plugins_go_with_the_geoms_that_have_them(tmp_path):
    asset = '<asset><mesh name="gear"><plugin instance="ring"/></mesh></asset>'
    geom = '<geom name="x" type="sdf" mesh="gear"><plugin instance="ring"/></geom>'
    shown = '<geom name="y" type="mesh" mesh="gear"/>'
    arm = _ARM.replace(
        "<site", f'{geom}{shown}<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><site'
    )
    model, notices = loaded(tmp_path, world(arm, EXTENSION + asset))
    assert [g.name for g in model.geometry] == ["g"]
    assert ("contact", 4, "<geom name='y'>", "it refers to 'gear', which is left out") in notices


def test_a_plugin_that_nothing_uses_is_a_setting(tmp_path):
    _, notices = loaded(tmp_path, world(before=EXTENSION))
    assert notices == [
        ("setting", 2, "<extension>", "kinetree runs no plugins, and nothing here uses it")
    ]


def test_errors_name_what_was_left_out(tmp_path):
    body = f'<body name="b"><joint/>{RING}<geom size=".1" mass="0"/></body>'
    with pytest.raises(
        LoadError, match=r"mass and inertia .* \(left out before: <geom name='r'> in line 4\)"
    ):
        loaded(tmp_path, world(body, EXTENSION))
