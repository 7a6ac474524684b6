"""``kinetree warm-up``: compile what serves every robot ahead of the work."""

import inspect
import time
import warnings
from functools import partial

import numpy as np
import typer

from kinetree.cli import options as cli
from kinetree.cli.options import Json

_NOTHING_KEPT = "nothing is compiled, since nothing is kept: KINETREE_CACHE is off"


def warm_up(as_json: Json = False):
    """Compile the code that serves every robot, once on this machine: a minute on two cores.

    Dynamics, kinematics, derivatives, closed loops, simulation and contact are computed for a few
    samples, and what that compiles is kept and optimised. Without this, the same happens bit by
    bit, when something is first needed, and is optimised in the background. It can be stopped at
    any time, and goes on where it was when it is called again.
    """
    from kinetree.codegen.cache import open_store
    from kinetree.codegen.procedures.improving import improve_now

    if open_store().folder is None:
        said = {"location": None, "new": 0, "seconds": 0.0}
        return cli.print_json(said) if as_json else typer.echo(_NOTHING_KEPT)
    start, before = time.perf_counter(), len(open_store().entries())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about samples, whose results nobody sees
        for job in cli.progress(list(jobs()), "compiling"):
            job()
    with cli.bar("optimising", None) as reached:
        improve_now(reached)
    new, seconds = len(open_store().entries()) - before, time.perf_counter() - start
    if as_json:
        return cli.print_json({"location": open_store().folder, "new": new, "seconds": seconds})
    return typer.echo(f"{new} new entries in {open_store().folder}, {seconds:.0f} s")


def jobs():
    """Functions without arguments that compile code for every robot."""
    import kinetree as kt

    yield _drop_things
    person = _with_common_joints(kt.samples.humanoid())
    seen = kt.samples.panda(), kt.samples.quadruped(), kt.samples.arm(), person
    for model in seen:
        for name in kt.quantities.FUNCTIONS:
            yield partial(_call, name, model)
        for function in (kt.inverse_dynamics, kt.forward_dynamics):
            yield partial(_differentiate, function, model)
        yield partial(_move, model)
    for model in (kt.samples.four_bar(), kt.samples.stewart()):
        yield partial(kt.simulate, model, kt.loops.assemble(model), duration=0.01)
    yield partial(_plan, kt.samples.double_pendulum())
    yield partial(_stand, kt.samples.quadruped(), kt.samples.quadruped().frame_names)
    yield partial(_stand, person, ["left_sole", "right_sole"])
    yield partial(kt.check, kt.samples.ur5())
    yield partial(_look_at, kt.samples.humanoid())


def _with_common_joints(model):
    """Model extended by bodies on the joint types most common in robot files.

    Each kind of joint is a piece of code of every function, and one that is new a part of a second.
    """
    import kinetree as kt

    joints, builder = kt.joints, kt.ModelBuilder("other kinds")
    askew = joints.Revolute((0.6, 0.0, 0.8))
    on_base = joints.Revolute("x"), joints.Prismatic("z"), askew
    inside = *(joints.Revolute(-axis) for axis in np.eye(3)), askew
    for k, joint in enumerate((*on_base, *inside)):
        inertia = kt.Inertia.from_mass_center(1.0, (0.0, 0.0, 0.1), 0.01 * np.eye(3))
        parent = "kind0" if k >= len(on_base) else None
        builder.body(f"kind{k}", on=parent, joint=joint, inertia=inertia)
    return kt.edit.attach(model, builder.build())


def _call(name, model):
    """Call a public function on one sample and a batch, if state and frame suffice."""
    from kinetree.errors import KinetreeError
    from kinetree.model.array_arguments import ARRAYS, argument_shape
    from kinetree.quantities import FUNCTIONS

    known = {"q": model.neutral(), "name": model.body_names[-1]}
    given = {}
    for p in list(inspect.signature(FUNCTIONS[name]).parameters.values())[1:]:
        if p.default is not p.empty:
            continue
        if p.name not in known and p.name not in ARRAYS:
            return
        given[p.name] = (
            known[p.name] if p.name in known else np.zeros(argument_shape(model, p.name))
        )
    batch = {n: x if n == "name" else np.array([x] * 8) for n, x in given.items()}
    for arguments in (given, batch):
        try:
            FUNCTIONS[name](model, **arguments)
        except KinetreeError:  # not defined for this robot
            return


def _differentiate(function, model):
    """Compile the most used derivatives of a function."""
    import kinetree as kt

    q, v = model.neutral(), np.zeros(model.nv)
    for wrt in (("q", "qd"), "parameters", f"inertia:{model.body_names[-1]}"):
        kt.differentiate(function, wrt=wrt)(model, q, v, v)
    many = np.array([q] * 8), *np.zeros((2, 8, model.nv))  # of plans, with what lies between states
    kt.differentiate(function, wrt=("q", "qd"))(model, *many)
    model.difference(many[0], many[0])
    kt.jvp(function, wrt="q")(model, q, v, v, tangents=v)
    kt.vjp(function, wrt="q")(model, q, v, v, cotangent=v)


def _move(model):
    """Compile the code of simulations and rollouts."""
    import kinetree as kt

    q = model.neutral()
    kt.simulate(model, q, duration=0.01)
    kt.rollout(model, np.array([q, q]), steps=2)


def _plan(model):
    """Compile the code of optimal control."""
    import kinetree as kt

    q, cost = model.neutral(), kt.control.QuadraticCost(effort=1.0, velocity=1.0)
    short = {"steps": 3, "dt": 0.01, "running": cost, "iterations": 2}
    kt.control.optimize(model, q, **short)
    kt.control.optimize(model, q, goal=q, effort_limits=(-50.0, 50.0), **short)


def _stand(model, feet):
    """Compile the code of whole-body control."""
    import kinetree as kt

    q, trunk = model.posture("home").q, model.body_names[1]
    corners = np.array([(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.05, 0.05)])
    tasks = [
        kt.control.CenterOfMassTask(kt.center_of_mass(model, q)),
        kt.control.FrameTask(trunk, kt.pose(model, q, trunk)),
        kt.control.FrameTask(trunk, np.eye(3), task="orientation", priority=2),
        kt.control.PostureTask(q, priority=2),
        kt.control.MomentumTask(priority=2),
    ]
    points = corners if len(feet) == 2 else np.zeros((1, 3))
    contacts = [kt.control.Contact(foot, points) for foot in feet]
    kt.control.WholeBody(model, tasks, contacts)(0.0, q, np.zeros(model.nv))


def _look_at(model):
    """Render a model alone and in a batch, which compiles the code."""
    import kinetree as kt

    camera = kt.camera((2, -2, 1), (0, 0, 0.5), size=(64, 48))
    kt.render(model, None, camera, ("color", "depth"))
    kt.render(model, [model.neutral()] * 2, camera, "depth")  # many small ones


def _drop_things():
    """Simulate a robot's contact with the ground, which compiles the code."""
    import kinetree as kt

    world = kt.World()
    world.add(kt.samples.quadruped())
    world.step(2)
