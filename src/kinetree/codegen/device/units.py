"""Units of code for a GPU: large procedures, loops of general code and their cases.

A unit has the digest of its text as its name. Its text is kept on disk as it is for interleaved
worlds (``interleave``), with what has to be known to link it.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kinetree.codegen.cache import open_store
from kinetree.codegen.device.assembly import optimise
from kinetree.codegen.device.interleaved import Interleaved, interleave, scalar_text
from kinetree.codegen.keys import program_key, program_of
from kinetree.codegen.loops.language import BODIES
from kinetree.codegen.loops.robots import units_of
from kinetree.codegen.render.llvm_body import Vector
from kinetree.codegen.render.llvm_math import angles
from kinetree.codegen.render.llvm_shared import shared_symbol


class TiedCodeError(Exception):
    """A kernel calls other code, which is tied to the memory of this processor."""


STEP, CASE = "step", "case"
"""What is called by number: kernels by procedures, and cases by the loops of general code."""

_SHARED = {
    "sincos": "sincos_of_one",
    "atan2": "atan2",
    "exp": "exp",
    "log": "log",
    "tanh": "tanh_of_one",
}
_CONSTANT = re.compile(
    r"^@([\w.]+) = (?:private |internal )?(?:unnamed_addr )?(?:constant|global) "
    r"\[(\d+) x (double|i64)\] \[(.*?)\](?:, align \d+)?$",
    re.M,
)


@dataclass(frozen=True)
class Unit:
    """Code that is compiled by itself."""

    name: str
    """What identifies it."""
    write: Callable[[], str]
    """Its text for one world, as LLVM's passes want it."""
    family: str
    """What it calls by number."""


@dataclass(frozen=True)
class Written:
    """A unit as it is linked with others."""

    code: Interleaved
    """Its text and calls."""
    constants: dict
    """Words of its constant arrays, by their digest."""


def write_unit(unit: Unit) -> Written:
    """Unit rewritten for memory interleaved between worlds; kept in the disk cache."""
    key = program_key(f"interleaved {unit.family} {unit.name}", "worlds side by side")
    kept = open_store().get(key)
    if kept is None:
        text, constants = without_constants(unit.write())
        found = interleave(optimise(text), unit.family)
        kept = json.dumps([found.text, found.frames, found.calls, found.chosen, constants]).encode()
        open_store().put(key, kept)
    *code, constants = json.loads(kept)
    return Written(Interleaved(*code), constants)


def without_constants(text: str) -> tuple[str, dict]:
    """LLVM IR with constant arrays replaced by calls that return them, and the arrays as words."""
    found, names = {}, {}
    for name, _, kind, numbers in _CONSTANT.findall(text):
        words = [_word(kind, x.split()[1]) for x in numbers.split(", ")]
        digest = hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]
        found[digest], names[name] = words, digest
    text = _CONSTANT.sub("", text)
    functions = re.split(r"(?m)^(?=define )", text)
    for k, function in enumerate(functions):
        for name, digest in names.items():
            at, count = re.subn(rf"@{re.escape(name)}\b(?!\()", f"%constant.{digest}", function)
            if count:
                head, _, rest = at.partition("{\n")
                label, rest = re.match(r"((?:[\w.]+:\n)?)(.*)", rest, re.S).groups()  # pyright: ignore
                first = f"  %constant.{digest} = call ptr @constants_of_{digest}()\n"
                function = f"{head}{{\n{label}{first}{rest}"
        functions[k] = function
    text = "".join(functions)
    used = {d for d in found if f"@constants_of_{d}(" in text}
    head = "".join(
        f"declare ptr @constants_of_{d}() nounwind willreturn memory(none)\n" for d in sorted(used)
    )
    return head + text, {d: found[d] for d in used}


def _word(kind, text):
    """Bits of a numeric literal of LLVM IR as a signed 64-bit integer."""
    if kind == "i64":
        return int(text)
    bits = int(text, 16)
    return bits - (bits >> 63 << 64)


def procedure_units(head: Any, lanes: int = 1, constants: Any = None) -> list[Unit]:
    """Units of LLVM IR for a procedure and all it calls, with loops shared by ``lanes`` threads.

    ``constants``: numbers of records that are known, by class and field.
    """
    from kinetree.codegen.procedures.writer import module_text

    parts = [p for p in head.reached if p.is_large or p is head]

    def text_of(p):
        return lambda: module_text(p, for_python=False, lanes=lanes, constants=constants)

    return [Unit(p.request, text_of(p), STEP) for p in parts]


@dataclass(frozen=True)
class KernelCode:
    """The code of a kernel that procedures call."""

    symbol: str
    """Its function ``(frame, workspace, constants, status)``."""
    units: list
    """What it consists of."""
    workspace: int
    """Words that it needs."""
    tables: Any
    """``Bound`` of general code; None where constants are those of the text."""
    cases: dict
    """Names of functions by their addresses on the CPU."""
    arguments: int
    """Number of its arguments and results."""


