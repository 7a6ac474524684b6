"""Rows of ``first_answers.py`` beside functions of a model and its state.

Every way of using a robot that the cache has not seen: controllers, plans, contact laws,
environments, own constraints and kernels, prescribed joints, parameters, batches of robots,
identification, files, and the command line. The robots are changed ones: what was compiled for
those of ``kinetree warm-up`` does not serve them.
"""

import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np


def rows():
    """Names and works."""
    for part in (
        control_rows, humanoid_rows, plan_rows, contact_rows, learning_rows, force_rows,
        constraint_rows, rollout_rows, identification_rows, tool_rows,
    ):  # fmt: skip
        yield from part()


# --- robots that nobody has seen -----------------------------------------------------------------


def heavier(model):
    """A model whose bodies weigh another tenth."""
    return model.replace(inertia={
        name: model.inertia[i] * 1.1 for i, name in enumerate(model.body_names) if i
    })  # fmt: skip


def robots():
    """Changed samples by name, with states in which they stand or reach."""
    import kinetree as kt

    dog, person, arm = kt.samples.quadruped(), kt.samples.humanoid(), kt.samples.arm()
    yield "other arm", heavier(arm), np.array([0.3, -0.6, 0.9, 0.2, 0.7, -0.1])
    yield "other quadruped", heavier(dog), dog.posture("home").q
    yield "humanoid", heavier(person), person.posture("home").q


def on_ground(model, pairs=None):
    """A scene of a model on the ground."""
    import kinetree as kt

    return kt.contact.Scene(kt.contact.with_ground(model), pairs, friction=0.7)


# --- controllers ---------------------------------------------------------------------------------


def control_rows():
    """Controllers, one evaluation and in simulations; gains, inverse kinematics."""
    import kinetree as kt

    for name, m, q in robots():
        tip, z = m.body_names[-1], np.zeros(m.nv)
        goal = kt.pose(m, q, tip)

        def computed(m=m, q=q):
            return kt.control.ComputedTorque(m, q, kp=100.0)

        def reach(m=m, q=q, tip=tip, goal=goal):
            return kt.control.OperationalSpaceControl(m, tip, goal, kp=64.0, posture=q)

        def whole(m=m, q=q, tip=tip, goal=goal):
            tasks = [
                kt.control.FrameTask(tip, goal, kp=100.0),
                kt.control.PostureTask(q, kp=20.0, priority=2),
                kt.control.CenterOfMassTask(kt.center_of_mass(m, q)),
            ]
            return kt.control.WholeBody(m, tasks)

        for what, make in (("ComputedTorque", computed), ("WholeBody", whole)):
            yield f"{name}: {what}", lambda make=make, q=q, z=z: make()(0.0, q, z)
            yield (
                f"{name}: simulate with {what}",
                lambda make=make, m=m, q=q: kt.simulate(m, q, duration=0.02, controller=make()),
            )
        if name == "other arm":
            yield f"{name}: OperationalSpaceControl", lambda q=q, z=z, f=reach: f()(0.0, q, z)
            weights = {"Q": np.eye(2 * m.nv), "R": np.eye(m.nv)}
            yield (
                f"{name}: LQR",
                lambda m=m, q=q, z=z, w=weights: kt.control.LQR(m, q, **w)(0.0, q, z),
            )
        yield (
            f"{name}: equilibrium",
            lambda m=m, q=q: kt.control.equilibrium(m, q),
        )
        yield (
            f"{name}: inverse_kinematics",
            lambda m=m, q=q, tip=tip, goal=goal: kt.inverse_kinematics(m, tip, goal, q0=q),
        )
    linkage = kt.samples.delta()
    target = kt.pose(linkage, linkage.neutral(), linkage.body_names[-1])[:3, 3]
    yield (
        "delta: inverse_kinematics of a point",
        lambda: kt.inverse_kinematics(
            linkage, [kt.ik.PositionTask(linkage.body_names[-1], target)]
        ),
    )


HUMANOIDS = {
    "g1_29dof_rev_1_0": ("left_ankle_roll_link", "right_ankle_roll_link"),
    "icub": ("l_sole", "r_sole"),
    "romeo_small": ("l_sole", "r_sole"),
    "simple_humanoid": ("l_ankle", "r_ankle"),
    "alex_nub_hands": ("TorsoLeftIMUJoint", "TorsoLeftIMULink"),
    "human": ("right_foot_virtual", "right_foot"),
    "talos_full_v2": ("left_sole_link", "right_sole_link"),
}
"""URDF files of example-robot-data, and two frames of each that are taken for soles."""


