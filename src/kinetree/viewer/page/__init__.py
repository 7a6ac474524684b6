"""A scene as a web page in one file, which opens from disk and plays."""

import base64
import html
import json
import os
import sys
import webbrowser
import zlib
from importlib.resources import files
from pathlib import Path

import numpy as np

from kinetree.files import write_text
from kinetree.spelling import printable
from kinetree.viewer.scenes.description import LAYERS, SHOWN
from kinetree.viewer.scenes.places import framing, shaft_and_head

__all__ = ["open_page", "page", "save_page"]

_SCRIPTS = ("vectors.js", "graphics.js", "sliders.js", "page.js")


def save_page(scene, path, *, show=SHOWN, camera=None, sliders=None) -> Path:
    """Write a scene as an HTML page; returns the path."""
    return write_text(path, page(scene, show=show, camera=camera, sliders=sliders))


def page(scene, *, show=SHOWN, camera=None, sliders=None) -> str:
    """HTML text of a page with its style, program and the scene's data.

    Args:
        scene: what it plays.
        show: names of the layers that are shown at first.
        camera: from where; by default the whole mechanism is in view.
        sliders: ``Sliders`` of a mechanism that stands still, if it has any.
    """
    buffer = _Buffer()
    described = _describe(scene, buffer, show, framing(scene) if camera is None else camera)
    described["sliders"] = None if sliders is None else _plain_sliders(sliders)
    ours = files("kinetree.viewer.page")
    parts = {
        "TITLE": html.escape(printable(scene.title)),
        "STYLE": ours.joinpath("page.css").read_text(encoding="utf-8"),
        "SCENE": json.dumps(described, separators=(",", ":")).replace("<", "\\u003c"),
        "DATA": base64.b64encode(zlib.compress(bytes(buffer.data), 4)).decode("ascii"),
        "SCRIPT": "".join(ours.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS),
    }
    text = ours.joinpath("page.html").read_text(encoding="utf-8")
    pieces = text.split("@")
    return "".join(parts.get(piece, piece) for piece in pieces)


def open_page(address: str) -> bool:
    """Open an address in a browser if this machine has a screen; whether it did."""
    has_screen = sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return has_screen and webbrowser.open(address)


class _Buffer:
    """Arrays one after another, each known by where it begins and how many numbers it has."""

    def __init__(self):
        self.data = bytearray()

    def add(self, array, dtype):
        """Append an array to the page's binary data; returns offset and length."""
        array = np.ascontiguousarray(array, dtype=dtype)
        place = [len(self.data), array.size]
        self.data += array.tobytes()
        return place


def _plain_sliders(sliders):
    """JSON-ready data of sliders, poses as rows of 3 x 4 matrices."""
    return {
        "knobs": sliders.knobs,
        "parent": sliders.parent,
        "home": [pose[:3].ravel().tolist() for pose in sliders.home],
        "moves": [[(k, twist.tolist()) for k, twist in moves] for moves in sliders.moves],
        "masses": sliders.masses.tolist(),
        "centers": sliders.centers.tolist(),
    }


def _describe(scene, buffer, show, camera):
    """JSON-ready data of a scene, whose arrays are references into the page's binary buffer."""
    surfaces, numbers = [], {}

    def number(surface):
        if id(surface) not in numbers:
            numbers[id(surface)] = len(surfaces)
            vertices, faces = buffer.add(surface.vertices, "<f4"), buffer.add(surface.faces, "<u4")
            surfaces.append({"vertices": vertices, "faces": faces})
        return numbers[id(surface)]

    parts = [
        {
            "name": part.name,
            "layer": part.layer,
            "node": part.node,
            "surface": number(part.surface),
            "color": [*part.color, part.opacity],
        }
        for part in scene.parts
    ]
    arrows = [
        {
            "name": a.name,
            "layer": a.layer,
            "color": list(a.color),
            "legend": a.legend,
            "count": a.origins.shape[1],
            "origins": buffer.add(a.origins, "<f4"),
            "vectors": buffer.add(a.vectors, "<f4"),
        }
        for a in scene.arrows
    ]
    shaft, head = map(number, shaft_and_head())
    layers = [(layer, LAYERS[layer], layer in show) for layer in scene.layers]
    return {
        "title": printable(scene.title),
        "nodes": list(scene.nodes),
        "center": scene.center,
        "parts": parts,
        "arrows": arrows,
        "surfaces": surfaces,
        "shaft": shaft,
        "head": head,
        "times": buffer.add(scene.times, "<f4"),
        "positions": buffer.add(scene.positions, "<f4"),
        "quaternions": buffer.add(scene.quaternions, "<f4"),
        "layers": [*layers, ("grid", "ground", True)],
        "camera": {
            "position": camera.position.tolist(),
            "target": camera.target.tolist(),
            "up": camera.up.tolist(),
            "angle": camera.angle,
            "aspect": camera.aspect,
        },
        "size": scene.size,
        "follow": scene.goes_away,
        "floor": scene.floor,
        "step": scene.grid_step,
        "notices": [printable(notice) for notice in scene.notices],
    }
