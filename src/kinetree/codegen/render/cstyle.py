"""A program as assignments of an ordinary language: what the C and NumPy renderers share.

``assignments`` walks the graph once and hands every value to a ``Language``. A value that is used
once is written where it is used, as long as the expression stays readable; the others get a name.
Names say where a value comes from: ``sin_q2``, or the label of the last input that it depends on
(``forearm_7``). Parentheses keep association, so every language computes the same numbers.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

from kinetree.errors import TraceError
from kinetree.expr.calls import callee_of
from kinetree.expr.node import LEAVES
from kinetree.expr.repeat import free_loops, loop_of

_ATOM, _SIGN, _PRODUCT, _SUM, _COMPARISON = 5, 4, 3, 2, 1  # how tightly a text binds
_INFIX = {
    "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT,
    "<": _COMPARISON, "<=": _COMPARISON, "==": _COMPARISON,
}  # fmt: skip
_CONDITIONS = frozenset(("<", "<=", "==", "and", "or", "not"))


@dataclass(frozen=True)
class Value:
    """The text of a value, how tightly it binds, and the named values that it mentions."""

    text: str
    level: int = _ATOM
    mentions: frozenset = frozenset()

    def at_least(self, level):
        """Text of the value, in parentheses if its operator binds less tightly than ``level``."""
        return self.text if self.level >= level else f"({self.text})"


@dataclass(frozen=True)
class Assignment:
    """Lines that belong together, the names they define and the earlier names they mention."""

    lines: tuple
    defines: dict  # name -> whether it is a condition
    mentions: frozenset


def assignments(program, language, labels=None, order=None):
    """Assignments, with names and lines, that compute a program in a C-like language.

    Args:
        program: what to write.
        language: how to write it.
        labels: for inputs ``(name, index)``, a pair of a rank and a label; a value is named by the
            label of highest rank among the inputs that it depends on.
        order: nodes in an order in which they can be computed; that of their creation by default.
    """
    return _Writer(program, language, labels or {}, order).write()


def identifier(text: str) -> str:
    """``text`` with everything replaced that cannot stand in a name."""
    name = re.sub(r"[^0-9A-Za-z_]", "_", text)
    return name if name[:1].isalpha() else f"b{name}"


class _Writer:
    def __init__(self, program, language, labels, order=None):
        self.program, self.language, self.labels = program, language, labels
        self.nodes = program.graph.nodes
        self.arguments = {a.name: a for a in program.inputs}
        self.checks = {node for node, _ in program.checks}
        self.order = order or program.graph.reachable([*program.roots, *self.checks])
        self.scope = {i: max(loops) for i, loops in free_loops(program.graph, self.order).items()}
        self.values, self.ranks, self.results = {}, {}, {}
        self.taken, self.serial = set(self.arguments) | {a.name for a in program.outputs}, {}
        self.outputs = self._outputs()
        self.uses = self._uses()
        self.absorbed = self._fused_products() if language.sums_absorb else set()
        self.lists: dict = {None: []}  # assignments of every loop, and of what is outside all loops

    def write(self):
        """All assignments of the program, in order."""
        for i in self.order:
            self._node(i)
        return self.lists[None]

    def _outputs(self):
        """Elements of results that each node is written to, as (argument, index)."""
        places, position = {}, 0
        for argument in self.program.outputs:
            for index in _indices(argument.shape):
                places.setdefault(self.program.roots[position], []).append((argument, index))
                position += 1
        return places

    def _uses(self):
        """Loops (scopes) in which each node is used, once per use."""
        uses = {i: [] for i in self.order}
        for i in self.order:
            op, *operands = self.nodes[i]
            if op in LEAVES:
                continue
            scopes = [self.scope.get(i)]
            if op == "repeat":  # the next state must be complete before the old one is given up
                scopes *= 2
            for a in operands:
                uses[a].extend(scopes)
        for i in (*self.outputs, *self.checks):
            uses[i].append(self.scope.get(i))
        for i, places in self.outputs.items():
            uses[i].extend([None] * (len(places) - 1))
        return uses

    def _fused_products(self):
        """Products used by one sum or difference only, at most one each: candidates for FMA."""
        found = set()
        for i in self.order:
            op, *operands = self.nodes[i]
            for a in operands[::-1] if op in ("+", "-") else ():
                if self.nodes[a][0] == "*" and self.uses[a] == [self.scope.get(a)]:
                    found.add(a)
                    break
        return found

    # --- one node ------------------------------------------------------------------------------

    def _node(self, i):
        """Write the code of one node: an operation, a call or a loop."""
        op, *operands = self.nodes[i]
        self.ranks[i] = self._rank(op, operands)
        if op == "repeat":
            self._loop(i)
            return
        if op == "callee":
            return
        if op == "call":
            self._call(i, operands[1:])
            return
        if op == "final":
            self.values[i] = self.values[operands[1]]
        elif op == "result":
            self.values[i] = self._result(*operands)
        elif op == "carry":
            name = self._name(i)
            self.values[i] = Value(name, mentions=frozenset((name,)))
        elif op in ("sin", "cos") and self.language.joins_sines:
            self._turn(i, operands[0])
        else:
            self.values[i] = self._expression(op, operands)
            if not self._stays_inline(i):
                self._define(i)
        self._after(i)

    def _stays_inline(self, i):
        """Whether a node's text is inserted where it is used, without a variable."""
        op, value = self.nodes[i][0], self.values[i]
        if op in ("const", "input"):
            return op == "const" or not self.language.inputs_have_names
        if op in ("sin", "cos"):
            return False
        if op == "result" or i in self.absorbed:
            return True
        is_result = i in self.outputs  # has its own line anyway
        short = is_result or len(value.text) <= self.language.longest
        return short and self.uses[i] == [self.scope.get(i)]

    def _define(self, i):
        """Define a variable for a node's value."""
        value, name, op = self.values[i], self._name(i), self.nodes[i][0]
        lines = self.language.define(name, value.text, op in _CONDITIONS)
        self._add(i, lines, {name: op in _CONDITIONS}, value.mentions)
        self.values[i] = Value(name, mentions=frozenset((name,)))

    def _turn(self, i, angle):
        """Define a sine and the cosine of the same angle together."""
        if i in self.values:  # came with its counterpart
            return
        pair = [self.program.graph.known.get((op, angle)) for op in ("sin", "cos")]
        pair = [k if k in self.uses else None for k in pair]
        for k in pair:
            self.ranks.setdefault(k, self.ranks[i])
        value, names = self.values[angle], [k and self._name(k) for k in pair]
        lines = self.language.sine_and_cosine(names, value.text, self.nodes[angle])
        self._add(i, lines, {name: False for name in names if name}, value.mentions)
        for k, name in zip(pair, names, strict=True):
            if name:
                self.values[k] = Value(name, mentions=frozenset((name,)))

    def _after(self, i):
        """Write a node's value to results, and its check, once it is computed."""
        value = self.values[i]
        for argument, index in self.outputs.get(i, ()):
            self._add(i, self.language.output(argument, index, value.text), {}, value.mentions)
        if i in self.checks:
            self._add(i, self.language.require(value.text), {}, value.mentions)

    def _add(self, i, lines, defines, mentions):
        """Append lines to the body of the loop that a node belongs to."""
        scope = self.lists.setdefault(self.scope.get(i), [])
        scope.append(Assignment(tuple(lines), defines, mentions))

    # --- expressions ---------------------------------------------------------------------------

    def _expression(self, op, operands):
        """Text of an operation, with parentheses by precedence."""
        if op == "const":
            x = operands[0]
            text = self.language.constant(x)
            return Value(text, _SIGN if text.startswith("-") else _ATOM)
        if op == "input":
            return Value(self.language.input(self.arguments[operands[0]], operands[1]))
        values = [self.values[a] for a in operands]
        mentions = frozenset().union(*(v.mentions for v in values))
        if op in _INFIX and op not in self.language.calls:
            level = _INFIX[op]
            a, b = values[0].at_least(level), values[1].at_least(level + 1)
            return Value(f"{a} {op} {b}", level, mentions)
        if op == "neg":
            return Value(f"-{values[0].at_least(_ATOM)}", _SIGN, mentions)
        text = self.language.call(op, [v.text for v in values], operands)
        return Value(text, _ATOM, mentions)

    # --- calls -----------------------------------------------------------------------------------

    def _call(self, i, arguments):
        """Write a call: inputs are gathered into arrays unless they are whole results of a call."""
        callee, lines, texts, mentions, at = callee_of(self.program.graph, i), [], [], set(), 0
        for given in callee.inputs:
            nodes = arguments[at : at + given.size]
            at += given.size
            text = self._same_result(nodes)
            if text is None:
                text = self._unique(f"{given.name}_given")
                texts_of = [self.values[a].text for a in nodes]
                lines += self.language.array(text, texts_of, callee.has_step(given.name))
            texts.append(text)
            mentions.update(*(self.values[a].mentions for a in nodes))
        names = [self._unique(f"{result.name}_found") for result in callee.outputs]
        self.results[i] = [
            (name, k)
            for name, result in zip(names, callee.outputs, strict=True)
            for k in range(result.size)
        ]
        sizes = [result.size for result in callee.outputs]
        lines += self.language.routine(callee, texts, dict(zip(names, sizes, strict=True)))
        self._add(i, lines, dict.fromkeys(names, False), frozenset(mentions))

    def _same_result(self, nodes):
        """Name of the result array that some nodes are, complete and in order; else None."""
        found = [self.nodes[a] for a in nodes]
        if not found or any(node[0] != "result" for node in found):
            return None
        places = [self.results[node[1]][self._place(node[2])] for node in found]
        calls, name = {node[1] for node in found}, places[0][0]
        return (
            name if len(calls) == 1 and places == [(name, k) for k in range(len(nodes))] else None
        )

    def _result(self, call, place):
        """Text of one number of a call's result."""
        name, k = self.results[call][self._place(place)]
        return Value(f"{name}[{k}]", mentions=frozenset((name,)))

    def _place(self, node):
        """Index of a result within its call, from the node that holds it."""
        return int(self.nodes[node][1])

    # --- loops -----------------------------------------------------------------------------------

    def _loop(self, i):
        """Write a loop with its carried variables."""
        loop = loop_of(self.program.graph, i)
        body = self.lists.pop(loop.number, [])
        carries = [self.values[c].text for c in loop.carries]
        initial, following, times = (
            [self.values[a] for a in nodes] for nodes in (loop.initial, loop.next, [loop.times])
        )
        early = self._early(carries, following, body) if self.language.states_change_early else {}
        within = [*early.get(0, ())]  # values from outside for states that nothing looks at
        for k, item in enumerate(body, start=1):
            within += [*item.lines, *early.get(k, ())]
        lines = self.language.loop(
            self._unique("run"),
            times[0].text,
            carries,
            [v.text for v in initial],
            within,
            [v.text for v in following],
        )
        inside = set(carries).union(*(item.defines for item in body))
        mentions = frozenset().union(
            *(v.mentions for v in (*initial, *following, *times)), *(a.mentions for a in body)
        )
        self._add(i, lines, dict.fromkeys(carries, False), mentions - inside)

    @staticmethod
    def _early(carries, following, body):
        """Lines that update loop states early, keyed by the body item after which they are safe.

        A new value need not wait once nothing is left that looks at the old one.
        """
        states, after, found = set(carries), {}, {}
        for k, item in enumerate(body, start=1):
            after.update(dict.fromkeys((*item.defines, *(item.mentions & states)), k))
        late = states.intersection(name for v in following for name in v.mentions)
        for n, (c, v) in enumerate(zip(carries, following, strict=True)):
            if c not in late and v.mentions and not v.mentions & states:
                place = max(after.get(name, 0) for name in (c, *v.mentions))
                found.setdefault(place, []).append(f"{c} = {v.text};")
                following[n] = Value(c)
        return found

    # --- names -----------------------------------------------------------------------------------

    def _rank(self, op, operands):
        """Rank and label by which a variable is named: from the last input it depends on."""
        if op == "input":
            return self.labels.get(tuple(operands), (-1, "t"))
        if op == "carry":
            return (-1, "state")
        if op in ("const", "callee"):
            return (-1, "t")
        return max((self.ranks[a] for a in operands), default=(-1, "t"))

    def _name(self, i):
        """New variable name for a node, from its label."""
        op, *operands = self.nodes[i]
        if op in ("sin", "cos") and self.nodes[operands[0]][0] == "input":
            _, name, index = self.nodes[operands[0]]
            return self._unique(f"{op}_{name}{'_'.join(map(str, index))}")
        if op == "input":
            return self._unique(f"{operands[0]}{'_'.join(map(str, operands[1]))}")
        label = identifier(self.ranks[i][1])
        while True:
            number = self.serial[label] = self.serial.get(label, 0) + 1
            if f"{label}_{number}" not in self.taken:
                return self._unique(f"{label}_{number}")

    def _unique(self, name):
        """Identifier not used before: underscores are appended until it is new."""
        name = identifier(name)
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _indices(shape):
    """All index tuples of an array, last axis fastest."""
    if not shape:
        return [()]
    return [(k, *rest) for k in range(shape[0]) for rest in _indices(shape[1:])]


