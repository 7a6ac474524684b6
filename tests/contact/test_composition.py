"""Loops, floating bases, gears, prescribed joints, joints of one's own: with all contact.

Single features and all at once, against the equations of all joints written out together; motions
with all at once, by their balance of energy and their residuals.
"""

import numpy as np
import pytest
from support.composed_mechanisms import BEND, FEATURES, Whole, crouching, hopper, turning

import kinetree as kt
from kinetree.contact import (
    Contacts,
    EventDriven,
    Regularized,
    SoftContact,
    TimeStepping,
    contacts,
    forward_dynamics,
    impact,
)
from kinetree.contact.finding.candidates import terms
from kinetree.contact.mobility import drive_forces, free_acceleration, mobility

MODELS = [(), *((feature,) for feature in FEATURES[1:]), FEATURES]
MOTION = {"hip": lambda t: (BEND + 0.1 * np.sin(5 * t), 0.5 * np.cos(5 * t), -2.5 * np.sin(5 * t))}


def each(table):
    """Rows of a table as parameters with readable names."""
    return pytest.mark.parametrize("features", table, ids=[", ".join(f) or "tree" for f in table])


# --- one instant ----------------------------------------------------------------------------------


@each(MODELS)
def test_rows_of_contacts_are_rates_of_the_gap(features, rng):
    scene = hopper(*features)
    m, q = scene.model, crouching(scene, 0.02)
    qd = rng.normal(size=m.nv)
    _, J, b = scene.candidate_terms(m, q, qd)
    found = scene.contacts(q, margin=1.0)
    np.testing.assert_allclose(contacts.jacobian(m, q, found), J, rtol=0, atol=1e-14)
    np.testing.assert_allclose(contacts.bias(m, q, qd, found), b, rtol=0, atol=1e-12)
    h = 1e-5
    ahead, behind = (scene.candidate_positions(m, m.integrate(q, s * qd))[0] for s in (h, -h))
    np.testing.assert_allclose(J[:, 0] @ qd, (ahead - behind) / (2 * h), rtol=0, atol=1e-8)


@pytest.mark.covers("RBDA 11.3", by=(terms, mobility, free_acceleration, drive_forces))
@pytest.mark.parametrize("prescribed", [False, True], ids=["free", "prescribed"])
@each(MODELS)
def test_accelerations_are_those_of_all_joints_together(features, prescribed, rng):
    scene = hopper(*features)
    m, q = scene.model, crouching(scene)
    qd, tau, given = np.zeros(m.nv), 0.3 * rng.normal(size=m.nv), ("hip",) if prescribed else ()
    if "own joint" in features:
        tau[m.v_slice[m.joint_index("ankle")]] = -20.0  # onto the ground
    qdd = np.full(m.nv, 1.5)
    found = forward_dynamics(m, q, qd, tau, scene, given=given, qdd=qdd)
    assert found.modes == ("sticks",)
    assert max(found.residuals) < 1e-9
    whole = Whole(m, q, qd)
    if prescribed:
        whole.tell("hip", 1.5)
    whole.touch(scene.contacts(q, margin=1e-6), 3)
    exact, pushes = whole.solved(whole.force(tau))
    np.testing.assert_allclose(m.expand_acceleration(q, qd, found.qdd), exact, atol=1e-8)
    np.testing.assert_allclose(found.forces.ravel(), pushes[-3:], atol=1e-8)
    if prescribed:
        hip = m.v_slice[m.joint_index("hip")]
        assert found.tau[hip] == pytest.approx(tau[hip] + pushes[-4], abs=1e-8)
    else:
        np.testing.assert_array_equal(found.tau, tau)


@pytest.mark.covers("RBDA 11.7", by=(impact, mobility))
@pytest.mark.parametrize("prescribed", [False, True], ids=["free", "prescribed"])
@each(MODELS)
def test_impacts_are_those_of_all_joints_together(features, prescribed):
    scene = hopper(*features)
    m, q = scene.model, crouching(scene)
    falls = (0, 0.2, 0, 0.1, 0, -1.0) if "floating" in features else -1.0
    qd = turning(m, q, {"hip": 1.0, "trunk": falls})
    given = ("hip",) if prescribed else ()
    after = impact(m, q, qd, scene, restitution=0.5, friction=0.0, law="energetic", given=given)
    assert max(after.residuals) < 1e-10
    whole = Whole(m, q, np.zeros(m.nv))
    if prescribed:
        whole.tell("hip", 0.0)
    found = scene.contacts(q, margin=1e-6)
    whole.touch(found, 1)
    zeta = contacts.velocity(m, q, qd, found)[0, 0]
    assert zeta < -0.1
    whole.r = np.zeros(len(whole.r))
    whole.r[-1] = -1.5 * zeta
    step, pushes = whole.solved(np.zeros(len(whole.qd)))
    np.testing.assert_allclose(m.expand_velocity(q, after.qd - qd), step, atol=1e-10)
    np.testing.assert_allclose(after.impulse[0, 0], pushes[-1], rtol=1e-10)
    energy = kt.kinetic_energy(m, q, after.qd) - kt.kinetic_energy(m, q, qd)
    assert after.energy_change == pytest.approx(energy, abs=1e-12)
    assert after.contact_work == pytest.approx(zeta * pushes[-1] / 4, rel=1e-10)


# --- motions --------------------------------------------------------------------------------------


def moved(contact, *, features=FEATURES, prescribed=False, **options):
    """A hopper that falls 2 cm and lands: its motion."""
    scene = contact.scene
    m, q = scene.model, crouching(scene, 0.02)
    if prescribed:
        options |= {"prescribed": MOTION}
    qd = turning(m, q, {"hip": 0.5}) if prescribed else None
    return kt.simulate(m, q, qd, duration=0.12, contact=contact, **options)


