"""Impacts at several points at once, or in patches — RBDA §11.7.

What rigid bodies do then is not determined by their laws of motion; it is a matter of what is taken
to happen first.

``"simultaneous"``: all impulses grow together.

    newton      0 ≤ λ_n  ⟂  ζ_n' + e ζ_n ≥ 0, with the cones of friction (Moreau)
    poisson     compression brings all points to rest, as with e = 0; restitution then adds e times
                the normal impulses of compression, and more where bodies would still approach,
                with friction within the cones of all of it (Glocker and Pfeiffer; Anitescu, Potra)
    energetic   as Poisson's, with all impulses of restitution scaled such that they do ``Σ e² |W|``
                of work, ``W`` that of compression (after Stronge)

``"sequential"``: one point after the other, where the bodies approach fastest, as if those between
had time to part; until no bodies approach.

In both, points whose impulses do not reach one another are separate impacts. Coordinates as in
``single``; arrays of velocities are (n, 3), of ``W`` (n, 3, n, 3). NumPy only.

Softer bodies touch in patches (Fig. 11.9). A patch resists spin about its normal with a couple, up
to ``μ_r λ_n``, and gives back some of what it stored along the tangents and about the normal. Rows
of a contact are (normal, tangent 1, tangent 2, spin), ``E = diag(e, e_t, e_t, e_r)``, arrays (n, 4)
and (n, 4, n, 4). The laws of restitution become

    newton      sliding and spinning are reversed, ``ζ' = -E ζ`` as in RBDA (11.71), if that takes
                no more than friction has. Otherwise friction is at its limit: at one patch against
                the sliding or spinning at the start (Brach), at several together against
                ``ζ' + E ζ`` (Moreau; Frémond)
    poisson     compression as with ``E = 0``, then the impulses ``E λ`` of it, within the cones of
                the whole, and more where bodies would still approach
    energetic   the same with impulses of restitution scaled such that they do the work
                ``Σ E² |W|``, ``W`` that of each row in compression, and never more than all of
                compression took
"""

import numpy as np

from kinetree.contact.complementarity import cones
from kinetree.contact.impacts.single import single_impact
from kinetree.errors import ImpactError

_ROUNDS = 20_000
_NOISE = 1e-9  # of the work of restitution, from the solver
_GOOD = 1e-9  # error of the solver, relative, with which impulses of redundant contacts are taken
_REST = 1e-9  # of the fastest approach: what is left of a sequence ends without restitution


def islands(W):
    """Groups of contacts whose impulses reach one another, as arrays of numbers."""
    linked = np.max(np.abs(W), axis=(1, 3), initial=0.0)
    near = linked > 1e-14 * np.sqrt(np.outer(np.diag(linked), np.diag(linked)))
    groups, left = [], list(range(len(W)))
    while left:
        group, fringe = set(), {left[0]}
        while fringe:
            group |= fringe
            fringe = {int(j) for i in fringe for j in np.flatnonzero(near[i])} - group
        groups.append(np.array(sorted(group)))
        left = [i for i in left if i not in group]
    return groups


def simultaneous_impacts(W, zeta, e, mu, law):
    """Impulses (n, 3) of simultaneous impacts, and the error of the solver."""
    if len(zeta) == 1:
        return single_impact(W[0, :, 0], zeta[0], e[0], mu[0], law)[None], 0.0
    if law == "newton":
        b = zeta.copy()
        b[:, 0] += e * np.minimum(zeta[:, 0], 0)
        return _solve(W, b, mu)
    pressed, error = _solve(W, zeta, mu)
    halfway = zeta + _response(W, pressed)
    share, scale = e * pressed[:, 0], 1.0
    if not np.any(share > 0):
        return pressed, error
    if law == "energetic":
        absorbed = -pressed[:, 0] * (zeta + halfway)[:, 0] / 2
        scale = _scale(W, halfway, share, mu, float(np.sum(e**2 * absorbed)))
    released, other = _restitution(W, halfway, scale * share, mu)
    return pressed + released, max(error, other)


