"""Models of exact, symbolic and complex numbers."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from support.closeness import assert_close

from kinetree.algorithms import crba, rnea
from kinetree.joints import Fixed, Prismatic, Revolute
from kinetree.model import JointDynamics, ModelBuilder
from kinetree.model.replacing import map_numbers
from kinetree.samples import four_bar, panda, random_inertia


def sliders():
    rng = np.random.default_rng(3)
    builder = ModelBuilder("sliders").body("a", joint=Prismatic("x"), inertia=random_inertia(rng))
    builder.body(
        "b", on="a", joint=Prismatic("-y"), at=(0.1, 0.2, 0.3), inertia=random_inertia(rng)
    )
    builder.body("c", on="b", joint=Fixed(), at=(0.5, 0, 0), inertia=random_inertia(rng))
    return builder.build()


@pytest.mark.covers("RBDA 4.6", by=map_numbers)
def test_fractions_are_exact():
    m = sliders()
    exact = m.map_numbers(Fraction)
    q, qd, qdd = (np.array([Fraction(k, 7), Fraction(-3, k + 2)]) for k in (1, 2, 3))
    tau = rnea.inverse_dynamics(exact, q, qd, qdd)
    assert all(isinstance(x, Fraction) for x in tau)
    H = crba.joint_space_inertia(exact, q)
    assert (tau == H @ qdd + rnea.bias_force(exact, q, qd)).all()
    floats = [np.array(x, dtype=float) for x in (q, qd, qdd)]
    assert_close(tau.astype(float), rnea.inverse_dynamics(m, *floats))


def hinges():
    """Axes along coordinate axes, parallel frames: no rounded rotation matrix anywhere."""
    rng = np.random.default_rng(4)
    builder = ModelBuilder("hinges")
    for i, axis in enumerate("xyzyx"):
        at, on = rng.standard_normal(3), f"b{i - 1}" if i else None
        builder.body(f"b{i}", on=on, joint=Revolute(axis), at=at, inertia=random_inertia(rng))
    return builder.build()


def test_mpmath_runs_at_any_precision(rng):
    m = hinges()
    q, (qd, qdd) = m.random_configuration(rng), rng.standard_normal((2, m.nv))
    with mpmath.workdps(50):
        big = m.map_numbers(mpmath.mpf)
        arguments = [np.array([mpmath.mpf(x) for x in v]) for v in (q, qd, qdd)]
        tau = rnea.inverse_dynamics(big, *arguments)
        H, C = crba.joint_space_inertia(big, arguments[0]), rnea.bias_force(big, *arguments[:2])
        assert max(abs(x) for x in H @ arguments[2] + C - tau) < mpmath.mpf(10) ** -45
    assert_close(rnea.inverse_dynamics(m, q, qd, qdd), tau.astype(float))


def test_formulas_come_out_as_formulas():
    m = (
        ModelBuilder(gravity=(0, 0, -9.5))
        .body("bob", joint=Revolute("y"), inertia=sliders().inertia[1])
        .build()
    )
    exact = m.map_numbers(sympy.Rational)
    q = sympy.Symbol("q")
    (tau,) = rnea.gravity_force(exact, np.array([q]))
    assert tau.has(sympy.sin(q))
    assert_close(float(tau.subs(q, 0.3)), rnea.gravity_force(m, np.array([0.3]))[0])


def test_complex_numbers_carry_derivatives(rng):
    m = panda()
    q, (qd, qdd) = m.random_configuration(rng), rng.standard_normal((2, m.nv))
    scaled = m.map_numbers(complex).replace(gravity=m.gravity * (1 + 1e-30j))
    derivative = rnea.inverse_dynamics(scaled, q, qd, qdd).imag / 1e-30
    assert_close(derivative, rnea.gravity_force(m, q), ulps=1e3)


def test_integers_stay_and_everything_else_goes_through():
    seen = []
    m = four_bar()
    n = m.map_numbers(lambda x: seen.append(x) or x)
    assert n == m
    assert all(type(x) is float for x in seen)
    crank = n.tree_transform[1]
    assert np.issubdtype(crank.E.dtype, np.integer)
    assert sum(n.map_numbers(Fraction).loops[0].predecessor_placement.r) == Fraction(0.5)


def test_armature_is_as_exact_as_the_rest(rng):
    model = sliders().replace(dynamics={"a_joint": JointDynamics(armature=0.25, damping=0.5)})
    exact = model.map_numbers(Fraction)
    assert exact.bodies[0].dynamics.armature == (Fraction(1, 4),)
    assert exact.bodies[0].dynamics.damping == (Fraction(1, 2),)
    q = np.array([Fraction(1, 3), Fraction(2, 7)])
    H, bare = (crba.joint_space_inertia(m, q) for m in (exact, sliders().map_numbers(Fraction)))
    assert H[0, 0] - bare[0, 0] == Fraction(1, 4)
    assert H[1, 1] == bare[1, 1]