@pytest.fixture(scope="module")
def everything():
    return hopper(*FEATURES)


def follows_prescription(motion):
    hip = motion["hip"]
    np.testing.assert_allclose(hip.q, BEND + 0.1 * np.sin(5 * motion.t), atol=1e-15)


@pytest.mark.parametrize("prescribed", [False, True], ids=["free", "prescribed"])
def test_everything_from_event_to_event(everything, prescribed):
    motion = moved(EventDriven(everything), prescribed=prescribed, dt=5e-3)
    worst = motion.contact.worst
    assert motion.events[0].name.endswith("lands")
    assert motion.contact.modes[-1] == "sticks"
    assert motion.report.energy_error < 1e-5
    assert motion.loop_error.max() < 1e-12
    assert max(worst.velocity, worst.acceleration, worst.cone, worst.pull, worst.opening) < 1e-9
    assert worst.penetration < 1e-12
    if prescribed:
        follows_prescription(motion)
        m, k = motion.model, np.flatnonzero(motion.contact.modes[:, 0] == "sticks")[3]
        q, qd = motion.q[k], motion.qd[k]
        springs = kt.passive_force(m, q, qd)
        now = forward_dynamics(m, q, qd, springs, everything, given="hip",
                               qdd=np.full(m.nv, MOTION["hip"](motion.t[k])[2]))  # fmt: skip
        hip = m.v_slice[m.joint_index("hip")]
        assert motion.tau[k, hip] == pytest.approx(now.tau[hip] - springs[hip], abs=1e-8)


@pytest.mark.parametrize("prescribed", [False, True], ids=["free", "prescribed"])
def test_everything_on_soft_ground(everything, prescribed):
    soft = SoftContact(everything, stiffness=1e4, damping=0.5, tangential=Regularized(0.1))
    motion = moved(soft, prescribed=prescribed, dt=1e-3)
    assert motion.report.energy_error < 1e-5
    assert motion.loop_error.max() < 1e-12
    assert soft.forces(motion.model, motion.q, motion.qd)[:, 0, 0].max() > 10
    if prescribed:
        follows_prescription(motion)


def test_gears_on_patches_with_a_memory():
    motion = moved(patches(hopper("gears")), dt=1e-3)
    assert motion.report.energy_error < 1e-3


@pytest.mark.parametrize("prescribed", [False, True], ids=["free", "prescribed"])
def test_everything_in_equal_steps(everything, prescribed):
    motion = moved(TimeStepping(everything), prescribed=prescribed, dt=2e-3)
    if prescribed:
        follows_prescription(motion)
        assert motion.loop_error.max() < 1e-9
        assert motion.report.energy_error < 1e-2
    worst = motion.report.contact
    assert motion.contact.force[:, 0, 0].max() > 10
    assert max(worst.velocity, worst.cone, worst.complementarity) < 1e-9
    assert max(worst.penetration, worst.opening, worst.gain) < 1e-9


# --- what does not go together, and why -----------------------------------------------------------


def patches(scene):
    return SoftContact(scene, stiffness=5e3, damping=50.0, law="patch")


REFUSED = [
    ("prescribed on patches", (), patches, {"prescribed": MOTION}, kt.errors.JointError,
     "memory cannot be combined with prescribed joints .'hip'"),
    ("loops on patches", ("loop",), patches, {}, kt.LoopError,
     "memory cannot be combined with the loops.*crossley"),
]  # fmt: skip


@pytest.mark.parametrize("row", REFUSED, ids=[row[0] for row in REFUSED])
def test_what_does_not_go_together_says_why(row):
    _, features, kind, options, error, words = row
    with pytest.raises(error, match=words):
        moved(kind(hopper(*features)), prescribed="prescribed" in options, dt=1e-3)


def test_free_joints_are_not_prescribed():
    scene = hopper()
    m, q = scene.model, crouching(scene)
    qd = turning(m, q, {"trunk": -1.0})
    with pytest.raises(kt.errors.ImpactError, match="nothing on either side is free to move"):
        impact(m, q, qd, scene, given=("trunk", "hip", "knee"))
    with pytest.raises(kt.errors.InfeasibleContactError, match=r"1 m/s².*nothing on either side"):
        forward_dynamics(m, q, 0 * qd, 0 * qd, scene, given=("trunk", "hip", "knee"), qdd=qd)
    linkage = hopper("loop")
    m, q = linkage.model, crouching(linkage)
    with pytest.raises(kt.LoopError, match="prescribed joints open the loops"):
        forward_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nv), linkage,
                         given=("hip", "knee", "strut"), qdd=np.ones(m.nv))  # fmt: skip


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_ball_between_walls_that_close_in_as_prescribed_is_wedged(order):
    builder = kt.ModelBuilder("walls", gravity=(0, 0, 0))
    for name in ("left", "right", "ball"):
        inertia = kt.shapes.sphere(0.1, mass=1.0)
        builder.body(name, joint=kt.Prismatic("x"), inertia=inertia, joint_name=name)
    along = np.array([[1.0, 0, 0]] * 2)
    touching = Contacts(np.array([1, 3]), np.array([3, 2]), 0 * along, along, np.zeros(2))
    with pytest.raises(
        kt.errors.ImpactError, match=r"2 contacts .* are wedged between others that close"
    ):
        impact(builder.build(), np.zeros(3), [1.0, -1.0, 0], touching, given=("left", "right"),
               order=order)  # fmt: skip
