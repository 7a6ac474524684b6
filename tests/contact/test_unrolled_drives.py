"""Servos in the unrolled step: implicit through couplings and tendons, bounded, as in worlds."""

import numpy as np
import pytest

import kinetree as kt

STEP = 2e-3
ARM = """<mujoco model="arm"><compiler autolimits="true" angle="radian"/>
<worldbody><geom name="floor" type="plane" size="5 5 .1"/>
  <body pos="0 0 {height}"><joint name="a" axis="0 1 0" {joint}/>
    <geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" mass="1" contype="0" conaffinity="0"/>
    <body pos=".4 0 0"><joint name="b" axis="0 1 0" damping=".05"/>
      <geom type="sphere" size=".05" pos=".2 0 0" mass=".5"/>
      {more}</body></body></worldbody>{rest}
  <actuator><position joint="a" kp="{kp}" kv="{kv}" {force}/><position joint="b" kp="20" kv="1"/>
    {drives}</actuator></mujoco>"""
FINGERS = "".join(
    f'<body name="{name}" pos=".2 0 0"><joint name="{name}" type="slide" axis="0 {sign} 0" '
    f'stiffness="3"/><geom type="box" mass="0.02" size=".01 .01 .01" contype="0" conaffinity="0"/>'
    f"</body>"
    for name, sign in (("left", 1), ("right", -1))
)
EQUALITY = '<equality><joint joint1="left" joint2="right" polycoef="0 1.2 0 0 0"/></equality>'
TENDON = (
    '<tendon><fixed name="both"><joint joint="left" coef="0.5"/>'
    '<joint joint="{other}" coef="0.4"/></fixed></tendon>'
)
GRIPPERS = {
    "joint": (EQUALITY, '<position joint="left" kp="1000" kv="20"/>'),
    "bounded joint": (EQUALITY, '<position joint="left" kp="1000" kv="20" forcerange="-2 2"/>'),
    "tendon": (
        EQUALITY + TENDON.format(other="right"),
        '<position tendon="both" kp="1000" kv="20" forcerange="-9 3"/>',
    ),
    "tendon without coupling": (
        TENDON.format(other="right"), '<position tendon="both" kp="400" kv="10"/>',
    ),
    "tendon along the arm": (
        EQUALITY + TENDON.format(other="b"), '<position tendon="both" kp="400" kv="10"/>',
    ),
    "filter": (
        EQUALITY,
        '<general joint="left" dyntype="filter" dynprm=".02" gainprm="500" biastype="affine" '
        'biasprm="0 -500 -10"/>',
    ),
}  # fmt: skip
LIMITS = {
    "none": {},
    "actuator": {"force": 'forcerange="-4 4"'},
    "joint": {"joint": 'actuatorfrcrange="-4 4"'},
}


@pytest.fixture
def load(tmp_path):
    def read(kp=200, kv=4, gripper=None, height=1.0, limits="none"):
        rest, drives = GRIPPERS[gripper] if gripper else ("", "")
        given = {"joint": "", "force": "", **LIMITS[limits]}
        path = tmp_path / "arm.xml"
        path.write_text(ARM.format(
            kp=kp, kv=kv, rest=rest, drives=drives, more=FINGERS if gripper else "", height=height,
            **given,
        ))  # fmt: skip
        return kt.World.from_file(path).model

    return read


def trajectory(model, u, steps):
    """States of a world, (steps + 1, nq) and (steps + 1, nv), and activations."""
    world = kt.World(timestep=STEP)
    world.add(model, name="arm", prefix="")
    states = [(world.q, world.qd, world.activation)]
    for _ in range(steps):
        world.step(control=u)
        states.append((world.q, world.qd, world.activation))
    return [np.array(x) for x in zip(*states, strict=True)]


def one_step(model, q, qd, u, tier):
    """States after one step from each of several."""
    contact = kt.contact.TimeStepping(kt.contact.Scene(model), conserving=False, tolerance=1e-12)
    with kt.tier(tier):
        run = kt.rollout(model, q, qd, steps=1, dt=STEP, controls=u, contact=contact)
    assert run.tier == tier
    return np.concatenate([run.q[-1], run.qd[-1]], axis=-1)


