"""Where things are in a robot's data, as code for every robot reads it.

Compiled code knows of a robot what its *records* say, an array of words for each row of a domain:

    kind      number of the row's kind among those of the robot
    row       where its numbers begin in the workspace
    angle     where the sine of its joint angle is, if code of its kind wants it
    numbers   of the model, a pointer for each table
    columns   of one that names a row two words, its record (null: none) and its ``row``; of one
              that names an entry along an axis that entry's number

A robot is a list of words, ``Plan.words``: pointers to the records of each domain, lengths of axes,
addresses of the cases. Records of lists, which grow while the code runs, are in the workspace.
"""

from dataclasses import dataclass
from functools import cached_property

from kinetree.codegen.loops.language import Chain

KIND, ROW, ANGLE, NUMBERS = range(4)
"""Words of a record; columns follow the pointers to numbers."""


@dataclass(frozen=True)
class Plan:
    """Where things are, for all robots; plain data.

    Attributes:
        domains: columns by domain: for each its name, what it refers to, and its first word.
        numbers: names of the tables of the model, by domain.
        extents: names of lengths that the robot has.
        codes: for each piece of code the domains of the variables in scope.
        chains: for each piece of code and variable None, or of a walk along a chain the number of
            the variable where it starts, the columns to its first row, and its column.
        arguments: names and axes of what the caller gives and gets.
        lists: domains that grow: their records and counts are in the workspace.
        alone: whether each sample runs by itself, since values decide which code runs next.
    """

    domains: dict
    numbers: dict
    extents: list
    codes: list
    chains: list
    arguments: list
    lists: list
    alone: bool

    @cached_property
    def words(self) -> dict:
        """What is at which word of a robot."""
        names = [f"length of {e}" for e in self.extents]
        names += ["angles", "count of angles", "sines"]
        for domain in self.domains:
            names += [f"records of {domain}", f"count of {domain}", f"kinds of {domain}"]
        for domain in self.lists:
            names += [f"rows of {domain}", f"width of {domain}", f"most of {domain}"]
        names += [f"code {n}" for n in range(len(self.codes))]
        return {name: n for n, name in enumerate(names)}

    def size(self, domain) -> int:
        """Words of a record."""
        columns = self.domains[domain]
        ends = [at + 1 + (target in self.domains) for _, target, at in columns]
        return max(ends, default=NUMBERS + len(self.numbers[domain]))

    def table(self, domain, name) -> int:
        """The word that points to a row's numbers of a table."""
        return NUMBERS + self.numbers[domain].index(name)

    def column(self, domain, name):
        """What a column refers to and its first word."""
        return next((target, at) for n, target, at in self.domains[domain] if n == name)


def plan_of(program, numbers) -> Plan:
    """The plan of a program, which does not depend on the kinds that were recorded.

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
    return Plan(domains, names, extents, codes, chains, arguments, lists, program.by_values)


def _chain(over, walks):
    """Number of the variable that a chain starts from, or None, and the columns it follows."""
    if not isinstance(over, Chain):
        return None
    first, *columns = over.start.split(".")
    numbers = {variable: n for n, (variable, _) in enumerate(walks)}
    return [numbers.get(first), columns, over.column]
