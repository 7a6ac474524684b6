import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed.constraints import function_rows, loop_constraints
from kinetree.errors import ModelError, ShapeError
from kinetree.joints import Cylindrical, Free, Planar, Prismatic
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia
from kinetree.spatial.rotation import rotation_from_quaternion
from kinetree.textbook.constrained_body import BodyFreedoms, check_functions, freedoms

RADIUS = 0.3
AREA = "RBDA 3.4"


def contact_rate(q, qd):
    """Velocity, in base coordinates, of the point of the ball that touches the plane z = 0."""
    E = rotation_from_quaternion(q[3:])
    w, v = E.T @ qd[:3], E.T @ qd[3:]
    return v + np.array([-w[1] * RADIUS, w[0] * RADIUS, 0])


PLANE = kt.ConstraintFunction(
    "plane", position=lambda q: q[2] - RADIUS, rate=lambda q, qd: contact_rate(q, qd)[2]
)
ROLL = kt.ConstraintFunction("roll", rate=lambda q, qd: contact_rate(q, qd)[:2], rows=2)


def ball(rng, *constraints):
    model = ModelBuilder().body("ball", joint=Free(), inertia=random_inertia(rng)).build()
    q = model.random_configuration(rng)
    q[2] = RADIUS
    return model.replace(constraints=constraints), q


@pytest.mark.covers(AREA, by=(freedoms, check_functions))
def test_a_rolling_sphere_has_three_freedoms_of_velocity_and_five_of_position(rng):
    model, q = ball(rng, PLANE, ROLL)
    check_functions(model, q, rng.standard_normal(6))
    assert PLANE.kind == "equality, holonomic, scleronomic"
    assert ROLL.kind == "equality, nonholonomic, scleronomic"
    assert freedoms(model.replace(constraints=[PLANE]), q) == BodyFreedoms(position=5, velocity=5)
    assert freedoms(model, q) == BodyFreedoms(position=5, velocity=3)
    found = kt.loops.mobility(model, q)
    assert (found.position_dof, found.mobility) == (5, 3)
    assert "nonholonomic: positions have 5 degrees of freedom" in str(found)


@pytest.mark.covers(AREA, by=freedoms)
def test_rolling_really_reaches_five_dimensions(rng):
    """The brackets of the allowed velocity fields span what the degrees of freedom promise."""
    model, q = ball(rng, PLANE, ROLL)
    assert freedoms(model, q) == BodyFreedoms(5, 3)

    def K(q):
        return loop_constraints(model, q, np.zeros(6)).K.astype(float)

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


def cylinder(**drives):
    """A cylindrical joint, each freedom of which may be prescribed, without a joint for that."""
    numbers = {"turn": 0, "slide": 1}
    return (
        ModelBuilder()
        .body("piston", joint=Cylindrical("z"), inertia=kt.shapes.sphere(0.1, mass=1.0))
        .build()
        .replace(
            constraints=[
                kt.ConstraintFunction(name, lambda q, t, n=numbers[name], f=f: q[n] - f(t))
                for name, f in drives.items()
            ]
        )
    )


@pytest.mark.covers(AREA, by=(function_rows, freedoms))
def test_prescribing_a_freedom_in_time_makes_a_rheonomic_constraint_of_one_freedom_less(rng):
    q, qd, t = rng.standard_normal(2), rng.standard_normal(2), 0.7

    def drive(t):
        return np.sin(3 * t)

    assert freedoms(cylinder(), q) == BodyFreedoms(2, 2)
    assert freedoms(cylinder(turn=drive, slide=drive), q) == BodyFreedoms(0, 0)
    model = cylinder(turn=drive).at(t)
    assert freedoms(model, q) == BodyFreedoms(1, 1)
    assert model.constraints[0].kind == "equality, holonomic, rheonomic"
    (now,) = function_rows(model, q, qd)
    assert_close(now.rate, [qd[0] - 3 * np.cos(3 * t)])
    assert_close(now.k, [-9 * np.sin(3 * t)])
    assert_close(now.error, [q[0] - np.sin(3 * t)])


