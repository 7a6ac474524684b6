"""Tendons through space: lengths, moment arms and forces against MuJoCo and by complex step."""

import numpy as np
import pytest
from support.mujoco_mechanisms import driven_states, loaded
from support.spatial_tendons import random_mjcf

import kinetree as kt
from kinetree.algorithms import tendons as texts
from kinetree.errors import ModelError, UnknownNameError
from kinetree.interop import mujoco as M
from kinetree.model.wrapping import way_around

SPRING = 'stiffness="7" damping="0.4" springlength="0.5 0.9"'
PULL = "".join(
    f'<general tendon="t{t}" gear="{1 + t / 2}" gainprm="3" biastype="affine" biasprm="1 -2 -0.5"/>'
    for t in range(4)
)


def by_complex_step(model, q):
    """The Jacobian of the lengths, column by column, in the directions of the velocities."""
    step = 1e-30
    columns = []
    for e in np.eye(model.nv):
        rate = np.concatenate(
            [
                joint.configuration_rate(q[model.q_slice[i]], e[model.v_slice[i]])
                for i, joint in enumerate(model.joint[1:], start=1)
            ]
        )
        columns.append(texts.tendon_lengths(model, q + 1j * step * rate).imag / step)
    return np.array(columns).T


@pytest.mark.parametrize("within", [False, True])
def test_lengths_and_rates_are_those_of_mujoco(rng, within):
    """MuJoCo finds the point on a shape that is touched from within only to some 1e-6."""
    for _ in range(25):
        text = random_mjcf(rng, within=within, attributes=SPRING, actuators=PULL)
        model, q, qd, _, data = driven_states(text, rng)
        J = texts.tendon_jacobian(model, q)
        np.testing.assert_allclose(
            texts.tendon_lengths(model, q), data.ten_length, rtol=0, atol=2e-13
        )
        closeness = 1e-5 if within else 1e-12
        np.testing.assert_allclose(J @ qd, data.ten_velocity, rtol=0, atol=closeness)
        np.testing.assert_allclose(J, by_complex_step(model, q), rtol=0, atol=1e-12)


def test_forces_are_those_of_mujoco(rng):
    for _ in range(10):
        text = random_mjcf(rng, within=False, attributes=SPRING, actuators=PULL)
        model, q, qd, mj_model, data = driven_states(text, rng)
        passive = texts_of_passive(model, q, qd)
        driving = kt.algorithms.actuators.driving_force(model, q, qd, data.ctrl)
        for ours, theirs in ((passive, data.qfrc_passive), (driving, data.qfrc_actuator)):
            theirs = M.from_tau(model, mj_model, data.qpos, theirs)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


def texts_of_passive(model, q, qd):
    return kt.algorithms.passive.passive_force(model, q, qd)


def test_compiled_lengths_and_their_derivatives(rng):
    text = random_mjcf(rng, bodies=3, tendons=2)
    model = loaded(text)
    q = np.array([model.random_configuration(rng) for _ in range(5)])
    J = kt.tendon_jacobian(model, q)
    for k in range(5):
        np.testing.assert_allclose(
            kt.tendon_lengths(model, q[k]), texts.tendon_lengths(model, q[k]), rtol=0, atol=1e-13
        )
        np.testing.assert_allclose(J[k], texts.tendon_jacobian(model, q[k]), rtol=0, atol=1e-12)
    dL = kt.differentiate(kt.tendon_lengths, wrt="q")(model, q)
    np.testing.assert_allclose(dL, J, rtol=0, atol=1e-11)
    h, e = 1e-6, rng.normal(size=model.nv)
    dJ = kt.differentiate(kt.tendon_jacobian, wrt="q")(model, q[0])
    ahead, behind = (
        texts.tendon_jacobian(model, model.integrate(q[0], s * h * e)) for s in (1, -1)
    )
    np.testing.assert_allclose(dJ @ e, (ahead - behind) / (2 * h), rtol=0, atol=1e-6)


# --- the way around a shape ----------------------------------------------------------------------


def test_ways_around_a_cylinder_and_a_sphere():
    p0, p1 = np.array([-2.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0])
    tangent, angle = np.sqrt(3.0), np.pi / 3  # 60° of the circle lie between the points of contact
    for shape in ("sphere", "cylinder"):
        for side in (None, np.array([0.0, 1.5, 0.0]), np.array([0.0, -1.5, 0.0])):
            way = way_around(shape, 1.0, p0, p1, side)
            assert way.wraps
            assert way.arc == pytest.approx(angle, abs=1e-14)
            a, b = way.touching
            assert np.linalg.norm(a - p0) == pytest.approx(tangent, abs=1e-14)
            if side is not None and shape == "cylinder":  # of a sphere any plane will do
                assert a[1] * side[1] > 0
                assert b[1] * side[1] > 0
    up = np.array([0.0, 0.0, 1.0])
    climbing = way_around("cylinder", 1.0, p0 - up, p1 + up)  # unrolled, it is straight
    a, b = climbing.touching
    length = np.linalg.norm(a - p0 + up) + climbing.arc + np.linalg.norm(p1 + up - b)
    assert length == pytest.approx(np.hypot(2 * tangent + angle, 2), abs=1e-14)
    assert not way_around("sphere", 1.0, p0 + 2 * up, p1 + 2 * up).wraps


