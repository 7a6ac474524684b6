"""Rows of closed loops from tables: constraint matrix and errors, for all loops by the same code.

A loop joint confines the relative velocity of two bodies, ``Tᵀ (v_s - v_p) = 0`` — RBDA §8.2. The
columns of its rows belong to the variables between the bodies and their common ancestor, and follow
from motion subspaces that a step has already. The error is linear in the pose of one loop frame in
the other, but for one product (RBDA Table 8.1). Joints with a constant ``T`` are tables; others,
couplings and user-defined constraints have traced code, whose dense rows are copied.
"""

import numpy as np

from kinetree.algorithms.closed.constraints import is_steady, loop_signs
from kinetree.codegen.procedures import cross, dot, local, procedure, record, view
from kinetree.joints import Cylindrical, Fixed, Prismatic, Revolute, Spherical, Translation
from kinetree.joints.axis import completed_basis

FEATURES = 21
"""Numbers that errors are linear in: ``E``, ``-E r×`` and ``E r`` of the pose across a joint."""


@record
class Loops:
    """Loops as tables, and rows of traced code.

    Attributes:
        count: number of loops;  first, second: predecessor and successor body of each.
        frame: of loops: poses ``[R | p]`` of the two loop frames in their bodies.
        force: ``T``, constraint forces in the successor frame, rows of six numbers;  error: of
            each the coefficients of its error;  product: two rows of the loop whose errors'
            product is added to that of the last one, -1 for none.
        row: number of the step's row, -1 where it does not count.
        variable_first: where the variables of a loop begin in the lists that follow;  variable:
            number;  sign: of its motion across the joint;  root: first body of its tree;
            place: where it is in a row of ``value``.
        at: where the numbers of a step's row begin in ``value``.
        pose, S: at the middle of the step;  pose_e, S_e: at its end.
        traced: number of rows of traced code;  dense: of nv numbers each;  open: their errors;
            traced_row: number of the step's row.
    """

    count: int
    first: "int[:]"
    second: "int[:]"
    frame: "float[:, 2, 12]"
    force: "float[:, 6, 6]"
    error: "float[:, 6, 21]"
    product: "int[:, 2]"
    row: "int[:, 6]"
    variable_first: "int[:]"
    variable: "int[:]"
    sign: "float[:]"
    root: "int[:]"
    place: "int[:]"
    at: "int[:]"
    pose: "float[:, 12]"
    S: "float[:, 6]"
    pose_e: "float[:, 12]"
    S_e: "float[:, 6]"
    traced: int
    dense: "float[:]"
    open: "float[:]"
    traced_row: "int[:]"


# --- Tables --------------------------------------------------------------------------------------


def is_tabled(model, loop) -> bool:
    """Whether a loop can be evaluated by tables: steady joint, no coupled joints in it."""
    if type(loop.joint) not in _ERRORS or not is_steady(loop.joint):
        return False
    followers = {c.joint for c in model.couplings}
    return not followers & set(loop_signs(model, loop.predecessor, loop.successor))


def numbered_rows(model, counting):
    """Row numbers of loops, constraints and couplings in a step, -1 for uncounted rows.

    Args:
        model: the mechanism.
        counting: rows of loops and constraints that count; None for all. Others have -1.
    """
    sizes = [6 - loop.joint.nv for loop in model.loops]
    starts = np.cumsum([0, *sizes])
    total = starts[-1] + sum(c.rows for c in model.constraints)
    counting = range(total) if counting is None else counting
    number = dict.fromkeys(range(total), -1) | {int(r): s for s, r in enumerate(counting)}
    loops = [
        (loop, [number[r] for r in range(starts[k], starts[k + 1])])
        for k, loop in enumerate(model.loops)
    ]
    constraints = [number[r] for r in range(starts[-1], total)]
    return loops, constraints, [len(counting) + k for k in range(len(model.couplings))]


