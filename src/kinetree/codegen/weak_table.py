"""Values that others keep alive, found by keys, without a function that runs when one goes.

Python's ``WeakValueDictionary`` has such a function. A Ctrl-C that comes while it runs is lost:
Python prints that it ignores the exception, and goes on.
"""

from typing import Any
from weakref import ref

_LEAST = 64  # keys that are never looked through


class WeakTable:
    """Values by keys, each as long as something else refers to it."""

    def __init__(self):
        self._refs: dict[Any, ref] = {}
        self._most = _LEAST

    def __len__(self):
        return len(self._refs)

    def __iter__(self):
        return iter([key for key, found in list(self._refs.items()) if found() is not None])

    def __setitem__(self, key, value):
        self._refs[key] = ref(value)
        if len(self._refs) > self._most:
            # What another thread adds meanwhile may be forgotten: then it is made again.
            self._refs = {k: r for k, r in list(self._refs.items()) if r() is not None}
            self._most = 2 * len(self._refs) + _LEAST

    def get(self, key) -> Any:
        """The value of a key, or None."""
        found = self._refs.get(key)
        return None if found is None else found()

    def setdefault(self, key, value) -> Any:
        """The value of a key, or this one from now on."""
        found = self.get(key)
        if found is None:
            self[key] = found = value
        return found
