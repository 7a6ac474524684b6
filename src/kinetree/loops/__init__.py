"""Closed loops: constraints, their ranks and forces, assembly, motion that keeps loops closed."""
