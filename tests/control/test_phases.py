"""Motions with schedules of contacts against equations of motion, loops, and differences."""

from types import SimpleNamespace

import numpy as np
import pytest

import kinetree as kt
from kinetree.control import Contact, Phase, QuadraticCost, Schedule, gait, optimize, trot
from kinetree.control.mpc import _are_wrong
from kinetree.control.newton.derivatives import derive
from kinetree.control.newton.making import batch_of_problem, work_of
from kinetree.control.newton.records import COST
from kinetree.control.newton.values import evaluate, take_steps
from kinetree.control.phases import timetable
from kinetree.control.problem import TrajectoryProblem
from kinetree.control.shooting import Shooting
from kinetree.control.starts import as_guess
from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.simulation.rollouts.rollout import run_of

FEET = ("front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot")
FREE = {"effort_limits": None, "position_limits": None, "velocity_limits": None}
SOLE = [[0.1, 0.05, 0.0], [0.1, -0.05, 0.0], [-0.1, 0.05, 0.0], [-0.1, -0.05, 0.0]]
STAND = np.array([0.45, -0.4])


@pytest.fixture(scope="module")
def quadruped():
    return kt.samples.quadruped()


def hop(model, start=STAND, **more):
    """Stand, fly and stand again."""
    phases = Schedule([Phase(0.3, ["leg"]), Phase(0.3), Phase(0.3, ["leg"])], ground=0.05)
    given = {
        "dt": 0.02, "phases": phases, "actuated": ["leg_joint"],
        "running": QuadraticCost(effort=1e-4, velocity=1e-3),
        "terminal": QuadraticCost(q=STAND, position=100.0, velocity=10.0),
    }  # fmt: skip
    return optimize(model, start, **{**given, **more})


# --- Schedules ---------------------------------------------------------------------------------


def test_steps_belong_to_the_phase_in_their_middle():
    schedule = Schedule([Phase(0.1, ["a", "b"]), Phase(0.2, ["a"]), Phase(0.1, ["a", "b"])])
    assert schedule.duration == pytest.approx(0.4)
    assert schedule.closed(0.05) == ("a", "b")
    assert schedule.closed(0.15) == ("a",)
    assert schedule.closed(9.0) == ("a", "b")
    found = timetable(schedule, 0.05 * np.arange(11))
    assert found.active[:, 0].all()
    assert list(found.active[:, 1]) == [1, 1, 0, 0, 0, 0, 1, 1, 1, 1]
    assert list(np.argwhere(found.landing)[0]) == [6, 1]
    assert found.landing.sum() == 1


def test_feet_follow_a_path_from_ground_to_ground():
    phases = [Phase(0.1, ["a"]), Phase(0.2, lift=0.08), Phase(0.1, ["a"])]
    found = timetable(
        Schedule(phases, ground=0.02, swing_weight=5.0, landing_weight=7.0), 0.05 * np.arange(9)
    )
    np.testing.assert_allclose(found.goal[2:7, 0, 2], [0.0, 0.06, 0.1, 0.06, 0.02])
    np.testing.assert_allclose(found.weight[:, 0, 2], [0, 0, 0, 5, 5, 5, 7, 0, 0])
    assert not found.weight[:, 0, :2].any()
    target = Schedule([phases[0], Phase(0.2, targets={"a": [1.0, 2.0, 3.0]}), phases[2]])
    np.testing.assert_array_equal(timetable(target, 0.05 * np.arange(9)).goal[6, 0], [1, 2, 3])


