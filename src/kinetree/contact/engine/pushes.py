"""External forces on bodies: wrenches that are held during steps, as joint forces."""

import numpy as np

from kinetree.codegen.procedures import cross, dot, local, procedure, record, view
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.sleep import Sleep, wake


@record
class Pushes:
    """Wrenches on bodies.

    Attributes:
        count: how many;  body: on which;  point: where, in body coordinates.
        wrench: moment about the point and force;  turns: 1 where they are along the axes of the
            body, 0 along those of the world.
        total: of bodies: moment about the point of their tree, and force, with what they carry.
    """

    count: int
    body: "int[:]"
    point: "float[:, 3]"
    wrench: "float[:, 6]"
    turns: "int[:]"
    total: "float[:, 6]"


def no_pushes(bodies) -> Pushes:
    """``Pushes`` table without external wrenches, for ``bodies`` bodies with the base."""
    return Pushes(count=0, total=np.zeros((bodies, 6)))


@procedure
def in_world(pose: "float[12]", x: "float[3]", out: "float[3]"):
    """Rotate a body-fixed vector to world axes by the body's pose."""
    R = view(pose, 0, 3, 4)
    for i in range(3):
        out[i] = R[i, 0] * x[0] + R[i, 1] * x[1] + R[i, 2] * x[2]


@procedure
def add_pushes(x: Pushes, m: Mechanism, tau: "float[:]"):
    """Add the joint forces ``Sᵀ f`` of external wrenches on bodies — RBDA (5.8)."""
    if x.count == 0:
        return
    x.total[: m.bodies] = 0.0
    arm = local("float", 3)
    moment = local("float", 3)
    force = local("float", 3)
    for n in range(x.count):
        i = x.body[n]
        moment[:] = x.wrench[n, :3]
        force[:] = x.wrench[n, 3:]
        if x.turns[n] == 1:
            in_world(m.pose[i], x.wrench[n, :3], moment)
            in_world(m.pose[i], x.wrench[n, 3:], force)
        in_world(m.pose[i], x.point[n], arm)
        arm[:] += m.pose[i, 3::4] - m.pose[m.root[i], 3::4]
        x.total[i, :3] += moment + cross(arm, force)
        x.total[i, 3:] += force
    as_joint_forces(x, m, tau)


@procedure
def as_joint_forces(x: Pushes, m: Mechanism, tau: "float[:]"):
    """Add the joint forces of the bodies' total wrenches, summed from leaves to root."""
    for r in range(m.bodies - 1):
        i = m.bodies - 1 - r
        f = x.total[i]
        for k in range(m.first[i], m.first[i] + m.count[i]):
            tau[k] += dot(m.S[k, :3], f[:3]) + dot(m.S[k, 3:], f[3:])
        if m.parent[i] > 0:
            x.total[m.parent[i]] += f


@procedure
def wake_pushed(x: Pushes, z: Sleep):
    """Wake all sleeping trees on which nonzero external wrenches act."""
    for n in range(x.count):
        t = z.tree[x.body[n]]
        w = x.wrench[n]
        if t >= 0 and z.sleeps[t] == 1 and dot(w[:3], w[:3]) + dot(w[3:], w[3:]) > 0.0:
            wake(z, t)
