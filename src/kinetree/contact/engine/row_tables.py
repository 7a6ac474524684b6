"""Tables of the rows of a step: what groups stand for, and what is kept of them.

Every group of rows is a set of blocks over the nodes that move it, see ``newton.problem``.
"""

from kinetree.codegen.procedures import procedure, record
from kinetree.contact.engine.loops import Loops
from kinetree.contact.newton.problem import Problem

FULL = -2
"""Code of lists that are too small."""

UNBOUNDED = 1e300


@record
class Rows:
    """Tables of what groups of rows stand for, and of what is kept until the next step.

    Attributes:
        groups_room, rows_room, entries_room, numbers_room: lengths of the lists of ``Problem``.
        numbers: how many numbers of ``J`` are taken.
        contacts: number of groups that are contacts; they come first.
        fixed: like ``J``, the numbers of variables that move prescribed, which ``J`` leaves out.
        active: of the contacts found: 1 + number of the group, 0 for none.
        order: contacts that are active, island by island;  pile, place: to find that order.
        contact: of groups: number of the contact found, or of the stop, joint or loop row.
        axes: of groups that are contacts: normal and tangents.
        scale: of groups that are contacts: by what each row was multiplied.
        before: of groups: velocity of the first row before the step.
        gap: of groups [m or rad], at the middle of the step, without what ``bending`` adds.
        stops: number of ends of travel;  stop_q, stop_v: their variables, the second -1 - t for
            tendon ``t``;  stop_sign: 1 for a lower bound, -1 for an upper;  stop_at: bounds;
            stop_bounce: restitution;  stop_was: of tendons, velocity after the last step.
        dry: number of variables with dry friction;  dry_v: which, or tendons, in the same way;
            dry_level: [N or N·m].
        tendon_first: where the variables of a tendon begin;  tendon_q, tendon_v, tendon_arm:
            variables, ascending, and their coefficients;  tendon_offset: length at zero.
        moving: how many tendons have arms that change: those through space, and the velocity
            variables of loop joints, which have the numbers after those of tendons;  moving_of:
            their numbers;  moving_place, moving_arm: positions, and arms in rows of nv.
        loops: number of rows of loops and couplings;  loop_first: where the nodes that move a row
            begin in ``loop_node``;  loop_value: numbers of these nodes, row by row;  loop_error:
            [m or rad];  loop_ended: velocities of the rows when the step began;
            loop_rounding: of each of ``loop_value``, up to where it may be a rounding error.
        closed: what these rows are computed from.
        loop_of: of groups of a shift of positions: number of the row of a loop, or -1;
            end: gap [m or rad].
        dim: of groups;  force: impulses per second of their rows, as they are scaled.
        slip: of groups that are contacts: velocities after the step along normal and tangents, or
            in its middle where the contact goes on.
        follows: 1 where the step begins with the state that the last one ended with.
        timed: 1 where a step is taken with times of impact, see ``bounces``;  moment: of trees:
            that time [s], -1 for none;  left: of groups: part of the step after a bounce, 0 for
            none;  rests: of trees: 1 where rows act that do not bounce.
        inside: penetration from which on bodies are inside each other [m], see ``add_contacts``.
        known: contacts of the last step, by shapes and feature, in a table with open addressing:
            ``slot`` is 1 + number in ``key``.
        key: shapes and feature.
        kept: impulses per second of the contact's rows as they are scaled;  ended: velocities of
            the contact when the step had ended, along normal and tangents;  spot: its ``local``;
            claimed: 1 for those that a contact of this step continues.
        match: of the contacts found: 1 + number of that of the last step that it continues, or 0;
            local: place in coordinates of the second body.
        bent: of the contacts that are known: half of the change of velocity in the last step, see
            ``bending``;  turned: of groups: the same in this step and in the last one.
        ball: of shapes: 1 for spheres.
        prior: of groups that are contacts: ``ended`` of the last step;  bend: half of what the
            velocity has changed by since, see ``bending``; of loops what it has since the start.
        slept: of the contacts found: forces with which they sleep, as ``kept``.
        pair_slot: the same for the first contact of two shapes; made when it is needed.
        slots: length of ``slot``, more than twice the groups.
    """

    groups_room: int
    rows_room: int
    entries_room: int
    numbers_room: int
    numbers: int
    contacts: int
    fixed: "float[:]"
    active: "int[:]"
    order: "int[:]"
    pile: "int[:]"
    place: "int[:]"
    contact: "int[:]"
    axes: "float[:, 3, 3]"
    scale: "float[:, 6]"
    before: "float[:]"
    gap: "float[:]"
    stops: int
    stop_q: "int[:]"
    stop_v: "int[:]"
    stop_sign: "float[:]"
    stop_at: "float[:]"
    stop_bounce: "float[:]"
    stop_kept: "float[:]"
    stop_was: "float[:]"
    dry: int
    dry_v: "int[:]"
    dry_level: "float[:]"
    dry_kept: "float[:]"
    tendon_first: "int[:]"
    tendon_q: "int[:]"
    tendon_v: "int[:]"
    tendon_arm: "float[:]"
    tendon_offset: "float[:]"
    moving: int
    moving_of: "int[:]"
    moving_place: "float[:]"
    moving_arm: "float[:]"
    loops: int
    loop_first: "int[:]"
    loop_node: "int[:]"
    loop_value: "float[:]"
    loop_rounding: "float[:]"
    loop_error: "float[:]"
    loop_kept: "float[:]"
    loop_ended: "float[:]"
    loop_of: "int[:]"
    closed: Loops
    end: "float[:]"
    dim: "int[:]"
    force: "float[:, 6]"
    slip: "float[:, 3]"
    follows: int
    timed: int
    moment: "float[:]"
    left: "float[:]"
    rests: "int[:]"
    inside: float
    known: int
    slots: int
    slot: "int[:]"
    pair_slot: "int[:]"
    key: "int[:, 3]"
    kept: "float[:, 6]"
    slept: "float[:, 6]"
    ended: "float[:, 3]"
    spot: "float[:, 3]"
    bent: "float[:, 3]"
    turned: "float[:, 2, 3]"
    claimed: "int[:]"
    ball: "int[:]"
    match: "int[:]"
    local: "float[:, 3]"
    prior: "float[:, 3]"
    bend: "float[:, 3]"


@procedure
def moment_of(p: Problem, rows: Rows, g: int) -> float:
    """Impact time in the step at which group ``g`` acts; -1 for the middle of the step."""
    if rows.timed == 0 or p.entry_first[g] == p.entry_first[g + 1]:
        return -1.0
    return rows.moment[p.node_tree[p.entry_node[p.entry_first[g]]]]
