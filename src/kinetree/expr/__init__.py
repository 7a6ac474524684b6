"""Traced scalars: the expression graph, its rules, its meaning, and what it costs — RBDA §10.4."""
