"""Newton–Euler by acceleration tensors is Newton–Euler."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree import samples
from kinetree.algorithms import rnea, rnea_tensor
from kinetree.spatial import Force
from kinetree.spatial.vector3 import skew


@pytest.mark.covers("RBDA 5.4", by=rnea_tensor.inverse_dynamics)
@pytest.mark.parametrize("seed", range(20))
def test_it_agrees_with_spatial_vectors_on_every_joint(seed):
    rng = np.random.default_rng(seed)
    model = samples.random_tree(8, rng)
    q = model.random_configuration(rng)
    qd, qdd = rng.standard_normal((2, model.nv))
    f_ext = [None, *(Force.from_array(f) for f in rng.standard_normal((8, 6)))]
    tau = rnea.inverse_dynamics(model, q, qd, qdd, f_ext)
    assert_close(rnea_tensor.inverse_dynamics(model, q, qd, qdd, f_ext), tau, ulps=500)
    assert_close(rnea_tensor.bias_force(model, q, qd), rnea.bias_force(model, q, qd), ulps=500)


def test_the_tensor_takes_points_to_accelerations(rng):
    w, wd, p = rng.standard_normal((3, 3))
    Om = rnea_tensor.acceleration_tensor(w, wd)
    assert_close(Om, skew(wd) + skew(w) @ skew(w), ulps=10)
    assert_close(Om @ p, np.cross(wd, p) + np.cross(w, np.cross(w, p)), ulps=20)
