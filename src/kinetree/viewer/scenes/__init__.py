"""Scenes as plain data: visible parts, and their poses over time."""
