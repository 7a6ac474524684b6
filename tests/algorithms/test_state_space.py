import mpmath as mp
import numpy as np
import pytest
from support import linkages
from support.closeness import assert_close
from support.special_joints import Slot

from kinetree.algorithms import aba
from kinetree.algorithms.closed import maximal
from kinetree.algorithms.energy import total_energy
from kinetree.algorithms.kinematics import (
    base_transforms,
    base_velocities,
    body_velocities,
    joint_transforms,
)
from kinetree.joints import REPRESENTATIVES, Free, Prismatic, Revolute, Spherical
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement, random_tree
from kinetree.spatial import dense
from kinetree.textbook.state_space import (
    configuration_rate,
    configuration_rate_matrix,
    join_state,
    split_state,
    state_derivative,
)

KINDS = (*REPRESENTATIVES, Slot())


def rk4(derivative, x, h, steps):
    """Classical Runge–Kutta method of order 4."""
    for _ in range(steps):
        k1 = derivative(x)
        k2 = derivative(x + h / 2 * k1)
        k3 = derivative(x + h / 2 * k2)
        k4 = derivative(x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x


def integrate(model, x, duration, steps, **options):
    tau = np.zeros(model.nv)
    return rk4(lambda x: state_derivative(model, x, tau, **options), x, duration / steps, steps)


@pytest.mark.covers("RBDA 3.1", by=(configuration_rate, configuration_rate_matrix))
def test_rate_matrix_times_velocity_is_the_configuration_rate(rng):
    model = random_tree(10, rng, joints=KINDS)
    q, alpha = model.random_configuration(rng), rng.standard_normal(model.nv)
    Q = configuration_rate_matrix(model, q)
    assert Q.shape == (model.nq, model.nv)
    assert_close(Q @ alpha, configuration_rate(model, q, alpha))
    assert_close(configuration_rate(model, q, alpha), model.configuration_rate(q, alpha))


@pytest.mark.covers("RBDA 3.1", by=configuration_rate)
@pytest.mark.parametrize("trial", range(3))
def test_moving_along_the_configuration_rate_gives_the_bodies_their_velocities(rng, trial):
    """dX/dt = -v× X for the transforms from base to body, by complex step — RBDA (2.45)."""
    model = random_tree(8, rng, joints=KINDS, branching=0.3)
    q, alpha, h = model.random_configuration(rng), rng.standard_normal(model.nv), 1e-30
    q_step = q + 1j * h * configuration_rate(model, q, alpha)
    X, v = body_velocities(model, q, alpha)
    X_0 = base_transforms(model, X)
    moved = base_transforms(model, joint_transforms(model, q_step)[0])
    for i in range(1, 9):
        rate = np.imag(moved[i].to_matrix()) / h
        expected = -dense.crm(v[i].to_array()) @ X_0[i].to_matrix()
        assert_close(rate, expected, ulps=1000)


@pytest.mark.covers("RBDA 3.1", by=state_derivative)
def test_state_derivative_is_rate_and_forward_dynamics(rng):
    model = random_tree(6, rng, floating_base=True)
    assert model.nq != model.nv
    q, alpha = model.random_configuration(rng), rng.standard_normal(model.nv)
    tau = rng.standard_normal(model.nv)
    x = join_state(q, alpha)
    assert_close(split_state(model, x)[0], q)
    assert_close(split_state(model, x)[1], alpha)
    expected = [configuration_rate(model, q, alpha), aba.forward_dynamics(model, q, alpha, tau)]
    assert_close(state_derivative(model, x, tau), np.concatenate(expected))


def test_state_derivative_honours_loops():
    model = linkages.four_bar()
    q, G, _ = linkages.explicit(linkages.four_bar_positions, 0.3, 1.5)
    tau = np.array([0.2, 0.0, 0.0])
    expected = maximal.forward_dynamics(model, q, 1.5 * G, tau)
    xd = state_derivative(model, join_state(q, 1.5 * G), tau)
    assert_close(xd, np.concatenate([1.5 * G, expected]))


@pytest.mark.covers("RBDA 3.1", by=state_derivative)
def test_state_derivative_takes_any_numbers(rng):
    model = random_tree(3, rng, joints=[Revolute("y"), Spherical(), Prismatic("x")], branching=0)
    x = join_state(model.random_configuration(rng), rng.standard_normal(model.nv))
    tau = rng.standard_normal(model.nv)
    exact = state_derivative(model, np.array([mp.mpf(n) for n in x]), tau)
    assert_close(state_derivative(model, x, tau), exact.astype(float), ulps=1000, condition=100)


def conservative_tree(rng):
    joints = [Revolute("y"), Spherical(), Revolute("x"), Slot()]
    builder, parent = ModelBuilder("tree"), None
    for n, joint in enumerate(joints):
        at, inertia = random_placement(rng), random_inertia(rng)
        builder.body(f"b{n}", on=parent, joint=joint, at=at, inertia=inertia)
        parent = f"b{n}" if n != 1 else "b0"
    return builder.build()


@pytest.mark.covers("RBDA 3.1", by=state_derivative)
def test_energy_of_a_conservative_tree_is_constant_to_the_order_of_the_integrator(rng):
    model = conservative_tree(rng)
    x = join_state(model.neutral(), 0.5 * rng.standard_normal(model.nv))
    E0 = total_energy(model, *split_state(model, x))
    errors = []
    for steps in (20, 40, 80):
        q, alpha = split_state(model, integrate(model, x, 0.2, steps))
        errors.append(abs(total_energy(model, q, alpha) - E0))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders > 3.7), f"measured orders {orders}"
    assert errors[-1] < 1e-6 * abs(E0)


