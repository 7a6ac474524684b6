"""Velocities and impulses of a step with contacts, limits, dry friction, loops and couplings.

Wanted are velocities ``v`` and impulses ``lam`` with

    M (v - free) = J' lam,    w = J v + target,

and a law for every group of rows. Kind ``CONE`` is Coulomb's law in a round cone, the first row
normal: ``lam_n >= 0``, ``w_n >= 0``, ``lam_n w_n = 0``, ``|lam_t| <= mu lam_n``, and sliding
against ``lam_t`` where that bound is reached; with 4 and 6 rows the same for moments about the
normal and about the tangents, each by itself. Kind ``BOUNDS`` is ``low <= lam <= high`` with
``w = 0`` between the bounds, ``w >= 0`` at ``low``, ``w <= 0`` at ``high``: ``(0, inf)`` is
a limit, ``(-f, f)`` dry friction, ``(-inf, inf)`` a loop or a coupling.

Degrees of freedom are those of the model, in its order. A **node** is an unbranched run of them in
one tree, at most 16: blocks of matrices belong to pairs of nodes.
"""

import math

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.procedures import procedure, record, vector, view
from kinetree.contact.newton.course import Course

CONE = 0
BOUNDS = 1
LARGEST_NODE = 16
MOST_CONDENSED = 128
"""Rows with bounds or friction up to which a matrix is condensed to them."""


@record(apart=True)
class Problem:
    """Problem of one step.

    In, for the life of the model (``problem_of`` makes them from the tree):
        nv, trees, nodes: numbers of degrees of freedom, trees and nodes.
        node_first, node_count: first degree of freedom of a node, and how many.
        node_parent: node above, -1 at a root; less than the node's own number.
        node_tree: number of the tree.
        node_blocks_first: (nodes + 1,) where the blocks of a node begin in the lists that follow.
        block_ancestor: the node itself, its parent, its grandparent, ... up to the root.
        block_at: address in ``M`` of the block (count of node, count of ancestor), row major.
        dof_node: node of a degree of freedom.
        alone: 1 where ``free`` stays whatever the velocities: bodies that are all of their tree.
        condenses: 1 where there are rows without bounds, see ``condensed``.

    In, every step:
        M: blocks of the mass matrix (plus ``h D + h^2 K`` of implicit joint forces).
        free: velocity without the impulses of this problem, (nv,).
        groups: number of groups; rows and entries are counted by the lists that follow.
        kind: CONE or BOUNDS;  dim: rows of the group: 1, 3, 4 or 6 (CONE), 1 (BOUNDS).
        row_first: first row of a group;  (groups + 1,), rows of groups follow one another.
        mu: coefficient of a cone after scaling of its rows;  low, high: bounds of a BOUNDS group.
        entry_first: (groups + 1,), where the entries of a group begin. A group has one entry for
            every node that moves it (the nodes of both bodies and their ancestors), each node once.
        entry_node: node of an entry;  entry_at: address in ``J`` of its block (dim, count of node).
        target: of rows, see above.
        label: of a group, the same in all problems of a step that have it.
        tolerance: of the error relative to the largest impulse of an island, see ``error``.
        most_rounds, most_newton: bounds of the effort for an island.

    In and out:
        velocity: in, velocity before the step (a start, and the measure of the forces of the step);
            out, the solution.
        impulse: of rows. In, the impulses of the last step or zero; out, the solution.
        changed: since the last call: 2 where everything may have, 1 where ``M`` and rows without
            bounds have not, 0 where only ``free`` and ``target`` have; out, 0 if it was looked at.
        begins: 1 where a step begins: its pattern depends on nothing before; out, 0.
        same: 1 where groups and their entries are those of the last call, whose lists serve again.
        lasting: groups, from the first on, whose rows and bodies are those of the last call, and
            so is ``M``; 0 where nobody knows.
        again: how often nearly the same problem was solved; then ``start`` has its velocities,
            ``impulse`` its impulses, and from 2 on islands that it solved are left as they are.
        coarse: relative error with which islands that move are left to another call, or 0; those
            in which all is ``alone`` earlier still.

    Out:
        islands: number of islands that have groups.
        rounds: rounds, the most of an island;  newton, factored: steps and factorisations, in all.
        left: how many islands are left to another call.
        status: 0 when all islands are solved, else how many are not. -1: ``Work`` is too small.
        error: largest scaled error of an island (momentum and laws, see ``newton``), relative: at
            most ``tolerance`` when solved.
        momentum_error: largest of ``|M (v - free) - J' lam|``.
        velocity_error: largest violation of ``w >= 0`` (or ``w = 0``).
        cone_error: largest violation of a cone or of bounds.
        complementarity: largest ``|lam . (w + De Saxcé's correction)|``.
    """

    nv: int
    trees: int
    nodes: int
    node_first: "int[:]"
    node_count: "int[:]"
    node_parent: "int[:]"
    node_tree: "int[:]"
    node_blocks_first: "int[:]"
    block_ancestor: "int[:]"
    block_at: "int[:]"
    dof_node: "int[:]"
    alone: "float[:]"
    condenses: int
    changed: int
    begins: int
    same: int
    M: "float[:]"
    free: "float[:]"
    velocity: "float[:]"
    groups: int
    kind: "int[:]"
    dim: "int[:]"
    label: "int[:]"
    row_first: "int[:]"
    mu: "float[:]"
    low: "float[:]"
    high: "float[:]"
    entry_first: "int[:]"
    entry_node: "int[:]"
    entry_at: "int[:]"
    J: "float[:]"
    target: "float[:]"
    impulse: "float[:]"
    lasting: int
    again: int
    start: "float[:]"
    coarse: float
    tolerance: float
    most_rounds: int
    most_newton: int
    islands: int
    left: int
    rounds: int
    newton: int
    factored: int
    status: int
    error: float
    momentum_error: float
    velocity_error: float
    cone_error: float
    complementarity: float


