"""LLVM's text for memories of worlds that are interleaved word by word.

``LANES`` worlds share one memory: word ``k`` of all of them, then word ``k + 1``. A pointer is the
address of a number of one world, so that all code stays as it is but for one rule: distances
between numbers are ``LANES`` times as large. Text is optimised first, while distances are those of
arrays. What then is left on the stack, arrays with moving indices or whose addresses are handed
on, lies in the same memory, for who gets an address does not know where it leads: functions take
one more argument, the next free word.
"""

import json
import re
from dataclasses import dataclass

from kinetree.errors import BackendError

LANES = 32
"""Worlds whose words lie side by side: the threads of a warp."""
POINTER = "ptr addrspace(1)"
_WORD = 8  # bytes

_NAME = r'@(?:"[^"]+"|[\w.$-]+)'
_STRIPPED = re.compile(
    r" (?:noundef|nonnull|readonly|writeonly|readnone|noalias|nofree|returned|zeroext|signext"
    r"|local_unnamed_addr|unnamed_addr|nounwind|captures\([^)]*\)|dereferenceable\(\d+\)"
    r"|initializes\((?:\([^)]*\)(?:, )?)+\)|range\([^)]*\)|nofpclass\([^)]*\)|nuw nsw(?= i8\b)"
    r"|dead_on_return|noinline|alwaysinline|norecurse|willreturn|memory\([^)]*\)|#\d+)(?=[ ,)]|$)"
)
_ALLOCA = re.compile(
    r"^  (%[\w.\"$-]+) = alloca (?:\[(\d+) x (?:double|i64)\]|double|i64|ptr)(?:, .*)?$"
)
_STEP = re.compile(
    r"getelementptr (?:(?:inbounds|nuw|nusw) )*(double|i64|i8|ptr|\[\d+ x (?:i64|double)\]), "
)
_CALL = re.compile(
    rf"^  ((?:%[\w.\"$-]+ = )?)(?:tail |musttail |notail )?call (.+?) ({_NAME})\((.*)\)(.*)$"
)
_INDIRECT = re.compile(r"^  ((?:%[\w.\"$-]+ = )?)(?:tail )?call (\w+) (%[\w.\"$-]+)\((.*)\)(.*)$")


@dataclass(frozen=True)
class Interleaved:
    """A text, and what has to be known of it to link it with others."""

    text: str
    frames: dict
    """Words on the stack of each function."""
    calls: dict
    """For each function those that it calls."""
    chosen: list
    """Signatures of functions that are called by number: result and kinds of arguments."""

    def as_json(self) -> str:
        """Facts about the text, as JSON."""
        return json.dumps([self.frames, self.calls, self.chosen])


_TWO_IN_ONE = re.compile(
    r"(?m)^( *)(%[\w.]+) = shufflevector <1 x double> (\S+), <1 x double> (\S+), "
    r"<2 x i32> <i32 0, i32 1>$"
)
_STORE_OF_TWO = re.compile(r"(?m)^( *)store <2 x double> (%[\w.]+), ptr (%[\w.]+), align 8$")
"""Two results that lie side by side, as code for a processor stores them."""


def symbol(name: str) -> str:
    """A name with every character that PTX does not allow replaced by an underscore."""
    return re.sub(r"\W", "_", name)


def scalar_text(text: str) -> str:
    """LLVM IR with vectors of one number replaced by scalars."""
    text = _TWO_IN_ONE.sub(
        r"\1\2 = bitcast double \3 to double\n\1\2.b = bitcast double \4 to double", text
    )
    text = _STORE_OF_TWO.sub(
        r"\1store double \2, ptr \3\n\1\3.b = getelementptr double, ptr \3, i64 1\n"
        r"\1store double \2.b, ptr \3.b",
        text,
    )
    text = re.sub(
        r"(getelementptr) <1 x (double)>, (ptr \S+, i64 [\w%.]+), i64 \S+", r"\1 \2, \3", text
    )
    text = re.sub(r"<1 x (double|i64|i1)>", r"\1", text)
    text = re.sub(r"<(?:double|i64|i1) ([^<>,]+)>", r"\1", text)
    text = text.replace(".v1f64", ".f64").replace(".v1i1", ".i1")
    text = re.sub(r"= extractelement (\w+) ([^,]+), i32 0", r"= bitcast \1 \2 to \1", text)
    text = re.sub(r"= insertelement (\w+) \w+, \w+ ([^,]+), i32 0", r"= bitcast \1 \2 to \1", text)
    text = re.sub(
        r"= call (\w+) @llvm\.vector\.reduce\.\w+\.\w+\(\w+ ([^)]+)\)",
        r"= bitcast \1 \2 to \1",
        text,
    )
    text = re.sub(r"= shufflevector (\w+) ([^,]+), .*", r"= bitcast \1 \2 to \1", text)
    return "\n".join(x for x in text.splitlines() if "@llvm.vector.reduce" not in x)


