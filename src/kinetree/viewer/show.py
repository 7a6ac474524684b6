"""``kt.view`` in the browser; files and pages of mechanisms and motions without a server."""

import html
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.progress import clock_reporter
from kinetree.errors import ModelWarning, warn
from kinetree.files import write_text
from kinetree.quantities.reactions import Part
from kinetree.spelling import explains
from kinetree.viewer import painting
from kinetree.viewer.motions import Beside, Viewable, motion_of, scene_of
from kinetree.viewer.page import page
from kinetree.viewer.scenes.contacts import Contacts
from kinetree.viewer.scenes.description import SHOWN, Scene
from kinetree.viewer.scenes.places import framing
from kinetree.viewer.scenes.stage import Overlays
from kinetree.viewer.sliders import sliders_of

if TYPE_CHECKING:
    from kinetree.viewer.browser.app import Viewer


@explains
def view(
    what: Viewable,
    q: ArrayLike | None = None,
    *,
    t: ArrayLike | None = None,
    forces: ArrayLike | None = None,
    reactions: Part | ArrayLike | None = None,
    contacts: Contacts | None = None,
    ghost: Viewable | Beside | ArrayLike | None = None,
    trace: str | None = None,
    show: str | Sequence[str] = SHOWN,
    collision: bool = False,
    shadows: bool = True,
    port: int | None = None,
    host: str | None = None,
    origins: str | Sequence[str] = (),
    open: bool = True,
) -> "Viewer":
    """Show a mechanism or a motion in the browser, with a slider for every joint.

    Args:
        what: a ``Model``, a ``Trajectory`` of one motion, a ``World`` as it is, the name of a file
            of a model or motion, or the name of a sample.
        q: positions of a model: one state (nq,), or a motion (T, nq); by default the posture
            ``home`` where there is one, else where a file puts what floats (``qpos0``,
            ``initial``), else the neutral position.
        t: times of ``q`` [s], (T,); 30 a second unless given.
        forces: on the bodies, as ``f_ext`` of the dynamics: one for all times, or (T, NB, 6).
        reactions: of the joints: ``"total"``, ``"bearing"`` or ``"drive"``, in a motion under the
            forces that acted, else at rest; or an array (T, joints, 6) of ``joint_reactions`` with
            ``frame="aligned"``. Drawn in the layer ``"reactions"``.
        contacts: ``kinetree.viewer.Contacts`` at all times; by default the contact forces of a
            world, and of a motion that was simulated with rigid contact.
        ghost: a second motion of the same mechanism, or a configuration (nq,), drawn pale; or to
            the right, for comparison, as ``kinetree.viewer.Beside(motion)``.
        trace: name of a frame or body whose path is drawn, up to the current time.
        show: names of the layers that are shown at first; ``kinetree.viewer.LAYERS`` lists all.
        collision: draw the collision shapes instead of the visual ones.
        shadows: shadows and reflected light; it is faster without them if there is no graphics
            card.
        port: of the server; by default the first one that is free, from 8080 on.
        host: an address of this machine to listen at; by default this machine alone can see the
            page.
        origins: further addresses whose pages may connect, such as ``"https://hub.example.org"``
            for a proxy; other websites are rejected.
        open: open a browser, where there is a screen.

    Returns:
        A ``Viewer``, which shows itself in notebooks. In a script, ``view(model).wait()`` keeps it
        alive until Ctrl-C.
    """
    show = painting.check_layers(show)
    motion = motion_of(what, q, t)
    overlays = Overlays(forces, reactions, contacts, ghost, trace)
    from kinetree.viewer.browser.app import Address, Viewer

    address = Address(port, host, origins)
    viewer = Viewer(motion, overlays, address, show=show, collision=collision, shadows=shadows)
    for notice in viewer.notices:
        warn(notice, ModelWarning)
    if open:
        viewer.open()
    return viewer


# --- Files and pages -----------------------------------------------------------------------------


class Page:
    """A page that plays a scene, as text; notebooks show it, and contain it when they are shared.

    Attributes:
        text: the HTML.
        height: in a notebook [pixel].
    """

    def __init__(self, text: str, height: int = 480):
        self.text, self.height = text, height

    def __repr__(self):
        return f"<page of {len(self.text)} characters>"

    def _repr_html_(self):
        """HTML frame with the page inside, for notebooks."""
        inside = html.escape(self.text, quote=True)
        style = f"width:100%;height:{self.height}px;border:1px solid #ccc;border-radius:6px"
        return f'<iframe srcdoc="{inside}" style="{style}"></iframe>'


