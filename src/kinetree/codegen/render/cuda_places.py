"""Where the numbers of a sample are while a kernel computes: tiles of inputs and of results.

A tile holds the rows of one argument for the 32 threads of a warp (``cuda_tiles.cuh``). A result
may take the tile of an input when no number of the input is needed any more once the number of the
result in its place is there. Of results that are zero for the most part only the other numbers are
in shared memory, and a table says which of them goes where. While a warp computes, the inputs of
its next samples may come, and values that wait for long may be parked where inputs were.
"""

import re
from bisect import bisect
from dataclasses import dataclass
from math import gcd

from kinetree.codegen.render.c import offset
from kinetree.expr.node import LEAVES

WARP = 32  # threads
PITCH = WARP + 1  # numbers from one kept number of all threads to the next: no banks are shared
_LITTLE = 1024  # bytes of a sample's results that may all be in tiles: six warps have room
_SHARED_BY = 4  # threads that may find their numbers in the same bank


@dataclass(frozen=True)
class Tile:
    """Rows of one argument."""

    size: int
    """Numbers of a row."""
    step: int
    """Numbers from row to row in device memory."""
    start: int = 0
    """Numbers before the first row there."""

    @property
    def is_slice(self):
        """Whether the tile holds a part of each row in memory, with other numbers between."""
        return self.size != self.step

    @property
    def group(self):
        """Rows after which the tile is shifted to avoid bank conflicts; 0: no shift is needed."""
        sharing = gcd(self.size, WARP)
        return WARP // sharing if sharing > _SHARED_BY and not self.is_slice else 0

    @property
    def pitch(self):
        """Distance between rows in the tile [numbers], shifts not counted."""
        if not self.is_slice:
            return self.size
        if self.size % 4 or self.step % 4 or self.start % 4:
            return self.size | 1
        return self.size if self.size % 8 else self.size + 4

    @property
    def numbers(self):
        """Size of the tile [numbers], a multiple of 16 bytes."""
        left_out = (WARP - 1) // self.group if self.group else 0
        return WARP * self.pitch + -(-left_out // 4) * 4


def tiles(arguments, most):
    """Tiles in shared memory for arguments, smallest first, while ``most`` numbers suffice."""
    found, total = {}, 0
    for a in sorted(arguments, key=lambda a: a.size):
        if total + a.size <= most:
            found[a.name] = Tile(a.size, a.size)
            total += a.size
    return {a.name: found[a.name] for a in arguments if a.name in found}


@dataclass(frozen=True)
class Kept:
    """Results of which only what is not zero is in shared memory."""

    tables: dict
    """For each result, by name, which kept number each of its numbers is; 0 is zero."""
    first: dict
    """Kept number by place ``(name, offset)``, for one place of each."""

    @property
    def count(self):
        """Nonzero numbers of a sample's sparse results, and one place for zero."""
        return len(self.first) + 1 if self.tables else 0

    @property
    def numbers(self):
        """Size of sparse results in a warp's shared memory [numbers], a multiple of 16 bytes."""
        return -(-self.count * PITCH // 4) * 4


def sparse_results(program, names, dtype) -> Kept:
    """Results that are mostly zero and stored sparsely; none if all results are small.

    Args:
        program: what is computed.
        names: of the results that may be kept.
        dtype: ``"float32"`` or ``"float64"``.
    """
    nodes, position = program.graph.nodes, 0
    tables, known, first = {}, {}, {}
    size = 4 if dtype == "float32" else 8
    if sum(a.size for a in program.outputs if a.name in names) * size <= _LITTLE:
        return Kept(tables, first)
    for a in program.outputs:
        roots = program.roots[position : position + a.size]
        position += a.size
        zeros = sum(nodes[i] == ("const", 0.0) for i in roots)
        if 2 * zeros <= a.size or a.name not in names:
            continue
        for place, i in enumerate(roots):
            if nodes[i] != ("const", 0.0) and i not in known:
                known[i] = first[a.name, place] = len(known) + 1
        tables[a.name] = tuple(known.get(i, 0) for i in roots)
    return Kept(tables, first)


def given_up(program, order, inputs, outputs):
    """For each result an input whose tile it can overwrite, by name.

    Args:
        program: what is computed.
        order: its nodes, in the order in which they are computed.
        inputs: names of the inputs that have tiles.
        outputs: names of the results that have tiles.
    """
    read, written = last_uses(program, order), _last_uses(program, order)
    found, free = {}, [a for a in program.inputs if a.name in inputs]
    for o in program.outputs:
        if o.name not in outputs:
            continue
        for a in free:
            fits = a.size == o.size and all(
                read.get((a.name, k), -1) <= written[o.name, k] for k in range(o.size)
            )
            if fits:
                found[o.name] = a.name
                free.remove(a)
                break
    return found


def last_uses(program, order):
    """Position in the order at which each input number is last used.

    A loop stands behind its body, which reads again and again until it ends; and a product may be
    written into the sum that uses it.
    """
    nodes, last = program.graph.nodes, {}
    arguments = {a.name: a for a in program.inputs}
    loop = max((k for k, i in enumerate(order) if nodes[i][0] == "repeat"), default=0)
    for place, i in enumerate(order):
        read = [i] if nodes[i][0] in LEAVES else [i, *nodes[i][1:]]
        if nodes[i][0] in ("+", "-"):
            read += [b for a in nodes[i][1:] if nodes[a][0] == "*" for b in nodes[a][1:]]
        for a in read:
            if nodes[a][0] == "input" and (a != i or i in program.roots):
                name, index = nodes[a][1:]
                last[name, offset(arguments[name], index)] = max(place, loop)
    return last


def _last_uses(program, order):
    """Position in the order at which each result number is computed."""
    place = {i: k for k, i in enumerate(order)}
    found, position = {}, 0
    for argument in program.outputs:
        for k in range(argument.size):
            found[argument.name, k] = place[program.roots[position]]
            position += 1
    return found


# --- The next inputs, and values that wait --------------------------------------------------------


@dataclass(frozen=True)
class Ahead:
    """How the inputs of the next samples come while a warp computes.

    Attributes:
        twice: names of inputs that have two tiles, which take turns.
        again: names of inputs with one tile, which is filled again after their last use.
        slots: numbers of a sample that may be parked besides those in tiles.
    """

    twice: tuple
    again: tuple = ()
    slots: int = 0

    def numbers(self, tiles):
        """Size of the prefetched inputs' tiles in a warp's shared memory [numbers]."""
        return sum(2 * tiles[x].numbers for x in self.twice) + sum(
            tiles[x].numbers for x in self.again
        )

    @property
    def numbers_besides(self):
        """Further shared memory of a warp for parked values and a counter [numbers]."""
        return WARP * self.slots + 4


def last_mentions(lines, names):
    """For each array element in CUDA lines, the index of the last list that mentions it."""
    number = re.compile(rf"\b(?:{'|'.join(names)})\[\d+\]")
    return {
        text: k for k, some in enumerate(lines) for line in some for text in number.findall(line)
    }


def park(items, most, slots):
    """CUDA lines in which values that are used last move to shared memory for a while.

    Compilers that run out of registers put values into local memory, and load them late.

    Args:
        items: ``Assignment``s, one after the other.
        most: values that may wait in registers.
        slots: texts of places in shared memory, and the item after which each is free.
    """
    uses: dict[str, list[int]] = {}
    for k, item in enumerate(items):
        for name in item.mentions:
            uses.setdefault(name, []).append(k)
    is_condition = {name: x for item in items for name, x in item.defines.items()}
    texts, there, taken, found = {}, {}, {}, []  # texts: of values in registers; there: in slots
    for k, item in enumerate(items):
        before, after = [], []
        for name in sorted(item.mentions - texts.keys()):
            texts[name] = f"again_{k}_{name}"
            before.append(f"const real {texts[name]} = {there[name]};")
        lines = [_rename(line, {x: texts[x] for x in item.mentions}) for line in item.lines]
        texts |= {name: name for name in item.defines}
        for name in (*item.mentions, *item.defines):
            if uses.get(name, [-1])[-1] <= k:
                del texts[name]
        while len(texts) > most:
            values = [name for name in texts if not is_condition[name]]
            name = max(values, key=lambda x: uses[x][bisect(uses[x], k)])
            if name not in there:
                place = next((s for s, free in slots if max(free, taken.get(s, -1)) < k), None)
                if place is None:
                    break
                there[name], taken[place] = place, uses[name][-1]
                after.append(f"{place} = {texts[name]};")
            del texts[name]
        found.append([*before, *lines, *after])
    return found


def _rename(line, names):
    """CUDA line with variables renamed."""
    return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), line)
