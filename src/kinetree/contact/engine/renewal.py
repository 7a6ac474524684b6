"""Machines as they were made, and a store of idle ones: a second simulation need not make another.

Steps leave more behind than a state: impulses, orders of elimination, lists that have grown. So an
engine that starts another motion gets all numbers back that it was made with, and the motion has
the same bits as in a new one.
"""

from collections.abc import Callable
from operator import is_
from threading import Lock
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.copying import Copies
from kinetree.codegen.procedures.language import ArrayType, Record, is_record
from kinetree.codegen.tied import Code

MOST = 16
"""Idle machines that a scene keeps."""
LARGE = 2**20
"""Numbers of the motions of a machine that is not kept."""

_CONSTANT = ("shapes", "special", "kernels")  # which steps read, or write before they read
SCRATCH = ("A", "AJ", "J", "discs", "impulses", "changes", "small", "compliance", "response")
"""Numbers of ``Problem`` and ``Work`` that steps write before they read them."""
LISTS = {
    "Found": None, "Before": None, "Storage": ("key", "force"), "Rows": ("fixed", "slept"),
}  # fmt: skip
"""Numbers that they write likewise, by the name of the record: some, or all arrays.

``Rows.fixed`` is zero, but for prescribed joints, with which every step writes it.
"""


class AsMade:
    """Records as they are now: their numbers, and which arrays and records they have.

    Args:
        record: one of them, with all that it has.
        leave_out: names of records in it that are not looked at.
    """

    def __init__(self, record: Record, leave_out: tuple[str, ...] = ()):
        self._records: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._arrays: dict[int, tuple[Array, Array]] = {}
        self._note(record, leave_out)
        self._copies = Copies(list(self._arrays.values()))

    def _note(self, record, leave_out=SCRATCH):
        """Save a copy of a record's fields and arrays, except those left out."""
        now = vars(record)
        now["has_changed"] = False
        self._records.append((now, dict(now)))
        numbers = np.frombuffer(record, dtype=np.uint8)
        self._arrays[id(record)] = numbers, numbers.copy()
        lists = LISTS.get(type(record).__name__, ())
        for name, kind in record.types.items():
            value = getattr(record, name)
            if isinstance(kind, ArrayType) and (lists is None or name in lists):
                continue
            if is_record(kind):
                if kind is not Code and name not in leave_out:
                    self._note(value)
            elif isinstance(kind, ArrayType) and value.size and name not in leave_out:
                self._arrays[id(value)] = value, value.copy()

    def again(self) -> None:
        """Restore all saved records and arrays to their initial contents and sizes."""
        for now, fields in self._records:
            if now["has_changed"]:  # arrays were replaced
                now.update(fields)
        self._copies.make()


def parts_as_made(parts: Record) -> AsMade:
    """Saved copy of a new engine's parts, from which they can be restored."""
    return AsMade(parts, _CONSTANT)


def idle_machines(scene: Any) -> "IdleMachines":
    """Pool of machines of a scene that earlier simulations returned."""
    found = scene.memo.get("machines")
    return scene.memo.setdefault("machines", IdleMachines()) if found is None else found


class IdleMachines:
    """Machines of one scene that no simulation uses at the moment, the last ones used first."""

    def __init__(self):
        self._idle: list[tuple[tuple, tuple, Any]] = []
        self._lock = Lock()

    def take(self, of: tuple, settings: tuple, make: Callable[[], Any]) -> Any:
        """Idle machine of equal parts and settings, reset to new; else a new one by ``make``.

        Args:
            of: what it is made of, the same objects.
            settings: how, which are compared.
            make: makes one.
        """
        with self._lock:
            for k, (own, theirs, _) in enumerate(self._idle):
                if all(map(is_, own, of)) and theirs == settings:
                    *_, machine = self._idle.pop(k)
                    break
            else:
                return make().keep_as_made()
        machine.renew()
        return machine

    def give(self, of: tuple, settings: tuple, machine: Any) -> None:
        """Return a machine to the pool, unless it has too many motions to keep."""
        if machine.size > LARGE:
            return
        with self._lock:
            self._idle.insert(0, (of, settings, machine))
            del self._idle[MOST:]
