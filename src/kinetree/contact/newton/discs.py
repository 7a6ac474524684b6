"""Interior-point method for contacts with several discs of friction: sliding, spinning, rolling.

Each disc has its own cone ``b = (mu lam_n, lam_d)``, ``h = (h_0, w_d)`` with ``b o h = sigma e``,
as that of ``interior``; all of them share the normal impulse. ``work.discs`` has, of every disc of
a group, ``h_0``, its change, two of its changes that are kept, ``q_0`` and ``theta`` of its
scaling, and the first number of the right side.
"""

from kinetree.codegen.procedures import local, procedure, sqrt, view
from kinetree.contact.newton.cones import disc_end, length
from kinetree.contact.newton.jordan import add_product, apply_scaling, quotient, scaling, until_cone
from kinetree.contact.newton.problem import CONE, Problem, Work

__all__ = ["ask_discs", "begin_discs", "change_discs", "has_discs", "keep_discs",
           "longest_of_discs", "matrix_of_discs", "mix_discs", "move_discs", "open_discs",
           "product_along_discs", "product_of_discs"]  # fmt: skip

H0, CHANGE, Q0, THETA, ASKED = 0, 1, 4, 5, 6
"""Places of the numbers of a disc; what is kept is after ``CHANGE``."""

SIZE = 8


@procedure
def has_discs(problem: Problem, g: int) -> bool:
    """Whether a group is a contact with spinning or rolling friction besides sliding."""
    return problem.kind[g] == CONE and problem.dim[g] > 3 and problem.mu[g] > 0.0


@procedure
def begin_discs(problem: Problem, work: Work, g: int, size: float, least: float) -> None:
    """Move the impulses of a contact's friction discs and their slack speeds into the interior."""
    dim = problem.dim[g]
    first = problem.row_first[g]
    lam = view(work.lam, first)
    most = problem.mu[g] * lam[0]
    own = size * size / least
    z = view(work.discs, g * 3 * SIZE)
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        force = length(lam, r, end)
        if force > 0.9 * most:
            lam[r:end] *= 0.9 * most / force
        speed = length(view(work.w, first), r, end)
        z[H0] = max(1.1 * sqrt(speed * speed + own * own), size * size / most)
        z[CHANGE] = 0.0
        z = view(z, SIZE)
        r = end


@procedure
def product_of_discs(problem: Problem, work: Work, g: int, t: float) -> "(float, float)":
    """Sum of complementarity products of a contact's discs at step part ``t``, and their number."""
    dim = problem.dim[g]
    first = problem.row_first[g]
    most = problem.mu[g] * (work.lam[first] + t * work.dlam[first])
    z = view(work.discs, g * 3 * SIZE)
    total = count = 0.0
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        total += most * (z[H0] + t * z[CHANGE])
        for i in range(first + r, first + end):
            total += (work.lam[i] + t * work.dlam[i]) * (work.w[i] + t * work.dw[i])
        count += 1.0
        z = view(z, SIZE)
        r = end
    return total, count


@procedure
def open_discs(problem: Problem, work: Work, g: int, sigma: float) -> None:
    """Raise the slack speeds ``h_0`` of a contact's discs above their actual speeds."""
    dim = problem.dim[g]
    first = problem.row_first[g]
    most = problem.mu[g] * work.lam[first]
    z = view(work.discs, g * 3 * SIZE)
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        force = length(view(work.lam, first), r, end)
        speed = length(view(work.w, first), r, end)
        own = 0.3 * sigma
        own *= own / max((most - force) * (most + force), 1e-300)
        z[H0] = max(z[H0], sqrt(own + speed * speed))
        z = view(z, SIZE)
        r = end


@procedure
def move_discs(problem: Problem, work: Work, g: int, t: float) -> None:
    """Advance the slack speeds ``h_0`` of a contact's discs by a part ``t`` of the step."""
    for d in range(3):
        z = view(work.discs, (g * 3 + d) * SIZE)
        z[H0] += t * z[CHANGE]


@procedure
def matrix_of_discs(problem: Problem, work: Work, g: int) -> None:
    """Compute the cone scalings of a contact's discs and add their blocks to its matrix ``A``."""
    q = local("float", 6)
    dim = problem.dim[g]
    first = problem.row_first[g]
    mu = problem.mu[g]
    lam = view(work.lam, first)
    w = view(work.w, first)
    A = view(work.A, 6 * first)
    z = view(work.discs, g * 3 * SIZE)
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        n = end - r + 1
        theta = scaling(mu * lam[0], view(lam, r - 1), z[H0], view(w, r - 1), n, q)
        z[Q0] = q[0]
        z[THETA] = theta
        square = 0.0
        for k in range(1, n):
            square += q[k] * q[k]
        less = 2.0 / (1.0 + 2.0 * square)
        for k in range(r, end):
            work.changes[first + k] = q[k - r + 1]
            A[k * dim] = -less * q[0] * q[k - r + 1] * mu * A[0]
            for m in range(r, end):
                A[k * dim + m] = -less * q[k - r + 1] * q[m - r + 1] / theta
            A[k * dim + k] += 1.0 / theta
        z = view(z, SIZE)
        r = end


