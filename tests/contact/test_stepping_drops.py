"""Random drops of a chain: contact never adds energy, and nothing diverges."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.settings import TimeStepping
from kinetree.contact.stepping.balance import balance_energy
from kinetree.model import geometry

pytestmark = pytest.mark.usefixtures("specialised")  # the step that is unrolled for a scene


@pytest.fixture
def chain():
    """Two capsules on a ball joint, the first one free, above the ground."""
    builder = kt.ModelBuilder("chain")
    builder.body("first", joint=kt.Free(), inertia=kt.shapes.capsule(0.05, 0.3, mass=2.0))
    builder.body(
        "second", on="first", joint=kt.Spherical(), at=(0, 0, 0.21),
        inertia=kt.shapes.capsule(0.03, 0.2, mass=0.5),
    )  # fmt: skip
    builder.geometry(geometry.Capsule(0.05, 0.3), on="first")
    builder.geometry(geometry.Capsule(0.03, 0.2), on="second")
    return with_ground(builder.build())


@pytest.mark.covers("RBDA 11.7", by=balance_energy)
def test_contact_adds_no_energy_in_any_step(chain, rng):
    model = chain
    scene = Scene(model, "base", friction=0.4)
    q = np.array([model.random_configuration(rng) for _ in range(20)])
    q[:, 2] = 2.0
    lowest = scene.candidate_positions(model, q)[0].min(axis=-1)
    q[:, 2] -= lowest - rng.uniform(0.01, 0.1, 20)
    qd = 2 * rng.standard_normal((20, model.nv))
    qd[:, 3:6] = 0
    motion = kt.simulate(model, q, qd, duration=0.3, contact=TimeStepping(scene))
    energy, residuals = motion.energy, motion.contact.residuals
    touching = residuals[1:, :, 9] > 0
    rise = np.diff(energy, axis=0) / energy[0]
    assert touching.any(axis=0).all()
    assert rise[touching].max() < 1e-9
    assert np.abs(np.where(touching, 0.0, rise).sum(axis=0)).max() < 1e-6
    assert residuals[..., 8].max() < 1e-9 * energy[0].min()
    assert motion.report.contact.penetration < 1e-9
    assert motion.report.contact.velocity < 1e-9
    assert motion.report.energy_error < 0.01
