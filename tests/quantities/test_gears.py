"""Gears, rotors and differentials — RBDA §9.6."""

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.algorithms import aba, coupled, crba
from kinetree.codegen.program import Argument, trace
from kinetree.errors import ModelError
from kinetree.expr.counting import count_operations
from kinetree.joints import Prismatic, Revolute
from kinetree.model import Actuator, Coupling, JointDynamics, ModelBuilder
from kinetree.model.gearing import Gearing, elimination_tree
from kinetree.quantities import gears
from kinetree.spatial import Inertia, rotx, roty, xlt

RHO = (30.0, -20.0)


def disc(mass=0.5, moment=2e-3):
    """A rotor, round about z."""
    return Inertia.from_mass_center(mass, (0, 0, 0.02), np.diag([moment, moment, 1.5 * moment]))


def link(mass=2.0):
    return Inertia.from_mass_center(mass, (0.3, 0.1, 0.0), np.diag([0.02, 0.05, 0.06]))


def geared_arm(leads="joint", rho=RHO):
    """RBDA Fig. 9.2, λ = (0, 0, 1, 1), with axes that are not parallel: rotors get tilted."""
    arm = ModelBuilder("Fig. 9.2", gravity=(0.0, -9.81, 1.0))
    arm.body("link1", joint=Revolute("z"), inertia=link(), joint_name="one")
    arm.body("link2", on="link1", joint=Revolute("z"), at=roty(0.4) @ xlt((0.5, 0, 0)),
             inertia=link(1.0), joint_name="two")  # fmt: skip
    model = arm.build()
    tilted = rotx(0.7) @ xlt((0, 0.1, 0.2))
    model = gears.add_rotor(
        model, "one", ratio=rho[0], inertia=disc(), at=tilted, name="rotor1", leads=leads
    )
    return gears.add_rotor(
        model, "two", ratio=rho[1], inertia=disc(0.3), on="link1", at=tilted, name="rotor2",
        leads=leads,
    )  # fmt: skip


def tilting_arm(leads="joint", rho=40.0, rotor=None):
    """A wrist on an arm that turns and tilts, and with it the motor of the wrist."""
    arm = ModelBuilder("tilting arm", gravity=(0.0, 0.0, -9.81))
    arm.body("post", joint=Revolute("z"), inertia=link(), joint_name="turn")
    arm.body("arm", on="post", joint=Revolute("x"), inertia=link(), joint_name="tilt")
    arm.body("hand", on="arm", joint=Revolute("y"), at=(0, 0.4, 0), inertia=link(0.5),
             joint_name="wrist")  # fmt: skip
    rotor = disc() if rotor is None else rotor
    options = {"at": rotx(-np.pi / 2), "axis": (0, 0, 1), "name": "rotor", "leads": leads}
    return gears.add_rotor(arm.build(), "wrist", ratio=rho, inertia=rotor, on="arm", **options)


def book_order(model):
    """Velocity variables of all joints as the book numbers them: link, rotor, link, rotor."""
    return [0, 2, 1, 3]


@pytest.mark.covers("RBDA 9.6", by=(coupled.congruent, gears.add_rotor))
def test_the_inertia_matrix_of_the_arm_is_the_one_that_is_printed(rng):
    model = geared_arm()
    q = model.random_configuration(rng)
    H = crba.joint_space_inertia(model.uncoupled, model.expand(q))[np.ix_(*[book_order(model)] * 2)]
    r1, r2 = RHO
    assert H[0, 1] == H[1, 2] == H[1, 3] == 0  # the first rotor is on the base
    printed = [  # (9.27); H34 is zero for bodies on different branches
        [H[0, 0] + r1**2 * H[1, 1], H[0, 2] + r2 * H[0, 3]],
        [H[0, 2] + r2 * H[0, 3], H[2, 2] + r2**2 * H[3, 3]],
    ]
    np.testing.assert_allclose(kt.mass_matrix(model, q), printed, rtol=1e-13)


@pytest.mark.covers("RBDA 9.6", by=coupled.congruent)
def test_the_sparse_product_takes_5m_3a_and_the_dense_one_44m_33a():
    class At:
        pass

    def product(make):
        def traced(h, r):
            at = At()
            at.G, H = make(h, r)
            return coupled.congruent(H, at)

        program = trace(traced, [Argument("h", (10,)), Argument("r", (8,))], "product")
        lower = [program.roots[k] for k in (0, 2, 3)]
        return count_operations(program.graph, lower)

    def symmetric(h, zeros=()):
        H, k = np.zeros((4, 4), object), 0
        for i in range(4):
            for j in range(i + 1):
                H[i, j] = H[j, i] = 0 if (i, j) in zeros else h[k]
                k += 1
        return H

    def printed(h, r):
        G = np.zeros((4, 2), object)
        G[0, 0] = G[2, 1] = 1
        G[1, 0], G[3, 1] = r[0], r[1]
        return G, symmetric(h, {(1, 0), (2, 1), (3, 1), (3, 2)})

    sparse = product(printed)
    dense = product(lambda h, r: (r.reshape(4, 2), symmetric(h)))
    assert str(sparse) == "5m + 3a"
    assert str(dense) == "44m + 33a"


