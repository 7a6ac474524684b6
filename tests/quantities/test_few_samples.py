"""Few samples of large mechanisms with loops, in Python, against compiled code."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.quantities.few_samples import REPAID

LINKAGES = "delta", "corner_ladder"
FUNCTIONS = {
    kt.forward_dynamics: ("q", "qd", "tau"),
    kt.mass_matrix: ("q",),
    kt.christoffel: ("q",),
}


def states(model, count, rng):
    """Arguments by name, which close the loops."""
    q = np.repeat(kt.loops.assemble(model)[np.newaxis], count, 0)
    qd = kt.loops.project_velocity(model, q, rng.normal(size=(count, model.nv)))
    return {"q": q, "qd": qd, "tau": rng.normal(size=(count, model.nv))}


def compiled_for(model, name):
    """Whether something that is called so was compiled for a model."""
    keys = [key for key in model.memo if isinstance(key, tuple)]
    closed = [model.memo[key] for key in keys if key[:2] == ("loops", name)]
    own = {"forward_dynamics": "closed_chains.forward_dynamics", "linear_model": "linear model"}
    return any(c.kernels for c in closed) or any(key[0] == own.get(name) for key in keys)


@pytest.mark.parametrize("name", LINKAGES)
def test_few_samples_agree_with_compiled_code(name, rng):
    model = getattr(kt.samples, name)()
    given = states(model, 2, rng)
    for function, names in FUNCTIONS.items():
        arrays = [given[n] for n in names]
        few = function(model, *arrays)
        assert not compiled_for(model, function.__name__)
        with kt.tier("specialised"):
            specialised = function(model, *arrays)
        assert compiled_for(model, function.__name__)
        assert_close(few, specialised, ulps=2000)
        assert np.array_equal(function(model, *(a[0] for a in arrays)), few[0])


def test_many_samples_are_compiled(rng):
    model = kt.samples.corner_ladder()
    q, qd, tau = states(model, REPAID, rng).values()
    kt.forward_dynamics(model, q, qd, tau)
    assert not compiled_for(model, "forward_dynamics")
    kt.forward_dynamics(model, q[0], qd[0], tau[0])  # one more than what repays it
    assert compiled_for(model, "forward_dynamics")


def test_small_linkages_are_compiled():
    model = kt.samples.four_bar()
    q, z = kt.loops.assemble(model), np.zeros(model.nv)
    kt.forward_dynamics(model, q, z, z)
    assert compiled_for(model, "forward_dynamics")


def test_errors_name_the_sample(rng):
    model = kt.samples.delta()
    q, qd, tau = states(model, 3, rng).values()
    q[1, 0] += 0.2
    with pytest.raises(kt.ShapeError, match=r"sample \(1,\): .*does not close loop"):
        kt.forward_dynamics(model, q, qd, tau)


@pytest.mark.parametrize("name", LINKAGES)
def test_linear_models_agree(name, rng):
    model = getattr(kt.samples, name)()
    q, qd, tau = states(model, 2, rng).values()
    few = kt.loops.linearize_in_coordinates(model, q, qd, tau)
    assert not compiled_for(model, "linear_model")
    with kt.tier("specialised"):
        specialised = kt.loops.linearize_in_coordinates(model, q, qd, tau)
    assert compiled_for(model, "linear_model")
    assert few.coordinates == specialised.coordinates
    for part in ("A", "B", "rate", "qdd"):
        assert_close(getattr(few, part), getattr(specialised, part), ulps=1e5)
