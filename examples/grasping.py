"""The task of grasping: an arm with two fingers lifts objects of random shape, mass and friction.

The policy sees the object as the hand does, its three sizes, the fingers and the joints. Its five
actions move a target of the hand, which points down, turn it, and close or open the fingers.
``learn_to_grasp.py`` learns it, ``success`` says how often a policy does it, on the CPU in float64.
"""

import numpy as np

import kinetree as kt

DT, DECIMATION, EPISODE = 0.004, 5, 150
STEP = DT * DECIMATION
KP = np.array([400.0] * 4 + [200.0] * 3 + [800.0] * 2)  # [N·m] and [N]
KD = np.array([40.0] * 4 + [15.0] * 3 + [40.0] * 2)
SLACK = np.array([0.05] * 7 + [0.02] * 2)  # targets are at most so far from joints [rad, m]
FASTEST = np.array([2.0] * 7 + [0.2] * 2)  # and move at most so fast [rad/s, m/s]
MOVES = np.array(
    [0.4, 0.4, 0.4, 2.0]
)  # what actions of 1 mean: along x, y, z, about z [m/s, rad/s]
REACH = 0.5, 0.0  # where objects are, before they spread [m]
START, FLOOR = 0.16, 0.014  # where the hand begins, and how far down it may go [m]
OPEN = 0.04  # of a finger [m]
HIGH = 0.1  # lift that is wanted [m]
SPREAD = 0.12  # how far objects are from there in the end [m]

Box, Cylinder, Ball = kt.geometry.Box, kt.geometry.Cylinder, kt.geometry.Sphere
Egg = kt.geometry.Ellipsoid
TRAINED = (
    Box((0.05, 0.03, 0.07)), Box((0.03, 0.055, 0.03)), Box((0.045, 0.045, 0.05)),
    Cylinder(0.0165, 0.06), Cylinder(0.027, 0.035), Ball(0.019), Egg((0.026, 0.018, 0.022)),
)  # fmt: skip


def held_out(count, seed=1):
    """Objects that were not trained on, of random kinds and sizes."""
    rng = np.random.default_rng(seed)
    return [random_shape(rng) for _ in range(count)]


def random_shape(rng):
    """A box, cylinder, ball or ellipsoid of random sizes: 3 to 5.5 cm wide, 3 to 7 cm high."""
    across, high = rng.uniform(0.03, 0.055, 2), rng.uniform(0.03, 0.07)
    kind = rng.integers(4)
    if kind == 0:
        return Box((*across.tolist(), high))
    if kind == 1:
        return Cylinder(float(across[0]) / 2, high)
    if kind == 2:
        return Ball(float(across[0]) / 2)
    return Egg((*(across / 2).tolist(), min(high, 0.055) / 2))


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


def postures(heights):
    """Positions of the arm's joints with the hand pointing down, ``heights`` over ``REACH``."""
    model = kt.samples.panda()
    q, found = np.array(model.posture("home").q), []
    for height in heights:
        target = np.diag([1.0, -1.0, -1.0, 1.0])
        target[:3, 3] = *REACH, height
        q = kt.inverse_kinematics(model, "grasp", target, q).require()
        found.append(q[:7])
    return np.array(found)


HOME = np.array([*postures([START])[0], OPEN, OPEN])
HEIGHTS = np.linspace(START, FLOOR, 8)
POSTURES = np.polyfit(HEIGHTS, postures(HEIGHTS), 5)  # of a height
LOW, TOP = (np.array(x) for x in kt.samples.panda().position_limits)


def rotation(quaternion):
    """Rotation matrix of a quaternion."""
    w, x, y, z = quaternion
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def clip(x, low, high):
    """Entries of a vector within limits."""
    each = zip(x, low, high, strict=True)
    return np.array([kt.select(a < b, b, kt.select(a > c, c, a)) for a, b, c in each])


def unit(x):
    """A number within 0 and 1."""
    return clip(np.array([x]), (0.0,), (1.0,))[0]


