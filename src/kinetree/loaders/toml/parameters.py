"""``[parameters]``: numbers with names, which expressions use and the caller may change."""

from kinetree.errors import LoadError
from kinetree.loaders.toml.expressions import RESERVED, ExpressionError, names_in, parse
from kinetree.loaders.toml.table import Table
from kinetree.spelling import did_you_mean

__all__ = ["read_parameters"]

_MOST = 10_000


def read_parameters(top: Table, given) -> dict[str, float]:
    """The values of all parameters, those in ``given`` instead of those in the file.

    A parameter may be an expression of others, in any order, so long as none depends on itself.
    """
    table = top.table("parameters")
    data = {} if table is None else table.data
    for name in given or {}:
        if name not in data:
            hint = did_you_mean(name, data)
            raise LoadError(f"{top.document.path}: the file has no parameter {name!r}; {hint}")
    if table is None:
        return {}
    if len(data) > _MOST:
        raise table.error(f"{len(data)} parameters; at most {_MOST} are read")
    for name in data:
        if not name.isidentifier() or name in RESERVED:
            why = "the name of a unit, function or constant" if name in RESERVED else "no name"
            raise table.error(f"a parameter cannot be called {name!r}, which is {why}", name)
    values = top.document.parameters
    for name, value in (given or {}).items():
        try:
            values[name] = table.as_number(value, name)
        except LoadError as error:
            raise LoadError(f"{error} (given by the caller)") from None
    for name in _order(table, set(values)):
        values[name] = table.as_number(data[name], name)
    return values


def _order(table: Table, known: set[str]):
    """Names of the parameters to evaluate, each after those that it needs."""
    new = [name for name in table.data if name not in known]
    needs = {name: _needs(table, name) & set(new) for name in new}
    needed_by: dict[str, list[str]] = {name: [] for name in new}
    for name, others in needs.items():
        for other in others:
            needed_by[other].append(name)
    ready = [name for name in new if not needs[name]]
    for name in ready:  # which grows
        for other in needed_by[name]:
            needs[other].discard(name)
            if not needs[other]:
                ready.append(other)
    if len(ready) < len(new):
        left = {name: others for name, others in needs.items() if others}
        circle = _circle(next(iter(left)), left)
        names = " -> ".join(circle)
        raise table.error(f"parameters depend on each other in a circle: {names}", circle[0])
    return ready


def _needs(table, name):
    value = table.data[name]
    if not isinstance(value, str):
        return set()
    try:
        return names_in(parse(value))
    except ExpressionError as error:
        raise table.error(f"{name}: {error}", name) from None


def _circle(name, needs):
    """A path along ``needs`` that comes back to where it has been."""
    path = []
    while name not in path:
        path.append(name)
        name = min(needs[name])
    return [*path[path.index(name) :], name]
