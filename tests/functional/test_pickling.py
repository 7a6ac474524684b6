"""Kernels, compiled functions and derivatives in other processes."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import cloudpickle
import numpy as np
import pytest
from support import sent_kernels
from support.closeness import assert_close

import kinetree as kt

MODEL, Q, QD = sent_kernels.MODEL, np.array([0.3, -0.4]), np.array([1.0, 2.0])


def test_all_of_them_run_in_a_spawned_process():
    compiled = kt.compile(kt.inverse_dynamics, MODEL, parameters="gravity")
    derivative = kt.differentiate(kt.bias_force, wrt=("q", "qd"))
    calls = [
        (sent_kernels.energy, MODEL, Q, QD),
        (kt.kernel(sent_kernels.twice), Q),
        (compiled, Q, QD, QD, MODEL.gravity),
        (kt.compile(sent_kernels.energy, MODEL), Q, QD),
        (derivative, MODEL, Q, QD),
        (kt.differentiate(sent_kernels.energy, wrt="q"), MODEL, Q, QD),
        (kt.mass_matrix, MODEL, Q),
    ]
    here = [sent_kernels.run(call) for call in calls]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        there = list(pool.map(sent_kernels.run, calls))
    for a, b in zip(there, here, strict=True):
        assert_close(a, b, scale=30)


def test_a_kernel_comes_back_as_itself():
    sent_kernels.energy(MODEL, Q, QD)  # compiled code is left behind
    assert pickle.loads(pickle.dumps(sent_kernels.energy)) is sent_kernels.energy
    again = pickle.loads(pickle.dumps(kt.kernel(sent_kernels.twice)))
    assert_close(again(Q), 2 * Q)


@pytest.mark.parametrize("kernel", [sent_kernels.hidden(), sent_kernels.squared])
def test_what_has_no_name_raises(kernel):
    message = "cannot be pickled: .* a lambda or was defined inside .* at the top of a module"
    with pytest.raises(kt.errors.PickleError, match=message):
        pickle.dumps(kernel)
    with pytest.raises(
        pickle.PicklingError, match=r"'support\.sent_kernels' has none of this name"
    ):
        pickle.dumps(kernel)


def test_those_who_send_functions_by_value_still_can():
    again = pickle.loads(cloudpickle.dumps(sent_kernels.hidden()))
    assert_close(again(Q), 3 * Q)
