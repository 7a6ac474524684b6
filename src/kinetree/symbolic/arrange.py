"""Sums put in the order of a textbook: what belongs together in one bracket.

Terms with the same velocities are collected first, ``(2 qd1 qd2 + qd2²)``; in what multiplies them,
equal geometry collects the inertias in front of it, ``(m1 + m2) L1²``, and then equal inertias the
geometry, ``m2 (2 L1 L2 cos q2 + L2²)``.
"""

from collections import defaultdict

from kinetree.symbolic.library import sympy
from kinetree.symbolic.trigonometry import terms_of

__all__ = ["Arranger"]


class Arranger:
    """Puts expressions in readable form.

    Args:
        angles: coordinates that sines and cosines are taken of.
        inertial: symbols that the equations of motion are linear in, such as masses.
        velocities: symbols of velocities.
        common: symbols to put in front of a bracket, such as gravity.
    """

    def __init__(self, angles, inertial, velocities, common=()):
        self.angles, self.inertial, self.velocities = angles, set(inertial), set(velocities)
        self.common = tuple(common)

    def __call__(self, expression):
        """The same expression, readable; as it is if it is no polynomial in sines and cosines."""
        terms = terms_of(expression, self.angles)
        if terms is None:
            return expression
        sp = sympy()
        by_rest = defaultdict(lambda: sp.S.Zero)  # (inertia, other, waves): velocities
        for term in terms:
            inertia, other, speed = self._split(term.monomial)
            by_rest[inertia, other, term.trigonometric] += term.number * speed
        by_speed = defaultdict(list)
        for (inertia, other, waves), speed in by_rest.items():
            number, speed = _primitive(speed)
            by_speed[speed].append((number, inertia, other * waves))
        return sp.Add(*(_times(self._bracket(parts), s) for s, parts in by_speed.items()))

    def _split(self, monomial):
        """A monomial as inertia times other parameters times velocities."""
        sp = sympy()
        parts = [sp.S.One] * 3
        for factor in sp.Mul.make_args(monomial):
            base = factor.as_base_exp()[0]
            place = 0 if base in self.inertial else 2 if base in self.velocities else 1
            parts[place] *= factor
        return parts

    def _bracket(self, parts):
        """The sum of number * inertia * geometry."""
        sp = sympy()
        by_geometry = defaultdict(lambda: sp.S.Zero)
        for number, inertia, geometry in parts:
            by_geometry[geometry] += number * inertia
        by_inertia = defaultdict(lambda: sp.S.Zero)
        for geometry, inertia in by_geometry.items():
            number, inertia = _primitive(inertia)
            by_inertia[inertia] += number * geometry
        return sp.Add(*(self._in_front(x, inertia) for inertia, x in by_inertia.items()))

    def _in_front(self, geometry, inertia):
        """Inertia, and what all of the geometry has in common, before the bracket."""
        terms = sympy().Add.make_args(geometry)
        for s in self.common:
            if len(terms) > 1 and all(t.has(s) for t in terms):
                terms = [t / s for t in terms]
                inertia = inertia * s
        return _times(sympy().Add(*terms), inertia)


def _primitive(expression):
    """A number, and the rest with whole numbers in front, the first of them positive."""
    sp = sympy()
    if expression.is_number:
        return expression, sp.S.One
    number, rest = expression.primitive() if _is_exact(expression) else (sp.S.One, expression)
    leading = sp.Add.make_args(rest)[0] if not rest.is_Add else rest.as_ordered_terms()[0]
    if leading.as_coeff_Mul()[0] < 0:
        number, rest = -number, -rest
    if not rest.is_Add:
        factor, rest = rest.as_coeff_Mul()
        number *= factor
    return number, rest


def _is_exact(expression):
    return all(x.is_Rational for x in expression.atoms(sympy().Number))


def _times(a, b):
    """The product, with numbers and signs in front and no bracket opened."""
    sp = sympy()
    if b == 1:
        return a
    number, a = _primitive(a) if a.is_Add else a.as_coeff_Mul()
    return sp.Mul(number, a, b) if a.is_Add or b.is_Add else number * a * b
