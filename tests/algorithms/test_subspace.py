import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.closeness import assert_close

from kinetree.algorithms.closed.subspace import Subspace, decompose, is_direct_sum
from kinetree.errors import ShapeError, SingularError, SpatialTypeError
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Force, Motion, xlt

DIMENSIONS = [0, 1, 3, 5, 6]


def motion_columns(rng, m):
    return Motion.from_array(rng.standard_normal((6, m)))


@pytest.mark.covers("RBDA 3.3", by=Subspace)
@pytest.mark.parametrize("m", DIMENSIONS)
def test_subspace_is_independent_of_the_matrix_that_spans_it(rng, m):
    S = motion_columns(rng, m)
    A = rng.standard_normal((m, m))
    assert Subspace.span(S) == Subspace.span(S @ A)
    assert Subspace.span(S).dim == m


def test_dependent_columns_do_not_count(rng):
    S = rng.standard_normal((6, 2))
    assert Subspace.span(np.hstack([S, S @ rng.standard_normal((2, 3))]), "motion").dim == 2
    assert Subspace.span(np.zeros((6, 2)), "force").dim == 0


@pytest.mark.parametrize("m", DIMENSIONS)
def test_null_space_of_the_complement_is_the_range(rng, m):
    S = Subspace.span(motion_columns(rng, m))
    K = S.complement().basis.T
    assert Subspace.null(K, "motion") == S


def test_membership_and_inclusion(rng):
    S = motion_columns(rng, 3)
    V = Subspace.span(S)
    v = S @ rng.standard_normal(3)
    assert v in V
    assert Motion.zero() in V
    assert v + Motion.from_array(V.complement().basis[:, 0]) not in V
    assert Subspace.span(S[:2]) <= V
    assert not Subspace.span(S[:2]) >= V
    assert Subspace.whole(6, "motion") >= V
    assert_close(V.basis @ V.coordinates(v), v.to_array())


def test_sum_and_intersection_of_subspaces_have_the_right_dimensions(rng):
    S = motion_columns(rng, 5)
    V, W = Subspace.span(S[:3]), Subspace.span(S[2:])
    assert (V + W).dim == 5
    assert Subspace.span(S[2:3]) == V & W


@pytest.mark.covers("RBDA 3.3", by=(decompose, is_direct_sum))
def test_components_in_a_direct_sum_add_up(rng):
    S = motion_columns(rng, 6)
    parts = [Subspace.span(S[:1]), Subspace.span(S[1:3]), Subspace.span(S[3:])]
    v = Motion.from_array(rng.standard_normal(6))
    assert is_direct_sum(*parts)
    components = decompose(v, *parts)
    for c, part in zip(components, parts, strict=True):
        assert c in part
    total = components[0] + components[1] + components[2]
    assert_close(total.to_array(), v.to_array(), condition=np.linalg.cond(S.to_array()))


def test_decomposition_into_subspaces_that_overlap_or_leave_room_is_an_error(rng):
    S = motion_columns(rng, 6)
    v = Motion.from_array(rng.standard_normal(6))
    with pytest.raises(SingularError, match=r"dimensions \[4, 3\].*they overlap"):
        decompose(v, Subspace.span(S[:4]), Subspace.span(S[3:]))
    with pytest.raises(SingularError, match=r"dimensions \[2, 3\].*they leave room"):
        decompose(v, Subspace.span(S[:2]), Subspace.span(S[3:]))
    with pytest.raises(SingularError, match=r"\[3, 3\].*they overlap"):
        decompose(v, Subspace.span(S[:3]), Subspace.span(S[2:5]))


