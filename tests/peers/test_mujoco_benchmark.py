"""The benchmark against MuJoCo compares like with like."""

import pytest

import kinetree as kt
from kinetree.benchmark import MUJOCO_FUNCTIONS, compare_mujoco


@pytest.mark.filterwarnings("ignore::kinetree.errors.ModelWarning")
@pytest.mark.parametrize("name", ["double_pendulum", "satellite"])
def test_both_sides_give_the_same_answers(name):
    model = getattr(kt.samples, name)()
    results = list(compare_mujoco(model, batches=(1, 3), repeats=1))
    assert [(r.function, r.batch) for r in results] == [
        (function, n) for n in (1, 3) for function in MUJOCO_FUNCTIONS
    ]
    for result in results:
        assert result.library == "MuJoCo"
        assert result.error < 1e-10
        assert result.ratio > 0
