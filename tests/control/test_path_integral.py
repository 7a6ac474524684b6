"""Plans by sampling."""

import sys

import numpy as np
import pytest

import kinetree as kt

STEPS = 15


def cost(x, v, plans):
    """A mass that is to come to rest at zero."""
    total = 0.0
    for k in range(STEPS):
        v = v + 0.2 * plans[:, k, 0]
        x = x + 0.2 * v
        total = total + x**2 + 0.1 * v**2
    return total


def controller(**options):
    given = {"horizon": STEPS, "size": 1, "samples": 200, "noise": 1.0, **options}
    return kt.control.PathIntegral(cost, **given)


def test_a_mass_comes_to_rest():
    plan, x, v = controller(lower=-2.0, upper=2.0), 1.0, 0.0
    forces = []
    for _ in range(40):
        (u,) = plan(x, v)
        v += 0.2 * u
        x += 0.2 * v
        forces.append(u)
    assert abs(x) < 0.1
    assert abs(v) < 0.1
    assert -2 <= min(forces) < max(forces) <= 2


def test_costs_that_are_not_finite_have_no_weight():
    plan = kt.control.PathIntegral(
        lambda plans: np.where(plans[:, 0, 0] > 0, np.nan, plans[:, 0, 0] ** 2),
        horizon=2, size=1, samples=50,
    )  # fmt: skip
    assert plan()[0] <= 0


def test_the_same_seed_gives_the_same_plan():
    assert controller(seed=3)(1.0, 0.0) == controller(seed=3)(1.0, 0.0)
    assert controller(seed=3)(1.0, 0.0) != controller(seed=4)(1.0, 0.0)


def test_arrays_must_be_known_and_there(monkeypatch):
    with pytest.raises(kt.ShapeError, match="arrays must be 'numpy' or 'cupy', got 'torch'"):
        controller(arrays="torch")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(kt.errors.MissingPackageError, match="needs the package cupy"):
        controller(arrays="cupy")
