"""Parts of a trajectory that are found when they are read: whatever happens in between."""

import copy
import cProfile
import pickle
import pstats

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact import Scene, TimeStepping

ARRAYS = ("t", "q", "qd", "tau", "energy", "work", "loop_error", "controls")


def scene(*, springs=False):
    """An arm with servos and two fingers that follow each other, and a box that falls."""
    link = kt.shapes.rod(0.3, mass=0.5, at=(0, 0, -0.15))
    b = kt.ModelBuilder("arm")
    b.body("upper", joint=kt.Revolute("y"), inertia=link, joint_name="shoulder")
    dynamics = kt.model.JointDynamics(stiffness=(3.0,), friction=(0.01,)) if springs else None
    b.body("lower", on="upper", joint=kt.Revolute("y"), at=(0, 0, -0.3), inertia=link,
           joint_name="elbow", **({"dynamics": dynamics} if dynamics else {}))  # fmt: skip
    for k, name in enumerate(("left", "right")):
        finger = kt.shapes.box(0.01, 0.01, 0.05, mass=0.05)
        b.body(name, on="lower", joint=kt.Prismatic("x"), at=(0.02 - 0.04 * k, 0, -0.3),
               inertia=finger, joint_name=name)  # fmt: skip
    b.coupling("gear", joint="right", source="left", coefficients=(0.0, -1.0))
    for name in ("shoulder", "elbow", "left"):
        b.actuator(f"servo of {name}", joint=name, kp=50.0, kv=2.0)
    world = kt.World()
    world.add_ground()
    world.add(b.build(), name="arm", at=(0, 0, 1.0))
    world.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, at=(0.5, 0, 0.06))
    return world, np.array([0.3, -0.2, 0.01])


def moved(world, u, **options):
    return kt.simulate(world, duration=0.1, controls=u, **options)


def read(trajectory):
    """All that a trajectory has, as arrays and numbers."""
    found = {name: np.array(getattr(trajectory, name)) for name in ARRAYS}
    history, report = trajectory.contact, trajectory.report
    found |= {name: getattr(history, name) for name in ("force", "joint_force", "residuals")}
    found["names"] = np.array(history.names)
    found |= {
        f"report {name}": np.array(x) for name, x in vars(report).items() if name != "contact"
    }
    found["report contact"] = np.array(report.contact)
    found |= {f"end {name}": np.array(x) for name, x in trajectory.state.memory.items()}
    return found


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("springs", [False, True])
def test_what_is_read_late_is_what_is_read_at_once(springs, every):
    world, u = scene(springs=springs)
    at_once = read(moved(world, u, store_every=every))
    late = moved(world, u, store_every=every)
    others = moved(world, -u, store_every=every), moved(world, u, store_every=every + 1)
    world.step(50, u)
    world.add(kt.geometry.Sphere(0.1), mass=1.0, at=(1, 0, 1))
    moved(world, u)
    for name, x in read(late).items():
        np.testing.assert_array_equal(x, at_once[name], err_msg=name)
    assert not np.array_equal(read(others[0])["energy"], at_once["energy"])


def test_motions_of_a_batch_are_read_late():
    world, u = scene()
    starts = np.tile(world.q, (3, 1)), np.tile(world.qd, (3, 1))
    starts[1][1, 0] = 1.0
    given = {"duration": 0.05, "controls": np.tile(u, (3, 1)), "dt": 2e-3}
    contact = TimeStepping(Scene(world.model), flight=False)
    first = kt.simulate(world.model, *starts, contact=contact, **given)
    late = kt.simulate(world.model, *starts, contact=contact, **given)
    force, energy = first.contact.force, first.energy
    kt.simulate(world.model, starts[0], -starts[1], contact=contact, **given)
    np.testing.assert_array_equal(late.contact.force, force)
    np.testing.assert_array_equal(late.energy, energy)
    assert late.report.contact == first.report.contact


def test_copies_and_pickles_have_all_parts():
    world, u = scene()
    expected = read(moved(world, u))
    for again in (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        for name, x in read(again(moved(world, u))).items():
            np.testing.assert_array_equal(x, expected[name], err_msg=name)


def test_a_call_is_little_python():
    """What a call costs beside its steps: functions and methods that are called in it."""
    world, u = scene()
    for _ in range(3):
        moved(world, u)
    profile = cProfile.Profile()
    profile.enable()
    moved(world, u)
    profile.disable()
    assert pstats.Stats(profile).total_calls < 750
