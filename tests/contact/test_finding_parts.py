"""Parts of what finds contacts, one by one."""

import mujoco
import numpy as np
import pytest
from support.closeness import assert_close
from support.convex_shapes import touches_of

import kinetree as kt
from kinetree.contact.finding.closed_forms import field_and_ball
from kinetree.contact.finding.shapes import Placed, Touch, surface_at_points
from kinetree.model.geometry import Box, Capsule, HeightField, Sphere
from kinetree.spatial.rotation import rotation_exp


def test_touches_reversed_twice_are_what_they_were():
    there = Touch(np.arange(3.0), np.array([0, 0.6, 0.8]), -0.1)
    back = there.reverse()
    assert_close(back.normal, [0, -0.6, -0.8])
    again = back.reverse()
    assert again.gap == -0.1
    assert_close(again.normal, there.normal)


@pytest.mark.parametrize("height", [0.8, 3.0, 6.0])
@pytest.mark.parametrize("along", [(1.0, 0.0), (0.0, 1.0), (0.6, 0.8)])
def test_feet_of_balls_high_above_a_hill_are_nearest(height, along):
    """Where the distance bends more by the hill than by itself, along either axis."""
    x = np.linspace(-1, 1, 21)
    u, v = np.meshgrid(x, x, indexing="ij")
    bump = 0.3 * np.exp(-3 * (along[0] * u + along[1] * v) ** 2)
    hill = HeightField(tuple(map(tuple, bump)), (2.0, 2.0))
    here = np.array([0.1, -0.07, height])
    where = Placed(hill, np.eye(3), np.zeros(3)), Placed(Sphere(0.1), np.eye(3), here)
    (found,) = field_and_ball(*where)
    foot = found.point - found.normal * found.gap / 2
    fine = np.linspace(-0.1, 0.1, 101)
    grid = np.stack(np.meshgrid(fine, fine, indexing="ij"), axis=-1).reshape(-1, 2) + foot[:2]
    feet = np.column_stack([grid, surface_at_points(hill, *grid.T).h])
    least = np.min(np.linalg.norm(feet - here, axis=1))
    assert found.gap + 0.1 <= least + 1e-9
    assert_close(here - foot, (found.gap + 0.1) * found.normal, scale=height, ulps=1e4)


# --- rugged ground, on which Newton's method at times runs far away -------------------------------


def rugged(rng):
    n = int(rng.integers(5, 14))
    heights = 0.15 * rng.normal(size=(n, n))
    return HeightField(tuple(tuple(map(float, row)) for row in heights), (2.0, 2.0))


@pytest.mark.parametrize("seed", [2, 3, 5, 8])
def test_edges_touch_at_the_same_places_in_either_direction(seed):
    rng = np.random.default_rng(seed)
    ground, ends = rugged(rng), rng.uniform(-1, 1, size=(6, 2, 3))
    ends[..., 2] *= 0.2
    field = Placed(ground, np.eye(3), np.zeros(3))
    for a, b in ends:
        length = np.linalg.norm(b - a)
        along = (b - a) / length
        side = np.cross(along, [0, 0, 1.0])
        side /= np.linalg.norm(side)
        axes = np.column_stack([side, np.cross(along, side), along])
        there, back = (
            touches_of(field, Placed(Capsule(1e-3, length), R, (a + b) / 2), 0.05)
            for R in (axes, axes * [1, -1, -1])
        )
        assert len(there) == len(back)
        if there:
            gaps = [min(t.gap for t in found) for found in (there, back)]
            np.testing.assert_allclose(*gaps, atol=1e-9)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("seed", [240, 638, 1354])
def test_peaks_touch_a_face_once_each(seed, turned):
    """Also where a start ends on the peak of another, on whichever side that is."""
    rng = np.random.default_rng(seed)
    ground = rugged(rng)
    tilt = rotation_exp(np.array([*(0.15 * rng.normal(size=2)), 0]))
    if turned:  # by half a turn, about z
        half = np.diag([-1.0, -1.0, 1.0])
        tilt = half @ tilt @ half
        heights = np.array(ground.heights)[::-1, ::-1]
        ground = HeightField(tuple(map(tuple, heights)), ground.size)
    plate = Placed(Box((1.8, 1.8, 0.2)), tilt, tilt @ [0, 0, 0.1])
    found = touches_of(Placed(ground, np.eye(3), np.zeros(3)), plate, 0.3)
    feet = np.array([t.point - t.normal * t.gap / 2 for t in found])
    assert len(feet) >= 4
    apart = np.linalg.norm(feet[:, None] - feet, axis=-1) + np.eye(len(feet))
    assert np.min(apart) > 1e-4  # of a peak and of an edge nearby; the same one would be 1e-9


# --- pairs of bodies on coupled joints ------------------------------------------------------------

LINKAGE = """<mujoco><compiler autolimits="true"/><worldbody><geom name="table" size="1"/>
  <body name="palm"><freejoint/><geom name="palm" size="1"/>
    <body name="cover" pos="0 0 .1"><geom name="cover" size="1"/>
      <body name="left"><joint name="left" axis="1 0 0"/><geom name="left" size="1"/>
        <body name="tip"><joint name="tip" axis="1 0 0"/><geom name="tip" size="1"/>
          <body name="nail"><geom name="nail" size="1"/></body></body></body>
      <body name="right"><joint name="right" axis="1 0 0"/><geom name="right" size="1"/>
        <body name="end"><joint name="end" axis="1 0 0"/><geom name="end" size="1"/></body></body>
    </body></body></worldbody>
  <equality><joint joint1="right" joint2="left"/><joint joint1="tip" joint2="left"/>
    <joint joint1="end"/></equality></mujoco>"""
"""Fingers that follow each other, one with a part that follows, one with a part that is held."""


@pytest.mark.parametrize("lump", [True, False])
def test_pairs_of_bodies_on_coupled_joints_are_those_of_mujoco(tmp_path, lump):
    """All shapes are inside each other, so that every pair that may touch does."""
    path = tmp_path / "hand.xml"
    path.write_text(LINKAGE)
    model = kt.load(path, lump=lump)
    assert len(model.couplings) == 3
    pairs = {frozenset((p.first.name, p.second.name)) for p in kt.contact.Scene(model).pairs}
    peer = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(peer)
    mujoco.mj_forward(peer, data)
    names = [peer.geom(k).name for k in range(peer.ngeom)]
    found = {frozenset((names[c.geom1], names[c.geom2])) for c in data.contact}
    assert pairs == found
    assert frozenset(("left", "right")) in pairs
    assert frozenset(("left", "tip")) not in pairs


def test_fingers_that_follow_each_other_stop_each_other():
    """A motor closes them: they meet in the middle, and neither passes the other."""
    builder = kt.ModelBuilder("gripper")
    for name, side in (("left", 1), ("right", -1)):
        builder.body(
            name, joint=kt.Prismatic((-side, 0, 0)), at=(0.1 * side, 0, 0),
            inertia=kt.shapes.box(0.04, 0.04, 0.04, mass=0.1),
        )  # fmt: skip
        builder.geometry(Box((0.04, 0.04, 0.04)), on=name, name=name)
    builder.coupling("gear", joint="right_joint", source="left_joint")
    builder.actuator("motor", joint="left_joint")
    world = kt.World(gravity=(0, 0, 0))
    world.add(builder.build())
    world.step(500, control=np.array([2.0]))
    assert world.q[0] == pytest.approx(0.08, abs=1e-6)
    assert len(world.contacts())
    assert abs(world.qd[0]) < 1e-9
