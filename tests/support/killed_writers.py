"""Processes that write files and are killed, or whose disk is full, in the middle."""

import gc
import os
import resource
import signal
import subprocess
import sys
import time
import warnings

from kinetree import files

SIZES = 4096
"""Bytes that a file may have on the disk that is full."""


def part_of_a_dead_process() -> str:
    """Name of a file that a process left half-written which has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return f".kinetree-{files._machine()}-{ended.pid}-{'0' * 16}.part"


def parts(folder) -> list[str]:
    """Half-written files in a folder and those below."""
    return [name for _, _, names in os.walk(folder) for name in names if "kinetree-" in name]


def forked(act) -> int:
    """The number of a process that does something, quietly, and ends."""
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child uses none
        number = os.fork()
    if number:
        return number
    try:
        gc.disable()
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        act()
    except BaseException:
        os._exit(1)
    os._exit(0)


def killed(act, after: float) -> int:
    """Let a process act again and again, kill it after so many seconds; how it ended."""

    def forever():
        os.setsid()
        while True:
            act()

    number = forked(forever)
    time.sleep(after)
    os.kill(number, signal.SIGKILL)
    status = os.waitpid(number, 0)[1]
    while number in map(_session, filter(str.isdigit, os.listdir("/proc"))):
        time.sleep(0.01)  # encoders of films that it started end by themselves
    return status


def _session(number):
    try:
        return os.getsid(int(number))
    except ProcessLookupError:
        return None


def on_a_full_disk(act, size: int = SIZES) -> str:
    """What comes of an act in a process that can write no file of more than ``size`` bytes.

    The system refuses the bytes beyond, as a full disk does; result as of ``outcome``.
    """

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        act()

    return outcome(limited)


def outcome(act) -> str:
    """What comes of an act in another process, where libraries may complain as they end.

    Name of the exception, and whether it is the package's: ``"WriteError True"``; empty for none.
    """
    reader, writer = os.pipe()

    def told():
        try:
            act()
        except Exception as error:
            from kinetree.errors import KinetreeError

            ours = isinstance(error, KinetreeError)
            os.write(writer, f"{type(error).__name__} {ours}".encode())
            raise

    number = forked(told)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(number, 0)
    return text
