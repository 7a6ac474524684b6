"""Gravity compensation that counts as a force of actuators, as in MuJoCo, through all doors."""

import mujoco
import numpy as np
import pytest

import kinetree as kt

STEP = 2e-3


def arm_text(rng, *, bodies=4, couple=False):
    """A chain of hinges and slides with compensated bodies, bounded drives, and a few servos."""
    inside, drives = "", ""
    for k in reversed(range(bodies)):
        axis, at = rng.normal(size=3), rng.uniform(-0.3, 0.3, 3)
        low, high = -rng.uniform(0.5, 6), rng.uniform(0.5, 6)
        bounds = f'actuatorfrcrange="{low} {high}"' if rng.random() < 0.8 else ""
        counted = f'actuatorgravcomp="{"true" if rng.random() < 0.7 else "false"}"'
        inside = (
            f'<body name="b{k}" pos="{at[0]} {at[1]} {at[2]}" gravcomp="{rng.choice((0, 0.5, 1))}">'
            f'<joint name="j{k}" type="{"slide" if rng.random() < 0.2 else "hinge"}" damping=".3" '
            f'axis="{axis[0]} {axis[1]} {axis[2]}" armature=".02" {bounds} {counted}/>'
            f'<geom type="capsule" size=".04 .12" mass="{rng.uniform(0.3, 1)}" contype="0" '
            f'conaffinity="0"/>{inside}</body>'
        )
        kind = f'position kp="{rng.uniform(2, 30)}" kv=".5"' if rng.random() < 0.4 else "motor"
        drives += f'<{kind} joint="j{k}"/>'
    rest = '<equality><joint joint1="j3" joint2="j1" polycoef="0 .7 0 0 0"/></equality>'
    return (
        f'<mujoco><compiler angle="radian"/><option timestep="1e-3" integrator="RK4"/><worldbody>'
        f"{inside}</worldbody><actuator>{drives}</actuator>{rest if couple else ''}</mujoco>"
    )


def both(seed, **options):
    rng = np.random.default_rng(seed)
    text = arm_text(rng, **options)
    return rng, mujoco.MjModel.from_xml_string(text), kt.loads(text)


@pytest.mark.parametrize("seed", range(3))
def test_forces_and_accelerations_are_those_of_mujoco(seed):
    rng, mj_model, model = both(seed)
    data, clipped = mujoco.MjData(mj_model), 0
    sensed = model.replace(
        sensors=[kt.Sensor(f"s{k}", "jointactuatorfrc", of=f"j{k}") for k in range(4)]
    )
    for _ in range(5):
        q, qd, u = rng.normal(size=(3, 4)) * [[0.7], [0.5], [3.0]]
        data.qpos, data.qvel, data.ctrl = q, qd, u
        mujoco.mj_forward(mj_model, data)
        tau = kt.driving_force(model, q, qd, u)
        total = tau + kt.passive_force(model, q, qd)
        expected = data.qfrc_actuator + data.qfrc_passive
        size = 1 + np.abs(expected).max()
        np.testing.assert_allclose(total, expected, rtol=0, atol=1e-10 * size)
        qdd = kt.forward_dynamics(model, q, qd, total)
        np.testing.assert_allclose(qdd, data.qacc, rtol=1e-9, atol=1e-9 * np.abs(data.qacc).max())
        readings = kt.sensors(sensed)(q, qd, controls=u)
        found = np.concatenate([readings[f"s{k}"] for k in range(4)])
        np.testing.assert_allclose(found, data.qfrc_actuator, rtol=0, atol=1e-10 * size)
        free = model.replace(limits=dict.fromkeys(model.joint_names))
        clipped += np.any(kt.driving_force(free, q, qd, u) != tau)
    assert clipped


