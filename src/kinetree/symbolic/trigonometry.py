"""Polynomials in sines and cosines in one normal form, and then in a short one.

Products of sines and cosines become sums of sines and cosines of sums of angles: a Fourier series,
in which equal expressions look equal and ``sin² + cos²`` is one. It is what planar mechanisms want,
``cos(q1 + q2)`` instead of four products. Pairs of terms that are better written as a product, such
as ``(1 + cos 2q)/2 = cos² q``, are put together again.
"""

from collections import defaultdict
from itertools import combinations

from kinetree.symbolic.parameters import sympy


class Term:
    """A number times a monomial of symbols times a product of sines and cosines."""

    def __init__(self, number, monomial, trigonometric):
        self.number, self.monomial, self.trigonometric = number, monomial, trigonometric


def terms_of(expression, angles):
    """Terms of a trigonometric polynomial in short form; None for other expressions."""
    found = series(expression, angles)
    if found is None:
        return None
    return [
        Term(_shorten(number), monomial, _product(factors, angles))
        for monomial, harmonics in found.items()
        for number, factors in _short(harmonics)
    ]


def series(expression, angles):
    """Fourier series of an expression by monomial, ``{monomial: {(kind, k): number}}``.

    ``kind`` is ``"cos"`` or ``"sin"`` and ``k`` the integers by which the angles are
    multiplied, the first of them that is not zero positive. The constant is ``cos`` of zero.
    """
    sp = sympy()
    expression = sp.expand(expression)
    waves = {w: _multiples(w.args[0], angles) for w in expression.atoms(sp.sin, sp.cos)}
    if None in waves.values():
        return None
    dummies = {w: sp.Dummy() for w in waves}
    rest = expression.xreplace(dummies)
    others = sorted(rest.free_symbols - set(dummies.values()), key=str)
    polynomial = rest.as_poly(*dummies.values(), *others) if rest.free_symbols else None
    if polynomial is None:
        return {sp.S.One: {("cos", (0,) * len(angles)): rest}} if rest.is_number else None
    if polynomial.free_symbols_in_domain:
        return None
    result = defaultdict(lambda: defaultdict(lambda: sp.S.Zero))
    for powers, number in polynomial.terms():
        monomial = sp.Mul(*(s**p for s, p in zip(others, powers[len(waves) :], strict=True)))
        wave = _power_product(list(waves.items()), powers[: len(waves)], len(angles))
        for key, factor in wave.items():
            result[monomial][key] += number * factor
    kept = {m: {k: x for k, x in h.items() if x != 0} for m, h in result.items()}
    return _without_rounding({m: h for m, h in kept.items() if h})


def _multiples(argument, angles):
    """Integer multiples ``k`` with ``argument = k·angles``, or None."""
    sp = sympy()
    k = [argument.coeff(a) for a in angles]
    if sp.expand(argument - sum(n * a for n, a in zip(k, angles, strict=True))) != 0:
        return None
    return tuple(int(n) for n in k) if all(n.is_Integer for n in k) else None


