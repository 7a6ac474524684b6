"""Files survive whoever writes them: killed at any moment, on a full disk, in the way of others."""

import ast
import errno
import itertools
import os
import pickle
import random
import re
import shutil
import stat
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.killed_writers import (
    killed,
    on_a_full_disk,
    outcome,
    part_of_a_dead_process,
    parts,
)
from support.small_disks import can_mount, fill, small_disk
from typer.testing import CliRunner

import kinetree as kt
from kinetree import files, viewer
from kinetree.cli.app import app
from kinetree.cli.view import draw
from kinetree.codegen.cache import Store
from kinetree.errors import ModelWarning, WriteError
from kinetree.simulation.sweep.result import Folder
from kinetree.simulation.sweep.work import Chunk
from kinetree.textbook.record import Recording
from kinetree.viewer import painting

SOURCE = Path(kt.__file__).parent
PENDULUM = kt.samples.pendulum()  # few curves, where drawing them takes long
TRIALS = int(os.environ.get("KINETREE_KILLED", "24"))
"""Processes that are killed, over all writers: two of each; hundreds in ``make fuzz``."""


@cache
def model(k):
    return kt.samples.panda().replace(name=f"panda{k}")


@cache
def motion(k, count=400, of=None):
    """A motion that nobody simulated; another for each ``k``."""
    t, moving = np.linspace(0, 1, count), of or model(0)
    q = np.sin(t[:, None] * (1 + k) + np.arange(moving.nq))
    zero = np.zeros(count)
    return kt.Trajectory(moving, t, q, q, 0 * q, zero, zero, zero)


@cache
def world(k):
    """A world of balls, higher for each ``k``."""
    made = kt.World("balls")
    made.add(kt.geometry.Sphere(0.1), mass=1.0, at=[(0.5 * i, 0, 1 + k) for i in range(12)])
    return made


def write_picture(k, path):
    image = np.random.default_rng(k).integers(0, 255, (120, 160, 3), dtype=np.uint8)
    painting.write_picture(path, image)


def write_film(k, path):
    noise = np.random.default_rng(k).integers(0, 255, (3, 64, 64, 3), dtype=np.uint8)
    painting.write_film(path, noise, 10)


def write_recording(k, path):
    recording = Recording()
    x = recording.array("x", (300,))
    recording.write(path, x * (k + 2.0))


def write_entry(k, path):
    Store(str(path), 2**30).put("key", bytes([k]) * 200_000)


def write_sweep(k, path):
    Folder(path, "study", 1).keep(0, chunk(k))


@cache
def chunk(k):
    made = Chunk(np.arange(3), np.arange(3))
    for i in range(3):
        made.put(i, {"x": np.full(2000, float(k))})
    return made


def generate(k, path):
    """The command, whose listings are the same for every ``k``."""
    listing = ["generate", "pendulum", "-F", "mass_matrix", "--numpy", "--out", str(path)]
    result = CliRunner().invoke(app, listing)
    if result.exit_code:
        raise WriteError(result.output)


def save_model(k, path):
    kt.save(model(k), path)


def save_motion(k, path):
    motion(k, 20 if path.suffix == ".mcap" else 400).save(path)


WRITERS = {
    "world.npz": lambda k, path: world(k).save(path),
    "page.html": lambda k, path: viewer.save_html(model(0), path, zoom=1.0 + k),
    "picture.png": write_picture, "film.gif": write_film, "film.mp4": write_film,
    "motion.npz": save_motion, "motion.parquet": save_motion, "motion.nc": save_motion,
    "motion.csv": save_motion, "motion.mcap": save_motion,
    "robot.urdf": save_model, "robot.sdf": save_model, "robot.xml": save_model,
    "robot.toml": save_model, "robot.json": save_model, "recording.txt": write_recording,
    "exported": lambda k, path: kt.export_c(kt.samples.pendulum(), ["mass_matrix"], path),
    "listings": generate, "plot.png": lambda k, path: draw(motion(k, 20, PENDULUM), path),
    "cache": write_entry, "sweep": write_sweep,
}  # fmt: skip
"""What writes files, by the name of the file or folder; ``k`` makes the content another."""


def content(path):
    """Bytes of a file, or of the files of a folder by name."""
    if path.is_dir():
        return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    return {"": path.read_bytes()}


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """Both contents that each writer can leave, by name."""
    found, base = {}, tmp_path_factory.mktemp("versions")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        for name in WRITERS:
            for k in (0, 1):
                path = written(name, k, base / str(k))
                found[name, k] = content(path)
    return found


