"""One procedure as LLVM's text.

Every variable has a place on the stack, which LLVM puts into registers. The types of variables are
those of all values assigned to them: where one turns out to be wider, the procedure is written
again. Arithmetic on small arrays is unrolled. Multiplications and additions may be contracted;
nothing else about the order of operations is left open.
"""

import ast
import math
import operator
from typing import Any

import numpy as np

from kinetree.codegen.procedures.arrays import (
    Number,
    Pointed,
    Pointer,
    Small,
    literal,
    places,
    strides_of,
)
from kinetree.codegen.procedures.language import (
    BOOL,
    FLOAT,
    INT,
    SPELLED,
    ArrayType,
    builtin,
    is_record,
    spelled,
)
from kinetree.errors import TraceError

_FLOATS = {"Add": "fadd", "Sub": "fsub", "Mult": "fmul", "Div": "fdiv"}
_INTS = {"Add": "add nsw", "Sub": "sub nsw", "Mult": "mul", "BitAnd": "and", "BitOr": "or",
         "BitXor": "xor", "LShift": "shl", "RShift": "ashr"}  # fmt: skip
_STATIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
           ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
           ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
           ast.BitOr: operator.or_, ast.BitAnd: operator.and_}  # fmt: skip
_LIBRARY = ("sin", "cos", "tan", "atan2", "asin", "acos", "atan", "exp", "log", "hypot")
_MOST = 1300  # numbers or products of one unrolled expression
_RANK = {BOOL: 0, INT: 1, FLOAT: 2}


class WiderError(Exception):
    """A variable turned out to have a wider type than its first value."""


def text_of(kind) -> str:
    """A type in LLVM's text."""
    if kind is None:
        return "void"
    if isinstance(kind, tuple):
        return "{ " + ", ".join(map(text_of, kind)) + " }"
    return kind if isinstance(kind, str) else "ptr"


def write(procedure, module) -> str:
    """The function of a procedure; ``module`` gives names of others, tags and constants."""
    types: dict[str, str] = {}
    widened: dict[str, int] = {}
    while True:
        try:
            return _Writer(procedure, module, types, widened).function()
        except WiderError:
            continue


