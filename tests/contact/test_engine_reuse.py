"""A second simulation of a scene takes its steps in the engine of the first, and has its bits."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from support.only_motion import spoil

import kinetree as kt
from kinetree.contact import Scene, TimeStepping


def pile(count=12):
    """Balls and boxes that fall on each other: rows and lists grow beyond their first sizes."""
    world = kt.World(timestep=0.002)
    world.add_ground()
    for k in range(count):
        shape = kt.geometry.Sphere(0.05) if k % 3 else kt.geometry.Box((0.1, 0.08, 0.09))
        world.add(shape, mass=0.5, name=f"part{k}", at=(0.013 * (k % 4), 0, 0.1 + 0.11 * k))
    return world


def same(a, b):
    return all(np.array_equal(getattr(a, x), getattr(b, x)) for x in ("t", "q", "qd", "energy"))


def test_second_simulation_has_the_engine_and_the_bits_of_the_first():
    world = pile()
    first = kt.simulate(world, duration=0.4)
    other = kt.simulate(world, first.q[60], duration=0.1)
    again = kt.simulate(world, duration=0.4)
    assert first.acted.engine is other.acted.engine is again.acted.engine
    assert same(first, again)
    assert np.array_equal(first.contact.force, again.contact.force)
    assert first.contact.names == again.contact.names
    new = kt.simulate(pile(), duration=0.4)
    assert new.acted.engine is not first.acted.engine
    assert same(first, new)


def test_what_is_not_made_again_is_written_before_it_is_read():
    world = pile()
    first = kt.simulate(world, duration=0.4)
    spoil(first.acted.engine)
    again = kt.simulate(world, duration=0.4)
    assert again.acted.engine is first.acted.engine
    assert same(first, again)
    assert np.array_equal(first.contact.force, again.contact.force)


def test_simulations_within_a_simulation_have_their_own_engines():
    world = pile(3)
    seen = []

    def look_ahead(t, q, qd):
        if not seen:
            seen.append(kt.simulate(world, duration=0.02))
        return np.zeros(world.model.nv)

    outer = kt.simulate(world, duration=0.1, controller=look_ahead)
    assert seen[0].acted.engine is not outer.acted.engine
    plain = kt.simulate(world, duration=0.1)
    assert np.array_equal(plain.q, outer.q)
    assert np.array_equal(plain.q[:11], seen[0].q)


def test_other_settings_are_another_engine():
    world = pile(3)
    model, q = world.model, world.q
    scene = Scene(model)
    ends = [
        kt.simulate(model, q, duration=0.1, contact=TimeStepping(scene, tolerance=x)).acted.engine
        for x in (1e-12, 1e-6, 1e-12)
    ]
    assert ends[0] is ends[2]
    assert ends[0] is not ends[1]
    stiff = kt.simulate(
        model, q, duration=0.1, contact=TimeStepping(scene), limits=None, friction="smooth"
    )
    assert stiff.acted.engine is not ends[0]


def test_engines_go_with_their_scene():
    world = pile(3)
    scene = Scene(world.model)
    engine = kt.simulate(world.model, world.q, duration=0.01, contact=TimeStepping(scene))
    engine = weakref.ref(engine.acted.engine)
    gc.collect()
    assert engine() is not None
    del scene
    gc.collect()
    assert engine() is None


def test_threads_have_their_own_engines():
    world = pile(4)
    expected = kt.simulate(world, duration=0.1)
    starts = [(world.q, 0.1), (expected.q[20], 0.06)] * 4
    with ThreadPoolExecutor(4) as threads:
        ends = list(threads.map(lambda x: kt.simulate(world, x[0], duration=x[1]).q[-1], starts))
    alone = kt.simulate(world, expected.q[20], duration=0.06).q[-1]
    for k, end in enumerate(ends):
        assert np.array_equal(end, alone if k % 2 else expected.q[-1])
