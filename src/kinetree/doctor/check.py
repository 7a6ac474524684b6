"""``check``: findings about a model or a file."""

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from kinetree.doctor import computed, plausibility, structure
from kinetree.doctor.facts import from_model
from kinetree.doctor.findings import Finding, Place, found, in_order, named
from kinetree.doctor.urdf import read_facts
from kinetree.errors import LoadError, MisalignmentWarning, ModelError, ModelWarning
from kinetree.loaders import read
from kinetree.loaders.paths import Folders
from kinetree.loaders.report import pictures_in_one
from kinetree.loaders.xml import LIMIT_BYTES, parse, root_tag
from kinetree.model import Model


def check(
    robot: Model | str | os.PathLike,
    *,
    floating_base: bool | None = None,
    srdf: str | os.PathLike | None = None,
    folders: str | os.PathLike | Sequence[str | os.PathLike] = (),
) -> tuple[Finding, ...]:
    """Findings about a robot, the worst first: what is wrong, suspicious or notable.

    Args:
        robot: a ``Model``, or the path of a file of any format that ``load`` reads. A URDF file
            is looked through to its end, even where no model can be built from it.
        floating_base: put the root link of a file on a free joint.
        srdf: SRDF file with the semantics of a URDF file, see ``load``.
        folders: folders beside that of the file which it may refer to.
    """
    if not isinstance(robot, (Model, str, os.PathLike)):
        raise ModelError(f"check takes a Model or the path of a file, got {type(robot).__name__}")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # they are findings
        if isinstance(robot, Model):
            return in_order(_of_model(robot))
        return in_order(_of_file(os.fspath(robot), floating_base, srdf, folders))


def _of_file(path, floating_base, srdf, folders):
    facts, found_in_text = _text_of(path, folders)
    try:
        model, notices, _ = read(path, floating_base=floating_base, srdf=srdf, folders=folders)
    except LoadError as error:
        findings = [*found_in_text, *(_of_facts(facts) if facts else ())]
        return [*findings, *_unreadable(error, path, findings)]
    findings = [*found_in_text, *_of_model(model, facts)]
    return [*findings, *_ignored(notices, findings)]


def _text_of(path, folders):
    """Facts of a URDF file, and findings in the text of an XML file; none in what is not XML."""
    try:
        if os.path.isfile(path) and os.path.getsize(path) <= LIMIT_BYTES:
            with open(path, "rb") as file:
                source = file.read()
            tag = root_tag(source)
            if tag in ("robot", "mujoco", "sdf"):
                turned = list(plausibility.rotations(parse(source, path), path))
                if tag != "robot":
                    return None, turned
                facts, findings = read_facts(source, path, Folders(path, folders))
                return facts, [*findings, *turned]
    except (LoadError, OSError, ValueError):
        pass  # the loader says why
    return None, []


def _of_model(model, facts=None):
    """Findings of a model; ``facts`` of the file that it came from have the lines."""
    if model.scalar_type().kind != "f":
        text = "its numbers are formulas; only models of plain numbers are checked"
        return [found("formulas", named("model", model.name), text)]
    said = facts or from_model(model)
    findings, known = list(_of_facts(said)), plausibility.idle_joints(said)
    checks = [
        lambda: plausibility.gravity(model),
        lambda: plausibility.missing_meshes(model) if facts is None else (),
        lambda: plausibility.unusable_meshes(model),
        lambda: structure.couplings(model),
        lambda: structure.actuators(model),
        lambda: computed.singular_joints(model, known),
        lambda: computed.conditioning(model),
        lambda: computed.stiffness(model),
        lambda: computed.overlaps(model),
        lambda: computed.loops(model),
    ]
    places = {part.part: part.place for part in (*facts.links, *facts.joints)} if facts else {}
    for findings_of in checks:
        try:
            with warnings.catch_warnings():  # a finding says it
                warnings.simplefilter("ignore", MisalignmentWarning)
                findings += [replace(f, place=places.get(f.part, f.place)) for f in findings_of()]
        except (ArithmeticError, ValueError) as error:
            text = f"its numbers are so large or small that computing with them fails: {error}"
            findings.append(found("number", named("model", model.name), text))
    return findings


def _of_facts(facts):
    return chain(
        structure.names(facts),
        structure.connections(facts),
        plausibility.impossible_inertias(facts),
        plausibility.massless_leaves(facts),
        structure.limits(facts),
        plausibility.lengths(facts),
        plausibility.masses(facts),
        plausibility.inertias(facts),
        plausibility.angles(facts),
        plausibility.centers(facts),
    )


def _unreadable(error, path, findings):
    """The loader's own words, unless an error at the same line says it already."""
    at = re.match(r"(.*?):(\d+): (.*)", str(error), re.S)
    line, message = (int(at[2]), at[3]) if at and at[1] == path else (0, str(error))
    errors = [f for f in findings if f.severity == "error"]
    if line in {f.place.line for f in errors} or (not line and errors):
        return
    message = message.removeprefix(f"{path}: ")
    yield found("unreadable", "file", message, Place(path, line))


def _ignored(notices, findings):
    """Notices of the loader, unless a finding says the same; those of pictures in one."""
    meshes = {f.place.line for f in findings if f.code == "mesh-missing"}
    wrong = {
        (f.place.line, name)
        for f in findings
        if f.severity == "error"
        for name in re.findall("'.*?'", f.message)
    }
    pictures = []
    for notice in notices:
        known = notice.line in meshes and "mesh" in notice.what
        known = known or any((notice.line, n) in wrong for n in re.findall("'.*?'", notice.why))
        if known or "physically impossible" in notice.why:
            continue
        if notice.effect == "picture":
            pictures.append(notice)
            continue
        place = Place(notice.file, notice.line or 0)
        if notice.effect == "motion":
            yield found("ignored-motion", notice.what, notice.why, place)
        else:
            yield found("ignored", notice.what, notice.why, place)
    if pictures:
        first, several = pictures[0], len(pictures) > 1
        part = "pictures" if several else first.what
        text = pictures_in_one(pictures) if several else first.why
        yield found("ignored", part, text, Place(first.file, first.line or 0))
