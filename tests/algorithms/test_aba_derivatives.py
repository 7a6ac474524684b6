"""Derivatives of forward dynamics, against complex steps and Pinocchio."""

import numpy as np
import pinocchio as pin
import pytest
from support.closeness import assert_close
from support.states import conditioning, floating_tree, random_external_forces, random_state

from kinetree import samples
from kinetree.algorithms import aba, minv
from kinetree.algorithms.aba_derivatives import (
    forward_dynamics_by_inertias,
    forward_dynamics_derivatives,
)
from kinetree.algorithms.rnea_derivatives import inverse_dynamics_derivatives
from kinetree.errors import SingularError
from kinetree.interop import pinocchio as P
from kinetree.joints import Cylindrical, Fixed, Planar, Prismatic, Revolute, Spherical
from kinetree.model import ModelBuilder
from kinetree.spatial import Inertia

KINDS = (Revolute("x"), Revolute((1.0, 2.0, -3.0)), Prismatic("z"), Cylindrical("z"), Planar("z"),
         Spherical(), Fixed())  # fmt: skip


def complex_step(model, q, qd, tau, f_ext):
    n, f = model.nv, aba.forward_dynamics
    e = np.eye(n)
    steps = (
        [f(model, q + 1e-30j * model.configuration_rate(q, v), qd, tau, f_ext) for v in e],
        [f(model, q, qd + 1e-30j * v, tau, f_ext) for v in e],
        [f(model, q, qd, tau + 1e-30j * v, f_ext) for v in e],
    )
    return [np.imag(np.reshape(s, (n, n))).T * 1e30 for s in steps]


@pytest.mark.parametrize("size", [1, 3, 6])
def test_derivatives_equal_the_complex_step(size, rng):
    for model in (samples.random_tree(size, rng, joints=KINDS), floating_tree(rng, size, KINDS)):
        q, qd, tau = random_state(model, rng)
        for f_ext in (None, random_external_forces(model, rng)):
            found = forward_dynamics_derivatives(model, q, qd, tau, f_ext)
            for d, exact in zip(found, complex_step(model, q, qd, tau, f_ext), strict=True):
                assert_close(d, exact, ulps=300, condition=conditioning(model, q))


def test_derivatives_by_inertias_equal_differences(rng):
    model = floating_tree(rng, 4, KINDS)
    q, qd, tau = random_state(model, rng)
    f_ext = random_external_forces(model, rng)
    found = forward_dynamics_by_inertias(model, q, qd, tau, f_ext)
    assert found.shape == (model.nv, 10 * model.body_count)

    def accelerations(body, parameters):
        changed = model.replace(inertia={body: Inertia.from_parameters(parameters)})
        return aba.forward_dynamics(changed, q, qd, tau, f_ext)

    for i, body in enumerate(model.body_names[1:], start=1):
        p, h = model.inertia[i].parameters(), 1e-6
        steps = [
            (accelerations(body, p + h * e) - accelerations(body, p - h * e)) for e in np.eye(10)
        ]
        expected, columns = np.array(steps).T / (2 * h), model.parameter_slice(i)
        assert np.max(np.abs(found[:, columns] - expected)) < 1e-5 * np.max(np.abs(expected))
        alone = forward_dynamics_by_inertias(model, q, qd, tau, f_ext, bodies=[i])
        np.testing.assert_array_equal(alone[:, columns], found[:, columns])
        assert not np.any(np.delete(alone, np.r_[columns], axis=1))


def test_the_derivative_with_respect_to_tau_is_the_inverse_inertia_matrix(rng):
    model = floating_tree(rng, 5, KINDS)
    q, qd, tau = random_state(model, rng)
    dtau = forward_dynamics_derivatives(model, q, qd, tau).dtau
    assert np.array_equal(dtau, dtau.T)
    assert_close(
        dtau, minv.inverse_mass_matrix(model, q), ulps=300, condition=conditioning(model, q)
    )


def test_derivatives_of_both_directions_cancel(rng):
    model = floating_tree(rng, 4, KINDS)
    q, qd, tau = random_state(model, rng)
    forward = forward_dynamics_derivatives(model, q, qd, tau)
    qdd = aba.forward_dynamics(model, q, qd, tau)
    inverse = inverse_dynamics_derivatives(model, q, qd, qdd)
    for d, b in ((forward.dq, inverse.dq), (forward.dqd, inverse.dqd)):
        assert_close(inverse.dqdd @ d, -b, ulps=500, condition=conditioning(model, q))


def test_pinocchio_agrees(rng):
    ours = samples.quadruped()
    theirs = P.to_model(ours)
    data = theirs.createData()
    q, qd, tau = random_state(ours, rng)
    x, A = P.to_q(ours, theirs, q), P.to_v(ours, theirs, q, np.eye(ours.nv)).T
    derivatives = pin.computeABADerivatives(theirs, data, x, A @ qd, P.to_tau(ours, theirs, q, tau))
    found = forward_dynamics_derivatives(ours, q, qd, tau)
    for d, b in zip(found, derivatives, strict=True):
        assert_close(d, np.linalg.solve(A, b) @ A, ulps=100, condition=conditioning(ours, q))


def test_a_joint_without_inertia_is_named():
    model = ModelBuilder("empty").body("link", joint=Revolute("z"), joint_name="idle").build()
    with pytest.raises(SingularError, match="joint 'idle' moves no inertia"):
        forward_dynamics_derivatives(model, np.zeros(1), np.zeros(1), np.zeros(1))