class _Writer:
    def __init__(self, procedure, module, types, widened):
        self.procedure, self.module = procedure, module
        self.types, self.widened = types, widened  # of variables; the lines that made them so
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.count, self.done, self.node = 0, False, procedure.tree
        self.names: dict[str, Any] = {}  # variables: Number (at a place), Pointed, Pointer
        self.owned: set[str] = set()  # arrays that an expression made
        self.loops: list[list] = []

    # --- text -----------------------------------------------------------------------------------

    def new(self, prefix="t"):
        self.count += 1
        return f"%{prefix}.{self.count}"

    def emit(self, line):
        self.lines.append(f"  {line}")

    def op(self, text):
        name = self.new()
        self.emit(f"{name} = {text}")
        return name

    def label(self):
        self.count += 1
        return f"b{self.count}"

    def start(self, label):
        self.lines.append(f"{label}:")
        self.done = False

    def jump(self, label):
        if not self.done:
            self.emit(f"br label %{label}")
            self.done = True

    def branch(self, test, yes, no):
        self.emit(f"br i1 {test}, label %{yes}, label %{no}")
        self.done = True

    def stack(self, kind, prefix="s", align=8):
        name = self.new(prefix)
        self.entry.append(f"  {name} = alloca {kind}, align {align}")
        return name

    def fail(self, message, node=None):
        node = node if node is not None and hasattr(node, "lineno") else self.node
        p = self.procedure
        return TraceError(f"procedure {p.name}, {p.file}, line {self.line(node)}: {message}")

    def line(self, node):
        return self.procedure.first_line + getattr(node, "lineno", 1) - 1

    def function(self) -> str:
        p, arguments = self.procedure, []
        for name, kind in p.arguments:
            x = f"%arg_{name}"
            hint = ""
            if isinstance(kind, ArrayType):
                self.names[name] = self.variable_pointed(
                    name, kind.element, kind.dims, strides_of(kind.dims)
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
                    f"it returns {spelled(p.returns)}, but may end without a return",
                    p.tree.body[-1],
                )
            self.emit("ret void")
        inline = {True: " alwaysinline", False: " noinline", None: ""}[p.inline]
        link = "" if p is self.module.head else "internal "
        head = f"define {link}{text_of(p.returns)} {self.module.name(p)}({', '.join(arguments)})"
        return "\n".join([f"{head} nounwind{inline} {{", "entry:", *self.entry, *self.lines, "}"])

    def size_of(self, kind):
        import ctypes

        return ctypes.sizeof(kind)

    # --- variables ------------------------------------------------------------------------------

    def variable_pointed(self, name, element, dims, strides):
        return Pointed(self.stack("ptr", name), element, dims, strides)

    def wider(self, name, kind):
        """The type of a variable, given one of its values."""
        known = self.types.get(name)
        if known is None or _RANK[kind] > _RANK[known]:
            self.types[name] = kind
            self.widened[name] = self.line(self.node)
            if known is not None and name in self.names:
                raise WiderError
        return self.types[name]

    def read(self, name):
        """The value of a variable."""
        variable = self.names[name]
        if isinstance(variable, Number):
            return Number(self.op(f"load {variable.kind}, ptr {variable.x}"), variable.kind)
        at = self.op(f"load ptr, ptr {variable.at}")
        if isinstance(variable, Pointer):
            return Pointer(at, variable.kind)
        return Pointed(at, variable.element, variable.dims, variable.strides)

    def bind(self, name, value, source=None):
        """Give a variable a value."""
        known = self.names.get(name)
        if isinstance(value, Number):
            if known is not None and not isinstance(known, Number):
                raise self.fail(f"{name} was {spelled(known.kind)} and becomes a number: two names")
            kind = self.wider(name, value.kind)
            if known is None:
                known = self.names[name] = Number(self.stack(kind, name), kind)
            self.emit(f"store {kind} {self.cast(value, kind)}, ptr {known.x}")
            return
        if isinstance(value, Pointer):
            if known is None:
                known = self.names[name] = Pointer(self.stack("ptr", name), value.kind)
            if known.kind is not value.kind:
                raise self.fail(
                    f"{name} was {spelled(known.kind)} and becomes {spelled(value.kind)}"
                )
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
            known = self.names[name] = self.variable_pointed(name, value.element, dims, strides)
        if not isinstance(known, Pointed) or (known.element, known.dims, known.strides) != (
            value.element,
            dims,
            strides,
        ):
            raise self.fail(f"{name} was {spelled(known.kind)} and becomes {value.kind}: two names")
        if fresh:
            self.owned.add(name)
            home = self.home(name, value.kind)
            self.store_all(Pointed(home, value.element, dims, strides), value)
            self.emit(f"store ptr {home}, ptr {known.at}")
        else:
            self.emit(f"store ptr {value.at}, ptr {known.at}")

    def home(self, name, kind):
        """The place of arrays that are computed for a variable."""
        homes = self.__dict__.setdefault("homes", {})
        if name not in homes:
            homes[name] = self.array_on_stack(kind, name)
        return homes[name]

    def array_on_stack(self, kind, prefix="a"):
        return self.stack(f"[{math.prod(kind.dims)} x {kind.element}]", prefix, 16)

    # --- memory ---------------------------------------------------------------------------------

    def load(self, element, at):
        return Number(self.op(f"load {element}, ptr {at}{self.module.tag(element)}"), element)

    def store(self, element, x, at):
        self.emit(f"store {element} {x}, ptr {at}{self.module.tag(element)}")

    def number_at(self, array, index):
        """Address of the number at a constant index."""
        offset = sum(i * s for i, s in zip(index, array.strides, strict=True))
        if not offset:
            return array.at
        return self.op(f"getelementptr inbounds {array.element}, ptr {array.at}, i64 {offset}")

    def small(self, value) -> Small:
        """The numbers of an array of fixed size."""
        if isinstance(value, Small):
            return value
        if not isinstance(value, Pointed) or None in value.dims:
            raise self.fail(f"this needs an array of fixed size, got {spelled(value.kind)}")
        self.limit(math.prod(value.dims))
        numbers = [self.load(value.element, self.number_at(value, k)).x for k in places(value.dims)]
        return Small(value.element, value.dims, tuple(numbers))

    def limit(self, count):
        if count > _MOST:
            raise self.fail(f"{count} operations in one expression on arrays: write a loop")

    def pointed(self, value) -> Pointed:
        """An array in memory."""
        if isinstance(value, Pointed):
            return value
        strides = strides_of(value.dims)
        made = Pointed(self.array_on_stack(value.kind), value.element, value.dims, strides)
        self.store_all(made, value)
        return made

    def store_all(self, array, value):
        """Copy a small array, or a number, into one of fixed size."""
        if None in array.dims:
            raise self.fail(f"only arrays of fixed size can be assigned whole, not {array.kind}")
        if isinstance(value, Number):
            x = self.cast(value, array.element)
            numbers = [x] * math.prod(array.dims)
        else:
            value = self.small(value)
            if value.dims != array.dims:
                raise self.fail(f"{value.kind} cannot be assigned to {array.kind}")
            numbers = [self.cast(Number(x, value.element), array.element) for x in value.numbers]
        self.limit(len(numbers))
        for index, x in zip(places(array.dims), numbers, strict=True):
            self.store(array.element, x, self.number_at(array, index))

    # --- statements -----------------------------------------------------------------------------

    def body(self, statements):
        for statement in statements:
            if self.done:
                return  # what follows a return is never run
            self.node = statement
            write = getattr(self, "s_" + type(statement).__name__, None)
            if write is None:
                raise self.fail(f"{type(statement).__name__} is not in the language of procedures")
            write(statement)

    def s_Pass(self, s):
        pass

    def s_Expr(self, s):
        if not isinstance(s.value, ast.Constant):  # a docstring
            self.any(s.value)

    def s_Return(self, s):
        wanted = self.procedure.returns
        if s.value is None:
            if wanted is not None:
                raise self.fail(f"it returns {spelled(wanted)}, not nothing")
            self.emit("ret void")
        elif wanted is None:
            raise self.fail("it returns nothing: annotate what it returns, such as -> int")
        elif isinstance(wanted, tuple):
            parts = s.value.elts if isinstance(s.value, ast.Tuple) else None
            values = [self.number(e) for e in parts] if parts else self.any(s.value)
            if not isinstance(values, list | tuple) or len(values) != len(wanted):
                raise self.fail(f"it returns {spelled(wanted)}")
            whole = "poison"
            for k, (value, kind) in enumerate(zip(values, wanted, strict=True)):
                x = self.exact(value, kind, "what it returns")
                whole = self.op(f"insertvalue {text_of(wanted)} {whole}, {kind} {x}, {k}")
            self.emit(f"ret {text_of(wanted)} {whole}")
        else:
            x = self.exact(self.number(s.value), wanted, "what it returns")
            self.emit(f"ret {wanted} {x}")
        self.done = True

    def exact(self, value, kind, what):
        """A number as a type that must not lose anything."""
        if not isinstance(value, Number) or not isinstance(kind, str):
            raise self.fail(
                f"{what} is {spelled(kind)}, got {spelled(getattr(value, 'kind', None))}"
            )
        if _RANK[value.kind] > _RANK[kind]:
            raise self.fail(f"{what} is {spelled(kind)}, got {spelled(value.kind)}: write int(...)")
        return self.cast(value, kind)

    def s_AnnAssign(self, s):
        if s.value is not None:
            self.s_Assign(ast.Assign([s.target], s.value))

    def s_Assign(self, s):
        first = s.targets[0]
        if isinstance(first, ast.Tuple) and isinstance(s.value, ast.Tuple):
            if len(first.elts) != len(s.value.elts):
                raise self.fail(f"{len(s.value.elts)} values for {len(first.elts)} names")
            values = [self.taken(e) for e in s.value.elts]
            for target, value, e in zip(first.elts, values, s.value.elts, strict=True):
                self.assign(target, value, e)
            return
        if isinstance(first, ast.Tuple) and isinstance(s.value, ast.IfExp):  # of two tuples
            both = [[ast.Assign(s.targets, each)] for each in (s.value.body, s.value.orelse)]
            self.s_If(ast.If(s.value.test, *both))
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

    def taken(self, e):
        """The value of an expression, which assignments to others do not change any more."""
        is_own = isinstance(e, ast.Name) and e.id in self.owned
        return self.small(self.any(e)) if is_own else self.any(e)

    def assign(self, target, value, source=None):
        if isinstance(target, ast.Name):
            self.bind(target.id, value, source.id if isinstance(source, ast.Name) else None)
        elif isinstance(target, ast.Attribute):
            at, kind, tag = self.field(target)
            if kind not in _RANK:
                raise self.fail(f"{target.attr} is {spelled(kind)}: only Python assigns it; "
                                f"{target.attr}[:] = ... copies numbers")  # fmt: skip
            self.put_field(at, kind, tag, value)
        elif isinstance(target, ast.Subscript):
            self.put(self.place(target), value)
        else:
            raise self.fail(f"cannot assign to {ast.unparse(target)}")

    def put_field(self, at, kind, tag, value):
        x = self.exact(value, kind, "the field")
        if kind == BOOL:
            x, kind = self.op(f"zext i1 {x} to i8"), "i8"
        self.emit(f"store {kind} {x}, ptr {at}{tag}")

    def put(self, place, value):
        if isinstance(place, Pointed):
            self.store_all(place, value)
        else:
            at, element = place
            self.store(element, self.exact(value, element, "the array's number"), at)

    def s_AugAssign(self, s):
        target = s.target
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
            old = place if isinstance(place, Pointed) else self.load(place[1], place[0])
            self.put(place, self.binary(s.op, old, self.any(s.value)))

    def s_If(self, s):
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
        """The body of a loop; whether there is a ``break``."""
        self.loops.append([again, end, False])
        self.start(body)
        self.body(statements)
        self.jump(again)
        return self.loops.pop()[2]

    def s_For(self, s):
        call = s.iter
        if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "range"):
            raise self.fail("for goes over range(...) in the language of procedures")
        if s.orelse or not isinstance(s.target, ast.Name):
            raise self.fail("for needs one name, and has no else, in the language of procedures")
        bounds = [self.integer(e) for e in call.args]
        step = self.static(call.args[2]) if len(bounds) == 3 else 1
        if not isinstance(step, int) or not step:
            raise self.fail("the step of range must be a constant")
        low, high = ("0", bounds[0]) if len(bounds) == 1 else bounds[:2]
        counter = self.stack("i64", "k")
        self.emit(f"store i64 {low}, ptr {counter}")
        head, body, again, end = (self.label() for _ in range(4))
        self.jump(head)
        self.start(head)
        i = self.op(f"load i64, ptr {counter}")
        self.branch(self.op(f"icmp {'slt' if step > 0 else 'sgt'} i64 {i}, {high}"), body, end)
        self.start(body)
        self.bind(s.target.id, Number(i, INT))
        first = self.label()
        self.jump(first)
        self.loop(first, again, end, s.body)
        self.start(again)
        more = self.op(f"add nsw i64 {self.op(f'load i64, ptr {counter}')}, {step}")
        self.emit(f"store i64 {more}, ptr {counter}")
        self.jump(head)
        self.start(end)

    def s_Break(self, s):
        self.loops[-1][2] = True
        self.jump(self.loops[-1][1])

    def s_Continue(self, s):
        self.jump(self.loops[-1][0])

    # --- expressions ----------------------------------------------------------------------------

    def any(self, e) -> Any:
        """The value of an expression."""
        constant = self.static(e)
        if constant is not None:
            return literal(constant)
        write = getattr(self, "e_" + type(e).__name__, None)
        if write is None:
            raise self.fail(
                f"{type(e).__name__} ({ast.unparse(e)}) is not in the language of procedures", e
            )
        return write(e)

    def number(self, e) -> Number:
        value = self.any(e)
        if not isinstance(value, Number):
            raise self.fail(f"{ast.unparse(e)} must be a number, is {_what(value)}", e)
        return value

    def integer(self, e) -> str:
        value = self.number(e)
        if value.kind == FLOAT:
            raise self.fail(f"{ast.unparse(e)} must be an int, is a float{self.reason(e)}", e)
        return self.cast(value, INT)

    def reason(self, e):
        """Why a variable is a float."""
        line = self.widened.get(e.id) if isinstance(e, ast.Name) else None
        return "" if line is None else f", as line {line} assigns one: use two names"

    def static(self, e):
        """The number that an expression always is, or None."""
        if isinstance(e, ast.Constant):
            return e.value if isinstance(e.value, bool | int | float) else None
        if isinstance(e, ast.Name):
            if e.id in self.names or e.id in self.procedure.assigned:
                return None
            return _number(self.procedure.find(e.id))
        if isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name):
            found = self.procedure.module(e.value.id)
            return None if found is None else _number(getattr(found, e.attr, None))
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            x = self.static(e.operand)
            return None if x is None else -x
        if isinstance(e, ast.BinOp) and type(e.op) in _STATIC:
            x = self.static(e.left)
            y = None if x is None else self.static(e.right)
            return None if x is None or y is None else _STATIC[type(e.op)](x, y)
        return None

    def test(self, e) -> str:
        """A condition."""
        if isinstance(e, ast.BoolOp):
            return self.e_BoolOp(e, strict=False).x
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not):
            return self.op(f"xor i1 {self.test(e.operand)}, true")
        value = self.number(e)
        if value.kind == BOOL:
            return value.x
        test = "icmp ne" if value.kind == INT else "fcmp une"
        zero = literal(0 if value.kind == INT else 0.0).x
        return self.op(f"{test} {value.kind} {value.x}, {zero}")

    def cast(self, value, kind) -> str:
        """A number as another type."""
        x, known = value.x, value.kind
        if known == kind:
            return x
        if known == INT and kind == FLOAT:
            whole = value.literal
            return (
                literal(float(whole)).x
                if whole is not None
                else self.op(f"sitofp i64 {x} to double")
            )
        if known == FLOAT and kind == INT:
            return self.whole(x)
        if known == BOOL:
            y = {"true": "1", "false": "0"}.get(x) or self.op(f"zext i1 {x} to i64")
            return self.cast(Number(y, INT), kind)
        raise self.fail(f"{spelled(known)} is not {spelled(kind)}")

    def whole(self, x):
        """A float without its fraction; the nearest int where it is larger than any."""
        self.module.needs("declare i64 @llvm.fptosi.sat.i64.f64(double)")
        return self.op(f"call i64 @llvm.fptosi.sat.i64.f64(double {x})")

    def e_Name(self, e):
        if e.id in self.names:
            return self.read(e.id)
        if e.id in self.procedure.assigned:
            raise self.fail(f"{e.id} has no value yet", e)
        found = self.procedure.find(e.id)
        if isinstance(found, tuple | np.ndarray):
            return self.table(e.id, found)
        if found is None:
            raise self.fail(f"{e.id} is not defined", e)
        raise self.fail(
            f"{e.id} is {type(found).__name__}, which is not in the language of procedures", e
        )

    def table(self, name, found):
        """A constant array of the module."""
        array = np.asarray(found)
        if array.dtype.kind not in "if" or not array.ndim:
            raise self.fail(f"{name} is not a constant array of numbers")
        element = FLOAT if array.dtype.kind == "f" else INT
        at = self.module.table(array.astype(ArrayType(element, ()).dtype), element)
        return Pointed(at, element, array.shape, strides_of(array.shape))

    def field(self, e):
        """Address, type and tag of a record's field."""
        owner = self.any(e.value)
        if not isinstance(owner, Pointer):
            raise self.fail(f"{ast.unparse(e)}: {_what(owner)} has no {e.attr}", e)
        kind = owner.kind.types.get(e.attr)
        if kind is None:
            raise self.fail(f"record {owner.kind.__name__} has no field {e.attr}", e)
        offset = owner.kind.offsets[e.attr]
        at = (
            self.op(f"getelementptr inbounds i8, ptr {owner.at}, i64 {offset}")
            if offset
            else owner.at
        )
        return at, kind, self.module.field_tag(owner.kind, e.attr)

    def get_field(self, at, kind, tag):
        if kind == BOOL:
            return Number(self.op(f"trunc i8 {self.op(f'load i8, ptr {at}{tag}')} to i1"), BOOL)
        return Number(self.op(f"load {kind}, ptr {at}{tag}"), kind)

    def e_Attribute(self, e):
        if e.attr == "T":
            value = self.any(e.value)
            if isinstance(value, Small) and len(value.dims) == 2:
                m, n = value.dims
                numbers = tuple(value.numbers[i * n + j] for j in range(n) for i in range(m))
                return Small(value.element, (n, m), numbers)
            if isinstance(value, Pointed) and len(value.dims) == 2 and None not in value.dims:
                return Pointed(value.at, value.element, value.dims[::-1], value.strides[::-1])
            raise self.fail(f".T is of small matrices, not of {_what(value)}", e)
        at, kind, tag = self.field(e)
        if kind in _RANK:
            return self.get_field(at, kind, tag)
        more = ", !nonnull !0" if is_record(kind) else ""
        if is_record(kind):
            more += f", !dereferenceable {self.module.meta(f'i64 {max(self.size_of(kind), 8)}')}"
        x = self.op(f"load ptr, ptr {at}{tag}, !invariant.load !0{more}")
        if is_record(kind):
            return Pointer(x, kind)
        return Pointed(x, kind.element, kind.dims, strides_of(kind.dims))

    # --- indexing -------------------------------------------------------------------------------

    def place(self, e):
        """What a subscript means: a part of an array, or address and type of a number."""
        array = self.any(e.value)
        if isinstance(array, Small):
            array = self.pointed(array)
        if not isinstance(array, Pointed):
            raise self.fail(f"{ast.unparse(e.value)} has no [...]: it is {_what(array)}", e)
        indices = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
        if len(indices) > len(array.dims):
            raise self.fail(f"{len(indices)} indices of {array.kind}", e)
        at, dims, strides, fixed, moving = array.at, [], [], 0, None
        for index, d, stride in zip(indices, array.dims, array.strides, strict=False):
            if isinstance(index, ast.Slice):
                low, count, step = self.part(index, d)
                fixed += low * stride
                dims.append(count)
                strides.append(stride * step)
                continue
            known = self.static(index)
            if isinstance(known, int) and not isinstance(known, bool):
                if known < 0:
                    if d is None:
                        raise self.fail("a negative index of an axis of any length", e)
                    known += d
                if d is not None and not 0 <= known < d:
                    raise self.fail(f"index {known} of an axis of length {d}", e)
                fixed += known * stride
                continue
            x = self.integer(index)
            term = x if stride == 1 else self.op(f"mul nsw i64 {x}, {stride}")
            moving = term if moving is None else self.op(f"add nsw i64 {moving}, {term}")
        if moving is not None:
            at = self.op(f"getelementptr inbounds {array.element}, ptr {at}, i64 {moving}")
        if fixed:
            at = self.op(f"getelementptr inbounds {array.element}, ptr {at}, i64 {fixed}")
        dims += array.dims[len(indices) :]
        strides += array.strides[len(indices) :]
        return (
            Pointed(at, array.element, tuple(dims), tuple(strides)) if dims else (at, array.element)
        )

    def part(self, index, d):
        """First, count and step of a constant slice."""
        ends = [
            None if x is None else self.static(x) for x in (index.lower, index.upper, index.step)
        ]
        for given, known in zip((index.lower, index.upper, index.step), ends, strict=True):
            if given is not None and not isinstance(known, int):
                raise self.fail("slices are constant; view(x, start, n) is a part at run time")
        if d is None:
            if ends != [None, None, None]:
                if ends[1] is None or min(x or 0 for x in ends) < 0:
                    raise self.fail(
                        "a slice of an axis of any length needs an end, or view(x, start)"
                    )
                d = ends[1]
            else:
                return 0, None, 1
        low, high, step = slice(*ends).indices(d)
        return low, len(range(low, high, step)), step

    def e_Subscript(self, e):
        value = self.any(e.value) if not isinstance(e.value, ast.Name | ast.Attribute) else None
        if isinstance(value, Small):
            known = self.static(e.slice)
            if isinstance(known, int) and len(value.dims) == 1:
                return Number(value.numbers[known], value.element)
        place = self.place(e)
        return place if isinstance(place, Pointed) else self.load(place[1], place[0])

    # --- arithmetic -----------------------------------------------------------------------------

    def e_BinOp(self, e):
        return self.binary(e.op, self.any(e.left), self.any(e.right))

    def binary(self, op, a, b):
        if isinstance(op, ast.MatMult):
            return self.product(a, b)
        if isinstance(a, Number) and isinstance(b, Number):
            return self.arithmetic(type(op).__name__, a, b)
        sides = [x if isinstance(x, Number) else self.small(x) for x in self.arrays(a, b)]
        shapes = {x.dims for x in sides if isinstance(x, Small)}
        if len(shapes) > 1:
            raise self.fail(f"arrays of different shapes: {sides[0].kind} and {sides[1].kind}")
        (dims,) = shapes
        self.limit(math.prod(dims))
        columns = [
            [Number(n, x.element) for n in x.numbers]
            if isinstance(x, Small)
            else [x] * math.prod(dims)
            for x in sides
        ]
        found = [self.arithmetic(type(op).__name__, x, y) for x, y in zip(*columns, strict=True)]
        return Small(found[0].kind, dims, tuple(n.x for n in found))

    def arrays(self, *values):
        for x in values:
            if not isinstance(x, Number | Small | Pointed):
                raise self.fail(f"arithmetic with {_what(x)}")
        return values

    def arithmetic(self, name, a, b):
        if name == "Pow":
            return self.power(a, b)
        if name == "Div" or FLOAT in (a.kind, b.kind):
            if name not in _FLOATS:
                raise self.fail(f"{name} of floats is not in the language of procedures")
            x, y = self.cast(a, FLOAT), self.cast(b, FLOAT)
            return Number(self.op(f"{_FLOATS[name]} contract double {x}, {y}"), FLOAT)
        if name in ("BitAnd", "BitOr", "BitXor") and (a.kind, b.kind) == (BOOL, BOOL):
            return Number(self.op(f"{_INTS[name]} i1 {a.x}, {b.x}"), BOOL)
        x, y = self.cast(a, INT), self.cast(b, INT)
        if name in ("FloorDiv", "Mod"):
            return Number(self.floor_division(name, x, y), INT)
        if name not in _INTS:
            raise self.fail(f"{name} is not in the language of procedures")
        return Number(self.op(f"{_INTS[name]} i64 {x}, {y}"), INT)

    def floor_division(self, name, x, y):
        divisor = Number(y, INT).literal
        if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
            if name == "Mod":
                return self.op(f"and i64 {x}, {divisor - 1}")
            return self.op(f"ashr i64 {x}, {divisor.bit_length() - 1}")
        rest = self.op(f"srem i64 {x}, {y}")
        some = self.op(f"icmp ne i64 {rest}, 0")
        signs = self.op(f"icmp slt i64 {self.op(f'xor i64 {rest}, {y}')}, 0")
        less = self.op(f"and i1 {some}, {signs}")
        if name == "Mod":
            return self.op(f"add i64 {rest}, {self.op(f'select i1 {less}, i64 {y}, i64 0')}")
        return self.op(
            f"sub i64 {self.op(f'sdiv i64 {x}, {y}')}, {self.op(f'zext i1 {less} to i64')}"
        )

    def power(self, a, b):
        n = b.literal
        if n is None or not 1 <= n <= 8:
            raise self.fail("a power has a constant exponent from 1 to 8")
        found = a
        for _ in range(n - 1):
            found = self.arithmetic("Mult", found, a)
        return found

    def product(self, a, b):
        a, b = self.small(a), self.small(b)
        left = a.dims if len(a.dims) == 2 else (1, *a.dims)
        right = b.dims if len(b.dims) == 2 else (*b.dims, 1)
        if len(left) != 2 or len(right) != 2 or left[1] != right[0]:
            raise self.fail(f"{a.kind} @ {b.kind}: the shapes do not fit")
        (m, k), (_, n) = left, right
        self.limit(m * k * n)
        found = []
        for i in range(m):
            for j in range(n):
                x = [Number(a.numbers[i * k + p], a.element) for p in range(k)]
                y = [Number(b.numbers[p * n + j], b.element) for p in range(k)]
                found.append(self.scalar_product(list(zip(x, y, strict=True))))
        dims = (*a.dims[:-1], *b.dims[1:])
        return Small(found[0].kind, dims, tuple(x.x for x in found)) if dims else found[0]

    def scalar_product(self, terms):
        total = self.arithmetic("Mult", *terms[0])
        for x, y in terms[1:]:
            total = self.arithmetic("Add", total, self.arithmetic("Mult", x, y))
        return total

    def e_UnaryOp(self, e):
        if isinstance(e.op, ast.Not):
            return Number(self.test(e), BOOL)
        value = self.any(e.operand)
        if isinstance(e.op, ast.UAdd):
            return value
        if isinstance(e.op, ast.Invert):
            return Number(self.op(f"xor i64 {self.cast(value, INT)}, -1"), INT)
        if not isinstance(value, Number):
            value = self.small(value)
            found = [self.negative(Number(x, value.element)) for x in value.numbers]
            return Small(found[0].kind, value.dims, tuple(x.x for x in found))
        return self.negative(value)

    def negative(self, value):
        if value.kind == FLOAT:
            return Number(self.op(f"fneg double {value.x}"), FLOAT)
        return Number(self.op(f"sub nsw i64 0, {self.cast(value, INT)}"), INT)

    def e_Compare(self, e):
        left, found = self.number(e.left), None
        for op, right in zip(e.ops, e.comparators, strict=True):
            test = self.compare(type(op).__name__, left, other := self.number(right))
            found = test if found is None else self.op(f"and i1 {found}, {test}")
            left = other
        return Number(found, BOOL)

    def compare(self, name, a, b):
        order = {"Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge", "Eq": "eq", "NotEq": "ne"}.get(
            name
        )
        if order is None:
            raise self.fail(f"{name} is not in the language of procedures")
        if FLOAT in (a.kind, b.kind):
            test = "une" if order == "ne" else f"o{order}"
            return self.op(f"fcmp {test} double {self.cast(a, FLOAT)}, {self.cast(b, FLOAT)}")
        test = order if order in ("eq", "ne") else f"s{order}"
        return self.op(f"icmp {test} i64 {self.cast(a, INT)}, {self.cast(b, INT)}")

    def e_BoolOp(self, e, strict=True):
        slot, end = self.stack("i1", "c"), self.label()
        for k, each in enumerate(e.values):
            if strict and not isinstance(each, ast.BoolOp | ast.Compare) and not (
                isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not)
            ):  # fmt: skip
                value = self.number(each)
                if value.kind != BOOL:
                    raise self.fail(
                        f"{ast.unparse(e)}: and, or give numbers only in a condition", e
                    )
                test = value.x
            else:
                test = self.test(each)
            self.emit(f"store i1 {test}, ptr {slot}")
            if k < len(e.values) - 1:
                more = self.label()
                self.branch(test, *((more, end) if isinstance(e.op, ast.And) else (end, more)))
                self.start(more)
        self.jump(end)
        self.start(end)
        return Number(self.op(f"load i1, ptr {slot}"), BOOL)

    def e_IfExp(self, e):
        yes, no, end = self.label(), self.label(), self.label()
        self.branch(self.test(e.test), yes, no)
        ends, values = [], []
        for label, each in ((yes, e.body), (no, e.orelse)):
            self.start(label)
            value = self.any(each)
            values.append(value if isinstance(value, Number) else self.pointed(value))
            ends.append(len(self.lines))
            self.lines.append("")  # to be the store and the jump, once the type is known
            self.done = True
        a, b = values
        if isinstance(a, Number) and isinstance(b, Number):
            kind = max(a.kind, b.kind, key=_RANK.__getitem__)
            slot = self.stack(kind, "v")
        elif (
            isinstance(a, Pointed)
            and isinstance(b, Pointed)
            and (a.kind, a.strides) == (b.kind, b.strides)
        ):
            kind, slot = "ptr", self.stack("ptr", "v")
        else:
            raise self.fail(f"{ast.unparse(e)} is {_what(a)} or {_what(b)}", e)
        for at, value in zip(ends, values, strict=True):
            kept, self.lines = self.lines, []
            x = value.at if isinstance(value, Pointed) else self.cast(value, kind)
            self.emit(f"store {kind} {x}, ptr {slot}")
            self.emit(f"br label %{end}")
            kept[at] = "\n".join(self.lines)
            self.lines = kept
        self.start(end)
        x = self.op(f"load {kind}, ptr {slot}")
        return (
            Number(x, kind) if isinstance(a, Number) else Pointed(x, a.element, a.dims, a.strides)
        )

    # --- calls ----------------------------------------------------------------------------------

    def e_Call(self, e):
        if isinstance(e.func, ast.Attribute) and isinstance(e.func.value, ast.Name):
            module = self.procedure.module(e.func.value.id)
            callee = None if module is None else getattr(module, e.func.attr, None)
        else:
            callee = self.procedure.find(e.func.id) if isinstance(e.func, ast.Name) else None
        name = builtin(callee)
        if name is not None:
            if e.keywords:
                raise self.fail(f"{name} takes no keywords here", e)
            return getattr(self, f"f_{name}", None or self.f_library)(e, name)
        if not hasattr(callee, "arguments") or not isinstance(e.func, ast.Name):
            raise self.fail(
                f"{ast.unparse(e.func)} is neither a procedure nor a function of procedures", e
            )
        return self.call(callee, e)

    def call(self, callee, e):
        given = dict(zip((name for name, _ in callee.arguments), e.args, strict=False))
        given |= {k.arg: k.value for k in e.keywords}
        given = {n: ast.Constant(x) for n, x in callee.defaults.items()} | given
        if set(given) != {name for name, _ in callee.arguments} or len(e.args) > len(
            callee.arguments
        ):
            wanted = ", ".join(f"{n}: {spelled(k)}" for n, k in callee.arguments)
            raise self.fail(f"{callee.name} takes ({wanted})", e)
        values = [self.argument(callee, name, kind, given[name]) for name, kind in callee.arguments]
        text = f"{self.module.name(callee)}({', '.join(values)})"
        if callee.returns is None:
            self.emit(f"call void {text}")
            return None
        whole = self.op(f"call {text_of(callee.returns)} {text}")
        if not isinstance(callee.returns, tuple):
            return Number(whole, callee.returns)
        kind = text_of(callee.returns)
        return tuple(
            Number(self.op(f"extractvalue {kind} {whole}, {k}"), each)
            for k, each in enumerate(callee.returns)
        )

    def argument(self, callee, name, kind, e):
        value, label = self.any(e), f"argument {name} of {callee.name}"
        if isinstance(kind, str):
            return f"{kind} {self.exact(value, kind, label)}"
        if is_record(kind):
            if not isinstance(value, Pointer) or value.kind is not kind:
                raise self.fail(f"{label} is {spelled(kind)}, got {_what(value)}", e)
            return f"ptr {value.at}"
        if not isinstance(value, Pointed | Small) or (
            value.element != kind.element
            or len(value.dims) != len(kind.dims)
            or any(k not in (None, d) for k, d in zip(kind.dims, value.dims, strict=True))
        ):
            raise self.fail(f"{label} is {kind}, got {_what(value)}", e)
        value = self.pointed(value)
        if not value.is_contiguous:
            raise self.fail(f"{label} must be contiguous: copy it into a local array", e)
        return f"ptr {value.at}"

    def f_library(self, e, name):
        x = [self.cast(self.number(a), FLOAT) for a in e.args]
        if name not in _LIBRARY or len(x) != (2 if name in ("atan2", "hypot") else 1):
            raise self.fail(f"{ast.unparse(e)} is not in the language of procedures", e)
        kinds = ", ".join(["double"] * len(x))
        self.module.needs(f"declare double @{name}({kinds}) nounwind willreturn memory(none)")
        return Number(self.op(f"call double @{name}({', '.join(f'double {v}' for v in x)})"), FLOAT)

    def intrinsic(self, name, *x):
        self.module.needs(f"declare double @llvm.{name}.f64({', '.join(['double'] * len(x))})")
        return self.op(f"call double @llvm.{name}.f64({', '.join(f'double {v}' for v in x)})")

    def f_sqrt(self, e, name):
        return Number(self.intrinsic("sqrt", self.cast(self.number(e.args[0]), FLOAT)), FLOAT)

    def f_floor(self, e, name):
        x = self.intrinsic(name, self.cast(self.number(e.args[0]), FLOAT))
        return Number(self.whole(x), INT)

    f_ceil = f_floor

    def f_copysign(self, e, name):
        return Number(
            self.intrinsic("copysign", *(self.cast(self.number(a), FLOAT) for a in e.args)), FLOAT
        )

    def f_abs(self, e, name):
        value = self.any(e.args[0])
        if isinstance(value, Number):
            return self.absolute(value)
        value = self.small(value)
        found = [self.absolute(Number(x, value.element)) for x in value.numbers]
        return Small(found[0].kind, value.dims, tuple(x.x for x in found))

    def absolute(self, value):
        if value.kind == FLOAT:
            return Number(self.intrinsic("fabs", value.x), FLOAT)
        self.module.needs("declare i64 @llvm.abs.i64(i64, i1)")
        return Number(self.op(f"call i64 @llvm.abs.i64(i64 {self.cast(value, INT)}, i1 true)"), INT)

    def f_min(self, e, name):
        values = [self.number(a) for a in e.args]
        kind, found = max((v.kind for v in values), key=_RANK.__getitem__), values[0]
        for value in values[1:]:  # as Python: the first of equal ones
            a, b = Number(self.cast(found, kind), kind), Number(self.cast(value, kind), kind)
            test = self.compare("Lt" if name == "min" else "Gt", b, a)
            found = Number(self.op(f"select i1 {test}, {kind} {b.x}, {kind} {a.x}"), kind)
        return found

    f_max = f_min

    def f_float(self, e, name):
        return Number(self.cast(self.number(e.args[0]), FLOAT), FLOAT)

    def f_int(self, e, name):
        return Number(self.cast(self.number(e.args[0]), INT), INT)

    def f_bool(self, e, name):
        return Number(self.test(e.args[0]), BOOL)

    def f_len(self, e, name):
        value = self.any(e.args[0])
        if not isinstance(value, Pointed | Small) or value.dims[0] is None:
            raise self.fail("len is of arrays of fixed length", e)
        return literal(value.dims[0])

    def f_isfinite(self, e, name):
        x = self.intrinsic("fabs", self.cast(self.number(e.args[0]), FLOAT))
        return Number(self.op(f"fcmp olt double {x}, {literal(math.inf).x}"), BOOL)

    def f_invoke(self, e, name):
        arrays = [self.pointed(self.any(a)).at for a in e.args[1:]]
        code = self.op(f"inttoptr i64 {self.integer(e.args[0])} to ptr")
        self.emit(f"call void {code}({', '.join(f'ptr {at}' for at in arrays)})")

    def f_isnan(self, e, name):
        x = self.cast(self.number(e.args[0]), FLOAT)
        return Number(self.op(f"fcmp uno double {x}, {x}"), BOOL)

    def f_cross(self, e, name):
        a, b = (self.small(self.any(x)) for x in e.args)
        if (a.dims, b.dims) != ((3,), (3,)):
            raise self.fail(
                f"cross is of two arrays of three numbers, got {a.kind} and {b.kind}", e
            )
        x, y = ([Number(n, v.element) for n in v.numbers] for v in (a, b))
        found = [
            self.arithmetic(
                "Sub", self.arithmetic("Mult", x[i], y[j]), self.arithmetic("Mult", x[j], y[i])
            )
            for i, j in ((1, 2), (2, 0), (0, 1))
        ]
        return Small(found[0].kind, (3,), tuple(n.x for n in found))

    def f_dot(self, e, name):
        return self.product(*(self.any(x) for x in e.args))

    def f_vector(self, e, name):
        numbers = tuple(self.cast(self.number(a), FLOAT) for a in e.args)
        return Small(FLOAT, (len(numbers),), numbers)

    def f_local(self, e, name):
        element = {"float": FLOAT, "int": INT}.get(getattr(e.args[0], "value", None))
        dims = tuple(self.static(a) for a in e.args[1:])
        if element is None or not dims or not all(isinstance(d, int) and d > 0 for d in dims):
            raise self.fail('local("float" or "int", lengths...) needs constant lengths', e)
        at = self.array_on_stack(ArrayType(element, dims), "local")
        return Pointed(at, element, dims, strides_of(dims))

    def f_view(self, e, name):
        array = self.any(e.args[0])
        if not isinstance(array, Pointed) or not array.is_contiguous:
            raise self.fail(f"view is of a contiguous array in memory, not of {_what(array)}", e)
        start, stride = self.integer(e.args[1]), array.strides[0]
        offset = start if stride == 1 else self.op(f"mul nsw i64 {start}, {stride}")
        at = self.op(f"getelementptr inbounds {array.element}, ptr {array.at}, i64 {offset}")
        dims = (None, *array.dims[1:])
        if len(e.args) > 2:
            dims = tuple(self.static(a) for a in e.args[2:])
            if not all(isinstance(d, int) for d in dims[1:]):
                raise self.fail("all lengths of a view but the first are constant", e)
            if dims[0] is None:
                self.integer(e.args[2])
        return Pointed(at, array.element, dims, strides_of(dims))


def _number(value):
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, np.integer | np.floating):
        return value.item()
    return None


def _what(value):
    if value is None:
        return "nothing"
    if isinstance(value, tuple):
        return "a tuple"
    kind = value.kind
    return SPELLED[kind] if isinstance(kind, str) else spelled(kind)
