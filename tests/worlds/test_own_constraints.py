"""Constraints of one's own in worlds: each for the variables of its part, wherever that stands."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import LoopError
from kinetree.spatial import ops

Q = np.array([0.3, -0.8])


def leaned(model, q):
    """The tip of an arm on a line in its own coordinates."""
    x = kt.pose(model, q, "tip")[:3, 3]
    return x[0] + 0.5 * x[1] - 0.3


def geared(q):
    return ops.sin(q[1]) + 0.5 * q[0] - (np.sin(Q[1]) + 0.5 * Q[0])


def driven(q, t):
    return q[0] - Q[0] - 0.1 * t


def arm(**constraint):
    """Two links with a tip, and a constraint."""
    builder = kt.ModelBuilder("arm")
    for k, on in enumerate((None, "l0")):
        builder.body(
            f"l{k}", on=on, joint=kt.Revolute("z"), at=(0.5 * k, 0, 0),
            inertia=kt.shapes.box(0.5, 0.1, 0.1, mass=1.0 + k, at=(0.25, 0, 0)),
        )  # fmt: skip
    builder.frame("tip", on="l1", at=(0.5, 0, 0))
    model = builder.build().replace(gravity=(0.0, -9.81, 0.0))
    return model.with_constraint("guide", **constraint) if constraint else model


def skate():
    """A body that goes forwards and turns, and does not go sideways; its axes are its own."""
    builder = kt.ModelBuilder("skate")
    builder.body("s", joint=kt.Free(), at=(0, 0, 1), inertia=kt.shapes.box(0.4, 0.1, 0.1, mass=2.0))
    return builder.build().with_constraint("blade", rate=lambda qd: qd[4])


def on_guide(model, q):
    """Positions on the guide near ``q``, and a velocity along it."""
    q = kt.loops.project_configuration(model, q)
    K = np.asarray(kt.loops.constraint(model, q, 0 * q).K, dtype=float)
    return q, 0.7 * np.array([-K[0, 1], K[0, 0]]) / np.linalg.norm(K)


@pytest.mark.parametrize("position", [leaned, geared], ids=["with the model", "of positions"])
def test_parts_beside_others_move_as_alone(position):
    model = arm(position=position)
    q, qd = on_guide(model, Q)
    expected = kt.forward_dynamics(model, q, qd, np.zeros(2))
    h = 1e-5
    world = kt.World(timestep=h, gravity=model.gravity)
    world.add(kt.geometry.Sphere(0.1), at=(9, 9, 9), mass=1.0)
    world.add(arm(), name="bare", at=(0, 5, 0), q=Q)
    guided = world.add(model, name="guided", at=(3, 0, 1), q=q, qd=qd)
    world.step()
    assert np.allclose((guided.qd - qd) / h, expected, rtol=0, atol=1e-3 * np.abs(expected).max())
    world.timestep = 1e-3
    world.step(200)
    assert [c.name for c in world.model.constraints] == ["guided.guide"]
    error = kt.loops.constraint(model, guided.q, guided.qd).error
    assert np.abs(np.asarray(error, dtype=float)).max() < 1e-6


def test_a_body_that_cannot_go_sideways():
    model = skate()
    world = kt.World(timestep=1e-3, gravity=(0.0, 0.0, 0.0))
    turned = kt.rotz(0.4) @ kt.xlt(1, 2, 0)
    body = world.add(model, at=turned, qd=np.array([0, 0, 1.5, 0.8, 0, 0]))
    world.step(1000)
    assert np.allclose(body.qd, [0, 0, 1.5, 0.8, 0, 0], atol=1e-6)  # a circle of 0.8 / 1.5 m
    r, a = 0.8 / 1.5, 1.5
    own = np.array([r * np.sin(a), r * (1 - np.cos(a)), 1.0])
    assert np.allclose(
        kt.pose(world.model, world.q, "skate.s")[:3, 3], turned.E.T @ own + turned.r, atol=1e-5
    )


def test_functions_of_time_are_refused_by_the_table():
    world = kt.World()
    with pytest.raises(
        LoopError, match=r"contact=TimeStepping cannot .* 'guide' .* use SoftContact"
    ):
        world.add(arm(position=driven))
