"""SymPy, imported when it is first needed."""

from importlib import import_module

from kinetree.errors import KinetreeError

__all__ = ["MissingLibraryError", "sympy"]


class MissingLibraryError(KinetreeError, ImportError):
    """SymPy is not installed."""


def sympy():
    """The module ``sympy``."""
    try:
        return import_module("sympy")
    except ImportError as error:
        raise MissingLibraryError(
            f"formulas need SymPy, which cannot be imported ({error}); "
            f'pip install "kinetree[symbolic]"'
        ) from error
