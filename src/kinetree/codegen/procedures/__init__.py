"""Procedures: integer algorithms in a typed subset of Python, compiled once for every robot.

What rows of tables to visit is decided at run time: finding contacts, islands, sparse factors. Such
an algorithm is a plain Python function of numbers, arrays and records, decorated by ``procedure``.
Called, it runs as machine code; ``f.python(...)`` runs the same text by Python, which is its
meaning. ``language`` has types, records and functions, ``writer`` and ``text`` write LLVM's text,
``native`` compiles it and calls it.
"""

from math import atan2, cos, floor, sin

from kinetree.codegen.procedures.language import (
    Rounding,
    cross,
    dot,
    invoke,
    isfinite,
    lane_count,
    lane_max,
    lane_sum,
    lanes,
    local,
    record,
    sqrt,
    unroll,
    vector,
    view,
    worlds_max,
)
from kinetree.codegen.procedures.native import Procedure, ProcedureTable, procedure
from kinetree.codegen.procedures.workspaces import workspace

__all__ = [
    "Procedure",
    "ProcedureTable",
    "Rounding",
    "atan2",
    "cos",
    "cross",
    "dot",
    "floor",
    "invoke",
    "isfinite",
    "lane_count",
    "lane_max",
    "lane_sum",
    "lanes",
    "local",
    "procedure",
    "record",
    "sin",
    "sqrt",
    "unroll",
    "vector",
    "view",
    "workspace",
    "worlds_max",
]
