"""A quadruped walks by what its sensors tell: where it is, nobody shows it.

A trot in a world with noisy sensors. A filter estimates the base from IMU, encoders and touch; the
controller is given its estimates alone. A moving-horizon estimator looks at the same readings.

    python examples/19_estimation.py

Make the sensors worse, the ground slippery, or let the filter believe that the feet are points.
"""

import numpy as np

import kinetree as kt
from kinetree.control import Contact, FrameTask, PostureTask, WholeBody
from kinetree.estimation import BaseFilter, Foot, MovingHorizon, Noise

H, DURATION, SPEED = 2e-3, 2.0, 0.4  # time step [s], [s], forward [m/s]
STEP, LIFT = 0.25, 0.06  # of a swing: duration [s], height [m]
LEGS = "front_left", "front_right", "rear_left", "rear_right"
FEET = [f"{leg}_foot" for leg in LEGS]

robot = kt.samples.quadruped()
skin = kt.geometry.Box((0.06, 0.06, 0.06))
touch = [kt.Sensor(foot, "touch", of=foot, shape=skin) for foot in FEET]
imu = [kt.Sensor(name, name, of="trunk") for name in ("gyro", "accelerometer")]
robot = robot.replace(sensors=[*imu, *touch])
home = robot.posture("home").q
stand = kt.pose(robot, home, "trunk")
below = {foot: kt.pose(robot, home, foot)[:3, 3] for foot in FEET}

world = kt.World(timestep=H)
world.add_ground(friction=0.8)
world.add(robot, name="dog", q=home)


class Trot:
    """Two diagonal legs stand, the others swing; torques by whole-body control."""

    def __init__(self):
        swings = [
            FrameTask(foot, lambda t, k=k: self.swing(k, t), task="position", kp=600.0)
            for k, foot in enumerate(FEET)
        ]
        self.control = WholeBody(
            robot,
            [FrameTask("trunk", self.trunk, kp=100.0), *swings, PostureTask(home, weight=1e-3)],
            [Contact(foot, friction=0.6) for foot in FEET],
            stance=lambda t: [f for k, f in enumerate(FEET) if not self.swinging(t, k)],
        )
        self.lifted = {}

    def __call__(self, t, q, qd):
        self.pose = kt.pose(robot, q, "trunk")
        self.velocity = self.pose[:3, :3] @ qd[3:6]
        for k, foot in enumerate(FEET):
            if not self.swinging(t, k):
                self.lifted[foot] = kt.pose(robot, q, foot)[:3, 3]
        return self.control(t, q, qd)

    def swinging(self, t, k):
        return t >= STEP and int(t / STEP) % 2 == (k in (0, 3))

    def wanted(self, t):
        return np.array([SPEED * min(max(t - STEP, 0.0), 1.0), 0.0, 0.0])

    def trunk(self, t):
        goal = self.pose.copy()
        goal[:3, :3], goal[2, 3] = np.eye(3), stand[2, 3]
        return goal, np.concatenate([np.zeros(3), self.wanted(t)]), np.zeros(6)

    def swing(self, k, t):
        if not self.swinging(t, k):
            return None
        foot, s, w = FEET[k], t / STEP % 1.0, np.pi / STEP
        goal = self.pose[:3, 3] + below[foot] - stand[:3, 3]
        goal = goal + self.velocity * (1.5 - s) * STEP + 0.1 * (self.velocity - self.wanted(t))
        along, up = goal - self.lifted[foot], np.array([0, 0, LIFT])
        along[2] = below[foot][2] - 0.005 - self.lifted[foot][2]
        c, c2 = np.cos(np.pi * s), np.cos(2 * np.pi * s)
        d, d2 = np.sin(np.pi * s), np.sin(2 * np.pi * s)
        return (
            self.lifted[foot] + along * (1 - c) / 2 + up * (1 - c2) / 2,
            along * w * d / 2 + up * w * d2,
            along * w * w * c / 2 + 2 * up * w * w * c2,
        )


# %%
# Sensors with noise and biases; what the estimators believe about them is about right.

rng = np.random.default_rng(0)
GYRO_BIAS, ACCELEROMETER_BIAS = np.array([0.02, -0.015, 0.01]), np.array([0.15, -0.1, 0.2])
noise = Noise(
    gyro=2e-4,
    accelerometer=4e-3,
    gyro_bias=1e-4,
    accelerometer_bias=1e-3,
    contact=0.02,
    encoder=1e-3,
)


def readings():
    """Readings of the sensors now: gyroscope, accelerometer, encoders, feet that touch."""
    felt = world.read_sensors()
    gyro = felt["dog.gyro"] + GYRO_BIAS + noise.gyro / np.sqrt(H) * rng.standard_normal(3)
    acceleration = felt["dog.accelerometer"] + ACCELEROMETER_BIAS
    acceleration += noise.accelerometer / np.sqrt(H) * rng.standard_normal(3)
    joints = world.q[7:] + noise.encoder * rng.standard_normal(12)
    rates = world.qd[6:] + 0.02 * rng.standard_normal(12)
    return gyro, acceleration, joints, rates, [felt[f"dog.{foot}"][0] > 5.0 for foot in FEET]


feet = [Foot(foot, radius=0.02) for foot in FEET]
observer = BaseFilter(robot, feet, H, imu="trunk", noise=noise)
window = MovingHorizon(robot, feet, H, imu="trunk", noise=noise, window=15, iterations=2)
for estimator in (observer, window):
    estimator.reset(home)

# %%
# Walk. The controller is given the estimate of the filter.

trot, truth, found, fitted = Trot(), [], [], []
q, qd = home, np.zeros(18)
for k in range(int(DURATION / H)):
    world.step(tau=trot(k * H, q, qd))
    felt = readings()
    estimate, other = observer.step(*felt), window.step(*felt)
    q, qd = estimate.q, estimate.qd
    trunk = kt.pose(robot, world.q, "trunk")
    truth.append([*trunk[:3, 3], *(trunk[:3, :3] @ world.qd[3:6])])
    for rows, one in ((found, estimate), (fitted, other)):
        rows.append([*one.position, *one.velocity])

truth, found, fitted = map(np.array, (truth, found, fitted))
print(f"walked {truth[-1, 0]:.2f} m; the filter says {found[-1, 0]:.2f} m")
for name, x in (("filter", found), ("window", fitted)):
    e = (x - truth)[len(x) // 4 :]
    speed, height = np.sqrt(np.mean(e[:, 3:] ** 2)), np.abs(e[:, 2]).max()
    print(f"{name}: velocity wrong by {1000 * speed:.1f} mm/s, height by {1000 * height:.1f} mm")
print("biases of the gyroscope, found and true:", estimate.gyro_bias[:2].round(3), GYRO_BIAS[:2])
assert world.q[2] > 0.25, "it fell"
assert np.abs(found[-1, :3] - truth[-1, :3]).max() < 0.1, "it is lost"
