"""SDF, the simulation description format of Gazebo."""

from kinetree.loaders.sdf.reader import read_sdf

__all__ = ["read_sdf"]
