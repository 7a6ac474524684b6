"""Denavit–Hartenberg tables: both conventions, every kind of joint."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.motions import frame_pose

from kinetree.algorithms import crba
from kinetree.errors import ModelError
from kinetree.joints import Cylindrical, Helical, Prismatic, Revolute
from kinetree.model import DHRow, DHTable, from_dh
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import rotx, rotz, xlt

KINDS = ("revolute", "prismatic", "cylindrical", "helical")


def pose(*, z=(0, 0), x=(0, 0)):
    """4x4 pose of a turn about and shift along z, then the same for x: from the definition."""
    (theta, d), (alpha, a) = z, x
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    about_z = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]])
    about_x = np.array([[1, 0, 0, a], [0, ca, -sa, 0], [0, sa, ca, 0], [0, 0, 0, 1]])
    return about_z @ about_x


def motion(row, q):
    """Angle and distance that the joint variables add."""
    kinds = {
        "revolute": lambda: (q[0], 0.0),
        "prismatic": lambda: (0.0, q[0]),
        "cylindrical": lambda: (q[0], q[1]),
        "helical": lambda: (q[0], row.pitch * q[0]),
    }
    return kinds[row.kind]()


def random_rows(rng, kinds, inertia=False):
    return [
        DHRow(
            rng.uniform(0.1, 0.5), rng.uniform(-2, 2), rng.uniform(-0.3, 0.3), rng.uniform(-2, 2),
            kind, pitch=0.2, inertia=random_inertia(rng) if inertia else None,
        )
        for kind in kinds
    ]  # fmt: skip


@pytest.mark.covers("RBDA 4.3", by=from_dh)
def test_modified_convention_is_the_product_of_its_steps(rng):
    rows = random_rows(rng, (*KINDS, *KINDS))
    base, tool = (0.3, -0.2), (0.1, 0.4, 0.2, -0.6)
    model = from_dh(rows, base=base, tool=tool)
    assert [type(j) for j in model.joint[1:5]] == [Revolute, Prismatic, Cylindrical, Helical]
    q = model.random_configuration(rng)
    T = pose(z=base)
    for i, row in enumerate(rows, start=1):
        theta, d = motion(row, q[model.q_slice[i]])
        T = T @ pose(x=(row.alpha, row.a)) @ pose(z=(row.theta + theta, row.d + d))
        assert_close(frame_pose(model, q, f"link{i}"), T)
    a, alpha, d, theta = tool
    assert_close(frame_pose(model, q, "tool"), T @ pose(x=(alpha, a)) @ pose(z=(theta, d)))


@pytest.mark.covers("RBDA 4.3", by=from_dh)
def test_tree_transforms_of_a_revolute_arm_are_those_of_the_book(rng):
    rows = [(0.1, 0.2, 0.3, 0), (0.4, -0.5, 0.6, 0), (0.7, 0.8, -0.9, 0)]
    theta_0, d_0 = 0.25, 0.35
    X_T = from_dh(rows, base=(theta_0, d_0)).tree_transform
    for i, (a, alpha, d, _) in enumerate(rows, start=1):
        expected = xlt(a, 0, d) @ rotx(alpha)
        if i == 1:
            expected = expected @ rotz(theta_0) @ xlt(0, 0, d_0)
        assert_close(X_T[i].to_matrix(), expected.to_matrix())


def test_standard_convention_is_the_product_of_its_steps(rng):
    rows = random_rows(rng, (*KINDS, *KINDS))
    base, tool = random_placement(rng), random_placement(rng)
    model = from_dh(rows, convention="standard", base=base, tool=tool)
    q = model.random_configuration(rng)
    T = base.to_pose()
    for i, row in enumerate(rows, start=1):
        theta, d = motion(row, q[model.q_slice[i]])
        T = T @ pose(z=(row.theta + theta, row.d + d)) @ pose(x=(row.alpha, row.a))
        assert_close(frame_pose(model, q, f"dh{i}"), T)
    assert_close(frame_pose(model, q, "tool"), T @ tool.to_pose())


def test_both_conventions_describe_the_same_arm(rng):
    """A standard row i is (theta_i, d_i, a_{i+1}, alpha_{i+1}) of the modified table."""
    rows = random_rows(rng, ("revolute", "prismatic", "revolute"), inertia=True)
    modified = from_dh(rows, tool=(0.1, 0.2, 0.3, 0.4))
    following = [*rows[1:], DHRow(0.1, 0.2, 0.3, 0.4)]
    standard_rows = [
        DHRow(
            after.a, after.alpha, row.d, row.theta, row.kind,
            inertia=row.inertia.transformed(after.along_x),
        )
        for row, after in zip(rows, following, strict=True)
    ]  # fmt: skip
    standard = from_dh(
        standard_rows,
        convention="standard",
        base=rows[0].along_x,
        tool=DHRow(0, 0, 0.3, 0.4).along_z,
    )
    q = modified.random_configuration(rng)
    assert_close(frame_pose(modified, q, "tool"), frame_pose(standard, q, "tool"))
    assert_close(
        crba.joint_space_inertia(modified, q), crba.joint_space_inertia(standard, q), ulps=1e3
    )


@pytest.mark.covers("RBDA 4.3", by=DHTable)
def test_parameter_count():
    for n in range(1, 8):
        table = DHTable(tuple(DHRow() for _ in range(n)))
        assert table.parameter_count == 4 * n + 6
        assert table.variable_count == n
    assert DHTable((DHRow(kind="cylindrical"),)).variable_count == 2


def test_messages():
    with pytest.raises(
        ModelError, match="DH convention must be 'modified' or 'standard', got 'craig'"
    ):
        from_dh([(0, 0, 0, 0)], convention="craig")
    with pytest.raises(ModelError, match=r"DH row 2 must be a DHRow or \(a, alpha, d, theta\)"):
        from_dh([(0, 0, 0, 0), (1, 2)])
    with pytest.raises(
        ModelError, match=r"DH joint kind must be one of \['cylindrical'.*got 'ball'"
    ):
        DHRow(kind="ball")
