"""One step of the mechanics in an environment: smooth dynamics, soft contact, or rigid contact.

Rigid contact is the step that is unrolled for one small scene, see ``contact.stepping.step``.
"""

from dataclasses import dataclass

from kinetree.contact.scene import Scene
from kinetree.contact.settings import TimeStepping
from kinetree.contact.stepping.step import ContactStep
from kinetree.contact.stepping.stepper import step_of_rollout
from kinetree.errors import ModelError
from kinetree.integration.field import Field
from kinetree.integration.integrator import Integrator
from kinetree.integration.manifold import settled
from kinetree.integration.prescription import looped
from kinetree.simulation.compatibility import refuse_conflicts
from kinetree.simulation.forces.actuators import servos_of
from kinetree.simulation.forces.stateful import stateful_forces
from kinetree.simulation.setup import Setup, composed


@dataclass(frozen=True)
class Physics:
    """Steps of a mechanism."""

    field: Field
    """What moves it."""
    method: Integrator
    """The integrator, where nothing is rigid."""
    contact: ContactStep | None
    """The step of rigid contact, or None."""
    dt: float
    """Length of a step [s]."""
    rows: int
    """Forces of rigid contact, of stops and dry friction, that steps carry on."""
    names: tuple = ()
    """Of the contacts."""

    def __call__(self, model, t, q, qd, tau, force, friction=None):
        """State, forces of the rows, and the largest error of a velocity at a contact [m/s].

        Args:
            model: the mechanism.
            t: time [s].
            q: joint positions, (nq,).
            qd: joint velocities, (nv,).
            tau: what is held during the step.
            force: forces of the rows in the step before, (rows,).
            friction: factor of all coefficients of friction, or None.
        """
        if self.contact is None:
            after = self.method.step(self.field, model, t, self.dt, q, qd, tau)
            return *settled(model, after.q, after.qd), force, 0 * t
        known = self.contact.constraints.scene.candidates.friction
        rigid = self.contact.of(model, None if friction is None else friction * known)
        after = rigid(None, self.field, model, t, self.dt, q, qd, tau, force)
        return after.q, after.qd, after.force, after.residuals[0]


def physics_of(
    model, contact, *, controls, dt, integrator, forces, friction, limits, dtype, on_device
) -> Physics:
    """The steps of a model, with contact or without; a bare ``Scene`` is rigid."""
    if isinstance(contact, Scene):
        contact = TimeStepping(contact, tolerance=1e-8, rounds=16, conserving=False)
    servos = servos_of(model, always=True) if controls else None
    setup = composed(
        "Environment", model, integrator=integrator, contact=contact, forces=forces,
        friction=friction, limits=limits, servos=servos,
    )  # fmt: skip
    _require_plain(setup, servos)
    if not isinstance(contact, TimeStepping):
        refuse_conflicts(setup)
        return Physics(setup.field, looped(setup.steps), None, dt, 0)
    step = step_of_rollout(contact, setup.effects, None, dtype, on_device=on_device)
    return Physics(setup.field, setup.steps, step, dt, step.rows, contact.scene.candidates.names)


def _require_plain(setup: Setup, servos):
    model = setup.model
    if model.is_constrained:
        raise ModelError(
            f"Environment: model {model.name!r} has loops; steps of environments are those of "
            f"trees. kinetree.rollout takes loops"
        )
    memory = stateful_forces(setup.forces) or (servos is not None and servos.states)
    if memory:
        raise ModelError(
            f"Environment: forces or actuators of model {model.name!r} have their own states, "
            f"which an episode would have to begin with: use law='hunt_crossley' or 'linear' with "
            f"Regularized friction, and an act= kernel of joint forces"
        )
