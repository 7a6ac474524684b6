"""User-defined constraints, with mechanisms whose motion is known — RBDA §3.4."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed.constraints import function_rows
from kinetree.errors import LoopError, ShapeError

G = 9.81
SOLVERS = ("null_space", "kkt", "range_space")


def compact(mass, com=(0.0, 0.0, 0.0), about_z=0.0):
    """A body with a mass centre and a moment of inertia about the z axis through it."""
    return kt.Inertia.from_mass_center(mass, np.array(com), np.diag([about_z, about_z, about_z]))


# --- a skate: the Chaplygin sleigh ---------------------------------------------------------------
# A blade at the origin of the body moves along the body's x axis alone; the mass centre is ``a`` in
# front of it. With ``J = I + m a²``, ``v' = a w²`` and ``J w' = -m a v w``, so that
#
#     v = √(2E/m) tanh(κ t)     w = √(2E/J) sech(κ t)     κ = a √(2 E m) / J

MASS, AHEAD, ABOUT = 2.0, 0.3, 0.4
J = ABOUT + MASS * AHEAD**2


def sleigh():
    def sideways(q, qd):
        return np.cos(q[2]) * qd[1] - np.sin(q[2]) * qd[0]

    return (
        kt.ModelBuilder("sleigh", gravity=(0, 0, 0))
        .body("x", joint=kt.Prismatic("x"))
        .body("y", on="x", joint=kt.Prismatic("y"))
        .body("sleigh", on="y", joint=kt.Revolute("z"), inertia=compact(MASS, (AHEAD, 0, 0), ABOUT))
        .constraint("blade", rate=sideways)
        .build()
    )


def sleigh_motion(t, energy=1.0):
    """Speed of the blade and turning rate."""
    kappa = AHEAD * np.sqrt(2 * energy * MASS) / J
    return (
        np.sqrt(2 * energy / MASS) * np.tanh(kappa * t),
        np.sqrt(2 * energy / J) / np.cosh(kappa * t),
    )


@pytest.mark.covers("RBDA 3.4", by=function_rows)
@pytest.mark.parametrize(
    ("constraints", "off"),
    [
        ("projection", 1e-9),
        ("baumgarte", 1e-9),
        ("none", 1e-9),
        ("generalized_alpha", 1e-4),
        ("ascher_chin", 1e-9),
        ("sequential_regularization", 1e-8),
    ],
)
def test_a_skate_moves_as_chaplygin_says(constraints, off):
    model = sleigh()
    t0, duration = -1.0, 2.0  # from gliding backwards to gliding forwards
    v, w = sleigh_motion(t0)
    motion = kt.simulate(
        model, [0, 0, 0.2], [v * np.cos(0.2), v * np.sin(0.2), w], duration=duration, dt=0.01,
        constraints=constraints, t0=t0,
    )  # fmt: skip
    v, w = sleigh_motion(motion.t)
    angle = motion.q[:, 2]
    along = np.cos(angle) * motion.qd[:, 0] + np.sin(angle) * motion.qd[:, 1]
    assert np.max(np.abs(along - v)) < off
    assert np.max(np.abs(motion.qd[:, 2] - w)) < off
    assert np.max(np.abs(motion.energy - 1.0)) < off
    across = np.cos(angle) * motion.qd[:, 1] - np.sin(angle) * motion.qd[:, 0]
    assert np.max(np.abs(across)) < (1e-13 if constraints == "projection" else off)


# --- a coin that rolls ---------------------------------------------------------------------------
# A thin disc whose axis makes the angle ``theta`` with the vertical can roll with ``theta`` and the
# rate of precession ``Omega`` constant: its centre then moves on a circle. With the rate ``w3`` of
# turning about its axis (Neimark and Fufaev, Dynamics of Nonholonomic Systems, ch. II):
#
#     (I3 + m r²) w3 Ω sin θ = I1 Ω² sin θ cos θ - m g r cos θ

RADIUS = 0.1


def coin():
    def axis_and_arm(model, q):
        """Axis of the coin, and from its centre to the lowest point of the rim."""
        n = kt.pose(model, q, "coin")[:3, 2]
        up = np.array([0, 0, 1]) - n[2] * n
        return n, -RADIUS * up / np.sqrt(1 - n[2] ** 2)

    def height(model, q):
        return kt.pose(model, q, "coin")[2, 3] + axis_and_arm(model, q)[1][2]

    def slip(model, q, qd):
        v = kt.velocity(model, q, qd, "coin", frame="aligned")
        return (v[3:] + np.cross(v[:3], axis_and_arm(model, q)[1]))[:2]

    inertia = kt.Inertia.from_mass_center(1.0, np.zeros(3), RADIUS**2 * np.diag([0.25, 0.25, 0.5]))
    return (
        kt.ModelBuilder("coin")
        .body("coin", joint=kt.Free(), inertia=inertia)
        .constraint("touch", position=height)
        .constraint("roll", rate=slip, rows=2)
        .build()
    )


@pytest.mark.covers("RBDA 3.4", by=function_rows)
def test_a_coin_rolls_in_a_circle():
    model = coin()
    theta, precession = 1.2, 4.0
    s, c = np.sin(theta), np.cos(theta)
    w3 = (0.25 * precession**2 * s * c - G / RADIUS * c) / (1.5 * precession * s)
    E = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])  # to the coin: its z axis is (s, 0, c)
    X = kt.Plucker(E, np.array([0, 0, RADIUS * s]))
    q = model.joint[1].coordinates(X)
    n, up = np.array([s, 0, c]), np.array([0, 0, 1.0])
    # rates about the axis and across it: the part of the precession that is not along the axis
    w = w3 * n + precession * (up - c * n)
    v = -np.cross(w, -RADIUS * (up - c * n) / s)
    qd = np.concatenate([E @ w, E @ v])
    rates = kt.loops.constraint(model, q, qd)
    assert_close(rates.error, np.zeros(3), scale=1)
    assert_close(rates.rate, np.zeros(3), scale=1)

    motion = kt.simulate(model, q, qd, duration=2.0, dt=0.005)
    poses = kt.pose(model, motion.q, "coin")
    assert np.max(np.abs(poses[:, 2, 3] - RADIUS * s)) < 1e-9
    assert np.max(np.abs(poses[:, 2, 2] - c)) < 1e-8
    turned = precession * motion.t
    axes = s * np.array([np.cos(turned), np.sin(turned)]).T
    assert np.max(np.abs(poses[:, :2, 2] - axes)) < 1e-7
    radius = v[1] / precession  # of the circle of the centre, about a point on the x axis
    path = radius * np.array([np.cos(turned) - 1, np.sin(turned)]).T
    assert np.max(np.abs(poses[:, :2, 3] - path)) < 1e-7
    assert np.max(np.abs(motion.energy / motion.energy[0] - 1)) < 1e-9
    assert motion.loop_error.max() < 1e-14


# --- a rope over pulleys -------------------------------------------------------------------------
# The end of a rope with a mass ``m1`` runs over a pulley that turns, down to a loose pulley that
# carries ``m2``, and up again to the ceiling: ``z1 + 2 z2`` and ``z1 - r turn`` stay what they are.

M1, M2, PULLEY, ROUND = 1.5, 2.0, 0.03, 0.2


def rope(length=0.0):
    def rest(q):
        z1, z2, turn = q
        return z1 + 2 * z2 - length, z1 - ROUND * turn

    return (
        kt.ModelBuilder("rope")
        .body("load", joint=kt.Prismatic("z"), inertia=compact(M1))
        .body("loose", joint=kt.Prismatic("z"), inertia=compact(M2))
        .body("pulley", joint=kt.Revolute("z"), inertia=compact(0.0, about_z=PULLEY))
        .constraint("rope", position=rest, rows=2)
        .build(strict=False)
    )


def rope_acceleration():
    """``(m1 + m2/4 + I/r²) a = -m1 g + m2 g / 2``, of the load."""
    return (-M1 + M2 / 2) * G / (M1 + M2 / 4 + PULLEY / ROUND**2)


@pytest.mark.covers("RBDA 3.4", by=function_rows)
@pytest.mark.filterwarnings("ignore::kinetree.errors.ModelWarning")
def test_a_rope_over_pulleys_accelerates_as_atwood_says(rng):
    model, a = rope(), rope_acceleration()
    q, qd = np.array([0.4, -0.2, 2.0]), np.array([1.0, -0.5, 5.0])
    exact = np.array([a, -a / 2, a / ROUND])
    assert_close(kt.forward_dynamics(model, q, qd, np.zeros(3)), exact, ulps=100)
    assert_close(kt.forward_dynamics(model, q, qd, np.zeros(3), method="implicit"), exact, ulps=1e3)
    for method in SOLVERS:
        found = kt.loops.solve(model, q, qd, np.zeros(3), method=method)
        assert_close(found.qdd, exact, ulps=1e3)
        # tension, and the force by which the rope turns the pulley
        assert_close(found.lam[0], -M2 * (exact[1] + G) / -2, ulps=1e3)
        assert_close(found.lam[1], -PULLEY * exact[2] / ROUND, ulps=1e3)
    tau = kt.inverse_dynamics(model, q, qd, exact)
    assert_close(tau, np.zeros(3), scale=30)
    motion = kt.simulate(model, q, qd, duration=0.5, dt=0.01)
    t = motion.t[:, None]
    assert_close(motion.q, q + qd * t + exact * t**2 / 2, ulps=1e4)


@pytest.mark.filterwarnings("error::kinetree.errors.MisalignmentWarning")
@pytest.mark.filterwarnings("ignore::kinetree.errors.ModelWarning")
@pytest.mark.parametrize("factor", [1e-7, 1e7])
def test_the_scale_of_a_function_is_free(factor):
    tree, (own,) = rope().spanning_tree, rope().constraints
    model = tree.with_constraint(
        "rope", position=lambda q: factor * np.array(own.position(q)), rows=2
    )
    q, qd = np.array([0.4, -0.2, 2.0]), np.array([1.0, -0.5, 5.0])
    a = rope_acceleration()
    exact = np.array([a, -a / 2, a / ROUND])
    assert_close(kt.forward_dynamics(model, q, qd, np.zeros(3)), exact, ulps=1e3)
    assert kt.loops.mobility(model, q).mobility == 1
    with pytest.raises(ShapeError, match="does not satisfy constraint 'rope': its position error"):
        kt.forward_dynamics(model, q + 0.1, qd, np.zeros(3))
    motion = kt.simulate(model, q, qd, duration=0.2, dt=0.01)
    assert motion.loop_error.max() < 1e-14 * factor
    assert_close(motion.qd[-1], qd + 0.2 * exact, ulps=1e4)


# --- a moving guide: a bead on a rod that turns --------------------------------------------------
# Without gravity a bead at rest on a rod that turns at the rate ``w`` flies out, r = r0 cosh(w t).

TURNING = 2.0


def bead():
    def off_the_rod(q, t):
        return q[0] * np.sin(TURNING * t) - q[1] * np.cos(TURNING * t)

    return (
        kt.ModelBuilder("bead", gravity=(0, 0, 0))
        .body("x", joint=kt.Prismatic("x"))
        .body("bead", on="x", joint=kt.Prismatic("y"), inertia=compact(1.0))
        .constraint("rod", position=off_the_rod)
        .build()
    )


def bead_state(t):
    """Position, velocity and acceleration."""
    w = TURNING
    r, rd = np.cosh(w * t), w * np.sinh(w * t)
    along = np.array([np.cos(w * t), np.sin(w * t)])
    across = np.array([-np.sin(w * t), np.cos(w * t)])
    return (x.T for x in (r * along, rd * along + r * w * across, 2 * rd * w * across))


@pytest.mark.covers("RBDA 3.4", by=function_rows)
@pytest.mark.parametrize(
    ("constraints", "off"),
    [
        ("projection", 1e-10),
        ("baumgarte", 1e-9),
        ("none", 1e-10),
        ("generalized_alpha", 1e-3),
        ("ascher_chin", 1e-10),
        ("sequential_regularization", 1e-8),
    ],
)
def test_a_bead_on_a_rod_that_turns_flies_out(constraints, off):
    t0 = 0.3
    q, qd, _ = bead_state(t0)
    motion = kt.simulate(bead(), q, qd, t0=t0, duration=0.7, dt=0.005, constraints=constraints)
    q, qd, _ = bead_state(motion.t)
    assert np.max(np.abs(motion.q - q)) < off
    assert np.max(np.abs(motion.qd - qd)) < 2 * off
    assert motion.loop_error.max() < (1e-14 if constraints == "projection" else off)
    if constraints == "projection":
        many = kt.rollout(bead(), [q[0]] * 3, [qd[0]] * 3, t0=t0, steps=70, dt=0.01)
        assert_close(np.asarray(many.q)[-1], [q[-1]] * 3, ulps=1e5)
    assert np.max(np.abs(motion.energy - motion.energy[0] - motion.work)) < 4 * off  # the rod works


@pytest.mark.covers("RBDA 3.4", by=function_rows)
def test_a_moving_guide_at_any_instant():
    model = bead()
    for t in (-0.4, 0.0, 0.9):
        q, qd, qdd = bead_state(t)
        now = model.at(t)
        c = kt.loops.constraint(now, q, qd)
        assert_close([*c.error, *c.rate], np.zeros(2), scale=10)
        assert_close(kt.forward_dynamics(now, q, qd, np.zeros(2)), qdd, ulps=1e3, scale=10)
        assert_close(kt.loops.solve(now, q, qd, np.zeros(2)).qdd, qdd, ulps=1e3, scale=10)
        batch = kt.forward_dynamics(now, np.array([q, q]), np.array([qd, qd]), np.zeros(2))
        assert_close(batch, [qdd, qdd], ulps=1e3, scale=10)
        single = kt.forward_dynamics(now, *(x.astype(np.float32) for x in (q, qd, 0 * qd)))
        assert single.dtype == np.float32
        found = kt.loops.project_velocity(now, q, np.zeros(2))
        assert_close(kt.loops.constraint(now, q, found).rate, [0.0], scale=10)
        closed = kt.loops.project_configuration(now, q + 0.05)
        assert abs(kt.loops.constraint(now, closed, qd).error[0]) < 1e-11
    assert model.at(0.3) != model.at(0.4)
    with pytest.raises(ShapeError, match=r"does not satisfy constraint 'rod' at t = 0\.5 s"):
        kt.forward_dynamics(model.at(0.5), q, qd, np.zeros(2))


# --- derivatives, compiled loops, and what else there is -----------------------------------------


def finite_difference(f, x, h=1e-6):
    return np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))]).T


def guided_pendulum():
    """A double pendulum whose tip is kept on a curve that moves, by a function of kinetree's."""

    def off_the_curve(model, q, t):
        x, _, z = kt.pose(model, q, "tip")[:3, 3]
        return x - 0.3 * np.sin(t) - 0.2 * z * z

    arm = kt.samples.double_pendulum()
    tip = kt.Frame("tip", 2, kt.Plucker(np.eye(3), np.array([0, 0, -0.7])))
    return arm.replace(frames=[tip]).with_constraint("curve", position=off_the_curve)


