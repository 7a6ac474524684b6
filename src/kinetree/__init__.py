"""Rigid-body dynamics that reads like the book."""

__version__ = "0.1.0"
