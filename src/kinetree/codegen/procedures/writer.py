"""A procedure and the smaller ones that it calls as LLVM's text: statements, variables, module.

Every variable has a place on the stack, which LLVM puts into registers. The types of variables are
those of all values assigned to them: where one turns out to be wider, the procedure is written
again.

Tags of TBAA say what cannot overlap: numbers of arrays of floats, of arrays of ints, each field of
each record, and numbers of arrays of records that are ``apart``. A procedure that is put in place
of a call is written once for each choice of such arrays. Addresses in records do not change while a
procedure runs.
"""

import ast
import copy
import math
from collections.abc import Mapping
from typing import Any

from kinetree.codegen.procedures.language import (
    BOOL,
    DATA,
    ArrayType,
    builtin,
    is_record,
    spell,
)
from kinetree.codegen.procedures.text import (
    RANK,
    Number,
    Pointed,
    Pointer,
    Small,
    literal,
    strides_of,
    text_of,
)
from kinetree.codegen.procedures.turns import Turns


class WiderError(Exception):
    """A variable turned out to have a wider type than its first value, or arrays of any field."""


def write(procedure, module, name="", of=()) -> str:
    """LLVM IR of a procedure's function.

    Args:
        procedure: which is written.
        module: gives names of others, tags and constants.
        name: of the function, if it is not the usual one.
        of: for each argument the field whose numbers it has, or an empty text.
    """
    types: dict[str, str] = {}
    widened: dict[str, int] = {}
    several: set[str] = set()
    while True:
        try:
            return _Writer(procedure, module, types, widened, several).function(name, of)
        except WiderError:
            continue


_NARROW = ' "min-legal-vector-width"="256" "prefer-vector-width"="256"'
"""Attributes without which LLVM takes vectors of 512 bits here and there, as in what is left of a
loop. Some processors of x86-64 then lower their frequency for a millisecond, for all that runs."""

_AT = ".at"  # counts the numbers of parts of arrays: no variable has such a name


class _OneNumber(ast.NodeTransformer):
    """Puts numbers in place of parts of arrays, given the index of each."""

    def __init__(self, index):
        self.index = index

    def visit_Slice(self, part):
        """Replace a slice in a syntax tree by the index of one number of it."""
        return self.index.get(ast.unparse(part), part)


