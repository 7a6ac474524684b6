"""Contact problems as matrices: balls, boxes and stacks of boxes, from first principles."""

import numpy as np


def point_rows(r, normal, tangent):
    """Rows (normal, tangent, tangent) of the velocity of a point of a free body, (3, 6)."""
    cross = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    axes = np.array([normal, tangent, np.cross(normal, tangent)])
    return axes @ np.hstack([-cross, np.eye(3)])


def box(rng, corners=4):
    """A box about to land on a plane, turning and sliding: A, b, mu."""
    a, b, c = rng.uniform(0.2, 1.0, 3)
    inertia = np.array([b * b + c * c, a * a + c * c, a * a + b * b, 3, 3, 3]) / 3
    points = [(x, y, -c) for x in (-a, a) for y in (-b, b)][:corners]
    J = np.vstack([point_rows(p, (0, 0, 1), (1, 0, 0)) for p in points])
    v = rng.normal(size=6) * rng.choice([0.01, 1.0]) - [0, 0, 0, 0, 0, rng.choice([0.01, 1.0])]
    return J @ (J.T / inertia[:, None]), J @ v, rng.uniform(0.1, 1.0, len(points))


def stack(rng, levels, ratio=1.0):
    """A stack of cubes at rest, a moment after the gravity and a little push: A, b, mu."""
    J, mass = np.zeros((12 * levels, 6 * levels)), ratio ** np.arange(levels)
    corners = [(x, y) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]
    for i in range(levels):
        for j, (x, y) in enumerate(corners):
            rows = slice(3 * (4 * i + j), 3 * (4 * i + j) + 3)
            J[rows, 6 * i : 6 * i + 6] = point_rows((x, y, -0.5), (0, 0, 1), (1, 0, 0))
            if i:
                below = point_rows((x, y, 0.5), (0, 0, 1), (1, 0, 0))
                J[rows, 6 * i - 6 : 6 * i] = -below
    inverse = np.concatenate([np.array([6, 6, 6, 1, 1, 1]) / m for m in mass])
    v = 1e-3 * rng.normal(size=6 * levels) - 0.01 * (np.arange(6 * levels) % 6 == 5)
    return J @ (inverse[:, None] * J.T), J @ v, np.full(4 * levels, 0.5)


def ball_in_slot(tilt):
    """A unit ball between two walls that lean outwards by ``tilt`` [rad]: A."""
    normals = np.array([[np.cos(tilt), 0, np.sin(tilt)], [-np.cos(tilt), 0, np.sin(tilt)]])
    J = np.vstack([point_rows(-n, n, (0, 1, 0)) for n in normals])
    return J @ (np.array([2.5, 2.5, 2.5, 1, 1, 1])[:, None] * J.T)


def assert_laws_hold(A, b, mu, lam, *, convex=False, low=(), high=(), tolerance=1e-11):
    """The definitions, written out: cones, dual cones, no power where there should be none."""
    w, c = A @ lam + b, 3 * len(mu)
    small = tolerance * np.max(np.abs(b))
    force = tolerance * max(np.max(np.abs(lam)), 1e-12)
    for m, f, v in zip(mu, lam[:c].reshape(-1, 3), w[:c].reshape(-1, 3), strict=True):
        slip, friction = np.hypot(*v[1:]), np.hypot(*f[1:])
        assert friction <= m * f[0] + force
        assert v[0] >= (m * slip if convex else 0) - small
        if f[0] > force:
            assert abs(v[0] - (m * slip if convex else 0)) <= small  # in touch
        if slip > 1e-6 * np.max(np.abs(b)):
            np.testing.assert_allclose(f[1:], -m * f[0] * v[1:] / slip, atol=1e6 * force)
        assert abs(f @ v + (0 if convex else m * f[0] * slip)) <= small * max(np.max(f), 1.0)
    for x, v, lowest, highest in zip(lam[c:], w[c:], low, high, strict=True):
        assert lowest - force <= x <= highest + force
        assert v <= small or x <= lowest + force
        assert v >= -small or x >= highest - force
