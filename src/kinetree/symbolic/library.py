"""SymPy, imported when it is first needed."""

from importlib import import_module

from kinetree.errors import MissingPackageError

__all__ = ["sympy"]


def sympy():
    """The module ``sympy``."""
    try:
        return import_module("sympy")
    except ImportError as error:
        raise MissingPackageError(
            f"formulas need SymPy, which cannot be imported ({error}); "
            f'pip install "kinetree[symbolic]"'
        ) from error
