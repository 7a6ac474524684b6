"""A world watched step by step: what its contacts do against the laws, and what it reports.

Per step, from the states before and after it and the table of contacts:

- *overlap* [m]: of all pairs of solids at the end of the step, by ``solids``.
- *velocity* [m/s]: what the laws of contact want of the velocity at a contact and do not get. It is
  the natural map ``W |lam - P(lam - u / W)|`` with the mobility ``W`` of the contact: the velocity
  itself where a contact sticks or approaches, 0 where it separates without force.
- *momentum* [m/s]: velocity of bodies that the forces of the table do not explain.
- *cone* [N s]: friction beyond its cone, or pull.
- *gain* [J]: change of energy less the work of applied forces, where it is positive.

The scheme is Moreau's: velocities count at the pose in the middle of the step, and those of a
contact that goes on are averaged with the ones at its start (``bend``, of second order in the
step). Both are computed here again, from states.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import cKDTree

import kinetree as kt
from kinetree.model import geometry as g
from truth.mechanics import Bodies
from truth.solids import Solid, overlap

REST = 0.01  # [m/s] below which nothing bounces; that of ``TimeStepping``


@dataclass
class Step:
    """Figures of one step; see the module. ``said``: those of the world's report."""

    overlap: float = 0.0
    pair: tuple[str, str] = ("", "")
    velocity: float = 0.0
    momentum: float = 0.0
    cone: float = 0.0
    gain: float = 0.0
    said: dict = field(default_factory=dict)
    warned: list = field(default_factory=list)
    contacts: int = 0


