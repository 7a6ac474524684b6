"""Folders of the page: what is shown, and what can be saved."""

import tempfile
from pathlib import Path

import numpy as np

from kinetree.simulation.results.packages import need
from kinetree.viewer.pictures.film import write_film
from kinetree.viewer.scene.description import LAYERS

__all__ = ["LayerPanel", "SavePanel"]


class LayerPanel:
    """Boxes to tick, what arrows mean, and what could not be drawn."""

    def __init__(self, drawing, redraw):
        self.drawing, gui = drawing, drawing.server.gui
        self.boxes = {}
        with gui.add_folder("Show"):
            for layer in drawing.scene.layers:
                box = gui.add_checkbox(LAYERS[layer], layer in drawing.shown)
                box.on_update(lambda event, layer=layer: self._ticked(layer, redraw))
                self.boxes[layer] = box
            ground = gui.add_checkbox("ground", True)
            ground.on_update(lambda _: setattr(drawing.ground, "visible", ground.value))
            self.legend = gui.add_markdown("", visible=False)
        for notice in drawing.scene.notices:
            gui.add_markdown(f"⚠ {notice}")
        self._explain()

    def _ticked(self, layer, redraw):
        self.drawing.show(layer, self.boxes[layer].value)
        self._explain()
        redraw()

    def _explain(self):
        shown = [a for a in self.drawing.scene.arrows if a.layer in self.drawing.shown and a.legend]
        lines = [f'<span style="color:{_web(a.color)}">&#9632;</span> {a.legend}' for a in shown]
        self.legend.content = "<br>".join(lines)
        self.legend.visible = bool(lines)


class SavePanel:
    """Buttons that make files of what is seen: page, picture, film."""

    def __init__(self, viewer):
        self.viewer, gui = viewer, viewer.server.gui
        with gui.add_folder("Save", expand_by_default=False):
            gui.add_button("Page that needs no server").on_click(self._page)
            gui.add_button("Picture").on_click(self._picture)
            if viewer.player is not None:
                gui.add_button("Film").on_click(self._film)

    @property
    def _name(self):
        return "".join(c if c.isalnum() else "_" for c in self.viewer.model.name) or "scene"

    def _page(self, event):
        with tempfile.TemporaryDirectory() as folder:
            path = self.viewer.save_html(Path(folder) / f"{self._name}.html")
            event.client.send_file_download(path.name, path.read_bytes())

    def _picture(self, event):
        image = event.client.get_render(720, 960, transport_format="jpeg")
        data = need("imageio.v3", "pictures", "view").imwrite("<bytes>", image, extension=".png")
        event.client.send_file_download(f"{self._name}.png", data)

    def _film(self, event):
        """What the browser draws, moment by moment, from where the user looks."""
        player, rate = self.viewer.player, 30
        player.play(False)
        step = float(player.speed.value) / rate
        count = int(self.viewer.scene.duration / step) + 1

        def images():
            for t in np.arange(count) * step:
                player.go(float(t))
                self.viewer.server.flush()
                yield event.client.get_render(720, 960, transport_format="jpeg")

        with tempfile.TemporaryDirectory() as folder:
            path = write_film(Path(folder) / f"{self._name}.mp4", images(), rate)
            event.client.send_file_download(path.name, path.read_bytes())


def _web(color):
    return "#" + "".join(f"{round(255 * c):02x}" for c in color)
