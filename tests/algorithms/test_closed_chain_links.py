"""Virtual links: the records of Spencer's Table A.1, and the motion of cut joints."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import allowed_velocity, parallel_four_bar, parallelogram

import kinetree as kt
from kinetree.algorithms.closed.links import ClosedChain, link_states
from kinetree.samples.earthmovers import loader


@pytest.mark.covers("Spencer A.2", by=ClosedChain)
def test_the_records_of_table_a1():
    chain = ClosedChain(parallel_four_bar())
    table = {
        1: (0, (), (1,), (1, 5), None),
        2: (0, (3,), (2, 3, 4), (2, 3, 4), None),
        3: (2, (4,), (3, 4), (3, 4), None),
        4: (3, (), (4,), (4,), None),
        5: (1, (), (), (5,), 4),
    }
    for i, (P, C, T, Tv, R) in table.items():
        assert (chain.parent[i], chain.children(i), chain.reference[i]) == (P, C, R)
        assert (chain.subtree(i), chain.subtree_with_virtual(i)) == (T, Tv)


@pytest.mark.parametrize(
    ("model", "counts"), [(parallel_four_bar(), (4, 4, 1, 1)), (loader(), (8, 8, 3, 3))]
)
def test_links_coordinates_loops_and_virtual_coordinates_are_counted(model, counts):
    chain = ClosedChain(model)
    assert (chain.real, model.nv, len(chain.virtual), chain.nv - model.nv) == counts


def test_the_cut_joint_of_a_parallelogram_turns_by_the_difference(rng):
    m = parallel_four_bar()
    q, (a, b), (da, db) = parallelogram(0.9, 0.35), *rng.standard_normal((2, 2))
    states = link_states(ClosedChain(m), q, _rates(a, b), _rates(da, db))
    assert_close(np.exp(1j * states.q_v), np.exp(1j * np.array([0.35 - np.pi - 0.9])))
    assert_close(states.v[4:], [b - a])
    assert_close(states.vdot[4:], [db - da], ulps=1000)


def _rates(a, b):
    return np.array([a, b, a - b, b - a])


def test_rates_of_cut_joints_are_the_derivatives_of_their_positions(rng):
    m, h = loader(), 1e-6
    q = np.zeros(m.nq)
    qd = allowed_velocity(m, q, rng)
    v = link_states(ClosedChain(m), q, qd, 0 * qd).v[m.nv :]
    ahead, back = (link_states(ClosedChain(m), q + s * qd, qd, 0 * qd).q_v for s in (h, -h))
    assert np.abs(v - (ahead - back) / (2 * h)).max() < 1e-9


def test_chains_say_whether_their_axes_are_fixed():
    assert not ClosedChain(kt.samples.five_bar()).has_fixed_axes  # a sphere in a cylinder
    assert not ClosedChain(kt.samples.satellite()).has_fixed_axes  # rates are not derivatives
    assert ClosedChain(loader()).has_fixed_axes
