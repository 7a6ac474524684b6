"""Checks of joint dynamics, couplings, tendons and postures."""

import math
from dataclasses import fields
from typing import Any

import numpy as np

from kinetree.errors import (
    ModelError,
    ModelWarning,
    SingularError,
    warn,
)
from kinetree.model.actuator import states_of
from kinetree.model.names import number_of
from kinetree.model.parts import JointDynamics, Loop
from kinetree.model.tendon import WRAPPED, Pulley, Wrap, spans

_LONGEST_LAW = 1000


def check_dynamics(d, joint, joint_name, strict):
    """Raise ModelError unless a joint's armature, damping and so on fit its variables."""
    if d is None:
        return
    what = f"dynamics of joint {joint_name!r}"
    if not isinstance(d, JointDynamics):
        raise ModelError(f"{what} must be JointDynamics, got {type(d).__name__}")
    sizes = {"rest": joint.nq, "active_predecessor": 6 * joint.nv, "active_successor": 6 * joint.nv}
    for field in fields(d):
        name, values = field.name, getattr(d, field.name)
        size = sizes.get(name, joint.nv)
        if len(values) not in (0, size):
            raise ModelError(f"{what}: {name} needs {size} entries, got {len(values)}")
        numbers = [x for x in values if isinstance(x, float)]
        if not np.all(np.isfinite(numbers)):
            raise ModelError(f"{what}: {name} must be finite, got {list(values)}")
        if name not in sizes and min(numbers, default=0.0) < 0:
            message = f"{what}: {name} must not be negative, got {min(numbers):.6g}"
            if strict:
                raise ModelError(message)
            warn(message, ModelWarning)
    if d.rest and all(isinstance(x, float) for x in d.rest):
        defect = joint.defect(np.array(d.rest))
        if defect:
            raise ModelError(f"{what}: rest position: {defect}")
    if d.active_predecessor and d.active_successor:
        raise ModelError(f"{what}: the drive is mounted on the predecessor or on the successor")
    if d.drive and all(isinstance(x, float) for x in d.drive):
        _check_drive(d, joint, what)


def _check_drive(d, joint, what):
    """Raise ModelError for a drive that does not act along the joint — RBDA (3.35)."""
    part, rng = Loop(what, 0, 0, joint, dynamics=d), np.random.default_rng(1)
    for attempt in range(2):  # the first may be singular by chance
        try:
            part.active_subspace(joint.random(rng))
            return
        except SingularError as error:
            if attempt:
                raise ModelError(f"{what}: {error}") from None


def check_couplings(model):
    """Raise ModelError if a joint has two couplings or follows itself."""
    leaders = {}
    for c in model.couplings:
        what = f"coupling {c.name!r}"
        for i in (c.joint, *c.leaders):
            _check_one_variable(model, i, what, "be coupled")
        _check_law(c, what)
        if c.joint in leaders:
            raise ModelError(
                f"joint {model.joint_names[c.joint - 1]!r} follows two couplings, the second is "
                f"{c.name!r}; a joint can follow one other"
            )
        leaders[c.joint] = c.leaders
    _check_circles(model, leaders)


def _check_law(c, what):
    """Raise ModelError for a coupling polynomial with wrong or too many coefficients."""
    for entries, kind in ((c.leaders, "joints that lead"), (c.coefficients, "coefficients")):
        if len(entries) > _LONGEST_LAW:
            raise ModelError(
                f"{what} has {len(entries)} {kind}; at most {_LONGEST_LAW} are supported, since "
                f"their second derivatives are computed pair by pair"
            )
    check_numbers(c.weights, f"weights of {what}")
    check_numbers(c.coefficients, f"coefficients of {what}")
    if not c.coefficients:
        raise ModelError(f"{what} needs at least one coefficient, the position to hold")
    if not c.leaders and len(c.coefficients) > 1:
        raise ModelError(
            f"{what} has {len(c.coefficients)} coefficients and no joint that leads; a joint "
            f"that is held has one"
        )


def _check_circles(model, leaders):
    """Raise ModelError if joints follow each other in a circle."""
    cleared: set[int] = set()

    def visit(i, path):
        if i in path:
            circle = [*path[path.index(i) :], i]
            names = " -> ".join(repr(model.joint_names[k - 1]) for k in circle)
            raise ModelError(f"couplings lead in a circle: {names}; remove one of them")
        if i not in cleared:
            for j in leaders.get(i, ()):
                visit(j, (*path, i))
            cleared.add(i)

    for start in leaders:
        visit(start, ())


def check_tendon(model, tendon, strict):
    """Raise ModelError for a tendon with invalid joints, path or coefficients."""
    what = f"tendon {tendon.name!r}"
    for i in tendon.joints:
        _check_one_variable(model, i, what, "have a tendon")
    runs = tendon.joints or tendon.path
    if len(set(tendon.joints)) != len(tendon.joints) or not runs:
        raise ModelError(f"{what} must run over one joint or more, each once, got {tendon.joints}")
    _check_path(model, tendon, what)
    check_numbers(tendon.coefficients, f"coefficients of {what}")
    if len(tendon.coefficients) != len(tendon.joints):
        raise ModelError(
            f"{what} runs over {len(tendon.joints)} joints; coefficients needs an entry for each, "
            f"got {len(tendon.coefficients)}"
        )
    check_numbers((tendon.offset,), f"offset of {what}")
    for name, bounds in (("limits", (tendon.lower, tendon.upper)), ("rest", tendon.rest)):
        check_numbers(bounds, f"{name} of {what}", finite=name == "rest")
        if len(bounds) != 2 or not bounds[0] <= bounds[1]:
            raise ModelError(
                f"{name} of {what} must be the smallest and the largest length, got {bounds}"
            )
    for name in ("stiffness", "damping", "friction"):
        x = getattr(tendon, name)
        if isinstance(x, (int, float)) and not math.isfinite(x):
            raise ModelError(f"{name} of {what} must be finite, got {x}")
        if isinstance(x, (int, float)) and x < 0:
            message = f"{name} of {what} must not be negative, got {x:.6g}"
            if strict:
                raise ModelError(message)
            warn(message, ModelWarning)


