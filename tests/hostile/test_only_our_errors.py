"""Wrong arguments and broken files end in errors of kinetree, whatever they are.

``make fuzz`` makes every wrong call of every public function, and thousands of broken files; here
are some, of a seed that is drawn.
"""

import contextlib
import inspect
import os
import random
import warnings

import numpy as np
import pytest
from hostile.broken_files import archive, array_file, hurt_archive, hurt_json, members
from hypothesis import settings
from support.wrong_arguments import is_foreign, methods, public, walk, walk_methods

import kinetree as kt
from kinetree.arguments import fits, guard, missing_guards
from kinetree.errors import ArgumentError, KinetreeError, LoadError

THOROUGH = settings.default.max_examples > 1000
CALLS, METHODS, FILES = (None, None, 5000) if THOROUGH else (400, 40, 300)


def test_wrong_arguments_of_public_functions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seed = random.SystemRandom().randrange(2**32)
    outcomes = list(walk(sample=CALLS, rng=random.Random(seed)))
    foreign = {label: repr(result) for label, result in outcomes if is_foreign(result)}
    assert not foreign, (seed, foreign)
    refused = sum(result != "fine" for _, result in outcomes)
    assert refused > len(outcomes) / 2
    assert len(public()) > 500


def test_an_object_of_every_public_class_is_made():
    """Not only of those that the seed of the next test draws."""
    kinds = {name.rpartition(".")[0]: name for name in methods()}
    for name in kinds.values():
        assert callable(methods()[name]())
    assert len(kinds) > 120


def test_wrong_arguments_of_public_methods(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seed = random.SystemRandom().randrange(2**32)
    outcomes = list(walk_methods(sample=METHODS, rng=random.Random(seed)))
    foreign = {label: repr(result) for label, result in outcomes if is_foreign(result)}
    assert not foreign, (seed, foreign)
    assert len(methods()) > 800


def public_modules():
    """Modules that ``kt`` has, and those inside them that list their names."""
    found = [
        module for module in (getattr(kt, name) for name in dir(kt)) if inspect.ismodule(module)
    ]
    for module in found:
        inside = (getattr(module, name) for name in vars(module).get("__all__", ()))
        found += [each for each in inside if inspect.ismodule(each) and each not in found]
    return [module for module in found if module not in (kt.errors, kt.algorithms, kt.textbook)]


def test_everything_public_is_guarded():
    things = dict(public())
    for module in public_modules():
        things |= {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
    without = {
        name: missing_guards(thing) for name, thing in things.items() if missing_guards(thing)
    }
    assert not without, "add guard_module(__name__) as the last line of their modules"
    assert len(things) > 700


def test_a_function_without_a_guard_is_found():
    class Thing:
        """A class that nobody guarded."""

        def method(self):
            """A method."""

    Thing.__module__ = "kinetree.things"
    assert missing_guards(Thing) == [f"{Thing.__qualname__}.method"]
    assert missing_guards(public_modules) == ["public_modules"]
    guard(Thing)
    assert missing_guards(Thing) == []


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A world in motion, with contacts that it remembers."""
    world = kt.World("stack", friction=0.5)
    world.add_ground()
    world.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, at=[(0, 0, 0.05), (0, 0, 0.15)])
    world.add("double_pendulum", name="arm", at=(1, 0, 3))
    world.step(30)
    path = world.save(tmp_path_factory.mktemp("world") / "world.npz")
    return path.read_bytes(), str(np.load(path)["about"])


def broken(saved, rng):
    """A file with bytes, arrays or settings that are wrong."""
    data, about = saved
    if rng.random() < 0.5:
        return hurt_archive(data, rng)
    return archive(members(data) | {"about.npy": array_file(hurt_json(about, rng))})


def test_worlds_from_broken_files(saved, tmp_path):
    seed = random.SystemRandom().randrange(2**32)
    rng, path, rejected = random.Random(seed), tmp_path / "world.npz", 0
    for k in range(FILES):
        path.write_bytes(broken(saved, rng))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                world = kt.World.load(path)
            except LoadError as error:
                rejected += str(path) in str(error)
                continue
            assert np.isfinite(world.time), (seed, k)
            if k % 10 == 0:
                with contextlib.suppress(KinetreeError):
                    world.step(2)
    assert FILES > rejected > FILES / 3


def test_a_world_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such file") as caught:
        kt.World.load(tmp_path / "none.npz")
    assert isinstance(caught.value, LoadError)
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    with pytest.raises(LoadError, match="not a regular file"):
        kt.World.load(pipe)


def test_a_time_that_is_not_a_number(saved, tmp_path):
    parts = members(saved[0]) | {"time.npy": array_file(np.array(np.nan))}
    (tmp_path / "world.npz").write_bytes(archive(parts))
    with pytest.raises(LoadError, match="its time is nan"):
        kt.World.load(tmp_path / "world.npz")


# --- the door ---------------------------------------------------------------------------------


def test_errors_name_the_argument_and_are_what_python_raises():
    with pytest.raises(TypeError, match=r"sphere: .*; radius must be float, got 'text'") as caught:
        kt.shapes.sphere("text", mass=1.0)
    assert isinstance(caught.value, ArgumentError)
    assert isinstance(caught.value.__cause__, TypeError)
    with pytest.raises(ArgumentError, match="it is called as sphere"):
        kt.shapes.sphere()


def test_exceptions_of_users_pass():
    class Mine(Exception):
        """An exception of a controller."""

    def controller(t, q, qd):
        raise Mine("of the user")

    with pytest.raises(Mine, match=r"^of the user$") as caught:
        kt.simulate(kt.samples.pendulum(), [0.1], duration=0.1, controller=controller)
    assert type(caught.value) is Mine


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, float, True), (np.float32(1), float, True), (True, float, False),
        (float("nan"), float, False), ("x", float, False), (1.5, int, False),
        (np.int64(3), int, True), (None, float | None, True), ("x", float | None, False),
        ([1], list[int], True), ("x", list, False), (len, type(len) | None, True),
    ],
)  # fmt: skip
def test_what_fits_an_annotation(value, hint, expected):
    assert fits(value, hint) is expected
