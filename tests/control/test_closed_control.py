"""Rest, and regulators, of mechanisms with loops."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.motions import simulate

import kinetree as kt
from kinetree.control import LQR, equilibrium
from kinetree.loops.kinematics.constraint import closure_error
from kinetree.loops.kinematics.projection import project_configuration, project_velocity
from kinetree.samples.earthmovers import loader

FIVE_BAR = kt.samples.five_bar()
LOADER = loader()
HOME = np.array([2 * np.pi / 3, np.arccos(2 / 3), -np.arccos(2 / 3), -2 * np.pi / 3])
UNSTABLE = np.diff(np.radians([275.3, 98.3, -65.0, -299.4]) - HOME, prepend=0.0)
"""Joint angles near a rest in which the linkage cannot stay by itself."""


def test_motors_carry_what_loops_do_not():
    q, tau = equilibrium(LOADER, np.zeros(8), actuated=["lift_piston_joint", "tilt_piston_joint"])
    assert_close(q, np.zeros(8), scale=1)
    assert np.all(tau[[0, 1, 3, 4, 5, 6]] == 0)
    assert np.abs(kt.forward_dynamics(LOADER, q, np.zeros(8), tau)).max() < 1e-10


def test_of_too_many_motors_the_forces_are_the_smallest():
    q, tau = equilibrium(LOADER, np.zeros(8))
    _, two = equilibrium(LOADER, np.zeros(8), actuated=["lift_piston_joint", "tilt_piston_joint"])
    assert np.linalg.norm(tau) < np.linalg.norm(two)
    assert np.abs(kt.forward_dynamics(LOADER, q, np.zeros(8), tau)).max() < 1e-10


def test_an_idle_freedom_finds_its_rest_and_held_joints_stay():
    q, tau = equilibrium(LOADER, np.zeros(8), actuated=["tilt_piston_joint"], hold=["bucket_joint"])
    assert abs(q[5]) < 1e-14
    assert abs(q[0]) > 0.1
    assert np.abs(closure_error(LOADER, q)).max() < 1e-12
    assert np.abs(kt.forward_dynamics(LOADER, q, np.zeros(8), tau)).max() < 1e-9


def test_coupled_joints_share_their_load():
    """Two pendulums that turn against each other, at rest by a motor or by their weights."""
    m = kt.ModelBuilder("scales")
    for name, mass in (("left", 2.0), ("right", 1.0)):
        inertia = kt.Inertia.from_mass_center(mass, np.array([0, 0, -1.0]), 0.1 * np.eye(3))
        m.body(name, joint=kt.Revolute("y"), inertia=inertia)
    m.coupling("gear", joint="right_joint", source="left_joint", coefficients=(0.5, -1.0))
    m = m.build()
    q, tau = equilibrium(m, [0.2], actuated=["left_joint"])
    assert_close(q, [0.2])
    weight = 9.81 * np.array([2 * np.sin(0.2), np.sin(0.3)])
    assert_close(tau, [weight[0] - weight[1]], ulps=1e4)
    q, tau = equilibrium(m, [0.2], actuated=[])
    assert_close(2 * np.sin(q[0]), np.sin(0.5 - q[0]), ulps=1e4)
    assert not np.any(tau)


def test_many_starts_at_once():
    starts = np.stack([UNSTABLE, UNSTABLE])
    q, tau = equilibrium(FIVE_BAR, starts, actuated=[])
    assert_close(q[0], q[1])
    assert not np.any(tau)


@pytest.mark.parametrize("independent", [None, ["link1_joint", "link2_joint"]])
def test_a_regulator_keeps_a_five_bar_where_it_would_fall(independent):
    m = FIVE_BAR
    q0, _ = equilibrium(m, UNSTABLE, actuated=[])
    motors = ["link1_joint", "link4_joint"]
    balance = LQR(m, q0, Q=1.0, R=1e-4, actuated=motors, independent=independent)
    assert balance.K.shape == (2, 4)
    assert len(balance.coordinates) == 2
    assert balance.poles.real.max() < -0.9

    start = project_configuration(m, q0 + np.array([0.02, -0.01, 0.0, 0.0]))
    q, qd = start, np.zeros(4)
    for _ in range(30):  # a few steps at a time, put back onto the loop
        qs, qds = simulate(m, balance, q, qd, 0.1, 0.01)
        q = project_configuration(m, qs[-1])
        qd = project_velocity(m, q, qds[-1])
    assert np.abs(q - q0).max() < 0.1 * np.abs(start - q0).max()
    free, _ = simulate(m, lambda t, q, qd: np.zeros(4), start, np.zeros(4), 2.5, 0.01)
    assert np.abs(free - q0).max() > 0.2  # it falls by itself


def test_a_sampled_regulator_and_batches(rng):
    q0, _ = equilibrium(FIVE_BAR, UNSTABLE, actuated=[])
    sampled = LQR(FIVE_BAR, q0, Q=1.0, R=0.1, actuated=["link1_joint"], dt=0.02)
    assert np.abs(sampled.poles).max() < 1
    states = rng.standard_normal((2, 5, 4))
    many = sampled(0.0, *states)
    assert many.shape == (5, 4)
    for k in range(5):
        assert_close(many[k], sampled(0.0, states[0, k], states[1, k]), ulps=1000)
    assert not np.any(many[:, 1:])


def test_discrete_models_hold_the_rate_of_the_reference():
    m, rest = FIVE_BAR, np.zeros(4)
    linear = kt.linearize(m, rest, rest, rest)
    sampled = kt.linearize(m, rest, rest, rest, dt=1e-3)
    assert np.abs(sampled.rate - 1e-3 * linear.rate).max() < 1e-5
    assert np.abs(sampled.A - np.eye(4) - 1e-3 * linear.A).max() < 1e-4
    assert sampled.coordinates == linear.coordinates


def test_errors_name_what_is_wrong():
    rest = np.zeros(8)
    with pytest.raises(
        kt.errors.EquilibriumError, match="does not stay at rest at q with the driven"
    ):
        LQR(LOADER, rest, Q=1.0, R=1.0, actuated=["lift_piston_joint"])
    with pytest.raises(
        kt.errors.EquilibriumError, match="carried neither by its loops nor by the driven"
    ):
        equilibrium(LOADER, rest, actuated=[], hold=["boom_joint", "bucket_joint"])
    with pytest.raises(
        kt.LoopError, match="Euler does not keep the loops of model 'loader' closed"
    ):
        kt.linearize(LOADER, rest, rest, rest, dt=0.01, method="euler")
    with pytest.raises(kt.LoopError, match="has no loops or constraints: all its joint"):
        kt.linearize(kt.samples.pendulum(), [0.0], [0.0], [0.0], independent=["pivot"])
