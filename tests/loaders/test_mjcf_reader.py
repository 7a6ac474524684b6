"""What an MJCF file says, as a model."""

import numpy as np
import pytest
from support.mujoco_mechanisms import TREES, loaded

import kinetree as kt
from kinetree.errors import LoadError
from kinetree.joints import Fixed, Free, Prismatic, Revolute, Spherical
from kinetree.loaders import read
from kinetree.model import model as of_model
from kinetree.model import validate, validate_shapes
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Sphere

TETRAHEDRON = b"v 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
_BODY = '<body name="b"><joint name="j"/><geom name="g" size=".1"/></body>'


def world(inside=_BODY, before="", after=""):
    return f"<mujoco model='m'>{before}<worldbody>{inside}</worldbody>{after}</mujoco>"


@pytest.mark.parametrize(
    ("kind", "joint"),
    [("hinge", Revolute("y")), ("slide", Prismatic("y")), ("ball", Spherical()), ("free", Free())],
)
def test_each_joint_of_mjcf_has_one_here(kind, joint):
    model = loaded(world(f'<body><joint type="{kind}" axis="0 2 0"/><geom size=".1"/></body>'))
    assert model.joint[1] == joint
    assert model.body_names == ("world", "body_1")
    assert model.joint_names == ("body_1_joint",)


def test_several_joints_become_a_chain_of_massless_bodies():
    model = loaded(TREES["several joints"])
    assert model.joint_names == ("shoulder", "a", "b", "c", "d", "tip")
    assert model.body_names[1:] == ("arm", "link_1", "link_2", "link_3", "link", "tip_link")
    assert [bool(body.inertia.mass) for body in model.bodies] == [1, 0, 0, 0, 1, 1]


def test_a_body_without_a_joint_becomes_a_frame_or_stays():
    lumped, apart = (loaded(TREES["static bodies"], lump=lump) for lump in (True, False))
    assert {"table", "bracket", "camera"} <= set(lumped.frame_names)
    assert {"table", "bracket", "camera"} <= set(apart.body_names)
    assert isinstance(apart.joint[1], Fixed)
    total = [sum(b.inertia.mass for b in m.bodies) for m in (lumped, apart)]
    assert total[1] - total[0] == pytest.approx(apart.bodies[0].inertia.mass)  # the table stands


def test_the_frame_of_a_body_away_from_its_joint_stays():
    model = loaded(TREES["hinge"])
    link = model.frame("link_link")
    np.testing.assert_allclose(link.placement.r, [-0.3, -0.1, 0.1])


def test_limits_count_from_the_reference():
    model = loaded(TREES["reference position"])
    limits = model.bodies[model.joint_index("j") - 1].limits
    assert limits is not None
    np.testing.assert_allclose(np.degrees([*limits.lower, *limits.upper]), [-70, 20])


def test_force_limits():
    text = world(
        '<body><joint name="j" actuatorfrcrange="-3 3" range="-inf 1"/><geom size=".1"/></body>'
    )
    limits = loaded(text).bodies[0].limits
    assert limits is not None
    assert limits.effort == (3.0,)
    assert limits.lower == (-np.inf,)


def test_colors_that_are_too_bright_do_not_refuse_a_robot():
    text = '<body><joint/><geom size=".1" rgba="2 .5 0 1"/></body>'
    (shape,) = loaded(world(text)).geometry
    assert shape.color == (1.0, 0.5, 0.0, 1.0)


def test_force_limits_that_differ_in_the_two_directions():
    text = '<body><joint name="j" actuatorfrcrange="-3 1"/><geom size=".1"/></body>'
    (body,) = loaded(world(text)).bodies
    assert body.limits == kt.Limits(effort=3, effort_lower=-3, effort_upper=1)


def test_keyframes_become_postures():
    inside = (
        '<body name="f"><freejoint/><geom size=".1"/></body>'
        '<body name="b" pos="1 0 0"><joint ref="90"/><geom size=".1"/></body>'
    )
    key = (
        '<keyframe><key name="home" qpos="1 2 3 0 0 0 2 1" qvel="1 0 0 0 0 4 5"/><key/></keyframe>'
    )
    model = loaded(world(inside, after=key))
    home, other = model.postures
    np.testing.assert_allclose(home.q, [1, 2, 3, 0, 0, 0, 1, 1 - np.pi / 2])
    np.testing.assert_allclose(home.qd, [0, 0, 4, -1, 0, 0, 5], atol=1e-15)
    assert other.name == "key_1"


