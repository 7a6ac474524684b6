"""Equations that docstrings of public classes state."""

import numpy as np
import scipy.linalg
from feature_matrix.equations import by_test, equation, in_matrix, notation

import kinetree as kt

notation("order of the variables of a joint; tests/joints check every entry",
         "q = (angle [rad], distance [m])", "q = (x, y, z, w, qx, qy, qz)",
         "qd = (angular, linear)", "q = (angle, x, y)", "qd = (omega, vx, vy)", "q = (w, x, y, z)",
         "q = (x, y, z)", "twist = (wx, wy, wz, vx, vy, vz)")  # fmt: skip
notation("a condition or a name, nothing computed", "|w| = 1", "|v| = 1", "h = 0", "g(q) = 0",
         "gddot = 0", "p = y", "z = p", "δ = -p", "A, B = ...", "dx = (dq, dqd)",
         "dx = (dq, dv)")  # fmt: skip


# --- models --------------------------------------------------------------------------------------


@equation("Screw", "X_J = exp(S q)", alone=True)
def _(at):
    twist, q = np.array([0.6, 0.0, 0.8, 0.1, -0.3, 0.2]), 0.7
    w, v = twist[:3], twist[3:]
    S = np.zeros((4, 4))
    S[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    S[:3, 3] = v
    T = scipy.linalg.expm(S * q)
    X = kt.Screw(tuple(twist)).jcalc(np.array([q]), np.zeros(1))[0]
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = np.asarray(X.E).T, np.asarray(X.r)
    return pose, T


@equation("Coupling", "q = c0 + c1 x + c2 x² + ...", alone=True)
def _(at):
    coupling = kt.Coupling("gear", 2, 1, (0.2, -1.5, 0.3))
    ball = kt.shapes.sphere(0.1, mass=1.0)
    b = kt.ModelBuilder("pair").body("a", joint=kt.Revolute("z"), inertia=ball)
    b.body("b", on="a", joint=kt.Revolute("y"), inertia=ball)
    model = b.build().replace(couplings=(coupling,))
    x = 0.7
    return model.expand(np.array([x])), np.array([x, 0.2 - 1.5 * x + 0.3 * x**2])


@equation("Tendon", "L = L0 + c1 q_1 + c2 q_2 + ...", alone=True)
def _(at):
    ball = kt.shapes.sphere(0.1, mass=1.0)
    b = kt.ModelBuilder("arm").body("a", joint=kt.Revolute("z"), inertia=ball)
    b.body("b", on="a", joint=kt.Revolute("z"), at=(3.0, 4.0, 0.0), inertia=ball)
    b.tendon("cable", joints={"a_joint": 0.8, "b_joint": -0.5}, offset=0.1)
    model = b.build()
    expected = 0.1 + 0.8 * 0.3 - 0.5 * 0.9
    return kt.tendon_lengths(model, np.array([0.3, 0.9])), np.array([expected])


@equation("Inertia", "h = m c", alone=True)
def _(at):
    c = np.array([0.1, -0.2, 0.3])
    return kt.Inertia.from_mass_center(2.0, c, np.eye(3)).first_moment, 2.0 * c


in_matrix("Actuator", "gain(l, ld) = g0 + g1 l + g2 ld", by="actuator_forces")
by_test("tests/algorithms/test_spatial_tendons.py::test_lengths_and_rates_are_those_of_mujoco",
        "tendon_jacobian", "dL/dt = J qd")  # fmt: skip
by_test("tests/algorithms/test_spatial_tendons.py::test_forces_are_those_of_mujoco",
        "tendon_jacobian", "Jᵀ f")  # fmt: skip
by_test("tests/simulation/test_servos.py::test_activations_are_exact_and_go_into_forces",
        "Actuator", "act' = u", "act' = (u - act) / time_constant")  # fmt: skip
by_test("tests/loaders/test_mjcf_pid.py::test_motions_are_those_of_mujoco",
        "Actuator", "act' = ±1 / time_constant")  # fmt: skip
in_matrix("gears.ArmatureError", "armature = ratio² I", by="gears.by_armature")

# --- control -------------------------------------------------------------------------------------


@equation("control.GravityCompensation", "tau = g(q) - damping qd")
def _(at):
    if at.model.is_constrained or at.model.gravity_compensation:  # which have more to balance
        return at.rest, at.rest
    found = kt.control.GravityCompensation(at.model, damping=0.3)(0.0, at.q, at.qd)
    return found, kt.gravity_force(at.model, at.q) - 0.3 * at.qd


@equation("control.ComputedTorque", "ë + kd ė + kp e = 0")
def _(at):
    target = at.model.integrate(at.q, np.linspace(0.1, 0.3, at.model.nv))
    if at.model.is_constrained:
        target = kt.loops.project_configuration(at.model, target)
    follow = kt.control.ComputedTorque(at.model, target, kp=4.0, kd=3.0)
    tau = follow(0.0, at.q, at.qd) + kt.passive_force(at.model, at.q, at.qd)
    qdd = kt.forward_dynamics(at.model, at.q, at.qd, tau)
    e = at.model.difference(at.q, target)
    law = -qdd - 3.0 * at.qd + 4.0 * e  # of e = target - q
    columns = at.columns if at.model.is_constrained else slice(None)
    return law[columns], np.zeros_like(law[columns]), qdd


@equation("control.LQR", "tau = tau_0 - K (q - q_0, qd)", alone=True)
def _(at):
    m = kt.samples.double_pendulum()
    q_0, tau_0 = kt.control.equilibrium(m, np.array([0.1, 0.2]))
    regulator = kt.control.LQR(m, q_0, Q=1.0, R=0.1)
    q, qd = q_0 + np.array([0.1, -0.2]), np.array([0.3, 0.4])
    return regulator(0.0, q, qd), tau_0 - regulator.K @ np.concatenate([q - q_0, qd])


@equation("control.LQRGain", "u = -K x", alone=True)
def _(at):
    """With the opposite sign the closed system would not be stable."""
    A, B = np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[0.0], [1.0]])
    poles = np.linalg.eigvals(A - B @ kt.control.lqr_gain(A, B, 1.0, 1.0).K)
    return np.maximum(poles.real, 0.0), np.zeros(2)


