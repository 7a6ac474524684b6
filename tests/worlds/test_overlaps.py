"""Links that overlap by construction with the base of their own robot."""

import warnings

import numpy as np
import pytest
from support.example_robots import ROBOTS, ROOT

import kinetree as kt
from kinetree.errors import ModelWarning, SimulationWarning
from kinetree.model.geometry import Box

ARM = """<mujoco model="arm"><worldbody><geom name="ground" type="plane" size="5 5 1"/>
<geom name="shelf" type="box" size="0.02 0.02 0.05" pos="0.06 0 0.2"/>
<body name="base" pos="0 0 0.05"><geom name="base" type="cylinder" size="0.08 0.05" mass="2"/>
<body name="one" pos="0 0 0.03"><joint name="j1" axis="0 0 1" damping="1"/>
<geom name="one" type="capsule" size="0.05" fromto="0 0 0.043 0 0 0.2" mass="1"/>
<body name="two" pos="0 0 0.05"><joint name="j2" axis="0 1 0" damping="1"/>
<geom name="two" type="capsule" size="0.045" fromto="0 0 -0.02 0 0 0.3" mass="1"/>
</body></body></body></worldbody></mujoco>"""
NAMED = r"overlap with its own base: base/one by 27 mm; no motion"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    return path


def test_links_on_a_fixed_base_are_named_at_load_and_left_out(file):
    with pytest.warns(ModelWarning, match=NAMED):
        world = kt.World.from_file(file)
    with pytest.warns(SimulationWarning, match=r"inside each other: '(base/two|shelf/one)', '"):
        world.step()
    assert {name.split(":")[0] for name in world.contacts().names} == {
        "base/two", "shelf/one", "shelf/two",
    }  # fmt: skip
    # a link that is not next to the base; what stands in the world is nobody's base
    assert world.exclude_overlaps() == [("base", "two")]
    again = world.copy()  # without another warning
    assert not [x for x in again.contacts().names if "base" in x]


def test_overlaps_with_a_base_can_be_kept(file):
    world = kt.World.from_file(file, keep_overlaps=True)
    assert any("base/one" in x for x in world.contacts().names)
    assert any("base/one" in x for x in world.copy().contacts().names)
    assert set(world.exclude_overlaps()) == {("base", "one"), ("base", "two")}
    assert not [x for x in world.contacts().names if "base" in x]


def test_a_robot_that_is_added_is_looked_at_in_its_own_posture(file):
    world = kt.World()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = kt.load(file)
    builder = kt.ModelBuilder("lid")
    builder.geometry(Box((0.6, 0.3, 0.1)), on="base")
    builder.body("lid", joint=kt.Revolute("y"), inertia=kt.shapes.box(0.3, 0.3, 0.02, mass=1.0))
    builder.geometry(Box((0.3, 0.3, 0.02)), on="lid", at=(0.2, 0, 0.2))
    lid = builder.build()
    message = "own base: world/one by 10 mm, base/one by 27 mm;"  # all that is fixed in its file
    with pytest.warns(ModelWarning, match=message):
        world.add(robot, name="arm")
    world.add(lid, name="open", at=(3, 0, 0))  # does not overlap as it starts
    with pytest.warns(ModelWarning, match=r"'shut' has links .* base/lid by"):
        world.add(lid, name="shut", at=(6, 0, 0), q=[0.9])
    names = world.scene.contacts(np.array([0.0, 0.0, 0.9, 0.9])).names
    touching = {x.partition(":")[0] for x in names}
    assert "open.base/open.lid" in touching
    assert not touching & {"arm.base/arm.one", "shut.base/shut.lid"}
    world.contact_pair("arm.base", "arm.one")  # what is asked for by name counts more
    assert any(x.startswith("arm.base/arm.one") for x in world.contacts().names)


def test_free_objects_never_count_as_links_of_a_base(tmp_path):
    path = tmp_path / "table.xml"
    path.write_text("""<mujoco model="table"><worldbody><body name="table">
        <geom name="top" type="box" size="0.5 0.5 0.1"/></body>
        <body name="cube" pos="0 0 0.11"><freejoint/>
        <geom name="cube" type="box" size="0.05 0.05 0.05"/></body></worldbody></mujoco>""")
    world = kt.World.from_file(path)
    with pytest.warns(SimulationWarning, match="'top/cube', up to 0.04 m"):
        world.step()
    assert world.exclude_overlaps() == []


@pytest.mark.parametrize("fixed", [True, False])
def test_a_real_robot_does_not_press_against_its_own_base(fixed):
    world = kt.World(gravity=(0, 0, 0))
    with pytest.warns(ModelWarning) as found:
        world.add(ROOT / ROBOTS["anymal"], name="dog", fixed=fixed)
    messages = [str(w.message) for w in found if "own base" in str(w.message)]
    assert len(messages) == int(fixed)
    assert all("base/LF_HIP by 16 mm" in x for x in messages)
    found = world.exclude_overlaps()  # thighs, which are not on the base itself
    assert {a for a, _ in found} == {"dog.base"}
    assert {b[-5:] for _, b in found} == {"THIGH"}
    world.step(20)
    assert not len(world.contacts())
    assert np.max(np.abs(world.qd)) < 1e-9