class _Writer(Turns):
    def __init__(self, procedure, module, types, widened, several):
        super().__init__(procedure, module)
        self.types, self.widened = types, widened  # of variables; the lines that made them so
        self.several = several  # variables with arrays of several fields
        self.owned: set[str] = set()  # arrays that an expression made
        self.homes: dict[str, str] = {}  # places of arrays that are computed for variables
        self.loops: list[list] = []

    def function(self, own_name="", of=()) -> str:
        """LLVM IR of the procedure's function, its body included."""
        p, arguments = self.procedure, []
        for k, (name, kind) in enumerate(p.arguments):
            x = f"%arg_{name}"
            hint = ""
            if isinstance(kind, ArrayType):
                field = of[k] if of else ""
                self.names[name] = self.variable_pointed(
                    name, kind.element, kind.dims, strides_of(kind.dims), field
                )
                self.emit(f"store ptr {x}, ptr {self.names[name].at}")
                hint = " noundef align 8"
            elif is_record(kind):
                self.names[name] = Pointer(self.stack("ptr", name), kind)
                self.emit(f"store ptr {x}, ptr {self.names[name].at}")
                hint = f" noundef nonnull align 8 dereferenceable({max(self.size_of(kind), 8)})"
            else:
                wide = self.wider(name, kind)
                self.names[name] = Number(self.stack(wide, name), wide)
                self.emit(
                    f"store {wide} {self.cast(Number(x, kind), wide)}, ptr {self.names[name].x}"
                )
            arguments.append(f"{text_of(kind)}{hint} {x}")
        self.body(p.tree.body)
        if not self.done:
            if p.returns is not None:
                raise self.fail(
                    f"it returns {spell(p.returns)}, but may end without a return",
                    p.tree.body[-1],
                )
            self.emit("ret void")
        inline = {True: " alwaysinline", False: " noinline", None: ""}[p.inline]
        inline += " convergent" if self.module.lanes > 1 else ""
        inline += _NARROW if self.module.at_once else ""
        link = "" if p is self.module.head else "internal "
        own_name = own_name or self.module.name(p)
        head = f"define {link}{text_of(p.returns)} {own_name}({', '.join(arguments)})"
        return "\n".join([f"{head} nounwind{inline} {{", "entry:", *self.entry, *self.lines, "}"])

    def variable_pointed(self, name, element, dims, strides, of=""):
        """Array variable whose pointer is on the stack, as assignments may redirect it."""
        of = "" if name in self.several else of
        return Pointed(self.stack("ptr", name), element, dims, strides, of)

    def wider(self, name, kind):
        """Type of a variable for all its values; WiderError starts over if it became wider."""
        known = self.types.get(name)
        if known is None or RANK[kind] > RANK[known]:
            self.types[name] = kind
            self.widened[name] = self.line(self.node)
            if known is not None and name in self.names:
                raise WiderError
        return self.types[name]

    def bind(self, name, value, source=None):
        """Write LLVM IR for the assignment of a value to a variable."""
        known = self.names.get(name)
        if isinstance(value, Number):
            if known is not None and not isinstance(known, Number):
                raise self.fail(f"{name} was {spell(known.kind)} and becomes a number: two names")
            kind = self.wider(name, value.kind)
            if known is None:
                known = self.names[name] = Number(self.stack(kind, name), kind)
            self.emit(f"store {kind} {self.cast(value, kind)}, ptr {known.x}")
            return
        if isinstance(value, Pointer):
            if known is None:
                known = self.names[name] = Pointer(self.stack("ptr", name), value.kind)
            if known.kind is not value.kind:
                raise self.fail(f"{name} was {spell(known.kind)} and becomes {spell(value.kind)}")
            self.emit(f"store ptr {value.at}, ptr {known.at}")
            return
        if isinstance(value, tuple) or value is None:
            raise self.fail(f"{name} cannot be {'nothing' if value is None else 'a tuple'}")
        is_copy = source is not None and source in self.owned
        if is_copy:
            changed = [x for x in (name, source) if x in self.procedure.changed]
            if changed:
                raise self.fail(
                    f"{name} = {source} gives one array two names, and {changed[0]} is changed "
                    f"in place: make an array by local() and copy, {name}[:] = {source}"
                )
            value = self.small(value)
        fresh = isinstance(value, Small)
        dims = value.dims
        strides = strides_of(dims) if fresh else value.strides
        if known is None:
            of = "" if fresh else value.of
            known = self.names[name] = self.variable_pointed(name, value.element, dims, strides, of)
        if not isinstance(known, Pointed) or (known.element, known.dims, known.strides) != (
            value.element,
            dims,
            strides,
        ):
            raise self.fail(f"{name} was {spell(known.kind)} and becomes {value.kind}: two names")
        if known.of and (fresh or known.of != value.of):
            self.several.add(name)
            raise WiderError
        if fresh:
            self.owned.add(name)
            home = self.home(name, value.kind)
            self.store_all(Pointed(home, value.element, dims, strides), value)
            self.emit(f"store ptr {home}, ptr {known.at}")
        else:
            self.emit(f"store ptr {value.at}, ptr {known.at}")

    def home(self, name, kind):
        """Memory on the stack for an array that is computed for a variable, once for each name."""
        if name not in self.homes:
            self.homes[name] = self.array_on_stack(kind, name)
        return self.homes[name]

    def body(self, statements):
        """Write statements in order, up to a return."""
        for statement in statements:
            if self.done:
                return  # what follows a return is never run
            self.node = statement
            write = getattr(self, "s_" + type(statement).__name__, None)
            if write is None:
                raise self.fail(f"{type(statement).__name__} is not in the language of procedures")
            write(statement)

    def s_Pass(self, s):
        """Write nothing for ``pass``."""

    def s_Expr(self, s):
        """Write a statement that is an expression: a call for its effects, or a docstring."""
        if not isinstance(s.value, ast.Constant):  # a docstring
            self.any(s.value)

    def s_Return(self, s):
        """Write LLVM IR for ``return``, with the value in the annotated type."""
        wanted = self.procedure.returns
        if s.value is None:
            if wanted is not None:
                raise self.fail(f"it returns {spell(wanted)}, not nothing")
            self.emit("ret void")
        elif wanted is None:
            raise self.fail("it returns nothing: annotate what it returns, such as -> int")
        elif isinstance(wanted, tuple):
            parts = s.value.elts if isinstance(s.value, ast.Tuple) else None
            values = [self.number(e) for e in parts] if parts else self.any(s.value)
            if not isinstance(values, list | tuple) or len(values) != len(wanted):
                raise self.fail(f"it returns {spell(wanted)}")
            whole = "poison"
            for k, (value, kind) in enumerate(zip(values, wanted, strict=True)):
                x = self.exact(value, kind, "what it returns")
                whole = self.op(f"insertvalue {text_of(wanted)} {whole}, {kind} {x}, {k}")
            self.emit(f"ret {text_of(wanted)} {whole}")
        else:
            x = self.exact(self.number(s.value), wanted, "what it returns")
            self.emit(f"ret {wanted} {x}")
        self.done = True

    def s_AnnAssign(self, s):
        """Write an annotated assignment like a plain one; an annotation alone writes nothing."""
        if s.value is not None:
            self.s_Assign(ast.Assign([s.target], s.value))

    def s_Assign(self, s):
        """Write LLVM IR for an assignment to names, elements, fields or parts of arrays."""
        first = s.targets[0]
        if isinstance(first, ast.Subscript) and self.goes_over_parts(s):
            return
        if isinstance(first, ast.Tuple) and isinstance(s.value, ast.Tuple):
            if len(first.elts) != len(s.value.elts):
                raise self.fail(f"{len(s.value.elts)} values for {len(first.elts)} names")
            values = [self.own_value(e) for e in s.value.elts]
            for target, value, e in zip(first.elts, values, s.value.elts, strict=True):
                self.assign(target, value, e)
            return
        if isinstance(first, ast.Tuple) and isinstance(s.value, ast.IfExp):  # of two tuples
            both: Any = [[ast.Assign(s.targets, each)] for each in (s.value.body, s.value.orelse)]
            self.s_If(ast.If(s.value.test, *both))
            return
        if isinstance(first, ast.Tuple) and self.calls_local(s.value):
            self.several_arrays(first.elts, s.value)
            return
        value = self.any(s.value)
        for target in s.targets:
            if isinstance(target, ast.Tuple):
                if not isinstance(value, tuple) or len(value) != len(target.elts):
                    raise self.fail("the number of names is not that of the values")
                for each, x in zip(target.elts, value, strict=True):
                    self.assign(each, x)
            else:
                self.assign(target, value, s.value)

    def goes_over_parts(self, s):
        """Write an assignment between slices with variable bounds as a loop; False if it is none.

        All parts have the same bounds, or are ``a[:n]`` and ``b[i : i + n]``.
        """
        slices: list[Any] = [x for x in ast.walk(s) if isinstance(x, ast.Slice)]
        parts = [x for x in slices if not self.is_constant(x)]
        if not parts:
            return False
        base = next((x for x in parts if x.lower is None), parts[0])
        index: dict[str, ast.expr] = {ast.unparse(base): ast.Name(_AT)}
        for x in parts:
            if (text := ast.unparse(x)) not in index:
                start: Any = x.lower if base.lower is None else None
                end = start and f"{ast.unparse(start)} + {ast.unparse(base.upper)}"
                if ast.unparse(x.upper) != end:
                    raise self.fail(f"[{text}] may be longer than [{ast.unparse(base)}]")
                index[text] = ast.BinOp(start, ast.Add(), ast.Name(_AT))
        ends = [e for e in (base.lower, base.upper) if e is not None]
        one = _OneNumber(index).visit(copy.deepcopy(s))
        loop = ast.For(ast.Name(_AT), ast.Call(ast.Name("range"), ends, []), [one], [])
        self.s_For(ast.fix_missing_locations(ast.copy_location(loop, s)))
        return True

    def is_constant(self, part):
        """Whether the bounds of a slice are constant."""
        ends = [e for e in (part.lower, part.upper) if e is not None]
        whole = part.upper is None or part.step is not None
        return whole or all(isinstance(self.static(e), int) for e in ends)

    def calls_local(self, e):
        """Whether an expression is a call of ``local``."""
        name = e.func.id if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) else ""
        return builtin(self.procedure.find(name)) == "local"

    def several_arrays(self, targets, e):
        """Write LLVM IR for ``a, b = local("float", 2, 3)``: a separate array for each name."""
        element, count, *dims = e.args
        if self.static(count) != len(targets):
            raise self.fail(f"{ast.unparse(e)} for {len(targets)} names")
        for target in targets:
            self.assign(target, self.any(ast.Call(e.func, [element, *dims], e.keywords)))

    def own_value(self, e):
        """Value of an expression; arrays that may be reassigned are copied to registers first."""
        is_own = isinstance(e, ast.Name) and e.id in self.owned
        return self.small(self.any(e)) if is_own else self.any(e)

    def assign(self, target, value, source=None):
        """Assign a value to a name, an attribute or an element."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, source.id if isinstance(source, ast.Name) else None)
        elif isinstance(target, ast.Attribute):
            at, kind, tag = self.field(target)
            if kind not in RANK:
                raise self.fail(
                    f"{target.attr} is {spell(kind)}: only Python assigns it; "
                    f"{target.attr}[:] = ... copies numbers"
                )
            self.put_field(at, kind, tag, value)
        elif isinstance(target, ast.Subscript):
            self.put(self.place(target), value)
        else:
            raise self.fail(f"cannot assign to {ast.unparse(target)}")

    def put_field(self, at, kind, tag, value):
        """Write LLVM IR for the store of a value into a field of a record."""
        x = self.exact(value, kind, "the field")
        if kind == BOOL:
            x, kind = self.op(f"zext i1 {x} to i8"), "i8"
        self.emit(f"store {kind} {x}, ptr {at}{tag}")

    def put(self, place, value):
        """Write LLVM IR for the store of a value into an array or one of its elements."""
        if isinstance(place, Pointed):
            self.store_all(place, value)
        else:
            at, element, of = place
            self.store(element, self.exact(value, element, "the array's number"), at, of)

    def s_AugAssign(self, s):
        """Write LLVM IR for an assignment such as ``x += y``."""
        target = s.target
        if isinstance(target, ast.Subscript) and self.goes_over_parts(s):
            return
        if isinstance(target, ast.Name):
            if target.id not in self.names:
                raise self.fail(f"{target.id} has no value yet")
            old = self.read(target.id)
            new = self.binary(s.op, old, self.any(s.value))
            if isinstance(old, Pointed):
                self.store_all(old, new)
            else:
                self.bind(target.id, new)
        elif isinstance(target, ast.Attribute):
            at, kind, tag = self.field(target)
            if isinstance(kind, ArrayType):
                old = self.e_Attribute(target)
                self.store_all(old, self.binary(s.op, old, self.any(s.value)))
            else:
                old = self.get_field(at, kind, tag)
                self.put_field(at, kind, tag, self.binary(s.op, old, self.any(s.value)))
        else:
            place = self.place(target)
            old = place if isinstance(place, Pointed) else self.load(place[1], place[0], place[2])
            self.put(place, self.binary(s.op, old, self.any(s.value)))

    def s_If(self, s):
        """Write LLVM IR for both branches of ``if`` and where they meet."""
        yes, no, end = self.label(), self.label(), self.label()
        self.branch(self.test(s.test), yes, no)
        reached = False
        for label, statements in ((yes, s.body), (no, s.orelse)):
            self.start(label)
            self.body(statements)
            reached = reached or not self.done
            self.jump(end)
        if reached:
            self.start(end)

    def s_While(self, s):
        """Write LLVM IR for a ``while`` loop."""
        if s.orelse:
            raise self.fail("else after a loop is not in the language of procedures")
        head, body, end = self.label(), self.label(), self.label()
        forever = isinstance(s.test, ast.Constant) and bool(s.test.value)
        self.jump(head)
        self.start(head)
        if forever:
            self.jump(body)
        else:
            self.branch(self.test(s.test), body, end)
        left = self.loop(body, head, end, s.body)
        if not forever or left:
            self.start(end)

    def loop(self, body, again, end, statements):
        """Write LLVM IR for the body of a loop; whether it contains a ``break``."""
        self.loops.append([again, end, False])
        self.start(body)
        self.body(statements)
        self.jump(again)
        return self.loops.pop()[2]

    def s_Break(self, s):
        """Write LLVM IR for ``break``: a jump behind the innermost loop."""
        self.loops[-1][2] = True
        self.jump(self.loops[-1][1])

    def s_Continue(self, s):
        """Write LLVM IR for ``continue``: a jump to the next iteration of the innermost loop."""
        self.jump(self.loops[-1][0])


_HEAD = "; procedures of kinetree, optimised by LLVM"


class _Module:
    single = False
    several_turns = True
    constants: Mapping[tuple[str, str], int] = {}

    def __init__(self, head, at_once=True, lanes=1):
        self.head, self.at_once, self.lanes = head, at_once, lanes
        self.names = {p: f"@{p.name}.{n}" for n, p in enumerate(head.members)}
        self.names[head] = f'@"{head.symbol}"'
        self.declared: dict[str, None] = {}
        self.tables: dict[tuple, str] = {}
        self.metadata = ["", '!"procedures"']  # !0 is empty
        self.known: dict[str, int] = {}
        self.variants: dict[tuple, str] = {}

    def variant(self, procedure, of):
        """The function of a procedure for arrays of some fields, if it is put in place of calls."""
        if procedure.inline is not True or procedure not in self.names:
            return ""
        found = f"{self.names[procedure]}.{len(self.variants)}"
        return self.variants.setdefault((procedure, of), found)

    def name(self, procedure):
        """LLVM name of a procedure, declared if it is in another module."""
        if procedure not in self.names:
            self.names[procedure] = f'@"{procedure.symbol}"'
            kinds = ", ".join(text_of(kind) for _, kind in procedure.arguments)
            returns = text_of(procedure.returns)
            self.needs(f"declare {returns} {self.names[procedure]}({kinds}) nounwind")
        return self.names[procedure]

    def needs(self, declaration):
        """Declare an intrinsic or C function in the module, once."""
        self.declared[declaration] = None

    def meta(self, text):
        """Number of a metadata node with this text, made once."""
        if text not in self.known:
            self.known[text] = len(self.metadata)
            self.metadata.append(text)
        return f"!{self.known[text]}"

    def unroll(self):
        """Metadata node for a loop that is to be unrolled fully."""
        full = self.meta('!"llvm.loop.unroll.full"')
        self.metadata.append(f"!{len(self.metadata)}, {full}")
        return f"!{len(self.metadata) - 1}"

    def _tag(self, name):
        """Metadata of a type tag (TBAA) by name, for alias analysis."""
        kind = self.meta(f'!"{name}", !1, i64 0')
        return f", !tbaa {self.meta(f'{kind}, {kind}, i64 0')}"

    def tag(self, element):
        """Metadata of the alias tag of array elements of a type."""
        return self._tag(f"{element} of arrays")

    def tag_of(self, element, of):
        """The tag of numbers of arrays of a field, which lie apart from those of others."""
        any_array = self.meta(f'!"{element} of arrays", !1, i64 0')
        kind = self.meta(f'!"{of}, {element}", {any_array}, i64 0')
        return f", !tbaa {self.meta(f'{kind}, {kind}, i64 0')}"

    def field_tag(self, kind, field):
        """Metadata of the alias tag of a record's field."""
        return self._tag(f"{kind.__name__}.{field}")

    def table(self, array, element):
        """Name of a constant array in the LLVM module, each made once."""
        key = (element, array.tobytes())
        if key not in self.tables:
            self.tables[key] = f"@table.{len(self.tables)}"
            numbers = ", ".join(f"{element} {literal(x).x}" for x in array.reshape(-1).tolist())
            self.needs(
                f"{self.tables[key]} = private unnamed_addr constant "
                f"[{array.size} x {element}] [{numbers}], align 16"
            )
        return self.tables[key]


def module_text(procedure, for_python=True, lanes=1, constants=None) -> str:
    """LLVM IR of a module with a procedure, those compiled with it, and an entry for Python.

    Without, numbers of arrays may be anywhere (see ``device.interleaved``), and are written one by
    one. Several ``lanes`` share loops over them. ``constants`` are numbers of records, by class and
    field, which are the same in all calls.
    """
    module = _Module(procedure, for_python, lanes)
    module.constants = constants or {}
    functions = [write(p, module) for p in procedure.members]
    written: set[str] = set()
    while more := {key: name for key, name in module.variants.items() if name not in written}:
        functions += [write(p, module, name, of) for (p, of), name in more.items()]
        written |= set(more.values())
    entry = _entry(procedure, module) if for_python else ""
    nodes = [
        f"!{n} = {'distinct ' * text.startswith(f'!{n},')}!{{{text}}}"
        for n, text in enumerate(module.metadata)
    ]
    return "\n\n".join([_HEAD, *module.declared, *functions, entry, "\n".join(nodes)]) + "\n"


def _entry(procedure, module):
    """LLVM IR of the C function that Python calls; several results are returned through memory."""
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
