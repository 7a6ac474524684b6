"""An example of every public class that has methods, for walks that call them."""

from functools import cache

import numpy as np
from learning.conftest import CART_POLE
from loops.test_charts import KINDS, SLOW, SYSTEM, Q

import kinetree as kt

TWO = np.array([0.1, 0.2])
TIMES = np.linspace(0.0, 1.0, 5)
ABSTRACT = {
    "contact.NormalLaw", "contact.TangentialLaw", "geometry.Shape", "geometry.Solid",
    "loops.charts.AbstractChart", "simulation.Integrator",
}  # fmt: skip
"""Classes without objects of their own; those of their subclasses are examples."""


def example(name: str, kind: type):
    """A new object of a public class, or None where nothing here makes one."""
    if name in MAKERS:
        return MAKERS[name]()
    if issubclass(kind, kt.joints.AbstractJoint):
        return kind.examples()[0]
    if issubclass(kind, kt.geometry.Solid) and kind is not kt.geometry.Solid:
        return kind.from_half_sizes((0.1, 0.2, 0.3))
    return None


@cache
def arm():
    """A pendulum of two links, with an actuator, a tendon and a named posture."""
    builder = kt.ModelBuilder("arm")
    rod = kt.shapes.sphere(0.1, mass=1.0)
    builder.body("upper", joint=kt.Revolute("y"), joint_name="upper", inertia=rod)
    builder.body(
        "lower",
        on="upper",
        joint=kt.Revolute("y"),
        joint_name="lower",
        at=(0, 0, -0.5),
        inertia=rod,
    )
    builder.actuator("motor", joint="lower")
    builder.tendon("cord", joints={"upper": 1.0, "lower": -1.0})
    builder.geometry(kt.geometry.Sphere(0.1), on="lower", name="ball")
    builder.sensor("encoder", "jointpos", of="lower")
    return builder.build()


@cache
def motion():
    """A short motion of the arm."""
    return kt.simulate(arm(), TWO, duration=0.01, dt=0.002)


def world():
    """Two boxes, one on the other, on the ground."""
    made = kt.World("stack", friction=0.5)
    made.add_ground()
    made.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, at=[(0, 0, 0.05), (0, 0, 0.15)])
    return made


@cache
def ball_scene():
    """A ball above the ground."""
    return kt.contact.Scene(kt.contact.with_ground(kt.samples.satellite()), friction=0.5)


def environment():
    """Two worlds of a cart with a pole."""
    return kt.learning.Environment(kt.samples.cart_pole(), 2, **CART_POLE)


def sweep():
    """Squares of three numbers."""
    return kt.sweep(arm(), lambda model, k: {"square": k * k}, {"k": TIMES[:3]}, threads=1)


def identification():
    """Base parameters of the arm, from states that are random."""
    rng = np.random.default_rng(3)
    q, qd, qdd = rng.normal(size=(3, 40, 2))
    tau = kt.inverse_dynamics(arm(), q, qd, qdd)
    return kt.identify(arm(), q, qd, qdd, tau)


def still():
    """An estimate of a body that has no feet and does not move."""
    observer = kt.estimation.BaseFilter(kt.samples.satellite(), [], 0.01)
    n = observer.model.nv - 6
    return observer.step(np.zeros(3), np.zeros(3), np.zeros(observer.model.nq - 7), np.zeros(n), [])


def optimized():
    """A short plan for the arm."""
    return kt.control.optimize(
        arm(), TWO, steps=3, dt=0.01, terminal=kt.control.QuadraticCost(q=TWO, position=1.0)
    )


def evaluation():
    """The singular values of a five-bar."""
    return kt.loops.SVDForm(SYSTEM).evaluate(0.0, Q, SLOW)


