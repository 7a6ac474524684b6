"""What an algorithm costs on sample robots: additions and multiplications, counted."""

from functools import cache
from importlib import import_module

import kinetree as kt
from kinetree.codegen.program import Argument, cheapest, trace
from kinetree.expr.count import count_operations
from kinetree.functions import quantity

ROBOTS = ("double_pendulum", "ur5", "panda", "quadruped", "humanoid")


@cache
def _robot(name):
    return kt.samples.load(name)


def table(text: str, arguments: tuple, public: str | None) -> str:
    """A Markdown table: as written, and as compiled, for each robot.

    Args:
        text: the function of the algorithm, such as ``algorithms.rnea.inverse_dynamics``.
        arguments: names of its arrays.
        public: name of the quantity in the catalogue, if it is there.
    """
    module, _, name = text.rpartition(".")
    function = getattr(import_module(f"kinetree.{module}"), name)
    lines = ["| robot | freedoms | as written | compiled |", "|---|---|---|---|"]
    for robot in ROBOTS:
        model = _robot(robot)
        sizes = {"q": (model.nq,)}
        inputs = [Argument(a, sizes.get(a, (model.nv,))) for a in arguments]
        written = cheapest([trace(lambda *x, m=model: function(m, *x), inputs)])
        compiled = _count(quantity(model, public).program) if public else "–"
        lines.append(f"| `{robot}` | {model.nv} | {_count(written)} | {compiled} |")
    return "\n".join(lines)


def _count(program):
    found = count_operations(program.graph, program.roots)
    products = found.multiplications + found.divisions + found.square_roots
    return f"{products:,} m + {found.additions:,} a"
