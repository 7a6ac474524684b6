"""What a rollout records: controls, activations, contacts and sensors, as ``simulate`` does."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact import Scene, TimeStepping
from kinetree.model import Actuator
from kinetree.model.geometry import Plane, Sphere
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
