import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.errors import ModelError, ShapeError
from kinetree.joints import Free
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia
from kinetree.spatial.rotation import rotation_from_quaternion
from kinetree.textbook.constraint_kinds import ConstraintFunction, Freedoms, freedoms
from kinetree.textbook.state_space import configuration_rate

RADIUS = 0.3
AREA = "RBDA 3.4"


def ball(rng):
    model = ModelBuilder().body("ball", joint=Free(), inertia=random_inertia(rng)).build()
    q = model.random_configuration(rng)
    q[2] = RADIUS
    return model, q


def contact_rate(q, qd, t):
    """Velocity, in base coordinates, of the point of the ball that touches the plane z = 0."""
    E = rotation_from_quaternion(q[3:])
    w, v = E.T @ qd[:3], E.T @ qd[3:]
    return v + np.array([-w[1] * RADIUS, w[0] * RADIUS, 0])


def on_the_plane(model):
    return ConstraintFunction(
        rate=lambda q, qd, t: contact_rate(q, qd, t)[2:],
        position=lambda q, t: np.array([q[2] - RADIUS]),
        configuration_rate=lambda q, qd: configuration_rate(model, q, qd),
    )


def without_slipping(model):
    return ConstraintFunction(
        rate=lambda q, qd, t: contact_rate(q, qd, t)[:2],
        configuration_rate=lambda q, qd: configuration_rate(model, q, qd),
    )


@pytest.mark.covers(AREA, by=(freedoms, ConstraintFunction))
def test_a_rolling_sphere_has_three_freedoms_of_velocity_and_five_of_position(rng):
    model, q = ball(rng)
    qd = rng.standard_normal(6)
    plane, roll = on_the_plane(model), without_slipping(model)
    plane.check(q, qd)
    roll.check(q, qd)
    assert plane.kind == "equality, holonomic, scleronomic"
    assert roll.kind == "equality, nonholonomic, scleronomic"
    assert freedoms([plane], q, qd) == Freedoms(position=5, velocity=5)
    assert freedoms([plane, roll], q, qd) == Freedoms(position=5, velocity=3)


@pytest.mark.covers(AREA, by=freedoms)
def test_rolling_really_reaches_five_dimensions(rng):
    """The brackets of the allowed velocity fields span what the freedoms promise."""
    model, q = ball(rng)
    plane, roll = on_the_plane(model), without_slipping(model)

    def K(q):
        return np.vstack([c.at(q, np.zeros(6)).K for c in (plane, roll)])

    # d(K)[X, Y] - d(K)[Y, X] minus K [X, Y]_group vanishes if the distribution is involutive.
    Z = np.linalg.svd(K(q))[2][3:].T
    h, brackets = 1e-6, []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        X, Y = Z[:, i], Z[:, j]
        d = [
            (K(model.integrate(q, h * u)) - K(model.integrate(q, -h * u))) / (2 * h) for u in (X, Y)
        ]
        lie = np.concatenate(
            [
                np.cross(X[:3], Y[:3]),
                np.cross(X[:3], Y[3:]) + np.cross(X[3:], Y[:3]),
            ]
        )
        brackets.append(d[0] @ Y - d[1] @ X - K(q) @ lie)
    assert np.linalg.matrix_rank(np.array(brackets), tol=1e-6) == 5 - 3


def cylinder(angle=None, shift=None):
    """Constraints on (turn, slide) of a cylindrical joint; each freedom may be prescribed."""
    rows = [(0, angle), (1, shift)]
    return [
        ConstraintFunction(
            rate=lambda q, qd, t, n=n, f=f: np.array([qd[n] - f[1](t)]),
            position=lambda q, t, n=n, f=f: np.array([q[n] - f[0](t)]),
            scleronomic=False,
        )
        for n, f in rows
        if f is not None
    ]


@pytest.mark.covers(AREA, by=ConstraintFunction)
def test_prescribing_a_freedom_in_time_makes_a_rheonomic_constraint_of_one_freedom_less(rng):
    q, qd, t = rng.standard_normal(2), rng.standard_normal(2), 0.7
    drive = (lambda t: np.sin(3 * t), lambda t: 3 * np.cos(3 * t))
    assert freedoms([], q, qd) == Freedoms(2, 2)
    assert freedoms(cylinder(angle=drive), q, qd, t) == Freedoms(1, 1)
    assert freedoms(cylinder(angle=drive, shift=drive), q, qd, t) == Freedoms(0, 0)
    (c,) = cylinder(angle=drive)
    c.check(q, qd, t)
    assert c.kind == "equality, holonomic, rheonomic"
    at = c.at(q, qd, t)
    assert_close(at.rate, [3 * np.cos(3 * t)])
    assert_close(at.k, [-9 * np.sin(3 * t)])
    assert_close(at.error, [q[0] - np.sin(3 * t)])


@pytest.mark.covers(AREA, by=ConstraintFunction)
def test_a_string_around_three_discs_constrains_three_bodies_at_once(rng):
    """RBDA Fig. 3.2(c): l1 + l2 + l3 + 2 pi r = p; no pair of bodies is constrained."""
    r, p = 0.1, 4.0

    def sides(q):
        points = q.reshape(3, 3)[:, :2]
        return [points[i] - points[(i + 1) % 3] for i in range(3)]

    def position(q, t):
        length = sum(np.sqrt(s @ s) for s in sides(q))
        return np.array([length + 2 * np.pi * r - p])

    def rate(q, qd, t):
        pairs = zip(sides(q), sides(qd), strict=True)
        return np.array([sum(s @ sd / np.sqrt(s @ s) for s, sd in pairs)])

    q, qd = rng.standard_normal(9), rng.standard_normal(9)
    string = ConstraintFunction(rate, position)
    string.check(q, qd)
    assert freedoms([string], q, qd) == Freedoms(8, 8)
    K = string.at(q, qd).K.reshape(3, 3)
    assert np.all(np.linalg.norm(K[:, :2], axis=1) > 0.1)
    assert_close(K[:, 2], np.zeros(3), scale=1)
    # second derivative along the straight line, against its finite difference
    h = 1e-4
    second = (position(q + h * qd, 0) - 2 * position(q, 0) + position(q - h * qd, 0)) / h**2
    assert_close(string.at(q, qd).k, -second, ulps=1, condition=1e9)


def test_an_inequality_becomes_an_equation_only_on_request():
    contact = ConstraintFunction(lambda q, qd, t: qd, lambda q, t: q, equality=False)
    assert contact.kind == "inequality, holonomic, scleronomic"
    with pytest.raises(ModelError, match=r"only while contact lasts.*equality=True"):
        contact.at(np.zeros(1), np.zeros(1))


def test_functions_that_do_not_belong_together_are_told_apart(rng):
    q, qd = rng.standard_normal(2), rng.standard_normal(2)
    with pytest.raises(ShapeError, match="must be linear in qd"):
        ConstraintFunction(lambda q, qd, t: qd * qd).check(q, qd)
    with pytest.raises(ShapeError, match="rate is not the time derivative of position"):
        ConstraintFunction(lambda q, qd, t: 2 * qd, lambda q, t: q).check(q, qd)
