"""Choice between steps of contact: unrolled for one small scene, or that of the engine."""

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from kinetree.codegen import tiers
from kinetree.contact.engine.stepper import EngineStepper
from kinetree.contact.finding.candidates import positions
from kinetree.contact.scheme.constraints import JointRows, StepConstraints, is_short
from kinetree.contact.settings import CLOSED, DOUBLE, SINGLE
from kinetree.contact.stepping.drives import limited_drives
from kinetree.contact.stepping.slots import SlotStep
from kinetree.contact.stepping.step import ContactStep
from kinetree.contact.stepping.stepper import ContactStepper
from kinetree.errors import ModelError, SimulationWarning, warn
from kinetree.integration.events import UserEvents
from kinetree.integration.field import is_traceable
from kinetree.integration.refusals import HELD_PAIRS, UNROLLED
from kinetree.integration.watcher import Watcher
from kinetree.model.limits import position_bounds, position_index
from kinetree.model.tree import supports

_FEW = 8  # samples
_NAMED = 3  # pairs that a message names


def time_stepper(settings, effects, method, field, q, events, *, compiled):
    """Stepper and hooks of a simulation with ``TimeStepping`` contact."""
    model, batch = effects.model, q.shape[:-1]
    key = "steps", compiled, settings, tiers.setting()
    if key not in effects.known:
        effects.known[key] = _possible(settings, effects, field, compiled)
    constraints, only = effects.known[key]
    if only is None and not batch and tiers.setting() == "auto":
        only = "general"  # the steps of worlds; unrolled code pays off where samples run together
    if settings.scene.choice.tier_for(prod(batch), only=only) == "specialised":
        step = ContactStep(constraints, settings, model.spanning_tree, field.prescription)
        stepper: Any = ContactStepper(model, method, field, step, batch)
        found = _start_gaps(constraints, q)
    else:
        key = *key, batch, id(method), id(field)  # which the stepper that is known keeps
        if key not in effects.known:
            given = model, method, field, settings, constraints.joints, batch
            effects.known[key] = EngineStepper(*given, compiled=compiled)
        stepper = effects.known[key].ready()
        found = _deep_starts(stepper.engine, q, effects.known)
    if not compiled:
        _warn_of_python(model, field)
    stepper.inside = _starts_inside(found, q)
    if stepper.inside:
        warn(
            f"the simulation of {model.name!r} starts with {stepper.inside}, which rigid bodies "
            f"cannot be: they are pushed apart at no more than {settings.correction_speed:g} rad "
            f"or lengths of the mechanism per second (TimeStepping.correction_speed), and the "
            f"energy of that is not that of any force. Start where they touch or are apart, or "
            f"leave out pairs that are meant to overlap: Scene(..., ignore=...)",
            SimulationWarning,
        )
    groups = [UserEvents(events, model)] if events else []
    return stepper, (Watcher(model, groups, batch),) if groups else ()


def _possible(settings, effects, field, compiled) -> tuple[StepConstraints, str | None]:
    """Constraints of contact steps, and the only possible code tier, or None for a choice."""
    model, scene, prescription = effects.model, settings.scene, field.prescription
    joints = joint_rows(effects, prescription)
    if prescription is not None:
        require_movable(scene, prescription)
    constraints = StepConstraints(model, scene, joints)
    fixed = compiled and not (scene.is_large or scene.open_pairs)
    fixed = fixed and not (scene.moving_surfaces or scene.resisting_pairs)
    fixed = fixed and field.actuators is None and not joints.has_tendons
    fixed = fixed and not any(a.adhesion for a in model.actuators)
    fixed = fixed and not differs_unrolled(constraints, field)
    short = fixed and is_short(constraints, settings.compiled_rows)
    return constraints, "general" if not short else None if model.nv else "specialised"


def differs_unrolled(constraints, field) -> bool:
    """Whether unrolled steps may differ from the engine's beyond solver tolerance.

    What bounces does so at the surface in the engine, in the middle of unrolled steps. Servos of
    every kind are implicit in the engine, and bounded in the step; so are springs across branches,
    and the rates of rows of loops and couplings are those of a motion that goes on. Where a tier
    was chosen by the user it is the code that runs, but for what bounces.
    """
    if _bounces(constraints.scene, constraints.joints):
        return True
    model = constraints.model
    across = model.is_constrained or model.couplings or model.tendons
    driven = field.actuators is not None and any(a.is_servo or a.frame for a in model.actuators)
    return tiers.setting() == "auto" and bool(across or driven)