def _power_product(waves, powers, count):
    """Product of powers of sines and cosines as a Fourier series.

    Each wave is half the sum, or the difference by ``i``, of two of them: what is multiplied are
    signs, and the halves and ``i`` counted.
    """
    sp = sympy()
    total, sines = {(0,) * count: 1}, 0
    for (wave, k), power in zip(waves, powers, strict=True):
        sign = 1 if isinstance(wave, sp.cos) else -1
        sines += power if sign < 0 else 0
        for _ in range(power):
            step = defaultdict(int)
            for j, z in total.items():
                step[tuple(a + b for a, b in zip(j, k, strict=True))] += z
                step[tuple(a - b for a, b in zip(j, k, strict=True))] += sign * z
            total = step
    half = sp.Rational((-1) ** ((sines + 1) // 2), 2 ** sum(powers))  # 1/(2ⁿ iˢ), but for i
    result = {}
    for k, z in total.items():
        first = next((n for n in k if n), 0)
        if first == 0 and sines % 2 == 0:
            result["cos", k] = z * half
        elif first > 0:
            result["sin" if sines % 2 else "cos", k] = 2 * z * (-half if sines % 2 else half)
    return result


def _shorten(number):
    """Decimal of fifteen digits for a fraction that came from rounded numbers."""
    sp = sympy()
    long = number.is_Rational and number.q > 10**9
    return sp.Rational(f"{float(number):.15g}") if long else number


def _without_rounding(found):
    """Fourier series without terms that only rounding of the parameters makes nonzero."""
    if not found:
        return found
    largest = max(abs(float(x)) for h in found.values() for x in h.values())
    kept = {
        m: {k: x for k, x in h.items() if abs(float(x)) > 1e-13 * largest} for m, h in found.items()
    }
    return {m: h for m, h in kept.items() if h}


def _short(harmonics):
    """Shorter form of a Fourier series: pairs of waves of equal size become products.

    Factors are lists of ``(kind, k)``; an empty one stands for a constant.
    """
    left = dict(sorted(harmonics.items(), key=lambda item: _size(item[0])))
    result = []
    for one, other in combinations(list(left), 2):
        if one in left and other in left and abs(left[one]) == abs(left[other]):
            product = _as_product(one, other, left[one] == left[other])
            if product is not None:
                sign, factors = product
                result.append((2 * sign * left[one], factors))
                del left[one], left[other]
    return result + [(x, [key] if any(key[1]) else []) for key, x in left.items()]


def _size(key):
    """Sort key by which shorter terms come first."""
    return sum(abs(n) for n in key[1]), key


def _as_product(one, other, same_sign):
    """``one ± other`` as twice a signed product of two waves, or None."""
    (kind, u), (other_kind, v) = one, other
    if kind != other_kind:
        return None
    plus = tuple(a + b for a, b in zip(u, v, strict=True))
    minus = tuple(a - b for a, b in zip(u, v, strict=True))
    if any(n % 2 for n in plus):
        return None
    p, m = (tuple(n // 2 for n in x) for x in (plus, minus))
    kinds = {
        ("cos", True): (1, "cos", "cos"),
        ("cos", False): (-1, "sin", "sin"),
        ("sin", True): (1, "sin", "cos"),
        ("sin", False): (1, "cos", "sin"),
    }
    sign, first, second = kinds[kind, same_sign]
    return sign, [(first, p), (second, m)]


def _product(factors, angles):
    """Formula of a product of sines and cosines."""
    sp = sympy()
    parts = []
    for kind, k in factors:
        angle = sum((n * a for n, a in zip(k, angles, strict=True)), sp.S.Zero)
        parts.append(getattr(sp, kind)(angle))
    return sp.Mul(*parts)


# --- Sums put in the order of a textbook: what belongs together in one bracket -------------------
# Terms with the same velocities are collected first, ``(2 qd1 qd2 + qd2²)``; in what multiplies
# them, equal geometry collects the inertias in front of it, ``(m1 + m2) L1²``, and then equal
# inertias the geometry, ``m2 (2 L1 L2 cos q2 + L2²)``.


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
        """Readable form of an expression; unchanged unless a polynomial in sines and cosines."""
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
        """Factors of a monomial: inertia, other parameters, velocities."""
        sp = sympy()
        parts = [sp.S.One] * 3
        for factor in sp.Mul.make_args(monomial):
            base = factor.as_base_exp()[0]
            place = 0 if base in self.inertial else 2 if base in self.velocities else 1
            parts[place] *= factor
        return parts

    def _bracket(self, parts):
        """Sum of products number * inertia * geometry, with common inertias bracketed."""
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
        """Product of inertia and common geometric factors, in front of the bracket."""
        terms = sympy().Add.make_args(geometry)
        for s in self.common:
            if len(terms) > 1 and all(t.has(s) for t in terms):
                terms = [t / s for t in terms]
                inertia = inertia * s
        return _times(sympy().Add(*terms), inertia)


def _primitive(expression):
    """Numeric factor of an expression, and the rest with integer coefficients."""
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
    """Whether all numbers in an expression are rational."""
    return all(x.is_Rational for x in expression.atoms(sympy().Number))


def _times(a, b):
    """Product of two expressions, numbers and signs in front, brackets not expanded."""
    sp = sympy()
    if b == 1:
        return a
    number, a = _primitive(a) if a.is_Add else a.as_coeff_Mul()
    return sp.Mul(number, a, b) if a.is_Add or b.is_Add else number * a * b
