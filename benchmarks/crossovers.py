"""The cheaper forward dynamics: by formulas of the book, by our counts, by the clock.

    python benchmarks/crossovers.py [--draw]

Chains of n revolute joints in general position: the articulated-body algorithm against inertia
matrix, factorisation and solution. RBDA §10.3 puts the crossover at n = 8, the ratio at 18 joints
to 1.64, and lets factorisation catch up with the inertia matrix at 45. ``--draw`` writes
docs/cost.png.
"""

import sys
import time
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.diagnosis.costs import operation_counts
from kinetree.diagnosis.published import best, crossover, forward_dynamics_cost
from kinetree.samples import chain

SIZES = (2, 4, 6, 8, 9, 10, 12, 15, 18)
BATCH = 4096
METHODS = ("aba", "crba")


def seconds(model, method, rng):
    """Time of one sample in a batch, the best of several runs."""
    q, qd, tau = rng.standard_normal((3, BATCH, model.nv))
    run = lambda: kt.forward_dynamics(model, q, qd, tau, method=method)  # noqa: E731
    run()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) / BATCH


def measure():
    """Rows ``n, published ratio, counted ratio, timed ratio``: inertia matrix over ABA."""
    kt.set_threads(1)
    rng, rows = np.random.default_rng(0), []
    for n in SIZES:
        model = chain(n)
        counts = operation_counts(model).texts
        counted = (
            counts["forward dynamics (CRBA, LTDL)"].total / counts["forward dynamics (ABA)"].total
        )
        aba, crba = (seconds(model, method, rng) for method in METHODS)
        published = forward_dynamics_cost(n).total / best("ABA", n).total
        rows.append((n, published, counted, crba / aba))
        print("{:4d}{:12.3f}{:12.3f}{:12.3f}".format(*rows[-1]), flush=True)
    return rows


def draw(rows, path):
    """Cost curves of the book, and the three ratios."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    n = np.arange(2, 51)
    for name in ("RNEA", "CRBA", "factorize and solve", "ABA"):
        left.plot(n, [best(name, k).total for k in n], label=name)
    matrix = [forward_dynamics_cost(k).total for k in n]
    left.plot(n, matrix, "k--", label="RNEA + CRBA + solve")
    left.set(yscale="log", xlabel="joints n", ylabel="operations", title="RBDA Fig. 10.4")
    left.legend()
    sizes, *ratios = map(np.array, zip(*rows, strict=True))
    labels = "published operations", "operations counted in our code", "time of our code"
    for ratio, label in zip(ratios, labels, strict=True):
        right.plot(sizes, ratio, "o-", label=label)
    right.axhline(1, color="grey", lw=0.8)
    right.set(xlabel="joints n", ylabel="inertia matrix / articulated bodies", title="Which wins")
    right.legend()
    figure.savefig(path, dpi=130)


def main():
    print(
        f"published crossover: n = {crossover(forward_dynamics_cost, lambda n: best('ABA', n)) - 1}"
    )
    print("   n   published     counted       timed")
    rows = measure()
    if "--draw" in sys.argv:
        draw(rows, Path(__file__).parent.parent / "docs" / "cost.png")


if __name__ == "__main__":
    main()
