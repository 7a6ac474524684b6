"""Folders of the page: sliders of the joints, layers, time, and what can be saved.

Untrusted text, such as the names of files in notices, goes to the page as escaped HTML: viser
renders Markdown with all the HTML in it, scripts included.
"""

import tempfile
import threading
import time
from html import escape
from pathlib import Path

import numpy as np

from kinetree.errors import KinetreeError
from kinetree.spelling import printable
from kinetree.viewer.browser.drawing import ASIDE, dress
from kinetree.viewer.painting import write_film, write_picture
from kinetree.viewer.scenes.description import LAYERS
from kinetree.viewer.scenes.places import at_time, between, rotations


class LayerPanel:
    """Boxes to tick, what arrows mean, and what could not be drawn."""

    def __init__(self, drawing, redraw):
        self.drawing, gui = drawing, drawing.server.gui
        self.boxes = {}
        with gui.add_folder("Show"):
            for layer in drawing.scene.layers:
                box = gui.add_checkbox(LAYERS[layer], layer in drawing.shown)
                box.on_update(lambda event, layer=layer: self._toggle_layer(layer, redraw))
                self.boxes[layer] = box
            ground = gui.add_checkbox("ground", True)
            ground.on_update(lambda _: setattr(drawing.ground, "visible", ground.value))
            clear = gui.add_checkbox("see through", False, hint="for arrows inside the bodies")
            clear.on_update(lambda _: self._set_transparency(clear.value))
            if len(drawing.scene.times) > 1:
                follow = gui.add_checkbox("follow", drawing.follow, hint="keep the robot in view")
                follow.on_update(lambda _: self._set_following(follow.value, redraw))
            dark = gui.add_checkbox("dark", False)
            dark.on_update(lambda _: self._darken(dark.value))
            self.legend = gui.add_html("", visible=False)
        if notices := drawing.scene.notices:
            with gui.add_folder(f"Notices ({len(notices)})", expand_by_default=len(notices) < 3):
                for notice in notices:
                    gui.add_html(_html_paragraph(f"⚠ {escape(printable(notice))}"))
        self._show_legend()

    def _set_transparency(self, on):
        """Draw bodies transparent, or solid again."""
        self.drawing.see_through = on
        self.drawing.refresh()

    def _set_following(self, on, redraw):
        """Let the view follow the mechanism, or not, as the box was ticked."""
        self.drawing.follow = on
        redraw()

    def _darken(self, on):
        """Set the dark or light theme of the page."""
        dress(self.drawing.server, dark=on)
        self.drawing.color_ground(dark=on)

    def _toggle_layer(self, layer, redraw):
        """Show or hide a layer after its box was ticked."""
        self.drawing.show(layer, self.boxes[layer].value)
        self._show_legend()
        redraw()

    def _show_legend(self):
        """Show a legend of the visible kinds of arrows."""
        shown = [a for a in self.drawing.scene.arrows if a.layer in self.drawing.shown and a.legend]
        lines = [
            f'<span style="color:{_hex(a.color)}">&#9632;</span> {escape(printable(a.legend))}'
            for a in shown
        ]
        self.legend.content = _html_paragraph("<br>".join(lines))
        self.legend.visible = bool(lines)


def _html_paragraph(inner):
    """HTML paragraph in the style of the panel."""
    return f'<div style="font-size:0.85em;padding:0.25em 0.75em">{inner}</div>'


def _hex(color):
    """Colour as an HTML hex code."""
    return "#" + "".join(f"{round(255 * c):02x}" for c in color)


# --- Time: play, pause, scrub, speed -------------------------------------------------------------

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
        self.slider.on_update(self._on_scrub)
        self.thread: threading.Thread | None = None
        self.go(0.0)

    @property
    def t(self) -> float:
        """Shown time since the beginning of the motion [s]."""
        return float(self.slider.value)

    def go(self, t):
        """Show the motion at time ``t`` since its beginning [s]."""
        now = self.scene.times[0] + t
        self.drawing.place(*between(self.scene, now))
        k, s = at_time(self.scene, now)
        self.drawing.point(self.scene.arrows, min(k + (s > 0.5), len(self.scene.times) - 1))
        self._moving_slider = True
        self.slider.value = t
        self._moving_slider = False

    def play(self, on=True):
        """Start or stop playing the motion."""
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
        """Stop playing and end the player's thread."""
        self._closed, self.playing = True, False
        if self.thread is not None:
            self.thread.join(5)

    def _on_scrub(self, event):
        """Pause and show the time of the slider, when a user moves it."""
        if event.client is not None and not self._moving_slider:
            self.play(False)
            self.go(self.t)

    def _run(self):
        """Play the motion in real time until it is stopped."""
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


