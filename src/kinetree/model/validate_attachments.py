"""Checks of joint dynamics, couplings, geometry, actuators, postures, tendons and loops."""

import math
from contextlib import suppress
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from kinetree.codegen.weak_table import WeakTable
from kinetree.errors import (
    JointError,
    ModelError,
    ModelWarning,
    SingularError,
    UnknownNameError,
    warn,
)
from kinetree.joints import AbstractJoint
from kinetree.model.actuator import ACTIVATIONS, UNBOUNDED, states_of
from kinetree.model.geometry import Mesh, Plane, Shape, Surface
from kinetree.model.muscle import Muscle
from kinetree.model.names import is_known, names_that_touch, number_of
from kinetree.model.parts import JointDynamics, Loop
from kinetree.model.tendon import WRAPPED, Pulley, Wrap, spans
from kinetree.spatial import Plucker, log
from kinetree.spelling import did_you_mean

_LONGEST_LAW = 1000
_SOUND = WeakTable()
"""Shapes and surfaces, which never change, that were found right in another model, by ``id``."""


def check_dynamics(d, joint, joint_name, strict):
    """Raise ModelError unless armature, damping and so on, if any, fit the joint of that name."""
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
    """Raise ModelError for a drive that moves nothing — RBDA (3.35): ``T_aᵀ S = 1``."""
    part, rng = Loop(what, 0, 0, joint, dynamics=d), np.random.default_rng(1)
    for attempt in range(2):  # the first may be singular by chance
        try:
            part.active_subspace(joint.random(rng))
            return
        except SingularError as error:
            if attempt:
                raise ModelError(f"{what}: {error}") from None


def check_couplings(model):
    """Raise ModelError unless every joint follows by at most one coupling, and none itself."""
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
    """Raise an error about the numbers of a coupling's polynomial, or if it is too long."""
    for entries, kind in ((c.leaders, "joints that lead"), (c.coefficients, "coefficients")):
        if len(entries) > _LONGEST_LAW:
            raise ModelError(
                f"{what} has {len(entries)} {kind}; at most {_LONGEST_LAW} are supported, since "
                f"their second derivatives are computed pair by pair"
            )
    _check_numbers(c.weights, f"weights of {what}")
    _check_numbers(c.coefficients, f"coefficients of {what}")
    if not c.coefficients:
        raise ModelError(f"{what} needs at least one coefficient, the position to hold")
    if not c.leaders and len(c.coefficients) > 1:
        raise ModelError(
            f"{what} has {len(c.coefficients)} coefficients and no joint that leads; a joint "
            f"that is held has one"
        )


def _check_circles(model, leaders):
    """Raise ModelError when a joint follows itself by way of others."""
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


def check_actuator(model, actuator):
    """Raise ModelError unless the actuator drives one thing, with a gear and a law that fit."""
    what = f"actuator {actuator.name!r}"
    driven, size = _driven_end(model, actuator, what)
    _check_numbers(actuator.gear, f"gear of {what}")
    if len(actuator.gear) != size:
        raise ModelError(
            f"{what} drives {driven}; gear needs {size} {'entry' if size == 1 else 'entries'}, "
            f"got {len(actuator.gear)}"
        )
    for bounds in ("control", "effort", "activation_range", "integral_range"):
        values = getattr(actuator, bounds)
        _check_numbers(values, f"{bounds} of {what}", finite=False)
        if len(values) != 2 or not values[0] <= values[1]:
            raise ModelError(
                f"{bounds} of {what} must be the smallest and the largest value, got {values}"
            )
    for law in ("gain", "bias"):
        _check_numbers(getattr(actuator, law), f"{law} of {what}")
        if len(getattr(actuator, law)) != 3:
            raise ModelError(
                f"{law} of {what} needs 3 numbers, for 1, length and velocity, got "
                f"{len(getattr(actuator, law))}"
            )
    if actuator.muscle is not None and not isinstance(actuator.muscle, Muscle):
        raise ModelError(f"muscle of {what} must be a Muscle, got {type(actuator.muscle).__name__}")
    _check_activation(actuator, what)
    _check_integral(actuator, what)


def _check_integral(actuator, what):
    """Raise an error about an actuator's integral action."""
    for name in ("integral", "integral_zero"):
        value = getattr(actuator, name)
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ModelError(f"{name} of {what} must be a number, got {value!r}")
    if actuator.integral and (actuator.muscle is not None or actuator.adhesion):
        raise ModelError(f"{what} has integral action, which muscles and adhesion have not")
    other = actuator.integral_zero or tuple(actuator.integral_range) != UNBOUNDED
    if other and not actuator.integral:
        raise ModelError(f"{what} has integral_zero or integral_range and no integral action")