def guided_state(model, rng):
    q = kt.loops.assemble(model, rng.uniform(0.2, 0.8, 2))
    return q, kt.loops.project_velocity(model, q, rng.standard_normal(2)), rng.standard_normal(2)


def test_instants_are_inputs_of_kernels_and_have_derivatives():
    @kt.kernel
    def acceleration(model, q, qd, t):
        return kt.forward_dynamics(model.at(t), q, qd, 0 * qd)

    model, t, h = bead(), 0.3, 1e-6
    q, qd, qdd = bead_state(t)
    assert_close(acceleration(model, q, qd, t), qdd, ulps=1e3)
    found = kt.differentiate(acceleration, wrt="t")(model, q, qd, np.array(t))
    ends = [kt.forward_dynamics(model.at(t + s), q, qd, np.zeros(2)) for s in (h, -h)]
    assert_close(found, (ends[0] - ends[1]) / (2 * h), ulps=1, condition=1e7)


def test_rows_are_derivatives_of_the_functions(rng):
    model = guided_pendulum().at(0.4)
    q, qd, qdd = rng.standard_normal((3, 2))
    c = kt.loops.constraint(model, q, qd)

    def along(t):  # the motion with these rates
        now = model.at(0.4 + t)
        there = kt.loops.constraint(now, q + t * qd + t * t / 2 * qdd, qd + t * qdd)
        return np.array([there.error[0], there.rate[0]])

    h = 1e-5
    rates = (along(h) - along(-h)) / (2 * h)
    assert_close(rates, [c.rate[0], (c.K @ qdd - c.k)[0]], ulps=1, condition=1e7)
    (by_text,) = function_rows(model, q, qd)
    for one, other in zip(by_text, c, strict=True):
        assert_close(np.asarray(one, dtype=float), other, ulps=1e3)


