"""Models to files: URDF, MJCF, TOML, JSON."""

from kinetree.writers.save import WRITERS, save

__all__ = ["WRITERS", "save"]
