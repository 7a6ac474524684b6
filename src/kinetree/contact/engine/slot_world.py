"""Numbers of a world whose contacts have slots: tables of the model, and arrays of a step.

Procedures of slots take them as one record. A routine binds its fields to arrays that are in
device memory, where numbers of several worlds may lie side by side: ``..._step`` says how far the
numbers of one world are apart.
"""

from kinetree.codegen.procedures import procedure, record


@record
class SlotWorld:
    """Sizes and tables of a model, and what a step reads and writes.

    Attributes:
        bodies, nv, contacts, slots: bodies with the base, variables of velocity, contacts that are
            always looked at, and how many contacts may act at once.
        deep: variables that move the bodies of a contact at most, a multiple of 8.
        moves, chain: of carriers, how many variables move them, and which, from the base outward,
            then ``nv``. Carriers are bodies, and after them couples of bodies that both move.
        owner, level: of variables, the body that they move first, and how many come before them.
        trees, trunk, touched: how many trees contacts may couple, 0 for none; the first variable of
            each, and how many there are; and the trees of carriers, as bits.
        sides: of carriers, the trees of both bodies.
        sort: contacts by their kinds.
        kind, shape, ground, body, group: of contacts, kinds as ``slot_points`` has them, numbers of
            frames and of planes, the body, and the number of the pair.
        fixed, pair: of columns, the number of the contact that is always looked at, or -1; and the
            number of the pair.
        tree: of bodies, the number of theirs.
        frame, spot, plane: axes by rows and places of shapes in coordinates of their bodies; what
            ``slot_points.local_point`` wants; and axes of planes by rows with the distance from
            the origin.
        traced: gap, point, its rate, axes and their rates of contacts that are computed elsewhere.
        inverses, begin: how many numbers ``inverse`` has; where those of the variables in ``chain``
            begin.
        restitution, friction: coefficients of the columns.
        sweeps: of Gauss and Seidel, at most.
        tries: how often there are sweeps, and steps of Newton where they do not end.
        serious, nearly: times the tolerance, above which these steps follow, and sweeps again.
        proximal_weight: weight of staying in steps of Newton.
        light: force of contacts that were pressed before these, and are not any more.
        first, loose: times the tolerance that will do, where ``loose`` is above 0.
        rounds: sweeps of ``slot_shift``.
        numbers: length of the step, time to its middle, tolerance, depth that velocities take out,
            speed of arrival without rebound, and gaps that are none.
        time: how long bodies go on as they move, of ``slot_pairs`` [s].
        pose, origin: axes of bodies by rows, and places relative to the origins of trees; these.
        S: columns of the joints.
        twist, rate, after: velocities of bodies, accelerations in straight motion, and velocities
            of the joints after the step.
        inverse: rows of ``L⁻¹ D^{-1/2}``, with ``Lᵀ D L = H + h lag``, along chains one after the
            other.
        points, which, near: of ``slot_pairs``: ``POINT_SIZE`` numbers for each of the points that
            near pairs may have; of these the ones that there are, one after the other; and how many
            there are, pairs and points that there was no room for, the largest depth.
        found: of ``slot_contacts``: how many slots are in use, how many contacts have none, and the
            largest depth.
        taken, place: columns with slots; axes of their contacts by rows, and points.
        classes: where contacts couple trees: how many classes of contacts that share none there
            are, and how many slots these and those before have. Numbers of a class lie side by
            side.
        slot: ``SLOT_SIZE`` numbers for each slot: carrier, friction, gap, velocities along the axes
            before the step, and what they gain without forces, three numbers each.
        Y, own: rows of contacts, and blocks on the diagonal of ``Y Yᵀ``: see ``slot_laws``.
        force: for each slot the number of its column, from 1 on, or 0, and the forces along normal
            and tangents in the step before.
        start, held: the same of this step, to start from, and at its end.
        z, u: what velocities gain without contact, ``D^{-1/2} L⁻ᵀ h (tau - C)``, and by contact.
        reported: ``REPORT_SIZE`` numbers.
        missed: the speed at which contacts without slots close [m/s].
        opening, depth: gaps of the contacts with slots after the step, and the largest depth.
        shift: displacements, as ``u``.
        K: room for Newton's method, ``newton_size`` numbers.
        work: numbers that a procedure may use as it likes.
    """

    bodies: int
    nv: int
    contacts: int
    slots: int
    deep: int
    moves: "int[:]"
    chain: "int[:]"
    owner: "int[:]"
    level: "int[:]"
    trees: int
    trunk: "int[:]"
    touched: "int[:]"
    sides: "int[:, 2]"
    sort: "int[:]"
    kind: "int[:]"
    shape: "int[:]"
    ground: "int[:]"
    body: "int[:]"
    group: "int[:]"
    fixed: "int[:]"
    pair: "int[:]"
    tree: "int[:]"
    frame: "float[:, 12]"
    spot: "float[:, 4]"
    plane: "float[:, 10]"
    traced: "float[:, 25]"
    inverses: int
    begin: "int[:]"
    restitution: "float[:]"
    friction: "float[:]"
    sweeps: int
    tries: int
    serious: float
    nearly: float
    proximal_weight: float
    light: float
    first: float
    loose: "float[1]"
    rounds: int
    numbers: "float[6]"
    time: "float[1]"
    pose: "float[:]"
    pose_step: int
    origin: "float[:, 3]"
    S: "float[:]"
    S_step: int
    twist: "float[:]"
    twist_step: int
    rate: "float[:]"
    rate_step: int
    after: "float[:]"
    after_step: int
    inverse: "float[:]"
    inverse_step: int
    points: "float[:]"
    points_step: int
    which: "float[:]"
    which_step: int
    near: "float[3]"
    found: "float[3]"
    taken: "float[:]"
    taken_step: int
    place: "float[:]"
    place_step: int
    classes: "float[:]"
    classes_step: int
    slot: "float[:]"
    slot_step: int
    Y: "float[:]"
    Y_step: int
    own: "float[:]"
    own_step: int
    force: "float[:]"
    force_step: int
    start: "float[:]"
    start_step: int
    held: "float[:]"
    held_step: int
    z: "float[:]"
    z_step: int
    u: "float[:]"
    u_step: int
    reported: "float[6]"
    missed: "float[1]"
    opening: "float[:]"
    opening_step: int
    depth: "float[1]"
    shift: "float[:]"
    shift_step: int
    K: "float[:]"
    work: "float[:]"


