"""Ten thousand simulations on a local cluster of two workers, one of which is killed midway.

    python benchmarks/sweep.py [runs]

Prints how long it took, which worker died, and whether every run is there once with the result that
it has on one thread of this process.
"""

import logging
import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import kinetree as kt
from kinetree.benchmark import at_full_speed

at_full_speed()


def swing(model, start, rng):
    """One run: a double pendulum swings for half a second, pushed by its own noise."""
    push = 0.1 * rng.standard_normal(model.nv)
    motion = kt.simulate(
        model, start, duration=0.5, dt=1e-2, controller=lambda t, q, qd: push - 0.1 * qd
    )
    return {"end": motion.q[-1], "error": motion.report.energy_error, "process": os.getpid()}


def main(runs):
    model = kt.samples.double_pendulum()
    starts = np.random.default_rng(0).uniform(-1, 1, (runs, 2))
    killed = []
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
        tempfile.TemporaryDirectory() as folder,
    ):

        def kill_midway(done, total):
            if done >= total // 2 and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        begin = time.perf_counter()
        found = kt.sweep(
            model, swing, samples={"start": starts}, seed=7, client=client,
            folder=Path(folder) / "sweep", progress=kill_midway,
        )  # fmt: skip
        taken = time.perf_counter() - begin
        ends, processes = found["end"], found["process"].astype(int)
        worst = np.max(found["error"])
    print(f"{runs} runs in {taken:.1f} s, {1e3 * taken / runs:.2f} ms a run")
    print(f"killed process {killed[0]}; it had finished {np.sum(processes == killed[0])} runs")
    for process in np.unique(processes):
        print(f"process {process}: {np.sum(processes == process)} runs")
    print(f"runs: {len(ends)}, failed: {len(found.failed)}, missing: {np.isnan(ends).any(1).sum()}")
    print(f"largest energy error: {worst:.1e} of what is exchanged")

    some = np.linspace(0, runs - 1, min(runs, 200)).astype(int)
    same = 0
    for i in some:
        rng = np.random.default_rng(int(found.seeds[i]))
        same += np.array_equal(swing(model, starts[i], rng)["end"], ends[i])
    print(f"same as in this process: {same} of {len(some)} looked at")
    return len(ends) == runs and not found.failed and same == len(some)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ResourceWarning)
    sys.exit(0 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000) else 1)
