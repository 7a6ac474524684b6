from dataclasses import replace

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import (
    FLAT,
    SINGULAR,
    absolute_five_bar,
    five_bar,
    link_angles,
    pendulum,
    pendulum_state,
    pinned_body,
    swinging_body,
)

import kinetree as kt
from kinetree import samples
from kinetree.errors import JointError, LoopError, ShapeError, SingularError
from kinetree.joints.prescribed import PrescribedInstant
from kinetree.loops.state_space import invariants, multipliers
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.system import ConstrainedSystem, _require_derivative
from kinetree.model import JointDynamics
from kinetree.quantities import dynamics
from kinetree.textbook import null_space_forms, system_invariants
from kinetree.textbook.svd_form import SVDForm
from kinetree.textbook.system_motion import integrate_system

SYSTEMS = {
    "pendulum": pendulum,
    "five-bar": five_bar,
    "five-bar by hand": absolute_five_bar,
    "parallel four-bar": lambda: system_of(samples.parallel_four_bar()),
}


def off_the_manifold(system, rng):
    return rng.standard_normal(system.n), rng.standard_normal(system.n)


def difference(f, x, dx, h=1e-6):
    return (f(x + h * dx) - f(x - h * dx)) / (2 * h)


@pytest.mark.covers("Spencer 2.1", by=ConstrainedSystem)
@pytest.mark.parametrize("make", SYSTEMS.values(), ids=SYSTEMS)
def test_terms_fit_each_other(make, rng):
    system = make()
    q, v = off_the_manifold(system, rng)
    system.check(q, v)
    M = system.M(q)
    assert_close(M, M.T)
    assert np.linalg.eigvalsh(M)[0] > 0
    np.testing.assert_allclose(difference(system.g, q, v), system.G(q) @ v, atol=1e-8)
    np.testing.assert_allclose(
        difference(lambda q: system.G(q) @ v, q, v), system.Gdot_v(q, v), atol=1e-7
    )
    terms = system.constraint(q, v)
    assert_close(terms.G, system.G(q))
    assert_close(terms.Gdot_v, system.Gdot_v(q, v))


@pytest.mark.covers("Spencer 2.1", by=ConstrainedSystem)
def test_derivatives_of_a_constraint_follow_from_its_text(rng):
    by_hand = pendulum()
    system = ConstrainedSystem.from_functions(
        n=2, M=by_hand.M, F=by_hand.F,
        g=lambda q: np.array([q[0] ** 2 + q[1] ** 2 - 1]),
        energy=lambda q, v: (v @ v) / 2 + 9.81 * q[1],
    )  # fmt: skip
    q, v = off_the_manifold(system, rng)
    assert system.m == 1
    assert_close(system.g(q), by_hand.g(q), scale=10)
    assert_close(system.G(q), by_hand.G(q))
    assert_close(system.Gdot_v(q, v), by_hand.Gdot_v(q, v))
    assert_close(system.energy_gradient(q, v), np.array([0, 9.81, *v]))


def test_terms_of_wrong_size_are_named(rng):
    system = pendulum()
    wrong = ConstrainedSystem(**{**vars(system), "Gdot_v": lambda q, v: np.zeros(2)})
    with pytest.raises(ShapeError, match=r"Gdot_v\(q, v\) has shape \(2,\), expected \(1,\)"):
        wrong.check(*off_the_manifold(system, rng))


WRONG = {
    "a sign of Gdot_v": ({"Gdot_v": lambda s: lambda q, v: -s.Gdot_v(q, v)},
                         r"Gdot_v\(q, v\) is not the rate of G\(q\) @ v along v: it is \[-"),
    "a factor of G": ({"G": lambda s: lambda q: 2 * s.G(q)},
                      r"G\(q\) @ v is not the rate of g\(q\) along v.*a sign or a factor"),
    "a sign in terms": ({"terms": lambda s: lambda q, v: s.constraint(q, v)._replace(
                            Gdot_v=-s.Gdot_v(q, v))},
                        r"Gdot_v of terms\(q, v\) is not the rate of G\(q\) @ v"),
    "another g in terms": ({"terms": lambda s: lambda q, v: s.constraint(q, v)._replace(
                               g=s.g(q) + 1)},
                           r"g of terms\(q, v\) is \[.*\], and g\(q\) is \["),
    "a rate gradient": ({"rate_gradient": lambda s: lambda q, v: s.G(q)},
                        r"rate_gradient\(q, v\) @ v is not the rate of G\(q\) @ v"),
    "an energy gradient": ({"energy_gradient": lambda s: lambda q, v: np.array([0, -9.81, *-v])},
                           r"energy_gradient\(q, v\) along \(v, v\) is not the rate of energy"),
}  # fmt: skip


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
def test_terms_that_contradict_each_other_are_named(changes, rng):
    changes, message = changes
    system = pendulum()
    wrong = replace(system, **{name: make(system) for name, make in changes.items()})
    with pytest.raises(ShapeError, match=message):
        wrong.check(*off_the_manifold(system, rng))
    system.check(np.zeros(2), np.zeros(2))  # at rest there is nothing to compare


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_terms_of_any_size_pass(size, rng):
    """Differences estimate their own error."""
    system = pendulum()
    scaled = replace(
        system, g=lambda q: size * system.g(q / size), G=lambda q: system.G(q / size),
        Gdot_v=lambda q, v: system.Gdot_v(q / size, v) / size,
        energy=None, energy_gradient=None,
    )  # fmt: skip
    q, v = off_the_manifold(system, rng)
    scaled.check(size * q, size * v)
    scaled.check(size * q, v)


