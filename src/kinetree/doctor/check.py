"""``check``: findings about a model or a file.

First come the connections of links and joints, before a model is built from them, with limits and
drives; what a model itself is asked is in ``plausibility`` and ``computed``.
"""

import os
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from kinetree.doctor import computed, plausibility
from kinetree.doctor.facts import from_model
from kinetree.doctor.findings import Findings, Place, finding_of, in_order, part_name
from kinetree.doctor.urdf import read_facts
from kinetree.errors import LoadError, MisalignmentWarning, ModelError, ModelWarning
from kinetree.loaders import read
from kinetree.loaders.paths import Folders
from kinetree.loaders.report import pictures_in_one, short
from kinetree.loaders.robots import locate
from kinetree.loaders.xml import LIMIT_BYTES, parse, root_tag
from kinetree.model import Model
from kinetree.spelling import close_names, explains

_MOST = 8


def names(facts):
    """Findings about names that are used twice."""
    for parts in (facts.links, facts.joints):
        first = {}
        for part in parts:
            if part.name and part.name in first:
                text = f"the name is taken already, on line {first[part.name]}"
                yield finding_of("duplicate-name", part.part, text, part.place)
            first.setdefault(part.name, part.place.line)


def connections(facts):
    """Findings about unknown references, links with two parents, cycles, loose links."""
    links = {link.name: link for link in reversed(facts.links)}
    joints = [j for j in facts.joints if j.parent and j.child]
    for joint in joints:
        ends = (
            ("parent", joint.parent, joint.parent_place),
            ("child", joint.child, joint.child_place),
        )
        for role, name, place in ends:
            if name not in links:
                close = close_names(name, links, cutoff=0.75)
                hint = f"; did you mean {short(close[0])}?" if close else ""
                text = f"its {role} {short(name)} does not exist{hint}"
                yield finding_of("unknown-name", joint.part, text, place)
    yield from _two_parents(joints)
    parent = {j.child: j.parent for j in reversed(joints) if {j.parent, j.child} <= set(links)}
    cycles = list(_cycles(parent))
    for cycle in cycles:
        joint = next(j for j in joints if j.child == cycle[0])
        around = [*reversed(cycle), cycle[-1]]
        if len(around) > _MOST:
            around = [*around[: _MOST - 2], f"... ({len(cycle)} in all)", around[-1]]
        text = f"these links form a circle: {' > '.join(map(_cut, around))}"
        yield finding_of("cycle", joint.part, text, joint.place)
    yield from _several_roots(facts, links, parent)


def _cut(name):
    """Name shortened if it is long."""
    return name if len(name) <= 40 else f"{name[:37]}..."


def _two_parents(joints):
    """Findings about links that are the child of several joints."""
    for name, count in Counter(j.child for j in joints).items():
        if count > 1:
            by = [j for j in joints if j.child == name]
            listed = ", ".join(short(j.name) for j in by[:_MOST])
            text = f"it hangs on {count} joints: {listed}"
            yield finding_of("two-parents", part_name("body", name), text, by[1].place)


def _cycles(parent):
    """Cycles of links, each once, children before parents."""
    settled = set()
    for start in parent:
        path, name = {}, start
        while name in parent and name not in settled and name not in path:
            path[name] = len(path)
            name = parent[name]
        if name in path:
            yield list(path)[path[name] :]
        settled.update(path)


def _several_roots(facts, links, parent):
    """Findings about bodies that no joint connects to the largest tree."""
    roots = [name for name in links if name not in parent]
    trees = Counter(_roots(links, parent).values())
    if len(roots) < 2:
        return
    main = max(roots, key=lambda root: (trees[root], -facts.links.index(links[root])))
    children = {joint.child for joint in facts.joints}  # those of broken joints have a finding
    for root in reversed(roots):
        if root != main and root not in children:
            others = trees[root] - 1
            what = f"it and the {others} that hang on it" if others else "it"
            text = f"no joint connects {what} to {short(main)}, the root of the robot"
            yield finding_of("several-roots", part_name("body", root), text, links[root].place)


