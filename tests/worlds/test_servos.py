"""Actuators in worlds: implicit through every coupling, bounded by efforts, in compiled code."""

import mujoco
import numpy as np
import pytest

import kinetree as kt
from kinetree import geometry as shapes
from kinetree.codegen.tied import run
from kinetree.contact.engine.drives import exert, request_forces
from kinetree.model.gearing import Gearing

STEP = 2e-3
GAINS = (4500, 4500, 3500, 3500, 2000, 2000, 2000)
LENGTHS = (0.3, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1)
MASSES = (3, 3, 2.5, 2.5, 1.5, 1.2, 0.6)
DOWN = (0.0, 0.55, 0.0, 1.5, 0.0, np.pi - 2.05, 0.0)  # the hand points down


def arm(gripper="joint"):
    """MJCF of an arm with seven stiff servos, and two fingers that follow each other, or none."""
    links = ends = servos = ""
    for k, (kp, length, mass) in enumerate(zip(GAINS, LENGTHS, MASSES, strict=True)):
        height = 0.15 if k == 0 else LENGTHS[k - 1]
        axis = "0 1 0" if k % 2 else "0 0 1"
        links += (
            f'<body name="l{k}" pos="0 0 {height}">'
            f'<joint name="j{k}" axis="{axis}" range="-2.9 2.9" armature="0.1"/>'
            f'<geom type="capsule" size="0.03" fromto="0 0 0.03 0 0 {length - 0.03}" '
            f'mass="{mass}" contype="0" conaffinity="0"/>'
        )
        ends += "</body>"
        servos += f'<position joint="j{k}" kp="{kp}" kv="{kp / 10}"/>'
    hand = '<body name="hand" pos="0 0 0.1"><geom type="box" size="0.06 0.02 0.02" mass="0.4"/>'
    for name, sign in (("left", 1), ("right", -1)):
        hand += (
            f'<body name="{name}" pos="0 0 0.06"><joint name="{name}" type="slide" '
            f'axis="{sign} 0 0" range="0 0.04"/><geom name="{name}" type="box" mass="0.02" '
            f'size="0.008 0.01 0.03" pos="{0.008 * sign} 0 0"/></body>'
        )
    cable = (
        '<tendon><fixed name="both"><joint joint="left" coef="0.5"/>'
        '<joint joint="right" coef="0.5"/></fixed></tendon>'
    )
    on = {"joint": 'joint="left"', "tendon": 'tendon="both"'}.get(gripper)
    servos += f'<position {on} kp="1000" kv="20" ctrlrange="0 0.04"/>' if on else ""
    couplings = f'<equality><joint joint1="left" joint2="right"/></equality>{cable}'
    return (
        f'<mujoco model="arm"><compiler autolimits="true" angle="radian"/>'
        f'<option timestep="{STEP}" integrator="implicitfast"/>'
        f"<worldbody>{links}{hand + '</body>' if on else ''}{ends}</worldbody>"
        f"{couplings if on else ''}"
        f"<actuator>{servos}</actuator></mujoco>"
    )


@pytest.fixture
def load(tmp_path):
    def read(text):
        path = tmp_path / "robot.xml"
        path.write_text(text)
        return kt.World.from_file(path).model  # settings of the file are known

    return read


TARGET = np.array([0.3, 0.5, 0.1, 1.0, 0.2, 0.7, 0.1, 0.02])


@pytest.mark.parametrize("gripper", ["joint", "tendon"])
def test_an_arm_with_stiff_servos_and_a_coupled_gripper_comes_to_rest(load, gripper):
    text = arm(gripper)
    model = load(text)
    world = kt.World(timestep=STEP)
    robot = world.add(model, name="robot")
    world.step(900, control=TARGET)
    assert np.abs(world.qd).max() < 1e-6
    peer = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    data.ctrl[:] = TARGET
    mujoco.mj_step(peer, data, 2000)
    np.testing.assert_allclose(robot.q[:7], data.qpos[:7], atol=1e-6)  # sag under gravity
    # MuJoCo's coupling is soft: what the servo holds is compared
    held = data.qpos[7] if gripper == "joint" else data.qpos[7:].mean()
    assert robot.q[7] == pytest.approx(held, abs=1e-5)


