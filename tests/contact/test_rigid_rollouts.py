"""Rigid contact in rollouts: closed forms, precision, failures of single motions, other arrays."""

import sys

import numpy as np
import pytest
from support import fake_cupy
from support.backends import cuda_on_cpu
from support.contact_scenes import BALL, TABLE, G

import kinetree as kt
from kinetree.contact import Scene, TimeStepping
from kinetree.contact.stepping.solver import Problem, solve_by_sweeps, solve_in_kernel

pytestmark = pytest.mark.usefixtures("specialised")
CONTACT = TimeStepping(Scene(BALL, friction=0.3))
MU = np.array([[0.1], [0.2], [0.4]])


def thrown(speed, dtype="float64"):
    """Starts on the ground without spin."""
    q, qd = np.tile([0, 0, 0.1, 1.0, 0, 0, 0], (len(speed), 1)), np.zeros((len(speed), 6))
    qd[:, 3] = speed
    return q.astype(dtype), qd.astype(dtype)


def rolled(q, qd, arguments, steps=400, store_every=50):
    return kt.rollout(
        BALL, q, qd, steps=steps, dt=1e-3, store_every=store_every, contact=CONTACT,
        arguments=arguments,
    )  # fmt: skip


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-11), ("float32", 1e-6)])
def test_a_sliding_ball_rolls_at_five_sevenths_and_friction_is_each_motions_own(dtype, bound):
    found = rolled(*thrown([0.5] * 3, dtype), {"contact_friction": MU.astype(dtype)})
    assert found.q.dtype == dtype
    assert found.integrator == "time_stepping"
    speed = np.linalg.norm(found.qd[..., 3:], axis=-1)
    expected = np.maximum(0.5 - MU.T * G * found.t[:, None], 0.5 * 5 / 7)
    np.testing.assert_allclose(speed, expected, rtol=0, atol=100 * bound)
    assert found.residuals.shape == (3, 10)
    assert found.residuals[:, 0].max() < bound
    assert not found.failed.any()
    np.testing.assert_allclose(found.contact_force[1:, :, 0, 0], G, rtol=1e3 * bound)
    assert found.contact_force.shape == (9, 3, 1, 3)


def test_terrain_and_masses_of_every_motion():
    """Balls at the bottom of a bowl press on it with their weights."""
    x = np.linspace(-1, 1, 4)
    bowl = kt.geometry.HeightField(0.3 * (x[:, None] ** 2 + x**2), size=(2.0, 2.0))
    model = BALL.replace(geometry=(BALL.geometry[0], kt.geometry.Geometry(0, bowl, name="bowl")))
    contact, mass = TimeStepping(Scene(model, friction=0.5)), np.array([0.5, 2.0], "float32")
    q, qd = thrown([0.0, 0.0], "float32")
    q[:, 2] += 0.02
    found = kt.rollout(
        model, q, qd, steps=600, contact=contact, parameters={"mass:body": mass}, store_every=600
    )
    np.testing.assert_allclose(found.contact_force[-1, :, 0, 0], mass * G, rtol=1e-4)
    np.testing.assert_allclose(found.q[-1, 0], found.q[-1, 1], rtol=0, atol=1e-6)
    assert found.residuals[:, 0].max() < 1e-6
    assert found.residuals[:, 3].max() < 1e-5


def test_rigid_stops_are_rows_of_the_same_problem():
    model = kt.samples.pendulum()
    model = model.replace(limits={model.joint_names[0]: kt.Limits((-0.5,), (0.5,))})
    contact = TimeStepping(Scene(model, []))
    found = kt.rollout(
        model, [[0.0], [0.2]], [[1.0], [3.0]], steps=300, limits="rigid", contact=contact
    )
    assert 0.49 < found.q.max() < 0.5 + 1e-9
    assert found.q[:, 0].max() < 0.4


def test_a_motion_that_stops_being_finite_is_marked_and_others_go_on():
    q, qd = thrown([0.5, 0.2, 0.3])
    alone = rolled(q, qd, {}, steps=20, store_every=10)
    qd[1, 0] = 1e200
    with pytest.warns(kt.SimulationWarning, match=r"1 of 3 motions .* the first is \[1\]"):
        found = rolled(q, qd, {}, steps=20, store_every=10)
    assert found.failed.tolist() == [False, True, False]
    np.testing.assert_array_equal(found.q[-1, ::2], alone.q[-1, ::2])
    np.testing.assert_array_equal(found.q[-1, 1], q[1])


def test_the_text_for_a_gpu_gives_the_same(tmp_path, monkeypatch):
    launches = []
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    runtime = fake_cupy.runtime(launches, cuda_on_cpu(tmp_path))
    monkeypatch.setitem(sys.modules, "kinetree.codegen.runtime.cuda", runtime)
    monkeypatch.delitem(sys.modules, "kinetree.arrays.cupy_kind", raising=False)
    for dtype, bound in (("float64", 1e-12), ("float32", 1e-5)):
        launches.clear()
        q, qd = thrown([0.5, 0.2, -0.4], dtype)
        mu = MU.astype(dtype)
        expected = rolled(q, qd, {"contact_friction": mu}, steps=40, store_every=20)
        device = sys.modules["cupy"].asarray
        found = rolled(
            device(q), device(qd), {"contact_friction": device(mu)}, steps=40, store_every=20
        )
        assert [(name, kind) for name, kind, *_ in launches] == [("rollout", dtype)] * 2
        for name in ("q", "qd", "contact_force", "residuals"):
            a, b = (np.asarray(getattr(x, name)) for x in (expected, found))
            np.testing.assert_allclose(b, a, rtol=0, atol=bound * max(1, np.abs(a).max()))
        assert type(found.residuals) is fake_cupy.ndarray
        assert not np.asarray(found.failed).any()
    sys.modules.pop("kinetree.arrays.cupy_kind", None)