def solve(A, b):
    """Solution of linear equations with a positive definite matrix, by elimination."""
    A, b, n = np.array(A), np.array(b), len(b)
    for k in range(n):
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k:] = A[i, k:] - factor * A[k, k:]
            b[i] = b[i] - factor * b[k]
    for k in reversed(range(n)):
        b[k] = (b[k] - A[k, k + 1 :] @ b[k + 1 :]) / A[k, k]
    return b


def offset(model, q):
    """From the point between the fingertips to the object, along the axes of the hand, (3,)."""
    hand = kt.pose(model, q, "arm.grasp")
    return hand[:3, :3].T @ (q[9:12] - hand[:3, 3])


def joint_rates(model, q, moves):
    """Rates of the arm's joints that move the hand as wanted, pointing down, (7,).

    Damped least squares; what the hand leaves open goes back to the posture at the start.
    """
    hand = kt.pose(model, q, "arm.grasp")
    J = kt.jacobian(model, q, "arm.grasp", frame="aligned")[:, :7]
    upright = np.cross(hand[:3, 2], np.array([0.0, 0.0, -1.0]))
    wanted = np.concatenate([4.0 * upright + np.array([0, 0, moves[3]]), moves[:3]])
    back = 1.0 * (HOME[:7] - q[:7])
    return back + J.T @ solve(J @ J.T + 1e-3 * np.eye(6), wanted - J @ back)


@kt.kernel
def act(model, q, qd, action: (5,), aim: (9,)):
    """Forces of the joints towards their targets, which ``update`` has moved, and no gravity."""
    wanted = KP * (aim - q[:9]) - KD * qd[:9] + kt.gravity_force(model, q)[:9]
    return np.concatenate([wanted, np.zeros(6)])


@kt.kernel
def observe(model, q, qd, aim: (9,), size: (3,)):
    """The object as the hand sees it, its sizes and heights; fingers, joints and their targets."""
    hand = kt.pose(model, q, "arm.grasp")
    look = hand[:3, :3].T @ rotation(q[12:16])
    return np.concatenate([
        10.0 * offset(model, q),
        np.array([look[0, 0] ** 2 - look[1, 0] ** 2, 2 * look[0, 0] * look[1, 0], look[2, 2]]),
        hand[:3, :3].T @ qd[9:12],
        qd[12:15],
        20.0 * size,
        10.0 * np.array([q[11], hand[2, 3]]),
        q[:9] - HOME,
        0.2 * qd[:9],
        5.0 * (aim - q[:9]),
    ])  # fmt: skip


@kt.kernel
def reward(model, q, action, aim: (9,), rest: (), terminated: ()):
    """Go to the object; close the fingers about it; lift it; hold it in the air; little motion.

    Fingers that do not reach their targets press on something.
    """
    off = offset(model, q)
    apart = off @ off
    near = 0.5 / (1 + 100 * apart) + 0.5 / (1 + 2500 * apart)
    press = near * unit((q[7] - aim[7]) / 0.012) * unit((q[8] - aim[8]) / 0.012)
    lift = press * unit((q[11] - rest) / HIGH)
    high = kt.select(q[11] - rest > 0.9 * HIGH, press, 0.0)
    total = 0.5 * near + 0.5 * press + 2.0 * lift + high
    return STEP * (total - 0.01 * (action @ action)) - 0.5 * terminated


@kt.kernel
def lost(model, q):
    """The object is out of reach."""
    away = q[9:11] - np.array(REACH)
    return (away @ away > 0.09) | (q[11] < -0.05)


