"""Local coordinates for a step: methods for vectors on the configuration manifold.

During a step from ``q0`` the configuration is ``q = integrate(q0, u)``, and ``u`` obeys an ordinary
differential equation in the tangent space, ``du/dt = dexp⁻¹(u) qd``, so that any method for vectors
applies and quaternions keep their length (Munthe-Kaas). Where ``qd`` is the derivative of ``q``
that is ``du/dt = qd``. Otherwise ``qd`` is a velocity in child coordinates, ``integrate`` the
exponential map of a group, and

    dexp⁻¹(u) v = v + [u, v]/2 + [u, [u, v]]/12 - [u, [u, [u, [u, v]]]]/720 + ...

A method of order p needs the terms with at most p - 2 brackets.
"""

import numpy as np

from kinetree.functional.kernel import kernel
from kinetree.joints.jet import jets
from kinetree.model.limits import has_dynamics
from kinetree.model.memo import remember
from kinetree.spatial.ops import less, select, stumpff, stumpff_rate

_SERIES = ((1, 1 / 2), (2, 1 / 12), (4, -1 / 720))  # brackets, coefficient: Bernoulli numbers


def move(model, q, u):
    """Configuration ``model.integrate(q, u)``, compiled for numbers."""
    return q + u if is_flat(model) else _move(model, q, u)


def local_rate(model, q, u, qd, *, order):
    """Rate ``du/dt`` of local coordinates ``u`` around ``q``, to the given order."""
    return qd if is_flat(model) else _local_rate(model, q, u, qd, order=order)


def settle(model, q, qd):
    """State with joint variables normalised for a step; see ``AbstractJoint.reparameterize``."""
    if not _movable(model):
        return q, qd
    return _settle(model, q, qd)


def turns_over(model):
    """Whether joint variables may be changed between steps, such as rotation vectors."""
    return any(model.joint[i].turns_over for i in _movable(model))


def _movable(model):
    """Numbers of the joints whose variables may be normalised, found once per model.

    Springs and limits are about the variables: where there are some, these must not be changed.
    """
    return remember(model, ("movable",), lambda: (_found_movable(model),))[0]


def _found_movable(model):
    """Numbers of the joints whose positions have several representations."""
    found = []
    for i, joint in enumerate(model.joint[1:], start=1):
        bound = has_dynamics(model.bodies[i - 1], "stiffness") or model.travel[i] is not None
        bound = bound or any(i in t.joints for t in model.tendons)
        if joint.nq and (joint.unit_parts or (joint.turns_over and not bound)):
            found.append(i)
    return found


@kernel
def _settle(model, q, qd):
    """Kernel of the state with joint variables in their normal form."""
    q, qd = np.array(q), np.array(qd)
    for i in _movable(model):
        a, b = model.q_slice[i], model.v_slice[i]
        q[a], qd[b] = model.joint[i].reparameterize(q[a], qd[b])
    return q, qd


def is_flat(model):
    """Whether all velocity variables are time derivatives of position variables."""
    return remember(
        model, ("flat",), lambda: (all(b.joint.rates_are_velocities for b in model.bodies),)
    )[0]


@kernel
def _move(model, q, u):
    """Kernel of ``model.integrate``."""
    return model.integrate(q, u)


@kernel
def _local_rate(model, q, u, qd, *, order):
    """Kernel of the rate of the tangent vector from a configuration to a moving one."""
    parts = [model.zero_velocity[:0]]
    for i in range(1, model.body_count + 1):
        at, joint = model.v_slice[i], model.joint[i]
        if joint.rates_are_velocities:
            parts.append(qd[at])
        else:
            parts.append(joint_rate(joint, q[model.q_slice[i]], u[at], qd[at], order))
    return np.concatenate(parts)


def joint_rate(joint, q, u, qd, order):
    """Rate ``du/dt`` of one joint whose velocity is not the derivative of ``q``."""
    if joint.bracket is None:
        return _rate_by_differentiation(joint, q, u, qd)
    rate, term, done = qd, qd, 0
    for brackets, coefficient in series(order):
        while done < brackets:
            term, done = joint.bracket(u, term), done + 1
        rate = rate + coefficient * term
    return rate


def series(order) -> list:
    """Terms (bracket count, coefficient) of the dexp⁻¹ series needed for an order."""
    return [term for term in _SERIES if term[0] <= max(order - 2, 1)]


def _rate_by_differentiation(joint, q, u, qd):
    """Rate ``du/dt`` of a user-defined joint, by differentiating its ``difference``."""
    there = joint.integrate(q, u)
    moving = joint.difference(q, jets(there, joint.configuration_rate(there, qd)))
    return np.array([getattr(x, "first", 0) for x in moving])


# --- derivatives of the exponential map of a joint's group, exact, as matrices -------------------
# With ``a`` the matrix of the bracket, ``a v = [u, v]``, every analytic function of ``a`` is a
# polynomial of degree four: for rotations and for rigid motions ``a (a² + s)² = 0`` with ``s`` the
# square of the angle. Its coefficients follow from values and derivatives at the eigenvalues.


def bracket_matrix(joint, u):
    """Matrix of ``v -> [u, v]``, (nv, nv); None if the joint's velocities commute."""
    if joint.rates_are_velocities:
        return None
    return np.column_stack([joint.bracket(u, e) for e in np.eye(joint.nv, dtype=int)])


def dexp(joint, u):
    """Matrix ``E`` (nv, nv) from rates of local coordinates ``u`` to joint velocities."""
    a = bracket_matrix(joint, u)
    if a is None:
        return np.eye(joint.nv, dtype=int)
    s = _angle_squared(a)
    c = stumpff(s)
    _, dc2, dc3 = stumpff_rate(c)
    return _polynomial(a, (s * dc2 - c[2], c[3] - s * dc3, dc2, -dc3))


def dexp_inverse(joint, u):
    """Matrix ``E⁻¹`` (nv, nv) from joint velocities to rates of local coordinates ``u``."""
    a = bracket_matrix(joint, u)
    if a is None:
        return np.eye(joint.nv, dtype=int)
    s = _angle_squared(a)
    c = stumpff(s)
    k = (c[3] - 2 * c[4]) / (2 * c[2])  # (1 - θ/2 cot θ/2) / s
    near = less(s, 1e-12)
    divisor = select(near, 1 + 0 * s, s)
    dk = select(near, 1 / 720 + 0 * s, (1 / 8 - 3 / 2 * k + k * k * s / 2) / divisor)
    return _polynomial(a, (1 / 2, k - s * dk, 0, -dk))


def _polynomial(a, coefficients):
    """Matrix polynomial ``1 + c₁ a + c₂ a² + ...`` by Horner's rule."""
    one = np.eye(len(a), dtype=int)
    total = 0 * one
    for c in reversed(coefficients):
        total = a @ (total + c * one)
    return one + total


def _angle_squared(a):
    """Squared rotation angle from the trace of ``a²`` of a bracket matrix."""
    trace = np.trace(a @ a)
    return -trace / (2 if len(a) <= 4 else 4)
