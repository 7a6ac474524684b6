"""Whose arrays a GPU computes with: CuPy's or torch's, on their device and stream."""

import dataclasses
from typing import Any

from kinetree.arrays.device import external_stream
from kinetree.arrays.kinds import Array, kind_of, module_of
from kinetree.codegen.device.running import Gpu
from kinetree.errors import ArrayKindError


def gpu_of(x: Any) -> Gpu | None:
    """Number of the GPU that an array of CuPy or torch is on; None for any other array."""
    kind = kind_of(x)
    if kind == "cupy" or (kind == "torch" and x.is_cuda):
        gpu = Gpu()
        gpu.device = x.device.id if kind == "cupy" else x.device.index
        return gpu
    return None


class OnGpu:
    """Arrays of CuPy on the device and the stream of an array ``x``, a context.

    ``take(x)`` is an array as one of CuPy's, ``as_given(y)`` one as ``x`` is. ``function`` is what
    has no derivative.
    """

    def __init__(self, gpu: Gpu, x: Any, function: str = "render"):
        self.gpu, self._is_torch = gpu, kind_of(x) == "torch"
        self._function = function
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

    def take(self, x: Any) -> Array:
        """Convert an array to CuPy, float64; an error if torch records gradients of it."""
        if self._is_torch and kind_of(x) == "torch":
            if module_of("torch").is_followed(x):
                raise ArrayKindError(
                    f"{self._function} has no derivative: detach q first, or call it elsewhere"
                )
            x = x.detach()
        return self.gpu.xp.asarray(x, dtype="float64")

    def as_given(self, y: Array) -> Array:
        """Convert an array of CuPy to the library of the caller's arrays, torch or CuPy."""
        return self._torch.from_dlpack(y) if self._is_torch else y

    def take_each(self, x: Any) -> Any:
        """Convert all arrays in nested tuples and dicts to CuPy arrays of float64."""
        if isinstance(x, tuple):
            return tuple(map(self.take_each, x))
        if isinstance(x, dict):
            return {name: self.take_each(part) for name, part in x.items()}
        return self.take(x) if hasattr(x, "shape") else x

    def give_each(self, record: Any) -> Any:
        """Dataclass whose CuPy arrays are converted to the library of the caller's arrays."""

        def part(x):
            if isinstance(x, tuple):
                return tuple(map(part, x))
            if isinstance(x, dict):
                return {name: part(each) for name, each in x.items()}
            return self.as_given(x) if kind_of(x) == "cupy" else x

        names = [f.name for f in dataclasses.fields(record)] if self._is_torch else []
        return dataclasses.replace(record, **{n: part(getattr(record, n)) for n in names})