def test_where_a_free_body_starts_is_a_posture():
    model = loaded(world('<body pos="1 2 3"><freejoint/><geom size=".1"/></body>'))
    (start,) = model.postures
    assert start.name == "qpos0"
    assert start.q.tolist() == [1, 2, 3, 1, 0, 0, 0]
    assert loaded(world('<body><freejoint/><geom size=".1"/></body>')).postures == ()


def test_sites_become_frames_with_unique_names():
    inside = (
        '<body name="b"><joint/><geom size=".1"/><site name="b" pos="0 0 1"/><site pos="0 1 0"/>'
        "</body>"
    )
    model = loaded(world(inside))
    assert model.frame_names == ("b_site", "site_1")
    np.testing.assert_array_equal(model.frame("b_site").placement.r, [0, 0, 1])


def test_motors_become_actuators():
    after = (
        '<actuator><motor name="a" joint="j" gear="50" ctrlrange="-2 3" forcerange="-1 1"/>'
        '<general joint="j" gear="2" gainprm="-4" forcerange="-1 8"/></actuator>'
    )
    first, second = loaded(world(after=after)).actuators
    assert (first.name, first.joint, first.gear) == ("a", 1, (50.0,))
    assert first.control == (-2.0, 3.0)
    assert first.effort == (-1.0, 1.0)
    assert (second.gear, second.gain) == ((2.0,), (-4.0, 0.0, 0.0))
    assert second.effort == (-1.0, 8.0)


