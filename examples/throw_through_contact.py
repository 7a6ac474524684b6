"""A hand flicks a puck to a target, by gradients through rigid contact and by sampling.

    python examples/throw_through_contact.py                # half a minute on one core
    python examples/throw_through_contact.py --seconds 2    # a try

The hand starts 15 cm behind the puck and must not cross a line; the cost does not say that the puck
has to be touched to move. Forces of the hand in every step are the variables: 2 x 150 numbers.

- Gradients: Adam from 16 random forces at once, on motions with relaxed contact
  (``TimeStepping(relaxation=...)``), which feel the puck from afar; it is reduced in stages.
- Sampling: the rigid motion of many forces at once, from the mean and spread of the best ones
  (cross-entropy method), of forces that are smooth in time.

Both get the same time after compiling, and are judged by the rigid motion.
"""

import argparse
import time

import numpy as np

import kinetree as kt
from kinetree.contact import Scene, TimeStepping, with_ground
from kinetree.model.geometry import Geometry, Sphere

STEPS, DT = 150, 0.01
RADIUS, TARGET, LINE = 0.05, np.array([0.9, 0.3]), 0.3  # [m]
STAGES = (0.5, 0.2, 0.1, 0.05, 0.02)  # relaxation [m/s], one after another
GRIP = 0.3  # friction of the puck on the table


def table():
    """A hand that moves in a plane, and a puck that slides on the ground without turning."""
    b = kt.ModelBuilder("shuffleboard")
    hand = kt.shapes.sphere(RADIUS, mass=1.0)
    b.body("hand", joint=kt.Planar(), at=(0, 0, RADIUS), inertia=hand)
    b.body("puck", joint=kt.Translation(), inertia=kt.shapes.sphere(RADIUS, mass=0.5))
    shapes = (Geometry(1, Sphere(RADIUS), name="hand"), Geometry(2, Sphere(RADIUS), name="puck"))
    return with_ground(b.build().replace(geometry=shapes))


MODEL = table()
SCENE = Scene(MODEL, [("hand", "puck"), ("ground", "puck")], friction=GRIP)
START = np.array([0.0, 0.0, 0.0, 0.25, 0.0, RADIUS])  # hand (angle, x, y), puck (x, y, z)


@kt.kernel
def push(model, qd, force: (2,)):
    """Forces of the hand, which some damping slows down."""
    hand = force - 2.0 * qd[1:3]
    return np.array([-0.1 * qd[0], hand[0], hand[1], 0, 0, 0])


@kt.kernel
def effort(model, q, force: (2,)):
    """Small forces, and the hand behind the line."""
    over = q[1] - LINE
    return 1e-6 * (force @ force) + kt.select(over > 0, 10.0 * over * over, 0.0)


@kt.kernel
def missed(model, q, qd):
    """How far from the target the puck is, and how fast."""
    off = q[3:5] - TARGET
    return off @ off + 0.1 * (qd[3:5] @ qd[3:5])


def cost(forces, relaxation=0.0):
    """Costs of forces (STEPS, ..., 2) and their gradients, (...) and (STEPS, ..., 2)."""
    start = START + relaxation**2 / 9.81 * np.eye(6)[5]  # relaxed bodies rest above the ground
    found = kt.rollout_gradient(
        MODEL, start, steps=STEPS, dt=DT, inputs={"force": forces}, controller=push,
        contact=TimeStepping(SCENE, relaxation=relaxation), running=effort, terminal=missed,
    )  # fmt: skip
    return found.value, found.inputs["force"]


def rigid_cost(forces):
    """Costs of the rigid motions of forces (STEPS, ..., 2), without derivatives."""
    found = kt.rollout(
        MODEL, START, steps=STEPS, dt=DT, inputs={"force": forces}, controller=push,
        contact=TimeStepping(SCENE),
    )  # fmt: skip
    over = np.maximum(found.q[:-1, ..., 1] - LINE, 0)
    running = 1e-6 * np.sum(forces**2, axis=(0, -1)) + 10.0 * np.sum(over**2, axis=0)
    off, speed = found.q[-1, ..., 3:5] - TARGET, found.qd[-1, ..., 3:5]
    return running + np.sum(off**2, axis=-1) + 0.1 * np.sum(speed**2, axis=-1)


def in_between(knots):
    """Forces of all steps, (STEPS, n, 2), from those at equal times, (k, n, 2)."""
    at = np.linspace(0, len(knots) - 1, STEPS)
    low = np.minimum(at.astype(int), len(knots) - 2)
    blend = (at - low)[:, None, None]
    return (1 - blend) * knots[low] + blend * knots[low + 1]


def by_gradients(seconds, starts=16, seed=0):
    """The best forces of gradient descent (Adam), and their rigid cost over time."""
    x = in_between(3.0 * np.random.default_rng(seed).normal(size=(10, starts, 2)))
    begun, curve = time.perf_counter(), []
    for stage, relaxation in enumerate(STAGES):
        m, v, k, rate = np.zeros_like(x), np.zeros_like(x), 0, 0.5 * 0.7**stage
        while time.perf_counter() - begun < seconds * (stage + 1) / len(STAGES):
            _, g = cost(x, relaxation)
            k += 1
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            x = x - rate * (m / (1 - 0.9**k)) / (np.sqrt(v / (1 - 0.99**k)) + 1e-12)
        curve.append((time.perf_counter() - begun, float(rigid_cost(x).min())))
    return x[:, np.argmin(rigid_cost(x))], curve


def by_sampling(seconds, samples=256, best=16, knots=20, seed=0):
    """The best forces of the cross-entropy method, and their rigid cost over time."""
    rng, begun = np.random.default_rng(seed), time.perf_counter()
    mean, spread = np.zeros((knots, 1, 2)), 10.0
    champion, least, curve = np.zeros((STEPS, 2)), np.inf, []
    while time.perf_counter() - begun < seconds:
        x = mean + spread * rng.normal(size=(knots, samples, 2))
        forces = in_between(x)
        values = rigid_cost(forces)
        order = np.argsort(values)[:best]
        if values[order[0]] < least:
            champion, least = forces[:, order[0]], float(values[order[0]])
        mean = x[:, order].mean(axis=1, keepdims=True)
        spread = 0.9 * spread + 0.1 * x[:, order].std(axis=1, keepdims=True) + 0.05
        curve.append((time.perf_counter() - begun, least))
    return champion, curve


def main(argv=None):
    """Both searches, and what their forces do to the rigid puck."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=12.0, help="for each search")
    o = options.parse_args(argv)
    for relaxation in STAGES:
        cost(np.zeros((STEPS, 2, 2)), relaxation)  # compiles
    print(f"doing nothing costs {rigid_cost(np.zeros((STEPS, 2, 2)))[0]:.4f}")
    results = {}
    for name, search in (("gradients", by_gradients), ("sampling", by_sampling)):
        forces, curve = search(o.seconds)
        end = kt.rollout(
            MODEL, START, steps=STEPS, dt=DT, inputs={"force": forces}, controller=push,
            contact=TimeStepping(SCENE),
        )  # fmt: skip
        off = np.linalg.norm(end.q[-1, 3:5] - TARGET)
        results[name] = curve[-1][1]
        print(
            f"{name:9s}: cost {curve[-1][1]:.2e} after {curve[-1][0]:.1f} s; the rigid puck is "
            f"{1e3 * off:.1f} mm from the target, residual {end.residuals[0]:.0e} m/s"
        )
    return results


if __name__ == "__main__":
    main()