def _roots(links, parent):
    """Root of the tree that each link belongs to; none for cycles."""
    found = {}
    for start in links:
        path, name = {}, start
        while name in parent and name not in found and name not in path:
            path[name] = None
            name = parent[name]
        root = found.get(name, None if name in path else name)
        found.update(dict.fromkeys([*path, name] if root == name else path, root))
    return found


# --- Limits of joints that are missing, contradictory or leave no motion -------------------------

_LIMITED = ("revolute", "prismatic")


def limits(facts):
    """Findings about joint limits of positions, velocities and efforts."""
    limited = any(j.has_limits for j in facts.joints)
    for joint in facts.joints:
        if joint.kind not in (*_LIMITED, "continuous"):
            continue
        if not joint.has_limits:
            if joint.kind in _LIMITED and (facts.from_file or limited):
                severity = None if facts.from_file else "note"
                text = "it has no limits" + ("" if facts.from_file else ", and others have")
                yield finding_of("limit-missing", joint.part, text, joint.place, severity=severity)
            continue
        yield from _positions(joint)
        yield from _magnitudes(joint)


def _positions(joint):
    """Findings about position limits that exclude each other."""
    if joint.kind not in _LIMITED or joint.lower is None or joint.upper is None:
        return
    if joint.lower > joint.upper:
        text = f"its lower bound {joint.lower:g} is above its upper bound {joint.upper:g}"
        yield finding_of("limit-order", joint.part, text, joint.limit_place)
    elif joint.lower == joint.upper:
        text = f"both bounds are {joint.lower:g}"
        yield finding_of("limit-equal", joint.part, text, joint.limit_place)


def _magnitudes(joint):
    """Findings about negative limits of efforts and velocities."""
    for name, value in (("effort", joint.effort), ("velocity", joint.velocity)):
        if value is not None and value < 0:
            text = f"its {name} limit is {value:g}"
            yield finding_of("limit-negative", joint.part, text, joint.limit_place)
        elif value == 0:
            yield finding_of(
                f"limit-{name}", joint.part, f"its {name} limit is 0", joint.limit_place
            )


def couplings(model):
    """Findings about joints that couplings drive beyond their limits."""
    for coupling in model.couplings:
        follower = model.bodies[coupling.joint - 1]
        lower, upper = _bounds(follower)
        if coupling.source:
            source = model.bodies[coupling.source - 1]
            if not np.all(np.isfinite(_bounds(source))):
                continue
            travel = np.linspace(*_bounds(source), 33)
        else:
            travel = np.zeros(1)
        reached = np.polynomial.polynomial.polyval(travel, coupling.coefficients)
        slack = 1e-6 + 1e-3 * np.ptp(reached)
        if np.min(reached) < lower - slack or np.max(reached) > upper + slack:
            text = f"it would go from {np.min(reached):.4g} to {np.max(reached):.4g}, and may go "
            text += f"from {lower:.4g} to {upper:.4g}"
            part = part_name("joint", follower.joint_name)
            if coupling.source:
                text = f"as it follows {source.joint_name!r}, {text}"
            yield finding_of("coupling-limits", part, text)


def _bounds(body):
    """Smallest and largest position of a joint."""
    limits = body.limits
    lower = limits.lower[0] if limits and limits.lower else -np.inf
    upper = limits.upper[0] if limits and limits.upper else np.inf
    return lower, upper


def actuators(model):
    """Findings about actuators without effect, or without bounds."""
    for actuator in model.actuators:
        part = part_name("actuator", actuator.name)
        if not np.any(actuator.gear):
            yield finding_of("actuator-gear", part, "its gear is zero")
        joint = model.driven_joint(actuator)
        parts = model.loops if actuator.loop else model.bodies
        limits = parts[(actuator.loop or actuator.joint) - 1].limits if joint else None
        bounded = limits is not None and limits.effort and np.all(np.isfinite(limits.effort))
        # An integrated control leaves its range; other activations stay within that of the control.
        reaches = [actuator.activation_range]
        reaches += [actuator.control] if actuator.activation != "integrator" else []
        endless = not any(np.all(np.isfinite(reach)) for reach in reaches)
        if actuator.kind in ("position", "intvelocity") and endless:
            forced = bounded or np.all(np.isfinite(actuator.effort))
            text = "it is a position servo without a range of commands"
            text += "" if forced else ", and without a largest force"
            severity = "note" if forced else "warning"
            yield finding_of("servo-range", part, text, severity=severity)
        elif not bounded and not np.any(np.isfinite((actuator.effort, actuator.control)).all(1)):
            text = f"neither it nor joint {joint!r} has a largest force"
            yield finding_of("actuator-effort", part, text if joint else "it has no largest force")


