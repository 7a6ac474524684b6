"""Exchange of models and states with other libraries, one module each."""

from kinetree.interop import pinocchio

__all__ = ["pinocchio"]