def test_forward_dynamics_and_its_derivatives(rng):
    model = guided_pendulum().at(0.4)
    q, qd, tau = guided_state(model, rng)
    found = kt.forward_dynamics(model, q, qd, tau)
    for method in SOLVERS:
        assert_close(kt.loops.solve(model, q, qd, tau, method=method).qdd, found, ulps=1e4)
    by_tau = kt.differentiate(kt.forward_dynamics, wrt="tau")(model, q, qd, tau)
    difference = finite_difference(lambda x: kt.forward_dynamics(model, q, qd, x), tau, 1e-3)
    assert_close(by_tau, difference, ulps=1, condition=1e6)
    # along velocities that the constraint allows
    allowed = np.linalg.svd(kt.loops.constraint(model, q, qd).K)[2][1]
    by_qd = kt.differentiate(kt.forward_dynamics, wrt="qd")(model, q, qd, tau) @ allowed
    h = 1e-5
    ends = [kt.forward_dynamics(model, q, qd + s * h * allowed, tau) for s in (1, -1)]
    assert_close(by_qd, (ends[0] - ends[1]) / (2 * h), ulps=1, condition=1e7)
    mass = kt.differentiate(kt.forward_dynamics, wrt=f"mass:{model.body_names[2]}")
    name, I = model.body_names[2], model.inertia[2]
    heavier = [
        kt.forward_dynamics(model.replace(inertia={name: I * (1 + s * 1e-6)}), q, qd, tau)
        for s in (1, -1)
    ]
    expected = (heavier[0] - heavier[1]) / 2e-6 / I.mass
    assert_close(mass(model, q, qd, tau), expected, ulps=1, condition=1e7)