def test_springs_and_dampers_of_loop_joints_act():
    """As in forward dynamics of the model; and no energy is claimed to be conserved."""
    model = samples.four_bar()
    spring = JointDynamics(stiffness=20.0, damping=0.3, rest=0.4)
    model = model.replace(dynamics={model.loops[0].name: spring})
    q = kt.loops.assemble(model)
    v = kt.loops.project_velocity(model, q, np.ones(model.nv))
    system = system_of(model)
    assert system.energy is None
    assert system.energy_gradient is None
    expected = kt.forward_dynamics(model, q, v, kt.passive_force(model, q, v))
    bare = kt.forward_dynamics(model, q, v, np.zeros(model.nv))
    assert np.max(np.abs(bare - expected)) > 1
    assert_close(multipliers.acceleration(system.independent(q), 0, q, v), expected, ulps=1e5)
    free = system_of(model, passive=False)
    assert free.energy is not None
    assert_close(multipliers.acceleration(free.independent(q), 0, q, v), bare, ulps=1e5)


def test_prescribed_joints_have_no_place_in_a_system():
    model = samples.four_bar().replace(postures=(), limits={"coupler_joint": None})
    prescribed = PrescribedInstant(model.joint[2], (0.0,), (0.5,), (0.0,))
    with pytest.raises(JointError, match="system_of does not support joint 'coupler_joint' of mod"):
        system_of(model.replace(joint={"coupler_joint": prescribed}))


def test_joint_forces_of_a_system_are_one_vector_or_a_function():
    model = samples.five_bar()
    with pytest.raises(ShapeError, match="one vector"):
        system_of(model, np.zeros((2, 4)))
    q = v = np.zeros(4)
    tau = np.array([1.0, 2, 3, 4])
    expected = tau + system_of(model).F(0.5, q, v)
    assert_close(system_of(model, tau).F(0.5, q, v), expected)
    assert_close(system_of(model, lambda t, q, v: 2 * t * tau).F(0.5, q, v), expected)
    assert system_of(model, tau).energy is None


@pytest.mark.covers("Spencer 2.1", by=system_of)
def test_model_and_equations_by_hand_are_one_mechanism(rng):
    """Joint angles against absolute angles: the same motion, multipliers and energy."""
    q, v = 0.3 * rng.standard_normal((2, 4))
    system, by_hand = five_bar(), absolute_five_bar()
    theta, omega = link_angles(q), np.cumsum(v)
    a = multipliers.acceleration(system, 0, q, v)
    b = multipliers.acceleration(by_hand, 0, theta, omega)
    assert_close(np.cumsum(a), b, ulps=1e4)
    lam = np.sort(multipliers.multipliers(system, 0, q, v))
    assert_close(lam, np.sort(multipliers.multipliers(by_hand, 0, theta, omega)), ulps=1e4)
    assert_close(system.energy(q, v), by_hand.energy(theta, omega))


@pytest.mark.covers("Spencer 2.1", by=(multipliers.multipliers, multipliers.acceleration))
def test_numbers_of_the_five_bar_at_its_second_start():
    system, q, v = five_bar(), np.zeros(4), np.zeros(4)
    a = multipliers.acceleration(system, 0, q, v)
    np.testing.assert_allclose(np.cumsum(a), [5.51494, -4.27185, 4.27185, -5.51494], atol=1e-5)
    lam = multipliers.multipliers(system, 0, q, v)
    np.testing.assert_allclose(sorted(lam), [-31.61234, -9.40354], atol=1e-5)
    np.testing.assert_allclose(np.linalg.svd(system.G(q))[1], [2.57560, 1.59775], atol=1e-5)
    assert system.energy(q, v) == pytest.approx(100.8694, abs=1e-4)


