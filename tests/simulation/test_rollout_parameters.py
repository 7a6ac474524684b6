"""Parameters of rollouts: as a rollout of the model that has them, laws of joints included."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.contact import Scene, TimeStepping
from kinetree.errors import ShapeError
from kinetree.functional.parameters import with_parameters
from kinetree.model import JointDynamics, Limits
from kinetree.model.geometry import Box, Plane, Sphere
from kinetree.spatial import Inertia

LINK = Inertia.from_mass_center(1.0, np.array([0.0, 0.0, -0.2]), 0.01 * np.eye(3))
VALUES = {
    "mass:lower": 2.0,
    "armature:elbow": [0.05],
    "damping:elbow": [0.5],
    "friction:elbow": [0.3],
    "stiffness:elbow": [3.0],
}
START = np.array([0.45, 0.2]), np.array([1.0, -2.0])  # the shoulder reaches its limit


def arm(rough):
    """Two links above the ground; without ``rough`` joints have neither springs nor friction."""
    names = ("damping", "friction", "stiffness", "armature")
    values = dict(zip(names, ((0.2,), (0.1,), (1.0,), (0.01,)), strict=True))
    dynamics = JointDynamics(**values) if rough else None
    b, axis = kt.ModelBuilder("arm"), kt.Revolute("y")
    b.body("upper", joint=axis, inertia=LINK, joint_name="shoulder", dynamics=dynamics,
           limits=Limits((-0.5,), (0.5,)))  # fmt: skip
    b.body("lower", on="upper", joint=axis, at=(0, 0, -0.4), inertia=LINK, joint_name="elbow",
           dynamics=dynamics)  # fmt: skip
    b.geometry(Sphere(0.05), on="lower", at=(0, 0, -0.4))
    b.geometry(Plane(), at=(0, 0, -0.83))
    return b.build()


def rolled(model, touching, **more):
    contact = TimeStepping(Scene(model)) if touching else None
    return kt.rollout(model, *START, steps=100, dt=1e-3, contact=contact, **more)


@pytest.mark.parametrize("touching", [False, True], ids=["smooth", "rigid"])
@pytest.mark.parametrize("rough", [True, False], ids=["rough", "bare"])
def test_parameters_move_as_the_model_that_has_them(rough, touching):
    model = arm(rough)
    laws = [{}, {"limits": "rigid", "friction": "exact"}] if touching else [{}]
    for name, value in VALUES.items():
        for law in laws:
            found = rolled(model, touching, parameters={name: value}, **law)
            expected = rolled(with_parameters(model, {name: value}), touching, **law)
            assert np.abs(found.q[-1] - rolled(model, touching, **law).q[-1]).max() > 1e-6, name
            assert_close(found.q, expected.q, ulps=1e3)
            assert_close(found.qd, expected.qd, ulps=1e4)


@kt.kernel
def squared(m, q, qd):
    return q @ q + qd @ qd


@pytest.mark.parametrize("name", list(VALUES))
def test_gradients_by_parameters_are_differences_of_models(name):
    model, value, e = arm(rough=False), np.array(VALUES[name]), 1e-5
    given = {"steps": 100, "dt": 1e-3}
    found = kt.rollout_gradient(model, *START, parameters={name: value}, terminal=squared, **given)
    ends = [kt.rollout(with_parameters(model, {name: value + s}), *START, **given) for s in (e, -e)]
    costs = [np.sum(x.q[-1] ** 2) + np.sum(x.qd[-1] ** 2) for x in ends]
    expected = (costs[0] - costs[1]) / (2 * e)
    assert np.ravel(found.parameters[name])[0] == pytest.approx(expected, rel=1e-5)


def test_a_batch_of_parameters_has_laws_of_each_sample():
    model, masses = arm(rough=True), np.array([0.5, 1.0, 4.0])
    found = rolled(model, False, parameters={"mass:lower": masses})
    for k, mass in enumerate(masses):
        alone = rolled(with_parameters(model, {"mass:lower": mass}), False)
        assert_close(found.q[:, k], alone.q, ulps=1e3)


def test_joints_of_one_variable_take_plain_numbers():
    model = arm(rough=True)
    one, same = (rolled(model, False, parameters={"damping:elbow": x}) for x in (0.5, [0.5]))
    assert np.array_equal(one.q, same.q)

    def last(model):
        return kt.simulate(model, *START, duration=0.01, contact=None, forces=()).q[-1]

    with pytest.warns(kt.SimulationWarning, match="ground"):
        found = kt.sweep(model, last, {"friction:elbow": [0.1, 0.3]}, threads=1)
    assert not found.failed
    assert not np.array_equal(*found["result"])
    with pytest.raises(ShapeError, match=r"'damping:elbow' must have shape \(1,\), got \(2,\)"):
        with_parameters(model, {"damping:elbow": [0.1, 0.2]})


def test_a_coupled_chain_with_one_centred_box_rolls_as_simulated():
    b = kt.ModelBuilder("pair")
    b.body("a", joint=kt.Revolute("y"), inertia=LINK, joint_name="j")
    b.body("b", on="a", joint=kt.Revolute("y"), at=(0, 0, -0.4), inertia=LINK, joint_name="k")
    b.coupling("gear", joint="k", source="j", coefficients=(0.0, 0.5))
    b.geometry(Box((0.1, 0.1, 0.1)), on="b")
    b.geometry(Plane(), at=(0, 0, -0.42))
    model = b.build()
    contact, q = TimeStepping(Scene(model)), np.array([0.6])
    found = kt.rollout(model, q, steps=400, dt=1e-3, contact=contact)
    expected = kt.simulate(model, q, duration=0.4, dt=1e-3, contact=contact)
    assert np.abs(found.q - expected.q).max() < 1e-4
    assert 0.05 < found.q[-1, 0] < 0.6  # its corner lies on the ground
