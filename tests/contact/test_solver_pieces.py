"""Small procedures of the solver and of the engine, each by its own definition.

The solver checks its answers and goes on until they are right, so that a piece that is wrong may
only make it slower.
"""

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import assert_laws_hold

from kinetree.contact.complementarity.rows import MixedRows
from kinetree.contact.complementarity.traced import Sweeps
from kinetree.contact.engine import (
    energy,
    listing,
    loops,
    pushes,
    slot_laws,
    slot_points,
    slot_sweeps,
    targets,
)
from kinetree.contact.engine.mechanism import resistance
from kinetree.contact.newton import (
    cholesky,
    cones,
    jordan,
    matrix,
    mixtures,
    problem,
    sixes,
    steps,
    sweeps,
)
from kinetree.contact.newton.equations import add_block_of_three
from kinetree.spatial.rotation import rotation_exp

R = np.array([1.0, -1, -1, -1, -1, -1])


def positive(rng, n):
    root = rng.normal(size=(n, n + 2))
    return root @ root.T


# --- Small matrices -------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3, 4, 6, 7])
@pytest.mark.parametrize("width", [1, 3, 5, 6, 11, 15])
def test_products_are_taken_away_in_tiles(rows, width, rng):
    """Whatever the sizes, and nothing is written beside the block."""
    for depth in (0, 1, 4):
        A, B = rng.normal(size=(depth, rows + 2)), rng.normal(size=(depth, width + 3))
        C = rng.normal(size=(rows, width + 1))
        expected = C.copy()
        expected[:, :width] -= A[:, :rows].T @ B[:, :width]
        flat = C.ravel().copy()
        cholesky.take(
            flat, width + 1, A.ravel(), rows + 2, B.ravel(), width + 3, depth, rows, width
        )
        assert_close(flat.reshape(C.shape), expected, scale=1.0, ulps=64)


@pytest.mark.parametrize(("rows", "wide"), [(3, 3), (3, 6), (6, 3), (1, 3), (6, 6)])
def test_products_of_groups_are_added_up(rows, wide, rng):
    dim, groups = 3, 4
    stride = dim * max(rows, wide)
    A, B = rng.normal(size=(2, groups * stride))
    C = rng.normal(size=(rows, wide + 2))
    expected = C.copy()
    for g in range(groups):
        first = A[g * stride :][: dim * rows].reshape(dim, rows)
        expected[:, :wide] -= first.T @ B[g * stride :][: dim * wide].reshape(dim, wide)
    flat = C.ravel().copy()
    matrix.add_products(flat, wide + 2, A, rows, B, wide, dim, groups, stride)
    assert_close(flat.reshape(C.shape), expected, scale=1.0, ulps=64)


@pytest.mark.parametrize(("rows", "more"), [(1, 4), (2, 4), (5, 4), (6, 4), (6, 0), (6, 12)])
def test_panels_are_eliminated_as_by_cholesky_and_by_gauss(rows, more, rng):
    """Rows of ``U`` have ones on their diagonal, ``L`` has the inverse pivots on its own."""
    width = rows + more
    M = positive(rng, width)
    own = np.arange(rows)
    panel, lower = M[:rows].ravel().copy(), np.full(rows * width, np.nan)
    assert cholesky.eliminate_symmetric(panel, lower, rows, width) == 0
    U = np.linalg.cholesky(M).T[:rows]
    pivots = U[own, own][:, None]
    panel, lower = np.triu(panel.reshape(rows, width), 1), lower.reshape(rows, width)
    assert_close(panel, np.triu(U / pivots, 1), scale=5.0, ulps=300)
    assert_close(np.triu(lower, 1), np.triu(U * pivots, 1), scale=10.0, ulps=1e3)
    assert_close(lower[own, own], 1.0 / pivots[:, 0] ** 2, scale=5.0, ulps=300)
    low = (M - 2 * np.max(M) * np.eye(width))[:rows].ravel().copy()
    assert cholesky.eliminate_symmetric(low, low.copy(), rows, width) == 1
    nothing = np.full(rows * width, np.nan)
    assert cholesky.eliminate_symmetric(nothing, nothing.copy(), rows, width) == 1

    M = M + rng.normal(size=M.shape)
    upper, lower = M[:rows].ravel().copy(), M.T[:rows].ravel().copy()
    assert cholesky.eliminated_both(upper, lower, rows, width) == 0
    upper, lower = upper.reshape(rows, width), lower.reshape(rows, width)
    rest = M.copy()
    for a in range(rows):
        row = rest[a, a:] / rest[a, a]
        assert_close(upper[a, a + 1 :], row[1:], scale=10.0, ulps=1e3)
        assert_close(lower[a, a + 1 :], rest[a + 1 :, a], scale=10.0, ulps=1e3)
        assert_close(lower[a, a], 1.0 / rest[a, a], scale=10.0, ulps=1e3)
        rest[a:, a:] -= np.outer(rest[a:, a], row)
    assert cholesky.eliminated_both(0 * upper.ravel(), 0 * lower.ravel(), rows, width) == 1