@record(apart=True)
class Work:
    """Workspace of ``solve``, and what it keeps from step to step (``workspace`` makes it).

    Islands may be solved at once (``engine/sharing.py``): lists have separate places for them. Each
    thread has its numbers and its ``temp``; the condensed matrix belongs to one of them.

    Lists have the lengths that their comments name. The pattern of the factor is kept while it
    holds all pairs of nodes that the groups couple; nothing in it changes results.
    """

    room: int  # numbers that H can hold
    pairs_room: int  # lengths of pair_at, of panel_node and of pool
    panels_room: int
    pool_room: int
    groups_room: int
    rows_room: int
    numbers_room: int
    swept: int  # 1: sweeps, whose result depends on the order of contacts, have led to a solution
    started: int  # groups that lam_last belongs to, -1 for none
    course: Course
    stress: float  # r in units of 1 / d
    soft: float  # inverse penalty of contacts that stick, in units of d
    # islands
    tree_up: "int[:]"  # trees: union-find
    tree_island: "int[:]"  # trees: island, -1 without groups
    island_groups_first: "int[:]"  # trees + 1
    island_group: "int[:]"  # groups
    run_first: "int[:]"  # trees + 1
    run: "int[:, 2]"  # groups: rows of an island that follow one another, first and after the last
    island_nodes_first: "int[:]"  # trees + 1
    island_node: "int[:]"  # nodes, in order of elimination
    island_dofs_first: "int[:]"  # trees + 1
    island_dof: "int[:]"  # nv
    # pattern of the factor, by position in the order of elimination
    ordered: int
    couplings: int
    coupled: "int[:]"  # couplings: what the pattern was made from
    position: "int[:]"  # nodes: -1 when not in the pattern
    order: "int[:]"  # nodes
    panel_first: "int[:]"  # nodes + 1
    panel_node: "int[:]"  # positions of the later nodes of a panel, ascending
    panel_offset: "int[:]"  # column in the panel
    panel_at: "int[:]"  # nodes: address in H
    panel_width: "int[:]"  # nodes: columns
    left_first: "int[:]"  # nodes + 1
    left_panel: "int[:]"  # positions of the earlier panels that have this node
    left_index: "int[:]"  # and where in panel_node
    place: "int[:]"  # nodes: column of a node in the panel at work
    mark: "int[:]"  # nodes
    degree: "int[:]"  # nodes
    list_at: "int[:]"  # nodes
    list_count: "int[:]"  # nodes
    list_room: "int[:]"  # nodes
    bucket: "int[:]"  # nodes + 1: first node of a degree, and the lists of those
    next: "int[:]"  # nodes
    previous: "int[:]"  # nodes
    pool: "int[:]"
    # groups
    pair_first: "int[:]"  # groups + 1
    pair_at: "int[:]"  # address in H of the block of a pair of entries
    spot: "int[:, 4]"  # groups: where J and v are of contacts of free bodies, see note_spot
    responds: "int[:]"  # groups: 1 where A and AJ have responses, see sweeps.responses
    bunch: "int[:, 8]"  # groups: the first of contacts of the same free bodies, see note_bunch
    block_place: "int[:]"  # address in H of a block of M
    state: "int[:]"  # groups: open, sticking, sliding
    was: "int[:]"  # groups: state when the matrix was made
    delassus: "float[:]"  # groups: largest diagonal of J M^-1 J'
    shift: "float[:]"  # groups: what De Saxcé's correction adds to the normal velocity
    inner: "float[:, 8]"  # groups: see interior
    discs: "float[:]"  # 24 numbers of groups: see discs
    AJ: "float[:]"  # as J
    # rows
    w: "float[:]"
    y: "float[:]"
    p: "float[:]"
    dw: "float[:]"
    lam: "float[:]"
    lam_first: "float[:]"  # of the first solution of an island, while another is looked for
    lam_last: "float[:]"  # of the last step, or zero
    dlam: "float[:]"
    A: "float[:]"  # 6 rows: matrices of groups, (dim, dim)
    scale: "float[:]"  # square root of delassus
    changes: "float[:]"  # 4 times rows: of impulses by sweeps, see mixtures
    impulses: "float[:]"  # the same: after sweeps
    # degrees of freedom
    v: "float[:]"
    v_first: "float[:]"  # as lam_first
    g: "float[:]"
    dv: "float[:]"
    mass: "float[:]"  # M_ii that the next three belong to
    root: "float[:]"  # sqrt(M_ii)
    metric: "float[:]"  # 1 / sqrt(M_ii)
    inverse: "float[:]"  # 1 / M_ii
    inverted: "float[:]"  # blocks of free bodies in M that inverses belong to
    inverses: "float[:]"  # inverses of blocks of trees with one node, as M
    velocities: "float[:]"  # 4 nv: after sweeps, as impulses
    products: "float[8, 4]"  # of changes
    # answers of islands: see keeping
    kept: int  # islands of the last call
    same: "int[:]"  # trees: kept island that an island is, or -1
    errors: "float[:, 6]"  # trees: of islands, the last 1 if it was solved
    kept_errors: "float[:, 6]"  # trees
    kept_island: "int[:]"  # trees: as tree_island
    kept_first: "int[:]"  # trees + 1: as island_groups_first
    kept_row: "int[:]"  # trees: where the rows of an island begin
    kept_label: "int[:]"  # groups
    last_label: "int[:]"  # groups that lam_last belongs to
    last_row: "int[:]"  # groups + 1: their first rows in it
    label_slot: "int[:]"  # slots: 1 + number of a group by its label
    kept_target: "float[:]"  # rows
    kept_impulse: "float[:]"  # rows
    kept_free: "float[:]"  # nv
    kept_velocity: "float[:]"  # nv
    # factor: upper rows, and lower ones transposed
    H: "float[:]"
    L: "float[:]"
    temp: "float[:]"  # nv
    # condensed: see there
    condensed: int  # rows of the last matrix, -1 where it is not condensed
    sign: float  # of its determinant
    responded: int  # rows whose responses are known
    base: "float[:]"  # factor of the mass matrix with the rows without bounds, as H
    base_lower: "float[:]"  # and as L
    based: "int[:]"  # nodes: 1 where base has their panel
    frame: "float[:]"  # that matrix itself, as H
    framed: "int[:]"  # nodes: 1 where frame has their panel
    response_at: "int[:]"  # groups: 1 + first row of their responses, 0 for none
    response_group: "int[:]"  # MOST_CONDENSED: group of a response
    response: "float[:]"  # MOST_CONDENSED * nv
    compliance: "float[:]"  # MOST_CONDENSED squared: J times responses
    acting: "int[:]"  # MOST_CONDENSED: groups of the small matrix
    small: "float[:]"  # MOST_CONDENSED squared: its factors
    pivot: "int[:]"  # MOST_CONDENSED
    short: "float[:]"  # MOST_CONDENSED


