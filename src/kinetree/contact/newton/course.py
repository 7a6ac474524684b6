"""Course of the solution of one island: errors, limits, and what was tried."""

from kinetree.codegen.procedures import record


@record
class Course:
    """Course of the solution of one island, see ``island``.

    Attributes:
        error: largest scaled error;  size: what it is relative to;  forces: least of that.
        most: size of impulses beyond which there may be no solution;  bound: of those of one step.
        best: least relative error of an island that was stored.
        coarse, loose: relative errors that end it: left to another call; in piles that move.
        stress: ``r`` in units of 1 / d, to begin with.
        dofs: velocities;  large: many of them;  single: groups have one row each;  alone: so are
            all bodies.
        steps, inner: of Newton's method, and of the interior-point method that do not count.
        since: steps since the last other way was tried;  patience: how many before the next one.
        factored: kind of the last matrix, -1 for none.
        fast: the last step was one of quick convergence;  slow: steps in a row that were not.
        short: steps in a row that had to be cut;  changes: those cut where a state changes;
            crawls: steps in a row that left most of a large error since then.
        rounds: other ways that were tried;  stalled: those that failed;  sweeps_left: sweeps may
            help once more;  length: iterations of the alternating direction method.
        inside: relative error from which on the interior-point method starts;  level: at which it
            hands back;  hands: at first;  anew: it starts anew.
        within: it was the last where joints have stops: no impulse is at a bound.
        enough_moving: it moves, and is as good as it gets soon.
    """

    error: float
    size: float
    forces: float
    most: float
    bound: float
    best: float
    coarse: float
    loose: float
    stress: float
    dofs: int
    large: bool
    single: bool
    alone: bool
    steps: int
    inner: int
    since: int
    patience: int
    factored: int
    fast: bool
    slow: int
    short: int
    changes: int
    crawls: int
    rounds: int
    stalled: int
    sweeps_left: bool
    length: int
    inside: float
    level: float
    hands: float
    anew: bool
    within: bool
    enough_moving: bool
