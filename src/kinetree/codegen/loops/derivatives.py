"""Rates and gradients of loop programs, as loop programs.

A case is straight-line code, so its rates are those of any program, by ``expr.forward``: a number
that it loads has a rate, which is loaded from the table's twin, and what it stores has one, too.
The loops stay as they are.

A gradient takes the loops twice: as they are, which fills the rows; then from the last to the first
with adjoints in the tables' twins. Each store hands its adjoint to what the case has loaded, by
``expr.diff``; these are sums, whatever the order. A store that adds leaves its adjoint for those
before it. This needs every number that a case has loaded once more, so a row must not change after
it has been read: see ``_check_history``.

Derivatives are with respect to the numbers in the arrays, as those of kernels are
(``codegen.runtime.derived``); numbers of the model have none.
"""

from dataclasses import replace
from itertools import count

from kinetree.codegen.loops.language import (
    Chain,
    Clear,
    Code,
    Declaration,
    LoopProgram,
    NumberPlace,
    Walk,
    input_name,
    regions,
    with_codes,
)
from kinetree.codegen.loops.stores import ANY, Stores, drop_unread, leaves, used_numbers
from kinetree.errors import TraceError
from kinetree.expr import simplify
from kinetree.expr.diff import reverse
from kinetree.expr.forward import forward


def rates(program: LoopProgram, wrt: tuple[int, ...]) -> LoopProgram:
    """Loop program of forward-mode rates: takes the arguments, then rates of those in ``wrt``."""
    return _Rates(program, [program.arguments[k] for k in wrt]).program()


def gradients(program: LoopProgram, wrt: tuple[int, ...]) -> LoopProgram:
    """Loop program of gradients (reverse mode) of a weighted sum of results, given the weights."""
    return _Gradients(program, [program.arguments[k] for k in wrt]).program()


class _Derived:
    """A program with tables that have twins."""

    def __init__(self, program, wrt):
        self.given, self.wrt = program, wrt
        letters = ("d" * n for n in count(1))
        known = program.tables
        self.mark = next(d for d in letters if not any(d + n in known for n in known))
        self.crossing = {t for numbers in program.shared.values() for t, _ in numbers}
        self.cases = {}  # stores by code and kinds
        for code, walks in program.codes():
            variables = [w.variable for w in walks]
            found = {key: Stores.of(case, variables, key) for key, case in code.cases.items()}
            self.cases[id(code)] = found
        for case in self.all_cases():
            read = next((p for p in case.leaves().values() if self.storage(p) == "result"), None)
            if read is not None:
                raise TraceError(
                    f"{program.name} reads its result {read.table} back, of which general code "
                    f"has no derivatives: keep what is read in a table (model.table)"
                )

    def all_cases(self):
        """Straight-line cases of all loops and kinds of rows, as one list."""
        return [case for found in self.cases.values() for case in found.values()]

    def storage(self, place):
        """Storage class of the table that a place belongs to."""
        return self.given.tables[place.table].storage

    def twin(self, place: NumberPlace) -> NumberPlace:
        """Place of the derivative (rate or adjoint) of a number, in the table marked so."""
        return place._replace(table=self.mark + place.table)

    def leaf(self, case, place):
        """Node that loads the number at a place in a case."""
        return case.graph.node("input", input_name(place), place.index)

    def twins(self, storage):
        """Declarations of derivative tables for all tables of a storage class, by name."""
        return {
            self.mark + n: replace(d, name=self.mark + n)
            for n, d in self.given.tables.items()
            if d.storage == storage
        }

    def rebuilt(self, body, name):
        """Copy of regions with the differentiated cases in place of the original ones."""

        def change(code):
            found = self.cases[id(code)]
            return replace(code, cases={key: case.program(name) for key, case in found.items()})

        return with_codes(body, change)

    def stays(self, case, place, node):
        """Whether a store is kept without a load in the same case; None if the loads decide."""
        plain = place.table.removeprefix(self.mark)
        if plain in self.crossing or (plain in self.given.exposed and case.kind(place) is not ANY):
            return True
        return None

    def rows(self, cases):
        """Shared numbers of rows, and all numbers by domain and kind, with derivatives."""
        old, mark = self.given, self.mark
        shared = {
            domain: (*numbers, *((mark + t, k) for t, k in numbers))
            for domain, numbers in old.shared.items()
        }
        used = {
            (domain, kind): {(m + t, k) for t, k in numbers if t in old.exposed for m in ("", mark)}
            for (domain, kind), numbers in old.rows.items()
        }
        for kind, table, k in used_numbers(cases):
            declared = old.tables.get(table.removeprefix(mark)) or old.tables.get(table)
            if declared is not None and declared.storage == "rows":
                at = declared.domain, "" if kind is ANY else kind
                if at in used:
                    used[at].add((table, k))
        order = {n: k for k, t in enumerate(old.tables) for n in (t, mark + t)}
        rows = {}
        for at, numbers in used.items():
            first = shared.get(at[0], ())
            alone = numbers - set(first)

            def by_use(n):
                plain = n[0].removeprefix(mark) in old.exposed
                return not plain, n[0] not in old.tables, order[n[0]], n[1]

            rows[at] = (*first, *sorted(alone, key=by_use))
        return shared, rows


