"""Steps that ``simulate`` takes and stores in compiled code are those of ``World``."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.engine.joint_laws import add_joint_forces, joint_laws_of
from kinetree.model import JointDynamics, Limits
from kinetree.simulation.setup import effects_of


def tumbling():
    """A world with a box, a ball and an arm of two joints with limits and friction."""
    world = kt.World(timestep=2e-3)
    world.add_ground()
    world.add(kt.geometry.Box((0.2, 0.1, 0.1)), mass=1.0, at=(0.5, 0, 0.3), spin=(1, 2, 0.5))
    world.add(kt.geometry.Sphere(0.05), mass=0.3, at=(0.55, 0, 0.5))
    world.add(arm(), name="arm")
    return world


def arm():
    """Two joints in series, with a ball at the tip."""
    b = kt.ModelBuilder("arm")
    for k, on, z in ((1, None, 1.0), (2, "link1", -0.3)):
        b.body(
            f"link{k}", on=on, joint=kt.Revolute("y"), joint_name=f"joint{k}", at=(0, 0, z),
            inertia=kt.Inertia.from_mass_center(1.0, (0, 0, -0.15), 0.01 * np.eye(3)),
            limits=Limits(lower=-0.4, upper=0.3),
            dynamics=JointDynamics(friction=0.2, damping=0.05),
        )  # fmt: skip
    b.geometry(kt.geometry.Sphere(0.03), on="link2", at=(0, 0, -0.3), name="tip")
    return b.build()


def stepped(world, n):
    """States of a world after each of ``n`` steps."""
    states = [(world.q, world.qd)]
    for _ in range(n):
        world.step()
        states.append((world.q, world.qd))
    return (np.array(x) for x in zip(*states, strict=True))


@pytest.mark.parametrize("every", [1, 7])
def test_a_simulation_of_a_world_has_the_bits_of_its_steps(every):
    world, n = tumbling(), 250
    motion = kt.simulate(world, duration=n * world.timestep, store_every=every)
    q, qd = stepped(world, n)
    at = [*range(0, n, every), n]
    assert np.array_equal(motion.q, q[at])
    assert np.array_equal(motion.qd, qd[at])
    assert motion.report.steps == n
    assert motion.t[-1] == n * world.timestep


def drag(model, t, q, qd):
    """A force in plain Python."""
    return -0.05 * qd


def look(step):
    """A hook that changes nothing."""


@pytest.mark.filterwarnings("ignore::kinetree.SimulationWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"store_every": 7},
        {"controller": lambda t, q, qd: -0.1 * qd},
        {"hooks": look},
        {"forces": drag},
    ],
    ids=["held", "every 7", "controller", "hook", "python force"],
)
def test_motions_of_a_batch_have_the_bits_of_single_ones(options):
    """States, work, energies, forces and residuals; names of contacts may be fewer of one."""
    world, duration = tumbling(), 0.3
    speeds = np.linspace(0.0, 0.5, 3)[:, None] + world.qd
    starts = np.broadcast_to(world.q, (3, len(world.q)))
    batch = kt.simulate(world, starts, speeds, duration=duration, **options)
    for k in range(3):
        alone = kt.simulate(world, starts[k], speeds[k], duration=duration, **options)
        for name in ("q", "qd", "work", "tau"):
            assert np.array_equal(getattr(batch, name)[:, k], getattr(alone, name)), name
        assert np.allclose(batch.energy[:, k], alone.energy, rtol=1e-12)
        ours, theirs = batch.contact, alone.contact
        assert np.array_equal(ours.residuals[:, k], theirs.residuals)
        assert np.array_equal(ours.joint_force[:, k], theirs.joint_force)
        at = [ours.names.index(name) for name in theirs.names]
        assert np.array_equal(ours.force[:, k][:, at], theirs.force)
        assert ours.force[:, k].sum() == pytest.approx(theirs.force.sum())


def test_forces_work_and_residuals_do_not_depend_on_what_is_stored():
    world = tumbling()
    all_of_it, some = (kt.simulate(world, duration=0.5, store_every=k) for k in (1, 50))
    found, few = all_of_it.contact, some.contact
    assert np.array_equal(all_of_it.work[::50], some.work)
    assert few.worst == pytest.approx(found.worst, rel=1e-12)
    for name in few.names:
        k, j = found.names.index(name), few.names.index(name)
        assert np.array_equal(found.force[::50, k], few.force[:, j])
    ground = [k for k, name in enumerate(found.names) if "ground" in name]
    weight = -1.3 * world.gravity[2]  # of the box and of the ball on top of it
    assert found.force[-1, ground, 0].sum() == pytest.approx(weight, rel=1e-6)


def test_a_controller_in_python_sees_every_state_and_holds_its_forces():
    world, seen = tumbling(), []

    def push(t, q, qd):
        seen.append((t, q.copy(), qd.copy()))
        return 0.1 * np.sin(10 * t) * np.ones(len(qd))

    motion = kt.simulate(world, duration=0.1, controller=push)
    assert np.array_equal([x[1] for x in seen], motion.q)
    assert np.array_equal([x[0] for x in seen], motion.t)
    np.testing.assert_array_equal(motion.tau[:, 0], 0.1 * np.sin(10 * motion.t))
    world.step(len(seen) - 1, tau=lambda t, q, qd: push(t, q, qd))
    np.testing.assert_allclose(world.q, motion.q[-1], rtol=0, atol=1e-12)


def test_energies_and_the_pivot_of_steps_are_those_of_the_model():
    world = tumbling()
    motion = kt.simulate(world, duration=0.3)
    m = world.model
    energy = kt.kinetic_energy(m, motion.q, motion.qd) + kt.potential_energy(m, motion.q)
    np.testing.assert_allclose(motion.energy, energy, rtol=1e-12)
    H = kt.mass_matrix(m, motion.q[-1])[-2:, -2:]
    expected = 1 - H[0, 1] ** 2 / (H[0, 0] * H[1, 1])  # of the arm, the only coupled joints
    assert motion.report.smallest_pivot == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("options", [{}, {"conserving": False}, {"flight": True}], ids=str)
def test_energies_of_steps_that_lose_some_are_those_of_their_states(options):
    world = kt.World()
    world.add_ground()
    spin, at = (9.0, 4.0, -7.0), [(0, 0, 0.3), (0.02, 0.01, 0.6), (-0.03, 0.0, 0.9)]
    world.add(kt.geometry.Box((0.2, 0.05, 0.1)), mass=1.0, at=at, spin=spin)
    m, contact = world.model, replace(world.contact, **options)
    motion = kt.simulate(world, duration=1.2, contact=contact)
    assert motion.contact.residuals[..., 7].max() > 0 or not contact.conserving
    energy = kt.kinetic_energy(m, motion.q, motion.qd) + kt.potential_energy(m, motion.q)
    np.testing.assert_allclose(motion.energy, energy, rtol=1e-12)


def test_stiff_limits_and_smooth_friction_act_in_tables_as_in_the_texts(rng):
    model = arm()
    passive = effects_of(model).passive
    tables = joint_laws_of(passive.friction, passive.limits)
    for _ in range(20):
        q, qd = rng.uniform(-0.6, 0.6, 2), rng.uniform(-1, 1, 2)
        force, K, D = np.zeros((3, 2))
        add_joint_forces(tables, q, qd, force, K, D)
        expected = passive.friction(model, 0.0, q, qd) + passive.limits(model, 0.0, q, qd)
        np.testing.assert_allclose(force, expected, rtol=1e-13)
        np.testing.assert_allclose((K, D), passive.limits.resistance(model, q, qd), rtol=1e-13)


def test_a_brief_simulation_is_the_start_of_a_long_one():
    model = kt.contact.with_ground(arm(), point=(0, 0, 0.2))
    contact = kt.contact.TimeStepping(kt.contact.Scene(model))
    q = np.array([0.25, -0.35])
    brief, long = (
        kt.simulate(model, q, [1.0, -2.0], duration=t, contact=contact) for t in (0.2, 1.0)
    )
    assert np.array_equal(brief.q, long.q[: len(brief.q)])


def test_contacts_have_names_when_they_are_read_and_files_and_copies_hold_them(tmp_path):
    motion = kt.simulate(tumbling(), duration=0.4)
    copy = pickle.loads(pickle.dumps(motion))
    path = tmp_path / "motion.npz"
    motion.save(path)
    for other in (copy, kt.Trajectory.load(path)):
        assert other.contact.names == motion.contact.names
        assert np.array_equal(other.contact.force, motion.contact.force)
    last: Any = motion[-1:]
    assert last.contact.force.shape == (1, len(motion.contact.names), 3)


@pytest.mark.filterwarnings("ignore::kinetree.SimulationWarning")
def test_a_motion_that_explodes_is_an_error_that_says_when():
    world = tumbling()
    with pytest.raises(kt.SimulationError, match=r"t = 0\.0"):
        kt.simulate(world, duration=1.0, controller=lambda t, q, qd: 1e300 * np.ones(len(qd)))


@pytest.mark.filterwarnings("ignore::kinetree.SimulationWarning")
@pytest.mark.parametrize("friction", ["smooth", "exact"])
def test_a_coupled_arm_moves_where_the_engine_takes_over_from_the_unrolled_step(friction):
    """Couplings are rows of the engine, and none of the unrolled step."""
    b = kt.ModelBuilder("geared")
    for name, on, z in (("lead", None, 0.5), ("follow", "lead", -0.3)):
        b.body(
            name, on=on, joint=kt.Revolute("y"), at=(0, 0, z),
            inertia=kt.Inertia.from_mass_center(1.0, (0, 0, -0.15), 0.01 * np.eye(3)),
            dynamics=JointDynamics(friction=0.2),
        )  # fmt: skip
    b.geometry(kt.geometry.Sphere(0.05), on="follow", at=(0, 0, -0.2), name="tip")
    b.coupling("gear", joint="follow_joint", source="lead_joint", coefficients=(0.0, 0.5))
    model = kt.contact.with_ground(b.build(), point=(0, 0, -0.03))
    ends = []
    for options in ({}, {"rounds": 1, "tolerance": 1e-15}):  # the second solves hardly anything
        contact = kt.contact.TimeStepping(kt.contact.Scene(model), **options)
        motion = kt.simulate(model, [1.0], duration=0.8, friction=friction, contact=contact)
        ends.append(motion.q[-1])
        assert np.abs(motion.qd[-1]).max() < 1e-9
    np.testing.assert_allclose(*ends, atol=1e-9)


@kt.kernel
def damp(model, t, q, qd):
    return -0.2 * qd + 0.1 * t


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("touching", [False, True])
def test_a_kernel_as_controller_is_called_by_compiled_code(touching, every):
    world, calls = tumbling(), []

    def same(t, q, qd):
        calls.append(t)
        return damp(world.model, t, q, qd)

    if touching:
        start: tuple = (world,)
    else:
        start = kt.samples.double_pendulum(), [2.0, 1.0]
        world = type("Of", (), {"model": start[0]})
    options = {"duration": 0.2, "dt": 2e-3, "store_every": every}
    found = kt.simulate(*start, controller=damp, **options)
    expected = kt.simulate(*start, controller=same, **options)
    assert len(calls) == 101
    for name in ("t", "q", "qd", "work", "tau"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_a_kernel_that_returns_no_number_is_named():
    @kt.kernel
    def root(model, t, q, qd):
        return np.sqrt(0.05 - t) * np.ones(2)

    with pytest.raises(kt.SimulationError, match=r"at t = 0\.05"):
        kt.simulate(kt.samples.double_pendulum(), [2.0, 1.0], duration=0.2, controller=root)