def kernel_code(variant: Any, kernel: Any) -> KernelCode:
    """GPU code of a kernel, from what runs on the CPU as ``variant``: general or specialised."""
    return _general(variant, kernel) if hasattr(variant, "bound") else _specialise(variant, kernel)


def _general(variant, kernel):
    """GPU code of a kernel by general loops over bodies: its units and numbers of its cases."""
    code, data = variant.shared, kernel.data
    layout, cases, units = code.layout, {}, [_angles(code.group)]
    kinds = data.rows(BODIES).kinds

    def step_text():
        from kinetree.codegen.render.llvm_loops import step

        return step(code.record_loops(kinds[:1]), layout, "float64", 1)

    units.append(_rename(code.step, step_text))
    wanted = [u for u in units_of(data, layout) if code.units[u]["program"] is not None]
    pairs = frozenset(u[1] for u in units_of(data, layout) if len(u[1]) > 1)
    for domains, own in wanted:
        entry = code.units[domains, own]
        program = entry["program"]
        for n in entry["cases"]:
            cases[code.codes[program].address(f"case_{n}_{program}")] = f"case_{n}_{program}"

        def unit_text(domains=domains, own=own):
            from kinetree.codegen.render.llvm_cases import unit

            return unit(code.record_loops(kinds, pairs), layout, domains, own, "float64", 1)

        units.append(_rename(program, unit_text))
    ends = len(kernel.inputs) + len(kernel.outputs)
    return KernelCode(f"step_{code.step}", units, variant.bound.slots, variant.bound, cases, ends)


def _rename(program, write):
    """Unit of a program whose function names carry the program's digest."""

    def text():
        found = write()
        return _for_device(program_of(found)[1])

    return Unit(program, text, CASE)


def _for_device(text):
    """LLVM IR for one sample at a time, with math functions of the GPU library."""
    text = re.sub(
        r"@kinetree_(sincos|atan2|exp|log|tanh)_float64_1_\w+", lambda m: f"@{_SHARED[m[1]]}", text
    )
    return scalar_text(text)


def _angles(group):
    """Unit that computes sines and cosines of joint angles one after the other."""
    one = Vector("float64", 1)
    name = shared_symbol("angles", one, group)

    def text():
        found = scalar_text(angles(one, group))
        exact = re.search(r"(?ms)^define internal void @exact\(.*?^}", found)
        assert exact
        given = "ptr %frame, ptr %workspace, ptr %places, i64 %count"
        taken = given.replace("ptr %places", "ptr %status, ptr %places")
        return (
            "declare {double, double} @sincos_of_one(double)\n\n"
            f"{exact[0].replace(' noinline cold', '')}\n\n"
            f"define void @{name}({taken}) {{\n"
            f"  call void @exact({given})\n  ret void\n}}\n"
        )

    return Unit(name, text, CASE)


def _specialise(variant, kernel):
    """GPU code of a kernel specialised for one robot; TiedCodeError if it calls other code."""
    from kinetree.codegen.program import calls_of

    program = kernel.program_with_calls
    if calls_of(program):
        raise TiedCodeError(f"{kernel.name} calls other code")
    return specialised_code(program)


def specialised_code(program: Any) -> KernelCode:
    """GPU code of a traced program that calls no other code, specialised for one robot."""
    from kinetree.codegen.render.llvm import render
    from kinetree.codegen.schedule import BLOCK_SIZE

    text = render(program, "float64", 1, block_size=BLOCK_SIZE)
    name = program_of(text)[0]
    found = re.search(r"@kernel = constant \{.*?\[(\d+) x i64\] \[(.*?)\] \}", text)
    assert found
    workspace = int(found[2].split(", ")[2].split()[1])
    group = re.search(r"@kinetree_angles_float64_1_(\d+)_", text)
    units = [_angles(int(group[1]))] if group else []

    def device():
        parts = [p for p in text.split("\n\n") if not _is_for_python(p)]
        own = "\n\n".join(parts).replace("define internal void @step(", "define void @step(")
        own = re.sub(r"@(step|block_\d+)\(", rf"@\1_{name}(", own)
        head, _, rest = own.partition(f"@step_{name}(")
        first = "  %constants = getelementptr i8, ptr @constants, i64 0\n"
        at = rest.replace("ptr %constants,", "ptr %unused,", 1)
        top, _, body = at.partition("{\n")
        label, body = re.match(r"((?:[\w.]+:\n)?)(.*)", body, re.S).groups()  # pyright: ignore
        return _for_device(f"{head}@step_{name}({top}{{\n{label}{first}{body}")

    units.append(Unit(name, device, CASE))
    ends = len(program.inputs) + len(program.outputs)
    return KernelCode(f"step_{name}", units, -(-workspace // 8), None, {}, ends)


def _is_for_python(part):
    """Whether a part of LLVM IR only serves calls from Python, and is left out on a GPU."""
    return part.startswith(("@kernel", "@host", "define void @loop", "define ptr @single")) or (
        "declare" in part and ("_loop_" in part or "_single_" in part)
    )
