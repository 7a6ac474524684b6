"""Activations and integrals of actuators: how they go on with held controls."""

from math import exp

from kinetree.codegen.procedures import ProcedureTable, procedure
from kinetree.contact.engine.actuator_tables import ACTIVATION_NUMBERS, Actuators
from kinetree.contact.engine.muscles import muscle_activation


@procedure
def integrate(u: float, x: float, rise: float, fall: float, h: float) -> float:
    """Activation of an integrator (``x' = u``) after ``h`` seconds with constant control ``u``."""
    return x + u * h


@procedure
def low_pass(u: float, x: float, rise: float, fall: float, h: float) -> float:
    """Activation of a first-order filter, ``x' = (u - x) / rise``, after ``h`` seconds."""
    return u + (x - u) * exp(-h / rise) if rise > 0.0 else u


@procedure
def ramp(u: float, x: float, rise: float, fall: float, h: float) -> float:
    """Activation that follows ``u`` at the constant rate 1 / ``rise``, after ``h`` seconds."""
    most = h / rise if rise > 0.0 else 0.0
    return x + min(max(u - x, -most), most)


MOVING = {"integrator": integrate, "filter": low_pass, "muscle": muscle_activation, "ramp": ramp}
FOLLOWING = ProcedureTable({ACTIVATION_NUMBERS[name]: p for name, p in MOVING.items()}, low_pass)
"""Activations after ``h`` seconds with a held control, by number: see ``algorithms.actuators``."""


@procedure
def next_activation(a: Actuators, k: int, x: float, h: float) -> float:
    """Activation of actuator ``k`` after ``h`` seconds with constant control, from ``x``."""
    u = min(max(a.u[k], a.control[k, 0]), a.control[k, 1])
    x = FOLLOWING[a.kind[k]](u, x, a.time[k], a.fall[k], h)
    return min(max(x, a.range[k, 0]), a.range[k, 1])


@procedure
def setpoint(a: Actuators, k: int, h: float) -> float:
    """Setpoint of actuator ``k``'s integral action after ``h`` seconds with constant control."""
    if a.state[k] >= 0:
        return next_activation(a, k, a.activation[a.state[k]], h)
    return min(max(a.u[k], a.control[k, 0]), a.control[k, 1])


@procedure
def follow_controls(a: Actuators, h: float):
    """Advance the activations of all actuators by ``h`` seconds with constant controls."""
    for k in range(a.count):
        n = a.state[k]
        if n >= 0:
            a.activation[n] = next_activation(a, k, a.activation[n], h)


@procedure
def add_up_errors(a: Actuators, h: float):
    """Advance all actuators' integrals of the servo error by a step of ``h`` seconds."""
    for k in range(a.count):
        n = a.integral[k]
        if n >= 0:
            z = a.activation[n] + h * (setpoint(a, k, h / 2.0) - a.integral_zero[k] - a.midway[k])
            a.activation[n] = min(max(z, a.integral_range[k, 0]), a.integral_range[k, 1])


@procedure
def read_controls(a: Actuators, inputs: "float[:]", t: float):
    """Set controls and activations of all actuators, at time ``t``, from the held inputs.

    Integrals are those of this time.
    """
    for k in range(a.count):
        a.u[k] = inputs[k]
    for n in range(a.states):
        a.activation[n] = inputs[a.count + n]
    if a.states > 0:
        follow_controls(a, t - inputs[a.count + a.states])