def test_products_and_inverses(rng):
    for n in (1, 2, 3, 6, 9):
        M, out = positive(rng, n), np.zeros(n * n)
        sweeps.invert_block(M.ravel(), n, out)
        assert_close(out.reshape(n, n) @ M, np.eye(n), scale=1.0, ulps=1e5)
        if n == 6:
            six = np.zeros((6, 6))
            sixes.invert_six(M.ravel(), six)
            assert_close(six @ M, np.eye(6), scale=1.0, ulps=1e5)
    a, b = rng.normal(size=(2, 6))
    assert_close(problem.times_six(a, b), a @ b, scale=1.0)
    for dim in (1, 3, 4, 6):
        A, x, out = rng.normal(size=(dim, dim)), rng.normal(size=dim), rng.normal(size=dim)
        expected = out - A @ x
        problem.take_product(dim, A.ravel(), x, out)
        assert_close(out, expected, scale=1.0, ulps=64)
    block, x, y = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    for both in (True, False):
        own, other = rng.normal(size=(2, 3))
        expected = own + block @ y, other + both * (block.T @ x)
        add_block_of_three(block.ravel(), x, y, own, other, both)
        assert_close(np.array([own, other]), np.array(expected), scale=1.0)
    A, x, found = positive(rng, 3), rng.normal(size=3), np.ones(3)
    energy.divided_by(A, x, found)
    assert_close(A @ found, x, scale=1.0, ulps=1e4)
    energy.divided_by(np.outer(x, x) * 0, x, found)
    assert not np.any(found)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_differences_are_mixed_to_the_least_change(n, rng):
    vectors = rng.normal(size=(4, 5))
    G, c = vectors @ vectors.T, np.full(3, 7.0)
    mixtures.mixture_coefficients(G, n, c)
    expected = np.linalg.lstsq(vectors[:n].T, vectors[3], rcond=None)[0]
    np.testing.assert_allclose(c[:n], expected, rtol=1e-7)
    mixtures.mixture_coefficients(0 * G, n, c)
    assert not np.any(c[:n])


# --- Cones ----------------------------------------------------------------------------------------


def cone_point(rng, dim):
    x = rng.normal(size=dim)
    x[0] = np.linalg.norm(x[1:]) + rng.uniform(0.05, 2)
    return x


