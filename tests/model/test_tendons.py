"""Tendons and gravity compensation as parts of models: files, editing, messages."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import LoopError, ModelError, UnknownNameError
from kinetree.model.mechanism import MechanismGraph
from kinetree.writers.native import to_toml

BAR = kt.shapes.box(0.3, 0.05, 0.05, mass=1.0, at=(0.15, 0.0, 0.0))


def builder():
    b = kt.ModelBuilder("arm")
    for name, on in (("a", None), ("b", "a"), ("c", "b")):
        at = (0.3, 0.0, 0.0) if on else None
        b.body(name, on=on, joint=kt.Revolute("y"), at=at, inertia=BAR, joint_name=f"j{name}")
    return b


def arm():
    b = builder().tendon(
        "cable", joints={"ja": 0.8, "jc": -0.5}, offset=0.1, lower=-1.0, stiffness=3.0,
        damping=0.1, friction=0.2, rest=(0.1, 0.3),
    )  # fmt: skip
    return b.gravity_compensation("b", mass=0.7, center=(0.1, 0.0, 0.2)).build()


def force(model, q):
    return kt.passive_force(model, q, np.full(model.nv, 0.3))


def test_everything_survives_files_and_pickles():
    m = arm()
    for copy in (
        kt.Model.from_dict(m.to_dict()), kt.loads(to_toml(m)), pickle.loads(pickle.dumps(m)),
        MechanismGraph.from_model(m).to_model(),
    ):  # fmt: skip
        assert copy == m
        assert copy.tendon("cable") == m.tendon("cable")
    assert m.replace(tendons=()) != m != m.replace(gravity_compensation=())
    assert "tendon cable: 0.1 + 0.8 ja - 0.5 jc, limited, with a spring, damped" in m.summary()
    assert "gravity compensation: 0.7 kg on b" in m.summary()


def test_a_locked_joint_leaves_its_share_of_the_length():
    m = arm()
    locked = kt.edit.lock(m, {"ja": 0.4}, lump=True)
    assert locked.tendon("cable").offset == pytest.approx(0.1 + 0.8 * 0.4)
    tau = force(m, np.array([0.4, 0.2, -0.5]))
    found = kt.passive_force(locked, np.array([0.2, -0.5]), np.array([0.3, 0.3]))
    still = kt.passive_force(m, np.array([0.4, 0.2, -0.5]), np.array([0.0, 0.3, 0.3]))
    np.testing.assert_allclose(found, still[1:], atol=1e-14)
    assert not np.allclose(tau, still)
    assert not kt.edit.lock(m, {"ja": 0.4, "jc": 0.1}).tendons


def test_editing_keeps_the_forces():
    m, q = arm(), np.array([0.4, 0.2, -0.5])
    tau = force(m, q)
    base = kt.edit.floating(m, inertia=BAR)
    at = np.concatenate([[0, 0, 0, 1, 0, 0, 0], q])
    np.testing.assert_allclose(force(base, at)[6:], tau, atol=1e-14)
    rerooted = kt.edit.reroot(base, "c")
    order = [rerooted.v_slice[rerooted.joint_index(n)].start for n in m.joint_names]
    position = rerooted.neutral()
    position[[k + 1 for k in order]] = q
    # The tendon pulls between the joints alone, and the weight of one point is carried.
    found = kt.passive_force(rerooted.replace(gravity=(0, 0, 0)), position, _rates(order, 9))
    alone = force(m.replace(gravity=(0, 0, 0)), q)
    np.testing.assert_allclose(found[order], alone, atol=1e-14)
    two = kt.edit.attach(m, m, on="c", prefix="left_")
    assert [t.name for t in two.tendons] == ["cable", "left_cable"]
    assert [g.body for g in two.gravity_compensation] == [2, 5]
    with pytest.raises(LoopError, match="tendon 'cable' leads out of the subtree of 'b'"):
        kt.edit.extract(m, "b")


def _rates(order, nv):
    qd = np.zeros(nv)
    qd[order] = 0.3
    return qd


def test_lumping_moves_the_carried_point():
    b = builder().body("tool", on="c", joint=kt.Fixed(), at=(0.3, 0, 0.1), inertia=BAR)
    m = b.gravity_compensation("tool", mass=0.5, center=(0.1, 0, 0)).build()
    lumped = kt.edit.lump_fixed(m)
    assert lumped.gravity_compensation == (kt.GravityCompensation(3, 0.5, (0.4, 0.0, 0.1)),)
    q = np.array([0.4, 0.2, -0.5])
    np.testing.assert_allclose(force(lumped, q), force(m, q), atol=1e-14)


def test_numbers_of_another_kind():
    m = arm().map_numbers(Fraction)
    assert m.tendons[0].stiffness == 3
    assert m.gravity_compensation[0].mass == Fraction(0.7)
    q = np.array([0.4, 0.2, -0.5])
    np.testing.assert_allclose(force(m, q).astype(float), force(arm(), q), atol=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joints": (1, 1)}, "tendon 'cable' must run over one joint or more, each once"),
        ({"joints": (1,)}, "coefficients needs an entry for each, got 2"),
        ({"joints": (1, 9)}, "tendon 'cable' refers to joint 9; the model has joints 1 to 3"),
        ({"stiffness": -1.0}, "stiffness of tendon 'cable' must not be negative, got -1"),
        ({"damping": np.inf}, "damping of tendon 'cable' must be finite"),
        ({"lower": 2.0, "upper": 1.0}, "limits of tendon 'cable' must be the smallest and the"),
        ({"coefficients": "ab"}, "coefficients of tendon 'cable' must hold numbers, got 'ab'"),
        ({"rest": (1.0, 0.0)}, "rest of tendon 'cable' must be the smallest and the largest"),
    ],
)
def test_messages_name_the_tendon(change, message):
    m = arm()
    with pytest.raises(ModelError, match=message):
        m.replace(tendons=(replace(m.tendons[0], **change),))


def test_messages_of_builder_and_names():
    with pytest.raises(ModelError, match="joints of tendon 't' must be coefficients by joint name"):
        builder().tendon("t", joints=["ja"])
    with pytest.raises(UnknownNameError, match="joint of tendon 't' is 'jx'"):
        builder().tendon("t", joints={"jx": 1.0}).build()
    with pytest.raises(UnknownNameError, match="has no tendon 'rope'"):
        arm().tendon("rope")
    with pytest.raises(ModelError, match="the base does not move and has no weight to carry"):
        builder().gravity_compensation("base", mass=1.0).build()
    with pytest.raises(ModelError, match="GravityCompensation is a controller"):
        kt.GravityCompensation(arm(), 1.0)
    b = kt.ModelBuilder("ball").body("a", joint=kt.Spherical(), inertia=BAR, joint_name="j")
    b.tendon("t", joints={"j": 1.0})
    with pytest.raises(ModelError, match="only joints with one variable can have a tendon"):
        b.build()
