"""Random closed mechanisms: closed, moving as their loops allow, redundant where they should be."""

import numpy as np
import pytest
from support.linkages import loop_errors

from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.errors import ModelError, UnknownNameError
from kinetree.joints import Cylindrical
from kinetree.samples.random_mechanisms import LINKAGE_KINDS, LOOP_JOINTS, random_closed_mechanism


@pytest.mark.parametrize("kind", LINKAGE_KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_the_state_closes_the_loops_and_keeps_them_closed(kind, seed):
    model, q, qd = random_closed_mechanism(seed, kind=kind)
    assert np.abs(loop_errors(model, q)).max() < 1e-14
    c = loop_constraints(model, q, qd)
    assert np.abs(c.rate).max() < 1e-13
    assert np.linalg.norm(qd) > 1e-3


@pytest.mark.parametrize("kind", LINKAGE_KINDS[1:])
@pytest.mark.parametrize("seed", range(4))
def test_constraints_of_these_kinds_are_redundant(kind, seed):
    model, q, _ = random_closed_mechanism(seed, kind=kind)
    K = loop_constraints(model, q, model.zero_velocity).K
    redundancy = len(K) - np.linalg.matrix_rank(K, tol=1e-9)
    doubled = sum(6 - loop.joint.nv for loop in model.loops) // 2
    assert redundancy >= (doubled if kind == "doubled" else 3 * len(model.loops))


@pytest.mark.parametrize("joint", LOOP_JOINTS, ids=str)
def test_every_kind_of_joint_closes_a_loop(joint):
    model, q, qd = random_closed_mechanism(
        3, kind="spatial", bodies=6, loops=1, loop_joints=(joint,)
    )
    assert model.loops[0].joint == joint
    c = loop_constraints(model, q, qd)
    assert max(np.abs(c.error).max(), np.abs(c.rate).max()) < 1e-13


def test_numbers_and_joints_are_the_requested_ones():
    model, _, _ = random_closed_mechanism(
        1, kind="spatial", bodies=9, loops=2, loop_joints=(Cylindrical("x"),)
    )
    assert model.body_count == 9
    assert [loop.joint for loop in model.loops] == [Cylindrical("x")] * 2


def test_the_same_seed_makes_the_same_mechanism():
    (m1, q1, v1), (m2, q2, v2) = random_closed_mechanism(5), random_closed_mechanism(5)
    assert m1 == m2
    assert np.array_equal(q1, q2)
    assert np.array_equal(v1, v2)


def test_what_cannot_be_made_is_rejected():
    with pytest.raises(UnknownNameError, match=r"no kind of linkage is called 'plane'.*planar"):
        random_closed_mechanism(1, kind="plane")
    with pytest.raises(ModelError, match="two bodies and a loop at least, got 1 and 1"):
        random_closed_mechanism(1, bodies=1, loops=1)
    with pytest.raises(ModelError, match=r"2 bodies and 1 loops could move; use more bodies"):
        random_closed_mechanism(1, kind="spherical", bodies=2, loops=1)
