"""Batches of worlds with numbers of their own, against single worlds made with these numbers."""

import numpy as np
import pytest

import kinetree as kt
from kinetree import geometry as shapes


def sliding(friction=0.4, mass=1.0, size=1.0, restitution=0.0) -> kt.World:
    """A box on a slope, and a ball that falls on the ground."""
    world = kt.World(timestep=2e-3)
    world.add_ground(normal=(0.3, 0, 1), friction=friction, restitution=restitution)
    length = 0.1 * size
    box = kt.roty(np.arctan(0.3))
    world.add(
        shapes.Box((length,) * 3), mass=mass, at=kt.xlt([0, 0, length / 2]) @ box,
        friction=friction, restitution=restitution,
    )  # fmt: skip
    world.add(shapes.Sphere(0.05), mass=0.5, name="ball", at=(0.5, 0, 0.01), friction=friction,
              restitution=restitution)  # fmt: skip
    return world


def test_samples_are_what_single_worlds_are():
    friction, mass = np.array([0.1, 0.2, 0.9]), np.array([0.5, 1.0, 2.0])
    worlds = sliding().batch(3, friction=friction, mass={"box": mass})
    worlds.step(20, contacts=True)
    for k in range(3):
        alone = sliding(friction[k], mass[k])
        alone.step(20)
        np.testing.assert_allclose(worlds.q[k], alone.q, atol=1e-12)
        np.testing.assert_allclose(worlds.qd[k], alone.qd, atol=1e-10)
    assert worlds.qd[0, 3] != worlds.qd[1, 3]
    assert [len(table) for table in worlds.contacts()] == [4, 4, 4]


def test_sizes_and_restitution_of_samples():
    size = np.array([1.0, 1.5])
    worlds = sliding().batch(2, size={"box": size}, restitution=[0.0, 0.7])
    model = worlds[1].model
    assert model.geometry[1].shape.size == pytest.approx((0.15,) * 3)
    I = model.inertia[model.body_index("box")].to_matrix()
    np.testing.assert_allclose(I, kt.shapes.box(0.15, 0.15, 0.15, mass=1.0).to_matrix(), rtol=1e-14)
    assert [worlds[k].scene.restitution.max() for k in range(2)] == [0.0, 0.7]
    worlds.step(30)
    for k in range(2):
        alone = sliding(size=size[k], restitution=(0.0, 0.7)[k])
        alone.q = sliding().q  # a grown box starts inside the slope: below
        alone.set_state(alone.state)
        alone.step(30)
        np.testing.assert_allclose(worlds.q[k], alone.q, atol=1e-9)


def test_gains_and_controls_of_samples():
    builder = kt.ModelBuilder("arm").body(
        "link", joint=kt.Revolute("y"), inertia=kt.shapes.sphere(0.1, mass=1.0, at=(0, 0, -0.3))
    )
    world = kt.World(gravity=(0, 0, 0))
    world.add(builder.actuator("servo", joint="link_joint", kp=5.0, kv=0.5).build())
    worlds = world.batch(3, gains=[1.0, 2.0, 2.0])
    worlds.step(5, control=[[0.1], [0.1], [0.2]])
    assert worlds.qd[1, 0] > worlds.qd[0, 0] > 0
    worlds.reset([0, 2])
    np.testing.assert_array_equal(worlds.q[[0, 2]], 0)
    assert worlds.q[1, 0] > 0
    states = worlds.state
    worlds.step(2, control=lambda t, q, qd: -q)
    end = worlds.q
    worlds.set_state(states)
    worlds.step(2, control=lambda t, q, qd: -q)
    np.testing.assert_array_equal(worlds.q, end)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: w.batch(0), "a batch needs a whole number of worlds, got 0"),
        (lambda w: w.batch(2, mass=[1, 2]), "mass of a batch must be given by part"),
        (lambda w: w.batch(2, friction=[1, 2, 3]), r"friction of 'a batch' must be 2 numbers"),
        (lambda w: w.batch(2, friction={"bax": 1}), "no part or body 'bax'; did you mean 'box'"),
        (lambda w: w.batch(2, size={"ground": 2.0}), "shape 'ground' is a Plane"),
        (lambda w: w.batch(2).step(1, tau=np.zeros((3, 12))), "2 worlds need 2 rows of inputs"),
    ],
)
def test_messages(call, message):
    with pytest.raises(kt.KinetreeError, match=message):
        call(sliding())
