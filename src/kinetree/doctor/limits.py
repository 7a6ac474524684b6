"""Limits of joints that are missing, contradictory or leave no motion."""

import numpy as np

from kinetree.doctor.findings import found, named

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
