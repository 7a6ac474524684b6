"""``kinetree view``: a robot or a motion in the browser, or as a page, a picture, a film."""

from pathlib import Path
from typing import Annotated

from kinetree.cli.arguments import configuration
from kinetree.cli.console import bar, err, misuse
from kinetree.cli.options import (
    Floating,
    FolderOption,
    RobotArgument,
    SrdfOption,
    flag,
    open_robot,
    option,
)


def _complete_layers(incomplete: str):
    from kinetree.viewer import LAYERS

    return [name for name in LAYERS if name.startswith(incomplete)]


def view(
    robot: RobotArgument,
    q: Annotated[
        str | None,
        option("--q", value="Q", help="Where: 1,2,3 or neutral or random:7 or a posture."),
    ] = None,
    out: Annotated[
        list[Path] | None,
        option(
            "--out", "-o", value="FILE",
            help="Write .html, .png, .mp4 or .gif instead of starting a server; repeatable.",
        ),
    ] = None,
    show: Annotated[
        list[str] | None,
        option(
            "--show", "-s", value="LAYERS", autocompletion=_complete_layers,
            help="Also show these, with commas: frames,center,inertias,velocities,forces.",
        ),
    ] = None,
    ghost: Annotated[
        Path | None, option("--ghost", value="MOTION", help="A second motion, drawn pale.")
    ] = None,
    speed: Annotated[
        float, option("--speed", value="X", help="How much faster a film is than the motion; 1.")
    ] = 1.0,
    port: Annotated[
        int | None, option("--port", "-p", value="N", help="Of the server; from 8080 on.")
    ] = None,
    stay: Annotated[bool, flag("--no-browser", help="Start the server, open no browser.")] = False,
    collision: Annotated[bool, flag("--collision", help="Draw the shapes that can touch.")] = False,
    floating: Floating = False,
    srdf: SrdfOption = None,
    folder: FolderOption = None,
):  # fmt: skip
    """See a robot in the browser, with a slider for every joint; or a motion, which plays.

    A motion is what kinetree simulate --out wrote. Ctrl-C ends it.
    """
    import kinetree as kt
    from kinetree.simulation.results.storage import SUFFIXES
    from kinetree.viewer.film import FILMS, PICTURES
    from kinetree.viewer.scenes.description import SHOWN

    kinds = (".html", *PICTURES, *FILMS)
    for path in out or ():
        if path.suffix.lower() not in kinds:
            misuse(f"{path} must end in {', '.join(kinds[:-1])} or {kinds[-1]}")
        if not path.absolute().parent.is_dir():
            misuse(f"there is no folder {str(path.parent)!r} to write {path.name} to")
    what, state = robot, None
    if Path(robot).suffix.lower() in SUFFIXES and Path(robot).exists():
        if q is not None:
            misuse("--q is for robots; a motion has its own positions")
        what = kt.Trajectory.load(robot)
    else:
        what = open_robot(robot, floating=floating, srdf=srdf, folders=folder).model
        state = None if q is None else configuration(what, q)
    if ghost is not None and not ghost.exists():
        misuse(f"there is no file {str(ghost)!r}; kinetree simulate ROBOT --out {ghost} makes one")
    layers = [name for entry in show or () for name in entry.split(",") if name]
    options = {"show": (*SHOWN, *layers), "collision": collision, "ghost": ghost}
    if out:
        for path in out:
            err().print(f"wrote {_written(what, path, state, speed, options)}", soft_wrap=True)
        return
    with kt.view(what, state, port=port, open=not stay, **options) as viewer:
        err().print(f"{viewer.model.name} is at {viewer.url}; Ctrl-C ends it", soft_wrap=True)
        viewer.wait()


def _written(what, path, q, speed, options):
    from kinetree import viewer
    from kinetree.viewer.film import FILMS, PICTURES

    if path.suffix.lower() in PICTURES:
        viewer.picture(what, path, q, **options)
        return path
    if path.suffix.lower() not in FILMS:
        return viewer.save_html(what, path, q, **options)
    layers = options.pop("show")
    scene = viewer.scene(what, q, **options)
    options["show"] = layers
    with bar("drawing", scene.duration) as reached:
        return viewer.record(scene, path, speed=speed, show=layers, progress=reached)
