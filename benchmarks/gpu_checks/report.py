"""One line for each check, and what failed in the end."""

import time
import traceback

__all__ = ["Report"]


class Report:
    """Says how checks went, and stops at a limit of time.

    Args:
        limit: seconds for everything.
        verbose: whether failures come with a traceback.
    """

    def __init__(self, limit, *, verbose=False):
        self.end, self.verbose = time.monotonic() + limit, verbose
        self.failed, self.left = [], []

    @property
    def seconds_left(self) -> float:
        """Until the limit; not negative."""
        return max(0.0, self.end - time.monotonic())

    def run(self, name, check, *args):
        """One check: a function that raises, or returns what is worth saying."""
        if not self.seconds_left:
            self.left.append(name)
            return
        begin = time.perf_counter()
        try:
            note = check(*args)
        except Exception as error:
            self.fail(name, f"{type(error).__name__}: {str(error)[:300]}")
            if self.verbose:
                traceback.print_exc()
            return
        seconds = time.perf_counter() - begin
        print(f"pass  {name}{f': {note}' if note else ''} ({seconds:.1f} s)", flush=True)

    def fail(self, name, why):
        """A check that failed."""
        self.failed.append(name)
        print(f"FAIL  {name}: {why}", flush=True)

    def close(self) -> int:
        """The last lines; the exit status."""
        if self.left:
            print(f"{len(self.left)} not reached: {', '.join(self.left)}")
        print(f"{len(self.failed)} failed{': ' + ', '.join(self.failed) if self.failed else ''}")
        return min(len(self.failed), 100)
