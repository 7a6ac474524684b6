"""Contact that can be trusted? Scenes judged from outside, by geometry and mechanics in NumPy.

    python benchmarks/contact_truth.py                       all scenes by name, as a table
    python benchmarks/contact_truth.py --list                their names
    python benchmarks/contact_truth.py --only gripper        those whose name contains a word
    python benchmarks/contact_truth.py --scenes 200 --seed 0 random scenes instead
    python benchmarks/contact_truth.py --balls 200           50 balls in a box, of 200 seeds
    python benchmarks/contact_truth.py --json FILE           all figures, also those of single steps
    python benchmarks/contact_truth.py --heaps 3             times of 3 heaps, one thread and all
    python benchmarks/contact_truth.py --jobs 16 --balls 200 --heaps 3 --scenes 208 --seconds 380
                                                             motions at once, see truth/at_once.py

Columns are the worst of all steps: the true overlap at the end of a step; the velocity that the
laws of contact want at a contact and do not get; the velocity of bodies that contact forces do not
explain; friction beyond its cone; energy gained; the verdict: right, reported (wrong, and the
report of the step or a warning shows it) or silent. How they are measured: ``truth/judge.py``.
"""

import argparse
import json
import sys
import time
import traceback
from pathlib import Path

import wide
from truth import at_once, grasps, large, laws, piles, starts, surfaces  # noqa: F401  (scenes)
from truth.random_scenes import random_results
from truth.registry import ROWS
from truth.verdict import HEAD, UNITS, Result

import kinetree as kt


def run(name) -> Result:
    """Result of a scene; an error is one, too."""
    start = time.perf_counter()
    try:
        result = ROWS[name]()
    except Exception as error:  # an error is a result
        traceback.print_exc(file=sys.stderr)
        result = Result(name, figure=f"{type(error).__name__}: {error}", fine=False)
    result.numbers["seconds"] = time.perf_counter() - start
    return result


def main():
    """Run the selected scenes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="scenes whose name contains this")
    parser.add_argument("--list", action="store_true", help="names of the scenes")
    parser.add_argument("--json", default=None, help="file for all figures")
    parser.add_argument("--scenes", type=int, default=0, help="number of random scenes instead")
    parser.add_argument("--balls", type=int, default=0, help="number of seeds of 50 balls instead")
    parser.add_argument("--seed", type=int, default=0, help="the first of them")
    parser.add_argument("--heaps", type=int, default=0, help="number of heaps, beside mj_step")
    parser.add_argument("--jobs", type=int, default=0, help="motions at once, and a short table")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which none begins")
    args = parser.parse_args()
    if args.jobs:
        counts = {name: getattr(args, name) for name in ("balls", "heaps", "scenes")}
        at_once.run(counts, args.seed, args.jobs, args.seconds, args.json)
        return
    if args.heaps:
        wide.show_heaps(range(1 + args.seed, 1 + args.seed + args.heaps), args.seconds)
        return
    if args.list:
        print("\n".join(ROWS))
        return
    kt.set_threads(1)  # times are those of the calling thread
    names = [name for name in ROWS if args.only.lower() in name.lower()]
    runs = map(run, names)
    if args.scenes:
        runs = random_results(args.scenes, args.seed)
    elif args.balls:
        runs = map(piles.balls_of, range(args.seed, args.seed + args.balls))
    head = [a + b for a, b in zip(HEAD, UNITS, strict=True)]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    results = []
    for result in runs:
        results.append(result)
        print(result.row(), flush=True)
        if args.json:
            found = [r.as_dict() for r in results]
            Path(args.json).write_text(json.dumps(found, indent=1, default=float))
    silent = [r.name for r in results if r.silent]
    print(f"\n{len(results)} scenes, {len(silent)} wrong in silence: {', '.join(silent) or 'none'}")


if __name__ == "__main__":
    main()
