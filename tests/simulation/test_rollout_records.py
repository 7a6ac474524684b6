"""What a rollout records: controls, activations, contacts and sensors, as ``simulate`` does."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact import Regularized, Scene, SoftContact, TimeStepping
from kinetree.contact.contacts import contact_axes
from kinetree.model import Actuator
from kinetree.model.geometry import Plane, Sphere
from kinetree.simulation.results.observables import accelerations
from kinetree.spatial import Inertia

LINK = Inertia.from_mass_center(1.0, np.array([0.0, 0.0, -0.2]), 0.01 * np.eye(3))
START = np.array([0.5, 0.4])


def arm():
    """An arm whose tip falls to the ground, with a muscle, a motor, and sensors."""
    b = kt.ModelBuilder("arm")
    b.body("upper", joint=kt.Revolute("y"), inertia=LINK, joint_name="shoulder")
    b.body("lower", on="upper", joint=kt.Revolute("y"), at=(0, 0, -0.4), inertia=LINK,
           joint_name="elbow")  # fmt: skip
    b.geometry(Sphere(0.05), on="lower", at=(0, 0, -0.4))
    b.geometry(Plane(), at=(0, 0, -0.82))
    b.frame("tip", on="lower", at=(0, 0, -0.4))
    b.sensor("pad", "touch", of="tip")
    b.sensor("effort", "actuatorfrc", of="muscle")
    b.actuator("muscle", joint="shoulder", gear=2.0, activation="filter", time_constant=0.05)
    b.actuator("motor", joint="elbow")
    return b.build()


@pytest.fixture(scope="module")
def motions():
    model = arm()
    contact = TimeStepping(Scene(model))
    given = {"dt": 1e-3, "store_every": 20, "contact": contact, "controls": np.array([0.4, 0.1])}
    return kt.simulate(model, START, duration=0.4, **given), kt.rollout(
        model, np.tile(START, (3, 1)), steps=400, **given
    )


def test_controls_and_activations(motions):
    simulated, rolled = motions
    assert rolled.controls.shape == (21, 3, 2)
    assert np.array_equal(rolled.controls[:, 1], simulated.controls)
    np.testing.assert_allclose(rolled.activation[:, 1], simulated.activation, atol=1e-12)
    expected = 0.4 * (1 - np.exp(-rolled.t / 0.05))
    np.testing.assert_allclose(rolled.activation[:, 2, 0], expected, atol=1e-12)
    assert np.array_equal(rolled.motion(1).activation, rolled.activation[:, 1])
    assert np.array_equal(rolled.trajectory().controls, rolled.controls)


def test_contacts(motions):
    simulated, rolled = motions
    assert rolled.contact.names == simulated.contact.names
    assert simulated.contact.force.max() > 1.0  # it has landed
    # Steps in flight are the integrator's in a simulation, so that it lands a little elsewhere.
    found, expected = rolled.contact.force[-6:, 0, :, 0], simulated.contact.force[-6:, :, 0]
    np.testing.assert_allclose(found, expected, rtol=5e-3)
    assert np.array_equal(rolled.contact.force, rolled.contact_force)
    assert rolled.motion(2).contact.worst.velocity < 1e-6


def test_sensors(motions):
    simulated, rolled = motions
    found, expected = kt.sensors(simulated.model)(rolled), kt.sensors(simulated.model)(simulated)
    np.testing.assert_allclose(found["pad"][-6:, 1], expected["pad"][-6:], rtol=5e-3)
    np.testing.assert_allclose(found["pad"][1:, 1, 0], rolled.contact.force[1:, 1, 0, 0])
    np.testing.assert_allclose(found["effort"][:, 1], expected["effort"], atol=1e-9)
    assert expected["pad"].max() > 1.0


def test_controls_that_change_and_controls_of_a_kernel():
    model = arm()
    u = np.linspace(0.0, 1.0, 40).reshape(20, 2)
    rolled = kt.rollout(model, START, steps=20, dt=1e-3, controls=u, limits=None)
    simulated = kt.simulate(
        model, START, duration=0.02, dt=1e-3, limits=None, forces=(lambda m, t, q, qd: 0 * qd,),
        controls=lambda t, q, qd: u[min(round(t / 1e-3), 19)],
    )  # fmt: skip
    np.testing.assert_allclose(rolled.controls[:-1], u)
    np.testing.assert_allclose(rolled.activation, simulated.activation, atol=1e-12)

    @kt.kernel
    def law(m, q, qd):
        return -3 * q

    plain = model.replace(actuators=[Actuator("motor", 1), Actuator("other", 2)], sensors=[])
    found = kt.rollout(plain, START, steps=5, dt=1e-3, controls=law)
    np.testing.assert_allclose(found.controls, -3 * found.q)
    assert found.activation is None
    assert kt.rollout(plain, START, steps=2).controls is None


LAWS = {
    "hunt_crossley": {"stiffness": 2e4, "damping": 0.3},
    "patch": {"stiffness": 2e4, "damping": 200.0},
}


@pytest.fixture(scope="module", params=LAWS)
def soft_motions(request):
    """A soft contact, and the same motion that touches by it through two doors."""
    model = arm()
    soft = SoftContact(Scene(model), law=request.param, **LAWS[request.param])
    given = {"dt": 2e-4, "store_every": 125, "contact": soft, "controls": np.array([0.4, 0.1])}
    start = np.tile(START, (3, 1)) + 0.01 * np.arange(3)[:, None]
    rolled = kt.rollout(model, start, steps=2000, integrator="rk4", **given)
    simulated = kt.simulate(model, start[1], duration=0.4, integrator="rk4", **given)
    return soft, simulated, rolled


def test_soft_contact_has_the_same_record_in_simulate_and_rollout(soft_motions):
    soft, simulated, rolled = soft_motions
    expected, found = simulated.contact, rolled.contact
    assert found.names == expected.names == soft.scene.candidates.names
    assert expected.force.shape == (17, 1, 3)
    assert expected.force[:, 0, 0].max() > 1.0
    for name in ("force", "gap", "point", "normal"):
        np.testing.assert_allclose(
            getattr(found, name)[:, 1], getattr(expected, name), rtol=1e-9, atol=1e-9
        )
    assert expected.worst.penetration == -expected.gap.min() > 0
    assert expected.worst.touching == np.sum(expected.force[:, 0, 0] > 0)
    alone = rolled.motion(1).contact
    assert np.array_equal(alone.force, found.force[:, 1])
    assert np.array_equal(simulated[3:5].contact.force, expected.force[3:5])


def test_forces_of_soft_contact_are_those_that_acted(soft_motions):
    soft, simulated, rolled = soft_motions
    if not soft.state_size:
        expected = soft.forces(simulated.model, simulated.q, simulated.qd)
        np.testing.assert_allclose(simulated.contact.force, expected, rtol=1e-12, atol=1e-12)
    k = int(np.argmax(simulated.contact.force[:, 0, 0]))
    contacts, force = simulated.contact.contacts(k)
    np.testing.assert_allclose(contacts.point[0, 2], -0.82 + contacts.gap[0] / 2, atol=1e-12)
    pushed = kt.forward_dynamics(
        simulated.model, simulated.q[k], simulated.qd[k], simulated.tau[k],
        f_ext={"lower": np.concatenate([np.cross(contacts.point[0], base(force)), base(force)])},
    )  # fmt: skip
    for motion in (simulated, rolled.motion(1)):
        np.testing.assert_allclose(accelerations(motion)[k], pushed, rtol=1e-9)


def base(force):
    """A force along the normal, upwards, and the tangents, x and y, in base coordinates."""
    return contact_axes(np.array([[0.0, 0.0, 1.0]]))[0].T @ force[0]


def test_touch_sensors_read_soft_contact_through_both_doors(soft_motions):
    _, simulated, rolled = soft_motions
    sensors = kt.sensors(simulated.model)
    assert np.array_equal(sensors(simulated)["pad"][:, 0], simulated.contact.force[:, 0, 0])
    np.testing.assert_allclose(
        sensors(rolled)["pad"][:, 1], sensors(simulated)["pad"], rtol=1e-9, atol=1e-9
    )


def test_soft_records_in_files_and_of_several_soft_contacts(tmp_path):
    model = arm()
    scene = Scene(model)
    softs = [
        SoftContact(scene, law="patch", stiffness=1e4, damping=100.0),
        SoftContact(scene, stiffness=2e4, damping=0.3, tangential=Regularized()),
    ]
    motion = kt.simulate(
        model, START, duration=0.4, dt=2e-4, store_every=250, forces=softs[1], contact=softs[0]
    )
    assert motion.contact.names == 2 * scene.candidates.names
    separate = softs[1].forces(model, motion.q, motion.qd)
    np.testing.assert_allclose(motion.contact.force[:, 1:], separate, rtol=1e-12, atol=1e-12)
    again = kt.Trajectory.load(motion.save(tmp_path / "soft.npz"))
    assert np.array_equal(again.contact.force, motion.contact.force)
    assert again.contact.names == motion.contact.names
