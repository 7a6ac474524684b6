"""Exchange of models and states with other libraries, one module each."""

from kinetree.interop import mujoco, pinocchio

__all__ = ["mujoco", "pinocchio"]
