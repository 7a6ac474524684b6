"""What a simulation says about itself."""

from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Report"]

_WHERE_ANY = (
    "rejected", "event_energy", "loop_error", "loop_rate_error", "refined", "singular_passes",
)  # fmt: skip


@dataclass(frozen=True)
class Report:
    """What a simulation says about itself; of a batch, the worst.

    Attributes:
        integrator: its name.
        steps: steps that were taken.
        rejected: steps that were thrown away because of their error.
        largest_step: the longest [s].
        energy_error: largest difference between the change of kinetic and potential energy and the
            work of the joint forces, that of events included, relative to the energy that was
            exchanged.
        event_energy: energy that events such as impacts gave; negative if they took some [J].
        momentum_error: largest change of the momentum of a mechanism that floats freely, gravity
            accounted for, relative to that of its parts; None for others, and where
            an event changed the state.
        loop_error: largest position error of a loop or coupling [m or rad].
        loop_rate_error: largest velocity error of a loop or coupling [m/s or rad/s].
        constraints: how loops and couplings were kept; None for trees.
        refined: steps that were taken in parts, close to singular configurations.
        singular_passes: how often the mechanism came close to a singular configuration.
        smallest_pivot: of the inertia matrix, relative to its diagonal: 1 for joints that do not
            feel each other, 0 where it is singular.
        largest_advance: largest displacement of a joint in one step [rad or m].
        contact: residuals of contact, ``kinetree.contact.Residuals``, or None without.
        warnings: what is wrong with these numbers.
    """

    integrator: str
    steps: int
    rejected: int
    largest_step: float
    energy_error: float
    event_energy: float
    momentum_error: float | None
    loop_error: float
    smallest_pivot: float
    largest_advance: float
    loop_rate_error: float = 0.0
    constraints: str | None = None
    refined: int = 0
    singular_passes: int = 0
    contact: Any = None
    warnings: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether none of the numbers is a reason for doubt."""
        return not self.warnings

    def __str__(self):
        lines = []
        for f in fields(self):
            value = getattr(self, f.name)
            idle = f.name in _WHERE_ANY and not value
            if f.name in ("warnings", "contact") or value is None or idle:
                continue
            shown = f"{value:.3g}" if isinstance(value, float) else value
            lines.append(f"{f.name.replace('_', ' '):16s} {shown}")
        for name, value in self.contact._asdict().items() if self.contact else ():
            lines.append(f"contact: {name.replace('_', ' '):16s} {value:.3g}")
        lines += [f"warning: {w}" for w in self.warnings]
        if self.trusted:
            lines.append("result           can be trusted")
        return "\n".join(lines)
