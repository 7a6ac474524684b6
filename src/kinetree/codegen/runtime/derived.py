"""From a kernel to the kernels of its rates and of its gradients.

They differentiate with respect to the numbers in the arrays, which is what other libraries mean by
a derivative: for ``q`` all ``nq`` of them, quaternions included. (``kinetree.differentiate`` speaks
of tangent spaces.) What they return are kernels again, so derivatives of any order follow.
"""

from dataclasses import replace

import numpy as np

from kinetree.codegen.inline import compact, evaluated
from kinetree.codegen.program import Argument
from kinetree.expr.diff import jacobian


def rates(kernel, wrt):
    """Rates of the results of a kernel: it takes the inputs, then rates of those in ``wrt``.

    Args:
        kernel: the kernel.
        wrt: numbers of inputs, a tuple.
    """

    def differentiate(graph, program, symbols, results):
        more = [_renamed("rate of", program.inputs[k], program) for k in wrt]
        direction = {}
        for k, argument in zip(wrt, more, strict=True):
            given = _symbols(graph, argument)
            direction.update(zip(_numbers(symbols[k]), given.ravel(), strict=True))
        flat = np.concatenate([r.ravel() for r in results])
        found = jacobian(graph, flat, [direction], "forward")[:, 0]
        return more, program.outputs, found

    return _build(kernel, ("rates", wrt), differentiate)


def gradients(kernel, wrt):
    """Gradients of a weighted sum of the results: it takes the inputs, then the weights.

    Args:
        kernel: the kernel.
        wrt: numbers of the inputs with respect to which, a tuple; one result for each.
    """
    return _build(kernel, ("gradients", wrt), lambda *parts: _backward(wrt, *parts))


def transposed(kernel, wrt):
    """As ``gradients``, of a kernel that is linear in the inputs ``wrt`` and need not see them."""
    return _build(kernel, ("transposed", wrt), lambda *parts: _backward(wrt, *parts), dropped=wrt)


def _backward(wrt, graph, program, symbols, results):
    more = [_renamed("weight of", output, program) for output in program.outputs]
    total = 0
    for result, argument in zip(results, more, strict=True):
        total = total + result.ravel() @ _symbols(graph, argument).ravel()
    directions = [{i: 1} for k in wrt for i in _numbers(symbols[k])]
    found = jacobian(graph, np.array([total]), directions)[0]
    return more, [program.inputs[k] for k in wrt], found


def _build(kernel, key, differentiate, dropped=()):
    program = compact(kernel.program)  # a graph of our own to write to
    graph = program.graph
    symbols = [_symbols(graph, i) for i in program.inputs]
    results, at = [], 0
    for output in program.outputs:
        roots = program.roots[at : at + output.size]
        results.append(np.array([graph.expr(i) for i in roots], dtype=object))
        at += output.size
    more, outputs, found = differentiate(graph, program, symbols, results)
    own = [i for k, i in enumerate(program.inputs) if k not in dropped]
    changed = compact(
        replace(
            program,
            name=f"{key[0]} of {program.name}",
            inputs=(*own, *more),
            outputs=tuple(Argument(f"out{k}", o.shape) for k, o in enumerate(outputs)),
            roots=tuple(graph.number(x) for x in found),
            checks=() if dropped else program.checks,
        )
    )
    count = len(own)

    def validate(arrays):
        if not dropped:
            kernel.validate(arrays[:count])

    return type(kernel)(
        changed.name,
        changed.inputs,
        changed.outputs,
        lambda: changed,
        reference=lambda arrays: evaluated(changed, arrays),
        validate=validate,
        key=None if kernel.key is None else (kernel.key, *key),
    )


def _renamed(what, argument, program):
    """An argument of that shape, with a name that the program does not have yet."""
    name, taken = f"{what} {argument.name}", {i.name for i in program.inputs}
    while name in taken:
        name += "'"
    return Argument(name, argument.shape)


def _symbols(graph, argument):
    array = np.empty(argument.shape, dtype=object)
    for index in np.ndindex(argument.shape):
        array[index] = graph.input(argument.name, index)
    return array


def _numbers(symbols):
    return [x.i for x in symbols.ravel()]
