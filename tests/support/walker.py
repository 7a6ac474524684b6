"""A robot whose feet slide on three rails each, and its motion written down independently.

The legs are Cartesian, so that encoders read the places of feet in the frame of the trunk. The
motion follows the discrete model that estimators assume, in NumPy alone, for numbers of any kind.
"""

import numpy as np

import kinetree as kt
from kinetree.estimation import Noise, Uncertainty

FEET = "left", "right", "back"
PLACES = np.array([[0.2, 0.2, -0.5], [0.2, -0.2, -0.5], [-0.3, 0.0, -0.5]])
G = np.array([0.0, 0.0, -9.81])
H = 0.01
NOISE = Noise(0.02, 0.2, 0.01, 0.05, 0.02, 2e-3)
START = Uncertainty(0.05, 0.0, 0.1, 0.0, 0.02, 0.1)


def walker():
    """A trunk with three feet, ``left``, ``right`` and ``back``."""
    b = kt.ModelBuilder("walker").body(
        "trunk", joint=kt.Free(), inertia=kt.shapes.box(0.5, 0.3, 0.1, mass=5.0)
    )
    for name in FEET:
        ball = kt.shapes.sphere(0.02, mass=0.1)
        b.body(f"{name}_body", on="trunk", joint=kt.Translation(), inertia=ball)
        b.frame(name, on=f"{name}_body")
    return b.build()


def skew(v):
    """``skew(v) @ x = v × x``."""
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def exponential(v):
    """Rotation matrix of a rotation vector, also of complex numbers."""
    X, term, total = skew(v), np.eye(3), np.eye(3)
    for k in range(1, 18 if np.abs(v).max() > 0.05 else 8):
        term = term @ X / k
        total = total + term
    return total


def after(x, u, w, closed, *, radius=0.0, spins=None, h=H):
    """The state ``(R, v, p, b_g, b_a, d)`` after an interval, as the page of estimation has it."""
    R, v, p, bg, ba, d = x
    turn, a = u[:3] - bg - w[:3], u[3:] - ba - w[3:6]
    force = R @ exponential(turn * h / 2) @ a + G
    R1 = R @ exponential(turn * h)
    v1, p1 = v + h * force, p + h * v + h * h / 2 * force
    d1 = []
    for c, point in enumerate(d):
        spin = R @ (turn + (0 if spins is None else spins[c]))
        rolled = radius * h * np.cross(spin, [0, 0, 1])
        d1.append((point + rolled + R1 @ w[12 + 3 * c : 15 + 3 * c]) * closed[c])
    return R1, v1, p1, bg + w[6:9], ba + w[9:12], np.array(d1)


def variances(contacts=3, noise=NOISE, h=H):
    """Variances of the noise of an interval."""
    rates = [noise.gyro**2 / h, noise.accelerometer**2 / h]
    walks = [noise.gyro_bias**2 * h, noise.accelerometer_bias**2 * h]
    return np.repeat([*rates, *walks, noise.contact**2 * h], [3, 3, 3, 3, 3 * contacts])


def errors(x, y):
    """Estimate ``x`` minus truth ``y``: rotation vector along the axes of the world, rest."""
    R = x[0] @ y[0].T
    turn = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    return np.concatenate([turn, *(a - b for a, b in zip(x[1:5], y[1:5], strict=True))])


class Walk:
    """A random motion with its noisy readings.

    Feet take turns in the air; those that stand creep as assumed.
    """

    def __init__(self, rng, steps, *, swing=30):
        self.truth, self.gyro, self.accelerometer, self.joints, self.closed = [], [], [], [], []
        sigma = np.sqrt(variances())
        tilt, speed = START.tilt, START.velocity
        R = exponential(np.array([*(tilt * rng.standard_normal(2)), 0.0]))
        biases = START.gyro_bias, START.accelerometer_bias
        bg, ba = (size * rng.standard_normal(3) for size in biases)
        p = np.array([0.0, 0.0, 0.5])
        x = R, speed * rng.standard_normal(3), p, bg, ba, np.zeros((3, 3))
        phase = rng.uniform(0, 6, 6)
        before = np.zeros(3, dtype=bool)
        for k in range(steps):
            turn = 0.8 * np.sin(2 * np.pi * 0.7 * k * H + phase[:3])
            wanted = 1.5 * np.sin(2 * np.pi * 0.9 * k * H + phase[3:])
            wanted -= 2.0 * x[1] + 3.0 * (x[2] - p)
            a = x[0].T @ (wanted - G)
            w = sigma * rng.standard_normal(len(sigma))
            u = np.concatenate([turn + x[3] + w[:3], a + x[4] + w[3:6]])
            now = np.array([(k // swing) % 4 != c for c in range(3)])
            x = list(after(x, u, w, now & before))
            for c in range(3):
                if now[c] and not before[c]:
                    x[5][c] = x[2] + x[0] @ (PLACES[c] + 0.05 * rng.standard_normal(3))
            legs = np.where(now[:, None], (x[5] - x[2]) @ x[0], PLACES)
            self.truth.append(tuple(x))
            self.gyro.append(u[:3])
            self.accelerometer.append(u[3:])
            self.joints.append((legs + NOISE.encoder * rng.standard_normal((3, 3))).reshape(-1))
            self.closed.append(now)
            before = now
