"""Rigid contact at the level of accelerations — RBDA §11.1–11.5."""
