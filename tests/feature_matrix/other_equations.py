"""Equations that docstrings of loops, contact, control and functions of functions state."""

import numpy as np
import scipy.linalg
import sympy
from feature_matrix.equations import equation, in_matrix, notation
from feature_matrix.other_checks import Touch

import kinetree as kt

# --- loops ---------------------------------------------------------------------------------------


@equation("loops.constraint", "K qdd = k", "K qdd - k")
def _(at):
    found = kt.loops.constraint(at.model, at.q, at.qd)
    return found.K @ at.qdd, found.k, found.K


@equation("loops.dependencies", "c K = 0")
def _(at):
    K, scaling = kt.loops.constraint(at.model, at.q, at.qd).K, kt.loops.scaling(at.model)
    c = kt.loops.dependencies(K, scaling)
    return c @ scaling.apply(K), np.zeros((len(c), at.model.nv)), scaling.apply(K)


@equation("loops.project_velocity", "qd - W⁻¹ Kᵀ (K W⁻¹ Kᵀ)⁺ K qd")
def _(at):
    K = kt.loops.constraint(at.model, at.q, at.qd).K
    W = np.diag(np.linspace(1.0, 2.0, at.model.nv))
    away = at.qd + np.linspace(-0.5, 0.5, at.model.nv)
    KW = K @ np.linalg.inv(W)
    nearest = away - KW.T @ (np.linalg.pinv(KW @ K.T, rcond=1e-9) @ (K @ away))
    if any(c.rheonomic for c in at.model.constraints):  # nearest among those that move with it
        nearest = nearest - at.qd + KW.T @ (np.linalg.pinv(KW @ K.T, rcond=1e-9) @ (K @ at.qd))
        nearest = nearest + kt.loops.project_velocity(at.model, at.q, at.qd, weights=W)
    return kt.loops.project_velocity(at.model, at.q, away, weights=W), nearest


@equation("loops.project_configuration", "W⁻¹ Kᵀ mu")
def _(at):
    if not at.model.is_constrained and not at.model.couplings:
        return at.rest, at.rest  # nothing to close
    away = at.model.integrate(at.q, np.linspace(-1e-3, 1e-3, at.model.nv))
    near = kt.loops.project_configuration(at.model, away, weights="plain", nearest=True)
    step = at.model.difference(near, away)
    K = kt.loops.constraint(at.model, near, at.rest).K
    mu = np.linalg.lstsq(K.T, step, rcond=1e-9)[0] if len(K) else np.zeros(0)
    return step, K.T @ mu, step / 1e-3


@equation("loops.null_space_rate", "dG/dt @ yd")
def _(at):
    if any(c.rheonomic for c in at.model.constraints):  # which the docstring excludes
        return at.rest, at.rest
    G_rate = kt.loops.null_space_rate(at.model, at.q, at.qd)
    return G_rate @ at.yd, at.g, at.qd


in_matrix("loops.null_space_rate", "dG/dt")
in_matrix("loops.block_null_space", "qdd = G ydd + g")
in_matrix("loops.loop_joint_forces", "Σ J_Lᵀ T_a f")
in_matrix("loops.system_of", "M vdot = F - Gᵀ lam")
in_matrix("loops.linearize_on_manifold", "Π = 1 - Hᵀ (H Hᵀ)⁻¹ H", "Π = Dψ R")
in_matrix("loops.linearize_system", "Π = 1 - Hᵀ (H Hᵀ)⁻¹ H", "Π = Dψ R")
in_matrix("loops.inverse_dynamics", "Σ w u²")
in_matrix("identify", "Y(q, qd, qdd) p = tau", "Gᵀ Y p = Gᵀ tau")
in_matrix("quasi_velocity_dynamics", "qd = B(model, q) y", "B y")
in_matrix("equations_of_motion", "tau = H(q) qdd + C(q, qd) + g(q) - K(q)ᵀ lam")
in_matrix("floating.equation_of_motion", "Gᵀ tau")
in_matrix("floating.reduced_equation", "H qdd + C = tau", "H ydd + C = Gᵀ tau")
in_matrix("gears.add_rotor", "armature = ratio² I", by="gears.by_armature")
in_matrix("jvp", "J v")
in_matrix("vjp", "wᵀ J")

