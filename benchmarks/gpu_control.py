"""Plans of many robots on a GPU: the problem of ``contact_phases.py``, knots side by side.

    python benchmarks/gpu_control.py            1, 64, 1,024 and 4,096 plans
    python benchmarks/gpu_control.py --quick    1,024 alone
    python benchmarks/gpu_control.py --stages   1,024 alone, and what each stage takes

The sample quadruped trots, 50 steps of 20 ms with whole-body dynamics and friction cones. Every
plan starts from a state near one that is planned for already, all from the same or each from
another, and takes one iteration, as in predictive control. Times are those of events on the device:
of a whole call of ``solve`` with its guess and its result on the device, and of an iteration alone,
half of what three take more than one. Plans are compared with those of the CPU, number by number.
"""

import sys
import time
from functools import partial

import cupy as cp
import numpy as np

import kinetree as kt
from kinetree.control import MPC, QuadraticCost, trot
from kinetree.control.on_device import IterationsOnDevice
from kinetree.control.starts import as_guess

DT, STEPS = 0.02, 50
SPEED, EFFORT, ROOT, POSTURE = 0.1, 1e-2, 100.0, 10.0  # weights of costs
FREE = {"effort_limits": None, "position_limits": None, "velocity_limits": None}
REPEATS = 7
COMPARED = 16  # plans
NEAR = 0.01  # of the start that was planned for, in every variable


def quadruped():
    """The problem, a motion that solves it from the home posture, and the model."""
    m = kt.samples.load("quadruped")
    start, goal = m.posture("home").q, m.posture("home").q.copy()
    goal[0] += 0.15
    feet = [f"{e}_{s}_foot" for e in ("front", "rear") for s in ("left", "right")]
    given = {
        "steps": STEPS,
        "dt": DT,
        "phases": trot(feet, swing=0.2, stand=0.04, lift=0.06, ground=0.02),
        "actuated": m.joint_names[1:],
        "friction": None,
        "running": QuadraticCost(
            q=goal,
            position=np.r_[np.full(6, ROOT), np.full(m.nv - 6, POSTURE)],
            velocity=SPEED,
            effort=EFFORT,
        ),
        **FREE,
    }
    found = kt.control.optimize(m, start, tolerance=1e-5, **given)
    return m, MPC(m, tolerance=1e-9, limit_penalty=None, **given).problem, found


def starts_near(m, found, count, alike=False):
    """States near the start of a motion, (count, nq) and (count, nv); ``alike``: all the same."""
    rng = np.random.default_rng(7)
    q, qd = np.tile(found.q[0], (count, 1)), np.tile(found.qd[0], (count, 1))
    change = (
        np.full((2, count, m.nv), NEAR) if alike else rng.uniform(-NEAR, NEAR, (2, count, m.nv))
    )
    return m.integrate(q, change[0]), qd + change[1]


def time_of(call):
    """Milliseconds of a call on the device, all repetitions."""
    found = []
    call()
    for _ in range(REPEATS):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        call()
        end.record()
        end.synchronize()
        found.append(cp.cuda.get_elapsed_time(begin, end))
    return np.array(found)


def print_stages(problem, q, qd, guess):
    """Times of the stages of one call: each launch between two events, summed by name."""
    took, take = {}, IterationsOnDevice._take

    def take_one_by_one(self, sequence, wanted):
        for stage in sequence(self.batch, self._work):
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            begin.record()
            self._launch([stage], wanted)
            end.record()
            end.synchronize()
            parts = stage.what if isinstance(stage.what, tuple) else (stage.what,)
            key = wanted, ", ".join(getattr(x, "kernel", x).name for x in parts)
            took.setdefault(key, []).append(cp.cuda.get_elapsed_time(begin, end))

    IterationsOnDevice._take = take_one_by_one
    problem.solve(q, qd, guess=guess, iterations=1)
    took.clear()
    problem.solve(q, qd, guess=guess, iterations=1)
    IterationsOnDevice._take = take
    for (wanted, name), found in took.items():
        print(
            f"    {wanted:2} {name:40} {len(found):4} launches {sum(found):8.3f} ms, the first "
            f"{found[0]:.3f}"
        )
    print(f"    all stages: {sum(map(sum, took.values())):.2f} ms", flush=True)


def main():
    """Print the differences from the CPU, then times."""
    m, problem, found = quadruped()
    guess = {
        name: tuple(map(cp.asarray, x)) if isinstance(x, tuple) else cp.asarray(x)
        for name, x in as_guess(found).items()
    }
    print(cp.cuda.runtime.getDeviceProperties(0)["name"].decode(), flush=True)
    began = time.perf_counter()
    few = [cp.asarray(x) for x in starts_near(m, found, COMPARED)]
    on_gpu = problem.solve(*few, guess=guess, iterations=2)
    cp.cuda.runtime.deviceSynchronize()
    print(f"first call, cold: {time.perf_counter() - began:.1f} s", flush=True)
    on_cpu = problem.solve(*starts_near(m, found, COMPARED), guess=as_guess(found), iterations=2)
    for name in ("q", "qd", "tau", "gains", "cost", "gap"):
        a, b = getattr(on_cpu, name), getattr(on_gpu, name).get()
        print(f"    {name}: {np.abs(a - b).max() / np.abs(a).max():.1e} of the largest", flush=True)
    quick = "--quick" in sys.argv or "--stages" in sys.argv
    if "--stages" in sys.argv:
        print_stages(problem, *(cp.asarray(x) for x in starts_near(m, found, 1024)), guess)
    for count in (1024,) if quick else (1, 64, 1024, 4096):
        for alike in (True, False):
            q, qd = (cp.asarray(x) for x in starts_near(m, found, count, alike))
            one, three = (
                time_of(partial(problem.solve, q, qd, guess=guess, iterations=k)) for k in (1, 3)
            )
            each = (np.median(three) - np.median(one)) / 2
            print(
                f"{count} plans, {'one start' if alike else 'other starts'}: a call with one "
                f"iteration {one.min():.2f} ms (median {np.median(one):.2f}), an iteration "
                f"{each:.2f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
