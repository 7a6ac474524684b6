"""How much work and memory something takes, whatever else the machine and the process do."""

import resource
import tracemalloc
from time import monotonic, sleep, thread_time

ROUNDS = 5


def seconds(act) -> float:
    """Processor time that ``act`` takes in this thread [s]."""
    start = thread_time()
    act()
    return thread_time() - start


def assert_quick(act, most):
    """``act`` takes at most ``most`` seconds, where Python does 16 million additions in one.

    A loop that is timed beside it counts them. One round of several has to be quick: others may
    disturb some of them, while work that grew is in each.
    """
    found = []
    for _ in range(ROUNDS):
        found.append(seconds(act) / (80 * seconds(_add)))
        if found[-1] <= most:
            return
    raise AssertionError(f"took {min(found):.3g} s or more, at most {most} expected: {found}")


def _add():
    total = 0
    for k in range(200_000):
        total += k & 3


def assert_linear(act, sizes, slack=2.0):
    """``act(size)`` takes at most ``slack`` times its share of time, in a round of several."""
    found = []
    for _ in range(ROUNDS):
        small, large = (seconds(lambda n=n: act(n)) for n in sizes)
        found.append(large / small / (sizes[1] / sizes[0]))
        if found[-1] <= slack:
            return
    raise AssertionError(f"the larger took {min(found):.3g} times its share or more: {found}")


def assert_light(act, most):
    """``act`` has at most ``most`` bytes at once, in a round of several: the first one imports."""
    found = []
    for _ in range(ROUNDS):
        tracemalloc.start()
        try:
            start = tracemalloc.get_traced_memory()[0]
            act()
            found.append(tracemalloc.get_traced_memory()[1] - start)
        finally:
            tracemalloc.stop()
        if found[-1] <= most:
            return
    raise AssertionError(f"took {min(found):,d} bytes or more, at most {most:,d} expected")


def until(condition, within=600.0):
    """Wait for something that other threads or processes do, however busy the machine is."""
    end = monotonic() + within
    while not condition():
        assert monotonic() < end, f"did not come true within {within} s"
        sleep(0.02)


def peak_memory() -> int:
    """Bytes that this process has used at most, so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