def test_gaits_repeat_and_can_be_entered_at_any_time():
    walk = trot(FEET, swing=0.2, stand=0.05)
    period = 0.5
    assert set(walk.closed(0.1)) == {FEET[1], FEET[2]}
    assert set(walk.closed(0.4)) == {FEET[0], FEET[3]}
    for t in (0.1, 0.21, 0.4):
        assert walk.closed(t) == walk.closed(t + 7 * period)
    times = 0.05 * np.arange(11)
    now, later = timetable(walk, times + 2 * period), timetable(walk, times + 20 * period)
    for a, b in zip(now, later, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert timetable(walk, times + 0.25).landing[0].any()
    assert not timetable(walk, times).landing[0].any()
    assert gait([["l"], ["r"]], steps=3, swing=0.2, stand=0.1).duration == pytest.approx(1.1)


def test_times_that_have_no_phase_are_refused():
    walk = trot(FEET, swing=0.2, stand=0.05)
    assert walk.closed(-7.0) == walk.closed(0.0)
    with pytest.raises(ShapeError, match="t of a schedule must be a time in seconds, got nan"):
        walk.closed(np.nan)
    with pytest.raises(ShapeError, match="are too late for phases that repeat"):
        walk.closed(1e300)


# --- Steps -------------------------------------------------------------------------------------


def shot(model, q0, phases, steps, actuated, dt=0.01):
    """A batch and a worker, whose steps and derivatives can be computed for any knots."""
    problem = TrajectoryProblem.of_arguments(
        model, steps=steps, dt=dt, phases=phases, actuated=actuated,
        running=QuadraticCost(effort=0.1), **FREE,
    )  # fmt: skip
    run = run_of(
        model, q0, None, costs=list(problem.terms.running), steps=steps, dt=dt,
        arguments=problem.arguments, function="rollout_gradient",
        tau=np.zeros((steps, model.nv)), **problem.options,
    )  # fmt: skip
    shooting = Shooting(model, problem.terms, problem.columns, "tau", run, problem.schedule)
    b = batch_of_problem(problem, shooting, 1, shooting.samples)
    return b, work_of(shooting, b)


def put(b, knots, q, qd, u):
    for x, own in ((q, knots.q), (qd, knots.qd), (u, knots.u)):
        own[:] = np.ravel(x)
    knots.held.reshape(b.steps, b.nf)[:, b.columns] = u[:-1]


def ends(b, w, q, qd, u):
    """Ends of steps and cones."""
    put(b, w.tried, q, qd, u)
    take_steps(b, w, 0, b.steps)
    evaluate(b, w)
    T, k = b.steps, w.tried
    return [x.reshape(T, -1).copy() for x in (k.q_after, k.v_after, k.path)] + [k.sums[COST]]


def with_positions(b, w):
    """Derivatives of steps: those of velocities, and of positions that follow from them."""
    nv, m, T, c = b.nv, b.m, b.steps, b.contacts
    F = w.F.reshape(T, b.n, b.size).copy()
    A, B = np.tile(np.eye(nv), (2, T, 1, 1))
    for i, (first, width) in enumerate(zip(c.turn, c.width, strict=True)):
        at = slice(first, first + width)
        for x, own in ((A, w.stance.turned), (B, w.stance.spun)):
            own = own.reshape(T, c.turns, 36)[:, i, : width**2]
            x[:, at, at] = own.reshape(T, width, width)
    F[:, :nv] = b.h * B @ F[:, nv:]
    F[:, :nv, m : m + nv] += A
    return F


def check_derivatives(model, q0, phases, steps, rng):
    """Derivatives of steps, cones and costs of feet are those of differences."""
    b, w = shot(model, q0, phases, steps, model.joint_names[1:])
    nv, m, T, e = b.nv, b.m, b.steps, 1e-6
    q = model.integrate(np.tile(q0, (T + 1, 1)), 0.3 * rng.normal(size=(T + 1, nv)))
    qd, u = rng.normal(size=(T + 1, nv)), 5 * rng.normal(size=(T + 1, m))
    put(b, w.now, q, qd, u)
    q_after, v_after, _, _ = ends(b, w, q, qd, u)
    w.now.q_after[:], w.now.v_after[:] = q_after.ravel(), v_after.ravel()
    derive(b, w)
    F, path = with_positions(b, w), w.path.reshape(T, b.nc, b.size).copy()
    slope = w.g.reshape(T + 1, b.size).sum(axis=0)
    for c in range(b.size):
        d = e * np.eye(b.size)[c]
        found = []
        for sign in (1, -1):
            x = sign * d
            moved = model.integrate(q, np.tile(x[m : m + nv], (T + 1, 1)))
            found.append(ends(b, w, moved, qd + x[m + nv :], u + x[:m]))
        (qa, va, ca, fa), (qb, vb, cb, fb) = found
        dq = model.difference(qb, qa)
        numeric = np.concatenate([dq, va - vb], axis=-1) / (2 * e)
        scale = max(1.0, np.abs(F).max())
        np.testing.assert_allclose(F[:, :, c], numeric, rtol=0, atol=1e-7 * scale)
        scale = max(1.0, np.abs(path).max())
        np.testing.assert_allclose(path[:, :, c], (ca - cb) / (2 * e), rtol=0, atol=1e-7 * scale)
        np.testing.assert_allclose(slope[c], (fa - fb) / (2 * e), rtol=1e-6, atol=1e-4)


def test_derivatives_of_points_impacts_and_flight(quadruped, rng):
    phases = [Phase(0.02, FEET), Phase(0.02, FEET[:1]), Phase(0.01), Phase(0.02, FEET)]
    check_derivatives(quadruped, quadruped.postures[0].q, phases, 8, rng)


def test_derivatives_of_soles(rng):
    robot = kt.samples.humanoid()
    left = Contact("left_sole", points=SOLE, friction=0.6, least=5.0)
    right = Contact("right_sole", points=SOLE)
    phases = [Phase(0.01, [left, right]), Phase(0.02, [left]), Phase(0.01, [right])]
    check_derivatives(robot, robot.postures[0].q, phases, 4, rng)


def test_accelerations_are_those_of_a_loop(rng):
    """A foot that stands is a ball joint with the ground, by ``forward_dynamics`` of loops."""

    def builder():
        b = kt.ModelBuilder("leg").body(
            "trunk", joint=kt.Free(), inertia=kt.shapes.box(0.3, 0.2, 0.1, mass=4.0)
        )
        b.body("thigh", on="trunk", joint=kt.Revolute("y"), at=[0.1, 0.0, -0.05],
               inertia=kt.shapes.box(0.05, 0.05, 0.3, mass=1.0, at=[0, 0, -0.15]))  # fmt: skip
        b.body("shank", on="thigh", joint=kt.Revolute("y"), at=[0.0, 0.0, -0.3],
               inertia=kt.shapes.box(0.04, 0.04, 0.3, mass=0.5, at=[0, 0, -0.15]))  # fmt: skip
        return b.frame("foot", on="shank", at=[0.0, 0.0, -0.3])

    tree = builder().build()
    q = tree.integrate(tree.neutral(), 0.5 * rng.normal(size=tree.nv))
    J = kt.jacobian(tree, q, "foot", frame="aligned")[3:]
    qd = rng.normal(size=tree.nv)
    qd -= np.linalg.pinv(J) @ (J @ qd)
    tau = np.concatenate([np.zeros(6), rng.normal(size=2)])
    place = kt.pose(tree, q, "foot")[:3, 3]
    closed = builder().loop(
        "stands", predecessor="base", successor="shank", joint=kt.Spherical(), at=place,
        successor_at=[0.0, 0.0, -0.3],
    ).build()  # fmt: skip
    qdd = kt.forward_dynamics(closed, q, qd, tau)
    b, w = shot(tree, q, [Phase(1.0, ["foot"])], 1, tree.joint_names[1:])
    _, v_after, _, _ = ends(b, w, *(np.tile(x, (2, 1)) for x in (q, qd, tau[6:])))
    np.testing.assert_allclose((v_after[0] - qd) / 0.01, qdd, rtol=1e-6, atol=1e-6)


# --- Motions -----------------------------------------------------------------------------------


def check_motion(model, found):
    """Every step satisfies the equations of motion, by quantities of the model alone."""
    names = list(found.forces)
    for k in range(len(found.tau)):
        q, v, dt = found.q[k], found.qd[k].copy(), found.dt
        J = {n: kt.jacobian(model, q, n, frame="aligned")[3:] for n in names}
        M = kt.mass_matrix(model, q)
        hit = sum(J[n].T @ found.impulses[n][k] for n in names)
        v = v + np.linalg.solve(M, hit)
        closed = found.schedule.closed(found.t[k] + dt / 2)
        for n in names:
            if n not in closed:
                assert not found.forces[n][k].any()
                assert not found.impulses[n][k].any()
            elif any(found.impulses[m][k].any() for m in names):
                np.testing.assert_allclose(J[n] @ v, 0.0, atol=1e-7)
        push = found.tau[k] + sum(J[n].T @ found.forces[n][k].sum(axis=0) for n in names)
        qdd = np.linalg.solve(M, push - kt.bias_force(model, q, v) + kt.passive_force(model, q, v))
        for n in closed:
            drift = kt.bias_acceleration(model, q, v, n, kind="classical", frame="aligned")[3:]
            np.testing.assert_allclose(J[n] @ (qdd + 20.0 * v) + drift, 0.0, atol=1e-5)
        np.testing.assert_allclose(found.qd[k + 1], v + dt * qdd, rtol=1e-8, atol=1e-7)
        end = model.integrate(q, dt * found.qd[k + 1])
        np.testing.assert_allclose(found.q[k + 1], end, rtol=0, atol=1e-9)
        for n in closed:
            f = found.forces[n][k].sum(axis=0)
            assert np.abs(f[:2]).sum() <= 0.7 * f[2] * np.sqrt(2) + 1e-3


def test_a_hop_obeys_the_equations_of_motion(hopper):
    found = hop(hopper)
    assert found.converged
    assert found.violation < 1e-5
    check_motion(hopper, found)
    foot = found.q.sum(axis=1)
    np.testing.assert_allclose(foot[:15], 0.05, atol=1e-9)
    assert abs(foot[30] - 0.05) < 1e-3  # where it lands
    assert foot[20:25].max() > 0.09  # and lifted
    assert found.impulses["leg"][30, 2] > 0
    assert np.all(found.impulses["leg"][:30] == 0)
    np.testing.assert_allclose(found.q[-1], STAND, atol=5e-3)
    motion = found.motion()
    np.testing.assert_array_equal(motion.q, found.q)
    np.testing.assert_allclose(motion.work[15], motion.energy[15] - motion.energy[0], rtol=0.05)


def test_a_trot_obeys_the_equations_of_motion(quadruped):
    start = quadruped.postures[0].q
    found = optimize(
        quadruped, start, dt=0.02, phases=trot(FEET, swing=0.16, stand=0.04, steps=2, ground=0.02),
        actuated=quadruped.joint_names[1:], tolerance=1e-4,
        running=QuadraticCost(
            q=start, position=np.r_[np.full(6, 100.0), np.full(12, 10.0)], velocity=1.0,
            effort=0.01,
        ),
    )  # fmt: skip
    assert found.converged
    check_motion(quadruped, found)
    height = np.array([kt.pose(quadruped, found.q, n)[:, 2, 3] for n in FEET])
    assert height[[0, 3]].max() > 0.05
    assert height.min() > 0.01
    limits = quadruped.effort_limits[6:]
    assert np.all(np.abs(found.tau[:, 6:]) <= np.where(limits > 0, limits, np.inf) + 1e-9)


def test_errors_are_those_with_feedback():
    """Without it a step of the humanoid is so unstable that errors never looked small."""
    m = kt.samples.humanoid()
    home = m.posture("home").q
    points = 5 * np.array(SOLE)
    soles = [Contact(f, points=points, friction=0.8) for f in ("left_sole", "right_sole")]
    ground = float(kt.pose(m, home, "left_sole")[2, 3])
    found = optimize(
        m, home, steps=40, dt=0.02, actuated=m.joint_names[1:], tolerance=1e-4, **FREE,
        phases=gait([[soles[0]], [soles[1]]], swing=0.3, stand=0.1, lift=0.04, ground=ground),
        running=QuadraticCost(
            q=home, position=np.r_[np.full(6, 100.0), np.full(m.nv - 6, 10.0)], velocity=0.1,
            effort=1e-2,
        ),
    )  # fmt: skip
    assert found.converged
    assert found.iterations < 60
    assert np.argmax(found.history <= 1.001 * found.cost) <= 12  # 21 with a slower barrier


def test_batches_are_the_same_one_by_one(hopper):
    starts = STAND + np.array([[0.0, 0.0], [0.05, -0.05], [-0.04, 0.04]])
    many = hop(hopper, starts)
    assert many.converged.all()
    assert many.forces["leg"].shape == (45, 3, 1, 3)
    for k, start in enumerate(starts):
        one = hop(hopper, start)
        np.testing.assert_array_equal(one.q, many.q[:, k])
        np.testing.assert_array_equal(one.forces["leg"], many.forces["leg"][:, k])


def test_targets_are_where_feet_touch_down(hopper):
    phases = [Phase(0.3, ["leg"]), Phase(0.3, targets={"leg": [0, 0, 0.2]}), Phase(0.3, ["leg"])]
    found = hop(hopper, phases=Schedule(phases, ground=0.05), terminal=None, goal=None)
    assert found.converged
    np.testing.assert_allclose(found.q[30].sum(), 0.2, atol=2e-3)
    np.testing.assert_allclose(found.q[30:].sum(axis=1), 0.2, atol=3e-3)


def test_predictive_control_keeps_the_beat(hopper):
    repeated = Schedule([Phase(0.3, ["leg"]), Phase(0.2)], repeat=0, ground=0.05)
    control = kt.control.MPC(
        hopper, steps=20, dt=0.02, phases=repeated, actuated=["leg_joint"],
        running=QuadraticCost(q=STAND, position=10.0, velocity=1e-2, effort=1e-4),
    )  # fmt: skip
    q, qd, heights = STAND, np.zeros(2), []
    for k in range(60):
        control(0.02 * k, q, qd)
        assert control.plan.converged
        q, qd = control.plan.q[1], control.plan.qd[1]
        heights.append(q.sum())
    for first in (16, 41):  # in the air, in the first and in the second turn
        assert max(heights[first : first + 8]) > 0.09
    np.testing.assert_allclose(heights[26:38], 0.05, atol=3e-3)


def test_predictions_are_as_far_from_the_plan_as_the_state(hopper):
    control = kt.control.MPC(
        hopper, steps=20, dt=0.02, phases=[Phase(1.0, ["leg"])], actuated=["leg_joint"],
        running=QuadraticCost(q=STAND, position=10.0, velocity=1e-2, effort=1e-4), delay=0.03,
    )  # fmt: skip
    control(0.0, STAND, np.zeros(2))
    control(0.02, control.plan.q[1] + [0.001, -0.001], control.plan.qd[1])
    coming, start = control.coming
    assert start == pytest.approx(0.05)
    plan = control.plan
    off = np.array([0.001, -0.001])
    np.testing.assert_allclose(coming.q[0], (plan.q[2] + plan.q[3]) / 2 + off, atol=1e-12)


# --- What is not supported -----------------------------------------------------------------------


def test_phases_say_what_is_wrong(hopper):
    with pytest.raises(ShapeError, match="positive time"):
        Phase(0.0, ["leg"])
    with pytest.raises(ShapeError, match="list of names"):
        Phase(0.1, "leg")
    with pytest.raises(ShapeError, match="closed in this phase"):
        Phase(0.1, ["leg"], targets={"leg": [0, 0, 0]})
    with pytest.raises(ShapeError, match="a list of phases"):
        Schedule([])
    with pytest.raises(ShapeError, match="number of a phase"):
        Schedule([Phase(0.1)], repeat=1)
    with pytest.raises(UnknownNameError, match="'toe' is not a contact"):
        Schedule([Phase(0.1, ["leg"])], ground={"toe": 0.0})
    with pytest.raises(ShapeError, match="different contacts"):
        Schedule([Phase(0.1, [Contact("leg")]), Phase(0.1, [Contact("leg")])])
    with pytest.raises(ShapeError, match="four feet"):
        trot(["a", "b"])
    with pytest.raises(ShapeError, match="each of which is in one"):
        gait([["a"], ["a"]])
    with pytest.raises(UnknownNameError, match="no frame or body 'toe'"):
        hop(hopper, phases=[Phase(0.1, ["toe"])])
    with pytest.raises(ModelError, match="without any contact"):
        hop(hopper, phases=[Phase(0.1)])
    with pytest.raises(ModelError, match="semi_implicit_euler"):
        hop(hopper, integrator="rk4")
    with pytest.raises(ModelError, match="second_order=False"):
        hop(hopper, second_order=True)
    with pytest.raises(ModelError, match="leave out contact"):
        hop(hopper, contact=object())
    with pytest.raises(ModelError, match="along a line"):
        hop(hopper, phases=[Phase(0.1, [Contact("leg", points=SOLE[:2])])])
    chain = kt.samples.four_bar()
    with pytest.raises(ModelError, match="loops"):
        optimize(chain, chain.neutral(), dt=0.1, phases=[Phase(0.1, [chain.body_names[-1]])],
                 running=QuadraticCost(effort=1.0))  # fmt: skip
    with pytest.raises(TypeError, match=r"steps=\.\.\., or phases"):
        hop(hopper, phases=Schedule([Phase(0.1, ["leg"])], repeat=0))


def test_plans_with_slightly_violated_cones_are_followed():
    """Violations of cones are forces: small ones beside the weight of a robot are no reason."""
    force = {"foot": np.tile([0.0, 0.0, 80.0], (5, 1, 1))}
    given = {"converged": np.array(False), "gap": np.array(1e-6), "forces": force}
    for violation, wrong in ((0.1, False), (2.0, True)):
        assert _are_wrong(SimpleNamespace(**given, violation=np.array(violation))) == wrong
    given |= {"forces": None, "violation": np.array(0.1)}
    assert _are_wrong(SimpleNamespace(**given))


def test_few_iterations_from_a_plan_nearby_take_whole_steps(quadruped):
    """Friction cones bend: a line search along the merit function would go a few per cent."""
    m, rng = quadruped, np.random.default_rng(7)
    start, goal = m.posture("home").q, m.posture("home").q.copy()
    goal[0] += 0.1
    weights = np.r_[np.full(6, 100.0), np.full(m.nv - 6, 10.0)]
    given = {
        "steps": 24, "dt": 0.02, "actuated": m.joint_names[1:], "friction": None, **FREE,
        "phases": trot(FEET, swing=0.2, stand=0.04, lift=0.06, ground=0.02),
        "running": QuadraticCost(q=goal, position=weights, velocity=0.1, effort=1e-2),
    }  # fmt: skip
    guess = as_guess(optimize(m, start, tolerance=1e-5, **given))
    change = rng.uniform(-0.03, 0.03, (2, 4, m.nv))
    near = m.integrate(np.tile(start, (4, 1)), change[0]), change[1]
    costs = [
        optimize(m, *near, guess=guess, tolerance=1e-9, iterations=k, **given).cost for k in (3, 40)
    ]
    assert np.abs(costs[0] / costs[1] - 1).max() < 3e-4
