"""Joints that move as told while the others are simulated — RBDA §9.1."""