in_matrix("control.Linearization", "dx/dt = A x + B dtau", "x' = A x + B dtau", by="linearize")
in_matrix("control.OperationalSpaceControl", "Λ = (J H⁻¹ Jᵀ)⁻¹", by="operational_space_inertia")
by_test("tests/control/test_optimize.py::test_linear_problem_gives_the_riccati_solution",
        "control.OptimizedMotion", "u = u_k + K (dq, dqd)")  # fmt: skip

# --- loops ---------------------------------------------------------------------------------------


@equation("loops.NullSpace", "qdd = G ydd + g", "K G = 0", "K g = k")
def _(at):
    found = kt.loops.block_null_space(at.model, at.q, at.qd)
    c = kt.loops.constraint(at.model, at.q, at.qd)
    qdd = found.G @ at.qdd[found.independent] + found.g
    left = np.concatenate([c.K @ found.G, (c.K @ found.g)[:, None]], axis=1)
    right = np.concatenate([np.zeros_like(c.K @ found.G), c.k[:, None]], axis=1)
    both = np.concatenate([left.ravel(), qdd]), np.concatenate([right.ravel(), at.qdd])
    return *both, c.K, found.g


@equation("loops.NullSpaceMotion", "qdd = G ydd + g")
def _(at):
    return at.G @ at.qdd[at.columns] + at.g, at.qdd, at.g


in_matrix("loops.NullSpaceMotion", "qd = G yd", by="loops.null_space")
in_matrix("loops.Constraint", "K qdd = k", by="loops.constraint")
in_matrix("loops.LinearModel", "dx/dt = A x + B dtau", "x = (dy, dyd)",
          "d(x - x0)/dt = rate + A (x - x0) + B dtau", "dq = G dy", "dqd = G dyd",
          by="loops.linearize_in_coordinates")  # fmt: skip
in_matrix("loops.ManifoldLinearization", "d(dx)/dt = A dx + B dtau",
          by="loops.linearize_on_manifold")  # fmt: skip
in_matrix("loops.SystemLinearization", "d(dx)/dt = A dx", by="loops.linearize_system")
in_matrix("loops.ConstrainedSystem", "M(q) vdot = F(t, q, v) - G(q)ᵀ lam", by="loops.system_of")
by_test("tests/loops/test_system_linearization.py::"
        "test_systems_and_models_have_the_same_linear_model",
        "loops.ChartLinearization", "d(dy)/dt = A dy")  # fmt: skip
by_test("tests/loops/test_closure_functions.py::test_the_numbers_of_figure_8_3",
        "loops.LoopClosure", "q = γ(y)")  # fmt: skip
by_test("tests/loops/test_null_space_form.py::"
        "test_stabilisation_enters_the_particular_acceleration", "loops.Stabilization",
        "0 = gddot + 2 alpha gdot + beta² g", "alpha = beta = 1 / T")  # fmt: skip
by_test("tests/loops/test_stepping_motion.py::test_a_share_of_the_errors_is_taken_away",
        "AscherChin", "x' = f(x) - gamma F(x) h(x)")  # fmt: skip

# --- others --------------------------------------------------------------------------------------

LAWS = "tests/contact/test_soft_laws.py::test_forces_and_rates_are_those_of_the_formulas"
FRICTION = (
    "tests/contact/test_soft_laws.py::test_friction_forces_and_rates_are_those_of_the_formulas"
)
by_test(LAWS, "contact.NonlinearPatch", "f = S(-z) - D(-z) pd", "zd = (S(-z) - f)/D(-z)")
by_test(LAWS, "contact.SeriesSpring", "f = K_s (y - p)", "D yd = -K y - f")
by_test(FRICTION, "contact.Dahl", "f = -K x", "xd = v - |v| x K/(μ f_n)")
by_test(FRICTION, "contact.Stiction", "f_stick = -K x - D v", "xd = -(K x + f)/D")
in_matrix("floating.EquationOfMotion",
          "[[I0c, F], [Fᵀ, H]] [a_0; qdd] + [p0c; C] = [0; tau]",
          by="floating.equation_of_motion")  # fmt: skip
in_matrix("ik.PoseDynamics", "F = inertia @ dV/dt + coriolis + gravity", by="ik.dynamics_at_pose")
in_matrix("symbolic.EquationsOfMotion", "tau = H qdd + C + g", "tau = H qdd + C + g - Kᵀ lam",
          "K qdd = k", "coriolis_matrix * qd == C", by="equations_of_motion")  # fmt: skip
