"""Friction cones and mixed problems: closed forms, definitions, and methods against one another."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from support.closeness import assert_close
from support.contact_scenes import assert_laws_hold, ball_in_slot, box, stack

from kinetree.contact.complementarity import cones, quadratic
from kinetree.contact.complementarity.residuals import MixedEquations, residuals
from kinetree.contact.complementarity.rows import MixedRows, newton_matrix, scale
from kinetree.contact.complementarity.sweeps import one_contact_force
from kinetree.contact.complementarity.traced import Sweeps
from kinetree.errors import ShapeError, UnknownNameError

G = 9.81
METHODS = list(cones.METHODS)


def random_problem(rng, contacts, rank, others=0):
    J = rng.normal(size=(3 * contacts + others, rank))
    return J @ J.T, J @ rng.normal(size=rank), rng.uniform(0, 1, contacts)


# --- one contact, in closed form -----------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("excess", [-1e-6, 1e-6])
def test_block_on_an_incline_sticks_below_the_friction_angle_and_slides_above(method, excess):
    mu, m, dt = 0.5, 2.0, 1e-3
    slope = np.arctan(mu) + excess
    b = dt * G * np.array([-np.cos(slope), np.sin(slope), 0.0])
    found = cones.solve(np.eye(3) / m, b, [mu], method=method)
    assert found.converged
    slides = max(np.sin(slope) - mu * np.cos(slope), 0.0)
    assert_close(found.w, dt * G * np.array([0, slides, 0]), scale=dt * G, ulps=1e5)
    assert_close(found.lam[0], m * G * dt * np.cos(slope), ulps=1e5)


def test_sliding_sphere_starts_to_roll_or_slides_on():
    """Solid sphere, unit mass, landing at 2 m/s: tangential inertia 2/7, as in RBDA (11.72)."""
    A = np.diag([1.0, 3.5, 3.5])
    rolls = cones.solve(A, [-2.0, 1.0, 0.0], [0.3])
    np.testing.assert_allclose(rolls.lam, [2.0, -2 / 7, 0.0], rtol=1e-14)
    slides = cones.solve(A, [-2.0, 3.0, 4.0], [0.3])
    np.testing.assert_allclose(slides.lam, [2.0, -0.36, -0.48], rtol=1e-14)


def test_convex_law_lifts_what_slides():
    mu, b = 0.5, np.array([-1.0, 3.0, 0.0])
    found = cones.solve(np.eye(3), b, [mu], law="convex")
    np.testing.assert_allclose(found.w[0], mu * found.w[1], rtol=1e-14)
    generator = np.array([1, -mu, 0])
    np.testing.assert_allclose(found.lam, -(generator @ b) / 1.25 * generator, rtol=1e-14)


@pytest.mark.parametrize("convex", [False, True])
def test_one_contact_is_solved_exactly(rng, convex):
    for _ in range(200):
        root = rng.normal(size=(3, 3))
        A, b, mu = root @ root.T + 0.05 * np.eye(3), rng.normal(size=3), rng.choice([0, 0.3, 0.9])
        lam = one_contact_force(A, b, mu, convex)
        assert_laws_hold(A, b, [mu], lam, convex=convex, tolerance=1e-9)


# --- several -------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["coulomb", "convex"])
@pytest.mark.parametrize(("contacts", "rank"), [(2, 6), (4, 6), (4, 18), (8, 12)])
def test_newton_meets_the_definitions_at_any_rank(rng, law, contacts, rank):
    for _ in range(6):
        A, b, mu = random_problem(rng, contacts, rank)
        found = cones.solve(A, b, mu, law=law)
        assert found.converged
        assert max(found.residuals) < 1e-10
        assert_laws_hold(A, b, mu, found.lam, convex=law == "convex", tolerance=1e-10)


@pytest.mark.parametrize("law", ["coulomb", "convex"])
def test_boxes_on_four_corners(rng, law):
    for _ in range(10):
        A, b, mu = box(rng)
        found = cones.solve(A, b, mu, law=law)
        assert found.converged
        assert max(found.residuals) < 1e-10
        assert_laws_hold(A, b, mu, found.lam, convex=law == "convex")


@pytest.mark.parametrize(("levels", "ratio"), [(3, 1.0), (4, 0.1), (3, 10.0)])
def test_stacks(rng, levels, ratio):
    A, b, mu = stack(rng, levels, ratio)
    found = cones.solve(A, b, mu)
    assert found.converged
    assert max(found.residuals) < 1e-9
    assert_laws_hold(A, b, mu, found.lam, tolerance=1e-9)


@pytest.mark.parametrize("law", ["coulomb", "convex"])
def test_methods_agree_where_forces_are_unique(rng, law):
    low, high = [-np.inf, 0.0, -0.1, -np.inf], [np.inf, np.inf, 0.2, 0.0]
    for _ in range(4):
        A, b, mu = random_problem(rng, 2, 14, others=4)
        found = [
            cones.solve(A, b, 0.6 * mu, low=low, high=high, method=method, law=law)
            for method in METHODS
        ]
        assert all(each.converged for each in found)
        for each in found:
            np.testing.assert_allclose(each.lam, found[0].lam, atol=1e-8)
        assert_laws_hold(A, b, 0.6 * mu, found[0].lam, convex=law == "convex", low=low, high=high)


def test_convex_law_is_a_convex_program(rng):
    A, b, mu = random_problem(rng, 2, 8)
    found = cones.solve(A, b, mu, law="convex")
    cone = {"type": "ineq", "fun": lambda x: _cone(x, mu)}
    start = np.array([1.0, 0, 0, 1.0, 0, 0])
    other = minimize(
        lambda x: 0.5 * x @ A @ x + b @ x, start, jac=lambda x: A @ x + b, constraints=cone,
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    assert 0.5 * found.lam @ A @ found.lam + b @ found.lam <= other.fun + 1e-9
    np.testing.assert_allclose(found.lam, other.x, atol=1e-5)


def _cone(x, mu):
    n, s, t = x.reshape(-1, 3).T
    return np.concatenate([(mu * n) ** 2 - s**2 - t**2, n])


def test_coulombs_law_is_a_fixed_point_of_convex_programs(rng):
    """De Saxcé's correction, added to b from outside until it repeats itself."""
    A, b, mu = random_problem(rng, 3, 12)
    found, correction = cones.solve(A, b, mu), np.zeros(9)
    for _ in range(60):
        w = cones.solve(A, b + correction, mu, law="convex").w
        correction[::3] = mu * np.hypot(w[1::3], w[2::3])
    np.testing.assert_allclose(found.w, w - correction, atol=1e-9)