def test_actuators_of_ball_and_free_joints():
    inside = (
        '<body><joint name="b" type="ball"/><geom size=".1"/></body>'
        '<body><freejoint name="f"/><geom size=".1"/></body>'
    )
    after = (
        '<actuator><motor joint="b" gear="1 2 3"/><motor joint="f" gear="0 0 0 1 2 3"/>'
        '<motor joint="f" gear="1 0 0"/><motor jointinparent="b" gear="1 0 0"/></actuator>'
    )
    model = loaded(world(inside, after=after))
    ball, free, pushed, turned = model.actuators
    assert ball.gear == (1.0, 2.0, 3.0)
    assert free.gear == (1.0, 2.0, 3.0, 0.0, 0.0, 0.0)
    assert (pushed.frame, pushed.reference) == ("body_2", "world")
    assert pushed.gear == (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    assert (turned.frame, turned.reference) == ("body_1", "b_parent")
    assert model.frame("b_parent").body == 0


def test_geoms_become_geometry():
    geoms = (
        '<geom type="box" size="1 2 3" rgba=".2 .4 .6 1"/><geom type="sphere" size="1"/>'
        '<geom type="capsule" size="1 2" contype="0" conaffinity="0"/>'
        '<geom type="cylinder" size="1 2" group="3" material="red"/>'
        '<geom type="ellipsoid" size="1 2 3" pos="1 2 3"/>'
    )
    before = '<asset><material name="red" rgba="1 0 0 1"/></asset>'
    model = loaded(world(f"<geom type='plane' size='0 2 1'/><body><joint/>{geoms}</body>", before))
    plane, box, sphere, capsule, cylinder, ellipsoid = model.geometry
    assert [g.shape for g in model.geometry] == [
        Plane((0, 4)),  # without end along x
        Box((2, 4, 6)),
        Sphere(1),
        Capsule(1, 4),
        Cylinder(1, 4),
        Ellipsoid((1, 2, 3)),
    ]
    assert (plane.body, box.body) == (0, 1)
    assert box.color == (0.2, 0.4, 0.6, 1.0)
    assert sphere.visual
    assert sphere.collision
    assert not capsule.collision
    assert not cylinder.visual
    assert cylinder.color == (1.0, 0.0, 0.0, 1.0)
    np.testing.assert_array_equal(ellipsoid.placement.r, [1, 2, 3])


def test_meshes_are_where_the_file_has_them(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "wedge.obj").write_bytes(TETRAHEDRON)
    geom = '<geom type="mesh" mesh="wedge" pos="1 2 3" euler="0 0 90"/>'
    asset = (
        '<compiler meshdir="meshes"/><asset><mesh file="wedge.obj" scale="2 1 1"/>'
        '<texture name="t" type="2d" file="absent.png"/><material name="x" texture="t"/></asset>'
    )
    path = tmp_path / "robot.xml"
    path.write_text(world(f"<body><joint/>{geom}</body>", asset))
    model = read(path).model
    (shape,) = model.geometry
    assert shape.shape == Mesh(str(tmp_path.resolve() / "meshes" / "wedge.obj"), (2.0, 1.0, 1.0))
    np.testing.assert_allclose(shape.placement.r, [1, 2, 3], atol=1e-12)
    np.testing.assert_allclose(shape.placement.E, [[0, 1, 0], [-1, 0, 0], [0, 0, 1]], atol=1e-12)
    assert model.bodies[0].inertia.mass == pytest.approx(2000)


def test_files_are_included_where_they_say(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xml").write_text(
        f'<mujocoinclude>{_BODY}<include file="parts/hand.xml"/></mujocoinclude>'
    )
    (tmp_path / "parts" / "hand.xml").write_text(
        '<x><body name="h"><joint name="k" damping="1 2"/><geom size=".1" friction="1"/></body></x>'
    )
    path = tmp_path / "robot.xml"
    path.write_text(world('<include file="parts/arm.xml"/>'))
    model, notices, _ = read(path)
    assert model.joint_names == ("j", "k")
    hand = str(tmp_path.resolve() / "parts" / "hand.xml")
    assert {(n.file, n.line) for n in notices} == {(hand, 1)}


@pytest.mark.parametrize(
    "attributes",
    [
        "refpos='.1 .2 .3'",
        "refpos='.1 .2 .3' scale='2 1 -1'",
        "refquat='1 1 .5 0'",
        "refpos='.1 .2 .3' refquat='1 1 .5 0' scale='2 2 2'",
    ],
)
def test_the_reference_of_a_mesh_moves_its_shape(attributes, tmp_path):
    import mujoco

    (tmp_path / "m.obj").write_bytes(TETRAHEDRON)
    path = tmp_path / "robot.xml"
    geom = '<geom type="mesh" mesh="m" pos="1 2 3" quat="1 0 1 1"/>'
    asset = f'<asset><mesh name="m" file="m.obj" {attributes}/></asset>'
    path.write_text(world(f"<body><joint/>{geom}</body>", asset))
    model, notices, _ = read(path)
    assert notices == ()
    (shape,) = model.geometry
    lines = TETRAHEDRON.decode().splitlines()
    vertices = np.array([line.split()[1:] for line in lines if line.startswith("v ")], dtype=float)
    X = shape.placement
    ours = (vertices * shape.shape.scale) @ X.E + X.r
    theirs = mujoco.MjModel.from_xml_path(str(path))
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, theirs.geom_quat[0])
    expected = theirs.mesh_vert @ R.reshape(3, 3).T + theirs.geom_pos[0]
    distances = np.linalg.norm(ours[:, None] - expected, axis=2)
    assert distances.min(axis=1).max() < 2e-6  # MuJoCo keeps vertices in single precision


def test_a_mesh_that_is_turned_and_stretched_is_noted(tmp_path):
    (tmp_path / "m.obj").write_bytes(TETRAHEDRON)
    path = tmp_path / "robot.xml"
    asset = '<asset><mesh name="m" file="m.obj" refquat="1 1 0 0" scale="1 2 3"/></asset>'
    path.write_text(world('<body><joint/><geom name="g" type="mesh" mesh="m"/></body>', asset))
    (notice,) = read(path).notices
    assert (notice.effect, notice.what) == ("contact", "<geom name='g'>")
    assert notice.why == "its mesh is turned by refquat before it is stretched: placed without it"


@pytest.mark.parametrize("files", [("main",), ("nested",), ("main", "nested")])
def test_nested_files_are_found_beside_the_main_file_or_the_one_that_includes_them(tmp_path, files):
    """As MuJoCo finds them, the main file first."""
    import mujoco

    def part(name):
        return f'<x><body name="{name}"><joint/><geom size=".1"/></body></x>'

    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "arm.xml").write_text(f'<x>{_BODY}<include file="hand.xml"/></x>')
    for name, folder in (("main", tmp_path), ("nested", parts)):
        if name in files:
            (folder / "hand.xml").write_text(part(name))
    path = tmp_path / "robot.xml"
    path.write_text(world('<include file="parts/arm.xml"/>'))
    names = read(path).model.body_names
    assert names == ("world", "b", files[0])
    theirs = mujoco.MjModel.from_xml_path(str(path))
    assert [theirs.body(k).name for k in range(theirs.nbody)] == list(names)