def problem_of(
    dof_parent: ArrayLike, *, tolerance: float = 1e-6, most_rounds: int = 20, most_newton: int = 200
) -> Problem:
    """``Problem`` without groups for a forest of degrees of freedom, given parents.

    Args:
        dof_parent: for each degree of freedom the one it is carried by, -1 at a root; those of a
            joint with several are carried by one another. Parents come first.
        tolerance: see ``Problem``.
        most_rounds: see ``Problem``.
        most_newton: see ``Problem``.
    """
    parent = [int(d) for d in np.asarray(dof_parent, dtype=int)]
    children = np.bincount([d for d in parent if d >= 0] or [0], minlength=len(parent) + 1)
    first, count, node_parent, tree, of, trees = [], [], [], [], [], 0
    for d, above in enumerate(parent):
        if not -1 <= above < d:
            raise ValueError(f"dof_parent[{d}] must be from -1 to {d - 1}, got {above}")
        if above >= 0 and above == d - 1 and children[above] == 1 and count[-1] < LARGEST_NODE:
            count[-1] += 1
        else:
            node_parent.append(of[above] if above >= 0 else -1)
            tree.append(tree[of[above]] if above >= 0 else trees)
            trees += above < 0
            first.append(d)
            count.append(1)
        of.append(len(first) - 1)
    begin, ancestor, at, numbers = [0], [], [], 0
    for a in range(len(first)):
        b = a
        while b >= 0:
            ancestor.append(b)
            at.append(numbers)
            numbers += count[a] * count[b]
            b = node_parent[b]
        begin.append(len(ancestor))
    static = {
        "node_first": first, "node_count": count, "node_parent": node_parent, "node_tree": tree,
        "node_blocks_first": begin, "block_ancestor": ancestor, "block_at": at, "dof_node": of,
    }  # fmt: skip
    return Problem(
        nv=len(parent),
        trees=trees,
        nodes=len(first),
        M=np.zeros(numbers),
        free=np.zeros(len(parent)),
        velocity=np.zeros(len(parent)),
        start=np.zeros(len(parent)),
        alone=np.zeros(len(parent)),
        **{k: np.array(x, dtype=np.int64) for k, x in static.items()},
        **{k: np.zeros(1, dtype=np.int64) for k in (*_OF_GROUPS_INT, *_OF_ENTRIES)},
        **{k: np.zeros(1) for k in (*_OF_GROUPS, *_OF_ROWS, "J")},
        tolerance=tolerance,
        most_rounds=most_rounds,
        most_newton=most_newton,
    )


