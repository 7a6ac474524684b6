"""One world on several threads: the same bits for any number of them, and never a nested one."""

import os
import signal
import threading
import time
import tracemalloc

import numpy as np
import pytest

import kinetree as kt
from kinetree import geometry as shapes
from kinetree.codegen.crew import can_help
from kinetree.codegen.procedures import record
from kinetree.codegen.runtime.threads import on_threads, threads
from kinetree.contact.engine.choosing import SharingChoice
from kinetree.contact.engine.sharing import LEAST, _copy

pytestmark = pytest.mark.skipif(not can_help(), reason="one thread is all there is")

NUMBERS = [2, 3, 5]


@pytest.fixture(autouse=True)
def _as_before():
    """Leave the number of threads as it was."""
    before = threads()
    yield
    kt.set_threads(before)


def towers(rng, count=20, high=4) -> kt.World:
    """Towers of boxes beside each other, which fall askew: an island each."""
    world = kt.World(timestep=4e-3)
    world.add_ground(friction=0.6)
    for k in range(count):
        for level in range(high):
            turn = kt.rotz(rng.uniform(-0.4, 0.4)) @ kt.rotx(rng.uniform(-0.05, 0.05))
            place = 0.5 * (k % 5), 0.5 * (k // 5), 0.062 + 0.118 * level
            world.add(
                shapes.Box(tuple(rng.uniform(0.09, 0.11, 3))), mass=1.0, name=f"box{k}_{level}",
                at=turn @ kt.xlt(np.add(place, [*rng.uniform(-0.01, 0.01, 2), 0.0])), friction=0.6,
            )  # fmt: skip
    return world


def heap(rng, count=80) -> kt.World:
    """Boxes and balls that fall onto each other: islands that come and go."""
    world = kt.World(timestep=4e-3)
    world.add_ground(friction=0.5)
    for k in range(count):
        place = 0.21 * (k % 6), 0.21 * (k // 6 % 6), 0.11 + 0.2 * (k // 36)
        turn = kt.rotx(rng.uniform(-3, 3)) @ kt.rotz(rng.uniform(-3, 3))
        at = turn @ kt.xlt(np.add(place, rng.uniform(-0.01, 0.01, 3)))
        shape = shapes.Sphere(0.05) if k % 4 == 0 else shapes.Box(tuple(rng.uniform(0.06, 0.11, 3)))
        world.add(shape, mass=rng.uniform(0.5, 2), name=f"part{k}", at=at, friction=0.5)
    return world


def robots(rng, count=8) -> kt.World:
    """Humanoids that fall beside each other."""
    world = kt.World(timestep=4e-3)
    world.add_ground(friction=0.8)
    model = kt.samples.humanoid()
    for k in range(count):
        at = 1.5 * (k % 4), 1.5 * (k // 4), rng.uniform(0.0, 0.05)
        world.add(model, name=f"robot{k}", at=kt.rotz(rng.uniform(-3, 3)) @ kt.xlt(at))
    return world


def chains(rng) -> kt.World:
    """Boxes on the ground, tied by ball joints: two chains of many, and many of two."""
    world = kt.World(timestep=4e-3)
    world.add_ground(friction=0.5)
    for chain, links in enumerate([10, 9, *[2] * 16]):
        for k in range(links):
            turn = kt.rotz(rng.uniform(-0.1, 0.1))
            at = 0.13 * k + 0.4 * (chain // 3) * (chain > 1), 0.3 * (chain % 3), 0.06
            at = at if chain > 1 else (at[0], -0.4 - 0.3 * chain, 0.06)
            box = shapes.Box((0.1, 0.1, 0.1))
            world.add(box, mass=1.0, name=f"box{chain}_{k}", at=turn @ kt.xlt(at), friction=0.5)
            if k:
                pair = f"box{chain}_{k - 1}", f"box{chain}_{k}"
                world.tie(f"tie{chain}_{k}", *pair, joint=kt.Spherical(), at=(0.065, 0, 0))
    return world


def always(world) -> kt.World:
    """A world that shares its steps whether or not that is quicker on this machine."""
    world._whole.steps.machine.choice = None
    return world


def motion(world, steps, number, each=True):
    """States of a world after its steps, and what it says of them."""
    kt.set_threads(number)
    start = world.state
    states = []
    for _ in range(steps if each else 1):
        world.step(1 if each else steps)
        states.append(np.concatenate([world.q, world.qd]))
    table, report = world.contacts(), world.report()
    world.set_state(start)
    return np.array(states), table.force, report


def shared(world) -> int:
    """How many problems of a world were shared."""
    return world._whole.steps.engine.s.sharing.job


@pytest.mark.parametrize("make", [towers, heap, robots, chains])
def test_motions_are_the_same_to_the_bit(make, rng):
    world = always(make(rng))
    kt.set_threads(1)
    world.step(40)  # until much touches
    world.report()
    world.set_state(world.state)  # as the others begin
    alone, force, report = motion(world, 25, 1)
    assert shared(world) == 0
    for number in NUMBERS:
        before = shared(world)
        states, forces, reported = motion(world, 25, number)
        assert shared(world) > before + 20
        np.testing.assert_array_equal(states, alone)
        np.testing.assert_array_equal(forces, force)
        assert reported == report


def test_many_steps_in_one_call(rng):
    world = heap(rng)
    again = always(world.with_model(world.model))
    alone, *_ = motion(world, 60, 1, each=False)  # lists grow on the way
    found, *_ = motion(again, 60, 3, each=False)
    assert shared(again) > 20
    np.testing.assert_array_equal(found, alone)


def test_simulations_of_worlds(rng):
    world = towers(rng, count=12)
    kt.set_threads(1)
    alone = kt.simulate(world, duration=0.1)
    kt.set_threads(3)
    found = kt.simulate(world, duration=0.1)
    np.testing.assert_array_equal(found.q, alone.q)


def test_batches_of_large_worlds(rng):
    world, found = towers(rng, count=10), {}
    factors = rng.uniform(0.5, 1.0, 10)
    for number in (1, 2, 5):
        kt.set_threads(number)
        worlds = world.batch(10, friction=factors)  # on several threads, none of which shares
        few = world.batch(2, friction=factors[:2])  # one after the other, with help
        worlds.step(8)
        few.step(8)
        found[number] = np.concatenate([worlds.q, few.q])
        np.testing.assert_array_equal(found[number], found[1])


def test_nothing_nests_in_threads_of_a_pool(rng):
    worlds = [always(towers(rng, count=15)) for _ in range(2)]
    kt.set_threads(1)
    for world in worlds:
        world.step(25)
    alone = [motion(world, 6, 1)[0] for world in worlds]
    kt.set_threads(2)
    found = [None, None]

    def step(k):
        found[k] = motion(worlds[k], 6, 2)[0]

    on_threads(step, 2)
    np.testing.assert_array_equal(found, alone)
    assert shared(worlds[0]) > 0
    assert shared(worlds[1]) == 0  # whose thread was one of the pool


def test_worlds_in_threads_of_the_user(rng):
    worlds = [always(towers(rng, count=10)) for _ in range(3)]
    alone = [motion(world, 6, 1)[0] for world in worlds]
    kt.set_threads(3)
    found = [None] * 3

    def step(k):
        found[k] = motion(worlds[k], 6, 3)[0]

    users = [threading.Thread(target=step, args=(k,)) for k in range(3)]
    for user in users:
        user.start()
    for user in users:
        user.join(60.0)
        assert not user.is_alive()
    np.testing.assert_array_equal(found, alone)


def test_small_worlds_share_nothing(rng):
    kt.set_threads(3)
    world = towers(rng, count=2)
    world.step(2)
    assert shared(world) == 0
    assert type(world._whole.steps.machine.at_once).__name__ == "builtin_function_or_method"


def test_few_contacts_are_not_shared(rng):
    kt.set_threads(3)
    world = kt.World(timestep=4e-3)
    world.add_ground()
    for k in range(30):  # of which hardly any touches
        at = kt.xlt([0.5 * k, 0, 0.05 if 4 * k < LEAST // 2 else 1.0])
        world.add(shapes.Box((0.1, 0.1, 0.1)), mass=1.0, name=f"box{k}", at=at)
    world.step(5)
    assert shared(world) == 0


def test_one_island_stays_where_it_is(rng):
    kt.set_threads(3)
    world = towers(rng, count=1, high=26)
    world.step(3)
    assert shared(world) == 0


@pytest.mark.filterwarnings("ignore:.*bodies inside each other")  # wherever it comes
def test_ctrl_c_is_heard_between_steps(rng):
    kt.set_threads(2)
    world = always(heap(rng, count=120))
    world.step(2)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    start = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        world.step(100_000)
    assert time.perf_counter() - start < 10.0
    timer.join()
    assert np.isfinite(world.q).all()
    at = world.time
    alone, *_ = motion(world, 5, 1)
    found, *_ = motion(world, 5, 3)
    np.testing.assert_array_equal(found, alone)
    assert world.time == at


def test_large_islands_with_loops_stay_with_one_thread(rng):
    kt.set_threads(2)
    world = always(chains(rng))
    world.step(20)
    sharing = world._whole.steps.engine.s.sharing
    islands = world._whole.steps.engine.problem.islands
    assert sharing.job > 10
    assert (sharing.size[:islands] < 0).sum() == 2


def test_steps_keep_no_memory(rng):
    kt.set_threads(3)
    world = always(towers(rng, count=15))
    world.step(40)
    for _ in range(20):
        world.step()
    tracemalloc.start()
    try:
        world.step()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(100):
            world.step()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert shared(world) > 50
    assert after - before < 2000  # bytes, in 100 steps


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of threads and forks
def test_steps_in_a_forked_process(rng):
    kt.set_threads(3)
    world = always(towers(rng, count=15))
    world.step(40)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            before = shared(world)
            world.step(10)
            os.write(write, np.append(world.q, shared(world) - before).tobytes())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    world.step(10)
    with os.fdopen(read, "rb") as pipe:
        found = np.frombuffer(pipe.read())
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(found[:-1], world.q)
    assert found[-1] >= 10


def test_steps_are_shared_as_long_as_that_is_quicker(rng):
    """What a machine chooses changes no bits; here by clocks that are made up."""
    kt.set_threads(2)
    world = towers(rng, count=15)
    world.step(40)
    machine = world._whole.steps.machine
    machine.choice = SharingChoice()
    note, chosen = machine.choice.note, []

    def slow(seconds):
        chosen.append(machine.engine.s.sharing.threads)
        note(2.0 if chosen[-1] == 2 else 1.0)

    machine.choice.note = slow
    start = world.state
    for _ in range(40):
        world.step()
    assert chosen[:9] == [2, 2, 1, 2, 2, 1, 2, 2, 1]
    assert chosen[9:].count(2) == 1
    assert not machine.choice.shared
    found = world.q
    alone = always(world)
    world.set_state(start)
    for _ in range(40):
        alone.step()
    np.testing.assert_array_equal(found, world.q)


@record
class Room:
    """Something that threads have copies of."""

    size: int
    lists: "float[:]"
    scratch: "float[2, 3]"


def test_threads_share_lists_but_no_scratch():
    room = Room(size=3, lists=np.zeros(5), scratch=np.ones((2, 3)))
    copy = _copy(room, size=4)
    assert copy.lists is room.lists
    assert copy.scratch is not room.scratch
    assert (room.size, copy.size) == (3, 4)
