"""Snapshot of what a step changes: one that finds no room begins again where it began.

Within a step contacts are remembered for another attempt, bodies wake, and expected changes of
velocities become others. Without going back the step after a growth of tables would start from
them, and a motion that starts again, with room from the start, would not repeat its bits.
"""

from typing import Any

import numpy as np

from kinetree.codegen.procedures import procedure, record
from kinetree.contact.engine.energy import Balance
from kinetree.contact.engine.known_contacts import known_again
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.engine.sleep import Sleep

OF_CONTACTS = {"key": (3,), "kept": (6,), "ended": (3,), "spot": (3,), "bent": (3,)}
"""Fields of contacts that are known, and the shapes of their rows."""


@record
class Before:
    """Memory with which a step began, by the names of ``Rows``, ``Balance``, ``Sleep``.

    Attributes:
        nv: number of velocities;  change: of these, as in ``StepState``;  overlap: likewise.
        energy_known: ``Balance.known``.
    """

    nv: int
    known: int
    follows: int
    energy_known: int
    asleep: int
    overlap: float
    key: "int[:, 3]"
    kept: "float[:, 6]"
    ended: "float[:, 3]"
    spot: "float[:, 3]"
    bent: "float[:, 3]"
    stop_kept: "float[:]"
    dry_kept: "float[:]"
    loop_kept: "float[:]"
    change: "float[:]"
    energy: "float[:]"
    sleeps: "int[:]"
    calm: "int[:]"


def before_of(rows: Rows, balance: Balance, sleep: Sleep, nv: int) -> Before:
    """``Before`` record with room for the data that undoing a step restores."""
    found: dict[str, Any] = {x: np.zeros_like(getattr(rows, x)) for x in OF_CONTACTS}
    found |= {x: np.zeros_like(getattr(rows, x)) for x in ("stop_kept", "dry_kept", "loop_kept")}
    found |= {x: np.zeros_like(getattr(sleep, x)) for x in ("sleeps", "calm")}
    return Before(nv=nv, change=np.zeros(nv), energy=np.zeros_like(balance.energy), **found)


def have_room(before: Before, rows: Rows) -> None:
    """Enlarge a ``Before`` record to the contact capacity of the rows."""
    for name in OF_CONTACTS:
        setattr(before, name, np.zeros_like(getattr(rows, name)))


@procedure
def keep_before(
    b: Before, rows: Rows, balance: Balance, z: Sleep, change: "float[:]", overlap: float
) -> None:
    """Save contacts, energy and sleep at the start of a step, for ``undo``."""
    n = rows.known
    b.known = n
    b.follows = rows.follows
    for i in range(n):
        b.key[i] = rows.key[i]
        b.kept[i] = rows.kept[i]
        b.ended[i] = rows.ended[i]
        b.spot[i] = rows.spot[i]
        b.bent[i] = rows.bent[i]
    b.stop_kept[: rows.stops] = rows.stop_kept[: rows.stops]
    b.dry_kept[: rows.dry] = rows.dry_kept[: rows.dry]
    b.loop_kept[: rows.loops] = rows.loop_kept[: rows.loops]
    b.change[: b.nv] = change[: b.nv]
    b.overlap = overlap
    b.energy_known = balance.known
    b.asleep = z.asleep
    b.energy[: z.trees] = balance.energy[: z.trees]
    if z.on == 1:
        b.sleeps[: z.trees] = z.sleeps[: z.trees]
        b.calm[: z.trees] = z.calm[: z.trees]


@procedure
def undo(b: Before, rows: Rows, balance: Balance, z: Sleep, change: "float[:]") -> None:
    """Restore contacts, energy and sleep to the start of the step."""
    n = b.known
    rows.known = n
    rows.follows = b.follows
    for i in range(n):
        rows.key[i] = b.key[i]
        rows.kept[i] = b.kept[i]
        rows.ended[i] = b.ended[i]
        rows.spot[i] = b.spot[i]
        rows.bent[i] = b.bent[i]
    rows.stop_kept[: rows.stops] = b.stop_kept[: rows.stops]
    rows.dry_kept[: rows.dry] = b.dry_kept[: rows.dry]
    rows.loop_kept[: rows.loops] = b.loop_kept[: rows.loops]
    change[: b.nv] = b.change[: b.nv]
    balance.known = b.energy_known
    z.asleep = b.asleep
    balance.energy[: z.trees] = b.energy[: z.trees]
    if z.on == 1:
        z.sleeps[: z.trees] = b.sleeps[: z.trees]
        z.calm[: z.trees] = b.calm[: z.trees]
    rows.slot[: rows.slots] = 0
    known_again(rows)
