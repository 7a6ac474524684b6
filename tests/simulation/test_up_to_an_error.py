"""Whatever ends a simulation has the motion up to then."""

import numpy as np
import pytest

import kinetree as kt


class StopHere(Exception):
    """A user's own error."""


def pushing(t, q, qd):
    """A controller that fails after a tenth of a second."""
    if t > 0.1005:
        raise StopHere
    return np.array([np.sin(t), 0.0])


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({}, 0.101),
        ({"store_every": 7}, 0.098),
        ({"rtol": 1e-6}, 0.1),
        ({"hooks": lambda step: None}, 0.1),
    ],
)
def test_an_error_of_a_controller_has_the_motion_up_to_it(options, end):
    m = kt.samples.cart_pole()
    start = {"q0": [0.0, 0.3], "dt": 1e-3}
    with pytest.raises(StopHere) as stopped:
        kt.simulate(m, **start, duration=1.0, controller=pushing, **options)
    found = stopped.value.trajectory
    assert found.t[-1] == pytest.approx(end)
    whole = kt.simulate(m, **start, duration=0.098, controller=pushing, **options)
    same = np.searchsorted(found.t, whole.t[:-1] - 1e-9)
    assert np.allclose(found.q[same], whole.q[:-1], atol=1e-9)
    assert np.allclose(found.tau[same], whole.tau[:-1], atol=1e-12)
    assert len(found.t) == len(found.q) == len(found.tau) == len(found.energy)


def test_a_motion_that_diverges_is_kept_up_to_there():
    m = kt.samples.cart_pole()
    with pytest.raises(kt.SimulationError) as stopped:
        kt.simulate(
            m,
            [0.0, 0.3],
            duration=1.0,
            dt=1e-3,
            controller=lambda t, q, qd: -1e9 * q * (t > 0.05) * np.exp(200 * t),
        )
    assert stopped.value.trajectory.t[-1] > 0.05


def test_a_world_is_kept_with_its_contact_forces():
    world = kt.World(timestep=2e-3)
    world.add_ground()
    world.add("quadruped")

    def stop(t, q, qd):
        if t > 0.0205:
            raise StopHere
        return np.zeros(world.model.nv)

    with pytest.raises(StopHere) as stopped:
        kt.simulate(world, duration=1.0, controller=stop)
    found = stopped.value.trajectory
    assert len(found.contact.force) == len(found.t) == 12
    assert found.contact.force[-1].max() > 0
