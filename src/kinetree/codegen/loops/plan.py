"""Where things are in a robot's data, as code for every robot reads it.

Compiled code knows of a robot what its *records* say, an array of words for each row of a domain:

    kind      number of the row's kind among those of the robot
    row       where its numbers begin in the workspace
    angle     where the sine of its joint angle is, if code of its kind wants it
    numbers   of the model, a pointer for each table
    columns   of one that names a row two words, its record (null: none) and its ``row``; of one
              that names an entry along an axis that entry's number

A robot is a list of words, ``WordLayout.words``: pointers to the records of each domain, lengths
of axes, addresses of the cases. Records of lists, which grow while the code runs, are in the
workspace.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from kinetree.codegen.loops.language import SINGLE, Chain

KIND, ROW, ANGLE, NUMBERS = range(4)
"""Words of a record; columns follow the pointers to numbers."""


@dataclass(frozen=True)
class WordLayout:
    """Where things are, for all robots; plain data."""

    domains: dict
    """Columns by domain: for each its name, what it refers to, and its first word."""
    numbers: dict
    """Names of the tables of the model, by domain."""
    extents: list
    """Names of lengths that the robot has."""
    codes: list
    """For each piece of code the domains of the variables in scope."""
    chains: list
    """For each piece of code and variable None, or of a walk along a chain the number of the
    variable where it starts, the columns to its first row, and its column."""
    arguments: list
    """Names and axes of what the caller gives and gets."""
    lists: list
    """Domains that grow: their records and counts are in the workspace."""
    alone: bool
    """Whether each sample runs by itself, since values decide which code runs next."""

    @cached_property
    def words(self) -> dict:
        """Number of each word in a robot's table of words, by the name of its content."""
        names = [f"length of {e}" for e in self.extents]
        names += ["angles", "count of angles", "sines"]
        for domain in self.domains:
            names += [f"records of {domain}", f"count of {domain}", f"kinds of {domain}"]
        for domain in self.lists:
            names += [f"rows of {domain}", f"width of {domain}", f"most of {domain}"]
        names += [f"code {n}" for n in range(len(self.codes))]
        return {name: n for n, name in enumerate(names)}

    def size(self, domain) -> int:
        """Number of words of a row's record in a domain."""
        columns = self.domains[domain]
        ends = [at + 1 + (target in self.domains) for _, target, at in columns]
        return max(ends, default=NUMBERS + len(self.numbers[domain]))

    def table(self, domain, name) -> int:
        """Word of a row's record that points to its numbers of a table."""
        return NUMBERS + self.numbers[domain].index(name)

    def column(self, domain, name):
        """Domain that a column of a record refers to, and the column's first word."""
        return next((target, at) for n, target, at in self.domains[domain] if n == name)


def plan_of(program, numbers) -> WordLayout:
    """Memory layout of a loop program for all robots, independent of the kinds that were recorded.

    ``numbers`` are the tables that all robots have, by domain and name.
    """
    domains, names = {}, {}
    for name in dict.fromkeys(["", *program.domains]):
        names[name] = sorted(numbers.get(name, ()))
        columns, at = [], NUMBERS + len(names[name])
        domain = program.domains.get(name)
        for column, target in domain.columns.items() if domain else ():
            columns.append([column, target, at])
            at += 2 if target in program.domains else 1
        domains[name] = columns
    arguments = [[n, list(program.tables[n].axes)] for n in (*program.arguments, *program.results)]
    extents = sorted({a for _, axes in arguments for a in axes if isinstance(a, str)})
    codes = [list(program.scope(walks).values()) for _, walks in program.codes()]
    overs = [[(w.variable, w.over) for w in walks] for _, walks in program.codes()]
    chains = [[_chain(over, overs[n]) for _, over in overs[n]] for n in range(len(overs))]
    lists = [d.name for d in program.domains.values() if d.grows]
    return WordLayout(domains, names, extents, codes, chains, arguments, lists, program.by_values)


def _chain(over, walks):
    """Start of a chain as data: number of its variable or None, columns to follow, its column."""
    if not isinstance(over, Chain):
        return None
    first, *columns = over.start.split(".")
    numbers = {variable: n for n, (variable, _) in enumerate(walks)}
    return [numbers.get(first), columns, over.column]


# --- one robot as the tables that code reads ------------------------------------------------------