def loop_variables(model, tree, loop):
    """Velocity variables in a loop, each with its sign across the loop joint, and its joint."""
    signs = loop_signs(model, loop.predecessor, loop.successor)
    return [
        (k, signs[j], j)
        for j in sorted(signs)
        for k in range(tree.v_slice[j].start, tree.v_slice[j].stop)
    ]


def _linear(E=0.0, B=0.0, Er=0.0):
    """Coefficients (21) of an error linear in rotation E, moment matrix B and offset Er."""
    parts = (np.broadcast_to(E, (3, 3)), np.broadcast_to(B, (3, 3)), np.broadcast_to(Er, 3))
    return np.concatenate([np.ravel(x) for x in parts]).astype(float)


def _turn():
    """Coefficients of the three angular errors between two frames, linear in the rotation."""
    rows = []
    for i, j in ((1, 2), (2, 0), (0, 1)):
        E = np.zeros((3, 3))
        E[i, j], E[j, i] = 0.5, -0.5
        rows.append(_linear(E))
    return rows


def _shift():
    """Coefficients of the three linear errors between two frames."""
    return [_linear(B=row[:9].reshape(3, 3)) for row in _turn()]


def _tilt(joint):
    """Coefficients of the two tilt errors of a joint axis, linear in the rotation."""
    u, v, a = _frame(joint)
    return [_linear(np.outer(v, a)), _linear(-np.outer(u, a))]


def _offset(joint):
    """Coefficients of the two offsets of a point from a joint axis, across it."""
    return [_linear(B=row[:9].reshape(3, 3)) for row in _tilt(joint)]


def _frame(joint):
    """Two unit vectors across a joint's axis, and the axis itself."""
    return (*(np.array(x, dtype=float) for x in completed_basis(joint.axis)), np.array(joint.axis))


_ERRORS = {
    Spherical: lambda joint: [_linear(Er=e) for e in np.eye(3)],
    Fixed: lambda joint: [*_turn(), *_shift()],
    Translation: lambda joint: _turn(),
    Prismatic: lambda joint: [*_turn(), *_offset(joint)],
    Cylindrical: lambda joint: [*_tilt(joint), *_offset(joint)],
    Revolute: lambda joint: [*_tilt(joint), *_offset(joint), _linear(Er=_frame(joint)[2])],
}
"""Errors of loop joints, as their ``loop_error``; that of a hinge has a product as well."""


def loops_of(model, tree, numbers, layout) -> Loops:
    """``Loops`` tables of the loops of a model that are evaluated by tables.

    Args:
        model: the mechanism.
        tree: its spanning tree, with all joints.
        numbers: of all loops: the loop and numbers of its rows in a step, -1 where they do not
            count.
        layout: of the rows of a step: where they begin, and the place of a variable in them.
    """
    at, place_of = layout
    n = len(numbers)
    c = Loops(
        count=n,
        frame=np.zeros((n, 2, 12)),
        force=np.zeros((n, 6, 6)),
        at=at,
        error=np.zeros((n, 6, FEATURES)),
        product=np.full((n, 2), -1, dtype=np.int64),
        row=np.full((n, 6), -1, dtype=np.int64),
        **{name: np.zeros(n, dtype=np.int64) for name in ("first", "second")},
    )
    variables, begin = [], [0]
    root = [0] * (tree.body_count + 1)
    for i in range(1, tree.body_count + 1):
        root[i] = root[tree.parent[i]] or i
    for l, (loop, rows) in enumerate(numbers):
        c.first[l], c.second[l] = loop.predecessor, loop.successor
        for k, X in enumerate((loop.predecessor_placement, loop.successor_placement)):
            c.frame[l, k] = np.column_stack([X.E.T, X.r]).ravel()
        T = np.array(loop.joint.constraint_subspace(loop.joint.neutral()).to_array().T, dtype=float)
        c.force[l, : len(T)], c.row[l, : len(rows)] = T, rows
        c.error[l, : len(T)] = _ERRORS[type(loop.joint)](loop.joint)
        if type(loop.joint) is Revolute:
            c.product[l] = 0, 3
        kept = [s for s in rows if s >= 0]
        for k, sign, j in loop_variables(model, tree, loop) if kept else ():
            variables.append((k, sign, root[j], place_of[kept[0]][k]))
        begin.append(len(variables))
    k, sign, roots, place = np.array(variables, dtype=float).reshape(-1, 4).T
    c.variable_first = np.array(begin, dtype=np.int64)
    c.variable, c.root, c.place = (np.array(x, dtype=np.int64) for x in (k, roots, place))
    c.sign = np.ascontiguousarray(sign)
    return c


