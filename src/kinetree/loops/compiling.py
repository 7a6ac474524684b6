"""Compiled code where that is possible, the text itself where it is not."""

from kinetree.errors import TraceError

__all__ = ["compiled"]


def compiled(function, *arguments, **options):
    """What a kernel returns; where a joint of the user's own cannot be compiled, as it stands."""
    try:
        return function(*arguments, **options)
    except TraceError:
        return function.reference(*arguments, **options)
