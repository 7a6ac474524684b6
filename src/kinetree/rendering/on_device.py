"""Depths and parts of many pictures at once, on a GPU."""

from typing import Any

from kinetree.arrays.device import external_stream
from kinetree.arrays.kinds import Array, kind_of
from kinetree.codegen.device.groups import launcher, record_words
from kinetree.codegen.device.running import Gpu
from kinetree.rendering.many import PHASES, ROOM, Pictures
from kinetree.rendering.renderer import Renderer, Viewpoint


def gpu_of(x: Any) -> Gpu | None:
    """The GPU that an array of CuPy or torch is on; None for any other array."""
    kind = kind_of(x)
    if kind == "cupy" or (kind == "torch" and x.is_cuda):
        gpu = Gpu()
        gpu.device = x.device.id if kind == "cupy" else x.device.index
        return gpu
    return None


class OnGpu:
    """Arrays of CuPy on the device and the stream of an array ``x``, a context.

    ``taken(x)`` is an array as one of CuPy's, ``given(y)`` one as ``x`` is.
    """

    def __init__(self, gpu: Gpu, x: Any):
        self.gpu, self._is_torch = gpu, kind_of(x) == "torch"
        self._contexts = [gpu.xp.cuda.Device(gpu.device)]
        if self._is_torch:
            import torch  # pyright: ignore[reportMissingImports]

            self._torch = torch
            stream = torch.cuda.current_stream(gpu.device).cuda_stream
            self._contexts.append(external_stream(stream))

    def __enter__(self):
        for context in self._contexts:
            context.__enter__()
        return self

    def __exit__(self, *error):
        for context in reversed(self._contexts):
            context.__exit__(*error)

    def taken(self, x: Any) -> Array:
        """An array of float64 of CuPy."""
        x = x.detach() if self._is_torch else x
        return self.gpu.xp.asarray(x, dtype="float64")

    def given(self, y: Array) -> Array:
        """An array of the library of the caller."""
        return self._torch.from_dlpack(y) if self._is_torch else y


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
        """Depths [m] and numbers of the pieces, (n, rows, columns) each, as of ``Renderer``.

        Args:
            poses: of the nodes, (n, N, 12), contiguous.
            eyes: positions and axes of the views, (n, 12).
            view: their size and angle.
            wants_parts: whether numbers are wanted; they are undefined otherwise.
        """
        xp, count = self._on.xp, len(poses)
        width, height = view.size
        pixels, parts = count * width * height, int(self._surfaces.parts)
        numbers = pixels if wants_parts else 0
        words = pixels + numbers + count * (12 * parts + ROOM + 1)
        self._on.have_room(8 * words, f"{count} pictures of {width} x {height}")
        depth, part = xp.empty(pixels), xp.empty(numbers, dtype="int64")
        arrays = {
            "surfaces": self._words,
            "poses": poses.reshape(-1, 12),
            "eyes": xp.ascontiguousarray(eyes),
            "placed": xp.empty((count * parts, 12)),
            "large": xp.empty(count * ROOM, dtype="int64"),
            "listed": xp.empty(count, dtype="int64"),
            "depth": depth,
            "part": part,
        }
        pictures = Pictures(
            surfaces=self._surfaces,
            view=view.record(1),
            nodes=poses.shape[1],
            faces=len(self._surfaces.face),
            wants_parts=wants_parts,
        )
        given, kept = record_words(pictures, self._on, arrays)
        self._start(count, given)
        del kept  # memory is used again in the order of the stream
        depth = depth.reshape(count, height, width)
        return depth, part.reshape(count, height, width) if wants_parts else part
