"""Few steps of large robots run on arrays: the same motions and gradients as compiled steps."""

from typing import Any

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import SimulationError
from kinetree.integration import on_arrays
from kinetree.integration.field import Field
from kinetree.integration.registry import INTEGRATORS
from kinetree.joints import Prismatic, Revolute, Spherical
from kinetree.samples.random_mechanisms import random_tree
from kinetree.simulation.results.report import _pivots
from kinetree.simulation.rollouts.on_arrays import (
    PullbackOnArrays,
    StepsOnArrays,
    pullback_of,
    steps_of,
)

METHODS = ("rk4", "semi_implicit_euler", "implicit_midpoint", "rosenbrock", "rosenbrock_w")
WITH_ADJOINT = ("rk4", "dopri5", "semi_implicit_euler", "implicit_midpoint")


@pytest.fixture(autouse=True)
def _small_ones_count(monkeypatch):
    monkeypatch.setattr(on_arrays, "LARGE", (1, 1))
    monkeypatch.setattr(on_arrays, "LARGE_BACK", (1, 1))
    monkeypatch.setattr(on_arrays, "LARGE_LOOPS", 1)


def flat():
    """A tree whose velocities are derivatives of its positions, with springs and dampers."""
    tree = random_tree(4, 3, joints=(Revolute("x"), Revolute("y"), Prismatic("z")))
    law = kt.JointDynamics(stiffness=3.0, damping=0.4)
    return tree.replace(dynamics=dict.fromkeys(tree.joint_names, law))


def floating():
    """A floating tree with a ball joint."""
    joints = (Revolute("x"), Spherical(), Prismatic("y"))
    return random_tree(4, 8, joints=joints, floating_base=True)


CASES = [*((make, m) for make in (flat, floating) for m in METHODS), (flat, "variational")]


def test_variational_steps_on_arrays_are_those_of_rates():
    models, field = (flat(), floating()), Field()
    chosen = [on_arrays.choose_arrays(m, INTEGRATORS["variational"], field, 1) for m in models]
    assert chosen == [True, False]


def run_of(rollout: Any):
    """The run behind a rollout."""
    return rollout._run


def state_of(model, seed=0):
    """Two configurations, velocities and forces."""
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(2)])
    return q, 0.5 * rng.standard_normal((2, model.nv)), rng.standard_normal((1, 2, model.nv))


@pytest.mark.filterwarnings("ignore:the simulation of")  # of what is only compared
@pytest.mark.parametrize(("make", "method"), CASES)
def test_motions_are_those_of_compiled_steps(make, method):
    model = make()
    q, v, _ = state_of(model)
    options = {"duration": 0.02, "dt": 4e-3, "integrator": method}
    with kt.tier("general"):
        found = kt.simulate(model, q[0], v[0], **options)
        batch = kt.simulate(model, q, v, **options)
    with kt.tier("specialised"):
        expected = kt.simulate(model, q[0], v[0], **options)
    for name in ("q", "qd", "work", "energy"):
        assert np.allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-11)
        assert np.allclose(getattr(batch, name)[:, 0], getattr(found, name), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_of_all_joints(seed):
    model = random_tree(5, 40 + seed)
    q, v, tau = state_of(model, seed)
    with kt.tier("general"):
        found = kt.rollout(model, q, v, tau, steps=4, dt=2e-3)
        assert isinstance(steps_of(run_of(found)), StepsOnArrays) == on_arrays._is_group(model)
    with kt.tier("specialised"):
        expected = kt.rollout(model, q, v, tau, steps=4, dt=2e-3)
    for name in ("q", "qd", "work"):
        assert np.allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-11)


@kt.kernel
def final(model, q, qd):
    """A cost of the end."""
    return (q * q).sum() + 0.3 * qd @ qd


@kt.kernel
def along(model, q, qd, tau):
    """A cost of every step."""
    return 0.1 * (q * q).sum() + 0.02 * tau @ tau + 0.05 * qd @ qd


