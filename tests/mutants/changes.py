"""What a mutant changes: signs, operators, factors, indices, comparisons, transposes, arguments.

``edits`` lists every change of a source file in a fixed order, and ``mutated`` makes one of them.
Not made, because no test could or should notice them:

- annotations, imports, ``__all__``, ``__slots__``, blocks for type checkers, ``pragma: no cover``;
- what only people read: docstrings, ``raise``, ``assert``, warnings, strings, ``__repr__``;
- sizes of tolerances: numbers below 1e-3 or from 1e6, and products with them, ``eps``, ``tiny`` or
  a tolerance, since another one of that order decides the same, nor is their sign where they are
  added to something. Comparisons with them are changed;
- integers from 10 that are not an index: limits on iterations, sizes and counts;
- which values are drawn at random: ``examples`` of joints, arguments of random numbers, seeds;
- shapes of new arrays (``local`` of procedures, too) and operators on literal lists and strings,
  which fail at once;
- ``<`` for ``<=`` between numbers that are not evidently integers, which differ on a set of measure
  zero; such a comparison is turned around instead;
- ``a @ b`` in the other order unless both have names of matrices, since with a vector it fails at
  once or is the same, and ``x ± 0 * y``;
- what changes no result: options of ``dataclass`` and caches, ``strict``, ``copy``, ``stacklevel``.
"""

import ast
import copy
from dataclasses import dataclass
from typing import Any

OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
TURNED = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
BOUNDARY = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_PAIRS = [
    ("sin", "cos"), ("min", "max"), ("minimum", "maximum"), ("any", "all"), ("floor", "ceil"),
    ("argmin", "argmax"), ("apply", "inv_apply"), ("transformed", "inverse_transformed"),
    ("angular", "linear"), ("crm", "crf"),
]  # fmt: skip
NAMES = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
DROPPED = {"inverse", "inv", "transpose", "conj", "abs", "sqrt"}
ORDERED = {  # functions of which the order of two arguments matters, and the first of these
    "cross": 0, "crm": 0, "crf": 0, "outer": 0, "dyadic": 0, "atan2": 0, "arctan2": 0, "kron": 0,
    "subtract": 0, "divide": 0, "less": 0, "greater": 0, "solve": 0, "difference": 0, "where": 1,
    "select": 1, "rotate_symmetric": 0, "copysign": 0,
}  # fmt: skip
RANDOM = {"uniform", "normal", "standard_normal", "integers", "choice", "default_rng"}
SHAPES = {"zeros", "ones", "empty", "eye", "full", "reshape", "broadcast_to", "identity", "local"}
UNSEEN = {"strict", "copy", "stacklevel", "maxsize"}
INDICES = set("ijklbp")
TOLERANCE = ("eps", "tiny", "tol", "round_off")


@dataclass(frozen=True)
class Edit:
    """One change: the expression or statement ``node`` becomes ``new``."""

    kind: str
    """sign, operator, factor, index, comparison, condition, name, argument or transpose."""
    statement: Any
    """The innermost statement around it."""
    scope: str
    """Qualified name of the function around it; empty when it runs at import."""
    node: Any
    new: Any

    def make(self) -> None:
        """Change the tree: who refers to the node now refers to the new one."""
        self.node.__class__ = type(self.new)
        self.node.__dict__.clear()
        self.node.__dict__.update(self.new.__dict__)

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line of the statement, or of the head of a compound one."""
        body = getattr(self.statement, "body", None)
        last = self.statement.end_lineno
        if isinstance(body, list) and body:
            last = max(self.statement.lineno, body[0].lineno - 1)
        return self.statement.lineno, last


def edits(source: str) -> tuple[ast.Module, list[Edit]]:
    """The tree of a source text and every change of it, in order."""
    tree = ast.parse(source)
    unseen = {n for n, text in enumerate(source.splitlines(), 1) if "pragma: no cover" in text}
    found = _Finder(unseen)
    found.walk(tree)
    return tree, found.edits


def mutated(source: str, number: int) -> tuple[ast.Module, str]:
    """The tree with change ``number``, and what that is: ``original -> mutated``."""
    tree, all_edits = edits(source)
    edit = all_edits[number]
    place = _readable(tree, edit)
    before = ast.unparse(place)
    edit.make()
    after = ast.unparse(place)
    return ast.fix_missing_locations(tree), f"{before}  ->  {after}"


def _readable(tree, edit, longest=88):
    """The largest expression or simple statement around a change that fits on a line."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    node = chosen = edit.node
    while not isinstance(node, ast.stmt):
        chosen, node = node, parents[node]
        if len(ast.unparse(node)) > longest:
            return chosen
    return chosen if hasattr(node, "body") else node


