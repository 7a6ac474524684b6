"""Whole steps of rigid contact in code that is compiled once for every robot and world."""