def _check_activation(actuator, what):
    """Raise an error about an actuator's activation and its time constants."""
    kind, time_constant = actuator.activation, actuator.time_constant
    if kind not in ACTIVATIONS:
        raise ModelError(
            f"activation of {what} must be {', '.join(map(repr, filter(None, ACTIVATIONS)))} or '' "
            f"for none, got {kind!r}"
        )
    if not (isinstance(time_constant, (int, float)) and 0 <= time_constant < math.inf):
        raise ModelError(
            f"time_constant of {what} must be a number of seconds that is not negative, got "
            f"{time_constant!r}"
        )
    fall = actuator.deactivation_time
    if not (isinstance(fall, (int, float)) and 0 <= fall < math.inf):
        raise ModelError(
            f"deactivation_time of {what} must be a number of seconds that is not negative, got "
            f"{fall!r}"
        )
    if bool(fall) != ACTIVATIONS[kind].falls:
        raise ModelError(
            f"{what} is a {kind} and needs a deactivation_time above zero [s]"
            if not fall
            else f"deactivation_time of {what} is for activation='muscle', which it has not"
        )
    needed = ACTIVATIONS[kind].has_time_constant
    if needed and not time_constant:
        raise ModelError(f"{what} is a {kind} and needs a time_constant above zero [s]")
    if time_constant and not needed:
        those = [repr(name) for name, a in ACTIVATIONS.items() if a.has_time_constant]
        raise ModelError(
            f"time_constant of {what} is for activation={' or '.join(those)}, which it has not"
        )
    if not kind and tuple(actuator.activation_range) != UNBOUNDED:
        raise ModelError(f"{what} has an activation_range and no activation; use control")


def _driven_end(model, actuator, what):
    """End of an actuator, in words, and how many gears that takes."""
    ends = {"joint": actuator.joint, "loop joint": actuator.loop}
    ends |= {"tendon": actuator.tendon, "frame": actuator.frame}
    given = [f"{kind} {end!r}" for kind, end in ends.items() if end]
    if len(given) > 1:
        raise ModelError(f"{what} drives {' and '.join(given)}; it can drive one of them")
    if not given and not actuator.joint and actuator.joint is not False:
        raise ModelError(f"{what} drives nothing: give a joint, a tendon or a frame")
    if actuator.reference and not actuator.frame:
        raise ModelError(f"{what} has a reference frame, which only one with a frame can have")
    for role in ("frame", "reference"):
        name = getattr(actuator, role)
        if name:
            known = (*model.frame_names, *model.body_names)
            number_of(name, known, f"{role} of {what}", f"model {model.name!r}")
    if actuator.adhesion:
        if actuator.frame not in model.body_names[1:] or actuator.reference or actuator.crank:
            raise ModelError(
                f"{what} adheres: its frame must be the name of a body that moves, without a "
                f"reference, got {actuator.frame!r}"
            )
        return f"body {actuator.frame!r} by adhesion", 1
    if actuator.crank:
        if not (actuator.reference and 0 < actuator.crank < math.inf):
            raise ModelError(
                f"crank of {what} is the length [m] of a rod from its frame to a slider along z of "
                f"its reference, above zero; give both frames, got {actuator.crank!r}"
            )
        return f"a slider along {actuator.reference!r} by a rod", 1
    if actuator.frame:
        return f"frame {actuator.frame!r} by a wrench (moment, force)", 6
    if actuator.tendon:
        known = [t.name for t in model.tendons]
        number_of(actuator.tendon, known, f"tendon of {what}", f"model {model.name!r}")
        return f"tendon {actuator.tendon!r}", 1
    if actuator.loop:
        _check_joint(model, actuator.loop, what, "loop joint", len(model.loops))
        loop = model.loops[actuator.loop - 1]
        nv = loop.joint.nv
        _check_effort(actuator, loop, what)
    else:
        _check_joint(model, actuator.joint, what)
        nv = model.joint[actuator.joint].nv
    return f"joint {model.driven_joint(actuator)!r} with {nv} degrees of freedom", nv


