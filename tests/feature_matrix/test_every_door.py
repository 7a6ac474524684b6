"""Every feature of a mechanism × every door: the same motion, or refused by the table of conflicts.

``kt.World``, ``kt.simulate``, ``kt.rollout`` and ``kt.learning.Environment`` take the same steps,
with rigid contact in which nothing touches, and, but for worlds, without contact.
"""

import warnings

import numpy as np
import pytest
from feature_matrix.features import FEATURES
from feature_matrix.option_cells import Bench

import kinetree as kt
from kinetree.contact import TimeStepping
from kinetree.errors import KinetreeError, SimulationError
from kinetree.simulation.compatibility import conflicts
from kinetree.simulation.setup import compose_setup

STEPS = 5

ALIKE = 1e-3
"""Differences of mean accelerations, relative to the largest: steps are short, of first order with
rigid contact, and flight may be the integrator's."""


def _world(model, q, qd, h, contact):
    world = kt.World(timestep=h, gravity=model.gravity)
    world.add(model, q=q, qd=qd)
    world.step(STEPS)
    return world.qd


def _simulated(model, q, qd, h, contact):
    return kt.simulate(model, q, qd, duration=STEPS * h, dt=h, contact=contact).qd[-1]


def _rolled(model, q, qd, h, contact):
    return kt.rollout(model, q, qd, steps=STEPS, dt=h, contact=contact).qd[-1]


def _learned(model, q, qd, h, contact):
    @kt.kernel
    def observe(m, q, qd):
        return np.concatenate([q, qd])

    @kt.kernel
    def reward(m):
        return 0.0

    @kt.kernel
    def reset(m):
        return {"q": q + 0.0, "qd": qd + 0.0}

    method = {"integrator": "rk6" if model.is_constrained else "rk4"} if contact is None else {}
    env = kt.learning.Environment(
        model, 1, observe=observe, reward=reward, reset=reset, contact=contact, dt=h,
        decimation=STEPS, episode=None, **method,
    )  # fmt: skip
    *_, info = env.step(np.zeros((1, env.action_size)))
    if info["failed"][0]:  # is told so, since other worlds go on
        raise SimulationError("the world of the environment failed")
    return env.state["qd"][0]


DOORS = {"World": _world, "simulate": _simulated, "rollout": _rolled, "Environment": _learned}


def outcomes(bench, contact):
    """Velocities, or the error, by door."""
    found = {}
    start = bench.model, bench.case.q, bench.case.qd, bench.h
    for door, move in DOORS.items():
        if door == "World" and contact is None:
            continue
        try:
            found[door] = np.asarray(move(*start, contact))
        except KinetreeError as error:
            found[door] = error
    return found


def is_of_the_table(door, bench, contact, error):
    setup = compose_setup(door, bench.model, contact=contact)
    return any(message in str(error) for _, message in conflicts(setup))


@pytest.mark.parametrize("rigid", [False, True], ids=["smooth", "rigid"])
@pytest.mark.parametrize("feature", FEATURES)
def test_doors_simulate_the_same(feature, rigid):
    bench = Bench(feature)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing touches, starts, stiffness: tested elsewhere
        contact = TimeStepping(bench.scene) if rigid else None
        found = outcomes(bench, contact)
    moved = {d: x for d, x in found.items() if not isinstance(x, Exception)}
    refused = {d: x for d, x in found.items() if isinstance(x, Exception)}
    for door, error in refused.items() if moved else ():
        assert is_of_the_table(door, bench, contact, error), f"{door}: {error}"
    names = list(moved)
    for door in names[1:]:
        first, other = moved[names[0]], moved[door]
        change = np.abs(first - bench.case.qd).max(initial=0.0)
        off = np.abs(other - first).max(initial=0.0)
        assert off <= ALIKE * change, f"{names[0]} and {door} differ by {off:.2g} of {change:.2g}"
