"""How CUDA C spells what a program does, windows of large results included."""

from kinetree.codegen.render.c import C, offset
from kinetree.codegen.render.cstyle import identifier
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
        slots: windows that are open at the same time.
    """

    joins_sines = True
    longest = 0  # the order of our values suits the compiler better than one that it finds itself

    def __init__(self, program, dtype, layout, angles, whole, slices):
        super().__init__(dtype)
        if dtype == "float32":
            self.calls = {**self.calls, "/": "quotient({}, {})"}
        self.layout, self.angles, self.whole = layout, angles, whole
        self.slices = slices
        self.inputs, self.outputs = _names("in", program.inputs), _names("out", program.outputs)
        self.shapes = {a.name: a for a in program.inputs}
        self.slots, self.free, self.open = 0, [], {}
        self.waiting, self.constants = self._windows(program)
        self.direct = set()

    def input(self, argument, index):
        """A number of the sample's own row."""
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

    def _windows(self, program):
        """For every window the places that are computed; and the constants among all places."""
        waiting, constants, position = {}, {}, 0
        for argument in program.outputs:
            for place in range(argument.size):
                node = program.graph.nodes[program.roots[position]]
                position += 1
                if argument.name in self.whole:
                    continue
                places = waiting.setdefault((argument, place // self.layout.window), set())
                if node[0] == "const":
                    constants[argument, place] = self.constant(node[1])
                else:
                    places.add(place)
        return waiting, constants

    # --- results ---------------------------------------------------------------------------------

    def output(self, argument, index, text):
        """To a tile, to a window, or directly to memory."""
        place = offset(argument, index)
        if argument.name in self.whole:
            return [f"{self.outputs[argument.name]}[{place}] = {text};"]
        if (argument, place) in self.constants:
            return []  # with its window
        key = (argument, place // self.layout.window)
        lines = self._opened(key)
        lines.append(self._stored(key, place, text))
        return lines + self._closed(key, place)

    def rest(self):
        """Windows of constants alone."""
        lines = []
        for key in [key for key, places in self.waiting.items() if not places]:
            lines += [*self._opened(key), *self._closed(key, None)]
        return lines

    def _opened(self, key):
        """Lines that begin a window, with its constants."""
        if key in self.open or key in self.direct:
            return []
        if self.free:
            self.open[key] = self.free.pop()
        elif self.slots < self.layout.windows:
            self.open[key] = self.slots
            self.slots += 1
        else:
            self.direct.add(key)
        argument, number = key
        start = number * self.layout.window
        return [
            self._stored(key, place, self.constants[argument, place])
            for place in range(start, min(start + self.layout.window, argument.size))
            if (argument, place) in self.constants
        ]

    def _stored(self, key, place, text):
        argument, number = key
        if key in self.direct:
            row = self.slices[argument.name].size
            own = f"{self.outputs[argument.name]}[lane * {row} + {place}]"
            return f"if (lane < rows) {own} = {text};"
        w = self.layout.window
        start = self.open[key] * 32 * (w + 1) + place - number * w
        return f"window[{start} + lane * {w + 1}] = {text};"

    def _closed(self, key, place):
        """Lines that write a window once it is complete."""
        waiting = self.waiting[key]
        waiting.discard(place)
        if waiting or key in self.direct:
            return []
        argument, number = key
        w, slot = self.layout.window, self.open.pop(key)
        self.free.append(slot)
        del self.waiting[key]
        start = number * w
        return [
            f"store_window({self.outputs[argument.name]} + {start}, "
            f"{self.slices[argument.name].size}, "
            f"{min(w, argument.size - start)}, window + {slot * 32 * (w + 1)}, rows);"
        ]


def _names(side, arguments):
    """A name for every argument, by its name."""
    names = {}
    for a in arguments:
        name = identifier(f"{side}_{a.name}")
        while name in names.values():
            name += "_"
        names[a.name] = name
    return names
