"""Every algorithm gives the same answer for random mechanisms of every joint type."""

import numpy as np
import pytest
from hypothesis import settings

from kinetree import samples
from kinetree.algorithms import aba, aba_absolute, crba, ltl, rnea
from kinetree.algorithms.closed import maximal
from kinetree.joints import REPRESENTATIVES, Fixed, Prismatic, Revolute
from kinetree.spatial import Force
from kinetree.textbook import rnea_3d, rnea_absolute

THOROUGH = settings.default.max_examples > 1000
MECHANISMS, CHUNKS = 10_000 if THOROUGH else 500, 50
BOUND = 1e-11


def relative_error(actual, expected, scale=None):
    size = np.max(np.abs(expected), initial=0.0) if scale is None else scale
    return np.max(np.abs(actual - expected), initial=0.0) / max(size, 1e-300)


def conditioning(H):
    """Condition number of H after scaling its diagonal to one: units do not count."""
    d = np.sqrt(np.diagonal(H))
    return np.linalg.cond(H / np.outer(d, d)) if len(H) else 1.0


@pytest.mark.covers(
    "RBDA Table 5.1", "RBDA Table 6.2", "RBDA Table 6.3", "RBDA Table 7.1", "RBDA 3.7",
    by=(rnea.inverse_dynamics, crba.joint_space_inertia, ltl.ltdl, aba.forward_dynamics,
        maximal.forward_dynamics),
)  # fmt: skip
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_newton_euler_composite_articulated_and_maximal_agree(chunk):
    for seed in range(chunk, MECHANISMS, CHUNKS):
        rng = np.random.default_rng([2008, seed])
        model = samples.random_tree(int(rng.integers(1, 11)), rng, joints=REPRESENTATIVES)
        q = model.random_configuration(rng)
        qd, qdd = rng.standard_normal((2, model.nv))
        f_ext = [None, *(Force.from_array(f) for f in rng.standard_normal((model.body_count, 6)))]

        tau = rnea.inverse_dynamics(model, q, qd, qdd, f_ext)
        assert relative_error(rnea_absolute.inverse_dynamics(model, q, qd, qdd, f_ext), tau) < BOUND

        H, C = crba.joint_space_inertia(model, q), rnea.bias_force(model, q, qd, f_ext)
        assert relative_error(H @ qdd + C, tau) < BOUND

        bound = BOUND * conditioning(H)
        L = ltl.ltdl(H, model.expanded_parent)
        solutions = {
            "ltdl": ltl.solve_ltdl(L, model.expanded_parent, tau - C),
            "aba": aba.forward_dynamics(model, q, qd, tau, f_ext),
            "aba, base coordinates": aba_absolute.forward_dynamics(model, q, qd, tau, f_ext),
            "maximal coordinates": maximal.forward_dynamics(model, q, qd, tau, f_ext),
        }
        for name, solution in solutions.items():
            assert relative_error(solution, qdd) < bound, f"{name}, seed {seed}"


@pytest.mark.covers("RBDA Table 5.2", "RBDA 5.4", by=rnea_3d.inverse_dynamics)
@pytest.mark.parametrize("chunk", range(5))
def test_spatial_newton_euler_agrees_with_the_3d_original(chunk):
    kinds = [Revolute("x"), Revolute((1, -2, 2)), Prismatic("z"), Prismatic((1, 1, 0)), Fixed()]
    for seed in range(chunk, 2 * MECHANISMS // 5, 5):
        rng = np.random.default_rng([1980, seed])
        model = samples.random_tree(int(rng.integers(1, 16)), rng, joints=kinds)
        q = model.random_configuration(rng)
        qd, qdd = rng.standard_normal((2, model.nv))
        tau = rnea.inverse_dynamics(model, q, qd, qdd)
        assert relative_error(rnea_3d.inverse_dynamics(model, q, qd, qdd), tau) < BOUND