def _check_effort(actuator, loop, what):
    """Warn of a loop joint's limit of effort, which does not act: the actuator's own does."""
    limits = () if loop.limits is None else loop.limits.effort
    limited = any(isinstance(x, float) and 0 < x < np.inf for x in limits)
    if limited and tuple(actuator.effort) == UNBOUNDED:
        warn(
            f"{what} drives loop joint {loop.name!r}, whose limit of effort does not act: give the "
            f"actuator an effort, (smallest, largest)",
            ModelWarning,
        )


def check_tendon(model, tendon, strict):
    """Raise ModelError unless the tendon runs over joints of one variable, or through frames."""
    what = f"tendon {tendon.name!r}"
    for i in tendon.joints:
        _check_one_variable(model, i, what, "have a tendon")
    runs = tendon.joints or tendon.path
    if len(set(tendon.joints)) != len(tendon.joints) or not runs:
        raise ModelError(f"{what} must run over one joint or more, each once, got {tendon.joints}")
    _check_path(model, tendon, what)
    _check_numbers(tendon.coefficients, f"coefficients of {what}")
    if len(tendon.coefficients) != len(tendon.joints):
        raise ModelError(
            f"{what} runs over {len(tendon.joints)} joints; coefficients needs an entry for each, "
            f"got {len(tendon.coefficients)}"
        )
    _check_numbers((tendon.offset,), f"offset of {what}")
    for name, bounds in (("limits", (tendon.lower, tendon.upper)), ("rest", tendon.rest)):
        _check_numbers(bounds, f"{name} of {what}", finite=name == "rest")
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
    """Raise ModelError unless a path leads from frame to frame, around shapes that are there."""
    known = (*model.frame_names, *model.body_names)
    for name in tendon.frames:
        number_of(name, known, f"frame in the path of {what}", f"model {model.name!r}")
    before: Any = Pulley(1.0)
    for x in (*tendon.path, Pulley(1.0)) if tendon.path else ():
        if isinstance(x, Pulley):
            _check_numbers((x.divisor,), f"divisor of a pulley of {what}")
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
    """Raise an error about the shape or radius that a tendon winds around."""
    if wrap.shape not in WRAPPED:
        raise ModelError(
            f"{what} winds around a {wrap.shape!r}; it can wind around a "
            f"{' or a '.join(map(repr, WRAPPED))}"
        )
    _check_numbers((wrap.radius,), f"radius of a Wrap of {what}")
    if wrap.radius <= 0:
        raise ModelError(f"radius of a Wrap of {what} must be positive, got {wrap.radius}")


def _check_one_variable(model, i, what, purpose):
    """Raise an error unless a joint has a single variable."""
    _check_joint(model, i, what)
    joint = model.joint[i]
    if not (joint.nq == joint.nv == 1 and joint.rates_are_velocities):
        raise ModelError(
            f"{what} refers to joint {model.joint_names[i - 1]!r}, a {type(joint).__name__} with "
            f"{joint.nv} degrees of freedom; only joints with one variable can {purpose}"
        )


def check_posture(model, posture):
    """Raise ModelError unless the posture is a state of the model, or of all its joints."""
    what, joints = f"posture {posture.name!r}", list(enumerate(model.joint[1:], start=1))
    following = {c.joint for c in model.couplings}
    leading = [(i, joint) for i, joint in joints if i not in following]
    if len(posture.q) != sum(joint.nq for _, joint in joints):
        joints = leading
    sizes = sum(joint.nq for _, joint in joints), sum(joint.nv for _, joint in joints)
    for name, size in zip(("q", "qd"), sizes, strict=True):
        values = getattr(posture, name)
        if values.dtype != float or not np.isfinite(values).all():
            _check_numbers(values.tolist(), f"{name} of {what}")
        if len(values) != size and not (name == "qd" and len(values) == 0):
            raise ModelError(f"{name} of {what} needs {size} entries, got {len(values)}")
    stateful = states_of(model.actuators)
    for name, those in (("controls", model.actuators), ("activation", stateful)):
        values = getattr(posture, name)
        _check_numbers(values.tolist(), f"{name} of {what}")
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


