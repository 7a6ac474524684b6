"""Models as MJCF, the files of MuJoCo."""

from kinetree.writers.mjcf.document import to_mjcf

__all__ = ["to_mjcf"]