@explains
def save_html(
    what: Viewable | Scene,
    path: str | os.PathLike,
    q: ArrayLike | None = None,
    *,
    show: str | Sequence[str] = SHOWN,
    direction: ArrayLike | None = None,
    zoom: float = 1.0,
    **options: Any,
) -> Path:
    """Write a self-contained HTML page that plays a scene without server or network.

    Args:
        what: a scene, or what ``view`` takes.
        path: the ``.html`` file.
        q: as in ``view``.
        show: names of the layers that are shown at first.
        direction: from the mechanism to the eye, (3,); a good one by default.
        zoom: larger than one to come closer.
        **options: ``t``, ``forces``, ``reactions``, ``contacts``, ``ghost``, ``trace``,
            ``collision`` as in ``view``.

    Returns:
        The path.
    """
    text = embedded(what, q, show=show, direction=direction, zoom=zoom, **options).text
    return write_text(path, text)


def embedded(
    what: Viewable | Scene,
    q: ArrayLike | None = None,
    *,
    show: str | Sequence[str] = SHOWN,
    direction: ArrayLike | None = None,
    zoom: float = 1.0,
    height: int = 480,
    **options: Any,
) -> Page:
    """``Page`` of ``save_html`` for a notebook, stored inside it.

    Args:
        what: as in ``save_html``.
        q: as in ``save_html``.
        show: as in ``save_html``.
        direction: as in ``save_html``.
        zoom: as in ``save_html``.
        height: of the page in the notebook [pixel].
        **options: as in ``save_html``.
    """
    shown = painting.check_layers(show)
    scene = _scene(what, q, options)
    sliders = None
    if not isinstance(what, Scene):
        motion = motion_of(what, q, options.get("t"))
        sliders = None if motion.moves else sliders_of(motion.model, motion.q[0], scene.size)
    camera = framing(scene, direction, zoom)
    return Page(page(scene, show=shown, camera=camera, sliders=sliders), height)


def picture(
    what: Viewable | Scene,
    path: str | os.PathLike | None = None,
    q: ArrayLike | None = None,
    *,
    at: float | None = None,
    size: tuple[int, int] = (960, 720),
    show: str | Sequence[str] = SHOWN,
    direction: ArrayLike | None = None,
    zoom: float = 1.0,
    **options: Any,
) -> np.ndarray:
    """Picture (rows, columns, 3) of bytes, drawn without browser; also written to a file.

    Args:
        what: a scene, or what ``view`` takes.
        path: a ``.png`` or ``.jpg`` file to write; none by default.
        q: as in ``view``.
        at: the time in a motion [s]; its beginning unless given.
        size: columns and rows.
        show: names of the layers to draw.
        direction: from the mechanism to the eye, (3,); a good one by default.
        zoom: larger than one to come closer.
        **options: ``t``, ``forces``, ``reactions``, ``contacts``, ``ghost``, ``trace``,
            ``collision`` as in ``view``.
    """
    scene = _scene(what, q, options)
    look = {"size": size, "show": show, "direction": direction, "zoom": zoom}
    return painting.picture(scene, path, t=at, **look)


def record(
    what: Viewable | Scene,
    path: str | os.PathLike,
    q: ArrayLike | None = None,
    *,
    size: tuple[int, int] = (960, 720),
    rate: float = 30,
    speed: float = 1.0,
    show: str | Sequence[str] = SHOWN,
    direction: ArrayLike | None = None,
    zoom: float = 1.0,
    progress: Callable[[float], None] | bool | None = None,
    **options: Any,
) -> Path:
    """Write a film, drawn without browser or graphics card; returns its path.

    Args:
        what: a scene, or what ``view`` takes.
        path: an ``.mp4`` or ``.gif`` file.
        q: as in ``view``.
        size: columns and rows.
        rate: images a second.
        speed: how much faster than it was.
        show: names of the layers to draw.
        direction: from the mechanism to the eye, (3,); a good one by default.
        zoom: larger than one to come closer.
        progress: True for a bar on standard error; or a function that is called with the time
            that is drawn [s].
        **options: ``t``, ``forces``, ``reactions``, ``contacts``, ``ghost``, ``trace``,
            ``collision`` as in ``view``.
    """
    scene = _scene(what, q, {**options, "rate": painting.images_per_second(rate, speed)})
    look = {"size": size, "show": show, "direction": direction, "zoom": zoom}
    with clock_reporter(progress, 0.0, scene.duration, "drawing") as reached:
        return painting.film(scene, path, rate=rate, speed=speed, progress=reached, **look)


def _scene(what, q, options) -> Scene:
    """``Scene`` of a model, motion, world, file or scene; issues its notices as warnings."""
    if isinstance(what, Scene):
        return what
    scene = scene_of(what, q, **options)
    for notice in scene.notices:
        warn(notice, ModelWarning)
    return scene