def test_linear_models_of_a_holonomic_constraint(rng):
    model = guided_pendulum().at(0.4)
    q, qd, tau = guided_state(model, rng)
    linear = kt.linearize(model, q, qd, tau)
    other = kt.loops.linearize_in_coordinates(
        model, q, qd, tau, independent=linear.coordinates, method="differences"
    )
    assert_close(linear.A, other.A, ulps=1, condition=1e9)
    assert_close(linear.B, other.B, ulps=1, condition=1e9)
    with pytest.raises(LoopError, match=r"'recursion' .* does not support constraint 'curve'"):
        kt.loops.linearize_in_coordinates(model, q, qd, tau, method="recursion")


def test_the_linear_model_of_a_skate_that_glides():
    """Turning decays at the rate ``m a v / J``; the other four modes neither grow nor decay."""
    model, v, angle = sleigh(), 1.5, 0.2
    qd = np.array([v * np.cos(angle), v * np.sin(angle), 0.0])
    linear = kt.linearize(model, [0.0, 0.0, angle], qd, np.zeros(3))
    assert linear.A.shape == (5, 5)
    assert linear.coordinates == ("x_joint", "y_joint", "sleigh_joint")
    assert len(linear.velocities) == 2
    modes = np.sort(linear.eigenvalues.real)
    assert_close(modes[0], -MASS * AHEAD * v / J, ulps=1e3)
    assert_close(modes[1:], np.zeros(4), scale=1, ulps=1e3)
    with pytest.raises(LoopError, match="'blade' of model 'sleigh' is nonholonomic"):
        kt.loops.linearize_in_coordinates(model, [0.0, 0.0, angle], qd, np.zeros(3))
    with pytest.raises(LoopError, match="coordinates and velocities are chosen apart"):
        kt.linearize(model, [0.0, 0.0, angle], qd, np.zeros(3), independent=["x_joint"])