def sequential_impacts(W, zeta, e, mu, law):
    """Impulses (n, 3) of impacts one after the other, and the error of the solver."""

    def single(k, now):
        return single_impact(W[k, :, k], now, e[k], mu[k], law)

    return one_after_the_other(W, zeta, single, lambda now: _solve(W, now, mu))


def one_after_the_other(W, zeta, single, plastic):
    """Impulses of contacts (n, ...) in turn, the fastest approach first, and the solver's error.

    Args:
        W: velocity changes per impulse, (n, m, n, m).
        zeta: velocities before, (n, m), the first along the normal.
        single: function of the number of a contact and its velocity to its impulse, (m,).
        plastic: function of all velocities to impulses (n, m) without restitution, for what is
            left in the end, and an error.
    """
    impulse, now = np.zeros_like(zeta), zeta.copy()
    fastest = -np.min(zeta[:, 0])
    for _ in range(_ROUNDS):
        k = int(np.argmin(now[:, 0]))
        if now[k, 0] >= 0:
            return impulse, 0.0
        if now[k, 0] > -_REST * fastest:
            last, error = plastic(now)
            return impulse + last, error
        step = single(k, now[k])
        impulse[k] += step
        now = now + np.einsum("nab,b->na", W[:, :, k], step)
    plastic(zeta)  # raises if there is no solution
    raise ImpactError(
        f"{_ROUNDS} impacts one after the other at {len(zeta)} contacts, and bodies still approach "
        f"at {-np.min(now[:, 0]):.3g} m/s; use order='simultaneous'"
    )


def _response(W, impulse):
    """Velocity changes of all contacts under impulses."""
    return np.einsum("namb,mb->na", W, impulse)


def _solve(W, b, mu, count=None):
    """Impulses within their cones after which nothing approaches, starting from ``b``.

    Redundant contacts may keep Newton's method from its end: then the other methods, which are
    slower and surer, and Newton's once more from where they end. The best counts.

    Args:
        W: velocity changes per impulse, (n, 3, n, 3).
        b: velocities without the impulses, (n, 3).
        mu: coefficients of friction, (n,).
        count: number of contacts that these stand for; all by default.
    """
    n = len(b)
    A, right = W.reshape(3 * n, 3 * n), b.ravel()
    found = cones.solve(A, right, mu)
    for method in ("admm", "pgs"):
        if found.converged or found.certificate is not None:
            break
        other = cones.solve(A, right, mu, method=method, warm=found.lam)
        again = cones.solve(A, right, mu, warm=other.lam)
        found = min((found, other, again), key=lambda one: one.residuals.scaled)
    count = n if count is None else count
    if found.certificate is not None:
        raise ImpactError(
            f"no impulses part the bodies at {count} contacts that are hit together: they are "
            f"wedged between others that close in on them whatever acts; let these give way"
        )
    if found.residuals.scaled > _GOOD:
        raise ImpactError(
            f"no impulses were found for {count} contacts that are hit together, the error is "
            f"{found.residuals.scaled:.3g}; use order='sequential', or fewer contacts"
        )
    return found.lam.reshape(n, 3), found.residuals.scaled


def _restitution(W, zeta, normal, mu):
    """Impulses of restitution with given normal parts, and more where bodies would approach.

    The friction of the given part has a fixed limit: it belongs to a twin of the contact whose
    normal moves for itself, ``w λ_n - w p``, so that ``λ_n = p``.
    """
    n, given = len(zeta), np.zeros_like(zeta)
    given[:, 0] = normal
    b = zeta + _response(W, given)
    twins = np.flatnonzero((normal > 0) & (mu > 0))
    t = (3 * twins[:, None] + [0, 1, 2]).ravel()
    flat, own = W.reshape(3 * n, 3 * n), np.arange(len(t)) % 3 == 0
    A = np.block([[flat, flat[:, t]], [flat[t], flat[np.ix_(t, t)]]])
    normals, rows = 3 * n + np.flatnonzero(own), t[own]
    A[normals], A[:, normals] = 0, 0
    A[normals, normals] = flat[rows, rows]
    right = np.concatenate([b.ravel(), b.ravel()[t]])
    right[normals] = -flat[rows, rows] * normal[twins]
    m = n + len(twins)
    both = np.append(mu, mu[twins])
    lam, error = _solve(A.reshape(m, 3, m, 3), right.reshape(m, 3), both, count=n)
    total = given + lam[:n]
    total[twins, 1:] += lam[n:, 1:]
    return total, error