class _Rates(_Derived):
    """Numbers that have no rate at all are not stored: ``still`` has those of which this is known.

    In loops that run more than once, and for tables that others look at or of which a chain sets
    some rows, every number has one.
    """

    def program(self):
        """Loop program that computes the results and their rates."""
        given = self.given
        name, still, moving = f"rates of {given.name}", set(), set()
        plain = all(isinstance(r, (Walk, Code, Clear)) for r, _ in regions(given.body))
        self.added = {(p.table, c.kind(p)) for c in self.all_cases() for p in c.stores if p.adds}
        self.always = self.crossing | given.exposed if plain else set(given.tables)
        self.always |= self.set_in_part()
        for code, _ in given.codes():
            for case in self.cases[id(code)].values():
                self.differentiate(case, still, moving)
        results = set(given.results)
        drop_unread(
            self.all_cases(), lambda c, p, n: True if p.table in results else self.stays(c, p, n)
        )
        shared, rows = self.rows(self.all_cases())
        more = {n: d for n, d in self.twins("argument").items() if n[len(self.mark) :] in self.wrt}
        body = []
        for region in self.rebuilt(given.body, name):
            body.append(region)
            if isinstance(region, Clear) and given.tables[region.table].storage == "rows":
                body.append(Clear(self.mark + region.table))
        return replace(
            given,
            name=name,
            arguments=(*given.arguments, *(self.mark + a for a in self.wrt)),
            tables={**given.tables, **self.twins("rows"), **more},
            body=tuple(body),
            shared=shared,
            rows=rows,
            exposed=self.given.exposed | self.mark_all(given.exposed),
        )

    def set_in_part(self):
        """Names of tables of which chains set some rows, and other walks the others."""
        over = {}
        for code, walks in self.given.codes():
            for case in self.cases[id(code)].values():
                for place in case.stores:
                    over.setdefault(place.table, set()).add(walks[0].over if walks else "")
        return {t for t, w in over.items() if len(w) > 1 and any(isinstance(x, Chain) for x in w)}

    def mark_all(self, tables):
        """Names of the derivative tables that belong to some tables."""
        return frozenset(self.mark + t for t in tables)

    def differentiate(self, case, still, moving):
        """Add stores of rates to a case, by forward mode; rates known to be zero are left out."""

        def number(place):
            return place.table, case.kind(place), place.index

        def always(place):
            return place.table in self.always or (place.table, case.kind(place)) in self.added

        seeds = {}
        for i, place in case.leaves().items():
            storage = self.storage(place)
            if (storage == "argument" and place.table in self.wrt) or (
                storage == "rows" and (always(place) or number(place) not in still)
            ):
                seeds[i] = self.leaf(case, self.twin(place))
        found = forward(case.graph, list(case.stores.values()), [seeds])
        zero, stores = case.graph.constant(0.0), {}
        for (place, node), rate in zip(case.stores.items(), found, strict=True):
            rate = rate.get(0)
            if self.storage(place) == "result":
                if rate is not None or not place.adds:
                    stores[place] = zero if rate is None else rate
                continue
            stores[place] = node
            if always(place) or rate is not None or number(place) in moving:
                if rate is not None or not place.adds:
                    stores[self.twin(place)] = zero if rate is None else rate
                moving.add(number(place))
                still.discard(number(place))
            else:
                still.add(number(place))
        case.stores = stores


