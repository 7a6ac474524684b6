"""Mechanisms without loops: small ones with formulas, one with everything, a geared robot."""

import numpy as np

import kinetree as kt
from kinetree.algorithms import aba, rnea
from kinetree.joints import Fixed, Free, Prismatic, Revolute, Spherical
from kinetree.model import (
    Actuator,
    Body,
    ConnectivityGraph,
    Coupling,
    JointDynamics,
    Limits,
    Model,
    ModelBuilder,
    Sensor,
    Tendon,
    geometry,
)
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import ops, rotx, xlt
from support.closeness import assert_close

# --- Small mechanisms whose motions have formulas ------------------------------------------------


def block(mass=2.0, gravity=(0.0, 0.0, -9.81), limits=None, **dynamics):
    """A block that slides along x."""
    inertia = kt.shapes.box(0.1, 0.1, 0.1, mass=mass)
    model = kt.ModelBuilder("block").body("block", joint=kt.Prismatic("x"), inertia=inertia).build()
    return model.replace(
        gravity=gravity,
        dynamics={"block_joint": JointDynamics(**dynamics)},
        limits={"block_joint": limits or Limits()},
    )


def ball(mass=1.0):
    """A ball that moves up and down."""
    inertia = kt.shapes.sphere(0.1, mass=mass)
    return kt.ModelBuilder("ball").body("ball", joint=kt.Prismatic("z"), inertia=inertia).build()


def wheel(inertia=0.5, **dynamics):
    """A wheel on a vertical axle, with a motor: gear 10, commands of at most 2."""
    I = kt.Inertia.from_mass_center(1.0, np.zeros(3), inertia * np.eye(3))
    model = (
        kt.ModelBuilder("wheel")
        .body("wheel", joint=kt.Revolute("z"), inertia=I)
        .actuator("motor", joint="wheel_joint", gear=10.0, control=(-2, 2))
        .build()
    )
    return model.replace(dynamics={"wheel_joint": JointDynamics(**dynamics)})


def arm(limits=None, **dynamics):
    """Two links that swing in a vertical plane, with the same limits and dynamics in both."""
    rod = kt.shapes.rod(0.5, mass=1.0, at=(0, 0, -0.25))
    model = (
        kt.ModelBuilder("arm")
        .body("upper", joint=kt.Revolute("y"), inertia=rod)
        .body("fore", on="upper", joint=kt.Revolute("y"), at=(0, 0, -0.5), inertia=rod)
        .build()
    )
    names = ("upper_joint", "fore_joint")
    return model.replace(
        dynamics={n: JointDynamics(**dynamics) for n in names},
        limits={n: limits or Limits() for n in names},
    )


def assert_balanced(trajectory, error=1e-9):
    """All energy is accounted for: changes of energy are the work done."""
    assert trajectory.report.energy_error < error
    assert not trajectory.report.warnings
    assert np.all(trajectory.loop_error == 0)


# --- A mechanism that has everything a model can have, and joint dynamics for any model ----------


def gripper(rng):
    """A floating palm with a finger that leads, one that follows, a spring and a loop."""
    return (
        ModelBuilder("gripper")
        .body("palm", joint=Free(), inertia=random_inertia(rng), joint_name="float")
        .body(
            "left", on="palm", joint=Revolute("y"), at=random_placement(rng),
            inertia=random_inertia(rng), joint_name="lead", limits=Limits(lower=-1, upper=2),
            dynamics=JointDynamics(armature=0.1, damping=0.2, friction=0.3, stiffness=4, rest=0.5),
        )
        .body("pad", on="left", joint=Fixed(), at=(0, 0, 0.1), inertia=random_inertia(rng))
        .body(
            "right", on="palm", joint=Prismatic("x"), at=random_placement(rng),
            inertia=random_inertia(rng), joint_name="follow", dynamics=JointDynamics(armature=0.7),
        )
        .body("ball", on="pad", joint=Spherical(), inertia=random_inertia(rng), joint_name="socket")
        .frame("tip", on="pad", at=(0, 0, 0.2))
        .loop("string", predecessor="ball", successor="right", joint=Free())
        .coupling("gear", joint="follow", source="lead", coefficients=(0.1, -2.0, 0.3))
        .geometry(geometry.Box((0.1, 0.2, 0.3)), on="palm", name="case", color=(1, 0.5, 0, 1))
        .geometry(geometry.Capsule(0.01, 0.1), on="pad", at=xlt(0, 0, 1) @ rotx(0.3), visual=False)
        .geometry(geometry.Mesh("/hand.stl", (1.0, 1.0, -1.0)), on="right", collision=False)
        .geometry(geometry.Plane())
        .actuator("motor", joint="lead", gear=50.0, control=(-1, 1), effort=(-3, 3))
        .actuator("muscle", joint="socket", gear=(1, 0, 2))
        .posture("home", q={"lead": 0.5, "follow": -0.825})
        .posture("thrown", q={"float": (1, 2, 3, 0, 1, 0, 0)}, qd={"float": (1, 2, 3, 4, 5, 6)})
        .build()
    )  # fmt: skip


