"""Fixed joint: no freedom, no trouble — RBDA §3.5."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba, crba, rnea
from kinetree.joints import Fixed, Revolute
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement


@pytest.mark.covers("RBDA 3.5", by=Fixed)
def test_welded_bodies_move_as_one(rng):
    at, weld = random_placement(rng), random_placement(rng)
    first, second, tip = (random_inertia(rng) for _ in range(3))
    two = ModelBuilder().body("a", joint=Revolute("y"), at=at, inertia=first)
    two.body("b", on="a", joint=Fixed(), at=weld, inertia=second)
    two = two.body("tip", on="b", joint=Revolute("x"), inertia=tip).build()
    merged = first + weld.T @ second @ weld
    one = ModelBuilder().body("a", joint=Revolute("y"), at=at, inertia=merged)
    one = one.body("tip", on="a", joint=Revolute("x"), at=weld, inertia=tip).build()
    q, qd, tau = rng.standard_normal((3, 2))
    assert two.nv == one.nv == 2
    for f in (aba.forward_dynamics, rnea.inverse_dynamics):
        assert_close(f(two, q, qd, tau), f(one, q, qd, tau), ulps=1000)
    assert_close(crba.joint_space_inertia(two, q), crba.joint_space_inertia(one, q), ulps=50)


def test_subspaces_have_no_and_six_columns():
    joint, q = Fixed(), np.zeros(0)
    S = joint.motion_subspace(q)
    assert S.to_array().shape == (6, 0)
    assert_close((S @ np.zeros(0)).to_array(), np.zeros(6))
    assert_close(joint.constraint_subspace(q).to_array(), np.eye(6))