def test_without_friction_it_is_the_linear_problem(rng):
    A, b, _ = random_problem(rng, 5, 15)
    normal = np.arange(0, 15, 3)
    found = cones.solve(A, b, np.zeros(5))
    other = quadratic.in_forces(A[np.ix_(normal, normal)], b[normal])
    np.testing.assert_allclose(found.lam[normal], other.lam, atol=1e-10)
    assert not np.any(found.lam.reshape(-1, 3)[:, 1:])


def test_without_contacts_it_is_the_bounded_program(rng):
    A, b, _ = random_problem(rng, 0, 6, others=6)
    low, high = np.array([-np.inf, 0, 0, -0.1, -0.1, -0.1]), np.array([np.inf] * 3 + [0.1] * 3)
    found = cones.solve(A, b, [], low=low, high=high)
    np.testing.assert_allclose(found.lam, quadratic.in_forces(A, b, low, high).lam, atol=1e-11)


def test_warm_start_at_the_solution_ends_at_once(rng):
    A, b, mu = stack(rng, 3)
    found = cones.solve(A, b, mu)
    again = cones.solve(A, b, mu, warm=found.lam)
    assert again.iterations <= 1
    np.testing.assert_allclose(again.lam, found.lam, atol=1e-12)


def test_results_repeat_bit_by_bit(rng):
    A, b, mu = random_problem(rng, 6, 6)
    for method in ("newton", "admm"):
        first, second = (cones.solve(A, b, mu, method=method).lam for _ in range(2))
        assert first.tobytes() == second.tobytes()