def step_of_rollout(settings, effects, prescription, dtype, *, on_device=False) -> ContactStep:
    """Traceable contact step for rollouts: unrolled, or with slots for large scenes.

    It is unrolled; on a device, scenes that are too large for that have slots for the contacts that
    are close.
    """
    model, scene = effects.model, settings.scene
    constraints = StepConstraints(model, scene, joint_rows(effects, prescription))
    if prescription is not None:
        require_movable(scene, prescription)
    if not on_device or (not scene.open_pairs and is_short(constraints, settings.compiled_rows)):
        _require_unrolled(model, scene, constraints, settings.compiled_rows)
        kind = ContactStep
    else:
        kind = SlotStep
    accuracy = SINGLE if dtype == "float32" else DOUBLE
    if settings.relaxation:
        settings = replace(settings, conserving=False)
    if accuracy.sweeps:  # energies in float32 are too coarse to be balanced
        tolerance = max(settings.tolerance, accuracy.tolerance)
        settings = replace(settings, tolerance=tolerance, conserving=False)
    bounds = len(limited_drives(model)) if kind is ContactStep else 0
    step = kind(constraints, settings, model.spanning_tree, prescription, accuracy, bounds)
    if isinstance(step, SlotStep):
        step.require()
    return step


def tier_of_rollout(settings, effects, field, samples, *, only=None) -> str:
    """Code tier of a rollout's steps: ``"specialised"`` (unrolled) or ``"general"``.

    Args:
        settings: ``TimeStepping``.
        effects: of the joints.
        field: what moves the mechanism.
        samples: how many steps of how many worlds.
        only: the tier if there is no other.
    """
    model, scene, prescription = effects.model, settings.scene, field.prescription
    joints = joint_rows(effects, prescription)
    if prescription is not None:
        require_movable(scene, prescription)
    constraints = StepConstraints(model, scene, joints)
    try:
        _require_unrolled(model, scene, constraints, settings.compiled_rows)
    except ModelError:
        if only == "specialised":
            raise
        only = "general"
    else:
        if only is None and differs_unrolled(constraints, field):  # as in ``time_stepper``
            only = "general"
    return scene.choice.tier_for(samples, only=only)


def _bounces(scene, joints):
    """Whether any contact or joint stop has restitution."""
    return joints.restitution > 0 or np.any(np.asarray(scene.restitution) > 0)


def _require_unrolled(model, scene, constraints, most):
    """Raise ModelError, with the reason, if a scene's step cannot be unrolled."""
    special = (
        ("moving surfaces", scene.moving_surfaces),
        ("friction that resists rolling", scene.resisting_pairs),
        ("bodies that adhere", any(a.adhesion for a in model.actuators)),
        (
            "rigid limits or exact friction of tendons or loop joints",
            constraints.joints.has_tendons,
        ),
    )
    reason = next((f"it has {name}" for name, has in special if has), "")
    if scene.open_pairs:
        names = [repr(scene.pair_names[k]) for k in scene.open_pairs[:3]]
        more = ", ..." if len(scene.open_pairs) > 3 else ""
        reason = (
            f"the distances of {', '.join(names)}{more} ({len(scene.open_pairs)} of "
            f"{len(scene.pairs)} pairs) have no closed form"
        )
    elif scene.is_large or not is_short(constraints, most):
        reason = f"it has more than {most} rows, or as much code (TimeStepping.compiled_rows)"
    if reason:
        raise UNROLLED.of(
            "a rollout whose steps are unrolled",
            f"the scene of {model.name!r}, which cannot be unrolled: {reason}",
        )


def _warn_of_python(model, field):
    """Warn of Python functions that every step must call outside of compiled code."""
    parts = [f"force {_call(f)!r}" for f in field.forces if not is_traceable(f)]
    if field.prescription is not None and not field.prescription.traceable:
        parts.append(
            f"motion of prescribed joints {', '.join(map(repr, field.prescription.names))}"
        )
    warn(
        f"steps of contact of {model.name!r} leave compiled code: {'; '.join(parts)} is Python "
        f"code that every step calls, which takes longer than the step. Put it under "
        f"@kinetree.kernel, and it is compiled into the step",
        SimulationWarning,
    )


def _call(force) -> str:
    """Name of a force function, for messages."""
    function = getattr(force, "function", force)
    return getattr(function, "__name__", type(function).__name__)


