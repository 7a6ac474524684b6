"""``make mutants``: change the source, run the tests that cover the change, list what survives.

    python -m mutants cover     which tests execute which lines, into out/mutants/coverage.jsonl
    python -m mutants run       a sample of mutants, into out/mutants/results.jsonl
    python -m mutants check     without a change, tests that failed with one and passed with none
    python -m mutants report    what became of them, into out/mutants/report.md
    python -m mutants           the four, one after the other

``cover`` and ``run`` go on where they were stopped, after ``--time-limit`` or otherwise. In about
fifteen minutes on 16 cores, with fewer cases of parametrized tests and less time for survivors,
which makes the share of those that die a lower bound:

    python -m mutants cover --each 2 --time-limit 540
    python -m mutants run --each 2 --seconds 12 --seed draw --time-limit 540     (again until done)
    python -m mutants report

A mutant is tried on at most 120 tests that pass without it and together take at most ``--seconds``
(40) of CPU: one of each test function first, the quickest and those whose file is named after the
module before others; in what is left of the time on cases that were not recorded, of these and of
the files that are named after the module. It is dead when one of them fails, when Python crashes,
or when they take more than 30 s and three times that CPU time. A line that no test executes lets
all mutants live. A survivor is *cut off* when there are functions of tests that execute its line
and of which no case was tried, for these limits; ``--again`` with more ``--seconds`` tries them.
Survivors that change nothing are explained in equivalent.txt. Lines are known by their numbers:
what was recorded of another source is of no use. What was recorded on another machine is
(``--carried``): tests that fail there without a change are found by ``check``, left out from then
on, and the mutants that they killed are tried again by the next ``run``.
"""

import argparse
import json
import os
import random
import sys
import time
import zlib
from collections import Counter, defaultdict
from pathlib import Path

from mutants.changes import edits
from mutants.children import PACKAGES, ROOT, run_all, try_mutant, warm_up
from mutants.recording import record_file

TESTS = (
    "spatial", "joints", "algorithms", "textbook", "quantities", "loops", "contact", "worlds",
    "functional", "model", "simulation", "control", "ik", "identification", "symbolic",
    "diagnosis", "messages",
)  # fmt: skip
OUT = ROOT / "out" / "mutants"
MOST_TESTS = 120
LONGEST_TEST = 60.0  # [s] of CPU with its lines recorded
ALIVE = ("survived", "cut off", "not covered")
AGAIN = "to try again"  # a mutant that only a test noticed which fails without it, too
SLOWER = {0: 1.0, 1: 3.0, 2: 6.0}  # as if tests farther away took that many times longer


# --- Which tests execute which lines --------------------------------------------------------------


def cover(options):
    """Record what every test executes; test files that did not change are not recorded again."""
    path = options.out / "coverage.jsonl"
    done = {tuple(entry["file"]) for entry in _read(path) if "file" in entry}
    tasks = []
    for folder in options.tests.split(","):
        place = ROOT / "tests" / folder
        for file in [place] if place.is_file() else sorted(place.rglob("test_*.py")):
            name, text = file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")
            parts = 1 + text.count("def test_") // 8
            for k in range(parts):
                task = (name, k, parts, zlib.crc32(text.encode()), options.each)
                if task not in done:
                    share = (k, parts, options.each)
                    tasks.append((task, 600.0, record_file(name, share, LONGEST_TEST)))
    with path.open("a", encoding="utf-8") as file:
        for n, (task, found, ending, seconds) in enumerate(_all(tasks, options), 1):
            for entry in found:
                file.write(json.dumps(entry) + "\n")
            file.write(json.dumps({"file": task}) + "\n")
            file.flush()
            wrong = [e["test"] for e in found if not e["passed"]]
            note = f", left out: {wrong}" if wrong else "" if found else f", no tests ({ending})"
            print(f"{n}/{len(tasks)} {task[0]} {len(found)} tests, {seconds:.0f} s{note}")