def written(name, k, folder):
    """The path of what a writer wrote in a folder."""
    path = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    if name == "sweep":
        path.mkdir(exist_ok=True)
    WRITERS[name](k, path)
    return path


def is_whole(path, versions):
    """Whether every file has one of the contents that its writer leaves."""
    both = versions[path.name, 0], versions[path.name, 1]
    now = {name: x for name, x in content(path).items() if ".kinetree-" not in name}
    return now.keys() == both[0].keys() and all(
        x in (both[0][n], both[1][n]) for n, x in now.items()
    )


@pytest.mark.filterwarnings("ignore::kinetree.ModelWarning")
def test_writers_that_are_killed_leave_what_was_there(tmp_path, versions):
    seed = random.SystemRandom().randrange(2**32)
    rng, interrupted = random.Random(seed), 0
    names = itertools.cycle(name for name in WRITERS if name != "plot.png")
    for k, name in enumerate(names):
        if (k >= TRIALS and interrupted) or k >= 10 * TRIALS:
            break
        path = written(name, 0, tmp_path)
        numbers = itertools.cycle((1, 0))
        killed(lambda n=name, of=numbers: written(n, next(of), tmp_path), rng.uniform(0.002, 0.06))
        assert is_whole(path, versions), (name, seed)
        interrupted += bool(parts(tmp_path))
        written(name, 1, tmp_path)  # the next one cleans up
        assert content(path) == versions[name, 1], (name, seed)
        assert parts(tmp_path) == [], (name, seed)
    assert interrupted > 0, "none was killed in the middle: write more, or wait longer"


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.filterwarnings("ignore::kinetree.ModelWarning")
def test_a_full_disk_leaves_what_was_there(tmp_path, versions, name):
    path = written(name, 0, tmp_path)
    said = on_a_full_disk(lambda: written(name, 1, tmp_path), 256)
    if name != "cache":  # which warns, and goes on without
        assert said == "WriteError True"
    assert content(path) == versions[name, 0]
    assert parts(tmp_path) == []


def sizes(name, versions):
    """Bytes that a writer writes."""
    return sum(map(len, versions[name, 1].values()))


@pytest.mark.filterwarnings("ignore::kinetree.ModelWarning")
def check_a_disk_that_is_really_full(tmp_path, versions):
    """Nothing is lost when there is no room at all, or for a part of it; then there is again."""
    with small_disk(tmp_path / "disk") as disk:
        for name in WRITERS:
            path, share = written(name, 0, disk), random.choice((0.0, 0.4, 0.8))
            filler = fill(disk, int(share * sizes(name, versions)))
            said = outcome(lambda n=name: written(n, 1, disk))
            expected = "CacheWarning False" if name == "cache" else "WriteError True"
            assert said == expected, (name, share)
            assert is_whole(path, versions), (name, share)
            assert parts(disk) == [], (name, share)
            filler.unlink()
            written(name, 1, disk)
            assert content(path) == versions[name, 1], (name, share)
            shutil.rmtree(path) if path.is_dir() else path.unlink()


if can_mount():  # elsewhere the limit on the size of files, above, must do
    test_a_disk_that_is_really_full = check_a_disk_that_is_really_full


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_every_step_may_fail(tmp_path, monkeypatch, failing, number):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(WriteError, match=os.strerror(number)) as caught:
        files.write_bytes(path, b"new")
    assert caught.value.errno == number
    assert "'" + str(path) + "'" in str(caught.value)
    assert "the file that was there is unchanged" in str(caught.value)
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_errors_are_those_that_python_raises_too(tmp_path):
    with pytest.raises(FileNotFoundError, match="check the folder") as caught:
        files.write_text(tmp_path / "nowhere" / "file", "x")
    again = pickle.loads(pickle.dumps(caught.value))
    for error in (caught.value, again):
        assert isinstance(error, WriteError)
        assert error.errno == errno.ENOENT
        assert str(error) == str(caught.value)
    with pytest.raises(IsADirectoryError, match="there is a folder of this name"):
        files.write_text(tmp_path, "x")
    with pytest.raises(WriteError):
        files.write_text(tmp_path / "file" / "below", "x")


