"""Impulses of contacts with slots where they couple trees: Newton's method, then sweeps by classes.

Each lane of a warp has a contact. The laws, and what ends sweeps and steps, are those of
``slot_sweeps`` and ``slot_newton``. From the forces of the step before, one step of Newton's method
solves most problems, and costs as much as a few sweeps: these are for what it does not solve.
"""

from kinetree.codegen.procedures import (
    isfinite,
    lane_max,
    lane_sum,
    lanes,
    local,
    procedure,
    view,
)
from kinetree.contact.engine.slot_classes import feel, press, push, speeds_of
from kinetree.contact.engine.slot_laws import SLOT_SIZE, block_of, contact_law_error
from kinetree.contact.engine.slot_newton import (
    FIRM_WEIGHT,
    HEAVY_WEIGHT,
    MAX_NEWTON_STEPS,
    WEIGHT_DECAY,
    laws,
)
from kinetree.contact.engine.slot_sweeps import (
    EXACT_SWEEPS,
    change_of,
    mix,
)
from kinetree.contact.engine.slot_trees import gained_across, order_trees
from kinetree.contact.engine.slot_world import SlotWorld, Unknowns, number_of
from kinetree.contact.engine.slots import report_impulses, wanted_speed

RESTART = 2  # number of the try that begins again from the forces of the step before, with sweeps


@procedure(inline=True)
def visit(world: SlotWorld, its: Unknowns, s: int, sweep: int, enough: float) -> float:
    """Gauss-Seidel update of contact ``s``; the violation of its law before [m/s]."""
    v, old, new = local("float", 3, 3)
    D = local("float", 3, 3)
    block = local("float", 6)
    feel(world, its, s, its.v, v)
    for r in range(3):
        v[r] += its.b[3 * s + r]
        old[r] = its.lam[3 * s + r]
    for r in range(6):
        block[r] = world.own[(r * world.slots + s) * world.own_step]
    block_of(block, D)
    off = contact_law_error(D, its.mu[s], v, old)
    if sweep < world.sweeps and off > enough:
        change_of(D, its.mu[s], v, old, sweep, new)
        push(world, its, s, new, its.v)
        for r in range(3):
            its.lam[3 * s + r] = old[r] + new[r]
    return off


@procedure
def sweep_classes(world: SlotWorld, its: Unknowns, used: int, sweep: int, enough: float) -> float:
    """One coloured Gauss-Seidel sweep over all contacts; the largest violation [m/s]."""
    largest = 0.0
    first = 0
    for c in range(its.ends[0] if used > 0 else 0):
        for k in lanes(its.ends[1 + c] - first):
            largest = max(largest, visit(world, its, first + k, sweep, enough))
        first = its.ends[1 + c]
    return lane_max(largest)


@procedure
def sweep_until(
    world: SlotWorld, its: Unknowns, used: int, enough: float, later: float
) -> "(int, float)":
    """Sweep until no contact's law is violated by over ``enough``; rounds and error [m/s].

    How many, and the error [m/s].
    """
    last = view(its.W, 0, 3 * world.slots, 3)
    error, before, ahead, least = 0.0, 0.0, 1.0, 0.0
    rounds = 0
    for n in range(world.sweeps + 1 if used > 0 else 0):
        for k in lanes(3 * used):
            last[k, 0] = its.lam[k]
        error = sweep_classes(world, its, used, n, enough)
        better = n == 0 or error < least
        for k in lanes(3 * used if better else 0):
            its.w[k] = last[k, 0]
        least = error if better else least
        rounds = n
        if not error > (enough if n < EXACT_SWEEPS else later) or n == world.sweeps:
            break
        before, ahead = mix(world, its, used, world.nv, n, before, ahead)
    if error > enough and error > least:
        for k in lanes(3 * used):
            its.lam[k] = its.w[k]
        press(world, its, used, its.lam, its.v)
        error = least
    return rounds, error


@procedure
def newton_steps(world: SlotWorld, its: Unknowns, used: int, weight: float, enough: float) -> float:
    """Run Newton steps on the contacts of a world, keeping the best; its error [m/s]."""
    least = 0.0
    many = 0
    W = view(its.W, 0, world.slots, 9)
    light = world.proximal_weight
    for n in range(MAX_NEWTON_STEPS + 1):
        speeds_of(world, its, used, its.v)
        firm = max(weight, FIRM_WEIGHT if n % 7 > 4 else light)
        error = laws(world, its, used, firm)
        weight *= WEIGHT_DECAY
        better = n == 0 or error < least
        least = error if better else least
        for k in lanes(3 * used if better else 0):
            its.best[k] = its.lam[k]
        if n == MAX_NEWTON_STEPS or error <= enough or not isfinite(error):
            break
        if n == 0:
            many = order_trees(world, its, used)
        gained_across(world, its, used, many, its.w, W)
        size = 0.0
        for s in lanes(used):
            x = local("float", 3)
            feel(world, its, s, its.older, x)
            for r in range(3):
                y = W[s, 3 * r] * x[0] + W[s, 3 * r + 1] * x[1] + W[s, 3 * r + 2] * x[2]
                its.lam[3 * s + r] -= its.w[3 * s + r] + y
                size += abs(its.lam[3 * s + r])
        error = lane_sum(size)
        if not isfinite(error):  # a pivot vanished; the largest of some errors would not tell
            break
        press(world, its, used, its.lam, its.v)
    if not error <= least:
        for k in lanes(3 * used):
            its.lam[k] = its.best[k]
        press(world, its, used, its.lam, its.v)
    return least


