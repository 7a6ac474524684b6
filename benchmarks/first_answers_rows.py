"""Rows of ``first_answers.py``: names and functions without arguments.

Arguments are prepared in a process of their own (``prepare``): what it compiles is not known to
the one that is measured.
"""

import inspect
import typing

import numpy as np

KNOWN = ("panda", "quadruped", "arm", "humanoid", "four_bar", "stewart")
"""Samples that ``kinetree warm-up`` has seen; all others are new robots."""
REAL = (
    "tiago", "talos_full_v2", "icub", "hyq_no_sensors", "solo12", "ur10_robot", "kinova",
    "romeo_small", "allegro_right_hand", "baxter", "iris_simple",
)  # fmt: skip
"""Names of URDF files of example-robot-data."""
MODULES = ("loops", "control", "identification", "floating", "gears", "equivalence", "symbolic",
           "contact", "edit")  # fmt: skip
"""Modules whose functions of a model and its state are called by the names of their parameters."""
COUNT = 2  # samples of a batch
NOT_FIRST_ANSWERS = {
    "equations_of_motion", "exciting_trajectory", "export_c", "identify", "loop_joint_forces",
    "singularities", "assemblies",
}  # fmt: skip
"""Their work takes the time, not what is compiled: formulas, an optimization, a C compiler; or
they need more than a state."""


def samples():
    """Sample robots that the cache has not seen, by name."""
    import kinetree as kt

    for name in kt.samples.__all__:
        function = getattr(kt.samples, name)
        needed = [p for p in inspect.signature(function).parameters.values()
                  if p.default is p.empty]  # fmt: skip
        if name not in KNOWN and not needed and isinstance(model := function(), kt.Model):
            yield name, model


def real_robots():
    """Robots of example-robot-data that are here, by name."""
    from support import example_robots

    import kinetree as kt

    for name in REAL:
        path = next(iter(sorted(example_robots.ROOT.rglob(f"{name}.urdf"))), None)
        if path is not None:
            yield name, kt.load(path)


# --- arguments -----------------------------------------------------------------------------------


def prepare(model):
    """A state, and the arguments of all public functions: one sample and a batch, by name."""
    from support.public_calls import States

    from kinetree.quantities import FUNCTIONS

    states, calls = States(model, COUNT, np.random.default_rng(0)), {}
    for name, function in FUNCTIONS.items():
        batch = states.arguments(function)
        calls[name] = ({n: _first(x) for n, x in batch.items()}, batch)
    return states.q[0], states.qd[0], calls


def _first(x):
    """The first sample of a batch, also in records."""
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(_first, x))
    return x[0] if np.ndim(x) and len(x) == COUNT else x


def choices(function):
    """Values of the options of a function that are not its defaults: words, true and false."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # a name that only type checkers import
        return
    for p in inspect.signature(function).parameters.values():
        hint = hints.get(p.name)
        words = typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
        for value in (True, False) if hint is bool else words:
            if p.default is not p.empty and value != p.default:
                yield p.name, value


# --- rows of a robot -----------------------------------------------------------------------------


def rows_of(model):
    """Names of all rows of a robot, and functions of what ``prepare`` finds for it."""
    yield from function_rows(model)
    for rows in (module_rows, derivative_rows, motion_rows):
        for what, work in rows(model):
            yield what, lambda given, w=work: w(*given[:2])


def function_rows(model):
    """Public functions of a model and arrays: one sample, a batch, and every option."""
    from kinetree.quantities import FUNCTIONS

    def row(name, batch, **options):
        return lambda given: FUNCTIONS[name](model, **(given[2][name][batch] | options))

    for name, function in FUNCTIONS.items():
        yield name, row(name, 0)
        yield f"{name}, batch", row(name, 1)
        for option, value in choices(function):
            yield f"{name}, {option}={value}", row(name, 0, **{option: value})


def module_rows(model):
    """Functions of public modules that need a model and its state alone, and their options."""
    import kinetree as kt

    last, z = model.body_names[-1], np.zeros(model.nv)
    known = {
        "model": model, "qdd": z, "tau": z, "dt": 0.001, "body": last, "robot": model, "name": last,
    }  # fmt: skip
    of_state = {"q", "qd", "q0"}

    def row(function, needed, **options):
        def work(q, qd):
            at = known | {"q": q, "qd": qd, "q0": q}
            return function(**{n: at[n] for n in needed}, **options)

        return work

    for place in MODULES:
        module = getattr(kt, place)
        if place == "loops" and not model.loops:
            continue
        for name in module.__all__:
            function = getattr(module, name)
            if not inspect.isfunction(function) or name in NOT_FIRST_ANSWERS:
                continue
            needed = [p.name for p in inspect.signature(function).parameters.values()
                      if p.default is p.empty and p.kind is not p.VAR_KEYWORD]  # fmt: skip
            if "model" not in needed or not known.keys() | of_state >= set(needed):
                continue
            yield f"{place}.{name}", row(function, needed)
            for option, value in choices(function):
                yield f"{place}.{name}, {option}={value}", row(function, needed, **{option: value})


def derivative_rows(model):
    """Derivatives by states and parameters, along and against."""
    import kinetree as kt

    for function in (kt.inverse_dynamics, kt.forward_dynamics):
        d = kt.differentiate(function, wrt=("q", "qd"))
        yield f"derivatives of {function.__name__}", lambda q, v, d=d: d(model, q, v, v)
        for wrt in (f"inertia:{model.body_names[-1]}", "parameters"):
            d = kt.differentiate(function, wrt=wrt)
            name = f"{function.__name__} by {wrt.partition(':')[0]}"
            yield name, lambda q, v, d=d: d(model, q, v, v)
    push, pull = kt.jvp(kt.forward_dynamics, wrt="q"), kt.vjp(kt.forward_dynamics, wrt="q")
    yield "jvp of forward_dynamics", lambda q, v: push(model, q, v, v, tangents=v)
    yield "vjp of forward_dynamics", lambda q, v: pull(model, q, v, v, cotangent=v)
    yield "linearize", lambda q, v: kt.linearize(model, q, v, v)
    yield "linearize(dt=)", lambda q, v: kt.linearize(model, q, v, v, dt=0.01)


def motion_rows(model):
    """Simulations with every integrator, rollouts and their gradients, worlds."""
    import kinetree as kt
    from kinetree.integration.registry import INTEGRATORS

    @kt.kernel
    def cost(m, q, qd):
        return q @ q + qd @ qd

    cost_of_plans = kt.control.QuadraticCost(velocity=1.0, effort=1.0)
    yield "simulate", lambda q, _: kt.simulate(model, q, duration=0.1)
    for each in INTEGRATORS:
        yield (
            f"simulate, {each}",
            lambda q, _, i=each: kt.simulate(model, q, duration=0.02, dt=0.002, integrator=i),
        )
    yield "rollout", lambda q, _: kt.rollout(model, np.array([q, q]), steps=50)
    yield "rollout_gradient", lambda q, _: kt.rollout_gradient(model, q, steps=5, terminal=cost)
    yield (
        "optimize",
        lambda q, _: kt.control.optimize(
            model, q, steps=5, dt=0.01, running=cost_of_plans, iterations=2
        ),
    )
    yield "World.step", lambda *_: world_of(model).step(1)
    yield "check", lambda *_: kt.check(model)
    yield "health", lambda *_: kt.health(model)


def world_of(model):
    """A world with a robot."""
    import kinetree as kt

    world = kt.World()
    world.add(model)
    return world


# --- other rows ----------------------------------------------------------------------------------


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


def long_chains():
    """Functions of chains of many bodies."""
    import kinetree as kt

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