def _check_path(model, tendon, what):
    """Raise ModelError unless a tendon's path runs between known frames around known shapes."""
    known = (*model.frame_names, *model.body_names)
    for name in tendon.frames:
        number_of(name, known, f"frame in the path of {what}", f"model {model.name!r}")
    before: Any = Pulley(1.0)
    for x in (*tendon.path, Pulley(1.0)) if tendon.path else ():
        if isinstance(x, Pulley):
            check_numbers((x.divisor,), f"divisor of a pulley of {what}")
            if x.divisor <= 0:
                raise ModelError(f"divisor of a pulley of {what} must be positive, got {x.divisor}")
        elif isinstance(x, Wrap):
            _check_wrap(x, what)
        if not (isinstance(before, str) or isinstance(x, str)):
            raise ModelError(
                f"path of {what} must begin and end with a frame, have one on both sides of each "
                f"Wrap, and at least one between two Pulleys, got {tendon.path}"
            )
        before = x
    if tendon.path and not spans(tendon):
        raise ModelError(f"path of {what} needs two frames that it runs between")


def _check_wrap(wrap, what):
    """Raise ModelError for an invalid shape or radius of a tendon's wrap."""
    if wrap.shape not in WRAPPED:
        raise ModelError(
            f"{what} winds around a {wrap.shape!r}; it can wind around a "
            f"{' or a '.join(map(repr, WRAPPED))}"
        )
    check_numbers((wrap.radius,), f"radius of a Wrap of {what}")
    if wrap.radius <= 0:
        raise ModelError(f"radius of a Wrap of {what} must be positive, got {wrap.radius}")


def _check_one_variable(model, i, what, purpose):
    """Raise ModelError unless a joint has a single variable."""
    check_joint_number(model, i, what)
    joint = model.joint[i]
    if not (joint.nq == joint.nv == 1 and joint.rates_are_velocities):
        raise ModelError(
            f"{what} refers to joint {model.joint_names[i - 1]!r}, a {type(joint).__name__} with "
            f"{joint.nv} degrees of freedom; only joints with one variable can {purpose}"
        )


def check_posture(model, posture):
    """Raise ModelError unless a posture has the sizes of a state of the model."""
    what, joints = f"posture {posture.name!r}", list(enumerate(model.joint[1:], start=1))
    following = {c.joint for c in model.couplings}
    leading = [(i, joint) for i, joint in joints if i not in following]
    if len(posture.q) != sum(joint.nq for _, joint in joints):
        joints = leading
    sizes = sum(joint.nq for _, joint in joints), sum(joint.nv for _, joint in joints)
    for name, size in zip(("q", "qd"), sizes, strict=True):
        values = getattr(posture, name)
        if values.dtype != float or not np.isfinite(values).all():
            check_numbers(values.tolist(), f"{name} of {what}")
        if len(values) != size and not (name == "qd" and len(values) == 0):
            raise ModelError(f"{name} of {what} needs {size} entries, got {len(values)}")
    stateful = states_of(model.actuators)
    for name, those in (("controls", model.actuators), ("activation", stateful)):
        values = getattr(posture, name)
        check_numbers(values.tolist(), f"{name} of {what}")
        if values.shape not in ((0,), (len(those),)):
            kind = "actuator" if name == "controls" else "state of the actuators"
            raise ModelError(
                f"{name} of {what} needs {len(those)} entries, one for each {kind} of the model, "
                f"got {len(values)}"
            )
    start = 0
    for i, joint in joints:
        if joint.unit_parts:
            defect = joint.defect(posture.q[start : start + joint.nq])
            if defect:
                raise ModelError(f"{what}, joint {model.joint_names[i - 1]!r}: {defect}")
        start += joint.nq


def check_joint_number(model, i, what, kind="joint", last=None):
    """Raise ModelError unless a number is that of a joint, or of another part."""
    last = len(model.bodies) if last is None else last
    if not isinstance(i, (int, np.integer)) or isinstance(i, bool):
        raise ModelError(f"{what} must refer to a {kind} by its number, got {i!r}")
    if not 1 <= i <= last:
        raise ModelError(f"{what} refers to {kind} {i}; the model has {kind}s 1 to {last}")


def check_numbers(values, what, finite=True):
    """Raise an error unless values are a tuple of numbers."""
    if not isinstance(values, (tuple, list)):
        raise ModelError(f"{what} must be a tuple of numbers, got {values!r}")
    for x in values:
        if not isinstance(x, (int, float, np.integer, np.floating)):
            raise ModelError(f"{what} must hold numbers, got {x!r}")
        if math.isnan(x) or (finite and math.isinf(x)):
            raise ModelError(f"{what} must be {'finite' if finite else 'numbers'}, got {x}")