_OF_GROUPS_INT = ("kind", "dim", "label", "row_first", "entry_first")
_OF_GROUPS = ("mu", "low", "high")
_OF_ROWS = ("target", "impulse")
_OF_ENTRIES = ("entry_node", "entry_at")


def with_room(problem: Problem, groups: int, rows: int, entries: int, numbers: int) -> Problem:
    """Enlarge a problem's arrays of groups, rows, entries and Jacobian numbers to these sizes."""
    sizes = dict.fromkeys((*_OF_GROUPS_INT, *_OF_GROUPS), groups + 1)
    sizes |= dict.fromkeys(_OF_ROWS, rows) | dict.fromkeys(_OF_ENTRIES, entries) | {"J": numbers}
    _grow(problem, sizes)
    return problem


_LINE, _PAGE = 64, 4096  # bytes
_LARGE = 16384  # bytes of arrays that begin at different lines of pages
_STEP = 5  # lines from array to array
_BESIDE = 136  # numbers beyond whole pages from place to place of ``changes``


def _spread(shape, dtype, number):
    """Array of zeros; large ones are offset by cache lines, so that equal rows do not collide.

    Numbers of the same row in arrays of whole pages would fall into the same few lines of the first
    cache, and what is read would wait for what is written at the same place of other pages.
    """
    count = math.prod(shape)
    if count * dtype.itemsize < _LARGE:
        return np.zeros(shape, dtype)
    room = np.zeros(count + _PAGE // dtype.itemsize, dtype)
    start = (number * _STEP * _LINE - room.ctypes.data) % _PAGE // dtype.itemsize
    return room[start : start + count].reshape(shape)


def _grow(holder, sizes):
    """Replace arrays shorter than ``sizes`` names by longer copies, padded with zeros."""
    numbers = {name: number for number, name in enumerate(holder.types)}
    for name, size in sizes.items():
        old = getattr(holder, name)
        if len(old) < size:
            shape = (max(size, 2 * len(old)), *old.shape[1:])
            new = _spread(shape, old.dtype, numbers[name])
            new[: len(old)] = old
            setattr(holder, name, new)


_WORK = {
    "trees": ("tree_up", "tree_island", "island_groups_first", "run_first", "island_nodes_first",
              "island_dofs_first", "same", "errors", "kept_errors", "kept_island", "kept_first",
              "kept_row"),
    "nodes": ("island_node", "position", "order", "panel_first", "panel_at", "panel_width",
              "left_first", "place", "mark", "degree", "list_at", "list_count", "list_room",
              "bucket", "next", "previous"),
    "groups": ("island_group", "run", "pair_first", "spot", "bunch", "responds", "delassus",
               "shift", "state", "was", "inner", "kept_label", "last_label", "last_row"),
    "slots": ("label_slot",),
    "rows": ("w", "y", "p", "dw", "lam", "lam_first", "lam_last", "dlam", "scale", "kept_target",
             "kept_impulse"),
    "places_of_rows": ("changes", "impulses"), "places_of_nv": ("velocities",),
    "matrices": ("A",), "discs": ("discs",),
    "nv": ("island_dof", "v", "v_first", "g", "dv", "mass", "root", "metric", "inverse", "temp",
           "kept_free", "kept_velocity"),
    "M": ("inverted", "inverses"),
    "panels": ("panel_node", "panel_offset", "left_panel", "left_index"),
    "coupled": ("coupled",), "blocks": ("block_place",), "numbers": ("AJ",),
    "pairs": ("pair_at",), "pool": ("pool",), "room": ("H", "L"),
    "base": ("base", "base_lower", "frame"), "based": ("based", "framed"),
    "response_at": ("response_at",),
    "response": ("response",), "condensed": ("response_group", "acting", "pivot", "short"),
    "square": ("compliance", "small"),
}  # fmt: skip


def workspace(problem: Problem) -> Work:
    """New workspace for a problem; ``solve`` returns -1 when it has become too small."""
    work = Work(course=Course())
    enlarge(work, problem)
    return work


def enlarge(work: Work, problem: Problem, times: int = 2) -> None:
    """Enlarge a workspace for the present sizes of a problem; discards the matrix pattern.

    Factors and what belongs to them get ``times`` the room that they had.
    """
    free = int(np.sum(problem.node_count**2))
    rows = len(problem.impulse)
    if 8 * rows >= _LARGE:
        rows += (_BESIDE - rows) % (_PAGE // 8)
    sizes = {
        "trees": problem.trees + 1, "nodes": problem.nodes + 1, "groups": len(problem.kind) + 1,
        "rows": rows, "nv": problem.nv, "blocks": len(problem.block_at),
        "numbers": len(problem.J), "matrices": 6 * rows,
        "places_of_rows": 4 * rows, "places_of_nv": 4 * problem.nv,
        "M": len(problem.M), "discs": 24 * (len(problem.kind) + 1),
        "slots": 2 * len(problem.kind) + 2,
        "coupled": problem.trees + len(problem.kind) + len(problem.entry_node) + 1,
        "panels": max(times * work.panels_room, 4 * len(problem.block_at)),
        "pairs": max(times * work.pairs_room, 6 * len(problem.entry_node)),
        "pool": max(times * work.pool_room, 16 * len(problem.block_at) + 64),
        "room": max(times * work.room, 2 * len(problem.M) + free),
    }  # fmt: skip
    most = MOST_CONDENSED if problem.condenses else 0
    sizes |= {
        "base": sizes["room"] if most else 1,
        "based": sizes["nodes"] if most else 1,
        "response_at": sizes["groups"] if most else 1,
        "response": most * problem.nv + 1,
        "condensed": most + 1,
        "square": most * most + 1,
    }
    for what, names in _WORK.items():
        _grow(work, dict.fromkeys(names, sizes[what]))
    work.panels_room, work.pairs_room = len(work.panel_node), len(work.pair_at)
    work.pool_room, work.room, work.ordered = len(work.pool), len(work.H), 0
    work.groups_room, work.rows_room = len(work.state) - 1, len(work.w)
    work.numbers_room, problem.changed = len(work.AJ), 2


# --- Rows of groups; most are contacts of free bodies: blocks of 3 by 6 --------------------------


@procedure(inline=True)
def times_six(a: "float[6]", b: "float[6]") -> float:
    """Scalar product of two 6-vectors, summed in pairs for vector registers."""
    s = a[0:2] * b[0:2] + a[2:4] * b[2:4] + a[4:6] * b[4:6]
    return s[0] + s[1]


@procedure(inline=True)
def row_velocity(problem: Problem, g: int, v: "float[:]", w: "float[:]") -> None:
    """Write row velocities ``w = J v`` of a group, with a fast path for contacts of free bodies."""
    e = problem.entry_first[g]
    f = problem.entry_first[g + 1] - 1
    a = problem.entry_node[max(min(e, f), 0)]
    b = problem.entry_node[max(f, 0)]
    sixes = problem.node_count[a] == 6 and problem.node_count[b] == 6
    if problem.dim[g] == 3 and e <= f <= e + 1 and sixes:
        x = view(v, problem.node_first[a], 6)
        J = view(problem.J, problem.entry_at[e])
        w0 = times_six(view(J, 0, 6), x)
        w1 = times_six(view(J, 6, 6), x)
        w2 = times_six(view(J, 12, 6), x)
        if f > e:
            y = view(v, problem.node_first[b], 6)
            K = view(problem.J, problem.entry_at[f])
            w0 += times_six(view(K, 0, 6), y)
            w1 += times_six(view(K, 6, 6), y)
            w2 += times_six(view(K, 12, 6), y)
        w[:3] = vector(w0, w1, w2)
    else:
        velocity_of_any(problem, g, v, w)


@procedure
def velocity_of_any(problem: Problem, g: int, v: "float[:]", w: "float[:]") -> None:
    """Write row velocities ``w = J v`` of a group of any dimension and nodes."""
    dim = problem.dim[g]
    if dim == 3:
        w0 = w1 = w2 = 0.0
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            node = problem.entry_node[e]
            count = problem.node_count[node]
            J = view(problem.J, problem.entry_at[e])
            x = view(v, problem.node_first[node])
            if count == 6:  # a free body
                w0 += times_six(view(J, 0, 6), view(x, 0, 6))
                w1 += times_six(view(J, 6, 6), view(x, 0, 6))
                w2 += times_six(view(J, 12, 6), view(x, 0, 6))
                continue
            if count == 3:  # a ball joint
                for c in range(3):
                    w0 += J[c] * x[c]
                    w1 += J[3 + c] * x[c]
                    w2 += J[6 + c] * x[c]
                continue
            for c in range(count):
                w0 += J[c] * x[c]
                w1 += J[count + c] * x[c]
                w2 += J[2 * count + c] * x[c]
        w[:3] = vector(w0, w1, w2)
    elif dim == 1:
        w0 = 0.0
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            node = problem.entry_node[e]
            count = problem.node_count[node]
            J = view(problem.J, problem.entry_at[e])
            x = view(v, problem.node_first[node])
            if count == 6:
                w0 += times_six(view(J, 0, 6), view(x, 0, 6))
                continue
            if count == 3:  # a ball joint
                w0 += J[0] * x[0]
                w0 += J[1] * x[1]
                w0 += J[2] * x[2]
                continue
            for c in range(count):
                w0 += J[c] * x[c]
        w[0] = w0
    else:
        w[:dim] = 0.0
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            node = problem.entry_node[e]
            count = problem.node_count[node]
            x = view(v, problem.node_first[node])
            for r in range(dim):
                J = view(problem.J, problem.entry_at[e] + r * count)
                s = 0.0
                for c in range(count):
                    s += J[c] * x[c]
                w[r] += s


@procedure(inline=True)
def give(problem: Problem, T: "float[:]", g: int, p: "float[:]", out: "float[:]") -> None:
    """Subtract ``T' p`` of a group from ``out``, with ``T`` stored in blocks like ``J``."""
    dim = problem.dim[g]
    for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
        node = problem.entry_node[e]
        count = problem.node_count[node]
        J = view(T, problem.entry_at[e])
        x = view(out, problem.node_first[node])
        if dim == 3 and count == 6:  # a free body
            six = view(x, 0, 6)
            six -= view(J, 0, 6) * p[0] + view(J, 6, 6) * p[1] + view(J, 12, 6) * p[2]
        elif dim == 3 and count == 3:
            three = view(x, 0, 3)
            three -= view(J, 0, 3) * p[0] + view(J, 3, 3) * p[1] + view(J, 6, 3) * p[2]
        elif dim == 3:
            for c in range(count):
                x[c] -= J[c] * p[0] + J[count + c] * p[1] + J[2 * count + c] * p[2]
        elif dim == 1 and count == 6:
            six = view(x, 0, 6)
            six -= view(J, 0, 6) * p[0]
        elif dim == 1 and count == 3:
            three = view(x, 0, 3)
            three -= view(J, 0, 3) * p[0]
        else:
            for r in range(dim):
                for c in range(count):
                    x[c] -= J[r * count + c] * p[r]


@procedure(inline=True)
def note_spot(problem: Problem, work: Work, g: int) -> None:
    """Store where a free-body contact has its Jacobian blocks and velocities; -1 for others.

    Of both bodies where their blocks of three rows are in ``J`` and their variables among the
    velocities: looking that up takes as long as multiplying. -1 for none.
    """
    spot = work.spot[g]
    spot[:4] = -1
    e = problem.entry_first[g]
    count = problem.entry_first[g + 1] - e
    if problem.dim[g] == 3 and 1 <= count <= 2:
        a = problem.entry_node[e]
        b = problem.entry_node[e + count - 1]
        if problem.node_count[a] == 6 and problem.node_count[b] == 6:
            spot[0] = problem.entry_at[e]
            spot[1] = problem.node_first[a]
            if count == 2:
                spot[2] = problem.entry_at[e + 1]
                spot[3] = problem.node_first[b]


@procedure(inline=True)
def noted_velocity(problem: Problem, work: Work, g: int, v: "float[:]", w: "float[:]") -> None:
    """Write row velocities ``w = J v`` of a group, by its stored addresses if it has them."""
    spot = work.spot[g]
    if spot[0] >= 0:
        x = view(v, spot[1], 6)
        J = view(problem.J, spot[0], 18)
        w0 = times_six(view(J, 0, 6), x)
        w1 = times_six(view(J, 6, 6), x)
        w2 = times_six(view(J, 12, 6), x)
        if spot[2] >= 0:
            y = view(v, spot[3], 6)
            K = view(problem.J, spot[2], 18)
            w0 += times_six(view(K, 0, 6), y)
            w1 += times_six(view(K, 6, 6), y)
            w2 += times_six(view(K, 12, 6), y)
        w[:3] = vector(w0, w1, w2)
    else:
        velocity_of_any(problem, g, v, w)


@procedure(inline=True)
def noted_give(
    problem: Problem, work: Work, T: "float[:]", g: int, p: "float[:]", out: "float[:]"
) -> None:
    """Subtract ``T' p`` of a group from ``out``, by its stored addresses if it has them."""
    spot = work.spot[g]
    if spot[0] >= 0:
        p0 = p[0]
        p1 = p[1]
        p2 = p[2]
        J = view(T, spot[0], 18)
        x = view(out, spot[1], 6)
        x -= view(J, 0, 6) * p0 + view(J, 6, 6) * p1 + view(J, 12, 6) * p2
        if spot[2] >= 0:
            K = view(T, spot[2], 18)
            y = view(out, spot[3], 6)
            y -= view(K, 0, 6) * p0 + view(K, 6, 6) * p1 + view(K, 12, 6) * p2
    else:
        give(problem, T, g, p, out)


@procedure(inline=True)
def clear_matrix(A: "float[:]", dim: int) -> None:
    """Set the (dim, dim) matrix ``A`` of a group to zero."""
    if dim == 3:
        nine = view(A, 0, 9)
        nine[:9] = 0.0
    else:
        A[: dim * dim] = 0.0


@procedure(inline=True)
def take_product(dim: int, A: "float[:]", x: "float[:]", out: "float[:]") -> None:
    """Subtract ``A x`` of a group's (dim, dim) matrix from ``out``."""
    if dim == 3:
        out[:3] -= view(A, 0, 3, 3) @ view(x, 0, 3)
    else:
        for r in range(dim):
            for m in range(dim):
                out[r] -= A[r * dim + m] * x[m]
