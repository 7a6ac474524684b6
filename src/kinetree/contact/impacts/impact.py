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
from kinetree.contact.impacts.collision import Collision, Impact, finish
from kinetree.contact.impacts.patches import patch_impacts
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
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    contacts: Contacts | Scene,
    *,
    law: Literal["newton", "poisson", "energetic"] = "newton",
    restitution: ArrayLike | None = None,
    friction: ArrayLike | None = None,
    order: Literal["simultaneous", "sequential"] = "simultaneous",
    arrested: bool = False,
    tangential_restitution: float = 0.0,
    torsional_friction: float = 0.0,
    torsional_restitution: float = 0.0,
    given: str | Sequence[str] = (),
    tolerance: float = 1e-6,
) -> Impact:
    """Velocities and impulses after an impact at all closed contacts.

    Args:
        model: the mechanism; impulses of loops are included.
        q: joint positions [m, rad], (nq,).
        qd: joint velocities before [m/s, rad/s], (nv,).
        contacts: ``Contacts``, or a ``Scene``, whose contacts at ``q`` count.
        law: of restitution: ``"newton"``, ``"poisson"`` or ``"energetic"``.
        restitution: coefficients from 0 to 1, a number or (n,); by default those of the contacts,
            or zero.
        friction: coefficients, a number or (n,); by default those of the contacts, or zero.
        order: ``"simultaneous"``, or ``"sequential"``: one contact after the other, but for
            ``arrested``, which is about all contacts at once.
        arrested: whether friction stops all sliding, as RBDA (11.72) assumes; an error where it
            would take more friction than there is.
        tangential_restitution: fraction of the sliding velocity that is reversed, if friction
            allows it; from 0 to 1. For this and the next two see ``patches``.
        torsional_friction: couple about the normal per normal impulse, at most [m].
        torsional_restitution: fraction of the spin about the normal that is reversed.
        given: names of prescribed joints, whose velocities no impulse changes.
        tolerance: contacts with larger gaps [m] are open.

    Raises:
        ImpactError: the law would create energy or has no solution; or options contradict.
    """
    require_law(law)
    if order not in _ORDERS:
        raise UnknownNameError(f"order must be one of {', '.join(_ORDERS)}, got {order!r}")
    patch = {
        "tangential_restitution": tangential_restitution,
        "torsional_restitution": torsional_restitution,
        "torsional_friction": torsional_friction,
    }
    _require_consistent(order, arrested, [name for name, value in patch.items() if value])
    collision = _collision(model, q, qd, contacts, tolerance, given)
    n = collision.contacts.size
    e = coefficients_of(restitution, collision.contacts.restitution, n, "restitution", most=1)
    if arrested and friction is None:
        friction = np.inf
    mu = coefficients_of(friction, collision.contacts.friction, n, "friction")
    if any(patch.values()):
        return _patch(collision, e, mu, tuple(patch.values()), law, order)
    if arrested:
        return _arrest(collision, e, mu, law)
    impulse, error, rows = np.zeros((n, 3)), 0.0, (collision.J, collision.zeta)
    for group in islands(collision.W):
        zeta = collision.zeta[group]
        if np.any(zeta[:, 0] < 0):
            W = collision.W[group][:, :, group]
            impulse[group], missed = _ORDERS[order](W, zeta, e[group], mu[group], law)
            error = max(error, missed)
    return finish(collision, rows, impulse, mu, law=law, solver=error)


@on_host
def capture(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    contacts: Contacts | Scene,
    *,
    weld: bool = False,
    given: str | Sequence[str] = (),
    tolerance: float = 1e-6,
) -> Impact:
    """Velocities after bodies catch one another: zero relative motion at every contact.

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
    return finish(collision, (J, zeta), lam[:, :3], None, couple=couple, law="capture")


def _require_consistent(order, arrested, patch):
    """Raise ImpactError for contradictory impact options.

    Args:
        order: of the contacts.
        arrested: whether sliding stops.
        patch: names of the tangential and torsional options that are not zero.
    """
    if arrested and patch:
        raise ImpactError(
            f"impact(arrested=True) stops all sliding, and {', '.join(patch)} would bring some of "
            f"it back or limit it: leave out one of them"
        )
    if arrested and order != "simultaneous":
        raise ImpactError(
            f"impact(arrested=True) stops the sliding at all contacts at once, RBDA (11.72), and "
            f"so goes with order='simultaneous' only, got {order!r}: leave out one of them"
        )


def _arrest(collision, e, mu, law):
    """Contact impulses of an impact that stops all sliding, simultaneous, RBDA (11.72)."""
    n = collision.contacts.size
    hit = np.flatnonzero(collision.zeta[:, 0] < 0)
    impulse, E = np.zeros((n, 3)), np.zeros((len(hit), 3))
    E[:, 0] = e[hit]
    W, size = collision.W[hit][:, :, hit], 3 * len(hit)
    W, before = W.reshape(size, size), collision.zeta[hit].ravel()
    right = -(1 + E.ravel()) * before
    if law != "newton":
        right = _restore(W, before, e[hit], law) - before
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
    return finish(collision, (collision.J, collision.zeta), impulse, mu, law=law)


def _restore(W, before, e, law):
    """Contact velocities (3n,) after an arresting impact, by Poisson or energetic restitution."""
    normal = np.arange(len(e)) * 3
    pressed = np.linalg.lstsq(W, -before, rcond=1e-12)[0]
    share = e * pressed[normal]
    response = np.linalg.pinv(np.linalg.pinv(W, rcond=1e-12)[np.ix_(normal, normal)], rcond=1e-12)
    if law == "energetic":
        target = np.sum(e**2 * np.maximum(-pressed[normal] * before[normal] / 2, 0.0))
        work = share @ response @ share / 2
        share = share * np.sqrt(min(target, -pressed @ before / 2) / work) if work > 0 else share
    after = np.zeros(len(before))
    after[normal] = response @ share
    return after


def _patch(collision, e, mu, patch, law, order):
    """Contact impulses with tangential restitution and torsional friction."""
    e_t, e_r, mu_r = (float(x) for x in patch)
    if not (0 <= e_t <= 1 and 0 <= e_r <= 1 and mu_r >= 0):
        raise ShapeError(
            f"tangential and torsional restitution must be from 0 to 1, and torsional friction not "
            f"negative; got {e_t}, {e_r}, {mu_r}"
        )
    J, zeta = with_spin(collision, axes=1)
    lam, error, n = np.zeros(zeta.shape), 0.0, len(zeta)
    E, limits = np.tile([0.0, e_t, e_t, e_r], (n, 1)), np.column_stack([mu, np.full(n, mu_r)])
    E[:, 0] = e
    W = np.einsum("nav,vw,mbw->namb", J, collision.A, J)
    for group in islands(W):
        if np.any(zeta[group, 0] < 0):
            lam[group], missed = patch_impacts(
                W[group][:, :, group], zeta[group], E[group], limits[group], law, order
            )
            error = max(error, missed)
    return finish(collision, (J, zeta), lam[:, :3], mu, couple=lam[:, 3:], law=law, solver=error)


# --- Inputs --------------------------------------------------------------------------------------


def _collision(model, q, qd, contacts, tolerance, given):
    """``Collision`` of the closed contacts of one checked state."""
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


# --- Jacobian rows for rotation ------------------------------------------------------------------


def with_spin(collision, axes):
    """Contact Jacobian and velocities with angular rows appended to the linear ones.

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
