from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import HOME, SINGULAR, absolute_five_bar, five_bar, pendulum

from kinetree import samples
from kinetree.errors import ShapeError, SingularError, SingularityWarning
from kinetree.loops.state_space import multipliers
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.multipliers import Stabilization
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.textbook.svd_form import SingularityWatch, SVDForm, _next_to


@pytest.mark.covers("Spencer 3.1", by=SVDForm)
def test_singular_values_give_basis_inverse_and_nearness(rng):
    system = five_bar()
    q, v = 0.3 * rng.standard_normal((2, 4))
    form, G = SVDForm(system), system.G(q)
    seen = form.evaluate(0.0, q, v)
    np.testing.assert_allclose(G @ seen.K, 0, atol=1e-14)
    np.testing.assert_allclose(seen.K.T @ seen.K, np.eye(2), atol=1e-14)
    assert_close(form.pseudo_inverse(q), np.linalg.pinv(G), ulps=1e3)
    assert_close(seen.c, -np.linalg.pinv(G) @ system.Gdot_v(q, v), ulps=1e3)
    assert seen.kappa == pytest.approx(np.linalg.cond(G))
    assert seen.rank == 2
    # (3.2): [V2'; G] has the inverse [V2 pinv(G)], so that K of the frozen chart is V2
    whole = np.linalg.inv(np.concatenate([seen.K.T, G]))
    assert_close(whole, np.concatenate([seen.K, np.linalg.pinv(G)], axis=1), ulps=1e3)
    assert_close(seen.vdot, multipliers.acceleration(system, 0.0, q, v), ulps=1e4)


@pytest.mark.covers("Spencer 3.1", by=SVDForm)
def test_nearness_at_the_second_start():
    assert SVDForm(five_bar()).evaluate(0, np.zeros(4), np.zeros(4)).kappa == pytest.approx(
        1.612, abs=1e-3
    )


@pytest.mark.covers("Spencer 3.1", by=SVDForm.evaluate)
def test_the_form_does_not_fail_at_the_singular_point():
    """Two of three directions are kept, which is arbitrary: one of the two branches printed."""
    system = absolute_five_bar()
    found = {}
    for name, theta in (("minus", [np.pi, 0, 0, -np.pi]), ("plus", [np.pi, 0, 0, np.pi])):
        seen = SVDForm(system).evaluate(0.0, np.array(theta), np.zeros(4), warn=False)
        assert seen.rank == 1
        assert seen.kappa > 1e12
        found[name] = seen.vdot
    for vdot in found.values():
        assert np.all(np.isfinite(vdot))
        np.testing.assert_allclose(vdot[[0, 1]], -vdot[[3, 2]], atol=1e-9)  # symmetric
    with pytest.warns(SingularityWarning, match="leave 3 of 4 directions free instead of 2"):
        seen = SVDForm(five_bar()).evaluate(0.0, SINGULAR, np.zeros(4))
    assert np.all(np.isfinite(seen.vdot))


@pytest.mark.covers("Spencer 3.1", by=SVDForm.evaluate)
def test_a_rank_is_found_or_rejected():
    """Of the constraints as they are, of repeated ones, and where neighbours cannot be found."""
    system = absolute_five_bar()
    doubled = system.with_rows([0, 1, 0])
    flat, rest = np.array([np.pi, 0, 0, -np.pi]), np.zeros(4)
    for one in (system, doubled):
        form = SVDForm(one)
        assert form.evaluate(0.0, flat, rest, warn=False).rank == 1
        assert form.rank == 2
    assert SVDForm(doubled, rank=2).evaluate(0.0, HOME, rest).rank == 2
    with pytest.raises(ShapeError, match=r"rank = 1 of SVDForm contradicts .* of which 2"):
        SVDForm(system, rank=1).evaluate(0.0, HOME, rest)
    with pytest.raises(ShapeError, match=r"rank = 3 .* 2 are independent here and next to it"):
        SVDForm(doubled, rank=3).evaluate(0.0, HOME, rest)
    torn = replace(doubled, g=lambda q: doubled.g(q) + 1 + q @ q)
    with pytest.raises(SingularError, match="cannot tell redundant constraints from a singul"):
        SVDForm(torn).evaluate(0.0, HOME, rest)
    with pytest.raises(ShapeError, match=r"from 0 to less than 1.* got threshold = 2"):
        SVDForm(system, threshold=2)