def compare(model, u, steps=60):
    q, qd, _ = trajectory(model, u, steps)
    unrolled, engine = (one_step(model, q, qd, u, tier) for tier in ("specialised", "general"))
    np.testing.assert_allclose(unrolled, engine, rtol=1e-9, atol=1e-9)
    return q, qd


@pytest.mark.parametrize("limits", list(LIMITS))
@pytest.mark.parametrize(("kp", "kv"), [(200, 4), (5000, 20)])
def test_bounded_servos_step_as_in_the_engine(load, kp, kv, limits):
    compare(load(kp, kv, limits=limits), np.array([0.5, 0.3]))


@pytest.mark.parametrize("gripper", list(GRIPPERS))
def test_coupled_grippers_step_as_in_the_engine(load, gripper):
    compare(load(4500, 450, gripper), np.array([0.5, 0.3, 0.03]))


def test_bounded_servos_push_a_ball_against_the_ground(load):
    model = load(5000, 20, height=0.25, limits="actuator")
    q, _ = compare(model, np.array([0.9, 0.3]), steps=150)
    assert np.abs(np.diff(q[-20:], axis=0)).max() < 1e-4  # it is held by the ground


@kt.kernel
def end(model, q, qd):
    return q @ q + 0.1 * (qd @ qd)


@pytest.mark.parametrize("relaxation", [0.0, 0.02])
@pytest.mark.parametrize(
    "given",
    [
        {"kp": 5000, "kv": 20, "limits": "actuator"},
        {"kp": 200, "kv": 4, "limits": "joint"},
        {"kp": 450, "kv": 45, "gripper": "bounded joint"},
        {"kp": 450, "kv": 45, "gripper": "tendon"},
    ],
)
def test_gradients_are_those_of_differences(load, given, relaxation):
    """Over steps in which drives reach their bounds and leave them."""
    model = load(**given)
    u = np.array([0.1, 0.3, 0.01][: len(model.actuators)])
    contact = kt.contact.TimeStepping(
        kt.contact.Scene(model), relaxation=relaxation, conserving=False
    )
    options = {"steps": 60, "dt": STEP, "contact": contact}

    def cost(q, u):
        with kt.tier("specialised"):
            run = kt.rollout(model, q, controls=u, **options)
        return run.q[-1] @ run.q[-1] + 0.1 * (run.qd[-1] @ run.qd[-1])

    q0 = model.neutral()
    found = kt.rollout_gradient(model, q0, controls=u, terminal=end, **options)
    assert found.value == pytest.approx(cost(q0, u), rel=1e-9)
    d = 1e-6
    for k, e in enumerate(np.eye(len(u))):
        expected = (cost(q0, u + d * e) - cost(q0, u - d * e)) / (2 * d)
        assert found.controls[k] == pytest.approx(expected, rel=1e-4, abs=1e-6)
    for k, e in enumerate(np.eye(model.nq)):
        expected = (cost(q0 + d * e, u) - cost(q0 - d * e, u)) / (2 * d)
        assert found.q0[k] == pytest.approx(expected, rel=1e-4, abs=1e-6)


@kt.kernel
def state(m, q, qd):
    return np.concatenate([q, qd])


@kt.kernel
def nothing(m, q):
    return 0 * q[0]


def environment(model, q, qd):
    """Two worlds that begin in a state."""

    @kt.kernel
    def begin(m):
        return {"q": q, "qd": qd}

    contact = kt.contact.TimeStepping(kt.contact.Scene(model), conserving=False)
    return kt.learning.Environment(
        model, 2, observe=state, reward=nothing, reset=begin, dt=STEP, episode=None,
        contact=contact,
    )  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        {"kp": 5000, "kv": 20, "limits": "actuator"},
        {"kp": 4500, "kv": 450, "gripper": "tendon"},
    ],
)
def test_environments_step_as_the_engine(load, given):
    model = load(**given)
    u = np.array([0.5, 0.3, 0.03][: len(model.actuators)])
    q, qd, _ = trajectory(model, u, 40)
    for k in (0, 3, 10, 40):
        env = environment(model, q[k], qd[k])
        env.step(np.tile(u, (2, 1)))
        ends = np.concatenate([env.state["q"], env.state["qd"]], axis=-1)
        expected = one_step(model, q[k], qd[k], u, "general")
        np.testing.assert_allclose(ends, [expected] * 2, rtol=1e-9, atol=1e-9)