class _Gradients(_Derived):
    """Cases that fill rows are kept in ``cases``, those of adjoints in ``back``."""

    def program(self):
        """Loop program that computes the results, then the gradients of their weighted sum."""
        given = self.given
        _check_history(given)
        name = f"gradients of {given.name}"
        results = {
            n: Declaration(f"out{k}", "result", "", given.tables[n].axes)
            for k, n in enumerate(self.wrt)
        }
        self.result_of = {n: d.name for n, d in results.items()}
        set_in = {}
        for code, _ in given.codes():
            for case in self.cases[id(code)].values():
                for place in case.stores:
                    if not place.adds and self.storage(place) == "rows":
                        number = place.table, case.kind(place)
                        set_in.setdefault(number, set()).add(id(code))
        self.set_again = {t for t, codes in set_in.items() if len(codes) > 1}
        self.back = {
            id(code): {key: self.adjoint(case) for key, case in self.cases[id(code)].items()}
            for code, _ in given.codes()
        }
        for case in self.all_cases():
            case.stores = {p: n for p, n in case.stores.items() if self.storage(p) != "result"}
        forward_body = tuple(r for r in given.body if not self._clears_result(r))
        first = self.start(forward_body)
        cases = [*self.all_cases(), *(c for found in self.back.values() for c in found.values())]
        outputs = set(self.result_of.values())

        def stays(case, place, node):
            return True if place.table in outputs else self.stays(case, place, node)

        drop_unread([*cases, *first], stays)
        shared, rows = self.rows([*cases, *first])
        body = (
            *(Clear(d.name) for d in results.values()),
            *(Clear(self.mark + t) for t in dict.fromkeys(t for t, _ in given.shared.get("", ()))),
            *self.rebuilt(forward_body, name), *self.reverse(forward_body, name, True),
        )  # fmt: skip
        weights = {
            self.mark + n: Declaration(self.mark + n, "argument", "", given.tables[n].axes)
            for n in given.results
        }
        kept = {n: d for n, d in given.tables.items() if d.storage != "result"}
        tables = {**kept, **self.twins("rows"), **weights}
        tables.update({d.name: d for d in results.values()})
        return replace(
            given,
            name=name,
            arguments=(*given.arguments, *weights),
            results=tuple(self.result_of.values()),
            tables=tables,
            body=body,
            shared=shared,
            rows=rows,
            exposed=given.exposed | {self.mark + t for t in given.exposed},
        )

    def _clears_result(self, region):
        """Whether a region sets a table of results to zero."""
        return isinstance(region, Clear) and self.given.tables[region.table].storage == "result"

    def adjoint(self, case):
        """Reverse mode of one case: from adjoints of the places it stores to, to those it loads."""
        graph, total = case.graph, case.graph.constant(0.0)
        back = Stores(graph, case.kinds, {}, {}, ())
        for place, node in case.stores.items():
            weight = self.leaf(case, self.twin(place))
            total = simplify.add(graph, total, simplify.mul(graph, weight, node))
        loaded = {
            i: place
            for i, place in leaves(graph, [total]).items()
            if place.table in self.given.tables
            and (self.storage(place) == "rows" or place.table in self.wrt)
        }
        one = graph.constant(1.0)
        (found,) = reverse(graph, [total], [{i: one} for i in loaded])
        for n, place in enumerate(loaded.values()):
            if n in found:
                if place.table in self.wrt:
                    place = place._replace(table=self.result_of[place.table])
                else:
                    place = self.twin(place)
                back.stores[place._replace(adds=True)] = found[n]
        for place in case.stores:  # what was set before does not count for what it was before
            twin = self.twin(place)
            again = (place.table, case.kind(place)) in self.set_again and not place.adds
            if again and twin._replace(adds=True) not in back.stores:
                back.stores[twin] = graph.constant(0.0)
        return back

    def start(self, body):
        """Zero all adjoints in the first walk over each domain; returns the changed cases."""
        changed = []
        for domain in {d for d, _ in self.given.rows if d}:
            walk = next((r for r in body if isinstance(r, Walk) and r.over == domain), None)
            if walk is None or not isinstance(walk.body[0], Code):
                raise TraceError(f"{self.given.name} has no walk over all {domain} to begin with")
            for (kind,), case in self.cases[id(walk.body[0])].items():
                zero = case.graph.constant(0.0)
                for table, k in self.given.rows[domain, kind]:
                    place = NumberPlace(self.mark + table, (walk.variable,), (k,))
                    case.stores[place] = zero
                changed.append(case)
        return changed

    def reverse(self, body, name, outermost=False):
        """Regions in reversed order with the adjoints of their cases, for the backward pass.

        Inner walks keep their direction: what they do for one row does not depend on another.
        """
        found = []
        for region in reversed(body):
            if isinstance(region, Walk):
                turned = region.backwards != outermost
                inner = self.reverse(region.body, name)
                if inner:
                    found.append(replace(region, backwards=turned, body=inner))
            elif isinstance(region, Code):
                cases = self.back[id(region)]
                found.append(Code({key: case.program(name) for key, case in cases.items()}))
        return tuple(found)


