"""Connections of links and joints, before a model is built from them; limits and drives."""

from collections import Counter

import numpy as np

from kinetree.doctor.findings import found, named
from kinetree.loaders.report import short
from kinetree.spelling import close_names

_MOST = 8


def names(facts):
    """Names that are used twice."""
    for parts in (facts.links, facts.joints):
        first = {}
        for part in parts:
            if part.name and part.name in first:
                text = f"the name is taken already, on line {first[part.name]}"
                yield found("duplicate-name", part.part, text, part.place)
            first.setdefault(part.name, part.place.line)


def connections(facts):
    """References that lead nowhere, links with two parents, cycles and loose ends."""
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
                yield found("unknown-name", joint.part, text, place)
    yield from _two_parents(joints)
    parent = {j.child: j.parent for j in reversed(joints) if {j.parent, j.child} <= set(links)}
    cycles = list(_cycles(parent))
    for cycle in cycles:
        joint = next(j for j in joints if j.child == cycle[0])
        around = [*reversed(cycle), cycle[-1]]
        if len(around) > _MOST:
            around = [*around[: _MOST - 2], f"... ({len(cycle)} in all)", around[-1]]
        text = f"each of these hangs on another: {' > '.join(map(_cut, around))}"
        yield found("cycle", joint.part, text, joint.place)
    yield from _several_roots(facts, links, parent)


def _cut(name):
    return name if len(name) <= 40 else f"{name[:37]}..."


def _two_parents(joints):
    for name, count in Counter(j.child for j in joints).items():
        if count > 1:
            by = [j for j in joints if j.child == name]
            listed = ", ".join(short(j.name) for j in by[:_MOST])
            text = f"it hangs on {count} joints: {listed}"
            yield found("two-parents", named("body", name), text, by[1].place)


def _cycles(parent):
    """Each cycle of links once, children before parents."""
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
    """Bodies that no joint connects to the largest tree."""
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
            yield found("several-roots", named("body", root), text, links[root].place)


def _roots(links, parent):
    """The root that each link hangs on in the end; none for cycles."""
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
    """Bounds of positions, speeds and forces, joint by joint."""
    limited = any(j.has_limits for j in facts.joints)
    for joint in facts.joints:
        if joint.kind not in (*_LIMITED, "continuous"):
            continue
        if not joint.has_limits:
            if joint.kind in _LIMITED and (facts.from_file or limited):
                severity = None if facts.from_file else "note"
                text = "it has no limits" + ("" if facts.from_file else ", and others have")
                yield found("limit-missing", joint.part, text, joint.place, severity=severity)
            continue
        yield from _positions(joint)
        yield from _magnitudes(joint)


def _positions(joint):
    if joint.kind not in _LIMITED or joint.lower is None or joint.upper is None:
        return
    if joint.lower > joint.upper:
        text = f"its lower bound {joint.lower:g} is above its upper bound {joint.upper:g}"
        yield found("limit-order", joint.part, text, joint.limit_place)
    elif joint.lower == joint.upper:
        text = f"both bounds are {joint.lower:g}"
        yield found("limit-equal", joint.part, text, joint.limit_place)


def _magnitudes(joint):
    for name, value in (("effort", joint.effort), ("velocity", joint.velocity)):
        if value is not None and value < 0:
            text = f"its {name} limit is {value:g}"
            yield found("limit-negative", joint.part, text, joint.limit_place)
        elif value == 0:
            yield found(f"limit-{name}", joint.part, f"its {name} limit is 0", joint.limit_place)


def couplings(model):
    """Joints that others would drive beyond their limits."""
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
            part = named("joint", follower.joint_name)
            if coupling.source:
                text = f"as it follows {source.joint_name!r}, {text}"
            yield found("coupling-limits", part, text)


def _bounds(body):
    limits = body.limits
    lower = limits.lower[0] if limits and limits.lower else -np.inf
    upper = limits.upper[0] if limits and limits.upper else np.inf
    return lower, upper


def actuators(model):
    """Actuators without effect, or without bounds."""
    for actuator in model.actuators:
        part = named("actuator", actuator.name)
        if not np.any(actuator.gear):
            yield found("actuator-gear", part, "its gear is zero")
        joint = model.driven_joint(actuator)
        parts = model.loops if actuator.loop else model.bodies
        limits = parts[(actuator.loop or actuator.joint) - 1].limits if joint else None
        bounded = limits is not None and limits.effort and np.all(np.isfinite(limits.effort))
        reach = actuator.activation_range if actuator.activation else actuator.control
        if actuator.kind in ("position", "intvelocity") and not np.all(np.isfinite(reach)):
            forced = bounded or np.all(np.isfinite(actuator.effort))
            text = "it is a position servo without a range of commands"
            text += "" if forced else ", and without a largest force"
            severity = "note" if forced else "warning"
            yield found("servo-range", part, text, severity=severity)
        elif not bounded and not np.any(np.isfinite((actuator.effort, actuator.control)).all(1)):
            text = f"neither it nor joint {joint!r} has a largest force"
            yield found("actuator-effort", part, text if joint else "it has no largest force")
