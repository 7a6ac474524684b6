"""Models from files: URDF, MJCF, SDF, TOML, Denavit–Hartenberg tables, JSON."""

from kinetree.arguments import guard_module
from kinetree.loaders.load import FORMATS, Format, Loaded, Options, load, loads, read
from kinetree.loaders.report import Notice, Report

__all__ = ["FORMATS", "Format", "Loaded", "Notice", "Options", "Report", "load", "loads", "read"]

guard_module(__name__)
