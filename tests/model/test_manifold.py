"""Moving on the configuration manifold."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms.kinematics import joint_transforms
from kinetree.errors import ShapeError
from kinetree.model import Limits, Model, manifold
from kinetree.samples import humanoid, panda, quadruped, random_tree


def poses(model, q):
    return np.array([X.to_matrix() for X in joint_transforms(model, q)[0][1:]])


@pytest.mark.covers("RBDA 3.1", "RBDA 4.5", by=(manifold.integrate, manifold.difference))
def test_integrate_undoes_difference(rng):
    m = random_tree(12, rng)
    q0, q1 = m.random_configuration(rng), m.random_configuration(rng)
    assert_close(poses(m, m.integrate(q0, m.difference(q0, q1))), poses(m, q1), ulps=1e5)
    assert_close(m.difference(q0, q0), np.zeros(m.nv), scale=1)
    np.testing.assert_allclose(m.integrate(q0, np.zeros(m.nv)), q0, rtol=1e-15, atol=1e-15)


@pytest.mark.covers("RBDA 3.1", by=manifold.configuration_rate)
def test_configuration_rate_is_the_slope_of_integrate(rng):
    m = random_tree(12, rng)
    q, qd, h = m.random_configuration(rng), rng.standard_normal(m.nv), 1e-5
    derivative = (m.integrate(q, h * qd) - m.integrate(q, -h * qd)) / (2 * h)
    np.testing.assert_allclose(m.configuration_rate(q, qd), derivative, rtol=1e-8, atol=1e-8)


def test_batches_broadcast(rng):
    m = humanoid()
    q = np.array([m.random_configuration(rng) for _ in range(3)])
    dv = rng.standard_normal((2, 1, m.nv))
    moved = m.integrate(q, dv)
    assert moved.shape == (2, 3, m.nq)
    np.testing.assert_array_equal(moved[1, 2], m.integrate(q[2], dv[1, 0]))
    assert m.difference(q, moved).shape == (2, 3, m.nv)
    assert m.configuration_rate(q, dv).shape == (2, 3, m.nq)
    assert m.integrate(q[:0], dv[0]).shape == (0, m.nq)


def test_normalize_restores_quaternions(rng):
    m = humanoid()
    q = np.array([m.random_configuration(rng) for _ in range(3)])
    assert_close(m.normalize(q * 1.1)[:, 3:7], q[:, 3:7])
    assert_close(m.normalize(q), q)


def test_random_configurations_respect_limits(rng):
    for m in (panda(), quadruped()):
        for _ in range(20):
            q = m.random_configuration(rng)
            for i, body in enumerate(m.bodies, start=1):
                if body.limits is not None:
                    assert body.limits.lower <= tuple(q[m.q_slice[i]]) <= body.limits.upper


def test_limits_on_one_side_leave_the_draw_free(rng):
    m = panda().replace(limits={"link1_joint": Limits(lower=-np.inf, upper=0.1)})
    assert max(m.random_configuration(rng)[0] for _ in range(50)) > 0.1


def test_a_model_without_bodies_has_an_empty_configuration():
    empty = Model(())
    assert empty.neutral().shape == empty.random_configuration().shape == (0,)


def test_normalize_rejects_what_has_no_direction():
    m = random_tree(1, 0, floating_base=True)
    q = np.array([m.neutral(), np.zeros(7)])
    with pytest.raises(ShapeError, match=r"sample \(1,\): q has a quaternion of length zero"):
        m.normalize(q)
    with pytest.raises(ShapeError, match=r"q must have shape \(\.\.\., nq\) with nq = 7"):
        m.normalize(np.zeros(3))


def test_a_seed_is_as_good_as_a_generator():
    m = panda()
    assert np.array_equal(m.random_configuration(5), m.random_configuration(5))
    assert np.array_equal(
        m.random_configuration(5), m.random_configuration(np.random.default_rng(5))
    )


def test_many_random_configurations_at_once(rng):
    arm, dog = panda(), quadruped()
    q = arm.random_configuration(rng, 500)
    lower, upper = np.array([(*t.lower, *t.upper) for t in arm.travel[1:] if t is not None]).T
    assert np.all((lower <= q) & (q <= upper))
    np.testing.assert_allclose(
        q.mean(axis=0), (lower + upper) / 2, atol=0.1 * np.max(upper - lower)
    )
    free = dog.random_configuration(rng, 5)
    assert free.shape == (5, dog.nq)
    np.testing.assert_allclose(np.linalg.norm(free[:, 3:7], axis=-1), 1.0)
    assert Model(()).random_configuration(rng, 3).shape == (3, 0)
