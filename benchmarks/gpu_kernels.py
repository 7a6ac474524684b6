"""Kernels that are measured on a GPU, and arrays for them."""

import json
from pathlib import Path

import cupy as cp
import numpy as np

import kinetree as kt
from kinetree.model.define import kernel_of
from kinetree.simulation.rollouts.rollout import run_of

HERE = Path(__file__).parent
STEPS = 100  # of a rollout
SOME = 256  # different configurations


def robot(name):
    return kt.Model.from_dict(json.loads((HERE / "robots" / f"{name}.json").read_text()))


@kt.kernel
def with_derivatives(model, q, qd, qdd):
    """Inverse dynamics and its derivatives with respect to position and velocity."""
    slopes = kt.differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
    return kt.inverse_dynamics(model, q, qd, qdd), *slopes(model, q, qd, qdd)


@kt.kernel
def derivatives(model, q, qd, qdd):
    """Derivatives of inverse dynamics with respect to position and velocity alone."""
    return kt.differentiate(kt.inverse_dynamics, wrt=("q", "qd"))(model, q, qd, qdd)


def _transition(model):
    q, qd = model.neutral(), np.zeros(model.nv)
    run = run_of(model, q, qd, qd, steps=STEPS, dt=1e-3, integrator="semi_implicit_euler")
    return run.transition


def _compiled(function):
    return lambda m: function.compiled(m, m.neutral(), *np.zeros((2, m.nv)))


FUNCTIONS = {
    "rnea": lambda m: kernel_of(m, "inverse_dynamics"),
    "aba": lambda m: kernel_of(m, "forward_dynamics"),
    "crba": lambda m: kernel_of(m, "mass_matrix"),
    "jacobian": lambda m: kernel_of(m, "jacobian", name=m.body_names[-1]),
    "rnea+d": _compiled(with_derivatives),
    "drnea": _compiled(derivatives),
    "step": lambda m: _transition(m).one_step(),
    "rollout": lambda m: _transition(m).steps(),
}


def inputs_of(kernel, model, count, dtype, rng):
    """Arrays on the device, (count, *shape) each, or without the first axis where all share it."""
    arrays = []
    for a in kernel.inputs:
        if a.name in ("t", "h", "count", "work"):
            value = {"t": 0.0, "h": 1e-3, "count": float(STEPS), "work": 0.0}[a.name]
            arrays.append(cp.asarray(value, dtype))
        elif a.name == "q":
            some = np.stack([model.random_configuration(rng) for _ in range(min(count, SOME))])
            arrays.append(cp.tile(cp.asarray(some, dtype), (-(-count // len(some)), 1))[:count])
        else:
            numbers = cp.random.standard_normal((count, *a.shape), dtype=cp.dtype(dtype))
            arrays.append(0.3 * numbers if kernel.name == "rollout" else numbers)
    return [a if a.ndim == 0 else cp.ascontiguousarray(a, dtype=dtype) for a in arrays]