class Covering:
    """The tests that execute each line, and how long they take."""

    def __init__(self, path):
        self.seconds, self.lines = {}, defaultdict(lambda: defaultdict(list))
        self.cases = {}  # seconds of the quickest case of functions that have several
        latest = {entry["test"]: entry for entry in _read(path) if "test" in entry}
        self.failing = {test.split("[")[0] for test, e in latest.items() if not e["passed"]}
        for entry in latest.values():
            if entry["passed"] and entry["test"].split("::")[0] not in self.failing:
                self.seconds[entry["test"]] = entry["seconds"]
                function = entry["test"].split("[")[0]
                if function != entry["test"]:
                    least = self.cases.get(function, entry["seconds"])
                    self.cases[function] = min(least, entry["seconds"])
                for file, numbers in entry["lines"].items():
                    for number in numbers:
                        self.lines[file][number].append(entry["test"])

    def of(self, path, edit, seconds):
        """Tests for a change of a file, the most telling first, within the limits.

        Returns:
            The tests; functions that have several cases, of which others may execute the line, with
            the time [s] of one: those of the tests, and of files that are named after the module;
            whether any executes the line; how many functions that execute it are left out.
        """
        first, last = edit.lines
        lines = self.lines[path]
        found = {test for n in range(first, last + 1) for test in lines.get(n, ())}
        covered = bool(found or not edit.scope)
        if not found or not edit.scope:
            # What runs at import, or when tests are collected, is noticed by a test that executes
            # anything of the file, if at all.
            found = {test for tests in lines.values() for test in tests}
        by_function = defaultdict(list)
        for test in sorted(found, key=lambda t: (self.seconds[t], t)):
            by_function[test.split("[")[0]].append(test)

        def cost(function):
            return (self.seconds[by_function[function][0]] + 0.05) * SLOWER[
                _distance(path, function)
            ]

        chosen, total, turn = [], 0.0, 0
        functions = sorted(by_function, key=cost)
        while any(turn < len(by_function[f]) for f in functions):
            for function in functions:
                if turn < len(by_function[function]) and len(chosen) < MOST_TESTS:
                    test = by_function[function][turn]
                    if not chosen or total + self.seconds[test] <= seconds:
                        chosen.append(test)
                        total += self.seconds[test]
            turn += 1
        tried = {test.split("[")[0] for test in chosen}
        first = {f: by_function[f][0] for f in functions if f in tried}
        times = {f: self.seconds[test] for f, test in first.items() if "[" in test}
        own = sorted((s, f) for f, s in self.cases.items() if _distance(path, f) == 0)
        times |= {f: s for s, f in own if covered and f not in times}
        times = {f: s for f, s in times.items() if not {f, f.split("::")[0]} & self.failing}
        return chosen, times, covered, len(functions) - len(tried)


def _distance(path, test):
    """0 when a test file is named after the module, 1 when after the package, else 2."""
    module, file = Path(path), Path(test.split("::")[0])
    name, tested = module.stem, file.stem.removeprefix("test_")
    if name in tested or tested in name:
        return 0
    return 1 if file.parent.name in module.parts else 2


# --- A sample of mutants --------------------------------------------------------------------------


def sample(seed, only=()):
    """Every change of the packages as (path, number, edit), in a random order.

    Each beginning of that order has about the same share of every file.
    """
    found = []
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            if only and not path.startswith(tuple(f"src/kinetree/{name}" for name in only)):
                continue
            all_edits = edits(file.read_text(encoding="utf-8"))[1]
            rng = random.Random(f"{seed} {path}")
            order, shift = rng.sample(range(len(all_edits)), len(all_edits)), rng.random()
            for k, number in enumerate(order):
                found.append(((k + shift) / len(all_edits), path, number, all_edits[number]))
    found.sort(key=lambda entry: entry[:3])
    return [entry[1:] for entry in found]


