"""How long first answers take: every public function, derivatives, motions, samples, real robots.

    python benchmarks/first_answers.py [words of the names of rows to measure]

Each row is measured in its own process, which has imported kinetree and built the model. The
cache has seen other robots, as ``kinetree warm-up`` leaves it, and not this one. CPU seconds of the
whole process. Rows above ``GOAL`` are printed with what was compiled for this robot, which is the
reason; ``-v`` prints all rows.
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

GOAL = 1.0  # [s]
GOALS = {"1,000": 2.0, "10,000": 10.0}  # for rows with these words
SAMPLES = ("humanoid", "ur5", "scara", "satellite", "hopping_leg", "cart_pole", "gyroscope")
LINKAGES = ("five_bar", "slider_crank", "delta", "excavator", "bennett")
REAL = (
    "tiago", "talos_full_v2", "icub", "hyq_no_sensors", "solo12", "ur10_robot", "kinova",
    "romeo_small", "allegro_right_hand", "baxter", "iris_simple",
)  # fmt: skip
"""Names of URDF files of example-robot-data."""
_COUNT = 2  # samples that the arguments of public functions are made of


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
    """CPU and wall seconds, the peak of memory [MB], and what was compiled."""

    def measure():
        compiled = watched()
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return cpu, wall, memory, compiled[:6]

    return forked(measure)


def watched():
    """A list to which what is compiled from now on is added, with its CPU seconds."""
    from kinetree.codegen import build

    found, specialised, general = [], build._compiled, build.compiled_programs

    def one(kernel, *arguments):
        start = time.process_time()
        code = specialised(kernel, *arguments)
        found.append(f"{kernel.name} {time.process_time() - start:.2f} s")
        return code

    def several(texts):
        start = time.process_time()
        codes = general(texts)
        found.append(f"{len(texts)} units {time.process_time() - start:.2f} s")
        return codes

    build._compiled, build.compiled_programs = one, several
    return found


def sample_of(arguments):
    """The first sample of a batch of arguments."""
    import numpy as np

    def of(x):
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*map(of, x))
        return x[0] if np.ndim(x) and len(x) == _COUNT else x

    return {name: of(x) for name, x in arguments.items()}


def function_rows(model):
    """Every public function of a model and arrays, by name: one sample, and a batch."""
    import numpy as np
    from support.public_calls import States

    from kinetree.quantities import FUNCTIONS

    states = States(model, _COUNT, np.random.default_rng(0))
    for name, function in FUNCTIONS.items():
        batch = states.arguments(function)
        one = sample_of(batch)
        yield name, lambda f=function, a=one: f(model, **a)
        yield f"{name}, batch", lambda f=function, a=batch: f(model, **a)


def derivative_rows(model, q, v):
    """Derivatives by states and parameters, along and against."""
    import kinetree as kt

    for function in (kt.inverse_dynamics, kt.forward_dynamics):
        d = kt.differentiate(function, wrt=("q", "qd"))
        yield f"derivatives of {function.__name__}", lambda d=d: d(model, q, v, v)
        d = kt.differentiate(function, wrt=f"inertia:{model.body_names[-1]}")
        yield f"{function.__name__} by an inertia", lambda d=d: d(model, q, v, v)
    push = kt.jvp(kt.forward_dynamics, wrt="q")
    yield "jvp of forward_dynamics", lambda: push(model, q, v, v, tangents=v)
    yield "linearize", lambda: kt.linearize(model, q, v, v)


def motion_rows(model, q, v):
    """Simulations, rollouts and their gradients, worlds."""
    import numpy as np

    import kinetree as kt

    @kt.kernel
    def cost(m, q, qd):
        return q @ q + qd @ qd

    yield "simulate", lambda: kt.simulate(model, q, duration=0.1)
    yield (
        "simulate, implicit",
        lambda: kt.simulate(model, q, duration=0.02, integrator="implicit_midpoint"),
    )
    yield "rollout", lambda: kt.rollout(model, np.array([q, q]), steps=50)
    yield "rollout_gradient", lambda: kt.rollout_gradient(model, q, steps=5, terminal=cost)
    yield "World.step", lambda: world_of(model).step(1)
    yield "check", lambda: kt.check(model)


def world_of(model):
    """A world with a robot."""
    import kinetree as kt

    world = kt.World()
    world.add(model)
    return world


def loop_rows(model, q, v):
    """Functions of closed chains."""
    import kinetree as kt

    yield "assemble", lambda: kt.loops.assemble(model)
    yield "mobility", lambda: kt.loops.mobility(model, q)
    yield "null_space", lambda: kt.loops.null_space(model, q, v)
    yield "loops.inverse_dynamics", lambda: kt.loops.inverse_dynamics(model, q, v, v)


def real_robots():
    """Robots of example-robot-data that are here, by name."""
    from support import example_robots

    import kinetree as kt

    for name in REAL:
        path = next(iter(sorted(example_robots.ROOT.rglob(f"{name}.urdf"))), None)
        if path is not None:
            yield name, kt.load(path)


def rows_of(name, model):
    """All rows of a robot."""
    import numpy as np

    import kinetree as kt

    q, v = model.neutral(), np.zeros(model.nv)
    if model.loops:
        q = kt.loops.assemble(model)
        rows = (derivative_rows, motion_rows, loop_rows)
    else:
        rows = (derivative_rows, motion_rows)
    for what, work in function_rows(model):
        yield f"{name} {what}", work
    for each in rows:
        for what, work in each(model, q, v):
            yield f"{name} {what}", work


def contact_rows():
    """Other numbers of a scene whose robot is known."""
    import kinetree as kt

    robot = kt.samples.quadruped()
    first = robot.body_names[1]
    heavier = robot.replace(inertia={first: robot.inertia[1] * 1.1})
    yield "quadruped World.step", lambda: world_of(robot).step(1)
    yield "quadruped of another mass World.step", lambda: world_of(heavier).step(1)
    q = robot.neutral()
    for what, model, friction in (
        ("of a quadruped", robot, 0.8),
        ("of other friction", robot, 0.3),
        ("of another mass", heavier, 0.8),
    ):
        scene = kt.contact.Scene(kt.contact.with_ground(model), friction=friction)
        contact = kt.contact.TimeStepping(scene)
        yield (
            f"contact {what} simulate",
            lambda m=scene.model, c=contact: kt.simulate(m, q, duration=0.02, contact=c),
        )


def rows():
    """Name and work."""
    import numpy as np

    import kinetree as kt

    for name in (*SAMPLES, *LINKAGES):
        yield from rows_of(name, getattr(kt.samples, name)())
    for name, model in real_robots():
        yield from rows_of(name, model)
    yield from contact_rows()
    long = kt.samples.chain(1_000)
    yield "chain of 1,000 simulate", lambda: kt.simulate(long, np.zeros(1_000), duration=0.1)
    for n in (1_000, 10_000):
        z = np.zeros(n)
        for name in ("inverse_dynamics", "forward_dynamics"):
            function = getattr(kt, name)
            yield (
                f"chain of {n:,} {name}",
                lambda f=function, n=n, z=z: f(kt.samples.chain(n), z, z, z),
            )


def see_other_robots():
    """Fill the cache with what other robots need."""
    from kinetree.cli import warm_up
    from kinetree.codegen.procedures.improving import improve_now

    for job in warm_up.jobs():
        job()
    improve_now()


def main():
    """Measure and print."""
    words = [word for word in sys.argv[1:] if word != "-v"]
    with tempfile.TemporaryDirectory() as own:
        folder = os.environ.get("FIRST_ANSWERS_CACHE", own)
        os.environ["KINETREE_CACHE"] = folder
        # as an installed package has it
        sys.dont_write_bytecode, sys.pycache_prefix = False, folder
        os.environ["KINETREE_PROGRESS"] = "0"
        failed = forked(see_other_robots)
        if failed:
            sys.exit(f"other robots: {failed}")
        late, measured, refused = [], 0, 0
        for name, work in rows():
            if not all(word in name for word in words):
                continue
            found = timed(work)
            if isinstance(found, str):
                refused += 1  # not defined for this robot
                if "-v" in sys.argv:
                    print(f"{name:60} {found}", flush=True)
                continue
            cpu, wall, memory, compiled = found
            measured += 1
            goal = next((g for word, g in GOALS.items() if word in name), GOAL)
            if cpu > goal:
                late.append(name)
            if cpu > goal or "-v" in sys.argv:
                print(f"{name:60} {cpu:6.2f} s CPU {wall:6.2f} s wall {memory:5.0f} MB", end="")
                print("  over " if cpu > goal else "  ", "; ".join(compiled), flush=True)
        print(f"{measured} first answers, {len(late)} later than their goal, {refused} not defined")


if __name__ == "__main__":
    main()