def test_an_arm_comes_to_rest_in_simulate_as_well(load):
    model = load(arm())
    end = kt.simulate(
        model, model.neutral(), np.zeros(model.nv), duration=1.8, dt=STEP, controls=TARGET,
        contact=kt.contact.TimeStepping(kt.contact.Scene(model)), store_every=900,
    )  # fmt: skip
    world = kt.World(timestep=STEP)
    world.add(model)
    world.step(900, control=TARGET)
    assert np.abs(end.qd[-1]).max() < 1e-6
    np.testing.assert_allclose(end.q[-1], world.q, atol=1e-8)


def test_arms_stay_at_rest_whatever_stands_far_away(load):
    """An arm with stiff servos and no coupling, and a coupled one 3 m away."""
    coupled, plain = load(arm()), load(arm(gripper=None))
    assert coupled.couplings
    assert not plain.couplings
    ends = []
    for others in (False, True):
        world = kt.World(timestep=STEP)
        first, u = world.add(plain, name="first"), {"first": TARGET[:7]}
        if others:
            world.add(coupled, name="second", at=(3, 0, 0))
            u["second"] = TARGET
        world.step(1000, control=u)
        assert np.abs(world.qd).max() < 1e-6
        ends.append(first.q)
    np.testing.assert_allclose(*ends, atol=1e-8)


@pytest.mark.parametrize("gripper", ["joint", "tendon"])
def test_a_coupled_gripper_picks_up_a_box_and_holds_it(load, gripper):
    world = kt.World(timestep=STEP)
    world.add_ground()
    world.add(load(arm(gripper)), name="robot", q=np.array([*DOWN, 0.035]))
    wrist = world["robot.l6"].pose
    x, y, z = wrist[:3, 3] + 0.16 * wrist[:3, 2]  # between the fingers
    box = world.add(shapes.Box((0.04, 0.04, z)), mass=0.1, at=(x, y, z / 2), name="box")
    u = np.array([*DOWN, 0.035])
    world.step(150, control={"robot": u})
    u[-1] = 0.0
    world.step(300, control={"robot": u})
    height = box.position[2]
    u[1] -= 0.2
    world.step(1500, control={"robot": u})
    assert box.position[2] > height + 0.04
    assert np.abs(world.qd).max() < 1e-5
    before = box.position
    world.step(500, control={"robot": u})
    assert np.linalg.norm(box.position - before) < 1e-6
    held = world.contacts().of("box")
    assert np.sum(held.force * held.normal) == pytest.approx(1000 * 0.02, rel=1e-3)  # both fingers


def test_batches_of_coupled_arms_are_single_worlds_to_the_bit(load):
    world = kt.World(timestep=STEP)
    world.add(load(arm("tendon")), name="robot")
    worlds = world.batch(3, gains=np.array([1.0, 1.2, 0.8]))
    worlds.step(20, control=TARGET)
    single = worlds[1].copy()
    single.reset()
    single.step(20, control=TARGET)
    np.testing.assert_array_equal(worlds.q[1], single.q)
    world.step(20, control=TARGET)
    np.testing.assert_array_equal(worlds.q[0], world.q)


# --- forces --------------------------------------------------------------------------------------


