"""One mechanism with a loop, a geared rotor, armature, springs, a floating base and soft contact.

Each chapter of the book treats its feature alone. Here they meet: columns of the base in ``K`` and
``G``, gears within a loop, a prescribed joint inside it (row X-02).
"""

from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.kinematics import base_velocities, body_accelerations
from kinetree.model import JointDynamics
from kinetree.spatial import Force, Inertia

RADIUS, STIFFNESS, SPRING = 0.15, 5e3, 2.0


def bar(mass, length):
    return Inertia.from_mass_center(
        mass, (length / 2, 0.02, 0.0), mass * length**2 / 12 * np.diag([0.3, 1.0, 1.1])
    )


@pytest.fixture(scope="module")
def everything():
    """A floating hull with four bars, of which the crank drives a rotor; and a closed state."""
    z, b = kt.Revolute("z"), kt.ModelBuilder("everything")
    hull = Inertia.from_mass_center(8.0, (0.1, 0.0, 0.0), np.diag([0.3, 0.4, 0.5]))
    b.body("hull", joint=kt.Free(), inertia=hull)
    b.body("crank", on="hull", joint=z, at=(0, 0, 0.1), inertia=bar(1.0, 0.3))
    b.body("coupler", on="crank", joint=z, at=(0.3, 0, 0), inertia=bar(1.5, 0.7))
    b.body("rocker", on="hull", joint=z, at=(0.6, 0.1, 0.1), inertia=bar(0.8, 0.5))
    rotor = Inertia.from_mass_center(0.2, np.zeros(3), np.diag([1e-4, 1e-4, 2e-4]))
    b.body("rotor", on="rocker", joint=kt.Revolute("x"), inertia=rotor)
    b.coupling("gear", joint="rotor_joint", source="crank_joint", coefficients=(0.0, 15.0))
    b.loop("pin", predecessor="coupler", successor="rocker", joint=z, at=(0.7, 0, 0),
           successor_at=(0.5, 0, 0))  # fmt: skip
    b.geometry(kt.geometry.Sphere(RADIUS), on="hull", name="ball")
    held = JointDynamics(armature=0.05, stiffness=SPRING)
    model = kt.contact.with_ground(b.build().replace(dynamics={"rocker_joint": held}))
    q = kt.loops.assemble(model, model.neutral(), hold=["hull_joint"])
    q[2] = 0.3
    rng = np.random.default_rng(3)
    return model, q, kt.loops.project_velocity(model, q, rng.standard_normal(model.nv) / 2)


@pytest.mark.covers("RBDA 9.1", by=kt.hybrid_dynamics)
def test_accelerations_are_those_of_maximal_coordinates(everything, rng):
    """Hybrid dynamics with a joint of the loop prescribed, against ``solve_bodies`` (L-46)."""
    model, q, qd = everything
    tau, f = rng.standard_normal(model.nv), rng.standard_normal((model.body_count, 6))
    wanted = rng.standard_normal(model.nv)
    forces, qdd = kt.hybrid_dynamics(model, q, qd, tau, wanted, "crank_joint", f)
    full = model.expand(q), model.expand_velocity(q, qd)
    X_0, v = base_velocities(model.uncoupled, *full)
    # without the constraints of the hinge that repeat others: the sparse factors need all rows
    once = model.replace(loops=[replace(model.loops[0], joint=kt.joints.SphereInCylinder("z"))])
    found = kt.loops.solve_bodies(once, X_0, v, forces, [None, *map(Force.from_array, f)])
    all_qdd = model.expand_acceleration(q, qd, qdd)
    _, _, a = body_accelerations(model.uncoupled, *full, all_qdd)
    size = float(np.max(np.abs(all_qdd)))
    for i in range(1, model.body_count + 1):
        expected = X_0[i].inv_apply(a[i]).to_array()
        assert_close(found.a[i].to_array(), expected, scale=size, condition=1e6)


def test_the_equation_of_motion_in_coordinates(everything, rng):
    model, q, qd = everything
    tau = rng.standard_normal(model.nv)
    qdd = kt.forward_dynamics(model, q, qd, tau, method="maximal")
    G, g, names = kt.loops.null_space(model, q, qd)
    assert len(names) == 7
    y = [int(np.argmax(G[:, k] == 1)) for k in range(7)]
    H, C = kt.mass_matrix(model, q), kt.bias_force(model, q, qd)
    size = float(np.max(np.abs(qdd)) * np.max(np.abs(H)))
    assert_close(H @ qdd[y] + C, G.T @ tau, scale=size, condition=1e5)
    assert_close(G @ qdd[y] + g, qdd, condition=1e5)
    skew = kt.mass_matrix_rate(model, q, qd) - 2 * kt.coriolis_matrix(model, q, qd)
    assert_close(skew, -skew.T, scale=float(np.max(np.abs(H))), condition=1e3)


def test_energy_over_a_second_with_contact_and_a_prescribed_joint(everything):
    model, q, qd = everything
    crank = model.v_slice[model.joint_index("crank_joint")].start
    start, speed = q[crank + 1], qd[crank]

    @kt.kernel
    def motion(t):
        w = 3.0
        x, v, a = 1 - np.cos(w * t), w * np.sin(w * t), w * w * np.cos(w * t)
        return [start + speed * t + 0.4 * x], [speed + 0.4 * v], [0.4 * a]

    scene = kt.contact.Scene(model, friction=0.0)
    soft = kt.contact.SoftContact(scene, stiffness=STIFFNESS, damping=0.0)
    run = kt.simulate(model, q, qd, duration=1.0, dt=1e-3, prescribed={"crank_joint": motion},
                      contact=soft)  # fmt: skip
    rocker = model.q_slice[model.joint_index("rocker_joint")].start
    depth = np.maximum(0.0, RADIUS - run.q[:, 2])
    assert depth[0] == 0
    assert np.max(depth) > 0.05
    energy = kt.kinetic_energy(model, run.q, run.qd) + kt.potential_energy(model, run.q)
    energy = energy + SPRING * run.q[:, rocker] ** 2 / 2 + STIFFNESS * depth**2.5 / 2.5
    # the drive of the crank is what hybrid dynamics says, with the contact as a force from outside
    push = np.zeros((len(run.t), model.body_count, 6))
    lever = np.cross(run.q[:, :3], [0.0, 0.0, 1.0])
    push[:, 0] = np.concatenate([lever, np.tile([0.0, 0.0, 1.0], (len(run.t), 1))], axis=-1)
    push[:, 0] *= (STIFFNESS * depth**1.5)[:, None]
    wanted = np.zeros_like(run.qd)
    wanted[:, crank] = 0.4 * 9 * np.cos(3 * run.t)
    passive = kt.passive_force(model, run.q, run.qd)
    tau, _ = kt.hybrid_dynamics(model, run.q, run.qd, passive, wanted, "crank_joint", push)
    assert_close(run.tau[:, crank], tau[:, crank], condition=1e5)
    power, dt = tau[:, crank] * run.qd[:, crank], run.t[1] - run.t[0]
    weights = np.where(np.arange(len(power)) % 2, 4.0, 2.0)  # Simpson's rule
    weights[[0, -1]] = 1.0
    change, work = energy[-1] - energy[0], dt / 3 * weights @ power
    # the force sets in with depth^1.5: steps and Simpson's rule err by dt^2.5 there, in its units
    assert abs(change - work) < 5 * dt**2.5 * np.max(STIFFNESS * depth**2.5 / 2.5)
    assert np.max(np.abs(kt.loops.error(model, run.q))) < 1e-13
