"""``forward_dynamics``: accelerations and contact forces of a mechanism that touches something.

    motion = kt.contact.forward_dynamics(m, q, qd, tau, scene)
    motion.qdd, motion.forces, motion.zetadot, motion.modes, motion.residuals

Works for trees, floating bases, loops, gears, and joints that move as told — RBDA §11.1–11.5.
Contacts with friction stick or slide; see ``friction`` and ``painleve``.
"""

import numpy as np

from kinetree.arrays.functions import on_host
from kinetree.contact.coefficients import coefficients_of
from kinetree.contact.rigid import friction as with_friction
from kinetree.contact.rigid.frictionless import require_method
from kinetree.contact.rigid.problem import problem_at
from kinetree.contact.rigid.result import ContactMotion, finished
from kinetree.contact.rigid.states import HITTING, TOUCHING, contact_states
from kinetree.errors import ContactError, ShapeError, UnknownNameError
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model

__all__ = ["forward_dynamics"]

_FINITE = float(np.finfo(float).max)


@on_host
def forward_dynamics(
    model, q, qd, tau, contacts, *, friction=None, method="auto", given=(), qdd=None,
    gap_tolerance=1e-6, velocity_tolerance=1e-6,
) -> ContactMotion:  # fmt: skip
    """Accelerations and contact forces of a mechanism in contact.

    Args:
        model: the mechanism; loops are kept.
        q: joint positions [m, rad], (nq,).
        qd: joint velocities [m/s, rad/s], (nv,); no contact may be closing.
        tau: joint forces [N, N·m], (nv,).
        contacts: ``Contacts``, or a ``Scene``, whose contacts at ``q`` count.
        friction: coefficients, a number or (n,); by default those of the contacts, or zero.
        method: for contacts without friction: ``"lcp"``, ``"lemke"``, ``"forces"`` or
            ``"accelerations"``, see ``frictionless``; they agree.
        given: names of joints that accelerate as told, whatever force it takes, as in
            ``kinetree.hybrid_dynamics``.
        qdd: joint accelerations, (nv,); only entries of the ``given`` joints are read.
        gap_tolerance: contacts with larger gaps [m] are open.
        velocity_tolerance: what counts as neither closing, opening nor sliding [m/s].

    Raises:
        ContactError: a contact is closing, which is a matter of impact.
        InfeasibleContactError: no contact forces keep all contacts from closing.
        PainleveError: friction leaves no motion, or several.
    """
    require_method(method)
    q, qd, tau = _arrays(model, q, qd, tau)
    given = (given,) if isinstance(given, str) else tuple(given)
    told = np.zeros(model.nv) if qdd is None else as_joint_vector(model, qdd, "qdd").astype(float)
    if hasattr(contacts, "contacts"):
        contacts = contacts.contacts(q, margin=gap_tolerance)
    mu = coefficients_of(friction, contacts.friction, contacts.size, "friction", _FINITE)
    if method != "auto" and np.any(mu > 0):
        raise UnknownNameError(
            f"method {method!r} is for contacts without friction: say friction=0, or leave the "
            f"method out"
        )
    problem = problem_at(model, q, qd, tau, contacts, mu, given, told)
    states = contact_states(
        np.asarray(contacts.gap), problem.zeta[:, 0], gap_tolerance, velocity_tolerance
    )
    _refuse_hitting(problem, states)
    current = np.array([s == TOUCHING for s in states], dtype=bool)
    lam = np.zeros((problem.size, 3))
    if current.any():
        lam[current] = with_friction.solve(problem.chosen(current), velocity_tolerance, method)
    return finished(model, q, qd, tau, contacts, problem, lam, states, velocity_tolerance, given)


def _refuse_hitting(problem, states):
    for name, state, zeta in zip(problem.names, states, problem.zeta, strict=True):
        if state == HITTING:
            raise ContactError(
                f"contact {name!r} closes at {-zeta[0]:.6g} m/s, which takes an impulse: go on "
                f"from kinetree.contact.impact(model, q, qd, contacts).qd"
            )


def _arrays(model, q, qd, tau):
    q = as_configuration(as_model(model), q).astype(float)
    qd = as_joint_vector(model, qd, "qd").astype(float)
    tau = as_joint_vector(model, tau, "tau").astype(float)
    if not q.ndim == qd.ndim == tau.ndim == 1:
        raise ShapeError(
            f"contact forces are found for one sample at a time, got q {q.shape}, qd {qd.shape} "
            f"and tau {tau.shape}"
        )
    return q, qd, tau
