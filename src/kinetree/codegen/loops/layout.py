"""Layout of a robot as data: where code for every robot finds its rows, numbers and lengths.

Code knows of a robot what its *records* say, an array of words for each row of a domain:

    kind      number of the row's kind
    row       where its numbers begin in the workspace
    angle     where the sine of its joint angle is, if code of its kind wants it
    numbers   of the model, a word for each table: where those of this row begin
    columns   of one that names a row two words, its record (0: none) and its ``row``; of one
              that names an entry along an axis that entry's number

A *header* of words, ``Layout.header``, says where records and lists are and how long axes are. What
a place is differs: machine code has addresses, C and CUDA C have distances in two arrays, one of
integers and one of numbers (``robots`` makes both). Records of lists, which grow while the code
runs, are in the workspace; the other records do not change.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kinetree.codegen.loops.language import SINGLE, Chain, Data, LoopProgram

KIND, ROW, ANGLE, NUMBERS = range(4)
"""Words of a record; columns follow the places of numbers."""


@dataclass(frozen=True)
class Layout:
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
    widths: dict
    """For each domain the numbers of a row in the workspace, by the names of the kinds that code
    was written for; empty for code that does not depend on kinds."""

    @cached_property
    def header(self) -> dict:
        """Number of each word of the header, by what is at it."""
        names = ["rows of a sample", *(f"length of {e}" for e in self.extents)]
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
        """The word that says where a row's numbers of a table are."""
        return NUMBERS + self.numbers[domain].index(name)

    def column(self, domain, name):
        """Domain or axis that a column of a record refers to, and the column's first word."""
        return next((target, at) for n, target, at in self.domains[domain] if n == name)


def layout_of(program: LoopProgram, numbers: dict) -> Layout:
    """Memory layout of a loop program for all robots, independent of the recorded kinds.

    ``numbers`` are the tables that all robots have, by domain and name.
    """
    domains, names = {}, {}
    for name in dict.fromkeys([SINGLE, *program.domains]):
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
    alone = program.by_values
    return Layout(domains, names, extents, codes, chains, arguments, lists, alone, {})


def layout_of_kinds(program: LoopProgram) -> Layout:
    """Memory layout of a loop program whose code has a case for each recorded kind."""
    numbers: dict = {}
    for table in program.tables.values():
        if table.storage == "model":
            numbers.setdefault(table.domain, []).append(table.name)
    layout = layout_of(program, numbers)
    kinds: dict = {domain: {} for domain in layout.domains}
    for (code, _), domains in zip(program.codes(), layout.codes, strict=True):
        for key in code.cases:
            for domain, kind in zip(domains, key, strict=True):
                kinds[domain][name_of(kind)] = len(program.shared.get(domain, ()))
    kinds[SINGLE].setdefault("", 0)
    for name in layout.lists:
        kinds[name].setdefault("", 0)
    for (domain, kind), row in program.rows.items():
        if name_of(kind) in kinds[domain]:
            kinds[domain][name_of(kind)] = len(row)
    return replace(layout, widths=kinds)


def name_of(kind) -> str:
    """Name of a kind of row, equal in every process if the kind has a key."""
    if isinstance(kind, str):
        return kind
    return kind.key or f"{type(kind).__name__} {hash(kind)}"


def _chain(over, walks):
    """Start of a chain as data: number of its variable or None, columns to follow, its column."""
    if not isinstance(over, Chain):
        return None
    first, *columns = over.start.split(".")
    numbers = {variable: n for n, (variable, _) in enumerate(walks)}
    return [numbers.get(first), columns, over.column]


# --- the records of a robot -----------------------------------------------------------------------


def records_of(layout: Layout, data: Data, width: Callable, number: Callable) -> tuple[dict, int]:
    """Records of a robot's rows by domain, the rows' kinds and offsets, and their total size.

    Args:
        layout: of the code.
        data: the robot.
        width: numbers of a row, of a domain and a kind.
        number: of a kind among those of its domain, of a domain and a kind.
    """
    records, at = {}, 0
    for domain in (d for d in layout.domains if d not in layout.lists):
        rows = data.rows(domain)
        records[domain] = words = np.zeros((rows.count, layout.size(domain)), dtype=np.int64)
        kinds = rows.kinds if rows.count else ()
        of = rows.kind_numbers
        words[:, KIND] = np.array([number(domain, k) for k in kinds], dtype=np.int64)[of]
        widths = np.array([width(domain, k) for k in kinds], dtype=np.int64)[of]
        words[:, ROW] = at + np.cumsum(widths) - widths
        at += int(widths.sum())
    return records, at


def fill_columns(layout: Layout, data: Data, records: dict, places: dict, word: int) -> None:
    """Fill columns of records with entries along axes, or with references to other rows.

    Args:
        layout: of the code.
        data: the robot.
        records: of all rows, by domain.
        places: where the records of each domain begin.
        word: the size of a word, in the units of places.
    """
    for domain, words in records.items():
        for name, target, k in layout.domains[domain]:
            column, there = np.asarray(data.rows(domain).columns[name]), records.get(target)
            if there is None:
                words[:, k] = column
            elif len(there):
                known, size = column >= 0, word * there.shape[1]
                words[:, k] = np.where(known, places[target] + column * size, 0)
                words[:, k + 1] = np.where(known, there[column, ROW], 0)


def header_of(layout: Layout, data: Data, records: dict, places: dict) -> dict:
    """Header words of a robot that do not depend on addresses, and offsets of records."""
    values = {f"length of {name}": data.lengths[name] for name in layout.extents}
    for domain, words in records.items():
        known = layout.widths.get(domain) or data.rows(domain).kinds
        values |= {f"records of {domain}": places[domain], f"count of {domain}": len(words)}
        values[f"kinds of {domain}"] = len(known)
    for domain in layout.lists:
        values |= {f"most of {domain}": data.rows(domain).count, f"kinds of {domain}": 1}
    return values
