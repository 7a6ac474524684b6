"""The viewer in the browser: what ``kt.view`` returns."""

import html
import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kinetree.spelling import printable
from kinetree.viewer.browser.controls import LayerPanel, Player, SavePanel
from kinetree.viewer.browser.drawing import LOCAL, Drawing, quiet, start
from kinetree.viewer.browser.live import LiveWorld
from kinetree.viewer.knobs import Knobs
from kinetree.viewer.motions import ShownMotion, stage_motion
from kinetree.viewer.page import open_page, save_page
from kinetree.viewer.painting import film, picture
from kinetree.viewer.scenes.stage import NOTHING, Overlays, Stage
from kinetree.viewer.sliders import sliders_of


class Address(NamedTuple):
    """Address at which a viewer listens, and other pages that may connect: see ``view``."""

    port: int | None = None
    host: str | None = None
    origins: str | Sequence[str] = ()


class Viewer:
    """A mechanism in the browser, with sliders; and its motion, if it has one.

    Close it with ``close()``, or use it in a ``with`` statement. In a notebook it shows itself.

    Attributes:
        url: address of the page.
        scene: what is drawn, as plain data.
        q: the configuration that the sliders are at, (nq,).
        notices: what could not be drawn.
    """

    def __init__(
        self,
        motion,
        overlays: Overlays,
        address: Address,
        *,
        show,
        collision=False,
        shadows=True,
    ):
        self.model, self.motion = motion.model, motion.at(motion.drawable()[0])
        self.stage = Stage(motion.model, collision=collision)
        self.scene = stage_motion(self.stage, motion, overlays)
        # What comes with a motion is not there when its joints are dragged elsewhere.
        self._besides = NOTHING if motion.moves else overlays._replace(trace=None)
        self.notices = self.scene.notices
        self.q = np.array(self.motion.q[0])
        self.knobs = Knobs(self.model, self.stage.size)
        self.server = start(printable(self.model.name), *address)
        host = address.host
        shown = "localhost" if host in (None, LOCAL) else f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.server.get_port()}"
        self.drawing = Drawing(self.server, self.scene, show, shadows=shadows)
        self.player = Player(self.drawing, self._read_sliders) if motion.moves else None
        world = self.motion.world
        self.live = LiveWorld(self, world) if world is not None else None
        self.layers = LayerPanel(self.drawing, self._redraw)
        self._joints()
        self.saving = SavePanel(self)
        self._now = None
        self._done = threading.Event()
        self._redraw()

    # --- joints -------------------------------------------------------------------------------

    def _joints(self):
        """Add a folder with a slider for each joint variable to the page."""
        gui = self.server.gui
        self.sliders, self._setting, self.closed = [], False, None
        if not self.knobs.knobs:
            return
        with gui.add_folder("Joints", expand_by_default=self.player is None):
            if self.model.is_constrained:
                self.closed = gui.add_checkbox("keep loops closed", True)
            for k, (knob, value) in enumerate(
                zip(self.knobs.knobs, self.knobs.values(self.q), strict=True)
            ):
                low, high = min(knob.lower, value), max(knob.upper, value)
                slider = gui.add_slider(
                    f"{printable(knob.label)} [{knob.unit}]",
                    low,
                    high,
                    max((high - low) / 500, 1e-9),
                    value,
                )
                slider.on_update(lambda event, k=k: self._on_turn(event, k))
                self.sliders.append(slider)
            gui.add_button("Back to the start").on_click(lambda _: self.pose(self.motion.q[0]))

    def _on_turn(self, event, k):
        """Set a joint from its slider when a user moves it; pauses the motion."""
        if self._setting or event.client is None:
            return
        if self.player is not None:
            self.player.play(False)
        if self.live is not None:
            self.live.play(False)
        value = float(self.sliders[k].value)
        found = self.knobs.turn(
            self.q, k, value, closed=self.closed is not None and self.closed.value
        )
        self.pose(self.q if found is None else found, besides=k if found is not None else None)
        if self.live is not None:
            self.live.put(self.q)

    def pose(self, q, besides=None, more=()):
        """Show the mechanism in configuration ``q``, (nq,), with sliders following.

        Args:
            q: positions, (nq,).
            besides: number of the slider that stays as it is.
            more: further arrows.
        """
        self.q = np.array(q, dtype=float)
        still = ShownMotion(self.model, np.zeros(1), self.q[None])
        self._now = stage_motion(self.stage, still, self._besides)
        count = len(self._now.nodes)
        positions, turns = self.scene.positions[0].copy(), self.scene.quaternions[0].copy()
        positions[:count], turns[:count] = self._now.positions[0], self._now.quaternions[0]
        positions[count:] = np.nan
        self.drawing.place(positions, turns)
        self.drawing.point((*self._now.arrows, *more), 0)
        self._set_sliders(besides)

    def _set_sliders(self, besides=None):
        """Move all sliders but one to the present configuration."""
        self._setting = True
        with self.server.atomic():
            for k, value in enumerate(self.knobs.values(self.q)):
                if k != besides:
                    self.sliders[k].value = float(
                        np.clip(value, self.sliders[k].min, self.sliders[k].max)
                    )
        self._setting = False

    def _read_sliders(self):
        """Set configuration and sliders to the motion's present time, after a stop."""
        if self.player is not None:
            t = self.motion.t[0] + self.player.t
            self.q = np.array(self.motion.q[int(np.argmin(np.abs(self.motion.t - t)))])
            self._set_sliders()

    def _redraw(self):
        """Draw arrows again after layers were shown or hidden."""
        if self.player is not None and self._now is None:
            self.player.go(self.player.t)
        else:
            self.pose(self.q)

    # --- files --------------------------------------------------------------------------------

    @property
    def _seen(self):
        """Scene on display: the motion, or the mechanism posed by the sliders."""
        return self.scene if self._now is None or self.player is not None else self._now

    def save_html(self, path):
        """Write the scene as an HTML page that needs no server; returns the path."""
        still = self.player is None
        sliders = sliders_of(self.model, self.q, self.stage.size) if still else None
        return save_page(self._seen, path, show=tuple(self.drawing.shown), sliders=sliders)

    def picture(self, path=None, **options):
        """Picture of the scene, drawn without the browser; as ``kinetree.viewer.picture``."""
        return picture(self._seen, path, show=tuple(self.drawing.shown), **options)

    def record(self, path, **options):
        """Film of the scene, drawn without the browser; as ``kinetree.viewer.record``."""
        return film(self._seen, path, show=tuple(self.drawing.shown), **options)

    # --- life ---------------------------------------------------------------------------------

    def open(self):
        """Open the page in a browser if this machine has a screen; whether it did."""
        return open_page(self.url)

    def wait(self):
        """Block until the viewer is closed, or Ctrl-C is pressed."""
        try:
            while not self._done.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.close()

    def close(self):
        """Stop the viewer's server and its threads."""
        for runs in (self.player, self.live):
            if runs is not None:
                runs.close()
        if not self._done.is_set():
            self._done.set()
            with quiet():
                self.server.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<viewer of {printable(self.model.name)} at {self.url}>"

    def _repr_html_(self):
        """HTML frame with the viewer's page, for notebooks."""
        title = html.escape(printable(self.model.name))
        style = "width:100%;height:520px;border:1px solid #ccc;border-radius:6px"
        return f'<iframe src="{self.url}" title="{title}" style="{style}"></iframe>'