def with_sensors(model):
    """The model with sensors of its first joint and last body, each of another kind."""
    kinds = (
        "framepos", "framequat", "framexaxis", "framelinvel", "frameangvel", "accelerometer",
        "force", "torque", "subtreecom", "subtreelinvel", "subtreeangmom",
    )  # fmt: skip
    last, first = model.body_names[-1], model.joint_names[0]
    sensors = [Sensor(kind, kind, last, placement=xlt(0.1, 0.2, 0.3)) for kind in kinds]
    sensors += [Sensor(kind, kind, first) for kind in ("jointpos", "jointvel")]
    relative = Sensor("relative", "framelinvel", last, model.body_names[1])
    return model.replace(sensors=[*sensors, relative, Sensor("energy", "e_kinetic")])


def with_servos(model):
    """The model with a servo, a motor and two actuators with activations at its joints."""
    joints = [i for i in range(1, model.body_count + 1) if model.joint[i].nv]
    laws = (
        {"gain": (9.0,), "bias": (0.1, -9.0, -0.5), "control": (-0.5, 0.5)},
        {"effort": (-0.3, 0.4)},
        {"gain": (2.0, 0.3, -0.2), "activation": "integrator", "activation_range": (-0.6, 0.7)},
        {"bias": (0.0, 0.4, 0.1), "activation": "filter", "time_constant": 0.2},
    )
    found = []
    for k, law in enumerate(laws):
        i = joints[k % len(joints)]
        gear = tuple(1.0 + 0.5 * n for n in range(model.joint[i].nv))
        found.append(Actuator(f"actuator {k}", i, gear, **law))
    return model.replace(actuators=found)


def with_tendons(model):
    """The model with a tendon through its bodies, and along joints that it has of one variable."""
    along = [i for i, j in enumerate(model.joint) if i and j.nv == j.nq == 1]
    gears = [0.5 + k for k in range(len(along))]
    path = tuple(model.body_names)
    return model.replace(tendons=[Tendon("cable", along, gears, offset=0.1, path=path)])


def with_armature(model, rng):
    """The model with armature in most of its joints."""
    dynamics = {
        b.joint_name: JointDynamics(armature=rng.uniform(0.1, 2.0, b.joint.nv))
        for b in model.bodies
        if b.joint.nv and rng.random() < 0.8
    }
    return model.replace(dynamics=dynamics)


def without_armature(model):
    """The same bodies alone."""
    return model.replace(dynamics=dict.fromkeys(model.joint_names))


def assert_same_parts(a, b):
    """Everything that is attached to two models is the same, by names; placements to rounding."""
    assert a.joint_names == b.joint_names
    assert [x.dynamics for x in a.bodies] == [x.dynamics for x in b.bodies]
    for kind in ("couplings", "actuators", "postures"):
        assert getattr(a, kind) == getattr(b, kind)
    for x, y in zip(a.geometry, b.geometry, strict=True):
        assert (x.body, x.shape, x.name, x.color) == (y.body, y.shape, y.name, y.color)
        assert (x.visual, x.collision) == (y.visual, y.collision)
        assert np.allclose(x.placement.E, y.placement.E, rtol=0, atol=1e-14)
        assert np.allclose(x.placement.r, y.placement.r, rtol=0, atol=1e-14)


# --- A robot with everything that couples joints, and its reduction to the leaders by hand -------
# A mimic finger, one that follows it by a polynomial, a cam that two joints move, a differential, a
# joint that is held, and a rotor. ``G`` is written down; nothing of ``kinetree`` is used for it.


RATIO = 50.0


def cam(a, b):
    """Neither linear nor a polynomial."""
    return ops.sin(a) * b + ops.cos(b)


def geared_robot(rng, *, root=None, dynamics=True):
    """Followers before and after their leaders, and on other branches."""
    rows = [  # name, parent, joint
        ("root", 0, root or Revolute("z")),
        ("rotor", 1, Revolute("z")),
        ("arm", 1, Revolute("y")),
        ("left", 3, Revolute("x")),
        ("right", 3, Revolute("x")),
        ("spider", 3, Revolute("y")),
        ("finger", 6, Revolute("z")),
        ("mimic", 6, Prismatic("x")),
        ("tip", 8, Revolute("z")),
        ("cam", 7, Revolute("y")),
        ("held", 10, Revolute("x")),
    ]
    effects = ("armature", "damping", "friction", "stiffness")
    bodies = [
        Body(
            name, parent, joint, random_placement(rng), random_inertia(rng), f"{name}_joint",
            dynamics=JointDynamics(**{e: rng.uniform(0.1, 1, joint.nv) for e in effects})
            if dynamics
            else None,
        )
        for name, parent, joint in rows
    ]  # fmt: skip
    number = {name: i for i, (name, *_) in enumerate(rows, start=1)}
    couplings = (
        Coupling("bent", number["tip"], number["mimic"], (0.1, 0.7, 0.3)),
        Coupling("gear", number["rotor"], number["arm"], (0.0, RATIO)),
        Coupling("pads", number["mimic"], number["finger"], (0.5, -0.8)),
        Coupling(
            "differential", number["spider"], sources=(number["left"], number["right"]),
            weights=(0.5, -0.5), coefficients=(0.2, 1.0),
        ),
        Coupling("cam", number["cam"], sources=(number["left"], number["finger"]), function=cam),
        Coupling("hold", number["held"], 0, (0.3,)),
    )  # fmt: skip
    return Model(
        bodies, couplings=couplings, gravity=rng.normal(size=3), name="geared robot",
        frames=(kt.Frame("pad", number["tip"], random_placement(rng)),),
    )  # fmt: skip


