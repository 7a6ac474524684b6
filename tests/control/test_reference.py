"""References and gains: what they may be, and what is said otherwise."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.control.joint_space import Gain, as_reference, configuration_error, damping_for


def test_a_configuration_or_a_function_of_time():
    m = kt.samples.double_pendulum()
    q, qd, qdd = as_reference(m, [0.1, 0.2])(3.0)
    assert q.tolist() == [0.1, 0.2]
    assert not np.any(qd)
    assert not np.any(qdd)
    moving = as_reference(m, lambda t: ([t, 0], [1, 0], [0, 0]))
    assert moving(2.0)[0].tolist() == [2.0, 0.0]
    with pytest.raises(kt.ShapeError, match=r"must return \(q, qd, qdd\) for a time, got ndarray"):
        as_reference(m, lambda t: np.zeros(2))(0.5)
    with pytest.raises(kt.ShapeError, match=r"reference qd must have shape"):
        as_reference(m, lambda t: ([0, 0], [0], [0, 0]))(0.0)


def test_errors_are_on_the_manifold(rng):
    m = kt.samples.quadruped()
    q = np.stack([m.random_configuration(rng) for _ in range(3)])
    e = configuration_error(m, q, q[::-1])
    assert np.abs(e - m.difference(q, q[::-1])).max() < 1e-12
    assert np.abs(configuration_error(m, q[0], q[0])).max() < 1e-12


def test_gains(rng):
    x, M = rng.standard_normal((5, 3)), rng.standard_normal((3, 3))
    assert np.array_equal(Gain(2.0, 3, "kp")(x), 2 * x)
    assert np.array_equal(Gain([1, 2, 3], 3, "kp")(x), x * [1, 2, 3])
    assert np.allclose(Gain(M, 3, "kp")(x)[2], M @ x[2])
    assert repr(Gain(2.0, 3, "kp")) == "Gain(2.0)"
    with pytest.raises(kt.ShapeError, match=r"kp must be a number, \(3,\) or \(3, 3\), got shape"):
        Gain([1, 2], 3, "kp")
    with pytest.raises(kt.ShapeError, match="kp must be finite"):
        Gain(np.inf, 3, "kp")
    assert damping_for([4.0, 9.0], None).tolist() == [4.0, 6.0]
    assert damping_for(4.0, 1.0) == 1.0
    with pytest.raises(kt.ShapeError, match="give kd: critical damping"):
        damping_for(M, None)
