"""Parts of a trajectory: one joint, some of the times, one of many motions."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kinetree.errors import ShapeError

__all__ = ["JointMotion", "joint_motion", "one_of_many", "some_times"]


class JointMotion(NamedTuple):
    """The motion of one joint; joints of one variable have no axis for it.

    Attributes:
        q: positions [m, rad], (T, ..., nq of the joint).
        qd: velocities, (T, ..., nv of the joint).
        tau: joint forces of the controller [N, N·m], (T, ..., nv of the joint).
    """

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray


def joint_motion(trajectory, name) -> JointMotion:
    """The motion of the joint with this name; one that follows others has no force of its own."""
    model = trajectory.model
    i = model.joint_index(name)
    if any(c.joint == i for c in model.couplings):
        full = model.uncoupled
        q = model.expand(trajectory.q)[..., full.q_slice[i].start]
        qd = model.expand_velocity(trajectory.q, trajectory.qd)[..., full.v_slice[i].start]
        return JointMotion(q, qd, 0 * qd)

    def part(array, at):
        array = array[..., at]
        return array[..., 0] if array.shape[-1] == 1 else array

    return JointMotion(
        part(trajectory.q, model.q_slice[i]),
        part(trajectory.qd, model.v_slice[i]),
        part(trajectory.tau, model.v_slice[i]),
    )


def some_times(trajectory, which):
    """The trajectory at some of its times: a slice, a mask, or numbers of samples."""
    which = which if isinstance(which, slice) else np.atleast_1d(which)
    arrays = {name: array[which] for name, array in trajectory.arrays().items()}
    t = arrays["t"]
    within = tuple(e for e in trajectory.events if len(t) and t[0] <= e.t <= t[-1])
    contact = trajectory.contact and trajectory.contact.at(which)
    return replace(trajectory, events=within, contact=contact, **arrays)


def one_of_many(trajectory, index):
    """One motion, or some, of a batch; ``index`` is for the batch axes."""
    index = index if isinstance(index, tuple) else (index,)
    shape = trajectory.q.shape[1:-1]
    try:
        arrays = {
            name: array if name == "t" else array[(slice(None), *index)]
            for name, array in trajectory.arrays().items()
        }
    except IndexError:
        raise ShapeError(
            f"there is no motion {', '.join(map(str, index))} in a batch of shape {shape}"
        ) from None
    contact = trajectory.contact and trajectory.contact.at((slice(None), *index))
    events = _events_of(trajectory, index)
    return replace(trajectory, events=events, contact=contact, **arrays)


def _events_of(trajectory, index):
    """Events of the motions at ``index``; slices and the like keep all."""
    if not all(isinstance(i, (int, np.integer)) for i in index):
        return trajectory.events
    place = tuple(range(n)[i] for n, i in zip(trajectory.q.shape[1:-1], index, strict=False))
    found = [e for e in trajectory.events if tuple(e.sample[: len(place)]) == place]
    return tuple(replace(e, sample=tuple(e.sample[len(place) :])) for e in found)
