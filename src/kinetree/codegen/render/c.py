"""A program as a C99 function: no memory from the heap, no dependency but the C library's math.

Straight lines longer than ``PIECE`` assignments are cut into static functions that share a
workspace, because compilers take more than proportionally long for long functions.
"""

import numpy as np

from kinetree.codegen.render.cstyle import Language, assignments, identifier

PIECE = 400  # assignments
NOT_FINITE, UNSAFE = 1, 2  # what a function returns: bits, 0 when all is well

_RESERVED = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while
    bool catch class delete false friend namespace new operator private protected public template
    this throw true try typename using virtual
    sqrt sin cos floor floorf fabs atan2 sqrtf sinf cosf fabsf atan2f exp log tanh expf logf tanhf
    isfinite INFINITY status w i
    """.split()  # noqa: SIM905
)


def argument_name(argument) -> str:
    """Name of an argument in C and C++."""
    return f"{argument.name}_" if argument.name in _RESERVED else argument.name


class C(Language):
    """C99, in double or single precision."""

    inputs_have_names = False

    def __init__(self, dtype="float64"):
        self.dtype = dtype
        self.real = {"float64": "double", "float32": "float"}[dtype]
        f = "" if dtype == "float64" else "f"
        self.calls = {
            "sqrt": f"sqrt{f}({{}})", "sin": f"sin{f}({{}})", "cos": f"cos{f}({{}})",
            "exp": f"exp{f}({{}})", "log": f"log{f}({{}})", "tanh": f"tanh{f}({{}})",
            "abs": f"fabs{f}({{}})", "floor": f"floor{f}({{}})", "atan2": f"atan2{f}({{}}, {{}})",
            "select": "({} ? {} : {})", "and": "({} && {})", "or": "({} || {})", "not": "!({})",
            "held": "({})",
        }  # fmt: skip

    def constant(self, x):
        """A number in C, rounded to the precision."""
        if self.dtype == "float64":
            return repr(float(x)) if np.isfinite(x) else f"{'-' if x < 0 else ''}INFINITY"
        with np.errstate(over="ignore"):
            x = np.float32(x)
        return f"{float(str(x))!r}f" if np.isfinite(x) else f"{'-' if x < 0 else ''}INFINITY"

    def input(self, argument, index):
        """C text of an element of an input, in a flat row-major array."""
        return f"{argument_name(argument)}[{offset(argument, index)}]"

    def output(self, argument, index, text):
        """C lines that assign a value to an element of a result."""
        return [f"{argument_name(argument)}[{offset(argument, index)}] = {text};"]

    def define(self, name, text, is_condition=False):
        """C lines that define a constant for a value."""
        return [f"const {'int' if is_condition else self.real} {name} = {text};"]

    def require(self, text):
        """C line that sets a bit of ``status`` if a condition does not hold."""
        return [f"if (!({text})) status |= {UNSAFE};"]

    def loop(self, counter, times, carries, initial, body, following):
        """C lines of a ``for`` loop; all next states are computed before any is assigned."""
        pairs = [(c, x) for c, x in zip(carries, following, strict=True) if x != c]
        return [
            *(f"{self.real} {c} = {x};" for c, x in zip(carries, initial, strict=True)),
            f"for (int {counter} = 0; {counter} < {times}; {counter}++) {{",
            *(f"    {line}" for line in body),
            *(f"    const {self.real} {c}_next = {x};" for c, x in pairs),
            *(f"    {c} = {c}_next;" for c, _ in pairs),
            "}",
        ]


def offset(argument, index) -> int:
    """Row-major offset of an element in a flat array."""
    return int(np.ravel_multi_index(index, argument.shape)) if argument.shape else 0


def declaration(program, dtype="float64", name=None) -> str:
    """C prototype of a function, without a semicolon."""
    real = C(dtype).real
    parameters = [
        f"{'const ' if a in program.inputs else ''}{real} {argument_name(a)}[{a.size}]"
        for a in (*program.inputs, *program.outputs)
        if a.size
    ]
    head = f"int {name or identifier(program.name)}("
    line = f"{head}{', '.join(parameters) or 'void'})"
    return line if len(line) <= 96 else head + "\n    " + ",\n    ".join(parameters) + ")"


def render(program, dtype="float64", *, name=None, labels=None) -> str:
    """C definition of a program's function, preceded by static functions for its pieces."""
    language, name = C(dtype), name or identifier(program.name)
    items = assignments(program, language, labels)
    pieces = [items[k : k + PIECE] for k in range(0, len(items), PIECE)]
    arguments = [a for a in (*program.inputs, *program.outputs) if a.size]
    check = _finite_checks(program)
    if len(pieces) <= 1:
        body = [f"    {line}" for item in items for line in item.lines]
        head = f"{declaration(program, dtype, name)}\n{{\n    int status = 0;"
        return "\n".join([head, *check, *body, "    return status;", "}"])

    slots, count = _workspace(pieces)
    names = [argument_name(a) for a in arguments]
    parameters = ", ".join(
        f"{'const ' if a in program.inputs else ''}{language.real} *{n}"
        for a, n in zip(arguments, names, strict=True)
    )
    texts, calls = [], []
    for k, piece in enumerate(pieces):
        texts.append(_piece(f"{name}_part{k + 1}", parameters, names, piece, slots[k], language))
        calls.append(f"    status |= {name}_part{k + 1}({', '.join([*names, 'w'])});")
    texts.append(
        "\n".join(
            [
                f"{declaration(program, dtype, name)}\n{{",
                f"    {language.real} w[{max(count, 1)}]; /* values that go from part to part */",
                "    int status = 0;",
                *check,
                *calls,
                "    return status;",
                "}",
            ]
        )
    )
    return "\n\n".join(texts)


