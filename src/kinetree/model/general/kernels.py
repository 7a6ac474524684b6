"""Kernels of quantities by code that serves every robot."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from kinetree.codegen.loops.data import SINGLE, Data, Rows
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.model.general.tables import data_of, placements

FRAMES = ("name", "relative_to")
"""Options that name a frame or body: which it is, is data."""

_sources: dict[tuple, "_Text"] = {}


def general_kernel(
    quantity, model, inputs, outputs, options, *, reference, validate
) -> LoopKernel | None:
    """A quantity of a model by code that serves every robot, or None where there is none.

    Args:
        quantity: a ``kinetree.model.define.Quantity`` whose first algorithm can be recorded.
        model: the mechanism.
        inputs: as of ``Kernel``; so are the following.
        outputs: results.
        options: of the quantity, by name.
        reference: computes without compiled code.
        validate: raises for arrays that make no sense.
    """
    data = data_of(model)
    if data is None or any(callable(n) for i in inputs for n in quantity.known[i.name].shape):
        return None  # an argument whose size is that of one robot
    frames = {n: model.frame(options[n]) for n in FRAMES if options.get(n) is not None}
    on_base = {name: frame.body == 0 for name, frame in frames.items()}
    # What stands for the name of a frame in the text is the name of the option.
    options = {name: name if name in frames else value for name, value in options.items()}
    names = tuple(i.name for i in inputs)
    key = (quantity.name, names, tuple(options.items()), tuple(on_base.items()))
    source = _sources.get(key)
    if source is None:
        source = _sources[key] = _Text(quantity, names, options, on_base)
    return LoopKernel(
        quantity.called, inputs, outputs, source, _with_frames(data, frames), reference=reference,
        validate=validate, key=("general", *key),
    )  # fmt: skip


class _Text:
    """The text of a quantity with some options, as a source that is made when it is needed."""

    def __init__(self, quantity, names, options, frames):
        self.quantity, self.names, self.options, self.frames = quantity, names, options, frames

    @cached_property
    def source(self):
        from kinetree.model.general.model import Source  # not needed when code is found

        quantity, names = self.quantity, self.names
        algorithm, count = quantity.algorithms[0], len(quantity.required)

        def text(model, *arrays):
            extra = dict(zip(names[count:], arrays[count:], strict=True))
            return algorithm(model, *arrays[:count], **extra, **self.options)

        shapes = {name: quantity.known[name].shape for name in names}
        configurations = [name for name in names if quantity.known[name].is_configuration]
        return Source(text, shapes, quantity.name, configurations, self.frames)

    def program(self, kinds, pairs=None):
        """The loops for some kinds of bodies."""
        return self.source.program(kinds, pairs)


def _with_frames(data: Data, frames) -> Data:
    """A robot with frames that are given by options."""
    if not frames:
        return data
    columns = {
        name: np.array([frame.body - 1], dtype=np.int64)
        for name, frame in frames.items()
        if frame.body != 0
    }
    numbers = {name: placements([frame.placement]) for name, frame in frames.items()}
    return replace(
        data,
        domains={**data.domains, SINGLE: Rows(1, columns)},
        numbers={**data.numbers, SINGLE: {**data.numbers[SINGLE], **numbers}},
    )
