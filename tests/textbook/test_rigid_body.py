import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_force, random_motion

from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import (
    Inertia,
    InverseInertia,
    Motion,
    Plucker,
    Screw,
    carried_rate,
    cross,
    exp,
    moment_about,
    point_acceleration,
    point_velocity,
    rot,
    spatial_acceleration,
    swap_vector_order,
    xlt,
)
from kinetree.spatial.lie import dual_bracket
from kinetree.spatial.vector3 import skew
from kinetree.textbook.constrained_body import (
    bias_force,
    force_on_body,
    free_acceleration,
    kinetic_energy,
    newton_euler,
)


@pytest.fixture
def body():
    """The single-body example: frame at the mass centre."""
    I = Inertia.from_mass_center(4, np.zeros(3), np.diag([1, 2, 3]))
    v = Motion([0.1, 0.2, 0.3], [1, -1, 0.5])
    a = Motion([0.5, -0.4, 0.3], [0.2, 0.1, -0.6])
    return I, v, a


@pytest.mark.covers("Lynch & Park 9.2", "RBDA 2.14", by=(force_on_body, kinetic_energy))
def test_single_body_numbers(body):
    I, v, a = body
    assert_close((I @ v).to_array(), np.array([0.1, 0.4, 0.9, 4, -4, 2]))
    assert_close(kinetic_energy(I, v), 4.68)
    assert_close(force_on_body(I, v, a).to_array(), np.array([0.56, -0.86, 0.92, 2.4, 1.4, -3.6]))


@pytest.mark.covers("Lynch & Park 9.2", by=force_on_body)
def test_five_algebraic_forms_agree(body):
    """(9.17) with (9.20), (9.21), (9.33), (9.34) and the spatial equation."""
    I, v, a = body
    w, u, wd, ud = v.angular, v.linear, a.angular, a.linear
    J, m, G = I.rotational, I.mass, I.to_matrix()
    one = np.concatenate([J @ wd + cross(w, J @ w), m * (ud + cross(w, u))])
    blocks = np.kron(np.eye(2), skew(w))
    two = G @ a.to_array() + blocks @ G @ v.to_array()
    three = G @ a.to_array() - dual_bracket(v.to_array()) @ G @ v.to_array()
    four = J @ wd - skew(w).T @ J @ w
    spatial = force_on_body(I, v, a).to_array()
    for form in (one, two, three):
        assert_close(form, spatial)
    assert_close(four, spatial[:3])


@pytest.mark.covers("Lynch & Park 9.2", by=force_on_body)
def test_uniform_motion_seen_from_a_spinning_body_needs_no_force(rng):
    """Constant velocity in space: the body components change at -w x v, f = 0."""
    w, u = rng.standard_normal((2, 3))
    I = Inertia.from_mass_center(2.0, np.zeros(3), np.eye(3))
    f = force_on_body(I, Motion(w, u), Motion(np.zeros(3), -cross(w, u)))
    assert_close(f.to_array(), np.zeros(6), scale=10)


@pytest.mark.covers(
    "RBDA Example 2.6",
    "RBDA 2.14",
    "6-D Guide 1: Equation of Motion",
    by=(force_on_body, newton_euler),
)
def test_newton_and_euler_equations_at_the_mass_center(rng):
    """Anywhere in space: move the spatial force to the mass centre and compare."""
    I, v, a = random_inertia(rng), random_motion(rng), random_motion(rng)
    c = I.center_of_mass
    f, n_C = newton_euler(
        I.mass, I.rotational_at_center, v.angular, a.angular, point_acceleration(a, v, c)
    )
    spatial = force_on_body(I, v, a)
    assert_close(spatial.linear, f, scale=50)
    assert_close(moment_about(spatial, c), n_C, scale=50)