def run(options):
    """Try the mutants of the sample that were not tried yet."""
    path = options.out / "results.jsonl"
    results = _results(options)
    tasks, entries, tests = _to_try(options, results)
    print(f"seed {options.seed}: {len(tasks)} mutants to try, {len(results)} tried before, "
          f"{len(tests)} tests")  # fmt: skip
    counts, fine, explained = Counter(), _fine(options), _explained()
    with (Path(os.devnull) if options.control else path).open("a", encoding="utf-8") as file:
        for name, found, ending, seconds in _all(tasks, options):
            entry = entries[name]
            passed = {test for part in found for test in part.pop("fine", ())}
            entry["fine"] = sorted(passed - fine)
            fine |= passed
            for part in found:
                entry.update(part)
            entry.update(status=_status(entry, ending, explained), seconds=round(seconds, 2))
            file.write(json.dumps(entry) + "\n")
            file.flush()
            counts[entry["status"]] += 1
            if options.control and entry["status"] not in ALIVE:
                print("fails without a change:", entry)
            if entry["status"] in ALIVE:
                print(f"{counts.total()}: {entry['status']} {_line(entry)}", flush=True)
    print(dict(counts))


def _to_try(options, results):
    """Tasks for mutants, what is known of them by name, and the tests that they may run."""
    covering, explained = Covering(options.out / "coverage.jsonl"), _explained()
    tasks, entries, every = [], {}, set()
    for file, number, edit in sample(options.seed, options.only)[: options.sample]:
        if options.among and not file.startswith(tuple(f"src/kinetree/{n}" for n in options.among)):
            continue
        name = f"{file}:{edit.lines[0]}:{number}"
        again = options.again and results.get(name, {}).get("status") in ALIVE
        if name in results and not again:
            continue
        tests, times, covered, left_out = covering.of(file, edit, options.seconds)
        entries[name] = {
            "id": name, "path": file, "line": edit.lines[0], "kind": edit.kind,
            "scope": edit.scope, "tests": len(tests), "covered": covered, "left_out": left_out,
        }  # fmt: skip
        number = None if options.control else number
        left = max(0.0, options.seconds - sum(covering.seconds[test] for test in tests))
        work = try_mutant(file, number, tests, (times, left), explained[file, edit.scope])
        tasks.append((name, 30 + 3 * options.seconds, work))
        every.update(tests)
    return tasks, entries, every


def check(options):
    """Run tests that failed with mutants and passed with none; what fails here proves nothing."""
    path = options.out / "coverage.jsonl"
    results, recorded = _results(options), Covering(path).seconds
    fine = _fine(options) | (set() if options.carried else {*recorded})
    fine |= {test.split("::")[0] for test in fine}  # files that could be imported
    doubtful = defaultdict(list)
    for entry in results.values():
        test = entry.get("failed", "")
        if entry["status"] == "killed" and test.startswith("tests/") and test not in fine:
            doubtful[test].append(entry)
    tasks = [(test, 120.0, try_mutant(entries[0]["path"], None, [test], ({}, 0.0), ()))
             for test, entries in doubtful.items()]  # fmt: skip
    with (
        path.open("a", encoding="utf-8") as coverage,
        (options.out / "results.jsonl").open("a", encoding="utf-8") as file,
    ):
        for test, found, ending, _ in _all(tasks, options):
            first, *_ = several = doubtful[test]
            if ending == "done" and not any("failed" in part for part in found):
                file.write(json.dumps({**first, "fine": [*first["fine"], test]}) + "\n")
                continue
            print(f"fails without a change: {test}, so that {len(several)} are to be tried again")
            entry = {"test": test, "passed": False, "seconds": 0.0, "lines": {}}
            coverage.write(json.dumps(entry) + "\n")
            file.writelines(json.dumps({**e, "status": AGAIN}) + "\n" for e in several)


def _results(options):
    """What became of each mutant that was tried."""
    found = {entry["id"]: entry for entry in _read(options.out / "results.jsonl")}
    return {name: entry for name, entry in found.items() if entry["status"] != AGAIN}


def _fine(options):
    """Tests that passed with some mutant, also with one that is tried again."""
    results = _read(options.out / "results.jsonl")
    return {test for entry in results for test in entry.get("fine", ())}


def _status(entry, ending, explained):
    if entry.get("change") in explained[entry["path"], entry["scope"]]:
        return "equivalent"
    if "failed" in entry:
        return "killed"
    if ending != "done":
        return {"timeout": "timeout", "crashed": "killed"}[ending]
    if entry.get("passed") != entry.get("count", 0):
        return f"only {entry.get('passed')} of {entry.get('count')} tests passed"
    if not (entry["tests"] and entry["covered"]):
        return "not covered"
    return "cut off" if entry["left_out"] else "survived"


