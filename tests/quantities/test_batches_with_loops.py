"""Every public function of a mechanism with loops: a batch gives what single samples give.

Functions with loops often take another way than those of trees; arrays that may be left out, such
as points, belong to the samples there, too.
"""

import numpy as np
import pytest
from support.closeness import assert_close
from support.public_calls import FUNCTIONS, States, leaves

import kinetree as kt


@pytest.fixture(scope="module")
def states():
    return States(kt.samples.slider_crank(), 2, np.random.default_rng(2))


@pytest.mark.filterwarnings("ignore::kinetree.errors.IndeterminateWarning")
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_batch_gives_what_single_samples_give(states, name):
    function, model = FUNCTIONS[name], states.model
    given = states.arguments(function)
    if function is kt.task_freedom:  # of one configuration
        return
    try:
        together = leaves(function(model, **given))
    except kt.KinetreeError:
        return  # refused by name, as the matrix of features has it
    for k in range(2):
        alone = leaves(function(model, **{n: _sample(x, k) for n, x in given.items()}))
        for a, b in zip(together, alone, strict=True):
            if isinstance(a, np.ndarray) and a.ndim:
                scale = max(1.0, float(np.max(np.abs(a), initial=0.0)))
                assert_close(a[k].astype(float), np.asarray(b, float), condition=1e3, scale=scale)


def _sample(x, k):
    if isinstance(x, np.ndarray):
        return x[k]
    return type(x)(*(_sample(y, k) for y in x)) if hasattr(x, "_fields") else x
