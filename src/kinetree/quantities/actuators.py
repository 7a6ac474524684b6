"""Forces of the actuators of a model: motors and servos, see ``Actuator``."""

from typing import Any

from kinetree.algorithms import actuators
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.model import Model
from kinetree.model.define import Array as Argument
from kinetree.model.define import quantity

__all__ = ["actuator_forces", "driving_force"]


def _count(model, options=None):
    return len(model.actuators)


def _states(model, options=None):
    return len(actuators.stateful(model))


ACTUATED = {"controls": Argument((_count,)), "activation": Argument((_states,))}


@quantity((_count,), actuators.actuator_forces, arrays=ACTUATED)
def actuator_forces(
    model: Model, q: ArrayLike, qd: ArrayLike, controls: ArrayLike,
    activation: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Forces of the actuators before their gears [N or N·m], (..., n).

    ``clip(gain u + bias, effort)`` of every actuator, with ``u`` the control within its range, or
    the activation: what MuJoCo calls ``actuator_force``. See ``Actuator`` for the law.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        controls: one for each actuator, (..., n).
        activation: of the actuators that have one, in their order; zero by default.
    """


@quantity(("nv",), actuators.driving_force, arrays=ACTUATED)
def driving_force(
    model: Model, q: ArrayLike, qd: ArrayLike, controls: ArrayLike,
    activation: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Joint forces that the actuators exert, (..., nv): moment arms times ``actuator_forces``.

    The sum at each joint is cut to its limit of effort. With ``passive_force`` they are the ``tau``
    of ``forward_dynamics``.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        controls: one for each actuator, (..., n).
        activation: of the actuators that have one, in their order; zero by default.
    """


@quantity(
    (_states,), actuators.activation_after, public=False,
    arrays={**ACTUATED, "time": Argument(())},
)  # fmt: skip
def activation_after(model: Model, controls: ArrayLike, activation: ArrayLike, time: Any) -> Array:
    """Activations after some time [s] with held controls, (..., m)."""
