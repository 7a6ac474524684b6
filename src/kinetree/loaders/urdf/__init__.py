"""URDF, the robot description of ROS, with ``kinetree:`` elements for what it lacks."""

from kinetree.loaders.urdf.reader import read_urdf

__all__ = ["read_urdf"]