def _explained():
    """Changes that are known to change nothing, by file and function."""
    found = defaultdict(set)
    for line in (Path(__file__).parent / "equivalent.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            path, scope, rest = line.split(" | ", 2)
            change, _ = rest.rsplit(" | ", 1)
            found[path, "" if scope == "-" else scope].add(change)
    return found


# --- The report -----------------------------------------------------------------------------------


def report(options):
    """Write what became of the mutants, by package, and the survivors."""
    results = _results(options).values()
    names = ("killed", "timeout", *ALIVE, "equivalent")
    rows = defaultdict(Counter)
    for entry in results:
        rows[entry["path"].split("/")[2]][entry["status"]] += 1
        rows["all"][entry["status"]] += 1
    lines = [
        "# Mutants",
        "",
        f"| package | mutants | {' | '.join(names)} | die | not equivalent | and covered |",
    ]
    lines.append("|---" * (len(names) + 5) + "|")
    for package, row in rows.items():
        dead, every = row["killed"] + row["timeout"], row.total()
        possible = every - row["equivalent"]
        shares = " | ".join(
            f"{dead / max(1, n):.1%}" for n in (every, possible, possible - row["not covered"])
        )
        cells = " | ".join(str(row[name]) for name in names)
        lines.append(f"| {package} | {every} | {cells} | {shares} |")
    others = {s for row in rows.values() for s in row} - set(names)
    for status in (*ALIVE, "timeout", "equivalent", *sorted(others)):
        found = [e for e in results if e["status"] == status]
        found.sort(key=lambda e: (e["path"], e["line"]))
        lines += ["", f"## {status}: {len(found)}", "", *(f"- {_line(e)}" for e in found)]
    text = "\n".join(lines) + "\n"
    (options.out / "report.md").write_text(text, encoding="utf-8")
    print(text.split("##")[0])
    print(f"survivors are listed in {options.out / 'report.md'}")


def _line(entry):
    scope = f" {entry['scope']}" if entry["scope"] else ""
    return f"{entry['path']}:{entry['line']}{scope}  {entry.get('change', entry['kind'])}"


# --- The command ----------------------------------------------------------------------------------


def _drawn(out):
    """A seed that nobody chose, the same for all runs into a folder."""
    path = out / "seed.txt"
    if not path.exists():
        path.write_text(str(random.SystemRandom().randrange(2**32)), encoding="utf-8")
    return path.read_text(encoding="utf-8")


def _all(tasks, options):
    end = time.monotonic() + options.time_limit if options.time_limit else None
    return run_all(tasks, options.jobs, end)


def _read(path):
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def main(arguments):
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__.splitlines()[0])
    parser.add_argument("stage", nargs="?", choices=("cover", "run", "check", "report"))
    parser.add_argument("--sample", type=int, default=2000, help="mutants to draw")
    parser.add_argument("--seed", default="0", help='of the draw; "draw": one that is drawn now')
    parser.add_argument("--each", type=int, help="cases of each test to record; all by default")
    parser.add_argument("--seconds", type=float, default=40.0, help="of tests for a mutant")
    parser.add_argument(
        "--only",
        type=lambda s: s.split(","),
        default=(),
        help="packages or files, such as spatial,joints/planar.py",
    )
    parser.add_argument(
        "--among",
        type=lambda s: s.split(","),
        default=(),
        help="of the sample, only these packages or files: to try their survivors --again",
    )
    parser.add_argument(
        "--tests", default=",".join(TESTS), help="folders or files of tests to record"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--time-limit", type=float, help="seconds after which nothing new begins")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument(
        "--control", action="store_true", help="run without changes: no test may fail"
    )
    parser.add_argument(
        "--carried", action="store_true", help="tests were recorded on another machine"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder of what is recorded")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    options.seed = _drawn(options.out) if options.seed == "draw" else options.seed
    warm_up()
    for stage in (cover, run, check, report):
        if options.stage in (None, stage.__name__):
            stage(options)


if __name__ == "__main__":
    main(sys.argv[1:])