def _scale(W, zeta, share, mu, target):
    """Factor of the impulses of restitution with which they do the work ``target`` [J]."""

    def missing(factor):
        released, _ = _restitution(W, zeta, factor * share, mu)
        after = zeta + _response(W, released)
        return float(np.sum(released[:, 0] * (zeta + after)[:, 0] / 2)) - target

    low, high, at_high = 0.0, 1.0, missing(1.0)
    if abs(at_high) <= _NOISE * target:  # as without friction
        return 1.0
    while at_high < 0 and high < 1e6:
        low, high = high, 2 * high
        at_high = missing(high)
    at_low = missing(low)
    for k in range(100):
        if abs(at_high) <= 1e-13 * target or high - low <= 1e-14 * high:
            break
        middle = (
            (low + high) / 2 if k % 3 == 2 else low - at_low * (high - low) / (at_high - at_low)
        )
        value = missing(middle)
        if value < 0:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    return high


_FIXED_POINTS, _SETTLED = 200, 1e-12  # of the limits of couples, which follow from normal impulses


def patch_impacts(W, zeta, E, limits, law, order):
    """Impulses (n, 4) of patches that feel one another, and the error of the solver.

    Args:
        W: velocity changes per impulse, (n, 4, n, 4).
        zeta: relative velocities before, (n, 4).
        E: coefficients of restitution of the rows, (n, 4).
        limits: coefficients of friction: of sliding, and of spin [m], (n, 2).
        law: of restitution.
        order: ``"simultaneous"`` or ``"sequential"``.
    """
    if order == "sequential" and len(zeta) > 1:

        def single(k, now):
            return single_patch(W[k, :, k], now, E[k], limits[k], law)

        def plastic(now):
            return _press(W, now, limits)

        return one_after_the_other(W, zeta, single, plastic)
    if len(zeta) == 1:
        return single_patch(W[0, :, 0], zeta[0], E[0], limits[0], law)[None], 0.0
    hit = (zeta[:, :1] < 0) * 1.0
    if law == "newton":
        return _press(W, zeta + hit * E * zeta, limits)
    pressed, error = _press(W, zeta, limits)
    released = _release(W, zeta, pressed, E, limits, law)
    after = zeta + _response(W, pressed + released)
    more, other = _press(W, after, limits) if np.min(after[:, 0]) < 0 else (0.0, 0.0)
    return pressed + released + more, max(error, other)


def single_patch(W, zeta, E, limits, law="newton"):
    """Impulse at one patch, (4,); arguments as in ``patch_impacts``, without the first axis."""
    if not zeta[0] < 0:
        return np.zeros(4)
    if law == "newton":
        return patch_impact(W, zeta, E[[0, 1, 3]], limits)
    pressed = patch_impact(W, zeta, np.zeros(3), limits)
    own = np.reshape(W, (1, 4, 1, 4))
    both = zeta[None], pressed[None], E[None], np.asarray(limits)[None]
    return pressed + _release(own, *both, law)[0]


def _release(W, zeta, pressed, E, limits, law):
    """Impulses of restitution (n, 4) of those of compression."""
    share, halfway = E * pressed, zeta + _response(W, pressed)
    if law == "poisson" or not np.any(share):
        return _within(pressed, share, limits)
    work = -pressed * (zeta + halfway) / 2  # absorbed by each row
    target = min(float(np.sum(E**2 * np.maximum(work, 0.0))), max(float(work.sum()), 0.0))
    scale = 1.0
    for _ in range(_FIXED_POINTS):  # what friction cuts off depends on the scale
        way = _within(pressed, scale * share, limits) / scale
        square, along = np.sum(way * _response(W, way)), np.sum(way * halfway)
        last, root = scale, np.sqrt(max(along * along + 2 * square * target, 0.0))
        scale = 2 * target / (along + root) if along + root > 0 else 0.0
        if abs(scale - last) <= _SETTLED * scale or not scale > 0:
            break
    return _within(pressed, scale * share, limits)


