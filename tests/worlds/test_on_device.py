"""Worlds as a GPU computes them: its text and its memory, compiled for the CPU, against the engine.

No GPU is needed: ``Processor`` runs the interleaved text of all procedures and kernels one world
after the other. What is compiled is the same for all worlds here.
"""

import numpy as np
import pytest
import trimesh

import kinetree as kt
from kinetree import geometry as shapes
from kinetree.codegen.device.assembly import assemble, assembler, ptx
from kinetree.codegen.device.interleaved import LANES, POINTER
from kinetree.codegen.device.linking import device_entry
from kinetree.codegen.device.running import Processor, worlds_abreast
from kinetree.contact.collision.detect import found_tables
from kinetree.contact.engine.device.machine import DeviceMachine
from kinetree.contact.engine.machine import Machine
from kinetree.worlds.device import DeviceWorlds, gpu_of
from kinetree.worlds.forces import WorldForces
from kinetree.worlds.samples import columns_of

N = LANES + 1  # in two groups


@pytest.fixture(scope="module")
def world() -> kt.World:
    """A pendulum with a motor that swings into two boxes, one on the other."""
    world = kt.World(timestep=2e-3)
    world.add_ground(friction=0.5)
    for k in range(2):
        world.add(shapes.Box((0.1,) * 3), mass=0.5, name=f"box{k}", at=(0, 0, 0.05 + 0.1 * k))
    robot = kt.samples.cart_pole()
    motor = kt.Actuator("push", 1, gear=(1.0,))
    world.add(robot.replace(actuators=[motor]), name="robot", at=(0, 1, 1))
    return world


@pytest.fixture(scope="module")
def both(world):
    """The same worlds on the CPU and as on a GPU, with their own friction and masses."""
    rng = np.random.default_rng(0)
    given = {"friction": rng.uniform(0.2, 0.9, N), "mass": {"box1": rng.uniform(0.3, 2.0, N)}}
    columns = {what: columns_of(world, what, x, N) for what, x in given.items()}
    on_device = DeviceWorlds(world.copy(), N, columns, on=Processor(), arrays="numpy")
    worlds = world.batch(N, **given)
    return worlds, on_device


def assert_same(worlds, on_device):
    np.testing.assert_array_equal(on_device.q, worlds.q)
    np.testing.assert_array_equal(on_device.qd, worlds.qd)


def test_steps_have_the_bits_of_the_engine(both):
    worlds, on_device = both
    rng = np.random.default_rng(1)
    qd = 0.1 * rng.standard_normal(worlds.qd.shape)
    u, tau = rng.standard_normal((N, 1)), rng.standard_normal(worlds.qd.shape)
    for each in both:
        each.reset()
        each.qd = qd
        each.step(6, u, tau=tau, forces={"box1": rng.standard_normal((N, 3)) * 0 + [1, 2, -3]})
        each.step(6)
    assert_same(*both)
    assert np.ptp(worlds.qd, axis=0).min() > 0
    assert on_device.reports == worlds.reports
    np.testing.assert_array_equal(on_device.times, worlds.times)
    np.testing.assert_array_equal(on_device.residuals, worlds._batch.motions.since)


