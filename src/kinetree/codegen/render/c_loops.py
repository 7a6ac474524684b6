"""A program with loops over tables as a C99 function, its robot as constant arrays beside it."""

import textwrap

from kinetree.codegen.loops.layout import layout_of_kinds
from kinetree.codegen.loops.robots import tables
from kinetree.codegen.program import Argument, Program
from kinetree.codegen.render.c import NOT_FINITE, C, argument_name, declaration
from kinetree.codegen.render.cstyle import identifier
from kinetree.codegen.render.cstyle_loops import LoopWriter, TableLanguage
from kinetree.expr.node import Graph


class _Case(TableLanguage, C):
    pass


def arguments(program, data, names=()):
    """Input and result arguments of a loop program's C function, with the robot's sizes.

    Args:
        program: a ``LoopProgram``.
        data: the robot.
        names: of the results, where they are not those of the program.
    """

    def argument(table, name):
        axes = program.tables[table].axes
        return Argument(name, tuple(data.lengths[a] if isinstance(a, str) else a for a in axes))

    results = zip(program.results, names or program.results, strict=True)
    return [argument(t, t) for t in program.arguments], [argument(*pair) for pair in results]


def stack(program, data) -> int:
    """Size of the stack array for all rows of a sample in the C function [numbers]."""
    layout = layout_of_kinds(program)
    return int(tables(layout, data)[0][layout.header["rows of a sample"]])


def render(program, data, dtype="float64", *, name=None, results=()) -> str:
    """C text of a loop program for one robot: tables, and a function ``int name(inputs, outputs)``.

    Args:
        program: a ``LoopProgram``.
        data: the robot.
        dtype: ``"float64"`` or ``"float32"``.
        name: of the function; that of the program by default.
        results: names of the results, where they are not those of the program.
    """
    c, layout, name = C(dtype), layout_of_kinds(program), name or identifier(program.name)
    writer = LoopWriter(program, layout, lambda case: _Case(dtype), c.constant(0.0))
    body = writer.text()
    ints, numbers = tables(layout, data)
    inputs, outputs = arguments(program, data, results)
    lines = [
        f"{c.real} rows[{max(int(ints[layout.header['rows of a sample']]), 1)}];",
        *(f"const {c.real} *const {_own('in', a.name)} = {argument_name(a)};" for a in inputs),
        *(
            f"{c.real} *const {_own('out', table)} = {argument_name(a)};"
            for table, a in zip(program.results, outputs, strict=True)
        ),
        "int status = 0;",
        f"(void)rows; (void)ints; (void){name}_numbers;",
    ]
    for a in inputs:
        lines.append(f"for (int n = 0; n < {a.size}; n++)")
        lines.append(f"    if (!isfinite({_own('in', a.name)}[n])) status |= {NOT_FINITE};")
    macros = {
        "real": f"{name}_real", "ints": f"{name}_ints", "RESTRICT": "restrict",
        "ROW(p, k)": "(p)[k]", "ENTRY(p, k)": "(p)[k]", "MODEL(k)": f"{name}_numbers[k]",
    }  # fmt: skip
    whole = Program(name, tuple(inputs), tuple(outputs), Graph(), ())
    return "\n".join(
        [
            _array(f"{name}_ints", "int", map(str, ints)),
            _array(f"{name}_numbers", c.real, map(c.constant, numbers)),
            f"typedef {c.real} {name}_real;",
            *(f"#define {macro} {text}" for macro, text in macros.items()),
            f"{declaration(whole, dtype, name)}\n{{",
            *(f"    {line}" for line in (*lines, *body, "return status;")),
            "}",
            *(f"#undef {macro.partition('(')[0]}" for macro in macros),
        ]
    )


def _own(side, table):
    """C name of the table of an input or result."""
    return identifier(f"{side}_{table}")


def _array(name, kind, texts):
    """C definition of a constant array."""
    texts = list(texts) or ["0"]
    body = textwrap.fill(", ".join(texts), 96, initial_indent="    ", subsequent_indent="    ")
    return f"static const {kind} {name}[{len(texts)}] = {{\n{body}\n}};"
