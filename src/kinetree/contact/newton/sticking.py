"""Sticking first: which solution of an island is taken where Coulomb's law allows several.

Newton's method for Coulomb's law starts from the last step, and what it finds is the answer if
every contact that acts sticks, or if one slides so fast that it cannot stop within the step: motion
goes on continuously. Otherwise contacts slide that might stick. Then the convex problem without De
Saxcé's shift decides, whose velocity is unique. If everything sticks there, that is the answer. If
not, and contacts have begun to slide in this step, the answer is the one that Newton's method finds
from a few changes of the shift, beginning there. None of this depends on the order of contacts, so
that symmetric problems have symmetric solutions. Where contacts have no mirror images and bodies
are fast, as in piles that fall, it is the first answer, which nearly always is found again.
"""

from kinetree.codegen.procedures import local, procedure, sqrt, view
from kinetree.contact.newton.condensed import LEAST
from kinetree.contact.newton.cones import OPEN, SLIDING, STICKING, most_used, slip
from kinetree.contact.newton.convex import minimise
from kinetree.contact.newton.equations import evaluate
from kinetree.contact.newton.island import AIM, solve_coulomb
from kinetree.contact.newton.matrix import is_loop
from kinetree.contact.newton.polish import SPEED_OF_PILES, polish, speed_error
from kinetree.contact.newton.problem import BOUNDS, CONE, Problem, Work, row_velocity
from kinetree.contact.newton.start import is_slow, kinds, prepare

__all__ = ["solve_island"]

FAST, SHARE = 3.0, 0.1
"""Sliding speed before and after a step, in units of what friction changes of it by itself, from
which on a contact cannot stop within the step; and the part of the largest impulse of the island
that a contact is taken to carry at least."""

GROWTH = 1e3
"""Growth of impulses from which on another solution is none: there may be no solution."""

SWOLLEN = 30.0
"""Growth of impulses in a step from which on smaller ones are looked for: where bodies are jammed
friction can hold any load, and a large one leaves nothing of the accuracy of velocities."""

KEPT = 0.5
"""Ratio of the speeds before and after, or after and before, from which on a contact that slid
before goes on sliding."""

AT_BOUND = 1e-6
"""Part of the largest friction by which that of a contact that slides may be less."""

MANY = 16
"""Bounds that are left at once from which on Newton's method may change one state at a time."""

SMALL = 60
"""Velocities of an island up to which contacts that begin to slide are looked at together; in
larger ones nothing is symmetric."""

ALIKE = 1e-6
"""Relative difference of mobilities up to which contacts may be mirror images of each other."""

WRONG, EXACTLY = 3e-5, 1e-2
"""Error of velocities [m/s or rad/s] from which on an island is solved once more; and the part of
the tolerance to which it is."""

CHANGES, CHANGED = 2, 1e-2
"""Changes of De Saxcé's shift before Newton's method, and the relative error of each."""


@procedure
def rubs_at(problem: Problem, lam: "float[:]", g: int) -> bool:
    """Whether a contact's friction impulse is at its Coulomb limit."""
    dim = problem.dim[g]
    if problem.kind[g] != CONE or dim == 1 or lam[0] <= 0.0:
        return False
    return most_used(lam, dim) >= (1.0 - AT_BOUND) * problem.mu[g] * lam[0]


@procedure
def speed_before(problem: Problem, g: int) -> float:
    """Sliding speed of a contact at the velocities before the step [m/s]."""
    w = local("float", 6)
    dim = problem.dim[g]
    row_velocity(problem, g, problem.velocity, w)
    w[:dim] += problem.target[problem.row_first[g] : problem.row_first[g] + dim]
    return slip(w, dim)


@procedure
def sliding(problem: Problem, work: Work, island: int, size: float) -> "(int, bool)":
    """How an island's contacts slide: STICKING, SLIDING or OPEN; whether one just began to slide.

    STICKING: none does; SLIDING: one cannot stop within the step; OPEN: all of them might. In small
    islands contacts that have just begun are looked at whatever the others do.
    """
    kind = STICKING
    begins = goes_on = False
    least = problem.tolerance * size
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        d = work.delassus[g]
        speed = slip(view(work.w, first), problem.dim[g])
        if speed * speed <= least * least * d or not rubs_at(problem, lam, g):
            continue
        kind = OPEN
        before = speed_before(problem, g)
        stopped = FAST * problem.mu[g] * max(lam[0] * d, SHARE * size * sqrt(d))
        if min(speed, before) > stopped:
            return SLIDING, False
        slid = rubs_at(problem, view(work.lam_last, first), g)
        begins = begins or not slid
        goes_on = goes_on or (slid and min(speed, before) > KEPT * max(speed, before))
    if goes_on and not (begins and is_small(work, island)):
        kind = SLIDING
    return kind, begins


@procedure
def has_friction(problem: Problem, work: Work, island: int) -> bool:
    """Whether an island has a contact with tangential rows."""
    found = False
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        found = found or (problem.kind[g] == CONE and problem.dim[g] > 1)
    return found


