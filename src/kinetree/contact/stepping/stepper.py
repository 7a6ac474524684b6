"""Steps of ``simulate`` with contact that are unrolled for one small scene."""

from functools import cached_property
from itertools import pairwise

import numpy as np

from kinetree.contact import mobility
from kinetree.contact.engine.stepper import EngineStepper
from kinetree.contact.finding.candidates import positions
from kinetree.contact.history import Notes, Residuals, accumulate
from kinetree.contact.stepping.drives import StepStart
from kinetree.errors import ShapeError, SingularError
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import kernel
from kinetree.integration.integrator import Stepped
from kinetree.integration.prescription import with_loop
from kinetree.integration.step import Scheme, Stepper, step_length


@kernel
def _contact_steps(model, times, q, qd, inputs, force, *, step, scheme):
    """Kernel of several contact steps with equal inputs: state, work, forces, residuals.

    ``times`` are the beginning of the first, the length of each, and how many there are.
    """
    t, h, count = times

    def body(state):
        t, q, qd, work, force, residuals, energy = state
        start = StepStart(t, h, q, qd, inputs)
        after = step(scheme.method, scheme.field, model, start, force, energy)
        residuals = accumulate(residuals, after.residuals)
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
        self.flight = with_loop(method) if step.settings.flight and not rigid else None

    def copy_memory(self):
        """Contact forces of the last step, by name, for a warm start."""
        return {"force": np.array(self.notes.force)}

    def restore(self, memory):
        """Set the warm-start forces to those of ``copy_memory``, if of the same size."""
        if "force" in memory and memory["force"].shape == self.notes.force.shape:
            self.notes.force = np.array(memory["force"])

    def release(self):
        """Return the fallback engine, if one was made, for use by the next simulation."""
        if "_engine" in vars(self):
            self._engine.release()

    def end_of_step(self, t, h, q, qd, tau, *, full=False):
        """State and work after one contact step of ``h`` seconds."""
        q, qd, work, *_ = self._take_steps(t, h, q, qd, tau, 1)
        return Stepped(q, qd, work)

    def steps(self, t, h, q, qd, tau, count):
        """State and work after ``count`` contact steps with constant ``tau``, compiled."""
        return self._take_steps(t, h, q, qd, tau, count)[:3]

    def walk(self, instants, q, qd, tau, dt):
        """States after each of several steps, by unrolled code as far as it converges."""
        states = self._unrolled_walk(instants, q, qd, tau, dt)
        if states:
            q, qd = states[-1][:2]
        states += super().walk(instants[len(states) :], q, qd, tau, dt)
        self.notes.behind = len(states)
        return states

    def _unrolled_walk(self, instants, q, qd, tau, dt):
        """States after steps up to the first that unrolled code does not solve."""
        found, force, call = [], self.notes.force, self._kernel.call
        try:
            for t, end in pairwise(instants):
                h = step_length(t, end, dt)
                after = call(np.array([t, h, 1.0]), q, qd, tau, force)
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
        """Joint forces of controller and prescribed drives at all times, (T, ..., nv).

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
            found[at] = self.field.driving_force(model, t, q, qd, tau) + own
        return found

    def _take_steps(self, t, h, q, qd, tau, count):
        """State, work and residuals after ``count`` steps; unsolved motions by the engine."""
        alone = q.shape[:-1] != self.batch  # one sample of a batch, to locate an event
        force = np.zeros(self.notes.rows) if alone else self.notes.force
        times = np.array([t, h, count], dtype=float)
        after = self._kernel.call(times, q, qd, tau, force)
        if not self._all_fine(after[4]):
            wrong = ~self._is_fine(after[4], after[1])
            after = self._by_engine(t, h, q, qd, tau, count, after, wrong)
        if not alone:
            self.notes.take(after[3], after[4])
        return after

    def _all_fine(self, residuals):
        """Whether unrolled code met the tolerance for all motions, whatever their speed."""
        error = residuals.item(0) if residuals.ndim == 1 else residuals[..., 0].max(initial=0.0)
        return error <= self.contact_step.settings.tolerance

    def _is_fine(self, residuals, qd):
        """Mask (...) of motions whose forces unrolled code solved within tolerance."""
        speed = np.max(np.abs(qd), axis=-1, initial=0.0)
        return residuals[..., 0] <= self.contact_step.settings.tolerance * (1 + speed)

    def _by_engine(self, t, h, q, qd, tau, count, after, wrong):
        """Results in which the engine has retaken the unsolved motions."""
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
        """Stepper of the engine, for steps that unrolled code does not solve."""
        step = self.contact_step
        given = self.model, self.method, self.field, step.settings, step.constraints.joints, ()
        return EngineStepper(*given, compiled=True).ready()

    def _forces_of(self, q):
        """Forces of all rows from the engine's, contacts matched by nearest points."""
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
        # couplings, the last, have rows in the engine alone
        others[:] = machine.joint_forces[0, : len(others)]
        return force

    @cached_property
    def _kernel(self):
        """Compiled kernel of several contact steps."""
        examples = [0.0, 1.0, 1.0], *self._zeros(), np.zeros(self.notes.rows)
        scheme = Scheme(self.flight, self.field)
        kernel = _contact_steps.compiled(
            self.model, *examples, step=self.contact_step, scheme=scheme
        )
        asked = self.contact_step.constraints.scene.choice.samples  # of the engine, too
        kernel.samples = max(getattr(kernel, "samples", 0), asked)
        return kernel


def _push(rows, history, at):
    """Joint forces (nv,) of all rows but loops at one stored time."""
    known = dict(zip(history.names, history.force[at], strict=True))
    contacts = [known.get(name, np.zeros(3)) for name in rows.names]
    forces, count = np.concatenate([*contacts, history.joint_force[at]]), len(rows.error)
    return forces[: len(forces) - count] @ rows.G[: len(rows.G) - count]
