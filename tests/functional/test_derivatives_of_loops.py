"""Derivatives of forward dynamics with loops on arrays, as code for one robot says."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import ShapeError
from kinetree.functional import closed

SAMPLES = ["five_bar", "bennett", "slider_crank"]


@pytest.fixture(autouse=True)
def on_arrays(monkeypatch):
    monkeypatch.setattr(closed, "FEWEST", 1)


def states(model, rng):
    """Two states that keep loops closed, and joint forces."""
    q = np.array([kt.loops.assemble(model, model.neutral() + 0.1 * k) for k in range(2)])
    qd = kt.loops.project_velocity(model, q, rng.normal(size=(2, model.nv)))
    return q, qd, rng.normal(size=(2, model.nv))


@pytest.mark.parametrize("name", SAMPLES)
def test_derivatives_agree_with_specialised_code(name, rng):
    model = getattr(kt.samples, name)()
    arrays = states(model, rng)
    forces = rng.normal(size=(2, model.body_count, 6))
    for wrt in (("tau", "qd", "q"), ("parameters",)):
        d = kt.differentiate(kt.forward_dynamics, wrt=wrt)
        found = d(model, *arrays, forces)
        assert kt.tier_of(model, d) == "general"
        with kt.tier("specialised"):
            expected = d(model, *arrays, forces)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, 0, 1e-11 * np.max(np.abs(b)))


@pytest.mark.parametrize("wrt", ["q", "tau", ("q", "qd")])
@pytest.mark.parametrize("name", SAMPLES)
def test_products_agree_with_specialised_code(name, wrt, rng):
    model = getattr(kt.samples, name)()
    arrays, v = states(model, rng), rng.normal(size=(3, 1, model.nv))
    push, pull = (f(kt.forward_dynamics, wrt=wrt) for f in (kt.jvp, kt.vjp))
    tangents = (v, 2 * v) if isinstance(wrt, tuple) else v
    found = push(model, *arrays, tangents=tangents), pull(model, *arrays, cotangent=v)
    assert kt.tier_of(model, push) == kt.tier_of(model, pull) == "general"
    with kt.tier("specialised"):
        expected = push(model, *arrays, tangents=tangents), pull(model, *arrays, cotangent=v)
    np.testing.assert_allclose(found[0], expected[0], 0, 1e-11 * np.max(np.abs(expected[0])))
    both = (x if isinstance(x, tuple) else (x,) for x in (found[1], expected[1]))
    for a, b in zip(*both, strict=True):
        np.testing.assert_allclose(a, b, 0, 1e-11 * np.max(np.abs(b)))


def test_many_samples_are_compiled(rng):
    model = kt.samples.slider_crank()
    q, qd, tau = (x[0] for x in states(model, rng))
    push, many = kt.jvp(kt.forward_dynamics, wrt="tau"), np.zeros((3000, model.nv))
    assert push(model, q, qd, many, tangents=tau).shape == many.shape
    assert kt.tier_of(model, push) == "specialised"


def test_velocities_are_those_of_differences(rng):
    """Along a motion that keeps loops closed, of a mechanism with redundant constraints."""
    model = kt.samples.bennett()
    q, qd, tau = (x[0] for x in states(model, rng))
    d = kt.differentiate(kt.forward_dynamics, wrt=("q", "qd"))
    by_q, by_qd = d(model, q, qd, tau)
    e, steps = 1e-5, []
    for sign in (1, -1):
        there = kt.loops.assemble(model, model.integrate(q, sign * e * qd))
        speed = kt.loops.project_velocity(model, there, qd)
        steps.append((there, speed, kt.forward_dynamics(model, there, speed, tau)))
    (q1, v1, a1), (q0, v0, a0) = steps
    change = by_q @ model.difference(q0, q1) + by_qd @ (v1 - v0)
    np.testing.assert_allclose(change, a1 - a0, atol=1e-7 * np.abs(a1 - a0).max() + 1e-12)


def test_open_loops_are_named(rng):
    model = kt.samples.five_bar()
    q, qd, tau = states(model, rng)
    q[1, 0] += 0.1
    with pytest.raises(ShapeError, match=r"sample \(1,\)"):
        kt.differentiate(kt.forward_dynamics, wrt="q")(model, q, qd, tau)
