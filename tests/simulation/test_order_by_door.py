"""All that acts is of second order in steps of rigid contact, through every door.

A linkage on a sled that slides on four feet without friction: where nothing tips, it moves as on a
rail, which an integrator of high order follows without contact.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
from support.environments import state_in_environment

import kinetree as kt
from kinetree.contact import Scene, TimeStepping, with_ground
from kinetree.model import JointDynamics
from kinetree.model.geometry import Sphere, Surface

T = 0.2
HINGE = kt.Revolute("y"), None
DAMPED = {"stiffness": 4.0, "damping": 0.2}
ACTS = {
    "nothing": {},
    "spring of a hinge": {"pin": (kt.Revolute("y"), DAMPED)},
    "spring of a ball": {"pin": (kt.Spherical(), {k: (x,) * 3 for k, x in DAMPED.items()})},
    "damper of a hinge": {"pin": (kt.Revolute("y"), {"damping": 0.5})},
    "tendon between branches": {"tendon": {"stiffness": 20.0, "damping": 1.0}},
    "servo of a tendon between branches": {"tendon": {}, "servo": {"kp": 20.0, "kv": 1.0}},
    "carried weight": {"carries": True},
}


def linkage(base, pin=HINGE, tendon=None, servo=None, carries=False):
    """A four-bar linkage above a sled, with feet where the sled is free."""
    b = kt.ModelBuilder("sled")
    b.body("sled", joint=base, inertia=kt.shapes.box(0.6, 0.4, 0.1, mass=3.0))
    for name, on, at, length in (
        ("crank", "sled", (-0.2, 0, 0.4), 0.2),
        ("rod", "crank", (0.2, 0, 0), 0.5),
        ("rocker", "sled", (0.25, 0, 0.4), 0.35),
    ):
        bar = kt.shapes.box(length, 0.04, 0.04, mass=0.4 + length, at=(length / 2, 0, 0))
        b.body(name, on=on, at=at, joint=kt.Revolute("y"), inertia=bar)
    joint, dynamics = pin
    b.loop(
        "pin", predecessor="rod", successor="rocker", joint=joint, at=(0.5, 0, 0),
        successor_at=(0.35, 0, 0), dynamics=dynamics and JointDynamics(**dynamics),
    )  # fmt: skip
    if tendon is not None:
        b.tendon("cable", joints={"crank_joint": 0.8, "rocker_joint": -0.5}, **tendon)
    if servo is not None:
        b.actuator("servo", tendon="cable", **servo)
    for x, y in ((1, 1), (1, -1), (-1, 1), (-1, -1)) if isinstance(base, kt.Free) else ():
        b.geometry(Sphere(0.05), on="sled", at=(0.25 * x, 0.15 * y, -0.05))
    weight = (kt.GravityCompensation(3, 0.9, (0.25, 0, 0)),) if carries else ()
    return b.build().replace(gravity_compensation=weight)


@cache
def on_rail(what):
    """Positions of the linkage at the start; velocities of it and of the sled at the end."""
    model = linkage(kt.Prismatic("x"), **ACTS[what])
    q = kt.loops.assemble(model, np.array([0.0, 0.9, -0.6, 1.6]))
    controls: dict[str, Any] = {"controls": np.full(1, 0.4)} if model.actuators else {}
    end = kt.simulate(model, q, duration=T, dt=5e-4, integrator="rk4", **controls)
    return q[1:], end.qd[-1]


@cache
def on_its_feet(what):
    """The linkage on a free sled; one for all doors, which share its code."""
    return with_ground(linkage(kt.Free(), **ACTS[what]), surface=Surface(friction=0.0))


def in_world(model, q, h, u):
    world = kt.World(timestep=h)
    world.add(model, q=q)
    world.step(round(T / h), control=u)
    return world.qd


def in_simulation(model, q, h, u, **options):
    given: dict[str, Any] = {} if u is None else {"controls": u}
    return kt.simulate(model, q, duration=T, dt=h, contact=contact(model), **given, **options).qd[
        -1
    ]


@kt.kernel
def nothing(m, t, q, qd):
    return 0 * qd


def beside_a_force(model, q, h, u):
    return in_simulation(model, q, h, u, forces=[nothing])


def in_rollout(model, q, h, u):
    given: dict[str, Any] = {} if u is None else {"controls": u}
    return kt.rollout(model, q, steps=round(T / h), dt=h, contact=contact(model), **given).qd[-1]


def unrolled(model, q, h, u):
    with kt.tier("specialised"):
        return in_rollout(model, q, h, u)


def in_environment(model, q, h, u):
    options = {"contact": contact(model), "dt": h, "decimation": round(T / h)}
    return state_in_environment(model, q, u, **options)["qd"]


def contact(model):
    return TimeStepping(Scene(model, pairs="base", friction=0.0), flight=False)


DOORS = {
    "World": in_world,
    "simulate": in_simulation,
    "simulate with forces": beside_a_force,
    "rollout": in_rollout,
    "unrolled": unrolled,
    "Environment": in_environment,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("what", ACTS)
def test_what_acts_is_of_second_order(what, door):
    model = on_its_feet(what)
    places, expected = on_rail(what)
    q = model.neutral()
    q[2], q[7:] = 0.1, places
    u, errors = np.full(1, 0.4) if model.actuators else None, []
    for h in (2e-3, 1e-3):
        qd = DOORS[door](model, q, h, u)
        assert np.abs(qd[[0, 1, 2, 4, 5]]).max() < 1e-5  # it neither tips nor leaves the ground
        errors.append(np.abs(qd[[3, 6, 7, 8]] - expected).max())
    assert errors[1] < 2e-4
    assert errors[0] / errors[1] > 2**1.9
