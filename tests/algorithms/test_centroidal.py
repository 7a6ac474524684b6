"""Momentum about the mass centre, its matrix and rates, the locked inertia, the ground."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import STEP, random_state, rate

import kinetree as kt
from kinetree.algorithms import centroidal, crba, kinematics
from kinetree.algorithms import centroidal as cen
from kinetree.errors import SingularError
from kinetree.joints import Free, Prismatic, Revolute, Universal
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia
from kinetree.spatial import Inertia, xlt


def scale_of(*arrays):
    return 10 + max(np.max(np.abs(a), initial=0.0) for a in arrays)


@pytest.mark.covers(
    "RBDA 2.12", "RBDA 6.2", by=(cen.centroidal_momentum_matrix, cen.momentum_matrix)
)
@pytest.mark.parametrize("n", range(4))
def test_matrix_times_velocity_is_the_momentum(n, rng):
    m, q, qd, *_ = random_state(rng)
    A, I = cen.momentum_matrix(m, q), cen.total_inertia(m, q)
    h = centroidal.momentum(m, q, qd)
    assert_close(A.to_array() @ qd, h.to_array(), scale=scale_of(h.to_array()))
    c = centroidal.center_of_mass(m, q)
    assert_close(I.center_of_mass, c, scale=10)
    about_center = [*(h.angular - np.cross(c, h.linear)), *h.linear]
    A_G = cen.centroidal_momentum_matrix(m, q)
    scale = scale_of(h.to_array()) * scale_of(c)
    assert_close(A_G @ qd, about_center, scale=scale)
    assert_close(cen.centroidal_momentum(m, q, qd), about_center, scale=scale)


@pytest.mark.covers("RBDA 2.12", by=cen.centroidal_momentum_matrix_rate)
@pytest.mark.parametrize("n", range(4))
def test_rate_of_the_matrix_is_the_derivative_of_its_entries(n, rng):
    m, q, qd, qdd, _ = random_state(rng)
    A_G = cen.centroidal_momentum_matrix(m, q)
    expected = rate(lambda q: cen.centroidal_momentum_matrix(m, q), m, q, qd)
    actual = cen.centroidal_momentum_matrix_rate(m, q, qd)
    assert_close(actual, expected, scale=scale_of(expected) * 100)
    hd = cen.centroidal_momentum_rate(m, q, qd, qdd)
    scale = scale_of(expected) * 1000
    assert_close(A_G @ qdd + actual @ qd, hd, scale=scale)
    assert_close(cen.centroidal_momentum_bias(m, q, qd), actual @ qd, scale=scale)
    moved = q + 1j * STEP * m.configuration_rate(q, qd), qd + 1j * STEP * qdd
    assert_close(cen.centroidal_momentum(m, *moved).imag / STEP, hd, scale=scale)


@pytest.mark.covers("RBDA 2.12", by=(cen.center_of_mass_jacobian, cen.center_of_mass_acceleration))
@pytest.mark.parametrize("n", range(3))
def test_velocity_of_the_mass_center_is_the_rate_of_its_position(n, rng):
    m, q, qd, qdd, _ = random_state(rng)
    J, Jd = cen.center_of_mass_jacobian(m, q), cen.center_of_mass_jacobian_rate(m, q, qd)
    v = rate(lambda q: centroidal.center_of_mass(m, q), m, q, qd)
    assert_close(J @ qd, v, scale=scale_of(v))
    assert_close(cen.center_of_mass_velocity(m, q, qd), v, scale=scale_of(v))
    entries = rate(lambda q: cen.center_of_mass_jacobian(m, q), m, q, qd)
    assert_close(Jd, entries, scale=scale_of(entries))
    moved = q + 1j * STEP * m.configuration_rate(q, qd), qd + 1j * STEP * qdd
    a = cen.center_of_mass_acceleration(m, q, qd, qdd)
    assert_close(cen.center_of_mass_velocity(m, *moved).imag / STEP, a, scale=scale_of(a))
    assert_close(J @ qdd + Jd @ qd, a, scale=scale_of(a))


@pytest.mark.covers("RBDA 2.13", "RBDA 6.2", by=cen.centroidal_inertia)
@pytest.mark.parametrize("n", range(3))
def test_locked_inertia_is_the_sum_of_all_bodies(n, rng):
    m, q, *_ = random_state(rng)
    X_0 = kinematics.base_transforms(m, kinematics.joint_transforms(m, q)[0])
    total = Inertia.zero()
    for i in range(1, m.body_count + 1):
        total = total + X_0[i].inv_apply(m.inertia[i])
    c = total.center_of_mass
    expected = total.transformed(xlt(c)).to_matrix()
    assert_close(cen.centroidal_inertia(m, q), expected, scale=scale_of(total.to_matrix()))
    assert_close(cen.total_inertia(m, q).to_matrix(), total.to_matrix())


@pytest.mark.covers("RBDA 6.2", by=cen.momentum_matrix)
def test_first_rows_of_the_inertia_matrix_of_a_floating_tree_are_its_momentum(rng):
    m, q, *_ = random_state(rng, floating_base=True, branching=0.0)
    X_0 = kinematics.base_transforms(m, kinematics.joint_transforms(m, q)[0])
    A = cen.momentum_matrix(m, q)
    in_body = (X_0[1].star @ A).to_array()
    assert_close(in_body, crba.joint_space_inertia(m, q)[:6], scale=scale_of(A.to_array()))


AWAY = np.array([1e7, -2e7, 3e7])


def near_and_far(base, rng):
    """A mechanism in the same configuration near the origin and 4e7 m away, not rounded."""
    builder = ModelBuilder("carried")
    if base == "sliders":  # which have no mass
        builder.body("along", joint=Prismatic("x")).body("up", on="along", joint=Prismatic("z"))
    builder.body(
        "trunk", joint=Free() if base == "free" else Revolute("y"),
        on="up" if base == "sliders" else "base", inertia=random_inertia(rng),
    )  # fmt: skip
    builder.body(
        "arm", on="trunk", at=(0.3, 0, -1), joint=Revolute("x"), inertia=random_inertia(rng)
    )
    builder.body("eye", on="trunk", at=(0, 1, 0), joint=Universal(), inertia=random_inertia(rng))
    m = builder.build()
    q = m.random_configuration(rng)
    near, far = np.array(q), np.array(q)
    if base == "placed":
        return (m, q), (m.replace(placement={m.joint_names[0]: xlt(AWAY)}), q)
    if base == "free":
        near[:3], far[:3] = 0, AWAY
    else:
        near[:2], far[:2] = 0, AWAY[:2]
    return (m, near), (m, far)


@pytest.mark.covers("RBDA 2.12", by=cen.centroidal_inertia)
@pytest.mark.parametrize("base", ["free", "placed", "sliders"])
def test_centroidal_quantities_do_not_depend_on_the_position(base, rng):
    """The square of the distance has 15 digits: none of them may be needed."""
    near, far = near_and_far(base, rng)
    qd, qdd = rng.standard_normal((2, near[0].nv))
    for name, arrays in {
        "centroidal_inertia": (),
        "centroidal_momentum": (qd,),
        "centroidal_momentum_rate": (qd, qdd),
        "centroidal_momentum_bias": (qd,),
        "centroidal_momentum_matrix": (),
        "centroidal_momentum_matrix_rate": (qd,),
        "center_of_mass_jacobian": (),
        "center_of_mass_jacobian_rate": (qd,),
        "center_of_mass_velocity": (qd,),
        "center_of_mass_acceleration": (qd, qdd),
    }.items():
        here, there = (getattr(cen, name)(*at, *arrays) for at in (near, far))
        scale = scale_of(here)
        if base == "sliders" and "matrix" in name:  # columns are momenta as the slider has them
            scale = scale * np.linalg.norm(AWAY)
        assert_close(there, here, scale=scale)


def test_masses_may_be_inputs(rng):
    m, _ = near_and_far("sliders", rng)[0]
    q = m.random_configuration(rng)
    inertia = random_inertia(rng)
    of_inertia = kt.compile(kt.centroidal_inertia, m, parameters=("inertia:trunk",))
    changed = m.replace(inertia={"trunk": inertia})
    assert_close(of_inertia(q, inertia.parameters()), kt.centroidal_inertia(changed, q), scale=10)


# --- ground --------------------------------------------------------------------------------------


def cart(rng):
    """A cart on rails with a pendulum on it."""
    return (
        ModelBuilder("cart")
        .body("cart", joint=Prismatic("x"), at=(0, 0, 1.0), inertia=random_inertia(rng))
        .body("rod", on="cart", joint=Revolute("y"), at=(0, 0, 0.5), inertia=random_inertia(rng))
        .build()
    )


@pytest.mark.covers("RBDA 2.12", by=cen.zero_moment_point)
def test_at_rest_the_ground_pushes_below_the_mass_center(rng):
    m, q, *_ = random_state(rng)
    m = m.replace(gravity=(1.0, -2.0, -9.0))
    zero, point = np.zeros(m.nv), np.array([0.3, -0.2, 0.4])
    zmp, c = cen.zero_moment_point(m, q, zero, zero, point), centroidal.center_of_mass(m, q)
    assert_close(m.gravity @ (zmp - point), 0.0, scale=100)
    assert_close(np.cross(m.gravity, zmp - c), np.zeros(3), scale=100)


@pytest.mark.covers("RBDA 2.12", by=cen.zero_moment_point)
def test_the_ground_force_has_no_moment_along_the_ground_about_this_point(rng):
    m = cart(rng)
    q, qd, qdd = rng.standard_normal((3, 2))
    point = np.array([0.0, 0.0, -0.2])
    zmp = cen.zero_moment_point(m, q, qd, qdd, point)
    mass, c = centroidal.total_mass(m), centroidal.center_of_mass(m, q)
    hd = cen.momentum_rate(m, q, qd, qdd)
    push = hd.linear - mass * m.gravity
    moment = hd.angular - np.cross(c, mass * m.gravity) - np.cross(zmp, push)
    assert_close(moment[:2], np.zeros(2), scale=1000)
    assert_close(zmp[2], -0.2, ulps=4)


def test_an_accelerating_point_mass_is_the_cart_on_a_table():
    """The textbook formula ``x - z a / g`` of a mass at height z."""
    mass = Inertia.from_mass_center(2.0, (0, 0, 0), np.zeros((3, 3)))
    m = ModelBuilder().body("mass", joint=Prismatic("x"), at=(0, 0, 0.8), inertia=mass).build()
    zmp = cen.zero_moment_point(m, np.array([0.1]), np.zeros(1), np.array([3.0]), np.zeros(3))
    assert_close(zmp, [0.1 - 0.8 * 3.0 / 9.81, 0, 0], ulps=8)


def test_what_flies_has_no_zero_moment_point():
    mass = Inertia.from_mass_center(2.0, (0, 0, 0), np.zeros((3, 3)))
    m = ModelBuilder("lift").body("mass", joint=Prismatic("z"), inertia=mass).build()
    one = np.zeros(1)
    with pytest.raises(SingularError, match="model 'lift' has no zero-moment point"):
        cen.zero_moment_point(m, one, one, np.array([-9.81]), np.zeros(3))
    afloat = m.replace(gravity=(0.0, 0.0, 0.0))
    with pytest.raises(SingularError, match="'lift' has no gravity: nothing is up"):
        cen.zero_moment_point(afloat, one, one, one, np.zeros(3))


def test_nothing_without_mass_has_a_mass_center():
    m = ModelBuilder("ghost").body("b", joint=Revolute("z")).build()
    with pytest.raises(SingularError, match="model 'ghost' has no mass"):
        cen.centroidal_momentum_matrix(m, np.zeros(1))


def test_a_grain_of_dust_has_a_mass_centre():
    for mass in (1e-20, 1.0, 1e20):
        model = (
            ModelBuilder("dust")
            .body("b", joint=Free(), inertia=Inertia.from_mass_center(
                mass, (0.1, 0.2, 0.3), 1e-3 * mass * np.eye(3)))
            .build()
        )  # fmt: skip
        assert_close(kt.center_of_mass(model, model.neutral()), [0.1, 0.2, 0.3])