@pytest.mark.parametrize("dim", [2, 3, 4, 6])
def test_scalings_of_cones(dim, rng):
    """``G b = h`` for a point of the unit hyperboloid, ``W W = G``, and the quotient's product."""
    for _ in range(10):
        b, h, x, q, out = cone_point(rng, dim), cone_point(rng, dim), *np.zeros((3, dim))
        x[:] = rng.normal(size=dim)
        theta = jordan.scaling(b[0], b, h[0], h, dim, q)
        mirror = np.diag(R[:dim])
        G = theta * (2 * np.outer(q, q) - mirror)
        assert_close(G @ b, h, scale=10.0, ulps=1e4)
        assert_close(q @ mirror @ q, 1.0, ulps=1e4)
        jordan.apply_scaling(q, np.sqrt(theta), 1.0, x, dim, out)
        W = np.array([_scaled(q, theta, 1.0, e) for e in np.eye(dim)]).T
        assert_close(W @ x, out, scale=10.0, ulps=1e4)
        assert_close(W @ W, G, scale=np.max(np.abs(G)), ulps=1e4)
        assert_close(_scaled(q, theta, -1.0, out), x, scale=10.0, ulps=1e5)
        y = x.copy()
        jordan.quotient(h, y, dim)
        assert_close(_product(h, y), x, scale=10.0, ulps=1e5)
        taken = rng.normal(size=dim)
        expected = taken - _product(b, np.linalg.solve(W, x))
        jordan.add_product(q, np.sqrt(theta), x, b[0], b, dim, taken)
        assert_close(taken, expected, scale=10.0, ulps=1e5)


def _scaled(q, theta, sign, x):
    out = np.zeros(len(x))
    jordan.apply_scaling(q, np.sqrt(theta), sign, np.array(x), len(x), out)
    return out


def _product(a, y):
    return np.array([a @ y, *(a[0] * y[1:] + y[0] * a[1:])])


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_the_way_to_the_boundary_of_a_cone(dim, rng):
    left = 0
    for _ in range(60):
        x, dx, t = cone_point(rng, dim), 2 * rng.normal(size=dim), rng.uniform(0.2, 3)

        def slack(s, x=x, dx=dx):
            y = x + s * dx
            return y[0] - np.linalg.norm(y[1:])

        found = jordan.until_cone(t, x[0], x, dx[0], dx, dim)
        assert 0 < found <= t
        assert all(slack(s * found) > -1e-9 for s in np.linspace(0, 1, 50))
        if found < t:
            left += 1
            assert abs(slack(found)) < 1e-9
    assert 10 < left < 55


def test_parts_of_steps_at_which_discs_are_reached(rng):
    reached = 0
    for _ in range(200):
        y, dy, mu, least = rng.normal(size=4), rng.normal(size=4), 0.7, rng.uniform(0.3, 2)
        rest = [np.polymul([dy[r], y[r]], [dy[r], y[r]]) for r in (1, 2)]
        roots = np.roots(rest[0] + rest[1] - mu**2 * np.polymul([dy[0], y[0]], [dy[0], y[0]]))
        sooner = [t.real for t in roots if abs(t.imag) < 1e-12 and 1e-9 < t.real < least]
        reached += bool(sooner)
        assert_close(steps.first_crossing(least, mu, y, dy, 1, 3), min([least, *sooner]), ulps=1e6)
    assert 30 < reached < 170
    for a, b, early, late in [(1.0, 2.0, 0.3, 0.5), (-1.0, -2.0, 0.3, 0.5), (1.0, -2.0, 0.3, 2.0),
                              (-1.0, 2.0, 0.3, 2.0)]:  # fmt: skip
        assert (steps.sooner(0.3, a, b), steps.sooner(2.0, a, b)) == (early, late)


def discs_of(dim):
    """Rows of sliding, spinning and rolling."""
    return [range(1, dim)] if dim <= 3 else [range(1, 3), range(3, 4), range(4, dim)][: dim - 2]


def admissible(dim, mu, y):
    """``P(y)`` of Coulomb's law: each disc is as large as the normal part allows."""
    p = np.array(y, float)
    p[0] = max(y[0], 0)
    for disc in discs_of(dim):
        disc = list(disc)
        size = np.linalg.norm(y[disc])
        p[disc] *= min(1.0, mu * p[0] / size) if size else 1.0
    return p


