"""Time steps with contact: unrolled for one small scene, or by the engine, which serves all."""

from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from kinetree.codegen import tiers
from kinetree.contact import mobility
from kinetree.contact.engine.stepper import EngineStepper
from kinetree.contact.finding.candidates import positions
from kinetree.contact.history import Notes, Residuals, accumulated
from kinetree.contact.scheme.constraints import JointRows, StepConstraints, is_short
from kinetree.contact.settings import CLOSED, DOUBLE, SINGLE
from kinetree.contact.stepping.drives import limited_drives
from kinetree.contact.stepping.slots import SlotStep
from kinetree.contact.stepping.step import ContactStep
from kinetree.errors import ModelError, ShapeError, SimulationWarning, SingularError, warn
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import kernel
from kinetree.integration.events import UserEvents
from kinetree.integration.field import is_traceable
from kinetree.integration.integrator import Stepped
from kinetree.integration.prescription import looped
from kinetree.integration.step import Stepper, step_length
from kinetree.integration.watcher import Watcher
from kinetree.model.limits import position_bounds, position_index
from kinetree.model.tree import supports

_ONE = np.array(1.0)
_FEW = 8  # samples
_NAMED = 3  # pairs that a message names


def time_stepper(settings, effects, method, field, q, events, *, compiled):
    """Stepper and hooks for ``TimeStepping``."""
    model, scene = effects.model, settings.scene
    prescription = field.prescription
    free = np.ones(model.nv) if prescription is None else prescription.others(model)
    joints = joint_rows(model, effects, free)
    if prescription is not None:
        require_movable(scene, prescription)
    constraints = StepConstraints(model, scene, joints)
    batch, tree = q.shape[:-1], model.spanning_tree
    fixed = compiled and not (scene.is_large or scene.open_pairs)
    fixed = fixed and not (scene.moving_surfaces or scene.resisting_pairs)
    fixed = fixed and not (_bounces(scene, joints) or joints.has_tendons)
    # Servos of every kind are implicit in the engine, and bounded in the step.
    fixed = fixed and (field.actuators is None or prescription is not None)
    short = fixed and is_short(constraints, settings.compiled_rows)
    # The engine has the mean forces of drives over a step, the unrolled step those at its end.
    closer = prescription is not None or model.nv == 0  # nothing moves
    # The unrolled step flies by the integrator with gears, too; the engine by its own step.
    closer = closer or (settings.flight and bool(model.couplings))
    only = "general" if not short else "specialised" if closer else None
    if only is None and not batch and tiers.setting() == "auto":
        only = "general"  # the steps of worlds; unrolled code pays off where samples run together
    if scene.choice.made(prod(batch), only=only) == "specialised":
        step = ContactStep(constraints, settings, tree, prescription)
        stepper: Any = ContactStepper(model, method, field, step, batch)
        found = _start_gaps(constraints, q)
    else:
        given = model, method, field, settings, joints, batch
        stepper = EngineStepper(*given, compiled=compiled)
        found = [(index, _deep_contacts(stepper.engine, q[index])) for index in np.ndindex(batch)]
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
    return stepper, (Watcher(model, groups, q.shape[:-1]),) if groups else ()


def step_of_rollout(settings, effects, prescription, dtype, *, on_device=False) -> ContactStep:
    """The step of a rollout: of numbers of one precision, without decisions in Python.

    It is unrolled; on a device, scenes that are too large for that have slots for the contacts that
    are close.
    """
    model, scene = effects.model, settings.scene
    free = np.ones(model.nv) if prescription is None else prescription.others(model)
    constraints = StepConstraints(model, scene, joint_rows(model, effects, free))
    if prescription is not None:
        require_movable(scene, prescription)
    if scene.open_pairs or not on_device or is_short(constraints, settings.compiled_rows):
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


def tier_of_rollout(settings, effects, samples, *, only=None) -> str:
    """The tier of the steps of a rollout: ``"specialised"`` for the unrolled step, ``"general"``.

    Args:
        settings: ``TimeStepping``.
        effects: of the joints.
        samples: how many steps of how many worlds.
        only: the tier if there is no other.
    """
    model, scene = effects.model, settings.scene
    joints = joint_rows(model, effects, np.ones(model.nv))
    constraints = StepConstraints(model, scene, joints)
    try:
        _require_unrolled(model, scene, constraints, settings.compiled_rows)
    except ModelError:
        if only == "specialised":
            raise
        only = "general"
    else:
        if only is None and _bounces(scene, joints):  # as in ``time_stepper``
            only = "general"
    return scene.choice.made(samples, only=only)


def _bounces(scene, joints):
    """Whether anything bounces: at the surface in the engine, in the middle of unrolled steps."""
    return joints.restitution > 0 or np.any(np.asarray(scene.restitution) > 0)


