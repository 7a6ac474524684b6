"""The equation of motion in closed form: formulas for ``H``, ``C`` and ``g``; as LaTeX and Python.

The inertia matrix comes from the composite-rigid-body algorithm, run on symbols, and the rest from
it and the potential energy by Christoffel's symbols — Lynch & Park (9.12), (9.13). With joints
whose velocities are not the rates of their positions, everything comes from the recursive
algorithms. Loops add their forces ``Kᵀ lam`` and the equations ``K qdd = k`` — RBDA (8.36).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.algorithms import coriolis, crba, energy, rnea
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.plan import make_plan
from kinetree.algorithms.closed.rank import closed_configurations
from kinetree.algorithms.honours import timed_joints
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.codegen.progress import working
from kinetree.errors import ShapeError, UnknownNameError, names_itself
from kinetree.model import Model
from kinetree.model.arrays import as_model
from kinetree.symbolic.parameters import exact, exact_model, inertial_symbols, sympy, with_symbols
from kinetree.symbolic.trigonometry import Arranger


@working("deriving the equations of motion")
@names_itself
def equations_of_motion(
    model: Model,
    symbols: Sequence[str] | Mapping[str, Any] | None = None,
    *,
    coordinates: str = "q",
) -> "EquationsOfMotion":
    """Equations of motion as SymPy formulas: ``tau = H(q) qdd + C(q, qd) + g(q) - K(q)ᵀ lam``.

        eq = kt.equations_of_motion(kt.samples.double_pendulum(), symbols=("gravity",))
        print(eq.latex())

    Readable for mechanisms of up to about four degrees of freedom; larger ones take long, and their
    formulas fill pages.

    Args:
        model: the mechanism. Its parameters may be SymPy formulas; floats are converted to the
            short decimals they print as. Of its loops and constraints, only independent
            equations are used.
        symbols: parameters of the model that are to be symbols: names such as ``"gravity"``,
            ``"mass:<body>"``, ``"center:<body>"``, ``"moments:<body>"``, ``"placement:<joint>"``
            (see ``symbolic.parameters``), or a dict from these to names of symbols.
        coordinates: names of the joint positions: ``"q"`` for ``q1``, ``q2``, ...

    Returns:
        Inertia matrix, Coriolis and gravity forces as SymPy formulas, with their symbols.
    """
    sp = sympy()
    closed, values = with_symbols(exact_model(as_model(model)), symbols)
    given = closed.spanning_tree
    q = _symbols(coordinates, given.nq)
    qd, qdd = (_symbols(coordinates + dots, given.nv) for dots in ("d", "dd"))
    gravity = set().union(*(sp.sympify(x).free_symbols for x in given.gravity))
    readable = Arranger(q, inertial_symbols(given), qd, sorted(gravity, key=str))

    H = _formulas(crba.joint_space_inertia(given, np.array(q)), (given.nv, given.nv))
    H = sp.Matrix(given.nv, given.nv, lambda i, j: readable(H[max(i, j), min(i, j)]))
    terms = _by_christoffel if _is_lagrangian(given) else _by_recursion
    matrix, C, g = terms(given, H, q, qd)
    C, g = C.applyfunc(readable), g.applyfunc(readable)
    matrix = None if matrix is None else matrix.applyfunc(readable)
    loops = _loops(model, closed, q, qd, readable) if model.is_constrained else ()
    return EquationsOfMotion(
        model,
        H,
        C,
        matrix,
        g,
        tuple(q),
        tuple(qd),
        tuple(qdd),
        values,
        *loops,
    )


def _loops(model, closed, q, qd, readable):
    """Symbolic ``K``, ``k``, position errors and force symbols of independent constraints."""
    c = loop_constraints(closed, np.array(q), np.array(qd))
    rows = _independent(model, c.K)
    K, k, error = (np.asarray(x, dtype=object)[rows] for x in (c.K, c.k, c.error))
    shapes = ((len(rows), len(qd)), (len(rows), 1), (len(rows), 1))
    made = [_formulas(x, s).applyfunc(readable) for x, s in zip((K, k, error), shapes, strict=True)]
    return (*made, tuple(_symbols("lam", len(rows))))


def _independent(model, K):
    """Indices of independent constraint rows; of a symbolic model all nonzero ones."""
    some = [i for i, row in enumerate(np.asarray(K)) if any(exact(x) != 0 for x in row)]
    if model.scalar_type().kind == "O":
        return some
    return list(make_plan(model, None, closed_configurations(model)).rows)


def _symbols(name, count):
    """Real SymPy symbols of one name, numbered from 1."""
    sp = sympy()
    return [sp.Symbol(f"{name}{k}", real=True) for k in range(1, count + 1)]


def _formulas(array, shape):
    """Matrix of exact formulas from an array of numbers and formulas."""
    return sympy().Matrix(*shape, [exact(x) for x in np.ravel(array)])


def _is_lagrangian(model):
    """Whether all velocities are rates of positions, and no joint is prescribed."""
    rng, zero = np.random.default_rng(0), model.uncoupled.zero_velocity
    for body in model.bodies:
        joint = body.joint
        _, _, v_J, c_J = joint.jcalc(joint.random(rng), zero[: joint.nv])
        moves = any(np.any(np.asarray(x.to_array(), dtype=float)) for x in (v_J, c_J))
        if moves or not joint.rates_are_velocities:
            return False
    return True


def _by_christoffel(model, H, q, qd):
    """Coriolis matrix, its product with ``qd``, and gravity force, from energies."""
    sp, n = sympy(), model.nv

    def symbol(i, j, k):  # Γ_ijk, Lynch & Park (9.13)
        return (sp.diff(H[i, j], q[k]) + sp.diff(H[i, k], q[j]) - sp.diff(H[j, k], q[i])) / 2

    matrix = sp.Matrix(n, n, lambda i, j: sum(symbol(i, j, k) * qd[k] for k in range(n)))
    U = exact(energy.potential_energy(model, np.array(q)))
    g = sp.Matrix(n, 1, [sp.diff(U, x) for x in q])
    return matrix, matrix * sp.Matrix(n, 1, qd), g


def _by_recursion(model, H, q, qd):
    """Coriolis and gravity forces by the recursive algorithms, for joints of any kind."""
    n, q, qd = model.nv, np.array(q), np.array(qd)
    matrix = None  # velocity terms of prescribed joints are not a matrix times qd
    if not timed_joints(model):
        matrix = _formulas(coriolis.coriolis_matrix(model, q, qd), (n, n))
    C = _formulas(rnea.coriolis_force(model, q, qd), (n, 1))
    return matrix, C, _formulas(rnea.gravity_force(model, q), (n, 1))


_MOST_JOINTS, _MOST_LETTERS = 6, 12_000  # of formulas in a notebook


@dataclass(frozen=True, eq=False)
class EquationsOfMotion:
    """``tau = H qdd + C + g``, all formulas in ``q``, ``qd``, ``qdd`` and the chosen parameters.

    Of a mechanism with loops, ``tau = H qdd + C + g - Kᵀ lam`` with ``K qdd = k``, and ``H``, ``C``
    and ``g`` are those of its spanning tree.

    Attributes:
        model: the mechanism they are of.
        H: joint-space inertia matrix, (nv, nv).
        C: Coriolis and centrifugal forces, without gravity, (nv, 1).
        coriolis_matrix: with ``coriolis_matrix * qd == C`` and ``dH/dt - 2 coriolis_matrix``
            skew-symmetric, (nv, nv); None with prescribed joints: no matrix does both.
        g: forces that hold the mechanism against gravity, (nv, 1).
        q: symbols of positions.
        qd: symbols of velocities.
        qdd: symbols of accelerations.
        values: the numbers that the symbols stand for in the model.
        K: matrix of the independent constraints of the loops, (r, nv); None without loops.
        k: their right-hand sides, ``K qdd = k``, (r, 1); None without loops.
        closure: their position errors, which vanish where the loops are closed, (r, 1); None
            without loops.
        lam: symbols of their forces.
    """

    model: Model
    H: Any
    C: Any
    coriolis_matrix: Any
    g: Any
    q: tuple
    qd: tuple
    qdd: tuple
    values: dict
    K: Any = None
    k: Any = None
    closure: Any = None
    lam: tuple = ()

    @property
    def tau(self) -> Any:
        """Joint forces as formulas, (nv, 1)."""
        sp, n = sympy(), len(self.qdd)
        rows = [
            sp.Add(
                *(self.H[i, j] * self.qdd[j] for j in range(n)),
                self.C[i],
                self.g[i],
                *(-self.K[row, i] * force for row, force in enumerate(self.lam)),
            )
            for i in range(n)
        ]
        return sp.Matrix(n, 1, rows)

    @property
    def parameters(self) -> Any:
        """Symbols of the model's parameters, by name."""
        found = self.H.free_symbols | self.C.free_symbols | self.g.free_symbols
        for x in (self.K, self.k, self.closure):
            found = found | (set() if x is None else x.free_symbols)
        own = found - {*self.q, *self.qd, *self.qdd}
        return tuple(sorted(own, key=str))

    @property
    def symbols(self) -> Any:
        """All symbols of the equations, by name."""
        return {str(s): s for s in (*self.q, *self.qd, *self.qdd, *self.lam, *self.parameters)}

    def latex(self, form: str = "equations", digits: int = 6) -> str:
        """LaTeX text of the equations of motion.

        Args:
            form: ``"equations"``, one for each joint force and for each constraint of the loops;
                or ``"matrices"``, ``H``, ``C`` and ``g``, and with loops ``K`` and ``k``.
            digits: of numbers that are not short fractions.
        """
        return latex(self, form, digits)

    def python(self, name: str = "inverse_dynamics") -> str:
        """Source text of a Python function ``tau = name(q, qd, qdd, <parameters>)``.

        With loops, their forces ``lam`` come after ``qdd``.
        """
        return python(self, name)

    def evaluate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **parameters: Any) -> Array:
        """Joint forces as numbers, (nv,); parameters have the model's values by default.

        With loops, their forces are parameters as well, ``lam1`` and so on, and zero by default:
        what is left are the joint forces of the spanning tree.
        """
        return evaluate(self, q, qd, qdd, parameters)

    def _repr_latex_(self):
        """LaTeX for notebooks; None for formulas too long to be shown."""
        if len(self.qd) > _MOST_JOINTS:
            return None
        text = self.latex()
        return f"$$\n{text}\n$$" if len(text) < _MOST_LETTERS else None

    def __repr__(self):
        known = ", ".join(map(str, self.parameters)) or "none"
        return f"EquationsOfMotion({self.model.name!r}: nv={len(self.qd)}, parameters: {known})"