@pytest.mark.covers("Spencer 3.1", by=SVDForm.evaluate)
def test_the_indicator_is_what_the_smallest_singular_value_divides(rng):
    system = five_bar()
    q, v = 0.3 * rng.standard_normal((2, 4))
    seen = SVDForm(system).evaluate(0.0, q, v)
    U, s, Vt = np.linalg.svd(system.G(q))
    products = system.Gdot_v(q, v)
    parts = [Vt[i] * (U[:, i] @ products) / s[i] for i in range(2)]
    assert_close(seen.c, -sum(parts), ulps=1e3)
    assert seen.indicator / s[1] == pytest.approx(np.linalg.norm(parts[1]))


@pytest.mark.covers("Spencer 3.1", by=Stabilization)
@pytest.mark.parametrize(
    ("alpha", "beta", "roots"),
    [(10.0, 10.0, [-10] * 4), (5.0, 13.0, [-5 - 12j, -5 - 12j, -5 + 12j, -5 + 12j])],
)
def test_stabilisation_moves_the_zero_eigenvalues(alpha, beta, roots):
    """Of the underlying equation at the stable equilibrium, in both forms."""
    system = absolute_five_bar()
    theta = np.deg2rad([275.883898, -74.633563, 74.633563, -275.883898])
    for form in (
        SVDForm(system, stabilization=Stabilization(alpha, beta)).acceleration,
        lambda t, q, v: multipliers.acceleration(
            system, t, q, v, stabilization=Stabilization(alpha, beta)
        ),
    ):
        h, x = 1e-5, np.concatenate([theta, np.zeros(4)])
        A = [
            (_rate(form, x + h * e) - _rate(form, x - h * e)) / (2 * h) for e in np.eye(8)
        ]  # fmt: skip
        values = np.linalg.eigvals(np.array(A).T)
        swinging = np.array([3.37326j, -3.37326j, 3.96891j, -3.96891j])
        for expected in swinging:
            assert np.min(np.abs(values - expected)) < 1e-4
        rest = values[[np.min(np.abs(swinging - z)) > 1e-2 for z in values]]
        # a double root splits by the square root of the differences' error
        assert len(rest) == 4
        for z, root in zip(sorted(rest, key=lambda z: z.imag), roots, strict=True):
            assert abs(z - root) < 0.05


def _rate(form, x):
    return np.concatenate([x[4:], form(0.0, x[:4], x[4:])])


@pytest.mark.covers("Spencer 3.3", by=SVDForm.pseudo_inverse)
def test_the_damped_inverse(rng):
    system = five_bar()
    q = 0.3 * rng.standard_normal(4)
    G = system.G(q)
    for mu in (1.0, 1e-2):
        damped = SVDForm(system, damping=mu).pseudo_inverse(q)
        assert_close(damped, G.T @ np.linalg.inv(G @ G.T + mu**2 * np.eye(2)), ulps=1e3)
        assert np.linalg.norm(damped, 2) <= 1 / (2 * mu) + 1e-12
    gaps = [
        np.linalg.norm(SVDForm(system, damping=mu).pseudo_inverse(q) - np.linalg.pinv(G))
        for mu in (1e-1, 1e-2, 1e-3)
    ]
    assert gaps[0] > 50 * gaps[1] > 2500 * gaps[2]
    near = SVDForm(system, damping=1e-3).pseudo_inverse(SINGULAR)
    assert np.linalg.norm(near, 2) <= 500


