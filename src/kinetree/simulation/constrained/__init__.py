"""Mechanisms with loops and couplings: steps that hold them."""