def _finite_checks(program):
    """C lines that set a bit of ``status`` where an input is not finite."""
    lines = []
    for a in program.inputs:
        if a.size:
            lines.append(f"    for (int i = 0; i < {a.size}; i++)")
            lines.append(f"        if (!isfinite({argument_name(a)}[i])) status |= {NOT_FINITE};")
    return lines


def _workspace(pieces):
    """Workspace slots that pieces load and store, ``{name: (slot, is_condition)}``; the size."""
    home = {name: k for k, piece in enumerate(pieces) for item in piece for name in item.defines}
    last = {}
    for k, piece in enumerate(pieces):
        last.update((n, k) for item in piece for n in item.mentions if home[n] != k)
    slot, free, expiring, result, count = {}, [], {}, [], 0
    for k, piece in enumerate(pieces):
        loads = {n: slot[n] for item in piece for n in sorted(item.mentions) if home[n] != k}
        free += expiring.pop(k, [])  # loaded at the start of a piece, and stored at its end
        stores = {}
        for n, is_condition in ((n, c) for item in piece for n, c in item.defines.items()):
            if n in last:
                if not free:
                    free, count = [count], count + 1
                stores[n] = slot[n] = (free.pop(), is_condition)
                expiring.setdefault(last[n], []).append(slot[n][0])
        result.append((loads, stores))
    return result, count


def _piece(name, parameters, names, piece, slots, language):
    """C function for one piece of a long program, which exchanges values through a workspace."""
    loads, stores = slots
    lines = [f"static int {name}({parameters}, {language.real} *w)", "{", "    int status = 0;"]
    lines += [f"    (void){n};" for n in [*names, "w"]]
    for n, (k, is_condition) in loads.items():
        text = f"w[{k}] != 0" if is_condition else f"w[{k}]"
        lines += [f"    {line}" for line in language.define(n, text, is_condition)]
    lines += [f"    {line}" for item in piece for line in item.lines]
    lines += [f"    w[{k}] = {n};" for n, (k, _) in stores.items()]
    return "\n".join([*lines, "    return status;", "}"])
