"""A pendulum three ways: by hand, by inverse dynamics, by forward dynamics."""

import numpy as np

import kinetree as kt

mass, length, g = 2.0, 0.5, 9.81
pendulum = (
    kt.ModelBuilder("pendulum", gravity=(0, 0, -g))
    .body("bob", joint=kt.Revolute("y"), inertia=kt.shapes.point(mass=mass, at=(0, 0, -length)))
    .build()
)

angles = np.linspace(-np.pi, np.pi, 9)[:, None]  # nine pendulums at once
still = np.zeros(1)

tau = kt.gravity_force(pendulum, angles)
by_hand = mass * g * length * np.sin(angles)
print("holding torque [N m]      ", np.round(tau[:, 0], 3))
print("m g l sin(q)              ", np.round(by_hand[:, 0], 3))
assert np.allclose(tau, by_hand)

qdd = kt.forward_dynamics(pendulum, angles, still, np.zeros(1))
print("acceleration when let go  ", np.round(qdd[:, 0], 3))
assert np.allclose(qdd, -g / length * np.sin(angles))
