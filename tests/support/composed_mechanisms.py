"""A hopper with any of: a floating base, a loop, gears, a joint of the user's own.

And its equations with everything written out: all joints as variables, and rows for loops, gears,
prescribed joints and contacts, solved together.
"""

from functools import cache

import numpy as np

import kinetree as kt
from kinetree.algorithms.coupled import coupling_rows
from kinetree.contact import Scene, bias, jacobian, with_ground
from kinetree.loops.kinematics.constraint import constraint
from kinetree.model import JointDynamics
from kinetree.model.geometry import Sphere
from kinetree.spatial import Plucker

FEATURES = ("floating", "loop", "gears", "own joint")
LENGTH, BEND = 0.3, 0.3


def _bent(q):
    """A slide along a parabola."""
    return kt.xlt(q[0] * q[0] / 4, 0 * q[0], q[0])


@cache
def hopper(*features, restitution=0.0):
    """A scene: a trunk on a leg of two links, whose foot is a ball above the ground."""
    b = kt.ModelBuilder("hopper with " + ", ".join(features or ("nothing",)))
    bar = kt.shapes.rod(LENGTH, mass=0.4, at=(0, 0, -LENGTH / 2))
    end = (0, 0, -LENGTH)

    def add(name, on, joint, inertia, at=(0, 0, 0), **springs):
        dynamics = JointDynamics(**springs) if springs else None
        b.body(name, on=on, joint=joint, inertia=inertia, at=at, joint_name=name, dynamics=dynamics)

    trunk = kt.Free() if "floating" in features else kt.Prismatic("z")
    add("trunk", "base", trunk, kt.shapes.box(0.3, 0.2, 0.1, mass=2.0))
    add("hip", "trunk", kt.Revolute("y"), bar, damping=0.5)
    add("knee", "hip", kt.Revolute("y"), bar, end, stiffness=5.0, damping=0.5)
    if "own joint" in features:
        ball = kt.shapes.sphere(0.05, mass=0.3)
        add(
            "ankle",
            "knee",
            kt.joints.CustomJoint(_bent, 1),
            ball,
            end,
            stiffness=900.0,
            damping=5.0,
        )
    if "loop" in features:
        add("strut", "trunk", kt.Revolute("y"), bar, (0.1, 0, 0))
        hinge = kt.joints.SphereInCylinder("z")
        b.loop("link", joint=hinge, predecessor="strut", successor="knee", at=end,
               successor_at=(0.1, 0, 0))  # fmt: skip
    if "gears" in features:
        add("flywheel", "trunk", kt.Revolute("y"), kt.shapes.cylinder(0.05, 0.02, mass=0.2))
        b.coupling("gear", joint="flywheel", source="hip", coefficients=(0.0, -3.0, 0.4))
    foot, at = ("ankle", (0, 0, 0)) if "own joint" in features else ("knee", end)
    b.geometry(Sphere(0.05), on=foot, at=Plucker(np.eye(3), np.array(at)), name="foot")
    model = with_ground(b.build(), point=(0, 0, -2 * LENGTH - 0.05))
    return Scene(model, [("ground", "foot")], friction=0.8, restitution=restitution)


def crouching(scene, height=0.0):
    """A configuration with bent leg, the loop closed, and the foot so high above the ground."""
    model, q = scene.model, scene.model.neutral()
    for name, angle in (("hip", BEND), ("knee", -BEND), ("strut", BEND)):
        if name in model.joint_names:
            q[model.q_slice[model.joint_index(name)]] = angle
    up = 2 if isinstance(model.joint[1], kt.Free) else 0
    q[up] += height - scene.contacts(q, margin=1.0).gap[0]
    return q


def turning(model, q, rates):
    """Velocities that keep loops closed, with those of the named joints as given."""
    qd, free = np.zeros(model.nv), np.ones(model.nv, dtype=bool)
    for name, rate in rates.items():
        at = model.v_slice[model.joint_index(name)]
        qd[at], free[at] = rate, False
    if model.loops:
        K = constraint(model, q, qd).K
        qd[free] = -np.linalg.lstsq(K[:, free], K @ qd, rcond=1e-12)[0]
    return qd


class Whole:
    """All joints of a model in a state, and rows: ``H a = force + Rᵀ x``, ``R a = r``."""

    def __init__(self, model, q, qd):
        self.reduced, self.model = model, model.uncoupled
        self.q, self.qd = model.expand(q), model.expand_velocity(q, qd)
        self.tree = self.model.replace(loops=())
        self.R, self.r = np.zeros((0, self.model.nv)), np.zeros(0)
        if model.loops:
            found = constraint(self.model, self.q, self.qd)
            self.add(found.K, found.k)
        if model.couplings:
            found = coupling_rows(model, self.q, self.qd)
            self.add(found.K, found.k)

    def add(self, rows, right):
        self.R, self.r = np.concatenate([self.R, rows]), np.concatenate([self.r, right])

    def tell(self, name, value):
        """A row for a joint with one variable."""
        at = self.model.v_slice[self.model.joint_index(name)]
        self.add(np.eye(self.model.nv)[at], np.atleast_1d(value))

    def touch(self, contacts, axes):
        """Rows of contacts that do not accelerate along so many axes."""
        J = jacobian(self.model, self.q, contacts)[:, :axes].reshape(-1, self.model.nv)
        self.add(J, -bias(self.model, self.q, self.qd, contacts)[:, :axes].ravel())

    def solved(self, force):
        """``a`` of all joints, and what the rows exert."""
        H, n = kt.mass_matrix(self.tree, self.q), len(self.R)
        whole = np.block([[H, -self.R.T], [self.R, np.zeros((n, n))]])
        x = np.linalg.lstsq(whole, np.concatenate([force, self.r]), rcond=1e-13)[0]
        return x[: len(H)], x[len(H) :]

    def force(self, tau):
        """``tau - C`` of all joints; those that follow others have no ``tau``."""
        full = -kt.bias_force(self.tree, self.q, self.qd)
        followers = {c.joint for c in self.reduced.couplings}
        for i in range(1, self.model.body_count + 1):
            if i not in followers:
                full[self.model.v_slice[i]] += tau[self.reduced.v_slice[i]]
        return full
