"""Scenes as plain data: what there is to see, and where it is over time."""
