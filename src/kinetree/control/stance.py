"""Tables of whole-body control for the contacts that are closed, as compiled code reads them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.control.levels import Levels, workspace
from kinetree.control.whole_body_step import StanceInstant
from kinetree.model.limits import position_bounds, position_index

RELAXED = ((), ("joint limits",), ("joint limits", "contacts"))
"""What gives way where not everything can be met, stage by stage."""


@dataclass(frozen=True, eq=False)
class WholeBodyRobot:
    """A robot with its tasks and contacts, whatever is closed.

    Attributes:
        model: the mechanism.  driven: numbers of its driven velocity variables.
        contacts: by name.  points: columns of their forces, by name.
        rows: tasks.  fixed: rows of tasks that do not depend on the state, (tasks, nv + forces).
        limits: smallest and largest forces of motors, (2, nv).
        rate: of the approach to limits of joints, or 0.  damping: of all unknowns.
        gains: stiffness and damping of the tasks that move.  arrays: quantities and references.
    """

    model: Any
    driven: np.ndarray
    contacts: dict
    points: dict[str, slice]
    rows: list
    fixed: np.ndarray
    limits: np.ndarray
    rate: float
    damping: np.ndarray
    gains: tuple[np.ndarray, np.ndarray]
    arrays: dict[str, np.ndarray]

    @cached_property
    def idle(self) -> np.ndarray:
        """Velocity variables without a motor."""
        return np.setdiff1d(np.arange(self.model.nv), self.driven)

    @cached_property
    def joint_limits(self) -> dict[str, np.ndarray]:
        """Limits of the driven joints that have limits."""
        model = self.model
        low, high = position_bounds(model)
        speed = np.asarray(model.velocity_limits, dtype=float)
        bounded = np.isfinite(low) | np.isfinite(high) | np.isfinite(speed)
        at = np.intersect1d(np.flatnonzero(bounded), self.driven) if self.rate else _NONE
        numbers = {"joint_low": low[at], "joint_high": high[at], "speed": speed[at]}
        return {"joint": at, "position": position_index(model)[at], **numbers}

    @cached_property
    def motor_limits(self) -> dict[str, np.ndarray]:
        """Limits of the motors that have limits."""
        at = np.intersect1d(np.flatnonzero(np.any(np.isfinite(self.limits), axis=0)), self.driven)
        return {"motor": at, "least": self.limits[0, at], "most": self.limits[1, at]}


_NONE = np.zeros(0, int)


class Stance:
    """Set of closed contacts, and the tables that follow from it.

    Attributes:
        names: of the closed contacts.
        points: columns of their forces, by name.
        labels: what each bound is, in words, and its unit.
    """

    def __init__(self, robot: WholeBodyRobot, names):
        self.robot, self.names = robot, names
        columns, rows, row, start, self.points = [_NONE], [_NONE], 0, 0, {}
        for name, c in robot.contacts.items():
            at, size = robot.points[name], 3 + len(c.turns)
            if name in names:
                self.points[name] = slice(start, start + at.stop - at.start)
                start = self.points[name].stop
                columns.append(np.arange(at.start, at.stop))
                rows.append(np.arange(row, row + size))
            row += size
        self.columns, self.rows = np.concatenate(columns), np.concatenate(rows)
        self.labels: list[tuple[str, str]] = []
        self._stages: dict[int, tuple[StanceInstant, Levels]] = {}
        self._levels: dict[tuple, tuple[np.ndarray, int]] = {}

    def stage(self, number: int, live: tuple[bool, ...]) -> tuple[StanceInstant, Levels]:
        """Problem tables of the stance at a level of relaxation, for the tasks that apply."""
        found = self._stages.get(number)
        if found is None:
            found = self._stages[number] = self._tables(number)
        problem: Any = found[1]
        if problem.live != live:
            problem.live = live
            level, problem.levels = self._levels_of(live)
            soft = number == len(RELAXED) - 1
            problem.level[: len(level)] = level + (soft & (level >= 0))
            problem.levels += soft
        return found

    def _levels_of(self, live):
        """Priority level of each task row, -1 for inactive tasks, and the number of levels."""
        rows = self.robot.rows
        used = sorted({r.priority for r, on in zip(rows, live, strict=True) if on})
        each = [used.index(r.priority) if on else -1 for r, on in zip(rows, live, strict=True)]
        sizes = [r.size for r in rows]
        return np.repeat(np.array(each, int), sizes), max(1, len(used))

    def _tables(self, number) -> tuple[StanceInstant, Levels]:
        """Problem tables of the stance for one level of relaxation."""
        robot, nv = self.robot, self.robot.model.nv
        soft, hard_limits = number == len(RELAXED) - 1, number == 0
        joints = robot.joint_limits if hard_limits else {}
        cones = self._cones()
        n, tasks = nv + len(self.columns), len(robot.fixed)
        count, motors = len(joints.get("joint", ())), len(robot.motor_limits["motor"])
        bounds = count + motors + len(cones[0])
        variables = np.concatenate([np.arange(nv), nv + self.columns])
        more = len(self.rows) if soft else 0
        problem: Any = workspace(n, len(robot.idle) + len(self.rows) - more, tasks + more, bounds)
        problem.live, problem.hopeful = None, not soft
        A = problem.A.reshape(tasks + more, n)
        A[:tasks] = robot.fixed[:, variables]
        G = problem.G.reshape(bounds, n)
        G[np.arange(count), joints.get("joint", _NONE)] = 1.0
        G[count + motors :, nv:], problem.low[count + motors :] = cones[0], cones[1]
        problem.high[count + motors :] = cones[2]
        problem.damping[:] = robot.damping[variables]
        problem.root[:] = 1.0
        weights = [np.zeros(0), *(r.weight for r in robot.rows)]
        problem.root[:tasks] = np.sqrt(np.concatenate(weights))
        if number == 0:
            self.labels = self._labels(cones[3])
        kp, kd = robot.gains
        instant = StanceInstant(
            nv=nv,
            forces=len(self.columns),
            tasks=tasks,
            soft_contacts=soft,
            moving=len(robot.arrays["v_r"]),
            coupled=kp.ndim == 2,
            jacobians=len(robot.arrays["Jt"]) // max(nv, 1),
            kp=kp.reshape(-1),
            kd=kd.reshape(-1),
            idle=robot.idle,
            idles=len(robot.idle),
            driven=robot.driven,
            drivens=len(robot.driven),
            column=self.columns,
            contact=self.rows,
            contacts=len(self.rows),
            joints=count,
            motors=motors,
            rate=robot.rate,
            **robot.arrays,
            **robot.motor_limits,
            **joints,
        )
        return instant, problem

    def _cones(self):
        """Friction-cone rows, their bounds and names."""
        rows, low, high, labels = [np.zeros((0, len(self.columns)))], [], [], []
        for name in self.names:
            c = self.robot.contacts[name]
            cone, least, most = c.cone()
            for k in range(self.points[name].start, self.points[name].stop, 3):
                here = np.zeros((len(cone), len(self.columns)))
                here[:, k : k + 3] = cone
                rows.append(here)
                low.append(least)
                high.append(most)
                labels += [(f"the friction cone of contact {c.frame!r}", "N")] * c.sides
                labels.append((f"the normal force of contact {c.frame!r}", "N"))
        none = [np.zeros(0)]
        return np.concatenate(rows), np.concatenate(none + low), np.concatenate(none + high), labels

    def _labels(self, cones):
        """Names and units of all constraints, for messages."""
        robot = self.robot
        owner = _variable_names(robot.model)
        joints, motors = robot.joint_limits["joint"], robot.motor_limits["motor"]
        labels = [(f"the limits of joint {owner[v]}", "rad/s² or m/s²") for v in joints]
        return (
            labels + [(f"the torque limit of joint {owner[v]}", "N·m or N") for v in motors] + cones
        )


def _variable_names(model):
    """Names of all velocity variables, for messages."""
    names = []
    for name, s in zip(model.joint_names, model.v_slice[1:], strict=True):
        count = s.stop - s.start
        names += [repr(name)] if count == 1 else [f"{name!r}[{k}]" for k in range(count)]
    return names
