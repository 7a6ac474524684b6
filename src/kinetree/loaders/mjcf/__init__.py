"""MJCF, the files of MuJoCo, read through MuJoCo's own compiler."""

from kinetree.loaders.mjcf.compiled import from_compiled
from kinetree.loaders.mjcf.reader import read_mjcf
from kinetree.loaders.mjcf.values import MissingLibraryError

__all__ = ["MissingLibraryError", "from_compiled", "read_mjcf"]
