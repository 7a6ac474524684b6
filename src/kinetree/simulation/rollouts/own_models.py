"""Parameters of rollouts on arrays: a model for each sample, and gradients by inertias.

Code for every robot takes other numbers from a table, so that a model with other parameters
compiles nothing. Gradients by masses and inertias follow from the equation of motion, which is
linear in them: its derivatives are general code, too.
"""

from typing import Any

import numpy as np

from kinetree.functional.differentiate import differentiate
from kinetree.functional.parameters import with_parameters
from kinetree.integration.explicit import ExplicitRungeKutta, SemiImplicitEuler
from kinetree.integration.on_arrays import FieldOnArrays
from kinetree.model.memo import remember
from kinetree.quantities import dynamics

_KEPT = 64  # models with other parameters that are kept with one


def models_of(transition, values) -> list:
    """Part of the batch, model and gradient-gathering field of every distinct parameter set.

    Args:
        transition: one step of the run.
        values: arrays of its parameters, (samples, ...) each.
    """
    known = remember(transition.model, (transition, "own models"), dict)
    if len(known) > _KEPT:
        known.clear()
    found = []
    for k, sample in enumerate(zip(*values, strict=True)):
        key = tuple(np.asarray(x).tobytes() for x in sample)
        if key not in known:
            named = dict(zip(transition.parameters, sample, strict=True))
            known[key] = with_parameters(transition.model, named)
        model = known[key]
        field = _Gathering(model, transition.field.of(model), transition.parameters)
        found.append((slice(k, k + 1), model, field))
    return found


def have_gradients(transition) -> bool:
    """Whether gradients by all parameters of a run follow from inverse dynamics."""
    kinds = {name.partition(":")[0] for name in transition.parameters}
    known = kinds <= {"mass", "inertia"} and not transition.model.gravity_compensation
    return known and type(transition.method) in (ExplicitRungeKutta, SemiImplicitEuler)


class _Gathering(FieldOnArrays):
    """A field on arrays that adds up gradients by parameters, of all stages of a step."""

    def __init__(self, model, field, parameters):
        super().__init__(model, field)
        self._parameters, self._found = parameters, [0.0] * len(parameters)

    def pulled_back(self, state, qdd, weight):
        """Gradients by forces, positions and velocities from those by accelerations."""
        w, by_q, by_v = super().pulled_back(state, qdd, weight)
        _, q, qd, _ = state
        for k, name in enumerate(self._parameters):
            D = _by_parameter(self._model, name, q, qd, qdd)
            more = D.ndim - q.ndim  # axes of the parameter
            own = w.reshape(*w.shape, *(1,) * more)
            self._found[k] = self._found[k] - (own * D).sum(w.ndim - 1)
        return w, by_q, by_v

    def gradients(self) -> list:
        """Gradients by all parameters, gathered since the field was made."""
        return self._found


def _by_parameter(model, name, q, qd, qdd) -> Any:
    """Derivatives of inverse dynamics by a model parameter, (..., nv, its shape)."""
    kind, _, body = name.partition(":")
    if kind == "inertia":
        return differentiate(dynamics.inverse_dynamics, wrt=name)(model, q, qd, qdd)
    own = model.inertia[model.body_index(body)]
    D = differentiate(dynamics.inverse_dynamics, wrt=f"inertia:{body}")(model, q, qd, qdd)
    return D @ (own.parameters() / own.mass)
