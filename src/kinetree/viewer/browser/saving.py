"""The folder of the page with what can be saved: page, picture, film."""

import tempfile
from pathlib import Path

import numpy as np

from kinetree.errors import KinetreeError
from kinetree.simulation.results.packages import need
from kinetree.spelling import printable
from kinetree.viewer.browser.drawing import ASIDE
from kinetree.viewer.pictures.film import write_film
from kinetree.viewer.scene.instants import rotations

__all__ = ["SavePanel"]

_SIZE = 960, 720
_FILMS = {"Film (MP4)": (".mp4", 30, _SIZE), "Film (GIF)": (".gif", 15, (480, 360))}
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
        """Send what ``make`` makes; while it is made, and where it cannot be, the page says so."""
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
        self.viewer.save_html(path)

    def _picture(self, client, path, notice):
        image = _seen(client, _SIZE, "png").astype(float)
        solid = image[..., 3:] / 255
        image = image[..., :3] * solid + 255 * (1 - solid)
        need("imageio.v3", "pictures", "view").imwrite(path, np.round(image).astype(np.uint8))

    def _film_or_stop(self, event, label):
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
        """What the browser draws, moment by moment."""
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
            yield _seen(client, size, "jpeg")
        player.go(before)


def _seen(client, size, kind):
    """What a user sees beside the panel, as an image."""
    camera = client.camera
    right = rotations(camera.wxyz)[:, 0]
    away = np.linalg.norm(camera.position - camera.look_at)
    return client.get_render(
        size[1], size[0], wxyz=camera.wxyz, position=camera.position - ASIDE * away * right,
        fov=camera.fov, transport_format=kind, timeout=_PATIENCE,
    )  # fmt: skip