@procedure
def ask_discs(
    problem: Problem, work: Work, g: int, sigma: float, correct: float, c: "float[:]"
) -> None:
    """Add the friction discs' part to a contact's right side of the interior-point step."""
    q, y, b, e, s = local("float", 5, 6)
    dim = problem.dim[g]
    first = problem.row_first[g]
    mu = problem.mu[g]
    most = mu * work.lam[first]
    z = view(work.discs, g * 3 * SIZE)
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        n = end - r + 1
        lam = view(work.lam, first + r - 1)
        w = view(work.w, first + r - 1)
        dlam = view(work.dlam, first + r - 1)
        dw = view(work.dw, first + r - 1)
        theta = z[THETA]
        root = sqrt(theta)
        q[0] = z[Q0]
        square = 0.0
        for k in range(1, n):
            q[k] = work.changes[first + r - 1 + k]
            square += q[k] * q[k]
        y[:n] = 0.0
        if correct > 0.0:
            b[0] = most
            b[1:n] = lam[1:n]
            apply_scaling(q, root, 1.0, b, n, e)  # the point itself, scaled
            b[0] = mu * work.dlam[first]
            b[1:n] = dlam[1:n]
            apply_scaling(q, root, 1.0, b, n, s)
            b[0] = z[CHANGE]
            b[1:n] = dw[1:n]
            add_product(q, root, b, s[0], s, n, y)
            quotient(e, y, n)
            b[:n] = correct * y[:n]
            apply_scaling(q, root, 1.0, b, n, y)
        force = length(lam, 1, n)
        part = sigma / max((most - force) * (most + force), 1e-300)
        y[0] += part * most - z[H0]
        less = 2.0 / (1.0 + 2.0 * square)
        along = 0.0
        for k in range(1, n):
            y[k] -= part * lam[k] + w[k]
            along += q[k] * y[k]
        z[ASKED] = y[0]
        for k in range(1, n):
            work.y[first + r - 1 + k] = y[k]
            c[r - 1 + k] = (y[k] - less * q[k] * along) / theta - less * q[0] * q[k] * mu * c[0]
        z = view(z, SIZE)
        r = end


@procedure
def change_discs(problem: Problem, work: Work, g: int) -> None:
    """Complete the changes of the discs' slack speeds ``h_0`` for the interior-point step."""
    dim = problem.dim[g]
    first = problem.row_first[g]
    z = view(work.discs, g * 3 * SIZE)
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        s = 0.0
        for k in range(first + r, first + end):
            s += work.changes[k] * (work.y[k] - work.dw[k])
        s = 2.0 * z[Q0] * s + z[THETA] * problem.mu[g] * work.dlam[first]
        z[CHANGE] = z[ASKED] - s / (2.0 * z[Q0] * z[Q0] - 1.0)
        z = view(z, SIZE)
        r = end


@procedure
def longest_of_discs(problem: Problem, work: Work, g: int, t: float, speeds: bool) -> float:
    """Step length, at most ``t``, to the boundary of the cones of a contact's discs."""
    dim = problem.dim[g]
    first = problem.row_first[g]
    mu = problem.mu[g]
    z = view(work.discs, g * 3 * SIZE)
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        n = end - r + 1
        at = first + r - 1
        t = until_cone(
            t,
            mu * work.lam[first],
            view(work.lam, at),
            mu * work.dlam[first],
            view(work.dlam, at),
            n,
        )
        if speeds:
            t = until_cone(t, z[H0], view(work.w, at), z[CHANGE], view(work.dw, at), n)
        z = view(z, SIZE)
        r = end
    return t


# --- Steps that are kept: see ``arc`` ------------------------------------------------------------


@procedure
def keep_discs(work: Work, g: int, place: int) -> None:
    """Store the changes of a contact's disc slack speeds in place 2 or 3."""
    for d in range(3):
        z = view(work.discs, (g * 3 + d) * SIZE)
        z[place] = z[CHANGE]


@procedure
def mix_discs(work: Work, g: int, own: float, a: float, b: float) -> None:
    """Combine the changes of disc slack speeds linearly with those stored in places 2 and 3."""
    for d in range(3):
        z = view(work.discs, (g * 3 + d) * SIZE)
        z[CHANGE] = own * z[CHANGE] + a * z[2] + b * z[3]


@procedure
def product_along_discs(problem: Problem, work: Work, g: int) -> "(float, float)":
    """Products of the path's tangent with itself and with the step, for a contact's discs."""
    dim = problem.dim[g]
    first = problem.row_first[g]
    most = problem.mu[g] * work.lam[first]
    own = other = 0.0
    z = view(work.discs, g * 3 * SIZE)
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        s = 1.0 / (z[H0] * z[H0])
        own += s * z[2] * z[2]
        other += s * z[2] * z[CHANGE]
        for k in range(first + r, first + end):
            x = work.impulses[2 * work.rows_room + k]
            w = work.changes[2 * work.rows_room + k]
            dx = x / (most * most)
            dw = w * s
            own += dx * x + dw * w
            other += dx * work.dlam[k] + dw * work.dw[k]
        z = view(z, SIZE)
        r = end
    return own, other
