"""Operation counts of generated code beside the published ones of RBDA Table 10.1.

    python benchmarks/opcount.py [n ...]

For chains of n joints in general position (``kinetree.samples.chain``), and for the models that
ship with kinetree what simplification saves (RBDA section 10.4).
"""

import sys

from kinetree import samples
from kinetree.algorithms import aba, crba, rnea
from kinetree.codegen.program import Argument, trace
from kinetree.diagnosis.published import TABLE_10_1
from kinetree.expr.counting import count_operations
from kinetree.textbook.record import savings

ALGORITHMS = {
    "RNEA": (rnea.inverse_dynamics, 3),
    "CRBA": (crba.joint_space_inertia, 1),
    "ABA": (aba.forward_dynamics, 3),
    "CRBA, factorize, solve": (crba.forward_dynamics, 3),
}


def inputs_of(model, count):
    names = ("q", "qd", "u")[:count]
    return [(name, (model.nq if name == "q" else model.nv,)) for name in names]


def count(model, name):
    """Operations of one algorithm for a model."""
    algorithm, arrays = ALGORITHMS[name]
    inputs = [Argument(*i) for i in inputs_of(model, arrays)]
    program = trace(lambda *state: algorithm(model, *state), inputs)
    return count_operations(program.graph, program.roots)


def table(sizes):
    """Counts for chains, as Markdown."""
    lines = [
        "| algorithm | source | " + " | ".join(f"n = {n}" for n in sizes) + " |",
        "|---|---|" + "---|" * len(sizes),
    ]
    for name in ALGORITHMS:
        counts = " | ".join(str(count(samples.chain(n), name)) for n in sizes)
        lines.append(f"| **{name}** | kinetree, generated | {counts} |")
        for row in TABLE_10_1:
            if row.algorithm == name:
                cells = " | ".join(str(row(n)) for n in sizes)
                lines.append(f"| {name} | {row.source} | {cells} |")
    return "\n".join(lines)


def savings_table(models):
    """Operations that simplification saves on RNEA, as Markdown."""
    lines = ["| model | recorded | simplified | factor |", "|---|---|---|---|"]
    for model in models:
        inputs = inputs_of(model, 3)
        saved = savings(lambda *state, m=model: rnea.inverse_dynamics(m, *state), inputs)
        row = f"{model.name} | {saved.recorded} | {saved.simplified} | {saved.factor:.1f}"
        lines.append(f"| {row} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table([int(n) for n in sys.argv[1:]] or [6, 7, 10]), end="\n\n")
    robots = (
        samples.chain(6),
        samples.arm(),
        samples.scara(),
        samples.panda(),
        samples.quadruped(),
    )
    print(savings_table(robots))
