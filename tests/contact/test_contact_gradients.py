"""Gradients through rigid contact: complex steps, closed forms, differences, other libraries."""

from dataclasses import replace

import numpy as np
import pytest
from support.contact_scenes import BALL, G, particle

import kinetree as kt
from kinetree.contact import Scene, TimeStepping, with_ground
from kinetree.contact.complementarity.rows import BEYOND, MixedRows, newton_matrix, obey
from kinetree.contact.stepping import step as step_text
from kinetree.contact.stepping.drives import StepStart
from kinetree.contact.stepping.solver import Problem, differentiable, solve_in_kernel
from kinetree.functional.parameters import with_parameters
from kinetree.simulation.rollouts.rollout import run_of
from kinetree.spatial import Plucker

pytestmark = pytest.mark.usefixtures("specialised")
TINY = 1e-30
BLOCK = with_ground(particle(0.1))  # slides without turning


def relaxed_problem(rng, speed):
    """Two contacts, a stop, a row with two bounds, one with an upper bound and a loop."""
    J = rng.normal(size=(10, 12))
    low, high = np.array([0, -0.3, -np.inf, -np.inf]), np.array([np.inf, 0.3, 0.5, np.inf])
    b = rng.normal(size=10)
    b[[0, 3]] = -1
    return Problem(J @ J.T, b, np.array([0.5, 0.1]), low, high, speed)


def by_complex_newton(problem, lam):
    """Forces of complex numbers, to rounding error, from real ones nearby."""
    A, b, rows, units = problem.scale()
    lam = lam / units
    for _ in range(4):
        w = A @ lam + b
        lam = lam - np.linalg.solve(newton_matrix(rows, A, lam, w), lam - obey(rows, lam, w))
    return units * lam


