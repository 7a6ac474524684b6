"""The variables of a derivative as symbols, and the directions in which they can move."""

import numpy as np

from kinetree.expr.node import Expr, Graph
from kinetree.expr.substitute import substitute
from kinetree.functional.parameters import DYNAMICS, parameter, with_parameters


def tangent_shape(call, name):
    """Shape of the space in which an array of a call, or a parameter of its model, can move."""
    if name in call.arrays:
        return (call.model.nv,) if _is_configuration(call, name) else call.shapes[name]
    return parameter(call.model, name).tangent


def _is_configuration(call, name):
    return name == "q" and call.model is not None and call.shapes[name] == (call.model.nq,)


class Variables:
    """The independent variables of a derivative, as symbols.

    Attributes:
        graph: the graph they are symbols of.
        model: the model, with symbols in place of its parameters.
        arrays: the arrays of the call, with symbols.
        directions: for each name its tangent directions, as dicts from node to rate.
    """

    def __init__(self, call, model, arrays, names):
        self.graph = _graph([*arrays, *_numbers(model)])
        self.values, self.directions = {}, {}
        self.arrays, changes = list(arrays), {}
        for name in names:
            if name in call.arrays:
                place = list(call.arrays).index(name)
                symbols = self.arrays[place] = self._symbols(name, self.arrays[place])
                rates = (
                    _configuration_rates(model, symbols)
                    if _is_configuration(call, name)
                    else np.eye(symbols.size, dtype=int).reshape(*symbols.shape, symbols.size)
                )
            else:
                p = parameter(model, name)
                symbols = changes[name] = self._symbols(name, p.value(model))
                rates = p.rates(symbols)
            self.directions[name] = [
                {x.i: rate for x, rate in zip(symbols.ravel(), column.ravel(), strict=True)}
                for column in np.moveaxis(rates, -1, 0)
            ]
        self.model = with_parameters(model, changes)

    def _symbols(self, name, values):
        """The array itself where its entries are distinct inputs, else new inputs in its place."""
        values = np.asarray(values, dtype=object)
        nodes = {x.i for x in values.ravel() if isinstance(x, Expr) and self._is_input(x)}
        if len(nodes) == values.size:
            return values
        symbols = np.empty(values.shape, dtype=object)
        for index, value in np.ndenumerate(values):
            symbol = self.graph.input(f"{name} of trace {len(self.graph.nodes)}", index)
            self.values[symbol.i] = self.graph.number(value)
            symbols[index] = symbol
        return symbols

    def _is_input(self, x):
        return x.graph is self.graph and self.graph.nodes[x.i][0] == "input"

    def restored(self, array):
        """Expressions in the symbols, with the values for which they stand."""
        if not self.values:
            return array
        graph = self.graph
        checks = [c[0] for c in graph.checks]
        roots = [graph.number(x) for x in array.ravel()]
        found = substitute(graph, [*roots, *checks], self.values)
        kept = zip(found[len(roots) :], graph.checks, strict=True)
        graph.checks[:] = [(i, *check[1:]) for i, check in kept if graph.nodes[i][0] != "const"]
        result = np.empty(len(roots), dtype=object)
        result[:] = [graph.expr(i) for i in found[: len(roots)]]
        return result.reshape(array.shape)


def _numbers(model):
    """The arrays of a model that may hold traced numbers."""
    if model is None or model.scalar_type().kind != "O":
        return ()
    bodies = model.bodies
    placements = [x for b in bodies for x in (b.placement.E, b.placement.r)]
    values = [getattr(b.dynamics, name) for b in bodies if b.dynamics for name in DYNAMICS]
    return [model.gravity, *placements, *(b.inertia.parameters() for b in bodies), *values]


def _graph(arrays):
    """The graph of the first traced number, or a new one."""
    for array in arrays:
        for x in np.asarray(array).ravel():
            if isinstance(x, Expr):
                return x.graph
    return Graph()


def _configuration_rates(model, q):
    """``dq/dt`` for unit velocities, (nq, nv)."""
    rates = np.zeros((model.nq, model.nv), dtype=object)
    for i in range(1, model.body_count + 1):
        at = model.q_slice[i]
        rates[at, model.v_slice[i]] = model.joint[i].rate_matrix(q[at])
    return rates
