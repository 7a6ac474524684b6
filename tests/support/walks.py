"""A small program with loops over tables, written by hand: walks, a chain, sums, kinds."""

from kinetree.codegen.loops.language import (
    Chain,
    Clear,
    Code,
    Declaration,
    Domain,
    LoopProgram,
    Walk,
)
from kinetree.codegen.program import Argument, Program
from kinetree.expr.node import Graph
from kinetree.spatial import ops


def case(inputs, compute, checks=()):
    """The program of a case from ``compute(numbers)``, which returns what to store where."""
    graph = Graph()
    given = []
    for name in inputs:
        table, _, index = name.partition("[")
        given.append(graph.input(table, tuple(int(k) for k in index[:-1].split(","))))
    stores = compute(*given)
    roots = tuple(x.i if hasattr(x, "i") else graph.number(x) for x in stores.values())
    checked = tuple((check(*given).i, None) for check in checks)
    tables = dict.fromkeys(name.partition("[")[0] for name in inputs)
    return Program(
        "case", tuple(Argument(t, ()) for t in tables),
        tuple(Argument(name, ()) for name in stores), graph, roots, checked,
    )  # fmt: skip


OUTWARD = {
    ("base",): case(["q@i.q[0]", "m@i[0]"], lambda q, m: {"x@i[0]": ops.sin(q) * m}),
    ("inner",): case(
        ["q@i.q[0]", "m@i[0]", "x@i.parent[0]"],
        lambda q, m, x: {"y@i[0]": q + x, "x@i[0]": q * m + x},
    ),
}
INWARD = {
    ("base",): case(
        ["x@i[0]", "s@i[0]", "g@[1]"], lambda x, s, g: {"tau@i.v[0]": x + s + g},
        [lambda x, s, g: x < 1e6],
    ),
    ("inner",): case(
        ["x@i[0]", "s@i[0]", "y@i[0]"],
        lambda x, s, y: {"+s@i.parent[0]": x + s, "tau@i.v[0]": s + y * y},
    ),
}  # fmt: skip
PAIR = case(
    ["x@i[0]", "x@j[0]"],
    lambda a, b: {"H@i.v,j.v[0,0]": a * b, "H@j.v,i.v[0,0]": a * b + 1, "x@i[0]": a + b / 8},
)
KINDS = ("base", "inner")
TABLES = (
    Declaration("q", "argument", axes=("q",)), Declaration("tau", "result", axes=("v",)),
    Declaration("H", "result", axes=("v", "v")), Declaration("g", "model", axes=(3,)),
    Declaration("m", "model", "bodies", (1,)),
    *(Declaration(name, "rows", "bodies") for name in "xys"),
)  # fmt: skip
PROGRAM = LoopProgram(
    "walks", ("q",), ("tau", "H"),
    {"bodies": Domain("bodies", {"parent": "bodies", "q": "q", "v": "v"})},
    {t.name: t for t in TABLES},
    (
        Clear("H"), Clear("s"), Walk("i", "bodies", False, (Code(OUTWARD),)),
        Walk("i", "bodies", True, (
            Code(INWARD), Walk("j", Chain("i.parent", "parent"), False, (
                Code({(a, b): PAIR for a in KINDS for b in KINDS}),
            )),
        )),
    ),
    {"bodies": (("x", 0), ("s", 0))},
    {("bodies", "base"): (("x", 0), ("s", 0)),
     ("bodies", "inner"): (("x", 0), ("s", 0), ("y", 0))},
)  # fmt: skip