@pytest.mark.covers(AREA, by=function_rows)
def test_a_string_around_three_discs_constrains_three_bodies_at_once(rng):
    """RBDA Fig. 3.2(c): l1 + l2 + l3 + 2 pi r = p; no pair of bodies is constrained."""
    r, p = 0.1, 4.0

    def sides(q):
        points = q.reshape(3, 3)[:, 1:]
        return [points[i] - points[(i + 1) % 3] for i in range(3)]

    def position(q):
        return sum(np.sqrt(s @ s) for s in sides(q)) + 2 * np.pi * r - p

    def rate(q, qd):
        pairs = zip(sides(q), sides(qd), strict=True)
        return sum(s @ sd / np.sqrt(s @ s) for s, sd in pairs)

    discs, inertia = ModelBuilder("discs"), kt.shapes.sphere(0.1, mass=1.0)
    for name in "abc":
        discs.body(f"{name}1", joint=kt.Revolute("z"))
        discs.body(f"{name}2", on=f"{name}1", joint=Prismatic("x"))
        discs.body(f"{name}3", on=f"{name}2", joint=Prismatic("y"), inertia=inertia)
    model = discs.constraint("string", position=position, rate=rate).build()
    q, qd = rng.standard_normal(9), rng.standard_normal(9)
    check_functions(model, q, qd)
    assert freedoms(model, q) == BodyFreedoms(8, 8)
    (string,) = function_rows(model, q, qd)
    K = string.K.astype(float).reshape(3, 3)
    assert np.all(np.linalg.norm(K[:, 1:], axis=1) > 0.1)
    assert_close(K[:, 0], np.zeros(3), scale=1)
    # second derivative along the straight line, against its finite difference
    h = 1e-4
    second = (position(q + h * qd) - 2 * position(q) + position(q - h * qd)) / h**2
    assert_close(string.k, [-second], ulps=1, condition=1e9)
    # the rate that is derived is the one that was given
    model = discs.build().replace(constraints=[kt.ConstraintFunction("string", position)])
    (derived,) = function_rows(model, q, qd)
    for one, other in zip(derived, string, strict=True):
        assert_close(one.astype(float), other.astype(float), ulps=1e3, scale=10)


def test_an_inequality_is_no_part_of_a_model(rng):
    contact = kt.ConstraintFunction("contact", lambda q: q[2], equality=False)
    assert contact.kind == "inequality, holonomic, scleronomic"
    with pytest.raises(ModelError, match=r"only while contact lasts.*equality=True"):
        ball(rng, contact)


def test_functions_that_do_not_belong_together_are_told_apart(rng):
    q, qd = rng.standard_normal(3), rng.standard_normal(3)
    model = ModelBuilder().body("disc", joint=Planar(), inertia=random_inertia(rng)).build()
    curved = model.with_constraint("curved", rate=lambda qd: qd * qd, rows=3)
    with pytest.raises(ShapeError, match="rate of constraint 'curved' must be linear in qd"):
        check_functions(curved, q, qd)
    wrong = model.with_constraint("wrong", position=lambda q: q[0], rate=lambda qd: 2 * qd[0])
    with pytest.raises(ShapeError, match="'wrong' is not the time derivative of its position"):
        check_functions(wrong, q, qd)


def test_functions_that_cannot_be_called_are_rejected():
    with pytest.raises(ModelError, match="constraint 'empty' needs a function"):
        kt.ConstraintFunction("empty")
    with pytest.raises(ModelError, match="position of constraint 'far' must be a function of mod"):
        kt.ConstraintFunction("far", position=3.0)
    with pytest.raises(ModelError, match=r"or of some of these; it takes 'x'"):
        kt.ConstraintFunction("odd", position=lambda q, x: x)
    with pytest.raises(ModelError, match="rows must be an integer from 1, got 0"):
        kt.ConstraintFunction("none", position=lambda q: q, rows=0)
    with pytest.raises(ModelError, match="unit must be 'm' or 'rad'"):
        kt.ConstraintFunction("unit", position=lambda q: q, unit="mm")
    model = kt.samples.pendulum().with_constraint("two", position=lambda q: (q[0], q[0]))
    with pytest.raises(ShapeError, match="position of constraint 'two' must return 1 numbers"):
        kt.loops.constraint(model, np.zeros(model.nq), np.zeros(model.nv))