def test_permissions_links_and_names_stay(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    files.write_text(path, "old")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    link.symlink_to(path)
    files.write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    longest = tmp_path / ("x" * 251 + ".npz")
    files.write_text(longest, "fits")
    assert longest.read_text() == "fits"


def test_devices_and_pipes_are_written_to_and_stay(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_text(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    with pytest.raises(WriteError, match="No such device"):  # nobody reads
        files.write_text(pipe, "lost")
    files.write_text("/dev/null", "x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_parts_of_living_processes_and_of_others_stay(tmp_path):
    dead = tmp_path / part_of_a_dead_process()
    living = tmp_path / dead.name.replace(dead.name.split("-")[2], str(os.getppid()))
    elsewhere = tmp_path / dead.name.replace(dead.name.split("-")[1], "0123abcd")
    strange = tmp_path / ".kinetree-notes.part"
    for path in (dead, living, elsewhere, strange):
        path.write_text("half")
    files.write_text(tmp_path / "file", "x")
    assert {*os.listdir(tmp_path)} == {living.name, elsewhere.name, strange.name, "file"}
    os.utime(elsewhere, (0, 0))  # of another machine, long ago
    files.write_text(tmp_path / "file", "x")
    assert not elsewhere.exists()


def test_a_file_that_is_being_made_is_nobody_elses(tmp_path):
    with files.replacing(tmp_path / "file") as first:
        with files.replacing(tmp_path / "file") as second:
            second.write_text("second")
        first.write_text("first")
        assert (tmp_path / "file").read_text() == "second"
    assert (tmp_path / "file").read_text() == "first"
    with pytest.raises(ZeroDivisionError), files.replacing(tmp_path / "file"):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["file"]


# --- no other writer --------------------------------------------------------------------------

OPENS = ("open", "fdopen")
WRITES = (
    "write_text", "write_bytes", "savez", "savez_compressed", "savetxt", "savefig", "tofile",
    "to_netcdf", "write_table", "imwrite", "get_writer", "copyfile", "copy2",
    "to_csv", "to_parquet", "symlink",
)  # fmt: skip
TO_PARTS = {
    ("simulation/results/storage.py", "open"), ("simulation/results/storage.py", "write_table"),
    ("simulation/results/storage.py", "to_netcdf"), ("simulation/results/bags.py", "open"),
    ("simulation/results/storage.py", "savez_compressed"), ("viewer/painting.py", "imwrite"),
    ("viewer/painting.py", "get_writer"), ("cli/view.py", "savefig"), ("worlds/files.py", "savez"),
    ("simulation/sweep/result.py", "savez"), ("simulation/results/plotting.py", "savefig"),
    ("loaders/usd/stage.py", "write_bytes"), ("codegen/device/assembly.py", "write_text"),
}  # fmt: skip
"""Calls that write to a file of ``files.replacing`` or ``files.write_with``, to memory, or to a
temporary folder."""


def _writers(path):
    """Calls in a source file that write a file by themselves."""
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in (*WRITES, *OPENS)):  # most files are not parsed
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        of = getattr(node.func, "value", None)
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
        if getattr(of, "id", None) == "files" or (of is None and name in WRITES):
            continue  # ours
        if name in WRITES:
            yield name
        elif name in OPENS and (of is None or getattr(of, "id", None) in ("os", "io")):
            texts = [x.value for x in ast.walk(node) if isinstance(x, ast.Constant)]
            names = {x.attr for x in ast.walk(node) if isinstance(x, ast.Attribute)}
            modes = [x for x in texts if isinstance(x, str) and re.fullmatch(r"[rwaxbt+]+", x)]
            if any(set(x) & set("wax+") for x in modes) or names & {
                "O_WRONLY",
                "O_RDWR",
                "O_CREAT",
            }:
                yield name


def test_no_other_code_writes_files():
    found = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in SOURCE.rglob("*.py")
        if path != SOURCE / "files.py"
        for name in _writers(path)
    }
    assert found == TO_PARTS
    assert set(_writers(SOURCE / "files.py")) >= {"open", "copyfile"}  # they are seen


def test_a_folder_of_many_files_is_not_searched_at_every_write(tmp_path, monkeypatch):
    searched = []
    monkeypatch.setattr(files, "remove_parts", searched.append)
    for k in range(300):
        files.write_bytes(tmp_path / f"{k}.txt", b"x", durable=False)
    assert 250 < len(searched) < 260