def all_kinds():
    """A mechanism with actuators of all kinds: motor, servos, filter, tendon, ball joint, frame."""
    builder = kt.ModelBuilder("all")
    for k, on in enumerate((None, "l0", "l1")):
        builder.body(
            f"l{k}", on=on, joint=kt.Revolute("y"), at=(0, 0, 0.3),
            limits=kt.Limits(effort=2.0) if k == 2 else None,
            inertia=kt.shapes.sphere(0.1, mass=1.0, at=(0, 0, 0.1)),
        )  # fmt: skip
    builder.body("ball", on="l2", joint=kt.Spherical(), at=(0, 0, 0.3),
                 inertia=kt.shapes.box(0.1, 0.2, 0.3, mass=1.0, at=(0.1, 0, 0.1)))  # fmt: skip
    builder.body("twin", on="l0", joint=kt.Prismatic("x"), at=(0, 0.2, 0),
                 inertia=kt.shapes.sphere(0.1, mass=0.5))  # fmt: skip
    builder.coupling("bent", joint="twin_joint", source="l1_joint", coefficients=(0, 0.3, 0.2))
    builder.tendon("cable", joints={"l0_joint": 0.5, "l2_joint": -0.2}, offset=0.1)
    builder.actuator("motor", joint="l0_joint", gear=(3.0,), control=(-1, 1))
    builder.actuator("servo", joint="l1_joint", kp=20.0, kv=2.0, effort=(-4, 4))
    builder.actuator("follower", joint="twin_joint", kp=30.0, kv=1.0)
    builder.actuator("pull", tendon="cable", kp=10.0, kv=1.0, gear=(2.0,))
    builder.actuator("slow", joint="l2_joint", kp=3.0, activation="filter", time_constant=0.1)
    builder.actuator("turn", joint="ball_joint", kp=2.0, kv=0.1, gear=(1.0, 0.5, -0.3))
    builder.actuator("push", frame="ball", reference="l0", kp=5.0, gear=(0, 0, 0, 1.0, 0, 0.2))
    return builder.build()


def test_forces_of_the_engine_are_driving_forces(rng):
    world = kt.World()
    world.add(all_kinds())
    model, engine = world.model, world._whole.steps.engine
    drives, nv = engine.drives, engine.tree.nv
    drives.acts = 1
    for _ in range(5):
        q, qd = model.random_configuration(rng), rng.normal(size=model.nv)
        u, act = rng.normal(size=len(model.actuators)), rng.normal(size=1)
        at = Gearing(model, q, qd)
        drives.u[:], drives.activation[:] = u, act
        engine.s.q_m[:] = at.q
        run(engine.parts.kernels.arms)
        request_forces(drives, at.q, at.qd, at.qd, 0.0)
        tau, held = np.zeros(nv), rng.normal(size=nv)
        exert(drives, held, tau)
        expected = kt.driving_force(model, q, qd, u, act)
        np.testing.assert_allclose(at.G.T @ (tau - held), expected, atol=1e-12)


def test_actuators_of_all_kinds_converge_to_the_motion_of_rk4():
    """Forces, arms that move, activations and couplings, in steps and in a smooth integrator."""
    model, u = all_kinds(), np.array([0.3, 0.5, 0.1, 0.4, 0.2, 0.3, -0.2])
    q0 = model.neutral()
    exact = kt.simulate(
        model, q0, np.zeros(model.nv), duration=0.2, dt=1e-4, controls=u, integrator="rk4"
    )
    errors = []
    for h in (2e-3, 1e-3, 5e-4):
        world = kt.World(timestep=h)
        world.add(model)
        world.step(round(0.2 / h), control=u)
        errors.append(np.abs(world.qd - exact.qd[-1]).max())
    assert errors[0] < 0.02
    assert errors[0] / errors[1] > 3.5
    assert errors[1] / errors[2] > 3.5
    assert world.activation[0] == pytest.approx(0.2 * (1 - np.exp(-2.0)), rel=1e-9)