@pytest.mark.covers("RBDA Example 2.6", by=force_on_body)
def test_spatial_equation_expands_to_newton_and_euler(body):
    I, v, _ = body
    wd, cdd = np.array([0.3, -0.2, 0.7]), np.array([1.0, 2, -1])
    f = force_on_body(I, v, spatial_acceleration(wd, cdd, v))
    assert_close(f.linear, I.mass * cdd)
    w, J = v.angular, I.rotational
    assert_close(f.angular, J @ wd + cross(w, J @ w))


@pytest.mark.covers("Tutorial 3", by=force_on_body)
def test_world_frame_form_with_the_linear_part_first(rng):
    """blockdiag(m 1, I_c)(vd, wd) + (0, w x I_c w) with I_c = R I_0 Rᵀ."""
    R, J = random_placement(rng).E.T, np.diag(rng.uniform(1, 2, 3))
    w, wd, vd = rng.standard_normal((3, 3))
    m, I_c = 1.7, R @ J @ R.T
    M_c = np.block([[m * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), I_c]])
    stacked = M_c @ np.concatenate([vd, wd]) + np.concatenate([np.zeros(3), cross(w, I_c @ w)])
    body = Inertia.from_mass_center(m, np.zeros(3), J)
    X = rot(R.T)
    v = Motion(w, np.zeros(3))  # the mass centre may as well be at rest just now
    f = force_on_body(body, X @ v, X @ Motion(wd, vd))
    assert_close(swap_vector_order((X.T @ f).to_array()), stacked)
    assert_close(np.linalg.eigvalsh(I_c), np.sort(np.diag(J)))


@pytest.mark.covers("RBDA 2.12", "6-D Guide 1: Inertia", by=Inertia.__matmul__)
def test_momentum_about_another_point(rng):
    """h_O = h_C + OC x h, and the energy is half the momentum times the velocity."""
    I, v = random_inertia(rng), random_motion(rng)
    c = I.center_of_mass
    h = I @ v
    spin = I.rotational_at_center @ v.angular
    linear = I.mass * point_velocity(v, c)
    assert_close(h.linear, linear)
    assert_close(h.angular, spin + cross(c, linear), scale=20)
    energy = (linear @ point_velocity(v, c) + v.angular @ spin) / 2
    assert_close(kinetic_energy(I, v), energy)


@pytest.mark.covers("RBDA 2.14", "6-D Guide 1: Equation of Motion", by=force_on_body)
def test_force_is_the_rate_of_momentum(rng):
    """d/dt(I v) by complex step along the motion."""
    I, v, a = random_inertia(rng), random_motion(rng), random_motion(rng)
    h = 1e-30
    moved = exp(v * (1j * h)).inv_apply(I)
    rate = (moved @ (v + a * (1j * h))).to_array().imag / h
    assert_close(force_on_body(I, v, a).to_array(), rate, ulps=300)
    by_rule = carried_rate(I, v) @ v + I @ a
    assert_close(by_rule.to_array(), rate, ulps=300)


@pytest.mark.covers("RBDA 2.14", "6-D Guide 1: Equation of Motion", by=bias_force)
def test_weight_may_move_into_the_bias_force(rng):
    I, v, a, a_g = (
        random_inertia(rng),
        random_motion(rng),
        random_motion(rng),
        Motion(np.zeros(3), np.array([0, 0, -9.81])),
    )
    weight = I @ a_g
    remaining = force_on_body(I, v, a) - weight
    assert_close((I @ a + bias_force(I, v, weight)).to_array(), remaining.to_array(), scale=100)
    assert_close(bias_force(I, v).to_array(), force_on_body(I, v, Motion.zero()).to_array())
    line = Screw.of(weight)
    assert_close(line.free_magnitude, 0.0, scale=100)
    assert_close(moment_about(weight, I.center_of_mass), np.zeros(3), scale=100)


@pytest.mark.covers("RBDA 2.15", by=free_acceleration)
def test_free_acceleration_inverts_the_equation_of_motion(rng):
    I, v, f = random_inertia(rng), random_motion(rng), random_force(rng)
    a = free_acceleration(InverseInertia.from_inertia(I), f, bias_force(I, v))
    condition = np.linalg.cond(I.to_matrix())
    assert_close(force_on_body(I, v, a).to_array(), f.to_array(), condition=condition)


