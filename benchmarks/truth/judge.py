"""A world watched step by step: what its contacts do against the laws, and what it reports.

Per step, from the states before and after it and the table of contacts:

- *overlap* [m]: of all pairs of solids at the end of the step, by ``solids``.
- *velocity* [m/s]: what the laws of contact want of the velocity at a contact and do not get, at
  the velocities that follow from the forces of the table. It is the natural map ``W |lam - P(lam -
  u / W)|`` with the mobility ``W`` of the contact: the velocity itself where a contact sticks or
  approaches, 0 where it separates without force.
- *momentum* [m/s]: velocity of bodies that the forces of the table do not explain: where energy is
  taken from velocities, or positions are shifted out of an overlap. It is shown, but not judged.
- *cone* [N s]: friction beyond its cone, or pull.
- *gain* [J]: change of energy less the work of applied forces, where it is positive.

The scheme is Moreau's: velocities count at the pose in the middle of the step, and those of a
contact that goes on are averaged with the ones at its start (``bend``, of second order in the
step), unless bodies are deep inside each other. Both are computed here again, from states.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import cKDTree

import kinetree as kt
from kinetree.model import geometry as g
from truth.contact_laws import (
    beyond_cone,
    law_errors,
    mobilities,
    on_bodies,
    slips,
    touching,
)
from truth.mechanics import Bodies
from truth.solids import Solid, overlap


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
        self.prior: dict[str, list] = {}
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
        found.said |= said(world.report())
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
        b, c = self.bodies, touching(self.world.contacts(), self.bodies, h)
        found.contacts = len(c.gap)
        if not b.things:
            return
        found.cone = beyond_cone(c, self.scene.friction)
        # Bodies that are fast for their size are looked at where the step begins.
        best = self._at(c, before, after, 0.5)
        if best["momentum"] + best["velocity"] > 1e-6:
            first = self._at(c, before, after, 0.0)
            # The factor of velocities by which energy is taken hides what momenta tell of it.
            errors = [(x["momentum"] + 1e-9) * (x["velocity"] + 1e-9) for x in (best, first)]
            best = first if errors[1] < errors[0] / 2 else best
        found.momentum, found.velocity, self.prior = (
            best[x] for x in ("momentum", "velocity", "ended")
        )

    def _at(self, c, before, after, part):
        """Figures if forces act after a part of the step."""
        b, h = self.bodies, self.scene.timestep
        pose = b.flown(before, part * h)
        pushed = b.pushed(pose, *on_bodies(c, pose.x), h)
        motion = [(s.v, b.spins(pose.R, s.L)) for s in (before, pushed)]
        was, w = (slips(c, pose.x, *m) for m in motion)
        prior = self.prior if part else {}
        fall = np.where(np.isin(np.arange(len(b.mass)), b.frees)[:, None], h * b.gravity, 0.0)
        change = slips(c, pose.x, fall, 0.0 * fall)[:, 0]
        errors = law_errors(c, was, w, prior, mobilities(c, b, pose), self.scene, change)
        pushes = np.flatnonzero(c.impulse[:, 0] > 0) if part else []
        ended: dict[str, list] = {}
        for k in pushes:
            ended.setdefault(c.names[k], []).append(w[k])
        return {
            "momentum": b.difference(pushed, after),
            "velocity": float(errors.max(initial=0.0)),
            "ended": ended,
        }


def said(report: kt.worlds.results.Report) -> dict:
    """Figures of a report under the names used here."""
    r = report.residuals
    return {
        "overlap": float(report.penetration), "velocity": float(r.velocity), "cone": float(r.cone),
        "gain": float(r.gain), "relative": float(report.residual),
    }  # fmt: skip