@procedure
def enter_problem(world: SlotWorld, its: Unknowns, used: int) -> float:
    """Copy unknowns and rows of a world's contacts to shared memory; largest velocity."""
    wide = world.slots + 1 - world.slots % 2
    for k in lanes(world.nv + 1):
        its.v[k] = world.z[k * world.z_step] if k < world.nv else 0.0
    for k in lanes(used + 1):
        its.ends[k] = int(world.classes[k * world.classes_step])
    for s in lanes(used):
        carrier = int(world.slot[s * world.slot_step])
        its.carrier[s] = carrier
        its.mu[s] = world.slot[(world.slots + s) * world.slot_step]
        for r in range(3):
            at = number_of(world, s, 3 + r, SLOT_SIZE)
            its.b[3 * s + r] = world.slot[at * world.slot_step]
    for k in lanes(used * world.deep):
        s, d = k % used, k // used
        for r in range(3):
            at = (r * world.deep + d) * world.slots + s
            its.rows[(r * world.deep + d) * wide + s] = world.Y[at * world.Y_step]
    speeds_of(world, its, used, its.v)
    largest = 0.0
    for s in lanes(used):
        target = wanted_speed(world, s, its.w[3 * s], its.b[3 * s])
        its.target[s] = target
        for r in range(3):
            largest = max(largest, abs(its.w[3 * s + r]))
            at = number_of(world, s, 6 + r, SLOT_SIZE)
            its.b[3 * s + r] = its.w[3 * s + r] + world.slot[at * world.slot_step]
        its.b[3 * s] += target
    return lane_max(largest)


@procedure
def start_impulses(world: SlotWorld, its: Unknowns, used: int) -> None:
    """Warm-start a world's contact impulses with the forces of the step before."""
    for s in lanes(used):
        for r in range(3):
            force = world.start[(4 * s + 1 + r) * world.start_step]
            its.lam[3 * s + r] = world.numbers[0] * force
    press(world, its, used, its.lam, its.v)


@procedure
def coupled_impulses(live: int, world: SlotWorld, its: Unknowns) -> None:
    """Solve the contact impulses of a world with coloured contacts, on several lanes."""
    used = int(world.found[0]) if live > 0 else 0
    enough = world.numbers[2] * (1.0 + enter_problem(world, its, used))
    if world.loose[0] > 0.0:
        enough *= world.first
    start_impulses(world, its, used)
    rounds, error = 0, 0.0
    for n in range(world.tries if used > 0 else 0):
        if n == RESTART:
            start_impulses(world, its, used)
        if n > 0:
            more, less = sweep_until(world, its, used, enough, min(world.serious, 2.0) * enough)
            rounds += more
            error = less
            if not error > world.serious * enough:
                break
        heavy = HEAVY_WEIGHT if n % 2 else world.proximal_weight
        error = newton_steps(world, its, used, heavy, enough)
        if not error > world.nearly * enough:
            break
    speeds_of(world, its, used, its.v)
    for s in lanes(used):  # what touches without a force goes on, too
        world.held[(4 * s + 1) * world.held_step] = 1.0 if its.w[3 * s] <= enough else 0.0
    for k in lanes(world.nv if live > 0 else 0):
        world.u[k * world.u_step] = its.v[k] if used > 0 else 0.0
    report_impulses(live, world, its, used)
    if live > 0:
        world.reported[0] = error
        world.reported[5] = float(rounds)


@procedure
def coupled_shift(live: int, world: SlotWorld) -> None:
    """Displacements that remove the penetration of slotted contacts, by coloured sweeps."""
    used = int(world.found[0]) if live > 0 else 0
    v = view(world.work, 0)
    pushed = view(world.work, world.nv)
    for k in lanes(world.nv):
        v[k] = 0.0
    for s in lanes(used):
        pushed[s] = 0.0
    for _ in range(world.rounds):
        first = 0
        for c in range(int(world.classes[0]) if used > 0 else 0):
            end = int(world.classes[(1 + c) * world.classes_step])
            for k in lanes(end - first):
                s = first + k
                carrier = int(world.slot[s * world.slot_step])
                opens = 0.0
                for d in range(world.moves[carrier]):
                    y = world.Y[(d * world.slots + s) * world.Y_step]
                    opens += y * v[world.chain[carrier * world.deep + d]]
                size = world.own[s * world.own_step]
                far = world.opening[s * world.opening_step] + opens
                x = max(-far / size if size > 0.0 else 0.0, -pushed[s])
                for d in range(world.moves[carrier]):
                    y = world.Y[(d * world.slots + s) * world.Y_step]
                    v[world.chain[carrier * world.deep + d]] += x * y
                pushed[s] += x
            first = end
    for k in lanes(world.nv if live > 0 else 0):
        world.shift[k * world.shift_step] = v[k]