def humanoid_rows():
    """Whole-body control of humanoids on two soles: everything from the model to torques."""
    from support import example_robots

    import kinetree as kt

    corners = np.array([(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.04, 0.04)])

    def torques(m, feet):
        q, trunk, tip = m.neutral(), m.body_names[1], m.body_names[-1]
        tasks = [
            kt.control.CenterOfMassTask(kt.center_of_mass(m, q)),
            kt.control.FrameTask(trunk, kt.pose(m, q, trunk)[:3, :3], task="orientation"),
            kt.control.FrameTask(tip, kt.pose(m, q, tip), priority=2),
            kt.control.PostureTask(q, kp=20.0, priority=2),
        ]
        soles = [kt.control.Contact(foot, corners, 0.7) for foot in feet]
        following = {c.joint for c in m.couplings}  # Talos has motors that drive two joints, too
        leaders = [n for i, n in enumerate(m.joint_names, 1) if i > 1 and i not in following]
        driven = leaders if following else None
        control = kt.control.WholeBody(m, tasks, soles, actuated=driven)
        return control(0.0, q, np.zeros(m.nv))

    other = heavier(kt.samples.humanoid())
    yield "whole-body control of humanoid", lambda: torques(other, ("left_sole", "right_sole"))
    for name, feet in HUMANOIDS.items():
        path = next(iter(sorted(example_robots.ROOT.rglob(f"{name}.urdf"))), None)
        if path is not None:
            m = kt.load(path, floating_base=True)
            yield f"whole-body control of {name}", lambda m=m, feet=feet: torques(m, feet)


def plan_rows():
    """Trajectory optimization with goals, limits and contact; MPC; sampling."""
    import kinetree as kt

    arm = heavier(kt.samples.arm())
    start = np.array([0.3, -0.6, 0.9, 0.2, 0.7, -0.1])
    cost = kt.control.QuadraticCost(effort=1e-4, velocity=0.1)
    point = kt.pose(arm, start, "tool")[:3, 3] + 0.05
    to_point = kt.control.QuadraticCost(points={"tool": point}, point=1e4)
    short = {"steps": 5, "dt": 0.02, "running": cost, "iterations": 2}

    @kt.kernel
    def own(m, q, qd):
        return q @ q + qd @ qd

    yield "plan of other arm, goal", lambda: kt.control.optimize(arm, start, goal=start, **short)
    yield (
        "plan of other arm, a point",
        lambda: kt.control.optimize(arm, start, terminal=to_point, **short),
    )
    yield (
        "plan of other arm, own cost",
        lambda: kt.control.optimize(arm, start, terminal=own, **short),
    )
    yield (
        "plan of other arm, limits",
        lambda: kt.control.optimize(arm, start, effort_limits=(-50, 50), **short),
    )
    yield (
        "MPC of other arm",
        lambda: kt.control.MPC(arm, steps=5, dt=0.02, running=cost)(0.0, start, 0 * start),
    )

    @kt.kernel
    def ahead(m, q, qd, plan: (5, 6)):
        value = 0.0
        for u in plan:
            qd = qd + 0.02 * kt.forward_dynamics(m, q, qd, u)
            q = q + 0.02 * qd
            value = value + q @ q
        return value

    def sampled():
        cost = kt.compile(ahead, arm)
        plan = kt.control.PathIntegral(cost, horizon=5, size=6, samples=16)
        return plan(start, 0 * start)

    yield "PathIntegral of other arm", sampled


# --- contact and learning ------------------------------------------------------------------------


