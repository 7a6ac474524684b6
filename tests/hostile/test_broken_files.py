"""Whatever is wrong with a file, every reader says so, soon, with an error of kinetree.

``make fuzz`` tries thousands of each; here are some, of a seed that is drawn.
"""

import random
import signal
import warnings
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
from hostile.readers import (
    broken,
    folder_for,
    hurt_elements,
    poisons,
    readers,
    traps,
    unsound,
)
from hypothesis import settings

import kinetree as kt
from kinetree.errors import KinetreeError, LoadError
from kinetree.files import read_bounded
from kinetree.textbook.record import Recording

NAMES = (
    "urdf", "sdf", "mjcf", "toml", "dh", "json", "srdf", "doctor", "scene, sdf", "scene, mjcf",
    "world", "motion, .npz", "motion, .parquet", "motion, .nc",
    "motion, .csv", "sweep", "recording",
)  # fmt: skip
THOROUGH = settings.default.max_examples > 1000  # pyright: ignore[reportOptionalMemberAccess]
COUNT = 4000 if THOROUGH else 100
COSTLY = {"doctor": 3}  # which looks at a robot in every way that it knows
LONGEST = 5  # [s]
readers = cache(readers)
every_reader = pytest.mark.parametrize("name", NAMES)


class Hangs(BaseException):
    """A reader that does not end."""


@contextmanager
def in_time():
    """Let what takes too long end in ``Hangs``."""

    def alarm(*_):
        raise Hangs

    before = signal.signal(signal.SIGALRM, alarm)
    signal.alarm(LONGEST * (12 if THOROUGH else 4))  # of the clock, beside other work
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(reader, path):
    """None for an error of ours, otherwise what was read; other errors pass."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), in_time():
        warnings.simplefilter("ignore")
        try:
            return reader.read(path)
        except KinetreeError:
            return None


@every_reader
def test_broken_files(name, tmp_path):
    seed, reader = random.SystemRandom().randrange(2**32), readers()[name]
    folder_for(name, tmp_path)
    path, read, count = tmp_path / f"file{reader.suffix}", 0, COUNT // COSTLY.get(name, 1)
    for k in range(count):
        path.write_bytes(broken(reader, random.Random(f"{seed} {k}")))
        try:
            found = outcome(reader, path)
        except BaseException as error:
            raise AssertionError(f"{name}, seed {seed}, file {k}: {error!r}") from error
        assert not unsound(found), (seed, k, unsound(found))
        read += found is not None
    assert read < count


@every_reader
def test_files_that_are_traps(name, tmp_path):
    """Entities, nesting, encodings, numbers of ten thousand digits."""
    reader = readers()[name]
    folder_for(name, tmp_path)
    for label, data in poisons(reader).items():
        path = tmp_path / f"file{reader.suffix}"
        path.write_bytes(data)
        try:
            found = outcome(reader, path)
        except BaseException as error:
            raise AssertionError(f"{label}: {error!r}") from error
        assert not unsound(found), label
        assert found is None or label not in ("laughs", "external", "deep elements", "many")


@every_reader
def test_things_that_are_not_files(name, tmp_path):
    reader = readers()[name]
    folder_for(name, tmp_path)
    for label, path in traps(tmp_path, reader.suffix).items():
        try:
            found = outcome(reader, path)
        except BaseException as error:
            raise AssertionError(f"{label}: {error!r}") from error
        assert found is None, label


def test_every_reader_reads_its_seeds(tmp_path):
    assert set(readers()) == set(NAMES)
    for name, reader in readers().items():
        folder_for(name, tmp_path)
        for seed in reader.seeds:
            path = tmp_path / f"file{reader.suffix}"
            path.write_bytes(seed)
            assert name == "doctor" or outcome(reader, path) is not None, name


def test_elements_are_broken_in_all_ways():
    seed = readers()["sdf"].seeds[0]
    found = {hurt_elements(seed, random.Random(k)) for k in range(50)}
    assert len(found) > 40


# --- what these walks have found ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gravity": [0, 0, {}]}, r"gravity must hold numbers, got \[0, 0, {}\]"),
        ({"gravity": [0, 0, "x"]}, "gravity must hold numbers"),
        ({"name": float("nan")}, "the name of a model must be a text, got nan"),
        ({"base_name": ["a"]}, "."),
    ],
)
def test_objects_in_place_of_numbers_are_no_formulas(change, message):
    with pytest.raises(kt.ModelError, match=message):
        kt.Model.from_dict({**kt.samples.pendulum().to_dict(), **change})


def test_placements_and_inertias_of_objects():
    for path in (("placement", "r"), ("inertia", "first_moment")):
        data = kt.samples.pendulum().to_dict()
        data["bodies"][0][path[0]][path[1]] = [0, {}, 0]
        with pytest.raises(kt.ModelError, match=f"{path[1]} must hold numbers"):
            kt.Model.from_dict(data)


def test_times_that_are_no_numbers(tmp_path):
    t, q, zero = np.array([0, 1, np.nan]), np.zeros((3, 1)), np.zeros(3)
    motion = kt.Trajectory(kt.samples.pendulum(), t, q, q, q, zero, zero, zero)
    with pytest.raises(LoadError, match="its time 2 is not a number"):
        kt.Trajectory.load(motion.save(tmp_path / "motion.npz"))


def test_recordings_in_another_encoding(tmp_path):
    (tmp_path / "a.txt").write_bytes("é".encode("latin-1"))
    with pytest.raises(LoadError, match="not text in UTF-8"):
        Recording.read(tmp_path / "a.txt")


def test_content_is_bounded(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"four")
    assert read_bounded(path, 4) == b"four"
    with pytest.raises(LoadError, match="the mesh has 4 bytes; at most 3 are read"):
        read_bounded(path, 3, "the mesh")
    with pytest.raises(LoadError, match=r"b: the mesh cannot be read: it is not a regular file"):
        read_bounded("/dev/zero", 3, "the mesh", called="b")
