"""Directions of the interior-point method are solutions of its equations, linearised.

In the scaled cones of Nesterov and Todd, with matrices: a direction that is not quite right would
lead to the solution as well, in more steps.
"""

from itertools import pairwise

import numpy as np
import pytest
from support.closeness import assert_close
from support.islands import begun, filled

from kinetree.contact.newton.arc import along, keep_step, mix_step
from kinetree.contact.newton.directions import direction, longest, matrices
from kinetree.contact.newton.equations import evaluate, take_part_of_step
from kinetree.contact.newton.interior import begin, open_speed, product
from kinetree.contact.newton.matrix import FIRM
from kinetree.contact.newton.problem import BOUNDS, CONE

SIZE = 8  # numbers of a disc


def an_island(seed, kinds=(3, 1, 4, 6, "low", "both", "loop", "slick")):
    """Contacts with all kinds of friction and rows with bounds, on two bodies."""
    rng = np.random.default_rng(seed)
    n = 12
    root = rng.normal(size=(n, n))
    M = np.kron(np.eye(2), np.ones((6, 6))) * (root @ root.T) + 4 * np.eye(n)
    rows = []
    for kind in kinds:
        J = rng.normal(size=({"low": 1, "both": 1, "loop": 1, "slick": 3}.get(kind, kind), n))
        low, high = {"low": (0.0, np.inf), "both": (-0.3, 0.2)}.get(kind, (-np.inf, np.inf))
        if isinstance(kind, int) or kind == "slick":
            mu = 0.0 if kind == "slick" else rng.uniform(0.3, 0.9)
            rows.append((CONE, J, 0.3 * rng.normal(size=len(J)), mu, 0.0, np.inf))
        else:
            rows.append((BOUNDS, J, 0.3 * rng.normal(size=1), 0.0, low, high))
    p = filled([-1, 0, 1, 2, 3, 4, -1, 6, 7, 8, 9, 10], M, rows)
    p.free[:], p.velocity[:] = rng.normal(size=(2, n))
    p.impulse[: p.row_first[p.groups]] = 0.3 * rng.normal(size=p.row_first[p.groups])
    work, _ = begun(p)
    evaluate(p, work, 0)
    begin(p, work, 0, 0.3)
    evaluate(p, work, 0)
    return p, work, M, np.vstack([r[1] for r in rows])


def discs(p, work, g):
    """Rows of each cone of friction, ``h_0`` and its change."""
    dim, first = p.dim[g], p.row_first[g]
    if p.kind[g] != CONE or dim == 1 or p.mu[g] == 0:
        return []
    if dim == 3:
        return [(np.arange(first + 1, first + 3), work.inner[g, 1], work.inner[g, 3])]
    ends = {4: (1, 3, 4), 6: (1, 3, 4, 6)}[dim]
    z = work.discs[24 * g : 24 * g + 24].reshape(3, SIZE)
    return [(np.arange(first + a, first + b), *z[k, :2])
            for k, (a, b) in enumerate(pairwise(ends))]  # fmt: skip


def limits(p, g):
    low, high = (0.0, 1e300) if p.kind[g] == CONE else (p.low[g], p.high[g])
    return (low if low > -1e299 else None), (high if high < 1e299 else None)


def arrow(x):
    A = x[0] * np.eye(len(x))
    A[0, 1:] = A[1:, 0] = x[1:]
    return A


def scaled(b, h):
    """The matrix ``W`` with ``W b = W⁻¹ h``, symmetric, by Nesterov and Todd."""
    R = np.diag([1.0, *[-1.0] * (len(b) - 1)])
    unit = [x / np.sqrt(x @ R @ x) for x in (b, h)]
    gamma = np.sqrt((1 + unit[0] @ unit[1]) / 2)
    q = (unit[1] + R @ unit[0]) / (2 * gamma)
    theta = np.sqrt((h @ R @ h) / (b @ R @ b))
    G = theta * (2 * np.outer(q, q) - R)
    values, vectors = np.linalg.eigh(G)
    assert values.min() > 0
    return vectors @ np.diag(np.sqrt(values)) @ vectors.T


