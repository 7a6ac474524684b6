"""Depths and parts of many pictures at once, on a GPU, and of small ones on the CPU."""

from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.device.groups import launcher, record_words
from kinetree.codegen.runtime.threads import on_threads, threads
from kinetree.rendering.many import PHASES, ROOM, Pictures, draw_all
from kinetree.rendering.renderer import Renderer, Viewpoint


class ManyPictures:
    """Draws the pieces of a renderer for many views at once, each by a group of threads.

    Args:
        renderer: has the pieces.
        on: ``Gpu``, or ``Processor`` to check what a GPU does.
    """

    def __init__(self, renderer: Renderer, on: Any):
        self._surfaces, self._on = renderer.surfaces, on
        self._words = record_words(renderer.surfaces, on)
        self._start = launcher(PHASES, on)

    def measure(
        self, poses: Array, eyes: Array, view: Viewpoint, wants_parts: bool
    ) -> tuple[Array, Array]:
        """Depths [m] and part numbers of many views, (n, rows, columns) each, on the device.

        Args:
            poses: of the nodes, (n, N, 12), contiguous.
            eyes: positions and axes of the views, (n, 12).
            view: their size and angle.
            wants_parts: whether numbers are wanted; they are undefined otherwise.
        """
        xp, count = self._on.xp, len(poses)
        width, height = view.size
        pixels, parts = count * width * height, int(self._surfaces.parts)
        words = (2 if wants_parts else 1) * pixels + count * (12 * parts + ROOM + 1)
        self._on.have_room(8 * words, f"{count} pictures of {width} x {height}")
        arrays = {"surfaces": self._words, **_arrays(xp, self._surfaces, poses, eyes, pixels)}
        arrays["part"] = xp.empty(pixels if wants_parts else 0, dtype="int64")
        pictures = _pictures(self._surfaces, poses, view, wants_parts)
        given, kept = record_words(pictures, self._on, arrays)
        self._start(count, given)
        del kept  # memory is used again in the order of the stream
        return _images(arrays, count, view, wants_parts)


def draw_small(
    renderer: Renderer, poses: np.ndarray, eyes: np.ndarray, view: Viewpoint, wants_parts: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Depths [m] and part numbers of many small views on the CPU in one call.

    Args:
        renderer: has the pieces.
        poses: of the nodes, (n, N, 12), contiguous.
        eyes: positions and axes of the views, (n, 12).
        view: their size and angle.
        wants_parts: whether numbers are wanted; they are undefined otherwise.
    """
    count, (width, height) = len(poses), view.size
    pixels = count * width * height
    pictures = _pictures(renderer.surfaces, poses, view, wants_parts)
    arrays = _arrays(np, renderer.surfaces, poses, eyes, pixels)
    arrays["part"] = np.empty(pixels if wants_parts else 0, dtype="int64")
    for name, array in arrays.items():
        setattr(pictures, name, array)
    workers = max(1, min(threads(), count))
    on_threads(lambda k: draw_all(pictures, count, k, workers), workers)
    return _images(arrays, count, view, wants_parts)


def _arrays(xp, surfaces, poses, eyes, pixels):
    """Arrays of the ``Pictures`` record by name, for many views."""
    count = len(poses)
    return {
        "poses": poses.reshape(-1, 12),
        "eyes": xp.ascontiguousarray(eyes),
        "placed": xp.empty((count * int(surfaces.parts), 12)),
        "large": xp.empty(count * ROOM, dtype="int64"),
        "listed": xp.empty(count, dtype="int64"),
        "depth": xp.empty(pixels),
    }


def _pictures(surfaces, poses, view, wants_parts):
    """``Pictures`` record of many views, without arrays."""
    return Pictures(
        surfaces=surfaces,
        view=view.record(1),
        nodes=poses.shape[1],
        faces=len(surfaces.face),
        wants_parts=wants_parts,
    )


def _images(arrays, count, view, wants_parts):
    """Depth and part arrays reshaped to (n, rows, columns)."""
    width, height = view.size
    depth, part = arrays["depth"], arrays["part"]
    return depth.reshape(count, height, width), (
        part.reshape(count, height, width) if wants_parts else part
    )
