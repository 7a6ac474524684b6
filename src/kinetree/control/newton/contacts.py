"""Records of contacts that a schedule closes: tables, and what steps compute of them.

Contacts have three rows, the force at their first point, or six with the moment about it, all along
the axes of the base. Motions of bodies are spatial, about the origin of the first body of their
tree, angular first.
"""

from kinetree.codegen.procedures import record
from kinetree.control.newton.calls import InnerLoop


@record
class ContactTables:
    """Tables of a robot, its contacts and their schedule.

    Attributes:
        count: of contacts, 0 without a schedule;  rows: of all;  cones: bounds of their forces;
            before: path constraints of users, which come first.
        bodies: number of bodies;  parent, root: of bodies from 0, the base;  variable: first
            velocity variable of a body, and one past the last.
        body, size, first, damping: of a contact: its body, rows, first row, decay of velocities;
            point: its first point in the body.
        chain_first: where the bodies up to a contact begin, parents first;  chain: body.
        path_first: where the variables above a contact begin, parents first;  path: variable;
            owner: body of its joint.
        point_first: where the points of a contact begin;  spread: forces at a point for a force and
            moment, in axes of the body, (points, 3, 6);  cone_first: where the cones of a point
            begin;  cone, offset: ``cone @ force <= offset``.
        active, landing: (steps, count);  goal, weight: (steps + 1, count, 3).
        turns: joints whose rates are not velocities;  turn: first variable;  width: 3 or 6.
    """

    count: int
    rows: int
    cones: int
    before: int
    bodies: int
    turns: int
    parent: "int[:]"
    root: "int[:]"
    variable: "int[:]"
    body: "int[:]"
    size: "int[:]"
    first: "int[:]"
    damping: "float[:]"
    point: "float[:]"
    chain_first: "int[:]"
    chain: "int[:]"
    path_first: "int[:]"
    path: "int[:]"
    owner: "int[:]"
    point_first: "int[:]"
    spread: "float[:]"
    cone_first: "int[:]"
    cone: "float[:]"
    offset: "float[:]"
    active: "int[:]"
    landing: "int[:]"
    goal: "float[:]"
    weight: "float[:]"
    turn: "int[:]"
    width: "int[:]"


@record
class StanceKernels:
    """Kernels of steps with contacts, tied to the knots that are tried, or to the present ones.

    Attributes:
        forced: 1 where ``force`` gives all joint forces, which are those held otherwise.
        terms: poses and motion subspaces;  mass, bias: of the equation of motion.
        move: along the manifold, to the ends of steps.
        derivatives: derivatives of inverse dynamics;  force_derivatives: of joint forces.
    """

    forced: int
    terms: InnerLoop
    mass: InnerLoop
    force: InnerLoop
    bias: InnerLoop
    move: InnerLoop
    derivatives: InnerLoop
    force_derivatives: InnerLoop
    impact: InnerLoop


@record
class Stance:
    """Results and working memory of steps with contacts.

    Attributes:
        tried, now: kernels.
        pose, S, F: of knots;  M, bias, v: inertia and bias forces, velocities after impacts;
            lines: motions of steps.
        f, impulse: forces and impulses of contacts, (steps, rows).
        E_q, E_v: derivatives of inverse dynamics;  zero: numbers;  hit: where
            impacts of a step are in hit_q, jump, I_q: positions, jumps of velocities and zeros,
            derivatives of inertia times these, two for each.
        vel, acc: motions of bodies of one knot;  J, drift: rows of active contacts, (steps, rows,
            ...), of which the first ``live`` count;  row: their numbers.
        P, Q, Y: factors of one step;  L, right, df: the same by columns, see ``columns``.
        A_q, A_v: derivatives of contact accelerations;  B: of impacts;  D: of contact forces on
            joints.
        turned, spun: derivatives of moves along the manifold.
        R, room: working memory of one knot;  bench: of the factors of one.
    """

    tried: StanceKernels
    now: StanceKernels
    pose: "float[:]"
    S: "float[:]"
    F: "float[:]"
    M: "float[:]"
    bias: "float[:]"
    v: "float[:]"
    lines: "float[:]"
    f: "float[:]"
    impulse: "float[:]"
    E_q: "float[:]"
    E_v: "float[:]"
    f_z: "float[:]"
    zero: "float[:]"
    hit: "int[:]"
    hit_q: "float[:]"
    jump: "float[:]"
    I_q: "float[:]"
    vel: "float[:]"
    acc: "float[:]"
    J: "float[:]"
    drift: "float[:]"
    row: "int[:]"
    live: "int[:]"
    P: "float[:]"
    Q: "float[:]"
    Y: "float[:]"
    L: "float[:]"
    right: "float[:]"
    df: "float[:]"
    A_q: "float[:]"
    A_v: "float[:]"
    B: "float[:]"
    D: "float[:]"
    R: "float[:]"
    turned: "float[:]"
    spun: "float[:]"
    room: "float[:]"
    bench: "float[:]"