notation("coordinates of the result", "x = (dq, dqd)", "x = (dy, dyd)", "yd = R qd",
         "y = (R q, R v)", "y = R x", "g = 0")  # fmt: skip
notation("an argument", "Gᵀ tau", "atol + rtol * size", "n · v")

# --- contact -------------------------------------------------------------------------------------


@equation("contact.jacobian", "J @ qd")
@equation("contact.velocity", "jacobian @ qd")
def _(at):
    contacts = Touch(at.case).contacts
    v, v_0 = (kt.contact.velocity(at.model, at.q, qd, contacts) for qd in (at.qd, at.rest))
    return v, kt.contact.jacobian(at.model, at.q, contacts) @ at.qd + v_0


in_matrix("contact.bias", "qdd = 0", "n · a + ṅ · v")


@equation("contact.spatial_normals", "[p × n; n]", alone=True)
def _(at):
    rng = np.random.default_rng(3)
    p, n = rng.normal(size=(2, 4, 3))
    n = n / np.linalg.norm(n, axis=-1, keepdims=True)
    bodies = np.zeros(4, int), np.ones(4, int)
    contacts = kt.contact.Contacts(*bodies, p, n, np.zeros(4), tuple("abcd"))
    return kt.contact.spatial_normals(contacts), np.concatenate([np.cross(p, n), n], axis=-1)


# --- control -------------------------------------------------------------------------------------


@equation("linearize", "exp(A dt)")
def _(at):
    state = at.model, at.q, at.qd, at.tau
    dt = 0.01 * at.case.length**0.5  # gravity makes small mechanisms quick
    found = kt.linearize(*state, dt=dt).A
    return found, scipy.linalg.expm(kt.linearize(*state).A * dt)


@equation("linearize", "qd' = qd + dt qdd", "q' = integrate(q, dt qd')")
def _(at):
    dt, m = 1e-2, at.model
    A = kt.linearize(m, at.q, at.qd, at.tau, dt=dt, method="euler").A

    def step(dq, dqd):
        q, qd = m.integrate(at.q, dq), at.qd + dqd
        tau = at.tau + at("passive_force", q, qd)
        qd = qd + dt * at("forward_dynamics", q, qd, tau)
        return m.integrate(q, dt * qd), qd

    h, columns, end = 1e-5, [], step(at.rest, at.rest)[0]
    for e in np.eye(2 * m.nv):
        ends = [step(s * h * e[: m.nv], s * h * e[m.nv :]) for s in (1, -1)]
        dq = [m.difference(end, q) for q, _ in ends]
        columns.append(np.concatenate([dq[0] - dq[1], ends[0][1] - ends[1][1]]) / (2 * h))
    return 1e-3 * A, 1e-3 * np.reshape(columns, A.shape).T, np.abs(A) + 1


def _system():
    rng = np.random.default_rng(5)
    A, B = rng.normal(size=(4, 4)), rng.normal(size=(4, 2))
    Q, R = np.diag([1.0, 2.0, 0.5, 1.5]), np.diag([0.7, 1.3])
    return A, B, Q, R


@equation("control.continuous_riccati", "Aᵀ P + P A - P B R⁻¹ Bᵀ P + Q = 0", alone=True)
def _(at):
    A, B, Q, R = _system()
    P = kt.control.continuous_riccati(A, B, Q, R)
    return A.T @ P + P @ A + Q, P @ B @ np.linalg.inv(R) @ B.T @ P


@equation("control.discrete_riccati", "P = Aᵀ P A - Aᵀ P B (R + Bᵀ P B)⁻¹ Bᵀ P A + Q", alone=True)
def _(at):
    A, B, Q, R = _system()
    P = kt.control.discrete_riccati(A, B, Q, R)
    gain = np.linalg.inv(R + B.T @ P @ B) @ B.T @ P @ A
    return P, A.T @ P @ A - A.T @ P @ B @ gain + Q


