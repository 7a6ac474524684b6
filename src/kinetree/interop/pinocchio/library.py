"""Pinocchio itself, imported when it is first needed."""

import importlib

from kinetree.errors import InteropError, MissingPackageError

__all__ = ["MissingLibraryError", "pinocchio"]


class MissingLibraryError(InteropError, MissingPackageError):
    """The other library is not installed."""


def pinocchio():
    """The ``pinocchio`` module, or an error that says how to get it."""
    try:
        library = importlib.import_module("pinocchio")
    except ImportError as error:
        raise MissingLibraryError(
            f"kinetree.interop.pinocchio needs Pinocchio, which cannot be imported ({error}): "
            f'pip install "kinetree[pinocchio]"'
        ) from error
    if not hasattr(library, "SE3"):
        raise MissingLibraryError(
            f"the module 'pinocchio' at {library.__file__} is not the rigid-body library but a "
            f'namesake: pip uninstall pinocchio, then pip install "kinetree[pinocchio]", which '
            f"brings the package called pin"
        )
    return library
