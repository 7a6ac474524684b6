"""Rows of loops, constraints and couplings in a step: which count, and where their numbers lie."""

import numpy as np

from kinetree.algorithms.closed.rank import rank_policy, scaling
from kinetree.algorithms.closed.subspace import RANK_TOLERANCE
from kinetree.contact.engine.loops import is_tabled, loop_variables, loops_of, numbered_rows
from kinetree.contact.engine.terms import constraint_kernel


def lay_out_loops(model, tree, problem, rows, units):
    """Lay out the step's rows of loops, constraints and couplings; their kernel, or None.

    Args:
        model: the mechanism.
        tree: its spanning tree, with all joints.
        problem: that of a step.
        rows: its rows, which get those of loops.
        units: of the velocity variables, (nv,).

    Returns:
        The kernel of the rows that are not tables, or None.
    """
    p = problem
    counting = rank_policy(model).rows if model.is_constrained else None
    numbers, others, geared = numbered_rows(model, counting)
    tabled = [is_tabled(model, loop) for loop, _ in numbers]
    rest = [entry for entry, known in zip(numbers, tabled, strict=True) if not known]
    constraints = constraint_kernel(model, rest, others)
    dense = [s for own in (*(own for _, own in rest), others) for s in own if s >= 0] + geared
    rows.loops = len(dense) + sum(
        s >= 0 for (_, own), known in zip(numbers, tabled, strict=True) if known for s in own
    )
    nodes: list = [np.zeros(0, dtype=np.int64)] * rows.loops
    for (loop, own), known in zip(numbers, tabled, strict=True):
        moving = [k for k, _, _ in loop_variables(model, tree, loop)] if known else []
        for s in own:
            nodes[s] = np.unique(p.dof_node[moving]) if s >= 0 else nodes[s]
    if constraints is not None:
        # Numbers that may be other than zero, by configurations all over the place.
        rng = np.random.default_rng(0)
        places = [_random(tree, rng) for _ in range(3)]
        seen = np.sum([np.abs(constraints.reference((q,))[0]) for q in places], axis=0)
        for s, row in zip(dense, seen, strict=True):
            nodes[s] = np.unique(p.dof_node[np.flatnonzero(row)])
    rows.closed = loops_of(
        model,
        tree,
        [e for e, known in zip(numbers, tabled, strict=True) if known],
        _lay_out(nodes, _row_factors(model, units, counting), problem, rows),
    )
    rows.closed.traced, rows.closed.traced_row = len(dense), np.array(dense, dtype=np.int64)
    rows.closed.dense, rows.closed.open = np.zeros(len(dense) * tree.nv), np.zeros(len(dense))
    p.condenses = int(rows.loops > 0)
    for name in ("loop_error", "loop_kept", "loop_ended"):
        setattr(rows, name, np.zeros(rows.loops))
    return constraints


def _row_factors(model, units, counting):
    """Scale factors that make constraint rows and velocity variables dimensionless.

    Rows of couplings have the numbers of their joints, and none is a rounding error.
    """
    own, columns = np.zeros(0), units.copy()
    if model.is_constrained:
        scales = scaling(model)
        own = scales.rows if counting is None else scales.rows[counting]
        columns[model.independent_variables[1] if model.couplings else slice(None)] = scales.columns
    return np.concatenate([own, np.full(len(model.couplings), np.inf)]), columns


def _lay_out(nodes, factors, problem, rows):
    """Set the nodes of all loop rows; their offsets, and each variable's column in its row.

    Args:
        nodes: of rows: the nodes that move them.
        factors: of rows and of columns, see ``_row_factors``.
        problem: that of a step.
        rows: of the problem, which get the lists.
    """
    p = problem
    rows.loop_first = np.cumsum([0, *map(len, nodes)]).astype(np.int64)
    rows.loop_node = np.concatenate([np.zeros(0, dtype=np.int64), *nodes]).astype(np.int64)
    width = [int(p.node_count[own].sum()) for own in nodes]
    at = np.cumsum([0, *width]).astype(np.int64)
    rows.loop_value = np.zeros(at[-1])
    rows.loop_rounding = np.zeros(at[-1])
    places = []
    for s, own in enumerate(nodes):
        dofs = [np.arange(p.node_first[a], p.node_first[a] + p.node_count[a]) for a in own]
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *dofs])
        rounding = RANK_TOLERANCE / (factors[0][s] * factors[1][flat])
        rows.loop_rounding[at[s] : at[s + 1]] = rounding
        places.append({int(k): n for n, k in enumerate(flat)})
    return at, places


def _random(model, rng):
    """Random configuration of a tree, (nq,)."""
    return np.concatenate([np.zeros(0), *(joint.random(rng) for joint in model.joint[1:])])
