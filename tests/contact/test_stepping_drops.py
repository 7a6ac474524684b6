"""Random drops of random chains: contact never adds energy, and nothing blows up."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.ground import with_ground
from kinetree.contact.scene import Scene
from kinetree.contact.stepping.energy import balanced
from kinetree.contact.stepping.settings import TimeStepping
from kinetree.model import geometry


def _chain(rng, bodies):
    """Capsules end to end, the first one free."""
    builder, last, end = kt.ModelBuilder("chain"), "base", 0.0
    kinds = (kt.Revolute("x"), kt.Revolute("y"), kt.Spherical())
    for i in range(bodies):
        length, radius = rng.uniform(0.1, 0.4), rng.uniform(0.02, 0.06)
        joint = kinds[rng.integers(3)] if i else kt.Free()
        inertia = kt.shapes.capsule(radius, length, mass=rng.uniform(0.2, 3.0))
        builder.body(f"link{i}", on=last, joint=joint, at=(0, 0, end), inertia=inertia)
        builder.geometry(geometry.Capsule(radius, length), on=f"link{i}")
        last, end = f"link{i}", length / 2 + 0.06
    return with_ground(builder.build())


@pytest.mark.covers("RBDA 11.7", by=balanced)
def test_contact_adds_no_energy_in_any_step(rng):
    model = _chain(rng, 2)
    scene = Scene(model, "base", friction=rng.uniform(0.1, 1.0))
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