GEARS = {"gear": (0, 0, 0, 1.0, 0, 0.2)}
TABLES = {
    "servo": {"actuator": {"joint": "l1_joint", "kp": 20.0, "kv": 2.0}},
    "tendon servo": {"tendon": {}, "actuator": {"tendon": "cable", "kp": 20.0, "kv": 2.0}},
    "filter": {"actuator": {"joint": "l1_joint", "kp": 20.0, "activation": "filter",
                            "time_constant": 0.05}},
    "frame": {"actuator": {"frame": "ball", "reference": "l0", "kp": 20.0, **GEARS}},
    "wrench": {"actuator": {"frame": "ball", **GEARS}},
    "ball": {"actuator": {"joint": "ball_joint", "kp": 2.0, "kv": 0.1, "gear": (1, 0.5, -0.3)}},
    "tendon spring": {"tendon": {"stiffness": 20.0, "damping": 1.0, "rest": 0.2}},
    "carried weight": {"carries": True},
}  # fmt: skip


def chain(tendon=None, actuator=None, carries=False):
    """Three hinges and a ball joint in series, with one thing that acts."""
    builder = kt.ModelBuilder("chain")
    inertia = kt.shapes.box(0.1, 0.1, 0.2, mass=1.0, at=(0.05, 0, 0.1))
    joints = (*map(kt.Revolute, "yxy"), kt.Spherical())
    names = (None, "l0", "l1", "l2", "ball")
    for on, name, joint in zip(names, names[1:], joints, strict=False):
        builder.body(name, on=on, joint=joint, at=(0, 0, 0.3), inertia=inertia)
    if tendon is not None:
        builder.tendon("cable", joints={"l0_joint": 0.8, "l2_joint": -0.5}, offset=0.1, **tendon)
    if actuator is not None:
        builder.actuator("it", **actuator)
    weight = (kt.GravityCompensation(2, 1.0, (0.05, 0, 0.1)),) if carries else ()
    return builder.build().replace(gravity_compensation=weight)


@pytest.mark.parametrize("what", TABLES)
def test_what_acts_is_of_second_order(what):
    model, qd = chain(**TABLES[what]), np.array([0.5, -0.3, 0.8, 0.2, 0.1, -0.2])
    u = np.full(len(model.actuators), 0.5)
    held = {"controls": u} if u.size else {}
    exact = kt.simulate(model, model.neutral(), qd, duration=0.2, dt=5e-4, integrator="rk4", **held)
    errors = []
    for h in (4e-3, 2e-3):
        world = kt.World(timestep=h)
        world.add(model, q=model.neutral(), qd=qd)
        world.step(round(0.2 / h), control=u if u.size else None)
        errors.append(np.abs(world.qd - exact.qd[-1]).max())
    assert errors[1] < 1.5e-3
    assert errors[0] / errors[1] > 3.4


def test_a_stiff_tendon_holds_its_length():
    """A spring far too stiff for explicit steps; between rest lengths it is slack."""
    model = chain(tendon={"stiffness": 1e7, "rest": (0.0, 0.3)})
    world = kt.World(timestep=2e-3)
    world.add(model, q=model.neutral(), qd=np.array([2.0, 0, 0, 0, 0, 0]))
    lengths = []
    for _ in range(300):
        world.step()
        lengths.append(0.1 + 0.8 * world.q[0] - 0.5 * world.q[2])
    assert max(lengths) == pytest.approx(0.3, abs=5e-3)
    assert np.abs(world.qd).max() < 50.0


# --- efforts -------------------------------------------------------------------------------------


def lever(kp, kv=0.0, limit=4.0):
    """A lever of 0.1 kg m² about a vertical axis, with a servo and an effort limit of its joint."""
    builder = kt.ModelBuilder("lever")
    inertia = kt.shapes.sphere(0.5, mass=1.0)  # 2/5 m r² = 0.1
    builder.body("bar", joint=kt.Revolute("z"), inertia=inertia, limits=kt.Limits(effort=limit))
    builder.actuator("servo", joint="bar_joint", kp=kp, kv=kv)
    return builder.build()


