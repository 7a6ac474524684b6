"""Learning to grasp: an arm with two fingers lifts objects of random shape and mass.

    python examples/learn_to_grasp.py --worlds 64 --iterations 3         # a try on the CPU
    python examples/learn_to_grasp.py --device cuda                      # 4,096 arms on a GPU

Each kind of object is a separate environment, and the policy learns in all of them at once. It
sees joints, the object relative to the fingers, and its three sizes; it moves the targets of eight
joints. Masses and friction are random, and places of objects spread as training goes on. Writes
grasp.pt, the policy, and grasp.csv, the curve, and prints how many of the objects that were held
out it holds in the air where an episode ends.
"""

import argparse
import csv

import numpy as np
import ppo
import torch

import kinetree as kt

DT, DECIMATION, EPISODE = 0.002, 10, 150
STEP = DT * DECIMATION
KP = np.array([400.0] * 4 + [200.0] * 3 + [800.0] * 2)  # [N·m] and [N]
KD = np.array([40.0] * 4 + [15.0] * 3 + [40.0] * 2)
FASTEST = np.array([1.2] * 7 + [0.15] * 2)  # targets move at most so fast [rad/s, m/s]
REACH = 0.5, 0.0  # where objects are, before they spread [m]
HIGH = 0.1  # lift that counts as success [m]
SPREAD = 0.12  # how far objects are from there in the end [m]

Box, Cylinder, Ball = kt.geometry.Box, kt.geometry.Cylinder, kt.geometry.Sphere
Egg = kt.geometry.Ellipsoid
TRAINED = (
    Box((0.04, 0.04, 0.04)), Box((0.05, 0.03, 0.06)), Box((0.03, 0.06, 0.05)),
    Cylinder(0.02, 0.05), Cylinder(0.025, 0.07), Ball(0.025), Egg((0.025, 0.03, 0.022)),
)  # fmt: skip
HELD_OUT = (
    Box((0.045, 0.035, 0.05)), Box((0.035, 0.05, 0.04)), Cylinder(0.022, 0.06), Ball(0.022),
    Egg((0.022, 0.028, 0.026)),
)  # fmt: skip


def sizes(shape):
    """Lengths of a shape along its axes, (3,)."""
    if isinstance(shape, Box):
        return np.array(shape.size)
    if isinstance(shape, Egg):
        return 2 * np.array(shape.radii)
    high = shape.length if isinstance(shape, Cylinder) else 2 * shape.radius
    return np.array([2 * shape.radius, 2 * shape.radius, high])


def with_object(shape):
    """The arm, the ground and a free object."""
    world = kt.World(timestep=DT)
    world.add_ground()
    world.add(kt.samples.panda(), name="arm")
    world.add(shape, at=(*REACH, 0.1), mass=0.1, name="object")
    return world.model


def above_the_object():
    """Positions of the arm's joints with the fingers open, pointing down, above the object."""
    model = kt.samples.panda()
    target = np.diag([1.0, -1.0, -1.0, 1.0])
    target[:3, 3] = *REACH, 0.16
    home = np.array(model.posture("home").q)
    return kt.inverse_kinematics(model, "grasp", target, home).require()


HOME = above_the_object()
HOME[7:] = 0.04
LOW, TOP = (np.array(x) for x in kt.samples.panda().position_limits)


def turned(quaternion):
    """Rotation matrix of a quaternion."""
    w, x, y, z = quaternion
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def clipped(x, low, high):
    """Entries of a vector within limits."""
    each = zip(x, low, high, strict=True)
    return np.array([kt.select(a < b, b, kt.select(a > c, c, a)) for a, b, c in each])


def hand(model, q):
    """Axes of the hand, and the point between the fingertips."""
    palm = kt.poses(model, q)[7]
    return palm[:3, :3], palm[:3, 3] + palm[:3, 2] * 0.1034


def nearness(model, q):
    """1 where the object is between the fingers, 0 far away."""
    off = q[9:12] - hand(model, q)[1]
    return 1 / (1 + (off @ off) * 400)


@kt.kernel
def act(model, q, qd, action: (8,), aim: (9,)):
    """Forces of the joints towards their targets, which ``update`` has moved, and no gravity."""
    wanted = KP * (aim - q[:9]) - KD * qd[:9] + kt.gravity_force(model, q)[:9]
    return np.concatenate([wanted, np.zeros(6)])


@kt.kernel
def observe(model, q, qd, aim: (9,), size: (3,)):
    """Joints and their targets; the object as the hand sees it; its size and height."""
    axes, point = hand(model, q)
    look = axes.T @ turned(q[12:16])
    return np.concatenate([
        q[:9] - HOME,
        0.2 * qd[:9],
        5.0 * (aim - q[:9]),
        10.0 * (axes.T @ (q[9:12] - point)),
        look[:, 0],
        look[:, 2],
        0.5 * qd[9:15],
        20.0 * size,
        np.array([10.0 * q[11]]),
    ])  # fmt: skip


@kt.kernel
def reward(model, q, action, rest: (), terminated: ()):
    """Be near the object; lift it; hold it in the air; little motion."""
    near = nearness(model, q)
    lift = kt.select(q[11] > rest, (q[11] - rest) * (1 / HIGH), 0.0)
    lift = kt.select(lift > 1, 1.0, lift)
    total = 0.3 * near + 2.0 * lift * near + kt.select(lift > 0.9, 1.0, 0.0) * near
    return STEP * (total - 0.01 * (action @ action)) - 0.5 * terminated


@kt.kernel
def lost(model, q):
    """The object is out of reach."""
    away = q[9:11] - np.array(REACH)
    return (away @ away > 0.09) | (q[11] < -0.05)


