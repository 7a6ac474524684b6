"""Trajectories: what a simulation returns."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.model import Model
from kinetree.quantities.dynamics import Forces
from kinetree.quantities.reactions import Part
from kinetree.simulation.results import parts, plotting, storage, tables
from kinetree.simulation.results.observables import reactions


@dataclass(frozen=True, repr=False)
class Trajectory:
    """A motion, as arrays with time first; batch axes, if any, come second.

    Attributes:
        model: the mechanism that moved.
        t: times [s], (T,).
        q: joint positions, (T, ..., nq).
        qd: joint velocities, (T, ..., nv).
        tau: joint forces of the controller during the step that begins at each time, (T, ..., nv);
            under ``controls`` those of the actuators at that time; of prescribed joints, what their
            drives exert at that time.
        energy: kinetic energy, and potential energy in the gravity field and in springs of the
            joints [J], (T, ...).
        work: of all joint forces since the start, those of springs included, so that it is the
            change of energy less that of the springs [J], (T, ...).
        loop_error: largest position error of a loop or coupling [m or rad], (T, ...).
        events: ``EventRecord`` s in order of time.
        report: checks of the result.
        contact: contact forces and residuals, a ``ContactHistory``, where there was contact.
        acted: what exerted forces, for ``reactions``; None in a trajectory from a file.
        controls: of the actuators during the step that begins at each time, (T, ..., n), where they
            were controlled; else None.
        activation: of the actuators that have one, (T, ..., m); or None.
    """

    model: Model
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    energy: np.ndarray
    work: np.ndarray
    loop_error: np.ndarray
    events: tuple = ()
    report: Any = None
    contact: Any = None
    acted: Any = field(default=None, compare=False)
    controls: np.ndarray | None = None
    activation: np.ndarray | None = None

    def __len__(self):
        return len(self.t)

    def __repr__(self):
        batch = f" of a batch of shape {self.q.shape[1:-1]}" if self.q.ndim > 2 else ""
        span = f", t = {self.t[0]:g} to {self.t[-1]:g} s" if len(self) else ""
        return f"<Trajectory of {self.model.name!r}: {len(self)} states{batch}{span}>"

    def __getstate__(self):
        return self.__dict__ | {"acted": None}  # functions of the user's cannot be sent

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name, time first."""
        names = ("t", "q", "qd", "tau", "energy", "work", "loop_error", "controls", "activation")
        found = {name: getattr(self, name) for name in names}
        return {name: array for name, array in found.items() if array is not None}

    # --- parts --------------------------------------------------------------------------------

    def __getitem__(self, which):
        """The motion of a joint by its name, ``trajectory["elbow"].q``; or some of the times."""
        if isinstance(which, str):
            return parts.joint_motion(self, which)
        return parts.some_times(self, which)

    def motion(self, index: Any) -> "Trajectory":
        """One motion, or some, of a batch; ``index`` is for the batch axes."""
        return parts.one_of_many(self, index)

    def resample(self, times: ArrayLike) -> "Trajectory":
        """The motion at other times [s]: a sorted array, or a number, their distance.

        Between stored times it is a cubic on the manifold that meets positions and velocities at
        both ends. Controls and the controller's forces are those of the stored time before; those
        of servos, work and loop error are interpolated linearly.
        """
        return parts.resample(self, times)

    def reactions(
        self, joint: str | None = None, *, part: Part = "total", frame: str = "joint",
        f_ext: Forces = None,
    ) -> np.ndarray:  # fmt: skip
        """Forces across the joints at all times, (T, ..., joints, 6): ``kt.joint_reactions``.

        Under all forces that acted: ``kt.ExternalForce`` pushes bodies, other ``forces`` count as
        joint forces. A trajectory from a file or a rollout does not hold those; then it was the
        controller, and what joints have of their own.

        Args:
            joint: name of the only joint that is wanted; then the result is (T, ..., 6).
            part: ``"total"``, ``"bearing"`` or ``"drive"``.
            frame: coordinates of the result, as in ``kt.joint_reactions``.
            f_ext: further forces on bodies at each time, such as those of contacts.
        """
        return reactions(self, f_ext, joint=joint, part=part, frame=frame)

    # --- files, tables, pictures -----------------------------------------------------------------

    def to_xarray(self) -> Any:
        """A labelled dataset; see ``kinetree.simulation.results.tables``."""
        return tables.to_xarray(self)

    def to_pandas(self) -> Any:
        """A table with a row for each time and columns such as ``q.elbow``."""
        return tables.to_pandas(self)

    def save(self, path: str | Path) -> Path:
        """Write it to a file: ``.npz``, ``.parquet`` or ``.nc`` (NetCDF). Returns the path."""
        return storage.save(self, path)

    @classmethod
    def load(cls, path: str | Path, model: Model | None = None) -> "Trajectory":
        """Read a file that ``save`` wrote; ``model`` is for those that could not hold theirs."""
        return storage.load(cls, path, model)

    def plot(self, *, joints: Sequence[str] | None = None) -> Any:
        """A Matplotlib figure: positions, velocities, forces, energy; of some joints, or all."""
        return plotting.plot(self, joints=joints)

    def view(self, **options: Any) -> Any:
        """Deprecated: ``kinetree.view(trajectory, **options)`` shows it in the browser."""
        import kinetree  # the viewer stands above this layer, and is reached by the public door

        message = "trajectory.view() is deprecated: use kinetree.view(trajectory)"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return kinetree.view(self, **options)