class Bound:
    """A robot as words for code: records of its rows, their numbers, addresses of its cases.

    Args:
        data: the robot.
        code: that of a program, ready for the robot's kinds.
    """

    def __init__(self, data, code):
        plan, self.kept = code.plan, []
        records, at = {}, 0
        for domain in (d for d in plan.domains if d not in plan.lists):
            rows = data.rows(domain)
            records[domain] = words = self._array(np.zeros((rows.count, plan.size(domain))), "i8")
            words[:, KIND] = rows.kind_numbers
            widths = np.array([code.width(domain, kind) for kind in rows.kinds])[words[:, KIND]]
            ends = at + np.cumsum(widths)
            words[:, ROW], at = ends - widths, int(ends[-1]) if len(ends) else at
            for k, name in enumerate(plan.numbers[domain], start=NUMBERS):
                array = np.asarray(data.numbers[domain][name], dtype=code.dtype, order="C")
                self.kept.append(array)  # of all kernels of a robot: who owns it may change numbers
                words[:, k] = array.ctypes.data + np.arange(rows.count) * array.strides[0]
        for domain in records:
            for name, target, k in plan.domains[domain]:
                self._fill_column(records, domain, data.rows(domain).columns[name], target, k)
        values = {f"length of {name}": data.lengths[name] for name in plan.extents}
        at = self._fill_angles(values, at, records, data, code)
        for domain, words in records.items():
            values[f"records of {domain}"] = words.ctypes.data
            values[f"count of {domain}"] = len(words)
            values[f"kinds of {domain}"] = len(data.rows(domain).kinds)
        size = np.dtype(code.dtype).itemsize  # each sample of such a program runs by itself
        for domain in plan.lists:
            most, width = data.rows(domain).count, code.width(domain, "")
            count = -(-(at + (most + 1) * width) * size // 8) * 8  # bytes; one row more is written
            values |= {f"rows of {domain}": at, f"width of {domain}": width}
            values |= {f"most of {domain}": most, f"kinds of {domain}": 1}
            values |= {f"count of {domain}": count, f"records of {domain}": count + 8}
            at = (count + 8 * (1 + (most + 1) * plan.size(domain))) // size
        self.slots = at
        for n, domains in enumerate(plan.codes):
            kinds = product(*(data.rows(d).kinds for d in domains))
            found = [code.address(tuple(domains), k, n) for k in kinds]
            values[f"code {n}"] = self._array(found, "i8").ctypes.data
        self.words = np.array([values[name] for name in plan.words], dtype=np.int64)

    def _fill_angles(self, values, at, records, data, code):
        """Assign slots to joint angles whose sines are computed in advance; fills their places."""
        group = code.group
        numbers = {name: n for n, (name, _) in enumerate(code.plan.arguments)}
        places = []
        for domain, words in records.items():
            rows = data.rows(domain)
            wanted = [code.angle(domain, kind) for kind in rows.kinds]
            if not any(wanted):
                continue
            for r, k in enumerate(words[:, KIND].tolist()):
                if wanted[k] is not None:
                    name, column, index = wanted[k]
                    n = len(places)
                    words[r, ANGLE] = at + 2 * (n - n % group) + n % group
                    places.append((numbers[name] * code.lanes, rows.columns[column][r] + index))
        places += places[-1:] * (-len(places) % group)
        values |= {"angles": self._array(places or [0], "i8").ctypes.data, "sines": at}
        values["count of angles"] = len(places)
        return at + 2 * len(places)

    def _array(self, numbers, dtype):
        """A contiguous copy of numbers, kept alive so that its address stays valid."""
        self.kept.append(np.array(numbers, dtype=dtype, order="C"))
        return self.kept[-1]

    def _fill_column(self, records, domain, column, target, k):
        """Write row references (address, workspace row) or plain numbers into column ``k``."""
        words, there = records[domain], records.get(target)
        if there is None:
            words[:, k] = column
        elif len(there):
            known = column >= 0
            words[:, k] = np.where(known, there.ctypes.data + column * there.strides[0], 0)
            words[:, k + 1] = np.where(known, there[column, ROW], 0)


def units_of(data, plan):
    """Combinations of domains and kinds of rows whose code a robot needs; single kinds first."""
    alone = [((d,), (k,)) for d in plan.domains if d for k in data.rows(d).kinds]
    wanted: dict[tuple, None] = dict.fromkeys([((), ()), *alone])
    for domains, chains in zip(plan.codes, plan.chains, strict=True):
        for kinds in _kinds_that_meet(data, plan, domains, chains):
            wanted[tuple(domains), kinds] = None
    return list(wanted)


def _kinds_that_meet(data, plan, domains, chains):
    """Combinations of kinds that occur together in the rows of nested walks of a robot."""
    found: list[tuple[int, ...]] = [()]  # numbers of kinds: to compare kinds takes long
    of = [data.rows(domain).kinds for domain in domains]
    for kinds, chain in zip(of, chains, strict=True):
        if chain is None:
            found = [(*before, k) for before in found for k in range(len(kinds))]
            continue
        start, columns, column = chain
        where = SINGLE if start is None else domains[start]
        meets = {k: sorted(x) for k, x in _meeting(data, plan, where, columns, column).items()}
        single = data.rows(SINGLE).kinds.index("") if start is None else 0
        found = [
            (*before, k)
            for before in found
            for k in meets[single if start is None else before[start]]
        ]
    return [tuple(kinds[k] for kinds, k in zip(of, numbers, strict=True)) for numbers in found]


def _meeting(data, plan, domain, columns, along):
    """For each kind in a domain the kinds of rows on the chains that start from rows of it."""
    rows, at = data.rows(domain), np.arange(data.rows(domain).count)
    target = domain
    for column in columns:
        at = np.where(at >= 0, np.asarray(data.rows(target).columns[column])[at], -1)
        target = plan.column(target, column)[0]
    there = data.rows(target)
    following, kind = np.asarray(there.columns[along]), there.kind_numbers.tolist()
    seen = [frozenset()] * there.count
    for r in range(there.count):  # those that columns name come before, as parents do
        before = seen[following[r]] if following[r] >= 0 else frozenset()
        seen[r] = before if kind[r] in before else before | {kind[r]}
    meets = {k: set() for k in range(len(rows.kinds))}
    for k, r in zip(rows.kind_numbers.tolist(), at, strict=True):
        if r >= 0:
            meets[k] |= seen[r]
    return meets