def contact_rows():
    """Contact of other robots: worlds, laws, laws' gradients, impacts, sensors, rays."""
    import kinetree as kt

    for name, m, q in robots():
        if name == "other arm":
            continue
        scene, qd = on_ground(m), np.zeros(m.nv)
        laws = {
            "TimeStepping": lambda s: kt.contact.TimeStepping(s),
            "SoftContact": lambda s: kt.contact.SoftContact(s, stiffness=2e4, damping=0.3),
            "SoftContact patch": lambda s: kt.contact.SoftContact(
                s, stiffness=2e4, damping=300.0, law="patch"
            ),
            "EventDriven": lambda s: kt.contact.EventDriven(s),
        }
        for law, make in laws.items():
            # of feet all laws know the shapes
            standing = on_ground(m, None if law == "TimeStepping" else "feet")
            yield (
                f"{name}: simulate with {law}",
                lambda s=standing, q=q, make=make: kt.simulate(
                    s.model, q, duration=0.02, contact=make(s)
                ),
            )
        for law in ("TimeStepping", "SoftContact"):
            standing = on_ground(m, None if law == "TimeStepping" else "feet")
            yield (
                f"{name}: rollout with {law}",
                lambda s=standing, q=q, make=laws[law]: kt.rollout(
                    s.model, np.array([q, q]), steps=5, contact=make(s)
                ),
            )
        yield (
            f"{name}: impact",
            lambda s=scene, q=q, v=qd: kt.contact.impact(s.model, q, v - 0.1, s),
        )
        first, last = scene.model.body_names[1], scene.model.body_names[-1]
        yield (
            f"{name}: distance",
            lambda s=scene, q=q, a=first, b=last: kt.contact.distance(s.model, q, a, b),
        )
        yield (
            f"{name}: ray_cast",
            lambda s=scene, q=q: kt.contact.ray_cast(s.model, q, [0, 0, 3.0], [0, 0, -1.0]),
        )
        yield f"{name}: World.step", lambda m=m, q=q: _stand(m, q).step(1)
        yield f"{name}: World.batch.step", lambda m=m, q=q: _stand(m, q).batch(4).step(1)


def _stand(model, q):
    import kinetree as kt

    world = kt.World()
    world.add(model, q=q)
    return world


def learning_rows():
    """Environments of worlds that nobody has seen."""
    import kinetree as kt

    @kt.kernel
    def observe(model, q, qd):
        return np.concatenate([q, qd])

    @kt.kernel
    def reward(model, q, action):
        return -(action @ action) - q @ q

    for name, m, q in robots():
        contact = None if name == "other arm" else kt.contact.TimeStepping(on_ground(m))
        model = m if contact is None else contact.scene.model

        def stepped(model=model, contact=contact, start=tuple(q)):
            @kt.kernel
            def reset(model):
                return {"q": np.array(start)}

            task = {"observe": observe, "reward": reward, "reset": reset, "dt": 0.005}
            env = kt.learning.Environment(model, 4, contact=contact, **task)
            env.reset(seed=1)
            env.step(np.zeros((4, env.action_size)))

        yield f"{name}: Environment.step", stepped


# --- forces, constraints, parameters -------------------------------------------------------------


def force_rows():
    """Forces, friction, limits, motors, events and sensors of another arm."""
    import kinetree as kt

    arm = heavier(kt.samples.arm())
    q, joint = np.array([0.3, -0.6, 0.9, 0.2, 0.7, -0.1]), arm.joint_names[-1]

    @kt.kernel
    def wind(m, t, q, qd):
        return 0.3 * np.sin(2 * t) * np.cos(q) - 0.1 * qd

    @kt.kernel
    def shake(t):
        return -0.1 * np.cos(9 * t), 0.9 * np.sin(9 * t), 8.1 * np.cos(9 * t)

    def pd(t, q, qd):
        return -q - qd

    rough = arm.replace(dynamics={joint: kt.JointDynamics(friction=0.3, damping=0.1)})
    options = {
        "a kernel as force": {"forces": [wind]},
        "an external force": {"forces": [kt.ExternalForce(arm.body_names[-1], (5.0, 0.0, 0.0))]},
        "a controller": {"controller": pd},
        "a kernel as controller": {"controller": wind},
        "a prescribed joint": {"prescribed": {joint: shake}},
        "rigid limits": {"limits": kt.RigidLimits()},
        "stiff limits": {"limits": kt.StiffLimits()},
        "an event": {"events": [kt.Event(lambda t, q, qd: q[0])]},
        "adaptive steps": {"rtol": 1e-8},
    }
    for what, given in options.items():
        yield (
            f"other arm: simulate with {what}",
            lambda given=given: kt.simulate(arm, q, duration=0.02, **given),
        )
    for what, law in (("friction", None), ("exact friction", kt.Friction(exact=True))):
        given = {} if law is None else {"friction": law}
        yield (
            f"other arm: simulate with {what}",
            lambda given=given: kt.simulate(rough, q, duration=0.02, **given),
        )