class Step:
    """A step and the point that it is taken from, as they are now."""

    def __init__(self, p, work):
        rows = p.row_first[p.groups]
        self.lam, self.w = work.lam[:rows].copy(), work.w[:rows].copy()
        self.dlam, self.dw = work.dlam[:rows].copy(), work.dw[:rows].copy()
        self.z, self.dv = work.inner[: p.groups].copy(), work.dv[: p.nv].copy()
        self.discs = [discs(p, work, g) for g in range(p.groups)]


def assert_solves(p, work, M, J, sigma, correct, before):
    """All equations of a direction; ``before`` is the step whose products it has."""
    s = Step(p, work)
    gradient = M @ (work.v[: p.nv] - p.free) - J.T @ s.lam
    size = np.abs(s.dv).max()
    np.testing.assert_allclose(M @ s.dv - J.T @ s.dlam, -gradient, atol=1e-9 * (1 + size))
    np.testing.assert_allclose(s.dw, J @ s.dv, atol=1e-10 * (1 + size))
    for g in range(p.groups):
        first, dim = p.row_first[g], p.dim[g]
        x, dx, w = s.lam[first], s.dlam[first], s.w[first] + s.dw[first]
        low, high = limits(p, g)
        own = 0.0
        if low is not None:
            z, dz = s.z[g, 0], s.z[g, 2]
            second = correct * before.dlam[first] * before.z[g, 2]
            assert (x - low) * (z + dz) + z * dx == pytest.approx(sigma - second, abs=1e-8)
            own += z + dz
        if high is not None and p.kind[g] == BOUNDS:
            z, dz = s.z[g, 1], s.z[g, 3]
            second = -correct * before.dlam[first] * before.z[g, 3]
            assert (high - x) * (z + dz) - z * dx == pytest.approx(sigma - second, abs=1e-8)
            own -= z + dz
        if low is None and high is None:
            own = -FIRM * work.delassus[g] * dx  # a loop gives way a little
        assert w == pytest.approx(own, abs=1e-8)
        if dim > 1 and p.mu[g] == 0:
            np.testing.assert_allclose(
                s.dlam[first + 1 : first + dim], -s.lam[first + 1 : first + dim]
            )
        for k, (rows, h0, dh0) in enumerate(s.discs[g]):
            b = np.array([p.mu[g] * x, *s.lam[rows]])
            h = np.array([h0, *s.w[rows]])
            W = scaled(b, h)
            e = W @ b
            db = np.array([p.mu[g] * dx, *s.dlam[rows]])
            dh = np.array([dh0, *s.dw[rows]])
            old = np.array([p.mu[g] * before.dlam[first], *before.dlam[rows]])
            old_h = np.array([before.discs[g][k][2], *before.dw[rows]])
            second = arrow(W @ old) @ np.linalg.solve(W, old_h)
            right = sigma * np.eye(len(b))[0] - arrow(e) @ e - correct * second
            left = arrow(e) @ (W @ db + np.linalg.solve(W, dh))
            np.testing.assert_allclose(left, right, atol=1e-7 * (1 + np.abs(right).max()))
    return s


CASES = [(3,), (3, "low", 3), (4, "both"), (6, 6, "loop"), (1, "slick", 4),
         (3, 1, 4, 6, "low", "both", "loop", "slick")]  # fmt: skip


@pytest.mark.parametrize("kinds", CASES, ids=str)
def test_directions_solve_the_equations_of_the_path(kinds):
    """The predictor, then a step towards products, less those of the changes of the last."""
    for seed in range(5):
        p, work, M, J = an_island(seed, kinds)
        assert matrices(p, work, 0) == 0
        before = Step(p, work)
        direction(p, work, 0, 0.0, 0.0)
        predictor = assert_solves(p, work, M, J, 0.0, 0.0, before)
        direction(p, work, 0, 0.05, 0.7)
        assert_solves(p, work, M, J, 0.05, 0.7, predictor)
        check_length(p, work)
        check_products(p, work)


