"""Contacts of soft contact along a motion: where they are and what they exert at stored states.

Soft contact is a force of the state, so that its record is a function of the states that are
stored: compiled, for all of them at once, when it is read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.contact.contacts import Contacts
from kinetree.contact.history import ContactHistory, Residuals
from kinetree.contact.soft.force import SoftContact
from kinetree.functional.kernel import kernel

_PENETRATION, _TOUCHING = (Residuals._fields.index(x) for x in ("penetration", "touching"))


def soft_contacts(forces) -> tuple[SoftContact, ...]:
    """``SoftContact`` members of a tuple of forces."""
    return tuple(f for f in forces if isinstance(f, SoftContact))


@dataclass(frozen=True)
class SoftTerms:
    """Gaps, points, normals and forces of soft contacts as functions of a state."""

    softs: tuple[SoftContact, ...]
    stateful: Any = None
    """``StatefulField`` of those that have a memory, or None where none has."""

    def __call__(self, model, q, qd, memory=None) -> tuple:
        """Gaps (n,), points, normals and forces (n, 3) of all contacts, of one state."""
        states: Any = (None,) * len(self.softs)
        parts = []
        if self.stateful is not None:
            states = self.stateful.of_each(self.softs, memory)
        for soft, state in zip(self.softs, states, strict=True):
            gap, point, axes = soft.scene.candidate_positions(model, q)
            known = np.zeros((*np.shape(gap), 0)) if state is None else state
            parts.append((gap, point, axes[..., 0, :], soft.forces(model, q, qd, known)))
        return tuple(np.concatenate(x, axis=0) for x in zip(*parts, strict=True))

    def along(self, model, q, qd, memory=None) -> tuple:
        """Contact terms of many states (..., nq), (..., nv), with force memories (..., m)."""
        start = model.neutral(), np.zeros(model.nv)
        if memory is None:
            return _of_state.compiled(model, *start, terms=self).call(q, qd)
        compiled = _with_memory.compiled(model, *start, np.zeros(memory.shape[-1]), terms=self)
        return compiled.call(q, qd, memory)


@kernel
def _of_state(model, q, qd, *, terms):
    """Kernel of soft-contact terms at a state, without memory."""
    return terms(model, q, qd)


@kernel
def _with_memory(model, q, qd, memory, *, terms):
    """Kernel of soft-contact terms at a state with the forces' memory."""
    return terms(model, q, qd, memory)


class SoftHistory(ContactHistory):
    """Forces of soft contact at the stored states, found when they are read.

    Forces are those at each time, not means of a step. Of the residuals, ``penetration`` is the
    largest overlap and ``touching`` counts states with a force; there is no law to be missed.

    Args:
        softs: the soft contacts; columns are the candidates of their scenes.
        found: function that returns what ``SoftTerms.along`` does, with time first.

    Attributes:
        bodies: of each contact, predecessor and successor, (2, contacts).
    """

    def __init__(self, softs: Sequence[SoftContact], found: Callable[[], tuple]):
        known = [soft.scene.candidates for soft in softs]
        self.__dict__.update(
            names=tuple(name for x in known for name in x.names),
            bodies=np.concatenate([[x.predecessor, x.successor] for x in known], axis=1),
        )
        self.__dict__["_softs"], self.__dict__["_of"] = tuple(softs), found

    @cached_property
    def _found(self):
        """Gaps, points, normals and forces of the history, computed when first read."""
        return tuple(map(np.asarray, self.__dict__["_of"]()))

    @property
    def gap(self) -> Array:
        """Distances along the normals [m], negative where bodies overlap, (T, ..., contacts)."""
        return self._found[0]

    @property
    def point(self) -> Array:
        """Contact points in base coordinates [m], (T, ..., contacts, 3)."""
        return self._found[1]

    @property
    def normal(self) -> Array:
        """Unit vectors from predecessor to successor, (T, ..., contacts, 3)."""
        return self._found[2]

    @property
    def force(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Forces along normal and tangents at each time [N], (T, ..., contacts, 3)."""
        return self._found[3]

    @property
    def joint_force(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Empty array (T, ..., 0): soft contact solves for no joint forces."""
        return np.zeros((*self.gap.shape[:-1], 0))

    @cached_property
    def residuals(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Penetrations and contact flags in the fields of ``Residuals``, (T, ..., 10)."""
        found = np.zeros((*self.gap.shape[:-1], len(Residuals._fields)))
        found[..., _PENETRATION] = np.max(-self.gap, axis=-1, initial=0.0)
        found[..., _TOUCHING] = np.any(self.force != 0, axis=(-2, -1))
        return found

    def at(self, which: Any) -> "SoftHistory":
        """History at some of the times or, given a tuple, of some motions of a batch."""
        return SoftHistory(self.__dict__["_softs"], lambda: tuple(x[which] for x in self._found))

    def contacts(self, index: Any) -> tuple[Contacts, Array]:
        """Contacts at one time of one motion, and their forces, (contacts, 3)."""
        gap, point, normal, force = (x[index] for x in self._found)
        first, second = self.__dict__["bodies"]
        return Contacts(first, second, point, normal, gap, self.names), force

    def __reduce__(self):
        names = ("names", "force", "joint_force", "residuals")
        return ContactHistory, tuple(getattr(self, name) for name in names)
