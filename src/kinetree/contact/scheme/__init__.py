"""Shared parts of both ways to take a step with contact: traced inertias, and rows of joints."""