def constraint_rows():
    """Own constraints, own joints of prescribed motion, closed forms of own linkages."""
    import kinetree as kt

    def rope(q):
        return q[0] + 2 * q[1] - 0.1 * q[2]

    arm = heavier(kt.samples.arm())
    q = np.array([0.3, -0.6, 0.9, 0.2, 0.7, -0.1])
    tip = arm.body_names[-1]
    height = kt.pose(arm, q, tip)[2, 3]

    def on_table(model, q):
        return kt.pose(model, q, tip)[2, 3] - height

    tables = {"of joints": rope, "of a pose": on_table}
    for what, position in tables.items():
        own = arm.replace(constraints=(kt.ConstraintFunction("own", position=position),))

        def start(own=own):
            return kt.loops.assemble(own, q)

        z = np.zeros(arm.nv)
        yield f"own constraint {what}: assemble", start
        yield (
            f"own constraint {what}: forward_dynamics",
            lambda own=own, start=start, z=z: kt.forward_dynamics(own, start(), z, z),
        )
        yield (
            f"own constraint {what}: simulate",
            lambda own=own, start=start: kt.simulate(own, start(), duration=0.02),
        )
        yield (
            f"own constraint {what}: linearize",
            lambda own=own, start=start, z=z: kt.linearize(own, start(), z, z),
        )
        yield (
            f"own constraint {what}: World.step",
            lambda own=own, start=start: _stand(own, start()).step(1),
        )


def rollout_rows():
    """Rollouts with parameters, controllers and forces; gradients with respect to them."""
    import kinetree as kt

    @kt.kernel
    def pull(m, q, qd, gain: ()):
        return -gain * q[-m.nv :] - 0.1 * qd

    @kt.kernel
    def cost(m, q, qd):
        return q @ q + qd @ qd

    for name, m, q in robots():
        body, many = m.body_names[-1], np.array([q, q])
        mass = {f"mass:{body}": np.array([1.0, 1.2])}
        with_gain = {"controller": pull, "arguments": {"gain": 0.1}}
        for what, given in (("parameters", {"parameters": mass}), ("a controller", with_gain)):
            yield (
                f"{name}: rollout with {what}",
                lambda m=m, many=many, g=given: kt.rollout(m, many, steps=5, **g),
            )
        one = {"parameters": {f"mass:{body}": 1.0}}
        for what, given in (("parameters", one), ("a controller", with_gain)):
            yield (
                f"{name}: rollout_gradient with {what}",
                lambda m=m, q=q, g=given: kt.rollout_gradient(m, q, steps=5, terminal=cost, **g),
            )
        yield (
            f"{name}: final_state_derivatives",
            lambda m=m, q=q: kt.final_state_derivatives(m, q, steps=5),
        )


# --- identification, tools -----------------------------------------------------------------------


def identification_rows():
    """Parameters from motions of other robots."""
    import kinetree as kt

    for name, m, _ in robots():
        rng = np.random.default_rng(0)
        n = 20 if name == "other arm" else 100
        q = m.random_configuration(rng, n)
        qd, qdd = rng.standard_normal((2, n, m.nv))

        def identified(m=m, q=q, qd=qd, qdd=qdd, **options):
            tau = kt.inverse_dynamics(m, q, qd, qdd)
            return kt.identify(m, q, qd, qdd, tau, **options)

        yield f"{name}: identify", identified
        yield (
            f"{name}: identify, consistent",
            lambda f=identified: f(consistent=True, regularisation=0.1),
        )


def tool_rows():
    """Equations, exported code, operation counts, files and the command line."""
    import kinetree as kt

    arm, person = heavier(kt.samples.arm()), heavier(kt.samples.humanoid())
    pendulum = heavier(kt.samples.double_pendulum())
    yield "double pendulum: equations_of_motion", lambda: kt.equations_of_motion(pendulum)
    yield "other arm: operation_counts", lambda: kt.operation_counts(arm)
    for name, m in (("other arm", arm), ("humanoid", person)):
        for ending in ("toml", "urdf", "xml"):
            yield f"{name}: save and load .{ending}", lambda m=m, e=ending: _saved(m, e)
        yield f"{name}: kinetree info", lambda m=m: _command(m, "info")
        yield f"{name}: kinetree check", lambda m=m: _command(m, "check")
        yield f"{name}: sensors", lambda m=m: kt.sensors(m)


def _saved(model, ending):
    import kinetree as kt

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"robot.{ending}"
        kt.save(model, path)
        return kt.load(path)


def _command(model, *words):
    """A command of the command line on a file of a model."""
    import kinetree as kt
    from kinetree.cli.app import app

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "robot.toml")
        kt.save(model, path)
        command, *rest = words
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            app([command, path, *rest])
