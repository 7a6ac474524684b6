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
from kinetree.errors import ShapeError, SingularError
from kinetree.functions import require_tree
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model

__all__ = ["Health", "health"]

_ALL_DIGITS = 15.9


@dataclass(frozen=True)
class Health:
    """How far the dynamics of a model at one state can be trusted.

    Attributes:
        model: its name.
        condition: condition number of the inertia matrix.
        worst_chain: what a straight chain of as many equal links would have.
        round_trip: relative error of accelerations after inverse and forward dynamics; infinite
            where there are no accelerations, in a singular configuration.
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
            f" of {_ALL_DIGITS}",
            "  1 % of a body's inertia changes accelerations by "
            + (", ".join(f"{x:.2g} % ({name})" for name, x in most) or "nothing"),
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
    if q.ndim != 1 or qd.ndim != 1:
        raise ShapeError(
            f"health is about one state, q (nq,) and qd (nv,), got {q.shape} and {qd.shape}"
        )
    found = []
    try:
        round_trip, lost = round_trip_error(model, q, qd), digits_lost(model, q, qd)
        weights = influence(model, q, qd).tolist()
    except (SingularError, np.linalg.LinAlgError) as error:
        found.append(causes.singular_motion(error))
        round_trip, lost = np.inf, (0.0, _ALL_DIGITS)
        weights = [np.inf] * model.body_count
    found += causes.singular_variables(model, q)
    if not found:
        found += causes.sensitive_chain(model, q, condition_number(model, q, scaled=True))
    found += [
        *causes.far_frames(model),
        *causes.far_from_origin(model, q),
        *causes.fast_flight(model, q, qd),
        *causes.inertia_ratios(model),
    ]
    if not found and lost[1] > causes.MANY_DIGITS:
        found.append(causes.unexplained(lost[1]))
    by_name = zip(model.body_names[1:], weights, strict=True)
    return Health(
        model.name,
        condition_number(model, q),
        worst_chain(max((len(s) for s in model.support), default=0)),
        round_trip,
        lost,
        dict(sorted(by_name, key=lambda item: -item[1])),
        tuple(found),
    )
