"""One step of the mechanics in an environment: smooth dynamics, soft contact, or rigid contact.

Rigid contact is the step that is unrolled for one small scene, see ``contact.stepping.step``.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.contact.scene import Scene
from kinetree.contact.settings import TimeStepping
from kinetree.contact.stepping.choice import step_of_rollout
from kinetree.contact.stepping.drives import StepStart
from kinetree.contact.stepping.step import ContactStep
from kinetree.integration.integrator import Integrator
from kinetree.integration.manifold import settle
from kinetree.integration.prescription import with_loop
from kinetree.integration.refusals import INTEGRALS
from kinetree.quantities.actuators import activation_after
from kinetree.simulation.compatibility import refuse_conflicts
from kinetree.simulation.forces.actuators import Servos, servos_of
from kinetree.simulation.setup import Setup, compose_setup


@dataclass(frozen=True)
class Physics:
    """Steps of a mechanism."""

    model: Any
    """The mechanism."""
    field: Any
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
    servos: Servos | None = None
    """Actuators that controls drive, or None."""

    @property
    def is_rigid(self) -> bool:
        """Whether there is rigid contact."""
        return self.contact is not None

    def forces_of(self, force):
        """Contact forces [N], (contacts, 3), from the stored row forces."""
        contact: Any = self.contact
        return contact.forces_of(force)

    @property
    def states(self) -> int:
        """Number of activation states of the actuators."""
        return 0 if self.servos is None else self.servos.states

    def of(self, model, friction=None) -> "Physics":
        """Copy of the physics for a model with other parameters, or scaled friction.

        Args:
            model: the mechanism.
            friction: factor of all coefficients of friction, or None.
        """
        if model is self.model and friction is None:
            return self
        field, contact, levels = self.field.of(model), self.contact, None
        if contact is not None:
            known = contact.columns.friction
            if contact.constraints.joints.friction:
                levels = self.field.passive.exact_levels(model)
            contact = contact.of(model, None if friction is None else friction * known, levels)
        return replace(self, field=field, contact=contact)

    def __call__(self, model, t, q, qd, tau, force, activation):
        """State, forces of the rows, activations, and the largest error.

        The error is that of a velocity at a contact [m/s]; with loops and without rigid contact, by
        how much the step leaves them open.

        Args:
            model: the mechanism.
            t: time [s].
            q: joint positions, (nq,).
            qd: joint velocities, (nv,).
            tau: joint forces or controls, held during the step.
            force: forces of the rows in the step before, (rows,).
            activation: of actuators, (states,).
        """
        held = np.concatenate([tau, activation, [t]]) if self.states else tau
        if self.states:
            activation = activation_after(model, tau, activation, self.dt + 0 * t)
        if self.contact is None:
            after = self.method.step(self.field, model, t, self.dt, q, qd, held)
            error = self.method.doubt(after) if self.method.closes else 0 * t
            return *settle(model, after.q, after.qd), force, activation, error
        start = StepStart(t, self.dt, q, qd, held)
        after = self.contact(None, self.field, model, start, force)
        return after.q, after.qd, after.force, activation, after.residuals[0]


def setup_of(model, contact, *, controls, **options) -> Setup:
    """Simulation setup of a model with or without contact; a bare ``Scene`` is rigid.

    Args:
        model: the mechanism.
        contact: as of an ``Environment``.
        controls: whether actions are controls of actuators.
        **options: further ones of ``compose_setup``.
    """
    if isinstance(contact, Scene):
        contact = TimeStepping(contact)
    servos = servos_of(model, always=True) if controls else None
    if servos is not None and servos.integrals:
        raise INTEGRALS.of("Environment", f"actuators of model {model.name!r} with integral action")
    return compose_setup("Environment", model, contact=contact, servos=servos, **options)


def physics_of(setup: Setup, starts, dt, *, dtype, on_device) -> Physics:
    """``Physics`` with the unrolled steps of a setup.

    Args:
        setup: of the mechanism.
        starts: function without arguments to states at which episodes begin, (n, nq) and (n, nv).
        dt: length of a step [s].
        dtype: precision.
        on_device: whether steps are taken on a GPU.
    """
    refuse_conflicts(setup)
    contact, given = setup.contact, {"dt": dt, "servos": setup.servos}
    if not isinstance(contact, TimeStepping):
        if setup.model.is_constrained:
            method, field = setup.rollout_step(*starts())
        else:
            method, field = with_loop(setup.steps), setup.field
        return Physics(setup.model, field, method, None, rows=0, **given)
    step = step_of_rollout(contact, setup.effects, None, dtype, on_device=on_device)
    names, rows = step.columns.names, step.rows
    return Physics(setup.model, setup.field, setup.steps, step, rows=rows, names=names, **given)
