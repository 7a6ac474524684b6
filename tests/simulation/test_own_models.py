"""Steps on arrays, with controllers, parameters and loops, against compiled code."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.integration import on_arrays

METHODS = "rk4", "semi_implicit_euler"
STEPS = 4


@kt.kernel
def pull(m, q, qd, gain: ()):
    return -gain * q[-m.nv :] - 0.1 * qd


@kt.kernel
def reach(m, q, qd):
    return q @ q + qd @ qd


@kt.kernel
def effort(m, q, gain: ()):
    return 0.1 * gain * (q @ q)


@pytest.fixture
def hopper(monkeypatch):
    """A body with a leg and an arm, quick to compile, of which steps run on arrays nevertheless."""
    monkeypatch.setattr(on_arrays, "LARGE", (1, 1))
    monkeypatch.setattr(on_arrays, "LARGE_BACK", (1, 1))
    b = kt.ModelBuilder("hopper").body("trunk", joint=kt.Free(), inertia=link(0.4, 3.0))
    b.body("thigh", on="trunk", joint=kt.Revolute("y"), at=(0.1, 0, -0.1), inertia=link(0.3, 1.0))
    b.body("shin", on="thigh", joint=kt.Revolute("y"), at=(0.3, 0, 0), inertia=link(0.2, 0.5))
    b.body("arm", on="trunk", joint=kt.Revolute("x"), at=(0, 0.1, 0.2), inertia=link(0.3, 0.4))
    return b.build()


def link(length, mass):
    return kt.shapes.box(length, 0.05, 0.08, mass=mass, at=(length / 2, 0, 0))


def given(model, rng):
    """Arrays of a rollout of two samples, and what acts in it, by what that is."""
    q0 = np.tile(model.neutral(), (2, 1))
    q0[:, 7:] += 0.9 * np.cos(np.arange(model.nq - 7))
    qd0, tau = 0.3 * rng.normal(size=(2, model.nv)), rng.normal(size=(STEPS, 2, model.nv))
    second, last = model.body_names[2], model.body_names[-1]
    inertia = np.array([model.inertia[2].parameters()] * 2) * [[1.0], [1.3]]
    masses = {f"mass:{last}": np.array([1.0, 1.2]), f"inertia:{second}": inertia}
    controlled = {"controller": pull, "arguments": {"gain": np.array([0.1, 0.2])}}
    return (q0, qd0, tau), {
        "masses": {"parameters": masses},
        "a controller": controlled,
        "both": {**controlled, "parameters": {f"mass:{last}": 1.0}},
        "damping": {"parameters": {f"damping:{model.joint_names[-1]}": np.array([0.1])}},
    }


@pytest.mark.parametrize("what", ["masses", "a controller", "both", "damping"])
@pytest.mark.parametrize("method", METHODS)
def test_rollouts_and_gradients_agree_with_compiled_code(method, what, hopper, rng):
    model = hopper
    arrays, options = given(model, rng)
    options = options[what] | {"steps": STEPS, "integrator": method}
    costs = {"terminal": reach} | ({"running": effort} if "arguments" in options else {})
    moved = kt.rollout(model, *arrays, **options)
    back = kt.rollout_gradient(model, *arrays, **costs, **options)
    assert moved.tier == "general"
    with kt.tier("specialised"):
        expected = kt.rollout(model, *arrays, **options)
        expected_back = kt.rollout_gradient(model, *arrays, **costs, **options)
    assert expected.tier == "specialised"
    for name in ("q", "qd", "work"):
        assert_close(getattr(moved, name), getattr(expected, name), ulps=1000)
    for name in ("value", "q0", "qd0", "tau"):
        assert_close(getattr(back, name), getattr(expected_back, name), ulps=1000)
    for kind in ("parameters", "arguments"):
        found, wanted = getattr(back, kind), getattr(expected_back, kind)
        assert found.keys() == wanted.keys()
        for name, value in found.items():
            assert_close(value, wanted[name], ulps=1000)


def test_many_models_are_compiled_and_few_are_not():
    model = kt.samples.quadruped()
    q0 = np.array([model.posture("home").q] * 17)
    parameters = {f"mass:{model.body_names[-1]}": np.linspace(1.0, 2.0, 17)}
    few = {name: values[:2] for name, values in parameters.items()}
    assert kt.rollout(model, q0[:2], steps=1, parameters=few).tier == "general"
    assert kt.rollout(model, q0, steps=1, parameters=parameters).tier == "specialised"


def test_final_states_by_parameters(hopper, rng):
    """Several gradients at once."""
    model = hopper
    (q0, qd0, _), options = given(model, rng)
    options = options["masses"] | {"steps": 2}
    found = kt.final_state_derivatives(model, q0, qd0, **options)
    with kt.tier("specialised"):
        expected = kt.final_state_derivatives(model, q0, qd0, **options)
    assert_close(found.state, expected.state, ulps=1000)
    for name, value in found.parameters.items():
        assert_close(value, expected.parameters[name], ulps=1000)


def test_the_sample_that_breaks_down_is_named():
    model = kt.samples.quadruped()
    q0 = np.array([model.posture("home").q] * 3)
    qd0 = np.zeros((3, model.nv))
    qd0[1] = 1e8
    options = {"steps": 40, "dt": 0.1, "parameters": {f"mass:{model.body_names[-1]}": 1.0}}
    with pytest.raises(kt.SimulationError, match=r"sample \(1,\)"):
        kt.rollout(model, q0, qd0, **options)
    with pytest.raises(kt.SimulationError) as found:
        kt.rollout(model, q0[1], qd0[1], **options)
    assert "sample" not in str(found.value)


@pytest.mark.parametrize("method", ["auto", "rk4", "rosenbrock_w"])
def test_simulations_of_large_linkages_agree(method, rng):
    """Dampers make the matrix of a W-method another one than that of inertias."""
    model = kt.samples.delta()
    pairs = zip(model.joint_names, model.joint[1:], strict=True)
    damped = {name: kt.JointDynamics(damping=[0.3]) for name, joint in pairs if joint.nv == 1}
    model = model.replace(dynamics=damped)
    q = kt.loops.assemble(model)
    qd = 0.2 * kt.loops.project_velocity(model, q, rng.normal(size=model.nv))
    options = {"duration": 0.02, "dt": 2e-3, "integrator": method}
    found = kt.simulate(model, q, qd, **options)
    assert found.report.tier == "general"
    with kt.tier("specialised"):
        expected = kt.simulate(model, q, qd, **options)
    assert expected.report.tier == "specialised"
    assert_close(found.q, expected.q, ulps=1000)
    assert_close(found.qd, expected.qd, ulps=1e5)
    assert_close(found.energy, expected.energy, ulps=1e4)


@pytest.mark.parametrize("friction", [False, True])
def test_gradients_of_w_methods_agree(friction, hopper, rng):
    """Their matrix depends on the state: inertias, and friction that bends."""
    model = hopper
    pairs = zip(model.joint_names, model.joint[1:], strict=True)
    law = kt.JointDynamics(damping=[3.0], stiffness=[50.0], friction=[0.4 * friction])
    model = model.replace(dynamics={name: law for name, joint in pairs if joint.nv == 1})
    (q0, qd0, tau), _ = given(model, rng)
    options = {"steps": STEPS, "dt": 2e-3, "integrator": "rosenbrock_w", "terminal": reach}
    options |= {"friction": kt.Friction()} if friction else {}
    found = kt.rollout_gradient(model, q0, qd0, tau, **options)
    with kt.tier("specialised"):
        expected = kt.rollout_gradient(model, q0, qd0, tau, **options)
    for name in ("value", "q0", "qd0", "tau"):
        assert_close(getattr(found, name), getattr(expected, name), ulps=1000)