def test_planar_mechanisms_have_singular_blocks(rng):
    """Nothing moves along the second tangent: zero rows and columns."""
    A, b, mu = random_problem(rng, 2, 6)
    for k in (2, 5):
        A[k], A[:, k], b[k] = 0, 0, 0
    for method in METHODS:
        found = cones.solve(A, b, mu, method=method)
        assert found.converged
        assert_laws_hold(A, b, mu, found.lam, tolerance=1e-10)


def test_nothing_to_solve():
    assert cones.solve(np.zeros((0, 0)), [], []).converged
    assert not np.any(cones.solve(np.eye(3), np.zeros(3), [0.5]).lam)


# --- no solution ---------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["coulomb", "convex"])
@pytest.mark.parametrize("method", ["newton", "admm"])
def test_ball_between_closing_walls_has_a_certificate(law, method):
    A, b = ball_in_slot(0.0), np.array([-1.0, 0.1, 0, 0.5, 0, 0])
    found = cones.solve(A, b, [0.3, 0.3], law=law, method=method)
    assert not found.converged
    assert found.residuals.dual > 0.1
    np.testing.assert_allclose(found.certificate.forces, np.sqrt([0.5, 0, 0, 0.5, 0, 0]), atol=1e-9)
    assert method == "admm" or found.iterations < 8  # the proof ends it
    assert cones.solve(A, [-1.0, 0, 0, 2.0, 0, 0], [0.3, 0.3], law=law).converged


def test_ball_jams_between_leaning_walls_if_friction_exceeds_their_slope():
    A, b = ball_in_slot(0.2), np.array([-1.0, 0, 0, 0.5, 0, 0])
    assert cones.solve(A, b, [0.1, 0.1]).converged
    jammed = cones.solve(A, b, [0.5, 0.5], law="convex")
    assert not jammed.converged
    y = jammed.certificate.forces
    assert np.max(np.abs(A @ y)) < 1e-9
    assert b @ y < 0
    sought = cones.solve(ball_in_slot(0.1), b, [0.3, 0.3])
    assert sought.iterations > jammed.iterations  # under Coulomb's law it might slide


# --- errors --------------------------------------------------------------------------------------


def test_wrong_problems_are_rejected():
    A, b = np.eye(4), np.zeros(4)
    with pytest.raises(ShapeError, match="b has 4 rows, but 1 contacts take 3 each, and there are"):
        cones.solve(A, b, [0.5])
    with pytest.raises(ShapeError, match=r"mu must be finite and not negative, got \[-0.5\]"):
        cones.solve(A, b, [-0.5], low=[0], high=[1])
    with pytest.raises(ShapeError, match="low must not exceed high"):
        cones.solve(A, b, [0.5], low=[2], high=[1])
    with pytest.raises(ShapeError, match="warm must be 4 finite numbers"):
        cones.solve(A, b, [0.5], low=[0], high=[1], warm=np.zeros(3))
    with pytest.raises(UnknownNameError, match="no method 'newtn'; did you mean 'newton'"):
        cones.solve(A, b, [0.5], low=[0], high=[1], method="newtn")
    with pytest.raises(UnknownNameError, match="one of coulomb, convex, got 'dry'"):
        cones.solve(A, b, [0.5], low=[0], high=[1], law="dry")


# --- residuals, derivatives, proofs: against their definitions ------------------------------------