def check_shape(geometry, what):
    """Raise ModelError unless the shape has a size and the colour is one."""
    shape = geometry.shape
    if not isinstance(shape, Shape):
        raise ModelError(
            f"shape of {what} must be one of kinetree.geometry, such as Sphere(0.1), got "
            f"{type(shape).__name__}"
        )
    for name in () if _SOUND.get(id(shape)) is shape else shape.counts():
        value = getattr(shape, name)
        if name == "path":
            if not isinstance(value, str) or not value:
                raise ModelError(f"path of {what} must be the name of a file, got {shape!r}")
            continue
        if name == "convex":
            if not isinstance(value, bool):
                raise ModelError(f"convex of {what} must be True or False, got {value!r}")
            continue
        if name == "heights":
            _check_heights(value, f"heights of {what}")
            continue
        values = np.atleast_1d(value).tolist()
        _check_numbers(values, f"{name} of {what}")
        size = shape.counts()[name]
        if len(values) != size:
            raise ModelError(f"{name} of {what} needs {size} numbers, got {len(values)}")
        flat = isinstance(shape, (Mesh, Plane)) or name == "length"  # mirrored, infinite, a ball
        if not flat and min(values) <= 0:
            raise ModelError(f"{name} of {what} must be positive, got {min(values):.6g}")
        if name == "length" and min(values) < 0:
            raise ModelError(f"{name} of {what} must not be negative, got {min(values):.6g}")
    _remember(shape)
    for key in ("name", "link"):
        if not isinstance(getattr(geometry, key), str):
            raise ModelError(f"{key} of {what} must be a string, got {getattr(geometry, key)!r}")
    check_surface(geometry.surface, what)
    if geometry.color is not None:
        _check_numbers(geometry.color, f"color of {what}")
        if len(geometry.color) != 4 or not all(0 <= x <= 1 for x in geometry.color):
            raise ModelError(
                f"color of {what} must be red, green, blue and opacity from 0 to 1, got "
                f"{geometry.color}"
            )


def check_surface(surface, what):
    """Raise ModelError unless the surface, if any, has coefficients that mean something."""
    if surface is None or _SOUND.get(id(surface)) is surface:
        return
    what = f"surface of {what}"
    if not isinstance(surface, Surface):
        raise ModelError(f"{what} must be a geometry.Surface, got {type(surface).__name__}")
    for name, x in vars(surface).items():
        if name in ("condim", "priority", "contype", "conaffinity"):
            if not isinstance(x, (int, np.integer)) or isinstance(x, bool):
                raise ModelError(f"{name} of the {what} must be an integer, got {x!r}")
        elif name == "velocity":
            _check_numbers(x, f"velocity of the {what}")
            if len(x) != 3:
                raise ModelError(f"velocity of the {what} must be three numbers [m/s], got {x!r}")
        elif x is not None or name in ("margin", "gap"):
            _check_numbers((x,), f"{name} of the {what}")
            if name not in ("margin", "gap") and x is not None and x < 0:
                raise ModelError(f"{name} of the {what} must not be negative, got {x:.6g}")
    if surface.restitution is not None and surface.restitution > 1:
        raise ModelError(
            f"restitution of the {what} must be from 0 to 1, got {surface.restitution:.6g}"
        )
    if surface.condim not in (1, 3, 4, 6):
        raise ModelError(f"condim of the {what} must be 1, 3, 4 or 6, got {surface.condim}")
    _remember(surface)


def _remember(part):
    """Remember that a part was found to be sound."""
    with suppress(TypeError):  # of lists and arrays, which may change
        hash(part)
        _SOUND[id(part)] = part


def check_contact_pairs(model):
    """Raise ModelError unless pairs name shapes, links, frames or bodies of the model."""
    if not model.contact_pairs:
        return
    names = names_that_touch(model.base_name, model.bodies, model.frames, model.geometry)
    for pair in model.contact_pairs:
        what = f"contact pair {pair.first!r}, {pair.second!r}"
        for name in (pair.first, pair.second):
            if not isinstance(name, str) or not is_known(name, names):
                hint = did_you_mean(str(name), sorted(names))
                raise UnknownNameError(
                    f"{what}: model {model.name!r} has no shape, link, frame or body {name!r}; "
                    f"{hint}"
                )
        check_surface(pair.surface, what)


def _check_heights(heights, what):
    """Raise an error unless heights are rows of numbers of one length."""
    rows = heights if isinstance(heights, (tuple, list)) else ()
    if len(rows) < 2 or any(not isinstance(r, (tuple, list)) or len(r) < 2 for r in rows):
        raise ModelError(f"{what} must be at least two rows of at least two numbers")
    if len({len(row) for row in rows}) > 1:
        raise ModelError(f"{what} must be rows of the same length, got {[*map(len, rows)]}")
    for row in rows:
        _check_numbers(row, what)


