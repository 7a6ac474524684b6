"""``make bench``: kinetree against Pinocchio and MuJoCo, the first result, and how both grow.

Writes benchmarks/results.json and docs/speed.png. Needs a quiet machine and a few minutes; ratios
hold from machine to machine, times do not.

    python benchmarks/run.py              everything
    python benchmarks/run.py --quick      small batches of two robots, no growth
"""

import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import asdict
from importlib.metadata import distribution, version
from pathlib import Path

import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

import kinetree as kt
from kinetree.benchmark import compare, compare_mujoco

HERE = Path(__file__).parent
ROBOTS = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", False),
    "Panda": ("panda_description/urdf/panda.urdf", False),
    "ANYmal": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "Talos": ("talos_data/robots/talos_reduced.urdf", True),
}
BATCHES = (1, 16, 256, 4096, 65536)
CHAINS = (10, 30, 100, 300, 1000)


def main():
    quick = "--quick" in sys.argv
    robots = ("UR5", "ANYmal") if quick else tuple(ROBOTS)
    report = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "pinocchio": pin.__version__,
    }
    kt.set_threads(1)
    batches = BATCHES[:3] if quick else BATCHES
    report["ratios"] = {name: ratios(name, batches) for name in robots}
    if importlib.util.find_spec("mujoco"):
        report["mujoco version"] = version("mujoco")
        report["mujoco"] = {name: mujoco_ratios(name, batches) for name in robots}
    report["first"] = {name: first_result(name) for name in robots}
    if not quick:
        report["threads"] = {name: thread_gain(name) for name in ("UR5", "Talos")}
        report["growth"] = growth()
        (HERE / "results.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {HERE / 'results.json'} and {draw(report['ratios'])}")


def robot(name):
    """A Pinocchio model of example-robot-data, which ships data only."""
    path, floating = ROBOTS[name]
    files = distribution("example-robot-data").files or []
    match = next(f for f in files if str(f).endswith(f"robots/{path}"))
    return pin.buildModelFromUrdf(
        str(match.locate()), *([pin.JointModelFreeFlyer()] if floating else [])
    )


def mechanism(name):
    """The robot for kinetree; damping, which neither side uses here, is left behind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.ModelWarning)
        return kt.interop.pinocchio.from_model(robot(name))


def ratios(name, batches):
    """Times of kinetree and Pinocchio, for every function and batch size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.ModelWarning)
        results = [asdict(r) for r in compare(robot(name), batches)]
    return shown(f"{name}: times faster than Pinocchio, one thread (spread)", results, batches)


def mujoco_ratios(name, batches):
    """Times of kinetree and MuJoCo, whose Python calls take one sample each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.ModelWarning)
        try:
            results = [asdict(r) for r in compare_mujoco(mechanism(name), batches)]
        except kt.errors.InteropError as error:
            print(f"{name}: {error}")
            return []
    return shown(f"{name}: times faster than MuJoCo, one thread (spread)", results, batches)


def shown(title, results, batches):
    """The results, after printing them as a table."""
    table = Table(title=title)
    table.add_column("function")
    for n in batches:
        table.add_column("single call" if n == 1 else f"batch {n}", justify="right")
    table.add_column("largest error", justify="right")
    for function in dict.fromkeys(r["function"] for r in results):
        rows = [r for r in results if r["function"] == function]
        cells = [f"{r['ratio']:.1f} ({100 * r['spread']:.0f} %)" for r in rows]
        cells += ["too large"] * (len(batches) - len(cells))
        table.add_row(function, *cells, f"{max(r['error'] for r in rows):.0e}")
    Console(width=120).print(table)
    return results


FIRST = """
import json, sys, time
sys.path.insert(0, {here!r})
import run
m = run.mechanism({name!r})
import numpy as np, kinetree as kt
q, v = m.neutral(), np.zeros(m.nv)
start = time.perf_counter()
kt.inverse_dynamics(m, q, v, v)
print(json.dumps(time.perf_counter() - start))
"""


def first_result(name):
    """Seconds to the first inverse dynamics in a new process: cold, then from the disk cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "KINETREE_CACHE": folder}
        script = FIRST.format(here=str(HERE), name=name)
        command = [sys.executable, "-c", script]
        times = [
            json.loads(
                subprocess.run(
                    command, env=environment, capture_output=True, text=True, check=True
                ).stdout
            )
            for _ in range(4)
        ]
    print(f"{name}: first result {times[0]:.3f} s cold, {min(times[1:]):.3f} s from the cache")
    return {"cold": times[0], "cached": min(times[1:])}