@pytest.mark.parametrize("dim", [3, 4, 6])
def test_linear_equations_of_a_contact_are_the_derivative_of_its_law(dim, rng):
    """``dlam - (1 - soft) P' dlam = P(y) - lam - P' r dw``, with differences for ``P'``."""
    sliding = 0
    for _ in range(40):
        mu, r, soft = rng.uniform(0.2, 0.9), rng.uniform(0.5, 2), rng.uniform(0.05, 0.5)
        lam, w = rng.normal(size=dim), 0.5 * rng.normal(size=dim)
        lam[0] = rng.uniform(1, 3)
        y = lam - r * w
        if y[0] <= 0.1:
            continue
        p = admissible(dim, mu, y)
        state = cones.STICKING if np.array_equal(p, y) else cones.SLIDING
        sliding += state == cones.SLIDING
        A, c = np.zeros(dim * dim), np.zeros(dim)
        cones.linear(dim, mu, state, r, soft, lam, w, y, p, A, c)
        e = 1e-6
        P = np.array([(admissible(dim, mu, y + e * x) - admissible(dim, mu, y - e * x)) / (2 * e)
                      for x in np.eye(dim)]).T  # fmt: skip
        dw = rng.normal(size=dim)
        dlam = c - A.reshape(dim, dim) @ dw
        np.testing.assert_allclose(
            dlam - (1 - soft) * P @ dlam, p - lam - P @ dw * r, atol=2e-7 * np.max(np.abs(dlam))
        )
    assert sliding > 10
    A, c, lam = np.full(dim * dim, 7.0), np.zeros(dim), rng.normal(size=dim)
    cones.linear(dim, 0.5, cones.OPEN, 1.0, 0.1, lam, 0 * lam, -lam, 0 * lam, A, c)
    assert_close(c, -lam)


@pytest.mark.parametrize("dim", [2, 3, 4, 6])
def test_lengths_of_discs(dim, rng):
    for _ in range(20):
        p, w, mu = rng.normal(size=dim), rng.normal(size=dim), 0.8
        p[0] = rng.uniform(0.5, 2)
        lengths = [np.linalg.norm(w[list(disc)]) for disc in discs_of(dim)]
        assert_close(cones.tangential(w, dim), np.linalg.norm(w[1:]))
        assert_close(cones.most_used(w, dim), max(lengths))
        assert_close(cones.slip(w, dim), sum(lengths))
        held = [length for length, disc in zip(lengths, discs_of(dim), strict=True)
                if mu * p[0] - np.linalg.norm(p[list(disc)]) > 0.1]  # fmt: skip
        assert_close(cones.held_slip(dim, mu, p, w, 0.1), max(held, default=0.0), scale=1.0)
    y, lam = rng.normal(size=(2, 3))
    for n in (0.1, 5.0, -1.0):
        y[0] = n
        rest = lam - admissible(3, 0.6, y)
        assert_close(cones.off_law(0.6, lam, y), rest @ rest, ulps=64)


# --- Contacts one by one --------------------------------------------------------------------------


def test_one_contact_is_solved_by_its_laws(rng):
    """As by a sweep of traced code, and by Coulomb's law when it is repeated."""
    kinds = set()
    for _ in range(40):
        A = positive(rng, 3)
        A, b, mu = 3 * A / np.trace(A), rng.normal(size=3) - (0.5, 0, 0), rng.uniform(0.1, 1)
        lam = np.array([1.0, *rng.normal(size=2)])
        rows = MixedRows(np.array([mu]), np.zeros(0), np.zeros(0), False)
        new = np.full(3, 7.0)
        slot_sweeps.solve_contact(A, mu, A @ lam + b, lam, new)
        assert_close(
            new, Sweeps(A, b, rows, slot_sweeps.LEAST_WEIGHT).after(lam), scale=1.0, ulps=1e6
        )
        if A[0, 0] < 3 * mu * np.hypot(*A[0, 1:]):
            continue  # sweeps need not converge where friction lifts
        for _ in range(200):
            slot_sweeps.solve_contact(A, mu, A @ lam + b, lam, new)
            lam = new.copy()
        assert_laws_hold(A, b, [mu], lam, tolerance=1e-5)
        D = A
        assert slot_laws.contact_law_error(D, mu, A @ lam + b, lam) < 1e-5
        slides = np.hypot(*lam[1:]) > (1 - 1e-9) * mu * lam[0]
        kinds.add("open" if not lam[0] else "slides" if slides else "sticks")
    assert kinds == {"open", "slides", "sticks"}


