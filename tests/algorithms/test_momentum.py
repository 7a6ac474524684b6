"""Momentum and mass centre of whole mechanisms."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import STEP, random_state, rate

from kinetree.algorithms import aba, centroidal, kinematics, rnea
from kinetree.errors import SingularError
from kinetree.joints import Revolute
from kinetree.model import Model, ModelBuilder
from kinetree.spatial import Force


@pytest.mark.covers("RBDA 2.12", by=centroidal.momentum)
def test_momentum_sums_over_bodies(rng):
    m, q, qd, *_ = random_state(rng)
    X_0, v = kinematics.base_velocities(m, q, qd)
    bodies = range(1, m.body_count + 1)
    expected = sum((X_0[i].inv_apply(m.inertia[i]) @ v[i]).to_array() for i in bodies)
    h = centroidal.momentum(m, q, qd)
    assert isinstance(h, Force)
    assert_close(h.to_array(), expected)
    assert np.array_equal(centroidal.total_momentum(m, q, qd), h.to_array())


@pytest.mark.covers("RBDA 2.12", by=(centroidal.momentum, centroidal.center_of_mass))
def test_linear_momentum_is_mass_times_velocity_of_the_mass_center(rng):
    m, q, qd, *_ = random_state(rng)
    velocity = rate(lambda q: centroidal.center_of_mass(m, q), m, q, qd)
    h = centroidal.momentum(m, q, qd)
    assert_close(h.linear, centroidal.total_mass(m) * velocity, scale=np.max(np.abs(h.to_array())))


@pytest.mark.covers("RBDA 2.14", "RBDA 5.3", by=centroidal.momentum)
def test_rate_of_momentum_is_weight_plus_external_forces_plus_reaction_of_the_base(rng):
    m, q, qd, qdd, f_ext = random_state(rng)
    qdot = m.configuration_rate(q, qd)
    moved = q + 1j * STEP * qdot, qd + 1j * STEP * qdd
    rate_of_h = centroidal.total_momentum(m, *moved).imag / STEP
    result = rnea.newton_euler(m, q, qd, qdd, f_ext)
    roots = [i for i in range(1, m.body_count + 1) if m.parent[i] == 0]
    reaction = sum((result.X[i].T @ result.f[i]).to_array() for i in roots)
    c, mass = centroidal.center_of_mass(m, q), centroidal.total_mass(m)
    weight = np.concatenate([np.cross(c, mass * m.gravity), mass * m.gravity])
    outside = sum(f.to_array() for f in f_ext[1:])
    assert_close(rate_of_h, weight + outside + reaction, scale=np.max(np.abs(reaction)) + 100)


@pytest.mark.covers("RBDA 2.12", by=centroidal.momentum)
def test_a_floating_tree_without_gravity_conserves_momentum(rng):
    m, q, qd, *_ = random_state(rng, floating_base=True, branching=0.0)
    m = m.replace(gravity=(0.0, 0.0, 0.0))
    tau = np.concatenate([np.zeros(6), rng.standard_normal(m.nv - 6)])  # internal forces only
    qdd = aba.forward_dynamics(m, q, qd, tau)
    moved = q + 1j * STEP * m.configuration_rate(q, qd), qd + 1j * STEP * qdd
    rate_of_h = centroidal.total_momentum(m, *moved).imag / STEP
    scale = np.max(np.abs(centroidal.total_momentum(m, q, np.abs(qdd)))) + 1000
    assert_close(rate_of_h, np.zeros(6), scale=scale)


def test_mass_center_needs_mass():
    m = ModelBuilder("ghost").body("b", joint=Revolute("z")).build()
    with pytest.raises(SingularError, match="model 'ghost' has no mass, hence no mass centre"):
        centroidal.center_of_mass(m, np.zeros(1))
    assert centroidal.total_mass(Model()) == 0
    assert np.all(centroidal.total_momentum(Model(), np.zeros(0), np.zeros(0)) == 0)