def test_sweeps_and_newtons_method_find_the_same_forces(rng):
    """Two contacts that slide and stick, and a stop."""
    J = rng.normal(size=(7, 9))
    A, mu = J @ J.T, np.array([0.5, 0.1])
    for b in rng.normal(size=(5, 7)):
        b[[0, 3]] = -1
        problem = Problem(A, b, mu, np.zeros(1), np.full(1, np.inf))
        exact, error = solve_in_kernel(problem, np.zeros(7), 1e-13, 100)
        assert error < 1e-12
        found, error = solve_by_sweeps(problem, np.zeros(7), 1e-10, 2000)
        assert error < 1e-9
        np.testing.assert_allclose(A @ found, A @ exact, rtol=0, atol=1e-7)


def test_sweeps_settle_single_contacts_whatever_way_they_slide(rng):
    """Slow sliding, friction that presses down harder than the normal force lifts, any start."""
    for _ in range(200):
        L, b = rng.standard_normal((3, 4)), rng.standard_normal(3) * rng.choice([1, 0.1, 0.01], 3)
        mu, warm = rng.choice([0.3, 0.8, 1.5], 1), 0.3 * rng.standard_normal(3)
        problem = Problem(L @ L.T / 3, b, mu, np.zeros(0), np.zeros(0))
        lam, error = solve_by_sweeps(problem, abs(warm) * rng.choice([0, 1]), 1e-10, 100)
        assert error < 1e-9
        assert np.linalg.norm(lam[1:]) <= mu * lam[0] + 1e-12


def test_a_foot_that_friction_presses_down_while_it_slides():
    """From a landing quadruped: the direction opposite to its velocity is no start for Newton's."""
    A = np.array([[0.45, 0.5848, 0.0455], [0.5848, 1.8631, 0.0679], [0.0455, 0.0679, 0.6869]])
    b, mu = np.array([-0.0017, 0.1564, -0.0283]), np.array([0.8])
    problem = Problem(A, b, mu, np.zeros(0), np.zeros(0))
    for start in (np.zeros(3), np.array([0.01, 0.008, 0])):
        lam, error = solve_by_sweeps(problem, start, 1e-10, 32)
        right = solve_in_kernel(problem, start, 1e-14, 64)[0]
        np.testing.assert_allclose(lam, right, rtol=0, atol=1e-9)
        assert error < 1e-12


def test_a_quadruped_lands_in_float32_with_small_residuals():
    """Velocity errors are impulses of a foot's mobility, here below 1e-4 of the weight's."""
    model = kt.contact.with_ground(kt.samples.quadruped())
    feet = [g for g in model.geometry if isinstance(g.shape, kt.geometry.Sphere)]
    scene = Scene(model, [(model.geometry[-1], foot) for foot in feet], friction=0.8)
    home, rng, count = np.array(model.posture("home").q), np.random.default_rng(1), 256
    q = model.integrate(np.tile(home, (count, 1)), 0.2 * rng.standard_normal((count, model.nv)))
    q[:, 2] += 0.01 - scene.candidate_positions(model, q)[0].min(axis=-1)
    qd = 2 * rng.standard_normal((count, model.nv))

    @kt.kernel
    def hold(model, q, qd):
        return np.concatenate([np.zeros(6), 100 * (home[7:] - q[7:]) - 3 * qd[6:]])

    found = kt.rollout(
        model, q.astype("float32"), qd.astype("float32"), steps=300, store_every=300,
        controller=hold, contact=TimeStepping(scene), limits=None,
    )  # fmt: skip
    weight, foot = model.total_mass * G * 1e-3, 0.1  # impulse [N s], mass that a foot moves [kg]
    assert (np.abs(found.contact_force[-1]).max(axis=(1, 2)) > 0).mean() > 0.3
    assert foot * found.residuals[:, 0].max() < 1e-5 * weight
    assert not found.failed.any()


def test_what_cannot_be_part_of_a_rollout_is_rejected():
    with pytest.raises(kt.UnknownNameError, match="hold 'friction', which no kernel of this"):
        rolled(*thrown([0.5]), {"friction": np.ones(1)})
    few = TimeStepping(Scene(TABLE), compiled_rows=3)
    own = {"contact_friction": np.ones(few.scene.candidates.size)}  # without, the engine takes it
    with pytest.raises(kt.errors.ModelError, match=r"cannot be unrolled: .* more than 3 rows"):
        kt.rollout(TABLE, TABLE.neutral(), steps=1, contact=few, arguments=own)
