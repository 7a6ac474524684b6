"""Lists of the contacts of a step for people: forces and velocities along the axes of the world."""

from kinetree.codegen.procedures import local, procedure
from kinetree.contact.collision.tables import Found
from kinetree.contact.engine.contact_frames import contact_frame
from kinetree.contact.engine.row_tables import Rows

WIDTH = 16
"""Numbers of a contact: point, normal, gap, force, moment, slip."""
NEAR = 1e-6
"""Gap up to which a contact without force is listed [m]."""


@procedure
def write_contact(
    numbers: "float[16]", point: "float[3]", normal: "float[3]", gap: float, force: "float[6]",
    slip: "float[3]",
):  # fmt: skip
    """Numbers of a contact; forces, moments and slip are given along normal and tangents."""
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
    """Whether a contact touches, or exerts a force."""
    return gap <= near or force[0] != 0.0 or force[1] != 0.0 or force[2] != 0.0


@procedure
def list_contacts(
    rows: Rows, f: Found, near: float, numbers: "float[:, 16]", which: "int[:, 5]"
) -> int:
    """Contacts that had rows in the last step and touch or exert forces; how many."""
    count = 0
    force = local("float", 6)
    for g in range(rows.contacts):
        c = rows.contact[g]
        for r in range(6):
            force[r] = rows.scale[g, r] * rows.force[g, r] if r < rows.dim[g] else 0.0
        if is_listed(f.gap[c], force, near):
            write_contact(numbers[count], f.point[c], f.normal[c], f.gap[c], force, rows.slip[g])
            which[count, 0] = f.first[c]
            which[count, 1] = f.second[c]
            which[count, 2] = f.feature[c]
            which[count, 3] = f.bodies[c, 0]
            which[count, 4] = f.bodies[c, 1]
            count += 1
    return count


@procedure
def list_stored(
    place: "float[:, 18]", ids: "int[:, 5]", n: int, near: float, numbers: "float[:, 16]",
    which: "int[:, 5]",
) -> int:  # fmt: skip
    """The same of contacts that a batch has stored, see ``engine.motions``."""
    count = 0
    for k in range(n):
        x = place[k]
        if is_listed(x[6], x[9:15], near):
            write_contact(numbers[count], x[:3], x[3:6], x[6], x[9:15], x[15:])
            which[count] = ids[k]
            count += 1
    return count
