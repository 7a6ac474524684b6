"""Trajectory optimization against Riccati equations, dense systems, gradients and simulations."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

import kinetree as kt
from kinetree.control import QuadraticCost, iterations, optimize, riccati, shooting
from kinetree.control.steps_on_arrays import JointForceSteps, _of_samples
from kinetree.control.tiles import pad_to_eight
from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.integration import on_arrays

UP = np.array([0.0, np.pi])
SWING = {
    "steps": 60, "dt": 0.03, "goal": UP, "actuated": ["rail"],
    "running": QuadraticCost(effort=0.01, velocity=0.01),
}  # fmt: skip


@pytest.fixture(scope="module")
def cart():
    return kt.samples.cart_pole()


@pytest.fixture(scope="module")
def swing(cart):
    return optimize(cart, [0.1, 0.2], **SWING)


@pytest.fixture(scope="module")
def sliders():
    """Two masses on one rail, the second on the first: a linear system."""
    b = kt.ModelBuilder("sliders").body(
        "a", joint=kt.Prismatic("x"), inertia=kt.shapes.sphere(0.1, mass=2.0)
    )
    b.body("b", on="a", joint=kt.Prismatic("x"), inertia=kt.shapes.sphere(0.1, mass=1.0))
    return b.build()


def solved(F, H, gap, solve=riccati.solve_horizon, h=0.0):
    """Solutions, gains and failures of linear-quadratic problems, one after the other."""
    T, n, size = F.shape[1:]
    m, wide = size - n, pad_to_eight(size + 1)
    H = np.concatenate([H, np.full((*H.shape[:-1], wide - size - 1), np.nan)], -1)
    z, K, failed = np.zeros(H.shape[:-1]), np.zeros((len(F), T, m, n)), []
    for s in range(len(F)):
        arrays = {"F": F, "H": H, "gap": gap, "K": K, "z": z}
        flat = {name: x[s].reshape(-1) for name, x in arrays.items()}
        sizes = {"n": n, "m": m, "steps": T, "wide": wide, "h": h}
        room, panel = np.empty(riccati.room_of(n, m, 0)), np.empty(riccati.panel_of(n, m, h))
        failed.append(solve(riccati.Horizon(room=room, panel=panel, **sizes, **flat)))
    return z, K, failed


@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 2), (7, 9)])
def test_sweeps_solve_the_dense_system(rng, n, m):
    S, T, N = 3, 4, n + m
    F, L = rng.normal(size=(S, T, n, N)), rng.normal(size=(S, T + 1, N, N))
    H, g = L @ np.swapaxes(L, -1, -2) + np.eye(N), rng.normal(size=(S, T + 1, N))
    H[:, -1, :m], H[:, -1, :, :m], g[:, -1, :m] = 0.0, 0.0, 0.0  # no controls after the last step
    H[:, -1, range(m), range(m)] = 1.0
    gap = rng.normal(size=(S, T, n))
    z, K, failed = solved(F, np.concatenate([H, g[..., None]], -1), gap)
    assert not any(failed)
    for s in range(S):
        rows, values = np.zeros(((T + 1) * n, (T + 1) * N)), np.zeros((T + 1, n))
        rows[:n, m:N] = np.eye(n)
        for k in range(T):
            at = slice((k + 1) * n, (k + 2) * n)
            rows[at, (k + 1) * N + m : (k + 2) * N] = np.eye(n)
            rows[at, k * N : (k + 1) * N] = -F[s, k]
            values[k + 1] = gap[s, k]
        block = np.zeros(((T + 1) * N, (T + 1) * N))
        for k in range(T + 1):
            block[k * N : (k + 1) * N, k * N : (k + 1) * N] = H[s, k]
        system = np.block([[block, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
        found = np.linalg.solve(system, np.concatenate([-g[s].ravel(), values.ravel()]))
        np.testing.assert_allclose(z[s].ravel(), found[: (T + 1) * N], rtol=1e-9, atol=1e-10)
        free = z[s, :-1, :m] - np.einsum("kmn,kn->km", K[s], z[s, :-1, m:])
        assert np.isfinite(free).all()


def test_sweeps_use_that_positions_follow_from_velocities(rng):
    S, T, nv, m, h = 2, 4, 5, 3, 0.1
    n, N = 2 * nv, 2 * nv + m
    F, L = rng.normal(size=(S, T, n, N)), rng.normal(size=(S, T + 1, N, N))
    F[:, :, :nv] = h * F[:, :, nv:]
    F[:, :, range(nv), range(m, m + nv)] += 1.0
    H = np.concatenate(
        [L @ np.swapaxes(L, -1, -2) + np.eye(N), rng.normal(size=(S, T + 1, N, 1))], -1
    )
    gap = rng.normal(size=(S, T, n))
    for known, found in zip(solved(F, H, gap), solved(F, H, gap, h=h), strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-10)


def test_sweeps_tell_which_matrices_are_not_positive(rng):
    F, H = rng.normal(size=(2, 3, 2, 3)), np.zeros((2, 4, 3, 4))
    H[:, :, range(3), range(3)] = 1.0
    H[1, 1, 0, 0] = -50.0
    _, _, failed = solved(F, H, np.zeros((2, 3, 2)))
    assert failed == [0, 1]


def test_procedures_mean_what_python_says(rng):
    n, m, T = 2, 2, 3
    F = rng.normal(size=(1, T, n, n + m))
    H = np.tile(np.eye(n + m, n + m + 1), (1, T + 1, 1, 1))
    H[..., -1] = rng.normal(size=(1, T + 1, n + m))
    H[:, -1, :m, -1] = 0.0
    gap = rng.normal(size=(1, T, n))
    z, K, _ = solved(F, H, gap)
    z_python, K_python, _ = solved(F, H, gap, riccati.solve_horizon.python)
    np.testing.assert_allclose(z_python, z, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(K_python, K, rtol=1e-13, atol=1e-14)


def test_linear_problem_gives_the_riccati_solution(sliders):
    dt, x0 = 0.1, np.array([1.0, -0.5, 0.2, 0.3])
    A, B = kt.linearize(sliders, np.zeros(2), np.zeros(2), dt=dt, method="euler")
    Q, R = np.diag([2.0, 1.0, 0.5, 0.3]), np.diag([0.1, 0.4])
    P = solve_discrete_are(A, B, Q, R)
    gain = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)

    @kt.kernel
    def rest(m, q, qd, P: (4, 4)):
        x = np.concatenate([q, qd])
        return 0.5 * (x @ P @ x)

    cost = QuadraticCost(q=np.zeros(2), position=[2.0, 1.0], velocity=[0.5, 0.3], effort=[0.1, 0.4])
    found = optimize(
        sliders, x0[:2], x0[2:], steps=30, dt=dt, running=cost, terminal=rest, arguments={"P": P}
    )
    assert found.converged
    assert found.iterations == 1
    np.testing.assert_allclose(found.gains, np.tile(-gain, (30, 1, 1)), rtol=1e-9, atol=1e-10)
    x, costs = x0, 0.5 * x0 @ P @ x0
    np.testing.assert_allclose(found.cost, costs, rtol=1e-10)
    for k in range(30):
        np.testing.assert_allclose(found.tau[k], -gain @ x, rtol=1e-8, atol=1e-10)
        x = A @ x - B @ gain @ x
    np.testing.assert_allclose(np.concatenate([found.q[-1], found.qd[-1]]), x, atol=1e-10)


def test_swing_up_ends_upright_within_limits(cart, swing):
    assert swing.converged
    assert swing.violation < 1e-6
    assert np.abs(swing.q[-1] - UP).max() < 1e-6
    assert np.abs(swing.qd[-1]).max() < 1e-6
    height = kt.pose(cart, swing.q[-1], "tip")[2, 3]
    assert abs(height - 0.6) < 1e-6
    assert np.abs(swing.q[:, 0]).max() <= 1.0 + 1e-6
    assert np.all(np.abs(swing.tau) <= 20.0)
    assert np.all(swing.tau[:, 1] == 0)
    assert swing.history.shape == (swing.iterations + 1,)
    assert "converged after" in repr(swing)
    assert "cart-pole" in repr(swing)


def test_motion_is_the_rollout_of_its_forces(cart, swing):
    again = kt.rollout(
        cart, swing.q[0], swing.qd[0], swing.tau, steps=60, dt=0.03, limits=None,
        integrator="semi_implicit_euler",
    )  # fmt: skip
    np.testing.assert_allclose(again.q, swing.q, atol=1e-10)
    np.testing.assert_allclose(again.qd, swing.qd, atol=1e-9)
    motion = swing.motion()
    assert isinstance(motion, kt.Trajectory)
    np.testing.assert_allclose(motion.q, swing.q, atol=1e-10)


@pytest.mark.parametrize("second_order", [True, False])
def test_gradients_vanish_at_the_optimum(cart, second_order):
    @kt.kernel
    def running(m, q, qd, tau):
        return 0.005 * (tau @ tau) + 0.01 * (qd @ qd) + 0.1 * (1 + np.cos(q[1]))

    @kt.kernel
    def terminal(m, q, qd):
        return 5 * (1 + np.cos(q[1])) + q[0] ** 2 + qd @ qd

    found = optimize(
        cart, [0.0, 2.6], steps=40, dt=0.03, running=running, terminal=terminal,
        actuated=["rail"], effort_limits=None, position_limits=None, velocity_limits=None,
        second_order=second_order, tolerance=1e-8,
    )  # fmt: skip
    assert found.converged
    g = kt.rollout_gradient(
        cart, found.q[0], found.qd[0], found.tau, steps=40, dt=0.03, running=running,
        terminal=terminal, integrator="semi_implicit_euler", limits=None,
    )  # fmt: skip
    np.testing.assert_allclose(g.value, found.cost, rtol=1e-10)
    assert np.abs(g.tau[:, 0]).max() < 1e-6
    assert np.abs(g.tau[:, 1]).max() > 1e-3  # of the joint that is not driven


def test_at_limits_gradients_point_outwards(cart):
    cost = QuadraticCost(q=UP, position=[1.0, 1.0], velocity=0.01, effort=1e-3)
    end = QuadraticCost(q=UP, position=[10.0, 10.0], velocity=1.0)
    found = optimize(
        cart, [0.0, 2.4], steps=40, dt=0.03, running=cost, terminal=end, actuated=["rail"],
        effort_limits=(-4.0, 6.0), position_limits=None, velocity_limits=None, tolerance=1e-8,
    )  # fmt: skip
    assert found.converged
    u = found.tau[:, 0]
    low, high = u < -4.0 + 1e-5, u > 6.0 - 1e-5
    assert low.any()
    assert high.any()
    assert u.min() >= -4.0
    assert u.max() <= 6.0

    @kt.kernel
    def running(m, q, qd, tau):
        e = q - UP
        return 0.5 * (e @ e + 0.01 * (qd @ qd) + 1e-3 * (tau @ tau))

    @kt.kernel
    def terminal(m, q, qd):
        e = q - UP
        return 0.5 * (10.0 * (e @ e) + qd @ qd)

    g = kt.rollout_gradient(
        cart, found.q[0], found.qd[0], found.tau, steps=40, dt=0.03, running=running,
        terminal=terminal, integrator="semi_implicit_euler", limits=None,
    )  # fmt: skip
    np.testing.assert_allclose(g.value, found.cost, rtol=1e-10)
    slope = g.tau[:, 0]
    assert np.abs(slope[~low & ~high]).max() < 1e-3
    assert slope[low].min() > -1e-6
    assert slope[high].max() < 1e-6


def test_a_regulator_at_the_end_does_not_ignore_parameters(swing):
    """The equilibrium of the model is not that of a heavier one: forces of the last step go on."""
    options = {**swing.options, "parameters": {"gravity": np.array([0.0, 0.0, -5.0])}}
    other = replace(swing, options=options)
    held = other.controller()(swing.t[-1] + 1, swing.q[-1], swing.qd[-1])
    np.testing.assert_allclose(held, swing.tau[-1], atol=1e-9)
    assert np.abs(swing.controller()(swing.t[-1] + 1, UP, [0, 0])).max() < 1e-6


def test_limits_of_positions_and_velocities_hold(cart):
    free = optimize(cart, [0.1, 0.2], **SWING, position_limits=None, velocity_limits=None)
    far, fast = np.abs(free.q[:, 0]).max(), np.abs(free.qd[:, 1]).max()
    wide, high = np.array([0.8 * far, np.inf]), np.array([np.inf, 0.9 * fast])
    found = optimize(
        cart, [0.1, 0.2], **SWING, position_limits=(-wide, wide), velocity_limits=(-high, high)
    )
    assert found.converged
    assert found.cost > free.cost
    assert np.abs(found.q[:, 0]).max() <= 0.8 * far + 1e-6
    assert np.abs(found.qd[:, 1]).max() <= 0.9 * fast + 1e-6


def test_soft_limits_that_can_hold_are_as_hard_ones(cart):
    wide = np.array([0.5, np.inf])
    hard = optimize(cart, [0.1, 0.2], **SWING, position_limits=(-wide, wide))
    soft = optimize(cart, [0.1, 0.2], **SWING, position_limits=(-wide, wide), limit_penalty=1e3)
    assert hard.converged
    assert soft.converged
    assert soft.violation < 1e-5
    np.testing.assert_allclose(soft.q, hard.q, atol=1e-4)


def test_soft_limits_that_cannot_hold_are_violated_at_least_cost(sliders, rng):
    penalty, limits = 5.0, (-np.array([0.5, np.inf]), np.array([0.5, np.inf]))
    problem = {
        "steps": 20, "dt": 0.1, "running": QuadraticCost(q=[0.0, 0.0], position=1.0, effort=0.1),
        "effort_limits": (-2.0, 2.0), "position_limits": limits, "limit_penalty": penalty,
    }  # fmt: skip
    start = [0.8, 0.0], [0.5, 0.0]
    found = optimize(sliders, *start, **problem)
    assert found.converged
    assert found.violation > 0.3
    tried = found.tau[:, None] + np.concatenate(
        [scale * rng.standard_normal((20, 100, 2)) for scale in (1e-3, 1e-1)], axis=1
    )
    tried = np.clip(tried, -2.0, 2.0)
    others = optimize(sliders, *start, **problem, guess={"tau": tried}, iterations=0)

    def total(motion):
        beyond = np.maximum(np.abs(motion.q[1:, ..., 0]) - 0.5, 0.0)
        return motion.cost + penalty * beyond.sum(axis=0)

    assert np.abs(others.tau - tried).max() < 0.03  # which is moved off its limits
    assert total(others).min() > total(found) - 1e-4  # that of the barrier
    assert np.median(total(others)) > total(found) + 1e-3


def test_a_batch_equals_its_parts(cart, rng):
    starts = np.array([0.1, 0.2]) + rng.uniform(-0.1, 0.1, (2, 3, 2))
    many = optimize(cart, starts, **SWING, tolerance=1e-9)
    assert many.converged.all()
    assert many.q.shape == (61, 2, 3, 2)
    for i in ((0, 0), (1, 2)):
        one = optimize(cart, starts[i], **SWING, tolerance=1e-9)
        at = (slice(None), *i)
        np.testing.assert_allclose(many.tau[at], one.tau, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(many.q[at], one.q, rtol=1e-9, atol=1e-10)
    assert many.cost[many.best] == many.cost.min()
    assert many.motion().q.shape == (61, 2)


def test_a_warm_start_takes_fewer_iterations(cart, swing):
    cold = optimize(cart, [0.12, 0.18], **SWING)
    warm = optimize(cart, [0.12, 0.18], **SWING, guess=swing)
    assert warm.converged
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.cost, cold.cost, rtol=1e-6)
    other = optimize(
        cart, [0.1, 0.2], **SWING, guess={"q": swing.q, "qd": swing.qd, "tau": swing.tau}
    )
    assert other.converged
    np.testing.assert_allclose(other.cost, swing.cost, rtol=1e-6)


def test_several_guesses_of_forces_from_one_start(cart, swing, rng):
    tau = swing.tau[:, None] + rng.normal(0, 0.01, (len(swing.tau), 3, 2))
    found = optimize(cart, [0.1, 0.2], **SWING, guess={"q": swing.q[:, None], "tau": tau})
    assert found.converged.all()
    np.testing.assert_allclose(found.cost, np.full(3, swing.cost), rtol=1e-6)


@pytest.mark.parametrize(
    "joint", [kt.Free(), kt.Free(translation="child"), kt.Spherical(), kt.Planar()], ids=repr
)
def test_bodies_that_turn_reach_far_poses_in_few_iterations(joint, rng):
    shape = kt.shapes.box(0.1, 0.2, 0.3, mass=1.0)
    m = kt.ModelBuilder("box").body("box", joint=joint, inertia=shape).build()
    start, cost = m.neutral(), QuadraticCost(effort=1.0, velocity=1.0)
    way = rng.uniform(-1.0, 1.0, (6, m.nv))
    goals = m.integrate(np.tile(start, (6, 1)), way)
    found = optimize(m, start, steps=20, dt=0.05, goal=goals, running=cost)
    assert found.converged.all()
    assert found.iterations.max() <= 30  # with a wrong second derivative it takes hundreds
    np.testing.assert_allclose(m.difference(goals, found.q[-1]), np.zeros((6, m.nv)), atol=1e-6)
    again = kt.rollout(
        m, start, None, found.tau, steps=20, dt=0.05, integrator="semi_implicit_euler"
    )
    np.testing.assert_allclose(again.q, found.q, atol=1e-10)


@pytest.mark.parametrize("joint", [kt.Free(), kt.Planar()], ids=repr)
def test_gradients_vanish_for_bodies_that_turn(joint):
    shape = kt.shapes.box(0.1, 0.2, 0.3, mass=1.0)
    m = kt.ModelBuilder("box").body("box", joint=joint, inertia=shape).build()
    goal = m.integrate(m.neutral(), np.linspace(1.0, -0.5, m.nv))

    @kt.kernel
    def running(m, q, qd, tau):
        return 0.5 * (tau @ tau + qd @ qd)

    @kt.kernel
    def terminal(m, q, qd, goal):
        e = m.difference(goal, q)
        return 50.0 * (e @ e + qd @ qd)

    given = {"steps": 15, "dt": 0.05, "running": running, "terminal": terminal,
             "arguments": {"goal": goal}}  # fmt: skip
    found = optimize(m, m.neutral(), **given)
    assert found.converged
    g = kt.rollout_gradient(
        m, m.neutral(), None, found.tau, integrator="semi_implicit_euler", limits=None, **given
    )
    np.testing.assert_allclose(g.value, found.cost, rtol=1e-10)
    assert np.abs(g.tau).max() < 1e-4 * np.abs(found.tau).max()


def test_many_double_pendulums_swing_up_from_rest(rng):
    m = kt.samples.double_pendulum()
    starts = rng.uniform(-0.3, 0.3, (40, 2))
    starts[0] = 0.0
    found = optimize(
        m, starts, steps=60, dt=0.04, goal=[np.pi, 0.0], effort_limits=(-8.0, 8.0),
        running=QuadraticCost(effort=0.01, velocity=0.01),
    )  # fmt: skip
    assert found.converged[0]
    assert found.converged.sum() >= 39
    tips = kt.pose(m, found.q[-1, found.converged], m.body_names[-1])[:, :3, 3]
    np.testing.assert_allclose(tips, np.tile(tips[0], (len(tips), 1)), atol=1e-5)
    assert np.abs(found.tau).max() <= 8.0
    hold = kt.inverse_dynamics(m, np.array([np.pi / 2, 0.0]), np.zeros(2), np.zeros(2))
    assert np.abs(hold).max() > 8.0  # it has to swing


def test_constraints_of_ones_own(cart):
    @kt.kernel
    def fence(m, q, qd, highest: ()):
        return kt.pose(m, q, "tip")[0, 3] - highest

    @kt.kernel
    def upright(m, q, qd):
        return np.array([np.sin(q[1]), np.cos(q[1]) + 1, qd[0], qd[1]])

    given = {k: x for k, x in SWING.items() if k != "goal"}
    line = np.linspace([0.1, 0.2], UP, 61)
    free = optimize(cart, [0.1, 0.2], **given, final_constraint=upright, guess={"q": line})
    tip = kt.pose(cart, free.q, "tip")[:-1, 0, 3].max()
    found = optimize(
        cart, [0.1, 0.2], **given, final_constraint=upright, path_constraint=fence,
        arguments={"highest": tip - 0.1}, guess={"q": free.q, "qd": free.qd},
    )  # fmt: skip
    assert free.converged
    assert found.converged
    assert kt.pose(cart, found.q, "tip")[:-1, 0, 3].max() <= tip - 0.1 + 1e-5
    assert abs(np.cos(found.q[-1, 1]) + 1) < 1e-6


def test_an_arm_reaches_within_limits_of_torques_and_joints():
    m = kt.samples.panda()
    home, place = m.posture("home").q, np.array([0.3, 0.4, 0.5])
    most = 0.4 * m.effort_limits
    found = optimize(
        m, home, steps=25, dt=0.04, effort_limits=(-most, most),
        running=QuadraticCost(effort=1e-4, velocity=0.1, q=home, position=0.01),
        terminal=QuadraticCost(points={"tool": place}, point=1e4, velocity=10.0),
    )  # fmt: skip
    assert found.converged
    assert np.linalg.norm(kt.pose(m, found.q[-1], "tool")[:3, 3] - place) < 5e-3
    assert np.all(np.abs(found.tau) <= most)
    lower, upper = m.position_limits
    assert np.all(found.q[1:] >= lower - 1e-6)
    assert np.all(found.q[1:] <= upper + 1e-6)
    assert np.all(np.abs(found.qd) <= m.velocity_limits + 1e-6)


def test_loops_are_closed_along_the_way():
    m = kt.samples.four_bar()
    goal = kt.loops.assemble(m, [0.6, 0.0, 0.0], hold=["crank_joint"])

    @kt.kernel
    def near(m, q, qd, goal: (3,)):
        return np.concatenate([10.0 * (q - goal), qd])

    found = optimize(
        m, m.neutral(), steps=20, dt=0.02, actuated=["crank_joint"], arguments={"goal": goal},
        running=QuadraticCost(effort=1e-3), terminal=near, integrator="rk4", effort_limits=None,
        second_order=False,
    )  # fmt: skip
    assert found.converged
    assert np.abs(found.q[-1] - goal).max() < 0.05
    assert np.abs(kt.loops.closure_error(m, found.q)).max() < 1e-8


def test_controls_of_actuators(cart):
    given = {k: x for k, x in SWING.items() if k != "actuated"}
    found = optimize(cart, [0.1, 0.2], **given, use="controls")
    assert found.converged
    assert found.tau is None
    assert found.controls.shape == (60, 1)
    assert np.abs(found.controls).max() <= 20.0
    np.testing.assert_allclose(found.motion().q, found.q, atol=1e-9)
    with pytest.raises(ModelError, match="controllers return joint forces"):
        found.controller()


def test_predictive_control_rejects_disturbances(cart):
    balance = kt.control.MPC(
        cart, steps=30, dt=0.04, actuated=["rail"], replan=1,
        running=QuadraticCost(q=UP, position=[1.0, 5.0], velocity=0.1, effort=0.01),
        terminal=QuadraticCost(q=UP, position=[10.0, 50.0], velocity=5.0),
    )  # fmt: skip

    @kt.kernel
    def push(m, t, q, qd):
        return np.array([0.0, kt.select((t > 1.0) & (t < 1.1), 0.5, 0.0)])

    motion = kt.simulate(
        cart, [0.2, np.pi - 0.4], duration=6.0, dt=0.01, controller=balance, forces=push
    )
    pushed = np.abs(motion.qd[(motion.t > 1.0) & (motion.t < 1.2), 1]).max()
    assert pushed > 0.5
    assert np.abs(motion.q[-1] - UP).max() < 0.02
    assert np.abs(motion.qd[-1]).max() < 0.05
    assert np.abs(motion.tau).max() <= 20.0
    assert balance.plan.iterations <= 10


def test_predictive_control_swings_up_and_holds(cart):
    control = kt.control.MPC(
        cart, steps=50, dt=0.04, actuated=["rail"], replan=2, position_limits=None,
        running=QuadraticCost(q=UP, position=[1.0, 1.0], velocity=0.01, effort=0.01),
        terminal=QuadraticCost(q=UP, position=[10.0, 50.0], velocity=5.0),
    )  # fmt: skip
    motion = kt.simulate(cart, [0.0, 0.0], duration=6.0, dt=0.005, controller=control, limits=None)
    assert np.abs(motion.q[motion.t > 4.5] - UP).max() < 0.02
    assert np.abs(motion.tau).max() <= 20.0


HOLDING = {
    "steps": 20, "dt": 0.05, "actuated": ["rail"],
    "running": QuadraticCost(q=UP, position=[1.0, 5.0], velocity=0.1, effort=0.01),
    "terminal": QuadraticCost(q=UP, position=[10.0, 50.0], velocity=5.0),
}  # fmt: skip


def test_controllers_of_a_batch_are_those_of_its_robots(cart, swing, rng):
    q, qd = UP + rng.uniform(-0.2, 0.2, (2, 3, 2)), rng.uniform(-0.1, 0.1, (2, 3, 2))
    many = kt.control.MPC(cart, **HOLDING)
    first, then = many(0.0, q, qd), many(0.06, q + 0.06 * qd, qd)
    one, follow = kt.control.MPC(cart, **HOLDING), swing.controller()
    np.testing.assert_array_equal(one(0.0, q[1, 2], qd[1, 2]), first[1, 2])
    at = q[1, 2] + 0.06 * qd[1, 2]
    np.testing.assert_array_equal(one(0.06, at, qd[1, 2]), then[1, 2])
    for t in (0.1, 0.7, 5.0):
        each = [
            [follow(t, x, v) for x, v in zip(*row, strict=True)] for row in zip(q, qd, strict=True)
        ]
        np.testing.assert_allclose(follow(t, q, qd), each, rtol=1e-12, atol=1e-12)


def test_plans_that_come_late_begin_where_the_robot_will_be(cart):
    control = kt.control.MPC(cart, **HOLDING, delay=0.03, integrator="rk4")
    start = np.array([0.2, np.pi - 0.3])
    motion = kt.simulate(cart, start, duration=3.0, dt=0.01, controller=control)
    assert np.abs(motion.q[-1] - UP).max() < 0.02
    at = np.searchsorted(motion.t, control.planned_at - 1e-6)
    np.testing.assert_allclose(control.plan.q[0], motion.q[at], atol=1e-4)
    assert control.asked_at <= motion.t[-1] < control.asked_at + 0.05 + 1e-6


def test_a_plan_ends_in_time(cart, monkeypatch):
    clock = iter(np.arange(1000.0))
    monkeypatch.setattr(iterations, "perf_counter", lambda: next(clock))
    control = kt.control.MPC(cart, **HOLDING, budget=1.5)
    start, rest = np.array([0.2, np.pi - 0.3]), np.zeros(2)
    control(0.0, start, rest)
    assert control.plan.converged  # the first one has the time it takes
    found = control.problem.solve(start + 0.05, rest + 1.0, guess=control.plan, budget=1.5)
    assert not found.converged
    assert found.iterations == 2
    follows = kt.rollout(
        cart, found.q[0], found.qd[0], found.tau, steps=20, dt=0.05,
        limits=None, integrator="semi_implicit_euler",
    )  # fmt: skip
    np.testing.assert_allclose(follows.q, found.q, atol=1e-9)
    control(0.06, start + 0.05, rest + 1.0)
    assert control.plan.iterations <= 2
    assert control.planned_at == 0.06


@pytest.mark.parametrize("x", [0.55, 0.7, 0.9])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_predictive_control_returns_from_beyond_the_limits(cart, x):
    wide = np.array([0.5, np.inf])
    control = kt.control.MPC(
        cart, steps=40, dt=0.04, actuated=["rail"], position_limits=(-wide, wide),
        running=QuadraticCost(q=UP, position=[1.0, 5.0], velocity=0.1, effort=0.01),
        terminal=QuadraticCost(q=UP, position=[10.0, 50.0], velocity=5.0),
    )  # fmt: skip
    motion = kt.simulate(cart, [x, np.pi - 0.2], duration=3.0, dt=0.01, controller=control)
    assert np.abs(motion.q[-1] - UP).max() < 0.1
    assert np.abs(motion.q[:, 0]).max() < x + 0.1


def test_an_infeasible_problem_gives_no_numerical_warnings(cart):
    with np.errstate(all="raise"):  # errors of samples that are given up are handled inside
        found = optimize(
            cart, [0.9, np.pi - 0.2], steps=20, dt=0.04, actuated=["rail"], iterations=50,
            position_limits=([-0.5, -10.0], [0.5, 10.0]), running=QuadraticCost(effort=0.01),
        )  # fmt: skip
    assert not found.converged


def test_the_end_of_a_motion_is_held(cart):
    found = optimize(cart, [0.1, 0.2], **SWING, integrator="rk4")
    motion = kt.simulate(
        cart, [0.12, 0.18], duration=6.0, dt=3e-3, controller=found.controller(), limits=None
    )
    assert np.abs(motion.q[-1] - UP).max() < 1e-3
    assert np.abs(motion.tau).max() <= 20.0 + 1e-12


def test_a_plan_is_followed_from_other_starts():
    """An acrobot must be at its goal exactly: gains of that problem grow without bound."""
    m, goal = kt.samples.double_pendulum(), np.array([np.pi, 0.0])
    found = optimize(
        m, [0.0, 0.0], steps=100, dt=0.03, goal=goal, actuated=["elbow"], integrator="rk4",
        effort_limits=(-15.0, 15.0), running=QuadraticCost(effort=0.01, velocity=0.01),
        guess={"tau": np.random.default_rng(0).normal(0.0, 3.0, (100, 8, 2))[:, 0]},
    )  # fmt: skip
    for angle in (0.0, -0.03, 0.1):
        motion = kt.simulate(
            m, [angle, 0.0], duration=5.0, dt=2e-3, controller=found.controller(), limits=None
        )
        assert np.abs(motion.q[-1] - goal).max() < 0.03


@pytest.mark.parametrize(("penalty", "most"), [(1e3, 1.0), (1e3, 4.0), (10.0, 2.0)])
def test_soft_limits_of_velocities_are_found_optimal(cart, penalty, most):
    found = optimize(
        cart, [0.1, 0.2], **SWING, velocity_limits=(-most, most), limit_penalty=penalty
    )
    assert found.converged
    assert found.violation > 0.5  # the swing needs more


@pytest.fixture(scope="module")
def hopper():
    b = kt.ModelBuilder("hopper").body(
        "trunk", joint=kt.Prismatic("z"), inertia=kt.shapes.box(0.2, 0.1, 0.1, mass=3.0)
    )
    b.body("leg", on="trunk", joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(0.05, mass=0.5))
    foot = kt.geometry.Geometry(2, kt.geometry.Sphere(0.05), name="foot")
    return kt.contact.with_ground(b.build().replace(geometry=(foot,)))


@pytest.mark.parametrize("kind", ["relaxed", "soft"])
def test_a_hopper_jumps_and_lands(hopper, kind):
    m, scene, rest = hopper, kt.contact.Scene(hopper), np.array([0.45, -0.4])

    @kt.kernel
    def flight(m, t, q, qd, height: ()):
        return np.array([kt.select((t > 0.35) & (t < 0.45), 10.0, 0.0) * (q[0] + q[1] - height)])

    start, contact, dt = rest, kt.contact.TimeStepping(scene, relaxation=0.1), 0.02
    if kind == "soft":
        smooth = kt.contact.Regularized(0.05)
        contact = kt.contact.SoftContact(scene, stiffness=2e4, damping=0.5, tangential=smooth)
        start, dt = rest - [(3.5 * 9.81 / 2e4) ** (2 / 3), 0.0], 0.01
    found = optimize(
        m, start, steps=round(0.8 / dt), dt=dt, actuated=m.joint_names[1:], contact=contact,
        running=[QuadraticCost(effort=1e-5, velocity=1e-3, q=rest, position=[0, 1.0]), flight],
        terminal=QuadraticCost(q=rest, position=100.0, velocity=1.0), tolerance=1e-4,
        arguments={"height": 0.2}, effort_limits=(-150.0, 150.0),
    )  # fmt: skip
    assert found.converged
    foot = found.q.sum(axis=1) - 0.05
    assert foot.max() > 0.14
    assert np.abs(foot[[0, -1]]).max() < 0.02
    assert np.abs(found.tau).max() <= 150.0
    high = (found.t > 0.35) & (found.t < 0.45)  # nothing touches: gravity alone acts on the whole
    speed = found.qd[high] @ [1.0, 0.5 / 3.5]
    near = 0.6 if kind == "relaxed" else 1e-9
    np.testing.assert_allclose(np.diff(speed) / dt, -9.81, atol=near)
    if kind == "relaxed":  # rigid contact with the feedback of the plan
        real = kt.simulate(
            m, start, duration=1.2, dt=1e-3, controller=found.controller(),
            contact=kt.contact.TimeStepping(scene),
        )  # fmt: skip
        assert real.q.sum(axis=1).max() - 0.05 > 0.14
        assert np.abs(real.q[-1] - rest).max() < 0.01


def test_a_hopper_jumps_to_any_height_from_a_guess_that_jumps(hopper):
    """From one that stands, an early landing is an optimum with a kink: nothing converges."""
    rest, t = np.array([0.45, -0.4]), 0.02 * np.arange(41)
    hop = np.maximum(0.0, 0.16 - 4.0 * (t - 0.4) ** 2)
    guess = (rest + hop[:, None] * [1.0, 0.0])[:, None]

    @kt.kernel
    def flight(m, t, q, qd, height: ()):
        weight = kt.select((t > 0.35) & (t < 0.45), 10.0, 0.0)
        return np.array([weight * (q[0] + q[1] - 0.05 - height)])

    heights = np.array([0.15, 0.17, 0.18, 0.19, 0.2, 0.22])
    contact = kt.contact.TimeStepping(kt.contact.Scene(hopper), relaxation=0.1)
    found = optimize(
        hopper, rest, steps=40, dt=0.02, actuated=hopper.joint_names[1:], tolerance=1e-4,
        contact=contact, effort_limits=(-150.0, 150.0), arguments={"height": heights},
        running=[QuadraticCost(effort=1e-5, velocity=1e-3, q=rest, position=[0, 1]), flight],
        terminal=QuadraticCost(q=rest, position=100.0, velocity=1.0), guess={"q": guess},
    )  # fmt: skip
    assert found.converged.all()
    assert found.iterations.max() < 15
    np.testing.assert_allclose(found.q.sum(axis=-1).max(axis=0) - 0.05, heights, atol=0.02)


def test_relaxed_contact_is_pushed_against():
    inertia = kt.shapes.sphere(0.1, mass=1.0)
    b = kt.ModelBuilder("puck").body("puck", joint=kt.Translation(), inertia=inertia)
    foot = kt.geometry.Geometry(1, kt.geometry.Sphere(0.1), name="foot")
    m = kt.contact.with_ground(b.build().replace(geometry=(foot,)))
    contact = kt.contact.TimeStepping(kt.contact.Scene(m), relaxation=0.1)
    most = np.array([30.0, 30.0, 1e-3])
    start, goal = np.array([0.0, 0.0, 0.1 + 0.1**2 / 9.81]), np.array([0.3, 0.0, 0.1])
    found = optimize(
        m, start, steps=25, dt=0.02, contact=contact, tolerance=1e-4,
        running=QuadraticCost(effort=1e-4), effort_limits=(-most, most),
        terminal=QuadraticCost(q=goal, position=[100.0, 1.0, 0.0], velocity=1.0),
    )  # fmt: skip
    assert found.converged
    assert abs(found.q[-1, 0] - 0.3) < 0.02
    assert found.q[:, 2].min() > 0.1
    slides = optimize(
        m, start, steps=25, dt=0.02, tolerance=1e-4, forces=_weightless,
        running=QuadraticCost(effort=1e-4), effort_limits=(-most, most),
        terminal=QuadraticCost(q=goal, position=[100.0, 1.0, 0.0], velocity=1.0),
    )  # fmt: skip
    assert np.sum(found.tau[:, 0] ** 2) > 2 * np.sum(slides.tau[:, 0] ** 2)  # friction costs


@kt.kernel
def _weightless(m, t, q, qd):
    return np.array([0.0, 0.0, 9.81])


def test_errors_name_what_is_wrong(cart):
    cost = QuadraticCost(effort=1.0)
    with pytest.raises(TypeError, match="needs a cost"):
        optimize(cart, [0, 0], steps=5, dt=0.1)
    with pytest.raises(TypeError, match=r"must be a function under @kinetree\.kernel"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=lambda m, q: 0)
    with pytest.raises(ShapeError, match="steps must be at least 1, got 0"):
        optimize(cart, [0, 0], steps=0, dt=0.1, running=cost)
    with pytest.raises(ShapeError, match=r"steps must be an integer, got 2\.5"):
        optimize(cart, [0, 0], steps=2.5, dt=0.1, running=cost)
    with pytest.raises(ShapeError, match="tolerance must be positive, got 0"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=cost, tolerance=0)
    with pytest.raises(ShapeError, match=r"goal must have shape \(..., nq\) with nq = 2"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=cost, goal=[0.0])
    with pytest.raises(TypeError, match=r"no argument 'termnal'; did you mean 'terminal'\?"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=cost, termnal=cost)
    with pytest.raises(TypeError, match="no argument 'controller'"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=cost, controller=cost)
    with pytest.raises(ShapeError, match="effort belongs to steps"):
        optimize(cart, [0, 0], steps=5, dt=0.1, terminal=cost)
    with pytest.raises(ShapeError, match="q and position together"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=QuadraticCost(position=1.0))
    with pytest.raises(ShapeError, match="without weights"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=QuadraticCost())
    with pytest.raises(ShapeError, match="at least 0"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=QuadraticCost(effort=-1.0))
    with pytest.raises(ShapeError, match="lower must be below upper"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=cost, effort_limits=(1.0, 1.0))
    with pytest.raises(UnknownNameError, match="velocity_limits must be 'model'"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=cost, velocity_limits="none")
    with pytest.raises(UnknownNameError, match="guess has q, qd, tau and controls"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=cost, guess={"x": 1})
    with pytest.raises(ShapeError, match=r"guess of q must have shape \(6, ..., 2\)"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=cost, guess={"q": np.zeros((5, 2))})
    with pytest.raises(UnknownNameError, match="use must be"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=cost, use="forces")
    with pytest.raises(ShapeError, match="replan must be from 1"):
        kt.control.MPC(cart, steps=5, dt=0.1, running=cost, replan=5)
    with pytest.raises(ShapeError, match=r"delay must be at most \(steps - replan\) dt = 0\.4 s"):
        kt.control.MPC(cart, steps=5, dt=0.1, running=cost, delay=0.5)
    with pytest.raises(ShapeError, match="budget must be a positive time in seconds, got 0"):
        kt.control.MPC(cart, steps=5, dt=0.1, running=cost, budget=0)
    ball = kt.contact.with_ground(kt.samples.pendulum())
    rigid = kt.contact.TimeStepping(kt.contact.Scene(ball))
    with pytest.raises(ModelError, match="with a relaxation"):
        optimize(ball, ball.neutral(), steps=5, dt=0.1, running=cost, contact=rigid)

    @kt.kernel
    def table(m, q):
        return np.outer(q, q)

    with pytest.raises(ShapeError, match="cost 'table' must return a number, or a vector"):
        optimize(cart, [0, 0], steps=5, dt=0.1, running=table)


@kt.kernel
def effort(m, qd, tau):
    """A cost of every step."""
    return 1e-2 * tau @ tau + 1e-2 * qd @ qd


@kt.kernel
def arrival(m, q, qd):
    """A cost of the end that is no half square of a deviation."""
    return (q @ q) ** 2 + qd @ qd


def test_curvature_of_closed_loops_on_arrays_is_the_compiled_one(monkeypatch):
    model = kt.samples.slider_crank()
    q = kt.loops.assemble(model)
    options = {"steps": 6, "dt": 2e-2, "running": effort, "terminal": arrival}
    found, made = {}, []
    of_knots = JointForceSteps.curvature

    def noted(self, *arrays):
        made.append(of_knots(self, *arrays))
        return made[-1]

    monkeypatch.setattr(JointForceSteps, "curvature", noted)
    for tier in ("general", "specialised"):
        with kt.tier(tier):
            found[tier] = optimize(model, q, **options, second_order=True)
            assert bool(made) == (tier == "general")
            assert all(x is not None for x in made)
            made.clear()
    general, specialised = found["general"], found["specialised"]
    assert general.cost == pytest.approx(specialised.cost, rel=1e-10)
    assert np.allclose(general.tau, specialised.tau, rtol=1e-5, atol=1e-6)


def test_compiled_curvature_takes_over_when_work_repays_it(monkeypatch):
    text, seen = shooting.Shooting._curvature, []

    def noted(self, *texts, stepped):
        seen.append(stepped)
        if stepped:
            raise InterruptedError  # before it is compiled
        return text(self, *texts, stepped=stepped)

    monkeypatch.setattr(shooting.Shooting, "_curvature", noted)
    monkeypatch.setattr(JointForceSteps, "REPAID", 5)
    model = kt.samples.slider_crank()
    options = {"steps": 6, "dt": 2e-2, "running": effort, "terminal": arrival}
    with pytest.raises(InterruptedError):
        optimize(model, kt.loops.assemble(model), **options)
    assert seen == [False, False, True]  # costs of steps and of the end, then steps themselves


@kt.kernel
def attitude(m, q, qd, wanted: (5,)):
    """Distance from wanted coordinates, as a vector."""
    return np.concatenate([q - wanted, 0.3 * qd])


@pytest.mark.parametrize("second_order", [False, True])
def test_steps_on_arrays_of_bodies_that_turn_are_the_compiled_ones(monkeypatch, second_order, rng):
    monkeypatch.setattr(on_arrays, "LARGE_BACK", (1, 1))
    b = kt.ModelBuilder("thrown").body(
        "trunk", joint=kt.Spherical(), inertia=kt.shapes.box(0.1, 0.2, 0.4, mass=2.0)
    )
    b.body("arm", on="trunk", joint=kt.Revolute("y"), at=(0, 0, 0.2),
           inertia=kt.shapes.box(0.3, 0.1, 0.1, mass=1.0))  # fmt: skip
    model = b.build()
    q, wanted = (model.random_configuration(rng) for _ in range(2))
    options = {"steps": 5, "dt": 3e-2, "running": effort, "terminal": attitude}
    options |= {"arguments": {"wanted": wanted}, "second_order": second_order, "iterations": 4}
    found = {}
    for tier in ("general", "specialised"):
        with kt.tier(tier):
            found[tier] = optimize(model, q, np.full(4, 0.3), **options)
    general, specialised = found["general"], found["specialised"]
    np.testing.assert_allclose(general.history, specialised.history, rtol=1e-6)
    np.testing.assert_allclose(general.tau, specialised.tau, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(general.gains, specialised.gains, rtol=1e-4, atol=1e-5)


def test_samples_whose_steps_fail_are_given_up_alone():
    def inverse(t, A):
        return (np.linalg.inv(A.reshape(-1, 2, 2)).reshape(A.shape) + t,)

    A = np.stack([np.eye(2), np.zeros((2, 2)), 2 * np.eye(2)]).reshape(3, 4)
    (found,) = _of_samples(inverse, ((4,),), 1.0, A)
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[[0, 2]], [[2, 1, 1, 2], [1.5, 1, 1, 1.5]])


def test_geared_robots_are_optimized_although_their_first_answers_are_on_arrays():
    """Steps of the optimizer call machine code, which answers on arrays do not have."""
    rotor = kt.shapes.cylinder(0.05, 0.02, mass=0.2)
    arm = kt.gears.add_rotor(kt.samples.double_pendulum(), "elbow", ratio=7.0, inertia=rotor)
    goal = QuadraticCost(q=np.array([0.3, 0.2]), position=100.0, velocity=1.0)
    found = optimize(arm, [0.0, 0.1], steps=20, dt=0.02, terminal=goal)
    assert found.converged
    np.testing.assert_allclose(found.q[-1], goal.q, atol=0.02)
