"""Functions of arrays of any library whose derivatives are checked."""

import functools

import kinetree as kt

NAMES = ("inverse dynamics", "forward dynamics", "kinematics")


def functions(model):
    """Functions of three arrays (..., nv), by ``NAMES``."""
    tip = model.body_names[-1]
    return {
        "inverse dynamics": functools.partial(kt.inverse_dynamics, model),
        "forward dynamics": functools.partial(kt.forward_dynamics, model),
        "kinematics": lambda q, qd, _: kt.velocity(model, q, qd, tip),
    }


def end_of_rollout(model, *, steps=4, **options):
    """A function of ``q0``, ``qd0`` and ``tau``: where a rollout ends."""

    def end(q0, qd0, tau):
        motion = kt.rollout(
            model, q0, qd0, tau, steps=steps, dt=0.05, integrator="semi_implicit_euler", **options
        )
        return motion.q[-1], motion.qd[-1]

    return end
