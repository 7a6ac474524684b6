"""MJCF, the files of MuJoCo, as models."""

import numpy as np

from kinetree.errors import LoadError
from kinetree.loaders.mjcf.compiled import from_compiled
from kinetree.loaders.mjcf.library import compiled, mujoco
from kinetree.loaders.mjcf.source import prepare
from kinetree.loaders.mjcf.used import note_unused
from kinetree.loaders.report import Notice, short
from kinetree.model import Model

__all__ = ["read_mjcf"]


def read_mjcf(source: bytes, report, folders, options) -> Model:
    """The mechanism in an MJCF file.

    MuJoCo's own compiler settles defaults, classes, units, orientations and inertia; what it
    computes is read.
    """
    library = mujoco()
    mjcf = prepare(source, report.path, folders)

    def make():
        files = {"include": mjcf.models, "assets": mjcf.assets}
        return library.MjSpec.from_string(mjcf.text, **files).compile()

    try:
        mj_model, messages = compiled(make)
    except (
        ValueError,
        TypeError,
        RuntimeError,
        MemoryError,
        library.FatalError,
        library.UnexpectedError,
    ) as error:
        raise mjcf.refusal(str(error)) from None
    for message in messages:
        report.ignored(None, "MuJoCo", message)
    _check_finite(mj_model, mjcf)
    model = from_compiled(
        mj_model,
        _teller(mjcf, report),
        lump=options.lump,
        floating_base=options.floating_base,
        paths=mjcf.paths,
    )
    for part in (mjcf, *mjcf.attached):
        note_unused(part, report)
    report.notices.sort(key=lambda notice: (notice.file != report.path, notice.line or 0))
    return model


def _teller(mjcf, report):
    """Notes what is not carried, at the line of the element of that name."""
    elements: dict = {}
    for element in mjcf.root.iter("*"):
        parent = element.getparent()
        tag = "actuator" if parent is not None and parent.tag == "actuator" else element.tag
        elements.setdefault((tag, element.get("name", "")), element)

    def tell(tag, name, why):
        element = elements.get((tag, name), elements.get((tag, "")))
        file, line = (report.path, None) if element is None else mjcf.place(element)
        what = f"<{tag} name={short(name)}>" if name else f"<{tag}>"
        notice = Notice(file, line, what, why)
        if notice not in report.notices:
            report.notices.append(notice)

    return tell


def _check_finite(mj_model, mjcf):
    """MuJoCo takes infinity where it makes no sense."""
    for field in ("body_pos", "body_quat", "body_mass", "body_inertia", "body_ipos", "jnt_pos"):
        if not np.all(np.isfinite(getattr(mj_model, field))):
            raise LoadError(
                f"{mjcf.path}: {field.partition('_')[2]} of a {field.partition('_')[0]} is not "
                f"finite after MuJoCo compiled the model"
            )
