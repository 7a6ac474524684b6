"""One scene through every door: ``World``, ``simulate``, ``rollout`` and ``learning``.

    python benchmarks/doors.py                  all scenes, as a table
    python benchmarks/doors.py --only stack     those whose name contains a word

Columns: ``mj_step`` [µs]; then CPU times of a step, in units of that: steps of a world in one call,
``simulate`` with every state stored, with the last alone, ``rollout`` of one motion, of 256 (per
motion), and an environment of 256 worlds (likewise); and the largest difference of positions
between each door and the world, after the same steps from the same start. One thread.
"""

import argparse
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import worlds as scenes

import kinetree as kt

MANY = 256
"""Motions of a batch."""
BUDGET = 3.0
"""About how long a batch may take [s]: fewer steps of large scenes."""
DOORS = ("world", "simulate", "store last", "rollout", f"rollout {MANY}", f"learning {MANY}")


@dataclass(frozen=True)
class Scene:
    """A scene, as MJCF or the path of a file; steps that are timed; and controls, or None."""

    mjcf: str
    steps: int
    control: tuple | None = None


def chain(n=8) -> str:
    """Links with limits and friction that hang over a box, which the last one hits."""
    links = "".join(
        f'<body pos="0 0 {-0.2 * (k > 0)}"><joint type="hinge" axis="0 1 0" damping="0.02" '
        f'limited="true" range="-1 1" frictionloss="0.02"/>'
        f'<geom type="capsule" fromto="0 0 0 0 0 -0.16" size="0.02" density="1000"/>'
        for k in range(n)
    )
    box = scenes.body("box", scenes.box((0.05, 0.05, 0.05)), (0.1, 0, 0.05))
    return scenes.world([f'<body pos="0 0 {0.2 * n + 0.1}">{links}{"</body>" * n}</body>', box])


def gripper() -> str:
    """An arm of three joints with stiff servos, and two fingers that follow each other."""
    finger = '<geom type="box" size="0.01 0.02 0.04" pos="0 0 -0.04" density="500"/></body>'
    slide = '<joint name="{}" type="slide" axis="{} 0 0" range="0 0.04" limited="true"/>'
    arm = "".join(
        f'<body pos="0 0 {-0.3 * (k > 0)}"><joint name="j{k}" axis="0 1 0" damping="1" '
        f'armature="0.02"/><geom type="capsule" fromto="0 0 0 0 0 -0.25" size="0.03" '
        f'density="1000"/>'
        for k in range(3)
    )
    left, right = (
        f'<body pos="{0.03 * s} 0 -0.3">{slide.format(name, s)}{finger}'
        for name, s in (("left", 1), ("right", -1))
    )
    servos = "".join(f'<position joint="j{k}" kp="200" kv="20"/>' for k in range(3))
    extra = (
        f'<equality><joint joint1="right" joint2="left"/></equality>'
        f'<actuator>{servos}<position joint="left" kp="50" kv="5"/></actuator>'
    )
    return scenes.world([f'<body pos="0 0 1.4">{arm}{left}{right}{"</body>" * 3}</body>'], extra)


def all_scenes(folder) -> dict[str, Scene]:
    """Ten scenes by name."""
    lying = scenes.on_ground(kt.samples.humanoid(), folder / "humanoid", 0.0, 0.002, lift=0.05)
    dog = scenes.on_ground(kt.samples.quadruped(), folder / "quadruped")
    return {
        "2 boxes stacked": Scene(scenes.stack(2), 2000),
        "10 boxes stacked": Scene(scenes.stack(10), 1000),
        "pyramid of 15 boxes": Scene(scenes.pyramid(), 500),
        "20 dominoes that fall": Scene(scenes.dominoes(), 500),
        "billiard break": Scene(scenes.billiard(), 1000),
        "50 balls into a box": Scene(scenes.balls(50), 300),
        "humanoid falls": Scene(lying, 1000),
        "quadruped stands": Scene(dog, 1000),
        "chain with limits": Scene(chain(), 1000),
        "arm, coupled gripper": Scene(gripper(), 1000, (0.3, 0.5, -0.4, 0.02)),
    }


# --- doors ---------------------------------------------------------------------------------------


def timed(function):
    """Least CPU time of two calls after a first one [s], and what they returned."""
    function()
    spent = []
    for _ in range(2):
        start = time.thread_time()
        found = function()
        spent.append(time.thread_time() - start)
    return min(spent), found


