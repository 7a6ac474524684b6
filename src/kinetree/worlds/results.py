"""Results of a step of a world: the report."""

from typing import NamedTuple

from kinetree.contact.history import Residuals


class Report(NamedTuple):
    """Accuracy of the last call of ``World.step``, and what touched.

    Attributes:
        steps: how many were taken.
        residuals: of all of them, the worst, and sums of energies.
        contacts: that exert forces at the end.
        islands: groups of bodies that touch, at the end.
        residual: of the equations and laws of the last step, relative to the largest impulse.
        margin: gap below which contacts counted as able to close in the last step, at least [m].
        asleep: bodies and robots that sleep.
    """

    steps: int
    residuals: Residuals
    contacts: int
    islands: int
    residual: float
    margin: float = 0.0
    asleep: int = 0

    @property
    def penetration(self) -> float:
        """Deepest [m or rad]."""
        return float(self.residuals.penetration)

    def __repr__(self):
        r, asleep = self.residuals, f", {self.asleep} asleep" if self.asleep else ""
        return (
            f"{_count(self.steps, 'step')}, {_count(self.contacts, 'contact')} in "
            f"{_count(self.islands, 'island')}{asleep}; velocity "
            f"error {r.velocity:.1e}, cone {r.cone:.1e} N·s, penetration {r.penetration:.1e} m"
        )


def _count(n, what):
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
