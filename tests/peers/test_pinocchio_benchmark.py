"""The benchmark against Pinocchio: same answers, and nothing but the call within what is timed."""

from functools import partial

import numpy as np
import pinocchio as pin
import pytest

import kinetree as kt
from kinetree.benchmark import FUNCTIONS, compare, peer_cases


@pytest.fixture(scope="module")
def arm():
    return pin.buildSampleModelManipulator()


@pytest.mark.filterwarnings("ignore::kinetree.errors.ModelWarning")
def test_both_sides_give_the_same_answers(arm):
    results = list(compare(arm, batches=(1, 3), repeats=1))
    assert {(r.function, r.batch) for r in results} == {(f, n) for n in (1, 3) for f in FUNCTIONS}
    assert max(r.error for r in results) < 1e-9


@pytest.mark.filterwarnings("ignore::kinetree.errors.ModelWarning")
def test_single_calls_of_both_sides_get_finished_arguments(arm):
    """No array of several samples, no index and no conversion is left to the timed call."""
    cases = peer_cases(kt.interop.pinocchio.from_model(arm), arm, 1)
    assert set(cases) == set(FUNCTIONS)
    for name, case in cases.items():
        for call in (case.ours, case.peer):
            assert isinstance(call, partial), name
            arrays = [a for a in call.args if isinstance(a, np.ndarray)]
            assert all(a.ndim == 1 and a.flags.c_contiguous for a in arrays), name
            assert arrays, name
