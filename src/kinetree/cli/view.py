"""Commands that show robots and motions: ``kinetree view`` and ``kinetree plot``."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kinetree.cli import options as cli
from kinetree.cli.arguments import configuration
from kinetree.cli.options import RobotArgument, flag, option
from kinetree.cli.records import Reading, with_records
from kinetree.files import replacing


def _complete_layers(incomplete: str):
    """Layer names that begin with a text, for shell completion."""
    from kinetree.viewer import LAYERS

    return [name for name in LAYERS if name.startswith(incomplete)]


Position = Annotated[
    str | None,
    option("--q", value="Q", help="Where: 1,2,3 or neutral or random:7 or a posture."),
]
OutFiles = Annotated[
    list[Path] | None,
    option(
        "--out",
        "-o",
        value="FILE",
        help="Write .html, .png, .mp4 or .gif instead of starting a server; repeatable.",
    ),
]
Layers = Annotated[
    list[str] | None,
    option(
        "--show",
        "-s",
        value="LAYERS",
        autocompletion=_complete_layers,
        help="Also show these, with commas: frames,center,inertias,velocities,forces.",
    ),
]
Ghost = Annotated[
    Path | None, option("--ghost", value="MOTION", help="A second motion, drawn pale.")
]
Beside = Annotated[
    Path | None, option("--beside", value="MOTION", help="A second motion, drawn to the right.")
]
Speed = Annotated[
    float, option("--speed", value="X", help="How much faster a film is than the motion; 1.")
]
Port = Annotated[int | None, option("--port", "-p", value="N", help="Of the server; from 8080 on.")]
Stay = Annotated[bool, flag("--no-browser", help="Start the server, open no browser.")]
Collision = Annotated[bool, flag("--collision", help="Draw the shapes that can touch.")]


@dataclass(frozen=True)
class DrawingOptions:
    """Into which files a robot is drawn, and what with it."""

    out: OutFiles = None
    show: Layers = None
    ghost: Ghost = None
    beside: Beside = None
    speed: Speed = 1.0

    @property
    def layers(self) -> list[str]:
        """Names of additional layers to be drawn."""
        return [name for entry in self.show or () for name in entry.split(",") if name]


@dataclass(frozen=True)
class Server:
    """The server of the page."""

    port: Port = None
    stay: Stay = False


@with_records
def view(
    robot: RobotArgument,
    *,
    q: Position = None,
    drawing: DrawingOptions,
    server: Server,
    collision: Collision = False,
    reading: Reading,
):
    """See a robot in the browser, with a slider for every joint; or a motion, which plays.

    A motion is what kinetree simulate --out wrote. Ctrl-C ends it.
    """
    import kinetree as kt
    from kinetree.simulation.results.storage import SUFFIXES
    from kinetree.viewer.painting import FILMS, PICTURES
    from kinetree.viewer.scenes.description import SHOWN

    for path in drawing.out or ():
        require_place(path, (".html", *PICTURES, *FILMS))
    what, state = robot, None
    if Path(robot).suffix.lower() in SUFFIXES and Path(robot).exists():
        if q is not None:
            cli.misuse("--q is for robots; a motion has its own positions")
        what = kt.Trajectory.load(robot)
    else:
        what = reading.robot(robot).model
        state = None if q is None else configuration(what, q)
    for second in (drawing.ghost, drawing.beside):
        if second is not None:
            _require_motion(second)
    layers = (*SHOWN, *drawing.layers)
    options = {"show": layers, "collision": collision, "ghost": drawing.ghost}
    if drawing.beside is not None:
        options["ghost"] = kt.viewer.Beside(drawing.beside)
    if drawing.out:
        for path in drawing.out:
            written = _write(what, path, state, drawing.speed, options)
            cli.err().print(f"wrote {written}", soft_wrap=True)
        return
    with kt.view(what, state, port=server.port, open=not server.stay, **options) as viewer:
        cli.err().print(f"{viewer.model.name} is at {viewer.url}; Ctrl-C ends it", soft_wrap=True)
        viewer.wait()


def _write(what, path, q, speed, options):
    """Draw a robot to a picture, film or page, by the suffix of ``path``."""
    from kinetree import viewer
    from kinetree.viewer.painting import FILMS, PICTURES

    if path.suffix.lower() in PICTURES:
        viewer.picture(what, path, q, **options)
        return path
    if path.suffix.lower() not in FILMS:
        return viewer.save_html(what, path, q, **options)
    layers = options.pop("show")
    scene = viewer.scene(what, q, **options)
    options["show"] = layers
    with cli.bar("drawing", scene.duration) as reached:
        return viewer.record(scene, path, speed=speed, show=layers, progress=reached)


# --- ``kinetree plot``: a stored motion as a picture ---------------------------------------------

PICTURES = (".png", ".pdf", ".svg")


def plot(
    file: Annotated[
        Path, typer.Argument(metavar="MOTION", help="What kinetree simulate --out wrote.")
    ],
    picture: Annotated[
        Path | None,
        option("--out", "-o", value="FILE", help="The picture; MOTION with .png unless given."),
    ] = None,
    joints: Annotated[
        list[str] | None,
        option("--joints", "-j", value="NAMES", help="Only these, with commas; repeatable."),
    ] = None,
):
    """Draw a motion: positions, velocities, forces, energy and events over time."""
    from kinetree.simulation import Trajectory

    _require_motion(file)
    picture = picture or file.with_suffix(".png")
    require_suffix(picture, PICTURES)
    if (reason := missing()) is not None:
        cli.fail(reason)
    names = [name for entry in joints or () for name in entry.split(",") if name]
    motion = Trajectory.load(file)
    written = draw(motion, picture, names or None)
    cli.err().print(f"wrote {written}", soft_wrap=True)


def _require_motion(path):
    """Exit if a motion file does not exist."""
    if not path.exists():
        remedy = f"kinetree simulate ROBOT --out {path} makes one"
        cli.misuse(f"there is no file {str(path)!r}; {remedy}")


def require_suffix(path, suffixes):
    """Exit unless a file has one of the suffixes."""
    if path.suffix.lower() not in suffixes:
        cli.misuse(f"{path} must end in {', '.join(suffixes[:-1])} or {suffixes[-1]}")


def require_place(path, suffixes):
    """Exit unless a file has one of the suffixes and its folder exists."""
    require_suffix(path, suffixes)
    if not path.absolute().parent.is_dir():
        cli.misuse(f"there is no folder {str(path.parent)!r} to write {path.name} to")


def draw(motion, path, joints=None):
    """Draw a motion into a picture file; its path."""
    pyplot = _pyplot()
    figure = motion.plot(joints=joints)
    with replacing(path) as part:
        figure.savefig(part, dpi=150)
    pyplot.close(figure)
    return path


def missing() -> str | None:
    """Reason why pictures cannot be drawn, or None."""
    if importlib.util.find_spec("matplotlib") is None:
        return 'no pictures without Matplotlib: pip install "kinetree[plot]"'
    return None


def _pyplot():
    """Module ``matplotlib.pyplot`` without a display."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
