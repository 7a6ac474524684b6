"""One robot as data for code: words with addresses, or two arrays, and what code it needs."""

from itertools import product

import numpy as np

from kinetree.codegen.loops.language import SINGLE
from kinetree.codegen.loops.layout import (
    ANGLE,
    KIND,
    NUMBERS,
    fill_columns,
    header_of,
    name_of,
    records_of,
)


class Bound:
    """A robot as words for machine code: records of its rows, their numbers, addresses of cases.

    Args:
        data: the robot.
        code: that of a program, ready for the robot's kinds.
    """

    def __init__(self, data, code):
        layout, self.kept = code.layout, []
        numbers = {d: {k: n for n, k in enumerate(data.rows(d).kinds)} for d in layout.domains}
        records, at = records_of(layout, data, code.width, lambda d, kind: numbers[d][kind])
        records = {domain: self._array(words, "i8") for domain, words in records.items()}
        places = {domain: words.ctypes.data for domain, words in records.items()}
        fill_columns(layout, data, records, places, 8)
        for domain, words in records.items():
            for k, name in enumerate(layout.numbers[domain], start=NUMBERS):
                array = np.asarray(data.numbers[domain][name], dtype=code.dtype, order="C")
                self.kept.append(array)  # of all kernels of a robot: who owns it may change numbers
                words[:, k] = array.ctypes.data + np.arange(len(words)) * array.strides[0]
        values = header_of(layout, data, records, places)
        at = self._fill_angles(values, at, records, data, code)
        size = np.dtype(code.dtype).itemsize  # each sample of such a program runs by itself
        for domain in layout.lists:
            most, width = values[f"most of {domain}"], code.width(domain, "")
            count = -(-(at + (most + 1) * width) * size // 8) * 8  # bytes; one row more is written
            values |= {f"rows of {domain}": at, f"width of {domain}": width}
            values |= {f"count of {domain}": count, f"records of {domain}": count + 8}
            at = (count + 8 * (1 + (most + 1) * layout.size(domain))) // size
        self.slots = values["rows of a sample"] = at
        for n, domains in enumerate(layout.codes):
            kinds = product(*(data.rows(d).kinds for d in domains))
            found = [code.address(tuple(domains), k, n) for k in kinds]
            values[f"code {n}"] = self._array(found, "i8").ctypes.data
        self.words = np.array([values[name] for name in layout.header], dtype=np.int64)

    def _fill_angles(self, values, at, records, data, code):
        """Assign slots to joint angles whose sines are computed in advance; fills their places."""
        group = code.group
        numbers = {name: n for n, (name, _) in enumerate(code.layout.arguments)}
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


def tables(layout, data):
    """Robot as arrays of integers and numbers for C and CUDA C: header, then records.

    Args:
        layout: of a program and its kinds.
        data: the robot, a ``loops.language.Data``.

    Raises:
        ValueError: the program has no case for a kind of row that the robot has.
    """
    known = {domain: list(kinds) or [""] for domain, kinds in layout.widths.items()}
    records, at = records_of(
        layout,
        data,
        lambda domain, kind: layout.widths[domain].get(name_of(kind), 0),
        lambda domain, kind: known[domain].index(name_of(kind)),
    )
    places, end, numbers, begin = {}, len(layout.header), [], 0
    for domain, words in records.items():
        places[domain], end = end, end + words.size
        for k, name in enumerate(layout.numbers[domain], start=NUMBERS):
            array = np.asarray(data.numbers[domain][name], dtype=float).reshape(len(words), -1)
            words[:, k] = begin + np.arange(len(words)) * array.shape[1]
            numbers, begin = [*numbers, array.ravel()], begin + array.size
    fill_columns(layout, data, records, places, 1)
    values = header_of(layout, data, records, places)
    for domain in layout.lists:  # one row more: what is not kept is written, too
        rows, width = values[f"most of {domain}"] + 1, layout.widths[domain][""]
        values |= {f"rows of {domain}": at, f"width of {domain}": width}
        values[f"records of {domain}"] = at + rows * width
        at += rows * (width + layout.size(domain))
    values["rows of a sample"] = at
    head = np.array([values.get(name, 0) for name in layout.header], dtype=np.int64)
    ints = np.concatenate([head, *(words.ravel() for words in records.values())])
    return ints.astype(np.int32), np.concatenate([*numbers, np.zeros(0)])


# --- what code a robot needs ----------------------------------------------------------------------


def units_of(data, layout):
    """Combinations of domains and kinds of rows whose code a robot needs; single kinds first."""
    alone = [((d,), (k,)) for d in layout.domains if d for k in data.rows(d).kinds]
    wanted: dict[tuple, None] = dict.fromkeys([((), ()), *alone])
    for domains, chains in zip(layout.codes, layout.chains, strict=True):
        for kinds in _kinds_that_meet(data, layout, domains, chains):
            wanted[tuple(domains), kinds] = None
    return list(wanted)


def _kinds_that_meet(data, layout, domains, chains):
    """Combinations of kinds that occur together in the rows of nested walks of a robot."""
    found: list[tuple[int, ...]] = [()]  # numbers of kinds: to compare kinds takes long
    of = [data.rows(domain).kinds for domain in domains]
    for kinds, chain in zip(of, chains, strict=True):
        if chain is None:
            found = [(*before, k) for before in found for k in range(len(kinds))]
            continue
        start, columns, column = chain
        where = SINGLE if start is None else domains[start]
        meets = {k: sorted(x) for k, x in _meeting(data, layout, where, columns, column).items()}
        single = data.rows(SINGLE).kinds.index("") if start is None else 0
        found = [
            (*before, k)
            for before in found
            for k in meets[single if start is None else before[start]]
        ]
    return [tuple(kinds[k] for kinds, k in zip(of, numbers, strict=True)) for numbers in found]


def _meeting(data, layout, domain, columns, along):
    """For each kind in a domain the kinds of rows on the chains that start from rows of it."""
    rows, at = data.rows(domain), np.arange(data.rows(domain).count)
    target = domain
    for column in columns:
        at = np.where(at >= 0, np.asarray(data.rows(target).columns[column])[at], -1)
        target = layout.column(target, column)[0]
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
