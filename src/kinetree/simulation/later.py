"""Attributes of results that are found when they are read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Later:
    """Value that is found when it is read, from arrays that nobody else writes."""

    find: Callable[[], Any]
    """Function that finds it."""


def resolve(value: Any) -> Any:
    """Value itself, or the computed result if it is a ``Later``."""
    return value.find() if type(value) is Later else value
