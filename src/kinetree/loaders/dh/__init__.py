"""Denavit–Hartenberg tables in files, CSV or TOML, of both conventions."""

from kinetree.loaders.dh.reader import read_dh, read_dh_document

__all__ = ["read_dh", "read_dh_document"]
