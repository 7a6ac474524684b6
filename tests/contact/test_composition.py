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
from kinetree.contact.scene import Scene
from kinetree.contact.soft.laws import Linear
from kinetree.contact.soft.patch import Patch
from kinetree.simulation.forces.stateful import StatefulStepper

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


@pytest.mark.filterwarnings("ignore:steps of contact:kinetree.errors.SimulationWarning")
@pytest.mark.parametrize("prescribed", [False, True], ids=["free", "prescribed"])
def test_everything_in_equal_steps(everything, prescribed):
    motion = moved(TimeStepping(everything, tolerance=1e-12), prescribed=prescribed, dt=2e-3)
    if prescribed:
        follows_prescription(motion)
        assert motion.loop_error.max() < 1e-9
        assert motion.report.energy_error < 1e-2
    worst = motion.report.contact
    assert motion.contact.force[:, 0, 0].max() > 10
    assert max(worst.velocity, worst.cone, worst.complementarity) < 1e-9
    assert max(worst.opening, worst.gain) < 1e-9
    assert worst.penetration < 1e-7  # measured where steps end, of third order in their length


# --- what does not go together, and why -----------------------------------------------------------


def patches(scene):
    return SoftContact(scene, stiffness=5e3, damping=50.0, law="patch")


@pytest.mark.covers("RBDA 11.8", by=(SoftContact, StatefulStepper))
@pytest.mark.parametrize("features", [(), ("loop",), FEATURES], ids=["tree", "loop", "all"])
@pytest.mark.parametrize("prescribed", [False, True], ids=["free", "prescribed"])
def test_patches_that_stay_in_touch_are_springs_and_dampers(features, prescribed):
    """A patch follows the body while it is pressed: the law without a memory, stepped elsewhere."""
    scene = hopper(*features)
    laws = Patch(5e3, 50.0), Linear(5e3, 50.0)
    found, known = (
        moved(
            SoftContact(scene, law=law, friction=0.0), features=features, prescribed=prescribed,
            dt=1e-3,
        )
        for law in laws
    )  # fmt: skip
    np.testing.assert_allclose(found.contact.force, known.contact.force, atol=1e-4)
    np.testing.assert_allclose(found.q, known.q, atol=1e-9)
    np.testing.assert_allclose(found.tau, known.tau, atol=1e-5)
    if found.model.loops:
        assert found.loop_error.max() < 1e-12
    if prescribed:
        follows_prescription(found)


@pytest.mark.parametrize("features", [("loop",), ("gears",)], ids=["loop", "gears"])
@pytest.mark.parametrize("prescribed", [False, True], ids=["free", "prescribed"])
def test_rollouts_move_the_memory_as_simulations_do(features, prescribed):
    scene = hopper(*features)
    motion = moved(patches(scene), features=features, prescribed=prescribed, dt=1e-3)
    given = {"prescribed": {"hip": kt.kernel(MOTION["hip"])}} if prescribed else {}
    n = len(motion.t) - 1
    starts = np.stack([motion.q[0]] * 2), np.stack([motion.qd[0]] * 2)
    many = kt.rollout(
        scene.model, *starts, steps=n, dt=1e-3, contact=patches(scene), store_every=20, **given
    )
    np.testing.assert_allclose(many.q[-1], np.stack([motion.q[-1]] * 2), atol=1e-9)
    np.testing.assert_allclose(many.work[-1, 0], motion.work[-1], atol=1e-9)
    np.testing.assert_allclose(many.tau[-1, 1], motion.tau[-1], atol=1e-6)


def test_ball_on_a_patch_that_is_shaken():
    """A table moves as prescribed; the ball on its surface is an oscillator: closed form."""
    mass, K, D, A, w = 1.0, 1e4, 80.0, 1e-3, 30.0
    builder = kt.ModelBuilder("shaker")
    inertia = kt.shapes.sphere(0.1, mass=mass)
    for name in ("table", "ball"):
        builder.body(name, on="base", joint=kt.Prismatic("z"), inertia=inertia, joint_name=name)
    builder.geometry(kt.geometry.Plane(), on="table", name="table")
    builder.geometry(kt.geometry.Sphere(0.1), on="ball", name="ball")
    m = builder.build()
    soft = SoftContact(Scene(m), stiffness=K, damping=D, law="patch")

    def shaken(t):
        return A * np.sin(w * t), A * w * np.cos(w * t), -A * w * w * np.sin(w * t)

    g, p0 = 9.81, -mass * 9.81 / K
    found = kt.simulate(
        m, [0.0, 0.1 + p0], [A * w, A * w], duration=0.2, dt=2e-4, contact=soft,
        prescribed={"table": kt.kernel(shaken)},
    )  # fmt: skip
    steady = mass * A * w * w / (K - mass * w * w + 1j * D * w)  # of the depth, times exp(iwt)
    roots = np.roots([mass, D, K])
    start = np.linalg.solve([[1, 1], roots], [-steady.imag, -(1j * w * steady).imag])
    t = found.t
    p = p0 + (steady * np.exp(1j * w * t)).imag + (np.exp(np.outer(t, roots)) @ start).real
    gap = found.q[:, 1] - found.q[:, 0] - 0.1
    assert np.max(p) < 0
    np.testing.assert_allclose(gap, p, atol=1e-10)
    force = -K * p - D * np.gradient(p, t)
    np.testing.assert_allclose(
        found.tau[5:-5, 0], (mass * (g + shaken(t)[2]) + force)[5:-5], rtol=0, atol=2e-3
    )


def test_steps_that_do_not_end_on_the_loops_are_named():
    scene = hopper("loop")
    with pytest.raises(
        kt.LoopError, match="memory cannot be combined with constraints='baumgarte'"
    ):
        moved(patches(scene), features=("loop",), dt=1e-3, constraints="baumgarte")
    q = crouching(scene)
    with pytest.raises(kt.errors.TraceError, match=r"rollout_gradient.*states jump where bodies"):
        kt.rollout_gradient(
            scene.model, q, steps=3, contact=patches(scene), terminal=kt.kernel(lambda q: q[0])
        )


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
