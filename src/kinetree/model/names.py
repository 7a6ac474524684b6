"""Looking things up by name, with a suggestion where the name is not known."""

import difflib

from kinetree.errors import UnknownNameError

__all__ = ["number_of"]


def number_of(name, names, role, where) -> int:
    """Position of ``name`` among ``names``; the error says what ``role`` it was to play."""
    if name in names:
        return names.index(name)
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(map(repr, names))}"
    raise UnknownNameError(f"{role} is {name!r}, which the {where} does not have; {hint}")
