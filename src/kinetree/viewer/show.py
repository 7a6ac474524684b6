"""``kt.view``: the viewer in the browser."""

import warnings

from kinetree.errors import ModelWarning
from kinetree.viewer.motions import motion_of
from kinetree.viewer.pictures.film import check_layers
from kinetree.viewer.scene.description import SHOWN

__all__ = ["view"]


def view(
    what, q=None, *, t=None, forces=None, contacts=None, ghost=None, show=SHOWN, collision=False,
    shadows=True, port=None, host="127.0.0.1", origins=(), open=True,
):  # fmt: skip
    """Show a mechanism in the browser, with a slider for every joint; and its motion.

    Args:
        what: a ``Model``, a ``Trajectory`` of one motion, the name of a file of either, or the name
            of a sample.
        q: positions of a model: one state (nq,), or a motion (T, nq); by default the posture
            ``home`` where there is one, else the neutral position.
        t: times of ``q`` [s], (T,); 30 a second unless given.
        forces: on the bodies, as ``f_ext`` of the dynamics: one for all times, or (T, NB, 6).
        contacts: ``kinetree.viewer.Contacts`` at all times.
        ghost: a second motion of the same mechanism, or a configuration (nq,), drawn pale.
        show: names of the layers that are shown at first; ``kinetree.viewer.LAYERS`` has all.
        collision: draw the shapes that can touch instead of those to be seen.
        shadows: shadows and reflected light; without them it is faster where there is no graphics
            card.
        port: of the server; by default the first one that is free, from 8080 on.
        host: address to listen at; by default this machine alone can see the page.
        origins: further addresses whose pages may connect, such as ``"https://hub.example.org"``
            for a proxy; other websites are refused.
        open: open a browser, where there is a screen.

    Returns:
        A ``Viewer``, which shows itself in notebooks. In a script, ``view(model).wait()`` keeps it
        alive until Ctrl-C.
    """
    show = check_layers(show)
    motion = motion_of(what, q, t)
    from kinetree.viewer.browser.app import Viewer

    viewer = Viewer(
        motion, show=show, forces=forces, contacts=contacts, ghost=ghost, collision=collision,
        shadows=shadows, port=port, host=host, origins=origins,
    )  # fmt: skip
    for notice in viewer.notices:
        warnings.warn(notice, ModelWarning, stacklevel=2)
    if open:
        viewer.open()
    return viewer
