"""``make mutants``: which changes it makes and which it does not; what is tested dies."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from mutants import __main__ as mutants
from mutants.__main__ import _drawn
from mutants.changes import edits, mutated

ROOT = Path(__file__).resolve().parents[2]


def changes(source):
    return [mutated(source, k)[1].split("  ->  ")[1] for k in range(len(edits(source)[1]))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a + b", ["a - b"]),
        ("x -= a", ["x += a"]),
        ("-a * b", ["-a / b", "a * b"]),
        ("A @ B", ["B @ A"]),
        ("A.T @ X[i]", ["X[i] @ A.T", "A @ X[i]", "A.T @ X[i - 1]"]),
        ("a + 0 * x", ["a + 0 / x", "a + 1 * x"]),
        ("x * -1.0", ["x * 1.0", "x * -2.0"]),
        ("x ** 2", ["x * 2", "x ** 3"]),
        ("0.5 * x", ["0.5 / x", "1.0 * x"]),
        ("x[2]", ["x[3]"]),
        ("A[i, 0]", ["A[0, i]", "A[i - 1, 0]", "A[i, 1]"]),
        ("x[:n]", ["x[n:]"]),
        ("x < y", ["x >= y"]),
        ("len(x) < 3", ["len(x) >= 3", "len(x) <= 3", "len(x) < 4"]),
        ("b[1] <= a[4]", ["b[1] > a[4]", "b[2] <= a[4]", "b[1] <= a[5]"]),
        ("size < 0.5", ["size >= 0.5", "size < 1.0"]),
        ("x.shape[0] < n", ["x.shape[0] >= n", "x.shape[0] <= n", "x.shape[1] < n"]),
        ("a and not b", ["a or not b", "a and b"]),
        ("y if ready else z", ["y if not ready else z"]),
        ("cross(a, b)", ["cross(b, a)"]),
        ("cross(a, a)", []),
        ("X.inverse()", ["X"]),
        ("X.inv_apply(v.linear)", ["X.apply(v.linear)", "X.inv_apply(v.angular)"]),
        ("np.sin(x) + abs(y)", ["np.sin(x) - abs(y)", "np.cos(x) + abs(y)", "np.sin(x) + y"]),
        ("max(a, b)", ["min(a, b)"]),
        ("np.where(c, a, b)", ["np.where(c, b, a)"]),
        ("f(x, both=True)", ["f(x, both=False)"]),
    ],
)
def test_what_is_changed(source, expected):
    assert changes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "def f(a: x[1] = b) -> y[2]:\n    '''a + b'''",
        "x: list[-1]",
        "raise Error(f'{a + b} of {3}', a - b)",
        "warnings.warn(text, stacklevel=2)",
        "word = f'{a - b}s' if many else ''",
        "if TYPE_CHECKING:\n    x = 1",
        "__all__ = ['a'] + b",
        "if a: pass  # pragma: no cover",
        "x = 1e-9",
        "close = 100 * eps",
        "close = 1e-12 * size",
        "x = gap + 1e-12 * size",
        "x = gap - 1e-9",
        "a @ b",
        "A @ b",
        "limit = 50",
        "np.zeros((3, 3))",
        "x, y = local('float', 2, 3)",
        "[None] * n",
        "zip(a, b, strict=True)",
        "@dataclass(frozen=True)\nclass A:\n    pass",
        "class A:\n    def __repr__(self):\n        return a + b",
    ],
)
def test_what_is_not_changed(source):
    assert changes(source) == []


def test_a_mutant_differs_in_one_place_and_keeps_its_lines():
    source = "def f(a, b):\n    c = a - b\n    return c * (a + b)\n"
    original = [ast.dump(node) for node in ast.walk(ast.parse(source))]
    tree, change = mutated(source, 0)
    assert change == "c = a - b  ->  c = a + b"
    assert edits(source)[1][0].lines == (2, 2)
    assert edits(source)[1][0].scope == "f"
    assert ast.unparse(tree) == source.replace("a - b", "a + b").strip()
    assert [ast.dump(node) for node in ast.walk(ast.parse(source))] == original


def test_what_is_explained_is_there_and_has_a_reason():
    text = (ROOT / "tests" / "mutants" / "equivalent.txt").read_text(encoding="utf-8")
    for line in (line for line in text.splitlines() if line and not line.startswith("#")):
        path, scope, rest = line.split(" | ", 2)
        change, reason = rest.rsplit(" | ", 1)
        before, after = change.split("  ->  ")
        assert (ROOT / path).is_file()
        assert scope == "-" or f"def {scope.split('.')[-1]}(" in (ROOT / path).read_text("utf-8")
        assert before != after
        assert reason


def test_mutants_from_end_to_end(tmp_path):
    """Cross products and skew matrices are tested: what changes them dies, in its own process."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, "-m", "mutants", "--jobs=2", f"--out={tmp_path}", "--sample=2"]
    command += ["--tests=spatial/test_vector3.py", "--only=spatial/vector3.py"]
    command += ["--each=2", "--seconds=20"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "seed 0: 2 mutants" in result.stdout
    results = [*map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())]
    assert [entry["status"] for entry in results] == ["killed"] * 2
    assert all(entry["failed"].startswith("tests/spatial/test_vector3.py") for entry in results)
    assert "| spatial | 2 | 2 | 0 | 0 | 0 | 0 | 0 | 100.0%" in result.stdout