@procedure
def is_convex(problem: Problem, work: Work, island: int) -> bool:
    """Whether a large island of joints has bounds alone, many of them violated.

    So are shifts of positions of a net that lies on the ground.
    """
    dofs = work.island_dofs_first[island + 1] - work.island_dofs_first[island]
    if dofs < LEAST or problem.condenses == 0 or problem.most_newton == 0:
        return False
    single, alone = kinds(problem, work, island)
    left = 0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        if problem.kind[g] == BOUNDS and not is_loop(problem, g):
            left += 1 if problem.target[problem.row_first[g]] < 0.0 else 0
    return single and not alone and left >= MANY


@procedure
def is_small(work: Work, island: int) -> bool:
    """Whether an island has at most ``SMALL`` velocities."""
    return work.island_dofs_first[island + 1] - work.island_dofs_first[island] <= SMALL


@procedure
def mobility(problem: Problem, work: Work, g: int) -> float:
    """Normal velocity of a contact per unit normal impulse, by the diagonal of ``M``."""
    d = 0.0
    for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
        node = problem.entry_node[e]
        J = view(problem.J, problem.entry_at[e])
        inverse = view(work.inverse, problem.node_first[node])
        for c in range(problem.node_count[node]):
            d += J[c] * J[c] * inverse[c]
    return d


@procedure
def has_twin(problem: Problem, work: Work, island: int, g: int) -> bool:
    """Whether an island has another contact of nearly the same mobility as ``g``."""
    own = mobility(problem, work, g)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        other = work.island_group[k]
        if other == g or problem.kind[other] != CONE:
            continue
        if abs(mobility(problem, work, other) - own) <= ALIKE * own:
            return True
    return False


@procedure
def may_be_symmetric(problem: Problem, work: Work, island: int, size: float) -> bool:
    """Whether every sliding contact of an island may have a mirror image in it."""
    least = problem.tolerance * size
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        speed = slip(view(work.w, first), problem.dim[g])
        if speed * speed <= least * least * work.delassus[g]:
            continue
        if rubs_at(problem, view(work.lam, first), g) and not has_twin(problem, work, island, g):
            return False
    return True


@procedure
def looks_further(problem: Problem, work: Work, island: int, forces: float, size: float) -> bool:
    """Whether an island with sliding contacts should be solved from other starts, too.

    What is slow may come to rest, which an uneven load prevents. Symmetric problems want symmetric
    solutions. And another start helps where velocities are not right in metres per second.
    """
    if is_slow(work, island, forces) or speed_error(problem, work, island) > SPEED_OF_PILES:
        return True
    return may_be_symmetric(problem, work, island, size)


@procedure
def hold_shifts(problem: Problem, work: Work, island: int, size: float) -> None:
    """Fix friction shifts: ``mu`` times the previous speed of too fast contacts, else zero."""
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        work.shift[g] = 0.0
        if problem.kind[g] == CONE and problem.dim[g] > 1:
            mu = problem.mu[g]
            d = work.delassus[g]
            speed = speed_before(problem, g)
            if speed > FAST * mu * max(work.lam[problem.row_first[g]] * d, SHARE * size * sqrt(d)):
                work.shift[g] = mu * speed


@procedure
def load_before(problem: Problem, work: Work, island: int) -> float:
    """Largest scaled impulse of the last step, or momentum before this step, of an island."""
    most = 0.0
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        x = problem.velocity[i]
        most = max(most, x * x / work.inverse[i])
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        for r in range(problem.row_first[g], problem.row_first[g] + problem.dim[g]):
            x = work.lam_last[r]
            most = max(most, work.delassus[g] * x * x)
    return sqrt(most)


@procedure
def start_again(problem: Problem, work: Work, island: int, part: float) -> None:
    """Reset an island to the velocities before the step, and ``part`` of the last impulses."""
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        work.v[i] = problem.velocity[i]
    take_impulses(problem, work, island, part)


@procedure
def take_impulses(problem: Problem, work: Work, island: int, part: float) -> None:
    """Set an island's impulses to ``part`` times those of the last step."""
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        for r in range(problem.row_first[g], problem.row_first[g] + problem.dim[g]):
            work.lam[r] = part * work.lam_last[r]


@procedure
def change_shifts(problem: Problem, work: Work, island: int) -> None:
    """Set the friction shifts ``mu |slip|`` of an island from its present velocities."""
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        if problem.kind[g] == CONE and problem.dim[g] > 1:
            speed = slip(view(work.w, problem.row_first[g]), problem.dim[g])
            work.shift[g] = problem.mu[g] * speed


@procedure
def keep_first(problem: Problem, work: Work, island: int, back: bool) -> None:
    """Store an island's velocities and impulses, or restore the stored ones if ``back``."""
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        if back:
            work.v[i] = work.v_first[i]
        else:
            work.v_first[i] = work.v[i]
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        for r in range(problem.row_first[g], problem.row_first[g] + problem.dim[g]):
            if back:
                work.lam[r] = work.lam_first[r]
            else:
                work.lam_first[r] = work.lam[r]
    if back:
        evaluate(problem, work, island)


