"""Numbers of a state, few and many: finite or not, and how large."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.integration.breakdown import all_finite, largest_size


@pytest.mark.parametrize("count", [0, 3, 1000])
def test_numbers_are_finite_and_as_large_as_they_are(count):
    x = np.linspace(-2.0, 1.0, count)
    assert all_finite(x)
    assert largest_size(x) == (2.0 if count else 0.0)
    assert largest_size(x[None]) == largest_size(x)
    for bad in (np.nan, np.inf, -np.inf):
        if count:
            assert not all_finite(np.append(x, bad))
            assert not all_finite(np.append(x, bad)[None])


def test_huge_numbers_are_finite_without_a_warning():
    assert all_finite(np.array([1e308, 1e308]))
    assert all_finite(np.full((2, 2), 1e300))


@pytest.mark.parametrize("tier", ["general", "specialised"])
def test_a_joint_that_moves_no_inertia_is_named_alike_in_both_tiers(tier):
    builder = kt.ModelBuilder("arm")
    builder.body("upper", joint=kt.Revolute("y"), inertia=kt.shapes.box(0.1, 0.1, 0.5, mass=1.0))
    builder.body("tip", on="upper", joint=kt.Revolute("x"), at=(0, 0, 0.5))
    arm, why = builder.build(strict=False), "forward_dynamics: forward dynamics is singular: joint"
    with kt.tier(tier):
        with pytest.raises(kt.SingularError, match=f"^(rollout: )?{why}"):
            kt.rollout(arm, np.zeros(2), steps=3, dt=0.01)
        with pytest.raises(kt.SimulationError, match=f"in the step from t = 0 s: {why}"):
            kt.simulate(arm, np.zeros(2), duration=0.03)
