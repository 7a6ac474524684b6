"""Compiled regressors: batches, precision, derivatives, kernels."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms import regressors as text
from kinetree.identification import inertial_parameters


@pytest.fixture(scope="module")
def tree():
    joints = (kt.Revolute("z"), kt.Prismatic((1, 2, 2)), kt.Spherical(), kt.Universal("xz"))
    return kt.samples.random_tree(4, 5, joints=joints, floating_base=True)


@pytest.fixture
def state(tree, rng):
    q = np.array([tree.random_configuration(rng) for _ in range(5)])
    return (q, *rng.standard_normal((2, 5, tree.nv)))


@pytest.mark.covers("RBDA 9.7", by=(kt.regressor, kt.momentum_regressor, kt.energy_regressor))
def test_compiled_batches_equal_the_source(tree, state):
    q, qd, qdd = state
    cases = [
        (kt.regressor, text.regressor, (q, qd, qdd)),
        (kt.momentum_regressor, text.momentum_regressor, (q, qd)),
        (kt.kinetic_energy_regressor, text.kinetic_energy_regressor, (q, qd)),
        (kt.potential_energy_regressor, text.potential_energy_regressor, (q,)),
        (kt.energy_regressor, text.energy_regressor, (q, qd)),
    ]
    for public, reference, arrays in cases:
        expected = np.array([reference(tree, *one) for one in zip(*arrays, strict=True)])
        assert_close(public(tree, *arrays), expected)
        assert_close(public(tree, *(a[2] for a in arrays)), expected[2])


def test_parameters_give_the_quantities(tree, state):
    q, qd, qdd = state
    p = inertial_parameters(tree)
    tau = kt.inverse_dynamics(tree, q, qd, qdd)
    np.testing.assert_allclose(kt.regressor(tree, q, qd, qdd) @ p, tau, rtol=1e-12, atol=1e-11)
    E = kt.kinetic_energy(tree, q, qd) + kt.potential_energy(tree, q)
    np.testing.assert_allclose(kt.energy_regressor(tree, q, qd) @ p, E, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(
        kt.momentum_regressor(tree, q, qd) @ p, kt.momentum(tree, q, qd), rtol=1e-12, atol=1e-11
    )


def test_regressor_is_the_derivative_by_the_parameters(tree, state):
    q, qd, qdd = (a[0] for a in state)
    Y = kt.differentiate(kt.inverse_dynamics, wrt="parameters")(tree, q, qd, qdd)
    assert_close(kt.regressor(tree, q, qd, qdd), Y)


def test_single_precision(tree, state):
    small = [a.astype(np.float32) for a in state]
    Y = kt.regressor(tree, *small)
    assert Y.dtype == np.float32
    np.testing.assert_allclose(Y, kt.regressor(tree, *state), rtol=0, atol=2e-5 * np.max(np.abs(Y)))


def test_derivatives_and_kernels(rng):
    m = kt.samples.double_pendulum()
    q, qd, qdd = rng.standard_normal((3, 2))
    p = inertial_parameters(m)
    for name in ("q", "qd", "qdd"):
        dY = kt.differentiate(kt.regressor, wrt=name)(m, q, qd, qdd)
        dtau = kt.differentiate(kt.inverse_dynamics, wrt=name)(m, q, qd, qdd)
        assert_close(np.einsum("ijk,j->ik", dY, p), dtau)

    @kt.kernel
    def misfit(m, q, qd, qdd, tau):
        e = kt.regressor(m, q, qd, qdd) @ p - tau
        return e @ e

    assert abs(misfit(m, q, qd, qdd, kt.inverse_dynamics(m, q, qd, qdd))) < 1e-25


@pytest.mark.parametrize("options", [{"friction": True}, {"friction": "coulomb", "rotors": True}])
def test_joint_columns(options, rng):
    m = kt.samples.double_pendulum()
    q, qd, qdd = rng.standard_normal((3, 7, 2))
    Y = kt.regressor(m, q, qd, qdd, **options)
    assert_close(Y[3], text.regressor(m, q[3], qd[3], qdd[3], **options))
    dY = kt.differentiate(kt.regressor, wrt="qd")(m, q, qd, qdd, **options)
    assert dY.shape == (*Y.shape, 2)


def test_errors(rng):
    m = kt.samples.pendulum()
    with pytest.raises(kt.LoopError, match="has no loops"):
        kt.regressor(m, *np.zeros((3, 1)), independent=["pin"])
    with pytest.raises(kt.UnknownNameError, match="friction must be"):
        kt.regressor(m, *np.zeros((3, 1)), friction="dry")
    with pytest.raises(kt.ShapeError, match="qdd must have shape"):
        kt.regressor(m, [0.0], [0.0], [0.0, 1.0])
