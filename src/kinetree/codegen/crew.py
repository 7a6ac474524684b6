"""Threads that help compiled code in the middle of a call, which goes on when all is done.

    the_crew().have(4)                       three more threads, if there are fewer
    code = shared_code(procedure, records)   ``run(code)`` in a procedure calls
                                             ``procedure(records[k], i)`` for all items ``i``

Items are taken one after the other by whoever is free, ``k`` being the number of the thread: 0 is
the caller, who takes part and needs nobody, so that nothing waits for a thread that has not come.
Threads that have nothing to do wait outside of Python, after a short while without a processor. Who
finds the crew at work for another thread does everything alone.
"""

import atexit
import ctypes
import os
import sys
from functools import cache
from threading import Lock, Thread
from typing import Any

import numpy as np

from kinetree.codegen.build import code_of
from kinetree.codegen.crew_text import (
    FIRST,
    ITEMS,
    LIMIT,
    LINE,
    OVER,
    SEATS,
    WAIT,
    WAKE,
    crew_text,
)
from kinetree.codegen.procedures.native import Procedure
from kinetree.codegen.tied import Code

__all__ = ["ITEMS", "LIMIT", "MOST", "Crew", "can_help", "is_of_crew", "shared_code", "the_crew"]

MOST = 64
"""Threads of a crew at most, the caller's included."""


class Crew:
    """Threads that wait for work; ``desk`` is what all of them read and write, see ``crew_text``.

    They stay until the process ends. How many of them work is ``LIMIT`` of each code.
    """

    def __init__(self):
        self._lock, self._threads, host = Lock(), [], _host()
        self.desk = np.zeros(SEATS + MOST * LINE, dtype=np.int64)
        self.desk[WAIT], self.desk[WAKE] = map(_address, (host.acquire, host.release))
        for k in range(MOST):
            self.desk[SEATS + k * LINE + 1] = lock = host.allocate()
            host.acquire(lock, 1)  # whoever waits acquires it once more
        self.address = self.desk.ctypes.data
        atexit.register(self.close)

    def have(self, count: int) -> int:
        """Start worker threads up to ``count``, the caller included; how many there are."""
        count = min(count, MOST)
        if len(self._threads) < count - 1:
            serve = _function("serve")
            with self._lock:
                for k in range(len(self._threads) + 1, count):
                    own = {"args": (self.address, k), "name": f"kinetree crew {k}"}
                    thread = Thread(target=serve, **own, daemon=True)  # it waits for no other's end
                    thread.start()
                    self._threads.append(thread)
        return count

    def close(self) -> None:
        """End all worker threads after the work that they have taken."""
        self.desk[OVER] = 1
        for k, thread in enumerate(self._threads, 1):
            _function("wake")(self.address, k)
            thread.join()


@cache
def the_crew() -> Crew:
    """Crew of worker threads of this process."""
    return Crew()


if hasattr(os, "register_at_fork"):  # threads do not survive in a forked process
    os.register_at_fork(after_in_child=the_crew.cache_clear)


@cache
def can_help() -> bool:
    """Whether worker threads can be used: they wait for locks of CPython."""
    return sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8


def shared_code(procedure: Procedure, records: list[Any]) -> Code:
    """Machine code that distributes ``frame[ITEMS]`` items over ``frame[LIMIT]`` threads.

    Args:
        procedure: takes a record and the number of an item, and returns nothing.
        records: one for each thread, the first for the caller.
    """
    frame = np.zeros(FIRST + len(records), dtype=np.int64)
    crew = the_crew()
    frame[0], frame[1] = crew.address, procedure.place.ctypes.data
    frame[LIMIT], frame[FIRST:] = len(records), [record.address for record in records]
    none = np.zeros(1, dtype=np.int64)
    code = Code(loop=_code().address("share"), frame=frame, count=none, steps=none, status=none)
    code.keeps = procedure, records, crew
    return code


def is_of_crew(code: Code) -> bool:
    """Whether code distributes items over worker threads of this process."""
    return int(code.frame[0]) == the_crew().address


@cache
def _code():
    """Machine code of the worker threads."""
    return code_of(crew_text())


@cache
def _function(name):
    """Function of the workers' machine code, with the shared memory and a thread's number."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(_code().address(name))


@cache
def _host():
    """Functions of CPython for locks that are waited for without the interpreter lock."""
    api: Any = ctypes.PyDLL("", handle=ctypes.pythonapi._handle)
    api.allocate, api.acquire = api.PyThread_allocate_lock, api.PyThread_acquire_lock
    api.release, api.allocate.restype = api.PyThread_release_lock, ctypes.c_void_p
    api.acquire.argtypes = ctypes.c_void_p, ctypes.c_int
    return api


def _address(function):
    """Address of a C function of ctypes."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
