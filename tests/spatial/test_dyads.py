import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_force, random_motion

from kinetree.errors import ModelError, ShapeError, SpatialTypeError
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Dyadic, Force, Inertia, InverseInertia, Motion, dense, inertia_dyads

RANDOM = {Motion: random_motion, Force: random_force}
KINDS = [(Motion, Motion), (Force, Force), (Motion, Force), (Force, Motion)]


@pytest.fixture(params=KINDS, ids=lambda k: f"{k[0].__name__}-to-{k[1].__name__}")
def kind(request):
    return request.param


@pytest.mark.covers("RBDA 2.13", "RBDA Table 2.5", by=Dyadic)
class TestTable25:
    """The four kinds of dyadic and their coordinate transforms."""

    def test_transform_then_apply_is_apply_then_transform(self, kind, rng):
        domain, codomain = kind
        A = Dyadic(rng.standard_normal((6, 6)), domain, codomain)
        X, x = random_placement(rng), RANDOM[domain](rng)
        assert_close((X.apply(A) @ X.apply(x)).to_array(), X.apply(A @ x).to_array(), ulps=500)
        assert_close(X.inv_apply(X.apply(A)).to_matrix(), A.to_matrix(), ulps=500)

    def test_rules_as_printed(self, rng):
        X, A = random_placement(rng), rng.standard_normal((6, 6))
        M, F = X.to_matrix(), X.to_force_matrix()
        Mi, Fi = np.linalg.inv(M), np.linalg.inv(F)
        expected = [M @ A @ Mi, F @ A @ Fi, F @ A @ Mi, M @ A @ Fi]
        for (domain, codomain), B in zip(KINDS, expected, strict=True):
            assert_close(X.apply(Dyadic(A, domain, codomain)).to_matrix(), B, ulps=500)

    def test_similarity_keeps_eigenvalues(self, kind, rng):
        domain, codomain = kind
        A = rng.standard_normal((6, 6))
        A = A + A.T
        B = random_placement(rng).apply(Dyadic(A, domain, codomain)).to_matrix()
        trace_kept = abs(np.trace(A) - np.trace(B)) < 1e-10
        symmetric = np.allclose(B, B.T, atol=1e-10)
        assert (trace_kept, symmetric) == ((True, False) if domain is codomain else (False, True))

    def test_cross_operators_and_inertias_are_examples(self, rng):
        X, v, I = random_placement(rng), random_motion(rng), random_inertia(rng)
        crm = Dyadic(dense.crm(v.to_array()), Motion, Motion)
        crf = Dyadic(dense.crf(v.to_array()), Force, Force)
        moved = (X @ v).to_array()
        assert_close(X.apply(crm).to_matrix(), dense.crm(moved))
        assert_close(X.apply(crf).to_matrix(), dense.crf(moved))
        as_map = Dyadic(I.to_matrix(), Motion, Force)
        assert_close(X.apply(as_map).to_matrix(), X.apply(I).to_matrix())
        Phi = InverseInertia.from_inertia(I)
        as_map = Dyadic(Phi.to_matrix(), Force, Motion)
        assert_close(X.apply(as_map).to_matrix(), X.apply(Phi).to_matrix())


@pytest.mark.covers("RBDA 2.1", by=Dyadic.from_dyads)
class TestDyads:
    """Sums of a b·."""

    def test_one_dyad_scales_its_left_vector(self, rng):
        f, g, m = random_force(rng), random_force(rng), random_motion(rng)
        d = Dyadic.from_dyads(f, g)
        assert (d.domain, d.codomain) == (Motion, Force)
        assert_close((d @ m).to_array(), (f * g.dot(m)).to_array())
        assert np.linalg.matrix_rank(d.to_matrix()) == 1

    def test_rank_is_the_number_of_independent_dyads(self, rng):
        for r in range(1, 7):
            d = Dyadic.from_dyads(random_motion(rng, r), random_force(rng, r))
            assert (d.domain, d.codomain) == (Motion, Motion)
            assert np.linalg.matrix_rank(d.to_matrix()) == r

    def test_columns_must_pair(self, rng):
        with pytest.raises(ShapeError, match="pair columns one to one, got 2 and 3"):
            Dyadic.from_dyads(random_motion(rng, 2), random_force(rng, 3))


def test_composition_follows_the_kinds(rng):
    I = random_inertia(rng)
    as_map = Dyadic(I.to_matrix(), Motion, Force)
    inverse = Dyadic(InverseInertia.from_inertia(I).to_matrix(), Force, Motion)
    product = inverse @ as_map
    assert (product.domain, product.codomain) == (Motion, Motion)
    assert_close(product.to_matrix(), np.eye(6), condition=np.linalg.cond(I.to_matrix()))
    with pytest.raises(SpatialTypeError, match="of kind Motion to Force acts on no Force"):
        as_map @ as_map


def test_sums_stay_within_a_kind(rng):
    A = Dyadic(np.eye(6), Motion, Force)
    assert np.array_equal((A + 2 * A).to_matrix(), 3 * np.eye(6))
    with pytest.raises(SpatialTypeError, match="cannot add Force to Motion to a dyadic of kind"):
        A + Dyadic(np.eye(6), Force, Motion)
    with pytest.raises(SpatialTypeError, match="cannot add int"):
        A + 1
    with pytest.raises(SpatialTypeError, match="acts on no Force"):
        A @ random_force(rng)


def test_construction_is_checked():
    with pytest.raises(ShapeError, match="a dyadic is a 6x6 matrix"):
        Dyadic(np.eye(3), Motion, Force)
    with pytest.raises(SpatialTypeError, match="maps Motion or Force"):
        Dyadic(np.eye(6), int, Force)


@pytest.mark.covers("RBDA 2.13", by=inertia_dyads)
class TestInertiaDyads:
    """An inertia is the sum of six symmetric dyads."""

    @pytest.mark.parametrize("particles", [1, 2, 3, 7])
    def test_six_dyads_rebuild_the_inertia(self, particles, rng):
        I = random_inertia(rng, points=particles)
        g = inertia_dyads(I)
        assert isinstance(g, Force)
        assert_close(Dyadic.from_dyads(g, g).to_matrix(), I.to_matrix())

    def test_they_move_with_the_body(self, rng):
        I, X = random_inertia(rng), random_placement(rng)
        g = X.star @ inertia_dyads(I)
        assert_close(Dyadic.from_dyads(g, g).to_matrix(), X.apply(I).to_matrix())

    def test_negative_inertia_is_rejected(self):
        with pytest.raises(ModelError, match="is not positive is not a sum of dyads"):
            inertia_dyads(Inertia.from_mass_center(1.0, np.zeros(3), np.diag([-1.0, 1, 1])))
        with pytest.raises(SpatialTypeError, match="needs an Inertia, got Motion"):
            inertia_dyads(Motion.zero())
