"""``health``: one call, one page."""

from dataclasses import dataclass

import numpy as np

from kinetree.accuracy import causes
from kinetree.accuracy.conditioning import (
    condition_number,
    digits_lost,
    influence,
    round_trip_error,
    worst_chain,
)
from kinetree.array_functions import on_host
from kinetree.functions import require_tree
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model

__all__ = ["Health", "health"]


@dataclass(frozen=True)
class Health:
    """How far the dynamics of a model at one state can be trusted.

    Attributes:
        model: its name.
        condition: condition number of the inertia matrix.
        worst_chain: what a straight chain of as many equal links would have.
        round_trip: relative error of accelerations after inverse and forward dynamics.
        digits_lost: decimal digits that rounding takes from inverse and from forward dynamics.
        influence: relative change of accelerations per relative change of a body's inertia, by
            name, the largest first.
        causes: what costs digits, and what to do about it.
    """

    model: str
    condition: float
    worst_chain: float
    round_trip: float
    digits_lost: tuple
    influence: dict
    causes: tuple

    @property
    def is_good(self) -> bool:
        """Whether nothing was found."""
        return not self.causes

    def __str__(self):
        inverse, forward = self.digits_lost
        most = list(self.influence.items())[:3]
        lines = [
            f"{self.model}: {'nothing found' if self.is_good else f'{len(self.causes)} found'}",
            f"  condition of the inertia matrix   {self.condition:.3g}"
            f" (equal links in a straight line: {self.worst_chain:.3g})",
            f"  inverse, then forward dynamics    {self.round_trip:.1e}",
            f"  digits lost to rounding           {inverse:.1f} inverse, {forward:.1f} forward,"
            f" of 15.9",
            "  1 % of a body's inertia changes accelerations by "
            + ", ".join(f"{x:.2g} % ({name})" for name, x in most),
        ]
        return "\n".join([*lines, *(f"  - {cause}" for cause in self.causes)])


@on_host
def health(model, q=None, qd=None) -> Health:
    """How far the dynamics of a model can be trusted at a state.

    Args:
        model: the mechanism, without loops.
        q: joint positions, (nq,); neutral by default.
        qd: joint velocities, (nv,); at rest by default.
    """
    require_tree(as_model(model), "health")
    q = model.neutral() if q is None else as_configuration(model, q)
    qd = np.zeros(model.nv) if qd is None else as_joint_vector(model, qd, "qd")
    condition = condition_number(model, q)
    weights = zip(model.body_names[1:], influence(model, q, qd).tolist(), strict=True)
    found = [
        *causes.far_frames(model),
        *causes.far_from_origin(model, q),
        *causes.fast_flight(model, q, qd),
        *causes.inertia_ratios(model),
        *causes.sensitive_chain(model, q, condition_number(model, q, scaled=True)),
    ]
    return Health(
        model.name,
        condition,
        worst_chain(max((len(s) for s in model.support), default=0)),
        round_trip_error(model, q, qd),
        digits_lost(model, q, qd),
        dict(sorted(weights, key=lambda item: -item[1])),
        tuple(found),
    )
