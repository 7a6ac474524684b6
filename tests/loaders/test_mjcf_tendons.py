"""Tendons, equalities and gravity compensation of MJCF, read and written."""

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import loaded

import kinetree as kt
from kinetree.errors import ModelWarning
from kinetree.interop import mujoco as M
from kinetree.writers.mjcf import to_mjcf

ARM = """<mujoco>{}<worldbody>
<body name="a" {}><joint name="ja" axis="0 1 0" ref="20"/><geom size=".1" mass="1" pos=".2 0 0"/>
<body name="b" pos=".3 0 .1" {}><joint name="jb" axis="1 1 0"/><geom size=".1" mass="2"/>
<body name="hand" pos=".3 0 0" euler="10 20 30" {}><geom size=".1" mass=".5" pos=".1 0 .2"/>
<body name="tool" pos=".1 .1 0" {}><geom size=".1" mass=".3" pos="0 .1 .2"/></body></body>
<body name="c" pos="0 .3 0"><joint name="jc" type="slide" ref=".2"/><geom size=".1"/></body>
</body></body></worldbody>{}</mujoco>"""


def arm(after="", *gravcomp, before=""):
    carried = [f'gravcomp="{g}"' for g in gravcomp] + [""] * (4 - len(gravcomp))
    return ARM.format(before, *carried, after)


def peer(text, rng):
    """MuJoCo's model and data at a random state."""
    mj_model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj_model)
    data.qpos[:], data.qvel[:] = rng.normal(size=(2, mj_model.nv))
    mujoco.mj_forward(mj_model, data)
    return mj_model, data


@pytest.mark.parametrize("flags", ["", "spring", "damper", "spring damper", "gravity"])
def test_carried_weight_of_lumped_bodies_adds_up(rng, flags):
    switched = " ".join(f'{flag}="disable"' for flag in flags.split())
    before = f"<option><flag {switched}/></option>"
    text = arm("", 0.5, 0.25, 1.5, -0.5, before=before)
    (mj_model, data), model = peer(text, rng), loaded(text)
    tau = kt.passive_force(model, M.from_q(model, mj_model, data.qpos), data.qvel)
    assert np.any(tau) == (flags not in ("spring damper", "gravity"))
    scale = max(1.0, np.max(np.abs(data.qfrc_gravcomp)))
    np.testing.assert_allclose(tau, data.qfrc_gravcomp, rtol=0, atol=1e-13 * scale)
    assert len(model.gravity_compensation) == 2 * (flags != "spring damper")


def test_parts_without_a_common_centre_stay_apart(rng):
    text = arm("", 0, 0.5, -2.0)  # 1 kg up and 1 kg down, a couple
    (mj_model, data), model = peer(text, rng), loaded(text)
    assert [g.mass for g in model.gravity_compensation] == [1.0, -1.0]
    tau = kt.passive_force(model, M.from_q(model, mj_model, data.qpos), data.qvel)
    np.testing.assert_allclose(tau, data.qfrc_gravcomp, rtol=0, atol=1e-13 * 10)
    with pytest.warns(ModelWarning, match="gravity compensation of body 'b', which is not a part"):
        to_mjcf(model)


TENDONS = """<tendon>
<fixed name="t" {}><joint joint="ja" coef=".5"/><joint joint="jb" coef="-1"/></fixed>
<fixed name="u"><joint joint="jc" coef="2"/><joint joint="ja" coef="1"/></fixed>
</tendon>{}"""


def test_tendons_come_back_with_the_same_forces(rng):
    forces = 'stiffness="3" damping=".2" frictionloss=".1" springlength="-1 -.7" range="-3 4"'
    text = arm(TENDONS.format(forces, ""), 0.3, 0.6, 0.6, 0.6)
    model = loaded(text)
    again = loaded(to_mjcf(model))
    assert [t.name for t in again.tendons] == ["t", "u"]
    for one, other in zip(model.tendons, again.tendons, strict=True):
        assert (one.joints, one.coefficients) == (other.joints, other.coefficients)
        shift = one.offset - other.offset
        bounds = np.array([one.lower, one.upper, *(one.rest if one.stiffness else ())])
        found = np.array([other.lower, other.upper, *(other.rest if one.stiffness else ())])
        np.testing.assert_allclose(found + shift, bounds, rtol=1e-15)
    q, qd = rng.normal(size=(2, 5, 3))
    expected = kt.passive_force(model, q, qd)
    np.testing.assert_allclose(kt.passive_force(again, q, qd), expected, rtol=0, atol=1e-13)


def test_a_tendon_that_would_read_as_unset_is_written_one_digit_off(rng):
    text = to_mjcf(loaded(arm(TENDONS.format('stiffness="3" springlength="-.5"', ""))))
    model = loaded(text)
    t = model.tendons[0]
    unset = model.replace(tendons=(kt.Tendon("t", t.joints, t.coefficients, stiffness=3.0,
                                             rest=(-1.0, -1.0)),))  # fmt: skip
    assert loaded(to_mjcf(unset)).tendons[0].rest == pytest.approx((-1.0, -1.0), rel=1e-15)


@pytest.mark.parametrize(
    ("equality", "follower", "leaders"),
    [
        # That of the largest coefficient; what is on both sides (ja) drops out.
        ('<tendon tendon1="u" tendon2="t" polycoef=".1 2 0 0 0"/>', "jc", {"jb": -1.0}),
        ('<tendon tendon1="t" polycoef=".1 0 0 0 0"/>', "jb", {"ja": 0.5}),
        ('<tendon tendon1="u"/><joint joint1="jc" joint2="jb"/>', "ja", {"jc": -2.0}),
        # Both laws say something of ja and jc alone: the second in what leads in the first.
        ('<tendon tendon1="u"/><joint joint1="jc" joint2="ja"/>', "ja", None),
    ],
)
def test_one_joint_of_a_law_follows_the_others(rng, equality, follower, leaders):
    text = arm(TENDONS.format("", f"<equality>{equality}</equality>"))
    model, mj_model = loaded(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj_model)
    for _ in range(3):
        q = rng.normal(size=model.nv)
        data.qpos[:] = M.to_q(model, mj_model, q)
        mujoco.mj_forward(mj_model, data)
        np.testing.assert_allclose(data.efc_pos[: data.ne], 0, atol=1e-14 * (1 + np.max(abs(q))))
    assert model.nv == mj_model.nv - mj_model.neq
    c = model.couplings[-1]
    names = ("", *model.joint_names)
    assert names[c.joint] == follower
    if leaders:
        shares = np.array(c.shares) * c.coefficients[1]
        found = dict(zip((names[i] for i in c.leaders), shares, strict=True))
        assert found == pytest.approx(leaders)


def test_couplings_of_several_joints_are_written_as_equal_tendons(rng):
    couplings = (
        kt.Coupling("mean", 3, sources=(1, 2), weights=(0.5, -0.4), coefficients=(0.1, 2)),
    )
    model = loaded(arm()).replace(couplings=couplings)
    again = loaded(to_mjcf(model))
    assert not again.tendons  # those that only say what is coupled
    q = rng.normal(size=(4, 2))
    np.testing.assert_allclose(again.expand(q), model.expand(q), atol=1e-15)
    assert again.couplings[0].joint == 3
    cubic = (kt.Coupling("cam", 3, sources=(1, 2), coefficients=(0.1, 2.0, 0.3, -0.2)),)
    model = model.replace(couplings=cubic)
    np.testing.assert_allclose(loaded(to_mjcf(model)).expand(q), model.expand(q), atol=1e-13)
