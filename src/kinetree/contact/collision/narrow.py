"""Narrow phases by the kinds of two shapes."""

from kinetree.codegen.procedures import procedure
from kinetree.contact.collision.tables import Shapes, Touch


@procedure
def narrow_phase(shapes: Shapes, i: int, j: int, margin: float, touch: Touch, n: int) -> int:
    """Points of shapes i and j (the lower kind first) within ``margin``, after n others."""
    return n
