"""Records of Newton's method: what problems have in common, their variables, and a worker's arrays.

A knot has the variables ``z = (u, dq, dqd)``. Arrays are flat, one knot after the other; those of
``Batch`` one sample after the other. ``inequalities`` explains slacks and multipliers.
"""

from kinetree.codegen.procedures import record
from kinetree.control.newton.calls import InnerLoop
from kinetree.control.newton.contacts import ContactTables, Stance
from kinetree.control.riccati import Horizon

COST, ERRORS = 0, 1  # of the sums of knots


@record
class Batch:
    """All samples of a problem: sizes, settings, limits, variables and results.

    Attributes:
        nq, nv, m: sizes of positions, velocities and controls;  n, size: of ``(q, qd)`` in the
            tangent space, and with controls;  nf: numbers of what steps hold.
        steps, samples: counts;  ng: numbers of the arrays given to kernels, of one sample.
        nb, nc, ni, ne: bounds, path constraints, both, and final constraints.
        flat: 1 where velocities are the rates of positions.
        touching: 1 with contact, rigid or soft;  memory, rows: numbers that contact passes on, and
            those of forces among them.
        exact: 1 where second derivatives of steps are used.
        outside: 1 where steps and their derivatives come from Python.
        warm: 1 where multipliers are given.
        lanes, team: lanes of a team that has knots, 1 for a core; of one that has a problem, or 0.
        most: iterations;  tolerance: of all errors;  h: length of a step.
        lax: violation up to which what has used up its iterations is not examined again, else 0.
        columns: of what is held, by control;  index, sign, value, position: of bounds.
        lower, upper: limits of controls;  mask, soft: of inequalities by knot;  rho: their penalty.
        q, qd, u, s, e, z, w, y, K, before: variables, feedback and memories before the last steps.
        given: arrays for kernels.
        mu, damping, penalty, optimality, gap, cost, violation, hard: of every sample.
        count, converged: iterations, and whether all errors are small;  history: costs.
        contacts: of a schedule;  f, impulse: their forces and impulses.
    """

    nq: int
    nv: int
    m: int
    n: int
    size: int
    nf: int
    steps: int
    samples: int
    ng: int
    nb: int
    nc: int
    ni: int
    ne: int
    flat: int
    touching: int
    memory: int
    rows: int
    exact: int
    outside: int
    lanes: int
    team: int
    warm: int
    most: int
    tolerance: float
    lax: float
    h: float
    columns: "int[:]"
    index: "int[:]"
    sign: "float[:]"
    value: "float[:]"
    position: "int[:]"
    lower: "float[:]"
    upper: "float[:]"
    mask: "float[:]"
    soft: "float[:]"
    rho: "float[:]"
    q: "float[:]"
    qd: "float[:]"
    u: "float[:]"
    z: "float[:]"
    y: "float[:]"
    K: "float[:]"
    given: "float[:]"
    mu: "float[:]"
    optimality: "float[:]"
    gap: "float[:]"
    cost: "float[:]"
    violation: "float[:]"
    count: "int[:]"
    converged: "int[:]"
    history: "float[:]"
    contacts: ContactTables
    f: "float[:]"
    impulse: "float[:]"


@record
class Knots:
    """States, controls and what follows from them, at all knots of one sample.

    Attributes:
        q, qd, u: states and controls, (steps + 1, ...);  held: joint forces, or controls, of steps.
        q_after, v_after, work: ends of steps;  total, qdd: joint forces and accelerations.
        start, after: memories of contact before and after every step.
        path, final: constraints;  gap: from the next knot to the end of a step;  c: inequalities.
        costs, end: of steps, and of the end;  sums: the cost, and the sum of all errors.
    """

    q: "float[:]"
    qd: "float[:]"
    u: "float[:]"
    held: "float[:]"
    row: "float[:]"
    q_after: "float[:]"
    v_after: "float[:]"
    work: "float[:]"
    total: "float[:]"
    qdd: "float[:]"
    start: "float[:]"
    after: "float[:]"
    path: "float[:]"
    final: "float[:]"
    gap: "float[:]"
    c: "float[:]"
    s: "float[:]"
    e: "float[:]"
    costs: "float[:]"
    end: "float[:]"
    sums: "float[:]"


@record
class Steps:
    """Kernels of steps, costs and constraints, tied to the knots that are tried.

    Attributes:
        simple: 1 where ``accelerate`` gives a step of semi-implicit Euler;  forced: 1 where
            ``force`` gives all joint forces, which are those held otherwise.
        force, accelerate: all joint forces; accelerations.
        step: a step otherwise.
        difference: from knots to ends of steps, on the manifold;  move: the reverse.
        running, final: costs and constraints.
    """

    simple: int
    forced: int
    costly: int
    ending: int
    force: InnerLoop
    accelerate: InnerLoop
    step: InnerLoop
    difference: InnerLoop
    running: InnerLoop
    final: InnerLoop


