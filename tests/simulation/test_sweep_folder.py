"""Sweeps in folders: nothing that was finished is lost or run again, whatever happened to it."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import kinetree as kt
from kinetree import Sweep, sweep
from kinetree.errors import SweepError, SweepWarning

MODEL = kt.samples.pendulum()


class Stop(BaseException):
    """Like an interrupt: not one of the exceptions that fail a run."""


GRID = {"k": range(20)}


COUNTED = {"ran": [], "stop": None}


@pytest.fixture
def function():
    """The function, whose digest does not change when it counts."""

    def square(model, k, rng):
        if COUNTED["stop"] == k:
            raise Stop
        COUNTED["ran"].append(k)
        return {"square": k * k, "noise": rng.normal()}

    COUNTED.update(ran=[], stop=None)
    return square


def test_a_sweep_that_was_stopped_goes_on_where_it_was(tmp_path, function):
    COUNTED["stop"] = 11
    with pytest.raises(Stop):
        sweep(MODEL, function, GRID, folder=tmp_path / "s", chunk=3, threads=1)
    assert COUNTED["ran"] == list(range(11))
    COUNTED.update(ran=[], stop=None)
    reported = []
    found = sweep(
        MODEL, function, GRID, folder=tmp_path / "s", chunk=7, threads=1,
        progress=lambda done, total: reported.append(done),
    )  # fmt: skip
    assert COUNTED["ran"] == list(range(9, 20))  # three chunks of three were finished
    assert reported[0] == 9
    assert found["square"].tolist() == [k * k for k in range(20)]
    assert np.array_equal(found["noise"], sweep(MODEL, function, GRID)["noise"])


def test_a_finished_sweep_is_not_run_again(tmp_path, function):
    first = sweep(MODEL, function, GRID, folder=tmp_path)
    COUNTED["ran"].clear()
    again = sweep(MODEL, function, GRID, folder=tmp_path)
    loaded = Sweep.load(tmp_path)
    assert COUNTED["ran"] == []
    for found in (again, loaded):
        assert np.array_equal(found["noise"], first["noise"])
        assert np.array_equal(found.values["k"], first.values["k"])
        assert np.array_equal(found.seeds, first.seeds)
        assert found.shape == first.shape


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "removed", "other"])
def test_a_damaged_chunk_is_computed_again_and_no_other(tmp_path, function, damage):
    sweep(MODEL, function, GRID, folder=tmp_path, chunk=5)
    file = tmp_path / "chunk-000002.npz"
    data = bytearray(file.read_bytes())
    if damage == "truncated":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        data[data.index(b"\x93NUMPY") + 130] ^= 0xFF
        file.write_bytes(data)
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "removed":
        file.unlink()
    else:
        np.savez(file, study=np.array("of another sweep"))
    COUNTED["ran"].clear()
    if damage == "removed":
        found = sweep(MODEL, function, GRID, folder=tmp_path, threads=1)
    else:
        with pytest.warns(SweepWarning, match=r"chunk-000002\.npz is damaged .* computed again"):
            found = sweep(MODEL, function, GRID, folder=tmp_path, threads=1)
    assert COUNTED["ran"] == [10, 11, 12, 13, 14]
    assert found["square"].tolist() == [k * k for k in range(20)]


def test_failures_are_kept_with_their_reasons(tmp_path):
    def some_fail(model, k):
        if k % 3 == 0:
            raise ArithmeticError(f"{k} is divisible by three")
        return np.zeros(k)

    with pytest.warns(SweepWarning, match="3 of 7"):
        sweep(MODEL, some_fail, {"k": range(7)}, folder=tmp_path, chunk=2)
    loaded = Sweep.load(tmp_path)
    assert loaded.failed[3] == "ArithmeticError: 3 is divisible by three"
    assert sorted(loaded.failed) == [0, 3, 6]
    assert [None if r is None else len(r) for r in loaded["result"]] == [
        None, 1, 2, None, 4, 5, None,
    ]  # fmt: skip


def test_the_manifest_says_what_it_is_about(tmp_path, function):
    sweep(MODEL, function, GRID, folder=tmp_path, seed=5, chunk=6)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["format"] == "kinetree sweep 1"
    assert manifest["model"] == MODEL.name
    assert (manifest["count"], manifest["chunk"], manifest["chunks"]) == (20, 6, 4)
    assert manifest["seed"] == 5
    assert len(manifest["study"]) == 64
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"manifest.json", "runs.npz", *(f"chunk-{k:06d}.npz" for k in range(4))}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"model": kt.samples.double_pendulum()}, "its model differ"),
        ({"grid": {"k": range(21)}}, "its values differ"),
        ({"seed": 1}, "its seed differ"),
        ({"run": lambda model, k: k}, "its function or options differ"),
    ],
)
def test_another_sweep_is_not_mixed_in(tmp_path, function, change, what):
    sweep(MODEL, function, GRID, folder=tmp_path)
    changed = {"model": MODEL, "run": function, "grid": GRID, **change}
    with pytest.raises(SweepError, match=f"holds another sweep, .* by square: {what}"):
        sweep(
            changed.pop("model"),
            changed.pop("run"),
            changed.pop("grid"),
            folder=tmp_path,
            **changed,
        )


def test_folders_of_other_things_are_left_alone(tmp_path, function):
    (tmp_path / "file").write_text("something else")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "manifest.json").write_text('{"format": "something else"}')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{")
    with pytest.raises(SweepError, match="is not a folder of a sweep"):
        sweep(MODEL, function, GRID, folder=tmp_path / "file")
    with pytest.raises(
        SweepError, match="has format 'something else', expected 'kinetree sweep 1'"
    ):
        sweep(MODEL, function, GRID, folder=tmp_path / "odd")
    with pytest.raises(SweepError, match="cannot be read"):
        sweep(MODEL, function, GRID, folder=tmp_path / "broken")


def test_an_unfinished_sweep_cannot_be_loaded(tmp_path, function):
    COUNTED["stop"] = 15
    with pytest.raises(Stop):
        sweep(MODEL, function, GRID, folder=tmp_path, chunk=5, threads=1)
    with pytest.raises(SweepError, match="computes what is missing or damaged"):
        Sweep.load(tmp_path)


def test_names_of_functions_and_texts_come_back_as_text(tmp_path):
    sweep(MODEL, lambda model, kind: len(kind), {"kind": ["rk4", "euler"]}, folder=tmp_path)
    loaded = Sweep.load(tmp_path)
    assert loaded.values["kind"].tolist() == ["rk4", "euler"]
    assert loaded.to_xarray()["result"].sel(kind="euler") == 5


KILLED = """
    import os, sys
    import kinetree as kt

    def square(model, k):
        if k == int(sys.argv[2]):
            os.kill(os.getpid(), 9)
        print(k, flush=True)
        return k * k

    found = kt.sweep(kt.samples.pendulum(), square, {"k": range(20)}, folder=sys.argv[1],
                     chunk=4, threads=1)
    print("sum", int(found["result"].sum()))
"""


def test_a_process_that_was_killed_loses_nothing(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(KILLED))

    def run(stop_at):
        command = [sys.executable, script, tmp_path / "s", str(stop_at)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600)

    first = run(14)
    assert first.returncode == -9
    assert first.stdout.split() == [str(k) for k in range(14)]
    second = run(-1)
    assert second.returncode == 0, second.stderr
    assert second.stdout.split() == [*(str(k) for k in range(12, 20)), "sum", "2470"]


def test_results_are_read_part_by_part(tmp_path, function):
    found = sweep(MODEL, function, GRID, folder=tmp_path / "s", chunk=6, threads=1)
    parts = list(found.batches("square"))
    assert [len(runs) for runs, _ in parts] == [6, 6, 6, 2]
    assert all(set(part) == {"square"} for _, part in parts)
    assert np.array_equal(np.concatenate([p["square"] for _, p in parts]), found["square"])
    loaded = list(Sweep.load(tmp_path / "s").batches())
    assert set(loaded[0][1]) == {"square", "noise"}
    with pytest.raises(kt.UnknownNameError, match="did you mean 'square'"):
        next(found.batches("sqare"))