def mixed_rows(rng, convex, contacts=3):
    """Contacts, then a loop, a limit, an upper limit, dry friction."""
    low, high = np.array([-np.inf, 0.0, -np.inf, -0.5]), np.array([np.inf, np.inf, 0.2, 0.7])
    return MixedRows(rng.uniform(0.2, 1, contacts), low, high, convex)


@pytest.mark.parametrize("convex", [False, True])
def test_residuals_are_those_of_the_definitions(rng, convex):
    for _ in range(20):
        rows = mixed_rows(rng, convex, contacts=2)
        J = rng.normal(size=(rows.size, 4))
        A, b, lam = J @ J.T, rng.normal(size=rows.size), rng.normal(size=rows.size)
        w, power, cone, dual = A @ lam + b, [0.0], [0.0], [0.0]
        for k, mu in enumerate(rows.mu):
            f, v = lam[3 * k : 3 * k + 3], w[3 * k : 3 * k + 3]
            rise = mu * np.hypot(v[1], v[2])
            power.append(abs(f @ v + (0 if convex else f[0] * rise)))
            cone += [np.hypot(f[1], f[2]) - mu * f[0], -f[0]]
            dual.append(rise - v[0] if convex else -v[0])
        for low, high, f, v in zip(rows.low, rows.high, lam[6:], w[6:], strict=True):
            cone += [low - f, f - high]
            room = f - low if v > 0 else high - f
            (dual if np.isinf(room) else power).append(abs(v) if np.isinf(room) else abs(room * v))
        found = residuals(rows, A, b, lam)
        assert_close(found.complementarity, max(power))
        assert_close(found.cone, max(cone))
        assert_close(found.dual, max(dual))


def test_scaled_residual_has_no_unit(rng):
    for sign in (1, -1):  # also where no part of b is positive
        rows = mixed_rows(rng, False, contacts=2)
        J = rng.normal(size=(rows.size, 4))
        A, b, lam = J @ J.T, sign * rng.uniform(1, 2, rows.size), rng.normal(size=rows.size)
        expected = residuals(rows, A, b, lam).scaled
        for force, speed in ((1e3, 1e-3), (1e-4, 1e5)):
            other = rows._replace(low=force * rows.low, high=force * rows.high)
            found = residuals(other, speed / force * A, speed * b, force * lam)
            assert_close(found.scaled, expected, ulps=1e4)
    nothing = residuals(rows, A, 0 * b, 0 * lam)
    assert nothing == (0, 0, 0, 0)


@pytest.mark.parametrize("convex", [False, True])
def test_newton_matrix_is_the_derivative_of_what_is_missing(rng, convex):
    seen = set()
    for _ in range(30):
        rows = mixed_rows(rng, convex)
        J = rng.normal(size=(rows.size, 5))
        A, b, lam = J @ J.T / 5, rng.normal(size=rows.size), rng.normal(size=rows.size)
        G = newton_matrix(rows, A, lam, A @ lam + b)
        h, n = 1e-6, rows.size
        missing = MixedEquations(A, b, rows).missing
        columns = [(missing(lam + h * e) - missing(lam - h * e)) / (2 * h) for e in np.eye(n)]
        np.testing.assert_allclose(G, np.array(columns).T, atol=1e-6)
        for k, mu in enumerate(rows.mu):
            x = (lam - A @ lam - b)[3 * k : 3 * k + 3]
            seen.add(
                "sticks" if np.hypot(x[1], x[2]) < mu * x[0] else "slides" if x[0] > 0 else "open"
            )
    assert seen == {"sticks", "slides", "open"}


