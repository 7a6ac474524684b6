"""Values that others keep alive, in tables and groups, without a function that runs when one goes.

Python's ``WeakValueDictionary`` and ``WeakSet`` have such a function. A Ctrl-C that comes while it
runs is lost: Python prints that it ignores the exception, and goes on.
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
        """Value of a key in the weak table, or None."""
        found = self._refs.get(key)
        return None if found is None else found()

    def __getitem__(self, key) -> Any:
        """The value of a key, which must be there."""
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def discard(self, key) -> None:
        """Remove a key from the table, if it is there."""
        self._refs.pop(key, None)

    def setdefault(self, key, value) -> Any:
        """Value of a key, set to ``value`` if it had none."""
        found = self.get(key)
        if found is None:
            self[key] = found = value
        return found


class WeakGroup:
    """Values, told apart by identity, each as long as something else refers to it."""

    def __init__(self):
        self._table = WeakTable()

    def __iter__(self):
        values = [self._table.get(key) for key in self._table]
        return iter([value for value in values if value is not None])

    def add(self, value) -> None:
        """Add an object to the group; one that was freed under the same identity is replaced."""
        self._table[id(value)] = value

    def discard(self, value) -> None:
        """Remove an object from the group, if it is there."""
        self._table.discard(id(value))