def by_mujoco(path, scene) -> float:
    """Mean time of ``mj_step`` [s]."""
    model = mujoco.MjModel.from_xml_path(path)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    if scene.control is not None:
        data.ctrl[:] = scene.control
    start = time.thread_time()
    mujoco.mj_step(model, data, scene.steps)
    return (time.thread_time() - start) / scene.steps


def by_world(world, start, steps, u):
    """Positions after some steps of a world."""
    world.set_state(start)
    world.step(steps, None if u is None else np.array(u))
    return world.q


def by_environment(world, steps, u):
    """A function that takes ``steps`` in all worlds of an environment, and returns positions."""
    model, q0, qd0 = world.model, world.q, world.qd
    size = model.nv if u is None else len(u)

    @kt.kernel
    def observe(model, q):
        return q

    @kt.kernel
    def reward(model, q):
        return 0 * q[0]

    @kt.kernel
    def reset(model):
        return {"q": q0, "qd": qd0}

    @kt.kernel
    def act(model, action: (size,)):
        return action

    options = {"limits": world.joints["limits"], "friction": world.joints["friction"]}
    env = kt.learning.Environment(
        world, MANY, observe=observe, reward=reward, reset=reset, episode=None, dt=world.timestep,
        decimation=steps, act=act if u is None else None, action_limits=(-100.0, 100.0), **options,
    )  # fmt: skip
    action = np.zeros((MANY, size)) if u is None else np.tile(u, (MANY, 1))

    def run():
        env.reset(seed=0)
        env.step(action)
        return env.state["q"][0]  # observations are float32

    return run


def measure(path, scene) -> dict:
    """Times of all doors in units of ``mj_step``, and differences of positions."""
    world, u, n = kt.World.from_file(path), scene.control, scene.steps
    if "home" in [p.name for p in world.model.postures]:
        world.reset("home")
    start, theirs, h = world.state, by_mujoco(path, scene), world.timestep
    found, off, end = {}, {}, by_world(world.copy(), start, n, u)
    spent, _ = timed(lambda: by_world(world, start, n, u))
    found["world"], each = spent / n / theirs, spent / n
    few = int(np.clip(BUDGET / MANY / each, 1, n))
    world.set_state(start)
    near = by_world(world.copy(), start, few, u)
    many = np.tile(start.q, (MANY, 1)), np.tile(start.qd, (MANY, 1))

    def rolled(steps, q=None, qd=None):
        return kt.rollout(world, q, qd, steps=steps, controls=u, store_every=steps).q[-1]

    doors = {
        "simulate": (lambda: kt.simulate(world, duration=n * h, controls=u).q[-1], n, end),
        "store last": (
            lambda: kt.simulate(world, duration=n * h, controls=u, store_every=n).q[-1], n, end,
        ),
        "rollout": (lambda: rolled(n), n, end),
        f"rollout {MANY}": (lambda: rolled(few, *many)[0], few * MANY, near),
    }  # fmt: skip
    for name, (run, count, expected) in doors.items():
        spent, q = timed(run)
        found[name], off[name] = spent / count / theirs, float(np.abs(q - expected).max())
    try:
        spent, q = timed(by_environment(world, few, u))
    except kt.KinetreeError as error:
        print(f"  learning does not support this: {str(error)[:100]}")
        return {"mj_step": theirs, **found, "off": off}
    name = f"learning {MANY}"
    found[name], off[name] = spent / (few * MANY) / theirs, float(np.abs(q - near).max())
    return {"mj_step": theirs, **found, "off": off}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="word in the names of scenes")
    words = parser.parse_args().only
    folder = Path(tempfile.mkdtemp())
    kt.set_threads(1)
    print("| scene | `mj_step` [µs] |", " | ".join(DOORS), "| largest difference |")
    print("|" + "---|" * (len(DOORS) + 3))
    for name, scene in all_scenes(folder).items():
        if words not in name:
            continue
        path = scene.mjcf
        if path.lstrip().startswith("<"):
            path = str(folder / f"{name.replace(' ', '_')}.xml")
            Path(path).write_text(scene.mjcf)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = measure(path, scene)
        off = ", ".join(f"{door} {x:.0e}" for door, x in found["off"].items() if x)
        times = " | ".join(f"{found[door]:.2f}" if door in found else "–" for door in DOORS)
        print(f"| {name} | {1e6 * found['mj_step']:.1f} | {times} | {off or 'none'} |", flush=True)


if __name__ == "__main__":
    main()