@pytest.mark.parametrize("leads", ["joint", "rotor"])
def test_motor_torques_are_those_of_the_book(leads, rng):
    """``u = [(tau1 + ρ1 tau2)/ρ1, (tau3 + ρ2 tau4)/ρ2]`` at the rotors, from all joint forces."""
    model, r = geared_arm(leads), RHO
    q = model.random_configuration(rng)
    qd, qdd = rng.normal(size=(2, 2))
    if leads == "rotor":
        q = q * 20
    full = model.uncoupled
    tau = kt.inverse_dynamics(
        full, model.expand(q), model.expand_velocity(q, qd), model.expand_acceleration(q, qd, qdd)
    )[book_order(model)]
    u = [(tau[0] + r[0] * tau[1]) / r[0], (tau[2] + r[1] * tau[3]) / r[1]]
    found = kt.inverse_dynamics(model, q, qd, qdd)
    np.testing.assert_allclose(found if leads == "rotor" else found / r, u, rtol=1e-11)
    np.testing.assert_allclose(kt.forward_dynamics(model, q, qd, found), qdd, rtol=1e-9)


def test_it_does_not_matter_who_leads(rng):
    by_joint, by_rotor = geared_arm(), geared_arm("rotor")
    q, qd, tau = rng.normal(size=(3, 2))
    qdd = kt.forward_dynamics(by_joint, q, qd, tau)
    found = kt.forward_dynamics(by_rotor, q * RHO, qd * RHO, tau / RHO)
    np.testing.assert_allclose(found, qdd * RHO, rtol=1e-10)
    energy = [kt.kinetic_energy(by_joint, q, qd), kt.kinetic_energy(by_rotor, q * RHO, qd * RHO)]
    np.testing.assert_allclose(*energy, rtol=1e-12)


def test_actuators_act_at_the_rotor_whoever_leads(rng):
    for leads, expected in (("joint", np.diag(RHO)), ("rotor", np.eye(2))):
        model = geared_arm(leads)
        numbers = (model.joint_index("rotor1_joint"), model.joint_index("rotor2_joint"))
        motors = [Actuator(f"m{k}", i) for k, i in enumerate(numbers)]
        driven = model.replace(actuators=motors)
        np.testing.assert_allclose(driven.actuation, expected)


def test_gyroscopic_forces_are_those_of_lagrange(rng):
    """From the kinetic energy of all bodies, by differences of exact derivatives."""
    model = tilting_arm()
    q, qd = rng.normal(size=(2, 3))
    h = 1e-30

    def energy(q, qd):
        full = model.uncoupled
        return kt.kinetic_energy(full, model.expand(q), model.expand_velocity(q, qd))

    def momentum(q, qd):
        steps = 1j * h * np.eye(3)
        return np.array([energy(q.astype(complex), qd + s).imag / h for s in steps])

    eps = 1e-6  # d/dt(∂T/∂qd) along qd, less ∂T/∂q
    rate = (momentum(q + eps * qd, qd) - momentum(q - eps * qd, qd)) / (2 * eps)
    force = np.array([energy(q + s, qd.astype(complex)).imag / h for s in 1j * h * np.eye(3)])
    found = kt.bias_force(model.replace(gravity=(0, 0, 0)), q, qd)
    np.testing.assert_allclose(found, rate - force, rtol=1e-7, atol=1e-7)