@pytest.mark.covers("RBDA 2.7", "6-D Guide 1: Using Spatial Vectors", by=force_on_body)
def test_rigidly_joined_bodies_move_as_one(rng):
    """Equal velocities, added inertias, internal forces cancel."""
    I1, I2, v, a = *(random_inertia(rng) for _ in range(2)), random_motion(rng), random_motion(rng)
    total = force_on_body(I1, v, a) + force_on_body(I2, v, a)
    assert_close(force_on_body(I1 + I2, v, a).to_array(), total.to_array())


@pytest.mark.covers("RBDA 2.7", by=force_on_body)
def test_equation_of_motion_holds_in_any_coordinates(rng):
    I, v, a, X = random_inertia(rng), random_motion(rng), random_motion(rng), random_placement(rng)
    f = force_on_body(X.apply(I), X @ v, X @ a)
    assert_close((X.T @ f).to_array(), force_on_body(I, v, a).to_array(), scale=100)


@pytest.mark.covers("Lynch & Park 9.2", "Spencer A.2.4", by=Plucker.inv_apply)
def test_inertia_at_another_frame_is_a_congruence(rng):
    """G' = Ad_T^T G Ad_T with T the pose of the mass-centre frame in the new frame."""
    from kinetree.spatial.lie import adjoint

    X = random_placement(rng)  # from the new frame to the mass-centre frame
    G = Inertia.from_mass_center(1.3, np.zeros(3), np.diag([1.0, 2, 2.5]))
    Ad = adjoint(X.inverse().to_pose())  # takes twists from the new frame to the centre
    assert_close(X.inv_apply(G).to_matrix(), Ad.T @ G.to_matrix() @ Ad)


@pytest.mark.covers("RBDA 2.14", "Lynch & Park 9.2", by=free_acceleration)
def test_torque_free_top_keeps_momentum_and_energy_and_precesses():
    """Symmetric top, fourth-order Runge-Kutta in body coordinates against the closed form."""
    I = Inertia.from_mass_center(1.0, np.zeros(3), np.diag([1.0, 1.0, 1.6]))
    Phi = InverseInertia.from_inertia(I)
    v = Motion([0.3, 0.0, 2.0], np.zeros(3))
    rate = (1.6 - 1.0) / 1.0 * 2.0  # precession of w about the body z axis

    def vd(v):
        return free_acceleration(Phi, bias_force(I, v) * 0, bias_force(I, v))

    h, n = 2e-3, 500
    E0, L0 = kinetic_energy(I, v), np.linalg.norm((I @ v).angular)
    for _ in range(n):
        k1 = vd(v)
        k2 = vd(v + k1 * (h / 2))
        k3 = vd(v + k2 * (h / 2))
        k4 = vd(v + k3 * h)
        v = v + (k1 + k2 * 2 + k3 * 2 + k4) * (h / 6)
    angle = rate * n * h
    expected = np.array([0.3 * np.cos(angle), 0.3 * np.sin(angle), 2.0])
    assert np.abs(v.angular - expected).max() < 1e-11
    assert_close(kinetic_energy(I, v), E0, ulps=2000)
    assert_close(np.linalg.norm((I @ v).angular), L0, ulps=2000)


@pytest.mark.covers("6-D Guide 1: Two-Body Problem in 3-D", by=xlt)
def test_transfer_rules_of_bodies_at_rest(rng):
    """At rest: acceleration of a point P at r is a - r x wd, moment about it is n - r x f."""
    a, f, r = random_motion(rng), random_force(rng), rng.standard_normal(3)
    assert_close((xlt(r) @ a).linear, a.linear - cross(r, a.angular))
    assert_close((xlt(r).star @ f).angular, f.angular - cross(r, f.linear))
    assert_close(point_acceleration(a, Motion.zero(), r), (xlt(r) @ a).linear)