class Judge:
    """Steps of a world of a scene, and what they are worth.

    Args:
        scene: the scene.
        world: its world; made of the scene by default.
        every: overlaps are looked for in every n-th step.
    """

    def __init__(self, scene, world=None, every=1):
        self.scene, self.every, self.taken = scene, every, 0
        self.warned: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.world = scene.world() if world is None else world
            self.bodies = Bodies(scene, self.world)
        self.warned += [str(w.message) for w in caught]
        self.tau = scene.forces(self.world)
        self.things = list(scene.all_things)
        self.solids = [Solid(t.shape) for t in self.things]
        self.moving = np.array([bool(t.mass) for t in self.things])
        self.prior: dict[str, np.ndarray] = {}
        self.axes: dict[tuple[int, int], np.ndarray] = {}

    def step(self) -> Step:
        """Take one step and judge it."""
        world, b, h = self.world, self.bodies, self.scene.timestep
        q, qd = world.q, world.qd
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            world.step(1, tau=self.tau)
        self.taken += 1
        found = Step(warned=[str(w.message) for w in caught])
        before, after = b.state(q, qd), b.state(world.q, world.qd)
        self._check_forces(found, before, after, h)
        change = b.energy(after) - b.energy(before)
        found.gain = max(0.0, change - b.work(before, after))
        if self.taken % self.every == 0:
            found.overlap, found.pair = self.overlap()
        found.said = said(world.report())
        return found

    def run(self, steps=None) -> list[Step]:
        """All steps."""
        return [self.step() for _ in range(self.scene.steps if steps is None else steps)]

    # --- geometry ----------------------------------------------------------------------------

    def overlap(self) -> tuple:
        """The deepest overlap at the state of the world [m], and the names of its pair."""
        poses = np.array([t.pose for t in self.things])
        poses[self.moving] = self.bodies.poses(self.world.q)
        worst, pair = 0.0, ("", "")
        for i, j in self._near(poses):
            start = [self.axes[i, j]] if (i, j) in self.axes else []
            depth, n = overlap(self.solids[i], poses[i], self.solids[j], poses[j], start)
            self.axes[i, j] = n
            if depth > worst:
                worst, pair = float(depth), (self.things[i].name, self.things[j].name)
        return worst, pair

    def _near(self, poses):
        """Pairs whose bounding balls overlap, at least one of which moves."""
        radius = np.array([s.radius for s in self.solids])
        wide = np.flatnonzero(~np.isfinite(radius) | ~self.moving)
        balls = np.flatnonzero(self.moving)
        x = poses[:, :3, 3]
        pairs = []
        for i in wide:
            away = np.linalg.norm(x[balls] - x[i], axis=1) < radius[balls] + radius[i]
            if isinstance(self.things[i].shape, g.Plane):
                away = (x[balls] - x[i]) @ poses[i, :3, 2] < radius[balls]
            pairs += [(i, j) for j in balls[away]]
        if len(balls) > 1:
            tree = cKDTree(x[balls])
            for a, c in tree.query_pairs(2 * radius[balls].max()):
                i, j = balls[a], balls[c]
                if np.linalg.norm(x[i] - x[j]) < radius[i] + radius[j]:
                    pairs.append((i, j))
        return pairs

    # --- laws --------------------------------------------------------------------------------

    def _check_forces(self, found, before, after, h):
        """Momentum, cones and velocities of the step."""
        table, b = self.world.contacts(), self.bodies
        found.contacts = len(table)
        if not b.things:
            return
        numbers = [[b.number.get(x, -1) for x in pair] for pair in table.bodies]
        for part in (0.5, 0.0):  # bodies that are fast for their size are looked at at the start
            middle = b.flown(before, part * h)
            impulses = _impulses(table, numbers, middle.x, h)
            missing = b.unexplained(before, after, *impulses, h).max()
            if part == 0.5 or missing < found.momentum / 2:
                found.momentum, pose = float(missing), middle
        motion = [(s.v, b.spins(pose.R, s.L)) for s in (before, after)]
        ended = {}
        for k, (i, j) in enumerate(numbers):
            self._check_contact(found, table, k, (i, j), pose, motion, ended)
        self.prior = ended

    def _check_contact(self, found, table, k, pair, pose, motion, ended):
        """Laws of contact ``k`` of the table between two bodies."""
        h, mu, e = self.scene.timestep, self.scene.friction, self.scene.restitution
        x, name, frame = table.point[k], table.names[k], _frame(table.normal[k])
        lam = h * (frame @ table.force[k])
        found.cone = max(found.cone, -lam[0], np.hypot(lam[1], lam[2]) - mu * max(lam[0], 0.0))
        before, w = (frame @ _slip(x, pair, pose.x, v, spin) for v, spin in motion)
        bend = (before - self.prior[name]) / 2 if name in self.prior else np.zeros(3)
        if lam[0] > 0:
            ended[name] = w
        u = w + bend
        W = self._mobility(x, pair, pose)
        wanted = [u[0] + max(table.gap[k] - h * bend[0] / 4, 0.0) / h]
        if e > 0 and before[0] < 0:
            wanted.append(w[0] + e * before[0])
        normal = min(abs(lam[0] - max(0.0, lam[0] - y / W)) * W for y in wanted)
        trial = lam[1:] - u[1:] / W
        size, most = np.hypot(*trial), mu * max(lam[0], 0.0)
        slide = W * np.linalg.norm(lam[1:] - (trial if size <= most else trial * most / size))
        found.velocity = max(found.velocity, float(normal), float(slide))

    def _mobility(self, x, pair, pose):
        """Largest inverse mass of a contact [1/kg]."""
        W = sum(self.bodies.mobility(k, pose.R[k], x - pose.x[k]) for k in pair if k >= 0)
        return np.linalg.eigvalsh(W)[-1]


def _slip(x, pair, centre, v, spin):
    """Velocity of the second body against the first at a point of the world."""
    total = np.zeros(3)
    for k, sign in zip(pair, (-1.0, 1.0), strict=True):
        if k >= 0:
            total += sign * (v[k] + np.cross(spin[k], x - centre[k]))
    return total


def _frame(n):
    """Normal and tangents as rows, as the table of contacts has them."""
    x, y, z = n
    s = -1.0 if z < -0.5 else 1.0
    a = -1.0 / (s + z)
    c = x * y * a
    return np.array([n, [1 + s * x * x * a, s * c, -s * x], [c, s + y * y * a, -y]])


def _impulses(table, numbers, centre, h):
    """Of the contacts on the bodies: impulses, and their moments about the centres, (n, 3)."""
    impulse, moment = np.zeros((2, len(centre), 3))
    for k, pair in enumerate(numbers):
        for body, sign in zip(pair, (-1.0, 1.0), strict=True):
            if body >= 0:
                f = sign * h * table.force[k]
                impulse[body] += f
                moment[body] += np.cross(table.point[k] - centre[body], f)
                moment[body] += sign * h * table.moment[k]
    return impulse, moment


def said(report: kt.worlds.results.Report) -> dict:
    """Figures of a report under the names used here."""
    r = report.residuals
    return {
        "overlap": float(report.penetration), "velocity": float(r.velocity), "cone": float(r.cone),
        "gain": float(r.gain), "relative": float(report.residual),
    }  # fmt: skip
