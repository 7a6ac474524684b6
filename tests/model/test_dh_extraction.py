"""Axes to Denavit–Hartenberg parameters and back."""

from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close
from support.motions import frame_pose

from kinetree.errors import ModelError
from kinetree.joints import Helical, Prismatic, Revolute
from kinetree.model import DHRow, Model, ModelBuilder, dh_from_axes, dh_from_model, from_dh
from kinetree.samples import arm, humanoid, panda, quadruped, random_placement, scara

X, Y, Z, O = (1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0), (0, 0, 0)
AXES = {
    "skew": [((0.1, 0.2, 0.3), (1, 2, 3)), ((1, 0, 0), (0, 1, 1)), ((0, 2, 0), (1, -1, 0.3))],
    "parallel": [((0.5, 0, 0), Z), ((0.5, 0.4, 2), Z), ((1, 1, -1), Z)],
    "antiparallel": [((0.5, 0, 0), Z), ((0.5, 0.4, 2), (0, 0, -1.0)), ((1, 1, -1), Z)],
    "intersecting": [(O, Y), (O, X), (O, Z)],
    "coincident": [(O, Z), ((0, 0, 1), Z), ((0, 0, 5), Z)],
    "wrist": [((0, 0, 1), Z), ((0, 0, 1), Y), ((0, 0, 1), X), ((0, 0, 1), (1, 1, 1))],
    "one": [((1, 2, 3), (-1, 0, 2))],
    "mixed": [(O, Z), ((0.3, 0, 0), Z), ((0.3, 0.5, 0), Y), ((0.3, 0.5, 0), X), ((1, 1, 1), X)],
}


def axes_of(model):
    """Point and direction of each joint axis at zero, from the model."""
    found = []
    for i in range(1, model.body_count + 1):
        T = frame_pose(model, model.neutral(), model.body_names[i])
        found.append((T[:3, 3], T[:3, :3] @ np.array(model.joint[i].axis)))
    return found


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES.keys())
@pytest.mark.parametrize("with_tool", [False, True])
@pytest.mark.covers("RBDA 4.3", by=dh_from_axes)
def test_the_table_has_the_axes_it_was_made_from(axes, with_tool, rng):
    tool = random_placement(rng) if with_tool else None
    table = dh_from_axes(axes, tool=tool)
    model = table.to_model()
    for (p, z), (p_new, z_new) in zip(axes, axes_of(model), strict=True):
        z = np.array(z) / np.linalg.norm(z)
        assert_close(z_new, z)
        assert_close(np.cross(p_new - p, z), np.zeros(3), scale=10)  # on the same line
    assert all(row.a >= 0 for row in table.rows)
    if with_tool:
        assert_close(frame_pose(model, model.neutral(), "tool"), tool.to_pose(), ulps=1e3)


@pytest.mark.covers("RBDA 4.3", by=dh_from_axes)
def test_parallel_axes_take_the_perpendicular_that_meets_the_one_before():
    rows = dh_from_axes(AXES["parallel"]).rows
    assert all(row.d == 0 for row in rows)
    assert all(row.alpha == 0 for row in rows)
    rows = dh_from_axes(AXES["coincident"]).rows
    assert all((row.a, row.alpha, row.d, row.theta) == (0, 0, 0, 0) for row in rows)


def random_table(rng, kinds):
    rows = [
        DHRow(
            rng.uniform(0.1, 1), rng.uniform(0.2, 2.9), rng.uniform(-1, 1), rng.uniform(-3, 3), kind
        )
        for kind in kinds
    ]
    return rows, (rng.uniform(-3, 3), rng.uniform(-1, 1)), (0.2, 0.7, -0.3, 1.1)


@pytest.mark.covers("RBDA 4.3", by=(dh_from_model, from_dh))
def test_parameters_of_general_axes_come_back(rng):
    rows, base, tool = random_table(rng, ["revolute"] * 5)
    table = dh_from_model(from_dh(rows, base=base, tool=tool), tool="tool")
    for row, again in zip(rows, table.rows, strict=True):
        for name in ("a", "alpha", "d", "theta"):
            assert_close(getattr(again, name), getattr(row, name), ulps=1e4, scale=1)
    assert_close(np.array(table.base), np.array(base), ulps=1e4)
    assert_close(np.array(table.tool), np.array(tool), ulps=1e4)


@pytest.mark.parametrize("model", [arm(), scara(), panda()], ids=lambda m: m.name)
@pytest.mark.covers("RBDA 4.3", by=dh_from_model)
def test_robots_move_as_their_tables_say(model, rng):
    if model.name == "panda":
        model = Model(model.bodies[:7], frames=model.frames[:1])
    table = dh_from_model(model, tool="tool")
    again = table.to_model()
    for _ in range(3):
        q = model.random_configuration(rng)
        assert_close(frame_pose(again, q, "tool"), frame_pose(model, q, "tool"), ulps=1e3)


def test_every_kind_of_joint_moves_the_tool_alike(rng):
    builder = ModelBuilder()
    joints = [Revolute("x"), Prismatic((1, 2, 0)), Helical("-y", pitch=0.3), Revolute((1, 1, 1)),
              Prismatic("z"), Revolute("z")]  # fmt: skip
    for i, joint in enumerate(joints):
        on = f"b{i - 1}" if i else None
        builder.body(f"b{i}", on=on, joint=joint, at=random_placement(rng))
    model = builder.frame("tip", on="b5", at=random_placement(rng)).build()
    table = dh_from_model(model, tool="tip")
    assert [row.kind for row in table.rows] == [
        "revolute", "prismatic", "helical", "revolute", "prismatic", "revolute",
    ]  # fmt: skip
    again = table.to_model()
    q = model.random_configuration(rng)
    assert_close(frame_pose(again, q, "tool"), frame_pose(model, q, "tip"), ulps=1e3)
    assert table.rows[1].a < 1e-12  # a prismatic axis is moved to meet the one before


def test_messages():
    with pytest.raises(ModelError, match="needs a direction of three numbers, not all zero"):
        dh_from_axes([(O, O)])
    with pytest.raises(ModelError, match="joint 'root' is Free on body 'base'"):
        dh_from_model(humanoid())
    legs = Model([replace(b, parent=b.parent - 1) for b in quadruped().bodies[1:]])
    with pytest.raises(ModelError, match=r"unbranched chain.*'front_right_hip_joint' is Revolute"):
        dh_from_model(legs)
