"""The native format: a mechanism as TOML that people write by hand."""

from kinetree.loaders.native.reader import read_toml

__all__ = ["read_toml"]
