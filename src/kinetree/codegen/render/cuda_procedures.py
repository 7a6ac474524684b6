"""Procedures as C, for programs on a GPU: their LLVM text, instruction by instruction.

Numbers are ``real``, as in the program around them, integers have 32 bits. Places on the stack
become variables, branches become ``goto``; the compiler finds the loops again.

In the program around them a lane has a sample, and loops go on until those of all samples of the
block have ended. Where it calls a routine, all warps of the block take its samples, one after the
other: instructions that one has fetched are there for the others, and none has more to do.
``LANES`` lanes take a sample, or as many as the routine says: a warp has several samples, which run
in lockstep, or several warps have one. Turns of loops over ``lanes`` are those of these.
Arrays are in device memory, and the workspace of a routine in shared memory. Where a routine knows
how far apart numbers are, arrays have those of several samples side by side, so that lanes that
read at the same time read from the same cache line: of all 32 samples of a warp where the program
writes or reads them, and of the samples that lanes take at once where only routines do.
"""

import ctypes
import re
import struct
from collections import Counter
from dataclasses import dataclass

import numpy as np

from kinetree.codegen.procedures.language import FLOAT, ArrayType, is_record
from kinetree.codegen.procedures.routine import LIVE, STEP
from kinetree.codegen.procedures.writer import write
from kinetree.codegen.program import calls_of
from kinetree.codegen.render.c import UNSAFE, C
from kinetree.codegen.render.cuda_language import Cuda
from kinetree.codegen.render.cuda_places import WARP, Kept
from kinetree.errors import TraceError
from kinetree.expr.calls import callee_of
from kinetree.expr.node import LEAVES

