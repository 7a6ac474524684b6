"""Independent variables of a mechanism with loops: ``qd = G yd``, ``qdd = G ydd + g``.

The constraints ``K qdd = k`` are solved for some of the variables (RBDA §8.5); the others are the
independent coordinates ``y``, and what follows from them is an ``AllowedMotion``.
``allowed_motion`` has an order of elimination that was chosen once for the model
(``coordinate_plan``), and can be traced; its health tells whether that suits the sample.
``allowed_motion_at`` decides about ranks for the configuration at hand, on the CPU.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed import joint_space
from kinetree.algorithms.closed.allowed_motion import SMALLEST_INERTIA, AllowedMotion
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.elimination import null_space_basis, orthogonal_solution
from kinetree.algorithms.closed.forward_dynamics import (
    SMALLEST_PIVOT,
    axes_to_try,
    is_closed,
    violations,
)
from kinetree.algorithms.closed.joint_space import CLOSURE_TOLERANCE, check_constraints_hold
from kinetree.algorithms.closed.plan import EliminationPlan, make_plan, stacked_rows
from kinetree.algorithms.closed.rank import closed_configurations, count_values, kept_rows, scaling
from kinetree.algorithms.closed.samples import Rehearsal
from kinetree.algorithms.closed.subspace import RANK_TOLERANCE
from kinetree.errors import LoopError, SingularError, UnknownNameError
from kinetree.model.gearing import require_leader
from kinetree.model.memo import remember
from kinetree.model.views import condensed_view
from kinetree.spatial.ops import absolute, less, select

# --- by a plan: compiled -------------------------------------------------------------------------


class CoordinatePlan(NamedTuple):
    """An order of elimination that leaves some variables independent."""

    plan: EliminationPlan
    usual: np.ndarray
    """Usual sizes of its pivots."""
    columns: tuple
    """Numbers of the variables that are independent, in the order of coordinates."""


def coordinate_plan(model, keep=()) -> CoordinatePlan | None:
    """Elimination plan with the variables ``keep`` independent; None where there is none.

    Args:
        model: the mechanism, with loops.
        keep: numbers of velocity variables, all of the coordinates or some of them.
    """
    model, keep = model.numeric, tuple(keep)

    def make():
        found = [_rehearse(model, axes, keep) for axes in axes_to_try(model)]
        best = min((f for f in found if f), key=lambda f: f[0], default=None)
        return (best and best[1],)

    return remember(model, ("coordinate_plan", keep), make)[0]


def _rehearse(model, axes, keep):
    """Operation count and elimination plan; None if ``keep`` cannot be independent."""

    def sizes(q):
        c = stacked_rows(condensed_view(model), q, model.zero_velocity, axes)
        found = null_space_basis(c.K, c.k, plan.pivots)
        return [x for row in found.G for x in row.values()], found.pivots

    try:
        plan = make_plan(model, axes, closed_configurations(model), keep)
        if keep and len(plan.pivots) + len(independent_variables(model)) < model.nv:
            return None  # the constraints tie them to each other
        rehearsal = Rehearsal(sizes, q=(model.nq,))
    except SingularError:
        return None
    usual = np.max(np.abs(rehearsal.values(q=plan.samples)[1]), axis=0, initial=0)
    solved = {j for _, j in plan.pivots}
    free = tuple(j for j in range(model.nv) if j not in solved)
    return rehearsal.cost(), CoordinatePlan(plan, usual, keep if set(keep) == set(free) else free)


def independent_variables(model) -> tuple:
    """Numbers of the velocity variables that are a model's independent coordinates by default."""
    found = coordinate_plan(model)
    if found is not None:
        return found.columns
    q = closed_configurations(model)[0]
    return _choose_variables(model, loop_constraints(model, q, model.zero_velocity).K, ())[0]


def allowed_motion(model, q, qd, chosen: CoordinatePlan, *, anywhere=False):
    """Motions that loops allow in a state, by a plan, and conditions under which they are valid.

    Args:
        model: the mechanism.
        q: position variables, (nq,).
        qd: velocity variables, (nv,); None where they do not matter.
        chosen: the plan.
        anywhere: whether to leave its pivots aside and solve for all dependent variables at once,
            by orthogonal columns: more operations, and right wherever the coordinates determine the
            motion. Derivatives of it are, too.

    Returns:
        An ``AllowedMotion``; and a function without arguments for its health, to be called after
        what was to be computed: at least 1 where that is good.
    """
    plan, moves = chosen.plan, qd is not None
    qd = qd if moves else model.zero_velocity
    c = stacked_rows(condensed_view(model), q, qd, plan.axes)
    found = (_orthogonal if anywhere else _eliminate)(model, c, chosen)

    def rates(model, q, qd):
        return stacked_rows(condensed_view(model), q, qd, plan.axes).rate

    at = AllowedMotion(model, q, qd, found.G, found.g, chosen.columns, rates, found.solve)

    def health():
        worst = 1 / SMALLEST_PIVOT
        inertias = [d * (1 / SMALLEST_INERTIA) for d in at.pivots]
        for ratio in (*found.ratios, *at.ratios, *inertias):
            worst = select(less(ratio, worst), ratio, worst)
        still = c._replace(k=0 * c.k)
        wrong = [violations(plan, still, column) for column in at.G.T]
        for is_violated in (w for part in (violations(plan, c, at.g), *wrong) for w in part):
            worst = select(is_violated, 0, worst)
        *positions, rates = is_closed(model, q, qd, c)
        for condition in (*positions, rates) if moves else positions:
            worst = select(condition, worst, 0)
        return worst

    return at, health


