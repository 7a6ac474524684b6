"""Kernels of quantities by code that serves every robot."""

import pickle
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.codegen.cache import open_store
from kinetree.codegen.keys import loop_request
from kinetree.codegen.loops.language import BODIES, NO_ROW, SINGLE, Data, RowRange
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.model.general.tables import PARAMETERS, Marked, data_of, placements

FRAMES = ("name", "relative_to")
"""Options that name a frame or body: which it is, is data."""

MARKS = "free"
"""The option that has numbers of joints: these are of other kinds than the rest."""

_sources: dict[tuple, "GeneralText"] = {}


def general_kernel(
    quantity, model, inputs, outputs, options, *, reference, validate
) -> LoopKernel | None:
    """Kernel of a quantity by loops that serve every robot, or None where there is none.

    Args:
        quantity: a ``kinetree.model.define.Quantity`` with a text that can be recorded.
        model: the mechanism.
        inputs: as of ``Kernel``; so are the following.
        outputs: results.
        options: of the quantity, by name.
        reference: computes without compiled code.
        validate: raises for arrays that make no sense.
    """
    data = data_of(model)
    text: Any = quantity.algorithms[0]
    if hasattr(text, "refuse"):
        text.refuse(model)
    if callable(quantity.general):
        text = quantity.general(options)
    if data is None or text is None:
        return None
    marks = {}
    if MARKS in options:
        data, marks = with_marks(data, options[MARKS]), {MARKS: Marked()}
        options = {**options, MARKS: MARKS}
    frames = {n: model.frame(options[n]) for n in FRAMES if options.get(n) is not None}
    on_base = {name: frame.body == 0 for name, frame in frames.items()}
    # What stands for the name of a frame in the text is the name of the option.
    options = {name: name if name in frames else value for name, value in options.items()}
    names, count = tuple(i.name for i in inputs), len(quantity.required)
    given = marks if callable(quantity.general) else {**options, **marks}
    shapes = {i.name: _axes(quantity.known[i.name].shape, i.shape) for i in inputs}

    def of_arrays(model, *arrays):
        extra = dict(zip(names[count:], arrays[count:], strict=True))
        return text(model, *arrays[:count], **extra, **given)

    source = record_text(
        of_arrays,
        (quantity.name, tuple(shapes.items()), tuple(options.items()), tuple(on_base.items())),
        shapes,
        configurations=[name for name in names if quantity.known[name].is_configuration],
        frames=on_base,
        marks=bool(marks),
    )
    data, doors = _with_frames(data, frames), {"reference": reference, "validate": validate}
    return loop_kernel(source, quantity.called, inputs, outputs, data, **doors)


def _axes(shape, sizes):
    """Axes of an argument: names that depend on the robot, or numbers."""
    return tuple(k if callable(n) else n for n, k in zip(shape, sizes, strict=True))


def record_text(text, key, shapes, *, configurations, frames=None, marks=False) -> "GeneralText":
    """Algorithm recorded once as loops for every robot; made once for each key.

    Args:
        text: function of a model and arrays.
        key: what identifies the text; its name first.
        shapes: of the arguments by name, as in ``kinetree.model.array_arguments.Array``.
        configurations: names of the arguments with quaternions whose lengths are checked.
        frames: as of ``GeneralModel``.
        marks: as of ``Source``.
    """
    source = _sources.get(key)
    if source is None:
        given = text, shapes, key[0], configurations, frames, marks
        source = _sources[key] = GeneralText(("general", *key), *given)
    return source


def loop_kernel(source, name, inputs, outputs, data, *, reference, validate) -> LoopKernel:
    """Kernel of a recorded algorithm for one robot, given as ``data``."""
    doors = {"reference": reference, "validate": validate}
    return LoopKernel(name, inputs, outputs, source, data, **doors, key=source.key)


class GeneralText:
    """A text as a source that is made when it is needed; ``key`` identifies the text.

    What other arguments there are, ``Source`` says.
    """

    def __init__(self, key, *arguments):
        self.key, self.arguments = key, arguments

    @cached_property
    def source(self) -> Any:
        """Recorder of the algorithm; its outline is cached on disk."""
        from kinetree.model.general.model import Source  # not needed when code is found

        source, request = Source(*self.arguments), loop_request(self.key, "any", 0, "outline")
        known = open_store().get(request) if request else None
        if known is not None:
            source.outline = pickle.loads(known)  # the folder is this user's alone
        elif request:
            open_store().put(request, pickle.dumps(source.outline))
        return source

    @property
    def typical(self) -> Any:
        """Representative kinds of bodies, by which the loop program is tested for derivatives."""
        return self.source.typical

    def program(self, kinds, pairs=None) -> Any:
        """Loop program for some kinds of bodies."""
        return self.source.program(kinds, pairs)


def with_parameters_of(data: Data, bodies) -> Data:
    """Robot data in which only some bodies have inertial parameters as variables."""
    data = with_marks(data, bodies)
    rows, count = data.domains[BODIES], 10 * len(bodies)
    parameters = RowRange(count, {"p": np.arange(count, dtype=np.int64)})
    above = np.full(rows.count, NO_ROW, dtype=np.int64)
    marked = np.array(bodies, dtype=np.int64) - 1
    above[marked] = rows.columns["parent"][marked]
    first = np.zeros(rows.count, dtype=np.int64)
    first[marked] = 10 * np.arange(len(bodies))
    columns = {**rows.columns, "p": first, "above": above}
    domains = {BODIES: replace(rows, columns=columns), PARAMETERS: parameters}
    return replace(data, domains=data.domains | domains, lengths={**data.lengths, "p": count})


def with_marks(data: Data, joints) -> Data:
    """Robot data in which some joints are marked, which makes them separate kinds."""
    rows, marked = data.domains[BODIES], np.zeros(data.domains[BODIES].count, dtype=np.int64)
    marked[np.array(joints, dtype=np.int64) - 1] = 1
    found, kind = np.unique(2 * rows.kind + marked, return_inverse=True)
    kinds = tuple(replace(rows.kinds[k // 2], marked=bool(k % 2)) for k in found)
    bodies = replace(rows, kinds=kinds, kind=kind.astype(np.int64))
    return replace(data, domains={**data.domains, BODIES: bodies})


def _with_frames(data: Data, frames) -> Data:
    """Robot data with the frames that options of a quantity name."""
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
        domains={**data.domains, SINGLE: RowRange(1, columns)},
        numbers={**data.numbers, SINGLE: {**data.numbers[SINGLE], **numbers}},
    )