@procedure
def clear_shifts(work: Work, island: int) -> None:
    """Set De Saxcé's shifts of an island's contacts to zero."""
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        work.shift[work.island_group[k]] = 0.0


@procedure
def solve_island(problem: Problem, work: Work, island: int) -> "(bool, float)":
    """Solve one island; whether the tolerance is reached, and the scale of its errors."""
    left = problem.left
    reached, size = choose_solution(problem, work, island)
    if problem.left == left and problem.most_newton > 0:
        before = polish(problem, work, island, size)
        if before > WRONG and reached:
            solve_more_exactly(problem, work, island, size, before)
            before = speed_error(problem, work, island)
            if before > WRONG:
                size = solve_unloaded(problem, work, island, size, before)
    return reached, size


@procedure
def solve_more_exactly(
    problem: Problem, work: Work, island: int, forces: float, before: float
) -> None:
    """Solve an island again to a smaller tolerance, keeping the result if better.

    Errors are relative to the largest impulse, which is large where bodies are jammed. What is not
    better than ``before`` does not count.
    """
    keep_first(problem, work, island, False)
    tolerance = problem.tolerance
    coarse = problem.coarse
    problem.tolerance *= EXACTLY
    problem.coarse = 0.0
    solve_coulomb(problem, work, island, forces, False)
    polish(problem, work, island, forces)
    problem.tolerance = tolerance
    problem.coarse = coarse
    if not speed_error(problem, work, island) < before:
        keep_first(problem, work, island, True)


@procedure
def solve_unloaded(
    problem: Problem, work: Work, island: int, forces: float, before: float
) -> float:
    """Solve an island again from zero impulses, keeping the result if better; error scale.

    Friction of bodies that are jammed can hold any load. One that has grown from step to step, to
    10,000 times the weights of 50 balls, leaves nothing of the accuracy of velocities, and nothing
    but the last step asks for it. What is not better than ``before`` does not count.
    """
    keep_first(problem, work, island, False)
    own = prepare(problem, work, island)
    if forces <= GROWTH * own:
        keep_first(problem, work, island, True)
        return forces
    coarse = problem.coarse
    problem.coarse = 0.0
    start_again(problem, work, island, 0.0)
    clear_shifts(work, island)
    evaluate(problem, work, island)
    reached, _, size = solve_coulomb(problem, work, island, own, True)
    polish(problem, work, island, size)
    problem.coarse = coarse
    if reached and speed_error(problem, work, island) < before:
        return size
    keep_first(problem, work, island, True)
    return forces


@procedure
def choose_solution(problem: Problem, work: Work, island: int) -> "(bool, float)":
    """Solve an island, preferring solutions that stick; success, and the scale of errors."""
    forces = prepare(problem, work, island)
    work.swept = 0
    left = problem.left
    convex = is_convex(problem, work, island) and problem.again == 0
    if convex:  # from anywhere
        clear_shifts(work, island)
        minimise(problem, work, island, forces, problem.tolerance, False)
    reached, error, size = solve_coulomb(problem, work, island, forces, not convex)
    rough = problem.left > left  # another call finishes it
    if reached and not has_friction(problem, work, island):  # as in shifts of positions
        problem.error = max(problem.error, error)
        return reached, size
    kind, begins = sliding(problem, work, island, size)
    swollen = size > SWOLLEN * max(forces, load_before(problem, work, island))
    if rough or problem.most_newton == 0 or (reached and kind != OPEN and not swollen):
        problem.error = max(problem.error, error)
        return reached, size
    keep_first(problem, work, island, False)
    hold_shifts(problem, work, island, size)
    small = is_small(work, island)
    lost = swollen or not reached
    changes = lost
    if small and (begins or work.swept == 1):
        changes = changes or looks_further(problem, work, island, forces, size)
    state = STICKING
    if not lost:  # velocities are unique, and those at hand are near
        if changes:
            take_impulses(problem, work, island, 0.0)
        state = minimise(problem, work, island, forces, AIM * problem.tolerance, not changes)
    if state == STICKING:
        # In small islands what an uneven load has begun would go on, and so would a large one.
        start_again(problem, work, island, 0.0 if small or swollen else 1.0)
        state = minimise(problem, work, island, forces, AIM * problem.tolerance, False)
    if state != STICKING and changes:
        for _ in range(CHANGES):
            change_shifts(problem, work, island)
            minimise(problem, work, island, forces, CHANGED, False)
        state = STICKING
    if state == STICKING:
        solved, other, scale = solve_coulomb(problem, work, island, forces, False)
        if swollen and reached and scale > size / 2.0:
            solved = False  # nothing smaller
        if scale <= GROWTH * size and (solved or (not reached and other < error)):
            problem.error = max(problem.error, other)
            return solved, scale
    keep_first(problem, work, island, True)
    problem.error = max(problem.error, error)
    return reached, size
