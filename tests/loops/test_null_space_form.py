import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import absolute_five_bar, five_bar, pendulum

from kinetree import samples
from kinetree.loops.state_space import charts, multipliers
from kinetree.loops.state_space.invariants import rate_gradient
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.multipliers import Stabilization
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.textbook import null_space_forms
from kinetree.textbook.regularization import recovered_multipliers
from kinetree.textbook.svd_form import SVDForm

SYSTEMS = [pendulum, five_bar, absolute_five_bar]


@pytest.mark.covers("Spencer 2.4", by=null_space_forms.acceleration)
@pytest.mark.parametrize("make", SYSTEMS)
def test_any_basis_and_any_particular_acceleration_will_do(make, rng):
    """Also off the manifold, where it is the equation by multipliers that they agree with."""
    system = make()
    q, v = rng.standard_normal((2, system.n))
    p = system.n - system.m
    expected = multipliers.acceleration(system, 0.0, q, v)
    K, c = null_space_forms.svd(system, q, v)
    choices = [
        (K, c),
        null_space_forms.qr(system, q, v),
        (K @ rng.standard_normal((p, p)), c + K @ rng.standard_normal(p)),
    ]
    G = system.G(q)
    for K, c in choices:
        condition = np.linalg.cond(K) ** 2 * np.linalg.cond(G)
        np.testing.assert_allclose(G @ K, 0, atol=1e-13)
        found = null_space_forms.acceleration(system, 0.0, q, v, K, c)
        assert_close(found, expected, ulps=1e3, condition=condition)
        # (2.41): multiplied by the transpose of K, the constraint forces are gone
        residual = K.T @ (system.M(q) @ found - system.F(0.0, q, v))
        scale = np.linalg.norm(system.M(q)) * np.linalg.norm(found) * np.linalg.norm(K)
        assert_close(residual, 0 * residual, scale=scale, ulps=1e3, condition=condition)


@pytest.mark.covers("Spencer 2.4", by=null_space_forms.svd)
def test_stabilisation_enters_the_particular_acceleration(rng):
    system, damping = five_bar(), Stabilization(3.0, 5.0)
    q, v = 0.2 * rng.standard_normal((2, 4))
    expected = multipliers.acceleration(system, 0.0, q, v, stabilization=damping)
    for basis in (null_space_forms.svd, null_space_forms.qr):
        space = basis(system, q, v, stabilization=damping)
        assert_close(null_space_forms.acceleration(system, 0.0, q, v, *space), expected, ulps=1e4)
    form = SVDForm(system, stabilization=damping)
    assert_close(form.acceleration(0.0, q, v), expected, ulps=1e4)


@pytest.mark.covers("Spencer 2.4", by=(null_space_forms.gram_schmidt, null_space_forms.qr_rate))
@pytest.mark.parametrize("make", SYSTEMS)
def test_rates_of_differentiable_null_spaces(make, rng):
    system = make()
    q, v = rng.standard_normal((2, system.n))
    v = v - np.linalg.pinv(system.G(q)) @ system.G(q) @ v  # v = K ydot
    G, Gdot = system.G(q), rate_gradient(system, q, v)
    K0 = null_space_forms.svd(system, q, v).K
    completion = (K0 + 0.3 * rng.standard_normal(K0.shape)).T
    expected = multipliers.acceleration(system, 0.0, q, v)
    for K, Kdot in (
        null_space_forms.gram_schmidt(G, Gdot, completion),
        null_space_forms.qr_rate(G, Gdot),
    ):
        np.testing.assert_allclose(K.T @ K, np.eye(K.shape[1]), atol=1e-14)
        np.testing.assert_allclose(G @ Kdot + Gdot @ K, 0, atol=1e-11)
        c = Kdot @ (K.T @ v)  # ydot are quasi-velocities
        found = null_space_forms.acceleration(system, 0.0, q, v, K, c)
        assert_close(found, expected, ulps=1e4, condition=np.linalg.cond(G))
    # columns of the QR factorisation do not turn: Kdot ydot is minus the smallest
    K, Kdot = null_space_forms.qr_rate(G, Gdot)
    c = -np.linalg.pinv(G) @ system.Gdot_v(q, v)
    assert_close(Kdot @ (K.T @ v), c, ulps=1e4, condition=np.linalg.cond(G))
    assert_close(null_space_forms.qr(system, q, v).c, c, ulps=1e4, condition=np.linalg.cond(G))


@pytest.mark.covers("Spencer 2.4", by=null_space_forms.gram_schmidt)
def test_the_gram_schmidt_basis_is_a_differentiable_function(rng):
    system = absolute_five_bar()
    q, v = rng.standard_normal((2, 4))
    completion, h = rng.standard_normal((2, 4)), 1e-6

    def basis(q):
        return null_space_forms.gram_schmidt(system.G(q), np.zeros((2, 4)), completion)[0]

    Gdot = rate_gradient(system, q, v)
    _, Kdot = null_space_forms.gram_schmidt(system.G(q), Gdot, completion)
    differences = (basis(q + h * v) - basis(q - h * v)) / (2 * h)
    np.testing.assert_allclose(Kdot, differences, rtol=1e-5, atol=1e-7)


@pytest.mark.covers("Spencer 2.4", by=ConstrainedSystem)
def test_only_the_product_of_the_rate_of_g_with_velocities_is_needed(rng):
    """No form evaluates the matrix dG/dt."""
    plain = system_of(samples.five_bar())

    def never(q, v):
        raise AssertionError("the matrix Gdot was computed")

    system = ConstrainedSystem(**{**vars(plain), "rate_gradient": never})
    q = np.zeros(4)
    v = np.linalg.svd(system.G(q))[2][2:].T @ [0.4, 0.3]
    expected = multipliers.acceleration(system, 0.0, q, v)
    for chart in (charts.tangent(system, q), charts.partition(system, q)):
        y = chart.coordinates(q, v)
        point = chart.solve(y)
        assert_close(point.K @ chart.rate(0.0, y)[2:] + point.c, expected, ulps=1e4)
    assert_close(SVDForm(system).acceleration(0.0, q, v), expected, ulps=1e4)


@pytest.mark.covers("Spencer 2.4", by=recovered_multipliers)
def test_multipliers_after_a_solution_without_them(rng):
    system = five_bar()
    q, v = 0.2 * rng.standard_normal((2, 4))
    space = null_space_forms.svd(system, q, v)
    a = null_space_forms.acceleration(system, 0.0, q, v, *space)
    found = recovered_multipliers(system, 0.0, q, v, a)
    assert_close(found, multipliers.multipliers(system, 0.0, q, v), ulps=1e4)


def test_recovered_multipliers_of_redundant_constraints_hold_the_motion():
    system = system_of(samples.four_bar())
    q, v = np.zeros(3), np.zeros(3)
    form = SVDForm(system, q=q)
    assert form.rank == 2
    a = form.acceleration(0.0, q, v)
    lam = recovered_multipliers(system, 0.0, q, v, a)
    force = system.F(0.0, q, v) - system.M(q) @ a
    np.testing.assert_allclose(system.G(q).T @ lam, force, atol=1e-12)