@pytest.mark.covers("RBDA 9.6", by=(gears.armature_error, gears.by_armature))
def test_armature_misses_what_a_spinning_body_does(rng):
    """The tilting of a fast rotor shows in C, and only in the model with bodies."""
    model = tilting_arm()
    q, qd = rng.normal(size=(2, 3))
    short = gears.by_armature(model)
    assert gears.rotors(model) == ("rotor",)
    assert not short.couplings
    assert short.bodies[2].dynamics.armature[0] == pytest.approx(40**2 * 3e-3)
    error = gears.armature_error(model, q, qd)
    H, H0 = kt.mass_matrix(model, q), kt.mass_matrix(short, q)
    C, C0 = kt.bias_force(model, q, qd), kt.bias_force(short, q, qd)
    d = np.sqrt(np.diag(H))
    assert error.inertia == pytest.approx(np.max(np.abs(H - H0) / np.outer(d, d)))
    assert error.bias == pytest.approx(np.max(np.abs(C - C0)) / np.max(np.abs(C)))
    assert str(error).startswith("armature in place of rotor: inertia matrix off by 0.0")
    ratio = np.array([1, 1, 40])
    again = gears.armature_error(tilting_arm("rotor"), q * ratio, qd * ratio)
    np.testing.assert_allclose(again[1:], error[1:], rtol=1e-9)

    # A spinning rotor that is turned about one axis pushes about the third: I ω × Ω.
    still, spin = np.array([0.0, 0.3, 0.0]), np.array([0.0, 0.0, 1.0])
    free = model.replace(gravity=(0, 0, 0)), short.replace(gravity=(0, 0, 0))
    turning = np.array([0.7, 0.0, 0.0]) + spin
    tilt = [
        kt.bias_force(m, still, turning) - kt.bias_force(m, still, turning - spin) for m in free
    ]
    gyroscopic = 3e-3 * 40 * 0.7 * np.cos(0.3)
    assert abs(tilt[0][1] - tilt[1][1]) == pytest.approx(gyroscopic, rel=1e-9)


@pytest.mark.covers("RBDA Example 9.5", by=(gears.armature_error, gears.by_armature))
def test_the_shortcut_becomes_exact_for_small_fast_rotors(rng):
    """At constant ``ρ² I`` the errors vanish with the rotor, as ``ρ I`` does."""
    q, qd = rng.normal(size=(2, 3))
    rho = np.array([10.0, 100.0, 1000.0])
    models = [tilting_arm(rho=r, rotor=disc(1 / r**2, 2 / r**2)) for r in rho]
    errors = np.array([gears.armature_error(m, q, qd)[1:] for m in models])
    np.testing.assert_allclose(errors[:-1] / errors[1:], 10, rtol=0.15)


@pytest.mark.covers("RBDA 9.6", "RBDA Example 9.5", by=aba.forward_dynamics)
def test_armature_is_rotor_inertia_in_all_algorithms(rng):
    """(9.28): D_i = SᵀU_i + I_rot in the ABA, I_rot qdd_i in the RNEA, the diagonal in the CRBA."""
    model = kt.samples.double_pendulum()
    rotors = {"shoulder": JointDynamics(armature=0.7), "elbow": JointDynamics(armature=0.2)}
    geared = model.replace(dynamics=rotors)
    q, qd, tau = rng.normal(size=(3, 2))
    H = kt.mass_matrix(model, q) + np.diag([0.7, 0.2])
    qdd = np.linalg.solve(H, tau - kt.bias_force(model, q, qd))
    for method in ("aba", "crba"):
        found = kt.forward_dynamics(geared, q, qd, tau, method=method)
        np.testing.assert_allclose(found, qdd, rtol=1e-12)
    np.testing.assert_allclose(kt.inverse_dynamics(geared, q, qd, qdd), tau, rtol=1e-11)


# --- differentials -------------------------------------------------------------------------------


def differential(leads):
    """A drive shaft and two wheels on a frame: the shaft turns as their mean, times the ratio."""
    car = ModelBuilder("axle", gravity=(0, 0, 0))
    for name, moment in (("shaft", 0.02), ("left", 0.1), ("right", 0.3)):
        car.body(name, joint=Revolute("z"), inertia=disc(1.0, moment), joint_name=name)
    if leads == "wheels":
        car.coupling("drive", joint="shaft", sources=("left", "right"), weights=(1.5, 1.5))
    else:
        car.coupling("drive", joint="right", sources=("shaft", "left"), weights=(2 / 3, -1))
    return car.build()


@pytest.mark.covers("RBDA 9.6", by=Coupling)
@pytest.mark.parametrize("leads", ["wheels", "shaft"])
def test_power_goes_through_a_differential_without_loss(leads, rng):
    model = differential(leads)
    q, qd, tau = rng.normal(size=(3, 2))
    qdd = kt.forward_dynamics(model, q, qd, tau)
    at = Gearing(model, q, qd)
    assert at.qd[0] == pytest.approx(1.5 * (at.qd[1] + at.qd[2]))
    balance = kt.power_balance(model, q, qd, tau)
    assert balance.kinetic == pytest.approx(tau @ qd)
    np.testing.assert_allclose(kt.inverse_dynamics(model, q, qd, qdd), tau, rtol=1e-12)