class _Finder:
    """Collects the changes of a tree, from top to bottom."""

    def __init__(self, unseen_lines):
        self.edits, self.scope, self.unseen = [], [], unseen_lines
        self.statement, self.in_function, self.in_index = None, False, 0

    def walk(self, node):
        if isinstance(node, ast.stmt):
            if node.lineno in self.unseen or _is_unseen(node):
                return
            self.statement = node
        getattr(self, f"on_{type(node).__name__.lower()}", self._children)(node)

    def _children(self, node, skip=()):
        statement = self.statement
        for field, value in ast.iter_fields(node):
            if field in skip:
                continue
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, ast.AST):
                    self.walk(item)
                    if isinstance(node, ast.stmt):
                        self.statement = statement

    def _add(self, kind, node, new=None, **fields):
        """Note that ``node`` may become ``new``, or a copy of itself with other fields."""
        new = copy.copy(new or node)
        for field, value in fields.items():
            setattr(new, field, value)
        scope = ".".join(self.scope) if self.in_function else ""
        self.edits.append(Edit(kind, self.statement, scope, node, new))

    # --- Statements ---------------------------------------------------------------------------

    def on_functiondef(self, node):
        if node.name in ("__repr__", "__str__", "examples"):
            return
        for decorator in node.decorator_list:
            self._decorator(decorator)
        for name, default in _defaults(node.args):
            if default is not None and name != "seed":
                self.walk(default)
        outer, self.in_function = self.in_function, True
        self._body(node)
        self.in_function = outer

    def on_classdef(self, node):
        for decorator in node.decorator_list:
            self._decorator(decorator)
        self._body(node)

    def _body(self, node):
        self.scope.append(node.name)
        for item in node.body:
            self.walk(item)
        self.scope.pop()

    def _decorator(self, node):
        name = _name(getattr(node, "func", node))
        if name not in ("dataclass", "cache", "lru_cache", "cached_property", "overload"):
            self.walk(node)

    def on_annassign(self, node):
        if node.value is not None:
            self.walk(node.value)

    def on_augassign(self, node):
        self._operator(node)
        self._children(node)

    def on_if(self, node):
        self._condition(node)
        self._children(node)

    def on_ifexp(self, node):
        if all(map(_is_text, (node.body, node.orelse))):
            return
        self._condition(node)
        self._children(node)

    def on_comprehension(self, node):
        for test in node.ifs:
            if not isinstance(test, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
                self._add("condition", test, _negated(test))
        self._children(node)

    def _condition(self, node):
        if not isinstance(node.test, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
            self._add("condition", node.test, _negated(node.test))

    # --- Expressions --------------------------------------------------------------------------

    def on_joinedstr(self, node):
        pass

    def on_binop(self, node):
        if _is_tolerance(node):
            self._children_beyond_tolerance(node)
            return
        if isinstance(node.op, ast.MatMult):
            if all(map(_is_matrix, (node.left, node.right))):
                swapped = ast.BinOp(left=node.right, op=node.op, right=node.left)
                self._add("argument", node, swapped)
        elif _adds_zero(node) or _adds_tolerance(node):
            pass
        elif not any(map(_is_literal_sequence, (node.left, node.right))) and not _by_one(node):
            self._operator(node)
        self._children(node)

    def _children_beyond_tolerance(self, node):
        for side in (node.left, node.right):
            if not isinstance(side, ast.Constant):
                self.walk(side)

    def _operator(self, node):
        if new := OPERATORS.get(type(node.op)):
            kind = "sign" if isinstance(node.op, (ast.Add, ast.Sub)) else "operator"
            self._add(kind, node, op=new())

    def on_unaryop(self, node):
        if isinstance(node.op, (ast.USub, ast.Not)):
            kind = "sign" if isinstance(node.op, ast.USub) else "condition"
            if not (isinstance(node.operand, ast.Constant) and node.operand.value == 0):
                self._add(kind, node, node.operand)
        self._children(node)

    def on_boolop(self, node):
        self._add("condition", node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        self._children(node)

    def on_compare(self, node):
        sides = [node.left, *node.comparators]
        for k, op in enumerate(node.ops):
            others = [TURNED]
            if type(op) in BOUNDARY and _are_integers(sides[k : k + 2]):
                others.append(BOUNDARY)
            for other in others:
                ops = [*node.ops[:k], other[type(op)](), *node.ops[k + 1 :]]
                self._add("comparison", node, ops=ops)
        self._children(node)

    def on_constant(self, node):
        value = node.value
        if isinstance(value, bool):
            self._add("condition", node, value=not value)
        elif isinstance(value, int) and (self.in_index or value < 10):
            self._add("index" if self.in_index else "factor", node, value=value + 1)
        elif isinstance(value, float) and (value == 0 or 1e-3 <= value < 1e6):
            self._add("factor", node, value=2 * value or 1.0)

    def on_subscript(self, node):
        self.walk(node.value)
        index = node.slice
        if isinstance(index, ast.Tuple) and len(index.elts) == 2:
            first, second = index.elts
            swapped = ast.Tuple(elts=[second, first], ctx=index.ctx)
            plain = not any(isinstance(e, ast.Slice) or _is_none(e) for e in index.elts)
            if plain and ast.dump(first) != ast.dump(second):
                self._add("index", index, swapped)
        for item in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(item, ast.Name) and item.id in INDICES:
                before = ast.BinOp(left=copy.copy(item), op=ast.Sub(), right=ast.Constant(1))
                self._add("index", item, before)
            if isinstance(item, ast.Slice) and (item.lower is None) != (item.upper is None):
                other = ast.Slice(lower=item.upper, upper=item.lower, step=item.step)
                self._add("index", item, other)
        self.in_index += 1
        self.walk(index)
        self.in_index -= 1

    def on_attribute(self, node):
        if isinstance(node.ctx, ast.Load):
            if node.attr == "T":
                self._add("transpose", node, node.value)
            elif node.attr in NAMES:
                self._add("name", node, attr=NAMES[node.attr])
        self.walk(node.value)

    def on_name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id in ("min", "max", "any", "all"):
            self._add("name", node, id=NAMES[node.id])

    def on_call(self, node):
        name = _name(node.func)
        if name in ("warn", "isinstance", "hasattr", "getattr", "import_module"):
            return
        if isinstance(node.func, ast.Name) and node.func.id in NAMES:
            self._add("name", node.func, id=NAMES[node.func.id])
        elif isinstance(node.func, ast.Attribute):
            self.walk(node.func)
        if name in DROPPED and not node.keywords:
            receiver = getattr(node.func, "value", None) if not node.args else node.args[0]
            if receiver is not None and len(node.args) < 2:
                self._add("transpose" if not node.args else "name", node, receiver)
        k = ORDERED.get(name)
        if k is not None and len(node.args) >= k + 2 and not _starred(node.args[: k + 2]):
            args = list(node.args)
            args[k], args[k + 1] = args[k + 1], args[k]
            if ast.dump(args[k]) != ast.dump(args[k + 1]):
                self._add("argument", node, args=args)
        if name not in SHAPES | RANDOM:
            for argument in node.args:
                self.walk(argument)
        for keyword in node.keywords:
            if keyword.arg not in UNSEEN:
                self.walk(keyword.value)


def _negated(test):
    return ast.UnaryOp(op=ast.Not(), operand=copy.copy(test))


def _name(node):
    return getattr(node, "attr", None) or getattr(node, "id", None)


def _defaults(arguments):
    """Names and defaults of the arguments that have one."""
    named = [*arguments.posonlyargs, *arguments.args]
    first = len(named) - len(arguments.defaults)
    pairs = [*zip(named[first:], arguments.defaults, strict=True)]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [(argument.arg, default) for argument, default in pairs]


def _starred(nodes):
    return any(isinstance(node, ast.Starred) for node in nodes)


def _is_none(node):
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node):
    text = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    return text or isinstance(node, ast.JoinedStr)


def _is_literal_sequence(node):
    return _is_text(node) or isinstance(node, (ast.List, ast.Tuple, ast.ListComp))


def _is_matrix(node):
    """Whether an operand has the name of a matrix or a transform: a capital."""
    while isinstance(node, (ast.Subscript, ast.Call)) or getattr(node, "attr", "") == "T":
        node = getattr(node, "value", None) or getattr(node, "func", None)
    return (_name(node) or "")[:1].isupper()


def _adds_zero(node):
    """Whether this adds or subtracts ``0 * x``, which only has its type."""
    zero = getattr(getattr(node.right, "left", None), "value", None) == 0
    return isinstance(node.op, (ast.Add, ast.Sub)) and zero


def _adds_tolerance(node):
    """Whether this adds or subtracts the size of a tolerance."""
    if not isinstance(node.op, (ast.Add, ast.Sub)):
        return False
    small = isinstance(node.right, ast.Constant) and isinstance(node.right.value, float)
    return (small and 0 < node.right.value < 1e-3) or (
        isinstance(node.right, ast.BinOp) and _is_tolerance(node.right)
    )


def _by_one(node):
    """Whether this multiplies with or divides by 1 or -1, where both are the same."""
    right = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
    one = isinstance(right, ast.Constant) and right.value == 1
    return one and isinstance(node.op, (ast.Mult, ast.Div))


def _are_integers(sides):
    """Whether at least one of two numbers is evidently an integer, and none is not."""
    floats = (isinstance(getattr(x, "value", None), float) for x in sides)
    return any(map(_is_integer, sides)) and not any(floats)


def _is_integer(node):
    """Whether an operand is evidently an integer."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.Call):
        return _name(node.func) == "len"
    if isinstance(node, ast.Subscript):  # of which the name says nothing: b[1] is any number
        return _name(node.value) == "shape"
    return _name(node) in ("ndim", "size", "nq", "nv", "body_count", "NB", *INDICES)


def _is_tolerance(node):
    """Whether this is a product that is the size of a tolerance."""
    if not isinstance(node.op, (ast.Mult, ast.Div, ast.Pow)):
        return False
    for side in (node.left, node.right):
        if isinstance(side, ast.BinOp) and _is_tolerance(side):
            return True
        size = getattr(side, "value", None)
        if isinstance(side, ast.Constant) and isinstance(size, float) and 0 < size < 1e-3:
            return True
        name = (_name(side) or "").lower()
        if any(part in name for part in TOLERANCE):
            return True
    return False


def _is_unseen(node):
    if isinstance(node, (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Assign):
        return _name(node.targets[0]) in ("__all__", "__slots__")
    return False