# --- Lagrange's equations, for any Lagrangian — Lynch & Park (9.3) -------------------------------


def lagrange_equations(L: Any, q: Sequence, qd: Sequence, qdd: Sequence) -> Any:
    """Generalised forces ``d/dt (∂L/∂qd) - ∂L/∂q`` of a Lagrangian, one per coordinate.

    Args:
        L: the Lagrangian, kinetic minus potential energy, a formula in ``q`` and ``qd``.
        q: symbols of independent coordinates.
        qd: symbols of their rates.
        qdd: symbols of the rates of those.
    """
    sp = sympy()
    if not len(q) == len(qd) == len(qdd):
        raise ShapeError(
            f"coordinates, rates and accelerations must be as many, got {len(q)}, {len(qd)} and "
            f"{len(qdd)} symbols"
        )
    forces = []
    for x, v in zip(q, qd, strict=True):
        momentum = sp.diff(L, v)
        rate = sum(
            sp.diff(momentum, y) * yd + sp.diff(momentum, yd) * ydd
            for y, yd, ydd in zip(q, qd, qdd, strict=True)
        )
        forces.append(sp.expand(rate - sp.diff(L, x)))
    return sp.Matrix(forces)


def latex(equations, form, digits):
    """LaTeX text of equations of motion, see ``EquationsOfMotion.latex``."""
    if form == "equations":
        rows = [
            rf"\tau_{{{i}}} &= {_join(equations, i - 1, digits)}"
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


def _join(equations, i, digits):
    """LaTeX of one equation of motion: acceleration terms, velocity terms, gravity."""
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
    """LaTeX of a loop constraint: accelerations on the left, velocities on the right."""
    pairs = zip(equations.K[row, :], equations.qdd, strict=True)
    left = _sum([_formula(equations, K * qdd, digits) for K, qdd in pairs])
    return f"{left} &= {_formula(equations, equations.k[row], digits)}"


def _sum(pieces):
    """Text of a sum of terms with their signs."""
    text = ""
    for piece in pieces:
        if piece != "0":
            text += piece if not text else f" {piece}" if piece[0] == "-" else f" + {piece}"
    return text or "0"


def _formula(equations, x, digits):
    """LaTeX of an expression, with short decimals."""
    sp = sympy()
    decimal = x.replace(
        lambda e: e.is_Rational and e.q not in _FRACTIONS, lambda e: sp.Float(e, digits)
    )
    names = _symbol_names(equations)
    return sp.latex(decimal, symbol_names=names, fold_func_brackets=True, fold_short_frac=True)


_FRACTIONS = (1, 2, 3, 4, 6, 8)  # denominators that are better read than decimals


def _symbol_names(equations):
    """LaTeX of the coordinates: dots for derivatives, numbers as indices."""
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
    """Python source of equations of motion, see ``EquationsOfMotion.python``."""
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
    """Whether formulas contain a function, e.g. ``sin``."""
    return any(f"{function}(" in _code(x) for x in (*rows, *(x for _, x in common)))


def _code(x):
    """Python text of an expression."""
    sp = sympy()
    floats = x.replace(lambda e: e.is_Rational and not e.is_Integer, lambda e: sp.Float(e, 17))
    return sp.pycode(floats, fully_qualified_modules=False)


def evaluate(equations, q, qd, qdd, parameters):
    """Joint forces of equations of motion as numbers, see ``EquationsOfMotion.evaluate``."""
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