def test_a_torque_at_the_shaft_splits_evenly_between_the_wheels():
    model = differential("wheels")
    shaft = Actuator("engine", model.joint_index("shaft"))
    np.testing.assert_allclose(model.replace(actuators=(shaft,)).actuation, [[1.5], [1.5]])


# --- limits, friction, motors --------------------------------------------------------------------


def gripper(**options):
    """Two fingers on slides, the right one follows the left."""
    hand = ModelBuilder("gripper", gravity=(0.0, 0.0, 0.0))
    hand.body("left", joint=Prismatic("x"), inertia=link(0.1), joint_name="left",
              limits=kt.Limits(0.0, 0.05, 1.0))  # fmt: skip
    hand.body("right", joint=Prismatic("x"), inertia=link(0.1), joint_name="right",
              limits=kt.Limits(-0.03, 0.01, 0.2), **options)  # fmt: skip
    return hand.coupling("mimic", joint="right", source="left", coefficients=(0.0, -1.0)).build()


def test_limits_of_followers_bound_those_that_lead():
    limits = gripper().travel[1]
    assert (limits.lower, limits.upper, limits.velocity) == ((0.0,), (0.03,), (0.2,))
    assert gripper().travel[2] is None
    assert 0 <= gripper().random_configuration(0)[0] <= 0.03


def test_limits_of_a_cam_are_found_where_it_meets_them():
    bent = Coupling("cam", 2, 1, (0.0, 0.0, -20.0))  # -20 q² reaches -0.03 at 0.0387
    limits = gripper().replace(couplings=(bent,)).travel[1]
    assert limits.upper[0] == pytest.approx(np.sqrt(0.03 / 20), rel=1e-9)
    assert limits.lower == (0.0,)


def test_a_finger_is_stopped_by_the_limit_of_the_other():
    hand = gripper()
    for limits in ("stiff", "rigid"):
        motion = kt.simulate(hand, [0.02], qd0=[0.5], duration=0.1, limits=limits)
        assert motion.q[:, 0].max() < 0.034
        assert motion.qd[-1, 0] < 0.01


def test_friction_of_followers_is_felt_by_those_that_lead():
    rough = gripper(dynamics=JointDynamics(friction=0.05, damping=0.1))
    for friction in ("smooth", "exact"):
        motion = kt.simulate(
            rough, [0.02], qd0=[-0.02], duration=0.5, friction=friction, limits=None
        )
        assert abs(motion.qd[-1, 0]) < 1e-3


def test_exact_friction_needs_a_constant_ratio():
    rough = gripper(dynamics=JointDynamics(friction=0.05))
    bent = rough.replace(couplings=(Coupling("cam", 2, 1, (0.0, 0.0, -20.0)),))
    with pytest.raises(
        ModelError, match="coupling 'cam', in which no joint leads it by a constant"
    ):
        kt.simulate(bent, [0.02], duration=0.1, friction="exact")


def test_simulation_of_coupled_joints_does_not_drift():
    model = geared_arm().replace(gravity=(0, 0, 0))
    motion = kt.simulate(model, [0.3, 0.4], qd0=[1.0, -2.0], duration=1.0)
    energy = kt.kinetic_energy(model, motion.q, motion.qd)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-8)


# --- errors --------------------------------------------------------------------------------------


def test_errors_of_rotors():
    model = kt.samples.double_pendulum()
    with pytest.raises(ModelError, match="leads must be 'joint' or 'rotor', got 'both'"):
        gears.add_rotor(model, "elbow", ratio=2, inertia=disc(), leads="both")
    with pytest.raises(ModelError, match="ratio of rotor 'elbow_rotor' must not be zero"):
        gears.add_rotor(model, "elbow", ratio=0, inertia=disc())
    with pytest.raises(
        ModelError, match="rotor 'left_rotor' needs an axis: joint 'left' is a Pris"
    ):
        gears.add_rotor(gripper(), "left", ratio=2, inertia=disc())
    with pytest.raises(ModelError, match="has no rotors: leaf bodies, round"):
        gears.armature_error(model, model.neutral())


def test_a_body_that_is_not_round_is_not_a_rotor():
    model = geared_arm()
    assert gears.rotors(model.replace(inertia={"rotor1": link(0.1)})) == ("rotor2",)


def test_postures_get_the_angle_of_the_rotor():
    model = kt.samples.double_pendulum()
    model = model.replace(postures=(kt.Posture("up", (0.1, 0.2), (1.0, 2.0)),))
    for leads, expected in (("joint", (0.1, 0.2)), ("rotor", (0.1, 2.0))):
        geared = gears.add_rotor(model, "elbow", ratio=10, inertia=disc(), leads=leads)
        assert geared.posture("up").q == pytest.approx(expected)
        assert geared.uncoupled.posture("up").q == pytest.approx((0.1, 0.2, 2.0))


