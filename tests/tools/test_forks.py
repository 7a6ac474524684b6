"""Processes that share the tests: each test once, whatever becomes of its process."""

import os
import re
import subprocess
import sys
from pathlib import Path

from support import forks

ROOT = Path(__file__).resolve().parents[2]

MODULE = """
import os, warnings
import pytest

@pytest.fixture(scope="module")
def made(tmp_path_factory):
    print("made in", os.getpid())
    yield tmp_path_factory.mktemp("made")
    with open(os.environ["ENDED"], "a") as file:
        file.write("ended\\n")

@pytest.mark.parametrize("k", range(9))
def test_passes(k, made, tmp_path):
    assert made.parent == tmp_path.parent

def test_fails(made):
    print("words of", "the one that fails")
    assert made is None

def test_has_no_fixture(nobody):
    pass

def test_is_skipped():
    pytest.skip("not today")
"""

CRASHES = """
import os

def test_before():
    pass

def test_crashes():
    os._exit(7)

def test_after():
    pass
"""


def run(folder, *options, growth=forks.GROWTH):
    """Text of pytest for the modules in a folder, run by two processes."""
    (folder / "conftest.py").write_text(
        f"from support import forks\nforks.GROWTH = {growth}\n"
        + (ROOT / "tests" / "conftest.py").read_text("utf-8").split("\n", 1)[1]
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [f"-c={ROOT / 'pyproject.toml'}", f"--rootdir={ROOT}", "--forks=2", *options]
    found = os.environ | {"ENDED": str(folder / "ended")}
    result = subprocess.run([*command, folder], cwd=ROOT, env=found, capture_output=True, text=True)
    return f"{result.stdout}{result.stderr}status {result.returncode}"


def test_every_test_is_reported_once_and_a_crash_is_named(tmp_path):
    (tmp_path / "test_a.py").write_text(MODULE)
    (tmp_path / "test_b.py").write_text(CRASHES)
    text = run(tmp_path)
    assert "2 failed, 11 passed, 1 skipped, 1 error" in text, text
    assert text.endswith("status 1")
    assert text.count("words of the one that fails") == 1
    assert re.search(r"worker \d crashed while running .*::test_crashes: the process ended", text)
    assert "memory of 3 workers, one after the other: at most" in text
    ended = (tmp_path / "ended").read_text().splitlines()
    assert 1 <= len(ended) <= 2  # once for each worker that was in the module


def test_a_worker_that_has_grown_makes_room_for_another(tmp_path):
    (tmp_path / "test_a.py").write_text("\n".join(f"def test_{k}(): pass" for k in range(12)))
    text = run(tmp_path, growth=-1.0)
    assert "12 passed" in text, text
    assert text.endswith("status 0")
    assert int(re.search(r"memory of (\d+) workers", text)[1]) >= 12


class Item:
    """As much of a collected test as is looked at."""

    def __init__(self, path):
        self.path = path


class Asks:
    """As much of a worker as is looked at."""

    module = None


def test_workers_stay_in_their_modules_and_then_help_others():
    tests = forks.Tests([Item("a")] * 70 + [Item("b")] * 6)
    first, second = Asks(), Asks()
    assert tests.next(first) == [0, 1, 2, 3]
    assert tests.next(second) == [70, 71, 72, 73]
    assert tests.next(second) == [74, 75]
    assert tests.next(second) == [4, 5, 6, 7]
    assert second.module == "a"
    found = [tests.next(first) for _ in range(80)]
    assert found[0] == [8, 9, 10, 11]
    assert [k for numbers in found for k in numbers] == list(range(8, 70))
    assert {len(numbers) for numbers in found[3:]} == {0, 1}  # the last ones, one by one
    tests.back([70, 71], [Item("a")] * 70 + [Item("b")] * 6)  # of a worker that ended
    assert [tests.next(second), tests.next(first)] == [[70], [71]]