def test_the_linear_model_of_a_coin_follows_its_motion(rng):
    """Derivatives of the accelerations along states that the constraints allow."""
    model = coin()
    q = kt.loops.assemble(model, model.integrate(model.neutral(), rng.uniform(0.5, 1.0, 6)))
    qd = kt.loops.project_velocity(model, q, rng.standard_normal(6))
    linear = kt.linearize(model, q, qd, np.zeros(6))
    n, fast = len(linear.coordinates), [_variables(model).index(v) for v in linear.velocities]
    assert (n, len(fast)) == (5, 3)

    def acceleration(dz, du):
        at = kt.loops.project_configuration(model, model.integrate(q, linear.G @ dz))
        missing = dz - linear.chosen.rows @ model.difference(q, at)
        at = kt.loops.project_configuration(model, model.integrate(at, linear.G @ missing))
        moving = _with_velocities(model, at, fast, qd[fast] + du)
        return kt.forward_dynamics(model, at, moving, np.zeros(6))[fast]

    h, columns = 1e-5, []
    for e in h * np.eye(n + 3):
        ends = [acceleration(s * e[:n], s * e[n:]) for s in (1, -1)]
        columns.append((ends[0] - ends[1]) / (2 * h))
    assert_close(linear.A[n:], np.array(columns).T, ulps=1, condition=1e9)


