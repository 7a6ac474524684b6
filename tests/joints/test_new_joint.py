"""A kind of joint that kinetree does not have, written in one place, works everywhere.

A pin in a parabolic slot, as in the documentation of ``kinetree.joints.base``: three methods, a
field, names for its variable. Nothing else in the library has heard of it.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.functional import layout
from kinetree.joints import AbstractJoint, Reversed, check_joint
from kinetree.spatial import Force, Motion, xlt


@kt.joints.register
@dataclass(frozen=True)
class ParabolicSlot(AbstractJoint):
    """Slides along ``y = bend x²``; ``q`` is ``x`` [m]."""

    bend: float = 1.0
    nq = nv = 1
    constant_subspace = False

    def jcalc(self, q, qd):
        b, x, zero = self.bend, q[0], np.zeros((3, 1), dtype=int)
        S = Motion(zero, np.array([[1], [2 * b * x], [0]]))
        c_J = Motion(zero[:, 0], np.array([0, 2 * b * qd[0] * qd[0], 0]))
        return xlt(x, b * x * x, 0), S, S @ qd, c_J

    def constraint_subspace(self, q):
        columns = np.zeros((6, 5), dtype=q.dtype)
        columns[[0, 1, 2, 5], [0, 1, 2, 3]] = 1
        columns[3:5, 4] = -2 * self.bend * q[0], 1
        return Force.from_array(columns)

    def coordinates(self, X):
        return X.r[:1]


@dataclass(frozen=True)
class Turntable(AbstractJoint):
    """A carriage on a turntable: names for two variables, no group, nothing registered."""

    nq = nv = 2
    constant_subspace = False
    position_parts = velocity_parts = ("turn", "out")

    def jcalc(self, q, qd):
        return kt.Cylindrical("z").jcalc(q, qd)

    def constraint_subspace(self, q):
        return kt.Cylindrical("z").constraint_subspace(q)

    def coordinates(self, X):
        return kt.Cylindrical("z").coordinates(X)


@pytest.fixture(scope="module")
def model():
    inertia = kt.Inertia.from_mass_center(1.5, (0.1, 0.2, -0.1), np.diag([0.1, 0.2, 0.15]))
    return (
        kt.ModelBuilder("slotted", gravity=(0, -9.81, 0))
        .body("arm", joint=kt.Revolute("z"), inertia=inertia)
        .body("pin", on="arm", joint=ParabolicSlot(0.7), at=(0.3, 0, 0), inertia=inertia)
        .body("plate", on="pin", joint=Reversed(ParabolicSlot()), inertia=inertia)
        .build()
    )


@pytest.fixture
def state(model, rng):
    return model.random_configuration(rng), *rng.standard_normal((2, model.nv))


def test_it_is_a_joint():
    check_joint(ParabolicSlot(0.7))
    check_joint(Reversed(ParabolicSlot(0.7)))
    check_joint(Turntable())


def test_dynamics(model, state):
    q, qd, qdd = state
    tau = kt.inverse_dynamics(model, q, qd, qdd)
    assert_close(kt.forward_dynamics(model, q, qd, tau), qdd)
    assert_close(kt.algorithms.rnea.inverse_dynamics(model, q, qd, qdd), tau)
    assert_close(kt.mass_matrix(model, q) @ qdd + kt.bias_force(model, q, qd), tau)
    assert not kt.algorithms.honours.timed_joints(model)


def test_derivatives(model, state):
    q, qd, qdd = state
    gradients = kt.differentiate(kt.inverse_dynamics, wrt=("q", "qd", "qdd"))(model, q, qd, qdd)
    for k, (gradient, x) in enumerate(zip(gradients, state, strict=True)):
        for j, e in enumerate(1e-6 * np.eye(model.nv)):
            plus, minus = ([*state[:k], x + s * e, *state[k + 1 :]] for s in (1, -1))
            rise = kt.inverse_dynamics(model, *plus) - kt.inverse_dynamics(model, *minus)
            np.testing.assert_allclose(gradient[:, j], rise / 2e-6, atol=1e-6)


def test_simulation_keeps_the_energy(model, state):
    q, qd, _ = state
    motion = kt.simulate(model, q, 0.1 * qd, duration=0.2, dt=1e-3)
    energy = kt.kinetic_energy(model, motion.q, motion.qd) + kt.potential_energy(model, motion.q)
    assert np.ptp(energy) < 1e-8


def test_labels_and_units(model):
    assert [v.name for v in layout.positions(model)] == ["arm_joint", "pin_joint", "plate_joint"]
    assert [v.unit for v in layout.velocities(model)] == ["rad/s", "m/s", "m/s"]
    turntable = kt.ModelBuilder().body("carriage", joint=Turntable()).build(strict=False)
    names = [v.name for v in layout.positions(turntable)]
    assert names == ["carriage_joint.turn", "carriage_joint.out"]
    assert [v.unit for v in layout.positions(turntable)] == ["rad", "m"]


def test_files_name_it_once_it_is_registered(model, state, tmp_path):
    path = tmp_path / "slotted.toml"
    kt.save(model, path)
    assert 'type = "parabolic_slot"' in path.read_text()
    again = kt.load(path)
    assert [body.joint for body in again.bodies] == [body.joint for body in model.bodies]
    assert_close(kt.inverse_dynamics(again, *state), kt.inverse_dynamics(model, *state))
    assert kt.Model.from_dict(model.to_dict()).bodies[1].joint == ParabolicSlot(0.7)


def test_files_cannot_hold_what_is_not_registered(tmp_path):
    turntable = kt.ModelBuilder().body("carriage", joint=Turntable()).build(strict=False)
    with pytest.raises(kt.ModelError, match=r"'carriage_joint' is a Turntable.*joints\.register"):
        kt.save(turntable, tmp_path / "turntable.toml")


def test_a_spelling_belongs_to_one_class():
    class Slider(ParabolicSlot):
        spelling = "prismatic"

    with pytest.raises(kt.errors.JointError, match="files call Prismatic 'prismatic' already"):
        kt.joints.register(Slider)


def test_it_can_close_a_loop(model):
    X = ParabolicSlot(0.7).transform(np.array([0.2]))
    assert_close(ParabolicSlot(0.7).loop_gap(X), np.zeros(5))
    assert np.max(np.abs(ParabolicSlot(0.7).loop_gap(xlt(0.2, 0.1, 0)))) > 0.01
