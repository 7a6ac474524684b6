"""Parts of the laws of impact, one by one."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.contact.contacts import Contacts, jacobian
from kinetree.contact.impacts.impact import impact
from kinetree.contact.impacts.patches import patch_impact
from kinetree.contact.impacts.several import sequential_impacts
from kinetree.contact.impacts.single import (
    LAWS,
    ImpactState,
    _Speed,
    _without_sliding,
    follow,
    single_impact,
)
from kinetree.errors import ImpactError

DOWN = np.array([0, 0, -0.5])


def on_ground(bodies):
    n = len(bodies)
    names = tuple(f"ball {k}" for k in bodies)
    ground = np.zeros(n, int), np.array(bodies), np.tile(DOWN, (n, 1)), np.tile([0, 0, 1.0], (n, 1))
    return Contacts(*ground, np.zeros(n), names)


@pytest.mark.parametrize("units", [1e-8, 1.0, 1e9])
def test_momentum_is_conserved_relative_to_what_was_gained(units, rng):
    """Bodies of any mass: the error is one of rounding, and has no unit."""
    builder, before = kt.ModelBuilder("arm"), "base"
    for k, axis in enumerate("xyzxyz"):
        box = kt.shapes.box(0.3, 0.5, 0.2 + 0.1 * k, mass=units * (1 + k))
        builder.body(f"b{k}", on=before, joint=kt.Revolute(axis), inertia=box, at=(0.1, 0.4, 0.2))
        before = f"b{k}"
    m, contacts = builder.build(), on_ground([6])
    q, qd = rng.normal(size=(2, m.nv))
    if jacobian(m, q, contacts)[0, 0] @ qd > 0:
        qd = -qd
    found = impact(m, q, qd, contacts, friction=0.2, restitution=0.5)
    assert found.velocity[0, 0] > 0
    assert found.residuals.momentum < 1e-11


def test_arrested_contacts_need_the_friction_of_their_own_impulses():
    """Two balls that fall alike, one of which slides: only that one takes friction."""
    builder = kt.ModelBuilder("balls")
    for k in range(2):
        builder.body(f"b{k}", on="base", joint=kt.Free(), inertia=kt.shapes.sphere(0.5, mass=1.0))
    m = builder.build()
    for slides in range(2):
        qd = np.zeros((2, 6))
        qd[:, 5], qd[slides, 3] = -2.0, 1.4
        mu = np.zeros(2)
        mu[slides] = 0.21  # 2/7 of 1.4 over 2
        found = impact(m, m.neutral(), qd.ravel(), on_ground([1, 2]), friction=mu, arrested=True)
        assert_close(np.abs(found.impulse[slides, 1]) + np.abs(found.impulse[slides, 2]), 0.4)
        mu[:] = 0.19
        words = rf"contact 'ball {slides + 1}' takes a coefficient of 0\.2, and friction has 0\.19"
        with pytest.raises(ImpactError, match=words):
            impact(m, m.neutral(), qd.ravel(), on_ground([1, 2]), friction=mu, arrested=True)


def test_patches_limit_sliding_and_spinning_each_by_its_own_friction():
    """Directions that do not feel one another: closed forms of all four combinations."""
    a, b, c = 2.0, 3.0, 5.0
    W, zeta = np.diag([a, b, b, c]), np.array([-1.0, 0.6, -0.8, 0.7])
    normal = 1.5 / a
    for mu, mu_r in ((9.0, 9.0), (0.1, 9.0), (9.0, 0.02), (0.1, 0.02)):
        slide = -zeta[1:3] * min(1.4 / b, mu * normal)
        spin = -min(1.3 * 0.7 / c, mu_r * normal)
        lam = patch_impact(W, zeta, (0.5, 0.4, 0.3), (mu, mu_r))
        assert_close(lam, [normal, *slide, spin], ulps=100)


def test_spinning_does_not_count_as_sliding():
    """The couple is larger than all of the friction of sliding, which still arrests."""
    W, zeta = np.diag([1.0, 1.0, 1.0, 0.01]), np.array([-1.0, 0.3, 0.0, 1.0])
    lam = patch_impact(W, zeta, (0.0, 0.0, 0.0), (0.5, 1000.0))
    assert_close(lam, [1.0, -0.3, 0.0, -100.0], ulps=1000)


@pytest.mark.parametrize("law", LAWS)
def test_contacts_at_rest_take_no_impulse(law):
    W = np.eye(6).reshape(2, 3, 2, 3)
    zeta = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    impulse, error = sequential_impacts(W, zeta, np.array([0.5, 0.5]), np.array([0.3, 0.3]), law)
    assert np.array_equal(impulse, np.zeros((2, 3)))
    assert error == 0


@pytest.mark.parametrize("speed", [0.0, 0.4, 3.0])
def test_a_course_that_is_at_its_goal_or_beyond_is_left_alone(speed):
    W = np.array([[1.0, 0.3, -0.2], [0.3, 2.0, 0.4], [-0.2, 0.4, 1.0]])
    course = ImpactState.start(W, np.array([speed, 0.5, 0.2]), 0.3)
    assert follow(course, _Speed(0.0)) is course


@pytest.mark.parametrize("signs", [(1, 1), (-1, 1), (1, -1)])
def test_sticking_keeps_the_tangents_at_rest(rng, monkeypatch, signs):
    """``dλ_t/dp = -W_tt⁻¹ W_tn`` where friction is enough, else a direction that keeps on.

    Whatever the signs of the eigenvectors are, which differ from library to library.
    """
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda A: (eigh(A)[0], eigh(A)[1] * np.array(signs)))
    for _ in range(30):
        B = rng.normal(size=(3, 3))
        W = B @ B.T
        stick = -np.linalg.solve(W[1:, 1:], W[1:, 0])
        needed = np.hypot(*stick)
        course = ImpactState.start(W, np.array([-1.0, 0, 0]), 1.01 * needed)
        assert_close(_without_sliding(course), [1.0, *stick], ulps=1e5)
        mu = 0.7 * needed
        c = _without_sliding(ImpactState.start(W, np.array([-1.0, 0, 0]), mu))
        v = (W @ c)[1:]
        assert_close(c[1:], -mu * v / np.hypot(*v), ulps=1e6)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("unit", [1e-10, 1e-5, 1e10])
def test_impulses_are_proportional_to_velocities(law, unit):
    """Also where sliding turns and then stops, or slides off in another direction."""
    level = np.array([[1.0, 0.3, -0.2], [0.3, 2.0, 0.4], [-0.2, 0.4, 1.0]])
    steep = np.array([[1.0, -0.6, 0.5], [-0.6, 2.0, 0.4], [0.5, 0.4, 1.5]])
    for W, zeta, mu in ((level, [-1, 0.3, 0.4], 0.9), (steep, [-1, 0.1, 0.15], 0.3)):
        lam = single_impact(W, np.array(zeta), 0.6, mu, law)
        fast = single_impact(W, unit * np.array(zeta), 0.6, mu, law)
        np.testing.assert_allclose(fast / unit, lam, rtol=1e-9, atol=1e-9)
