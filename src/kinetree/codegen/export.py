"""Programs as a folder of C: header, source, a self-test, and a Makefile that runs it.

The text is C99 and needs nothing but the C library's math functions. This module handles
programs; the meaning of their numbers comes from ``kinetree.functional.export``.
"""

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kinetree.codegen.program import Program
from kinetree.codegen.render import c_loops
from kinetree.codegen.render.c import C, argument_name, declaration, render
from kinetree.expr.counting import count_operations
from kinetree.files import write_text
from kinetree.spelling import printable

__all__ = ["CFunction", "Sample", "write_project"]

_MARK = "Written by kinetree"


@dataclass(frozen=True)
class Sample:
    """Numbers for the self-test: arrays in, arrays out, and how far each may be off."""

    inputs: tuple
    outputs: tuple
    tolerances: tuple


@dataclass(frozen=True)
class CFunction:
    """A program to be written as a C function."""

    name: str
    """Its name, after the prefix of the project."""
    program: Program
    """What it computes."""
    summary: str
    """What that is, in words."""
    about: dict
    """A line for each argument, by name."""
    samples: tuple
    """Numbers for the self-test."""
    labels: dict = field(default_factory=dict)
    """How to name intermediate values; see ``render.cstyle``."""
    loops: tuple | None = None
    """A ``LoopProgram`` and a robot's data, where loops over tables compute it; the program then
    has inputs and outputs alone."""


def write_project(folder, prefix, functions, *, origin, notes=(), dtype="float64") -> Path:
    """Write the files of a project; files that kinetree wrote are replaced, others never.

    Args:
        folder: where to write; created if need be.
        prefix: name of the files and start of the names of all functions.
        functions: ``CFunction``s.
        origin: what the code was made from, for the banner.
        notes: lines for the head of the header, such as the layout of the arrays.
        dtype: ``"float64"`` or ``"float32"``.
    """
    folder = Path(folder)
    project = _Project(prefix, functions, f"{_MARK} {origin}", notes, dtype)
    files = {
        f"{prefix}.h": project.header(),
        f"{prefix}.c": project.source(),
        f"{prefix}_test.c": project.test(),
        "Makefile": project.makefile(),
    }
    _refuse_foreign(folder, files)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_text(folder / name, text, encoding="ascii")
    return folder


def _refuse_foreign(folder, files):
    """Raise an error if a file would be overwritten that kinetree has not written."""
    for name in files:
        path = folder / name
        if path.exists() and _MARK not in path.read_text(encoding="utf-8", errors="replace"):
            raise FileExistsError(
                f"{path} exists and was not written by kinetree: choose another folder or name"
            )


def _cost(function):
    """Operation counts of an exported function, as a comment in words; a loop counts once."""
    if function.loops is not None:
        return f"Loops over tables; {c_loops.stack(*function.loops)} numbers on the stack."
    program = function.program
    checks = [node for node, *_ in program.checks]
    count = count_operations(program.graph, [*program.roots, *checks])
    kinds = (
        (count.multiplications, "multiplications"), (count.additions, "additions"),
        (count.divisions, "divisions"), (count.square_roots, "square roots"),
        (count.trigonometric, "trigonometric functions"),
        (count.exponentials, "exponentials and logarithms"),
        (count.comparisons, "comparisons and choices"),
    )  # fmt: skip
    return ", ".join(f"{n} {kind}" for n, kind in kinds if n) or "no operations"


