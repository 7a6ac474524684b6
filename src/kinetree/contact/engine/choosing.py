"""Whether steps are shared with other threads: as long as they are quicker so.

Where other programs use the processors, threads wait for one that does not run. So one call of many
is done the other way, and if that was quicker three times in the median, so are the next ones.
Motions have the same bits either way.
"""

from statistics import median

EARLY, EVERY = (3, 6, 9), 32
"""Calls that are done the other way: the first ones, and then one of so many."""

BETTER = 0.95
"""Part of the time below which the other way is taken."""

TRIES = 3
"""Calls that decide, by the median of their times."""


class SharingChoice:
    """Choice between steps that are shared with other threads and steps on one thread.

    Attributes:
        shared: which of the two is quicker, as far as is known.
    """

    def __init__(self):
        self.shared, self._calls = True, 0
        self._forget()

    def _forget(self):
        """Discard all measured step times."""
        self._before, self._last, self._ratios, self._tries = 0.0, 0.0, [], False

    def next(self) -> bool:
        """Whether the next call uses several threads; trial calls use the way not chosen so far."""
        self._calls += 1
        due = self._calls in EARLY or self._calls % EVERY == 0
        self._tries = due and self._before > 0.0
        return self.shared is not self._tries

    def note(self, seconds: float) -> None:
        """Record the time of a step in the last call [s]; quicker trials change the choice."""
        if not self._tries:
            self._before, self._last = self._last, seconds
            return
        self._ratios = [*self._ratios[1 - TRIES :], 2.0 * seconds / (self._before + self._last)]
        if len(self._ratios) == TRIES and median(self._ratios) < BETTER:
            self.shared = not self.shared
            self._forget()
