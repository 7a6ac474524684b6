"""Mutation testing: change one thing in the source, and see whether a test notices."""
