"""A program with loops over tables as a C99 function, its robot as constant arrays beside it."""

import textwrap

from kinetree.codegen.render.c import NOT_FINITE, C
from kinetree.codegen.render.cstyle import identifier
from kinetree.codegen.render.cstyle_loops import LoopWriter, Places, plan_of, tables

__all__ = ["render"]


class _Case(Places, C):
    pass


def render(program, data, dtype="float64", *, name=None) -> str:
    """Definition of a function ``int name(inputs..., outputs...)``, and its tables before it.

    Args:
        program: a ``LoopProgram``.
        data: the robot.
        dtype: ``"float64"`` or ``"float32"``.
        name: of the function; that of the program by default.
    """
    c, plan, name = C(dtype), plan_of(program), name or identifier(program.name)
    writer = LoopWriter(program, plan, lambda case: _Case(dtype), c.constant(0.0))
    body = writer.text()
    ints, numbers = tables(plan, data)
    size = int(ints[plan.header["rows of a sample"]])
    parameters, checks = [], []
    for side, names in (("in", program.arguments), ("out", program.results)):
        for table in names:
            own = identifier(f"{side}_{table}")
            parameters.append(f"{'const ' if side == 'in' else ''}{c.real} *{own}")
            if side == "in":
                count = 1
                for a in program.tables[table].axes:
                    count *= data.lengths[a] if isinstance(a, str) else a
                checks += [
                    f"for (int n = 0; n < {count}; n++)",
                    f"    if (!isfinite({own}[n])) status |= {NOT_FINITE};",
                ]
    unused = f"(void)rows; (void)ints; (void){name}_numbers;"
    lines = [f"{c.real} rows[{max(size, 1)}];", "int status = 0;", unused, *checks, *body]
    return "\n".join(
        [
            _array(f"{name}_ints", "int", map(str, ints)),
            _array(f"{name}_numbers", c.real, map(c.constant, numbers)),
            f"typedef {c.real} {name}_real;",
            f"#define real {name}_real", f"#define ints {name}_ints",
            "#define RESTRICT restrict",
            "#define ROW(p, k) (p)[k]", "#define ENTRY(p, k) (p)[k]",
            f"#define MODEL(k) {name}_numbers[k]",
            f"int {name}({', '.join(parameters)})", "{",
            *(f"    {line}" for line in (*lines, "return status;")), "}",
            *(f"#undef {macro}" for macro in ("real", "ints", "RESTRICT", "ROW", "ENTRY", "MODEL")),
        ]
    )  # fmt: skip


def _array(name, kind, texts):
    texts = list(texts) or ["0"]
    body = textwrap.fill(", ".join(texts), 96, initial_indent="    ", subsequent_indent="    ")
    return f"static const {kind} {name}[{len(texts)}] = {{\n{body}\n}};"