@pytest.mark.covers("RBDA 3.1", by=state_derivative)
def test_momentum_of_a_free_body_is_constant_to_the_order_of_the_integrator(rng):
    model = ModelBuilder("free", gravity=(0, 0, 0))
    model = model.body("b", joint=Free(), inertia=random_inertia(rng)).build()
    x = join_state(model.random_configuration(rng), rng.standard_normal(6))

    def momentum(x):
        q, alpha = split_state(model, x)
        X_0, v = base_velocities(model, model.normalize(q), alpha)
        return (X_0[1].inv_apply(model.inertia[1]) @ v[1]).to_array()

    errors = [
        np.max(np.abs(momentum(integrate(model, x, 1.0, steps)) - momentum(x)))
        for steps in (20, 40, 80)
    ]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders > 3.7), f"measured orders {orders}"
    assert errors[-1] < 1e-5 * np.linalg.norm(momentum(x))


LINKAGES = {
    "four-bar": (linkages.four_bar, linkages.four_bar_positions),
    "crank-slider": (linkages.crank_slider, linkages.crank_slider_positions),
}


@pytest.mark.covers("RBDA 3.1", "RBDA 3.7", by=state_derivative)
@pytest.mark.parametrize("name", LINKAGES)
def test_a_linkage_conserves_energy_and_stays_closed_to_the_order_of_the_integrator(rng, name):
    build, positions = LINKAGES[name]
    model, y, yd = build(rng), 0.3, 6.0
    q, G, _ = linkages.explicit(positions, y, yd)
    x = join_state(q, G * yd)
    E0 = total_energy(model, q, G * yd)
    energy, gap = [], []
    for steps in (40, 80):
        q, alpha = split_state(model, integrate(model, x, 0.2, steps))
        energy.append(abs(total_energy(model, q, alpha) - E0))
        s = maximal.solution(model, q, alpha, np.zeros(3))
        gap.append(np.max(np.abs(s.loop_error)))
    assert np.log2(energy[0] / energy[1]) > 3.7
    assert np.log2(gap[0] / gap[1]) > 3.7
    assert energy[-1] < 1e-6 * abs(E0)


@pytest.mark.covers("6-D Guide 2: Acceleration", by=state_derivative)
def test_stabilisation_holds_a_loop_together_that_otherwise_drifts():
    model = linkages.four_bar()
    q, G, _ = linkages.explicit(linkages.four_bar_positions, 0.3, 5.0)
    x = join_state(q + np.array([0, 1e-4, 0]), 5.0 * G)

    def gap(**options):
        q, alpha = split_state(model, integrate(model, x, 0.5, 100, **options))
        return np.max(np.abs(maximal.solution(model, q, alpha, np.zeros(3)).loop_error))

    start = np.max(np.abs(maximal.solution(model, *split_state(model, x), np.zeros(3)).loop_error))
    assert gap() > 0.5 * start
    assert gap(stabilization=0.05) < 1e-2 * start
