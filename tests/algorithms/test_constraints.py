import numpy as np
import pytest
from support import linkages
from support.closeness import assert_close

from kinetree.algorithms.closed.subspace import Subspace
from kinetree.algorithms.closed.systems import Explicit, Implicit
from kinetree.errors import ShapeError, SingularError
from kinetree.textbook.constraint_equations import check_same_constraint

L1, L2, L3, D = linkages.L1, linkages.L2, linkages.L3, linkages.D


def four_bar_implicit(q, qd):
    """phi, K and k of the four-bar linkage, written down by hand: the pin is where the pin is."""
    a, b, c = q[0], q[0] + q[1], q[2]
    ad, bd, cd = qd[0], qd[0] + qd[1], qd[2]
    s, co = np.sin, np.cos
    phi = [
        L1 * co(a) + L2 * co(b) - D - L3 * co(c),
        L1 * s(a) + L2 * s(b) - L3 * s(c),
    ]
    K = [
        [-L1 * s(a) - L2 * s(b), -L2 * s(b), L3 * s(c)],
        [L1 * co(a) + L2 * co(b), L2 * co(b), -L3 * co(c)],
    ]
    k = [
        L1 * co(a) * ad**2 + L2 * co(b) * bd**2 - L3 * co(c) * cd**2,
        L1 * s(a) * ad**2 + L2 * s(b) * bd**2 - L3 * s(c) * cd**2,
    ]
    return Implicit(np.array(K), np.array(k), error=np.array(phi))


def four_bar_both(y=0.8, yd=2.3):
    q, G, g = linkages.explicit(linkages.four_bar_positions, y, yd)
    return four_bar_implicit(q, G * yd), Explicit(G[:, None], g)


@pytest.mark.covers("RBDA 3.2", by=check_same_constraint)
@pytest.mark.parametrize("y", [-1.1, 0.2, 0.8, 2.9])
def test_phi_of_gamma_is_zero_and_KG_is_zero_and_Kg_is_k_on_a_four_bar(y):
    implicit, explicit = four_bar_both(y)
    check_same_constraint(implicit, explicit, tolerance=1e-13)
    assert implicit.motion_subspace == explicit.motion_subspace
    assert implicit.force_subspace == explicit.force_subspace


@pytest.mark.covers("RBDA 3.2", by=(Implicit.to_explicit, Explicit.to_implicit))
def test_conversion_describes_the_same_constraint(rng):
    implicit = Implicit(*(rng.standard_normal(s) for s in ((3, 7), 3, 3)))
    check_same_constraint(implicit, implicit.to_explicit(), tolerance=1e-14)
    explicit = Explicit(*(rng.standard_normal(s) for s in ((7, 4), 7, 7)))
    check_same_constraint(explicit.to_implicit(), explicit, tolerance=1e-14)


def test_redundant_equations_convert_and_contradictory_ones_do_not(rng):
    K, k = rng.standard_normal((2, 5)), rng.standard_normal(2)
    A = rng.standard_normal((4, 2))
    redundant = Implicit(A @ K, A @ k)
    assert (redundant.count, redundant.rank) == (4, 2)
    check_same_constraint(Implicit(K, k), redundant.to_explicit(), tolerance=1e-13)
    with pytest.raises(SingularError, match=r"of 4 equations K qdd = k only 2 are independent"):
        Implicit(A @ K, A @ k + np.array([0, 0, 0, 1])).to_explicit()
    with pytest.raises(SingularError, match=r"only 2 are independent"):  # however small they are
        Implicit(A @ K, 1e-6 * (A @ k + np.array([0, 0, 0, 1e-3]))).to_explicit()
    with pytest.raises(SingularError, match=r"of 4 equations K qd = rate only 2 are"):
        Implicit(A @ K, A @ k, np.array([0, 0, 0, 1])).to_explicit()


@pytest.mark.parametrize(("count", "n"), [(0, 4), (4, 4), (0, 0)])
def test_no_constraint_and_no_freedom_are_legal(count, n):
    explicit = Implicit(np.eye(n)[:count]).to_explicit()
    assert explicit.G.shape == (n, n - count)
    assert explicit.to_implicit().K.shape == (count, n)


@pytest.mark.covers("RBDA 3.2", by=(Implicit, Explicit))
def test_constraint_forces_have_no_power_along_any_allowed_velocity(rng):
    implicit, explicit = four_bar_both()
    tau_c = implicit.K.T @ rng.standard_normal(2)
    for yd in rng.standard_normal((5, 1)):
        assert_close(tau_c @ explicit.G @ yd, 0.0, scale=1)
    assert Subspace.span(tau_c[:, None], "force") <= explicit.force_subspace


def test_stacked_constraints_hold_both(rng):
    a = Implicit(rng.standard_normal((2, 4)), rng.standard_normal(2))
    b = Implicit(rng.standard_normal((1, 4)), rng.standard_normal(1), error=np.ones(1))
    both = a.stack(b)
    assert both.count == 3
    assert both.motion_subspace == a.motion_subspace & b.motion_subspace
    assert_close(both.error, [0, 0, 1])


def test_different_constraints_are_distinguished():
    implicit, explicit = four_bar_both()
    K, k, G, g = implicit.K, implicit.k, explicit.G, explicit.g
    for wrong_K, wrong_k, error, match in (
        (K, k, np.array([0, 0.1]), r"phi\(gamma\(y\)\) = 0 is missed by 0.1"),
        (K + np.eye(2, 3), k, None, r"K G = 0 is missed"),
        (K, k + 1, None, r"K g = k is missed"),
        (K[:1], k[:1], None, r"K allows 2 velocity degrees of freedom and G spans 1"),
    ):
        with pytest.raises(ShapeError, match=match):
            check_same_constraint(Implicit(wrong_K, wrong_k, error=error), Explicit(G, g))
    with pytest.raises(ShapeError, match="K rate = rate is missed"):
        check_same_constraint(implicit, Explicit(G, g, rate=np.ones(3)))
    with pytest.raises(ShapeError, match="K has 3 columns and G 2 rows"):
        check_same_constraint(implicit, Explicit(G[:2]))


def test_shapes_are_checked():
    with pytest.raises(ShapeError, match=r"Implicit.k must have shape \(2,\), got \(3,\)"):
        Implicit(np.eye(2), np.zeros(3))
    with pytest.raises(ShapeError, match=r"Explicit.G must have a matrix, got \(2,\)"):
        Explicit(np.zeros(2))