def test_derivatives_of_the_relaxed_laws_are_their_complex_steps(rng):
    far = np.array([-BEYOND, -0.2, 0.0]), np.array([0.4, 0.3, BEYOND])
    rows = MixedRows(np.array([0.5]), *far, speed=np.full(6, 0.03))
    A, lam, w = rng.normal(size=(6, 6)), *rng.normal(size=(2, 6))
    J = newton_matrix(rows, A, lam, w)
    for k, e in enumerate(np.eye(6)):
        moved = lam + TINY * 1j * e
        step = moved - obey(rows, moved, w + TINY * 1j * A[:, k])
        np.testing.assert_allclose(step.imag / TINY, J[:, k], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("speed", [0.3, 1e-2])
def test_relaxed_forces_obey_the_laws_that_the_documentation_states(rng, speed):
    problem = relaxed_problem(rng, speed)
    lam, error = solve_in_kernel(problem, np.zeros(10), 1e-13, 100)
    assert error < 1e-12
    w, m = problem.A @ lam + problem.b, 3 / (np.trace(problem.A[:3, :3]))
    np.testing.assert_allclose(lam[0] * w[0], m * speed**2, rtol=1e-8)
    slip = np.linalg.norm(w[1:3])
    np.testing.assert_allclose(
        lam[1:3], -0.5 * lam[0] * w[1:3] / (speed + slip), rtol=0, atol=1e-11
    )
    np.testing.assert_allclose(lam[6] * w[6], speed**2 / problem.A[6, 6], rtol=1e-8)
    np.testing.assert_allclose(lam[7], -0.3 * w[7] / (speed + abs(w[7])), rtol=0, atol=1e-11)
    assert abs(w[9]) < 1e-11


@pytest.mark.parametrize("speed", [0.3, 1e-2, 0.0])
def test_implied_derivatives_are_complex_steps_of_the_problem(rng, speed):
    problem = relaxed_problem(rng, speed)
    lam, _ = solve_in_kernel(problem, np.zeros(10), 1e-13, 100)
    da, db, dmu = rng.normal(size=(10, 10)), rng.normal(size=10), rng.normal(size=2)
    moved = problem._replace(
        A=problem.A + TINY * 1j * (da + da.T), b=problem.b + TINY * 1j * db,
        mu=problem.mu + TINY * 1j * dmu,
    )  # fmt: skip
    found, expected = differentiable(moved, lam), by_complex_newton(moved, lam)
    size = np.abs(expected.imag).max()
    np.testing.assert_allclose(found.imag, expected.imag, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(found.real, lam, rtol=0, atol=1e-11)


@kt.kernel
def end(model, q, qd, weights):
    return weights @ np.concatenate([q, qd])


@kt.kernel
def pushed(model, q, qd, gain: ()):
    return -gain * qd


def gradient(model, q, qd, contact, *, arguments=None, **options):
    """Gradient of a weighted sum of the final state, and the weights."""
    weights = np.cos(np.arange(model.nq + model.nv) + 1.0)
    arguments = {"weights": weights, **(arguments or {})}
    found = kt.rollout_gradient(
        model, q, qd, terminal=end, contact=contact, arguments=arguments, **options
    )
    return found, weights


def stepped(run, model, q, qd, gain, mu, tau, steps, dt):
    """The state after steps of the same text on numbers of any kind, forces to rounding error."""
    step, force = run.transition.contact.of(model, mu), np.zeros(run.transition.contact.rows)
    for k in range(steps):
        held = tau + pushed.function(model, q, qd, gain)
        start = StepStart(k * dt, dt, q, qd, held)
        after = step(None, run.transition.field, model, start, force)
        q, qd, force = after.q, after.qd, after.force
    return np.concatenate([q, qd])


def to_rounding(problem, warm, *_):
    real = Problem(*(np.asarray(x).real for x in problem[:5]), problem.speed)
    lam, error = solve_in_kernel(real, np.asarray(warm).real, 1e-13, 100)
    return by_complex_newton(problem, lam), error


def test_gradients_of_a_ball_that_lands_spinning_are_complex_steps(monkeypatch):
    """With respect to state, joint forces, an argument of the controller, friction and mass."""
    contact = TimeStepping(Scene(BALL, friction=0.3), relaxation=0.02)
    q, qd = np.array([0, 0.1, 0.103, 1, 0, 0, 0]), np.array([0.1, 2.0, 0.3, 0.5, 0.2, -0.6])
    tau, gain, mu, mass = np.array([0, 0, 0, 0.3, 0, 0]), 0.2, np.array([0.3]), np.array(1.2)
    options = {"steps": 4, "dt": 4e-3}
    given = {"gain": gain, "contact_friction": mu}
    found, weights = gradient(
        BALL, q, qd, contact, tau=tau, controller=pushed, arguments=given,
        parameters={"mass:body": mass}, **options,
    )  # fmt: skip
    assert found.contact == "relaxed"
    run = run_of(BALL, q, qd, contact=contact, function="rollout_gradient", **options)
    monkeypatch.setattr(step_text, "solve_in_kernel", to_rounding)

    def derivative(d_q=0, d_qd=0, d_gain=0, d_mu=0, d_tau=0, d_mass=0):
        i = TINY * 1j
        model = with_parameters(BALL, {"mass:body": mass + i * d_mass})
        state = BALL.integrate(q, i * d_q * np.ones(6)) if np.any(d_q) else q
        moved = gain + i * d_gain, mu + i * d_mu, tau + i * d_tau
        return (weights @ stepped(run, model, state, qd + i * d_qd, *moved, **options)).imag / TINY

    close = {"rtol": 0, "atol": 1e-9 * np.abs(found.q0).max()}
    unit = np.eye(6)
    np.testing.assert_allclose(found.q0, [derivative(d_q=e) for e in unit], **close)
    np.testing.assert_allclose(found.qd0, [derivative(d_qd=e) for e in unit], **close)
    np.testing.assert_allclose(found.tau, [derivative(d_tau=e) for e in unit], **close)
    np.testing.assert_allclose(found.arguments["gain"], derivative(d_gain=1), **close)
    np.testing.assert_allclose(found.arguments["contact_friction"], derivative(d_mu=1), **close)
    np.testing.assert_allclose(found.parameters["mass:body"], derivative(d_mass=1), **close)


def differences(function, count, h):
    """Derivatives along unit vectors by central differences, extrapolated once."""
    unit = np.eye(count)

    def central(h):
        return (function(h * unit) - function(-h * unit)) / (2 * h)

    return (4 * central(h / 2) - central(h)) / 3


def table():
    """A box that flies, on four legs with hinges."""
    b = kt.ModelBuilder("table")
    b.body("box", joint=kt.Free(), inertia=kt.shapes.box(0.4, 0.3, 0.1, mass=12.0))
    joints = kt.Revolute("y"), kt.Revolute("x"), kt.Revolute("y"), kt.Revolute("x")
    places = (0.2, 0.15), (0.2, -0.15), (-0.2, 0.15), (-0.2, -0.15)
    for k, (joint, (x, y)) in enumerate(zip(joints, places, strict=True)):
        leg = kt.shapes.capsule(0.02, 0.2, mass=0.5)
        b.body(f"leg {k}", on="box", joint=joint, at=(x, y, -0.05), inertia=leg)
        b.geometry(kt.geometry.Sphere(0.03), on=f"leg {k}", at=(0.0, 0.0, -0.2))
    return with_ground(b.build())


def test_gradients_of_a_table_that_lands_on_four_feet():
    model = table()
    scene = Scene(model, "base", friction=0.8)
    contact = TimeStepping(scene, relaxation=0.05)
    q, qd, n = model.neutral(), np.zeros(model.nv), model.nv
    q[2] += 2e-3 - min(scene.candidate_positions(model, q)[0])
    qd[:6] = 0.1, -0.1, 0.1, 0.3, 0.1, -0.5
    options = {"steps": 10, "dt": 2e-3, "controller": pushed, "arguments": {"gain": 0.5}}
    found, weights = gradient(model, q, qd, contact, **options)

    def cost(dq=0.0, dqd=0.0):
        start = model.integrate(q, dq) if np.ndim(dq) else q
        ends = kt.rollout(model, start, qd + dqd, contact=contact, **options)
        assert np.all(ends.contact_force[-1, ..., 0] > 10)  # all four feet
        assert ends.residuals[:, 0].max() < 1e-11
        return np.concatenate([ends.q[-1], ends.qd[-1]], axis=-1) @ weights

    for gradients, by_differences in (
        (found.q0, differences(lambda d: cost(dq=d), n, 1e-6)),
        (found.qd0, differences(lambda d: cost(dqd=d), n, 4e-4)),
    ):
        size = np.abs(gradients).max()
        np.testing.assert_allclose(gradients, by_differences, rtol=0, atol=1e-6 * size)


@pytest.mark.parametrize("relaxation", [0.05, 0.0])
def test_sliding_distances_have_the_derivatives_of_their_closed_forms(relaxation):
    """With friction mu N s/(v + s) a block slides (s²/2 + v s)/(mu g), s at the start."""
    speed, mu, dt = 0.8, 0.4, 1e-3
    contact = TimeStepping(Scene(BLOCK, friction=mu), relaxation=relaxation)
    height = 0.1 + relaxation**2 / G  # where it rests
    found = kt.rollout_gradient(
        BLOCK, [0, 0, height], [speed, 0, 0], steps=600, dt=dt, contact=contact, terminal=end,
        arguments={"weights": np.eye(6)[0], "contact_friction": np.array([mu])},
    )  # fmt: skip
    by_speed = (speed + relaxation) / (mu * G)
    way = speed * (speed / 2 + relaxation) / (mu * G)
    by_mu = -way / mu
    np.testing.assert_allclose(found.value, way, rtol=0, atol=speed * dt)
    np.testing.assert_allclose(found.q0, [1, 0, found.q0[2]], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.qd0[:2], [by_speed, 0], rtol=0, atol=dt)
    np.testing.assert_allclose(
        found.arguments["contact_friction"], [by_mu], rtol=0, atol=speed / mu * dt
    )
    assert found.contact == ("relaxed" if relaxation else "active set")


def test_motions_differ_from_rigid_ones_in_proportion_to_the_relaxation():
    q, qd = [0, 0, 0.12], [0.8, 0, -0.5]
    ends = {}
    for v in (0.0, 1e-3, 2e-3, 4e-3):
        contact = TimeStepping(Scene(BLOCK, friction=0.4), relaxation=v, conserving=False)
        ends[v] = kt.rollout(BLOCK, q, qd, steps=400, dt=1e-3, contact=contact).q[-1]
    error = [np.abs(ends[v] - ends[0.0]).max() for v in (1e-3, 2e-3, 4e-3)]
    assert error[0] < 1e-3
    np.testing.assert_allclose(np.divide(error[1:], error[:-1]), 2, rtol=0.05)


def test_rigid_derivatives_are_those_of_what_is_open_sticks_or_slides():
    """Of velocities by forces, after 50 ms: 50 ms/m if free, zero where contact takes them up."""
    contact, dt, steps = TimeStepping(Scene(BLOCK, friction=0.5)), 1e-3, 50
    q = np.array([[0, 0, 0.1], [0, 0, 0.1], [0, 0, 5.0]])
    qd = np.array([[0, 0, 0], [2.0, 0, 0], [0, 0, 0]])
    found = kt.final_state_derivatives(
        BLOCK, q, qd, np.zeros(3), steps=steps, dt=dt, contact=contact
    )
    T = steps * dt
    stick, slide, open_ = found.tau[:, 3:]
    np.testing.assert_allclose(stick, np.zeros((3, 3)), rtol=0, atol=1e-9)
    np.testing.assert_allclose(open_, T * np.eye(3), rtol=0, atol=1e-9)
    np.testing.assert_allclose(slide[:, 0], [T, 0, 0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(slide[:, 2], [0.5 * T, 0, 0], rtol=0, atol=1e-9)  # presses less
    assert 0 < slide[1, 1] < T  # turns the direction of sliding
    assert found.contact == "active set"


def test_redundant_contacts_leave_the_derivatives_of_motions_unique():
    """Of two feet of a body that does not turn either may carry it."""
    foot = BLOCK.geometry[0]
    other = replace(foot, placement=Plucker(np.eye(3), np.array([0.3, 0, 0])), name="other")
    sled = with_ground(particle(0.1).replace(geometry=(foot, other)))
    options = {"steps": 50, "dt": 1e-3}
    q, qd, tau = np.array([0, 0, 0.1]), np.array([2.0, 0.5, 0]), np.zeros(3)
    one, two = (
        kt.final_state_derivatives(
            model, q, qd, tau, contact=TimeStepping(Scene(model, friction=0.5)), **options
        )
        for model in (BLOCK, sled)
    )
    np.testing.assert_allclose(two.q, one.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(two.state, one.state, rtol=0, atol=1e-8)
    np.testing.assert_allclose(two.tau, one.tau, rtol=0, atol=1e-8)


def test_stops_and_dry_friction_of_joints_are_relaxed_likewise():
    model = kt.samples.pendulum()
    name = model.joint_names[0]
    model = model.replace(
        limits={name: kt.Limits((-0.5,), (0.5,))}, dynamics={name: kt.JointDynamics(friction=0.3)}
    )
    contact = TimeStepping(Scene(model, []), relaxation=0.05)
    options = {"steps": 60, "dt": 2e-3, "limits": "rigid", "friction": "exact"}
    q, qd = np.array([0.45]), np.array([0.8])
    found, weights = gradient(model, q, qd, contact, **options)

    def cost(d):
        ends = kt.rollout(model, q + d, qd, contact=contact, **options)
        return np.concatenate([ends.q[-1], ends.qd[-1]], axis=-1) @ weights

    motion = kt.rollout(model, q, qd, contact=contact, **options)
    assert 0.49 < motion.q.max() < 0.5
    np.testing.assert_allclose(found.q0, differences(cost, 1, 1e-5), rtol=1e-6)


LANDS = np.array([0, 0.1, 0.11]), np.array([0.5, 0.2, -0.6])
MU = np.array([0.3])


@pytest.mark.parametrize("relaxation", [0.05, 0.0])
def test_bounces_have_the_derivatives_of_the_steps_in_which_they_happen(relaxation):
    contact = TimeStepping(Scene(BLOCK, friction=0.3, restitution=0.6), relaxation=relaxation)
    options = {"steps": 12, "dt": 4e-3}
    found, _ = gradient(BLOCK, *LANDS, contact, **options)

    def cost(d):
        """The cost of the same steps: rollouts without derivatives bounce at the surface."""
        ends = kt.rollout(BLOCK, LANDS[0], LANDS[1] + d, contact=contact, **options)
        assert np.all(ends.qd[-1, ..., 2] > 0.1)
        start = np.broadcast_to(LANDS[0], (len(d), 3)), LANDS[1] + d
        return gradient(BLOCK, *start, contact, **options)[0].value

    expected, size = differences(cost, 3, 1e-4), np.abs(found.qd0).max()
    np.testing.assert_allclose(found.qd0, expected, rtol=0, atol=1e-6 * size)


def test_jax_has_the_same_gradients(request):
    """Those of PyTorch are in ``arrays/test_torch_kind.py``."""
    jax = pytest.importorskip("jax")
    contact = TimeStepping(Scene(BLOCK, friction=0.3), relaxation=0.05)
    options = {"steps": 8, "dt": 4e-3, "contact": contact}
    found, weights = gradient(BLOCK, *LANDS, arguments={"contact_friction": MU}, **options)

    def cost(q, qd, mu):
        ends = kt.rollout(BLOCK, q, qd, arguments={"contact_friction": mu}, **options)
        return jax.numpy.concatenate([ends.q[-1], ends.qd[-1]]) @ weights

    jax.config.update("jax_enable_x64", True)
    request.addfinalizer(lambda: jax.config.update("jax_enable_x64", False))
    gradients = jax.grad(cost, (0, 1, 2))(*(jax.numpy.array(x) for x in (*LANDS, MU)))
    np.testing.assert_allclose(gradients[1], found.qd0, rtol=0, atol=1e-10)
    by_friction = found.arguments["contact_friction"]
    np.testing.assert_allclose(gradients[2], by_friction, rtol=0, atol=1e-10)


def test_what_relaxed_contact_does_not_go_with_is_named():
    scene = Scene(BLOCK, friction=0.3)
    with pytest.raises(kt.errors.ModelError, match="relaxation must not be negative, got -1"):
        TimeStepping(scene, relaxation=-1)
    with pytest.raises(kt.errors.ModelError, match=r"simulate cannot be .*\(relaxation=\.\.\.\)"):
        kt.simulate(BLOCK, *LANDS, duration=0.1, contact=TimeStepping(scene, relaxation=0.1))
    few = TimeStepping(scene, relaxation=0.1, compiled_rows=2)
    with pytest.raises(kt.errors.ModelError, match="Without derivatives and relaxation"):
        kt.rollout(BLOCK, *LANDS, steps=1, contact=few)
    with pytest.raises(kt.errors.ModelError, match=r"more than 2 rows"):
        gradient(BLOCK, *LANDS, TimeStepping(scene, compiled_rows=2), steps=1)


def test_a_motion_that_fails_is_flagged_and_leaves_the_gradients_of_the_others():
    contact = TimeStepping(Scene(BALL, friction=0.3), relaxation=0.02, tolerance=1e-12)
    q, qd = np.tile([0, 0, 0.103, 1.0, 0, 0, 0], (3, 1)), np.zeros((3, 6))
    qd[1, 0] = 1e200
    with pytest.warns(kt.SimulationWarning, match=r"1 of 3 motions .* the first is \[1\]"):
        found, _ = gradient(BALL, q, qd, contact, steps=4, dt=4e-3)
    alone, _ = gradient(BALL, q[0], qd[0], contact, steps=4, dt=4e-3)
    assert found.failed.tolist() == [False, True, False]
    assert found.residuals.shape == (3, 10)
    assert found.residuals[[0, 2], 0].max() < 1e-10
    assert np.isnan(found.q0[1]).all()
    np.testing.assert_allclose(found.q0[[0, 2]], [alone.q0] * 2, rtol=1e-12)
    assert np.isnan(found.arguments["weights"][1]).all()


def test_worlds_with_numbers_of_their_own_are_not_relaxed():
    world = kt.World()
    world.add_ground()
    world.add(kt.model.geometry.Sphere(0.1), mass=1.0, name="ball", at=(0, 0, 0.1))
    worlds = world.batch(2, mass={"ball": [1.0, 2.0]})
    contact = TimeStepping(Scene(world.model), relaxation=0.01)
    with pytest.raises(kt.ModelError, match="own masses, sizes or friction: they are stepped"):
        kt.rollout(worlds, steps=2, contact=contact)
