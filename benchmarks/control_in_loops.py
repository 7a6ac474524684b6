"""Controllers and estimators in loops: with Python in every step, and in compiled code.

    python benchmarks/control_in_loops.py            nine repetitions
    python benchmarks/control_in_loops.py --quick    three

The sample quadruped stands on the ground under whole-body control, in steps of 1 ms; the same
controller is called by Python (as a function) and by the loop of steps. Impedance control of the
sample Panda is a plain function of NumPy arrays and kernels, and one kernel. Estimators take
readings of the standing quadruped. Times are those of the processor, the least of repetitions that
take turns; codes are warm, which takes some thousand calls.
"""

import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["KINETREE_OPTIMIZATION"] = "1"  # procedures are optimised at once

import numpy as np

import kinetree as kt
from kinetree.control import Contact, FrameTask, PostureTask, WholeBody
from kinetree.estimation import BaseFilter, MovingHorizon

DOG = kt.samples.quadruped()
HOME = DOG.posture("home").q
FEET = [f"{e}_{s}_foot" for e in ("front", "rear") for s in ("left", "right")]
STEPS = 400
ROUNDS = 3 if "--quick" in sys.argv else 9


def main():
    """Print all times."""
    kt.set_threads(1)
    for title, ways in (
        ("whole-body control of a standing quadruped, a step", in_contact()),
        ("two of them in a world, a step of both", in_a_world()),
        ("impedance control of a Panda, a call", impedance()),
        ("estimators of a quadruped, a reading", estimators()),
    ):
        print(title)
        for name, least in taking_turns(ways).items():
            print(f"    {name:42s} {least:8.1f} µs")


def taking_turns(ways):
    """Least time of each way [µs]: functions that return how often they did what is measured."""
    for way in (*ways.values(), *ways.values()):
        way()
    found = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            begin = time.process_time()
            count = way()
            found[name].append((time.process_time() - begin) / count * 1e6)
    return {name: min(times) for name, times in found.items()}


def stand(**options):
    """A trunk that goes down a little."""
    goal = kt.pose(DOG, HOME, "trunk")
    goal[2, 3] -= 0.02
    tasks = [FrameTask("trunk", goal, kp=100.0), PostureTask(HOME, kp=20.0, weight=1e-2)]
    return WholeBody(DOG, tasks, [Contact(foot, friction=0.6) for foot in FEET], **options)


def in_contact():
    """``simulate`` in rigid contact."""
    robot = kt.contact.with_ground(DOG)
    contact = kt.contact.TimeStepping(kt.contact.Scene(robot, "feet", friction=0.8))
    own, other = stand(), stand()

    def way(controller):
        def run():
            kt.simulate(robot, HOME, duration=STEPS * 1e-3, controller=controller, contact=contact)
            return STEPS

        return run

    return {
        "compiled": way(own),
        "called by Python": way(lambda t, q, qd: other(t, q, qd)),
        "without a controller": way(None),
    }


def in_a_world():
    """``World.step``."""
    own = [stand(joint_limits=False) for _ in range(2)]

    def way(controllers):
        def run():
            world = kt.World(timestep=1e-3)
            world.add_ground(friction=0.8)
            for k in range(2):
                world.add(DOG, name=f"dog {k}", q=HOME + k * np.eye(19)[1])
            world.step(STEPS, tau={f"dog {k}": c for k, c in enumerate(controllers)})
            return STEPS

        return run

    functions = [lambda t, q, qd, c=c: c(t, q, qd) for c in own]
    return {"compiled": way(own), "called by Python": way(functions)}


def impedance():
    """One law as a plain function and as a kernel."""
    m = kt.samples.panda()
    start = m.posture("home").q
    goal, q, qd = kt.pose(m, start, "tool"), start + 0.1, 0.1 * np.ones(m.nv)
    K, D = np.diag([6.0, 6, 6, 600, 600, 600]), np.diag([0.3, 0.3, 0.3, 60, 60, 60])

    def plain(t, q, qd):
        J = kt.jacobian(m, q, "tool", frame="aligned")
        error = kt.control.pose_error(kt.pose(m, q, "tool"), goal)
        return kt.bias_force(m, q, qd) + J.T @ (K @ error - D @ (J @ qd))

    @kt.kernel
    def compiled(m, q, qd, goal: (4, 4), K: (6, 6), D: (6, 6)):
        J = kt.jacobian(m, q, "tool", frame="aligned")
        error = kt.control.pose_error(kt.pose(m, q, "tool"), goal)
        return kt.bias_force(m, q, qd) + J.T @ (K @ error - D @ (J @ qd))

    def way(function):
        def run():
            for _ in range(5000):
                function()
            return 5000

        return run

    return {
        "kernel": way(lambda: compiled(m, q, qd, goal, K, D)),
        "plain function": way(lambda: plain(0.0, q, qd)),
    }


def estimators():
    """A filter, and windows of 15 intervals; and 100 robots at once."""
    still, up, rates = np.zeros(3), np.array([0.0, 0.0, 9.81]), np.zeros(12)

    def way(estimator, robots=1):
        estimator.reset(HOME)

        def run():
            for _ in range(300 // robots):
                estimator.step(still, up, HOME[7:], rates, np.ones(4))
            return 300 // robots * robots

        return run

    return {
        "filter": way(BaseFilter(DOG, FEET, 1e-3)),
        "filter, each of 100 robots": way(BaseFilter(DOG, FEET, 1e-3, batch=100), 100),
        "window of 15 intervals": way(MovingHorizon(DOG, FEET, 1e-3, window=15)),
    }


if __name__ == "__main__":
    main()
