"""Records of a step: settings, state and results, the kernels that it calls, and all its parts."""

import numpy as np

from kinetree.codegen.procedures import record
from kinetree.codegen.tied import Code
from kinetree.contact.collision.sweep import Pairs
from kinetree.contact.collision.tables import Found, Shapes, Special, Touch
from kinetree.contact.engine.actuator_tables import Actuators
from kinetree.contact.engine.direct import Direct, direct_of
from kinetree.contact.engine.energy import Balance, Flight
from kinetree.contact.engine.joint_laws import JointLaws
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.pushes import Pushes
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.engine.sharing import Sharing, sharing_of
from kinetree.contact.engine.sleep import Sleep
from kinetree.contact.engine.undoing import Before
from kinetree.contact.newton.problem import Problem, Work

NO_INERTIA, FULL, WORK_FULL, FOUND_FULL, IN_FLIGHT, WOKEN, NO_CONTROL = -1, -2, -3, -4, -5, -6, -9
NO_TRUST = -7
"""Codes of steps that were not taken: a joint moves no inertia (``StepState.culprit``), lists of
rows, of the solver, of contacts are too small, nothing is near and flight was requested, something
that slept was hit or something bounces (the step is taken again), or controls are not finite."""


@record
class Kernels:
    """The kernels of ``terms``, each tied to what it reads and writes.

    Attributes:
        to_middle: ``q_m, v_m`` from ``q, v`` in ``part[0]`` seconds.
        to_end: ``q_e, v_e`` from ``q_m, after``.
        to_shifted: the same, on the way that ``x`` leads.
        terms: ``pose, S, F`` at ``q_m``.
        bias: at ``q_m, mean``, and the accelerations ``given``;  fluid: forces of fluids there.
        springs: at ``q, v``;  arms: of actuators, where they change, at ``q_m``;
            moving_springs, moving_rows: lengths and arms of springs of tendons through space and of
            loop joints, positions and arms of all of these, carried: gravity compensation, there.
        prescribed: ``given, given_v, given_x, end_q, end_v`` of a step of ``part[0]`` seconds.
        forces: ``held`` at ``time, q, v, inputs``;  resistance: ``more_K, more_D`` at the same.
        terms_before, terms_after: the same at ``q`` and at ``q_e``, for ``Flight``.
        poses_after: poses alone, at ``q_e``.
        energy_before: of the bodies at ``q, v``;  energy_after: at ``q_e, v_e``.
        loops: rows and errors at ``q_m``;  loops_end: at ``q_e``.
    """

    to_middle: Code
    to_end: Code
    to_shifted: Code
    terms: Code
    bias: Code
    fluid: Code
    springs: Code
    arms: Code
    moving_springs: Code
    moving_rows: Code
    carried: Code
    prescribed: Code
    forces: Code
    resistance: Code
    terms_before: Code
    terms_after: Code
    poses_after: Code
    energy_before: Code
    energy_after: Code
    loops: Code
    loops_end: Code


