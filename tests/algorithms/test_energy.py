"""Energies, and that they account for the work of all forces."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import (
    STEP,
    Arm,
    Mixed,
    assert_printed,
    mixed_tree,
    random_state,
    two_link_arm,
)

from kinetree.algorithms import aba, crba, energy, jacobians, kinematics, rnea
from kinetree.model import Model


@pytest.mark.covers("RBDA 3.1", "RBDA 2.13", "Lynch & Park 9.1", by=energy.kinetic_energy)
@pytest.mark.parametrize("n", range(3))
def test_kinetic_energy_by_bodies_and_by_joints(n, rng):
    m, q, qd, *_ = random_state(rng)
    T = energy.kinetic_energy(m, q, qd)
    assert_close(T, qd @ crba.joint_space_inertia(m, q) @ qd / 2)
    by_centers = 0.0
    for i in range(1, m.body_count + 1):
        I, frame = m.inertia[i], m.frame(m.body_names[i])
        v = jacobians.frame_velocity(m, q, qd, frame, "body", I.center_of_mass)
        by_centers += v[:3] @ I.rotational_at_center @ v[:3] / 2 + I.mass * v[3:] @ v[3:] / 2
    assert_close(T, by_centers)


@pytest.mark.covers("Lynch & Park 9.1", by=(energy.kinetic_energy, energy.potential_energy))
def test_planar_arm_of_lynch_and_park():
    m = two_link_arm()
    assert_printed(energy.kinetic_energy(m, Arm.q, Arm.qd), 0.302402617225214, 15)
    assert_printed(energy.potential_energy(m, Arm.q), 6.787062713019292, 14)
    without_first = two_link_arm(m1=0.0)
    assert_printed(energy.kinetic_energy(without_first, Arm.q, Arm.qd), 0.0524026172252, 13)
    heavier = two_link_arm(m1=0.0, m2=3.0)
    assert_printed(energy.kinetic_energy(heavier, Arm.q, Arm.qd), 0.157207851676, 12)


@pytest.mark.covers("6-D Guide 2: Algorithm", by=energy.total_energy)
def test_branched_tree_with_mixed_joints():
    m = mixed_tree()
    assert_printed(energy.kinetic_energy(m, Mixed.q, Mixed.qd), Mixed.kinetic, 14)
    assert_printed(energy.potential_energy(m, Mixed.q), Mixed.potential, 12)
    total = energy.total_energy(m, Mixed.q, Mixed.qd)
    assert_printed(total, Mixed.kinetic + Mixed.potential, 12)


@pytest.mark.covers("Lynch & Park 9.1", by=energy.potential_energy)
def test_potential_energy_is_weight_times_height(rng):
    m, q, *_ = random_state(rng)
    X_0 = kinematics.base_transforms(m, kinematics.joint_transforms(m, q)[0])
    heights = [
        X_0[i].inverse().point(m.inertia[i].center_of_mass) for i in range(1, m.body_count + 1)
    ]
    masses = [I.mass for I in m.inertia[1:]]
    expected = -sum(mass * m.gravity @ c for mass, c in zip(masses, heights, strict=True))
    assert_close(energy.potential_energy(m, q), expected, scale=100)


@pytest.mark.covers("RBDA 2.12", "RBDA 5.3", by=(energy.total_energy, rnea.inverse_dynamics))
@pytest.mark.parametrize("n", range(3))
def test_power_of_all_forces_is_the_rate_of_energy(n, rng):
    m, q, qd, qdd, f_ext = random_state(rng)
    qdot = m.configuration_rate(q, qd)
    moved = q + 1j * STEP * qdot, qd + 1j * STEP * qdd
    rate = energy.total_energy(m, *moved).imag / STEP
    tau = rnea.inverse_dynamics(m, q, qd, qdd, f_ext)
    _, v = kinematics.base_velocities(m, q, qd)
    outside = sum(v[i].dot(f_ext[i]) for i in range(1, m.body_count + 1))
    assert_close(rate, tau @ qd + outside, scale=np.abs(tau) @ np.abs(qd) + 100)


@pytest.mark.covers("RBDA 3.1", by=energy.total_energy)
def test_a_tree_left_alone_conserves_energy(rng):
    m, q, qd, *_ = random_state(rng)
    qdd = aba.forward_dynamics(m, q, qd, np.zeros(m.nv))
    moved = q + 1j * STEP * m.configuration_rate(q, qd), qd + 1j * STEP * qdd
    rate = energy.total_energy(m, *moved).imag / STEP
    H = crba.joint_space_inertia(m, q)
    scale = np.abs(qdd) @ np.abs(H) @ np.abs(qd) + np.abs(rnea.bias_force(m, q, qd)) @ np.abs(qd)
    assert_close(rate, 0.0, scale=scale)


def test_nothing_has_no_energy():
    nothing = np.zeros(0)
    assert energy.total_energy(Model(), nothing, nothing) == 0