@explains
def check(
    robot: Model | str | os.PathLike,
    *,
    floating_base: bool | None = None,
    srdf: str | os.PathLike | None = None,
    folders: str | os.PathLike | Sequence[str | os.PathLike] = (),
) -> Findings:
    """Findings about a robot, the worst first.

    Args:
        robot: a ``Model``, or the path of a file of any format that ``load`` reads. A URDF file
            is examined to its end, even if no model can be built from it.
        floating_base: put the root link of a file on a free joint.
        srdf: SRDF file with the semantics of a URDF file, see ``load``.
        folders: further folders that the file may refer to.
    """
    if not isinstance(robot, (Model, str, os.PathLike)):
        raise ModelError(f"check takes a Model or the path of a file, got {type(robot).__name__}")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # they are findings
        if isinstance(robot, Model):
            return in_order(_of_model(robot))
        path, folders = locate(os.fspath(robot), folders)
        return in_order(_of_file(path, floating_base, srdf, folders))


def _of_file(path, floating_base, srdf, folders):
    """Findings about a file: its text, the loader's notices, its model."""
    facts, found_in_text = _text_of(path, folders)
    try:
        model, notices, _ = read(path, floating_base=floating_base, srdf=srdf, folders=folders)
    except LoadError as error:
        findings = [*found_in_text, *(_of_facts(facts) if facts else ())]
        return [*findings, *_unreadable(error, path, findings)]
    findings = [*found_in_text, *_of_model(model, facts)]
    return [*findings, *_loader_findings(notices, findings)]


def _text_of(path, folders):
    """Facts of a URDF file, and findings in XML text; empty for other formats."""
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
    """Findings about a model; ``facts`` of its file have the line numbers."""
    if model.scalar_type().kind != "f":
        text = "its numbers are formulas; only models of plain numbers are checked"
        return [finding_of("formulas", part_name("model", model.name), text)]
    said = facts or from_model(model)
    findings, known = list(_of_facts(said)), plausibility.idle_joints(said)
    checks = [
        lambda: plausibility.gravity(model),
        lambda: plausibility.missing_meshes(model) if facts is None else (),
        lambda: plausibility.unusable_meshes(model),
        lambda: couplings(model),
        lambda: actuators(model),
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
            findings.append(finding_of("number", part_name("model", model.name), text))
    return findings


def _of_facts(facts):
    """Findings about a file's facts, without a model."""
    return chain(
        names(facts),
        connections(facts),
        plausibility.impossible_inertias(facts),
        plausibility.massless_leaves(facts),
        limits(facts),
        plausibility.lengths(facts),
        plausibility.masses(facts),
        plausibility.inertias(facts),
        plausibility.angles(facts),
        plausibility.centers(facts),
    )


def _unreadable(error, path, findings):
    """Findings with the loader's error added, unless one at the same line exists."""
    at = re.match(r"(.*?):(\d+): (.*)", str(error), re.S)
    line, message = (int(at[2]), at[3]) if at and at[1] == path else (0, str(error))
    errors = [f for f in findings if f.severity == "error"]
    if line in {f.place.line for f in errors} or (not line and errors):
        return
    message = message.removeprefix(f"{path}: ")
    yield finding_of("unreadable", "file", message, Place(path, line))


def _loader_findings(notices, findings):
    """Findings from the loader's notices, unless another says the same."""
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
            yield finding_of("ignored-motion", notice.what, notice.why, place)
        else:
            yield finding_of("ignored", notice.what, notice.why, place)
    if pictures:
        first, several = pictures[0], len(pictures) > 1
        part = "pictures" if several else first.what
        text = pictures_in_one(pictures) if several else first.why
        yield finding_of("ignored", part, text, Place(first.file, first.line or 0))
