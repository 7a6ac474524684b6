"""Texts recorded as loops for every robot, of the usual arguments."""

from kinetree.model.general.model import Source

AXES = {"q": ("nq",), "qd": ("nv",), "qdd": ("nv",), "tau": ("nv",), "f_ext": ("body_count", 6)}
"""Axes of arguments by name."""


def record(text, arguments, kinds, name="", outline=None, pairs=None):
    """The loops that a text of the usual arguments consists of; see ``Source``."""
    source = Source(text, {n: AXES[n] for n in arguments}, name)
    if outline is not None:
        source.__dict__["outline"] = outline
    return source.program(kinds, pairs)


def outlined(text, arguments):
    """What the recording of single kinds of bodies needs to know of a text."""
    return Source(text, {n: AXES[n] for n in arguments}).outline