@pytest.mark.covers("Spencer 2.1", by=multipliers.multipliers)
def test_multipliers_at_the_stable_equilibrium():
    system = absolute_five_bar()
    theta = np.deg2rad([275.88390, -74.63356, 74.63356, -275.88390])
    v = np.zeros(4)
    np.testing.assert_allclose(multipliers.acceleration(system, 0, theta, v), 0, atol=1e-5)
    np.testing.assert_allclose(
        multipliers.multipliers(system, 0, theta, v), [-4.04391, -49.05], atol=1e-4
    )
    low = system.energy(theta, v) - system.energy(FLAT, v)
    assert low == pytest.approx(-120.63339, abs=1e-4)


@pytest.mark.covers("Spencer 2.1", by=multipliers.acceleration)
@pytest.mark.parametrize("make", SYSTEMS.values(), ids=SYSTEMS)
def test_three_forms_of_the_underlying_equation_agree_everywhere(make, rng):
    system = make()
    q, v = off_the_manifold(system, rng)
    a = multipliers.acceleration(system, 0.0, q, v)
    residual = system_invariants.acceleration_residual(system, q, v, a)
    scale = np.linalg.norm(a) * np.linalg.norm(system.G(q)) + 1
    condition = np.linalg.cond(system.G(q)) ** 2
    assert_close(residual, 0 * residual, scale=scale, ulps=1e3, condition=condition)
    space = null_space_forms.svd(system, q, v)
    b = null_space_forms.acceleration(system, 0.0, q, v, *space)
    assert_close(a, b, ulps=1e3, condition=condition)
    assert_close(a, SVDForm(system).acceleration(0.0, q, v), ulps=1e3, condition=condition)


def test_no_multipliers_at_a_singularity_nor_with_redundant_constraints():
    with pytest.raises(SingularError, match="no unique Lagrange multipliers"):
        multipliers.acceleration(five_bar(), 0, SINGULAR, np.zeros(4))
    hinged = system_of(samples.four_bar())
    q, v = np.zeros(3), np.array([1.0, 0, 0])
    with pytest.raises(SingularError, match=r"system\.independent\(q\)"):
        multipliers.acceleration(hinged, 0, q, v)
    assert hinged.independent(q).m == 2
    rows = hinged.independent(q)
    assert_close(rows.constraint(q, v).Gdot_v, rows.Gdot_v(q, v))
    assert rows.rate_gradient(q, v).shape == (2, 3)


@pytest.mark.covers("Spencer 2.1", by=(invariants.invariants, invariants.invariant_gradient))
@pytest.mark.parametrize("make", SYSTEMS.values(), ids=SYSTEMS)
def test_gradient_of_the_invariants(make, rng):
    system = make()
    n = system.n
    x = np.concatenate(off_the_manifold(system, rng))
    H = invariants.invariant_gradient(system, x[:n], x[n:])
    for dx in np.eye(2 * n):
        rate = difference(lambda x: invariants.invariants(system, x[:n], x[n:]), x, dx)
        np.testing.assert_allclose(rate, H @ dx, atol=1e-7)


@pytest.mark.covers("Spencer 2.2", by=system_invariants.dimensions)
def test_dimensions_of_the_five_bar():
    system, v = five_bar(), np.ones(4)
    assert system_invariants.dimensions(system, np.zeros(4)) == (4, 2, 2, 2)
    assert system_invariants.dimensions(system, SINGULAR) == (4, 2, 1, 3)
    for q, rank in ((np.zeros(4), 4), (SINGULAR, 2)):
        H = invariants.invariant_gradient(system, q, 0 * v)
        assert np.linalg.matrix_rank(H, 1e-9) == rank


def test_velocity_residual_and_drift(rng):
    system = pendulum()
    q, v = pendulum_state(0.3, 2.0)
    assert_close(system_invariants.velocity_residual(system, q, v), np.zeros(1), scale=1)
    off = np.stack([q, 1.1 * q, q]), np.stack([v, v, v + 0.1 * q])
    found = system_invariants.drift(system, *off)
    np.testing.assert_allclose(found.position, [0, 0.21, 0], atol=1e-15)
    np.testing.assert_allclose(found.velocity, [0, 0, 0.2], atol=1e-15)
    assert found.largest().position == pytest.approx(0.21)
    assert found.energy[1] == pytest.approx(0.1 * 9.81 * q[1])
    mute = ConstrainedSystem(**{**vars(system), "energy": None})
    assert np.all(system_invariants.drift(mute, *off).energy == 0)