def _within(pressed, share, limits):
    """Impulses of restitution cut such that friction of the whole is within its limits."""
    share = share.copy()
    normal = pressed[:, 0] + share[:, 0]
    for part, limit in ((slice(1, 3), limits[:, 0]), (slice(3, 4), limits[:, 1])):
        size = np.linalg.norm((pressed + share)[:, part], axis=1)
        most = limit * normal
        ratio = np.where(size > most, most / np.maximum(size, 1e-300), 1.0)[:, None]
        share[:, part] = ratio * (pressed + share)[:, part] - pressed[:, part]
    return share


def _press(W, b, limits):
    """Impulses within their cones after which nothing approaches, starting from ``b``."""
    n = len(b)
    order = np.concatenate([np.arange(4 * n).reshape(n, 4)[:, :3].ravel(), 4 * np.arange(n) + 3])
    A, right = W.reshape(4 * n, 4 * n)[np.ix_(order, order)], b.ravel()[order]
    most, lam = np.zeros(n), np.zeros(4 * n)
    for _ in range(_FIXED_POINTS):
        found = cones.solve(A, right, limits[:, 0], low=-most, high=most, warm=lam)
        for method in ("admm", "pgs"):
            if found.residuals.scaled <= _GOOD or found.certificate is not None:
                break
            other = cones.solve(
                A, right, limits[:, 0], low=-most, high=most, warm=found.lam, method=method
            )
            found = min((found, other), key=lambda one: one.residuals.scaled)
        lam, before = found.lam, most
        most = limits[:, 1] * np.maximum(lam[: 3 * n : 3], 0.0)
        if np.max(np.abs(most - before)) <= _SETTLED * np.max(most, initial=0.0):
            break
    if found.residuals.scaled > _GOOD:
        raise ImpactError(
            f"no impulses were found for {n} patches that are hit together, the error is "
            f"{found.residuals.scaled:.3g}; use order='sequential', or leave out the tangential "
            f"and torsional options"
        )
    result = np.empty((n, 4))
    result[:, :3], result[:, 3] = lam[: 3 * n].reshape(n, 3), lam[3 * n :]
    return result, found.residuals.scaled


# --- One patch: Brach's algebraic model -----------------------------------------------------------


def patch_impact(W, zeta, restitution, limits):
    """Impulse at a patch, (4,); the last is a couple about the normal [N·m·s].

    Args:
        W: velocity change per impulse, (4, 4).
        zeta: relative velocity before, the last an angular velocity about the normal, (4,).
        restitution: along the normal, the tangents and about the normal, (3,).
        limits: coefficients of friction: of sliding, and of spin [m].
    """
    e_n, e_t, e_r = restitution
    target = -np.array([e_n, e_t, e_t, e_r]) * zeta
    parts = (slice(1, 3), slice(3, 4))
    at_limit = [mu == 0 for mu in limits]
    for _ in range(3):
        lam = _impulse(W, zeta, target, parts, limits, at_limit)
        beyond = [
            not limited and np.linalg.norm(lam[part]) > mu * lam[0]
            for part, mu, limited in zip(parts, limits, at_limit, strict=True)
        ]
        if not any(beyond):
            break
        at_limit = [a or b for a, b in zip(at_limit, beyond, strict=True)]
    return lam


def _impulse(W, zeta, target, parts, limits, at_limit):
    """Impulse with some parts at their limits: ``λ = B y``, ``y`` free, the normal among it."""
    normal, free = np.array([1.0, 0, 0, 0]), [0]
    for part, mu, limited in zip(parts, limits, at_limit, strict=True):
        size = np.linalg.norm(zeta[part])
        if not limited:
            free += range(4)[part]
        elif size > 0:
            normal[part] = -mu * zeta[part] / size
    B = np.eye(4)[:, free]
    B[:, 0] = normal
    A = W[free] @ B
    return B @ np.linalg.lstsq(A, (target - zeta)[free], rcond=1e-13)[0]