class _Solved(NamedTuple):
    """Constraints, solved for the dependent variables."""

    G: np.ndarray
    g: np.ndarray
    ratios: list
    """How far the system is from singular, at least 1 if it is far enough."""
    solve: Callable
    """``x`` with ``K x = b``, for columns ``b``, and zero along the coordinates."""


def _eliminate(model, c, chosen):
    """Null-space basis of the constraints by the pivots of a plan."""
    pivots = chosen.plan.pivots
    basis = null_space_basis(c.K, c.k, pivots)
    G = [[row.get(j, 0) for j in chosen.columns] for row in basis.G]
    pairs = zip(basis.pivots, chosen.usual, strict=True)
    ratios = [absolute(s) * (1 / (SMALLEST_PIVOT * usual)) for s, usual in pairs]

    def solve(b):
        g = null_space_basis(c.K, b, pivots).g
        return np.array([x + np.zeros(b.shape[1], dtype=int) for x in g]).reshape(model.nv, -1)

    return _Solved(np.array(G).reshape(model.nv, -1), np.array(basis.g), ratios, solve)


def _orthogonal(model, c, chosen):
    """Null-space basis by orthogonalised columns, without nearly redundant rows of the plan."""
    plan, units = chosen.plan, scaling(model)
    kept_ones = plan.rows if plan.misalignment else range(len(c.k))
    rows = np.array(kept_ones, dtype=int)
    dependent, free = sorted(j for _, j in plan.pivots), list(chosen.columns)
    weight = units.rows[rows]
    A = weight[:, None] * c.K[np.ix_(rows, dependent)] * units.columns[dependent]

    def solve_dependent(b):
        b = weight[:, None] * b[rows]
        x, parts, _ = orthogonal_solution(A, b)
        whole = np.zeros((model.nv, b.shape[1]), dtype=x.dtype if x.size else float)
        whole[dependent] = units.columns[dependent, None] * x
        return whole, parts

    first, parts = solve_dependent(np.column_stack([-c.K[:, free], c.k]))
    G = first[:, :-1]
    for n, j in enumerate(free):
        G[j, n] = 1
    ratios = [part * (1 / SMALLEST_PIVOT**2) for part in parts]
    return _Solved(G, first[:, -1], ratios, lambda b: solve_dependent(b)[0])


# --- by singular values: one sample --------------------------------------------------------------


def allowed_motion_at(model, q, qd, keep=(), every=False) -> AllowedMotion:
    """Motions that loops allow in one numeric state, with ranks by singular values.

    Args:
        model: the mechanism.
        q: position variables, (nq,).
        qd: velocity variables, (nv,); None where they do not matter.
        keep: numbers of variables that are to be independent.
        every: whether these are all coordinates; else others are added as needed.

    Raises:
        ShapeError: the state does not close the loops.
        SingularError: the variables ``keep`` do not determine the motion, or depend on each other.
    """
    moves = qd is not None
    qd = qd if moves else model.zero_velocity
    found = joint_space.constraint(model, q, qd)
    if not moves:  # joints and constraints that time moves are not at rest
        loops = [loop._replace(rate=0 * loop.rate) for loop in found.loops]
        found = found._replace(rate=0 * found.rate, loops=loops)
    check_constraints_hold(model, found, CLOSURE_TOLERANCE)
    K, k = found.implicit.K.astype(float), found.implicit.k.astype(float)
    rows = kept_rows(model, K)
    rows = np.arange(len(K)) if rows is None else rows
    columns, freedom = _choose_variables(model, K, keep)
    if every and len(keep) != freedom:
        raise SingularError(
            f"model {model.name!r} has {freedom} degrees of freedom in this configuration, and "
            f"coordinates {_names(model, keep)}: a singularity, where other coordinates are needed"
        )
    units, K, k = scaling(model), K[rows], k[rows]
    R = np.eye(model.nv)[list(columns)] / units.columns[list(columns), None]
    size = np.concatenate([np.ones(len(R)), units.rows[rows]])
    A = size[:, None] * np.concatenate([R, K]) * units.columns
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    if model.nv and s[-1] <= RANK_TOLERANCE * s[0]:
        raise SingularError(
            f"{_names(model, columns)} do not determine the motion of model {model.name!r} in this "
            f"configuration: choose other joints as independent"
        )
    inverse = units.columns[:, None] * ((Vt.T / s) @ U.T) * size
    p = len(columns)
    G = inverse[:, :p] / units.columns[list(columns)]

    def rates(model, q, qd):
        return loop_constraints(model, q, qd).rate[rows]

    def matrix(model, q):
        return loop_constraints(model, q, model.zero_velocity).K[rows]

    g = inverse[:, p:] @ k
    at = AllowedMotion(model, q, qd, G, g, columns, rates, lambda b: inverse[:, p:] @ b)
    at.matrix = None if model.constraints else matrix  # whose own are derivatives themselves
    return at


