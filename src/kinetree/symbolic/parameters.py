"""A model with exact numbers, and with symbols in place of chosen ones.

| name | what becomes a symbol |
|---|---|
| ``"gravity"`` | its size; the direction stays |
| ``"mass:<body>"`` | the mass; alone, the body becomes denser |
| ``"center:<body>"`` | the coordinates of the mass centre that are not zero |
| ``"moments:<body>"`` | the entries, not zero, of the rotational inertia about the mass centre |
| ``"placement:<joint>"`` | the coordinates, not zero, of the joint on the parent body |
"""

from dataclasses import replace
from typing import Any

import numpy as np

from kinetree.errors import ModelError, UnknownNameError, need
from kinetree.model.views import snap
from kinetree.spatial import Inertia, Plucker


def sympy():
    """The module ``sympy``, imported when it is first needed."""
    return need("sympy", "writing formulas", "symbolic")


_AXES = "xyz"


def exact(x):
    """Exact number for a float: short decimals become fractions, usual roots are recognised."""
    sp = sympy()
    if isinstance(x, sp.Basic) and not isinstance(x, sp.Float):
        return x.replace(lambda e: isinstance(e, sp.Float), exact) if x.has(sp.Float) else x
    if isinstance(x, (int, np.integer)):
        return sp.Integer(int(x))
    x = float(x)
    for root in (sp.S.Half, sp.sqrt(2) / 2, sp.sqrt(3) / 2):
        if abs(abs(x) - float(root)) < 1e-15:
            return root if x > 0 else -root
    return sp.Rational(repr(x))


def exact_model(model):
    """Model in exact numbers; formulas stay."""
    bodies = [replace(b, placement=snap(b.placement)) for b in model.bodies]
    return model.replace(bodies=bodies).map_numbers(exact)


def with_symbols(model, symbols):
    """Exact model with symbols for some parameters, and the symbols' values.

    Args:
        model: the mechanism, its numbers exact.
        symbols: names as in the table above: a sequence, for symbols named after bodies and
            joints, or a dict to names of symbols. Entries that get several symbols number them.
    """
    chosen = symbols if isinstance(symbols, dict) else dict.fromkeys(symbols or ())
    values, parts = {}, {}
    for name, symbol in chosen.items():
        kind, _, of = name.partition(":") if isinstance(name, str) else ("", "", "")
        if kind == "gravity" and not of:
            model = model.replace(gravity=_gravity(model.gravity, symbol or "g", values))
        elif kind == "placement":
            i = model.joint_index(of)
            X = model.tree_transform[i]
            r = _coordinates(X.r, symbol or f"L_{of}", values, name)
            model = model.replace(placement={of: Plucker(X.E, r)})
        elif kind in ("mass", "center", "moments"):
            if model.body_index(of) == 0:
                raise ModelError(f"{name!r}: the base does not move and has no inertia")
            parts.setdefault(of, {})[kind] = symbol
        else:
            raise UnknownNameError(
                f"equations_of_motion has no symbols for {name!r}; use 'gravity', 'mass:<body>', "
                f"'center:<body>', 'moments:<body>' or 'placement:<joint>'"
            )
    inertias = {of: _inertia(model, of, named, values) for of, named in parts.items()}
    return model.replace(inertia=inertias), values


def _inertia(model, of, named, values):
    """Inertia of a body with symbols for its mass, mass centre or moments."""
    I = model.inertia[model.body_index(of)]
    if I.mass == 0:
        raise ModelError(f"body {of!r} has no mass that could become a symbol")
    m, c, I_C = I.mass, I.center_of_mass, I.rotational_at_center
    if "moments" in named:
        I_C = _moments(I_C, named["moments"] or f"I_{of}", values)
    elif "mass" in named:
        I_C = I_C / m
    if "center" in named:
        c = _coordinates(c, named["center"] or f"c_{of}", values, f"center:{of}")
    if "mass" in named:
        m = _symbol(named["mass"] or f"m_{of}", m, values)
        I_C = I_C if "moments" in named else m * I_C
    return Inertia.from_mass_center(m, c, I_C)


def _gravity(gravity, name, values):
    """Gravity vector with a symbol for its magnitude."""
    sp = sympy()
    size = sp.sqrt(sum(x * x for x in gravity))
    if size == 0:
        raise ModelError("'gravity' cannot become a symbol in a model without gravity")
    g = _symbol(name, size, values)
    return np.array([sp.nsimplify(x / size) * g for x in gravity])


def _coordinates(r, name, values, what):
    """Coordinates (3,) with symbols for nonzero entries; a single symbol absorbs the sign."""
    own = [k for k in range(3) if r[k] != 0]
    if not own:
        raise ModelError(f"{what!r} has no coordinate that could become a symbol: all are zero")
    result = np.array(r, dtype=object)
    for k in own:
        label = name if len(own) == 1 else f"{name}_{_AXES[k]}"
        sign = -1 if len(own) == 1 and _is_negative(r[k]) else 1
        result[k] = sign * _symbol(label, sign * r[k], values)
    return result


def _moments(I_C, name, values):
    """Moments of inertia with symbols for nonzero entries."""
    own = [(i, j) for i in range(3) for j in range(i + 1) if I_C[i, j] != 0]
    if not own:
        raise ModelError(f"the moments {name!r} of a point mass are zero and cannot be symbols")
    result = np.array(I_C, dtype=object)
    for i, j in own:
        label = f"{name}_{_AXES[j]}{_AXES[i]}"
        result[i, j] = result[j, i] = _symbol(label, I_C[i, j], values)
    return result


def _is_negative(x):
    """Whether an expression is negative, as far as that is known."""
    return getattr(x, "is_number", True) and x < 0


def _symbol(name, value, values) -> Any:
    """Symbol of a name, whose value is recorded in ``values``; equal names give one symbol."""
    sp = sympy()
    symbol = name if isinstance(name, sp.Symbol) else sp.Symbol(name, real=True)
    if symbol in values and sp.simplify(values[symbol] - value) != 0:
        raise ModelError(
            f"symbol {symbol} stands for {float(values[symbol]):.6g} and for {float(value):.6g} "
            f"in the model; give them two names"
        )
    values[symbol] = value
    return symbol


def inertial_symbols(model):
    """Symbols in which the inertias are linear, such as masses and moments of inertia."""
    sp = sympy()
    terms, masses = [], set()
    for I in model.inertia[1:]:
        masses |= sp.sympify(I.mass).free_symbols
        for p in I.parameters():
            terms += sp.Add.make_args(sp.expand(p))
    found = set(masses)
    for s in set().union(*(t.free_symbols for t in terms)) - masses:
        own = [t for t in terms if s in t.free_symbols]
        if all(sp.degree(t, s) == 1 and not t.free_symbols & masses for t in own):
            found.add(s)
    return found
