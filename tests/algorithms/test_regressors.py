"""Dynamics as linear functions of the inertial parameters."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close
from support.states import inertial_parameters
from support.textbook import random_state

from kinetree.algorithms import centroidal, energy, regressors, rnea
from kinetree.errors import UnknownNameError
from kinetree.joints import Prismatic
from kinetree.model import ModelBuilder
from kinetree.model.views import axial_view
from kinetree.samples import random_inertia
from kinetree.spatial import Inertia, Motion
from kinetree.textbook.constrained_body import force_on_body


@pytest.mark.covers("RBDA 2.14", by=(regressors.force_columns, regressors.momentum_columns))
def test_columns_of_one_body(rng):
    I, v, a = random_inertia(rng), *(Motion.from_array(x) for x in rng.standard_normal((2, 6)))
    p = I.parameters()
    assert_close((regressors.force_columns(v, a) @ p).to_array(), force_on_body(I, v, a).to_array())
    assert_close((regressors.momentum_columns(v) @ p).to_array(), (I @ v).to_array())


@pytest.mark.covers("RBDA 9.7", "Lynch & Park 9.3", by=regressors.regressor)
@pytest.mark.parametrize("n", range(4))
def test_regressor_times_parameters_is_inverse_dynamics(n, rng):
    m, q, qd, qdd, _ = random_state(rng, floating_base=n % 2 == 1)
    tau = rnea.inverse_dynamics(m, q, qd, qdd)
    Y = regressors.regressor(m, q, qd, qdd)
    p = inertial_parameters(m)
    scale = np.max(np.abs(Y)) * np.max(np.abs(p))
    assert_close(Y @ p, tau, scale=scale)
    assert_close(regressors.regressor_by_axial_turns(m, q, qd, qdd), Y)
    assert_close(regressors.regressor(axial_view(m), q, qd, qdd), Y)


def test_columns_are_the_forces_of_single_parameters(rng):
    """One parameter at a time, the others zero: no inertia, but Newton and Euler do not mind."""
    m, q, qd, qdd, _ = random_state(rng, bodies=4)
    Y = regressors.regressor(m, q, qd, qdd)
    for j in rng.permutation(10 * m.body_count)[:12]:
        unit = np.eye(10 * m.body_count)[j].reshape(-1, 10)
        single = m.map_numbers(complex)  # complex numbers are taken on trust
        single = _WithInertias(single, [Inertia.from_parameters(row) for row in unit])
        assert_close(rnea.inverse_dynamics(single, q, qd, qdd).real, Y[:, j], scale=np.max(abs(Y)))


class _WithInertias:
    def __init__(self, model, inertias):
        self.model, self.inertia = model, (None, *inertias)

    def __getattr__(self, name):
        return getattr(self.model, name)


@pytest.mark.covers("RBDA 6.4", by=regressors.regressor)
def test_a_body_acts_only_on_the_joints_that_support_it(rng):
    m, q, qd, qdd, _ = random_state(rng, bodies=9, branching=0.8)
    Y = regressors.regressor(m, q, qd, qdd)
    for i in range(1, m.body_count + 1):
        rows = [k for j in m.support[i] for k in range(m.v_slice[j].start, m.v_slice[j].stop)]
        others = np.setdiff1d(np.arange(m.nv), rows)
        assert not np.any(Y[others, 10 * (i - 1) : 10 * i])


@pytest.mark.covers("RBDA 2.12", "RBDA 2.13", by=regressors.momentum_regressor)
@pytest.mark.parametrize("n", range(3))
def test_energy_and_momentum(n, rng):
    m, q, qd, *_ = random_state(rng)
    p = inertial_parameters(m)
    y, z = (
        regressors.kinetic_energy_regressor(m, q, qd),
        regressors.potential_energy_regressor(m, q),
    )
    size = np.max(np.abs(p))
    assert_close(y @ p, energy.kinetic_energy(m, q, qd), scale=np.max(np.abs(y)) * size)
    assert_close(z @ p, energy.potential_energy(m, q), scale=np.max(np.abs(z)) * size)
    assert_close(regressors.energy_regressor(m, q, qd), y + z)
    Y = regressors.momentum_regressor(m, q, qd)
    h = centroidal.momentum(m, q, qd).to_array()
    assert_close(Y @ p, h, scale=np.max(np.abs(Y)) * size)


def test_friction_and_rotors_act_at_their_own_joints(rng):
    m, q, qd, qdd, _ = random_state(rng, bodies=3)
    n = m.nv
    Y = regressors.regressor(m, q, qd, qdd, friction=True, rotors=True)
    inertial, viscous, coulomb, rotor = np.split(Y, 10 * m.body_count + n * np.arange(3), axis=1)
    assert_close(inertial, regressors.regressor(m, q, qd, qdd))
    assert_close(viscous, np.diag(qd))
    assert_close(coulomb, np.diag(np.sign(qd)))
    assert_close(rotor, np.diag(qdd))
    assert regressors.joint_columns(np.zeros(n), qdd) == []
    still = regressors.joint_columns(np.zeros(n), qdd, "coulomb")
    assert len(still) == 1
    assert not np.any(still[0])
    assert regressors.joint_effects("viscous", rotors=True) == ("viscous", "rotor")


def test_unknown_friction_is_named():
    with pytest.raises(UnknownNameError, match="friction must be True, False, 'viscous' or"):
        regressors.joint_effects("stiction")


def test_fractions_stay_exact():
    half = Fraction(1, 2)
    I = Inertia.from_mass_center(Fraction(3), np.array([half, 0, 1]), np.diag([half, half, half]))
    m = (
        ModelBuilder("slides", gravity=(0, 0, Fraction(-10)))
        .body("a", joint=Prismatic("x"), inertia=I)
        .body("b", on="a", joint=Prismatic("z"), at=(1, 0, 0), inertia=I)
        .build()
    )
    q, qd, qdd = (np.array([Fraction(k), Fraction(1, k)]) for k in (2, 3, 4))
    Y = regressors.regressor(m, q, qd, qdd)
    assert (
        list(Y @ inertial_parameters(m))
        == list(rnea.inverse_dynamics(m, q, qd, qdd))
        == [24, 33 - Fraction(9, 4)]
    )


def test_fifty_digits_survive(rng):
    m, q, qd, qdd, _ = random_state(rng, bodies=4)
    with mpmath.workdps(50):
        precise = m.map_numbers(mpmath.mpf)
        q, qd, qdd = (np.array([mpmath.mpf(x) for x in v]) for v in (m.normalize(q), qd, qdd))
        tau = rnea.inverse_dynamics(precise, q, qd, qdd)
        error = regressors.regressor(precise, q, qd, qdd) @ inertial_parameters(precise) - tau
        assert max(abs(x) for x in error) < 1e-44


def test_models_without_bodies():
    m, none = ModelBuilder("nothing").build(), np.zeros(0)
    assert regressors.regressor(m, none, none, none).shape == (0, 0)
    assert regressors.momentum_regressor(m, none, none).shape == (6, 0)
    assert regressors.energy_regressor(m, none, none).shape == (0,)