def _choose_variables(model, K, keep):
    """Numbers of independent variables, ``keep`` first, and the mechanism's freedom."""
    units = scaling(model)
    _, s, Vt = np.linalg.svd(units.apply(K))
    rank = int(count_values(s, units))
    rest, chosen = Vt[rank:].copy(), []
    freedom = len(rest)
    for n in range(max(freedom, len(keep))):
        lengths = np.linalg.norm(rest, axis=0)
        lengths[chosen] = -1.0
        best = keep[n] if n < len(keep) else int(np.argmax(lengths >= lengths.max() * (1 - 1e-9)))
        if lengths[best] <= 1e-9:
            raise SingularError(
                f"the loops of model {model.name!r}, which has {freedom} degrees of freedom here, "
                f"tie the variables {_names(model, keep)} to each other: they cannot all be "
                f"independent, nor all be given"
            )
        chosen.append(best)
        direction = rest[:, best] / lengths[best]
        rest = rest - np.outer(direction, direction @ rest)
    return tuple(chosen) if len(keep) == freedom else tuple(sorted(chosen)), freedom


def _require_flat(model, labels, columns):
    """Raise LoopError if a coordinate's velocity is not the derivative of its position."""
    owners = [loop.joint for loop in model.loops for _ in range(loop.joint.nv)]
    for c in columns:
        if c >= model.nv and not owners[c - model.nv].rates_are_velocities:
            raise LoopError(
                f"{labels[c]!r}, which closes a loop of model {model.name!r}, cannot be a "
                f"coordinate: its velocity variables are not the derivatives of its positions"
            )


def _names(model, columns):
    """Names of some velocity variables, joined for messages."""
    names = coordinate_labels(model)
    return ", ".join(repr(names[i]) for i in columns) or "none"


# --- names ---------------------------------------------------------------------------------------


def variable_names(model):
    """One name for each velocity variable: of its joint, with ``[k]`` where that has several."""
    return tuple(
        name if joint.nv == 1 else f"{name}[{k}]"
        for name, joint in zip(model.joint_names, model.joint[1:], strict=True)
        for k in range(joint.nv)
    )


def velocity_columns(model, names, what):
    """Numbers of the velocity variables of some joints; of all joints for None."""
    if names is None:
        return np.arange(model.nv)
    if isinstance(names, str):
        raise UnknownNameError(f"{what} must be names of joints in a list, got {names!r}")
    joints = [model.joint_index(name) for name in names]
    for i in joints:
        require_leader(model, i, f"be named by {what}=")
    at = [model.v_slice[i] for i in joints]
    return np.unique(np.concatenate([np.zeros(0, int), *(np.arange(s.start, s.stop) for s in at)]))


def coordinate_labels(model):
    """Names of all possible coordinates: tree variables, then those of loop joints."""
    loops = [(loop.name, loop.joint.nv) for loop in model.loops]
    extra = (name if n == 1 else f"{name}[{k}]" for name, n in loops for k in range(n))
    return (*variable_names(model), *extra)


def named_variables(model, independent) -> tuple:
    """Numbers of the velocity variables that ``independent`` names; the default for None.

    Args:
        model: the mechanism.
        independent: names of joints, of the tree or closing loops, or of single variables such as
            ``"ball[1]"``. Variables of loop joints have the numbers from ``nv`` on.
    """
    default = independent_variables(model)
    if independent is None:
        return default
    names = [independent] if isinstance(independent, str) else list(independent)
    labels, columns = coordinate_labels(model), []
    for name in names:
        if name in labels:
            columns.append(labels.index(name))
        elif name in model.loop_names:
            columns += [k for k, label in enumerate(labels) if label.startswith(f"{name}[")]
        else:
            at = model.v_slice[model.joint_index(name)]
            columns += range(at.start, at.stop)
    _require_flat(model, labels, columns)
    if len(columns) != len(default) or len(set(columns)) != len(columns):
        raise LoopError(
            f"model {model.name!r} has {len(default)} degrees of freedom; as many independent "
            f"variables are needed, got {len(columns)}: {_names(model, columns)}"
        )
    return tuple(columns)
