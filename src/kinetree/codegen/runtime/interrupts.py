"""Ctrl-C during long calls of compiled code: heard between slices, where the state is whole.

Python runs signal handlers between two of its own instructions. Compiled code that runs for minutes
has none, so it runs in slices of about ``BREATH`` seconds. And a handler that raises
KeyboardInterrupt anywhere between them could leave a step half-counted, so that it is delayed to
where the work looks for it.
"""

import signal
import threading
from time import perf_counter
from typing import Any

try:  # without Python's conversion to names, which takes 40 µs each time
    import _signal  # pyright: ignore[reportMissingImports]

    getsignal, handle = _signal.getsignal, _signal.signal
except ImportError:  # another Python
    getsignal, handle = signal.getsignal, signal.signal

BREATH = 0.05
"""About how long compiled code may run on [s]."""
_MOST = 2**20
_INTERRUPT = int(signal.SIGINT)


class Interrupt:
    """Delays Ctrl-C inside a ``with`` statement until ``look`` is called, or to its end.

    The handler that was there is called then: Python's raises KeyboardInterrupt, another one may
    return, and the work goes on. Only the main thread hears signals; elsewhere this does nothing.

    Args:
        active: whether to do anything.
    """

    def __init__(self, active: bool = True):
        self.active, self.came = active, False
        self._before: Any = None

    def __enter__(self):
        if self.active and threading.current_thread() is threading.main_thread():
            before = getsignal(_INTERRUPT)
            if callable(before):  # neither ignored nor handled outside of Python
                self._before = before
                handle(_INTERRUPT, self._note)
        return self

    def _note(self, number, frame):
        """Signal handler that stores an interrupt for later."""
        self.came = True

    def look(self) -> None:
        """Raise a stored KeyboardInterrupt by its handler; called when data are consistent."""
        if self.came and self._before is not None:
            self.came = False
            self._before(signal.SIGINT, None)

    def __exit__(self, *_):
        if self._before is not None:
            handle(_INTERRUPT, self._before)
            self.look()


class Pace:
    """Sizes of slices of work, such that each takes about ``BREATH`` seconds.

    Args:
        first: of the first slice.
    """

    def __init__(self, first: int):
        self.size, self._since = first, perf_counter()

    def next(self) -> int:
        """Size of the next slice of work, from how long the last one took."""
        now = perf_counter()
        taken, self._since = now - self._since, now
        if taken < BREATH / 2:
            self.size = min(2 * self.size, _MOST)
        elif taken > BREATH:
            self.size = max(self.size // 2, 1)
        return self.size
