"""Many motions at once, one a core: balls, heaps and random scenes, and what they show together.

    python benchmarks/contact_truth.py --jobs 16 --balls 200 --heaps 3 --scenes 208 --seconds 380

Processes are started afresh, with one thread each; code is compiled and optimised before. Heaps,
which take longest, begin. What has not begun after ``--seconds`` is left out.
"""

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path

import numpy as np

import kinetree as kt
from truth import piles
from truth.random_scenes import random_results
from truth.verdict import Result

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "KINETREE_THREADS")


def heap_of(seed: int) -> Result:
    """Times of a heap of 1,000 boxes, and MuJoCo's."""
    import worlds

    case = worlds.Case(lambda: worlds.heap(seed=seed), 300, 2.0, rests=False)
    text = case.mjcf()
    a, b = worlds.ours(text, case, None), worlds.theirs(text, case, None)
    found = Result(f"heap, seed {seed}")
    found.numbers = {
        "ratio": a["time"] / b["time"], "ours": a["time"], "theirs": b["time"],
        "median": a["median"], "slowest": a["most"], "residual": a["residual"],
    }  # fmt: skip
    found.figure = f"{found.numbers['ratio']:.2f} times mj_step, {1e3 * a['time']:.1f} ms"
    found.fine = found.numbers["ratio"] <= case.most
    return found


def random_of(seed: int) -> Result:
    """A random scene."""
    return next(random_results(1, seed))


KINDS = {"heaps": heap_of, "balls": piles.balls_of, "scenes": random_of}


def work(kind: str, seed: int) -> tuple[str, int, dict, bool]:
    """One motion: its figures, and whether anything is wrong in silence."""
    result = KINDS[kind](seed)
    return kind, seed, result.as_dict(), bool(result.silent)


def compile_all() -> float:
    """Compile and optimise the code of worlds, for all processes; how long it took [s]."""
    from kinetree.codegen.procedures.improving import improve_now

    start = time.perf_counter()
    piles.balls(0, n=3, steps=1).world().step(5)
    random_of(0)
    file = Path(tempfile.mkdtemp()) / "world.xml"
    file.write_text(piles.balls(0, n=3).mjcf())
    kt.World.from_file(file).step(2)
    improve_now()
    return time.perf_counter() - start


def results(counts: dict, seed: int, jobs: int, seconds: float) -> Iterator[tuple]:
    """Results of ``work``, as they come."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    todo = [(kind, seed + k) for kind in KINDS for k in range(counts.get(kind, 0))]
    end = time.perf_counter() + seconds
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        running: set = set()
        while todo or running:
            while todo and len(running) < jobs and time.perf_counter() < end:
                running.add(pool.submit(work, *todo.pop(0)))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


def table(found: list[tuple]) -> str:
    """All of it in a few lines."""
    lines = []
    for kind in KINDS:
        rows = [(seed, r, silent) for k, seed, r, silent in found if k == kind]
        if not rows:
            continue
        right = sum(not r["wrong"] and not r["silent"] for _, r, _ in rows)
        quiet = [seed for seed, _, silent in rows if silent]
        failed = [seed for seed, r, _ in rows if "Error" in r["figure"]]
        seeds = f"{min(s for s, *_ in rows)} to {max(s for s, *_ in rows)}"
        lines.append(f"{kind}: {len(rows)} (seeds {seeds}), {right} right, silent {quiet or 'none'}"
                     + (f", errors {failed}" if failed else ""))  # fmt: skip
        for name in ("overlap", "velocity", "cone", "gain"):
            lines[-1] += f", {name} {max(r[name] for _, r, _ in rows):.1e}"
        times = [r["numbers"] for _, r, _ in rows if "ratio" in r["numbers"]]
        if times:
            ratio = np.array([t["ratio"] for t in times])
            ours, theirs = (1e6 * np.mean([t[k] for t in times]) for k in ("ours", "theirs"))
            lines.append(
                f"    times mj_step: mean {ratio.mean():.3f}, median {np.median(ratio):.3f}, "
                f"{ratio.min():.2f} to {ratio.max():.2f}; {ours:.0f} and {theirs:.0f} µs a step, "
                f"slowest step {1e3 * max(t['slowest'] for t in times):.0f} ms"
            )
    return "\n".join(lines)


def run(counts: dict, seed: int, jobs: int, seconds: float, file: str | None) -> None:
    """Run motions at once, and print the table, last."""
    print(f"code compiled in {compile_all():.0f} s", flush=True)
    found, start = [], time.perf_counter()
    for each in results(counts, seed, jobs, seconds):
        found.append(each)
        if file:
            Path(file).write_text(json.dumps(found, indent=1, default=float))
        if len(found) % 50 == 0:
            print(f"{len(found)} motions, {time.perf_counter() - start:.0f} s", flush=True)
    print(table(found) + f"\n{time.perf_counter() - start:.0f} s, {jobs} at once", flush=True)
