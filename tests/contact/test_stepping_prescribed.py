"""Time stepping with prescribed joints: a ball on a table that is lifted and pulled away."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.settings import TimeStepping
from kinetree.contact.stepping.step import prescribed_over
from kinetree.model import JointDynamics, Limits, geometry

G = 9.81


def lifted(t):
    """Further than the limits of the joint, which do not hold prescribed joints."""
    return 0.05 * np.sin(5 * t), 0.25 * np.cos(5 * t), -1.25 * np.sin(5 * t)


def pulled(t):
    return t * t / 2, t, 1.0 + 0 * t


MOTION = {"lift": kt.kernel(lifted), "pull": kt.kernel(pulled)}


@pytest.fixture(scope="module")
def scene():
    builder = kt.ModelBuilder("table")
    box = kt.shapes.box(1.0, 1.0, 0.1, mass=3.0)
    builder.body("frame", joint=kt.Prismatic("z"), inertia=box, joint_name="lift",
                 limits=Limits(-0.01, 0.01), dynamics=JointDynamics(friction=3.0))  # fmt: skip
    box = kt.shapes.box(1.0, 1.0, 0.1, mass=2.0)
    builder.body("table", on="frame", joint=kt.Prismatic("x"), inertia=box, joint_name="pull")
    ball = kt.shapes.sphere(0.1, mass=0.5)
    builder.body("ball", joint=kt.Translation(), inertia=ball, joint_name="ball")
    builder.geometry(geometry.Plane(), on="table", name="top")
    builder.geometry(geometry.Sphere(0.1), on="ball", name="ball")
    return Scene(builder.build(), friction=0.5)


def simulated(scene, prescription=MOTION, **options):
    start = [0, 0, 0, 0, 0.1], [0.25, 0, 0, 0, 0.25]
    return kt.simulate(
        scene.model, *start, contact=TimeStepping(scene), prescribed=prescription, limits="rigid",
        friction="exact", **options,
    )  # fmt: skip


@pytest.mark.covers("RBDA 9.1", by=prescribed_over)
def test_a_table_carries_a_ball_and_its_drives_carry_both(scene):
    motion = simulated(scene, duration=0.4)
    t, h = motion.t[3:], 1e-3
    assert np.abs(motion.q[:, 0] - lifted(motion.t)[0]).max() < 1e-15
    assert np.abs(motion.qd[:, 0] - lifted(motion.t)[1]).max() < 1e-15
    assert np.abs(motion.q[:, 2] - motion.q[:, 1]).max() < 1e-14  # it sticks
    assert np.abs(motion.q[:, 4] - motion.q[:, 0] - 0.1).max() < 1e-9
    force, tau = motion.contact.force[3:, 0], motion.tau[3:]
    assert np.abs(force[:, 0] - 0.5 * (G + lifted(t - h / 2)[2])).max() < 2e-4  # 1e-10 m are left
    assert np.abs(force[:, 1:] - [0.5, 0]).max() < 1e-9
    assert np.abs(tau[:, 0] - 5.5 * (G + lifted(t)[2])).max() < 5 * h
    assert np.abs(tau[:, 1] - 2.5).max() < 1e-9
    assert motion.contact.joint_force.shape[1] == 0
    assert motion.report.energy_error < 1e-5
    worst = motion.report.contact
    assert max(worst.velocity, worst.cone, worst.complementarity, worst.penetration) < 1e-9
    assert abs(worst.contact_work) < 1e-5


def test_motions_in_python_make_the_engine_take_the_steps(scene):
    ours = simulated(scene, duration=0.02)
    words = r"leave compiled code: motion of prescribed joints 'lift', 'pull' is Python code"
    with pytest.warns(kt.SimulationWarning, match=words):
        plain = simulated(scene, {"lift": lifted, "pull": pulled}, duration=0.02)
    assert np.abs(plain.q - ours.q).max() < 1e-9  # 1e-10 m are left alone
    assert np.abs(plain.tau[1:] - ours.tau[1:]).max() < 20 * ours.t[1]  # half a step apart


def test_rollouts_and_batches_have_the_bits_of_single_motions(scene):
    start = [0, 0, 0, 0, 0.1], [0.25, 0, 0, 0, 0.25]
    contact = TimeStepping(scene, flight=False)
    given = {"contact": contact, "prescribed": MOTION, "friction": "exact", "limits": "rigid"}
    ours = kt.simulate(scene.model, *start, duration=0.1, **given)
    many = kt.simulate(scene.model, [start[0]] * 2, start[1], duration=0.1, **given)
    rolled = kt.rollout(scene.model, *start, steps=100, **given)
    assert many.q[:, 1].tobytes() == ours.q.tobytes() == rolled.q.tobytes()
    assert many.tau[:, 0].tobytes() == ours.tau.tobytes()


def test_shapes_that_nothing_free_keeps_apart_are_rejected(scene):
    words = r"'top/ball': only prescribed joints .*'lift', 'pull', 'ball'.*with ignore="
    still = {"ball": lambda t: (np.array([0, 0, 0.1]), np.array([0, 0, 0.25]), np.zeros(3))}
    with (
        pytest.warns(kt.SimulationWarning, match="contradicts itself"),
        pytest.raises(kt.ModelError, match=words),
    ):
        simulated(scene, MOTION | still, duration=0.1)


def test_drives_also_overcome_springs_and_dampers_of_their_joints():
    """A ball at rest on the ground, whose carriage is driven against its spring and damper."""
    builder = kt.ModelBuilder("carriage")
    cart, ball = kt.shapes.box(0.2, 0.2, 0.2, mass=3.0), kt.shapes.sphere(0.1, mass=0.5)
    effects = JointDynamics(damping=2.0, stiffness=40.0)
    builder.body("cart", joint=kt.Prismatic("x"), inertia=cart, joint_name="pull", dynamics=effects)
    builder.body("ball", joint=kt.Translation(), inertia=ball, joint_name="ball")
    builder.geometry(geometry.Sphere(0.1), on="ball", name="ball")
    scene = Scene(with_ground(builder.build()), friction=0.5)
    motion = kt.simulate(
        scene.model, [0, 0, 0, 0.1], contact=TimeStepping(scene), duration=0.05,
        prescribed={"pull": kt.kernel(pulled)},
    )  # fmt: skip
    t = motion.t[1:]
    assert np.abs(motion.tau[1:, 0] - (3.0 + 2.0 * t + 40.0 * t * t / 2)).max() < 1e-9
    assert np.abs(motion.contact.force[1:, 0, 0] - 0.5 * G).max() < 1e-6


def test_springs_act_once_beside_a_motion_in_python():
    b = kt.ModelBuilder("arm")
    for k, on, z in ((1, None, 1.0), (2, "link1", -0.3)):
        b.body(
            f"link{k}", on=on, joint=kt.Revolute("y"), joint_name=f"joint{k}", at=(0, 0, z),
            inertia=kt.Inertia.from_mass_center(1.0, (0, 0, -0.15), 0.01 * np.eye(3)),
            dynamics=kt.model.JointDynamics(stiffness=5.0, damping=0.05),
        )  # fmt: skip
    b.geometry(kt.geometry.Sphere(0.03), on="link2", at=(0, 0, -0.3), name="tip")
    b.geometry(kt.geometry.Plane(), name="ground")
    model = b.build()

    def swing(t):
        return 0.3 * np.sin(3 * t), 0.9 * np.cos(3 * t), -2.7 * np.sin(3 * t)

    given = {"duration": 0.5, "prescribed": {"joint1": swing}}
    expected = kt.simulate(model, [0, 0.2], forces=lambda m, t, q, qd: 0 * qd, **given).q[-1]
    with pytest.warns(kt.SimulationWarning, match="leave compiled code"):
        touching = kt.simulate(model, [0, 0.2], contact=TimeStepping(Scene(model)), **given)
    assert np.allclose(touching.q[-1], expected, rtol=0, atol=1e-5)
