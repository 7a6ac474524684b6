"""The motion inside a step."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.integration.field import Field
from kinetree.integration.interpolation import Interpolant
from kinetree.integration.step import Stepper
from kinetree.samples import random_inertia
from kinetree.simulation import INTEGRATORS

METHODS = ("euler", "midpoint", "heun", "rk4", "dopri5", "rosenbrock", "implicit_midpoint")
ORDER = {"euler": 1, "midpoint": 2, "heun": 2, "dopri5": 4}  # of the others: 3, Hermite's cubics


def model(rng):
    builder = kt.ModelBuilder("two bodies")
    builder.body("ball", joint=kt.Spherical(), inertia=random_inertia(rng))
    joint = kt.Revolute((1.0, 2.0, 2.0))
    builder.body("tail", on="ball", joint=joint, at=(0.1, 0.2, 0.3), inertia=random_inertia(rng))
    return builder.build()


def step(method, m, h, q, qd, compiled=True):
    stepper = Stepper(m, INTEGRATORS[method], Field(), compiled=compiled)
    return stepper.take(1.0, h, q, qd, 0.1 * np.ones(m.nv))


@pytest.mark.parametrize("method", METHODS)
def test_both_ends_are_exact(method, rng):
    m = model(rng)
    q, qd = m.random_configuration(rng), rng.uniform(-1, 1, m.nv)
    taken = step(method, m, 0.05, q, qd)
    for t, expected in ((1.0, (q, qd, 0.0)), (1.05, (taken.q1, taken.qd1, taken.work))):
        for found, value in zip(taken.interpolant(t), expected, strict=True):
            assert_close(found, np.asarray(value), ulps=1e4, scale=1.0)


@pytest.mark.covers("RBDA 11.5", by=Interpolant)
@pytest.mark.parametrize("method", ["heun", "rk4", "dopri5"])
def test_the_error_inside_is_of_the_order_of_the_interpolant(method, rng):
    """Against accurate steps to the same instant; local error, so one order more."""
    m = model(rng)
    q, qd = m.random_configuration(rng), rng.uniform(-1, 1, m.nv)
    errors = []
    for h in (0.02, 0.01):
        taken = step(method, m, h, q, qd)
        found = taken.at(1.0 + 0.4 * h)
        expected = step("dopri5", m, 0.4 * h, q, qd)
        gap = m.difference(expected.q1, found[0]), found[1] - expected.qd1
        errors.append(np.linalg.norm(np.concatenate(gap)))
    assert np.log2(errors[0] / errors[1]) > ORDER.get(method, 3) + 0.7


def test_a_batch_is_interpolated_sample_by_sample(rng):
    m = model(rng)
    q = np.array([m.random_configuration(rng) for _ in range(3)])
    qd = rng.uniform(-1, 1, (3, m.nv))
    for method in ("heun", "rk4"):
        together = step(method, m, 0.05, q, qd).interpolant(1.02)
        for k in range(3):
            alone = step(method, m, 0.05, q[k], qd[k]).interpolant(1.02)
            for a, b in zip(together, alone, strict=True):
                assert_close(a[k], b, ulps=1e4)


def test_steps_on_the_host_are_the_same_as_compiled_ones(rng):
    m = model(rng)
    q, qd = m.random_configuration(rng), rng.uniform(-1, 1, m.nv)
    for method in ("euler", "semi_implicit_euler", "heun", "rk4", "dopri5"):
        one, other = (step(method, m, 0.05, q, qd, compiled=c) for c in (True, False))
        for name in ("q1", "qd1", "work"):
            assert_close(getattr(one, name), getattr(other, name), ulps=1e4)


def test_a_step_that_is_cut_is_taken_anew(rng):
    m = model(rng)
    q, qd = m.random_configuration(rng), rng.uniform(-1, 1, m.nv)
    cut = step("rk4", m, 0.05, q, qd).cut(1.03)
    short = step("rk4", m, 0.03, q, qd)
    assert cut.t1 == 1.03
    assert_close(cut.q1, short.q1, ulps=1e4)
