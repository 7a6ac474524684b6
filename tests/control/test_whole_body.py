"""Whole-body control: tasks, contacts and limits as a quadratic program."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import nnls

import kinetree as kt
from kinetree.control import (
    CenterOfMassTask,
    ComputedTorque,
    Contact,
    ForceTask,
    FrameTask,
    MomentumTask,
    OperationalSpaceControl,
    PostureTask,
    WholeBody,
    lexicographic,
)
from kinetree.errors import (
    InfeasibleControlError,
    LoopError,
    MissingPackageError,
    ModelError,
    ShapeError,
    UnknownNameError,
)
from kinetree.model import Coupling

FEET = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
ALIGNED = {"frame": "aligned"}
START = np.array([0.3, -0.6, 0.9, 0.2, 0.7, -0.1])
FREE = {"torque_limits": False, "joint_limits": False}


@pytest.fixture(scope="module")
def arm():
    return kt.samples.arm()


def stand(m, *, contacts=FEET, kp=100.0, **options):
    q = m.posture("home").q
    tasks = [
        FrameTask("trunk", kt.pose(m, q, "trunk"), kp=kp),
        PostureTask(q, kp=20.0, weight=1e-2),
    ]
    return WholeBody(m, tasks, contacts, **options)


def disturbed(m, rng, size=0.1):
    q = m.posture("home").q
    return m.integrate(q, size * rng.standard_normal(m.nv)), size * rng.standard_normal(m.nv)


def arms_of(m, q, contacts):
    """Jacobians of all points of contacts, (3 points, nv)."""
    return np.concatenate(
        [kt.jacobian(m, q, c.frame, point=p, **ALIGNED)[3:] for c in contacts for p in c.points]
    )


# --- the equations of motion -------------------------------------------------------------------


def test_motors_and_contacts_produce_the_accelerations(dog, rng):
    """Forward dynamics under what the controller returns: contacts stay, forces balance."""
    control = stand(dog)
    q, qd = disturbed(dog, rng)
    found = control.solve(0.0, q, qd)
    assert np.all(found.tau[:6] == 0)
    forces = np.concatenate([found.forces[foot] for foot in FEET]).reshape(-1)
    J = arms_of(dog, q, control.contacts.values())
    qdd = kt.forward_dynamics(dog, q, qd, found.tau + forces @ J)
    assert np.abs(qdd - found.qdd).max() < 1e-8 * np.abs(qdd).max()
    for foot in FEET:
        a = kt.acceleration(dog, q, qd, qdd, foot, kind="classical", **ALIGNED)
        v = kt.velocity(dog, q, qd, foot, **ALIGNED)
        assert np.abs(a[3:] + 20.0 * v[3:]).max() < 1e-8 * np.abs(qdd).max()


@pytest.mark.parametrize("bend", [(), (0.3,)], ids=["constant ratios", "ratios that change"])
def test_joints_that_follow_others_do_their_part(dog, rng, bend):
    """Two knees lead two others, one of them with another ratio and an offset."""
    number = {name: i for i, name in enumerate(dog.joint_names, 1)}
    knees = [
        number[f"{end}_{side}_shank_joint"]
        for end in ("front", "rear")
        for side in ("left", "right")
    ]
    gears = [
        Coupling("left", knees[2], knees[0], (0.1, 0.8, *bend)),
        Coupling("right", knees[3], knees[1], (0.0, -1.5)),
    ]
    m = dog.replace(couplings=gears, actuators=())
    q = m.integrate(m.neutral(), 0.3 * rng.standard_normal(m.nv))
    qd = 0.1 * rng.standard_normal(m.nv)
    tasks = [FrameTask("trunk", kt.pose(m, q, "trunk")), PostureTask(m.neutral(), weight=1e-2)]
    control = WholeBody(m, tasks, FEET[:2], **FREE)
    found = control.solve(0.0, q, qd)
    np.testing.assert_allclose(
        control._quantities.arrays["H"].reshape(m.nv, m.nv), kt.mass_matrix(m, q), atol=1e-13
    )
    forces = np.concatenate([found.forces[foot] for foot in FEET[:2]]).reshape(-1)
    tau = found.tau + forces @ arms_of(m, q, control.contacts.values())
    qdd = kt.forward_dynamics(m, q, qd, tau)
    assert np.abs(qdd - found.qdd).max() < 1e-8 * np.abs(qdd).max()


def test_springs_of_joints_do_their_part(arm):
    sprung = arm.replace(dynamics={"upper_joint": kt.JointDynamics(stiffness=50.0, damping=0.5)})
    qd = 0.1 * np.ones(6)
    plain, eased = (
        WholeBody(m, [PostureTask(START)], **FREE)(0.0, START, qd) for m in (arm, sprung)
    )
    assert np.allclose(plain, eased + kt.passive_force(sprung, START, qd), rtol=1e-10)


@pytest.mark.parametrize("points", [1, 2, 4])
def test_a_contact_of_points_turns_as_they_allow(rng, points):
    m = kt.samples.humanoid()
    corners = [(0.1, 0.04, 0), (-0.1, 0.04, 0), (-0.1, -0.04, 0), (0.1, -0.04, 0)][:points]
    soles = [Contact(f"{side}_sole", corners) for side in ("left", "right")]
    q, qd = disturbed(m, rng, 0.05)
    com = CenterOfMassTask(kt.center_of_mass(m, q) + np.array([0.1, 0.2, 0.1]))
    found = WholeBody(m, [com, PostureTask(q, weight=1e-3)], soles).solve(0.0, q, 0 * qd)
    for c in soles:
        assert c.turns.shape == ({1: 0, 2: 2, 4: 3}[points], 3)
        a = kt.acceleration(m, q, 0 * qd, found.qdd, c.frame, kind="classical", **ALIGNED)
        moved = [a[3:] + np.cross(a[:3], kt.pose(m, q, c.frame)[:3, :3] @ p) for p in c.points]
        assert np.abs(moved).max() < 1e-8
        assert (np.abs(a[:3]).max() < 1e-8) == (points > 2)


# --- without contacts and limits: what other controllers do --------------------------------------


def test_a_posture_alone_is_computed_torque(arm, rng):
    q, qd = START + 0.2 * rng.standard_normal((3, 6)), rng.standard_normal((3, 6))
    one = WholeBody(arm, [PostureTask(START, kp=64.0)], acceleration_weight=1e-13, **FREE)
    other = ComputedTorque(arm, START, kp=64.0)
    tau = other(0.0, q, qd)
    assert np.abs(one(0.0, q, qd) - tau).max() < 1e-10 * np.abs(tau).max()


def test_a_frame_alone_is_operational_space_control(arm, rng):
    q, qd = START + 0.1 * rng.standard_normal(6), rng.standard_normal(6)
    T = kt.pose(arm, START, "tool")

    def moving(t):
        return T, np.arange(6) / 10, np.arange(6.0)

    one = WholeBody(arm, [FrameTask("tool", moving, kp=64.0)], acceleration_weight=1e-13, **FREE)
    tau = OperationalSpaceControl(arm, "tool", moving, kp=64.0)(0.0, q, qd)
    assert np.abs(one(0.0, q, qd) - tau).max() < 1e-8 * np.abs(tau).max()


@pytest.mark.parametrize("kind", ["pose", "position", "orientation"])
def test_a_posture_of_second_priority_moves_in_the_null_space(rng, kind):
    """``qdd = J⁺ a + (1 - J⁺ J) qdd_posture``, and the frame accelerates as if alone."""
    m = kt.samples.panda()
    home = m.posture("home").q
    q, qd = home + 0.1 * rng.standard_normal(9), 0.3 * rng.standard_normal(9)
    T = kt.pose(m, home, "tool")
    goal = {"pose": T, "position": T[:3, 3], "orientation": T[:3, :3]}[kind]
    frame = FrameTask("tool", goal, kp=50.0, task=kind)
    posture = PostureTask(home, kp=30.0, priority=2)
    found = WholeBody(m, [frame, posture], acceleration_weight=1e-12, **FREE).solve(0.0, q, qd)
    rows = {"pose": slice(0, 6), "position": slice(3, 6), "orientation": slice(0, 3)}[kind]
    J = kt.jacobian(m, q, "tool", **ALIGNED)[rows]
    bias = kt.bias_acceleration(m, q, qd, "tool", kind="classical", **ALIGNED)[rows]
    full = OperationalSpaceControl(m, "tool", T, kp=50.0)
    wanted = (
        (full.kp(full._error(kt.pose(m, q, "tool"), T)))[rows] - full.kd.value * (J @ qd) - bias
    )
    easy = 30.0 * (home - q) - 2 * np.sqrt(30.0) * qd
    expected = np.linalg.pinv(J) @ (wanted - J @ easy) + easy
    assert np.abs(found.qdd - expected).max() < 1e-7 * np.abs(expected).max()
    assert np.abs(found.errors[f"{kind} of tool"]).max() < 1e-7 * np.abs(wanted).max()


# --- optimality --------------------------------------------------------------------------------


def kkt_residual(m, q, qd, found, contacts, cost, most):
    """How far the gradient of the cost is from the cone of the active constraints.

    Written with public functions alone; ``cost`` is pairs of rows and right-hand sides.
    """
    nv, J = m.nv, arms_of(m, q, contacts)
    H, C = kt.mass_matrix(m, q), kt.bias_force(m, q, qd) - kt.passive_force(m, q, qd)
    f = np.concatenate([found.forces[c.frame] for c in contacts])
    x = np.concatenate([found.qdd, f.reshape(-1)])
    dynamics = np.hstack([H, -J.T])
    still = np.hstack([J, np.zeros((len(J), len(J)))])
    tau = dynamics @ x + C
    normals = [*dynamics[:6], *still, *-dynamics[:6], *-still]  # equations: either sign
    for k in range(6, nv):
        assert abs(tau[k]) <= most + 1e-7
        if abs(tau[k]) > most - 1e-6:
            normals.append(np.sign(tau[k]) * dynamics[k])
    for k, (force, c) in enumerate(zip(f, contacts, strict=True)):  # one point each, four sides
        n, mu = np.array([0.0, 0, 1]), c.friction / np.sqrt(2)
        for side in ([1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0], None):
            row = -n if side is None else np.array(side) - mu * n
            assert row @ force < 1e-7
            if row @ force > -1e-6:
                normals.append(
                    np.concatenate([np.zeros(nv + 3 * k), row, np.zeros(len(J) - 3 * k - 3)])
                )
    gradient = sum(A.T @ (A @ x - b) for A, b in cost)
    scale = [np.linalg.norm(n) for n in normals]
    _, left = nnls((np.array(normals) / np.array(scale)[:, None]).T, -gradient)
    return left / np.linalg.norm(gradient), len(normals) - 2 * (6 + len(J))


def test_the_result_meets_the_conditions_of_optimality(dog):
    """Karush, Kuhn and Tucker: no constraint is violated, and the gradient is in their cone."""
    home, active = dog.posture("home").q, 0
    contacts = [Contact(foot, friction=0.3) for foot in FEET]
    T = kt.pose(dog, home, "trunk")
    for seed in range(6):
        q, qd = disturbed(dog, np.random.default_rng(seed), 0.15)
        goal = T.copy()
        goal[:3, 3] += np.random.default_rng(seed).uniform(-0.15, 0.15, 3)
        tasks = [FrameTask("trunk", goal), PostureTask(home, kp=20.0, weight=1e-2)]
        control = WholeBody(
            dog, tasks, [Contact(f, friction=0.3, damping=0.0) for f in FEET],
            torque_limits=np.full(18, 14.0), joint_limits=False,
        )  # fmt: skip
        found = control.solve(0.0, q, qd)
        n, eye = 18 + 12, np.eye(30)
        J = kt.jacobian(dog, q, "trunk", **ALIGNED)
        bias = kt.bias_acceleration(dog, q, qd, "trunk", kind="classical", **ALIGNED)
        error = kt.control.pose_error(kt.pose(dog, q, "trunk"), goal)
        wanted = 100.0 * error - 20.0 * (J @ qd) - bias
        easy = 20.0 * dog.difference(q, home) - 2 * np.sqrt(20.0) * qd
        cost = [
            (np.hstack([J, np.zeros((6, 12))]), wanted),
            (0.1 * eye[6:18], 0.1 * easy[6:]),
            (1e-3 * eye, np.zeros(n)),
        ]
        left, count = kkt_residual(dog, q, qd, found, contacts, cost, 14.0)
        assert left < 1e-6
        active += count
    assert active > 10  # or nothing was tested


def test_cones_and_torque_limits_hold(dog, rng):
    normal = np.array([0.2, -0.1, 1.0]) / np.linalg.norm([0.2, -0.1, 1.0])
    contacts = [
        Contact(f, friction=0.4, normal=normal, sides=6, least=2.0, most=60.0) for f in FEET
    ]
    control = stand(dog, contacts=contacts, kp=900.0, torque_limits=np.full(18, 9.0))
    touched = 0
    for _ in range(10):
        found = control.solve(0.0, *disturbed(dog, rng))
        assert np.abs(found.tau).max() <= 9.0 + 1e-6
        touched += np.abs(found.tau).max() > 9.0 - 1e-6
        f = np.concatenate(list(found.forces.values()))
        up = f @ normal
        assert np.all(up > 2.0 - 1e-6)
        assert np.all(up < 60.0 + 1e-6)
        assert np.all(np.linalg.norm(f - np.outer(up, normal), axis=1) <= 0.4 * up + 1e-6)
    assert touched


def test_motors_set_torque_limits(dog):
    weak = dog.replace(actuators=[
        kt.Actuator(a.name, a.joint, gear=(2.0,), effort=(-3.0, 4.0)) for a in dog.actuators
    ])  # fmt: skip
    limits = stand(weak).torque_limits
    assert np.all(limits[0, 6:] == -6.0)
    assert np.all(limits[1, 6:] == 8.0)
    assert np.all(np.isinf(limits[:, :6]))


def test_joints_stay_within_their_limits(arm):
    """Told to go far beyond, joints stop at limits of position, and below those of speed."""
    high = arm.position_limits.upper
    control = WholeBody(arm, [PostureTask(high + 1.0, kp=400.0)], torque_limits=False)
    q, qd, dt = START.copy(), np.zeros(6), 2e-3
    fastest = 0.0
    for k in range(1500):
        qdd = control.solve(k * dt, q, qd).qdd
        qd = qd + dt * qdd
        q = q + dt * qd
        assert np.all(q <= high + 1e-9)
        assert np.all(np.abs(qd) <= arm.velocity_limits + 1e-9)
        fastest = np.maximum(fastest, np.abs(qd) / arm.velocity_limits)
    assert np.abs(q - high).max() < 1e-3
    assert np.max(fastest) > 0.95


# --- priorities --------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [np.inf, 12.0])
def test_lower_priorities_leave_higher_ones_alone(dog, rng, most):
    """Whatever the second and third want, the first is what it is alone; bounds active or not."""
    q, qd = disturbed(dog, rng)
    T = kt.pose(dog, dog.posture("home").q, "trunk")
    first = FrameTask("trunk", T[:3, :3], kp=200.0, task="orientation")
    options = {"contacts": [Contact(f) for f in FEET[:3]], "torque_limits": np.full(18, most)}
    alone = WholeBody(dog, [first], acceleration_weight=1e-9, force_weight=1e-9, **options)
    alone = alone.solve(0.0, q, qd).errors["orientation of trunk"]
    middle = None
    for _ in range(3):
        goal = kt.center_of_mass(dog, q) + 0.2 * rng.standard_normal(3)
        second = CenterOfMassTask(T[:3, 3], priority=2)
        third = FrameTask(FEET[3], goal, task="position", priority=3, kp=400.0)
        found = WholeBody(dog, [third, second, first], **options).solve(0.0, q, qd).errors
        assert np.abs(found["orientation of trunk"] - alone).max() < 1e-5
        if middle is not None:
            assert np.abs(found["center of mass"] - middle).max() < 1e-5
        middle = found["center of mass"]


def test_weights_decide_between_tasks_of_one_priority(arm):
    tool, aside = kt.pose(arm, START, "tool")[:3, 3], np.array([0.1, 0, 0])
    errors = []
    for weight in (1.0, 1e4):
        tasks = [
            FrameTask("tool", tool + aside, task="position", weight=weight, name="there"),
            FrameTask("tool", tool - aside, task="position", name="here"),
        ]
        found = WholeBody(arm, tasks, **FREE).solve(0.0, START, np.zeros(6)).errors
        errors.append(found)
    assert np.allclose(errors[0]["there"], -errors[0]["here"], atol=1e-4)
    assert np.abs(errors[1]["there"]).max() < 1e-3 * np.abs(errors[1]["here"]).max()


# --- the other tasks ---------------------------------------------------------------------------


def test_momentum_and_center_of_mass_change_as_prescribed(dog, rng):
    q, qd = disturbed(dog, rng, 0.05)
    goal = kt.center_of_mass(dog, q) + np.array([0.0, 0.01, 0.02])
    tasks = [CenterOfMassTask(goal, kp=50.0), MomentumTask(kp=5.0, priority=2)]
    contacts = [Contact(f, friction=5.0) for f in FEET]
    light = {"acceleration_weight": 1e-9, "force_weight": 1e-9, **FREE}
    found = WholeBody(dog, tasks, contacts, **light).solve(0.0, q, qd)
    a = kt.center_of_mass_acceleration(dog, q, qd, found.qdd)
    v = kt.center_of_mass_velocity(dog, q, qd)
    assert (
        np.abs(a - (50.0 * (goal - kt.center_of_mass(dog, q)) - 2 * np.sqrt(50) * v)).max() < 1e-4
    )
    rate = kt.centroidal_momentum_rate(dog, q, qd, found.qdd)[:3]
    assert np.abs(rate + 5.0 * kt.centroidal_momentum(dog, q, qd)[:3]).max() < 1e-4

    moving = MomentumTask(lambda t: (np.full(3, t), np.ones(3)), kp=np.diag([5.0, 6, 7]))
    found = WholeBody(dog, [moving], contacts, **light).solve(2.0, q, qd)
    rate = kt.centroidal_momentum_rate(dog, q, qd, found.qdd)[:3]
    wanted = 1 + np.array([5.0, 6, 7]) * (2.0 - kt.centroidal_momentum(dog, q, qd)[:3])
    assert np.abs(rate - wanted).max() < 1e-3


def test_a_force_is_exerted(dog):
    q = dog.posture("home").q
    push = np.array([3.0, 0.0, 40.0])
    control = stand(dog)
    tasks = [*control.tasks, ForceTask(FEET[0], lambda t: push)]
    found = WholeBody(dog, tasks, FEET).solve(0.0, q, np.zeros(18))
    assert np.abs(found.forces[FEET[0]][0] - push).max() < 1e-2
    up = WholeBody(dog, tasks, FEET, stance=lambda t: FEET[1:]).solve(0.0, q, np.zeros(18))
    assert f"force of {FEET[0]}" not in up.errors


def test_a_foot_that_is_lifted_carries_nothing_and_follows_its_reference(dog):
    q, foot = dog.posture("home").q, FEET[0]
    place = kt.pose(dog, q, foot)[:3, 3]

    def swing(t):
        return None if t < 1 else (place, np.zeros(3), np.array([0, 0, 5.0]))

    tasks = [*stand(dog).tasks, FrameTask(foot, swing, task="position", weight=100.0)]
    control = WholeBody(dog, tasks, FEET, stance=lambda t: FEET if t < 1 else FEET[1:])
    down, up = control.solve(0.0, q, np.zeros(18)), control.solve(1.0, q, np.zeros(18))
    assert set(down.forces) == set(FEET)
    assert set(up.forces) == set(FEET[1:])
    assert f"position of {foot}" not in down.errors
    a = kt.acceleration(dog, q, np.zeros(18), up.qdd, foot, kind="classical", **ALIGNED)
    assert np.abs(a[3:] - [0, 0, 5.0]).max() < 0.1
    weight = dog.total_mass * 9.81
    assert abs(sum(f[0, 2] for f in down.forces.values()) - weight) < 0.1 * weight


def test_a_reference_that_returns_nothing_leaves_its_task_out(dog):
    q, home = np.zeros(18), dog.posture("home").q

    def nothing(t):
        return None

    tasks = [MomentumTask(nothing), PostureTask(nothing), ForceTask(FEET[0], nothing)]
    found = WholeBody(dog, [stand(dog).tasks[0], *tasks], FEET).solve(0.0, home, q)
    assert list(found.errors) == ["pose of trunk"]
    with pytest.raises(ShapeError, match="momentum and its rate for a time, got ndarray at t = 0"):
        WholeBody(dog, [MomentumTask(lambda t: np.zeros(3))], FEET).solve(0.0, home, q)


def test_batches_are_solved_one_by_one(dog, rng):
    control = stand(dog)
    states = [disturbed(dog, rng) for _ in range(3)]
    q, qd = (np.stack(x) for x in zip(*states, strict=True))
    tau = control(0.0, q, qd)
    assert tau.shape == (3, 18)
    assert np.array_equal(tau, [control(0.0, *s) for s in states])


def test_dependent_contacts_share_their_load(dog):
    """Two frames of one foot: their rows repeat each other, and the answer is the same."""
    q = dog.posture("home").q
    plain = stand(dog).solve(0.0, q, np.zeros(18))
    twice = [*FEET, Contact("front_left_shank", [(0, 0, -0.2)])]
    found = stand(dog, contacts=twice).solve(0.0, q, np.zeros(18))
    assert np.abs(found.qdd - plain.qdd).max() < 1e-3
    pair = found.forces[FEET[0]], found.forces["front_left_shank"]
    assert np.abs(pair[0] - pair[1]).max() < 1e-6
    total = sum(f.sum(axis=0) for f in found.forces.values())
    assert np.abs(total - sum(f.sum(axis=0) for f in plain.forces.values())).max() < 1e-2


def test_what_gives_way_when_not_everything_can_be_met(dog):
    """Joint limits first, then contacts; cones, motors and the equations of motion never."""
    home = dog.posture("home").q
    contacts = [Contact(f, friction=0.3, damping=50.0) for f in FEET]
    free = stand(dog, contacts=contacts)
    fast = np.zeros(18)
    fast[7] = 40.0  # a joint that cannot slow down as its limits want
    hard = stand(dog, contacts=contacts, torque_limits=np.full(18, 10.0))
    assert free.solve(0.0, home, np.zeros(18)).relaxed == ()
    first = stand(dog, contacts=(), torque_limits=np.full(18, 0.5)).solve(0.0, home, fast)
    assert first.relaxed == ("joint limits",)
    pushed = np.zeros(18)
    pushed[3:6] = [0.0, 6.0, 4.0]
    pushed[6:] = 3.0
    found = hard.solve(0.0, home, pushed)
    assert found.relaxed == ("joint limits", "contacts")
    f = np.concatenate([found.forces[foot] for foot in FEET])
    assert np.all(np.linalg.norm(f[:, :2], axis=1) <= 0.3 * f[:, 2] + 1e-6)
    assert np.abs(found.tau).max() <= 10 + 1e-6
    J = arms_of(dog, home, contacts)
    qdd = kt.forward_dynamics(dog, home, pushed, found.tau + f.reshape(-1) @ J)
    assert np.abs(qdd - found.qdd).max() < 1e-7 * np.abs(qdd).max()
    with pytest.warns(kt.SimulationWarning, match="gives up joint limits and contacts, then and"):
        tau = hard(0.0, home, pushed)
    assert np.array_equal(tau, found.tau)
    with pytest.raises(InfeasibleControlError):
        stand(dog, contacts=contacts, torque_limits=np.full(18, 10.0), strict=True).solve(
            0.0, home, pushed
        )


# --- what is refused ---------------------------------------------------------------------------


def test_what_cannot_be_met_is_named(dog):
    q = dog.posture("home").q
    with pytest.raises(
        InfeasibleControlError, match=r"torque limit of joint '\w+_joint' by .* N·m"
    ) as e:
        stand(
            dog,
            contacts=[Contact(f, least=20.0) for f in FEET],
            torque_limits=np.full(18, 0.5),
            strict=True,
        ).solve(0.25, q, np.zeros(18))
    assert "t = 0.25" in str(e.value)
    assert all("torque limit" in c for c in e.value.constraints)


def test_contacts_that_contradict_each_other_are_named():
    m = kt.samples.double_pendulum()
    held = [Contact(name) for name in m.body_names[1:]]
    held += [Contact(f.name) for f in m.frames if f.name not in m.body_names][:1]
    control = WholeBody(m, [PostureTask(m.neutral())], held, strict=True, **FREE)
    with pytest.raises(InfeasibleControlError, match="cannot all stay where they are"):
        control.solve(0.0, np.array([0.3, 0.4]), np.array([3.0, -2.0]))


def test_controllers_do_not_wait_for_simulation():
    code = "import sys; import kinetree.control; print('kinetree.simulation' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
    assert {"MPC", "OptimizedMotion", "optimize"} <= set(dir(kt.control))


def test_loops_are_rejected():
    m = kt.samples.four_bar()
    with pytest.raises(LoopError, match="WholeBody"):
        WholeBody(m, [PostureTask(m.neutral())])


def test_without_daqp_errors_name_the_extra_that_tells_more(dog, monkeypatch):
    monkeypatch.setitem(sys.modules, "daqp", None)
    q = dog.posture("home").q
    weak = {"contacts": [Contact(f, least=20.0) for f in FEET], "torque_limits": np.full(18, 0.5)}
    assert stand(dog).solve(0.0, q, np.zeros(18)).relaxed == ()
    with pytest.raises(MissingPackageError, match=r'pip install "kinetree\[qp\]"'):
        stand(dog, strict=True, **weak).solve(0.0, q, np.zeros(18))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda m: WholeBody(m, [FrameTask("trunc", np.eye(4))]), UnknownNameError, "'trunk'"),
        (lambda m: WholeBody(m, [], ["front_left_fot"]), UnknownNameError, "front_left_foot"),
        (lambda m: WholeBody(m, [FrameTask("trunk", np.eye(4), task="poes")]), UnknownNameError,
         "did you mean 'pose'"),
        (lambda m: WholeBody(m, [MomentumTask(part="angle")]), UnknownNameError, "'angular'"),
        (lambda m: WholeBody(m, [], actuated=["front_left_hip"]), UnknownNameError, "_hip_joint"),
        (lambda m: WholeBody(m, [ForceTask("trunk", np.zeros(3))], FEET), UnknownNameError,
         "no contact 'trunk'"),
        (lambda m: WholeBody(m, ["posture"]), ShapeError, "FrameTask"),
        (lambda m: WholeBody(m, [], "trunk"), ShapeError, "must be a list"),
        (lambda m: WholeBody(m, [], [3]), ShapeError, "Contact objects"),
        (lambda m: WholeBody(m, [], ["trunk", "trunk"]), ShapeError, "two contacts 'trunk'"),
        (lambda m: WholeBody(m, [MomentumTask(), MomentumTask()]), ShapeError, "two tasks"),
        (lambda m: WholeBody(m, [PostureTask(m.neutral(), weight=0)]), ShapeError, "positive"),
        (lambda m: WholeBody(m, [PostureTask(m.neutral(), weight=[1, 2])]), ShapeError, r"\(12,\)"),
        (lambda m: WholeBody(m, [PostureTask(m.neutral(), priority=0)]), ShapeError, "1, 2"),
        (lambda m: WholeBody(m, [PostureTask(m.neutral(), kp=[1, 2])]), ShapeError, "kp of task"),
        (lambda m: WholeBody(m, [CenterOfMassTask([0, 0])]), ShapeError, r"\(\.\.\., 3\)"),
        (lambda m: WholeBody(m, [], force_weight=0), ShapeError, "force_weight"),
        (lambda m: WholeBody(m, [], torque_limits=[1, 2]), ShapeError, "torque_limits"),
        (lambda m: Contact("trunk", friction=0), ShapeError, "friction > 0"),
        (lambda m: Contact("trunk", points=[(0, 0)]), ShapeError, r"\(k, 3\)"),
        (lambda m: WholeBody(m, [], FEET, stance=lambda t: ["front_lef"]).solve(
            0.0, m.neutral(), np.zeros(18)), UnknownNameError, "front_left_foot"),
        (lambda m: stand(m).solve(0.0, m.neutral()[:3], np.zeros(18)), ShapeError, "nq"),
    ],
)  # fmt: skip
def test_mistakes_are_named(dog, make, error, message):
    with pytest.raises(error, match=message):
        make(dog)


def test_an_actuator_of_several_joints_is_named(dog):
    pulled = dog.replace(
        tendons=[kt.Tendon("cord", joints=(2, 3), coefficients=(1.0, 1.0))],
        actuators=[kt.Actuator("puller", tendon="cord")],
    )
    with pytest.raises(ModelError, match=r"'puller'.*actuated="):
        stand(pulled)


@pytest.mark.parametrize(
    ("rows", "size", "rank"), [(6, 9, 6), (9, 6, 4), (12, 12, 12), (5, 4, 1), (3, 4, 0), (0, 3, 0)]
)
def test_null_spaces_are_those_of_singular_values(rng, rows, size, rank):
    A = rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, size))
    Z = lexicographic.null_space(A)
    assert Z.shape == (size, size - rank)
    np.testing.assert_allclose(Z.T @ Z, np.eye(size - rank), atol=1e-14)
    np.testing.assert_allclose(A @ Z, np.zeros((rows, size - rank)), atol=1e-13)
    if rows and rank:  # the same numbers by Python
        work = np.zeros(size * size), np.zeros(size * size), np.zeros(max(rows, size))
        assert lexicographic._null_space.python(rows, size, A.T.ravel(), *work) == rank
        np.testing.assert_allclose(work[1][: Z.size].reshape(Z.shape), Z, atol=1e-13)
        _, s, Vt = np.linalg.svd(A)
        assert np.sum(s > 1e-9 * s[0]) == rank
        P = Vt[rank:].T @ Vt[rank:]
        np.testing.assert_allclose(Z @ Z.T, P, atol=1e-12)