@kt.kernel
def begin(model, uniform: (16,), spread: (), size: (3,)):
    """The arm near its place above the objects, the object on the ground; its mass and friction."""
    noise = 2 * uniform - 1
    turn = 3.14159265 * noise[2]
    arm = HOME + 0.04 * np.concatenate([noise[3:10], np.zeros(2)])
    place = np.array([REACH[0] + spread * noise[0], REACH[1] + spread * noise[1], size[2] / 2])
    upright = np.array([np.cos(turn / 2), 0, 0, np.sin(turn / 2)])
    return {
        "q": np.concatenate([arm, place, upright]),
        "qd": np.zeros(15),
        "aim": arm,
        "rest": size[2] / 2,
        "load": 0.05 + 0.25 * uniform[10],
        "grip": 0.7 + 0.6 * uniform[11],
    }


@kt.kernel
def update(model, q, action: (8,), aim: (9,)):
    """Targets move as the policy says, within limits and near the joints."""
    way = np.concatenate([action, action[7:]])
    moved = clipped(aim + STEP * FASTEST * way, LOW, TOP)
    slack = np.array([0.2] * 7 + [0.04] * 2)
    return {"aim": clipped(moved, q[:9] - slack, q[:9] + slack)}


def environment(shape, worlds, device="cpu", seed=0, spread=0.02, arrays="torch", **options):
    """Arms with one kind of object; tensors on ``device``."""
    model = with_object(shape)
    touching = ("arm.left_finger", "arm.right_finger", "arm.palm", "ground")
    pairs = [(name, "object") for name in touching] + [("ground", name) for name in touching[:3]]
    scene = kt.contact.Scene(model, pairs, friction=1.0)
    tolerance = 1e-7 if device == "cpu" else 1e-4  # what float32 reaches [m/s]
    zeros = [0.0] * 6
    gains = {"stiffness": [*KP, *zeros], "damping": [*KD, *zeros]}
    contact = kt.contact.TimeStepping(scene, tolerance=tolerance, conserving=False, **gains)
    return kt.learning.Environment(
        model, worlds, observe=observe, reward=reward, terminate=lost, reset=begin, act=act,
        update=update, contact=contact, dt=DT, decimation=DECIMATION, episode=EPISODE,
        action_limits=(-1.0, 1.0), parameters={"mass:object": "load", "friction": "grip"},
        arguments={"spread": np.array(spread), "size": sizes(shape)}, seed=seed, device=device,
        arrays=arrays, limits=None, **options,
    )  # fmt: skip


class Several:
    """Environments side by side, as one."""

    def __init__(self, environments):
        self.each = list(environments)
        self.worlds = sum(e.worlds for e in self.each)
        self.observation_size = self.each[0].observation_size
        self.action_size = self.each[0].action_size

    def reset(self, seed=0):
        """First observations of all."""
        return torch.cat([e.reset(seed + k) for k, e in enumerate(self.each)])

    def step(self, action):
        """A control step of all."""
        parts = action.split([e.worlds for e in self.each])
        found = [e.step(part) for e, part in zip(self.each, parts, strict=True)]
        *results, infos = zip(*found, strict=True)
        last = torch.cat([info["final_observation"] for info in infos])
        return *map(torch.cat, results), {"final_observation": last}


def success(policy, shapes, worlds=256, device="cpu"):
    """Part of the worlds, for each shape, in which the object is held in the air at the end."""
    found = {}
    for shape in shapes:
        env = environment(shape, worlds, device, seed=7, spread=SPREAD)
        seen, over = env.reset(), torch.zeros(worlds, dtype=torch.bool, device=device)
        for _ in range(EPISODE - 1):
            with torch.no_grad():
                seen, _, ended, *_ = env.step(policy(seen))
            over |= ended.bool()
        q, rest = env.state["q"], env.state["rest"].reshape(-1)
        found[repr(shape)] = float((~over & (q[:, 11] - rest > HIGH / 2)).double().mean())
    return found


def main(argv=None):
    """Learn, and write what was learned."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", default="cpu")
    options.add_argument("--worlds", type=int)
    options.add_argument("--iterations", type=int, default=1500)
    options.add_argument("--minutes", type=float, default=15.0, help="at most")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", default="grasp", help="name of the files that are written")
    o = options.parse_args(argv)
    worlds = (o.worlds or (56 if o.device == "cpu" else 4096)) // len(TRAINED)
    env = Several(environment(s, worlds, o.device, o.seed) for s in TRAINED)
    count = 0

    def report(r):
        nonlocal count
        count += 1
        for e in env.each:  # objects spread over the first half
            e.arguments["spread"][...] = SPREAD * min(1.0, 0.15 + 2 * count / o.iterations)
        print(
            f"{r['seconds']:7.1f} s ({r['simulation']:.1f} simulation)  reward {r['reward']:.4f}"
            f"  episode {r['episode']:.2f}",
            flush=True,
        )
        return r["seconds"] > 60 * o.minutes

    policy, history = ppo.train(
        env, iterations=o.iterations, horizon=32, hidden=(256, 128, 64), entropy=0.002, spread=0.6,
        seed=o.seed, report=report,
    )  # fmt: skip
    torch.save(policy.state_dict(), f"{o.out}.pt")
    with open(f"{o.out}.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(history[0]))
        table.writeheader()
        table.writerows(history)
    for words, shapes in (("trained on", TRAINED), ("held out", HELD_OUT)):
        rates = success(policy, shapes, min(worlds, 256), o.device)
        for shape, rate in rates.items():
            print(f"  {words}: {shape} {rate:.1%}")
        print(f"{words}: {np.mean([*rates.values()]):.1%} held in the air")
    return history


if __name__ == "__main__":
    main()