# --- What a renderer of an ordinary language has to say: how it spells what a program does -------


class Language(ABC):
    """How a language spells what a program does. Texts of operands come ready to be pasted."""

    calls: dict  # operation -> format string, for everything that is not infix
    inputs_have_names: bool  # whether elements of inputs are taken out first
    joins_sines = False  # whether a sine and its cosine are computed together
    sums_absorb = False  # whether a product that one sum alone uses is always written into it
    states_change_early = False  # whether those of a loop do as soon as nothing needs the old one
    longest = 70  # characters of an expression that is written where it is used

    @abstractmethod
    def constant(self, x: float) -> str:
        """Text of a constant number."""

    @abstractmethod
    def input(self, argument, index) -> str:
        """Text of an element of an input."""

    @abstractmethod
    def output(self, argument, index, text) -> list:
        """Lines that assign a value to an element of a result."""

    @abstractmethod
    def define(self, name, text, is_condition=False) -> list:
        """Lines that define a variable."""

    def sine_and_cosine(self, names, text, argument) -> list:
        """Lines that compute sine and cosine of an angle together.

        Args:
            names: of the sine and of the cosine; None for one that is not needed.
            text: the value.
            argument: its node.
        """
        raise TypeError(f"{type(self).__name__} computes sines and cosines one by one")

    def call(self, op, texts, operands) -> str:
        """Text of a call of a math function.

        Args:
            op: the operation.
            texts: its operands.
            operands: their nodes.
        """
        return self.calls[op].format(*texts)

    def array(self, name, texts, side) -> list:
        """Lines that make an array of some values; ``side``: interleaved with other arrays."""
        raise TraceError(f"{type(self).__name__} has no routines")

    def routine(self, callee, given, results) -> list:
        """Lines that call a routine with arrays by name.

        Args:
            callee: what is called.
            given: names of the arrays that go in.
            results: names of new arrays for the results, with their sizes.
        """
        raise TraceError(f"{type(self).__name__} has no routines, such as {callee.name!r}")

    @abstractmethod
    def require(self, text) -> list:
        """Lines that report when a condition does not hold."""

    @abstractmethod
    def loop(self, counter, times, carries, initial, body, following) -> list:
        """Lines of a loop, ``counter`` below ``times``; all carried states advance together."""