def test_steps_of_one_contact_and_what_they_miss(rng):
    """A gradient step of the normal force, then one of friction by the stiffest direction."""
    for _ in range(40):
        A, w, lam, new = positive(rng, 3), 3 * rng.normal(size=3), rng.normal(size=3), np.zeros(3)
        lam[0], mu = abs(lam[0]), 0.6
        slot_sweeps.relax_contact(A, mu, w, lam, new)
        n = max(lam[0] - w[0] / A[0, 0], 0)
        stiffest = np.linalg.eigvalsh(A[1:, 1:])[-1]
        friction = lam[1:] - (w[1:] + A[1:, 0] * (n - lam[0])) / stiffest
        friction *= min(1, mu * n / np.linalg.norm(friction))
        assert_close(new, np.array([n, *friction]), scale=1.0, ulps=1e4)
        a = np.trace(A) / 3
        missed = a * lam - admissible(3, mu, a * lam - w)
        assert_close(
            slot_laws.contact_law_error(A, mu, w, lam), np.abs(missed).max(), scale=1.0, ulps=64
        )
    x, D = np.arange(6.0), np.zeros((3, 3))
    slot_laws.block_of(x, D)
    assert_close(D, [[0, 1, 3], [1, 2, 4], [3, 4, 5]])


SPOTS = {
    "corner": (slot_points.FIXED, (0.3, -0.2, 0.1, 0.05)),
    "ellipsoid": (slot_points.ELLIPSOID, (0.3, 0.2, 0.5, 0.0)),
    "rim": (slot_points.LOWEST, (0.3, 0.1, -0.4, 0.0)),
}


@pytest.mark.parametrize("name", SPOTS)
def test_points_over_a_plane_and_their_rates(name, rng):
    """The point is the lowest of the shape; rates are those of differences."""
    kind, spot = SPOTS[name]
    spot, n = np.array(spot), rng.normal(size=3)
    n /= np.linalg.norm(n)
    plane, origin = np.zeros(10), rng.normal(size=3)
    plane[:3], plane[9] = n, 0.3
    frame = np.concatenate([rotation_exp(rng.normal(size=3)).ravel(), rng.normal(size=3)])
    if name == "corner":  # which is given in the body
        frame = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    R0, p0 = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
    w, v = rng.normal(size=(2, 3))  # of the body and of its point at the origin

    def at(t):
        turn = rotation_exp(t * w).T
        pose = np.concatenate([(turn @ R0).ravel(), turn @ p0 + t * v])
        point, rate = np.zeros((2, 3))
        gap = slot_points.touch(kind, frame, spot, plane, pose, origin, np.array([*w, *v]),
                                point, rate)  # fmt: skip
        return gap, point, rate, pose

    e = 1e-6
    (gap, point, rate, pose), before, after = at(0.0), at(-e), at(e)
    np.testing.assert_allclose(rate, (after[1] - before[1]) / (2 * e), atol=1e-7)
    E, x = pose[:9].reshape(3, 3) @ frame[:9].reshape(3, 3), pose[9:]
    x = x + pose[:9].reshape(3, 3) @ frame[9:]
    d = E.T @ n
    if name == "ellipsoid":
        lowest = -np.linalg.norm(spot[:3] * d)
    elif name == "rim":
        lowest = -np.hypot(0.3, 0.1) * np.hypot(*d[:2]) - 0.4 * d[2]
    else:
        lowest = spot[:3] @ d - 0.05
    expected = n @ (x + origin) - 0.3 + lowest
    assert_close(gap, expected, scale=1.0, ulps=64)
    assert_close(n @ (point + origin) - 0.3, gap / 2, scale=1.0, ulps=64)