MAKERS = {
    "Body": lambda: arm().bodies[1],
    "ConstraintFunction": lambda: kt.ConstraintFunction("x", position=lambda q: q[0], rows=1),
    "Coupling": lambda: kt.Coupling("x", 2, 1, coefficients=(0.0, 1.0)),
    "Force": lambda: kt.Force(np.ones(3), np.ones(3)),
    "FluidForce": lambda: kt.FluidForce(1, kt.geometry.Ellipsoid((0.1, 0.2, 0.3)), density=1.2),
    "GravityCompensation": lambda: kt.GravityCompensation(1, 0.5),
    "Group": lambda: kt.Group("both", ("upper", "lower"), "lower"),
    "Inertia": lambda: kt.shapes.sphere(0.1, mass=1.0),
    "Model": arm,
    "Motion": lambda: kt.Motion(np.ones(3), np.ones(3)),
    "Plucker": kt.Plucker.identity,
    "Prescribed": lambda: kt.Prescribed(kt.Revolute("z"), lambda t: ([t], [1], [0])),
    "Recorded": lambda: kt.Recorded(TIMES, np.zeros((5, 2))),
    "RecordedMotion": lambda: kt.RecordedMotion(TIMES, TIMES[:, None]),
    "Sampled": lambda: kt.Sampled(lambda t, q, qd: 0.0, 100.0),
    "Sensor": lambda: arm().sensors[0],
    "Sweep": sweep,
    "Tendon": lambda: arm().tendons[0],
    "Muscle": lambda: kt.Muscle(200.0, (0.2, 0.4)),
    "Pulley": lambda: kt.Pulley(2.0),
    "Wrap": lambda: kt.Wrap("upper", "sphere", 0.1),
    "TorqueSpeed": lambda: kt.TorqueSpeed(stall=1.0, free_speed=10.0),
    "Trajectory": motion,
    "World": world,
    "contact.Contacts": lambda: ball_scene().contacts(ball_scene().model.neutral(), margin=1.0),
    "contact.NonlinearPatch": lambda: kt.contact.NonlinearPatch(lambda p: p, lambda p: 1 + p),
    "contact.Scene": ball_scene,
    "contact.SoftContact": lambda: kt.contact.SoftContact(ball_scene(), stiffness=1e4, damping=1.0),
    "control.LQR": lambda: kt.control.LQR(arm(), [0.0, 0.0], Q=1.0, R=1.0),
    "control.MPC": lambda: kt.control.MPC(
        arm(), steps=3, dt=0.01, terminal=kt.control.QuadraticCost(q=TWO, position=1.0)
    ),
    "control.OperationalSpaceControl": lambda: kt.control.OperationalSpaceControl(
        arm().replace(actuators=()), "lower", np.eye(4), 10.0
    ),
    "control.OptimizedMotion": optimized,
    "control.PathIntegral": lambda: kt.control.PathIntegral(
        lambda x, plans: (plans**2).sum((1, 2)), horizon=3, size=1, samples=8
    ),
    "control.Schedule": lambda: kt.control.Schedule([kt.control.Phase(0.1, ["foot"])]),
    "control.WholeBody": lambda: kt.control.WholeBody(
        arm(), [kt.control.PostureTask(TWO, 10.0)], contacts=[]
    ),
    "estimation.BaseFilter": lambda: kt.estimation.BaseFilter(kt.samples.satellite(), [], 0.01),
    "estimation.Estimate": still,
    "estimation.MovingHorizon": lambda: kt.estimation.MovingHorizon(
        kt.samples.satellite(), [], 0.01, window=2
    ),
    "identification.BaseParameters": lambda: kt.base_parameters(arm()),
    "identification.Identification": identification,
    "ik.InverseKinematics": lambda: kt.inverse_kinematics(
        arm(), [kt.ik.PositionTask("lower", np.zeros(3))]
    ),
    "learning.Environment": environment,
    "loaders.Report": kt.loaders.Report,
    "loops.ConstrainedSystem": lambda: SYSTEM,
    "loops.LoopClosure": lambda: kt.loops.closed_forms.closure(arm()),
    "loops.SVDForm": lambda: kt.loops.SVDForm(SYSTEM),
    "loops.charts.Atlas": lambda: kt.loops.charts.Atlas(SYSTEM, Q, SLOW),
    "loops.charts.LinearChart": KINDS["linear"],
    "loops.charts.LinearStateChart": KINDS["linear state"],
    "loops.charts.NonlinearChart": KINDS["apex"],
    "loops.charts.StateChart": KINDS["nonlinear state"],
    "model.ConnectivityGraph": lambda: kt.model.ConnectivityGraph(3, ((0, 1), (1, 2), (0, 2))),
    "model.DHTable": lambda: kt.model.DHTable([kt.model.DHRow(0.1, 0.2, 0.3, 0.4)]),
    "model.SpanningTree": lambda: kt.model.ConnectivityGraph(
        3, ((0, 1), (1, 2), (0, 2))
    ).spanning_tree(),
    "spatial.DualBasis": lambda: kt.spatial.DualBasis.of_frame(kt.Plucker.identity()),
    "spatial.Dyadic": lambda: kt.spatial.Dyadic(np.eye(6), kt.Motion, kt.Force),
    "spatial.ArticulatedInertia": lambda: kt.spatial.ArticulatedInertia.from_matrix(np.eye(6)),
    "spatial.InverseInertia": lambda: kt.spatial.InverseInertia.from_matrix(np.eye(6)),
    "spatial.Screw": lambda: kt.spatial.Screw.of(kt.Motion(np.ones(3), np.ones(3))),
    "spatial.planar.PlanarForce": lambda: kt.spatial.planar.PlanarForce([1.0], [1.0, 2.0]),
    "spatial.planar.PlanarMotion": lambda: kt.spatial.planar.PlanarMotion([1.0], [1.0, 2.0]),
    "spatial.planar.PlanarTransform": kt.spatial.planar.PlanarTransform.identity,
    "symbolic.EquationsOfMotion": lambda: kt.symbolic.equations_of_motion(kt.samples.pendulum()),
    "viewer.Contacts": lambda: kt.viewer.Contacts(np.zeros((5, 1, 3))),
    "viewer.Surface": lambda: kt.viewer.Surface(np.eye(3), np.array([[0, 1, 2]])),
    "worlds.Contacts": lambda: world().contacts(),
    "worlds.Worlds": lambda: world().batch(2),
}
"""Functions that make an object, by the public name of its class."""
