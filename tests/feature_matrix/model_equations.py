"""Equations that docstrings of ``kinetree`` state about a model, from its public functions."""

import numpy as np
from feature_matrix.equations import equation, in_matrix, notation

import kinetree as kt

# --- equations of motion -------------------------------------------------------------------------


@equation("inverse_dynamics", "tau = H(q) qdd + C(q, qd)")
def _(at):
    tau = at("inverse_dynamics", at.q, at.qd, at.qdd)
    H, C = at("tree.mass_matrix", at.q), at("tree.bias_force", at.q, at.qd)
    return at.G.T @ tau, at.G.T @ (H @ at.qdd + C), C


@equation("bias_force", "Gᵀ (C + H g)")
def _(at):
    H, C = at("tree.mass_matrix", at.q), at("tree.bias_force", at.q, at.qd)
    return at("bias_force", at.q, at.qd), at.G.T @ (C + H @ at.g), C


@equation("bias_force", "mass_matrix @ ydd + bias_force = Gᵀ tau")
@equation("loops.null_space", "GᵀHG ydd + Gᵀ(C + H g) = Gᵀ tau")
def _(at):
    qdd = at("forward_dynamics", at.q, at.qd, at.tau)
    H, C = at("mass_matrix", at.q), at("bias_force", at.q, at.qd)
    return H @ qdd[at.columns] + C, at.G.T @ at.tau, C


@equation("gravity_force", "∂U/∂q")
def _(at):
    weight = at.G.T @ at("gravity_force", at.q)
    along = [at("potential_energy_rate", at.q, column) for column in at.G.T]
    still = at("potential_energy_rate", at.q, at.rest)  # of prescribed joints
    return weight, np.reshape(along, weight.shape) - still, at("mass_matrix", at.q)


@equation("gravity_force", "C(q, 0)")
def _(at):
    g, C = at("gravity_force", at.q), at("tree.bias_force", at.q, at.rest)
    if any(j.moves_by_itself for j in at.model.joint[1:]):  # which the docstring excludes
        assert np.max(np.abs(g - C)) > 1e-3
        return g, g
    return at.G.T @ g, at.G.T @ C, at("mass_matrix", at.q)


@equation("mass_matrix", "Gᵀ H G")
def _(at):
    return at("mass_matrix", at.q), at.G.T @ at("tree.mass_matrix", at.q) @ at.G


@equation("mass_matrix", "qd = G yd")
@equation("regressor", "qd = G yd")
@equation("operational_space_inertia", "qd = G yd")
def _(at):
    allowed = at.G @ at.yd
    K = kt.loops.constraint(at.model, at.q, at.qd).K
    return K @ allowed, np.zeros(len(K)), K, allowed


@equation("inverse_mass_matrix", "H(q)⁻¹", "G (Gᵀ H G)⁻¹ Gᵀ")
def _(at):
    H = at.G.T @ at("tree.mass_matrix", at.q) @ at.G
    return at("inverse_mass_matrix", at.q), at.G @ np.linalg.inv(H) @ at.G.T


@equation("coriolis_matrix", "C qd", "C yd")
def _(at):
    velocity_terms = at("bias_force", at.q, at.qd) - at("bias_force", at.q, at.rest)
    C = at("coriolis_matrix", at.q, at.qd)
    return C @ at.yd, velocity_terms, at("bias_force", at.q, at.qd)


@equation("coriolis_matrix", "dH/dt - 2C")
def _(at):
    C = at("coriolis_matrix", at.q, at.qd)
    skew = at("mass_matrix_rate", at.q, at.qd) - 2 * C
    return skew, -skew.T, C, at("mass_matrix", at.q)


@equation("christoffel", "C_ij = Σ Γ_ijk qd_k")
def _(at):
    by_symbols = np.einsum("ijk,k->ij", at("christoffel", at.q), at.yd)
    return at("coriolis_matrix", at.q, at.qd), by_symbols, at("mass_matrix", at.q)


