"""Memories of many worlds side by side, and what is read from and written to them."""

from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.device.running import LANES, WORD
from kinetree.contact.engine.device.image import OWN, SHARED, Image


class Memories:
    """Memories of ``n`` worlds, all as an image.

    Args:
        image: of one world.
        n: how many.
        on: where they are computed, ``Gpu`` or ``Processor``.

    Attributes:
        words: (groups, words, LANES).
    """

    def __init__(self, image: Image, n: int, on: Any):
        self.image, self.n, self._on = image, n, on
        xp, groups = on.xp, -(-n // LANES)
        size = groups * image.count * WORD
        on.have_room(size, f"memories of {n} worlds of {8 * image.count / 1e3:.0f} kB each")
        self.words = xp.empty((groups, image.count, LANES), dtype=np.int64)
        self.shared = xp.empty((len(image.shared), LANES), dtype=np.int64)
        lanes, first = 8 * xp.arange(LANES), on.address(self.shared)
        self.shared[:] = xp.asarray(image.shared)[:, None]
        at = np.flatnonzero(image.shared_space == SHARED)
        self.shared[xp.asarray(at)] = (
            first + WORD * xp.asarray(image.shared_target[at])[:, None] + lanes
        )
        count = len(image.words)
        self.words[:, :count] = xp.asarray(image.words)[None, :, None]
        self.words[:, count:] = 0
        at = np.flatnonzero(image.space == SHARED)
        self.words[:, xp.asarray(at)] = first + WORD * xp.asarray(image.target[at])[:, None] + lanes
        at = np.flatnonzero(image.space == OWN)
        begin = on.address(self.words) + image.count * WORD * xp.arange(groups)
        target = WORD * xp.asarray(image.target[at])[:, None] + lanes
        self.words[:, xp.asarray(at)] = begin[:, None, None] + target
        self._start = on.load(image.program, self.shared)

    def read(self, at: slice, kind: Any = np.float64) -> Array:
        """Words of a slice in all worlds, (n, words): a copy on the device."""
        xp = self._on.xp
        found = self.words[:, at].transpose(0, 2, 1)
        width = found.shape[-1]
        return xp.ascontiguousarray(found).reshape(-1, width)[: self.n].view(kind)

    def write(self, at: slice, values: Array, kind: Any = np.float64) -> None:
        """Write words of a slice in all worlds, from values (n, words) or (1, words)."""
        xp = self._on.xp
        values = xp.ascontiguousarray(xp.asarray(values, dtype=kind)).view(np.int64)
        if len(values) == 1:
            self.words[:, at] = values[0][None, :, None]
            return
        groups = self.words.shape[0]
        if len(values) != groups * LANES:
            whole = xp.zeros((groups * LANES, values.shape[1]), dtype=np.int64)
            whole[: len(values)] = values
            values = whole
        self.words[:, at] = values.reshape(groups, LANES, -1).transpose(0, 2, 1)

    def write_some(self, at: slice, which: Array, values: Array, kind: Any = np.float64) -> None:
        """Write words of a slice in the numbered worlds, from values (some or 1, words)."""
        xp = self._on.xp
        values = xp.ascontiguousarray(xp.asarray(values, dtype=kind)).view(np.int64)
        where = xp.arange(at.start, at.stop)[None, :]
        self.words[which[:, None] // LANES, where, which[:, None] % LANES] = values

    def take(self, steps: Array) -> Array:
        """Run the step kernel, (n,) or (1,) steps per world; result codes (n,)."""
        xp, turn = self._on.xp, self.image.turn_at
        self.write(slice(turn, turn + 1), xp.asarray(steps).reshape(-1, 1), np.int64)
        self.words[:, turn + 1] = 0
        places = (self.image.call_at, self.image.stack_at, turn)
        self._start(self.n, self.words, self.image.count * WORD, *(WORD * x for x in places))
        return self.read(slice(turn + 1, turn + 2), np.int64)[:, 0]