@equation("control.continuous_lyapunov", "Aᵀ P + P A + Q = 0", alone=True)
def _(at):
    A, _, Q, _ = _system()
    A = A - 5 * np.eye(4)
    P = kt.control.continuous_lyapunov(A, Q)
    return A.T @ P + P @ A, -Q


@equation("control.discrete_lyapunov", "P = Aᵀ P A + Q", alone=True)
def _(at):
    A, _, Q, _ = _system()
    A = A / 10
    P = kt.control.discrete_lyapunov(A, Q)
    return P, A.T @ P @ A + Q


@equation(
    "control.lqr_gain", "∫ xᵀ Q x + uᵀ R u dt", "dx/dt = A x + B u", "x' = A x + B u", alone=True
)
def _(at):
    A, B, Q, R = _system()
    found = kt.control.lqr_gain(A, B, Q, R)
    closed = A - B @ found.K
    cost = kt.control.continuous_lyapunov(closed, Q + found.K.T @ R @ found.K)
    discrete = kt.control.lqr_gain(A, B, Q, R, discrete=True)
    sums = kt.control.discrete_lyapunov(A - B @ discrete.K, Q + discrete.K.T @ R @ discrete.K)
    return np.stack([cost, sums]), np.stack([found.P, discrete.P])


@equation(
    "control.pose_error", 'J = kt.jacobian(m, q, "tool", frame="aligned")', "J @ qd", "K @ error",
    alone=True,
)  # fmt: skip
def _(at):
    m = kt.samples.panda()
    q, qd, h = m.posture("home").q, np.linspace(-0.5, 0.5, m.nv), 1e-6
    J = kt.jacobian(m, q, "tool", frame="aligned")
    poses = [kt.pose(m, m.integrate(q, s * h * qd), "tool") for s in (-1, 1)]
    error = kt.control.pose_error(*poses) / (2 * h)
    return 1e-1 * error, 1e-1 * (J @ qd), np.ones(1)


# --- others --------------------------------------------------------------------------------------


@equation("equivalence.invariant_inertias", "I S = 0", alone=True)
def _(at):
    found = []
    for joint in (kt.Revolute("z"), kt.Prismatic("x"), kt.Spherical()):
        S = joint.jcalc(joint.neutral(), np.zeros(joint.nv))[1].to_array()
        S = np.reshape(S, (6, -1))
        for p in kt.equivalence.invariant_inertias(joint):
            found.append(np.max(np.abs(kt.Inertia.from_parameters(p).to_matrix() @ S)))
    return np.array(found), np.zeros(len(found)), np.ones(1)


@equation(
    "identification.fourier_trajectory",
    "q = middle + Σ_k (sines_k sin(k ω t) + cosines_k cos(k ω t))",
    "ω = 2π / period",
    alone=True,
)
def _(at):
    t, middle, period = np.linspace(0, 3, 20), np.array([0.1, -0.4]), 2.5
    sines, cosines = np.random.default_rng(2).normal(size=(2, 3, 2))
    found = kt.identification.fourier_trajectory(t, middle, sines, cosines, period)
    w = 2 * np.pi / period
    q = middle + sum(
        np.outer(np.sin(k * w * t), sines[k - 1]) + np.outer(np.cos(k * w * t), cosines[k - 1])
        for k in (1, 2, 3)
    )
    return found.q, q


@equation("symbolic.lagrange_equations", "d/dt (∂L/∂qd) - ∂L/∂q", alone=True)
def _(at):
    q, qd, qdd = sympy.symbols("q v a")
    L = (1 + sympy.cos(q) ** 2) * qd**2 / 2 + 3 * sympy.cos(q)
    (found,) = kt.symbolic.lagrange_equations(L, [q], [qd], [qdd])
    by_hand = (1 + sympy.cos(q) ** 2) * qdd - sympy.sin(q) * sympy.cos(q) * qd**2
    by_hand = by_hand + 3 * sympy.sin(q)
    at_point = {q: 0.3, qd: -0.7, qdd: 1.1}
    return np.array([float(found.subs(at_point))]), np.array([float(by_hand.subs(at_point))])
