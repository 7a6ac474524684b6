"""Kinds of joints: what code for every robot is made for, and what it reads."""

import numpy as np
import pytest

import kinetree as kt
from kinetree import joints
from kinetree.model.general import tables


@pytest.mark.parametrize("joint", joints.REPRESENTATIVES, ids=repr)
def test_a_joint_is_its_kind_and_its_parameters(joint):
    rng = np.random.default_rng(1)
    q, qd = joint.random(rng), rng.normal(size=joint.nv)
    again = joint.with_parameters(joint.parameters())
    for one, other in zip(joint.jcalc(q, qd), again.jcalc(q, qd), strict=True):
        for name in ("E", "r") if hasattr(one, "E") else ("angular", "linear"):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), 1e-15, 1e-15)


def test_a_robot_as_tables():
    arm = kt.samples.panda()
    data = tables.data_of(arm)
    bodies = data.domains["bodies"]
    assert bodies.count == arm.body_count
    assert data.lengths["v"] == arm.nv
    for i in range(1, arm.body_count + 1):
        kind, k = bodies.kinds[bodies.kind[i - 1]], bodies.kind[i - 1]
        assert kind.at_base == (arm.parent[i] == 0)
        joint = tables.instance(kind, data.numbers["bodies"]["joint"][i - 1][: kind.count])
        assert type(joint) is type(arm.joint[i])
        assert bodies.kinds.index(kind) == k
        assert bodies.columns["parent"][i - 1] == arm.parent[i] - 1
        assert bodies.columns["v"][i - 1] == arm.v_slice[i].start
        np.testing.assert_array_equal(
            data.numbers["bodies"]["inertia"][i - 1], arm.inertia[i].parameters()
        )
        np.testing.assert_array_equal(
            data.numbers["bodies"]["placement"][i - 1][9:], arm.tree_transform[i].r
        )
    assert tables.data_of(arm) is data  # kept with the model
