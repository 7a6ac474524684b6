"""Values that wait long, parked in shared memory instead of registers.

A thread has 255 registers of 32 bits. What does not fit goes to local memory, which is far away. So
where more values wait than there is room for, those whose next use is farthest are put aside in
shared memory, and taken back before it: in places of inputs that are not needed any more as long as
there are any.
"""

import re
from dataclasses import dataclass, field

__all__ = ["parked"]

_NAME = re.compile(r"[A-Za-z_]\w*")
_CELL = re.compile(r"in_\w+\[\d+\]")


def parked(items, room, cells=()):
    """The assignments with values put aside where more than ``room`` would wait.

    Args:
        items: ``Assignment``s.
        room: values that fit into registers.
        cells: texts of inputs, such as ``in_q[3]``, whose places may be taken after their last use.

    Returns:
        Lines, and the places needed besides, for one thread: place ``k`` is ``park[32 * k]``.
    """
    return _Parking(items, room, _last_mentions(items, cells)).run()


def _last_mentions(items, cells):
    """For every item the cells that are free after it; under -1 those that are never used."""
    last = dict.fromkeys(cells, -1)
    for k, item in enumerate(items):
        for line in item.lines:
            for text in _CELL.findall(line):
                if text in last:
                    last[text] = k
    found = {}
    for text, k in last.items():
        found.setdefault(k, []).append(text)
    return found


@dataclass
class _Parking:
    items: list
    room: int
    cells: dict
    places: int = 0
    free: list = field(default_factory=list)
    held: set = field(default_factory=set)  # names that are in registers
    place: dict = field(default_factory=dict)  # name: where it is parked
    alias: dict = field(default_factory=dict)  # name: what it is called since it came back
    lines: list = field(default_factory=list)

    def run(self):
        uses = {}
        for k, item in enumerate(self.items):
            for name in item.mentions:
                uses.setdefault(name, []).append(k)
        self.uses = {name: list(reversed(at)) for name, at in uses.items()}  # the next one last
        self.kinds = {n: kind for item in self.items for n, kind in item.defines.items()}
        self.free += self.cells.get(-1, [])
        for k, item in enumerate(self.items):
            self._item(item)
            self.free += self.cells.get(k, [])
        return self.lines, self.places

    def _item(self, item):
        for name in sorted(item.mentions):
            if name not in self.held and name in self.kinds:
                self._take_back(name)
            self.uses[name].pop()
        names = self.alias
        self.lines += [_NAME.sub(lambda m: names.get(m[0], m[0]), line) for line in item.lines]
        for name in item.mentions:
            if not self.uses[name]:
                self._forget(name)
        self.held.update(name for name in item.defines if self.uses.get(name))
        while len(self.held) > self.room:
            candidates = [n for n in self.held if not self.kinds[n]]  # conditions are small
            if not candidates:
                break
            self._put_aside(min(candidates, key=lambda n: (-self.uses[n][-1], n)))

    def _put_aside(self, name):
        if name not in self.place:
            if not self.free:
                self.free.append(f"park[{32 * self.places}]")
                self.places += 1
            self.place[name] = self.free.pop()
            self.lines.append(f"PARKED({self.place[name]}) = {self.alias.get(name, name)};")
        self.held.discard(name)

    def _take_back(self, name):
        new = f"{name}_{len(self.lines)}_back"
        self.lines.append(f"const real {new} = PARKED({self.place[name]});")
        self.alias[name] = new
        self.held.add(name)

    def _forget(self, name):
        self.held.discard(name)
        if name in self.place:
            self.free.append(self.place.pop(name))