def interleave(optimised: str, family: str) -> Interleaved:
    """Rewrite optimised LLVM IR so that memory of 32 worlds is interleaved, word by word.

    Args:
        optimised: text.
        family: what functions are that it calls by number.
    """
    frames, calls, chosen, found = {}, {}, {}, []
    for part in _parts(optimised):
        if part[0].startswith("define"):
            found += [*_function(part, frames, calls, (chosen, family)), ""]
        else:
            found += [_declaration(x) for x in part if not _is_dropped(x)]
    needed = [chosen_head("declare", x) for x in chosen]
    needed += [_WORDS[x] for x in _WORDS if any(x in each for each in calls.values())]
    return Interleaved("\n".join([*needed, *found]) + "\n", frames, calls, list(chosen))


_WORDS = {
    "words_memset": f"declare void @words_memset({POINTER}, i8, i64, {POINTER})",
    "words_memcpy": f"declare void @words_memcpy({POINTER}, {POINTER}, i64, {POINTER})",
    "words_memmove": f"declare void @words_memmove({POINTER}, {POINTER}, i64, {POINTER})",
}


def chosen_head(word: str, signature: str) -> str:
    """Head of the LLVM function that dispatches calls by number, after ``define``/``declare``."""
    _, kind, *kinds = signature.split()
    given = ", ".join(
        f"{x} %a{k}" if word == "define" else x for k, x in enumerate(["ptr", *kinds, "ptr"])
    )
    return f"{word} {kind} @{chosen_name(signature)}({given})".replace("ptr", POINTER)


def _parts(text):
    """Split LLVM IR into functions and what is between them, as lists of lines."""
    part: list[str] = []
    for line in text.splitlines():
        if line.startswith(";") or not line.strip():
            continue
        if line.startswith(("define", "declare")) and part:
            yield part
            part = []
        part.append(line)
        if line == "}":
            yield part
            part = []
    if part:
        yield part


def _is_dropped(line):
    """Whether a line of LLVM IR is left out: attributes, target, and unused declarations."""
    noted = line.startswith(("attributes", "source_filename", "target"))
    return noted or any(f"@llvm.{x}" in line for x in ("lifetime", "mem", "experimental.noalias"))


def _declaration(line):
    """Declaration of a function in LLVM IR, with a stack pointer as parameter if it needs one."""
    if not line.startswith("declare"):
        return line
    line = _plain(line)
    if _takes_no_stack(re.findall(_NAME, line)[0]):
        return line
    return re.sub(
        r"\)$", lambda m: f", {POINTER})" if not line.endswith("()") else f"{POINTER})", line
    )


def _plain(line):
    """Line of LLVM IR without attributes, with all pointers in the interleaved address space."""
    before = None
    while before != line:
        before, line = line, _STRIPPED.sub("", line)
    line = re.sub(r"\bptr\b(?! addrspace)", POINTER, line)
    return re.sub(rf"{_NAME}", lambda m: _symbol_at(m[0]), line)


def _symbol_at(name):
    """A global name in LLVM IR as PTX allows it; LLVM's intrinsics keep theirs."""
    return name if name.startswith(("@llvm.", '@"llvm.')) else "@" + symbol(name[1:].strip('"'))


def _takes_no_stack(name):
    """Whether a function uses no stack memory: intrinsics, math functions, constant tables."""
    return name.startswith("@llvm.") or name in LIBRARY or name.startswith("@constants_of_")


