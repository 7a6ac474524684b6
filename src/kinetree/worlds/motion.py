"""Steps of a world, and what can be measured afterwards: contacts, sensors, pictures, accuracy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, SimulationError
from kinetree.model.cameras import Camera
from kinetree.rendering.cameras import render
from kinetree.simulation.sensors import Readings, Sensors, sensors
from kinetree.worlds.contacts import Contacts
from kinetree.worlds.forces import WorldForces
from kinetree.worlds.inputs import by_part
from kinetree.worlds.results import Report
from kinetree.worlds.state import WorldState


class WorldMotion(WorldState):
    """Steps that a world takes, and what is measured in it."""

    def step(
        self,
        n: int = 1,
        control: Any = None,
        *,
        tau: ArrayLike | Callable | None = None,
        forces: Any = None,
    ) -> None:
        """Take ``n`` steps of ``timestep`` seconds.

        Args:
            n: how many.
            control: of the actuators of all robots, (number of actuators,); or by name of the
                part, ``{"left": u}``; or a function ``(t, q, qd)`` that returns either, called
                before every step. Without it actuators exert nothing.
            tau: joint forces beside them, (nv,), by part as well, or a function ``(t, q, qd)``; by
                part also functions of the state of the part, ``{"left": controller}``.
            forces: external forces, as of ``kinetree.simulate``: a ``kinetree.ExternalForce``, a
                function ``(model, t, q, qd)`` that returns joint forces, or several; or by name of
                the body or frame, ``{"box": (0, 0, 5.0)}``: three numbers are a force through its
                origin [N], six a moment [N·m] and a force, along the axes of the world. Functions
                are called before every step.
        """
        if type(n) is not int or n < 0:
            n = _number_of_steps(n)
        if self._is_stepping:
            self._require_rest("step it")
        before = self.state if self.strict else None
        self._is_stepping, steps = True, None
        try:
            whole = self._whole
            steps = whole.steps
            steps.taken = 0
            plain = tau is None and forces is None and n > 0
            if not plain or callable(control) or not steps.go_on(whole, self._timestep, n, control):
                self._step(steps, n, control, tau, forces)
        except SimulationError:
            if before is not None:
                self._is_stepping = False
                self.set_state(before)
            raise
        finally:  # a controller may fail on the way
            self._is_stepping = False
            if steps is not None:
                self._time += steps.taken * self._timestep

    def _step(self, steps, n, control, tau, forces):
        """Take ``n`` steps with joint forces, external forces or a control function."""
        whole, t, h = self._whole, self._time, self._timestep
        if tau is None and forces is None and n and callable(control):
            steps.follow(whole, t, h, n, control, self._actuators)
        else:
            acting = by_part(tau, self), WorldForces(self.model, forces)
            steps.advance(whole, t, h, n, control, acting, self._actuators)

    def contacts(self) -> Contacts:
        """``Contacts`` of the last step with their forces, as a table."""
        return self._whole.steps.contacts(self._whole)

    def report(self) -> Report:
        """Accuracy of all steps since the last report: errors, energy, unsolved steps."""
        return self._whole.steps.report(self._time, self._timestep)

    # --- sensors -----------------------------------------------------------------------------

    @property
    def sensors(self) -> Sensors:
        """Sensors of all parts, by name."""
        return sensors(self.model)

    def read_sensors(self) -> Readings:
        """Present sensor readings by name, with forces and accelerations of the last step."""
        return self._whole.steps.readings(self._whole, self.sensors, self._time)

    @property
    def cameras(self) -> tuple[Camera, ...]:
        """Cameras of all parts, a tuple."""
        return self.model.cameras

    def render(
        self,
        camera: str | Camera | None = None,
        what: str | Sequence[str] = "color",
        *,
        collision: bool = False,
        shadows: bool = True,
    ) -> np.ndarray | dict[str, np.ndarray]:
        """Camera image of the world, as ``kinetree.render``.

        Args:
            camera: a ``Camera`` or the name of one of the world; by default its first one.
            what: ``"color"``, ``"depth"``, ``"shape"``, ``"body"``, or several of these.
            collision: draw the shapes that can touch instead of those to be seen.
            shadows: whether there are shadows in colours.
        """
        return render(self.model, self.q, camera, what, collision=collision, shadows=shadows)


def _number_of_steps(n) -> int:
    """``n`` as an int; ShapeError unless it is a nonnegative integer."""
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 0:
        raise ShapeError(f"n must be an integer number of steps, got {n!r}")
    return int(n)