def _check_joint(model, i, what, kind="joint", last=None):
    """Raise an error unless a number is that of a joint, or of another part."""
    last = len(model.bodies) if last is None else last
    if not isinstance(i, (int, np.integer)) or isinstance(i, bool):
        raise ModelError(f"{what} must refer to a {kind} by its number, got {i!r}")
    if not 1 <= i <= last:
        raise ModelError(f"{what} refers to {kind} {i}; the model has {kind}s 1 to {last}")


def _check_numbers(values, what, finite=True):
    """Raise an error unless values are a tuple of numbers."""
    if not isinstance(values, (tuple, list)):
        raise ModelError(f"{what} must be a tuple of numbers, got {values!r}")
    for x in values:
        if not isinstance(x, (int, float, np.integer, np.floating)):
            raise ModelError(f"{what} must hold numbers, got {x!r}")
        if math.isnan(x) or (finite and math.isinf(x)):
            raise ModelError(f"{what} must be {'finite' if finite else 'numbers'}, got {x}")


# --- joints that close loops ---------------------------------------------------------------------

_SAME_PLACE = 1e-9
"""Frames closer than this [m or rad] are one."""


def check_loops(model):
    """Raise ModelError for a loop joint that connects a body to itself, or repeats a tree joint.

    Two joints between the same two bodies are fine, as hinges of a door are. The same joint twice,
    in the same place, is a mistake: usually the joint that carries the body, listed once more.
    """
    tree = [
        _Joint(f"joint {b.joint_name!r} of the tree", b.parent, i, b.joint, b.placement)
        for i, b in enumerate(model.bodies, start=1)
    ]
    for loop in model.loops:
        what, p, s = f"loop joint {loop.name!r}", loop.predecessor, loop.successor
        if p == s:
            raise ModelError(f"{what} connects body {model.body_names[p]!r} to itself")
        if loop.dynamics is not None and any(x != 0 for x in loop.dynamics.armature):
            raise ModelError(
                f"{what} has armature, which would be inertia outside the inertia matrix; make it "
                f"a joint of the tree (MechanismGraph.to_model(tree_joints=...)) or add the rotor "
                f"as a body"
            )
        limit = loop.misalignment
        if limit is not None and not (_is_number(limit) and 0 <= limit < 1):
            raise ModelError(
                f"{what}: misalignment is an angle from 0 to less than 1 rad, or None for the "
                f"default, got {limit!r}"
            )
        placements = (loop.predecessor_placement, loop.successor_placement)
        this = _Joint(what, p, s, loop.joint, *placements)
        for other in tree:
            if {p, s} == {other.p, other.s} and _repeats(this, other):
                raise ModelError(
                    f"{what} duplicates {other.what}: both allow the same motion of "
                    f"{model.body_names[p]!r} and {model.body_names[s]!r} in the same place; "
                    f"remove one of them"
                )


def _is_number(x):
    """Whether a value is a real number, and not a bool."""
    return isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)


class _Joint(NamedTuple):
    """Any joint between two bodies."""

    what: str
    p: int
    s: int
    joint: AbstractJoint
    X_P: Plucker
    X_S: Plucker = Plucker.identity()


def _repeats(one, other):
    """Whether ``one`` sits where ``other`` does and lets it go wherever it can, and no further."""
    ends = (other.X_P, other.X_S) if one.p == other.p else (other.X_S, other.X_P)
    exact = any(a.dtype == object for X in (one.X_P, one.X_S, *ends) for a in (X.E, X.r))
    if exact or one.joint.nv != other.joint.nv:
        return False
    if any(_size(X.r - Y.r) > _SAME_PLACE for X, Y in zip((one.X_P, one.X_S), ends, strict=True)):
        return False
    rng = np.random.default_rng(0)
    positions = [other.joint.neutral(), *(other.joint.random(rng) for _ in range(2))]
    try:
        return all(_gap(one, other, q, 0.37 * t) < _SAME_PLACE for t, q in enumerate(positions))
    except JointError:  # a position that ``one`` is nowhere near
        return False


def _gap(one, other, q, t):
    """Distance of ``one`` from where it can be when ``other`` is at ``q`` [m or rad], at time t."""
    X = other.X_S.inverse() @ other.joint.at(t).transform(q) @ other.X_P
    X_J = one.X_S @ (X if one.p == other.p else X.inverse()) @ one.X_P.inverse()
    joint = one.joint.at(t)
    return _size(log(X_J @ joint.transform(joint.coordinates(X_J)).inverse()).to_array())


def _size(x):
    """Largest absolute value of some numbers."""
    return float(np.max(np.abs(np.asarray(x, dtype=float))))