PROCEDURE = """
import json, sys
from mutants.changes import edits
from mutants.children import ROOT, isolate_compiled_code, run_all, try_mutant, warm_up
from mutants.recording import record_file

warm_up()
path, tests = "src/kinetree/contact/collision/rays.py", "tests/contact/test_rays.py"
name = "test_rays_of_batches_and_what_they_pass_through"
found = edits((ROOT / path).read_text(encoding="utf-8"))[1]
number = next(k for k, e in enumerate(found) if e.scope == "cast" and e.kind == "index")

def keeps(say):
    isolate_compiled_code()
    from kinetree.codegen.cache import Store
    for key in ("loops\\n1", "request\\n1", "hull 2\\n1", "procedures\\n1", "program 1"):
        Store(sys.argv[1], 10**6).put(key, b"x")
    say([key for _, key in Store(sys.argv[1], 10**6).with_keys()])

tasks = [("record", 100, record_file(tests, (4, 6, 1), 60.0)), ("keys", 60, keeps)]
no = ({}, 0.0)
for k in (None, number):
    tasks.append((f"mutant {k is not None}", 60, try_mutant(path, k, [f"{tests}::{name}"], no, ())))
for task, said, ending, _ in run_all(tasks, 1):
    print(json.dumps([task, said, ending]))
print(json.dumps(found[number].lines))
"""


def test_procedures_are_recorded_and_compiled_from_the_text_of_the_mutant(tmp_path):
    """Their machine code notes its lines; what files name is not found on disk."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, "-c", PROCEDURE, str(tmp_path)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    record, keys, original, mutant, (line, _) = map(json.loads, result.stdout.splitlines())
    (entry,) = record[1]
    assert entry["passed"]
    assert line in entry["lines"]["src/kinetree/contact/collision/rays.py"]
    assert "src/kinetree/contact/collision/fields.py" not in entry["lines"]  # no field is there
    assert sorted(keys[1][0]) == ["procedures\n1", "program 1"]
    (fine,) = original[1][0]["fine"]
    assert fine.startswith("tests/contact/test_rays.py")
    assert original[1][1:] == [{"passed": 1, "count": 1}]
    assert original[2] == "done"
    (failed,) = (part["failed"] for part in mutant[1] if "failed" in part)
    assert failed.startswith("tests/contact/test_rays.py")


def test_a_drawn_seed_is_kept(tmp_path):
    """A run that goes on draws the mutants of the one that it continues."""
    first = _drawn(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    assert _drawn(tmp_path) == first == (tmp_path / "seed.txt").read_text()
    assert _drawn(other) != first


def test_deaths_by_tests_that_fail_without_a_change_are_tried_again(tmp_path, monkeypatch):
    """Where tests were recorded elsewhere; what passed with another mutant is not run again."""
    names = ("tests/a.py::fine", "tests/a.py::good", "tests/b.py::bad[0]", "tests/c.py")
    for number, name in enumerate(names):
        dead = {"id": str(number), "path": "src/x.py", "status": "killed", "failed": name}
        _append(tmp_path / "results.jsonl", dead | {"fine": names[:1] if number == 3 else []})
        entry = {"test": f"{name}::last" if number == 3 else name, "seconds": 1.0, "passed": True}
        _append(tmp_path / "coverage.jsonl", entry | {"lines": {"src/x.py": [number + 1]}})
    run = []

    def all_run(tasks, options):
        for name, *_ in tasks:
            run.append(name)
            yield name, [{"passed": 1} if "good" in name else {"failed": name}], "done", 1.0

    monkeypatch.setattr(mutants, "_all", all_run)
    options = SimpleNamespace(out=tmp_path, carried=True)
    mutants.check(options)
    assert sorted(run) == sorted(names[1:])
    assert {*mutants._results(options)} == {"0", "1"}
    covering = mutants.Covering(tmp_path / "coverage.jsonl")
    assert {*covering.seconds} == {*names[:2]}  # of a file that cannot be imported no test is left
    mutants.check(options)
    assert len(run) == 3
    options.carried = False  # what was recorded here passed here
    run.clear()
    _append(tmp_path / "results.jsonl", dead | {"id": "4", "failed": names[1], "fine": []})
    mutants.check(options)
    assert not run


def _append(path, entry):
    with path.open("a") as file:
        file.write(json.dumps(entry) + "\n")
