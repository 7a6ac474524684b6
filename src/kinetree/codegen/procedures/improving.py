"""Optimised code in place of quick code: compiled in the background, kept on disk, then used.

Procedures are first compiled without LLVM's passes, in a tenth of the time: they run three to four
times slower and compute the same bits, so that it does not matter when better code takes over.
"""

import atexit
import os
import random
import sys
from contextlib import suppress
from threading import Condition, Thread, get_native_id
from typing import Any

from kinetree.codegen.cache import open_store
from kinetree.codegen.machine_code import branching_code, branching_code_in_background, load
from kinetree.codegen.procedures.on_disk import keep_procedures, kept_procedure

_POLITE = 10  # niceness of the background, where threads have their own


class Job:
    """The code of a procedure and all that it calls, part of it quick.

    Args:
        procedure: has ``use(code)``.
        parts: procedures by the names of their code.
        found: object code by these names; None where it is quick.
    """

    def __init__(self, procedure, parts, found):
        self.procedure, self.parts, self.found = procedure, parts, dict(found)
        self.store = open_store()  # whatever the environment says later

    @property
    def missing(self) -> list[str]:
        """Names of the parts of a procedure that have no optimised code yet."""
        return [name for name, data in self.found.items() if data is None]

    def use(self):
        """Load the optimised code of a procedure, which runs from its next call on."""
        self.procedure.use(load(list(self.found.values()), 1))


class _State:
    jobs: list[Job] = []
    thread: Any = None
    number = 0  # of the thread, as the system counts them
    over = False


_changed = Condition()


def improve_later(job: Job) -> None:
    """Queue a procedure whose code was compiled quickly, to be optimised in the background."""
    with _changed:
        _State.jobs.append(job)
        if _State.thread is None:
            _State.thread = Thread(target=_improve, daemon=True, name="kinetree optimises")
            _State.thread.start()


def improve_now(progress=lambda done, total: None) -> None:
    """Optimise all procedures that still run quickly compiled code now, on all cores.

    Args:
        progress: called with the number of parts that are done and of all.
    """
    jobs = _stop()
    parts = {name: job.parts[name] for job in jobs for name in job.missing}
    total, done, found = len(parts), 0, {}
    progress(done, total)
    for name in parts:
        found[name] = kept_procedure(name, 1)
    texts = {name: parts[name].ir() for name in parts if found[name] is None}
    done = total - len(texts)

    def advance():
        nonlocal done
        done += 1
        progress(done, total)

    def compile_texts(texts, level):
        return branching_code(texts, level, advance)

    try:
        found |= keep_procedures(texts, 1, compile_texts)
    except BaseException:  # Ctrl-C: the background goes on
        for job in jobs:
            improve_later(job)
        raise
    for job in jobs:
        job.found |= {name: found[name] for name in job.missing}
        job.use()


def _improve():
    """Run of the background thread, which optimises queued procedures; gives up after an error."""
    try:
        _improve_jobs()
    except BaseException:
        _give_up()
        raise


def _improve_jobs():
    """Compile the parts of queued procedures with optimisation until none is left."""
    _State.number = get_native_id()
    _set_niceness(_POLITE)
    order, known = random.Random(os.getpid()), {}
    while True:
        with _changed:
            if _State.over or not _State.jobs:
                _State.thread = None
                _changed.notify_all()
                return
            job = _State.jobs[0]
        names = job.missing
        if not names:
            job.use()
            with _changed:
                _State.jobs.remove(job)
            continue
        name = order.choice(names)
        if name not in known:
            known[name] = kept_procedure(name, 1, job.store) or _compile_in_background(name, job)
        job.found[name] = known[name]


def _give_up():
    """Drop the job that failed, whose quickly compiled code stays in use, and end the thread."""
    with _changed:
        del _State.jobs[:1]
        _State.thread = None
        _changed.notify_all()


def _set_niceness(value):
    """Set the scheduling priority (niceness) of the background thread, on Linux."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, _State.number, value)


def _compile_in_background(name, job):
    """Optimised object code of one part of a procedure, compiled in the background and cached."""

    def compile_texts(texts, level):
        return [branching_code_in_background(text) for text in texts]

    return keep_procedures({name: job.parts[name].ir()}, 1, compile_texts, job.store)[name]


def _stop() -> list[Job]:
    """End the background thread after the part it is compiling; returns the jobs that are left."""
    with _changed:
        _State.over = True
        if _State.thread is not None:
            _set_niceness(0)  # who waits for it on a busy machine would wait for all others, too
        _changed.wait_for(lambda: _State.thread is None)
        _State.over, jobs, _State.jobs = False, _State.jobs, []
        return jobs


atexit.register(_stop)  # LLVM must not be at work while the process is taken down


def _after_fork():
    """Reset the queue in a forked child, where the background thread does not exist."""
    global _changed
    _changed, _State.thread, _State.jobs = Condition(), None, []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
