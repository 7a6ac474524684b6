"""Operational space: textbook formulas, redundant and singular robots, chosen coordinates."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import aligned_chain, conditioning, random_state
from support.textbook import STEP, Arm, assert_printed, two_link_arm

import kinetree as kt
from kinetree.algorithms import crba
from kinetree.algorithms import task_space as texts
from kinetree.samples import random_inertia

FRAMES = ("world", "body", "aligned")


@pytest.fixture(scope="module")
def arm():
    """Six joints: as many as the task has coordinates."""
    m = aligned_chain(np.random.default_rng(96))
    return m.replace(gravity=(1.0, -3.0, -9.0)), m.body_names[-1]


def condition_of(m, q, J):
    return np.linalg.cond(J) ** 2 * conditioning(m, q)


@pytest.mark.covers(
    "Lynch & Park 9.6", by=(kt.operational_space_dynamics, kt.task_space_inverse_dynamics)
)
@pytest.mark.parametrize("frame", FRAMES)
def test_square_jacobian_gives_the_formulas_of_the_textbook(frame, arm, rng):
    """Lynch & Park (9.91)–(9.99), and the printed (9.95) does not hold."""
    m, hand = arm
    q, qd, qdd = random_state(m, rng)
    J, Jd = kt.jacobian(m, q, hand, frame=frame), kt.jacobian_rate(m, q, qd, hand, frame=frame)
    H, b, J_inv = kt.mass_matrix(m, q), kt.bias_force(m, q, qd), np.linalg.inv(J)
    Lambda, mu, p = kt.operational_space_dynamics(m, q, qd, hand, frame=frame)
    cond = condition_of(m, q, J)
    eta = J_inv.T @ b - J_inv.T @ H @ J_inv @ Jd @ qd
    assert_close(Lambda, J_inv.T @ H @ J_inv, condition=cond)
    assert_close(mu + p, eta, condition=cond, scale=np.abs(Lambda).max() * 10)
    assert_close(p, J_inv.T @ kt.gravity_force(m, q), condition=cond)
    V, Vd = J @ qd, J @ qdd + Jd @ qd
    assert_close(J_inv @ Vd - J_inv @ Jd @ J_inv @ V, qdd, condition=cond)  # (9.94)
    tau = kt.inverse_dynamics(m, q, qd, qdd)
    F = Lambda @ Vd + mu + p
    assert_close(J.T @ F, tau, condition=cond, scale=np.abs(F).max() + np.abs(tau).max())
    options = {"frame": frame}
    assert_close(
        kt.task_space_inverse_dynamics(m, q, qd, Vd, hand, **options), tau, condition=cond,
        scale=np.abs(F).max(),
    )  # fmt: skip
    printed = H @ (J_inv @ Vd - J_inv @ Jd @ J_inv @ V) + J_inv.T @ b
    assert np.max(np.abs(printed - tau)) > 1e-3 * np.max(np.abs(tau))
    response = kt.task_space_forward_dynamics(m, q, qd, F, hand, **options)
    assert_close(response, Vd, condition=cond, scale=np.abs(Vd).max() + 10)
    Phi = kt.inverse_operational_space_inertia(m, q, hand, **options)
    assert_close(Phi, J @ np.linalg.inv(H) @ J.T, condition=cond)


@pytest.mark.covers("Lynch & Park 9.6", by=kt.operational_space_dynamics)
def test_reference_numbers_of_the_planar_arm():
    """The 2×2 task of the tip, in the axes of the base and for the acceleration of the point."""
    m = two_link_arm()
    task = {"frame": "aligned", "rows": ("x", "y")}
    Lambda, mu, p = kt.operational_space_dynamics(m, Arm.q, Arm.qd, "tip", **task)
    expected = [[5.08828805952496, -1.72850046781535], [-1.72850046781535, 1.73079827637807]]
    assert_printed(Lambda, expected, 13)
    assert_printed(mu + p, (-24.8623431121, 20.3216300697), 10)
    a = kt.acceleration(m, Arm.q, Arm.qd, Arm.qdd, "tip", kind="classical", frame="aligned")[3:5]
    assert_printed(Lambda @ a + mu + p, (-29.339195027, 23.9524293341), 9)
    tau = kt.task_space_inverse_dynamics(m, Arm.q, Arm.qd, a, "tip", **task)
    assert_close(tau, Arm.tau, condition=100)


@pytest.mark.covers("Lynch & Park 9.6", by=kt.task_space_forward_dynamics)
@pytest.mark.parametrize("frame", FRAMES)
def test_a_push_from_outside_accelerates_the_hand_by_the_same_equation(frame, arm, rng):
    """No joint forces; the force of the task now acts on the hand."""
    m, hand = arm
    q, qd, _ = random_state(m, rng)
    F = rng.standard_normal(6)
    push = np.linalg.solve(  # the same force in base coordinates has the same power
        kt.jacobian(m, q, hand, frame="world").T, kt.jacobian(m, q, hand, frame=frame).T @ F
    )
    qdd = kt.forward_dynamics(m, q, qd, np.zeros(m.nv), {hand: push})
    kind = "classical" if frame == "aligned" else "spatial"
    a = kt.acceleration(m, q, qd, qdd, hand, kind=kind, frame=frame)
    J = kt.jacobian(m, q, hand, frame=frame)
    response = kt.task_space_forward_dynamics(m, q, qd, F, hand, frame=frame)
    cond = condition_of(m, q, J)
    assert_close(response, a, condition=cond, scale=np.abs(qdd).max() + 10)
    Lambda, mu, p = kt.operational_space_dynamics(m, q, qd, hand, frame=frame)
    assert_close(np.linalg.solve(Lambda, F - mu - p), a, condition=cond**2, scale=10)


# --- redundant robots ----------------------------------------------------------------------------


@pytest.mark.covers(
    "Lynch & Park 9.6", by=(kt.dynamically_consistent_inverse, kt.null_space_projector)
)
@pytest.mark.parametrize("rows", [None, "linear", ("rz", "x")])
def test_redundant_robot(rows, rng):
    m = kt.samples.panda()
    q, qd, tau_0 = random_state(m, rng)
    where = {"frame": "aligned", "rows": rows, "point": np.array([0.1, 0.0, 0.2])}
    picked = list(texts.task_rows(rows))
    J = kt.jacobian(m, q, "tool", frame="aligned", point=where["point"])[picked]
    Jd = kt.jacobian_rate(m, q, qd, "tool", frame="aligned", point=where["point"])[picked]
    H, cond = kt.mass_matrix(m, q), condition_of(m, q, J)
    J_bar = kt.dynamically_consistent_inverse(m, q, "tool", **where)
    N = kt.null_space_projector(m, q, "tool", **where)
    assert_close(J @ J_bar, np.eye(len(J)), condition=cond)
    assert_close(J @ N, 0 * J, condition=cond, scale=1)
    assert_close(N @ N, N, condition=cond, scale=1 + np.abs(N).max())
    assert_close(J_bar.T @ H @ N, 0 * J, condition=cond, scale=np.abs(H).max())  # H-orthogonal
    # the inverse with least kinetic energy
    V = J @ qd
    least, other = J_bar @ V, np.linalg.pinv(J) @ V
    assert_close(J @ other, V, condition=cond)
    assert least @ H @ least <= other @ H @ other * (1 + 1e-12)
    # null-space forces do not accelerate the task, task forces give the requested acceleration
    a = rng.standard_normal(len(J))
    tau = kt.task_space_inverse_dynamics(m, q, qd, a, "tool", **where) + N.T @ tau_0
    qdd = kt.forward_dynamics(m, q, qd, tau)
    assert_close(J @ qdd + Jd @ qd, a, condition=cond, scale=np.abs(qdd).max() + 10)


# --- singular configurations ---------------------------------------------------------------------


def wrist(rng):
    """Axes 4 and 6 in line at ``q[4] = 0``."""
    builder = kt.ModelBuilder("wrist")
    for i, (axis, z) in enumerate(zip("zyyzyz", (0.4, 0.3, 0.3, 0.2, 0.2, 0.1), strict=True)):
        on = f"link{i - 1}" if i else None
        inertia = random_inertia(rng)
        builder.body(f"link{i}", on=on, joint=kt.Revolute(axis), at=(0, 0, z), inertia=inertia)
    return builder.build(), np.array([0.3, -0.4, 0.9, 0.7, 0.0, -0.2])


def test_a_singular_task_raises_an_error_that_names_the_remedies(rng):
    m, q = wrist(rng)
    message = "of 'link5' does not exist.*6 rows but rank 5.*rows=.*damping=.*task_freedom"
    with pytest.raises(kt.SingularError, match=message):
        kt.operational_space_inertia(m, q, "link5")
    with pytest.raises(kt.SingularError, match="frame='aligned' takes the origin of the frame"):
        kt.operational_space_inertia(m, q, "link5")
    moved = q + 0.5 * np.eye(6)[4]
    with pytest.raises(kt.SingularError, match=r"sample \(1,\)"):
        kt.operational_space_inertia(m, np.stack([moved, q]), "link5")
    assert kt.operational_space_inertia(m, q, "link5", rows="linear").shape == (3, 3)
    V = kt.task_space_forward_dynamics(m, q, 0 * q, np.ones(6), "link5")  # no inverse needed
    assert np.isfinite(V).all()


def test_a_task_that_no_configuration_allows_is_rejected_when_it_is_compiled():
    m = two_link_arm()
    task = {"frame": "aligned", "rows": "linear"}
    with pytest.raises(kt.SingularError, match="3 rows but rank 2"):
        kt.operational_space_inertia(m, Arm.q, "tip", **task)

    @kt.kernel
    def inside(m, q):
        return kt.operational_space_inertia(m, q, "tip", **task)

    with pytest.raises(kt.SingularError, match=r"in any configuration.*3 rows but rank 2"):
        inside(m, Arm.q)
    damped = kt.operational_space_inertia(m, Arm.q, "tip", **task, damping=0.01)
    assert_close(damped[2, 2], 100.0)


def test_freedom_tells_what_is_blocked(rng):
    m, q = wrist(rng)
    freedom = kt.task_freedom(m, q, "link5", frame="aligned")
    J = kt.jacobian(m, q, "link5", frame="aligned")
    assert freedom.rank == 5
    assert freedom.condition == np.inf
    assert_close(freedom.blocked.T @ J, np.zeros((1, 6)), scale=1)
    Phi = kt.inverse_operational_space_inertia(m, q, "link5", frame="aligned")
    P = freedom.free @ freedom.free.T
    cond = np.linalg.cond(freedom.free.T @ Phi @ freedom.free)
    assert_close(freedom.inertia @ Phi, P, condition=cond)
    moved = q + 0.5 * np.eye(6)[4]
    freedom = kt.task_freedom(m, moved, "link5")
    Lambda = kt.operational_space_inertia(m, moved, "link5")
    assert freedom.rank == 6
    assert freedom.blocked.shape == (6, 0)
    assert_close(freedom.inertia, Lambda, condition=freedom.condition**2)
    still = kt.task_freedom(kt.Model(), np.zeros(0), "base")
    assert still.rank == 0
    assert np.all(still.inertia == 0)


@pytest.mark.covers("Lynch & Park 9.6", by=kt.operational_space_inertia)
def test_damping_bounds_the_inertia_and_vanishes_with_its_size(rng):
    m, q = wrist(rng)
    d = 1e-3
    Lambda = kt.operational_space_inertia(m, q, "link5", damping=d)
    Phi = kt.inverse_operational_space_inertia(m, q, "link5")
    damped = Phi + d * np.eye(6)
    assert_close(Lambda @ damped, np.eye(6), condition=np.linalg.cond(damped))
    assert np.linalg.eigvalsh(Lambda).max() <= 1 / d * (1 + 1e-9)
    moved = np.stack([q + x * np.eye(6)[4] for x in (0.5, 0.9)])
    exact = kt.operational_space_inertia(m, moved, "link5")
    nearly = kt.operational_space_inertia(m, moved, "link5", damping=np.array([1e-9, 1e-10]))
    assert nearly.shape == (2, 6, 6)
    assert np.max(np.abs(nearly - exact)) < 1e-5 * np.max(np.abs(exact)) ** 2
    tau = kt.task_space_inverse_dynamics(m, q, 0 * q, np.ones(6), "link5", damping=d)
    assert np.isfinite(tau).all()


# --- numbers and messages ------------------------------------------------------------------------


def test_any_numbers_batches_and_precision(arm, rng):
    m, hand = arm
    q, qd, a = random_state(m, rng)
    function = kt.task_space_inverse_dynamics
    derivative = function(m, q + 1j * STEP * qd, qd, a, hand).imag / STEP
    exact = kt.differentiate(function, wrt="q")(m, q, qd, a, hand) @ qd
    J = kt.jacobian(m, q, hand, frame="body")
    assert_close(derivative, exact, condition=condition_of(m, q, J) ** 2)
    one = function(m, q, qd, a, hand)
    batch = function(m, np.tile(q, (2, 3, 1)), qd, a, hand)
    assert batch.shape == (2, 3, m.nv)
    assert_close(batch[1, 2], one, ulps=0)
    single = function(*(m, *(x.astype(np.float32) for x in (q, qd, a)), hand))
    assert single.dtype == np.float32


def test_messages(arm):
    m, hand = arm
    q = m.neutral()
    with pytest.raises(kt.UnknownNameError, match="rows must be 'linear', 'angular', or a tuple"):
        kt.operational_space_inertia(m, q, hand, rows=(3, 4, 5))
    with pytest.raises(kt.UnknownNameError, match="different names"):
        kt.operational_space_inertia(m, q, hand, rows=("x", "x"))
    with pytest.raises(kt.UnknownNameError, match="frame must be 'world', 'body' or 'aligned'"):
        kt.operational_space_inertia(m, q, hand, frame="tool")
    with pytest.raises(kt.ShapeError, match=r"acceleration must have one number .*\(..., 3\)"):
        kt.task_space_inverse_dynamics(m, q, q, q, hand, rows="linear")
    with pytest.raises(kt.ShapeError, match="damping must be positive, got 0"):
        kt.operational_space_inertia(m, q, hand, damping=0.0)
    with pytest.raises(kt.ShapeError, match="task_freedom takes one configuration"):
        kt.task_freedom(m, np.zeros((2, 6)), hand)

    @kt.kernel
    def inside(m, q):
        return kt.task_freedom(m, q, hand).inertia

    with pytest.raises(kt.errors.TraceError, match="decides about a rank on the CPU, in Python"):
        inside(m, q)


# --- loops ---------------------------------------------------------------------------------------


def test_loops_block_what_they_forbid():
    """The coupler of a four-bar has one freedom, and the inertia that its crank feels."""
    m = kt.samples.four_bar()
    q, coupler = kt.loops.assemble(m), m.body_names[2]
    freedom = kt.task_freedom(m, q, coupler, frame="aligned")
    assert freedom.rank == 1
    assert freedom.condition == np.inf
    assert freedom.blocked.shape == (6, 5)
    K = kt.loops.constraint(m, q, np.zeros(m.nv)).K
    G = np.linalg.svd(K)[2][-1]  # the only motion
    direction = kt.jacobian(m, q, coupler, frame="aligned") @ G
    along = direction / np.linalg.norm(direction)
    assert_close(abs(freedom.free[:, 0] @ along), 1.0, condition=1e3)
    inertia = G @ crba.joint_space_inertia(m, q) @ G / (direction @ direction)
    assert_close(freedom.inertia, inertia * np.outer(along, along), condition=1e3)


def test_a_task_of_a_mechanism_with_loops_needs_it_closed():
    m = kt.samples.four_bar()
    with pytest.raises(kt.ShapeError, match="q does not close loop"):
        kt.task_freedom(m, kt.loops.assemble(m) + 0.3, m.body_names[2])


def test_damping_is_checked_on_every_call():
    """Also on those that find their kernel."""
    m = kt.samples.panda()
    q = m.neutral()
    kt.operational_space_inertia(m, q, "tool", damping=0.1)
    for bad in (-1.0, 0.0, np.nan):
        with pytest.raises(kt.ShapeError, match="damping must be"):
            kt.operational_space_inertia(m, q, "tool", damping=bad)


def test_another_point_is_suggested_only_where_there_is_one():
    m = two_link_arm()
    for task, suggested in (
        ({"frame": "aligned"}, False),
        ({"frame": "world", "rows": "angular"}, False),
        ({"frame": "world", "rows": "linear"}, True),
    ):
        with pytest.raises(kt.SingularError, match="does not exist") as raised:
            kt.operational_space_inertia(m, Arm.q, "tip", **task)
        assert ("takes the origin of the frame" in str(raised.value)) == suggested