@equation("passive_force", "inverse_dynamics(...) - passive_force(...)")
def _(at):
    supplied = at("tree.inverse_dynamics", at.q, at.qd, at.qdd)
    passive = at("passive_force", at.q, at.qd)
    supplied = supplied - passive
    return at("forward_dynamics", at.q, at.qd, supplied + passive), at.qdd


in_matrix("passive_force", "-k Δ - d qd - c sign(qd)")
in_matrix("actuator_forces", "clip(gain u + bias, effort)")
in_matrix("mass_matrix_rate", "dH/dt")

# --- energy and momentum -------------------------------------------------------------------------


@equation("kinetic_energy", "T = ½ qdᵀ H qd", "½ qdᵀ H qd + p(q, 0)·qd + T(q, 0)")
def _(at):
    p, T = at("generalized_momentum", at.q, at.rest), at("kinetic_energy", at.q, at.rest)
    H = at("tree.mass_matrix", at.q)
    return at("kinetic_energy", at.q, at.qd), at.qd @ H @ at.qd / 2 + p @ at.qd + T


@equation("generalized_momentum", "p = ∂T/∂qd")
def _(at):
    p = at.derivative("kinetic_energy", at.qd, at.q)
    return at("generalized_momentum", at.q, at.qd), at.rest if p is None else p


@equation("generalized_momentum", "p = H(q) qd", "H(q) qd + p(q, 0)")
def _(at):
    moving = at("tree.mass_matrix", at.q) @ at.qd + at("generalized_momentum", at.q, at.rest)
    return at("generalized_momentum", at.q, at.qd), moving


in_matrix("kinetic_energy_rate", "dT/dt")
in_matrix("potential_energy_rate", "dU/dt")


@equation("generalized_force", "Q = Σ Jᵀ f")
def _(at):
    J = at("jacobians", at.q, frame="world")
    return at("generalized_force", at.q, at.f_ext), np.einsum("nij,ni->j", J, at.f_ext)


@equation("center_of_mass_jacobian", "J = ∂v/∂qd")
def _(at):
    J = at.derivative("center_of_mass_velocity", at.qd, at.q)
    return at("center_of_mass_jacobian", at.q), np.zeros((3, 0)) if J is None else J


@equation(
    "center_of_mass_jacobian",
    "center_of_mass_velocity(model, q, qd) == J @ qd + center_of_mass_velocity(model, q, 0 * qd)",
)
def _(at):
    v, v_0 = (at("center_of_mass_velocity", at.q, qd) for qd in (at.qd, at.rest))
    return v, at("center_of_mass_jacobian", at.q) @ at.qd + v_0


@equation("centroidal_momentum_matrix", "A = ∂h/∂qd")
def _(at):
    A = at.derivative("centroidal_momentum", at.qd, at.q)
    return at("centroidal_momentum_matrix", at.q), np.zeros((6, 0)) if A is None else A


@equation(
    "centroidal_momentum_matrix",
    "centroidal_momentum(model, q, qd) == A @ qd + centroidal_momentum(model, q, 0 * qd)",
)
def _(at):
    h, h_0 = (at("centroidal_momentum", at.q, qd) for qd in (at.qd, at.rest))
    return h, at("centroidal_momentum_matrix", at.q) @ at.qd + h_0


@equation("centroidal_momentum_bias", "qdd = 0")
def _(at):
    rate = at("centroidal_momentum_rate", at.q, at.qd, at.rest)
    return at("centroidal_momentum_bias", at.q, at.qd), rate, at("momentum", at.q, at.qd)


# --- kinematics ----------------------------------------------------------------------------------


@equation("jacobian", "J @ qd + velocity(model, q, 0 * qd, name)")
def _(at):
    v, v_0 = (at("velocity", at.q, qd, at.name) for qd in (at.qd, at.rest))
    return v, at("jacobian", at.q, at.name) @ at.qd + v_0


@equation("bias_acceleration", "qdd = 0")
def _(at):
    bias = at("bias_acceleration", at.q, at.qd, at.name)
    whole = at("acceleration", at.q, at.qd, at.rest, at.name)
    return bias, whole, at("velocity", at.q, at.qd, at.name)


