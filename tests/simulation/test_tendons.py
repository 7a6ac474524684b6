"""Tendons and gravity compensation in motion, against closed forms and differences."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import ModelError
from kinetree.spatial import Inertia

EPS = np.finfo(float).eps


def arm(**tendon):
    b = kt.ModelBuilder("arm")
    for name, on in (("a", None), ("b", "a"), ("c", "b")):
        bar = kt.shapes.box(0.3, 0.05, 0.05, mass=1.0, at=(0.15, 0.0, 0.0))
        at = (0.3, 0.0, 0.0) if on else None
        b.body(name, on=on, joint=kt.Revolute("y"), at=at, inertia=bar, joint_name=f"j{name}")
    b.tendon("cable", joints={"ja": 0.8, "jc": -0.5}, offset=0.1, **tendon)
    return b.build()


def states(model, n=5):
    rng = np.random.default_rng(3)
    return rng.normal(size=(n, model.nq)), rng.normal(size=(n, model.nv))


def test_spring_is_slack_between_its_rest_lengths():
    m = arm(stiffness=3.0, rest=(-0.2, 0.3))
    for x, force in ((0.0, 0.0), (0.2 / 0.8, 0.0), (1.0, -3 * (0.9 - 0.3)), (-1.0, 3 * 0.5)):
        tau = kt.passive_force(m, np.array([x, 0.4, 0.0]), np.zeros(3))
        np.testing.assert_allclose(tau, force * np.array([0.8, 0, -0.5]), atol=8 * EPS)


def test_force_is_minus_the_gradient_of_the_energy_that_trajectories_report():
    m = arm(stiffness=3.0, rest=0.2).replace(
        gravity_compensation=(kt.GravityCompensation(2, 1.3, (0.1, 0.2, -0.3)),),
        couplings=(kt.Coupling("cam", 3, 1, (0.1, 0.5, 0.3)),),
    )
    q, qd = np.array([0.3, -0.8]), np.zeros(2)

    def stored(q):
        return kt.loops.mechanical_energy(m, q, qd) - kt.potential_energy(m, q)

    gradient = [(stored(q + h) - stored(q - h)) / 2e-5 for h in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(kt.passive_force(m, q, qd), -np.array(gradient), rtol=1e-8)


def test_carried_weight_is_the_gravity_force_of_the_mass_alone():
    m = arm()
    bar = m.inertia[2]
    m = m.replace(gravity_compensation=(kt.GravityCompensation(2, bar.mass, bar.center_of_mass),))
    alone = m.replace(inertia={n: Inertia.zero() for n in "ac"}, gravity_compensation=())
    q, qd = states(m)
    expected = kt.gravity_force(alone, q)
    np.testing.assert_allclose(kt.passive_force(m, q, 0 * qd), expected, atol=32 * EPS)


def test_parts_on_one_body_add_up():
    one, two = (
        kt.GravityCompensation(3, 0.4, (0.1, 0, 0)),
        kt.GravityCompensation(3, 0.6, (0, 0, 1)),
    )
    sum_ = kt.GravityCompensation(3, 1.0, (0.04, 0.0, 0.6))
    q, qd = states(arm())
    forces = [
        kt.passive_force(arm().replace(gravity_compensation=c), q, qd)
        for c in ((one, two), (sum_,))
    ]
    np.testing.assert_allclose(*forces, atol=32 * EPS)


def test_energy_is_kept_and_limits_stop_the_length():
    m = arm(stiffness=5.0, rest=0.1, lower=-0.4, upper=0.6).replace(
        gravity_compensation=(kt.GravityCompensation(1, 1.0, (0.15, 0, 0)),)
    )
    q, qd = np.array([0.1, -0.2, 0.3]), np.array([1.0, 0.5, -0.5])
    free = kt.simulate(m, q, qd, duration=1.0, dt=1e-3, limits=None, integrator="rk4")
    assert np.ptp(free.energy) < 1e-8
    length = lambda motion: 0.1 + motion.q[:, 0] * 0.8 - motion.q[:, 2] * 0.5  # noqa: E731
    assert length(free).max() > 0.75
    stopped = kt.simulate(m, q, qd, duration=1.0, dt=1e-3)
    assert length(stopped).max() < 0.65
    assert stopped.energy[-1] < stopped.energy[0]
    batch = kt.rollout(m, np.stack([q, q]), np.stack([qd, qd]), steps=1000, dt=1e-3)
    np.testing.assert_allclose(batch.q[-1, 1], stopped.q[-1], rtol=1e-9)


def test_friction_of_a_tendon_brakes_its_length_alone():
    m = arm(friction=0.4).replace(gravity=(0, 0, 0))
    qd = np.array([0.5, 0.3, 0.8])  # at which the length stands still: 0.8 * 0.5 = 0.5 * 0.8
    np.testing.assert_allclose(kt.passive_force(m, np.zeros(3), qd), 0, atol=EPS)
    tau = kt.passive_force(m, np.zeros(3), -np.array([1.0, 0, 0]))
    np.testing.assert_allclose(tau, 0.4 * np.array([0.8, 0, -0.5]), atol=EPS)
    law = kt.Friction(width=1e-2)
    motion = kt.simulate(m, np.zeros(3), qd * [1, 1, -1], duration=1.0, dt=1e-3, friction=law)
    rate = motion.qd @ np.array([0.8, 0, -0.5])
    power = 0.4 * rate**2 / np.sqrt(rate**2 + 1e-4)
    lost = np.sum(power[1:] + power[:-1]) / 2 * 1e-3
    assert lost > 5e-3
    assert motion.energy[0] - motion.energy[-1] == pytest.approx(lost, rel=1e-4)


@pytest.mark.parametrize(
    ("tendon", "options", "message"),
    [
        ({"lower": -1.0}, {"limits": "rigid"}, "rigid limits of tendon 'cable': only steps of"),
        ({"friction": 1.0}, {"friction": "exact"}, "exact friction of tendon 'cable': only steps"),
    ],
)
def test_events_of_tendons_are_rejected_by_name(tendon, options, message):
    m = arm(**tendon)
    with pytest.raises(ModelError, match=message):
        kt.simulate(m, np.zeros(3), duration=0.1, **options)


def test_linearization_has_the_spring_and_the_damper():
    m = arm(stiffness=3.0, damping=0.7, rest=0.1).replace(gravity=(0, 0, 0))
    c = np.array([0.8, 0, -0.5])
    found = kt.control.linearize(m, np.zeros(3), np.zeros(3))
    Hinv = np.linalg.inv(kt.mass_matrix(m, np.zeros(3)))
    np.testing.assert_allclose(found.A[3:, :3], -3.0 * Hinv @ np.outer(c, c), atol=1e-12 * 3e3)
    np.testing.assert_allclose(found.A[3:, 3:], -0.7 * Hinv @ np.outer(c, c), atol=1e-12 * 7e2)


def test_a_controller_leaves_carried_weight_to_the_model():
    m = arm(stiffness=3.0).replace(
        gravity_compensation=(kt.GravityCompensation(2, 1.0, (0.15, 0, 0)),)
    )
    q, qd = states(m)
    tau = kt.control.GravityCompensation(m)(0.0, q, qd)
    carried = kt.passive_force(m.replace(tendons=()), q, qd)
    np.testing.assert_allclose(tau + carried, kt.gravity_force(m, q), atol=64 * EPS)


def test_a_length_far_outside_its_limits_is_named():
    m = arm(lower=-1.0, upper=1.0)
    with pytest.warns(
        kt.errors.SimulationWarning, match="tendon 'cable' starts with a length of 1"
    ):
        kt.simulate(m, np.array([1.5, 0.0, 0.0]), duration=2e-3)