def _deep_starts(engine, q, known):
    """Samples that start with penetration: index, contact names and gaps of each.

    Args:
        engine: of the scene.
        q: positions at the start, (..., nq).
        known: what was found for the start of the last simulation, which may be the same.
    """
    key = q.shape, q.tobytes()
    at, found = known.get("deep", (None, []))
    if at == key:
        return found
    found = []
    for index in np.ndindex(q.shape[:-1]):
        if np.any(engine.found.gap[engine.find(q[index])] < -CLOSED):
            contacts = engine.contacts(q[index])
            found.append((index, (contacts.names, contacts.gap)))
    known["deep"] = key, found
    return found


def _starts_inside(found, q) -> str:
    """Description of initially penetrating pairs, deepest first; "" for none."""
    deepest = {}
    for index, (names, gaps) in found:
        for k in np.flatnonzero(np.asarray(gaps) < -CLOSED):
            pair = names[k].rpartition(":")[0]
            deepest[pair] = min(deepest.get(pair, (0.0, index)), (float(gaps[k]), index))
    if not deepest:
        return ""
    worst = sorted(deepest, key=lambda pair: deepest[pair])
    listed = [f"{pair!r} {-deepest[pair][0]:.3g} m" for pair in worst[:_NAMED]]
    more = f" and {len(worst) - _NAMED} other pairs" if len(worst) > _NAMED else ""
    sample = f" (sample {deepest[worst[0]][1]})" if q.ndim > 1 else ""
    return f"{', '.join(listed)}{more} inside each other{sample}"


def _start_gaps(constraints, q):
    """Contact names and gaps at the start of every sample, with its index."""
    scene, indices = constraints.scene, list(np.ndindex(q.shape[:-1]))
    known = scene.candidates
    if not known.size:
        return []
    if len(indices) > _FEW:
        gaps = scene.candidate_positions(constraints.model, q)[0]
        return [(index, (known.names, gaps[index])) for index in indices]
    # A few samples take less time as they are than a kernel for them takes to be made.
    each = [positions(constraints.model, q[index], scene.pairs)[0] for index in indices]
    return [(index, (known.names, gaps)) for index, gaps in zip(indices, each, strict=True)]


def joint_rows(effects, prescription=None) -> JointRows:
    """``JointRows`` of rigid limits and dry friction of all unprescribed variables."""
    model = effects.model
    free = np.ones(model.nv) if prescription is None else prescription.others(model)
    key = "rows", free.tobytes()
    if key not in effects.known:
        effects.known[key] = _joint_rows(effects, free)
    return effects.known[key]


def _joint_rows(effects, free):
    """New ``JointRows`` of rigid limits and dry friction of the ``free`` variables."""
    model = effects.model
    stops, restitution, friction, stiction = (), 0.0, (), JointRows().stiction
    if effects.limits is not None:
        lower, upper = position_bounds(model)
        at, restitution = position_index(model), effects.limits.restitution
        stops = tuple(
            (int(at[i]), i, sign, float(bound[i]))
            for i in range(model.nv)
            for sign, bound in ((1.0, lower), (-1.0, upper))
            if np.isfinite(bound[i]) and free[i]
        )
    if effects.friction is not None:
        law = effects.friction
        if law.stribeck_velocity > 0:  # otherwise it is lost at once
            stiction = law.static - 1.0, law.stribeck_velocity
        levels = enumerate(effects.friction.levels * free)
        friction = tuple((i, float(c)) for i, c in levels if c > 0)
    tendons = effects.tendons
    if tendons is None:
        return JointRows(stops, restitution, friction, stiction)
    restitution = tendons.restitution if tendons.stops else restitution
    return JointRows(stops, restitution, friction, stiction, tendons.stops, tendons.friction)


def require_movable(scene, prescription):
    """Raise an error for pairs of bodies that only prescribed joints could separate."""
    model = scene.model
    fixed = set(prescription.joints)
    fixed |= {c.joint for c in model.couplings if fixed.issuperset(c.leaders)}
    kappa = [set(joints) - fixed for joints in supports(model.parent)]
    stuck = [
        repr(name)
        for name, pair in zip(scene.pair_names, scene.pairs, strict=True)
        if not kappa[pair.first.body] ^ kappa[pair.second.body]
    ]
    if stuck:
        raise HELD_PAIRS.of(
            "contact",
            f"{', '.join(stuck)}: only prescribed joints "
            f"({', '.join(map(repr, prescription.names))}) could keep these shapes apart",
        )
