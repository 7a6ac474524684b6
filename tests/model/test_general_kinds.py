"""Kinds of joints: what code for every robot is made for, and what it reads."""

import numpy as np
import pytest

from kinetree import joints


@pytest.mark.parametrize("joint", joints.REPRESENTATIVES, ids=repr)
def test_a_joint_is_its_kind_and_its_parameters(joint):
    rng = np.random.default_rng(1)
    q, qd = joint.random(rng), rng.normal(size=joint.nv)
    again = joint.with_parameters(joint.parameters())
    for one, other in zip(joint.jcalc(q, qd), again.jcalc(q, qd), strict=True):
        for name in ("E", "r") if hasattr(one, "E") else ("angular", "linear"):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), 1e-15, 1e-15)
