"""Surfaces that run like belts, and friction against spinning and rolling: which models have it."""

import numpy as np
import pytest
from support.contact_scenes import BLOCK, G, free_body, lifted

import kinetree as kt
from kinetree.contact import EventDriven, Scene, SoftContact, TimeStepping, with_ground
from kinetree.model.geometry import Geometry, Sphere, Surface


def test_belt_takes_a_block_along():
    """Friction accelerates it up to the speed of the belt: closed form."""
    mu, belt = 0.5, 0.3
    m = with_ground(BLOCK, surface=Surface(velocity=(belt, 0, 0)))
    contact = TimeStepping(Scene(m, friction=mu))
    found = kt.simulate(m, lifted(m, 0.1), duration=0.2, dt=1e-3, contact=contact)
    early = found.t < 0.9 * belt / (mu * G)
    np.testing.assert_allclose(found.qd[early, 3], mu * G * found.t[early], atol=1e-9)
    assert abs(found.qd[-1, 3] - belt) < 1e-9
    way = belt * found.t[-1] - belt**2 / (2 * mu * G)
    assert abs(found.q[-1, 0] - way) < 3e-4  # one step at the end of sliding
    assert np.max(np.abs(found.qd[:, :3])) < 1e-9


@pytest.mark.parametrize("condim", [3, 4])
def test_ball_that_spins_is_slowed_down_by_torsion_alone(condim):
    radius, torsion, spin = 0.1, 0.01, 5.0
    body = free_body(Sphere(radius), kt.shapes.sphere(radius, mass=1.0))
    surface = Surface(friction=0.5, condim=condim, torsion=torsion)
    shape = Geometry(1, Sphere(radius), name="body", surface=surface)
    m = with_ground(body.replace(geometry=(shape,)))
    qd = np.array([0, 0, spin, 0, 0, 0])
    contact = TimeStepping(Scene(m))
    found = kt.simulate(m, lifted(m, radius), qd, duration=0.1, dt=1e-3, contact=contact)
    slows = torsion * G / (0.4 * radius**2) if condim > 3 else 0.0
    np.testing.assert_allclose(found.qd[:, 2], spin - slows * found.t, atol=1e-6)


def test_models_without_such_friction_say_so():
    belt = with_ground(BLOCK, surface=Surface(velocity=(0.3, 0, 0)))
    scene = Scene(belt)
    words = (
        r"'ground/body', which moves \(Surface.velocity\): .*; use kinetree.contact.TimeStepping"
    )
    with pytest.raises(kt.ModelError, match=rf"EventDriven cannot .*{words}"):
        EventDriven(scene)
    with pytest.raises(kt.ModelError, match=rf"SoftContact cannot .*{words}"):
        SoftContact(scene, stiffness=1e5, damping=0.3)
    shape = Geometry(1, Sphere(0.1), name="body", surface=Surface(condim=6, rolling=0.01))
    scene = Scene(with_ground(BLOCK.replace(geometry=(shape,))))
    for make in (EventDriven, lambda scene: SoftContact(scene, stiffness=1e5, damping=0.3)):
        with pytest.warns(kt.errors.ModelWarning, match="torsion and rolling of 'ground/body'"):
            make(scene)