def test_frames_of_loops_and_pushes(rng):
    A, B = (rotation_exp(rng.normal(size=3)) for _ in range(2))
    d, x, p, out = rng.normal(size=3), rng.normal(size=3), rng.normal(size=3), np.zeros(21)
    loops.features(A, B, d, out)
    E, r = B.T @ A, A.T @ d
    cross = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    assert_close(out, np.concatenate([E.ravel(), (-E @ cross).ravel(), E @ r]), scale=1.0, ulps=16)
    axes, place = np.zeros((3, 3)), np.zeros(3)
    first, second = np.column_stack([A, x]).ravel(), np.column_stack([B, p]).ravel()
    loops.frame_of(first, second, axes, place)
    assert_close(axes, A @ B, scale=1.0)
    assert_close(place, A @ p + x, scale=1.0)
    pushes.in_world(first, d, place)
    assert_close(place, A @ d, scale=1.0)


def test_contacts_are_listed_with_forces_in_the_world(rng):
    """Those that touch or exert a force; moments and slip along the same axes."""
    place, ids = rng.normal(size=(5, 18)), np.arange(25).reshape(5, 5)
    place[:, 3:6] /= np.linalg.norm(place[:, 3:6], axis=1)[:, None]
    place[:, 6] = (-0.1, 0.2, 0.2, 0.05, 0.2)
    place[1, 9:15] = 0
    place[2, 9:12] = 0, 0, 1.0
    place[4, 9:15] = 0, 0, 0, 3.0, 0, 0
    numbers, which = np.zeros((5, 16)), np.zeros((5, 5), dtype=np.int64)
    assert listing.list_stored(place, ids, 5, 0.05, numbers, which) == 3
    assert which[:3, 0].tolist() == [0, 10, 15]
    for row, x in zip(numbers, place[[0, 2, 3]], strict=False):
        assert_close(row[:7], x[:7])
        assert_close(row[7:10] @ x[3:6], x[9], scale=1.0, ulps=16)
        assert_close(np.linalg.norm(row[7:10]), np.linalg.norm(x[9:12]), ulps=16)
        assert_close(row[10:13] @ x[3:6], x[12], scale=1.0, ulps=16)
        assert_close(np.linalg.norm(row[10:13]), np.linalg.norm(x[12:15]), ulps=16)
        assert_close(row[13:16] @ x[3:6], 0.0, scale=1.0, ulps=16)
        assert_close(np.linalg.norm(row[13:16]), np.linalg.norm(x[16:18]), ulps=16)
        # one frame for the three
        assert_close(row[7:10] @ row[13:16], x[10:12] @ x[16:18], scale=1.0, ulps=64)
        assert_close(row[7:10] @ row[10:13], x[9:12] @ x[12:15], scale=1.0, ulps=64)


def test_resistance_of_soft_and_stiff_springs():
    """``θ`` and ``κ`` of the docstring, at both ends, between them, and without a mean position."""
    h, H = 0.01, 2.0
    for K, theta, kappa in [(1e-6, 0.5, 0.25), (4 * H / h**2, 1.0, 0.625), (1e12, 1.5, 1.0)]:
        lead, lag = resistance(K, 0.0, H, h, 0.5)
        assert lead == pytest.approx(theta * h * K)
        assert lag == pytest.approx(kappa * h * K)
    for D, part in [(1e-6, 0.5), (4 * H / h, 0.75), (1e9, 1.0)]:
        assert resistance(0.0, D, H, h, 0.5) == pytest.approx((0.0, part * D))
    assert resistance(3.0, 5.0, H, h, 0.0) == pytest.approx((3 * h, 3 * h + 5))


def test_times_of_arrival_are_roots(rng):
    seen = 0
    for _ in range(100):
        h, w, c, tau = 0.1, rng.normal(), rng.normal(), rng.uniform(0, 0.1)
        start = rng.uniform(-0.02, 0.08)
        gap = start + tau * w + c * tau**2 / (2 * h)
        roots = [t.real for t in np.roots([c / (2 * h), w, start]) if abs(t.imag) < 1e-12]
        within = [t for t in roots if 0 < t <= h]
        expected = 0.0 if start <= 0 else min(within, default=2 * h)
        seen += bool(start > 0 and within)
        assert_close(targets.arrival(gap, w, c, tau, h), expected, scale=h, ulps=1e6)
    assert seen > 15