def test_searches_for_nearest_points_have_the_bits_of_the_engine(tmp_path):
    """Workspaces are on the stack of a world; where C's sines are not involved, bits are equal."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((14, 3))
    points *= 0.12 / np.linalg.norm(points, axis=1)[:, None]
    trimesh.convex.convex_hull(points).export(tmp_path / "rock.stl")
    rock, egg = shapes.Mesh(str(tmp_path / "rock.stl")), shapes.Ellipsoid((0.1, 0.08, 0.14))
    world = kt.World(timestep=2e-3)
    world.add_ground(friction=0.5)
    for k, shape in enumerate((rock, egg, rock, egg)):
        world.add(shape, mass=1.0, name=f"it{k}", at=(0.02 * k, 0, 0.15 + 0.27 * k))
    both = world.batch(3), DeviceWorlds(world.copy(), 3, {}, on=Processor(), arrays="numpy")
    qd = 0.2 * np.random.default_rng(1).standard_normal(both[0].qd.shape)
    for each in both:
        each.reset()
        each.qd = qd
    for _ in range(8):
        for each in both:
            each.step(15)
        assert_same(*both)
    assert np.ptp(both[0].qd, axis=0).min() > 0


def test_one_of_them_goes_on_as_a_world(both):
    worlds, on_device = both
    for each in both:
        each.reset()
        each.step(4)
    first, second = worlds[N - 1], on_device[N - 1]
    assert str(worlds.contacts()[N - 1]) == str(on_device.contacts(N - 1))
    first.step(5)
    second.step(5)
    np.testing.assert_array_equal(second.q, first.q)


def test_some_are_reset_and_others_go_on(both):
    worlds, on_device = both
    which = np.arange(N) % 3 == 0
    for each in both:
        each.reset()
        each.step(4)
        each.reset(which)
        each.step(4)
    assert_same(*both)
    np.testing.assert_array_equal(on_device.times, worlds.times)
    assert len(np.unique(on_device.times)) == 2


def test_states_are_set_and_quaternions_made_unit(both, world):
    for each in both:
        each.reset()
        each.step(4)
    q = both[0].q
    at = world["box0"].q_indices
    q[5, at[:3]] += 0.3
    q[5, at[3:]] *= 2.0
    for each in both:
        each.q = q
        each.step(3)
    assert_same(*both)


def test_failures_stay_in_their_worlds(both):
    worlds, on_device = both
    tau = np.zeros(worlds.qd.shape)
    tau[7] = 1e40
    for each in both:
        each.reset()
        with pytest.warns(kt.SimulationWarning, match=f"1 of {N} worlds .* failed .* world 7: "):
            each.step(2, tau=tau)
    np.testing.assert_array_equal(np.flatnonzero(on_device.failed), [7])
    assert_same(*both)
    assert "1 failed" in repr(on_device)
    on_device.reset(on_device.failed)
    worlds.reset(worlds.failed)
    assert not on_device.failed.any()


def test_memories_grow_with_their_tables(world):
    steps = world.copy()._whole.steps
    machine = Machine(lambda: steps.new_engine(False), 1)
    machine.restore(0, world.q, world.qd, {})
    engine = machine.engine
    engine.found = engine.parts.found = found_tables(2)
    engine.parts.late = found_tables(2)
    engine._list_found()
    few = DeviceMachine(machine, None, 3, Processor())
    worlds = world.batch(3)
    q, qd = worlds.q, 0.1 * np.random.default_rng(2).standard_normal(worlds.qd.shape)
    few.put(q, qd)
    forces = {"box1": np.array([1.0, 2.0, -3.0])}
    acting = WorldForces(world.model, forces, 3)
    few.push(acting.give, acting.wrenches(0.0))
    worlds.qd = qd
    few.advance(world.timestep, 5)
    worlds.step(5, forces=forces)
    assert engine.found.capacity > 2
    np.testing.assert_array_equal(few.q, worlds.q)


def test_the_text_of_a_gpu_is_complete(both):
    program = both[1]._batch.memory.image.program
    texts = {"main": program.main_text(device_entry(program.entry)), **program.texts}
    lines = [line for text in texts.values() for line in text.splitlines()]
    names = {}
    for word in ("define", "declare"):
        found = (x for x in lines if x.startswith(f"{word} ") and " internal " not in x)
        names[word] = {x.partition("@")[2].partition("(")[0] for x in found}
    own = {x for x in names["declare"] if not x.startswith("llvm.")}
    assert own <= names["define"]
    assert {x for x in names["declare"] if x.startswith("llvm.mem")} == set()
    code = [x for name in texts if name != "library" for x in texts[name].splitlines()]
    assert not [x for x in code if " alloca " in x or ("ptr %" in x and POINTER not in x)][:3]


def test_parts_of_it_become_ptx_and_assemble(both):
    program = both[1]._batch.memory.image.program
    texts = {"main": program.main_text(device_entry(program.entry)), **program.texts}
    for name in ("main", "library", program.kernels[0].symbol.removeprefix("step_")):
        text = ptx(texts[name])
        assert text.count(".visible .entry worlds(") == int(name == "main")
        assert "vprintf" not in text
        assert ".extern .global" not in text
        if assembler() is not None:
            assert assemble(text, "90").startswith(b"\x7fELF")


def test_few_worlds_share_a_warp():
    assert [worlds_abreast(n, 132) for n in (1, 8192, 20_000, 10**6)] == [4, 4, 8, 32]


def test_what_cannot_be(world, both):
    with pytest.raises(kt.ModelError, match="forces that are functions: all steps of a call are"):
        both[1].step(forces=lambda model, t, q, qd: 0 * qd)
    with pytest.raises(kt.ShapeError, match=rf"control of {N} worlds must be \({N}, 1\)"):
        both[1].step(control=np.zeros((2, 1)))
    with pytest.raises(kt.ShapeError, match="tau of 33 worlds must be finite"):
        both[1].step(tau=np.full(both[0].qd.shape, np.nan))
    with pytest.raises(kt.ShapeError, match="arrays must be one of cupy, torch, numpy, got 'jax'"):
        DeviceWorlds(world, 1, {}, on=Processor(), arrays="jax")
    with pytest.raises(kt.errors.DeviceError, match="device must be 'cpu', 'cuda' or 'cuda:1'"):
        gpu_of("tpu")


def test_without_cupy_the_error_says_what_to_install(world, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(kt.errors.MissingPackageError, match="kinetree\\[gpu\\]"):
        world.batch(2, device="cuda")