@equation("bias_acceleration", "jacobian_rate @ qd")
def _(at):
    if any(j.moves_by_itself for j in at.model.joint[1:]):  # whose own rates the docstring adds
        return at.rest, at.rest
    kinds = {"world": "spatial", "body": "spatial", "aligned": "classical"}
    rates = [at("jacobian_rate", at.q, at.qd, at.name, frame=frame) @ at.qd for frame in kinds]
    bias = [
        at("bias_acceleration", at.q, at.qd, at.name, frame=f, kind=k) for f, k in kinds.items()
    ]
    return np.array(bias), np.array(rates), at("velocity", at.q, at.qd, at.name)


@equation("hessian", "hessian @ qd + jacobian_rate(model, q, 0 * qd, name)")
def _(at):
    rate, still = (at("jacobian_rate", at.q, qd, at.name) for qd in (at.qd, at.rest))
    return rate, at("hessian", at.q, at.name) @ at.qd + still, at("jacobian", at.q, at.name)


@equation("joint_velocity", "V = J qd + V(q, 0)")
def _(at):
    V = np.array([0.3])
    qd = at("joint_velocity", at.q, V, at.name, **at.task)
    row = 3 if at.model.loops else 5
    return at("velocity", at.q, qd, at.name, frame="aligned")[row : row + 1], V


@equation("joint_acceleration", "dV/dt = J qdd + b")
def _(at):
    a = np.array([0.3])
    qdd = at("joint_acceleration", at.q, at.qd, a, at.name, **at.task)
    row = 3 if at.model.loops else 5
    found = at("acceleration", at.q, at.qd, qdd, at.name, frame="aligned", kind="classical")
    return found[row : row + 1], a, found


# --- regressors ----------------------------------------------------------------------------------


@equation(
    "regressor",
    "inverse_dynamics(model, q, qd, qdd) == Y @ p",
    "armature * qdd",
    "Gᵀ Y",
    "Gᵀ tau == regressor @ p",
)
def _(at):
    tau = at("tree.inverse_dynamics", at.q, at.qd, at.qdd)
    Y = at("regressor", at.q, at.qd, at.qdd)
    return at.G.T @ tau, Y @ at.parameters + at.G.T @ at.armature, tau


@equation("momentum_regressor", "momentum(model, q, qd) == Y @ p")
def _(at):
    return at("momentum", at.q, at.qd), at("momentum_regressor", at.q, at.qd) @ at.parameters


@equation("kinetic_energy_regressor", "kinetic_energy(model, q, qd) == y @ p")
def _(at):
    y = at("kinetic_energy_regressor", at.q, at.qd)
    return at("kinetic_energy", at.q, at.qd, model=at.bodies_alone), y @ at.parameters


@equation("potential_energy_regressor", "potential_energy(model, q) == y @ p")
def _(at):
    return at("potential_energy", at.q), at("potential_energy_regressor", at.q) @ at.parameters


@equation("energy_regressor", "y @ p")
def _(at):
    parts = at("kinetic_energy_regressor", at.q, at.qd), at("potential_energy_regressor", at.q)
    return at("energy_regressor", at.q, at.qd) @ at.parameters, sum(parts) @ at.parameters


# --- tasks ---------------------------------------------------------------------------------------


class Task:
    """One coordinate of the motion of the last frame, from Jacobian and inertia matrix."""

    def __init__(self, at):
        row = 3 if at.model.loops else 5
        self.J = at("jacobian", at.q, at.name, frame="aligned")[row : row + 1]
        self.Hi = at("inverse_mass_matrix", at.q)
        self.bias = at(
            "bias_acceleration", at.q, at.qd, at.name, frame="aligned", kind="classical"
        )[row : row + 1]
        self.inertia = np.linalg.inv(self.J @ self.Hi @ self.J.T)

    def acceleration(self, at, tau):
        """``dV/dt`` under joint forces."""
        return self.J @ at("forward_dynamics", at.q, at.qd, tau) + self.bias


@equation("operational_space_inertia", "Lambda = (J H⁻¹ Jᵀ)⁻¹", "(J G H_y⁻¹ Gᵀ Jᵀ)⁻¹")
def _(at):
    return at("operational_space_inertia", at.q, at.name, **at.task), Task(at).inertia


