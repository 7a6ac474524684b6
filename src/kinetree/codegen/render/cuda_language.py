"""How CUDA C spells what a program does."""

from kinetree.codegen.parts import LEFT, WORK
from kinetree.codegen.render.c import C, offset
from kinetree.codegen.render.cstyle import identifier
from kinetree.codegen.render.cuda_places import PITCH, WARP
from kinetree.expr.node import LEAVES

__all__ = ["Cuda", "angles_of"]


def angles_of(program, tiles):
    """Places ``(argument, offset)`` of staged inputs that only sines and cosines look at."""
    nodes, arguments = program.graph.nodes, {a.name: a for a in program.inputs}
    order = program.graph.reachable([*program.roots, *(node for node, *_ in program.checks)])
    turned, other = set(), set(program.roots)
    for i in order:
        op, *operands = nodes[i]
        if op not in LEAVES:
            (turned if op in ("sin", "cos") else other).update(operands)
    found = [nodes[i] for i in turned - other if nodes[i][0] == "input"]
    return {(name, offset(arguments[name], index)) for _, name, index in found if name in tiles}


class Cuda(C):
    """CUDA C for one program.

    Attributes:
        inputs, outputs: names of the arguments in the text, by their names.
    """

    joins_sines = True
    longest = 0  # the order of our values suits the compiler better than one that it finds itself

    def __init__(self, program, dtype, angles, kept, left):
        super().__init__(dtype)
        if dtype == "float32":
            self.calls = {**self.calls, "/": "quotient_any({}, {})"}
        self.angles, self.kept, self.left = angles, kept, left
        self.inputs, self.outputs = _names("in", program.inputs), _names("out", program.outputs)
        self.shapes = {a.name: a for a in program.inputs}
        self.checked = _checked(program)

    def call(self, op, texts, operands):
        """Quotients without a look at what comes out where a check has looked at the divisor."""
        if op == "/" and operands[1] in self.checked:
            return f"quotient({', '.join(texts)})"
        return super().call(op, texts, operands)

    def input(self, argument, index):
        """A number of the sample's own row, or of the workspace."""
        if argument.name == WORK:
            return f"work[{WARP * index[0]}]"
        return f"{self.inputs[argument.name]}[{offset(argument, index)}]"

    def sine_and_cosine(self, names, text, argument):
        """Without a branch where the angle is known to be moderate."""
        op, *place = argument
        near = op == "input" and (place[0], offset(self.shapes[place[0]], place[1])) in self.angles
        sine, cosine = (
            name or f"unused_{other}" for name, other in zip(names, names[::-1], strict=True)
        )
        function = "sincos_near" if near else "sincos_any"
        return [f"real {sine}, {cosine};", f"{function}({text}, &{sine}, &{cosine});"]

    def output(self, argument, index, text):
        """To the own row of a tile, the workspace, or among those that are kept, but once."""
        if argument.name == LEFT:
            return [f"left[{WARP * self.left[index[0]]}] = {text};"]
        if argument.name in self.kept.tables:
            place = self.kept.first.get((argument.name, offset(argument, index)))
            return [f"kept[{PITCH * place}] = {text};"] if place else []
        return [f"{self.outputs[argument.name]}[{offset(argument, index)}] = {text};"]


def _checked(program):
    """Nodes that a check requires to be larger than something."""
    nodes = program.graph.nodes
    return {nodes[node][2] for node, *_ in program.checks if nodes[node][0] == "<"}


def _names(side, arguments):
    """A name for every argument, by its name."""
    names = {}
    for a in arguments:
        name = identifier(f"{side}_{a.name}")
        while name in names.values():
            name += "_"
        names[a.name] = name
    return names