@pytest.mark.covers("RBDA Table 3.1", by=Subspace)
@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_properties_of_orthogonal_subspaces(m1, m2, seed):
    rng = np.random.default_rng(seed)
    S1 = Subspace.span(motion_columns(rng, m1))
    S2 = Subspace.span(Force.from_array(rng.standard_normal((6, m2))))
    # subsets
    Y = S2.complement()
    assert S2.is_orthogonal(Y)
    assert Y.is_orthogonal(S2)
    Z = Subspace(Y.basis[:, : Y.dim // 2], "motion")
    assert Z.is_orthogonal(S2)
    assert S2.complement() >= Z
    assert S1.complement().complement() == S1
    # subspaces
    assert S1.dim + S1.complement().dim == 6
    assert S1.is_orthogonal(S2) == bool(np.allclose(S1.basis.T @ S2.basis, 0))
    product = S1.basis.T @ S2.basis
    invertible = m1 == m2 and np.linalg.matrix_rank(product) == m1
    assert is_direct_sum(S1, S2.complement()) == invertible
    assert is_direct_sum(S1.complement(), S2) == invertible


def test_a_euclidean_subspace_and_its_complement_make_the_whole_space(rng):
    S = Subspace.span(rng.standard_normal((5, 2)), "coordinate")
    assert S.complement().kind == "coordinate"
    assert is_direct_sum(S, S.complement())


@pytest.mark.covers("RBDA 3.3", by=Subspace)
@pytest.mark.parametrize("m", DIMENSIONS)
def test_dual_complement_is_invariant_and_the_euclidean_one_is_not(rng, m):
    X = random_placement(rng)
    S = Subspace.span(motion_columns(rng, m))
    assert S.complement().kind == "force"
    assert S.transformed(X).complement() == S.complement().transformed(X)

    def euclidean_complement(S):
        return Subspace(S.complement().basis, "motion")

    shift = xlt(0.3, -0.2, 0.5)
    same = euclidean_complement(S.transformed(shift)) == euclidean_complement(S).transformed(shift)
    assert same == (m in (0, 6))


@pytest.mark.covers("RBDA Example 3.1", by=Subspace)
@pytest.mark.parametrize("m", DIMENSIONS)
def test_forces_that_accelerate_and_forces_that_are_resisted_make_the_whole_space(rng, m):
    S = Subspace.span(motion_columns(rng, m))
    T_a = S.image(random_inertia(rng), "force")
    assert T_a.dim == m
    assert is_direct_sum(T_a, S.complement())


@pytest.mark.covers("6-D Guide 1: Motion Constraints", by=Subspace)
def test_constraint_forces_do_no_work_and_number_six_minus_the_freedoms(rng):
    S = motion_columns(rng, 2)
    T = Subspace.span(S).complement().columns()
    assert isinstance(T, Force)
    assert T.to_array().shape == (6, 4)
    assert_close(T.T @ S, np.zeros((4, 2)), scale=1)


def test_mixing_spaces_is_rejected_by_name(rng):
    M, F = Subspace.whole(6, "motion"), Subspace.whole(6, "force")
    with pytest.raises(SpatialTypeError, match=r"6-dimensional motion .* lie in different spaces"):
        M + F
    with pytest.raises(SpatialTypeError, match="lie in different spaces"):
        decompose(Motion.zero(), M, F)
    with pytest.raises(SpatialTypeError, match="no scalar product"):
        M.is_orthogonal(M)
    with pytest.raises(SpatialTypeError, match="a Force cannot lie in"):
        _ = Force.zero() in M
    with pytest.raises(SpatialTypeError, match="Motion columns do not span a force subspace"):
        Subspace.span(motion_columns(rng, 2), "force")
    with pytest.raises(SpatialTypeError, match="must be one of"):
        Subspace.span(np.eye(3), "velocity")
    with pytest.raises(SpatialTypeError, match="has no spatial vectors"):
        Subspace.whole(4, "motion").columns()


def test_shapes_are_checked(rng):
    with pytest.raises(ShapeError, match=r"columns of a matrix, got shape \(6,\)"):
        Subspace.span(np.zeros(6), "motion")
    with pytest.raises(ShapeError, match=r"null space needs a matrix"):
        Subspace.null(np.zeros(6), "motion")
    with pytest.raises(ShapeError, match=r"vectors of shape \(6,\), got \(3,\)"):
        _ = np.zeros(3) in Subspace.whole(6, "motion")
