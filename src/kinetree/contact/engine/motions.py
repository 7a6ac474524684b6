"""Motions of one mechanism and scene as rows of numbers: states, inputs, samples, what is stored.

A world, a sample of a rollout and a run of ``simulate`` are motions. An engine has room for one:
``carrying`` copies rows into it and back, ``advance`` takes the steps.
"""

from kinetree.codegen.procedures import record
from kinetree.codegen.tied import Code


@record
class Inputs:
    """Inputs of the steps of a call, beside the forces that are compiled.

    Attributes:
        h: length of a step [s].
        held, held_size, held_world: joint forces, or inputs of forces, during the whole call; from
            where those of a motion are to the next, 0 for the same of all.
        timed, timed_size, timed_world, timed_step: likewise, of every step; inputs have them first.
        driven: 1 where ``timed`` are controls of actuators.
        pushed: 1 where motions have their own external forces;  push: wrenches, those of a motion
            one after another.
        activation, states: of actuators, and how many.
        controlled: 1 where ``WorkerState.control`` writes what is held.
        clocked: 1 where times of steps are counted from ``start`` [s], at which the step ``base``
            begins: so they have no rounding errors that add up.
    """

    h: float
    held: "float[:]"
    held_size: int
    held_world: int
    timed: "float[:]"
    timed_size: int
    timed_world: int
    timed_step: int
    driven: int
    pushed: int
    push: "float[:, 6]"
    activation: "float[:]"
    states: int
    controlled: int
    clocked: int
    start: float
    base: int


@record
class Samples:
    """Numbers of the mechanism and the scene in which motions differ.

    Attributes:
        gains: 1 where motions have their own;  gain: gains and biases of ``Actuators``, in turn.
        shaped: 1 where motions have their own shapes;  shape: friction, restitution, size, radius,
            thin, box and place of all.
        bodies: 1 where motions have their own inertias, 2 where they have all their own numbers;
            inertia, body, gravity: as in ``model.general.tables``: body has placement, armature and
            dynamics;  joint: armature, damping and stiffness of the variables.
        rough: 1 where motions have their own levels of dry friction;  level: as ``Rows.dry_level``.
    """

    gains: int
    gain: "float[:, 6]"
    shaped: int
    shape: "float[:, 27]"
    bodies: int
    inertia: "float[:, 10]"
    body: "float[:, 43]"
    gravity: "float[:, 3]"
    joint: "float[:, 3]"
    rough: int
    level: "float[:]"


@record
class Storage:
    """Stored states: that of time ``k`` and motion ``w`` is number ``k * worlds + w``.

    Attributes:
        every: steps between stored states, 0 for none;  last: the step that is always stored.
        pending: -1, or the number of the time at which every step is stored until it is kept.
        q, v, work: of the states, one after another; work since the start [J].
        columns: contacts that scenes of few pairs can have, whose forces are stored, 0 for none;
            dense: these forces;  column: of two shapes, that of the feature 0, or -1;  points: how
            many they have.
        full: 1 where there is also what follows.
        nj: forces of stops, dry friction and loops;  joints: these;  push: those of contacts, stops
            and dry friction at the variables, where some move prescribed.
        kinetic, potential: energies of the bodies [J].
        residuals: of the steps since the state before: the worst, and sums of energies.
        most: contacts that a motion has room for, in all its states;  first: of a state and
            motion, where they begin; those of the next state and motion begin where they end;  key:
            shapes and features;  force: along normal and tangents [N].
    """

    every: int
    last: int
    pending: int
    q: "float[:]"
    v: "float[:]"
    work: "float[:]"
    columns: int
    dense: "float[:, 3]"
    column: "int[:]"
    points: "int[:]"
    full: int
    nj: int
    joints: "float[:]"
    push: "float[:]"
    kinetic: "float[:]"
    potential: "float[:]"
    residuals: "float[:, 10]"
    most: int
    first: "int[:]"
    key: "int[:, 3]"
    force: "float[:, 3]"


@record
class Motions:
    """Rows of all motions, and what a call does with them.

    Attributes:
        worlds: how many;  steps: of the call;  done: steps before it.
        row: state and memory, ``width`` numbers each in the order of ``carry``;  number: what of it
            are integers, ``whole`` each.
        room: contacts that a motion can have;  key, kept, ended, spot, bent: rows as in ``Rows``.
        failed: 0, or the code of why the motion stands still;  raises: 1 where the call ends then.
        total: as ``Parts.total``, since the caller has set them to zero; work since the start.
        last: velocities before the last step;  bare: 1 where no row had a force in it.
        since, counts: of the call, as in ``Parts``;  overlap: at the end of the last step, infinite
            where it is not known.
        ends: contacts with forces, islands, trees asleep, steps taken;  errors: residual, margin.
        lists: 1 where the following is wanted after a call;  listed: how many contacts had rows in
            the last step;  place: their points, normals, gaps, friction, restitution, forces and
            moments, velocities;  which: shapes, feature, bodies.
    """

    worlds: int
    steps: int
    done: int
    width: int
    whole: int
    row: "float[:]"
    number: "int[:]"
    room: int
    key: "int[:, 3]"
    kept: "float[:, 6]"
    ended: "float[:, 3]"
    spot: "float[:, 3]"
    bent: "float[:, 3]"
    failed: "int[:]"
    raises: int
    inputs: Inputs
    samples: Samples
    storage: Storage
    total: "float[:, 11]"
    since: "float[:, 12]"
    counts: "int[:, 6]"
    overlap: "float[:]"
    last: "float[:]"
    bare: "int[:]"
    ends: "int[:, 4]"
    errors: "float[:, 2]"
    lists: int
    listed: "int[:]"
    place: "float[:, 18]"
    which: "int[:, 5]"


@record
class WorkerState:
    """Progress of one thread.

    Attributes:
        world, end: the motion, and that before which it ends;  step: of the motion in the call, -1
            before it;  flew: 1 where nothing was near in the last one.
        due: number of the time at which the present state is to be stored, or -1.
        loaded: 1 where its engine has the memory of the only motion, and rows only its state.
        left: steps that it may take before it returns, so that it can be interrupted.
        flies: 1 where steps without any row are those of an integrator;  flight: its code, with its
            length, its work and, where it solves equations, its last correction;  defect: the
            largest correction.
        control: code of a controller, which writes what is held;  answered: 1 where Python has.
        pivot: smallest one of the inertia matrix so far, relative to its diagonal.
        inertia, placement, armature, dynamics, gravity: tables that the code of the engine reads.
    """

    world: int
    end: int
    step: int
    left: int
    flew: int
    due: int
    loaded: int
    flies: int
    flight: Code
    flown: "float[:]"
    length: "float[:]"
    correction: "float[:]"
    defect: float
    control: Code
    answered: int
    pivot: float
    inertia: "float[:, 10]"
    placement: "float[:, 12]"
    armature: "float[:, 6]"
    dynamics: "float[:, 25]"
    gravity: "float[:, 3]"
