"""The folder of the page with what is shown.

What strangers wrote, such as the names of files in notices, goes to the page as escaped HTML: viser
renders Markdown with all the HTML in it, scripts included.
"""

from html import escape

from kinetree.spelling import printable
from kinetree.viewer.browser.server import dress
from kinetree.viewer.scene.description import LAYERS

__all__ = ["LayerPanel"]


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
            clear = gui.add_checkbox("see through", False, hint="for arrows inside the bodies")
            clear.on_update(lambda _: self._clear(clear.value))
            if len(drawing.scene.times) > 1:
                follow = gui.add_checkbox("follow", drawing.follow, hint="keep the robot in view")
                follow.on_update(lambda _: self._following(follow.value, redraw))
            dark = gui.add_checkbox("dark", False)
            dark.on_update(lambda _: self._darken(dark.value))
            self.legend = gui.add_html("", visible=False)
        if notices := drawing.scene.notices:
            with gui.add_folder(f"Notices ({len(notices)})", expand_by_default=len(notices) < 3):
                for notice in notices:
                    gui.add_html(_paragraph(f"⚠ {escape(printable(notice))}"))
        self._explain()

    def _clear(self, on):
        self.drawing.see_through = on
        self.drawing.refresh()

    def _following(self, on, redraw):
        self.drawing.follow = on
        redraw()

    def _darken(self, on):
        dress(self.drawing.server, dark=on)
        self.drawing.color_ground(dark=on)

    def _ticked(self, layer, redraw):
        self.drawing.show(layer, self.boxes[layer].value)
        self._explain()
        redraw()

    def _explain(self):
        shown = [a for a in self.drawing.scene.arrows if a.layer in self.drawing.shown and a.legend]
        lines = [
            f'<span style="color:{_web(a.color)}">&#9632;</span> {escape(printable(a.legend))}'
            for a in shown
        ]
        self.legend.content = _paragraph("<br>".join(lines))
        self.legend.visible = bool(lines)


def _paragraph(inner):
    """Text in the size and with the margins of what else is in the panel."""
    return f'<div style="font-size:0.85em;padding:0.25em 0.75em">{inner}</div>'


def _web(color):
    return "#" + "".join(f"{round(255 * c):02x}" for c in color)
