"""Forces of joints compiled for a step: those of a field, in the variables of all joints."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.functional.kernel import kernel
from kinetree.functional.parameters import parameter, with_parameters


def native_forces(model, field, *, own=False) -> dict:
    """Kernels ``forces`` and, where it resists, ``resistance`` of ``Engine`` for a field.

    Args:
        model: the mechanism.
        field: a ``Field`` whose forces can all be compiled; the engine has springs of tendons and
            loop joints, and gravity compensation.
        own: whether inertias of the bodies, (bodies, 10), are inputs as well: laws of friction and
            limits follow from them.
    """
    full, inputs, reduced = (
        model.uncoupled,
        field.inputs(model),
        _Reduced(model, field.for_steps, own),
    )
    if own:
        inputs = np.concatenate([inputs, parameter(model, "inertia").value(model).ravel()])
    start = 0.0, full.neutral(), np.zeros(full.nv), inputs
    found = {"forces": _forces.compiled(full, *start, reduced=reduced)}
    if field.resists:
        found["resistance"] = _resistance.compiled(full, *start, reduced=reduced)
    return found


@dataclass(frozen=True)
class Idle:
    """Actuators that exert nothing here, for the engine has them as tables."""

    servos: Any

    def inputs(self, model):
        """Zeros in the shape of what a step holds."""
        return self.servos.inputs(model)

    def __call__(self, model, t, q, qd, inputs):
        """Joint forces, (..., nv)."""
        return 0 * qd

    def resistance(self, model, t, q, qd, inputs):
        """Stiffness and damping, (nv,) each."""
        return np.zeros(model.nv), np.zeros(model.nv)


@dataclass(frozen=True)
class _Reduced:
    """A field in the variables that follow no others."""

    model: Any
    field: Any
    own: bool

    def __call__(self, t, q, qd, inputs):
        """Field, and model, time, state and what is held, from the variables of all joints."""
        model, field = self.model, self.field
        of_q, of_v = self.variables
        if self.own:
            size = 10 * model.body_count
            inertia = inputs[len(inputs) - size :].reshape(-1, 10)
            inputs = inputs[: len(inputs) - size]
            model = with_parameters(model, {"inertia": inertia})
            field = field.of(model)
        return field, (model, t, q[of_q], qd[of_v], inputs)

    @property
    def variables(self):
        """Position and velocity variables among those of all joints."""
        couplings = self.model.couplings
        return self.model.independent_variables if couplings else (slice(None), slice(None))

    def spread(self, values):
        """Values of the velocity variables among those of all joints, zero for others."""
        found = np.zeros(self.model.uncoupled.nv, dtype=np.asarray(values).dtype)
        found[self.variables[1]] = values
        return found


@kernel
def _forces(full, t, q, qd, inputs, *, reduced):
    """Joint forces."""
    field, given = reduced(t, q, qd, inputs)
    return reduced.spread(field.joint_force(*given))


@kernel
def _resistance(full, t, q, qd, inputs, *, reduced):
    """Stiffness and damping of servos and stiff limits."""
    field, given = reduced(t, q, qd, inputs)
    return tuple(reduced.spread(x) for x in field.resistance(*given))
