"""Instants at which something happens, found inside a step."""
