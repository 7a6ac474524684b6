"""No broken motion, sweep or mesh brings anything down: an error of ours, soon, in little memory.

``make fuzz`` tries thousands; here are a few of each.
"""

import contextlib
import json
import random
import warnings

import numpy as np
import pytest
from hostile.broken_files import (
    MOST,
    SLOWEST,
    array_file,
    hurt_archive,
    hurt_json,
    hurt_mesh,
    members,
    mesh_seeds,
)
from hostile.broken_files import archive as packed
from hypothesis import given, settings
from hypothesis import strategies as st
from loaders.fuzzing import hurt
from support.effort import peak_memory, seconds

import kinetree as kt
from kinetree.errors import KinetreeError
from kinetree.integration.events import EventRecord
from kinetree.model.triangles import FORMATS, convex_hull, read_triangles
from kinetree.rendering.meshes import mesh_pieces
from kinetree.simulation.results.report import Report

THOROUGH = settings.default.max_examples > 1000
MODEL = kt.samples.pendulum()


def examples(few, many):
    return settings(max_examples=many if THOROUGH else few, database=None)


@pytest.fixture(scope="module")
def motion():
    """A motion with an event and a report, which need not be simulated."""
    t = np.linspace(0, 1, 6)
    q, zero = np.sin(t)[:, None], np.zeros(6)
    event = EventRecord(0.5, "passes", q[2], q[2], q[2], q[2])
    report = Report("rk4", 5, 0, 0.2, 1e-9, 0.0, None, 0.0, 1.0, 0.1)
    return kt.Trajectory(MODEL, t, q, q, 0 * q, zero, zero, zero, events=(event,), report=report)


def use(path):
    """Load a motion and look at it; only errors of ours may come."""
    with warnings.catch_warnings(), contextlib.suppress(KinetreeError):
        warnings.simplefilter("ignore")
        found = kt.Trajectory.load(path)
        repr(found), str(found.report), [event.name for event in found.events]
        assert found.q.shape[-1] == found.model.nq
        assert found.qd.shape == (*found.q.shape[:-1], found.model.nv)
        found[found.model.joint_names[0]] if found.model.nv else None


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".nc"])
def test_motions(motion, tmp_path, suffix):
    path = motion.save(tmp_path / f"motion{suffix}")
    sound, before = path.read_bytes(), peak_memory()
    use(path)

    @examples(60 if suffix == ".npz" else 15, 2000)
    @given(st.integers(0, 2**63))
    def check(seed):
        rng = random.Random(seed)
        path.write_bytes((hurt_archive if suffix == ".npz" else hurt)(sound, rng))
        assert seconds(lambda: use(path)) < SLOWEST

    check()
    assert peak_memory() - before < MOST


def test_what_motions_say_about_themselves(motion, tmp_path):
    path = motion.save(tmp_path / "motion.npz")
    parts = members(path.read_bytes())
    about = str(np.load(path)["about"])

    @examples(80, 4000)
    @given(st.integers(0, 2**63))
    def check(seed):
        text = hurt_json(about, random.Random(seed))
        path.write_bytes(packed(parts | {"about.npy": array_file(text)}))
        assert seconds(lambda: use(path)) < SLOWEST

    check()


def test_sweep_folders(tmp_path):
    folder = tmp_path / "sweep"
    run = lambda model, k: {"square": np.array([k, k * k]), "text": "x" * int(k)}  # noqa: E731
    kt.sweep(MODEL, run, {"k": np.arange(6.0)}, folder=folder, chunk=2, threads=1)
    sound = {path: path.read_bytes() for path in sorted(folder.iterdir())}
    assert kt.Sweep.load(folder)["square"].shape == (6, 2)

    def look():
        with contextlib.suppress(KinetreeError):
            found = kt.Sweep.load(folder)
            repr(found), found.ok
            assert len(found) == len(found.seeds)
            for name in found.names:
                found[name]
            [found.run(k) for k in range(len(found))]

    @examples(60, 2000)
    @given(st.integers(0, 2**63))
    def check(seed):
        rng = random.Random(seed)
        path = rng.choice(list(sound))
        if path.suffix == ".json":
            path.write_text(hurt_json(sound[path].decode(), rng), "utf-8", "replace")
        else:
            path.write_bytes(hurt_archive(sound[path], rng))
        try:
            assert seconds(look) < SLOWEST
        finally:
            path.write_bytes(sound[path])

    check()


@pytest.mark.parametrize("kind", sorted(mesh_seeds()))
def test_meshes(kind, tmp_path):
    path = tmp_path / f"mesh{kind}"
    before = peak_memory()
    for seed in mesh_seeds()[kind]:
        path.write_bytes(seed)
        assert sum(len(piece.surface.faces) for piece in mesh_pieces(path)) >= 12

    def look():
        with contextlib.suppress(KinetreeError):
            mesh_pieces(path)
        if kind in FORMATS:
            with contextlib.suppress(KinetreeError):
                convex_hull(read_triangles(path), path)

    @examples(40, 2000)
    @given(st.integers(0, 2**63))
    def check(seed):
        rng = random.Random(seed)
        path.write_bytes(hurt_mesh(kind, rng.choice(mesh_seeds()[kind]), rng))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            assert seconds(look) < SLOWEST

    check()
    assert peak_memory() - before < MOST


def test_the_seeds_are_what_they_should_be(motion, tmp_path):
    found = kt.Trajectory.load(motion.save(tmp_path / "motion.npz"))
    assert found.report == motion.report
    assert (
        json.loads(str(np.load(tmp_path / "motion.npz")["about"]))["events"][0]["name"] == "passes"
    )
