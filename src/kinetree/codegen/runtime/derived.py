"""From a kernel to the kernels of its rates and of its gradients.

They differentiate with respect to the numbers in the arrays, which is what other libraries mean by
a derivative: for ``q`` all ``nq`` of them, quaternions included. (``kinetree.differentiate`` speaks
of tangent spaces.) What they return are kernels again, so derivatives of any order follow.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from kinetree.codegen.inline import compact, evaluate
from kinetree.codegen.program import Argument, symbols_of
from kinetree.expr.diff import jacobian


def rates(kernel, wrt):
    """Kernel of directional derivatives: takes the inputs, then rates of those in ``wrt``.

    Args:
        kernel: the kernel.
        wrt: numbers of inputs, a tuple.
    """
    more = [_new_argument("rate of", kernel.inputs[k], kernel) for k in wrt]

    def differentiate(graph, symbols, results):
        direction = {}
        for k, argument in zip(wrt, more, strict=True):
            given = symbols_of(graph, argument)
            direction.update(zip(_numbers(symbols[k]), given.ravel(), strict=True))
        flat = np.concatenate([r.ravel() for r in results])
        return jacobian(graph, flat, [direction], "forward")[:, 0]

    return _derive(kernel, ("rates", wrt), more, kernel.outputs, differentiate)


def gradients(kernel, wrt, way="gradients"):
    """Kernel of gradients of a weighted sum of results: takes the inputs, then the weights.

    Args:
        kernel: the kernel.
        wrt: numbers of the inputs with respect to which, a tuple; one result for each.
        way: ``"linear_transpose"`` if the kernel is linear in these inputs: it need not see them.
    """
    more = [_new_argument("weight of", output, kernel) for output in kernel.outputs]

    def differentiate(graph, symbols, results):
        total = 0
        for result, argument in zip(results, more, strict=True):
            total = total + result.ravel() @ symbols_of(graph, argument).ravel()
        directions = [{i: 1} for k in wrt for i in _numbers(symbols[k])]
        return jacobian(graph, np.array([total]), directions)[0]

    dropped = wrt if way == "linear_transpose" else ()
    outputs = [kernel.inputs[k] for k in wrt]
    return _derive(kernel, (way, wrt), more, outputs, differentiate, dropped)


def linear_transpose(kernel, wrt):
    """Kernel of ``gradients`` for a kernel linear in ``wrt``, whose values it does not take."""
    return gradients(kernel, wrt, "linear_transpose")


def _derive(kernel, key, more, outputs, differentiate, dropped=()):
    """Kernel of a derivative that ``differentiate`` traces at the first call."""
    own = [i for k, i in enumerate(kernel.inputs) if k not in dropped]
    inputs, count = (*own, *more), len(own)
    outputs = tuple(Argument(f"out{k}", o.shape) for k, o in enumerate(outputs))

    @cache
    def derivative():
        program = compact(kernel.program)  # a graph of our own to write to
        graph = program.graph
        symbols = [symbols_of(graph, i) for i in program.inputs]
        results, at = [], 0
        for output in program.outputs:
            roots = program.roots[at : at + output.size]
            results.append(np.array([graph.expr(i) for i in roots], dtype=object))
            at += output.size
        found = differentiate(graph, symbols, results)
        return compact(
            replace(
                program,
                name=f"{key[0]} of {program.name}",
                inputs=inputs,
                outputs=outputs,
                roots=tuple(graph.number(x) for x in found),
                checks=() if dropped else program.checks,
            )
        )

    def validate(arrays):
        if not dropped:
            kernel.validate(arrays[:count])

    def general_code():
        entry = kernel.general_entry
        return None if entry is None else getattr(entry, key[0])(key[1])

    found = type(kernel)(
        f"{key[0]} of {kernel.name}",
        inputs,
        outputs,
        derivative,
        reference=lambda arrays: evaluate(derivative(), arrays),
        validate=validate,
        key=lambda: None if kernel.key is None else (kernel.key, *key),
        general_code=general_code,
    )
    found.warn = kernel.warn
    return found


def _new_argument(what, argument, kernel):
    """Argument of the same shape, with a name that the kernel does not have yet."""
    name, taken = f"{what} {argument.name}", {i.name for i in kernel.inputs}
    while name in taken:
        name += "'"
    return Argument(name, argument.shape)


def _numbers(symbols):
    """Node numbers of an array of symbols."""
    return [x.i for x in symbols.ravel()]
