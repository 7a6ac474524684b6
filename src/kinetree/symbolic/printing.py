"""Equations of motion as LaTeX and as Python."""

import numpy as np

from kinetree.errors import ShapeError, UnknownNameError
from kinetree.symbolic.parameters import sympy


def latex(equations, form, digits):
    """See ``EquationsOfMotion.latex``."""
    if form == "equations":
        rows = [
            rf"\tau_{{{i}}} &= {_joined(equations, i - 1, digits)}"
            for i in range(1, len(equations.qd) + 1)
        ]
        for row in range(len(equations.lam)):
            rows.append(f"{_constraint(equations, row, digits)}")
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"
    if form == "matrices":
        blocks = {"H": equations.H, "C": equations.C, "g": equations.g}
        if equations.lam:
            blocks |= {"K": equations.K, "k": equations.k}
        rows = [f"{name} &= {_formula(equations, x, digits)}" for name, x in blocks.items()]
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"
    raise UnknownNameError(f"latex has no form {form!r}; use 'equations' or 'matrices'")


def _joined(equations, i, digits):
    """One equation: accelerations first, then velocities, then gravity."""
    pieces = []
    for j, qdd in enumerate(equations.qdd):
        h = equations.H[i, j]
        text, dots = _formula(equations, h, digits), _symbol_names(equations)[qdd]
        if h.is_Add:
            pieces.append(rf"\left({text}\right) {dots}")
        elif any(factor.is_Add for factor in h.args) and text.endswith(r"\right)"):
            pieces.append(f"{text} {dots}")
        else:
            pieces.append(_formula(equations, h * qdd, digits))
    pieces += [_formula(equations, x[i], digits) for x in (equations.C, equations.g)]
    for row, force in enumerate(equations.lam):
        pieces.append(_formula(equations, -equations.K[row, i] * force, digits))
    return _sum(pieces)


def _constraint(equations, row, digits):
    """One constraint of a loop: accelerations on the left, velocities on the right."""
    pairs = zip(equations.K[row, :], equations.qdd, strict=True)
    left = _sum([_formula(equations, K * qdd, digits) for K, qdd in pairs])
    return f"{left} &= {_formula(equations, equations.k[row], digits)}"


def _sum(pieces):
    text = ""
    for piece in pieces:
        if piece != "0":
            text += piece if not text else f" {piece}" if piece[0] == "-" else f" + {piece}"
    return text or "0"


def _formula(equations, x, digits):
    sp = sympy()
    decimal = x.replace(
        lambda e: e.is_Rational and e.q not in _FRACTIONS, lambda e: sp.Float(e, digits)
    )
    names = _symbol_names(equations)
    return sp.latex(decimal, symbol_names=names, fold_func_brackets=True, fold_short_frac=True)


_FRACTIONS = (1, 2, 3, 4, 6, 8)  # denominators that are better read than decimals


def _symbol_names(equations):
    """LaTeX of the coordinates: dots above, numbers below."""
    names = {}
    for number, force in enumerate(equations.lam, start=1):
        names[force] = rf"\lambda_{{{number}}}"
    for dots, symbols in (("", equations.q), ("d", equations.qd), ("dd", equations.qdd)):
        accent = {"": "{}", "d": r"\dot{{{}}}", "dd": r"\ddot{{{}}}"}[dots]
        for number, symbol in enumerate(symbols, start=1):
            letter = str(equations.q[0]).rstrip("0123456789")
            greek = sympy().latex(sympy().Symbol(letter))
            names[symbol] = f"{accent.format(greek)}_{{{number}}}"
    return names


def python(equations, name):
    """See ``EquationsOfMotion.python``."""
    sp = sympy()
    common, rows = sp.cse(list(equations.tau), symbols=sp.numbered_symbols("x"))
    loops = ["lam"] if equations.lam else []
    arguments = ", ".join(["q", "qd", "qdd", *loops, *map(str, equations.parameters)])
    functions = [f for f in ("cos", "exp", "log", "sin", "sqrt", "tanh") if _uses(f, rows, common)]
    lines = [f"from math import {', '.join(functions)}", "", ""] if functions else []
    lines.append(f"def {name}({arguments}):")
    lines.append(f'    """Joint forces of {equations.model.name}."""')
    for vector in ("q", "qd", "qdd", "lam"):
        symbols = getattr(equations, vector)
        if symbols:
            lines.append(f"    [{', '.join(map(str, symbols))}] = {vector}")
    lines += [f"    {symbol} = {_code(x)}" for symbol, x in common]
    lines.append("    return [")
    lines += [f"        {_code(row)}," for row in rows]
    return "\n".join([*lines, "    ]", ""])


def _uses(function, rows, common):
    return any(f"{function}(" in _code(x) for x in (*rows, *(x for _, x in common)))


def _code(x):
    sp = sympy()
    floats = x.replace(lambda e: e.is_Rational and not e.is_Integer, lambda e: sp.Float(e, 17))
    return sp.pycode(floats, fully_qualified_modules=False)


def evaluate(equations, q, qd, qdd, parameters):
    """See ``EquationsOfMotion.evaluate``."""
    sp = sympy()
    numbers = {str(s): v for s, v in equations.values.items()}
    known = (*equations.lam, *equations.parameters)
    unknown = set(parameters) - set(map(str, known))
    if unknown:
        raise UnknownNameError(
            f"the equations have no parameter {min(unknown)!r}; they have "
            f"{', '.join(map(str, known)) or 'none'}"
        )
    numbers.update({str(s): 0.0 for s in equations.lam} | parameters)
    missing = [str(s) for s in equations.parameters if str(s) not in numbers]
    if missing:
        raise ShapeError(f"the model gives no number for {', '.join(missing)}: pass them by name")
    symbols = (*equations.q, *equations.qd, *equations.qdd, *known)
    given = [*q, *qd, *qdd, *(float(numbers[str(s)]) for s in known)]
    if len(given) != len(symbols):
        raise ShapeError(
            f"evaluate takes {len(equations.q)} positions, {len(equations.qd)} velocities and "
            f"{len(equations.qdd)} accelerations, got {len(q)}, {len(qd)} and {len(qdd)}"
        )
    rows = sp.lambdify(symbols, list(equations.tau), modules="numpy")(*given)
    return np.array(rows, dtype=float)