def _variables(model):
    joint = model.joint_names[0]
    return [f"{joint}[{k}]" for k in range(model.nv)]


def _with_velocities(model, q, fast, values):
    """Velocities that the constraints allow, with some of them given."""
    K = kt.loops.constraint(model, q, np.zeros(model.nv)).K
    rows = np.concatenate([K, np.eye(model.nv)[fast]])
    return np.linalg.solve(rows, np.concatenate([np.zeros(len(K)), values]))


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"rate": lambda qd: qd[0] + 0.1 * qd[0] ** 2}, "must be linear in qd"),
        (
            {"position": lambda q: q[0] ** 2, "rate": lambda q, qd: q[0] * qd[0]},
            "is not the time derivative of its position",
        ),
    ],
)
def test_functions_that_contradict_each_other_are_rejected_before_anything_is_solved(
    functions, message
):
    model = (
        kt.ModelBuilder("wheel")
        .body("wheel", joint=kt.Revolute("z"), inertia=kt.shapes.box(1, 1, 1, mass=1.0))
        .constraint("brake", **functions)
        .build()
    )
    zero = np.zeros(1)
    for call in (
        lambda: kt.forward_dynamics(model, zero, zero, zero),
        lambda: kt.simulate(model, zero, duration=0.01),
        lambda: kt.loops.solve(model, zero, zero, zero),
    ):
        with pytest.raises(kt.ShapeError, match=rf"the rate of constraint 'brake' {message}"):
            call()
