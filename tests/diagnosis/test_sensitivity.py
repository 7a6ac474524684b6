"""The sensitivity problem — RBDA §10.2."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.diagnosis.health import condition_number, worst_chain

ZIGZAG = np.radians([75, -75, 75, -75, 75, -75])


def plane_chain(links, inertia=None):
    """Equal links of unit length and mass, hinged in a plane, without gravity."""
    builder = kt.ModelBuilder("plane chain", gravity=(0, 0, 0))
    rod = kt.Inertia.from_mass_center(1.0, (0.5, 0, 0), np.diag([1e-3, 1 / 12, 1 / 12]))
    for i in range(1, links + 1):
        at = {"on": f"link{i - 1}", "at": (1.0, 0, 0)} if i > 1 else {}
        builder.body(f"link{i}", joint=kt.Revolute("z"), inertia=inertia or rod, **at)
    return builder.build()


@pytest.mark.covers("RBDA 10.2", by=condition_number)
def test_half_a_percent_of_force_is_forty_percent_of_acceleration():
    chain = plane_chain(6)
    q = ZIGZAG
    still = np.zeros(6)
    tau = kt.inverse_dynamics(chain, q, still, np.ones(6))
    wanted = [
        126.4936759426, 97.4663236170, 69.9762284355, 43.7998475335, 21.9371809109, 6.1646857030,
    ]  # fmt: skip
    np.testing.assert_allclose(tau, wanted, rtol=1e-11)
    rounded = np.array([126, 97.5, 70.0, 43.8, 21.9, 6.16])
    assert np.max(np.abs(rounded / tau - 1)) < 0.005
    qdd = kt.forward_dynamics(chain, q, still, rounded)
    # The book prints 0.6952 for the first: two of its digits are exchanged.
    printed = [0.6592, 1.3654, 1.3808, 0.5894, 0.9057, 1.0705]
    np.testing.assert_allclose(qdd, printed, atol=5e-5)
    assert np.max(np.abs(qdd - 1)) > 0.4
    assert abs(condition_number(chain, q) - 725.39) < 0.01


def test_a_straight_chain_is_about_as_bad_as_four_times_its_length_to_the_fourth():
    for links, exact in ((6, 5685), (10, 43523)):
        found = condition_number(plane_chain(links), np.zeros(links))
        assert abs(found / exact - 1) < 1e-3
        assert abs(found / worst_chain(links) - 1) < 0.11


@pytest.mark.covers("RBDA 10.2", by=condition_number)
def test_a_branched_tree_of_the_same_links_is_better_conditioned():
    builder = kt.ModelBuilder("binary tree", gravity=(0, 0, 0))
    rod = kt.Inertia.from_mass_center(1.0, (0.5, 0, 0), np.diag([1e-3, 1 / 12, 1 / 12]))
    for i in range(1, 8):
        at = {"on": f"link{i // 2}", "at": (1.0, 0, 0)} if i > 1 else {}
        builder.body(f"link{i}", joint=kt.Revolute("z"), inertia=rod, **at)
    binary = builder.build()
    q = np.full(7, 0.2)
    assert condition_number(binary, q) < condition_number(plane_chain(7), q) / 5


def test_scaling_takes_units_out(rng):
    chain = plane_chain(4)
    q = rng.standard_normal(4)
    assert 1.0 <= condition_number(chain, q, scaled=True) < condition_number(chain, q)
    assert condition_number(kt.ModelBuilder("nothing").build(), np.zeros(0)) == 1.0