@kt.kernel
def begin(model, uniform: (16,), help: (), size: (3,)):
    """An object on the ground, and the arm over its place; mass and friction.

    In a part ``help`` of the episodes the hand begins nearer to the object: about it with open or
    with closed fingers, or somewhere on the way.
    """
    noise = 2 * uniform - 1
    left = unit(2 * uniform[13] - 0.5)  # of the way: 0 in a quarter of the episodes, 1 in another
    left = kt.select(uniform[12] < help, left, 1.0)
    closed = (left < 0.001) & (uniform[14] < 0.5)
    turn = left * 3.14159265 * noise[2]
    place = np.array(REACH) + left * SPREAD * noise[:2]
    above = kt.select(size[2] / 2 > FLOOR, size[2] / 2, FLOOR)
    arm = 0.0
    for c in POSTURES:
        arm = arm * (above + left * (START - above)) + c
    finger = kt.select(closed, size[1] / 2 + 0.0003, OPEN)
    start = np.concatenate([arm + 0.04 * left * noise[3:10], [finger, finger]])
    push = kt.select(closed, SLACK[7], 0.0)
    return {
        "q": np.concatenate(
            [start, place, [size[2] / 2, np.cos(turn / 2), 0, 0, np.sin(turn / 2)]]
        ),
        "qd": np.zeros(15),
        "aim": start - np.concatenate([np.zeros(7), [push, push]]),
        "rest": size[2] / 2,
        "load": 0.05 + 0.25 * uniform[10],
        "grip": 0.7 + 0.6 * uniform[11],
    }


@kt.kernel
def update(model, q, action: (5,), aim: (9,)):
    """Targets move as the policy says, within limits and near the joints."""
    at = np.concatenate([aim, q[9:]])
    up = (FLOOR - kt.pose(model, at, "arm.grasp")[2, 3]) / STEP
    moves = MOVES * action[:4]
    moves = np.array([moves[0], moves[1], kt.select(moves[2] < up, up, moves[2]), moves[3]])
    fingers = FASTEST[7] * action[4]
    rates = np.concatenate([joint_rates(model, at, moves), [fingers, fingers]])
    moved = clip(aim + STEP * clip(rates, -FASTEST, FASTEST), LOW, TOP)
    return {"aim": clip(moved, q[:9] - SLACK, q[:9] + SLACK)}


def environment(shape, worlds, device="cpu", seed=0, help=0.0, arrays="torch", **options):
    """Arms with one kind of object; tensors on ``device``."""
    model = with_object(shape)
    touching = ("arm.left_finger", "arm.right_finger", "arm.palm", "ground")
    pairs = [(name, "object") for name in touching] + [("ground", name) for name in touching[:3]]
    scene = kt.contact.Scene(model, pairs, friction=1.0)
    accuracy = {"tolerance": 1e-7} if device == "cpu" else {"tolerance": 1e-3, "thorough": False}
    zeros = [0.0] * 6
    gains = {"stiffness": [*KP, *zeros], "damping": [*KD, *zeros]}
    contact = kt.contact.TimeStepping(scene, conserving=False, **accuracy, **gains)
    return kt.learning.Environment(
        model, worlds, observe=observe, reward=reward, terminate=lost, reset=begin, act=act,
        update=update, contact=contact, dt=DT, decimation=DECIMATION, episode=EPISODE,
        action_limits=(-1.0, 1.0), parameters={"mass:object": "load", "friction": "grip"},
        arguments={"help": np.array(help), "size": sizes(shape)}, seed=seed, device=device,
        arrays=arrays, limits=None, **options,
    )  # fmt: skip


def policy_of(path):
    """The actions that a policy in a file takes for observations, (n, 44) to (n, 5)."""
    stored = np.load(path)
    mean, spread = stored["mean"], stored["spread"]
    layers = [(stored[f"weight{k}"], stored[f"bias{k}"]) for k in range(len(stored) // 2 - 1)]

    def policy(seen):
        x = np.clip((seen - mean) / spread, -10, 10)
        for k, (weight, bias) in enumerate(layers):
            x = x @ weight.T + bias
            if k < len(layers) - 1:
                x = np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
        return x

    return policy


def lift_of(env):
    """How high objects are above their places on the ground [m], (worlds,)."""
    return env.state["q"][:, 11] - env.state["rest"].reshape(-1)


def success(policy, env, seed=7):
    """Whether an object is held in the air when an episode ends, in each world of an environment.

    It has been ``HIGH / 2`` above its place, or higher, for half a second, and was never out of
    reach.
    """
    seen, held = env.reset(seed), np.ones(env.worlds, dtype=bool)
    for k in range(EPISODE - 1):
        seen, _, ended, *_ = env.step(policy(seen))
        held &= ~ended
        if k * STEP > EPISODE * STEP - 0.5:
            held &= lift_of(env) > HIGH / 2
    return held
