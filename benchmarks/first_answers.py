"""How long the first answer takes: every public function, simulations, large mechanisms.

    python benchmarks/first_answers.py [words of the names of rows to measure]

Each row is measured in a new process that has imported kinetree and built the model. The
cache has seen other robots (a quadruped, an arm, a four-bar linkage) and not this one. CPU seconds
of the whole process, wall seconds beside them; peak memory where it matters.
"""

import json
import os
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
warnings.simplefilter("ignore")

_SAMPLES = 2  # that the arguments of public functions are made of


def forked(work):
    """What ``work()`` returns in a child process, which then exits."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        try:
            found = work()
        except Exception as error:
            found = f"{type(error).__name__}: {error}"[:70]
        os.write(writer, json.dumps(found).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.wait()
    return json.loads(data)


def timed(work):
    """CPU and wall seconds, and the peak of memory [MB]."""

    def measure():
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return cpu, wall, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    return forked(measure)


def sample_of(arguments):
    """The first sample of a batch of arguments."""
    import numpy as np

    def of(x):
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*map(of, x))
        return x[0] if np.ndim(x) and len(x) == _SAMPLES else x

    return {name: of(x) for name, x in arguments.items()}


def function_rows(model):
    """Every public function of a model and arrays, by name."""
    import numpy as np
    from support.public_calls import States

    from kinetree.quantities import FUNCTIONS

    states = States(model, _SAMPLES, np.random.default_rng(0))
    for name, function in FUNCTIONS.items():
        arguments = sample_of(states.arguments(function))
        yield name, lambda f=function, a=arguments: f(model, **a)


def other_rows(model):
    """Derivatives and motions."""
    import numpy as np

    import kinetree as kt

    q, v = model.neutral(), np.zeros(model.nv)
    for function in (kt.inverse_dynamics, kt.forward_dynamics):
        name = f"derivatives of {function.__name__}"
        yield name, lambda f=function: kt.differentiate(f, wrt=("q", "qd"))(model, q, v, v)
    yield "simulate", lambda: kt.simulate(model, q, duration=0.1)
    yield "rollout", lambda: kt.rollout(model, np.array([q, q]), steps=50)


def rows():
    """Name, goal in seconds, work."""
    import numpy as np

    import kinetree as kt

    humanoid, stewart = kt.samples.humanoid(), kt.samples.stewart()
    for name, work in function_rows(humanoid):
        yield f"humanoid {name}", 0.3, work
    for name, work in other_rows(humanoid):
        yield f"humanoid {name}", 0.6 if "derivatives" in name else 0.8, work
    start = kt.loops.assemble(stewart)
    yield "stewart simulate", 1.5, lambda: kt.simulate(stewart, start, duration=0.1)
    for n, goal in ((1_000, 2.0), (10_000, 10.0)):
        z = np.zeros(n)
        for name in ("inverse_dynamics", "forward_dynamics"):
            function = getattr(kt, name)
            yield (
                f"chain of {n:,} {name}",
                goal,
                lambda f=function, n=n, z=z: f(kt.samples.chain(n), z, z, z),
            )


def see_other_robots():
    """Fill the cache with what other robots need."""
    import kinetree as kt

    for model in (kt.samples.quadruped(), kt.samples.panda(), kt.samples.four_bar()):
        for rows in (function_rows, other_rows):
            for _, work in rows(model):
                try:
                    work()
                except kt.KinetreeError:
                    continue  # not defined for this robot


def main():
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KINETREE_CACHE"] = folder
        sys.dont_write_bytecode, sys.pycache_prefix = (
            False,
            folder,
        )  # as an installed package has it
        os.environ["KINETREE_PROGRESS"] = "0"
        failed = forked(see_other_robots)
        if failed:
            sys.exit(f"other robots: {failed}")
        missed, measured = [], 0
        for name, goal, work in rows():
            if not all(word in name for word in sys.argv[1:]):
                continue
            found = timed(work)
            if isinstance(found, str):
                print(f"{name:55} {found}")
                continue
            cpu, wall, memory = found
            measured += 1
            if cpu > goal:
                missed.append(name)
            late = "" if cpu <= goal else f"  over {goal} s"
            print(
                f"{name:55} {cpu:6.2f} s CPU {wall:6.2f} s wall {memory:6.0f} MB{late}", flush=True
            )
        print(f"{measured} first answers, {len(missed)} later than their goal")


if __name__ == "__main__":
    main()
