"""Time in the browser: play, pause, scrub, speed."""

import threading
import time

from kinetree.viewer.scene.instants import at_time, between

__all__ = ["Player"]

_SPEEDS, _FASTER = ("0.1", "0.25", "0.5", "1", "2", "5"), ("20", "100")
_LONG = 60.0  # [s]
_RATE = 30  # images a second


class Player:
    """Plays a scene on a drawing; its controls are in the page.

    Args:
        drawing: a ``Drawing`` of the scene.
        on_stop: called when the motion comes to a stop.
    """

    def __init__(self, drawing, on_stop=lambda: None):
        self.drawing, self.scene, self.on_stop = drawing, drawing.scene, on_stop
        self.playing, self._moving_slider, self._closed = False, False, False
        gui, end = drawing.server.gui, self.scene.duration
        with gui.add_folder("Motion"):
            self.button = gui.add_button("Play", hint="from here, or from the beginning")
            self.slider = gui.add_slider(
                "time [s]", 0.0, max(end, 1e-9), max(end, 1e-9) / 1000, 0.0
            )
            speeds = (*_SPEEDS, *_FASTER) if end > _LONG else _SPEEDS
            self.speed = gui.add_dropdown("speed", speeds, initial_value="1")
            self.again = gui.add_checkbox("repeat", True)
        self.button.on_click(lambda _: self.play(not self.playing))
        self.slider.on_update(self._scrubbed)
        self.thread: threading.Thread | None = None
        self.go(0.0)

    @property
    def t(self) -> float:
        """The time that is shown, since the beginning [s]."""
        return float(self.slider.value)

    def go(self, t):
        """Show the time ``t`` since the beginning [s]."""
        now = self.scene.times[0] + t
        self.drawing.place(*between(self.scene, now))
        k, s = at_time(self.scene, now)
        self.drawing.point(self.scene.arrows, min(k + (s > 0.5), len(self.scene.times) - 1))
        self._moving_slider = True
        self.slider.value = t
        self._moving_slider = False

    def play(self, on=True):
        """Play, or stop."""
        if on == self.playing:
            return
        self.playing = on
        self.button.label = "Pause" if on else "Play"
        if on:
            if self.t >= self.scene.duration:
                self.go(0.0)
            self.thread = threading.Thread(target=self._run, daemon=True)
            self.thread.start()
        else:
            if self.thread is not None and self.thread is not threading.current_thread():
                self.thread.join(5)  # it may be about to show one more moment
            self.on_stop()

    def close(self):
        """Stop for good."""
        self._closed, self.playing = True, False
        if self.thread is not None:
            self.thread.join(5)

    def _scrubbed(self, event):
        if event.client is not None and not self._moving_slider:
            self.play(False)
            self.go(self.t)

    def _run(self):
        last = time.monotonic()
        while self.playing and not self._closed:
            now = time.monotonic()
            t, last = self.t + (now - last) * float(self.speed.value), now
            if t > self.scene.duration:
                if not self.again.value:
                    self.go(self.scene.duration)
                    self.play(False)
                    return
                t = 0.0
            self.go(t)
            time.sleep(max(0.0, 1 / _RATE - (time.monotonic() - now)))
