"""Every loop joint can be a weld, if its freedoms move into the tree."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.errors import SingularError
from kinetree.loops.dynamics.solution import solve
from kinetree.loops.kinematics.constraint import closure_error
from kinetree.loops.kinematics.loop_joints import weld_loops, welded_state
from kinetree.loops.kinematics.mobility import mobility
from kinetree.loops.kinematics.projection import project_velocity


@pytest.mark.covers("RBDA 8.3", by=weld_loops)
@pytest.mark.parametrize("name", ["four_bar", "five_bar", "bennett"])
def test_a_weld_with_a_massless_body_gives_the_same_motion(name, rng):
    model = getattr(kt.samples, name)()
    welded = weld_loops(model)
    q = model.neutral()
    qd = project_velocity(model, q, rng.standard_normal(model.nv))
    tau = rng.standard_normal(model.nv)
    p, pd = welded_state(model, q, qd)
    assert np.max(np.abs(closure_error(welded, p))) < 1e-14
    more = np.concatenate([tau, np.zeros(welded.nv - model.nv)])
    expected = solve(model, q, qd, tau).qdd
    for method in ("null_space", "kkt"):
        assert_close(solve(welded, p, pd, more, method=method).qdd[: model.nv], expected, ulps=1e5)
    with pytest.raises(SingularError):
        solve(welded, p, pd, more, method="range_space")


def test_the_mobility_stays_and_the_redundancy_too():
    model = kt.samples.four_bar()
    before, after = mobility(model), mobility(weld_loops(model))
    assert (after.tree_dof, after.constraints, after.rank) == (4, 6, 3)
    assert (after.mobility, after.redundancy) == (before.mobility, before.redundancy)
    assert (after.spatial_count, after.planar_count) == (before.spatial_count, before.planar_count)
