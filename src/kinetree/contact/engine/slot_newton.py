"""Impulses of contacts with slots by steps of Newton's method, from where sweeps end."""

from kinetree.codegen.procedures import (
    dot,
    lane_max,
    lane_sum,
    lanes,
    local,
    procedure,
    sqrt,
    vector,
    view,
    worlds_max,
)
from kinetree.contact.engine.slot_laws import along, effect_of_impulses, speeds
from kinetree.contact.engine.slot_world import SlotWorld, Unknowns, number_of

MAX_NEWTON_STEPS = 20  # at most
FIRM_WEIGHT = 3e-2  # weight of staying in two of seven steps of Newton
HEAVY_WEIGHT = 0.3  # weight in the first step of every other try
WEIGHT_DECAY = 0.7  # weight of the next step


@procedure
def laws(world: SlotWorld, its: Unknowns, used: int, proximal_weight: float) -> float:
    """Largest violation of contact laws [m/s], and the blocks ``W`` of the Newton matrix.

    With ``off``, what ``missed`` looks at, and ``P``, the derivatives of its projections with
    respect to ``y``: of ``B = a (1 + proximal_weight - P)`` the products ``W = B⁻¹ P``, and
    ``B⁻¹ off`` in place of ``w``.
    """
    W = view(its.W, 0, world.slots, 9)
    most = 0.0
    for s in lanes(used):
        a = world.own[number_of(world, s, 0, 6) * world.own_step]
        a += world.own[number_of(world, s, 2, 6) * world.own_step]
        a = (a + world.own[number_of(world, s, 5, 6) * world.own_step]) / 3.0
        mu = its.mu[s]
        x = a * view(its.lam, 3 * s, 3)
        y = x - view(its.w, 3 * s, 3)
        n = max(y[0], 0.0)
        t = sqrt(y[1] * y[1] + y[2] * y[2])
        slides = t > mu * n
        part = mu * n / t if slides else 1.0
        off = vector(x[0] - n, x[1] - part * y[1], x[2] - part * y[2])
        most = max(most, abs(off[0]), abs(off[1]), abs(off[2]))
        near = 1.0 / (proximal_weight * a) if a > 0.0 else 0.0
        far = 1.0 / ((1.0 + proximal_weight) * a) if a > 0.0 else 0.0
        W[s] = 0.0
        if not slides:
            off *= near
            for r in range(3):
                W[s, 4 * r] = near
        elif n > 0.0:  # along the force, and across
            c, e = y[1] / t, y[2] / t
            across = near / (1.0 + (1.0 - part) / proximal_weight)
            d = near * off[0]
            f = far * (off[1] * c + off[2] * e + mu * a * d)
            g = across * (off[2] * c - off[1] * e)
            off[:] = vector(d, f * c - g * e, f * e + g * c)
            across *= part
            W[s] = vector(
                near,
                0.0,
                0.0,
                near * mu * c,
                across * e * e,
                -across * c * e,
                near * mu * e,
                -across * c * e,
                across * c * c,
            )
        else:
            off *= far
        for r in range(3):
            its.w[3 * s + r] = off[r]
    return lane_max(most)


@procedure
def fill_newton_system(world: SlotWorld, its: Unknowns, used: int, most: int) -> None:
    """Assemble the Newton matrix ``K = 1 + Yᵀ W Y`` and the right side ``older = -Yᵀ w``.

    Like the inertia matrix, this one has numbers where one variable moves the other one, and keeps
    this pattern (RBDA section 6.5): ``K`` has those before and on the diagonal along chains, then
    those above the diagonal. A world that is masked out has none of the contacts ``used``.
    """
    above = view(world.K, world.inverses)
    W = view(its.W, 0, world.slots, 9)
    for k in lanes(2 * world.inverses if used > 0 else 0):
        world.K[k] = 0.0
    for k in lanes(world.nv if used > 0 else 0):
        world.K[world.begin[world.owner[k] * world.deep + world.level[k]] + world.level[k]] = 1.0
        its.older[k] = 0.0
    for s in range(most):
        here = s < used
        i = its.carrier[s] if here else 0
        at = i * world.deep
        for d in lanes(world.moves[i] if here else 0):
            y = local("float", 3)
            for r in range(3):
                y[r] = world.Y[((3 * s + r) * world.deep + d) * world.Y_step]
            its.older[world.chain[at + d]] -= dot(y, view(its.w, 3 * s, 3))
            y[:] = y @ view(W[s], 0, 3, 3)
            for e in range(world.moves[i] if W[s, 0] > 0.0 else 0):
                x = 0.0  # one sum in memory a pair: each waits for the one before
                for r in range(3):
                    x += y[r] * world.Y[((3 * s + r) * world.deep + e) * world.Y_step]
                if e <= d:
                    world.K[world.begin[at + d] + e] += x
                else:
                    above[world.begin[at + e] + d] += x


