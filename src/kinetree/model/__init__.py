"""What a mechanism is — RBDA chapter 4."""

from kinetree.model.builder import ModelBuilder
from kinetree.model.model import Model
from kinetree.model.parts import Body, Frame, Limits, Loop

__all__ = ["Body", "Frame", "Limits", "Loop", "Model", "ModelBuilder"]
