"""A procedure and the smaller ones that it calls, as a module of LLVM.

Tags of TBAA say what cannot overlap: numbers of arrays of floats, of arrays of ints, and each field
of each record. Addresses in records do not change while a procedure runs.
"""

import math

from kinetree.codegen.procedures.language import BOOL, DATA, ArrayType, is_record
from kinetree.codegen.procedures.text import literal, text_of
from kinetree.codegen.procedures.writer import write

_HEAD = "; procedures of kinetree, optimised by LLVM"


class _Module:
    def __init__(self, head):
        self.head = head
        self.names = {p: f"@{p.name}.{n}" for n, p in enumerate(head.members)}
        self.names[head] = f'@"{head.symbol}"'
        self.declared: dict[str, None] = {}
        self.tables: dict[tuple, str] = {}
        self.metadata = ["", '!"procedures"']  # !0 is empty
        self.known: dict[str, int] = {}

    def name(self, procedure):
        """The function of a procedure; a large one is in a module of its own."""
        if procedure not in self.names:
            self.names[procedure] = f'@"{procedure.symbol}"'
            kinds = ", ".join(text_of(kind) for _, kind in procedure.arguments)
            returns = text_of(procedure.returns)
            self.needs(f"declare {returns} {self.names[procedure]}({kinds}) nounwind")
        return self.names[procedure]

    def needs(self, declaration):
        """A function of LLVM or of the C library."""
        self.declared[declaration] = None

    def meta(self, text):
        """A node of metadata."""
        if text not in self.known:
            self.known[text] = len(self.metadata)
            self.metadata.append(text)
        return f"!{self.known[text]}"

    def _tag(self, name):
        kind = self.meta(f'!"{name}", !1, i64 0')
        return f", !tbaa {self.meta(f'{kind}, {kind}, i64 0')}"

    def tag(self, element):
        """The tag of numbers of arrays."""
        return self._tag(f"{element} of arrays")

    def field_tag(self, kind, field):
        """The tag of a field of a record."""
        return self._tag(f"{kind.__name__}.{field}")

    def table(self, array, element):
        """A constant array."""
        key = (element, array.tobytes())
        if key not in self.tables:
            self.tables[key] = f"@table.{len(self.tables)}"
            numbers = ", ".join(f"{element} {literal(x).x}" for x in array.reshape(-1).tolist())
            self.needs(
                f"{self.tables[key]} = private unnamed_addr constant "
                f"[{array.size} x {element}] [{numbers}], align 16"
            )
        return self.tables[key]


def module_text(procedure) -> str:
    """The module of a procedure, with a function that Python calls."""
    module = _Module(procedure)
    functions = [write(p, module) for p in procedure.members]
    entry = _entry(procedure, module)
    nodes = [f"!{n} = !{{{text}}}" for n, text in enumerate(module.metadata)]
    return "\n\n".join([_HEAD, *module.declared, *functions, entry, "\n".join(nodes)]) + "\n"


def _entry(procedure, module):
    """The function that C can call: several results go into memory."""
    arguments = []
    for name, kind in procedure.arguments:
        text = "i1 zeroext" if kind == BOOL else text_of(kind)
        if isinstance(kind, ArrayType) or is_record(kind):
            text += " noundef"
        arguments.append(f"{text} %arg_{name}")
    lines, given = [], []
    for name, kind in procedure.arguments:
        x = f"%arg_{name}"
        if isinstance(kind, ArrayType):  # an object of Python
            lines.append(f"  %at_{name} = getelementptr i8, ptr {x}, i64 {DATA}")
            lines.append(f"  %data_{name} = load ptr, ptr %at_{name}")
            x = f"%data_{name}"
        given.append(f"{text_of(kind)} {x}")
    name = f'@"{procedure.entry}"'
    call = (
        f"call {text_of(procedure.returns)} {module.name(procedure)}({', '.join(given)}) noinline"
    )
    returns = procedure.returns
    if not isinstance(returns, tuple):
        kind = "i1" if returns == BOOL else text_of(returns)
        end = "ret void" if returns is None else f"ret {kind} %r"
        lines += [f"  {'' if returns is None else '%r = '}{call}", f"  {end}"]
        kind = f"zeroext {kind}" if returns == BOOL else kind
        head = f"define {kind} {name}({', '.join(arguments)})"
        return "\n".join([f"{head} nounwind {{", *lines, "}"])
    lines.append(f"  %r = {call}")
    at = 0
    for k, kind in enumerate(returns):
        size = 1 if kind == BOOL else 8
        at = math.ceil(at / size) * size
        lines += [
            f"  %r{k} = extractvalue {text_of(returns)} %r, {k}",
            f"  %at{k} = getelementptr i8, ptr %results, i64 {at}",
        ]
        if kind == BOOL:
            lines.append(f"  %byte{k} = zext i1 %r{k} to i8")
        stored = f"i8 %byte{k}" if kind == BOOL else f"{kind} %r{k}"
        lines.append(f"  store {stored}, ptr %at{k}")
        at += size
    head = f"define void {name}({', '.join([*arguments, 'ptr %results'])})"
    return "\n".join([f"{head} nounwind {{", *lines, "  ret void", "}"])