def _check_history(program):
    """Raise TraceError if a row changes after it was read, as reverse mode needs the old value."""
    if program.by_values or not all(
        isinstance(r, (Walk, Code, Clear)) for r, _ in regions(program.body)
    ):
        raise TraceError(
            f"{program.name} repeats or chooses what it does by values, of which general code has "
            f"no gradients: use rates, or specialised code"
        )
    seen = []  # region, code, table, whether the own row, depth, of loads and of stores
    for n, region in enumerate(program.body):
        for m, (code, walks) in enumerate(_codes(region)):
            for key, case in code.cases.items():
                stores = Stores.of(case, [w.variable for w in walks], key)
                for place in {p._replace(index=()) for p in stores.leaves().values()}:
                    seen.append((n, m, walks, place, False))
                for place in {p._replace(index=()) for p in stores.stores}:
                    seen.append((n, m, walks, place, True))
    changed = {}
    for access in seen:
        if access[-1]:
            changed.setdefault(access[3].table, []).append(access)
    for read in seen:
        if read[-1] or program.tables[read[3].table].storage != "rows":
            continue
        for store in changed.get(read[3].table, ()):
            if _changes_later(read, store):
                raise TraceError(
                    f"{program.name}: rows of table {read[3].table} change after they were read, "
                    f"so that general code has no gradients: use rates, or specialised code"
                )


def _codes(region):
    """Regions of straight-line code within a region, each with the walks around it."""
    return [(r, walks) for r, walks in regions((region,)) if isinstance(r, Code)]


def _changes_later(read, store):
    """Whether a store may change a row after it was read."""
    (n, m, walks, at, _), (n2, m2, walks2, at2, _) = read, store
    if n != n2 or not walks:
        return (n2, m2) >= (n, m)
    walk = walks[0]
    own, own2 = at.paths == (walk.variable,), at2.paths == (walk.variable,)
    if own and own2:  # the same row: in order, unless an inner walk does both
        return m2 >= m or (len(walks) > 1 and walks[:2] == walks2[:2])
    inward = walk.backwards != isinstance(walk.over, Chain)
    # rows that others refer to come later inward, and earlier outward
    return not (inward and own) if not own2 else inward
