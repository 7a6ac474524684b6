"""The mechanisms of the figures of RBDA chapter 8, with the numbers that are known of them."""

import numpy as np
import pytest
from support.linkages import loop_errors, mobility

from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.errors import ModelError
from kinetree.samples import actuated_arm, clustered_linkage, corner_ladder, kite_pair


def test_all_are_assembled_in_their_postures():
    for model in (actuated_arm(), clustered_linkage(), corner_ladder(3), kite_pair()):
        for posture in model.postures:
            assert np.abs(loop_errors(model, np.array(posture.q))).max() < 1e-14


@pytest.mark.covers("RBDA 8.10", by=kite_pair)
@pytest.mark.parametrize(("posture", "rank"), [("open", 4), ("flat", 2), ("folded", 3)])
def test_the_rank_of_the_kite_pair_changes_with_its_posture(posture, rank):
    model = kite_pair()
    q = np.array(model.posture(posture).q)
    K = loop_constraints(model, q, model.zero_velocity).K
    assert (model.nv, len(model.loops), len(K)) == (5, 2, 10)
    assert np.linalg.matrix_rank(K, tol=1e-9) == rank
    assert mobility(model, q) == 5 - rank


def test_the_actuated_arm_has_the_variables_of_the_figure():
    model = actuated_arm(1.0, 0.6)
    q = np.array(model.posture("home").q)
    assert np.allclose(q, [0.8, 2.5047983615, 0.723845252, 0], atol=1e-9)
    K = loop_constraints(model, q, model.zero_velocity).K
    assert K.shape == (5, 4)
    assert np.linalg.matrix_rank(K, tol=1e-9) == 2


@pytest.mark.parametrize("rungs", [2, 5])
def test_the_corner_ladder_has_two_freedoms_and_no_redundant_constraint(rungs):
    model = corner_ladder(rungs)
    assert model.body_count == 2 * rungs
    assert len(model.loops) == rungs - 1
    K = loop_constraints(model, model.neutral(), model.zero_velocity).K
    assert np.linalg.matrix_rank(K) == len(K) == model.nv - 2


def test_impossible_dimensions_are_rejected():
    with pytest.raises(ModelError, match="lengths above zero, got l1=0 and l2=1"):
        actuated_arm(0, 1)
    with pytest.raises(ModelError, match="corner_ladder needs a number of bodies"):
        corner_ladder(-1)
