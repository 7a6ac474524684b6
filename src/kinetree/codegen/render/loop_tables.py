"""A robot as tables that code in C and CUDA C reads: integers, and numbers of the model.

The integers begin with a header, ``TablePlan.header``. Each row of a domain has a *record*: its
kind, where its numbers begin in the workspace and among those of the model, then its columns. A
column that names a row has two words, its number (negative: none) and where its numbers begin in
the workspace.
Lists have no records: their columns are the first numbers of their rows.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

KIND, ROW, NUMBERS, COLUMNS = range(4)
"""Words of a record; columns follow."""


@dataclass(frozen=True)
class TablePlan:
    """Where things are in a robot's tables."""

    columns: dict
    """For each domain its columns: name -> what it refers to, and its first word."""
    numbers: dict
    """For each domain its tables of the model: name -> where it begins, how many."""
    kinds: dict
    """Names of the kinds of each domain that the text has cases for, in order."""
    widths: dict
    """For each domain the numbers of a row in the workspace, kind after kind."""
    extents: list
    """Names of lengths that the robot has."""
    lists: list
    """Domains that grow."""

    @cached_property
    def header(self) -> dict:
        """Index of each entry of the table's header, by name."""
        names = ["rows of a sample", *(f"length of {e}" for e in self.extents)]
        for domain in self.columns:
            names += [f"count of {domain}", f"records of {domain}"]
        names += [f"rows of {name}" for name in self.lists]
        return {name: k for k, name in enumerate(names)}

    def size(self, domain) -> int:
        """Number of words of a row's record in a domain."""
        columns = self.columns[domain].values()
        return COLUMNS + sum(2 if target in self.columns else 1 for target, _ in columns)


def table_plan(program) -> TablePlan:
    """Layout of the tables of a robot for a loop program, with the kinds it was recorded for."""
    columns, numbers = {}, {}
    kinds: dict = {"": [""]}
    for name in ("", *(d for d in program.domains if d)):
        columns[name], numbers[name], at = {}, {}, COLUMNS
        kinds.setdefault(name, [])
        domain = program.domains.get(name)
        for column, target in domain.columns.items() if domain else ():
            columns[name][column] = target, at
            at += 2 if target in program.domains else 1
        at = 0
        for t in program.tables.values():
            if t.storage == "model" and t.domain == name:
                numbers[name][t.name] = at, t.axes[0] if t.axes else 1
                at += numbers[name][t.name][1]
    for code, walks in program.codes():
        domains = program.scope(walks).values()
        for key in code.cases:
            for domain, kind in zip(domains, key, strict=True):
                if name_of(kind) not in kinds[domain]:
                    kinds[domain].append(name_of(kind))
    arrays = [program.tables[name] for name in (*program.arguments, *program.results)]
    extents = sorted({a for t in arrays for a in t.axes if isinstance(a, str)})
    rows = {(d, name_of(k)): len(row) for (d, k), row in program.rows.items()}
    widths = {
        d: [rows.get((d, k), len(program.shared.get(d, ()))) for k in found]
        for d, found in kinds.items()
    }
    lists = [d.name for d in program.domains.values() if d.grows]
    for name in lists:  # their columns come before their numbers
        widths[name] = [len(columns[name]) + len(program.rows.get((name, ""), ()))]
        columns[name] = {c: (t, k) for k, (c, (t, _)) in enumerate(columns[name].items())}
    return TablePlan(columns, numbers, kinds, widths, extents, lists)


def name_of(kind) -> str:
    """Name of a kind of row, equal in every process if the kind has a key."""
    if isinstance(kind, str):
        return kind
    return kind.key or f"{type(kind).__name__} {hash(kind)}"


def tables(plan, data):
    """A robot's tables for C-like loops: integers (records, columns) and numbers (parameters).

    Args:
        plan: of a program.
        data: the robot, a ``loops.language.Data``.

    Raises:
        ValueError: the program has no case for a kind of row that the robot has.
    """
    ints, numbers = [np.zeros(len(plan.header), dtype=np.int64)], []
    rows, total, at, placed = {}, 0, len(plan.header), 0
    head = ints[0]
    for e in plan.extents:
        head[plan.header[f"length of {e}"]] = data.lengths[e]
    domains = {d: data.rows(d) for d in plan.columns}
    for domain, found in domains.items():
        known = plan.kinds[domain] or [""]
        kinds = [known.index(name_of(k)) for k in found.kinds] if found.count else []
        kind = np.array(kinds, dtype=np.int64)[found.kind_numbers]
        widths = np.array(plan.widths[domain] or [0], dtype=np.int64)[kind]
        rows[domain] = kind, total + np.cumsum(widths) - widths
        if domain in plan.lists:  # one row more: what is not kept is written, too
            head[plan.header[f"rows of {domain}"]] = total
            total += plan.widths[domain][0]
        total += int(widths.sum())
    for domain, columns in plan.columns.items():
        found = domains[domain]
        if domain in plan.lists:
            head[plan.header[f"count of {domain}"]] = found.count
            continue
        record = np.zeros((found.count, plan.size(domain)), dtype=np.int64)
        record[:, KIND], record[:, ROW] = rows[domain]
        known = plan.numbers[domain]
        width = sum(w for _, w in known.values())
        record[:, NUMBERS] = placed + width * np.arange(found.count)
        for name, (target, word) in columns.items():
            if name not in found.columns:
                continue
            record[:, word] = found.columns[name]
            if target in plan.columns and found.count:
                # Without a row any place is right, since no case reads it.
                record[:, word + 1] = np.append(rows[target][1], 0)[found.columns[name]]
        block = np.zeros((found.count, width))
        for name, (first, size) in known.items():
            block[:, first : first + size] = data.numbers[domain][name]
        head[plan.header[f"count of {domain}"]] = found.count
        head[plan.header[f"records of {domain}"]] = at
        at, placed = at + record.size, placed + block.size
        ints.append(record.ravel())
        numbers.append(block.ravel())
    head[plan.header["rows of a sample"]] = total
    return np.concatenate(ints).astype(np.int32), np.concatenate(numbers)