def thread_gain(name):
    """How much faster two threads are than one, on a batch of 65536."""
    m, n = mechanism(name), 65536
    rng = np.random.default_rng(0)
    q = np.array([m.random_configuration(rng) for _ in range(256)])
    q = np.tile(q, (n // 256, 1))
    v, x = rng.standard_normal((2, n, m.nv))
    times = {}
    for count in (1, 2):
        kt.set_threads(count)
        kt.inverse_dynamics(m, q, v, x)
        samples = []
        for _ in range(7):
            start = time.perf_counter()
            kt.inverse_dynamics(m, q, v, x)
            samples.append(time.perf_counter() - start)
        times[count] = min(samples)
    kt.set_threads(1)
    print(f"{name}: two threads are {times[1] / times[2]:.2f} times as fast as one")
    return times[1] / times[2]


def growth():
    """Compile time and run time of chains of 10 to 1,000 bodies."""
    rows = []
    os.environ["KINETREE_CACHE"] = "off"
    for n in CHAINS:
        m = kt.samples.chain(n)
        rng = np.random.default_rng(0)
        q, v, x = rng.standard_normal((3, 64, n))
        row = {"bodies": n}
        for name, function in (("RNEA", kt.inverse_dynamics), ("ABA", kt.forward_dynamics)):
            start = time.perf_counter()
            function(m, q, v, x)
            row[f"{name} first"] = time.perf_counter() - start
            samples = []
            for _ in range(7):
                start = time.perf_counter()
                function(m, q, v, x)
                samples.append((time.perf_counter() - start) / 64)
            row[name] = min(samples)
        rows.append(row)
        print(
            f"{n:5d} bodies: first RNEA {row['RNEA first']:.2f} s, ABA {row['ABA first']:.2f} s; "
            f"then {1e6 * row['RNEA']:.2f} and {1e6 * row['ABA']:.2f} µs a sample"
        )
    return rows


def draw(results, batch=4096):
    """The figure in the README: times faster than Pinocchio, per robot and function."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    functions = list(dict.fromkeys(r["function"] for r in next(iter(results.values()))))
    figure, panels = plt.subplots(3, 1, figsize=(10, 9), layout="constrained")
    titles = {batch: f"batch of {batch}", 16: "batch of 16", 1: "single call from Python"}
    for axes, (n, title) in zip(panels, titles.items(), strict=True):
        width = 0.8 / len(results)
        for k, (name, rows) in enumerate(results.items()):
            by_function = {r["function"]: r["ratio"] for r in rows if r["batch"] == n}
            places = np.arange(len(functions)) + (k - (len(results) - 1) / 2) * width
            axes.bar(places, [by_function.get(f, np.nan) for f in functions], width, label=name)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_xticks(range(len(functions)), functions, rotation=20)
        axes.set_title(title)
        axes.set_yscale("log", subs=[])
        axes.set_yticks([1, 2, 5, 10, 20, 50, 100], labels=map(str, [1, 2, 5, 10, 20, 50, 100]))
        axes.set_ylim(0.8)
        axes.grid(axis="y", alpha=0.3)
        axes.set_ylabel("times faster than Pinocchio")
    panels[0].legend()
    path = HERE.parent / "docs" / "speed.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main()
