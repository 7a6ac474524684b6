"""Impacts of patches, at several at once or at one — RBDA §11.7.

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
from kinetree.contact.impacts.several import GOOD, one_after_the_other, velocity_response
from kinetree.errors import ImpactError

_FIXED_POINTS, _SETTLED = 200, 1e-12  # of the limits of couples, which follow from normal impulses


def patch_impacts(W, zeta, E, limits, law, order):
    """Impulses (n, 4) of interacting contact patches, and the solver's error.

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
    after = zeta + velocity_response(W, pressed + released)
    more, other = _press(W, after, limits) if np.min(after[:, 0]) < 0 else (0.0, 0.0)
    return pressed + released + more, max(error, other)


def single_patch(W, zeta, E, limits, law="newton"):
    """Impulse (4,) of an impact at one contact patch; arguments as in ``patch_impacts``."""
    if not zeta[0] < 0:
        return np.zeros(4)
    if law == "newton":
        return patch_impact(W, zeta, E[[0, 1, 3]], limits)
    pressed = patch_impact(W, zeta, np.zeros(3), limits)
    own = np.reshape(W, (1, 4, 1, 4))
    both = zeta[None], pressed[None], E[None], np.asarray(limits)[None]
    return pressed + _release(own, *both, law)[0]


def _release(W, zeta, pressed, E, limits, law):
    """Restitution impulses (n, 4) of patches after the compression impulses ``pressed``."""
    share, halfway = E * pressed, zeta + velocity_response(W, pressed)
    if law == "poisson" or not np.any(share):
        return _within(pressed, share, limits)
    work = -pressed * (zeta + halfway) / 2  # absorbed by each row
    target = min(float(np.sum(E**2 * np.maximum(work, 0.0))), max(float(work.sum()), 0.0))
    scale = 1.0
    for _ in range(_FIXED_POINTS):  # what friction cuts off depends on the scale
        way = _within(pressed, scale * share, limits) / scale
        square, along = np.sum(way * velocity_response(W, way)), np.sum(way * halfway)
        last, root = scale, np.sqrt(max(along * along + 2 * square * target, 0.0))
        scale = 2 * target / (along + root) if along + root > 0 else 0.0
        if abs(scale - last) <= _SETTLED * scale or not scale > 0:
            break
    return _within(pressed, scale * share, limits)


def _within(pressed, share, limits):
    """Restitution impulses reduced so that total friction stays within its limits."""
    share = share.copy()
    normal = pressed[:, 0] + share[:, 0]
    for part, limit in ((slice(1, 3), limits[:, 0]), (slice(3, 4), limits[:, 1])):
        size = np.linalg.norm((pressed + share)[:, part], axis=1)
        most = limit * normal
        ratio = np.where(size > most, most / np.maximum(size, 1e-300), 1.0)[:, None]
        share[:, part] = ratio * (pressed + share)[:, part] - pressed[:, part]
    return share


def _press(W, b, limits):
    """Plastic impulses within the friction limits after which no patch approaches."""
    n = len(b)
    order = np.concatenate([np.arange(4 * n).reshape(n, 4)[:, :3].ravel(), 4 * np.arange(n) + 3])
    A, right = W.reshape(4 * n, 4 * n)[np.ix_(order, order)], b.ravel()[order]
    most, lam = np.zeros(n), np.zeros(4 * n)
    for _ in range(_FIXED_POINTS):
        found = cones.solve(A, right, limits[:, 0], low=-most, high=most, warm=lam)
        for method in ("admm", "pgs"):
            if found.residuals.scaled <= GOOD or found.certificate is not None:
                break
            other = cones.solve(
                A, right, limits[:, 0], low=-most, high=most, warm=found.lam, method=method
            )
            found = min((found, other), key=lambda one: one.residuals.scaled)
        lam, before = found.lam, most
        most = limits[:, 1] * np.maximum(lam[: 3 * n : 3], 0.0)
        if np.max(np.abs(most - before)) <= _SETTLED * np.max(most, initial=0.0):
            break
    if found.residuals.scaled > GOOD:
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
    """Impulse (4,) at one patch with given restitution; the last is a couple [N·m·s].

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
    """Impulse (4,) at one patch with some friction parts fixed at their limits."""
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