class _Project:
    def __init__(self, prefix, functions, banner, notes, dtype):
        self.prefix, self.functions, self.dtype = prefix, functions, dtype
        self.notes, self.c = notes, C(dtype)
        self.banner = _comment([banner, "Do not edit: export again instead."])

    def header(self):
        """Text of the exported C header, with declarations and conventions."""
        guard = f"{self.prefix.upper()}_H"
        conventions = [
            f"All numbers are {self.c.real}; arrays are flat, last axis fastest. Outputs must not",
            "overlap inputs. Every function returns 0 when all is well, otherwise the sum of",
            "  1  an input is infinite or not a number; the outputs mean nothing",
            "  2  a check failed: a quaternion is not of unit length, or a matrix is too close to",
            "     singular for the outputs to be trusted",
            "Functions keep no state and may run in several threads at once.",
        ]
        parts = [
            self.banner,
            f"#ifndef {guard}\n#define {guard}",
            _comment([*conventions, *(["", *self.notes] if self.notes else [])]),
            '#ifdef __cplusplus\nextern "C" {\n#endif',
            *(self._declaration(f) for f in self.functions),
            "#ifdef __cplusplus\n}\n#endif",
            "#endif",
        ]
        return "\n\n".join(parts) + "\n"

    def _name(self, f):
        """Name of a function in C, with the prefix of the project."""
        return f"{self.prefix}_{f.name}"

    def _declaration(self, f):
        """Declaration of a function in C, with comments about its arguments."""
        arguments = [
            f"  {argument_name(a)}[{a.size}]{_axes(a)}  {f.about.get(a.name, '')}".rstrip()
            for a in (*f.program.inputs, *f.program.outputs)
            if a.size
        ]
        lines = [*textwrap.wrap(f.summary, 92), *arguments, *textwrap.wrap(_cost(f), 92)]
        return f"{_comment(lines)}\n{declaration(f.program, self.dtype, self._name(f))};"

    def source(self):
        """Text of the exported C source file."""
        texts = [self._definition(f) for f in self.functions]
        include = f'#include "{self.prefix}.h"\n\n#include <math.h>'
        return "\n\n".join([self.banner, include, *texts]) + "\n"

    def _definition(self, f):
        """C definition of an exported function."""
        name = self._name(f)
        if f.loops is None:
            return render(f.program, self.dtype, name=name, labels=f.labels)
        results = [a.name for a in f.program.outputs]
        loops, data = f.loops
        return c_loops.render(loops, data, self.dtype, name=name, results=results)

    # --- the self-test ---------------------------------------------------------------------------

    def test(self):
        """Text of the C program that compares results with those of Python."""
        checks = [text for f in self.functions for text in self._test(f)]
        calls = "\n".join(f"    failures += test_{f.name}();" for f in self.functions)
        main = f"int main(void)\n{{\n    int failures = 0;\n{calls}\n    return failures != 0;\n}}"
        include = f'#include "{self.prefix}.h"\n\n#include <math.h>\n#include <stdio.h>'
        compare = _COMPARE.replace("REAL", self.c.real)
        return "\n\n".join([self.banner, include, compare, *checks, main]) + "\n"

    def _test(self, f):
        """C test data and a function that compares an exported function with results of Python."""
        inputs = [(k, a) for k, a in enumerate(f.program.inputs) if a.size]
        outputs = [(k, a) for k, a in enumerate(f.program.outputs) if a.size]
        for k, a in inputs:
            table = [s.inputs[k] for s in f.samples]
            yield self._table(f"{f.name}_{a.name}", table, a.size, self.c.real)
        for k, a in outputs:
            yield self._table(f"{f.name}_{a.name}", [s.outputs[k] for s in f.samples], a.size)
            limits = [s.tolerances[k] for s in f.samples]
            yield self._table(f"{f.name}_{a.name}_tolerance", limits, 1)
        arguments = [f"{f.name}_{a.name}[s]" for _, a in inputs] + [a.name for _, a in outputs]
        lines = [
            f"static int test_{f.name}(void)\n{{",
            "    int failures = 0;",
            f"    for (int s = 0; s < {len(f.samples)}; s++) {{",
            *(f"        {self.c.real} {a.name}[{a.size}];" for _, a in outputs),
            f"        if ({self._name(f)}({', '.join(arguments)}) != 0) failures++;",
        ]
        for _, a in outputs:
            table = f"{f.name}_{a.name}"
            lines.append(
                f'        failures += compare("{f.name}", s, {a.size}, {a.name}, {table}[s], '
                f"{table}_tolerance[s][0]);"
            )
        verdict = f'"{f.name}: {len(f.samples)} samples, %s\\n"'
        lines += ["    }", f'    printf({verdict}, failures ? "FAILED" : "ok");']
        yield "\n".join([*lines, "    return failures;", "}"])

    def _table(self, name, rows, size, real="double"):
        """Table of numbers in C, exact to the bit."""

        def number(x):
            return float(x).hex() + ("f" if real == "float" else "")

        texts = [", ".join(number(x) for x in np.ravel(row)) for row in rows]
        body = ",\n".join(
            "    {" + textwrap.fill(t, 92, subsequent_indent="     ") + "}" for t in texts
        )
        return f"static const {real} {name}[{len(rows)}][{size}] = {{\n{body}\n}};"

    def makefile(self):
        """Text of the makefile for exported C code."""
        p = self.prefix
        head = "\n".join(f"# {line.strip()}" for line in self.banner.strip("/* \n").split("\n *"))
        return (
            f"{head}\n\n"
            "CC ?= cc\n"
            "CFLAGS ?= -std=c99 -O2 -Wall -Wextra -pedantic\n\n"
            f"test: {p}_test\n\t./{p}_test\n\n"
            f"{p}_test: {p}_test.o {p}.o\n\t$(CC) $(LDFLAGS) -o $@ {p}_test.o {p}.o -lm\n\n"
            f"{p}.o: {p}.c {p}.h\n\t$(CC) $(CFLAGS) -c {p}.c\n\n"
            f"{p}_test.o: {p}_test.c {p}.h\n\t$(CC) $(CFLAGS) -c {p}_test.c\n\n"
            f"clean:\n\trm -f {p}_test {p}_test.o {p}.o\n\n"
            ".PHONY: test clean\n"
        )


def _axes(a):
    """Comment about the axes of an array argument."""
    return f" = {a.name}[{']['.join(map(str, a.shape))}]" if len(a.shape) > 1 else ""


def _comment(lines):
    """A block comment in plain ASCII, whatever names are in its lines."""
    texts = [printable(line).encode("ascii", "replace").decode() for line in lines]
    # Neither the start nor the end of a comment, nor a trigraph; a backslash at the end of a line
    # does not matter between those.
    texts = [re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", r"\g<0> ", text) for text in texts]
    text = "\n".join(f" * {line}".rstrip() for line in texts)
    return f"/*{text[2:]}\n */"


_COMPARE = """\
static int compare(const char *name, int sample, int size, const REAL *got, const double *want,
                   double tolerance)
{
    int failures = 0;
    for (int i = 0; i < size; i++) {
        if (!(fabs((double)got[i] - want[i]) <= tolerance)) {
            printf("%s: sample %d, element %d: got %.17g, expected %.17g, tolerance %.3g\\n", name,
                   sample, i, (double)got[i], want[i], tolerance);
            failures++;
        }
    }
    return failures;
}"""