@pytest.mark.parametrize("seed", range(2))
def test_motions_agree_at_the_order_of_the_integrators(seed):
    rng, mj_model, model = both(seed)
    q, qd, u = 0.5 * rng.normal(size=4), 0.3 * rng.normal(size=4), 2 * rng.normal(size=4)
    gaps = []
    for dt in (2e-3, 5e-4):
        mj_model.opt.timestep = dt
        data = mujoco.MjData(mj_model)
        data.qpos, data.qvel, data.ctrl = q, qd, u
        mujoco.mj_step(mj_model, data, round(0.2 / dt))
        run = kt.simulate(model, q, qd, duration=0.2, dt=dt, controls=u, integrator="rk4")
        gaps.append(np.abs(run.q[-1] - data.qpos).max())
    assert gaps[1] < 1e-9 or gaps[1] < gaps[0] / 4  # bounds that are reached leave order two


def motion(door, model, q, qd, u, dt, duration=0.1):
    """The state at the end, by one of the ways to take steps."""
    steps = round(duration / dt)
    if door == "world":
        world = kt.World(gravity=model.gravity, timestep=dt)
        world.add(model, name="arm", prefix="", q=q, qd=qd)
        world.step(steps, control=u)
        return np.concatenate([world.q, world.qd])
    if door == "worlds of a batch":
        world = kt.World(gravity=model.gravity, timestep=dt)
        world.add(model, name="arm", prefix="", q=q, qd=qd)
        worlds = world.batch(2)
        worlds.step(steps, control=u)
        return np.concatenate([worlds.q[1], worlds.qd[1]])
    options = {"steps": steps, "dt": dt, "controls": u}
    if door == "rollout":
        run = kt.rollout(model, q, qd, **options)
    else:
        contact = kt.contact.TimeStepping(kt.contact.Scene(model, pairs=[]), conserving=False)
        with kt.tier(door):
            run = kt.rollout(model, q, qd, contact=contact, **options)
    return np.concatenate([run.q[-1], run.qd[-1]])


DOORS = ("world", "worlds of a batch", "rollout", "specialised", "general")


@pytest.mark.parametrize(
    ("door", "couple"),
    [*((door, False) for door in DOORS), ("world", True), ("specialised", True)],
)
def test_every_door_moves_as_simulate_does(door, couple):
    rng, _, model = both(1, couple=couple)
    q, qd, u = 0.5 * rng.normal(size=model.nq), np.zeros(model.nv), 2 * rng.normal(size=4)
    exact = kt.simulate(model, q, qd, duration=0.1, dt=2e-4, controls=u)
    end = np.concatenate([exact.q[-1], exact.qd[-1]])
    gaps = [np.abs(motion(door, model, q, qd, u, dt) - end).max() for dt in (4e-3, 1e-3)]
    assert gaps[1] < max(1e-8, gaps[0] / 3)
    assert gaps[1] < 5e-3


def test_files_keep_what_counts_within_the_effort(tmp_path):
    _, _, model = both(2)
    for suffix in (".xml", ".json", ".toml", ".urdf"):
        path = tmp_path / f"arm{suffix}"
        if suffix == ".urdf":
            with pytest.warns(kt.ModelWarning, match="gravity compensation not written"):
                kt.save(model, path)
        else:
            kt.save(model, path)
        again = kt.load(path)
        for b in model.bodies:
            same = next(x for x in again.bodies if x.joint_name == b.joint_name)
            for name in ("effort", "effort_lower", "effort_upper", "effort_compensation"):
                given = [() if x.limits is None else getattr(x.limits, name) for x in (b, same)]
                assert given[0] == pytest.approx(given[1]), (suffix, name)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"effort_compensation": 0.5}, "effort_compensation must be 1 where gravity compensation"),
        ({"effort_lower": 2, "effort_upper": 1}, "effort_lower 2 is above effort_upper 1"),
        ({"effort_lower": (1, 2)}, "effort_lower needs 1 entries, got 2"),
    ],
)
def test_impossible_efforts_are_refused(limits, message):
    model = kt.samples.load("pendulum")
    with pytest.raises(kt.ModelError, match=message):
        model.replace(limits={model.joint_names[0]: kt.Limits(**limits)})
