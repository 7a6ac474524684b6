"""Shapes against shapes, in closed form: where they touch, as formulas that can be compiled."""