_TYPES = {"double": "real", "i64": "int", "i1": "int", "ptr": "void *", "void": "void"}
_BYTES = {**_TYPES, "i8": "char"}
"""The same with those that only addresses have: fields of records are some bytes apart."""
_INFIX = {
    "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-", "mul": "*",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "ashr": ">>", "sdiv": "/", "srem": "%",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
LANES = {"float32": 4, "float64": 32}
"""Of a sample. Fewer in double precision have not been measured."""
_VALUE = r"([%\w.@-]+)"
_WORD = re.compile(r"\w+")
_TYPE = r"(double|i64|i1|i8|ptr|\{[^}]*\})"


def _parts(pattern, text) -> tuple[str, ...]:
    """Groups of a pattern in an LLVM instruction; TraceError if it does not match."""
    found = re.match(pattern, text)
    if not found:
        raise TraceError(f"{text}: not known in C")
    return found.groups()


class _Module:
    """Names of procedures and of their constant tables, as ``write`` wants them."""

    head = None
    at_once = False  # numbers of an array do not follow one another

    def __init__(self, procedures, lanes, suffix, *, single):
        self.lanes, self.single, self.suffix = lanes, single, suffix
        again = Counter()
        self.names = {}
        for p in procedures:  # kinds of shapes have procedures of one name
            number = f"_{again[p.name]}" if again[p.name] else ""
            self.names[p] = f"@{p.name}{number}{suffix}"
            again[p.name] += 1
        self.tables: dict[tuple[str, bytes], tuple[str, np.ndarray]] = {}

    def table(self, array, element):
        """Name of a constant array, each once."""
        new = f"constants_{len(self.tables)}{self.suffix}", array
        return f"@{self.tables.setdefault((element, array.tobytes()), new)[0]}"

    def table_texts(self, language):
        """CUDA definitions of the constant arrays."""
        return [f"static __device__ const {array_text(*x, language)}" for x in self.tables.values()]

    def name(self, procedure):
        """CUDA name of a procedure."""
        return self.names[procedure]

    def needs(self, declaration):
        """No declaration: CUDA C spells LLVM's intrinsics otherwise."""

    def meta(self, text):
        """Metadata of LLVM, which CUDA ignores: 0."""
        return "!0"

    def tag(self, element):
        """Alias tag of LLVM, which CUDA ignores: empty."""
        return ""

    def field_tag(self, kind, field):
        """Alias tag of a record's field, which CUDA ignores: empty."""
        return ""


_LANES = """\
#undef LANES
#undef lanes_together
#undef lane_number
#undef lane_sum
#undef lane_max
#undef worlds_max
#define LANES {lanes}
#define lanes_together lanes_together_{lanes}
#define lane_number lane_number_{lanes}
#define lane_sum lane_sum_{lanes}
#define lane_max lane_max_{lanes}
#define worlds_max worlds_max_{lanes}

DEVICE int lane_number(void) {{ return threadIdx.x & (LANES - 1); }}
"""
_LANES_OF_A_WARP = """
DEVICE void lanes_together(void) {{ __syncwarp(); }}

DEVICE real lane_sum(real x)
{{
#pragma unroll
    for (int k = LANES / 2; k; k >>= 1) x += __shfl_xor_sync(0xffffffffu, x, k);
    return x;
}}

DEVICE real lane_max(real x)
{{
#pragma unroll
    for (int k = LANES / 2; k; k >>= 1) {{
        const real y = __shfl_xor_sync(0xffffffffu, x, k);
        x = x < y ? y : x;
    }}
    return x;
}}

DEVICE int worlds_max(int x)
{{
#pragma unroll
    for (int k = 16; k >= LANES; k >>= 1) {{
        const int y = __shfl_xor_sync(0xffffffffu, x, k);
        x = x < y ? y : x;
    }}
    return x;
}}"""
_LANES_OF_WARPS = """
DEVICE void lanes_together(void) {{ wait_for_team(LANES); }}

DEVICE real lane_sum(real x)
{{
    extern __shared__ vector16 shared[];
    real all = 0;
#pragma unroll
    for (int k = 16; k; k >>= 1) x += __shfl_xor_sync(0xffffffffu, x, k);
    lanes_together();
    if (!(threadIdx.x & 31)) OF_WARPS[threadIdx.x >> 5] = x;
    lanes_together();
#pragma unroll
    for (int k = 0; k < LANES / 32; k++) all += OF_WARPS[threadIdx.x / LANES * (LANES / 32) + k];
    return all;
}}

DEVICE real lane_max(real x)
{{
    extern __shared__ vector16 shared[];
#pragma unroll
    for (int k = 16; k; k >>= 1) {{
        const real y = __shfl_xor_sync(0xffffffffu, x, k);
        x = x < y ? y : x;
    }}
    lanes_together();
    if (!(threadIdx.x & 31)) OF_WARPS[threadIdx.x >> 5] = x;
    lanes_together();
#pragma unroll
    for (int k = 0; k < LANES / 32; k++) {{
        const real y = OF_WARPS[threadIdx.x / LANES * (LANES / 32) + k];
        x = x < y ? y : x;
    }}
    return x;
}}

DEVICE int worlds_max(int x) {{ return x; }}"""
_TYPES_OF_PROCEDURES = "typedef long long word;"


def named_by(lanes, dtype) -> str:
    """Suffix of procedure names by lanes per sample; empty for the usual number."""
    return "" if lanes == LANES[dtype] else f"_by_{lanes}"


def procedures_text(procedures, dtype, lanes=0) -> str:
    """CUDA definitions of procedures and all they call, for ``lanes`` lanes per sample."""
    lanes = lanes or LANES[dtype]
    reached = list(dict.fromkeys(p for top in procedures for p in top.reached))
    module = _Module(reached, lanes, named_by(lanes, dtype), single=dtype == "float32")
    texts = [_Function(write(p, module), dtype).text(p.inline is not False) for p in reached]
    tables, of_lanes = module.table_texts(C(dtype)), _LANES
    of_lanes += _LANES_OF_A_WARP if lanes <= WARP else _LANES_OF_WARPS
    return "\n\n".join([of_lanes.format(lanes=lanes), *tables, *texts])


def all_procedures_text(routines, dtype) -> str:
    """CUDA definitions of the procedures of routines, each for its lanes per sample."""
    by_lanes: dict[int, list] = {}
    for x in routines:
        by_lanes.setdefault(x.lanes or LANES[dtype], []).append(x.procedure)
    texts = [procedures_text(some, dtype, lanes) for lanes, some in by_lanes.items()]
    return "\n\n".join([_TYPES_OF_PROCEDURES, *texts])


class _Function:
    def __init__(self, text, dtype):
        self.source, self.language = text.splitlines(), C(dtype)
        self.f = "f" if dtype == "float32" else ""
        self.declared: dict[str, str] = {}
        self.places: set[str] = set()  # variables that LLVM has on the stack
        self.called: set[str] = set()  # results of procedures
        self.structs: list[str] = []

    def text(self, inline):
        """CUDA function translated from LLVM IR."""
        head, *rest = self.source
        pattern = r"define (?:internal )?(\{[^}]*\}|\S+) @(\w+)\((.*)\) nounwind"
        kind, name, arguments = _parts(pattern, head)
        given = re.findall(r"(double|i64|i1|ptr)[^,%]*(%[\w.]+)", arguments)
        parameters = ", ".join(f"{_TYPES[t]} {self.value(x)}" for t, x in given)
        lines = [self.line(line.strip()) for line in rest[:-1] if line.strip() != "entry:"]
        body = [f"    {line}" for line in self.without_unused(lines) if line]
        own = [f"    {kind} {x};" for x, kind in self.declared.items()]
        kept = "__forceinline__" if inline else "__noinline__"
        head = f"static __device__ {kept} {self.type(kind)} {name}({parameters})"
        return "\n".join([*self.structs, head, "{", *own, *body, "}"])

    def without_unused(self, lines):
        """CUDA lines without definitions of variables that are never used."""
        while True:
            words = Counter(word for line in lines for word in _WORD.findall(line))
            idle = {x for x in self.declared if words[x] == 1 and x not in self.called}
            if not idle:
                return lines
            lines = [line for line in lines if line.partition(" = ")[0] not in idle]
            self.declared = {x: kind for x, kind in self.declared.items() if x not in idle}

    def type(self, kind):
        """CUDA type of an LLVM type; a struct for several values."""
        if not kind.startswith("{"):
            return _BYTES[kind]
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
        """CUDA text of an LLVM operand."""
        if x in ("true", "false"):
            return str(int(x == "true"))
        if x.startswith("0x"):
            number = struct.unpack(">d", bytes.fromhex(x[2:]))[0]
            return "INFINITY" if number == np.inf else self.language.constant(number)
        return re.sub(r"\W", "_", x.lstrip("%@")) if x[0] in "%@" else x

    def line(self, line):
        """CUDA line of an LLVM instruction."""
        if line.endswith(":"):
            return f"{line} ;"
        target, _, text = line.partition(" = ") if line.startswith("%") else ("", "", line)
        op, _, rest = text.partition(" ")
        if op == "alloca":
            return self.allocate(target, rest)
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

    def allocate(self, target, rest):
        """Declare a local array or variable for LLVM's ``alloca``."""
        name = self.value(target)
        array = re.match(r"\[(\d+) x (double|i64)\]", rest)
        if array and name.startswith("work_"):  # numbers of all kinds, each in a word
            self.declared[f"{name}[{array[1]}]"] = "word"
        elif array:
            self.declared[f"{name}[{array[1]}]"] = _TYPES[array[2]]
        else:
            self.declared[name] = _TYPES[rest.split(",")[0]]
            self.places.add(target)
        return ""

    def at(self, kind, place):
        """CUDA text of a variable or number in memory at an LLVM address."""
        name = self.value(place)
        return name if place in self.places else f"*({_BYTES[kind]} *){name}"

    def i_load(self, rest):
        """CUDA type and text of a ``load``."""
        kind, place = _parts(rf"{_TYPE}, ptr {_VALUE}", rest)
        return kind, self.at(kind, place)

    def i_store(self, rest):
        """CUDA text of a ``store``, which has no type."""
        kind, x, place = _parts(rf"{_TYPE} {_VALUE}, ptr {_VALUE}", rest)
        return None, f"{self.at(kind, place)} = {self.value(x)}"

    def i_getelementptr(self, rest):
        """CUDA type and text of a ``getelementptr``: pointer plus index."""
        kind, x, index = _parts(rf"inbounds {_TYPE}, ptr {_VALUE}, i64 {_VALUE}", rest)
        return "ptr", f"({_BYTES[kind]} *){self.value(x)} + {self.value(index)}"

    def i_br(self, rest):
        """CUDA text of a ``br``: a jump, with a condition or without."""
        if rest.startswith("label"):
            return None, f"goto {rest.split('%')[1]}"
        test, yes, no = _parts(rf"i1 {_VALUE}, label %(\w+), label %(\w+)", rest)
        return None, f"if ({self.value(test)}) goto {yes}; else goto {no}"

    def i_switch(self, rest):
        """CUDA text of a ``switch`` with a jump for each case."""
        number, usual = _parts(rf"i64 {_VALUE}, label %(\w+)", rest)
        cases = re.findall(r"i64 (-?\d+), label %(\w+)", rest.partition("[")[2])
        chosen = " ".join(f"case {k}: goto {label};" for k, label in cases)
        return None, f"switch ({self.value(number)}) {{ {chosen} default: goto {usual}; }}"

    def i_ret(self, rest):
        """CUDA text of a ``ret``."""
        return None, "return" if rest == "void" else f"return {self.value(rest.split(' ')[-1])}"

    def i_fneg(self, rest):
        """CUDA type and text of an ``fneg``."""
        return "double", f"-{self.value(rest.split(' ')[-1])}"

    def i_fcmp(self, rest):
        """CUDA type and text of an ``fcmp``."""
        order, a, b = _parts(rf"(\w+) double {_VALUE}, {_VALUE}", rest)
        x, y = self.value(a), self.value(b)
        if order == "uno":
            return "i1", f"{x} != {x} || {y} != {y}"
        return "i1", f"{x} {_INFIX[order[1:]]} {y}"

    def i_icmp(self, rest):
        """CUDA type and text of an ``icmp``."""
        order, a, b = _parts(rf"(\w+) i64 {_VALUE}, {_VALUE}", rest)
        return "i1", f"{self.value(a)} {_INFIX[order.removeprefix('s')]} {self.value(b)}"

    def i_select(self, rest):
        """CUDA type and text of a ``select``."""
        pattern = rf"i1 {_VALUE}, {_TYPE} {_VALUE}, {_TYPE} {_VALUE}"
        test, kind, a, _, b = _parts(pattern, rest)
        return kind, f"{self.value(test)} ? {self.value(a)} : {self.value(b)}"

    def i_zext(self, rest):
        """CUDA type and text of a ``zext``."""
        return rest.rsplit(" ", 1)[1], self.value(rest.split(" ")[1])

    i_trunc = i_zext

    def i_sitofp(self, rest):
        """CUDA type and text of an ``sitofp``."""
        return "double", f"(real){self.value(rest.split(' ')[1])}"

    def i_insertvalue(self, rest):
        """CUDA type and text of an ``insertvalue``, which fills a struct's member."""
        kind, whole, _, x, k = _parts(rf"{_TYPE} {_VALUE}, {_TYPE} {_VALUE}, (\d+)", rest)
        name = f"whole_{len(self.declared)}" if whole == "poison" else self.value(whole)
        if whole == "poison":
            self.declared[name] = self.type(kind)
        return kind, f"({name}.x{k} = {self.value(x)}, {name})"

    def i_extractvalue(self, rest):
        """CUDA type and text of an ``extractvalue``: a struct's member."""
        kind, whole, k = _parts(rf"{_TYPE} {_VALUE}, (\d+)", rest)
        parts = kind[1:-1].split(",")
        return parts[int(k)].strip(), f"{self.value(whole)}.x{k}"

    def i_call(self, rest):
        """CUDA type and text of a ``call``; intrinsics become functions of C."""
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


# --- Programs that call routines -----------------------------------------------------------------

ENLIST = "enlist("
"""Call of the function that begins each routine."""
_STORED = "if (active) "
_DEFINED = re.compile(r"const (?:real|float|double) (\w+) = ")


@dataclass(frozen=True)
class _Place:
    """Where an array is in device memory.

    Attributes:
        at: how many numbers of the sample come before it.
        size: how many it has.
        step: samples that have theirs side by side: 1, those that lanes take at once, or 32.
    """

    at: int
    size: int
    step: int

    def of_lane(self, k):
        """CUDA text of number ``k`` of the array, in the sample of this lane."""
        return f"column[{WARP * (self.at + k)}]" if self.step == WARP else f"row[{self.at + k}]"

    def of_world(self):
        """CUDA text of the array's address, in the sample that lanes compute together."""
        if self.step == 1:
            return f"its + {self.at}"
        start, n = f"side + {WARP * self.at} + which", self.step
        return start if n == WARP else f"{start} / {n} * {self.size * n} + which % {n}"


class CudaWithRoutines(Cuda):
    """CUDA C of a program that calls routines.

    Attributes:
        functions: names of the functions of routines, by their texts.
        rooms: for each routine the bytes that a team has in shared memory, and its threads.
        own_numbers, side_numbers: numbers of a sample in device memory, next to each other, and
            next to those of other samples.
    """

    def __init__(self, program, dtype, bytes_of_rooms):
        super().__init__(program, dtype, set(), Kept({}, {}), ())
        self.bytes_of_rooms = bytes_of_rooms
        self.states_change_early = False  # samples that have ended run along with their warp
        self.dtype, self.functions = dtype, {}
        self.routines = list(calls_of(program))
        self.looked_at = _looked_at(program)
        self.own_numbers = self.side_numbers = 0
        self.rooms: list[tuple[int, int]] = []
        self.places: dict[str, _Place] = {}
        self.known: dict[tuple[str, ...], str] = {}

    @property
    def left_numbers(self):
        """Numbers of a sample that routines leave in device memory."""
        return self.own_numbers + self.side_numbers

    def _place(self, name, size, step):
        """Reserve device memory for an array of a sample, interleaved if ``step`` > 1."""
        self.places[name] = _Place(self.side_numbers if step > 1 else self.own_numbers, size, step)
        if step > 1:
            self.side_numbers += size
        else:
            self.own_numbers += size
        return self.places[name]

    def array(self, name, texts, side):
        """CUDA lines that store a routine's input array; none if the same array is stored."""
        known = self.known.setdefault((side, *texts), name)
        if known != name:
            self.places[name] = self.places[known]
            return []
        place = self._place(name, len(texts), WARP if side else 1)
        return [f"{_STORED}{place.of_lane(k)} = {x};" for k, x in enumerate(texts)]

    def routine(self, callee, given, results):
        """A loop in which warps of the block take some of its samples each, until none is left."""
        lanes, own = callee.lanes or LANES[self.dtype], []
        teams, threads = max(1, WARP // lanes), max(WARP, lanes)
        for (result, size), a in zip(results.items(), callee.outputs, strict=True):
            looked_at = (callee, a.name) in self.looked_at
            step = (WARP if looked_at else teams) if callee.has_step(a.name) else 1
            place = self._place(result, size, step)
            if looked_at:
                numbers = ", ".join(place.of_lane(k) for k in range(size))
                own.append(f"const real {result}[{size}] = {{{numbers}}};")
        places, steps = [], {}
        for a, name_of in zip((*callee.outputs, *callee.inputs), (*results, *given), strict=True):
            place = self.places[name_of]
            if place.step > 1 and not callee.has_step(a.name):
                raise TraceError(
                    f"{callee.name} takes {a.name} from worlds side by side: it needs "
                    f"an argument {a.name}{STEP}"
                )
            places.append(f", {place.of_world()}")
            steps[f"{a.name}{STEP}"] = place.step
        text = routine_text(callee, "THIS_ROUTINE", self.dtype, steps)
        name = self.functions.setdefault(text, f"{callee.name}_{len(self.functions)}")
        self.rooms.append((_room_of(callee, lanes, self.dtype), threads))
        most = max(1, self.bytes_of_rooms // max(1, self.rooms[-1][0]))
        return [
            "{",
            f"    const int many = {ENLIST}active, at);",
            f"    const int takes_part = threadIdx.x < {threads * most};",
            f"    for (int turn; takes_part && (turn = take({teams}, {threads})) < many;) {{",
            f"        const int item = turn + (threadIdx.x & 31) / {lanes};",
            "        const int live = item < many;",
            "        const int world = ENLISTED[live ? item : turn], which = world & 31;",
            "        real *const place = block + (world >> 5) * (32 * NUMBERS_OF_A_SAMPLE);",
            "        real *const its = place + which * NUMBERS_OF_ITS_OWN;",
            "        real *const side = place + 32 * NUMBERS_OF_ITS_OWN;",
            "        (void)side;",
            f"        {name}(live{''.join(places)});",
            f"        wait_for_team({threads});",
            "    }",
            "    __syncthreads();",
            "}",
            *own,
        ]

    def loop(self, counter, times, carries, initial, body, following):
        """With routines in it: until those of the block have ended; states of others stay.

        The text is longer than the caches for instructions, so warps that are at the same place
        read it once, not each on its own.
        """
        if not any(ENLIST in line for line in body):
            return super().loop(counter, times, carries, initial, body, following)
        stored = {line.partition(" = ")[0].strip() for line in body}
        self.known = {  # what is stored in a loop is not known after it
            texts: name
            for texts, name in self.known.items()
            if f"{_STORED}{self.places[name].of_lane(0)}" not in stored
        }
        body = stored_early(body)
        goes_on, pairs = (
            f"active && {counter} < {times}",
            list(zip(carries, following, strict=True)),
        )
        return [
            *(f"real {c} = {x};" for c, x in zip(carries, initial, strict=True)),
            f"for (int {counter} = 0; __syncthreads_or({goes_on}); {counter}++) {{",
            f"    const int {counter}_goes_on = {goes_on};",
            "    {",
            f"        const int active = {counter}_goes_on;",
            *(f"        {line}" for line in body),
            *(f"        const real {c}_next = {x};" for c, x in pairs),
            *(f"        if (active) {c} = {c}_next;" for c in carries),
            "    }",
            "}",
        ]

    def require(self, text):
        """CUDA line that sets a bit of ``status`` if a condition does not hold."""
        return [f"if (active && !({text})) status |= {UNSAFE};"]

    def output(self, argument, index, text):
        """CUDA lines that write a result to the sample's row; lanes without a sample write none."""
        return [f"if (active) {line}" for line in super().output(argument, index, text)]


def stored_early(lines) -> list[str]:
    """CUDA lines reordered so that numbers are stored to memory as soon as they are known."""
    known = {m[1]: k for k, m in enumerate(map(_DEFINED.match, lines)) if m}
    early: dict[int, list[str]] = {}
    late = []
    for line in lines:
        stores = line.startswith((f"{_STORED}row[", f"{_STORED}column["))
        at = known.get(line.partition(" = ")[2][:-1]) if stores else None
        late.append(line if at is None else "")
        if at is not None:
            early.setdefault(at, []).append(line)
    pairs = enumerate(late)
    return [x for k, line in pairs for x in (line, *early.get(k, ())) if x]


def _looked_at(program):
    """Results of routines that the program itself uses, by routine and name."""
    nodes, found = program.graph.nodes, set()
    users = list(program.wanted)
    for i in program.graph.reachable(program.wanted):
        if nodes[i][0] != "call" and nodes[i][0] not in LEAVES:
            users += nodes[i][1:]
    for i in set(users):
        if isinstance(i, int) and nodes[i][0] == "result":
            callee, place = callee_of(program.graph, nodes[i][1]), int(nodes[nodes[i][2]][1])
            for result in callee.outputs:
                if place < result.size:
                    found.add((callee, result.name))
                    break
                place -= result.size
    return found


# --- Routines: procedures with some of their arguments given -------------------------------------


APART = """\
#if defined(PROGRAM_ALONE) || defined(ROUTINES_ALONE) || defined(PIECE_ALONE)
#define ALONE
#define ROUTINE_VOID extern "C" __device__ void
#define PIECE extern "C" __device__
#define IN_DEVICE_MEMORY(x) __builtin_assume(__isGlobal(x))
#define IN_LOCAL_MEMORY(x) __builtin_assume(__isLocal(x))
#else
#define ROUTINE_VOID DEVICE void
#define PIECE DEVICE
#define IN_DEVICE_MEMORY(x)
#define IN_LOCAL_MEMORY(x)
#endif"""
"""Routines, pieces of the program and the rest of it may be compiled each by itself, and linked."""


def _apart(routine, lanes) -> int:
    """Distance between the workspaces of two samples [numbers], without bank conflicts."""
    return routine.work + (lanes - routine.work) % WARP


def _room_of(routine, lanes, dtype) -> int:
    """Bytes of shared memory that a warp, or a team of several, needs for a routine."""
    numbers = max(1, WARP // lanes) * _apart(routine, lanes)
    return -(-numbers * (4 if dtype == "float32" else 8) // 16) * 16


def lists_bytes(warps) -> int:
    """Bytes of shared memory of a block in which it lists samples."""
    return 4 * (4 + 4 * WARP + WARP * warps)


LISTS = """\
#define WARPS_AT_MOST 32
#define LISTS ((int *)shared)
#define OF_WARPS ((real *)(LISTS + 4 + 2 * WARPS_AT_MOST))
#define ENLISTED (LISTS + 4 + 4 * WARPS_AT_MOST)
#ifdef __CUDA_ARCH__
#define BARRIER(n, threads) asm volatile("bar.sync %0, %1;" :: "r"(n), "r"(threads) : "memory")
#else
#define BARRIER(n, threads) __barrier_sync_count(n, threads)
#endif

/* Let threads wait for each other that share a sample: some lanes of a warp, or several warps. */
DEVICE void wait_for_team(int threads)
{
    if (threads <= 32) __syncwarp();
    else BARRIER(1 + threadIdx.x / threads, threads);
}

/* List the samples of the block that a routine is for: how many there are. */
DEVICE int enlist(int active, int at)
{
    extern __shared__ vector16 shared[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const unsigned wanted = __ballot_sync(0xffffffffu, active);
    if (!lane) LISTS[4 + warp] = __popc(wanted);
    if (!threadIdx.x) LISTS[0] = 0;
    __syncthreads();
    int before = 0, many = 0;
    for (int k = 0; k < warps; k++) {
        before += k < warp ? LISTS[4 + k] : 0;
        many += LISTS[4 + k];
    }
    if (active) ENLISTED[before + __popc(wanted & ((1u << lane) - 1))] = at;
    __syncthreads();
    return many;
}

/* Take so many of them, by so many threads: number of the first. */
DEVICE int take(int samples, int threads)
{
    extern __shared__ vector16 shared[];
    int turn = 0;
    if (threads <= 32) {
        if (!(threadIdx.x & 31)) turn = atomicAdd(LISTS, samples);
        return (int)__shfl_sync(0xffffffffu, turn, 0);
    }
    int *const of_team = LISTS + 4 + WARPS_AT_MOST + threadIdx.x / threads;
    if (threadIdx.x % threads == 0) *of_team = atomicAdd(LISTS, samples);
    wait_for_team(threads);
    turn = *of_team;
    wait_for_team(threads);
    return turn;
}"""
"""Functions by which the warps of a block share its samples in routines."""


def routine_text(routine, name, dtype, steps) -> str:
    """CUDA function that calls a routine's procedure on arrays ``steps`` numbers apart.

    Numbers of arrays are ``steps`` apart, by the names of arguments.
    """
    language, tables, records = C(dtype), [], []
    arrays = [a.name for a in (*routine.outputs, *routine.inputs)]
    spelled = {}
    for argument, kind in routine.places.items():
        if is_record(kind):
            spelled[argument] = f"(void *){argument}"
            own = routine.own_arrays(argument)
            fixed, arrays_of_lane, words = record_lines(
                argument, routine.record(argument), name, language, own
            )
            tables += fixed
            records += [*arrays_of_lane, *words]
            continue
        spelled[argument], table = _spell(routine, argument, kind, name, language, steps)
        tables.extend(table)
    for argument, kind in routine.bound.items():
        fields = {n: x for n, x in spelled.items() if n in kind.types}
        records += bound_lines(argument, kind, fields)
        spelled[argument] = f"(void *){argument}"
    parameters = "".join(f", real *its_{x}" for x in arrays)
    lanes = routine.lanes or LANES[dtype]
    room = f"threadIdx.x / {max(WARP, lanes)} * {_room_of(routine, lanes, dtype)}"
    within = f"(threadIdx.x & 31) / {lanes}" if lanes <= WARP else "0"
    arguments = ", ".join(spelled[n] for n, _ in routine.procedure.arguments)
    lines = [
        *tables,
        f"ROUTINE_VOID {name}(const int live{parameters})",
        "{",
        *(f"    IN_DEVICE_MEMORY(its_{x});" for x in arrays),
        "    extern __shared__ vector16 shared[];",
        f"    real *const room = (real *)((char *)shared + BYTES_OF_LISTS + {room})",
        f"        + {within} * {_apart(routine, lanes)};",
        f"    (void)room, (void)live, (void){max(1, WARP // lanes) * _apart(routine, lanes)};",
        *(f"    {line}" for line in records),
        f"    {routine.procedure.name}{named_by(lanes, dtype)}({arguments});",
        "}",
    ]
    return "\n".join(lines)


def _spell(routine, argument, kind, name, language, steps) -> tuple[str, list[str]]:
    """CUDA text of a routine's argument, and the definitions of its table if it has one."""
    if argument == LIVE:
        return LIVE, []
    if argument in (a.name for a in (*routine.outputs, *routine.inputs)):
        return f"(void *)its_{argument}", []
    if argument.endswith(STEP) and argument not in routine.given:
        return str(steps.get(argument, 1)), []
    if argument not in routine.given:
        return f"(void *)(room + {routine.room_before(argument)})", []
    if isinstance(kind, ArrayType):
        text = array_text(f"{name}_{argument}", routine.table(argument, kind), language)
        return f"(void *){name}_{argument}", [f"static __device__ const {text}"]
    x = routine.given[argument]
    return (str(x) if isinstance(x, int) else language.constant(x)), []


def bound_lines(name, kind, fields) -> list[str]:
    """CUDA lines that fill a record with fields given as text."""
    words = [f"void *{name}[{ctypes.sizeof(kind) // 8}];"]
    for field, text in fields.items():
        its, at = kind.types[field], kind.offsets[field] // 8
        if isinstance(its, ArrayType):
            words.append(f"{name}[{at}] = {text};")
        else:
            words.append(f"*({_TYPES[its]} *)({name} + {at}) = {text};")
    return words


def array_text(name, array, language) -> str:
    """CUDA definition of a constant array."""
    kind, spell = ("int", str) if array.dtype.kind == "i" else ("real", language.constant)
    numbers = ", ".join(map(spell, array.ravel().tolist())) or "0"
    return f"{kind} {name}[{max(1, array.size)}] = {{{numbers}}};"


def record_lines(name, record, prefix, language, own) -> tuple[list[str], list[str], list[str]]:
    """CUDA lines that define a record: its tables, a lane's own arrays, its words.

    The record has a word for each field. What a lane has for itself has no numbers yet: what it
    reads it has written.
    """
    tables, arrays, words = [], [], []
    for field, kind in record.types.items():
        value, at = getattr(record, field), type(record).offsets[field] // 8
        if not isinstance(kind, ArrayType):
            spelled = str(int(value)) if kind != FLOAT else language.constant(value)
            words.append(f"*({_TYPES[kind]} *)({name} + {at}) = {spelled};")
        elif value.size and field in own:
            arrays.append(f"{_TYPES[kind.element]} {name}_{field}[{value.size}];")
            words.append(f"{name}[{at}] = (void *){name}_{field};")
        elif value.size:
            table = f"{prefix}_{name}_{field}"
            tables.append(f"static __device__ const {array_text(table, value, language)}")
            words.append(f"{name}[{at}] = (void *){table};")
    size = ctypes.sizeof(type(record)) // 8
    return tables, arrays, [f"void *{name}[{size}];", *words]
