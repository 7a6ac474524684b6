"""``impact``: velocities of a mechanism after an impact — RBDA §11.7.

    after = kt.contact.impact(m, q, qd, scene, law="energetic", restitution=0.6, friction=0.3)
    after.qd, after.impulse, after.energy_change

Works for trees, floating bases, loops, gears, and prescribed joints. See ``single`` for the laws
of restitution, and ``several`` for impacts at several points at once.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.contact.contacts import Contacts, body_motions, contact_axes
from kinetree.contact.finding.pairs import coefficients_of
from kinetree.contact.impacts.collision import Collision, Impact, finished
from kinetree.contact.impacts.several import islands, sequential_impacts, simultaneous_impacts
from kinetree.contact.impacts.single import require_law
from kinetree.contact.scene import Scene
from kinetree.errors import ImpactError, ShapeError, UnknownNameError
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.model import Model
from kinetree.quantities import kinematics

_ORDERS = {"simultaneous": simultaneous_impacts, "sequential": sequential_impacts}


@on_host
def impact(
    model: Model, q: ArrayLike, qd: ArrayLike, contacts: Contacts | Scene, *,
    law: Literal["newton", "poisson", "energetic"] = "newton",
    restitution: ArrayLike | None = None, friction: ArrayLike | None = None,
    order: Literal["simultaneous", "sequential"] = "simultaneous", arrested: bool = False,
    tangential_restitution: float = 0.0, torsional_friction: float = 0.0,
    torsional_restitution: float = 0.0, given: str | Sequence[str] = (), tolerance: float = 1e-6,
) -> Impact:  # fmt: skip
    """Velocities after an impact at the contacts that are closed.

    Args:
        model: the mechanism; loops answer with impulses of their own.
        q: joint positions [m, rad], (nq,).
        qd: joint velocities before [m/s, rad/s], (nv,).
        contacts: ``Contacts``, or a ``Scene``, whose contacts at ``q`` count.
        law: of restitution: ``"newton"``, ``"poisson"`` or ``"energetic"``. ``arrested`` and the
            tangential and torsional options are equations for the velocities after the impact, and
            so go with Newton's law only.
        restitution: coefficients from 0 to 1, a number or (n,); by default those of the contacts,
            or zero.
        friction: coefficients, a number or (n,); by default those of the contacts, or zero.
        order: ``"simultaneous"``, or ``"sequential"``: one contact after the other, but for
            ``arrested`` and the tangential and torsional options.
        arrested: whether friction stops all sliding, as RBDA (11.72) assumes; an error where it
            would take more friction than there is.
        tangential_restitution: how much of the sliding comes back, reversed, where friction can
            reverse it; from 0 to 1. Like the next two, for single points.
        torsional_friction: couple about the normal per normal impulse, at most [m].
        torsional_restitution: how much of the spin about the normal comes back, reversed.
        given: names of prescribed joints, whose velocities no impulse changes.
        tolerance: contacts with larger gaps [m] are open.

    Raises:
        ImpactError: the law would create energy, or has no answer; or the options contradict.
    """
    require_law(law)
    if order not in _ORDERS:
        raise UnknownNameError(f"order must be one of {', '.join(_ORDERS)}, got {order!r}")
    patch = {
        "tangential_restitution": tangential_restitution,
        "torsional_restitution": torsional_restitution,
        "torsional_friction": torsional_friction,
    }
    _require_consistent(law, order, arrested, [name for name, value in patch.items() if value])
    collision = _collision(model, q, qd, contacts, tolerance, given)
    n = collision.contacts.size
    e = coefficients_of(restitution, collision.contacts.restitution, n, "restitution", most=1)
    if arrested and friction is None:
        friction = np.inf
    mu = coefficients_of(friction, collision.contacts.friction, n, "friction")
    if any(patch.values()):
        return _patch(collision, e, mu, tuple(patch.values()))
    if arrested:
        return _arrested(collision, e, mu)
    impulse, error, rows = np.zeros((n, 3)), 0.0, (collision.J, collision.zeta)
    for group in islands(collision.W):
        zeta = collision.zeta[group]
        if np.any(zeta[:, 0] < 0):
            W = collision.W[group][:, :, group]
            impulse[group], missed = _ORDERS[order](W, zeta, e[group], mu[group], law)
            error = max(error, missed)
    return finished(collision, rows, impulse, mu, law=law, solver=error)


@on_host
def capture(
    model: Model, q: ArrayLike, qd: ArrayLike, contacts: Contacts | Scene, *, weld: bool = False,
    given: str | Sequence[str] = (), tolerance: float = 1e-6,
) -> Impact:  # fmt: skip
    """Velocities after bodies have caught one another: they move as one at every contact.

    Unlike that of ``impact``, the impulse may pull, and friction has no limit: hooks, grippers,
    magnets, glue.

    Args:
        model: the mechanism.
        q: joint positions, (nq,).
        qd: joint velocities before, (nv,).
        contacts: ``Contacts``, or a ``Scene``.
        weld: whether rotation is caught, too.
        given: names of prescribed joints, whose velocities no impulse changes.
        tolerance: contacts with larger gaps [m] are open.
    """
    collision = _collision(model, q, qd, contacts, tolerance, given)
    J, zeta = (collision.J, collision.zeta) if not weld else with_spin(collision, axes=3)
    rows, width = J.reshape(J.shape[0] * J.shape[1], collision.model.nv), J.shape[1]
    W = rows @ collision.A @ rows.T
    lam = np.linalg.lstsq(W, -zeta.ravel(), rcond=1e-12)[0].reshape(-1, width)
    couple = lam[:, 3:] if weld else None
    return finished(collision, (J, zeta), lam[:, :3], None, couple=couple, law="capture")


def _require_consistent(law, order, arrested, patch):
    """Raise ImpactError for options that would leave another without effect.

    Args:
        law: of restitution.
        order: of the contacts.
        arrested: whether sliding stops.
        patch: names of the tangential and torsional options that are not zero.
    """
    options = ["arrested=True"] * bool(arrested) + patch
    if not options:
        return
    if arrested and patch:
        raise ImpactError(
            f"impact(arrested=True) stops all sliding, and {', '.join(patch)} would bring some of "
            f"it back or limit it: leave out one of them"
        )
    for name, value, needed in (("law", law, "newton"), ("order", order, "simultaneous")):
        if value != needed:
            raise ImpactError(
                f"impact({', '.join(options)}) gives the velocities after the impact, as in RBDA "
                f"(11.71), (11.72), and so goes with {name}={needed!r} only; got {value!r}: leave "
                f"out {name}=, or {', '.join(options)}"
            )


def _arrested(collision, e, mu):
    """RBDA (11.72), at all contacts at once."""
    n = collision.contacts.size
    hit = np.flatnonzero(collision.zeta[:, 0] < 0)
    impulse, E = np.zeros((n, 3)), np.zeros((len(hit), 3))
    E[:, 0] = e[hit]
    W, size = collision.W[hit][:, :, hit], 3 * len(hit)
    W, right = W.reshape(size, size), -((1 + E) * collision.zeta[hit]).ravel()
    impulse[hit] = np.linalg.lstsq(W, right, rcond=1e-12)[0].reshape(-1, 3)
    names = collision.contacts.names or [str(k) for k in range(n)]
    for k in hit:
        normal, friction = impulse[k, 0], np.hypot(*impulse[k, 1:])
        if normal < 0 or friction > mu[k] * normal * (1 + 1e-9):
            needed = "a pull" if normal < 0 else f"a coefficient of {friction / normal:.6g}"
            raise ImpactError(
                f"arresting the sliding at contact {names[k]!r} takes {needed}, and friction has "
                f"{mu[k]:.6g}: it slides on; leave out arrested=True"
            )
    return finished(collision, (collision.J, collision.zeta), impulse, mu, law="newton")


def _patch(collision, e, mu, patch):
    """One contact with tangential and torsional effects."""
    e_t, e_r, mu_r = (float(x) for x in patch)
    if not (0 <= e_t <= 1 and 0 <= e_r <= 1 and mu_r >= 0):
        raise ShapeError(
            f"tangential and torsional restitution must be from 0 to 1, and torsional friction not "
            f"negative; got {e_t}, {e_r}, {mu_r}"
        )
    if len(islands(collision.W)) < collision.contacts.size:
        raise ImpactError(
            "tangential and torsional restitution, and torsional friction, are for contacts that "
            "do not feel one another; these are hit together: leave the options out"
        )
    J, zeta = with_spin(collision, axes=1)
    lam = np.zeros(zeta.shape)
    for k in np.flatnonzero(zeta[:, 0] < 0):
        W = J[k] @ collision.A @ J[k].T
        lam[k] = patch_impact(W, zeta[k], (e[k], e_t, e_r), (mu[k], mu_r))
    return finished(collision, (J, zeta), lam[:, :3], mu, couple=lam[:, 3:], law="newton")


# --- Inputs --------------------------------------------------------------------------------------


def _collision(model, q, qd, contacts, tolerance, given):
    q = as_configuration(as_model(model), q).astype(float)
    qd = as_joint_vector(model, qd, "qd").astype(float)
    if q.ndim != 1 or qd.ndim != 1:
        raise ShapeError(f"an impact takes one sample, got q {q.shape} and qd {qd.shape}")
    if isinstance(contacts, Scene):
        contacts = contacts.contacts(q, margin=tolerance)
    closed = np.asarray(contacts.gap) <= tolerance
    given = (given,) if isinstance(given, str) else tuple(given)
    chosen = contacts if closed.all() else contacts.chosen(closed)
    collision = Collision(model, q, qd, chosen, given)
    collision.require_yielding()
    return collision


# --- Tangential and torsional restitution, torsional friction ------------------------------------
# Softer bodies touch in a patch: it resists spin about the normal with a couple, up to ``μ_r
# λ_n``, and gives back some of what it stored in the tangential and the torsional direction. The
# model is algebraic (Brach): sliding and spinning are reversed, ``ζ' = -E ζ`` as in RBDA (11.71),
# if that takes no more than friction has; otherwise friction is at its limit, against the sliding
# or spinning at the start. Rows are (normal, tangent 1, tangent 2, spin).


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


# --- Jacobian rows for rotation ------------------------------------------------------------------


def with_spin(collision, axes):
    """Jacobian and relative velocity with angular rows after the three linear ones.

    Args:
        collision: a ``Collision``.
        axes: how many of (normal, tangent 1, tangent 2) to have rows for.

    Returns:
        ``J`` (n, 3 + axes, nv), and ``zeta`` (n, 3 + axes).
    """
    model, contacts = collision.model, collision.contacts
    w = np.zeros((model.body_count + 1, 3, model.nv))
    w[1:] = kinematics.jacobians(model, collision.q, frame="world")[:, :3]
    turning = contact_axes(contacts.normal)[:, :axes]
    spin = turning @ (w[contacts.successor] - w[contacts.predecessor])
    J = np.concatenate([collision.J, spin], axis=1)
    v = body_motions(model, collision.q, collision.qd)[0][:, :3]
    between = (v[contacts.successor] - v[contacts.predecessor])[..., None]
    return J, np.concatenate([collision.zeta, (turning @ between).squeeze(-1)], axis=1)
