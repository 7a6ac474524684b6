"""Choice between *general* code, compiled once for every robot, and code *specialised* for one.

General code is there at once. Specialised code has the robot's constants folded in and is several
times faster, once it is compiled. ``"auto"`` goes by the amount of work:

- A quantity of a model runs general code until more than ``MANY`` samples have been requested,
  those of the present call included, and specialised code from then on. Robots of hundreds of
  bodies stay with general code.
- What has no general code is specialised from the start, compiled without LLVM's optimisations
  until more than ``SOME`` samples have been requested of it. Both compute the same bits.
- A *task*, such as one call of ``simulate``, ``rollout`` or ``inverse_kinematics``, says at its
  start how many samples it expects, steps × worlds, which are counted once for every quantity that
  it needs. None of these changes its tier within the task.
- ``kt.compile`` and ``kt.warm_up`` ask for specialised code, from then on.

So the choice is a function of the calls that were made so far, never of time or of what the cache
holds, and the same program computes the same bits every time.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, Literal, get_args

from kinetree.codegen.weak_table import WeakGroup
from kinetree.errors import UnknownNameError
from kinetree.spelling import did_you_mean

Tier = Literal["auto", "general", "specialised"]
DEFAULT: Tier = "auto"
MANY = 2**20  # samples that repay compiling for one robot
SOME = 2**16  # samples that repay LLVM's optimisations


class _State:
    setting: Tier | None = None
    task: "TieredTask | None" = None
    depth = 0  # tasks within tasks belong to the outermost


_lock = Lock()
if hasattr(os, "register_at_fork"):  # who holds the lock would not be there to release it
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
_kernels = WeakGroup()  # those whose calls bypass the rule, and whose code may change
_general = WeakGroup()  # those among them that run general code, and maybe others


def _disconnect(kernels):
    """Remove the compiled call paths of kernels, so that their next call chooses a tier."""
    for kernel in kernels:
        kernels.discard(kernel)
        kernel.disconnect()


def setting() -> Tier:
    """Tier that the user set, by ``set_tier`` or KINETREE_TIER; ``"auto"`` otherwise."""
    if _State.setting is None:
        text = os.environ.get("KINETREE_TIER", "").strip()
        _State.setting = _check(text, "KINETREE_TIER") if text else DEFAULT
    return _State.setting


def set_tier(tier: Tier) -> None:
    """Set the tier of code that runs from now on, in the whole process.

    Args:
        tier: ``"general"``: code that is compiled once for all robots, if available;
            ``"specialised"``: code for one robot alone; ``"auto"``: general code until the work
            repays compiling, see docs/tiers.md.
    """
    _State.setting = _check(tier, "tier")
    _disconnect(_kernels)


@contextmanager
def tier(tier: Tier) -> Iterator[None]:
    """Set the tier of code inside a ``with`` block; see ``set_tier``."""
    before = setting()
    set_tier(tier)
    try:
        yield
    finally:
        set_tier(before)


def _check(tier: Any, name) -> Tier:
    """The tier that a word names; UnknownNameError with a suggestion for other words."""
    for word in get_args(Tier):
        if isinstance(tier, str) and tier == word:
            return word
    words = ", ".join(map(repr, get_args(Tier)))
    hint = did_you_mean(tier, get_args(Tier), "")
    raise UnknownNameError(f"{name} must be one of {words}, got {tier!r}{hint and '; '}{hint}")


_settling = ContextVar("settling", default=False)


@contextmanager
def settling() -> Iterator[None]:
    """Context in which every kernel that is called switches to specialised code."""
    token = _settling.set(True)
    _disconnect(_kernels)
    try:
        yield
    finally:
        _settling.reset(token)


# --- the rule ------------------------------------------------------------------------------------


class TieredTask:
    """Work that keeps its tier from its start to its end.

    Attributes:
        samples: that it expects to ask of a quantity.
        alone: whether these alone count, not what was asked before.
        kernels: those that have chosen their code in it.
    """

    def __init__(self, samples, alone):
        self.samples, self.alone, self.kernels = samples, alone, []

    @property
    def tier(self) -> str:
        """``"general"`` if any quantity of the task ran general code, else ``"specialised"``."""
        return "general" if any(k.tier == "general" for k in self.kernels) else "specialised"


@contextmanager
def task(samples: int, *, alone: bool = False) -> Iterator[TieredTask]:
    """Context of a task that needs ``samples`` samples of every quantity, which decide tiers.

    Args:
        samples: how many.
        alone: whether these alone count, not what was asked before, and not for later: for parts
            of a larger task that must not depend on the order in which they are done.
    """
    with _lock:
        if _State.task is None:
            _State.task = TieredTask(samples, alone)
            _disconnect(_general)
        _State.depth += 1
        running = _State.task
    try:
        yield running
    finally:
        with _lock:
            _State.depth -= 1
            if not _State.depth:
                _State.task = None
                for kernel in running.kernels:
                    kernel.task = None
                    if samples_left(kernel) is not None or kernel.tier == "general":
                        kernel.disconnect()


def decide(kernel, samples: int) -> None:
    """Choose the tier of a kernel that is about to compute ``samples``, and count them."""
    running = _State.task
    if _settling.get() and not kernel.is_settled:
        kernel.settle()
        kernel.task = None
    if running is None or kernel.task is not running:
        asked = samples if running is None else max(samples, running.samples)
        if running is None or not running.alone:
            asked = kernel.samples = kernel.samples + asked
        kernel.task, kernel.tier = running, _tier(kernel, asked)
        if kernel.tier == "general":
            _general.add(kernel)
        if running is not None:
            running.kernels.append(kernel)
    kernel.level = int(kernel.is_settled or kernel.samples > SOME)


def _tier(kernel, asked):
    """Tier for a kernel after a number of requested samples."""
    repaid = asked > (kernel.many or MANY)
    many = setting() == "auto" and repaid and not kernel.is_large
    if kernel.is_settled or many or setting() == "specialised" or not kernel.has_general_code:
        return "specialised"
    return "general"


class TierChoice:
    """A choice between two ways to do the same by the rule, where neither is a kernel.

    Args:
        many: samples that repay the specialised one; 0 for ``MANY``.

    Attributes:
        tier: that was chosen last.
        samples: that were requested so far.
    """

    is_settled = is_large = False
    has_general_code, general_code = True, None

    def __init__(self, many=0):
        self.many = many
        self.tier, self.level, self.samples, self.task = "general", 0, 0, None

    def tier_for(self, samples: int, *, only: str | None = None) -> str:
        """Tier for a number of samples, or for those of the running task.

        Args:
            samples: how many.
            only: the tier if there is no other way, or, ``"specialised"``, no other as good.
        """
        decide(self, samples)
        if only == "general" or (only is not None and setting() == "auto"):
            self.tier = only
        return self.tier

    @property
    def asked(self) -> int:
        """Samples of the running task; without one, all requested so far."""
        return self.samples if self.task is None else self.task.samples

    def settle(self):
        """Choose the specialised tier from now on."""
        self.is_settled = True

    def disconnect(self):
        """Nothing to remove: the choice is made at every request."""


def first_calls() -> str:
    """Tier of kernels that traced programs call before any sample was counted."""
    return "specialised" if setting() == "specialised" else "general"


def next_tier(kernel) -> str:
    """Tier that ``decide`` would choose for one more sample."""
    kept = _State.task is not None and kernel.task is _State.task
    return kernel.tier if kept else _tier(kernel, kernel.samples + 1)


def samples_left(kernel) -> int | None:
    """Samples until a kernel's tier may change; None: it stays."""
    if kernel.task is not None or kernel.is_settled or kernel.samples > MANY:
        return None
    if kernel.samples <= SOME:
        return SOME - kernel.samples
    return MANY - kernel.samples if kernel.tier == "general" and setting() == "auto" else None


def note_connection(kernel) -> None:
    """Register a kernel whose calls bypass ``decide``, so that its call path can be removed."""
    if kernel.general_code is not None or samples_left(kernel) is not None:
        _kernels.add(kernel)
