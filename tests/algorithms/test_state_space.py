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
from kinetree.errors import ShapeError
from kinetree.joints import REPRESENTATIVES, Free, Prismatic, Revolute, Spherical
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement, random_tree
from kinetree.spatial import dense
from kinetree.textbook.state_space import (
    configuration_rate,
    configuration_rate_matrix,
    euler_motion,
    euler_step,
    join_state,
    split_state,
    state_derivative,
)

KINDS = (*REPRESENTATIVES, Slot())


@pytest.mark.covers("Lynch & Park 9.5", by=(euler_step, euler_motion))
def test_halving_the_step_of_euler_halves_the_error():
    """LP-58: dx/dt = f(x, t) of any kind, here x' = x cos t with the solution exp(sin t)."""
    errors = []
    for h in 0.1 / 2 ** np.arange(6):
        times, states = euler_motion(lambda x, t: x * np.cos(t), 1.0, 0.0, 2.0, h)
        assert len(times) == len(states) == round(2.0 / h) + 1
        assert times[-1] == 2.0
        errors.append(abs(states[-1] - np.exp(np.sin(2.0))))
    ratios = np.array(errors[:-1]) / errors[1:]
    np.testing.assert_allclose(ratios[-2:], 2.0, atol=0.05)
    assert abs(ratios[-1] - 2) < abs(ratios[0] - 2)
    # one step, by hand, and a last one that is shorter
    step = euler_step(lambda x, t: np.array([x[1], -t]), np.array([1.0, 2.0]), 3.0, 0.5)
    assert step.tolist() == [2.0, 0.5]
    times, _ = euler_motion(lambda x, t: 0 * x, np.zeros(2), 1.0, 2.0, 0.3)
    assert_close(np.diff(times), [0.3, 0.3, 0.3, 0.1], ulps=50)
    with pytest.raises(ShapeError, match="must be positive"):
        euler_step(lambda x, t: x, 1.0, 0.0, -0.1)


@pytest.mark.covers("Lynch & Park 9.5", by=euler_step)
def test_a_step_of_euler_on_the_manifold_keeps_quaternions_and_halves_its_error_too(rng):
    model = random_tree(2, rng, joints=[Spherical(), Free()])
    q0, a, b = model.random_configuration(rng), *rng.standard_normal((2, model.nv))

    def f(q, t):
        return a + b * np.sin(3 * t)

    def end(h):
        return euler_motion(f, q0, 0.0, 1.0, h, move=model.integrate)[1][-1]

    exact = end(1 / 4096)
    errors = [np.linalg.norm(model.difference(end(1 / n), exact)) for n in (16, 32, 64)]
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 2.0, atol=0.1)
    assert_close(model.normalize(exact), exact, ulps=20 * 4096)


@pytest.mark.covers("Lynch & Park 9.5", by=euler_step)
def test_free_fall_is_exact_in_the_velocity_which_positions_follow_with_the_old_one(rng):
    """(q, qd) of a mechanism as one state: q is updated with the old velocity."""
    drop = ModelBuilder("drop").body("b", joint=Prismatic("z"), inertia=random_inertia(rng)).build()

    def f(x, t):
        return state_derivative(drop, x, np.zeros(1))

    _, x = euler_motion(f, np.array([0.0, 1.0]), 0.0, 1.0, 0.25)
    assert_close(x[:, 1], 1.0 - 9.81 * np.arange(5) / 4, ulps=50)
    assert_close(np.diff(x[:, 0]), x[:-1, 1] / 4, ulps=50)


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
    for steps in (10, 20, 40):
        q, alpha = split_state(model, integrate(model, x, 0.1, steps))
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
    for steps in (20, 40):
        q, alpha = split_state(model, integrate(model, x, 0.1, steps))
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
        q, alpha = split_state(model, integrate(model, x, 0.25, 50, **options))
        return np.max(np.abs(maximal.solution(model, q, alpha, np.zeros(3)).loop_error))

    start = np.max(np.abs(maximal.solution(model, *split_state(model, x), np.zeros(3)).loop_error))
    assert gap() > 0.5 * start
    assert gap(stabilization=0.025) < 1e-2 * start