def test_ratios_are_those_of_the_couplings(rng):
    model = geared_arm()
    q = rng.normal(size=(3, 2))
    expected = [[1, 0], [0, 1], [RHO[0], 0], [0, RHO[1]]]
    np.testing.assert_allclose(gears.ratios(model, q), np.broadcast_to(expected, (3, 4, 2)))
    np.testing.assert_allclose(gears.ratios(model.uncoupled, np.zeros(4)), np.eye(4))


def test_actuators_of_rotors_act_on_joints_with_armature():
    model = geared_arm()
    motor = Actuator("m", model.joint_index("rotor1_joint"), gear=(2.0,))
    short = gears.by_armature(model.replace(actuators=(motor,)))
    assert short.actuators[0].joint == 1
    assert short.actuators[0].gear == (2 * RHO[0],)


@pytest.mark.parametrize("leads", ["joint", "rotor"])
def test_servos_of_rotors_keep_what_their_controls_mean(leads):
    """The length of the rotor, in the position of the joint, with an offset in the gear."""
    model = geared_arm(leads)
    couplings = [replace(c, coefficients=(0.3, c.coefficients[1])) for c in model.couplings]
    rotor = model.joint_index("rotor1_joint")
    servo = Actuator("m", rotor, gear=(2.0,), gain=(3.0, 0.5, 0.0), bias=(0.1, -7.0, -1.0))
    model = model.replace(couplings=couplings, actuators=(servo,))
    moved, q = gears.by_armature(model).actuators[0], model.expand(np.array([0.4, -0.7]))
    for law in ("gain", "bias"):
        one, two = (
            np.dot(getattr(a, law)[:2], (1, a.gear[0] * q[a.joint - 1])) for a in (servo, moved)
        )
        assert one == pytest.approx(two)


def test_branches_of_the_gears_are_the_zeros_of_the_factors():
    pattern = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    assert elimination_tree(pattern) == (-1, -1, 0, 1)
    assert elimination_tree(np.ones((3, 3))) == (-1, 0, 1)


def test_a_motor_at_a_rotor_has_the_speed_of_the_rotor():
    wheel = ModelBuilder("wheel", gravity=(0, 0, 0))
    wheel.body("wheel", joint=Revolute("z"), inertia=disc(), joint_name="axle")
    model = gears.add_rotor(wheel.build(), "axle", ratio=10, inertia=disc(), name="rotor")
    model = model.replace(actuators=(Actuator("m", model.joint_index("rotor_joint")),))
    curve = kt.TorqueSpeed(stall=0.5, free_speed=30.0)
    options = {"controller": lambda t, q, qd: np.array([1e3]), "motors": {"m": curve}}
    motion = kt.simulate(model, [0.0], duration=2.0, **options)
    assert 2.5 < motion.qd[-1, 0] <= 3.0
    both = model.replace(actuators=(*model.actuators, Actuator("brake", 1)))
    with pytest.raises(ModelError, match="is also driven by"):
        kt.simulate(both, [0.0], duration=0.1, **options)


def test_rotors_in_a_linkage_are_compared_along_the_motion_that_its_loop_allows():
    """A rotor on the crank turns with it: what the armature misses is found by hand."""
    I = kt.Inertia.from_mass_center(0.2, np.zeros(3), np.diag([1e-3, 2e-3, 1e-3]))
    linkage = kt.samples.four_bar()
    model = gears.add_rotor(linkage, "rocker_joint", ratio=20.0, inertia=I, on="crank")
    q = kt.loops.assemble(model, np.array([0.4, 0.0, 0.0]), hold=["crank_joint"])
    qd = kt.loops.project_velocity(model, q, np.ones(3))
    error = gears.armature_error(model, q, qd)
    G = kt.loops.null_space(model, q, qd).G[:, 0]
    crank, rocker = G[0], G[2]
    exact = 2e-3 * (crank + 20.0 * rocker) ** 2  # the axes are parallel
    short = 2e-3 * (crank**2 + (20.0 * rocker) ** 2)
    H = kt.mass_matrix(model, q)[0, 0]
    np.testing.assert_allclose(error.inertia, abs(short - exact) / H, rtol=1e-9)
    bare = gears.add_rotor(linkage, "crank_joint", ratio=20.0, inertia=I)
    assert gears.armature_error(bare, q, qd).inertia < 1e-12
