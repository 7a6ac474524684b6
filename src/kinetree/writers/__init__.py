"""Models to files: URDF, MJCF, TOML, JSON."""

from kinetree.arguments import guard_module
from kinetree.writers.save import WRITERS, save

__all__ = ["WRITERS", "save"]

guard_module(__name__)