_LIBRARY = "sin cos tan atan2 asin acos atan exp log hypot sincos_of_one tanh_of_one"
LIBRARY = frozenset(f"@{x}" for x in _LIBRARY.split())


def _function(part, frames, calls, chosen):
    """Rewrite a function of LLVM IR for interleaved memory; notes its stack size and its calls."""
    head = _plain(part[0])
    name = re.findall(_NAME, head)[0]
    inner = re.findall(rf"{re.escape(name)}\((.*)\)", head)[0]
    stackless = _takes_no_stack(name)
    if not stackless:
        given = f"{inner}, {POINTER} %stack" if inner else f"{POINTER} %stack"
        head = head.replace(f"{name}({inner})", f"{name}({given})")
    words, called, lines = 0, {}, []
    for line in part[1:]:
        if "@llvm.lifetime" in line or "@llvm.experimental.noalias" in line:
            continue
        place = _ALLOCA.match(line)
        if place:
            lines.append(
                f"  {place[1]} = getelementptr [{LANES} x i64], {POINTER} %stack, i64 {words}"
            )
            words += int(place[2] or 1)
            continue
        if " = alloca " in line:
            raise BackendError(f"a place on the stack that has no words: {line.strip()}")
        lines.append(_line(line, called, chosen))
    body = "\n".join(lines)
    if "%stack.end" in body:
        end = f"  %stack.end = getelementptr [{LANES} x i64], {POINTER} %stack, i64 {words}"
        at = next((k for k, x in enumerate(lines) if not re.match(r"^[\w.$\"-]+:", x)), 0)
        lines.insert(at, end)
    frames[name[1:]], calls[name[1:]] = words, list(called)
    return [head, *lines]


def _line(line, called, chosen):
    """Rewrite a line of LLVM IR for memory interleaved by lanes: addresses, calls, alignments."""
    # A load that nothing changes while a function runs is not one that nothing changes at all.
    line = re.sub(r", !(?:dereferenceable|nonnull|range|align|invariant.load) ![\d]+", "", line)
    line = re.sub(r"\balign (?:16|32|64|128)\b", "align 8", line)
    by_number = _INDIRECT.match(line)
    if by_number:
        return _dispatch(by_number, called, chosen)
    call = _CALL.match(line)
    if call:
        return _call(call, called)
    line = _STEP.sub(
        lambda m: f"getelementptr [{LANES} x {'i64' if m[1] == 'ptr' else m[1]}], ", line
    )
    if "getelementptr" in line and f"[{LANES} x" not in line:
        raise BackendError(f"a distance that is not understood: {line.strip()}")
    return re.sub(
        rf"{_NAME}", lambda m: _symbol_at(m[0]), re.sub(r"\bptr\b(?! addrspace)", POINTER, line)
    )


def _call(call, called):
    """Rewrite a call by name in LLVM IR: pass the stack pointer on, copy memory by words."""
    result, kind, name, given, _ = call.groups()
    if name.startswith(("@llvm.memset", "@llvm.memcpy", "@llvm.memmove")):
        which = name.split(".")[1]
        given = re.sub(r", i1 (?:false|true)$", "", given)
        called[f"words_{which}"] = None
        return _plain(f"  call void @words_{which}({given})")
    line = _plain(f"  {result}call {kind} {name}({given})")
    name = _symbol_at(name)
    if _takes_no_stack(name):
        return line
    called[name[1:]] = None
    return line[:-1] + (f", {POINTER} %stack.end)" if given else f"{POINTER} %stack.end)")


def _dispatch(call, called, chosen):
    """Rewrite an indirect call in LLVM IR as a call of the dispatcher for its signature."""
    result, kind, at, given, _ = call.groups()
    found, family = chosen
    kinds = [x.split()[0] for x in re.sub(r"\([^)]*\)", "", given).split(",") if x.strip()]
    signature = f"{family} {kind} {' '.join(kinds)}"
    found[signature] = None
    name = chosen_name(signature)
    called[name] = None
    return _plain(f"  {result}call {kind} @{name}(ptr {at}, {given}, ptr %stack.end)")


def chosen_name(signature: str) -> str:
    """Name of the function that dispatches calls by number for a signature."""
    family, kind, *kinds = signature.split()
    return f"chosen_{family}_{kind}_{len(kinds)}"
