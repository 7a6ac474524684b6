"""CUDA C of every public function, run on the CPU; ``gpu_check.py --on-cpu`` takes all samples."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from support.backends import cuda_on_cpu
from support.mechanisms import with_sensors, with_tendons
from support.public_calls import FUNCTIONS, ON_HOST, States, leaves

import kinetree as kt
from kinetree.codegen.program import Argument, trace
from kinetree.expr import interpret

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MODULES = sorted({f.__module__ for f in FUNCTIONS.values()})


@pytest.mark.parametrize("module", MODULES)
def test_all_functions_of_a_module(module, rng, tmp_path):
    model = with_tendons(with_sensors(kt.samples.double_pendulum()))
    functions = [f for n, f in FUNCTIONS.items() if f.__module__ == module and n not in ON_HOST]
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


def test_the_check_of_samples_rejects_names_that_it_does_not_know(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from gpu_checks.agreement import check_names

    check_names(["double_pendulum"], ["mass_matrix"])
    close = "'mass_matrix' or 'mass_matrix_rate' or 'inverse_mass_matrix'"
    for samples, functions, words in (
        ([], ["mas_matrix"], f"no public function is called 'mas_matrix'; did you mean {close}"),
        (["pandaa"], [], "no sample model is called 'pandaa'; did you mean 'panda'"),
        ([], [ON_HOST[0]], f"{ON_HOST[0]!r} computes on the CPU"),
    ):
        with pytest.raises(kt.UnknownNameError, match=re.escape(words)):
            check_names(samples, functions)
