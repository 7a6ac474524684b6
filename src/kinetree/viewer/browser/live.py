"""A world that runs while it is watched: bodies are pulled by springs that the mouse holds."""

import threading
import time
from typing import NamedTuple

import numpy as np

from kinetree.errors import KinetreeError
from kinetree.quantities.dynamics import mass_matrix
from kinetree.quantities.kinematics import jacobian, poses
from kinetree.spelling import printable
from kinetree.viewer.scenes.marks import LONGEST, scaled_arrows

_RATE = 30  # images a second
_PULLS = 4  # times between two images at which the spring's force changes
_STIFF = 20.0  # rad/s, of the spring with the mass that it pulls; it is damped critically
_COLOR, _PULLING = (0.84, 0.1, 0.1), (255, 140, 0)


class Grip(NamedTuple):
    """A spring between a point of a body and the mouse.

    Attributes:
        body: number of the body.
        point: in the coordinates of the body [m], (3,).
        target: where the mouse is, in the base [m], (3,).
        mass: least effective mass of the point in any direction [kg].
    """

    body: int
    point: np.ndarray
    target: np.ndarray
    mass: float


def effective_mass(model, q, body, point) -> float:
    """Smallest effective mass of a body point over all directions [kg]; 0 if fixed."""
    J = jacobian(model, q, model.body_names[body], frame="aligned", point=point)[3:]
    mobility = J @ np.linalg.solve(mass_matrix(model, q), J.T)
    largest = float(np.linalg.eigvalsh(mobility)[-1])
    return 1 / largest if largest > 1e-9 else 0.0


class LiveWorld:
    """Steps a copy of a world in real time, and shows it.

    Args:
        viewer: the ``Viewer``.
        world: is copied.
    """

    def __init__(self, viewer, world):
        self.viewer, self.world, self._begin = viewer, world.copy(), world.state
        self.playing, self._closed, self.grip, self._last = False, False, None, None
        self._longest, self._spring = 0.0, None
        self._lock = threading.RLock()
        self.thread: threading.Thread | None = None
        gui = viewer.server.gui
        with gui.add_folder("Simulation"):
            self.button = gui.add_button("Run", hint="in real time; drag bodies with the mouse")
            self.again = gui.add_button("Begin again")
            self.clock = gui.add_text("time", "0.00 s", disabled=True)
        self.button.on_click(lambda _: self.play(not self.playing))
        self.again.on_click(lambda _: self.reset())
        for part, handle in viewer.drawing.parts:
            if part.layer == "bodies" and 0 < part.node <= world.model.body_count:
                handle.on_drag("left")(self._dragging(part.node))

    def _dragging(self, body):
        """Event handler for drags of a body with the mouse."""

        async def on_drag(event):  # awaited in order, unlike a plain function
            self.drag(body, event.phase, event.start_position, event.end_position)

        return on_drag

    def drag(self, body, phase, start, end):
        """Start, move or end the mouse spring on a body.

        Args:
            body: number of the body.
            phase: ``"start"``, ``"update"`` or ``"end"``.
            start: point of the body on the page [m], (3,).
            end: where the mouse is [m], (3,).
        """
        if phase == "end":
            self.grip = None
            return
        moved = np.asarray(self.viewer.drawing.world.position)
        target = np.asarray(end) - moved
        with self._lock:
            if phase == "start" or self.grip is None or self.grip.body != body:
                pose = np.asarray(poses(self.world.model, self.world.q))[body - 1]
                point = pose[:3, :3].T @ (np.asarray(start) - moved - pose[:3, 3])
                mass = effective_mass(self.world.model, self.world.q, body, point)
                self.grip, self._last = Grip(body, point, target, mass), None
            else:
                self.grip = self.grip._replace(target=target)
        self.play()

    # --- time ---------------------------------------------------------------------------------

    def play(self, on=True):
        """Start or pause the live simulation of the world."""
        with self._lock:
            if on == self.playing or self._closed:
                return
            self.playing = on
            self.button.label = "Pause" if on else "Run"
            if on:
                self.thread = threading.Thread(target=self._run, daemon=True)
                self.thread.start()
        if not on and self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(5)

    def close(self):
        """End the live simulation and its thread."""
        self.play(False)
        self._closed = True

    def reset(self):
        """Pause the world and reset it to its initial state."""
        self.play(False)
        self.grip = None
        self.world.set_state(self._begin)
        self.show()

    def put(self, q):
        """Pause the world at rest in configuration ``q`` set by sliders."""
        self.play(False)
        self.world.q, self.world.qd = q, np.zeros(self.world.model.nv)

    def _run(self):
        """Step and show the world in real time until it is stopped."""
        while self.playing and not self._closed:
            begin = time.monotonic()
            try:
                self.advance(1 / _RATE)
            except KinetreeError as error:
                self.clock.value = printable(error)[:60]
                self.playing, self.button.label = False, "Run"
                return
            self.show()
            time.sleep(max(0.0, 1 / _RATE - (time.monotonic() - begin)))

    def advance(self, seconds):
        """Step the world by ``seconds`` with the mouse spring's force."""
        steps = max(1, round(seconds / _PULLS / self.world.timestep))
        for _ in range(max(1, round(seconds / steps / self.world.timestep))):
            with self._lock:
                wrench = self._wrench(steps * self.world.timestep)
                self.world.step(steps, forces=wrench)

    def _wrench(self, dt):
        """Wrench of the mouse spring by body name; None while nothing is dragged."""
        grip = self.grip
        if grip is None or not grip.mass:
            return None
        pose = np.asarray(poses(self.world.model, self.world.q))[grip.body - 1]
        arm = pose[:3, :3] @ grip.point
        at = pose[:3, 3] + arm
        speed = np.zeros(3) if self._last is None else (at - self._last) / dt
        self._last = at
        force = grip.mass * _STIFF * (_STIFF * (grip.target - at) - 2 * speed)
        name = self.world.model.body_names[grip.body]
        return {name: np.concatenate([np.cross(arm, force), force])}

    # --- what is seen -------------------------------------------------------------------------

    def show(self):
        """Show the world's present state with contact forces and the mouse spring."""
        viewer = self.viewer
        viewer.pose(self.world.q, more=self._contact_forces())
        self.clock.value = f"{self.world.time:.2f} s"
        grip, name = self.grip, "/world/arrows/pull"
        if grip is None:
            if self._spring is not None:
                self._spring.remove()
                self._spring = None
            return
        pose = np.asarray(poses(self.world.model, self.world.q))[grip.body - 1]
        ends = np.array([[pose[:3, :3] @ grip.point + pose[:3, 3], grip.target]], dtype=np.float32)
        thick = 0.005 * viewer.stage.size
        if self._spring is None:
            look = {"shaft_radius": thick, "head_radius": 2 * thick, "head_length": 4 * thick}
            self._spring = viewer.server.scene.add_arrows(name, ends, _PULLING, **look)
        else:
            self._spring.points = ends

    def _contact_forces(self):
        """Arrows of contact forces, scaled by the largest force so far."""
        found = self.world.contacts()
        if not len(found):
            return ()
        largest = float(np.linalg.norm(found.force, axis=-1).max(initial=0.0))
        self._longest = max(self._longest, largest)
        stage = self.viewer.stage
        size = min(stage.size, stage.largest / LONGEST)
        points, forces = found.point[None], found.force[None]
        arrows = scaled_arrows(
            "contact forces", "contacts", _COLOR, points, forces, "N", size, self._longest or None
        )
        return () if arrows is None else (arrows,)