def test_a_path_within_a_ring_reflects():
    p0, p1 = np.array([-2.0, 1.5, 0.0]), np.array([1.0, 1.8, 0.0])
    way = way_around("cylinder", 1.0, p0, p1, np.zeros(3))
    (touch, _), n = way.touching, way.touching[0]
    come, leave = (v / np.linalg.norm(v) for v in (p0 - touch, p1 - touch))
    assert come @ n == pytest.approx(leave @ n, abs=1e-14)
    assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-14)
    assert way.arc == 0


# --- models ---------------------------------------------------------------------------------------


def finger(**tendon):
    """Two links, and a tendon that runs around the joint between them."""
    link = kt.shapes.capsule(0.01, 0.1, mass=0.1, at=(0.05, 0, 0))
    return (
        kt.ModelBuilder("finger")
        .body("near", joint=kt.Revolute("y"), inertia=link)
        .body("far", on="near", joint=kt.Revolute("y"), at=(0.1, 0, 0), inertia=link)
        .frame("hole", at=(0, 0, -0.02))
        .frame("pin", on="far", at=(0.05, 0, -0.015))
        .frame("knuckle", on="near", at=kt.spatial.rotx(np.pi / 2) @ kt.spatial.xlt(0.1, 0, 0))
        .frame("below", on="near", at=(0.1, 0, -0.03))
        .tendon("flexor", path=PATH, **tendon)
        .build()
    )


PATH = ("hole", kt.Wrap("knuckle", "cylinder", 0.012, "below"), "pin")


@pytest.mark.parametrize("suffix", [".toml", ".json", ".xml", ".urdf"])
def test_files_keep_paths(tmp_path, suffix):
    ropes = kt.Tendon("rope", path=(*PATH, kt.Pulley(2.0), "far", "hole"), upper=0.5, stiffness=3.0)
    model = finger().replace(tendons=(ropes,))
    file = tmp_path / f"finger{suffix}"
    kt.save(model, file)
    again = kt.load(file)
    q = np.array([0.4, -1.1])
    expected = texts.tendon_lengths(model, q)
    np.testing.assert_allclose(texts.tendon_lengths(again, q), expected, rtol=0, atol=1e-15)
    assert again.tendons[0].upper == 0.5
    kt.save(again, file)  # and shapes that it winds around are not added again
    assert len(kt.load(file).geometry) == len(again.geometry)


def test_edits_keep_paths():
    model, q = finger(stiffness=2.0), np.array([0.4, -1.1])
    L = texts.tendon_lengths(model, q)
    two = kt.edit.attach(model, model, on="far", prefix="b_")
    q2 = np.concatenate([q, q])
    np.testing.assert_allclose(texts.tendon_lengths(two, q2), [L[0], L[0]], rtol=0, atol=1e-15)
    held = kt.edit.lock(model, {"near_joint": 0.4})
    assert held.tendon("flexor").moves_with(held) == (2,)
    np.testing.assert_allclose(texts.tendon_lengths(held, q[1:]), L, rtol=0, atol=1e-15)
    still = kt.edit.lock(held, {"far_joint": 0.0})
    assert still.tendon("flexor").moves_with(still) == ()
    with pytest.raises(kt.errors.LoopError, match=r"tendon 'flexor' leads out of the subtree"):
        kt.edit.extract(model, "far")
    assert "hole -> around knuckle -> pin, with a spring" in model.summary()


def test_broken_paths_are_refused():
    wrap = kt.Wrap("knuckle", "cylinder", 0.01)
    for path, message in (
        (("hole",), "needs two frames"),
        ((wrap, "pin"), "must begin and end with a frame"),
        (("hole", kt.Pulley(1.0), kt.Pulley(2.0), "pin", "far"), "must begin and end"),
        (("hole", kt.Wrap("knuckle", "box", 0.01), "pin"), "can wind around a 'sphere' or"),
        (("hole", kt.Wrap("knuckle", "sphere", -1.0), "pin"), "must be positive, got -1.0"),
        (("hole", kt.Pulley(0.0), "pin", "far"), "must be positive, got 0.0"),
        (("hole", 3, "pin"), "holds a int"),
        ("hole", "must list names of frames"),
    ):
        with pytest.raises(ModelError, match=message):
            finger().replace(tendons=(kt.Tendon("rope", path=path),))
    with pytest.raises(UnknownNameError, match="frame in the path of tendon 'rope'"):
        finger().replace(tendons=(kt.Tendon("rope", path=("hole", "pni")),))
    with pytest.raises(ModelError, match="must run over one joint or more"):
        finger().replace(tendons=(kt.Tendon("rope"),))