class Reduction:
    """``γ``, ``G`` and ``dG/dt`` of the robot; ``y = (root, arm, left, right, finger)``."""

    def __init__(self, model, q, qd=None):
        n = model.bodies[0].joint.nv
        nq = model.bodies[0].joint.nq
        self.n = n
        arm, left, right, finger = (q[..., nq + k] for k in range(4))
        mimic = 0.5 - 0.8 * finger
        self.q = np.concatenate(
            [
                q[..., :nq],
                np.stack(
                    [
                        RATIO * arm, arm, left, right, 0.2 + 0.5 * left - 0.5 * right, finger,
                        mimic, 0.1 + 0.7 * mimic + 0.3 * mimic**2,
                        np.sin(left) * finger + np.cos(finger), 0.3 + 0 * arm,
                    ],
                    axis=-1,
                ),
            ],
            axis=-1,
        )  # fmt: skip
        self.G = self.matrix(left, finger)
        if qd is not None:
            self.Gd = self.rate(left, finger, qd[n + 1], qd[n + 3])
            self.qd, self.g = self.G @ qd, self.Gd @ qd

    def matrix(self, left, finger):
        """``G``, one row for each velocity variable."""
        n = self.n
        G = np.zeros((n + 10, n + 4), dtype=np.result_type(left, finger, float))
        G[:n, :n] = np.eye(n)
        G[n, n] = RATIO
        G[n + 1, n] = G[n + 2, n + 1] = G[n + 3, n + 2] = G[n + 5, n + 3] = 1
        G[n + 4, n + 1], G[n + 4, n + 2] = 0.5, -0.5
        G[n + 6, n + 3] = -0.8
        G[n + 7, n + 3] = -0.8 * (0.7 + 0.6 * (0.5 - 0.8 * finger))
        G[n + 8, n + 1] = np.cos(left) * finger
        G[n + 8, n + 3] = np.sin(left) - np.sin(finger)
        return G

    def rate(self, left, finger, left_rate, finger_rate):
        """``dG/dt``."""
        n, G = self.n, 0 * self.G * left_rate
        G[n + 7, n + 3] = 0.8 * 0.6 * 0.8 * finger_rate
        G[n + 8, n + 1] = np.cos(left) * finger_rate - np.sin(left) * finger * left_rate
        G[n + 8, n + 3] = np.cos(left) * left_rate - np.cos(finger) * finger_rate
        return G


def spherical_root():
    """A root whose positions and velocities differ in number."""
    return Spherical()


def check_dynamics_of_chain(joints, rng):
    """Forward dynamics of a chain of bodies on these joints undo its inverse dynamics."""
    builder, on = ModelBuilder(), None
    for k, joint in enumerate(joints):
        builder.body(
            f"b{k}", on=on, joint=joint, at=random_placement(rng), inertia=random_inertia(rng)
        )
        on = f"b{k}"
    model = builder.build()
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    qdd = rng.standard_normal(model.nv)
    tau = rnea.inverse_dynamics(model, q, qd, qdd)
    assert_close(aba.forward_dynamics(model, q, qd, tau), qdd, ulps=1e5)


def chain_of(rng, *joints):
    """A chain of joints in random places, bodies b0, b1, …, with a frame ``tool`` on the last."""
    builder = kt.ModelBuilder("small tree")
    for k, joint in enumerate(joints):
        on, at = (f"b{k - 1}" if k else None), random_placement(rng)
        builder.body(f"b{k}", on=on, joint=joint, at=at, inertia=random_inertia(rng))
    return builder.frame("tool", on=f"b{len(joints) - 1}").build()


def random_graph(rng, nodes, extra, *, turned=False):
    """A connected graph with some arcs beyond a tree; with ``turned`` half of them backwards."""
    arcs = [(int(rng.integers(i)), i) for i in range(1, nodes)]
    while len(arcs) < nodes - 1 + extra:
        a, b = (int(k) for k in rng.integers(nodes, size=2))
        if a != b:
            arcs.append((a, b))
    if turned:
        arcs = [arc if rng.random() < 0.5 else arc[::-1] for arc in arcs]
    return ConnectivityGraph(nodes, tuple(arcs[k] for k in rng.permutation(len(arcs))))
