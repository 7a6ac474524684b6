"""Every spatial quantity that is made of a matrix is that matrix again, in all its parts."""

import inspect

import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_articulated, random_motion, random_rotation

import kinetree as kt
from kinetree.samples import random_inertia
from kinetree.spatial import planar, planar_inertia

MODULES = (kt.spatial, planar, planar_inertia)
KINDS = {
    kind.__name__: kind
    for module in MODULES
    for kind in vars(module).values()
    if inspect.isclass(kind) and hasattr(kind, "from_matrix") and hasattr(kind, "to_matrix")
}


def example(name, rng):
    """A random one, without symmetries."""
    B = rng.normal(size=(3, 3))
    makers = {
        "Plucker": lambda: kt.Plucker(random_rotation(rng), rng.normal(size=3)),
        "Inertia": lambda: random_inertia(rng),
        "ArticulatedInertia": lambda: random_articulated(rng),
        "InverseInertia": lambda: kt.spatial.InverseInertia.from_motions(
            random_motion(rng, 3), np.diag(rng.uniform(1, 2, 3))
        ),
        "PlanarTransform": lambda: planar.Xpln(rng.uniform(0.3, 1.2), rng.normal(size=2)),
        "PlanarArticulatedInertia": lambda: planar_inertia.PlanarArticulatedInertia.from_matrix(
            B @ B.T
        ),
    }
    return makers[name]()


@pytest.mark.parametrize("name", KINDS)
def test_what_is_made_of_a_matrix_is_that_matrix(name, rng):
    X = example(name, rng)
    again = type(X).from_matrix(X.to_matrix())
    assert_close(again.to_matrix(), X.to_matrix())
    for attribute in ("E", "r", "c", "s", "mass", "first_moment", "rotational"):
        if hasattr(X, attribute):
            assert_close(getattr(again, attribute), getattr(X, attribute), ulps=100)


def test_all_kinds_are_known():
    assert set(KINDS) >= {"Plucker", "Inertia", "ArticulatedInertia", "PlanarTransform"}