@equation("operational_space_inertia", "J H⁻¹ Jᵀ", "1 / damping")
def _(at):
    t, d = Task(at), 0.7 * at.case.length**2 / at.case.force
    damped = at("operational_space_inertia", at.q, at.name, damping=np.array(d), **at.task)
    return damped, np.linalg.inv(t.J @ t.Hi @ t.J.T + d * np.eye(1))


@equation("inverse_operational_space_inertia", "J H⁻¹ Jᵀ")
def _(at):
    t = Task(at)
    return at("inverse_operational_space_inertia", at.q, at.name, **at.task), t.J @ t.Hi @ t.J.T


@equation("dynamically_consistent_inverse", "J̄ = H⁻¹ Jᵀ Lambda")
def _(at):
    t = Task(at)
    found = at("dynamically_consistent_inverse", at.q, at.name, **at.task)
    return found, t.Hi @ t.J.T @ t.inertia


@equation("dynamically_consistent_inverse", "(1 - Jᵀ J̄ᵀ) tau_0")
def _(at):
    t, J_bar = Task(at), at("dynamically_consistent_inverse", at.q, at.name, **at.task)
    quiet = at.tau - t.J.T @ (J_bar.T @ at.tau)
    none, some = t.acceleration(at, at.rest), t.acceleration(at, quiet)
    return some, none, t.J @ t.Hi @ at.tau


@equation("null_space_projector", "N = 1 - J̄ J", "N qd")
def _(at):
    t, N = Task(at), at("null_space_projector", at.q, at.name, **at.task)
    return N, at.unit - t.Hi @ t.J.T @ t.inertia @ t.J


@equation("null_space_projector", "N.T @ tau_0")
@equation("operational_space_dynamics", "null_space_projector.T @ tau_0")
def _(at):
    t, N = Task(at), at("null_space_projector", at.q, at.name, **at.task)
    none, some = t.acceleration(at, at.rest), t.acceleration(at, N.T @ at.tau)
    return some, none, t.J @ t.Hi @ at.tau


@equation("operational_space_bias", "dV/dt")
@equation("task_space_inverse_dynamics", "Jᵀ (Lambda dV/dt + eta)")
def _(at):
    t, a = Task(at), np.array([0.3])
    eta = at("operational_space_bias", at.q, at.qd, at.name, **at.task)
    tau = at("task_space_inverse_dynamics", at.q, at.qd, a, at.name, **at.task)
    at_rest = t.acceleration(at, t.J.T @ eta)
    scale = (
        np.abs(at_rest) + np.abs(t.bias) + np.abs(t.J @ t.Hi @ at("tree.bias_force", at.q, at.qd))
    )
    expected = np.concatenate([t.J.T @ (t.inertia @ a + eta) / np.max(np.abs(tau)), [0.0]])
    return np.concatenate([tau / np.max(np.abs(tau)), at_rest / np.max(scale)]), expected


@equation("operational_space_dynamics", "F = Lambda dV/dt + mu + p", "tau = Jᵀ F")
def _(at):
    t, a = Task(at), np.array([0.3])
    found = at("operational_space_dynamics", at.q, at.qd, at.name, **at.task)
    tau = t.J.T @ (found.inertia @ a + found.coriolis + found.gravity)
    return t.acceleration(at, tau), a, t.acceleration(at, at.rest), t.bias


@equation("task_space_forward_dynamics", "dV/dt", "tau = Jᵀ F")
def _(at):
    t, F = Task(at), np.array([0.3]) * at.case.force
    found = at("task_space_forward_dynamics", at.q, at.qd, F, at.name, **at.task)
    return found, t.acceleration(at, t.J.T @ F), t.bias


in_matrix("joint_reactions", "T lam", "T_a Sᵀ f")
notation("argument: the acceleration of the task", "dV/dt")
notation("the count of columns, which the matrix compares with the parameters", "n = 10 body_count")
notation("the state that the function is about", "qdd = 0", "qd = 0")
