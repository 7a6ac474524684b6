"""MuJoCo itself, imported when it is first needed, and kept quiet."""

import importlib
import warnings

from kinetree.errors import InteropError, LoadError, MissingPackageError

__all__ = ["MissingLibraryError", "compiled", "mujoco"]


class MissingLibraryError(LoadError, InteropError, MissingPackageError):
    """MuJoCo is not installed."""


def mujoco():
    """The ``mujoco`` module, or an error that says how to get it."""
    try:
        library = importlib.import_module("mujoco")
    except ImportError as error:
        raise MissingLibraryError(
            f"MJCF is read by MuJoCo, which cannot be imported ({error}): "
            f'pip install "kinetree[mjcf]"'
        ) from error
    if not hasattr(library, "MjSpec"):
        raise MissingLibraryError(
            f"MuJoCo at {getattr(library, '__file__', '?')} is older than 3.3, or a namesake: "
            f'pip install -U "kinetree[mjcf]"'
        )
    return library


def compiled(make):
    """What ``make()`` compiles, and the warnings of MuJoCo meanwhile, as a list of texts.

    MuJoCo prints warnings and appends them to a file MUJOCO_LOG.TXT in the current folder, unless
    somebody listens; what listened before listens again afterwards.
    """
    library, texts = mujoco(), []
    before = library.get_mju_user_warning()
    library.set_mju_user_warning(texts.append)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = make()
    finally:
        library.set_mju_user_warning(before)
    texts += [str(w.message) for w in caught]
    return model, list(dict.fromkeys(texts))
