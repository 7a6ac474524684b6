"""Results of a step of a world: the report."""

from typing import NamedTuple

from kinetree.contact.history import Residuals


class Energy(NamedTuple):
    """Energy ledger of some steps [J]: what they changed is the sum of the first three, and gain.

    Attributes:
        work: of actuators, joint forces, springs and dampers.
        contact: work of contacts, stops, dry friction and loops: what impacts and friction take,
            negative; positive where a surface moves, as that of a conveyor.
        taken: taken from velocities where the errors of a step would have added energy.
        gain: energy of unknown origin that is left.
    """

    work: float
    contact: float
    taken: float
    gain: float


class Report(NamedTuple):
    """Accuracy of all steps of a world since the last report, and what touched.

    Attributes:
        steps: how many were taken.
        residuals: of all of them, the worst, and sums of energies, in units; penetration is
            measured where each step ended.
        contacts: that exert forces at the end.
        islands: groups of bodies that touch, at the end.
        residual: of the equations and laws of the last step, relative to the largest impulse.
        margin: gap below which contacts counted as able to close in the last step, at least [m].
        asleep: bodies and robots that sleep.
        unsolved: steps that cannot be trusted: velocities at contacts miss their laws by more than
            1e-4 m/s, bodies overlap by more than 1e-3 of the largest shape and more than before,
            or contact has added more than a thousandth of the kinetic energy.
        first_unsolved: time at the end of the first of them [s], or None.
        energy: ledger of all steps, an ``Energy``.
    """

    steps: int
    residuals: Residuals
    contacts: int
    islands: int
    residual: float
    margin: float = 0.0
    asleep: int = 0
    unsolved: int = 0
    first_unsolved: float | None = None
    energy: Energy = Energy(0.0, 0.0, 0.0, 0.0)

    @property
    def penetration(self) -> float:
        """Largest penetration, or excess over joint stops [m or rad]."""
        return float(self.residuals.penetration)

    @property
    def can_be_trusted(self) -> bool:
        """Whether all steps of the report were solved to tolerance."""
        return self.unsolved == 0

    def __repr__(self):
        r, asleep = self.residuals, f", {self.asleep} asleep" if self.asleep else ""
        wrong = ""
        if self.unsolved:
            wrong = f"; {self.unsolved} not solved, the first at t = {self.first_unsolved:.6g} s"
        gain = f", gain {self.energy.gain:.1e} J" if self.energy.gain > 0 else ""
        return (
            f"{_count(self.steps, 'step')}, {_count(self.contacts, 'contact')} in "
            f"{_count(self.islands, 'island')}{asleep}; velocity "
            f"error {r.velocity:.1e} m/s, cone {r.cone:.1e} N·s, penetration "
            f"{r.penetration:.1e} m{gain}{wrong}"
        )


def _count(n, what):
    """Count with its noun, such as "2 contacts" or "1 contact"."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def report_of(motions, k: int, t: float, h: float) -> Report:
    """``Report`` on motion ``k``'s counted steps, the last of which ended at ``t``.

    Args:
        motions: of a machine.
        k: number of the motion.
        t: time now [s].
        h: length of a step [s].
    """
    since = motions.since[k].tolist()
    steps, count, first, *_ = motions.counts[k].tolist()
    contacts, islands, asleep, _ = motions.ends[k].tolist()
    residual, margin = motions.errors[k].tolist()
    at = t - (steps - first) * h if count else None
    accuracy = Residuals(*since[:10])
    return Report(
        steps, accuracy, contacts, islands, residual, margin, asleep, count, at, _ledger(since)
    )


def _ledger(since) -> Energy:
    """``Energy`` balance of steps from their summed residuals, work and gains."""
    held = since[5] - since[6]
    return Energy(since[10] - held + since[7], held, since[7], since[11])
