"""Procedures as C, for programs on a GPU: their LLVM text, instruction by instruction.

Numbers are ``real``, as in the program around them, integers have 32 bits. Places on the stack
become variables, branches become ``goto``; the compiler finds the loops again.
"""

import re
import struct
from collections import Counter

import numpy as np

from kinetree.codegen.procedures.language import ArrayType
from kinetree.codegen.procedures.writer import write
from kinetree.codegen.render.c import C
from kinetree.errors import TraceError

_TYPES = {"double": "real", "i64": "int", "i1": "int", "ptr": "void *", "void": "void"}
_INFIX = {
    "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-", "mul": "*",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "ashr": ">>", "sdiv": "/", "srem": "%",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_VALUE = r"([%\w.@-]+)"
_WORD = re.compile(r"\w+")
_TYPE = r"(double|i64|i1|ptr|\{[^}]*\})"


def _parts(pattern, text) -> tuple[str, ...]:
    """The groups of a pattern in an instruction."""
    found = re.match(pattern, text)
    if not found:
        raise TraceError(f"{text}: not known in C")
    return found.groups()


class _Module:
    """Names of procedures, as ``write`` wants them; constant tables are not in the language yet."""

    head = None

    def __init__(self, procedures):
        self.names = {p: f"@{p.name}" for p in procedures}

    def name(self, procedure):
        return self.names[procedure]

    def needs(self, declaration):
        """Functions of LLVM are spelled in C anyway."""

    def meta(self, text):
        return "!0"

    def tag(self, element):
        return ""

    def field_tag(self, kind, field):
        return ""


def procedures_text(procedures, dtype) -> str:
    """Definitions of some procedures and of all that they call."""
    reached = list(dict.fromkeys(p for top in procedures for p in top.reached))
    module = _Module(reached)
    return "\n\n".join(_Function(write(p, module), dtype).text() for p in reached)


class _Function:
    def __init__(self, text, dtype):
        self.source, self.language = text.splitlines(), C(dtype)
        self.f = "f" if dtype == "float32" else ""
        self.declared: dict[str, str] = {}
        self.places: set[str] = set()  # variables that LLVM has on the stack
        self.called: set[str] = set()  # results of procedures
        self.structs: list[str] = []

    def text(self):
        head, *rest = self.source
        pattern = r"define (?:internal )?(\{[^}]*\}|\S+) @(\w+)\((.*)\) nounwind"
        kind, name, arguments = _parts(pattern, head)
        given = re.findall(r"(double|i64|i1|ptr)[^,%]*(%[\w.]+)", arguments)
        parameters = ", ".join(f"{_TYPES[t]} {self.value(x)}" for t, x in given)
        lines = [self.line(line.strip()) for line in rest[:-1] if line.strip() != "entry:"]
        body = [f"    {line}" for line in self.used(lines) if line]
        own = [f"    {kind} {x};" for x, kind in self.declared.items()]
        head = f"static __device__ {self.type(kind)} {name}({parameters})"
        return "\n".join([*self.structs, head, "{", *own, *body, "}"])

    def used(self, lines):
        """The lines without values that nobody looks at."""
        while True:
            words = Counter(word for line in lines for word in _WORD.findall(line))
            idle = {x for x in self.declared if words[x] == 1 and x not in self.called}
            if not idle:
                return lines
            lines = [line for line in lines if line.partition(" = ")[0] not in idle]
            self.declared = {x: kind for x, kind in self.declared.items() if x not in idle}

    def type(self, kind):
        if not kind.startswith("{"):
            return _TYPES[kind]
        parts = [self.type(k.strip()) for k in kind[1:-1].split(",")]
        name = "several_" + "_".join(parts)
        fields = " ".join(f"{part} x{n};" for n, part in enumerate(parts))
        self.structs = [
            f"#ifndef {name.upper()}",
            f"#define {name.upper()}",
            f"typedef struct {{ {fields} }} {name};",
            "#endif",
        ]
        return name

    def value(self, x):
        if x in ("true", "false"):
            return str(int(x == "true"))
        if x.startswith("0x"):
            number = struct.unpack(">d", bytes.fromhex(x[2:]))[0]
            return "INFINITY" if number == np.inf else self.language.constant(number)
        return re.sub(r"\W", "_", x.lstrip("%@")) if x[0] in "%@" else x

    def line(self, line):
        if line.endswith(":"):
            return f"{line} ;"
        target, _, text = line.partition(" = ") if line.startswith("%") else ("", "", line)
        op, _, rest = text.partition(" ")
        if op == "alloca":
            return self.allocated(target, rest)
        write = getattr(self, f"i_{op}", None)
        if write is not None:
            kind, found = write(rest)
        elif op in _INFIX:
            kind, a, b = _parts(rf"(?:nsw )?{_TYPE} {_VALUE}, {_VALUE}", rest)
            found = f"{self.value(a)} {_INFIX[op]} {self.value(b)}"
        else:
            raise TraceError(f"{line}: not known in C")
        if not target:
            return f"{found};"
        name = self.value(target)
        self.declared[name] = self.type(kind)
        if op == "call":
            self.called.add(name)
        return f"{name} = {found};"

    def allocated(self, target, rest):
        name = self.value(target)
        array = re.match(r"\[(\d+) x (double|i64)\]", rest)
        if array:
            self.declared[f"{name}[{array[1]}]"] = _TYPES[array[2]]
        else:
            self.declared[name] = _TYPES[rest.split(",")[0]]
            self.places.add(target)
        return ""

    def at(self, kind, place):
        """What is stored at a place: a variable, or a number of an array."""
        name = self.value(place)
        return name if place in self.places else f"*({_TYPES[kind]} *){name}"

    def i_load(self, rest):
        kind, place = _parts(rf"{_TYPE}, ptr {_VALUE}", rest)
        return kind, self.at(kind, place)

    def i_store(self, rest):
        kind, x, place = _parts(rf"{_TYPE} {_VALUE}, ptr {_VALUE}", rest)
        return None, f"{self.at(kind, place)} = {self.value(x)}"

    def i_getelementptr(self, rest):
        kind, x, index = _parts(rf"inbounds {_TYPE}, ptr {_VALUE}, i64 {_VALUE}", rest)
        return "ptr", f"({_TYPES[kind]} *){self.value(x)} + {self.value(index)}"

    def i_br(self, rest):
        if rest.startswith("label"):
            return None, f"goto {rest.split('%')[1]}"
        test, yes, no = _parts(rf"i1 {_VALUE}, label %(\w+), label %(\w+)", rest)
        return None, f"if ({self.value(test)}) goto {yes}; else goto {no}"

    def i_ret(self, rest):
        return None, "return" if rest == "void" else f"return {self.value(rest.split(' ')[-1])}"

    def i_fneg(self, rest):
        return "double", f"-{self.value(rest.split(' ')[-1])}"

    def i_fcmp(self, rest):
        order, a, b = _parts(rf"(\w+) double {_VALUE}, {_VALUE}", rest)
        x, y = self.value(a), self.value(b)
        if order == "uno":
            return "i1", f"{x} != {x} || {y} != {y}"
        return "i1", f"{x} {_INFIX[order[1:]]} {y}"

    def i_icmp(self, rest):
        order, a, b = _parts(rf"(\w+) i64 {_VALUE}, {_VALUE}", rest)
        return "i1", f"{self.value(a)} {_INFIX[order.removeprefix('s')]} {self.value(b)}"

    def i_select(self, rest):
        pattern = rf"i1 {_VALUE}, {_TYPE} {_VALUE}, {_TYPE} {_VALUE}"
        test, kind, a, _, b = _parts(pattern, rest)
        return kind, f"{self.value(test)} ? {self.value(a)} : {self.value(b)}"

    def i_zext(self, rest):
        return "i64", self.value(rest.split(" ")[1])

    def i_sitofp(self, rest):
        return "double", f"(real){self.value(rest.split(' ')[1])}"

    def i_insertvalue(self, rest):
        kind, whole, _, x, k = _parts(rf"{_TYPE} {_VALUE}, {_TYPE} {_VALUE}, (\d+)", rest)
        name = f"whole_{len(self.declared)}" if whole == "poison" else self.value(whole)
        if whole == "poison":
            self.declared[name] = self.type(kind)
        return kind, f"({name}.x{k} = {self.value(x)}, {name})"

    def i_extractvalue(self, rest):
        kind, whole, k = _parts(rf"{_TYPE} {_VALUE}, (\d+)", rest)
        parts = kind[1:-1].split(",")
        return parts[int(k)].strip(), f"{self.value(whole)}.x{k}"

    def i_call(self, rest):
        kind, name, given = _parts(rf"(void|{_TYPE[1:-1]}) @([\w.]+)\((.*)\)", rest)
        arguments = [self.value(x.rsplit(" ", 1)[1]) for x in given.split(", ") if x]
        known = re.match(r"llvm\.(\w+)(?:\.\w+)*$", name)
        if known is None:
            return kind, f"{name}({', '.join(arguments)})"
        if known[1] == "fptosi":
            return "i64", f"(int){arguments[0]}"
        if kind == "i64":
            return kind, f"abs({arguments[0]})"
        return kind, f"{known[1]}{self.f}({', '.join(arguments)})"


# --- Routines: procedures with some of their arguments given -------------------------------------


def routine_text(routine, name, dtype) -> str:
    """The function of a ``Routine``: it takes addresses of all inputs, then of all results."""
    language, tables, arguments = C(dtype), [], []
    own = [f"    real work[{routine.work}];"] if routine.work else []
    for argument, kind in routine.places:
        if argument not in routine.given:
            arguments.append(f"(void *){argument}")
        elif isinstance(kind, ArrayType):
            array = routine.table(argument, kind).ravel()
            spell = str if array.dtype.kind == "i" else language.constant
            numbers = ", ".join(map(spell, array.tolist())) or "0"
            c_type = _TYPES[kind.element]
            table = f"{name}_{argument}"
            tables.append(
                f"static __constant__ {c_type} {table}[{max(1, array.size)}] = {{{numbers}}};"
            )
            arguments.append(f"(void *){table}")
        else:
            x = routine.given[argument]
            arguments.append(str(x) if isinstance(x, int) else language.constant(x))
    parameters = [f"const real *{a.name}" for a in routine.inputs]
    parameters += [f"real *{a.name}" for a in routine.outputs]
    head = f"static __device__ void {name}({', '.join(parameters)})"
    call = f"    {routine.procedure.name}({', '.join(arguments)});"
    return "\n".join([*tables, head, "{", *own, call, "}"])