# --- Files: page, picture, film ------------------------------------------------------------------

_SIZE = 960, 720
_FILMS = {"Film (MP4)": (".mp4", 30, _SIZE), "Film (GIF)": (".gif", 15, (480, 360))}
_SMALLEST = 8, 6
_PATIENCE = 120.0  # for one image [s]
_LONGEST = 60  # characters of the name of a file


class SavePanel:
    """Buttons that make files of what is seen, from where the user looks.

    Args:
        viewer: the ``Viewer``.
    """

    def __init__(self, viewer):
        self.viewer, gui = viewer, viewer.server.gui
        self.films, self._filming = {}, False
        with gui.add_folder("Save", expand_by_default=False):
            gui.add_button("Page", hint="one file that plays, and needs no server").on_click(
                lambda event: self._save(event, ".html", self._page)
            )
            gui.add_button("Picture", hint="PNG").on_click(
                lambda event: self._save(event, ".png", self._picture)
            )
            for label in _FILMS if viewer.player is not None else ():
                button = gui.add_button(label, hint="from the beginning to the end; again to stop")
                button.on_click(lambda event, label=label: self._film_or_stop(event, label))
                self.films[label] = button

    def _save(self, event, suffix, make):
        """Offer the file that ``make`` writes for download, with notices on the page."""
        name = (
            "".join(c if c.isalnum() else "_" for c in self.viewer.model.name[:_LONGEST]) or "scene"
        )
        client, saying = event.client, {"loading": True, "with_close_button": False}
        notice = client.add_notification(f"Saving {name}{suffix}", "", **saying)
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{name}{suffix}"
                make(client, path, notice)
                data = path.read_bytes()
        except (KinetreeError, TimeoutError) as error:
            notice.title, notice.body, notice.color = (
                f"{name}{suffix} is not saved",
                printable(error, "\n"),
                "red",
            )
            notice.loading, notice.with_close_button = False, True
        except RuntimeError:  # the page was closed meanwhile
            if client.client_id in self.viewer.server.get_clients():
                raise
        else:
            notice.remove()
            client.send_file_download(path.name, data, save_immediately=True)

    def _page(self, client, path, notice):
        """Save the scene as an HTML page."""
        self.viewer.save_html(path)

    def _picture(self, client, path, notice):
        """Save a picture of a client's view."""
        image = _view_image(client, _SIZE, "png").astype(float)
        solid = image[..., 3:] / 255
        image = image[..., :3] * solid + 255 * (1 - solid)
        write_picture(path, np.round(image).astype(np.uint8))

    def _film_or_stop(self, event, label):
        """Record a film for download; while recording, stop it."""
        if self._filming:
            self._filming = False
            return
        suffix, rate, size = _FILMS[label]

        def make(client, path, notice):
            write_film(path, self._images(client, notice, rate, size), rate)

        others = [button for name, button in self.films.items() if name != label]
        self._filming, self.films[label].label = True, "Stop and keep the film"
        try:
            for button in others:
                button.disabled = True
            self._save(event, suffix, make)
        finally:
            self._filming, self.films[label].label = False, label
            for button in others:
                button.disabled = False

    def _images(self, client, notice, rate, size):
        """Images of the client's view at all instants of a film, one by one."""
        player, before = self.viewer.player, self.viewer.player.t
        player.play(False)
        step = float(player.speed.value) / rate
        times = np.arange(int(self.viewer.scene.duration / step + 1e-6) + 1) * step
        for k, t in enumerate(times):
            if not self._filming and k:
                break
            notice.body = f"image {k + 1} of {len(times)}"
            player.go(float(t))
            self.viewer.server.flush()
            _view_image(client, _SMALLEST, "jpeg")  # poses are drawn in the frame after they came
            yield _view_image(client, size, "jpeg")
        player.go(before)


def _view_image(client, size, kind):
    """Image of a client's view beside the panel, rendered by the browser."""
    camera = client.camera
    right = rotations(camera.wxyz)[:, 0]
    away = np.linalg.norm(camera.position - camera.look_at)
    return client.get_render(
        size[1],
        size[0],
        wxyz=camera.wxyz,
        position=camera.position - ASIDE * away * right,
        fov=camera.fov,
        transport_format=kind,
        timeout=_PATIENCE,
    )