@record
class Derivatives:
    """Kernels of derivatives at the present knots.

    Attributes:
        simple: 1 where ``accelerate`` gives the derivatives of steps;  forced: 1 where ``force``
            gives those of joint forces;  by_rows: 1 where ``rows`` takes weights, row by row.
        knots: of costs and constraints of steps, and of steps where neither of these holds.
        back: from rates of coordinates to velocities;  bending: of lines in the tangent space.
        curve, end_curve: second derivatives of the Lagrangian.
        curves, end_curves: numbers of matrices of costs that are no half squares.
    """

    simple: int
    forced: int
    by_rows: int
    costly: int
    ending: int
    curved: int
    end_curved: int
    weights_of_knot: int
    force: InnerLoop
    accelerate: InnerLoop
    rows: InnerLoop
    knots: InnerLoop
    end: InnerLoop
    back: InnerLoop
    bending: InnerLoop
    curve: InnerLoop
    end_curve: InnerLoop


@record
class Search:
    """Where the iterations of a sample are. Lanes that share a worker have one each.

    Attributes:
        sample: that is solved, -1 for none;  at_sample: that comes next, or is solved.
        wanted: what comes next;  left: iterations that are allowed in this call;  count: that are
            done;  trials: of the search;  at: step of a rollout;  halted: 1 to end the iterations.
        mu: barrier;  damping: of matrices;  penalty: of errors in the merit function.
        merit, fall: its value, and how fast it falls;  alpha: part of the step;  keep, primal,
            dual: how much of slacks stays, how far they and multipliers may go.
        failed, accepted: whether there is no direction; whether a trial was taken.
        fresh: 1 where what steps with contacts computed is of the present knots.
        bold: whole steps in a row that the merit function would not have allowed.
    """

    sample: int
    at_sample: int
    wanted: int
    left: int
    count: int
    trials: int
    at: int
    mu: float
    damping: float
    penalty: float
    merit: float
    fall: float
    alpha: float
    keep: float
    primal: float
    dual: float
    failed: int
    accepted: int
    halted: int
    fresh: int
    bold: int


@record
class WorkerArrays:
    """Arrays of one worker, which solves one sample after the other.

    Attributes:
        search: where its iterations are.
        now, tried: knots of the last step taken, and of a trial.
        steps, derivatives, moving: kernels;  stance: what steps with contacts compute.
        F, g, H: derivatives of next states, gradients and second derivatives of the cost.
        path, final: derivatives of constraints;  acting: rows of a knot that count, and scaled.
        A_q, A_v, A_f: derivatives of accelerations;  f_z: of joint forces.
        square: matrices of the linear-quadratic problem with gradients;  mixed: without squares.
        exact: second derivatives of the Lagrangian;  curve, end_curve: of other costs.
        dz, K, ds, de, dlam, dy: the step;  z, w, y: multipliers;  gradient, costates: of all knots.
        reach, reach_dual: how far slacks and multipliers may go;  curve_of_step: of each knot.
        room: working memory;  scratch: of one knot.
    """

    search: Search
    now: Knots
    tried: Knots
    steps: Steps
    derivatives: Derivatives
    horizon: Horizon
    stance: Stance
    move: InnerLoop
    deviate: InnerLoop
    shift: InnerLoop
    given: "float[:]"
    F: "float[:]"
    g: "float[:]"
    H: "float[:]"
    path: "float[:]"
    acting: "float[:]"
    final: "float[:]"
    A_q: "float[:]"
    A_v: "float[:]"
    A_f: "float[:]"
    f_z: "float[:]"
    curve: "float[:]"
    end_curve: "float[:]"
    weights: "float[:]"
    back: "float[:]"
    bending: "float[:]"
    row: "float[:]"
    exact: "float[:]"
    mixed: "float[:]"
    square: "float[:]"
    gradient: "float[:]"
    costates: "float[:]"
    z: "float[:]"
    w: "float[:]"
    y: "float[:]"
    ratio: "float[:]"
    give: "float[:]"
    pull: "float[:]"
    push: "float[:]"
    dz: "float[:]"
    K: "float[:]"
    kept: "float[:]"
    ds: "float[:]"
    de: "float[:]"
    dlam: "float[:]"
    dy: "float[:]"
    reach: "float[:]"
    reach_dual: "float[:]"
    curve_of_step: "float[:]"
    change: "float[:]"
    lines: "float[:]"
    reached: "float[:]"
    away: "float[:]"
    room: "float[:]"
    scratch: "float[:]"
