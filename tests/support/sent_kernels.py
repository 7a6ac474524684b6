"""Kernels that other processes find by their names."""

import numpy as np

import kinetree as kt

__all__ = ["MODEL", "energy", "hidden", "run", "squared", "twice"]

MODEL = kt.samples.double_pendulum()


@kt.kernel
def energy(m, q, qd):
    return kt.kinetic_energy(m, q, qd) + kt.potential_energy(m, q)


def twice(x: (2,)):
    return 2 * x


def hidden():
    @kt.kernel
    def inside(x: (2,)):
        return 3 * x

    return inside


squared = kt.kernel(lambda x: x * x)


def run(call):
    """What a worker does: call a function with arguments."""
    function, *arguments = call
    return np.asarray(function(*arguments))
