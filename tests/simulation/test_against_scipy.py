"""Motions against SciPy's DOP853 at 1e-12, which integrates in plain coordinates."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.motions import assert_trusted

import kinetree as kt
from kinetree.samples import random_inertia, random_placement

DURATION = 2.0


@kt.kernel
def rate(model, q, qd):
    return model.configuration_rate(q, qd)


def reference(model, q, qd, force=None):
    """State at the end, by position variables and their rates; quaternions as four numbers."""

    def state_rate(t, y):
        q, qd = model.normalize(y[: model.nq]), y[model.nq :]  # stages leave the unit sphere
        total = kt.passive_force(model, q, qd)
        if force is not None:
            total = total + force(model, t, q, qd)
        return np.concatenate([rate(model, q, qd), kt.forward_dynamics(model, q, qd, total)])

    found = solve_ivp(
        state_rate, (0, DURATION), np.concatenate([q, qd]), "DOP853", rtol=1e-12, atol=1e-12
    )
    end = found.y[:, -1]
    return model.normalize(end[: model.nq]), end[model.nq :]


def assert_same_end(model, motion, q, qd, atol):
    np.testing.assert_allclose(model.difference(q, motion.q[-1]), 0, atol=atol)
    np.testing.assert_allclose(motion.qd[-1], qd, atol=atol)


def chain(rng, *joints):
    builder, on = kt.ModelBuilder("chain"), None
    for k, joint in enumerate(joints):
        where = {} if on is None else {"on": on}
        on = f"body{k}"
        builder.body(
            on, joint=joint, at=random_placement(rng), inertia=random_inertia(rng), **where
        )
    return builder.build()


MECHANISMS = {
    "double pendulum": lambda rng: kt.samples.double_pendulum(),
    "gyroscope": lambda rng: kt.samples.gyroscope(),
    "spherical and planar": lambda rng: chain(rng, kt.Spherical(), kt.Planar("z")),
    "free and universal": lambda rng: chain(rng, kt.Free(), kt.Universal("xy")),
}


STEPS = {"rk4": {"dt": 2.5e-4}, "dopri5": {"dt": 0.1, "rtol": 1e-11, "atol": 1e-11}}


@pytest.mark.parametrize("name", MECHANISMS)
def test_motions_end_where_those_of_scipy_end(name, rng):
    model = MECHANISMS[name](rng)
    q, qd = model.random_configuration(rng), rng.uniform(-1, 1, model.nv)
    end = reference(model, q, qd)
    for integrator, steps in STEPS.items():
        motion = kt.simulate(
            model, q, qd, duration=DURATION, store_every=100, integrator=integrator, limits=None,
            **steps,
        )  # fmt: skip
        assert_trusted(motion, energy=1e-8)
        assert_same_end(model, motion, *end, atol=3e-8)


@pytest.mark.parametrize("integrator", ["rk4", "dopri5", "rosenbrock"])
def test_springs_dampers_and_forces_that_depend_on_time(integrator, rng):
    @kt.kernel
    def wind(model, t, q, qd):
        return np.sin(3 * t) * np.cos(q) - 0.1 * qd * qd * qd

    dynamics = kt.JointDynamics(damping=0.3, stiffness=2.0, rest=0.4, armature=0.1)
    model = kt.samples.double_pendulum().replace(dynamics={"elbow": dynamics})
    q, qd = np.array([1.0, -0.5]), np.array([0.3, 0.2])
    dt = 2e-4 if integrator == "rosenbrock" else 1e-3
    motion = kt.simulate(
        model, q, qd, duration=DURATION, dt=dt, integrator=integrator, forces=wind, limits=None
    )
    assert_trusted(motion, energy=1e-8)
    expected = reference(model, q, qd, force=wind.reference)
    assert_same_end(model, motion, *expected, atol=3e-8)


def test_plain_python_forces_give_the_same_motion_as_compiled_ones():
    def plain(model, t, q, qd):
        return -0.2 * qd + np.sin(t)

    model, start = kt.samples.double_pendulum(), [1.0, 0.5]
    options = {"duration": 0.5, "dt": 1e-3, "limits": None}
    one = kt.simulate(model, start, forces=plain, **options)
    other = kt.simulate(model, start, forces=[kt.kernel(plain)], **options)
    assert_trusted(one, energy=1e-8)
    np.testing.assert_allclose(one.q, other.q, atol=1e-12)
    np.testing.assert_allclose(one.work, other.work, atol=1e-12)
