"""A cart-pole task, and a mass on a rail, for tests of environments."""

import numpy as np
import pytest

import kinetree as kt

UP = np.array([0.0, np.pi])


@kt.kernel
def observe(m, q, qd):
    return np.array([q[0], np.cos(q[1]), np.sin(q[1]), qd[0], qd[1]])


@kt.kernel
def reward(m, q, action):
    return 1 - 0.01 * action[0] * action[0] - 0.1 * q[0] * q[0]


@kt.kernel
def fallen(m, q):
    return (np.abs(q[1] - np.pi) > 0.3) | (np.abs(q[0]) > 2)


@kt.kernel
def near_the_top(m, uniform: (2,), normal: (2,)):
    return {"q": UP + 0.1 * (uniform - 0.5), "qd": 0.1 * normal}


@kt.kernel
def push_cart(m, action: (1,)):
    return np.array([10 * action[0], 0])


CART_POLE = {
    "observe": observe, "reward": reward, "terminate": fallen, "reset": near_the_top,
    "act": push_cart, "dt": 0.01, "decimation": 2, "episode": 200,
}  # fmt: skip


@pytest.fixture(scope="session")
def cart_pole():
    """A function that makes an environment of the cart-pole."""
    model = kt.samples.cart_pole()
    return lambda worlds=4, **options: kt.learning.Environment(
        model, worlds, **{**CART_POLE, **options}
    )


@kt.kernel
def position_and_speed(m, q, qd):
    return np.array([q[0], qd[0]])


@kt.kernel
def no_reward(m, q):
    return 0 * q[0]


@kt.kernel
def at_rest(m):
    return {"q": np.zeros(1)}


@kt.kernel
def push_mass(m, action: (1,)):
    return action


MASS = {
    "observe": position_and_speed, "reward": no_reward, "reset": at_rest, "act": push_mass,
    "dt": 0.1, "decimation": 2, "episode": None,
}  # fmt: skip


@pytest.fixture(scope="session")
def mass():
    """A function that makes an environment of 1 kg on a rail, without friction."""
    rail = kt.ModelBuilder("mass on a rail").body(
        "mass", joint=kt.Prismatic("x"), inertia=kt.shapes.sphere(0.1, mass=1.0)
    )
    model = rail.build()
    return lambda worlds=2, **options: kt.learning.Environment(model, worlds, **{**MASS, **options})
