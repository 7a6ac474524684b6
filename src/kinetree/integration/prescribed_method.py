"""Steps that end with some joints exactly where they are told to be."""

from dataclasses import dataclass

from kinetree.errors import UnknownNameError
from kinetree.integration.integrator import Integrator
from kinetree.integration.prescription import Told

__all__ = ["Driven", "driven"]


@dataclass(frozen=True)
class Driven(Integrator):
    """Steps of another method, after which joints that move as told are put in place.

    Its stages are free to be wrong about them, since a ``DrivenField`` is not; what remains is the
    method applied to the other joints alone.

    Attributes:
        inner: the method.
        told: the joints.
    """

    inner: Integrator
    told: Told

    def __post_init__(self):
        for name in ("name", "order", "error_order", "differentiates", "solves", "closes"):
            object.__setattr__(self, name, getattr(self.inner, name))

    def step(self, field, model, t, h, q, qd, tau):
        """See ``Integrator.step``; only the other joints have errors."""
        after = self.inner.step(field, model, t, h, q, qd, tau)
        q1, qd1, _ = self.told.at(model, t + h, after.q, after.qd)
        error = after.error
        if error is not None:
            error = tuple(e * self.told.others(model) for e in error)
        return after._replace(q=q1, qd=qd1, error=error)

    def interpolation(self, theta):
        """Weights of the stages of the inner method."""
        return self.inner.interpolation(theta)


def driven(method, told) -> Driven:
    """Steps of a method with joints that move as told; an error if it cannot."""
    if method.differentiates:
        raise UnknownNameError(
            f"integrator {method.name!r} solves for all joints at once, also for those that move "
            f"as told ({', '.join(map(repr, told.names))}): use 'rk4', 'rk6' or 'dopri5'"
        )
    return Driven(method, told)
