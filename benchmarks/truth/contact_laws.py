"""Laws of contact, checked on a table of contacts: velocities, cones, impulses on bodies."""

from typing import NamedTuple

import numpy as np

from truth.mechanics import Bodies, State, cross, skew


class Touching(NamedTuple):
    """Contacts of a step.

    Attributes:
        names: by which a contact is found again in the next step.
        bodies: numbers of the two bodies, -1 for what is fixed, (n, 2).
        point, gap: where, and how far apart in the middle of the step, (n, 3), (n,).
        frame: normal and tangents as rows, (n, 3, 3).
        impulse: along them [N s], (n, 3).
        moment: moments of impulses, in axes of the world [N m s], (n, 3).
    """

    names: tuple[str, ...]
    bodies: np.ndarray
    point: np.ndarray
    gap: np.ndarray
    frame: np.ndarray
    impulse: np.ndarray
    moment: np.ndarray


def touching(table, bodies: Bodies, h: float) -> Touching:
    """From the table of contacts of a world."""
    numbers = np.array([[bodies.number.get(x, -1) for x in pair] for pair in table.bodies])
    frame = frames(table.normal.reshape(-1, 3))
    along = h * np.einsum("nij,nj->ni", frame, table.force.reshape(-1, 3))
    return Touching(
        table.names, numbers.reshape(-1, 2).astype(int), table.point.reshape(-1, 3),
        np.ravel(table.gap), frame, along, h * table.moment.reshape(-1, 3),
    )  # fmt: skip


def frames(n):
    """Normals and tangents as rows, as the table of contacts has them, (n, 3, 3)."""
    x, y, z = n.T
    s = np.where(z < -0.5, -1.0, 1.0)
    a = -1.0 / (s + z)
    c = x * y * a
    rows = n.T, (1 + s * x * x * a, s * c, -s * x), (c, s + y * y * a, -y)
    return np.moveaxis(np.array([list(r) for r in rows]), 2, 0)


def on_bodies(c: Touching, centre) -> tuple[np.ndarray, np.ndarray]:
    """Impulses on the bodies, and their moments about the centres of mass, (bodies, 3) each."""
    impulse, moment = np.zeros((2, len(centre) + 1, 3))  # the last one is what is fixed
    f = np.einsum("nji,nj->ni", c.frame, c.impulse)
    for side, sign in ((0, -1.0), (1, 1.0)):
        k = c.bodies[:, side]
        arm = np.where((k >= 0)[:, None], c.point - centre[k], 0.0)
        np.add.at(impulse, k, sign * f)
        np.add.at(moment, k, sign * (cross(arm, f) + c.moment))
    return impulse[:-1], moment[:-1]


def slips(c: Touching, centre, v, spin) -> np.ndarray:
    """Velocities of the second bodies against the first along normals and tangents, (n, 3)."""
    total = np.zeros_like(c.point)
    for side, sign in ((0, -1.0), (1, 1.0)):
        k = c.bodies[:, side]
        at = v[k] + cross(spin[k], c.point - centre[k])
        total += sign * np.where((k >= 0)[:, None], at, 0.0)
    return np.einsum("nij,nj->ni", c.frame, total)


def mobilities(c: Touching, bodies: Bodies, pose: State) -> np.ndarray:
    """Largest velocity per impulse of every contact [1/kg], (n,)."""
    total = np.zeros_like(c.frame)
    for side in (0, 1):
        k = c.bodies[:, side]
        K = skew(c.point - pose.x[k])
        turn = pose.R[k] @ bodies.inverse[k] @ pose.R[k].transpose(0, 2, 1)
        W = np.eye(3) / bodies.mass[k][:, None, None] - K @ turn @ K
        for n in np.flatnonzero(np.isin(k, bodies.slides)):
            a = bodies.axis[k[n]]
            W[n] = np.outer(a, a) / bodies.mass[k[n]]
        total += np.where((k >= 0)[:, None, None], W, 0.0)
    return np.linalg.eigvalsh(total)[:, -1]