@pytest.mark.covers("Spencer 3.3", by=SVDForm)
def test_softened_constraints_lose_the_smallest_singular_value():
    system, q = five_bar(), np.zeros(4)
    soft = SVDForm(system, threshold=0.7)  # sigma ratio is 0.62
    assert np.linalg.matrix_rank(soft.pseudo_inverse(q)) == 1
    assert soft.evaluate(0.0, q, np.zeros(4)).rank == 1
    U, s, Vt = np.linalg.svd(system.G(q))
    assert_close(soft.pseudo_inverse(q), np.outer(Vt[0], U[:, 0]) / s[0], ulps=1e3)


def test_redundant_constraints_are_no_singularity():
    model = samples.stewart()
    system = system_of(model)
    q = model.neutral()
    form = SVDForm(system, q=q)
    seen = form.evaluate(0.0, q, np.zeros(system.n))
    assert seen.rank == form.rank
    assert seen.kappa < 1e4
    expected = multipliers.acceleration(system.independent(q), 0.0, q, np.zeros(system.n))
    np.testing.assert_allclose(seen.vdot, expected, atol=1e-9)


def test_a_system_without_constraints_is_free():
    free = pendulum().with_rows([])
    seen = SVDForm(free).evaluate(0.0, np.ones(2), np.zeros(2))
    np.testing.assert_allclose(seen.vdot, [0, -9.81], atol=1e-15)
    assert (seen.kappa, seen.indicator, seen.rank) == (1.0, 0.0, 0)


class Seen:
    """An evaluation with one singular value."""

    def __init__(self, sigma):
        self.sigma, self.kappa, self.indicator = np.array([1.0, sigma]), 1 / sigma, 0.5 * sigma


@pytest.mark.covers("Spencer 3.1", by=SingularityWatch)
def test_passes_are_found_between_samples():
    watch, exact = SingularityWatch(limit=20), 0.7137
    found = [
        watch.update(t, Seen(np.hypot(2 * (t - exact), 0.01))) for t in np.arange(0, 1.5, 0.02)
    ]
    (event,) = watch.passes
    assert [e for e in found if e is not None] == [event]
    assert event.time == pytest.approx(exact, abs=1e-12)
    assert event.kappa == pytest.approx(1 / event.sigma)
    assert str(event).startswith("near singular at t = 0.7137 s: smallest singular value")
    assert str(event).endswith("may have gone through a bifurcation")


def test_far_approaches_do_not_count_and_a_singular_start_does():
    watch = SingularityWatch(limit=100)
    for t, sigma in enumerate([0.3, 0.2, 0.3]):
        assert watch.update(t, Seen(sigma)) is None
    watch = SingularityWatch(limit=100)
    watch.update(0.0, Seen(1e-9))
    found = watch.update(0.1, Seen(1e-2))
    assert (found.time, found.sigma, found.indicator) == (0.0, 1e-9, 0.5e-9)
    assert watch.passes == [found]


def test_right_at_a_singularity_the_condition_is_infinite():
    """The centre of the circle of a pendulum, where its one constraint says nothing."""
    with np.errstate(all="raise"):
        seen = SVDForm(pendulum()).evaluate(0.0, np.zeros(2), np.zeros(2), warn=False)
    assert (seen.sigma[0], seen.kappa) == (0.0, np.inf)


def test_configurations_next_to_one_are_a_hundredth_away():
    free = ConstrainedSystem(
        n=40, m=0, M=lambda q: np.eye(40), F=lambda t, q, v: np.zeros(40),
        g=lambda q: np.zeros(0), G=lambda q: np.zeros((0, 40)), Gdot_v=lambda q, v: np.zeros(0),
    )  # fmt: skip
    q = np.linspace(-1, 1, 40)
    away = np.array(_next_to(free, q)) - q
    assert away.shape == (3, 40)
    assert 0.007 < np.std(away) < 0.013
    assert np.max(np.abs(away)) < 0.05
