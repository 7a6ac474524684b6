"""Joint forces beyond what the joints can take are not cut, and not passed over in silence."""

import warnings

import numpy as np
import pytest

import kinetree as kt

ARM = kt.ModelBuilder("arm")
for name, on, effort in (("upper", None, 50.0), ("lower", "upper", 5.0)):
    ARM.body(
        name, on=on, joint=kt.Revolute("y"), inertia=kt.shapes.rod(1.0, mass=1.0, at=(0, 0, 0.5)),
        limits=kt.Limits(effort=effort),
    )  # fmt: skip
ARM = ARM.build()
MESSAGE = (
    r"joint 'lower_joint' is driven with -6 N·m at t = 0.02 s.*, beyond its effort limit of 5:"
    r".*np.clip\(tau, -model.effort_limits, model.effort_limits\).*simulate\(controls=...\)"
)


def too_strong(t, q, qd):
    return np.array([40.0, -6.0 if t > 0.015 else 4.0])


def test_a_controller_beyond_the_limits_gets_a_warning_that_names_the_joint():
    with pytest.warns(kt.SimulationWarning, match=MESSAGE) as caught:
        motion = kt.simulate(ARM, np.zeros(2), duration=0.05, dt=1e-2, controller=too_strong)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert motion.report.warnings


def test_so_is_a_rollout():
    tau = np.array([too_strong(0.01 * k, None, None) for k in range(4)])
    batch = np.stack([0.5 * tau, tau], axis=1)
    with pytest.warns(kt.SimulationWarning, match=r"in sample \(1,\).*" + MESSAGE[-60:]):
        kt.rollout(ARM, np.zeros((2, 2)), tau=batch, steps=4, dt=1e-2)


def test_within_the_limits_nothing_is_said():
    limit = ARM.effort_limits

    def cut(t, q, qd):
        return np.clip(too_strong(t, q, qd), -limit, limit)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kt.simulate(ARM, np.zeros(2), duration=0.05, dt=1e-2, controller=cut)
        kt.rollout(ARM, np.zeros(2), tau=limit.astype(np.float32), steps=2, dt=1e-2)