def _require_unrolled(model, scene, constraints, most):
    """Raise ModelError, with the reason, where a step cannot be unrolled for a scene."""
    special = (
        ("moving surfaces", scene.moving_surfaces),
        ("friction that resists rolling", scene.resisting_pairs),
        ("rigid limits or exact friction of tendons", constraints.joints.has_tendons),
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
        raise ModelError(
            f"the scene of {model.name!r} cannot be unrolled into a rollout: {reason}. Leave out "
            f"pairs that need not touch: Scene(model, pairs='feet') or pairs='base', in a world "
            f"world.exclude(a, b), or use simple shapes such as spheres on planes. Without "
            f"derivatives and relaxation, kinetree.simulate and world.batch(n) take any scene"
        )


def _warn_of_python(model, field):
    """Say which functions are called in every step, since they cannot be part of it."""
    parts = [f"force {_called(f)!r}" for f in field.forces if not is_traceable(f)]
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


def _called(force) -> str:
    function = getattr(force, "function", force)
    return getattr(function, "__name__", type(function).__name__)


def _deep_contacts(engine, q):
    """Names and gaps of contacts at a configuration; none where nothing overlaps."""
    gaps = engine.found.gap[engine.find(q)]
    if not np.any(gaps < -CLOSED):
        return (), ()
    found = engine.contacts(q)
    return found.names, found.gap


def _starts_inside(found, q) -> str:
    """The pairs of shapes that are inside each other, deepest first, in words; "" for none."""
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
    """Index of every sample, with names and gaps of its contacts."""
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


def joint_rows(model, effects, free) -> JointRows:
    """Rigid limits and exact friction of the variables that are free, as rows."""
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


@kernel
def _contact_steps(model, t, h, q, qd, inputs, force, count, *, step, method, field):
    """``count`` steps with the same inputs: state, work, forces of the last, residuals of all."""

    def body(state):
        t, q, qd, work, force, residuals, energy = state
        after = step(method, field, model, t, h, q, qd, inputs, force, energy)
        residuals = accumulated(residuals, after.residuals)
        return t + h, after.q, after.qd, work + after.work, after.force, residuals, after.energy

    none, energy = np.zeros(len(Residuals._fields)), step.energies(q, qd)
    return repeat(body, (t, q, qd, 0 * t, force, none, energy), count)[1:6]


class ContactStepper(Stepper):
    """Steps with contact.

    Args:
        model: the mechanism.
        method: the integrator for flight.
        field: what moves it.
        step: a ``ContactStep``.
        batch: shape of the batch.

    Attributes:
        notes: forces and residuals of the steps, see ``history``.
        inside: which bodies start inside each other, in words.
    """

    inside = ""

    def __init__(self, model, method, field, step, batch):
        super().__init__(model, method, field, compiled=True)
        self.contact_step, self.batch = step, batch
        self.constraints = "contact" if step.constraints.closes else None
        self.notes = Notes(step, batch)
        rigid = step.constraints.closes or step.constraints.joints.friction
        self.flight = looped(method) if step.settings.flight and not rigid else None

    def saved(self):
        """See ``Stepper``."""
        return {"force": np.array(self.notes.force)}

    def restore(self, memory):
        """See ``Stepper``."""
        if "force" in memory and memory["force"].shape == self.notes.force.shape:
            self.notes.force = np.array(memory["force"])

    def release(self):
        """See ``Stepper``."""
        if "_engine" in vars(self):
            self._engine.release()

    def stepped(self, t, h, q, qd, tau, *, full=False):
        """The end of a step of ``h`` seconds."""
        q, qd, work, *_ = self._taken(t, h, q, qd, tau, 1)
        return Stepped(q, qd, work)

    def steps(self, t, h, q, qd, tau, count):
        """``q, qd, work`` after several steps with the same ``tau``; compiled code only."""
        return self._taken(t, h, q, qd, tau, count)[:3]

    def walk(self, instants, q, qd, tau, dt):
        """States after each of several steps; compiled code takes as many as it can solve."""
        states = self._unrolled_walk(instants, q, qd, tau, dt)
        if states:
            q, qd = states[-1][:2]
        states += super().walk(instants[len(states) :], q, qd, tau, dt)
        self.notes.behind = len(states)
        return states

    def _unrolled_walk(self, instants, q, qd, tau, dt):
        """States after steps, up to the first one that unrolled code does not solve."""
        found, force, call = [], self.notes.force, self._kernel.call
        try:
            for t, end in pairwise(instants):
                h = np.array(step_length(t, end, dt))
                after = call(np.array(t), h, q, qd, tau, force, _ONE)
                found.append(after)
                q, qd, _, force, _ = after
        except (ShapeError, SingularError):  # after a step that was not fine, or now: with care
            pass
        if not found:
            return []
        residual, speed = (np.array([after[k] for after in found]) for k in (4, 1))
        fine = np.all(self._is_fine(residual, speed), axis=tuple(range(1, residual.ndim - 1)))
        good = found if fine.all() else found[: int(np.argmin(fine))]
        for after in good:
            self.notes.take(after[3], after[4])
        return [after[:3] for after in good]

    def drive_forces(self, arrays):
        """Joint forces of the controller, and of the drives of prescribed joints, (T, ..., nv).

        Those that go with the contact forces of the step that ended at each time.

        Args:
            arrays: what was stored, by name.
        """
        model, step, history = self.model, self.contact_step, self.notes.history()
        motions, found = step.prescription, np.empty(arrays["qd"].shape)
        for at in np.ndindex(found.shape[:-1]):
            t, tau = arrays["t"][at[0]], arrays["tau"][at]
            q, qd, qdd = motions.at(model, t, arrays["q"][at], arrays["qd"][at])
            push = _push(step.constraints.at(model, q, qd), history, at)
            applied = self.field.joint_force(model, t, q, qd, tau)
            qdd = mobility.free_acceleration(model, q, qd, applied + push, motions.names, qdd)
            total = mobility.drive_forces(model, q, qd, applied, qdd, push, motions.names)
            own = (total - applied) * (1 - motions.others(model))
            found[at] = self.field.driven(model, t, q, qd, tau) + own
        return found

    def _taken(self, t, h, q, qd, tau, count):
        alone = q.shape[:-1] != self.batch  # one sample of a batch, to locate an event
        force = np.zeros(self.notes.rows) if alone else self.notes.force
        numbers = (np.array(x, dtype=float) for x in (t, h))
        after = self._kernel.call(*numbers, q, qd, tau, force, np.array(count, dtype=float))
        if not self._all_fine(after[4]):
            wrong = ~self._is_fine(after[4], after[1])
            after = self._by_engine(t, h, q, qd, tau, count, after, wrong)
        if not alone:
            self.notes.take(after[3], after[4])
        return after

    def _all_fine(self, residuals):
        """Whether unrolled code has solved for the forces of all motions, whatever their speed."""
        error = residuals.item(0) if residuals.ndim == 1 else residuals[..., 0].max(initial=0.0)
        return error <= self.contact_step.settings.tolerance

    def _is_fine(self, residuals, qd):
        """For which motions unrolled code has solved for the forces, (...)."""
        speed = np.max(np.abs(qd), axis=-1, initial=0.0)
        return residuals[..., 0] <= self.contact_step.settings.tolerance * (1 + speed)

    def _by_engine(self, t, h, q, qd, tau, count, after, wrong):
        """The same with the motions that were not solved taken by the engine."""
        after = [np.array(x) for x in after]
        for index in map(tuple, np.argwhere(wrong)):
            start = q[index], qd[index], tau[index]
            end = self._engine.retaken(t, h, *start, count)
            state = *end[:3], self._forces_of(end[0]), end[3]
            for place, value in zip(after, state, strict=True):
                place[index] = value
        return after

    @cached_property
    def _engine(self):
        step = self.contact_step
        given = self.model, self.method, self.field, step.settings, step.constraints.joints, ()
        return EngineStepper(*given, compiled=True)

    def _forces_of(self, q):
        """Forces of all rows, from those of the engine: contacts by pair, the nearest point."""
        force, known = np.zeros(self.notes.rows), self.contact_step.constraints.scene.candidates
        machine = self._engine.machine
        if machine.motions.bare[0]:
            return force
        near, forces = machine.forces(0)[:2]
        points = positions(self.model, q, self.contact_step.constraints.scene.pairs)[1]
        pairs = np.array([name.rpartition(":")[0] for name in known.names])
        for name, point, f in zip(near.names, near.point, forces, strict=True):
            same = pairs == name.rpartition(":")[0]
            far = np.linalg.norm(np.asarray(points) - point, axis=1)
            k = 3 * int(np.argmin(np.where(same, far, np.inf)))
            force[k : k + 3] += f
        others = force[3 * known.size :]
        others[:] = machine.joint_forces[
            0, : len(others)
        ]  # couplings, the last, have rows in the engine alone
        return force

    @cached_property
    def _kernel(self):
        kernel = _contact_steps.compiled(
            self.model, 0.0, 1.0, *self._zeros(), np.zeros(self.notes.rows), 1.0,
            step=self.contact_step, method=self.flight, field=self.field,
        )  # fmt: skip
        asked = self.contact_step.constraints.scene.choice.samples  # of the engine, too
        kernel.samples = max(getattr(kernel, "samples", 0), asked)
        return kernel


def require_movable(scene, prescription):
    """Raise for pairs of bodies that only prescribed joints could keep apart."""
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
        raise ModelError(
            f"{', '.join(stuck)}: only prescribed joints "
            f"({', '.join(map(repr, prescription.names))}) could keep these shapes apart, and no "
            f"force changes their motion; leave the pairs out of the scene, with ignore="
        )


def _push(rows, history, at):
    """Joint forces, (nv,), of all rows but loops, at one stored time."""
    known = dict(zip(history.names, history.force[at], strict=True))
    contacts = [known.get(name, np.zeros(3)) for name in rows.names]
    forces, count = np.concatenate([*contacts, history.joint_force[at]]), len(rows.error)
    return forces[: len(forces) - count] @ rows.G[: len(rows.G) - count]
