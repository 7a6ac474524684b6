"""Adhesion: actuators that pull a body to what it touches, along the normals of its contacts.

The force of an actuator is shared equally by the contacts of the body, as in MuJoCo. It acts where
the step has its middle, and the rows of the contacts answer it.
"""

from kinetree.codegen.procedures import cross, procedure
from kinetree.contact.engine.parts import Parts
from kinetree.contact.engine.pushes import as_joint_forces
from kinetree.contact.engine.sleep import wake


@procedure
def touches(a: Parts, c: int, body: int) -> bool:
    """Whether contact ``c`` involves a body and is closed."""
    f = a.found
    return f.gap[c] <= a.step.arrives and (f.bodies[c, 0] == body or f.bodies[c, 1] == body)


@procedure
def contacts_of(a: Parts, body: int) -> int:
    """Number of closed contacts of a body."""
    count = 0
    for c in range(a.found.count):
        if touches(a, c, body):
            count += 1
    return count


@procedure
def adhere(a: Parts) -> bool:
    """Add the joint forces of adhesion actuators; whether any of them woke a sleeping tree."""
    d, f, m, z, x = a.drives, a.found, a.mechanism, a.sleep, a.pushes
    acts = woke = False
    for k in range(d.count if d.acts == 1 else 0):
        body = d.adheres[k]
        force = min(max(d.request[k], d.effort[k, 0]), d.effort[k, 1])
        if body == 0 or force == 0.0:
            continue
        if not acts:
            x.total[: m.bodies] = 0.0
        acts = True
        share = force * d.sticks[k] / max(contacts_of(a, body), 1)
        for c in range(f.count):
            if not touches(a, c, body):
                continue
            for side in range(2):
                i = f.bodies[c, side]
                if i == 0:
                    continue
                t = z.tree[i]
                if t >= 0 and z.sleeps[t] == 1:
                    wake(z, t)
                    woke = True
                pull = (share - 2.0 * share * side) * f.normal[c]
                x.total[i, :3] += cross(f.point[c] - m.pose[m.root[i], 3::4], pull)
                x.total[i, 3:] += pull
    if acts:
        as_joint_forces(x, m, a.step.tau)
    return woke