def slacks(p, s, t, speeds):
    """Of all cones and bounds after a part of a step: positive inside."""
    found = []
    for g in range(p.groups):
        x = s.lam[p.row_first[g]] + t * s.dlam[p.row_first[g]]
        low, high = limits(p, g)
        if low is not None:
            found += [x - low, s.z[g, 0] + t * s.z[g, 2]]
        if high is not None and p.kind[g] == BOUNDS:
            found += [high - x, s.z[g, 1] + t * s.z[g, 3]]
        for rows, h0, dh0 in s.discs[g]:
            found.append(p.mu[g] * x - np.linalg.norm(s.lam[rows] + t * s.dlam[rows]))
            if speeds:
                found.append(h0 + t * dh0 - np.linalg.norm(s.w[rows] + t * s.dw[rows]))
    return np.array(found)


def check_length(p, work):
    s = Step(p, work)
    for speeds in (True, False):
        t = longest(p, work, 0, speeds)
        assert 0 < t <= 2
        assert np.min([slacks(p, s, x, speeds).min() for x in np.linspace(0, t, 40)]) > -1e-9
        assert t == 2 or slacks(p, s, t, speeds).min() < 1e-9


def check_products(p, work):
    """The mean product, and what is changed and mixed of a step."""
    s = Step(p, work)
    for t in (0.0, 0.3):
        pairs = []
        for g in range(p.groups):
            x = s.lam[p.row_first[g]] + t * s.dlam[p.row_first[g]]
            low, high = limits(p, g)
            pairs += [(x - low) * (s.z[g, 0] + t * s.z[g, 2])] if low is not None else []
            if high is not None and p.kind[g] == BOUNDS:
                pairs += [(high - x) * (s.z[g, 1] + t * s.z[g, 3])]
            for rows, h0, dh0 in s.discs[g]:
                b = s.lam[rows] + t * s.dlam[rows]
                pairs += [p.mu[g] * x * (h0 + t * dh0) + b @ (s.w[rows] + t * s.dw[rows])]
        assert_close(product(p, work, 0, t), np.mean(pairs or [0.0]), scale=1.0, ulps=1e4)


@pytest.mark.parametrize("kinds", CASES, ids=str)
def test_steps_are_mixed_and_measured_relative_to_the_point(kinds):
    for seed in range(3):
        p, work, *_ = an_island(seed, kinds)
        matrices(p, work, 0)
        direction(p, work, 0, 0.05, 0.0)
        keep_step(p, work, 0, 2)
        one = Step(p, work)
        direction(p, work, 0, 0.01, 0.5)
        keep_step(p, work, 0, 3)
        two = Step(p, work)
        direction(p, work, 0, 0.3, 0.0)
        three = Step(p, work)
        mix_step(p, work, 0, 0.5, -1.0, 2.0)
        mixed = Step(p, work)
        for name in ("dv", "dlam", "dw"):
            a, b, c = (getattr(s, name) for s in (one, two, three))
            assert_close(getattr(mixed, name), 0.5 * c - a + 2 * b, scale=100.0, ulps=1e3)
        own, other = 1.0, 0.0
        for g in range(p.groups):
            low, high = limits(p, g)
            first = p.row_first[g]
            x, pairs = one.lam[first], []
            if low is not None:
                pairs += [(one.dlam[first], mixed.dlam[first], x - low)]
                pairs += [(one.z[g, 2], mixed.z[g, 2], one.z[g, 0])]
            if high is not None and p.kind[g] == BOUNDS:
                pairs += [(one.dlam[first], mixed.dlam[first], high - x)]
                pairs += [(one.z[g, 3], mixed.z[g, 3], one.z[g, 1])]
            for k, (rows, h0, dh0) in enumerate(one.discs[g]):
                new = mixed.discs[g][k][2]
                assert_close(new, 0.5 * three.discs[g][k][2] - dh0 + 2 * two.discs[g][k][2],
                             scale=100.0, ulps=1e3)  # fmt: skip
                pairs += [(dh0, new, h0)]
                for r in rows:
                    pairs += [(one.dlam[r], mixed.dlam[r], p.mu[g] * x)]
                    pairs += [(one.dw[r], mixed.dw[r], h0)]
            own += sum((a / s) ** 2 for a, _, s in pairs)
            other += sum(a * b / s**2 for a, b, s in pairs)
        found = along(p, work, 0)
        np.testing.assert_allclose(found, (own, other), rtol=1e-9, atol=1e-9 * own)