@pytest.mark.parametrize("kp", [200.0, 5000.0])
@pytest.mark.parametrize("h", [5e-3, 2e-3, 1e-3])
def test_a_saturated_servo_is_a_constant_force(kp, h):
    model, time = lever(kp), 0.1
    world = kt.World(timestep=h)
    world.add(model)
    world.step(round(time / h), control=np.array([1.0]))
    assert world.qd[0] == pytest.approx(4.0 / 0.1 * time, rel=1e-9)
    end = kt.simulate(
        model, [0.0], [0.0], duration=time, dt=h, controls=[1.0],
        contact=kt.contact.TimeStepping(kt.contact.Scene(model)),
    )  # fmt: skip
    assert end.qd[-1, 0] == pytest.approx(4.0 / 0.1 * time, rel=1e-9)


@pytest.mark.parametrize("kp", [200.0, 5000.0, 1e6])
def test_a_servo_that_leaves_its_limit_arrives_and_rests(kp):
    """Energy: a bounded servo with damping adds none, and stops at its target."""
    world = kt.World(timestep=2e-3)
    world.add(lever(kp, kv=2 * np.sqrt(kp * 0.1)))
    speeds = []
    for _ in range(1500):
        world.step(1, control=np.array([0.2]))
        speeds.append(abs(world.qd[0]))
    assert world.q[0] == pytest.approx(0.2, abs=1e-9)
    assert speeds[-1] < 1e-9
    assert max(speeds) <= np.sqrt(2 * 4.0 * 0.2 / 0.1) * (1 + 1e-9)  # the work of 4 N m


@pytest.mark.parametrize("activation", ["", "filter"])
def test_servos_of_simulate_are_those_of_worlds(activation):
    """Efforts, activations, tendons and couplings: the same state after the same steps."""
    builder = kt.ModelBuilder("pair")
    for k in range(3):
        inertia = kt.shapes.sphere(0.1, mass=1.0, at=(0, 0, 0.1))
        on = f"l{k - 1}" if k else None
        builder.body(f"l{k}", on=on, joint=kt.Revolute("y"), at=(0, 0, 0.3), inertia=inertia)
    more = {"activation": activation, "time_constant": 0.05} if activation else {}
    builder.coupling("gear", joint="l2_joint", source="l1_joint", coefficients=(0, -0.5))
    builder.tendon("cable", joints={"l0_joint": 0.5, "l1_joint": 1.0})
    builder.actuator("first", joint="l0_joint", kp=3000.0, kv=100.0, effort=(-20, 20), **more)
    builder.actuator("second", joint="l2_joint", kp=500.0, kv=5.0)
    builder.actuator("pull", tendon="cable", kp=800.0, kv=10.0)
    model, u = builder.build(), np.array([0.4, -0.2, 0.3])
    world = kt.World(timestep=2e-3)
    world.add(model)
    world.step(150, control=u)
    contact = kt.contact.TimeStepping(kt.contact.Scene(model, pairs=[]))
    options = {"duration": 0.3, "dt": 2e-3, "contact": contact}
    zero = np.zeros(model.nv)
    one = kt.simulate(model, zero, zero, controls=u, **options)
    two = kt.simulate(model, [zero, zero], [zero, zero], controls=u, **options)
    for q in (one.q[-1], two.q[-1, 0], two.q[-1, 1]):
        np.testing.assert_allclose(q, world.q, atol=1e-10)


def test_bounds_that_are_reached_inside_a_step_converge_with_second_order():
    errors = []
    exact = None
    for h in (1e-5, 2e-3, 1e-3, 5e-4):
        world = kt.World(timestep=h)
        world.add(lever(200.0, kv=1.0))
        world.step(round(0.2 / h), control=np.array([0.3]))
        exact = world.q[0] if exact is None else exact
        errors.append(abs(world.q[0] - exact))
    assert errors[1] < 2e-4
    assert errors[1] / max(errors[3], 1e-12) > 6