@record
class StepState:
    """Settings, state and results of a step.

    Attributes:
        h: length [s].
        rest, correction, deep, closed, settled: ``TimeStepping.rest_velocity``, its
            ``correction_speed`` in velocity units, and the constants of ``settings``.
        conserving: whether velocities give way where energy would be gained.
        flying: whether a step with no row at all is left to an integrator.
        springs, carries, immersed, forced, resists: whether there are such kernels.
        time: [s];  inputs, inputs_count: of forces, held;  own_K, own_D, more_K, more_D: stiffness
            and damping of joints, and of forces.
        margin: least gap up to which contacts are found [m].
        q, v: state;  held: joint forces beside those of actuators;  tau: all of them;  q_m, v_m: in
            the middle;  q_e, v_e: at the end.
        free, after, mean: velocities without and with constraints, and their mean with ``v_m``.
        ahead: velocities with which bodies come to ``q_m``;  later: change to expect after a
            bounce.
        began: velocities with which the last step began.
        change: of the velocities, by which the mean one is foreseen;  last: that of the last step.
        given: accelerations of prescribed variables, and zero;  given_v: their velocities
            at the end;  given_x: those with which they come to their places from the middle on.
        bias, spring, carried, fluid, x, y: joint forces, and auxiliary vectors;  resist: what
            springs, dampers and servos exert less in the step, since they move.
        across: part of that which ``M`` has no place for, at velocities that are foreseen.
        guided: 1 where code says how they move;  places, placed: position variables of theirs, and
            how many;  end_q, end_v: positions and velocities of prescribed variables at the end.
        drive: impulses that the drives of prescribed variables exert;  push: those of contacts,
            stops and dry friction, where there are such variables.
        factors: of ``M``;  numbers: how many;  direct: room to solve by them;  sharing: of islands
            among threads.
        before, unheld: velocities of the bodies before the step and without constraints.
        residuals: of the step, as ``history.Residuals``.
        work: of all forces [J].
        culprit: variable that moves no inertia.
        near: gap below which contacts had to be looked at [m].
        turn: largest angle, squared, by which a body with a shape has turned in a step [rad²], and
            turner: that body, since the engine was made.
        at_start: 1 where contacts are looked at where the step begins, not in its middle.
        overlap: largest one of shapes at the end [m];  overlap_before: of the last step;
        arrives: overlap up to which features that arrive at the end are left to the next step [m];
            arrived: how often they were added.
        passes, tried, newton, factored: effort of the last step;  unsolved: islands without a
            solution.
    """

    h: float
    rest: float
    correction: float
    deep: float
    closed: float
    settled: float
    margin: float
    conserving: int
    flying: int
    springs: int
    carries: int
    immersed: int
    forced: int
    resists: int
    time: "float[:]"
    inputs: "float[:]"
    inputs_count: int
    own_K: "float[:]"
    own_D: "float[:]"
    more_K: "float[:]"
    more_D: "float[:]"
    q: "float[:]"
    v: "float[:]"
    held: "float[:]"
    tau: "float[:]"
    q_m: "float[:]"
    v_m: "float[:]"
    q_e: "float[:]"
    v_e: "float[:]"
    free: "float[:]"
    after: "float[:]"
    mean: "float[:]"
    bias: "float[:]"
    spring: "float[:]"
    carried: "float[:]"
    fluid: "float[:]"
    resist: "float[:]"
    across: "float[:]"
    ahead: "float[:]"
    later: "float[:]"
    began: "float[:]"
    change: "float[:]"
    last: "float[:]"
    given: "float[:]"
    given_v: "float[:]"
    given_x: "float[:]"
    guided: int
    places: "int[:]"
    placed: int
    end_q: "float[:]"
    end_v: "float[:]"
    drive: "float[:]"
    push: "float[:]"
    x: "float[:]"
    y: "float[:]"
    part: "float[:]"
    factors: "float[:]"
    numbers: int
    direct: Direct
    sharing: Sharing
    before: "float[:, 6]"
    unheld: "float[:, 6]"
    residuals: "float[:]"
    work: float
    culprit: int
    near: float
    turn: float
    turner: int
    alpha: float
    at_start: int
    overlap: float
    overlap_before: float
    arrives: float
    arrived: int
    passes: int
    tried: int
    factored: int
    newton: int
    unsolved: int


def step_of(tree, problem: Problem) -> StepState:
    """``StepState`` of zeros for a spanning tree, with the inertia entries of its problem."""
    n, nv = tree.body_count + 1, tree.nv
    vectors = ("v", "tau", "v_m", "v_e", "free", "after", "mean", "bias", "spring", "x", "y")
    vectors += ("ahead", "later", "began", "change", "last", "given", "given_v", "given_x", "drive")
    vectors += ("end_v", "push")
    vectors += ("more_K", "more_D", "held", "resist", "across", "carried", "fluid")
    return StepState(
        **{k: np.zeros(tree.nq) for k in ("q", "q_m", "q_e", "end_q")},
        **{k: np.zeros(nv) for k in vectors},
        part=np.zeros(1),
        time=np.zeros(1),
        factors=np.zeros(max(len(problem.M), 1)),
        numbers=len(problem.M),
        direct=direct_of(nv),
        sharing=sharing_of(problem),
        before=np.zeros((n, 6)),
        unheld=np.zeros((n, 6)),
        residuals=np.zeros(10),
    )


@record
class Parts:
    """All that steps read and write, as one argument: a call is quicker with few.

    Attributes:
        drives: actuators;  springs: of tendons and loop joints;  pushes: external forces.
        joint_laws: smooth friction and stiff limits of joints.
        before: what the step began with.
        total: residuals of the steps of a call: the worst, and sums of energies; and the work.
        limits: of steps that can be trusted: error of velocities [m/s or rad/s], overlap [m], and
            gain of energy as a part of the kinetic energy.
        since: as ``total``, of all steps since the last report, and the sum of gains.
        counts: steps since the last report, how many of them cannot be trusted, the first of
            these, and how many miss each limit.
        strict: 1 where a step that cannot be trusted ends a call;  warned: 1 where nobody is to be
            told of the first one, or has been.
        late: contacts at the end of a step;  worst: shapes that overlap most there, or -1, (1, 2).
        most_turn: of ``StepState.turn``, beyond which a call returns 1.
    """

    step: StepState
    mechanism: Mechanism
    problem: Problem
    work: Work
    rows: Rows
    shapes: Shapes
    special: Special
    pairs: Pairs
    touch: Touch
    found: Found
    late: Found
    worst: "int[:, 2]"
    balance: Balance
    flight: Flight
    kernels: Kernels
    sleep: Sleep
    before: Before
    drives: Actuators
    springs: Actuators
    pushes: Pushes
    joint_laws: JointLaws
    total: "float[:]"
    limits: "float[:]"
    since: "float[:]"
    counts: "int[:]"
    strict: int
    warned: int
    most_turn: float
