"""CUDA C of every public function, run on the CPU; ``gpu_check.py --on-cpu`` takes all samples."""

import inspect

import numpy as np
import pytest
from support.backends import cuda_on_cpu
from support.public_calls import FUNCTIONS, ON_HOST, States, leaves

import kinetree as kt
from kinetree.codegen.program import Argument, trace
from kinetree.expr import interpret
from kinetree.functional.public import PUBLIC


@pytest.mark.parametrize("module", PUBLIC, ids=lambda m: m.__name__.rpartition(".")[2])
def test_all_functions_of_a_module(module, rng, tmp_path):
    model, names = kt.samples.double_pendulum(), set(module.__all__) - set(ON_HOST)
    functions = [FUNCTIONS[name] for name in FUNCTIONS if name in names]
    states, arrays = States(model, 33, rng), {}
    for function in functions:
        arrays |= states.arguments(function)
    rest = {n: x for n, x in arrays.items() if not isinstance(x, np.ndarray)}
    arrays = {n: x for n, x in arrays.items() if n not in rest}

    def everything(*given):
        named, found = dict(zip(arrays, given, strict=True)) | rest, []
        for function in functions:
            own = {n: named[n] for n in inspect.signature(function).parameters if n in named}
            found += leaves(function(model, **own))
        return tuple(map(np.asarray, found))

    program = trace(everything, [Argument(n, x.shape[1:]) for n, x in arrays.items()])
    found = cuda_on_cpu(tmp_path)(program, "float64")(*arrays.values())
    for a, b in zip(interpret.run(program, *arrays.values()), found, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-11 * max(1, np.abs(a).max()))