def test_where_a_step_was_cut_speeds_are_opened():
    """``h_0`` is no less than the speed, nor than what ``sigma`` asks for with a third of it."""
    p, work, *_ = an_island(1, (3, 3, 3))
    matrices(p, work, 0)
    direction(p, work, 0, 0.05, 0.0)
    take_part_of_step(p, work, 0, 0.5)
    for g in range(3):
        at, h0 = p.row_first[g], work.inner[g, 1]
        b = np.array([p.mu[g] * work.lam[at], *work.lam[at + 1 : at + 3]])
        for sigma in (0.0, 2.0):
            own = 0.3 * sigma / np.sqrt(b[0] ** 2 - b[1] ** 2 - b[2] ** 2)
            open_speed(p, work, g, sigma)
            expected = max(h0, np.hypot(own, np.hypot(*work.w[at + 1 : at + 3])))
            assert_close(work.inner[g, 1], expected, ulps=100)
            h0 = expected


def test_starts_are_inside_with_products_of_their_size():
    for seed in range(5):
        p, work, *_ = an_island(seed)
        rows = p.row_first[p.groups]
        for size in (0.3, 0.01):
            lam = work.lam[:rows].copy()
            work.lam[:rows] = 0.3 * np.random.default_rng(seed).normal(size=rows)
            given = work.lam[:rows].copy()
            begin(p, work, 0, size)
            s = Step(p, work)
            assert slacks(p, s, 0.0, True).min() > 0
            for g in range(p.groups):
                at = p.row_first[g]
                low, high = limits(p, g)
                least = size / np.sqrt(work.delassus[g])
                if low is not None and high is not None and p.kind[g] == BOUNDS:
                    least = min(least, 0.3 * (high - low))
                x = given[at]
                if low is not None:
                    x = max(x, low + least)
                if high is not None and p.kind[g] == BOUNDS:
                    x = min(x, high - least)
                assert_close(s.lam[at], x, scale=1.0)
                w = s.w[at]
                if low is not None:
                    z = max(w, size**2 / (x - low), 0.1 * size**2 / least)
                    assert_close(s.z[g, 0], z, ulps=100)
                if high is not None and p.kind[g] == BOUNDS:
                    z = max(-w, size**2 / (high - x), 0.1 * size**2 / least)
                    assert_close(s.z[g, 1], z, ulps=100)
                for rows_of, h0, dh0 in s.discs[g]:
                    most, force = p.mu[g] * x, np.linalg.norm(given[rows_of])
                    part = min(1.0, 0.9 * most / force)
                    assert_close(s.lam[rows_of], part * given[rows_of], scale=1.0)
                    speed = np.linalg.norm(s.w[rows_of])
                    expected = max(1.1 * np.hypot(speed, size**2 / least), size**2 / most)
                    assert_close(h0, expected, ulps=100)
                    assert dh0 == 0
            assert not np.any(work.inner[: p.groups, 2:4])
            work.lam[:rows] = lam