# --- Rows ----------------------------------------------------------------------------------------


@procedure
def frame_of(body: "float[12]", frame: "float[12]", R: "float[3, 3]", x: "float[3]"):
    """Write rotation ``R`` and origin ``x``, in the world, of a frame fixed to a body."""
    A = view(body, 0, 3, 4)
    B = view(frame, 0, 3, 4)
    for i in range(3):
        x[i] = A[i, 0] * B[0, 3] + A[i, 1] * B[1, 3] + A[i, 2] * B[2, 3] + A[i, 3]
        for j in range(3):
            R[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]


@procedure
def features(A: "float[3, 3]", B: "float[3, 3]", d: "float[3]", out: "float[21]"):
    """Write the 21 features ``E``, ``-E r×``, ``E r`` of frame ``B`` seen from frame ``A``."""
    r = local("float", 3)
    for j in range(3):
        r[j] = A[0, j] * d[0] + A[1, j] * d[1] + A[2, j] * d[2]
    for i in range(3):
        e = local("float", 3)
        for j in range(3):
            e[j] = B[0, i] * A[0, j] + B[1, i] * A[1, j] + B[2, i] * A[2, j]
            out[3 * i + j] = e[j]
        out[9 + 3 * i] = e[2] * r[1] - e[1] * r[2]
        out[10 + 3 * i] = e[0] * r[2] - e[2] * r[0]
        out[11 + 3 * i] = e[1] * r[0] - e[0] * r[1]
        out[18 + i] = dot(e, r)


@procedure
def place_loops(
    c: Loops, pose: "float[:, 12]", S: "float[:, 6]", value: "float[:]", error: "float[:]"
):
    """Write the Jacobian rows and errors of all tabled loops at body poses ``pose``."""
    A = local("float", 3, 3)
    B = local("float", 3, 3)
    x = local("float", 3)
    y = local("float", 3)
    e = local("float", 3)
    f = local("float", 21)
    off = local("float", 6)
    T = local("float", 6, 6)
    for l in range(c.count):
        frame_of(pose[c.first[l]], c.frame[l, 0], A, x)
        frame_of(pose[c.second[l]], c.frame[l, 1], B, y)
        features(A, B, y - x, f)
        for r in range(6):
            off[r] = 0.0
            for k in range(21):
                off[r] += c.error[l, r, k] * f[k]
            if c.product[l, 0] >= 0 and r == 4:
                off[r] += off[c.product[l, 0]] * off[c.product[l, 1]]
            T[r, :3] = B @ c.force[l, r, :3]
            T[r, 3:] = B @ c.force[l, r, 3:]
            if c.row[l, r] >= 0:
                error[c.row[l, r]] = off[r]
        for n in range(c.variable_first[l], c.variable_first[l + 1]):
            s = S[c.variable[n]]
            e[:] = s[3:] + cross(s[:3], y - pose[c.root[n], 3::4])
            for r in range(6):
                if c.row[l, r] >= 0:
                    w = dot(T[r, :3], s[:3]) + dot(T[r, 3:], e)
                    value[c.at[c.row[l, r]] + c.place[n]] = c.sign[n] * w
