# pyright: reportInvalidTypeForm=false, reportInvalidTypeArguments=false
"""Inertia matrices of models with gears for compiled controllers, without a compiler.

``GᵀHG``, RBDA (9.26): ``H`` of all joints is general code, ``G`` a table of the few numbers by
which joints follow others.
"""

from typing import Any

import numpy as np

from kinetree.codegen.procedures import procedure, record
from kinetree.codegen.tied import Code, run, tied_code, tied_record
from kinetree.model.general.gears import Gears


@record
class GearedInertia:
    """A configuration, inertia matrices of all joints and of the leaders, and what ties these.

    Attributes:
        full: machine code of the inertia matrix of all joints.
        nq, nv, all_nv: numbers of variables of the leaders, velocity variables of all joints.
        q, H: configuration and inertia matrix of the leaders.
        all_q, all_H: those of all joints.  F: ``H G`` of all joints, (all_nv, nv).
        of_q, of_v: places of the variables of leaders among those of all joints.
        follower, offset: places of positions that follow, and their values at zero.
        row, leader, slope: ``q[follower[row]] += slope q[leader]``, ``slopes`` of them.
        joint, column, ratio: ``G[joint, column]`` of joints that follow, ``ratios`` of them.
        status: how many calls failed, (1,).
    """

    full: Code
    nq: int
    nv: int
    all_nv: int
    q: "float[:]"
    H: "float[:]"
    all_q: "float[:]"
    all_H: "float[:]"
    F: "float[:]"
    of_q: "int[:]"
    of_v: "int[:]"
    followers: int
    follower: "int[:]"
    offset: "float[:]"
    slopes: int
    row: "int[:]"
    leader: "int[:]"
    slope: "float[:]"
    ratios: int
    joint: "int[:]"
    column: "int[:]"
    ratio: "float[:]"
    status: "int[1]"


@procedure
def compute_inertia(s: GearedInertia) -> None:
    """Inertia matrix in the independent variables of a geared model, exactly symmetric."""
    for i in range(s.nq):
        s.all_q[s.of_q[i]] = s.q[i]
    for i in range(s.followers):
        s.all_q[s.follower[i]] = s.offset[i]
    for i in range(s.slopes):
        s.all_q[s.follower[s.row[i]]] += s.slope[i] * s.q[s.leader[i]]
    run(s.full)
    s.status[0] += s.full.status[0]
    s.full.status[0] = 0
    n, wide = s.nv, s.all_nv
    for i in range(wide):
        for j in range(n):
            s.F[i * n + j] = s.all_H[i * wide + s.of_v[j]]
        for k in range(s.ratios):
            s.F[i * n + s.column[k]] += s.ratio[k] * s.all_H[i * wide + s.joint[k]]
    for i in range(n):
        for j in range(n):
            s.H[i * n + j] = s.F[s.of_v[i] * n + j]
    for k in range(s.ratios):
        for j in range(n):
            s.H[s.column[k] * n + j] += s.ratio[k] * s.F[s.joint[k] * n + j]
    for i in range(n):
        for j in range(i):
            mean = 0.5 * (s.H[i * n + j] + s.H[j * n + i])
            s.H[i * n + j], s.H[j * n + i] = mean, mean


def tied_inertia(gears: Gears, q: Any, H: Any) -> Code:
    """Machine code that writes the inertia matrix at ``q`` into ``H``, (nv²,)."""
    nv, all_nv = gears.sizes
    all_q, all_H = gears.full.neutral().astype(float), np.zeros(all_nv * all_nv)
    row, leader = map(np.ascontiguousarray, np.nonzero(gears.slopes))
    follower, column = map(np.ascontiguousarray, np.nonzero(gears.ratios))
    s = GearedInertia(
        full=tied_code(gears.kernel("mass_matrix"), all_q, all_H),
        nq=len(q),
        nv=nv,
        all_nv=all_nv,
        q=q,
        H=H,
        all_q=all_q,
        all_H=all_H,
        F=np.zeros(all_nv * nv),
        of_q=gears.of_q,
        of_v=gears.of_v,
        followers=len(gears.offsets),
        follower=gears.following_q,
        offset=gears.offsets,
        slopes=len(row),
        row=row,
        leader=leader,
        slope=gears.slopes[row, leader],
        ratios=len(column),
        joint=gears.following_v[follower],
        column=column,
        ratio=gears.ratios[follower, column],
        status=np.zeros(1, dtype=np.int64),
    )
    return tied_record(compute_inertia, s)
