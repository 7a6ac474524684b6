"""Motions of one mechanism and scene on a GPU: memories of worlds, and a machine of them."""