def cost_of(model, q, v, tau, options):
    """The cost of a rollout of three steps, from what it stores."""
    run = kt.rollout(model, q, v, tau, steps=3, **options)
    total = (run.q[-1] ** 2).sum(-1) + 0.3 * (run.qd[-1] ** 2).sum(-1)
    for k in range(3):
        total += 0.1 * (run.q[k] ** 2).sum(-1) + 0.05 * (run.qd[k] ** 2).sum(-1)
        total += 0.02 * (tau[0] ** 2).sum(-1)
    return total


@pytest.mark.parametrize("method", WITH_ADJOINT)
@pytest.mark.parametrize("make", [flat, floating])
def test_gradients_are_differences_of_costs(make, method):
    model = make()
    q, v, tau = state_of(model, 1)
    options = {"dt": 5e-3, "integrator": method}
    with kt.tier("general"):
        costs = {"terminal": final, "running": along}
        found = kt.rollout_gradient(model, q, v, tau, steps=3, **costs, **options)
        assert np.allclose(found.value, cost_of(model, q, v, tau, options), rtol=1e-12)
        for k, e in enumerate(1e-5 * np.eye(model.nv)):
            there, back = model.integrate(q, 0 * v + e), model.integrate(q, 0 * v - e)
            moves = {
                "q0": (there, back, v, v, tau, tau),
                "qd0": (q, q, v + e, v - e, tau, tau),
                "tau": (q, q, v, v, tau + e, tau - e),
            }
            for name, (qa, qb, va, vb, ta, tb) in moves.items():
                ends = cost_of(model, qa, va, ta, options), cost_of(model, qb, vb, tb, options)
                slope = (ends[0] - ends[1]) / 2e-5
                gradient = np.reshape(getattr(found, name), (2, -1))[:, k]
                assert np.allclose(gradient, slope, rtol=1e-6, atol=1e-7), name


def test_derivatives_of_the_end_are_those_of_compiled_steps():
    model = floating()
    q, v, tau = state_of(model, 2)
    found, given = {}, (model, q, v, tau)
    for tier in ("general", "specialised"):
        with kt.tier(tier):
            found[tier] = kt.final_state_derivatives(*given, steps=2, dt=5e-3, integrator="rk4")
    for name in ("q", "qd", "state", "tau"):
        general, specialised = (getattr(found[t], name) for t in ("general", "specialised"))
        assert np.allclose(general, specialised, rtol=1e-10, atol=1e-11)


def closed_state(model, seed=0):
    """A state that closes the loops, and joint forces for three steps."""
    rng = np.random.default_rng(seed)
    q = kt.loops.assemble(model)
    qd = kt.loops.project_velocity(model, q, 0.5 * rng.standard_normal(model.nv))
    return q, qd, rng.standard_normal((3, model.nv))


