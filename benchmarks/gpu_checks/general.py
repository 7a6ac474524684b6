"""Kernels of code for every robot, and how many bytes one sample moves."""

from types import SimpleNamespace

from kinetree.codegen.loops.data import SINGLE
from kinetree.codegen.loops.language import Chain, place_of
from kinetree.codegen.program import Argument
from kinetree.model.general.tables import data_of

__all__ = ["general_kernels", "moved"]


def general_kernels(model, names=()):
    """A kernel for each quantity that has general code."""
    from functools import partial

    from kinetree.algorithms import aba, crba, rnea
    from kinetree.model.general.model import record

    texts = {
        "inverse_dynamics": (rnea.inverse_dynamics, ("q", "qd", "qdd"), 1),
        "forward_dynamics": (aba.forward_dynamics, ("q", "qd", "tau"), 1),
        "mass_matrix": (crba.joint_space_inertia, ("q",), 2),
    }
    for name, (text, given, axes) in texts.items():
        if (names and name not in names) or model.nv**axes > 10**5:
            continue
        inputs = [Argument(n, (model.nq if n == "q" else model.nv,)) for n in given]
        outputs = [Argument("out0", (model.nv,) * axes)]
        yield SimpleNamespace(
            name=name, key=("gpu", name), inputs=inputs, outputs=outputs, data=data_of(model),
            source=SimpleNamespace(program=partial(_program, record, text, given, name)),
        )  # fmt: skip


def _program(record, text, given, name, kinds):
    return record(text, given, kinds, name)


def moved(kernel, dtype) -> int:
    """Bytes of rows, arguments and results that a sample loads and stores."""
    data = kernel.data
    kinds = tuple(data.domains["bodies"].kinds)
    program = kernel.source.program(kinds)
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
