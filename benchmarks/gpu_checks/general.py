"""Kernels of code for every robot, and how many bytes one sample moves."""

import inspect

import kinetree as kt
from kinetree.codegen.loops.language import SINGLE, Chain, place_of
from kinetree.codegen.loops.recomputed import recompute
from kinetree.model.define import DEFINITIONS

__all__ = ["general_kernels", "moved"]

_LARGEST = 10**5  # numbers of a result
_EXTRA = {"joint_reactions": ("qdd",)}
"""Arrays that may be left out, and are not here."""


def general_kernels(model, names=()):
    """A kernel for each quantity that has general code, where its result is not too large."""
    for name, quantity in DEFINITIONS.items():
        if not quantity.general or quantity.called != name or (names and name not in names):
            continue  # parts of others are checked with them
        options = {"name": model.body_names[-1]} if "name" in quantity.options else {}
        defaults = [quantity.signature.parameters[n].default for n in quantity.options]
        if defaults.count(inspect.Parameter.empty) > len(options):
            continue  # what is given, say
        try:
            kernel = quantity.kernel(model, _EXTRA.get(name, ()), **options).general_kernel
        except kt.KinetreeError:  # not defined for this model
            continue
        if kernel is not None and sum(a.size for a in kernel.outputs) <= _LARGEST:
            yield kernel


def moved(kernel, dtype) -> int:
    """Bytes of rows, arguments and results that a sample loads and stores."""
    data = kernel.data
    kinds = tuple(data.domains["bodies"].kinds)
    program = recompute(kernel.source.program(kinds))
    total = sum(a.size for a in (*kernel.inputs, *kernel.outputs))
    for code, walks in program.codes():
        for key, times in _runs(walks, data).items():
            case = code.cases.get(key)
            if case is None:
                continue
            nodes = case.graph.nodes
            roots = [*case.roots, *(c for c, *_ in case.checks)]
            loads = [nodes[i][1] for i in case.graph.reachable(roots) if nodes[i][0] == "input"]
            stores = [a.name for a in case.outputs]
            numbers = [(place_of(n), 1) for n in loads]
            numbers += [(place_of(n), 2 if n[0] == "+" else 1) for n in stores]
            total += times * sum(
                n for place, n in numbers
                if place.table in program.tables
                and program.tables[place.table].storage in ("rows", "argument", "result")
            )  # fmt: skip
    return total * (4 if dtype == "float32" else 8)


def _runs(walks, data):
    """How often code runs for each combination of kinds."""
    found = {}

    def visit(k, rows, kinds):
        if k == len(walks):
            found[kinds] = found.get(kinds, 0) + 1
            return
        over = walks[k].over
        domain = data.domains["bodies" if isinstance(over, Chain) else over]
        every = range(domain.count)
        if isinstance(over, Chain):
            start, *columns = over.start.split(".")
            row = rows.get(start, 0)
            every, single = [], start not in rows
            for column in columns:
                row = data.domains[SINGLE if single else "bodies"].columns[column][row]
                single = False
            while row >= 0:
                every.append(row)
                row = domain.columns[over.column][row]
        for row in every:
            kind = domain.kinds[domain.kind[row]] if len(domain.kind) else domain.kinds[0]
            visit(k + 1, {**rows, walks[k].variable: row}, (*kinds, kind))

    visit(0, {}, ())
    return found
