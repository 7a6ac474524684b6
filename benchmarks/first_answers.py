"""How long first answers take: every public function, option, sample and some real robots.

    python benchmarks/first_answers.py --out answers.jsonl            all, on all cores
    python benchmarks/first_answers.py --parts 1/4 --out part.jsonl   a quarter of the rows
    python benchmarks/first_answers.py delta simulate                 rows with these words
    python benchmarks/first_answers.py --table answers.jsonl          what was measured before

Each row is measured in its own process, which has imported kinetree and built the model, with a
separate copy of the cache: it has seen other robots, as ``kinetree warm-up`` leaves it, and not
this one. CPU seconds of the whole process, with one thread of OpenBLAS. Rows above ``GOAL`` are
printed with what was compiled for this robot, which is the reason; one that
``first_answers_known.py`` does not list, at the pace of the quickest row, makes it fail. ``--out``
goes on where it was stopped. Beside other work CPU seconds grow: a fixed piece of work is timed
with every row, and the summary also says what rows take at the quickest pace of all.
"""

import argparse
import functools
import json
import os
import pickle
import re
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # others spin where cores are busy

import numpy as np
from first_answers_known import bound_of

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "benchmarks")]
warnings.simplefilter("ignore")

GOAL = 1.0  # [s]
GOALS = {"1,000": 2.0, "10,000": 10.0}  # for rows with these words
LONGEST = 120  # [s] of CPU that a row may take
PATIENCE = 20  # times as long on the clock, beside other work


# --- processes -----------------------------------------------------------------------------------


def start(work, limit: int | None = LONGEST):
    """Begin ``work()`` in a child process; the end of a pipe that will have its pickled result."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        if limit:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            signal.alarm(PATIENCE * limit)
        try:
            found = work()
        except Exception as error:
            found = f"{type(error).__name__}: {error}"[:120]
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(found, pipe)
        os._exit(0)
    os.close(writer)
    return os.fdopen(reader, "rb")


def finished(pipe):
    """The result of a child process, or what became of it."""
    with pipe:
        data = pipe.read()
    return pickle.loads(data) if data else f"crashed, or took more than {LONGEST} s of CPU"


def reap():
    """Forget child processes that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def in_parallel(rows, processes):
    """Names and results of rows, in the order in which they end."""
    with selectors.DefaultSelector() as waiting:
        for name, work in rows:
            while len(waiting.get_map()) >= processes:
                yield from _ended(waiting)
            waiting.register(start(work), selectors.EVENT_READ, name)
        while waiting.get_map():
            yield from _ended(waiting)


def _ended(waiting):
    for key, _ in waiting.select():
        waiting.unregister(key.fileobj)
        yield key.data, finished(key.fileobj)
    reap()


# --- one row -------------------------------------------------------------------------------------


def timed(work, cache):
    """CPU and wall seconds, the peak of memory [MB], what was compiled, and the pace meanwhile."""

    def measure():
        compiled, before = watched(), pace()
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        longest = sorted(compiled, key=lambda text: -float(text.split()[-2]))[:6]
        return cpu, wall, memory, longest, (before + pace()) / 2

    return with_own_cache(measure, cache)


def pace():
    """CPU seconds of the same work every time: more, where other processes share the core."""
    begun, found = time.process_time(), {}
    for k in range(20_000):
        found[k % 997] = (k, str(k))
    for _ in range(300):
        np.linalg.solve(_MATRIX, _MATRIX)
    return time.process_time() - begun


_MATRIX = np.eye(24) + np.arange(24.0) / 24


def with_own_cache(work, cache):
    """A function that works with a separate copy of a cache."""

    def worked():
        # a thread may still be keeping what it has optimised
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
            folder = Path(own) / "cache"
            shutil.copytree(cache, folder, copy_function=_link)
            os.environ["KINETREE_CACHE"] = str(folder)
            return work()

    return worked


def _link(source, target):
    """Another name of a file: those of a cache are replaced, never written. Locks are left out."""
    if "lock" not in Path(source).name:
        os.link(source, target)


def watched():
    """A list to which what is compiled from now on is added, with its CPU seconds."""
    from kinetree.codegen import build

    found, specialised, general = [], build._compile, build.compiled_programs

    def one(kernel, *arguments):
        begun = time.process_time()
        code = specialised(kernel, *arguments)
        found.append(f"{kernel.name} {time.process_time() - begun:.2f} s")
        return code

    def several(texts):
        begun = time.process_time()
        codes = general(texts)
        found.append(f"{len(texts)} units {time.process_time() - begun:.2f} s")
        return codes

    build._compile, build.compiled_programs = one, several
    return found


# --- all rows ------------------------------------------------------------------------------------


def all_rows(cache):
    """Names of all rows, robot by robot, and functions that give their works when needed."""
    import first_answers_features as features
    import first_answers_rows as those

    for robots in (those.samples, those.real_robots):
        for robot, model in robots():
            prepared = functools.cache(functools.partial(arguments_for, robot, model, cache))
            for what, work in those.rows_of(model):
                yield f"{robot}: {what}", lambda w=work, p=prepared: functools.partial(w, p())
    for what, work in (*those.contact_rows(), *those.long_chains(), *features.rows()):
        yield what, lambda w=work: w