@procedure
def solve_newton_system(world: SlotWorld, its: Unknowns, used: int, most: int) -> None:
    """Solve ``(1 + Yᵀ W Y) older = -Yᵀ w`` by sparse factorisation along the tree's chains."""
    fill_newton_system(world, its, used, most)
    above = view(world.K, world.inverses)
    z = view(its.older, 0)
    for n in range(2 * world.nv):  # inward, then outward
        k = world.nv - 1 - n if n < world.nv else n - world.nv
        at = world.owner[k] * world.deep
        long = world.level[k]
        row = world.begin[at + long]
        if worlds_max(1 if used > 0 and world.K[row + long] != 1.0 else 0) == 0:
            continue  # no contact feels it
        x = 0.0
        if n < world.nv:
            for d in lanes(long if used > 0 else 0):
                part = above[row + d] / world.K[row + long]
                z[world.chain[at + d]] -= part * z[k]
                for e in range(d + 1):
                    world.K[world.begin[at + d] + e] -= part * world.K[row + e]
                for e in range(d + 1, long):
                    above[world.begin[at + e] + d] -= part * world.K[row + e]
        else:
            for e in lanes(long if used > 0 else 0):
                x += world.K[row + e] * z[world.chain[at + e]]
            x = lane_sum(x)
            for _ in lanes(1 if used > 0 else 0):
                z[k] = (z[k] - x) / world.K[row + long]


@procedure
def finish_by_newton(
    world: SlotWorld, its: Unknowns, used: int, steps: int, weight: float, enough: float
) -> float:
    """Refine contact impulses by proximal Newton steps after the sweeps; the error [m/s].

    The weight of staying falls from ``weight`` on; two of seven steps have more of it, out of
    cycles.
    """
    best = view(world.K, 2 * world.inverses)
    W = view(its.W, 0, world.slots, 9)
    least = 0.0
    most = worlds_max(used)
    mine = used
    for n in range(steps + 1):
        if worlds_max(mine) == 0:
            break
        speeds(world, its, mine)
        firm = max(weight, FIRM_WEIGHT if n % 7 > 4 else world.proximal_weight)
        weight *= WEIGHT_DECAY
        error = laws(world, its, mine, firm)
        better = n == 0 or error < least
        if mine > 0 and better:
            least = error
        for k in lanes(3 * mine if better else 0):
            best[k] = its.lam[k]
        if n == steps or error <= enough:
            mine = 0
        solve_newton_system(world, its, mine, most)
        for s in range(most):
            here = s < mine
            v = local("float", 3)
            i = its.carrier[s] if here else 0
            along(world, s, world.moves[i] if here else 0, i * world.deep, its.older, v)
            for r in lanes(3 if here else 0):
                x = W[s, 3 * r] * v[0] + W[s, 3 * r + 1] * v[1] + W[s, 3 * r + 2] * v[2]
                its.lam[3 * s + r] -= its.w[3 * s + r] + x
        effect_of_impulses(world, its, mine, world.nv if mine > 0 else -1)
    for k in lanes(3 * used):
        its.lam[k] = best[k]
    effect_of_impulses(world, its, used, world.nv if used > 0 else -1)
    return least
