"""The engine: whole steps in compiled code, for free bodies and robots, with all laws."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.only_motion import OnlyMotion

import kinetree as kt
from kinetree.contact import Scene, TimeStepping, with_ground
from kinetree.contact.engine.engine import Engine
from kinetree.contact.engine.terms import TEXTS, term_kernel
from kinetree.contact.scheme import inertia
from kinetree.contact.scheme.constraints import NO_JOINT_ROWS, JointRows
from kinetree.model import Coupling, JointDynamics, geometry

H = 2e-3


def bodies(*places, shape=None, mass=1.0, friction=0.6, **surface):
    """Free bodies of one shape on the ground, and where they start."""
    shape = geometry.Box((0.2, 0.2, 0.2)) if shape is None else shape
    if isinstance(shape, geometry.Box):
        I = kt.shapes.box(*shape.size, mass=mass)
    else:
        I = kt.shapes.sphere(shape.radius, mass=mass)
    builder = kt.ModelBuilder("bodies")
    for k in range(len(places)):
        builder.body(f"b{k}", joint=kt.Free(), inertia=I)
        builder.geometry(shape, on=f"b{k}", name=f"b{k}")
    model = with_ground(builder.build())
    q = model.neutral()
    for k, p in enumerate(places):
        q[7 * k : 7 * k + 3] = p
    return model, Scene(model, friction=friction, **surface), q


def test_texts_of_the_terms_are_those_of_the_book():
    model, rng = kt.samples.quadruped(), np.random.default_rng(0)
    q = np.array(model.posture("home").q)
    q[7:] += 0.3 * rng.normal(size=12)
    q[3:7] = [0.5, 0.5, -0.5, 0.5]
    qd, zero = rng.normal(size=18), np.zeros(18)
    pose, S, F = term_kernel(model, "terms").call(q)
    M, H = F @ S.T, kt.mass_matrix(model, q)
    assert pose.shape == (13, 12)
    T = kt.poses(model, q)
    assert np.abs(pose.reshape(-1, 3, 4) - T[:, :3]).max() < 1e-14
    for k in range(18):
        j = k
        while j >= 0:
            assert abs(M[k, j] + model.armature[k] * (j == k) - H[k, j]) < 1e-13
            j = model.expanded_parent[j]
    flies = inertia.alone(model)
    C = term_kernel(model, "bias").call(q, qd, zero, flies)
    expected = kt.bias_force(model, q, qd) + H @ inertia.turning(model, qd)
    assert np.abs(C - expected).max() < 1e-12
    there, turned = inertia.straight_motion(model, q, qd, 0.01)
    moved = term_kernel(model, "moved").call(q, qd, qd, np.array([0.01]), flies)
    assert np.abs(moved[0] - there).max() < 1e-15
    assert np.abs(moved[1] - turned).max() < 1e-15
    for name, (text, arguments, _) in TEXTS.items():
        given = {"q": q, "qd": qd, "qdd": zero, "x": qd, "h": np.array([0.01]), "alone": flies}
        arrays = [given[n] for n in arguments]
        found, meant = term_kernel(model, name).call(*arrays), text(model, *arrays)
        pairs = zip(found, meant, strict=True) if isinstance(found, tuple) else [(found, meant)]
        assert all(np.abs(np.asarray(a) - np.asarray(b)).max() < 1e-11 for a, b in pairs)


def test_a_stack_of_ten_stands_without_drift():
    model, scene, q = bodies(*((0, 0, 0.1 + 0.2 * k) for k in range(10)))
    motion = OnlyMotion(Engine(model, scene))
    end = motion.step(q, np.zeros(model.nv), H, count=500)
    assert np.abs(end.q - q).max() < 3e-11  # 1e-9 m in 30 s
    found = motion.forces(0)
    assert len(found.contacts.names) == 40
    lowest = found.contacts.predecessor == 0
    assert abs(found.force[lowest, 0].sum() - 98.1) < 1e-6
    assert end.residuals[9] == 500


def test_energy_never_rises_when_boxes_fall_on_each_other():
    model, scene, q = bodies((0, 0, 0.3), (0.07, 0.03, 0.7), (0.02, -0.08, 1.1))
    q[3:7] = [0.9, 0.3, 0.1, 0.0]
    q[3:7] /= np.linalg.norm(q[3:7])
    motion, qd, energy = OnlyMotion(Engine(model, scene)), np.zeros(model.nv), []
    for _ in range(400):
        end = motion.step(q, qd, H)
        q, qd = end.q, end.qd
        energy.append(kt.kinetic_energy(model, q, qd) + kt.potential_energy(model, q))
        assert end.residuals[3] < 5e-3
    assert np.max(np.diff(energy)) < 1e-9 * energy[0]
    assert energy[-1] < 0.6 * energy[0]


def test_a_block_slides_by_coulombs_law_and_a_ball_rolls_without_drag():
    model, scene, q = bodies((0, 0, 0.1), friction=0.3)
    motion = OnlyMotion(Engine(model, scene))
    end = motion.step(q, np.array([0, 0, 0, 2.0, 0, 0]), H, count=200)
    t = 200 * H
    assert abs(end.qd[3] - (2.0 - 0.3 * 9.81 * t)) < 1e-9
    assert abs(end.q[0] - (2.0 * t - 0.15 * 9.81 * t * t)) < 1e-3 * H  # exact but for its start
    ball, scene, q = bodies((0, 0, 0.1), shape=geometry.Sphere(0.1), friction=0.3)
    end = OnlyMotion(Engine(ball, scene)).step(q, np.array([0, 5.0, 0, 0.5, 0, 0]), H, count=1000)
    assert abs(np.linalg.norm(end.qd[3:]) - 0.5) < 1e-9
    assert abs(end.q[0] - 1.0) < 1e-8


def test_restitution_and_drift_of_surfaces():
    ball, scene, q = bodies((0, 0, 0.35), shape=geometry.Sphere(0.1), restitution=0.5)
    motion, qd, top = OnlyMotion(Engine(ball, scene)), np.zeros(6), 0.0
    for _ in range(400):
        end = motion.step(q, qd, 1e-3)
        top = max(top, end.q[2]) if end.qd[5] > 0 or top else 0.0
        q, qd = end.q, end.qd
        if top and end.qd[5] < 0:
            break
    assert abs(top - 0.1 - 0.25 * 0.25) < 3e-3
    model, scene, q = bodies((0, 0, 0.1), friction=0.5)
    motion = OnlyMotion(Engine(model, scene))
    motion.engine.tables.shapes.drift[motion.engine.tables.shapes.body == 0] = [0.4, 0.0, 0.0]
    end = motion.step(q, np.zeros(6), H, count=300)
    assert abs(end.qd[3] - 0.4) < 1e-6


NOTHING: dict = {"limits": None, "friction": None}


def test_the_unrolled_step_is_the_same_scheme():
    model = with_ground(kt.samples.quadruped())
    feet = [g for g in model.geometry if isinstance(g.shape, geometry.Sphere)]
    scene = Scene(model, [(model.geometry[-1], foot) for foot in feet], friction=0.8)
    q, qd = np.array(model.posture("home").q), np.zeros(18)
    qd[3] = 0.3
    apart = []
    for h in (2e-3, 1e-3):
        end = OnlyMotion(Engine(model, scene)).step(q, qd, h, count=round(0.1 / h))
        how = {"duration": 0.1, "dt": h, "store_every": 50, **NOTHING}
        with kt.tier("specialised"):
            ours = kt.simulate(model, q, qd, contact=TimeStepping(scene), **how)
        apart.append(np.abs(end.q - ours.q[-1]).max())
        assert end.residuals[0] < 1e-9
        assert end.residuals[3] < 1e-10
    assert apart[1] < 0.6 * apart[0] < 1e-4  # corrections of positions and energy differ
    with kt.tier("specialised"):
        start = kt.simulate(model, q, qd, duration=h, dt=h, contact=TimeStepping(scene), **NOTHING)
    first = OnlyMotion(Engine(model, scene, tolerance=1e-12)).step(q, qd, h)
    assert_close(first.q, start.q[-1], scale=1.0, ulps=1e4)
    assert_close(first.qd, start.qd[-1], scale=1.0, ulps=1e4)


def test_a_start_inside_is_resolved_at_bounded_speed():
    model, scene, q = bodies((0, 0, 0.05))
    motion = OnlyMotion(Engine(model, scene, correction_speed=0.1))
    size = motion.engine.size
    first = motion.step(q, np.zeros(6), H)
    assert 0 < first.q[2] - 0.05 < 0.1 * size * H * 1.001
    end = motion.step(first.q, first.qd, H, count=1500)
    assert abs(end.q[2] - 0.1) < 1e-9


def test_a_start_inside_does_not_stop_what_moves_beside_it():
    model, scene, q = bodies((0, 0, 0.08), (0, 0, 0.28), friction=0.0)
    motion, qd = OnlyMotion(Engine(model, scene, correction_speed=0.3)), np.zeros(12)
    qd[9] = 0.3  # the box on top slides on one that is lifted by 2 cm: 4 times its energy
    end = motion.step(q, qd, H, count=140)
    assert abs(end.q[2] - 0.1) < 1e-9
    assert abs(end.q[9] - 0.3) < 1e-9
    assert 0.27 < end.qd[9] <= 0.3
    assert end.residuals[8] > 0  # what the shift adds is reported as a gain


def test_what_rests_sleeps_until_it_is_touched_or_driven():
    model, scene, start = bodies((0, 0, 0.1), (0.02, 0, 0.3), (3, 0, 0.1), (0, 0, 3.0))
    motion, zero = OnlyMotion(Engine(model, scene, sleeping=True)), np.zeros(model.nv)
    falls = slice(21, 24)
    end = motion.step(start, zero, H, count=120)
    assert motion.engine.sleep.sleeps.tolist() == [1, 1, 1, 0]
    assert motion.engine.sleep.pile.tolist()[:3] == [0, 0, 2]
    asleep = end.q
    end = motion.step(end.q, end.qd, H, count=180)
    assert np.array_equal(end.q[:21], asleep[:21])  # to the bit
    assert np.array_equal(end.qd[:18], zero[:18])
    assert_close(end.q[23], 3.0 - 9.81 * 0.6**2 / 2, scale=1.0, ulps=1e6)  # falls freely
    found = motion.forces(0)  # contacts that sleep keep their forces
    weight = found.force[found.contacts.predecessor == 0, 0].sum()
    assert abs(weight - 3 * 9.81) < 1e-5
    other = OnlyMotion(Engine(model, scene, sleeping=True))  # saved and loaded: the same bits
    memory = motion.memory_of(0)
    both = [e.step(end.q, end.qd, H, count=100, memory=m) for e, m in (
        (motion, None), (other, memory))]  # fmt: skip
    assert np.array_equal(both[0].q, both[1].q)
    assert motion.engine.sleep.sleeps.tolist() == [0, 0, 1, 0]  # hit, and far away
    end = motion.step(both[0].q, both[0].qd, H, count=1500)
    assert motion.engine.sleep.asleep == 4
    assert np.array_equal(end.q[14:21], asleep[14:21])
    still = motion.step(end.q, end.qd, H, count=10)
    assert np.array_equal(still.q, end.q)
    push = zero.copy()
    push[15] = 8.0  # the third one, by more than friction holds
    pushed = motion.step(end.q, end.qd, H, push, count=10)
    assert motion.engine.sleep.sleeps.tolist() == [1, 1, 0, 1]
    assert pushed.q[14] > end.q[14]
    moved = end.q.copy()
    moved[falls] += 0.5
    motion.step(moved, zero, H)
    assert motion.engine.sleep.asleep == 0  # a state that is set wakes all


def test_memories_belong_to_motions():
    model, scene, q = bodies((0, 0, 0.1), (0.02, 0, 0.3))
    motion, zero = OnlyMotion(Engine(model, scene)), np.zeros(12)
    first = motion.step(q, zero, H, count=20)
    memory = motion.memory_of(0)
    motion.step(q + np.eye(14)[0], zero, H, count=3, memory={})
    again = motion.step(first.q, first.qd, H, memory=memory)
    whole = OnlyMotion(Engine(model, scene)).step(q, zero, H, count=21)
    assert np.abs(again.q - whole.q).max() < 1e-13


def test_a_fast_cube_does_not_pass_a_thin_wall():
    builder = kt.ModelBuilder("bullet")
    builder.body("cube", joint=kt.Free(), inertia=kt.shapes.box(0.04, 0.04, 0.04, mass=0.1))
    builder.geometry(geometry.Box((0.04, 0.04, 0.04)), on="cube", name="cube")
    builder.geometry(geometry.Box((0.01, 1.0, 1.0)), on="base", name="wall")
    model = builder.build()
    q = model.neutral()
    q[0] = -1.0
    end = OnlyMotion(Engine(model, Scene(model))).step(
        q, np.array([0, 0, 0, 100.0, 0, 0]), H, count=20
    )
    assert end.q[0] < -0.024


def test_capacities_grow():
    model, scene, q = bodies(*((0.25 * (k % 9), 0.25 * (k // 9), 0.1) for k in range(81)))
    motion = OnlyMotion(Engine(model, scene))
    end = motion.step(q, np.zeros(model.nv), H, count=3)
    assert np.abs(end.q - q).max() < 1e-11
    assert len(motion.forces(0).contacts.names) == 324


def test_names_of_contacts_say_pair_and_feature():
    model, scene, q = bodies((0, 0, 0.1), (0, 0, 0.3))
    motion = kt.simulate(model, q, duration=0.01, dt=H, contact=TimeStepping(scene))
    assert {n.rpartition(":")[0] for n in motion.contact.names} == {"ground/b0", "b0/b1"}


# --- joints, loops, couplings ---------------------------------------------------------------------


def by_engine(model, q, qd=None, *, h=1e-3, duration=0.3, joints=NO_JOINT_ROWS, **options):
    """The end of a motion without contact, and the motion."""
    motion = OnlyMotion(Engine(model, Scene(model, []), joints=joints, **options))
    qd = np.zeros(model.nv) if qd is None else qd
    return motion.step(q, qd, h, count=round(duration / h)), motion


def test_loops_stay_closed_and_move_as_they_should():
    for name in ("four_bar", "delta"):
        model = getattr(kt.samples, name)()
        q = model.neutral()
        ours = kt.simulate(model, q, duration=0.3, dt=1e-3, friction=None, limits=None)
        errors = []
        for h in (2e-3, 1e-3):
            end, motion = by_engine(model, q, h=h)
            assert end.residuals[4] < 1e-9
            errors.append(np.abs(end.q - ours.q[-1]).max())
        assert errors[0] < 2e-5
        assert errors[1] < 0.31 * errors[0]  # second order
        assert len(motion.joint_forces[0]) == motion.engine.rows.loops


def test_closed_chains_slide_along_walls_to_second_order():
    """The plate of a delta robot under its weight, on an oblique wall without friction."""
    model = kt.samples.delta()
    q, n, ends = model.neutral(), np.array([0.3, 0.1, 1.0]) / np.sqrt(1.1), []
    wall = np.eye(4)
    t = np.cross([0, 1, 0], n) / np.linalg.norm(n[[0, 2]])
    wall[:3, :3] = np.column_stack([t, np.cross(n, t), n])
    wall[:3, 3] = kt.pose(model, q, "plate")[:3, 3] - 0.02 * n
    tip = geometry.Geometry(1, geometry.Sphere(0.02), name="tip")
    plane = geometry.Geometry(0, geometry.Plane(), name="wall", placement=wall)
    model = model.replace(geometry=[tip, plane])
    for h in (8e-3, 4e-3, 2e-3):
        motion = OnlyMotion(Engine(model, Scene(model, friction=0.0)))
        end = motion.step(q, np.zeros(model.nv), h, count=round(0.2 / h))
        assert motion.engine.rows.contacts == 1
        assert end.residuals[4] < 1e-9
        ends.append(np.concatenate([end.q, end.qd]))
    assert np.abs(ends[1] - ends[2]).max() < 0.27 * np.abs(ends[0] - ends[1]).max()


def test_gears_are_rows_of_the_same_problem():
    builder = kt.ModelBuilder("gears")
    I = kt.shapes.box(0.1, 0.02, 0.02, mass=1.0, at=(0.05, 0, 0))
    builder.body("first", joint=kt.Revolute("y"), inertia=I, joint_name="a")
    builder.body("second", joint=kt.Revolute("y"), inertia=I, joint_name="b", on="first")
    model = builder.build()
    model = model.replace(couplings=(Coupling("gear", 2, source=1, coefficients=(0.3, -2.0)),))
    q, h = np.array([0.4]), 1e-3
    ours = kt.simulate(model, q, duration=0.3, dt=1e-4)
    end, motion = by_engine(model, q, h=h)
    assert np.abs(end.q - ours.q[-1]).max() < 5e-6
    assert motion.engine.rows.loops == 1
    assert end.residuals[4] < 1e-9


def test_stops_and_dry_friction():
    builder = kt.ModelBuilder("slider")
    builder.body("mass", joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(0.1, mass=2.0))
    model = builder.build()
    stops = JointRows(stops=((0, 0, 1.0, -0.1),))
    end, _ = by_engine(model, [0.0], joints=stops)
    assert abs(end.q[0] + 0.1) < 1e-9
    assert abs(end.qd[0]) < 1e-9
    bounce = JointRows(stops=((0, 0, 1.0, -0.1),), restitution=0.8)
    end, _ = by_engine(model, [-0.1], np.array([-1.0]), duration=0.05, joints=bounce)
    assert abs(end.qd[0] - (0.8 - 9.81 * 0.05)) < 0.02
    for level, moves in ((19.0, True), (20.0, False)):  # 19.62 N of weight
        end, motion = by_engine(model, [0.0], joints=JointRows(friction=((0, level),)))
        assert (abs(end.q[0]) > 1e-3) == moves
        assert abs(motion.joint_forces[0][0] - min(level, 19.62)) < 1e-6


def test_stiff_springs_and_dampers_do_not_chatter():
    builder = kt.ModelBuilder("oscillator")
    dynamics = JointDynamics(stiffness=(1e7,), damping=(1e4,))
    builder.body(
        "mass", joint=kt.Prismatic("x"), inertia=kt.shapes.sphere(0.1, mass=1.0), dynamics=dynamics
    )
    end, _ = by_engine(builder.build(), [0.01], h=2e-3, duration=0.04)
    assert abs(end.q[0]) < 1e-4
    soft = JointDynamics(stiffness=(100.0,), damping=(0.0,))
    builder = kt.ModelBuilder("oscillator").body(
        "mass", joint=kt.Prismatic("x"), inertia=kt.shapes.sphere(0.1, mass=1.0), dynamics=soft
    )
    end, _ = by_engine(builder.build(), [0.01], h=1e-3, duration=0.3)
    assert abs(end.q[0] - 0.01 * np.cos(3.0)) < 3e-7


@pytest.mark.filterwarnings("ignore:steps of contact:kinetree.errors.SimulationWarning")
def test_prescribed_joints_carry_what_lies_on_them():
    """A table that is lifted at 2 m/s² under a block, by code in Python."""
    builder = kt.ModelBuilder("lift")
    builder.body("table", joint=kt.Prismatic("z"), joint_name="lift",
                 inertia=kt.shapes.box(1.0, 1.0, 0.2, mass=5.0))  # fmt: skip
    builder.body("block", joint=kt.Free(), inertia=kt.shapes.box(0.2, 0.2, 0.2, mass=1.0))
    builder.geometry(geometry.Box((1.0, 1.0, 0.2)), on="table", name="table")
    builder.geometry(geometry.Box((0.2, 0.2, 0.2)), on="block", name="block")
    model = builder.build()
    q, qd = model.neutral(), np.zeros(7)
    q[3] = 0.2
    lifted = {"lift": lambda t: (t * t, 2.0 * t, 2.0)}
    contact = TimeStepping(Scene(model))
    motion = kt.simulate(model, q, qd, duration=0.2, dt=H, contact=contact, prescribed=lifted)
    assert abs(motion.q[-1, 0] - 0.04) < 1e-12
    assert abs(motion.q[-1, 3] - 0.24) < 1e-6
    assert abs(motion.contact.force[-1, :, 0].sum() - (9.81 + 2.0)) < 1e-6
    assert abs(motion.tau[-1, 0] - 6 * (9.81 + 2.0)) < 1e-6


def test_torsional_and_rolling_friction():
    """A ball that spins about the normal, and one that rolls, slow down by ``c m g / I``."""
    ball, scene, q = bodies((0, 0, 0.1), shape=geometry.Sphere(0.1), friction=0.6)
    I, weight = 0.4 * 0.1**2, 9.81
    for condim, spin, roll in ((4, 0.01, 0.0), (6, 0.01, 0.002)):
        motion = OnlyMotion(Engine(ball, scene))
        shapes = motion.engine.tables.shapes
        shapes.condim[:] = condim
        shapes.friction[:] = 0.6, spin, roll
        t = 100 * H
        end = motion.step(q, np.array([0, 0, 20.0, 0, 0, 0]), H, count=100)
        assert abs(end.qd[2] - (20.0 - spin * weight / I * t)) < 1e-6
        assert abs(np.abs(motion.forces(0).moment[0, 0]) - spin * weight) < 1e-6
        if roll:
            end = motion.step(q, np.array([0, 10.0, 0, 1.0, 0, 0]), H, count=100)
            about = I + 0.1**2  # about the point of contact
            expected = 1.0 - 0.1 * roll * weight / about * t
            assert abs(np.linalg.norm(end.qd[3:]) - expected) < 1e-3


def test_what_only_moves_up_and_down_touches_with_friction():
    builder = kt.ModelBuilder("lift")
    builder.body("ball", joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(0.1, mass=1.0))
    builder.geometry(geometry.Sphere(0.1), on="ball", name="ball")
    model = with_ground(builder.build())
    end = OnlyMotion(Engine(model, Scene(model, friction=0.5))).step([0.101], [0.0], 1e-3, count=50)
    assert_close(end.q, np.array([0.1]), scale=1.0, ulps=1e6)
    assert end.residuals[0] < 1e-9