@pytest.mark.parametrize("name", ["five_bar", "slider_crank", "bennett"])
def test_linkages_move_as_in_compiled_steps(name):
    model = getattr(kt.samples, name)()
    found, state = {}, (model, *closed_state(model))
    for tier in ("general", "specialised"):
        with kt.tier(tier):
            run = kt.rollout(*state, steps=3, dt=2e-3, integrator="rk4")
            gradient = kt.rollout_gradient(*state, steps=3, dt=2e-3, terminal=final)
            found[tier] = [run.q, run.qd, run.work, gradient.q0, gradient.qd0, gradient.tau]
    for general, specialised in zip(found["general"], found["specialised"], strict=True):
        assert np.allclose(general, specialised, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_random_closed_chains_move_as_in_compiled_steps(seed):
    model, q, qd = kt.samples.random_closed_mechanism(seed)
    with kt.tier("general"):
        found = kt.rollout(model, q, qd, steps=3, dt=1e-3, integrator="rk4")
    with kt.tier("specialised"):
        expected = kt.rollout(model, q, qd, steps=3, dt=1e-3, integrator="rk4")
    for name in ("q", "qd", "work"):
        assert np.allclose(getattr(found, name), getattr(expected, name), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["stewart", "delta"])
def test_gradients_of_closed_chains_are_differences_of_costs(name):
    model = getattr(kt.samples, name)()
    q, qd, tau = closed_state(model, 3)

    def cost(forces):
        end = kt.rollout(model, q, qd, forces, steps=3, dt=5e-3, integrator="rk4")
        return (end.q[-1] ** 2).sum() + 0.3 * (end.qd[-1] ** 2).sum()

    with kt.tier("general"):
        options = {"steps": 3, "dt": 5e-3, "integrator": "rk4"}
        found = kt.rollout_gradient(model, q, qd, tau, terminal=final, **options)
        rng = np.random.default_rng(0)
        for _ in range(3):
            e = rng.standard_normal(tau.shape)
            slope = (cost(tau + 1e-4 * e) - cost(tau - 1e-4 * e)) / 2e-4
            assert np.sum(np.asarray(found.tau) * e) == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_gradients_by_the_start_of_a_closed_chain():
    model = kt.samples.stewart()
    q, qd, tau = closed_state(model, 4)
    options = {"steps": 3, "dt": 5e-3, "integrator": "rk4"}

    def cost(q, qd):
        end = kt.rollout(model, q, qd, tau, **options)
        return (end.q[-1] ** 2).sum() + 0.3 * (end.qd[-1] ** 2).sum()

    def moved(e):
        """A state next to the first one, on the loops: with the velocities of the same platform."""
        there = kt.loops.project_configuration(model, model.integrate(q, e))
        return there, kt.loops.project_velocity(model, there, qd)

    with kt.tier("general"):
        found = kt.rollout_gradient(model, q, qd, tau, terminal=final, **options)
        direction = kt.loops.null_space(model, q, qd).G[:, 0]
        ends = [moved(x * direction) for x in (1e-5, -1e-5)]
        slope = (cost(*ends[0]) - cost(*ends[1])) / 2e-5
        dq = model.difference(ends[1][0], ends[0][0]) / 2e-5
        dqd = (ends[0][1] - ends[1][1]) / 2e-5
        assert found.q0 @ dq + found.qd0 @ dqd == pytest.approx(slope, rel=1e-5)


def test_work_that_repays_compiling_is_compiled(monkeypatch):
    model = flat()
    q, v, _ = state_of(model)
    monkeypatch.setattr(on_arrays, "REPAID", 10)  # 40 steps
    with kt.tier("auto"):
        made = [steps_of(run_of(kt.rollout(model, q[:1], v[:1], steps=n))) for n in (20, 21)]
    assert isinstance(made[0], StepsOnArrays)
    assert not isinstance(made[1], StepsOnArrays)


@kt.kernel
def pushing(model, t, q, qd):
    """A force that grows with the motion."""
    return 1e9 * q


def test_forces_that_push_along_are_named():
    model = flat()
    q, v, _ = state_of(model)
    options = {"duration": 0.1, "dt": 1e-2, "integrator": "implicit_midpoint"}
    with kt.tier("general"), pytest.raises(SimulationError, match="take a smaller dt"):
        kt.simulate(model, q[0], v[0], forces=pushing, **options)


def test_motions_that_end_are_named():
    model = flat()
    q, v, tau = state_of(model)
    with kt.tier("general"), pytest.raises(kt.errors.KinetreeError, match=r"finite|large"):
        kt.rollout(model, q, v, 1e200 * tau, steps=3, dt=1.0)


def test_gradients_on_arrays_are_what_runs():
    model = flat()
    q, v, _ = state_of(model)
    with kt.tier("general"):
        run = run_of(kt.rollout(model, q, v, steps=2))
        assert isinstance(pullback_of(run, None), PullbackOnArrays)


@pytest.mark.parametrize("n", [100, 128, 129, 200])
def test_pivots_of_blocks_are_those_of_the_matrix(n):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((2, n, n))
    A = A @ np.swapaxes(A, -1, -2) + np.eye(n)
    expected = np.diagonal(np.linalg.cholesky(A), axis1=-2, axis2=-1) ** 2
    assert np.allclose(_pivots(A), expected, rtol=1e-11)
    A[1, n - 1, n - 1] = -1.0
    with pytest.raises(np.linalg.LinAlgError):
        _pivots(A)
