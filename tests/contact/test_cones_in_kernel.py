"""The mixed problem in compiled code: standing, sliding and redundant contacts."""

import numpy as np
import pytest
from support.contact_scenes import assert_laws_hold, box

import kinetree as kt
from kinetree.contact.complementarity import cones
from kinetree.errors import UnknownNameError

INF = np.inf
LOW, HIGH = (-INF, 0.0, -0.1), (INF, INF, 0.2)


@kt.kernel
def mixed(A: (9, 9), b: (9,), mu: (2,), warm: (9,), dry: (), *, law="coulomb"):
    bounds = {"low": np.array([-INF, 0.0, -dry]), "high": np.array([INF, INF, dry])}
    return cones.in_kernel(A, b, mu, 60, warm, law=law, **bounds)


def random_problems(rng, count):
    J = rng.normal(size=(count, 9, 10))
    b = np.einsum("nij,nj->ni", J, rng.normal(size=(count, 10)))
    return J @ J.transpose(0, 2, 1), b, rng.uniform(0, 1, (count, 2))


def test_batches_of_mixed_problems_meet_the_definitions(rng):
    A, b, mu = random_problems(rng, 50)
    lam, w, residual = mixed(A, b, mu, np.zeros(9), 0.1)
    assert np.max(residual) < 1e-10
    np.testing.assert_allclose(w, np.einsum("nij,nj->ni", A, lam) + b, atol=1e-12)
    low, high = (-INF, 0.0, -0.1), (INF, INF, 0.1)
    for k in range(50):
        assert_laws_hold(A[k], b[k], mu[k], lam[k], low=low, high=high, tolerance=1e-10)


def test_floats_take_the_same_path(rng):
    A, b, mu = (x[0] for x in random_problems(rng, 1))
    found = cones.in_kernel(A, b, mu, low=LOW, high=HIGH)
    true = cones.solve(A, b, mu, low=LOW, high=HIGH)
    np.testing.assert_allclose(found.lam, true.lam, atol=1e-11)
    assert found.residual < 1e-12


@pytest.mark.parametrize("law", ["coulomb", "convex"])
def test_the_residual_has_no_unit(rng, law):
    """What is left after few iterations is a share of the velocities, however small they are."""
    open_ = 0
    for A, b, mu in zip(*random_problems(rng, 24), strict=True):
        left = [cones.in_kernel(A[:6, :6], s * b[:6], mu, 1, law=law) for s in (1.0, 1e-3, 1e3)]
        open_ += left[0].residual > 1e-6
        for found, s in zip(left, (1.0, 1e-3, 1e3), strict=True):
            np.testing.assert_allclose(found.residual, left[0].residual, rtol=1e-6, atol=1e-12)
            np.testing.assert_allclose(found.lam, s * left[0].lam, rtol=1e-6, atol=1e-9 * s)
    assert open_ > 1


@pytest.mark.parametrize("law", ["coulomb", "convex"])
def test_redundant_contacts(rng, law):
    for _ in range(8):
        A, b, mu = box(rng)
        found = cones.in_kernel(A, b, mu, 100, law=law)
        assert found.residual < 1e-10
        assert_laws_hold(A, b, mu, found.lam, convex=law == "convex", tolerance=1e-9)


@kt.kernel
def forces(A: (3, 3), b: (3,), warm: (3,)):
    return cones.in_kernel(A, b, [0.4], 20, warm).lam


def test_derivatives_are_those_of_the_solution_wherever_it_starts(rng):
    root = rng.normal(size=(3, 3))
    A, b, step = root @ root.T + np.eye(3), np.array([-1.0, 2.0, 1.0]), 1e-6
    lam = cones.solve(A, b, [0.4]).lam
    assert np.hypot(*lam[1:]) > 0.3999 * lam[0]  # it slides
    nearby = [
        [cones.solve(A, b + sign * step * e, [0.4]).lam for sign in (1, -1)] for e in np.eye(3)
    ]
    expected = np.array([(more - less) / (2 * step) for more, less in nearby]).T
    for warm in (np.zeros(3), lam):
        derivatives = kt.differentiate(forces, wrt="b")(A, b, warm)
        np.testing.assert_allclose(derivatives, expected, atol=1e-8)


def test_nothing_to_solve():
    assert cones.in_kernel(np.zeros((0, 0)), np.zeros(0), np.zeros(0)).residual == 0
    assert not np.any(cones.in_kernel(np.eye(3), np.zeros(3), [0.5], warm=np.ones(3)).lam)


def test_wrong_laws_are_rejected():
    with pytest.raises(UnknownNameError, match="one of coulomb, convex, got 'dry'"):
        cones.in_kernel(np.eye(3), np.zeros(3), [0.5], law="dry")


# --- a quadruped on its four feet -----------------------------------------------------------------

LEGS = ("front_left", "front_right", "rear_left", "rear_right")
DT = 1e-3


@kt.kernel
def stand(m, q, qd, warm, iterations: ()):
    """One step of the quadruped, whose joints are held by springs, on the plane z = 0."""
    feet = [kt.jacobian(m, q, f"{leg}_foot", frame="aligned") for leg in LEGS]
    J = np.concatenate([foot[[5, 3, 4]] for foot in feet])
    inverse = kt.inverse_mass_matrix(m, q)
    home = np.array(m.postures[0].q)
    tau = np.concatenate([np.zeros(6), 100 * (home[7:] - q[7:]) - qd[6:]])
    free = qd + DT * (inverse @ (tau - kt.bias_force(m, q, qd)))
    found = cones.in_kernel(J @ inverse @ J.T, J @ free, [0.8] * 4, iterations, warm)
    qd = free + inverse @ (J.T @ found.lam)
    return m.integrate(q, DT * qd), qd, found.lam, found.residual


def test_standing_quadruped_takes_one_iteration_per_step():
    m = kt.samples.quadruped()
    q, qd, lam = np.array(m.postures[0].q), np.zeros(18), np.zeros(12)
    q, qd, lam, first = stand(m, q, qd, lam, 2.0)
    assert first < 1e-10
    for _ in range(300):
        q, qd, lam, residual = stand(m, q, qd, lam, 1.0)
        assert residual < 1e-10
    left, right = lam.reshape(2, 2, 3).transpose(1, 0, 2)
    np.testing.assert_allclose(left, right * [1, 1, -1], atol=1e-12)  # mirror images
    momentum = DT * 9.81 * sum(body.inertia.mass for body in m.bodies)
    assert abs(lam[::3].sum() - momentum) < 0.05 * momentum