def test_one_sweep_solves_contacts_that_do_not_feel_one_another(rng):
    """Blocks of their own: where they stick or part at once, in whatever order."""
    for convex in (False, True):
        mu, c = np.full(4, 0.8), 4
        A, b = np.zeros((3 * c, 3 * c)), np.zeros(3 * c)
        for k in range(c):
            J, at = rng.normal(size=(3, 5)), slice(3 * k, 3 * k + 3)
            A[at, at] = J @ J.T
            angle = 1.2 + k  # just within the cone
            cone = np.array([1.0, 0.79 * np.cos(angle), 0.79 * np.sin(angle)])
            b[at] = -A[at, at] @ cone if k % 2 == 0 else [2.0, 0.3, -0.2]
        rows = MixedRows(mu, np.zeros(0), np.zeros(0), convex)
        S, d, _, units = scale(A, b, rows)
        found = units * Sweeps(S, d, rows, 0.0).after(np.zeros(3 * c))
        for k in range(c):
            at = slice(3 * k, 3 * k + 3)
            expected = -np.linalg.solve(A[at, at], b[at]) if k % 2 == 0 else np.zeros(3)
            assert_close(found[at], expected, condition=np.linalg.cond(A[at, at]), scale=1)
            exact = one_contact_force(A[at, at], b[at], mu[k], convex)
            assert_close(exact, expected, condition=np.linalg.cond(A[at, at]), scale=1)


@pytest.mark.parametrize("convex", [False, True])
def test_sweeps_lead_to_the_laws_in_every_mode(rng, convex):
    c, modes = 6, set()
    for _ in range(4):
        J = rng.normal(size=(3 * c, 3 * c + 4))
        A, b, mu = J @ J.T / 20 + np.eye(3 * c), rng.normal(size=3 * c), rng.uniform(0.3, 1, c)
        rows = MixedRows(mu, np.zeros(0), np.zeros(0), convex)
        S, d, _, units = scale(A, b, rows)
        sweeps, lam = Sweeps(S, d, rows, 0.0), np.zeros(3 * c)
        for _ in range(300):
            lam = sweeps.after(lam)
        assert_laws_hold(A, b, mu, units * lam, convex=convex, tolerance=1e-9)
        force = (units * lam).reshape(c, 3)
        reach = np.hypot(force[:, 1], force[:, 2]) - mu * force[:, 0]
        modes |= set(np.where(force[:, 0] == 0, 0, np.where(reach < -1e-6, 1, 2)))
    assert modes == {0, 1, 2}


@pytest.mark.parametrize("method", ["newton", "admm"])
def test_rows_have_forces_or_a_proof_that_there_are_none(rng, method):
    """Linear programming finds ``A y = 0``, ``b · y < 0``, with ``y`` where rows have no bound."""
    kinds = [(-np.inf, np.inf), (0.0, np.inf), (-np.inf, 0.0), (-1.0, np.inf), (-0.5, 2.0)]
    proved = 0
    for _ in range(25):
        n = int(rng.integers(2, 6))
        low, high = np.array([kinds[k] for k in rng.integers(0, 5, n)]).T
        J = rng.normal(size=(n, int(rng.integers(1, n))))
        A, b = J @ J.T, rng.normal(size=n)
        box = [
            (0 if np.isfinite(x) else -1, 0 if np.isfinite(y) else 1)
            for x, y in zip(low, high, strict=True)
        ]
        worst = linprog(b, A_eq=J.T, b_eq=np.zeros(J.shape[1]), bounds=box)
        found = cones.solve(A, b, [], low=low, high=high, method=method)
        if worst.fun < -1e-9:
            proved += 1
            assert not found.converged
            y = found.certificate.forces
            assert_close(J.T @ y, np.zeros(J.shape[1]), scale=1, ulps=1e7)
            assert b @ y < 0
            assert all(s - 1e-9 <= x <= t + 1e-9 for x, (s, t) in zip(y, box, strict=True))
            units = 10 ** rng.uniform(-4, 4, n)
            rescaled = units[:, None] * A * units, units * b
            found = cones.solve(*rescaled, [], low=low / units, high=high / units, method=method)
            assert found.certificate is not None
        else:
            assert found.converged
            assert found.certificate is None
    assert proved > 4
