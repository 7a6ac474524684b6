"""Motions to be shown: of a model, a trajectory, a file of either, a sample by its name."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError
from kinetree.model import Model
from kinetree.model.arrays import as_configuration
from kinetree.quantities.dynamics import external_forces
from kinetree.quantities.reactions import Part, joint_reactions
from kinetree.simulation.results.storage import SUFFIXES
from kinetree.simulation.results.trajectory import Trajectory
from kinetree.viewer.scenes.contacts import Contacts, forces_seen
from kinetree.viewer.scenes.description import Scene
from kinetree.viewer.scenes.stage import Overlays, Stage
from kinetree.worlds.pieces import PLACED, model_named
from kinetree.worlds.world import World

FRAMES_PER_SECOND = 30
_MOST = 200_000  # nodes times states: some ten megabytes
_FAR = 1e15  # no picture has room for more

Viewable: TypeAlias = Model | Trajectory | World | str | os.PathLike
"""A model, a motion, a world, the name of a file of a model or motion, or of a sample."""


@dataclass(frozen=True, eq=False)
class Beside:
    """A second motion that is drawn to the right of the first, as ``ghost=Beside(motion)``.

    Attributes:
        motion: a motion of the same mechanism, or a configuration (nq,).
    """

    motion: Any


@dataclass(frozen=True, eq=False)
class ShownMotion:
    """A mechanism with its states over time; a single state is a motion, too.

    Attributes:
        model: the mechanism.
        t: times [s], (T,).
        q: positions, (T, nq).
        qd: velocities, (T, nv), or None.
        tau: joint forces, (T, nv), or None.
        source: the trajectory that it is of, or None.
        touching: ``Contacts`` of a single state, or None; those of a trajectory are in ``source``.
        world: the world that it is the state of, or None.
    """

    model: Model
    t: np.ndarray
    q: np.ndarray
    qd: Any = None
    tau: Any = None
    source: Any = None
    touching: Any = None
    world: Any = None

    @property
    def moves(self) -> bool:
        """Whether the motion has more than one state."""
        return len(self.t) > 1

    def at(self, which) -> "ShownMotion":
        """Motion with only the states of an index or mask."""
        qd, tau, source = (
            None if x is None else x[which] for x in (self.qd, self.tau, self.source)
        )
        parts = (qd, tau, source, self.touching, self.world)
        return ShownMotion(self.model, self.t[which], self.q[which], *parts)

    def reactions(self, part: Part) -> np.ndarray:
        """Joint reactions in base axes, (T, joints, 6); of a pose at rest."""
        if self.source is not None:
            return np.asarray(self.source.reactions(part=part, frame="aligned"))
        zero = np.zeros(self.model.nv)
        return joint_reactions(self.model, self.q, zero, zero, part=part, frame="aligned")

    def drawable(self) -> tuple[np.ndarray, list[str]]:
        """Indices of the finite states, and a notice about the others."""
        arrays = [x for x in (self.q, self.qd) if x is not None]
        good = np.all([np.all(np.abs(x) < _FAR, axis=-1) for x in arrays], axis=0)
        lost = len(good) - int(good.sum())
        if not lost:
            return np.arange(len(good)), []
        first = f"t = {self.t[np.argmin(good)]:.6g} s"
        if lost == len(good):
            raise ShapeError(f"no state of the motion is finite, from {first} on: nothing to show")
        notice = f"{lost} of {len(good)} states are not finite, the first at {first}: left out"
        return np.flatnonzero(good), [notice]

    def thin(self, rate: float = FRAMES_PER_SECOND) -> tuple[np.ndarray, list[str]]:
        """Indices of at most ``rate`` states per second to show, and notices."""
        which, notices = self.drawable()
        t = self.t[which]
        by_time = int(np.ceil((t[-1] - t[0]) * rate)) + 1
        by_size = max(_MOST // (self.model.body_count + 2), 2)
        count = min(by_time, by_size)
        if count >= len(t):
            return which, notices
        middle = (t[1:] + t[:-1]) / 2
        kept = np.unique(np.searchsorted(middle, np.linspace(t[0], t[-1], count)))
        if count < by_time:
            notices.append(
                f"{len(kept)} of {len(t)} states are shown, evenly over time: the motion is long; "
                f"for more of them, show a part of it"
            )
        return which[kept], notices


def motion_of(
    what: Viewable, q: ArrayLike | None = None, t: ArrayLike | None = None
) -> ShownMotion:
    """``ShownMotion`` of a model, trajectory, world, file or sample.

    Args:
        what: a ``Model``, a ``Trajectory`` of one motion, a ``World`` as it is, the name of a file
            of a model or motion, or the name of a sample.
        q: positions of a model: one state (nq,), or (T, nq); by default the posture ``home`` where
            there is one, else where a file puts what floats (``qpos0``, ``initial``), else the
            neutral position within the limits.
        t: times of ``q`` [s], (T,); 30 a second unless given.
    """
    if isinstance(what, ShownMotion):
        return what
    if isinstance(what, (str, os.PathLike)):
        what = _open(what)
    if isinstance(what, Trajectory):
        if q is not None:
            raise ShapeError("a trajectory has its own positions; q is for models")
        return _motion_of_trajectory(what)
    if isinstance(what, World):
        return _motion_of_world(what, q, t)
    if not isinstance(what, Model):
        raise TypeError(
            f"only a Model, a Trajectory, a World, a file or the name of a sample can be shown, "
            f"got {what!r}"
        )
    return _motion_of_model(what, q, t)


def scene_of(
    what: Viewable,
    q: ArrayLike | None = None,
    *,
    t: ArrayLike | None = None,
    forces: ArrayLike | None = None,
    reactions: Part | ArrayLike | None = None,
    contacts: Contacts | None = None,
    ghost: Viewable | Beside | ArrayLike | None = None,
    trace: str | None = None,
    collision: bool = False,
    rate: float = FRAMES_PER_SECOND,
) -> Scene:
    """``Scene`` to draw: plain data for tests and other renderers.

    Args:
        what: as in ``view``.
        q: as in ``view``.
        t: as in ``view``.
        forces: as in ``view``.
        reactions: as in ``view``.
        contacts: as in ``view``.
        ghost: as in ``view``.
        trace: as in ``view``.
        collision: as in ``view``.
        rate: states a second at most.
    """
    motion = motion_of(what, q, t)
    stage = Stage(motion.model, collision=collision)
    return stage_motion(stage, motion, Overlays(forces, reactions, contacts, ghost, trace), rate)


def stage_motion(stage, motion, overlays: Overlays, rate: float = FRAMES_PER_SECOND):
    """``Scene`` of a motion on a stage with overlays, thinned in time.

    ``overlays`` are as users give them, see ``view``: at all times of the motion, and thinned with
    it.
    """
    which, notices = motion.thin(rate)
    shown = motion.at(which)
    forces, reactions, contacts, ghost, trace, _ = overlays
    beside = ghost.motion if isinstance(ghost, Beside) else None
    if forces is not None:
        forces = _thinned_forces(motion, forces, which)
    if reactions is not None:
        reactions = _thinned_reactions(motion, reactions, which)
    if contacts is not None:
        touching = contacts.at(motion.t, shown.t)
    else:
        touching = shown.touching if shown.source is None else forces_seen(shown.source)
    second, other = (
        None if x is None else _alongside(what, x, shown)
        for what, x in (("ghost", None if beside is not None else ghost), ("Beside", beside))
    )
    drawn = Overlays(forces, reactions, touching, second, trace, other)
    scene = stage.scene(shown.t, shown.q, shown.qd, shown.tau, drawn)
    return replace(scene, notices=(*scene.notices, *notices))


def _thinned_forces(motion, forces, which):
    """Wrenches on bodies at the selected times; constant ones unchanged."""
    wrenches = np.asarray(external_forces(motion.model, forces), dtype=float)
    if wrenches.ndim == 2:
        return wrenches
    expected = (len(motion.t), motion.model.body_count, 6)
    if wrenches.shape != expected:
        raise ShapeError(
            f"forces must be f_ext for each of the {len(motion.t)} times, of shape {expected}, or "
            f"one for all; got {wrenches.shape}"
        )
    return wrenches[which]


def _thinned_reactions(motion, reactions, which):
    """Joint reactions at the selected times, computed or given."""
    if isinstance(reactions, str):
        return motion.at(which).reactions(reactions)
    joints = motion.model.body_count + len(motion.model.loops)
    expected, given = (len(motion.t), joints, 6), np.asarray(reactions, dtype=float)
    if given.shape not in (expected, expected[1:]):
        raise ShapeError(
            f"reactions must be 'total', 'bearing' or 'drive', or those of joint_reactions with "
            f"frame='aligned', of shape {expected}; got {given.shape}"
        )
    return np.broadcast_to(given, expected)[which]


def _alongside(what, given, shown):
    """Positions of a ghost or second motion at the times of the shown one."""
    if isinstance(given, np.ndarray):
        return np.broadcast_to(as_configuration(shown.model, given), shown.q.shape)
    other = motion_of(given)
    if other.model != shown.model:
        raise ShapeError(
            f"a {what} must be a motion of the same model, {shown.model.name!r}; got one of "
            f"{other.model.name!r}"
        )
    other = other.at(other.drawable()[0])
    middle = (other.t[1:] + other.t[:-1]) / 2
    return other.q[np.searchsorted(middle, shown.t)]


def _motion_of_world(world, q, t):
    """``ShownMotion`` of a world as it is with contacts, or at other positions."""
    if q is not None:
        return _motion_of_model(world.model, q, t)
    found = world.contacts()
    touching = None
    if len(found):
        touching = Contacts(*(x[None] for x in (found.point, found.normal, found.force)))
    now = {"touching": touching, "world": world}
    return ShownMotion(world.model, np.array([world.time]), world.q[None], **now)


def _motion_of_model(model, q, t):
    """``ShownMotion`` of a model: one state, a motion, or its usual posture."""
    if q is None:
        named = {p.name: p for p in model.postures}
        usual = next((named[name] for name in ("home", *PLACED) if name in named), None)
        q = _within_limits(model) if usual is None else np.array(usual.q)
    q = np.atleast_2d(as_configuration(model, q))
    if q.ndim != 2:
        raise ShapeError(f"q must be (nq,) or (T, nq) to be shown, got shape {q.shape}")
    t = np.arange(len(q)) / FRAMES_PER_SECOND if t is None else np.asarray(t, dtype=float)
    if t.shape != (len(q),) or np.any(np.diff(t) < 0):
        raise ShapeError(f"t must be {len(q)} times in order, one for each q; got shape {t.shape}")
    return ShownMotion(model, t, q)


def _within_limits(model):
    """Neutral configuration, with excluded joints at the middle of their limits."""
    q = model.neutral().astype(float)
    for i, limits in enumerate(model.travel):
        if limits is None or model.joint[i].nq != 1 or not (limits.lower and limits.upper):
            continue
        k, low, high = model.q_slice[i].start, limits.lower[0], limits.upper[0]
        if np.isfinite(low) and np.isfinite(high) and not low <= q[k] <= high:
            q[k] = (low + high) / 2
    return q


def _motion_of_trajectory(trajectory):
    """``ShownMotion`` of a trajectory; ShapeError for a batch of motions."""
    if trajectory.q.ndim != 2:
        count = int(np.prod(trajectory.q.shape[1:-1]))
        raise ShapeError(
            f"the trajectory holds {count} motions; choose one to be shown, such as "
            f"trajectory.motion(0), and perhaps another as its ghost"
        )
    arrays = (trajectory.t, trajectory.q, trajectory.qd, trajectory.tau)
    return ShownMotion(trajectory.model, *arrays, trajectory)


def _open(name):
    """Trajectory or model of a file, or the model of a sample."""
    path = Path(name)
    if path.suffix.lower() in SUFFIXES and path.exists():
        return Trajectory.load(path)
    return model_named(name)
