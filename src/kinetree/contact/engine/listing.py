"""Lists of the contacts of a step: of a motion, and for people, along the axes of the world."""

from kinetree.codegen.procedures import local, procedure
from kinetree.contact.engine.contact_frames import contact_frame
from kinetree.contact.engine.motions import Motions
from kinetree.contact.engine.parts import Parts

WIDTH = 16
"""Numbers of a contact: point, normal, gap, force, moment, slip."""
NEAR = 1e-6
"""Gap up to which a contact without force is listed [m]."""
LATER = -1
"""In ``Motions.listed``: an only motion is in its engine, whose contacts are listed on demand."""


@procedure
def write_contact(
    numbers: "float[16]",
    point: "float[3]",
    normal: "float[3]",
    gap: float,
    force: "float[6]",
    slip: "float[3]",
):
    """Write point, normal, gap, force and slip of a contact, rotated to world axes."""
    axes = local("float", 3, 3)
    contact_frame(normal, axes)
    numbers[:3] = point
    numbers[3:6] = normal
    numbers[6] = gap
    for k in range(3):
        numbers[7 + k] = force[0] * axes[0, k] + force[1] * axes[1, k] + force[2] * axes[2, k]
        numbers[10 + k] = force[3] * axes[0, k] + force[4] * axes[1, k] + force[5] * axes[2, k]
        numbers[13 + k] = slip[1] * axes[1, k] + slip[2] * axes[2, k]


@procedure
def is_listed(gap: float, force: "float[6]", near: float) -> bool:
    """Whether a contact is closed up to ``near`` [m], or exerts a force."""
    return gap <= near or force[0] != 0.0 or force[1] != 0.0 or force[2] != 0.0


@procedure
def list_contacts(a: Parts, b: Motions, w: int):
    """Copy the last step's contacts of motion ``w`` to its lists."""
    rows = a.rows
    f = a.found
    b.listed[w] = rows.contacts
    for g in range(rows.contacts):
        c = rows.contact[g]
        x = b.place[w * b.room + g]
        n = b.which[w * b.room + g]
        n[0] = f.first[c]
        n[1] = f.second[c]
        n[2] = f.feature[c]
        n[3] = f.bodies[c, 0]
        n[4] = f.bodies[c, 1]
        x[:3] = f.point[c]
        x[3:6] = f.normal[c]
        x[6] = f.gap[c]
        x[7] = f.friction[c, 0]
        x[8] = f.restitution[c]
        for r in range(6):
            x[9 + r] = rows.scale[g, r] * rows.force[g, r] if r < rows.dim[g] else 0.0
        x[15:] = rows.slip[g]


@procedure
def list_stored(
    place: "float[:, 18]",
    ids: "int[:, 5]",
    n: int,
    near: float,
    numbers: "float[:, 16]",
    which: "int[:, 5]",
) -> int:
    """Write a motion's contacts that touch or exert forces; returns their number."""
    count = 0
    for k in range(n):
        x = place[k]
        if is_listed(x[6], x[9:15], near):
            write_contact(numbers[count], x[:3], x[3:6], x[6], x[9:15], x[15:])
            which[count] = ids[k]
            count += 1
    return count
