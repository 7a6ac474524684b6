"""Looking things up by name, with a suggestion where the name is not known."""

from kinetree.errors import UnknownNameError
from kinetree.spelling import did_you_mean

__all__ = ["number_of"]


def number_of(name, names, role, where) -> int:
    """Position of ``name`` among ``names``; the error says what ``role`` it was to play."""
    if name in names:
        return names.index(name)
    hint = did_you_mean(name, names)
    raise UnknownNameError(f"{role} is {name!r}, which the {where} does not have; {hint}")
