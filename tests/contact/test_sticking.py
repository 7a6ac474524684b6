"""Which solution is taken where Coulomb's law allows several: sticking first, and evenly."""

import numpy as np
import pytest
from support.islands import filled, missed, run

import kinetree as kt
from kinetree.contact.newton.problem import CONE
from kinetree.contact.newton.sticking import has_twin
from kinetree.model.geometry import Box

G, STEP = 9.81, 2e-3
CORNERS = [(x, y, z) for x in (-0.1, 0.1) for y in (-0.04, 0.04) for z in (-0.04, 0.04)]


def gripper(over, mu):
    """Two fingers on slides that press a box of 1 kg with ``over`` times what holds it."""
    inertia = np.array([2 * 0.04**2, 0.1**2 + 0.04**2, 0.1**2 + 0.04**2]) / 3
    M, rows = np.diag([1.0, 1.0, 1.0, 1.0, 1.0, *inertia]), []
    for point in CORNERS:
        side = np.sign(point[0])
        axes = np.array([[-side, 0.0, 0.0], [0, 1, 0], [0, 0, 1]])
        J = np.zeros((3, 8))
        J[:, 2:] = np.hstack([axes, np.cross(point, axes)])
        J[0, 0 if side < 0 else 1] = -1.0  # a finger slides along its own normal
        rows.append((CONE, J, np.zeros(3), mu, 0.0, 0.0))
    force = over * G / (2 * mu)
    p = filled([-1, -1, -1, 2, 3, 4, 5, 6], M, rows)
    p.free[:] = STEP * np.array([force, force, 0, 0, -G, 0, 0, 0])
    return p, M, rows


@pytest.mark.parametrize("mu", [0.23, 0.5, 1.4])
@pytest.mark.parametrize("over", [1.001, 1.03, 1.7])
def test_what_can_stick_sticks_whatever_the_last_step_was(mu, over, rng):
    for start in (0.0, 1.0):
        p, M, rows = gripper(over, mu)
        p.impulse[:24] = start * STEP * G * rng.uniform(0, 1, 24)
        assert run(p)[0] == 0
        assert np.max(np.abs(p.velocity)) < 1e-8 * STEP * G
        assert max(missed(M, p.free, rows, p.velocity, p.impulse)) < 1e-8


def test_symmetric_contacts_share_a_load_evenly():
    p, *_ = gripper(1.01, 0.5)
    run(p)
    normal = p.impulse[:24:3]
    assert np.ptp(normal) < 1e-6 * normal.max()


def test_mirror_images_are_found_whatever_their_tangents_and_order():
    p, *_ = gripper(1.01, 0.5)
    _, work = run(p)
    assert all(has_twin(p, work, 0, g) for g in range(8))
    p.J[p.entry_at[p.entry_first[8] - 1] + 4] *= 1.1  # where the last one touches the box
    assert not has_twin(p, work, 0, 7)
    assert all(has_twin(p, work, 0, g) for g in range(7))


@pytest.mark.parametrize("over", [0.98, 0.999])
def test_less_than_the_limit_falls_straight(over):
    p, M, rows = gripper(over, 0.6)
    run(p)
    assert max(missed(M, p.free, rows, p.velocity, p.impulse)) < 1e-8
    fall = np.array([0, 0, 0, 0, -G * STEP * (1 - over), 0, 0, 0])
    assert np.max(np.abs(p.velocity - fall)) < 1e-6 * STEP * G


@pytest.mark.parametrize(("mu", "over", "finger"), [(0.31, 1.002, 0.2), (0.9, 1.4, 7.0)])
def test_flat_fingers_hold_a_box(mu, over, finger):
    world = kt.World(friction=mu, gravity=(0, 0, -G))
    world.add(Box((0.2, 0.08, 0.08)), mass=1.0, name="box")
    for name, x in (("left", -0.11), ("right", 0.11)):
        slide = {"mass": finger, "joint": kt.Prismatic("x")}
        world.add(Box((0.02, 0.08, 0.08)), at=(x, 0, 0), name=name, **slide)
    force = over * G / (2 * mu)
    world.step(250, tau={"left": [force], "right": [-force]})
    assert np.linalg.norm(world["box"].position) < 1e-9
