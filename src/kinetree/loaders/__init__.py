"""Models from files: URDF, MJCF, SDF, TOML, Denavit–Hartenberg tables, JSON."""

from kinetree.loaders.load import FORMATS, Loaded, Options, load, loads, read
from kinetree.loaders.report import Notice, Report

__all__ = ["FORMATS", "Loaded", "Notice", "Options", "Report", "load", "loads", "read"]