def arguments_for(robot, model, cache):
    """Arguments that ``prepare`` finds for a robot, with a separate cache: rows do not see it."""
    import first_answers_rows as those

    prepared = finished(start(with_own_cache(lambda: those.prepare(model), cache)))
    if isinstance(prepared, str):
        sys.exit(f"arguments for {robot}: {prepared}")
    return prepared


def wanted(options, measured):
    """Rows that were chosen and not measured before."""
    k, n = options.parts
    chosen = re.compile(options.match)
    for number, (name, work) in enumerate(all_rows(options.cache)):
        if number % n != k - 1 or not all(word in name for word in options.words):
            continue
        if name not in measured and chosen.search(name):
            yield name, timed(work(), options.cache)


def see_other_robots():
    """Fill the cache with what other robots need."""
    from kinetree.cli import warm_up
    from kinetree.codegen.procedures.improving import improve_now

    for job in warm_up.jobs():
        job()
    improve_now()


def measure(options):
    """Measure, print what is late, and keep all results."""
    measured = read(options.out) if options.out else {}
    os.environ |= {"KINETREE_CACHE": str(options.cache), "KINETREE_PROGRESS": "0"}
    # as an installed package has it
    sys.dont_write_bytecode, sys.pycache_prefix = False, f"{options.cache}_bytecode"
    begun = time.monotonic()
    failed = finished(start(see_other_robots, limit=None))
    if failed:
        sys.exit(f"other robots: {failed}")
    print(f"cache filled in {time.monotonic() - begun:.0f} s", flush=True)
    with open(options.out or os.devnull, "a", encoding="utf-8") as file:
        for name, found in in_parallel(wanted(options, measured), options.processes):
            measured[name] = found
            file.write(json.dumps([name, found]) + "\n")
            file.flush()
            if options.verbose or is_late(name, found):
                print(line(name, found), flush=True)
    return measured


# --- what is printed -----------------------------------------------------------------------------


def read(path):
    """Results by name, of a file that may not exist."""
    if not Path(path).exists():
        return {}
    return dict(map(json.loads, Path(path).read_text(encoding="utf-8").splitlines()))


def is_late(name, found, fastest=None):
    """Whether an answer took longer than its goal; with ``fastest``, at that pace."""
    return not isinstance(found, str) and at_pace(found, fastest) > goal_of(name)


def goal_of(name):
    """What an answer may take [s of CPU] without being named."""
    return next((g for word, g in GOALS.items() if word in name), GOAL)


def at_pace(found, fastest=None):
    """CPU seconds of an answer, as they would be if other work had not slowed it down."""
    return found[0] * (fastest / found[4] if fastest else 1.0)


def line(name, found):
    """A row in words."""
    if isinstance(found, str):
        return f"{name:60} {found}"
    cpu, wall, memory, compiled, _ = found
    times = f"{cpu:6.2f} s CPU {wall:6.2f} s wall {memory:5.0f} MB"
    return f"{name:60} {times}  {'; '.join(compiled)}"


def summary(measured):
    """Print late answers, what no robot answers, and counts; how many are late for no known reason.

    Those are counted at the pace of the quickest row.
    """
    answers = {name: found for name, found in measured.items() if not isinstance(found, str)}
    fastest = min((found[4] for found in answers.values()), default=None)
    late = sorted((n for n in answers if is_late(n, answers[n])), key=lambda n: -answers[n][0])
    lines = (f"{at_pace(answers[n], fastest):5.2f} s alone  {line(n, answers[n])}" for n in late)
    print("\nlater than their goal:", *lines, sep="\n")
    refused, defined = defaultdict(list), {n.partition(": ")[2] for n in answers}
    for name, found in measured.items():
        if isinstance(found, str) and (what := name.partition(": ")[2]) not in defined:
            refused[what].append(found)
    print("\nanswered for no robot:", *(f"{n}: {x[0]}" for n, x in refused.items()), sep="\n")
    slow = [name for name in measured if str(measured[name]).startswith("crashed")]
    print(*(f"{name}: {measured[name]}" for name in slow), sep="\n")
    total = sum(found[0] for found in answers.values())
    others = len(measured) - len(answers)
    alone = [n for n, found in answers.items() if is_late(n, found, fastest)]
    unknown = [n for n in alone if at_pace(answers[n], fastest) > bound_of(n, goal_of(n))]
    print(
        f"{len(answers)} first answers in {total:.0f} s of CPU, {len(late)} later than their goal,"
    )
    print(f"{len(alone)} at the pace of the quickest; {others} calls not defined for that robot")
    print(f"{len(unknown)} of these for no reason that first_answers_known.py has", *unknown)
    return len(unknown)


def main():
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="of the names of rows to measure")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="rows at a time")
    parser.add_argument("--match", default="", help="a regular expression that names contain")
    parser.add_argument("--parts", default="1/1", type=lambda s: tuple(map(int, s.split("/"))))
    parser.add_argument("--out", help="file of all results, which is continued")
    parser.add_argument("--table", help="print results of such a file, and measure nothing")
    parser.add_argument("--cache", help="folder with a cache to begin with, which is filled")
    parser.add_argument("-v", "--verbose", action="store_true", help="print all rows")
    options = parser.parse_args()
    if options.table:
        return sys.exit(bool(summary(read(options.table))))
    with tempfile.TemporaryDirectory() as own:
        options.cache = options.cache or own + "/cache"
        Path(options.cache).mkdir(parents=True, exist_ok=True)
        return sys.exit(bool(summary(measure(options))))


if __name__ == "__main__":
    main()