@pytest.mark.covers("Spencer 2.1", by=system_of)
def test_bodies_in_the_plane_and_joint_coordinates_give_one_motion():
    """Constraints of joints on free bodies, and tree joints without constraints."""
    free, hinged = system_of(pinned_body()), swinging_body()
    angle, rate = 0.4, 1.7
    q, v = np.array([angle, 0, 0]), np.array([rate, 0, 0])
    assert_close(free.g(q), np.zeros(free.m), scale=1)
    expected = dynamics.forward_dynamics(hinged, [angle], [rate], [0.0])
    system = free.independent(q)
    a = multipliers.acceleration(system, 0, q, v)
    assert a[0] == pytest.approx(expected[0], rel=1e-13)
    space = null_space_forms.qr(system, q, v)
    assert_close(null_space_forms.acceleration(system, 0, q, v, *space), a)


@pytest.mark.parametrize("factor", [1.1, 0.5, -1.0, 0.0])
def test_a_wrong_rate_of_a_curved_function_is_rejected(factor):
    def along(t):
        return np.array([np.sin(3 * t), 1 + t * t])

    _require_derivative("Gdot_v", "G", along, np.array([3.0, 0.0]))
    with pytest.raises(ShapeError, match="Gdot_v is not the rate of G along v: it is"):
        _require_derivative("Gdot_v", "G", along, np.array([3.0 * factor, 0.0]))


def test_a_rate_need_not_be_better_than_differences_of_large_numbers():
    """Next to 1e12, which has no digits for steps of 1e-4: both differences agree, and are off."""

    def along(t):
        return np.array([1e12 + t])

    differences = [(along(h) - along(-h)) / (2 * h) for h in (1e-4, 2e-4)]
    assert abs(differences[0] - 1) > 0.1
    _require_derivative("G v", "g", along, np.array([1.0]))


def test_approaches_are_reported_from_a_condition_of_fifty():
    """A point that glides along a line past a condition of 70."""

    def a(x):
        return 1 / 70 + x * x

    system = ConstrainedSystem(
        n=3, m=2, M=lambda q: np.eye(3), F=lambda t, q, v: np.zeros(3),
        g=lambda q: np.array([q[0], a(q[2]) * q[1]]),
        G=lambda q: np.array([[1, 0, 0], [0, a(q[2]), 2 * q[2] * q[1]]]),
        Gdot_v=lambda q, v: np.array([0, 4 * q[2] * v[1] * v[2] + 2 * q[1] * v[2] ** 2]),
    )  # fmt: skip
    state = np.array([0, 0, -0.1]), np.array([0, 0, 1.0])
    counts = []
    for options in ({}, {"near": 50.0}, {"near": 80.0}):
        motion = integrate_system(system, *state, 0.2, 0.02, hold="nothing", **options)
        counts.append(len(motion.passes))
        assert np.max(motion.kappa) == pytest.approx(70, rel=1e-6)
    assert counts == [1, 1, 0]


def test_constraints_in_small_units_are_not_singular():
    """A pendulum in a plane that is given in units of 1e-9, with weights that say so."""
    system = ConstrainedSystem(
        n=3, m=2, M=lambda q: np.eye(3), F=lambda t, q, v: np.array([0, -9.81, 1.0]),
        g=lambda q: np.array([q @ q - 1, 1e-9 * q[2]]),
        G=lambda q: np.array([2 * q, [0, 0, 1e-9]]),
        Gdot_v=lambda q, v: np.array([2 * v @ v, 0]), weights=(1.0, 1e9),
    )  # fmt: skip
    state = 0.0, np.array([1.0, 0, 0]), np.zeros(3)
    np.testing.assert_allclose(multipliers.acceleration(system, *state), [0, -9.81, 0], atol=1e-14)
    with pytest.raises(SingularError, match="the 2 constraints have no unique Lagrange multipli"):
        multipliers.acceleration(replace(system, weights=None), *state)


@pytest.mark.parametrize(
    ("constraint", "kind"),
    [
        ({"rate": lambda q, qd: qd[0] - q[1] * qd[1]}, "nonholonomic"),
        ({"position": lambda q, t: q[0] - np.sin(t)}, "rheonomic"),
    ],
)
def test_constraints_of_velocity_or_time_are_named(constraint, kind):
    ball = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))
    builder = kt.ModelBuilder("pair").body("x", joint=kt.Prismatic("x"), inertia=ball)
    builder.body("y", on="x", joint=kt.Prismatic("y"), inertia=ball)
    model = builder.constraint("guide", **constraint).build()
    with pytest.raises(
        LoopError, match=f"does not support constraint 'guide' of model.*is .*{kind}"
    ):
        system_of(model)
