"""Impacts at several points at once — RBDA §11.7.

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
"""

import numpy as np

from kinetree.contact.complementarity import cones
from kinetree.contact.impacts.single import single_impact
from kinetree.errors import ImpactError

_ROUNDS = 20_000
_NOISE = 1e-9  # of the work of restitution, from the solver
GOOD = 1e-9  # error of the solver, relative, with which impulses of redundant contacts are taken
_REST = 1e-9  # of the fastest approach: what is left of a sequence ends without restitution


def islands(W):
    """Groups of contacts coupled by ``W``, as arrays of contact numbers."""
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
    """Impulses (n, 3) of simultaneous impacts, and the solver's error."""
    if len(zeta) == 1:
        return single_impact(W[0, :, 0], zeta[0], e[0], mu[0], law)[None], 0.0
    if law == "newton":
        b = zeta.copy()
        b[:, 0] += e * np.minimum(zeta[:, 0], 0)
        return _solve(W, b, mu)
    pressed, error = _solve(W, zeta, mu)
    halfway = zeta + velocity_response(W, pressed)
    share, scale = e * pressed[:, 0], 1.0
    if not np.any(share > 0):
        return pressed, error
    if law == "energetic":
        absorbed = -pressed[:, 0] * (zeta + halfway)[:, 0] / 2
        scale = _scale(W, halfway, share, mu, float(np.sum(e**2 * absorbed)))
    released, other = _restitution(W, halfway, scale * share, mu)
    return pressed + released, max(error, other)


def sequential_impacts(W, zeta, e, mu, law):
    """Impulses (n, 3) of successive single impacts, and the solver's error."""

    def single(k, now):
        return single_impact(W[k, :, k], now, e[k], mu[k], law)

    return one_after_the_other(W, zeta, single, lambda now: _solve(W, now, mu))


def one_after_the_other(W, zeta, single, plastic):
    """Impulses of successive single impacts, fastest approach first, and solver's error.

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


def velocity_response(W, impulse):
    """Contact velocity changes (n, a) under contact impulses."""
    return np.einsum("namb,mb->na", W, impulse)


def _solve(W, b, mu, count=None):
    """Plastic impulses within friction cones after which no contact approaches.

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
    if found.residuals.scaled > GOOD:
        raise ImpactError(
            f"no impulses were found for {count} contacts that are hit together, the error is "
            f"{found.residuals.scaled:.3g}; use order='sequential', or fewer contacts"
        )
    return found.lam.reshape(n, 3), found.residuals.scaled


def _restitution(W, zeta, normal, mu):
    """Restitution impulses with given normal parts, plus those against new approach.

    The friction of the given part has a fixed limit: it belongs to a twin of the contact whose
    normal moves for itself, ``w λ_n - w p``, so that ``λ_n = p``.
    """
    n, given = len(zeta), np.zeros_like(zeta)
    given[:, 0] = normal
    b = zeta + velocity_response(W, given)
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
    """Factor of the restitution impulses with which they do the work ``target`` [J]."""

    def missing(factor):
        released, _ = _restitution(W, zeta, factor * share, mu)
        after = zeta + velocity_response(W, released)
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
