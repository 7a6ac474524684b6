"""Sweeps of rollouts on 1 and 2 workers of Dask: cost, memory, a lost worker, resumption.

    python benchmarks/scale.py                    # a minute; --runs 200000 for more

Cost is CPU time of the workers for a million rollouts, which does not depend on what else the
machine does; wall times do. Every number that is printed was counted or measured in this run.
"""

import argparse
import logging
import os
import resource
import signal
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import kinetree as kt
from kinetree.benchmark import at_full_speed

at_full_speed()
STEPS, DT, CHUNK = 200, 5e-3, 500


def swing(model, start):
    """Trajectories of many starts in one compiled call."""
    motion = kt.rollout(model, start, steps=STEPS, dt=DT, store_every=2)
    return {"q": np.moveaxis(motion.q, 0, 1)}


def end(model, start):
    """Where many starts end, in one compiled call."""
    motion = kt.rollout(model, start, steps=STEPS, dt=DT, store_every=STEPS)
    return {"q": motion.q[-1]}


CASES = {
    "pendulum, ends": (kt.samples.double_pendulum, end),
    "arm, ends": (kt.samples.arm, end),
    "arm, motions": (kt.samples.arm, swing),
}


def main():
    """Print the tables of docs/scale.md."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=40_000)
    runs = parser.parse_args().runs
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    print("                          CPU s per million rollouts")
    print("case            workers  of workers  of this process  wall s")
    for name, (make, run) in CASES.items():
        for workers in (1, 2):
            with cluster_of(workers) as (_, client):
                measure(name, make(), run, runs, workers, client)
    with cluster_of(2) as (_, client), tempfile.TemporaryDirectory() as folder:
        memory(kt.samples.arm(), runs, client, Path(folder) / "memory")
        faults(kt.samples.arm(), runs // 4, client, Path(folder) / "faults")


class cluster_of:  # noqa: N801, a function to those who use it
    """A cluster of processes with one thread each, and its client."""

    def __init__(self, workers):
        self.workers = workers

    def __enter__(self):
        options = {"n_workers": self.workers, "threads_per_worker": 1, "dashboard_address": None}
        self.cluster = LocalCluster(**options)
        self.client = Client(self.cluster)
        return self.cluster, self.client

    def __exit__(self, *error):
        self.client.close()
        self.cluster.close()


def starts(model, runs):
    return np.random.default_rng(0).uniform(-1, 1, (runs, model.nq))


def sweep(model, q, client, run=swing, **options):
    return kt.sweep(
        model, run, samples={"start": q}, batched=True, client=client, chunk=CHUNK, **options
    )


def measure(name, model, run, runs, workers, client):
    """A row of the table; code is compiled and loaded before the clocks start."""
    sweep(model, starts(model, workers * 4 * CHUNK), client, run, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        before, own, begin = client.run(time.process_time), time.process_time(), time.perf_counter()
        sweep(model, starts(model, runs), client, run, progress=False, folder=Path(folder) / "s")
        wall, own = time.perf_counter() - begin, time.process_time() - own
        after = client.run(time.process_time)
    spent = sum(after.values()) - sum(before.values())
    each = f"{spent / runs * 1e6:10.0f}  {own / runs * 1e6:15.0f}"
    print(f"{name:14s}  {workers:7d}  {each}  {wall:6.1f}", flush=True)


def memory(model, runs, client, folder):
    """Memory of this process, with results in a folder, beside their size."""
    q = starts(model, runs)
    before = peak()
    found = sweep(model, q, client, folder=folder, progress=False)
    total, size = 0.0, 0
    for _, part in found.batches("q"):
        total, size = total + part["q"].sum(), size + part["q"].nbytes
    print(
        f"{size / 1e6:.0f} MB of results (sum {total:.6g}), {folder_size(folder) / 1e6:.0f} MB on "
        f"disk; this process grew by {peak() - before:.0f} MB"
    )


def faults(model, runs, client, folder):
    """A worker is killed; then this process stops halfway, and goes on."""
    q, killed = starts(model, runs), []

    def kill(done, total):
        if done >= total // 3 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    found = sweep(model, q, client, folder=folder, progress=kill)
    print(f"killed worker {killed[0]}: {len(found)} of {runs} runs, {len(found.failed)} failed")
    again = folder.with_name("again")

    def stop(done, total):
        if done >= total // 2:
            raise KeyboardInterrupt

    try:
        sweep(model, q, client, folder=again, progress=stop)
    except KeyboardInterrupt:
        kept = len(list(again.glob("chunk-*.npz")))
    rest = []
    second = sweep(model, q, client, folder=again, progress=lambda done, total: rest.append(done))
    same = all(
        np.array_equal(a["q"], b["q"])
        for (_, a), (_, b) in zip(found.batches(), second.batches(), strict=True)
    )
    print(
        f"stopped after {kept} of {runs // CHUNK} parts; the second call began at run "
        f"{min(rest)}; results of both sweeps have the same bits: {same}"
    )


def peak():
    """Largest resident memory of this process so far [MB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def folder_size(folder):
    return sum(file.stat().st_size for file in folder.iterdir())


if __name__ == "__main__":
    warnings.simplefilter("ignore", ResourceWarning)
    main()
