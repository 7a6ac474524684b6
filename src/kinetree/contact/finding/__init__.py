"""Collision detection: which shapes may touch, where they do, and how they are curved there."""