@pytest.mark.parametrize(
    ("place", "compiler"),
    [
        ("meshes/tip.obj", "<compiler meshdir='meshes'/>"),
        ("hand/tip.obj", ""),
        ("hand/tip.obj", "<compiler meshdir='meshes'/>"),
        ("hand/meshes/tip.obj", "<compiler meshdir='meshes'/>"),
        ("hand/meshes/tip.obj", "<compiler assetdir='meshes'/>"),
    ],
)
def test_meshes_of_included_files(tmp_path, place, compiler):
    path, file = tmp_path / "robot.xml", tmp_path / place
    (tmp_path / "hand").mkdir()
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(TETRAHEDRON)
    (tmp_path / "hand" / "hand.xml").write_text(
        f'<mujoco>{compiler}<asset><mesh file="tip.obj"/></asset><worldbody><body><joint/>'
        '<geom type="mesh" mesh="tip"/></body></worldbody></mujoco>'
    )
    path.write_text('<mujoco><include file="hand/hand.xml"/></mujoco>')
    assert read(path).model.geometry[0].shape == Mesh(str(file.resolve()))


def test_a_missing_nested_file_says_where_it_was_looked_for(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xml").write_text('<x>\n<include file="hand.xml"/></x>')
    path = tmp_path / "robot.xml"
    path.write_text(world('<include file="parts/arm.xml"/>'))
    with pytest.raises(
        LoadError,
        match=r"parts/arm\.xml:2: <include>: 'hand\.xml' does not exist: no file '.*', nor is it "
        r"beside the file that names it here",
    ):
        read(path)


def test_models_are_attached(tmp_path):
    (tmp_path / "hand").mkdir()
    (tmp_path / "hand" / "tip.obj").write_bytes(TETRAHEDRON)
    (tmp_path / "hand" / "hand.xml").write_text(
        '<mujoco model="hand"><asset><mesh name="tip" file="tip.obj"/></asset><worldbody>'
        '<body name="palm"><joint name="wrist"/><geom type="mesh" mesh="tip"/></body></worldbody>'
        "</mujoco>"
    )
    attach = '<attach model="hand" body="palm" prefix="left_"/>'
    path = tmp_path / "robot.xml"
    inside = _BODY.replace("</body>", f'<frame pos="0 0 1">{attach}</frame></body>')
    path.write_text(world(inside, '<asset><model name="hand" file="hand/hand.xml"/></asset>'))
    model = read(path).model
    assert model.joint_names == ("j", "left_wrist")
    assert model.geometry[1].shape == Mesh(str(tmp_path.resolve() / "hand" / "tip.obj"))


def test_floating_base_frees_what_the_world_carries():
    text = world(
        '<body name="trunk" pos="0 0 1"><geom size=".1"/>'
        '<body name="leg"><joint name="hip"/><geom size=".1"/></body></body>'
    )
    fixed, free = loaded(text), loaded(text, floating_base=True)
    assert (fixed.nv, free.nv) == (1, 7)
    assert isinstance(free.joint[1], Free)
    assert free.joint_names == ("trunk_floating", "hip")
    assert free.postures[0].q[:3].tolist() == [0, 0, 1]


def test_gravity_and_name():
    model = loaded(world(before='<option gravity="1 2 3"/>'))
    assert model.name == "m"
    assert model.gravity.tolist() == [1, 2, 3]


def test_the_total_mass_is_that_of_the_compiler_option():
    model = loaded(TREES["hinge"].replace("<mujoco>", '<mujoco><compiler settotalmass="5"/>'))
    assert sum(body.inertia.mass for body in model.bodies) == pytest.approx(5, rel=1e-14)


@pytest.mark.parametrize(
    "old",
    [
        "<compiler convexhull='true' exactmeshinertia='true' coordinate='local'/>",
        "<option apirate='100' mpr_tolerance='1e-6' mpr_iterations='50' collision='all'/>",
        "<option><flag sensornoise='enable'/></option>",
    ],
)
def test_what_newer_versions_of_mujoco_no_longer_have_is_left_out(old):
    """Files of years ago, which MuJoCo refuses for settings that do not matter here."""
    assert loaded(world(before=old)).nv == 1


def test_the_flag_that_switched_springs_and_dampers_off():
    body = _BODY.replace("<joint", '<joint stiffness="2" damping="3"')
    old, new = (
        loaded(world(body, before=f"<option><flag {flags}/></option>"))
        for flags in ("passive='disable'", "spring='disable' damper='disable'")
    )
    assert old == new
    assert old != loaded(world(body, before="<option><flag passive='enable'/></option>"))


def test_copies_are_read_in_linear_time():
    """Lines executed here grow by the same number with each copy, and do not with its square."""
    import gc
    import sys

    def copies(n):
        bodies, motors, tendons, rest = [], [], [], {"equality": [], "sensor": [], "contact": []}
        for k in range(n):
            leg = f'<body name="foot{k}"><joint name="ankle{k}"/><geom size=".1"/></body>'
            bodies.append(
                f'<body name="trunk{k}"><freejoint/><geom size=".1"/><body name="head{k}"/>'
                f'<body name="thigh{k}"><joint name="hip{k}" damping="1" range="0 1"/>'
                f'<joint name="knee{k}"/><geom size=".1" pos="0 0 1"/>{leg}</body></body>'
            )
            motors += [f'<motor joint="{name}{k}"/>' for name in ("hip", "knee", "ankle")]
            motors.append(f'<position tendon="t{k}"/>')
            terms = "".join(f'<joint joint="{name}{k}" coef="1"/>' for name in ("hip", "knee"))
            tendons.append(f'<fixed name="t{k}" range="-1 1">{terms}</fixed>')
            rest["equality"].append(f'<joint joint1="ankle{k}" joint2="knee{k}"/>')
            rest["sensor"].append(
                f'<jointpos joint="hip{k}"/><framepos objtype="body" objname="foot{k}"/>'
            )
            rest["contact"].append(f'<exclude body1="trunk{k}" body2="foot{k}"/>')
        rest |= {"actuator": motors, "tendon": tendons}
        after = "".join(f"<{tag}>{''.join(inside)}</{tag}>" for tag, inside in rest.items())
        return world("".join(bodies), after=after)

    def lines(n):
        count = 0

        def inside(frame, event, argument):
            nonlocal count
            count += event == "line"
            return inside

        def called(frame, event, argument):
            return inside if "kinetree" in frame.f_code.co_filename else None

        text, before = copies(n), sys.gettrace()
        gc.collect()  # what earlier tests left ends now, not among the lines that are counted
        gc.disable()
        sys.settrace(called)
        try:
            loaded(text)
        finally:
            sys.settrace(before)
            gc.enable()
        return count

    lines(1)  # what is imported and kept at the first call
    few, some, many = lines(8), lines(16), lines(32)
    assert (many - some) < 1.02 * 2 * (some - few)


def counting(calls, name, original):
    def counted(*arguments, **options):
        calls[name] += 1
        return original(*arguments, **options)

    return counted


def test_a_heap_is_checked_part_by_part_once(tmp_path, monkeypatch):
    """Effort of loading grows with the number of bodies, and not with that of models made of it."""
    calls = dict.fromkeys(("check_model", "_check_transform", "check_numbers"), 0)
    holders = of_model, validate, validate_shapes
    for (name, _), module in zip(calls.items(), holders, strict=True):
        monkeypatch.setattr(module, name, counting(calls, name, getattr(module, name)))
    body = "<body pos='0 0 {}'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    counts = []
    for n in (10, 20):
        calls.update(dict.fromkeys(calls, 0))
        path = tmp_path / f"heap{n}.xml"
        path.write_text(world("".join(body.format(k) for k in range(n))))
        made = kt.World.from_file(path)
        assert made.model.body_count == n
        counts.append(tuple(calls.values()))
    (models, transforms, few), (same, none, many) = counts
    assert models == same <= 4  # of the file, of an empty world, and of the world
    assert transforms == none == 0
    assert 0 < many <= 2 * few