def beyond_cone(c: Touching, mu: float) -> float:
    """Largest friction beyond its cone, or pull [N s]."""
    along = np.hypot(c.impulse[:, 1], c.impulse[:, 2]) - mu * np.maximum(c.impulse[:, 0], 0.0)
    return float(np.maximum(along, -c.impulse[:, 0]).max(initial=0.0))


def natural_map(c: Touching, u, wanted, W, mu) -> np.ndarray:
    """``W |lam - P(lam - u / W)|`` [m/s], (n,), with the normal velocities ``wanted``.

    Impulses count as they are within their cones; ``beyond_cone`` is the rest.
    """
    lam = np.maximum(c.impulse[:, 0], 0.0)
    normal = W * np.abs(lam - np.maximum(0.0, lam - wanted / W))
    along = _within(c.impulse[:, 1:], mu * lam)
    slide = W * np.linalg.norm(along - _within(along - u[:, 1:] / W[:, None], mu * lam), axis=1)
    return np.maximum(normal, slide)


def _within(vectors, radius):
    """The nearest vectors that are no longer than these radii, (n, 2)."""
    size = np.maximum(np.linalg.norm(vectors, axis=1), 1e-300)
    return vectors * np.minimum(1.0, radius / size)[:, None]


def bounced(before, w, change, e) -> np.ndarray:
    """By how much normal velocities after a bounce miss the law, whenever it was in the step, (n,).

    ``w = -e (before + s change) + (1 - s) change`` after a part ``s`` of the step, with the change
    of the velocity by other forces in the whole step.
    """
    ends = np.array([-e * (before + s * change) + (1 - s) * change for s in (0.0, 1.0)])
    return w - np.clip(w, ends.min(axis=0), ends.max(axis=0))


def _by_pairs(prior: dict) -> dict:
    """Velocities of the last step by names of pairs, without the number of the point."""
    found: dict[str, list] = {}
    for name, velocities in prior.items():
        found.setdefault(name.rpartition(":")[0], []).extend(velocities)
    return found


def _any_of(prior: dict, of_pairs: dict, name: str, k: int, now) -> np.ndarray:
    """The ``k``-th velocity of the last step that may be that of a contact, or the one ``now``.

    Those of its name first; corners can exchange their names, so that of any contact of its pair.
    """
    known = [*prior.get(name, []), *of_pairs.get(name.rpartition(":")[0], [])] or [now]
    return known[min(k, len(known) - 1)]


def law_errors(c: Touching, before, w, prior: dict, W, scene, change) -> np.ndarray:
    """Errors of the laws of every contact [m/s], (n,).

    Args:
        c: contacts.
        before: velocities along normals and tangents before the step, (n, 3).
        w: after it.
        prior: lists of those at the end of the last step, of contacts with force, by name.
        W: mobilities.
        scene: step, friction, restitution.
        change: of normal velocities in the step without contact, (n,).
    """
    h, mu, e = scene.timestep, scene.friction, scene.restitution
    found = np.full(len(w), np.inf)
    bends = [np.zeros_like(w)]
    of_pairs = _by_pairs(prior)
    for k in range(2 * max(map(len, of_pairs.values()), default=0)):
        last = [
            _any_of(prior, of_pairs, name, k, now)
            for name, now in zip(c.names, before, strict=True)
        ]
        bends.append((before - np.array(last).reshape(-1, 3)) / 2)
    for bend in bends:
        u = w + bend
        wanted = [u[:, 0] + np.maximum(c.gap - h * bend[:, 0] / 4, 0.0) / h]
        if e > 0:
            bounces = bounced(before[:, 0], w[:, 0], change, e)
            wanted.append(np.where(before[:, 0] + change < 0, bounces, wanted[0]))
        for x in wanted:
            found = np.minimum(found, natural_map(c, u, x, W, mu))
    return found
