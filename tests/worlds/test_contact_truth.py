"""Contact judged from outside: scenes of benchmarks/contact_truth.py, in small.

Overlaps, velocities at contacts, momenta and energies are computed in NumPy from states; nothing is
taken from the engine but states and the table of contacts. A figure may be wrong only where the
report of the step or a warning shows it.
"""

from dataclasses import replace

import numpy as np
import pytest
from truth import grasps, laws, piles, starts, surfaces
from truth.judge import Judge
from truth.random_scenes import random_scene
from truth.scene import Scene, Thing
from truth.verdict import Result, limits_of

import kinetree as kt
from kinetree.model import geometry


def judged(scene, steps=None, limits=None, every=1):
    """Result of the first steps of a scene."""
    judge = Judge(scene, every=every)
    return Result("").add(judge, judge.run(steps), limits or limits_of(scene))


# --- the judge itself ----------------------------------------------------------------------------


def test_judge_finds_what_is_wrong():
    """A state that is set inside, forces out of their cones, and energy from nowhere are seen."""
    scene = Scene((Thing("box", geometry.Box((0.2, 0.2, 0.2)), 1.0, (0, 0, 0.1)),), steps=5)
    judge = Judge(scene)
    fine = judge.run()[-1]
    assert max(fine.overlap, fine.velocity, fine.momentum, fine.cone, fine.gain) < 1e-9
    slippery = Judge(replace(scene, things=(replace(scene.things[0], velocity=(1.0, 0, 0)),)))
    slippery.scene = replace(scene, friction=0.2)  # forces are judged by another coefficient
    assert slippery.step().cone > 1e-4
    q, qd = judge.world.q, judge.world.qd
    q[2] -= 1e-3
    judge.world.q = q
    assert judge.overlap()[0] == pytest.approx(1e-3, rel=1e-6)
    before = judge.bodies.state(q, qd)
    faster = judge.bodies.state(q, qd + 0.1 * np.eye(6)[3])
    assert judge.bodies.energy(faster) - judge.bodies.energy(before) == pytest.approx(5e-3)
    assert judge.bodies.difference(before, faster) == pytest.approx(0.1)


# --- grasps --------------------------------------------------------------------------------------


@pytest.mark.parametrize("friction", [0.2, 0.5, 1.5])
@pytest.mark.parametrize("kind", grasps.FINGERS)
def test_fingers_hold_above_the_limit(kind, friction):
    """Within 1e-6 m for 10 s, from 1.001 times the least force on."""
    for over in (1.001, 1.3):
        scene = grasps.gripper(kind, friction, over)
        world = scene.world()
        tau, start = scene.forces(world), world["box"].position
        world.step(5000, tau=tau)
        assert np.abs(world["box"].position - start).max() < 1e-6


@pytest.mark.parametrize("friction", [0.2, 0.5, 1.5])
@pytest.mark.parametrize("kind", grasps.FINGERS)
def test_fingers_slip_below_the_limit(kind, friction):
    scene = grasps.gripper(kind, friction, 0.999)
    world = scene.world()
    tau, start = scene.forces(world), world["box"].position[2]
    world.step(200, tau=tau)
    assert start - world["box"].position[2] == pytest.approx(9.81e-3 * 0.4**2 / 2, rel=0.02)


@pytest.mark.parametrize("friction", [0.2, 1.5])
@pytest.mark.parametrize("name", grasps.HANDS)
def test_hands_hold_what_forward_dynamics_predicts(name, friction):
    for over, steps in ((0.999, 200), (1.001, 1000)):
        scene = grasps.hand(name, friction, over)
        fall = grasps.predicted(scene) * (steps * scene.timestep) ** 2 / 2
        assert (fall > 1e-4) is (over < 1)
        world = scene.world()
        tau, start = scene.forces(world), world["object"].position[2]
        world.step(steps, tau=tau)
        assert start - world["object"].position[2] == pytest.approx(fall, abs=1e-6)


# --- drops and piles -----------------------------------------------------------------------------


def test_balls_in_a_box_obey_the_laws():
    scene = piles.balls(0, n=18)
    found = judged(scene, 400, every=20)
    assert found.wrong == []
    assert found.velocity < 1e-4


# --- geometry ------------------------------------------------------------------------------------


def test_wedges_face_to_face():
    found = surfaces.wedges(poses=200)
    assert found.fine
    assert found.wrong == []


@pytest.mark.parametrize("rim", [False, True])
def test_uneven_ground(rim):
    assert judged(surfaces.field(rim), 300, every=10).silent == []


# --- masses and laws -----------------------------------------------------------------------------


# --- masses and laws -----------------------------------------------------------------------------


def test_rolling_friction_is_independent_of_sliding():
    found = laws.rolling()
    assert found.numbers["ratio"] == pytest.approx(1.0, abs=1e-9)
    assert found.numbers["slip"] < 1e-9
    assert found.wrong == []


def test_bounces_return_to_the_height_of_the_law():
    found = laws.restitution()
    assert found.numbers["height"] == pytest.approx(0.09, abs=1e-8)
    assert found.wrong == []


# --- starts --------------------------------------------------------------------------------------


def test_poses_set_inside_are_named():
    assert starts.set_inside().fine


def test_worlds_of_a_batch_that_start_inside_are_named():
    assert starts.batch_inside().fine


def test_permanent_overlaps_are_left_out():
    found = starts.permanent_overlap()
    assert "named at load, 0 contacts left in" in found.figure
    assert found.numbers["ratio"] < 5  # it was 30 times mj_step's time with the contact


# --- large worlds --------------------------------------------------------------------------------


def test_large_worlds_are_built_in_time():
    """A tenth of 10,000 spheres, in ten times a tenth of the time that all of them may take."""
    import time

    start = time.process_time()
    world = kt.World()
    world.add_ground()
    side = np.arange(10) * 0.25
    world.add(
        geometry.Sphere(0.1),
        mass=1.0,
        at=[(x, y, 0.1 + z) for x in side for y in side for z in side],
    )
    world.step(1)
    assert time.process_time() - start < 5.0


# --- overlaps and masses: right, or reported ---------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_plates_that_tumble_overlap_only_as_reported(seed):
    assert judged(piles.plate_drop(seed)).silent == []


def test_boxes_and_plates_overlap_only_as_reported():
    assert judged(piles.boxes_dropped(), 300).silent == []
    assert judged(piles.plates(8), 300).silent == []


@pytest.mark.parametrize("seed", [5, 8, 13, 16, 17])
def test_random_scenes_are_not_wrong_in_silence(seed):
    assert judged(random_scene(seed), every=2).silent == []


def test_extreme_masses_solve_or_report():
    assert laws.ton_on_ball().silent == []
    assert laws.heavy_stack().silent == []