@record
class Unknowns:
    """Unknowns of the contacts with slots, in the memory that lanes share.

    Attributes:
        carrier: of slots.
        mu, target, b: friction, normal velocities that are wanted, and velocities without impulses.
        lam, v: impulses, and ``Yᵀ lam``.
        w, W: velocities, and blocks of Newton's method; of sweeps the best impulses, and three
            earlier ones.
        older: ``v`` before, or what Newton's method gains.
        rows: where contacts couple trees, ``Y``: a number of all slots, then the next one;
            ``3 x deep`` of them, normal first.
        best: the best impulses of Newton's method.
        ends: how many classes there are, and how many slots these and those before have.
        joined, order, listed: see ``slot_trees``.
    """

    carrier: "int[:]"
    mu: "float[:]"
    target: "float[:]"
    b: "float[:]"
    lam: "float[:]"
    v: "float[:]"
    w: "float[:]"
    W: "float[:]"
    older: "float[:]"
    rows: "float[:]"
    best: "float[:]"
    ends: "int[:]"
    joined: "int[:]"
    order: "int[:]"
    listed: "int[:]"


@procedure(inline=True)
def number_of(world: SlotWorld, s: int, k: int, size: int) -> int:
    """Offset of number ``k`` of slot ``s``, where each slot has ``size`` numbers."""
    return k * world.slots + s if world.trees > 0 else size * s + k


@procedure(inline=True)
def bits_of(x: int) -> int:
    """Number of set bits of an integer below 2³¹."""
    n = x - ((x >> 1) & 0x55555555)
    n = (n & 0x33333333) + ((n >> 2) & 0x33333333)
    n = (n + (n >> 4)) & 0x0F0F0F0F
    n += n >> 8
    n += n >> 16
    return n & 63
