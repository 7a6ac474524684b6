"""Constrained systems in independent coordinates, also through singular configurations."""
