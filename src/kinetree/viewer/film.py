"""Images and films as files."""

from pathlib import Path

import numpy as np

from kinetree.errors import KinetreeError, UnknownNameError, need
from kinetree.viewer.painting import Painter
from kinetree.viewer.scenes.description import LAYERS, SHOWN
from kinetree.viewer.scenes.places import framing

FILMS = (".mp4", ".gif")
PICTURES = (".png", ".jpg")


def picture(
    scene, path=None, *, t=None, size=(960, 720), show=SHOWN, camera=None, direction=None, zoom=1.0
):
    """A picture of a scene, (rows, columns, 3) of bytes; also written to a file, if given.

    Args:
        scene: what to draw.
        path: a ``.png`` or ``.jpg`` file.
        t: the time [s]; the beginning unless given.
        size: columns and rows.
        show: names of the layers to draw.
        camera: from where.
        direction: from the mechanism to the eye, in place of ``camera``.
        zoom: how much closer.
    """
    if path is not None:
        _suffix(path, PICTURES)
    camera = framing(scene, direction, zoom) if camera is None else camera
    painter = Painter(scene, size, layers=check_layers(show), camera=camera)
    image = painter.image(scene.times[0] if t is None else t)
    if path is not None:
        need("imageio.v3", "writing pictures", "view").imwrite(path, image)
    return image


def film(
    scene, path, *, size=(960, 720), rate: float = 30, speed=1.0, show=SHOWN, camera=None,
    direction=None, zoom=1.0, progress=None,
) -> Path:  # fmt: skip
    """A film of a scene, drawn without a browser: ``.mp4`` or ``.gif``; its path.

    Args:
        scene: what to draw.
        path: where to.
        size: columns and rows; even numbers for ``.mp4``.
        rate: images a second.
        speed: how much faster than it was.
        show: as in ``picture``.
        camera: as in ``picture``.
        direction: as in ``picture``.
        zoom: as in ``picture``.
        progress: called with the time that is drawn [s].
    """
    camera = framing(scene, direction, zoom) if camera is None else camera
    painter = Painter(scene, size, layers=check_layers(show), camera=camera)
    dense = images_per_second(rate, speed)
    times = scene.times[0] + np.arange(int(scene.duration * dense + 1e-6) + 1) / dense

    def images():
        for t in times:
            yield painter.image(t)
            if progress is not None:
                progress(float(t - scene.times[0]))

    return write_film(path, images(), rate)


def images_per_second(rate, speed) -> float:
    """Of the motion, in a film with ``rate`` images a second that runs ``speed`` times as fast."""
    if not (speed > 0 and rate > 0):
        raise KinetreeError(f"speed and rate of a film must be positive, got {speed} and {rate}")
    return rate / speed


def write_film(path, images, rate) -> Path:
    """Images, one after another, as a film; its path."""
    path = Path(path)
    kind = _suffix(path, FILMS)
    imageio = need("imageio.v2", "recording", "view")
    if kind == ".mp4":
        need("imageio_ffmpeg", "recording .mp4", "view")
        settings = {"fps": rate, "macro_block_size": 2, "quality": 7, "ffmpeg_log_level": "error"}
    else:
        settings = {"duration": 1000 / rate, "loop": 0}
    with imageio.get_writer(path, **settings) as writer:
        for image in images:
            writer.append_data(image)
    return path


def check_layers(show):
    """The names of layers, or an error for an unknown one."""
    show = (show,) if isinstance(show, str) else tuple(show)
    for name in show:
        if name not in LAYERS:
            raise UnknownNameError(f"there is no layer {name!r}; there are {', '.join(LAYERS)}")
    return show


def _suffix(path, known):
    kind = Path(path).suffix.lower()
    if kind not in known:
        raise UnknownNameError(f"{path} must end in {' or '.join(known)}")
    return kind
