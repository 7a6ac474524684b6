"""Code for every robot against Pinocchio and against code specialised for one robot.

The same states go to all three in one process, one thread; each tier is timed in turns with
Pinocchio and its answers are compared with Pinocchio's. First answers in new processes, long chains
and memory are in first_answers.py.

    python benchmarks/general_tier.py                     UR5, ANYmal, Talos: single calls, 4,096
    python benchmarks/general_tier.py --all               every function that has a peer
    python benchmarks/general_tier.py --general           without compiling for each robot
"""

import sys
import warnings

from rich.console import Console
from rich.table import Table
from run import robot

import kinetree as kt
from kinetree.benchmark import FUNCTIONS, is_too_large, measure, peer_cases

GOALS = {1: 0.8, 4096: 4.0}  # times Pinocchio


def main():
    """Measure and print."""
    warnings.simplefilter("ignore", kt.ModelWarning)
    kt.set_threads(1)
    functions = FUNCTIONS if "--all" in sys.argv else ("RNEA", "ABA")
    tiers = ("general",) if "--general" in sys.argv else ("general", "specialised")
    missed = []
    for name in ("UR5", "ANYmal", "Talos"):
        table = Table(title=f"{name}: µs a sample, and times faster than Pinocchio (spread)")
        for column in ("function", "samples", "Pinocchio", *tiers, "largest error"):
            table.add_column(column, justify="left" if column == "function" else "right")
        for row in rows(name, functions, tiers):
            function, n, results = row
            table.add_row(function, f"{n}", *cells(results))
            if results["general"].ratio < GOALS[n] and function in ("RNEA", "ABA"):
                missed.append(f"{name} {function} {n}: {results['general'].ratio:.2f}")
        Console(width=110).print(table)
    print("goals missed:", ", ".join(missed) or "none")


def rows(name, functions, tiers):
    """Function, samples, and results by tier."""
    peer = robot(name)
    models = {tier: kt.interop.pinocchio.from_model(peer) for tier in tiers}  # code stays with one
    for n in GOALS:
        cases = {tier: peer_cases(model, peer, n) for tier, model in models.items()}
        for function in functions:
            if function in cases["general"] and not is_too_large(models["general"], function, n):
                results = {}
                for tier in tiers:
                    with kt.tier(tier):
                        results[tier] = measure(function, n, cases[tier][function], repeats=9)
                yield function, n, results


def cells(results):
    """A row of the table."""
    found = [f"{1e6 * min(r.peer for r in results.values()):.3f}"]
    for r in results.values():
        found.append(f"{1e6 * r.ours:.3f}: {r.ratio:.1f} ({100 * r.spread:.0f} %)")
    return [*found, f"{max(r.error for r in results.values()):.0e}"]


if __name__ == "__main__":
    main()
