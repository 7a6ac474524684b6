"""Long straight text as separate functions, which can be compiled at the same time.

The time of a compiler grows faster than the length of a function. What a function takes and leaves
goes through ``frame``, an array of the thread, where most of it would be anyway: there are far
fewer registers than such numbers.
"""

import re

LONG = 1000
"""Lines of text that are worth a function."""
LONGEST = 3000
"""Lines of a function, at most."""
_PLAIN = re.compile(
    r"const (?P<kind>float|double|int) (?P<name>(?!active\b)\w+) = .*;$|"
    r"real (?P<names>\w+(?:, \w+)*);$|sincos_any\(.*\);$|"
    r"if \(active\) (?:row|column)\[\d+\] = .*;$|if \(active && !\(.*\)\) status \|= \d+;$"
)
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\[\d+\])?(?!\w*\()")
_OTHER = {"active", "status", "row", "column", "if", "const", "float", "double", "int", "real"}
_HEAD = "int NAME(real *frame, const int active, real *row, real *column)"


def outline(lines) -> tuple[list[str], list[str], int]:
    """Move long stretches of CUDA lines into functions; returns calls, functions, frame size.

    Args:
        lines: of a function in which every name has one meaning.
    """
    stripped = [line.strip() for line in lines]
    found = [_PLAIN.match(x) for x in stripped]
    kinds = {m["name"]: m["kind"] for m in found if m and m["name"]}
    parts = [part for run in _runs(lines, found) for part in _cut(run, stripped)]
    owner = {k: n for n, part in enumerate(parts) for k in part}
    uses: dict[str, set[int | None]] = {}
    for k, line in enumerate(stripped):
        for name in _names_mentioned(line):
            uses.setdefault(name, set()).add(owner.get(k))
    made = [{name for k in part for name in _names_defined(found[k])} for part in parts]
    taken = [{name for k in part for name in _names_mentioned(stripped[k])} for part in parts]
    places: dict[str, int] = {}
    inside = set().union(*made) if made else set()
    functions, calls = [], {}
    for n, part in enumerate(parts):
        given = sorted(taken[n] - made[n])
        left = {x for x in made[n] if uses.get(x, set()) - {n}}
        for name in (*given, *sorted(left)):
            places.setdefault(name, len(places))
        functions.append(_function(n, part, stripped, found, given, left, places, kinds))
        indent = lines[part[0]][: -len(stripped[part[0]])]
        stored = [f"frame[{places[x]}] = {_real(x, kinds)};" for x in given if x not in inside]
        loaded = [_load(x, places, kinds) for x in sorted(left) if None in uses[x]]
        call = f"status |= piece_{n}(frame, active, row, column);"
        calls[part[0]] = [indent + x for x in (*stored, call, *loaded)]
    text = []
    for k, line in enumerate(lines):
        text += calls.get(k, []) if k in owner else [line]
    return text, functions, len(places)


def _runs(lines, found):
    """Ranges of lines of equal indentation that only compute, long enough to be moved."""
    first = 0
    while first < len(lines):
        end, indent = first, len(lines[first]) - len(lines[first].lstrip())
        while end < len(lines) and found[end] and _indent(lines[end]) == indent:
            end += 1
        if end - first >= LONG:
            yield range(first, end)
        first = max(end, first + 1)


def _indent(line):
    """Number of blanks at the beginning of a line."""
    return len(line) - len(line.lstrip())


def _cut(run, stripped):
    """Split a range of lines into parts of about equal length, at definitions."""
    count = -(-len(run) // LONGEST)
    ends = [run.start]
    for n in range(1, count):
        k = run.start + n * len(run) // count
        while k < run.stop and not stripped[k].startswith("const"):
            k += 1
        if ends[-1] < k < run.stop:
            ends.append(k)
    return [range(a, b) for a, b in zip(ends, (*ends[1:], run.stop), strict=True)]


def _names_defined(match) -> list[str]:
    """Variables that a line of CUDA defines, from its match."""
    found = "" if match is None else match["name"] or match["names"] or ""
    return [str(name) for name in found.split(", ") if name]


def _names_mentioned(line) -> set[str]:
    """Names of variables that occur in a line of CUDA."""
    if line.startswith("if (active) "):
        line = line.partition(" = ")[2]
    return {x for x in _NAME.findall(line) if x not in _OTHER}


def _real(name, kinds):
    """Text of a variable converted to a real number, for conditions."""
    return f"(real){name}" if kinds.get(name) == "int" else name


def _load(name, places, kinds):
    """CUDA line that loads a variable from the frame in local memory."""
    at = f"frame[{places[name]}]"
    if kinds.get(name) == "int":
        return f"const int {name} = {at} != 0;"
    return f"const real {name} = {at};"


def _function(n, part, stripped, found, given, left, places, kinds):
    """CUDA function of lines that were moved, with loads and stores of its variables."""
    alias = {x: f"given_{places[x]}" for x in given if "[" in x}
    body = ["IN_LOCAL_MEMORY(frame);", "int status = 0;", "(void)row, (void)column, (void)active;"]
    for x in given:
        body.append(_load(alias.get(x, x), {alias.get(x, x): places[x]}, kinds))
    waiting: list[str] = []
    for k in part:
        line = stripped[k]
        if alias:
            line = _NAME.sub(lambda m: alias.get(m[0], m[0]), line)
        body.append(line)
        names = _names_defined(found[k])
        if line.startswith("real "):
            waiting = names
            continue
        names, waiting = [*names, *waiting], []
        body += [f"frame[{places[x]}] = {_real(x, kinds)};" for x in names if x in left]
    lines = "\n".join(f"    {line}" for line in body)
    head = _HEAD.replace("NAME", f"piece_{n}")
    return f"PIECE {head}\n{{\n{lines}\n    return status;\n}}"


def guard(n, text) -> str:
    """CUDA function within preprocessor conditions, for compilation in separate pieces."""
    head = f"PIECE {_HEAD.replace('NAME', f'piece_{n}')};"
    lines = [f"#if !defined(ALONE) || PIECE_ALONE == {n + 1}", text]
    return "\n".join([*lines, "#elif defined(PROGRAM_ALONE)", head, "#endif"])
