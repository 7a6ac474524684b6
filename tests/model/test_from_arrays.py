"""Models from the arrays of the 6-D guide."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import rnea
from kinetree.errors import ModelError
from kinetree.joints import Helical, Prismatic, Revolute
from kinetree.model import Model, ModelBuilder, from_arrays
from kinetree.samples import random_inertia, random_placement

PARENT = (0, 1, 2, 1, 2, 4)  # 6-D guide 2, Fig. 2
PITCH = (0, np.inf, 0.1, 0, -0.2, np.inf)


@pytest.mark.covers(
    "6-D Guide 2: Model Data Structure", "6-D Guide 2: Joint Models", by=from_arrays
)
def test_arrays_are_the_model_of_the_builder(rng):
    X_T = [random_placement(rng) for _ in PARENT]
    inertia = [random_inertia(rng) for _ in PARENT]
    model = from_arrays(PARENT, X_T, PITCH, inertia)
    assert isinstance(model, Model)
    assert [type(j) for j in model.joint[1:4]] == [Revolute, Prismatic, Helical]
    builder = ModelBuilder()
    joints = [Revolute("z"), Prismatic("z"), Helical("z", pitch=0.1), Revolute("z")]
    joints += [Helical("z", pitch=-0.2), Prismatic("z")]
    for i, joint in enumerate(joints):
        on = f"body{PARENT[i]}" if PARENT[i] else None
        builder.body(f"body{i + 1}", on=on, joint=joint, at=X_T[i], inertia=inertia[i])
    assert model == builder.build()


@pytest.mark.covers("6-D Guide 2: Model Data Structure", by=from_arrays)
def test_a_helical_joint_of_no_pitch_is_revolute(rng):
    X_T, inertia = [random_placement(rng)], [random_inertia(rng)]
    state = rng.standard_normal((3, 1))
    almost = from_arrays([0], X_T, [1e-300], inertia)
    assert isinstance(almost.joint[1], Helical)
    assert_close(
        rnea.inverse_dynamics(almost, *state),
        rnea.inverse_dynamics(from_arrays([0], X_T, [0], inertia), *state),
    )


def test_messages(rng):
    X, I = random_placement(rng), random_inertia(rng)
    with pytest.raises(ModelError, match=r"must have one entry for each body, got \[2, 1, 1, 1\]"):
        from_arrays([0, 1], [X], [0], [I])
    with pytest.raises(ModelError, match=r"parent of body 2 \('body2'\) is 3 .*regular numbering"):
        from_arrays([0, 3, 1], [X] * 3, [0] * 3, [I] * 3)
