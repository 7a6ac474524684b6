"""A joint of your own: a bead on a wire bent into a parabola."""

from dataclasses import dataclass

import numpy as np

import kinetree as kt


@dataclass(frozen=True)
class Parabola(kt.joints.AbstractJoint):
    """Slides without turning along ``z = k x² / 2``; ``q`` is x."""

    k: float = 1.0
    nq = nv = 1
    constant_subspace = False

    def jcalc(self, q, qd):
        (x,), (xd,) = q, qd
        X_J = kt.xlt(x, 0 * x, self.k * x * x / 2)
        S = kt.Motion(np.zeros((3, 1), int), np.array([[1 + 0 * x], [0 * x], [self.k * x]]))
        c_J = kt.Motion(np.zeros(3, int), np.array([0 * x, 0 * x, self.k * xd * xd]))
        return X_J, S, S @ qd, c_J

    def constraint_subspace(self, q):
        moments = [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]]
        across = [[0, 0, 0, 0, 1, 0], [0, 0, 0, -self.k * q[0], 0, 1]]
        return kt.Force.from_array(np.array(moments + across).T)

    def coordinates(self, X):
        return np.array([X.r[0]])


kt.joints.check_joint(Parabola(2.0))  # S, c_J, constraint forces, manifold, ...: all consistent
print("Parabola(2.0) passes the conformance check")

wire = (
    kt.ModelBuilder("wire")
    .body("bead", joint=Parabola(2.0), inertia=kt.shapes.point(mass=0.1))
    .build()
)
x, v = np.array([0.3]), np.array([0.7])
qdd = kt.forward_dynamics(wire, x, v, np.zeros(1))
k, g = 2.0, 9.81
assert np.allclose(qdd, -(g * k * x + k**2 * x * v**2) / (1 + (k * x) ** 2))
print("acceleration along x:", qdd)
