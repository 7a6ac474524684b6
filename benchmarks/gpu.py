"""Kernels on a GPU: evaluations, bytes and operations per second beside what the chip can do.

    python benchmarks/gpu.py FOLDER                  everything; writes FOLDER/gpu.json
    python benchmarks/gpu.py FOLDER --seconds 300    what can be begun within this time
    python benchmarks/gpu.py FOLDER --only talos:aba,ur5:rnea
    python benchmarks/gpu.py FOLDER --motions        forward dynamics, steps and rollouts alone
    python benchmarks/gpu.py FOLDER --profile talos:aba    a few launches, for a profiler

Needs NumPy and CuPy. Bytes are those that must move: every input read once, every result written
once; their limit is a copy measured in the same run. Operations are multiplications, additions and
so on of the program, a fused pair counting two; their limit is a loop of fused operations measured
in the same run. Results are compared with the interpreter in float64 on the CPU. Times are medians
of launches between events.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import cupy as cp
import numpy as np
from gpu_kernels import FUNCTIONS, robot
from gpu_measure import Launch, copy_bandwidth, measure, overhead, peak_operations

from kinetree.codegen.render.cuda import Layout
from kinetree.codegen.runtime.cuda import CudaKernel

ROBOTS = ("ur5", "panda", "anymal", "talos")
ALL = tuple(4**k for k in range(13))  # 1 to 16 million
FEW = (2**10, 2**17, 2**20, 2**22, 2**24)
LARGE = (2**19, 2**22)

FIRST = [
    *((r, "rnea", "float32", ALL if r == "ur5" else FEW) for r in ROBOTS),
    *((r, "aba", "float32", FEW) for r in ROBOTS),
    *((r, "rnea+d", "float32", FEW) for r in ROBOTS[:3]),
    *((r, "crba", "float32", FEW) for r in ROBOTS),
    *(("talos_fixed", f, "float32", FEW) for f in ("rnea", "aba", "drnea")),
    *((r, "drnea", "float32", LARGE) for r in ROBOTS[:2]),
    ("talos", "rnea+d", "float32", FEW),
]
LAST = [
    *((r, f, "float64", LARGE) for f in ("rnea", "aba", "rnea+d") for r in ROBOTS),
    *((r, "jacobian", "float32", LARGE) for r in ROBOTS),
    *((r, "rollout", "float32", (2**20,)) for r in ROBOTS),
    ("ur5", "rollout", "float64", (2**20,)),
]
VARIANTS = [
    ("panda", "aba", {"layout": Layout(resident=0)}),
    ("panda", "aba", {"layout": Layout(ahead=False)}),
    ("ur5", "aba", {"layout": Layout(ahead=False)}),
    ("ur5", "rnea", {"layout": Layout(ahead=True)}),
    ("ur5", "rnea+d", {"layout": Layout(resident=0)}),
    ("talos", "aba", {"layout": Layout(order="results")}),
]
MOTIONS = [
    (r, f, "float32", (n,))
    for r in ("talos", "anymal", "panda")
    for f, n in (("aba", 2**22), ("step", 2**22), ("rollout", 2**20))
]


def profiled(name, function):
    """A few launches of one kernel, for a profiler to look at."""
    model = robot(name)
    kernel = FUNCTIONS[function](model)
    compiled = CudaKernel(kernel, "float32", 0)
    launch = Launch(kernel, model, "float32", compiled, np.random.default_rng(0))
    launch.arrays(2**20)
    for _ in range(2):
        launch(compiled.blocks[0])
    cp.cuda.get_current_stream().synchronize()


def show(rows, copy, peak):
    print(f"copy {copy / 1e12:.2f} TB/s, fused operations "
          + ", ".join(f"{d} {p / 1e12:.1f} T/s" for d, p in peak.items()))  # fmt: skip
    print(f"{'robot':12}{'function':10}{'type':5}{'variant':16}{'cold s':>7}{'regs':>5}{'local':>6}"
          f"{'blk':>4}{'error':>9}{'M/s':>9}{'% copy':>7}{'% ops':>6}")  # fmt: skip
    for r in rows:
        print(
            f"{r.robot:12}{r.function:10}{'f' + r.dtype[5:]:5}{r.variant[-15:]:16}{r.cold:7.2f}"
            f"{r.registers:5}{r.local:6}{r.block:4}{r.error:9.1e}{r.rate() / 1e6:9.0f}"
            f"{100 * r.bytes() / copy:7.1f}{100 * r.rate() * r.operations / peak[r.dtype]:6.1f}"
        )


class Report:
    """Rows, written to a file after each."""

    def __init__(self, folder, seconds):
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.end = folder / "gpu.json", time.monotonic() + seconds
        self.rows, self.failures, self.more = [], [], {}
        self.copy = copy_bandwidth()
        self.peak = {d: peak_operations(d) for d in ("float32", "float64")}

    def attempt(self, name, function, dtype, batches, **options):
        """One row, or a note of what went wrong."""
        what = f"{name} {function} {dtype} {options.get('variant', '')}"
        if time.monotonic() > self.end:
            self.failures.append(f"{what}: no time left")
            return
        try:
            r = measure(name, function, dtype, batches, **options)
            self.rows.append(r)
            share = 100 * r.bytes() / self.copy
            print(f"{what}: {r.rate() / 1e6:.0f} M/s, {share:.1f} % of copy, cold {r.cold:.2f} s, "
                  f"error {r.error:.1e}, {r.registers} registers, {r.local} B local, {r.shared} B "
                  f"shared, {r.functions} functions, block {r.block}", flush=True)  # fmt: skip
        except Exception as error:  # one kernel that fails must not hide the others
            self.failures.append(f"{what}: {error!r}"[:600])
            print("FAILED", self.failures[-1], flush=True)
        cp.get_default_memory_pool().free_all_blocks()
        self.save()

    def save(self):
        """Everything so far."""
        report = {
            "device": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(),
            "cupy": cp.__version__, "copy": self.copy, "peak": self.peak,
            "rows": [asdict(r) for r in self.rows], "failures": self.failures, **self.more,
        }  # fmt: skip
        self.path.write_text(json.dumps(report, indent=1) + "\n")

    def finished(self):
        """Print everything; whether something failed."""
        self.save()
        show(self.rows, self.copy, self.peak)
        for text in self.failures:
            print("FAILED", text)
        print(f"wrote {self.path}")
        return bool(self.failures)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--motions", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--profile", help="ROBOT:FUNCTION, a few launches for a profiler")
    given = parser.parse_args()
    if given.profile:
        return profiled(*given.profile.split(":"))
    report = Report(given.folder, given.seconds)
    jobs = [(*job, {}) for job in (MOTIONS if given.motions else FIRST)]
    if not given.motions:
        report.more["overhead"] = overhead()
        print(json.dumps(report.more["overhead"], indent=1), flush=True)
        if given.variants:
            jobs += [(name, of, "float32", (2**24,), how) for name, of, how in VARIANTS]
        jobs += [(*job, {}) for job in LAST]
    only = given.only.split(",") if given.only else []
    for name, of, dtype, batches, how in jobs:
        if not only or f"{name}:{of}" in only:
            report.attempt(name, of, dtype, batches, variant=_in_words(how), **how)
    return report.finished()


def _in_words(how):
    """A variant in a few words."""
    layout = how.get("layout", Layout())
    changed = {k: v for k, v in asdict(layout).items() if v != getattr(Layout(), k)}
    return " ".join([*(f"{k}={v}" for k, v in changed.items()), *how.get("options", ())])


if __name__ == "__main__":
    sys.exit(main())
