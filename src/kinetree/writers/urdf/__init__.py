"""URDF from a model, with ``kinetree:`` elements for what URDF lacks."""

from kinetree.writers.urdf.writer import to_urdf

__all__ = ["to_urdf"]
