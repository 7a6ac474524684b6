"""Momentum and inertia of the whole mechanism, about its mass centre, and the zero-moment point.

Everything beyond a joint moves with it as one rigid body, so column ``i`` of the matrix ``A`` in
``h = A qd``, to which prescribed joints add what they move, is the momentum ``IC_i S_i`` of a
composite body — RBDA (6.17), §2.12. Moments are about the mass centre, axes are those of the base,
angular parts come first. D. Orin, A. Goswami, S.-H. Lee, "Centroidal dynamics of a humanoid robot",
2013.
"""

from typing import Any, NamedTuple

from kinetree.algorithms.coriolis import BodyCoriolis
from kinetree.algorithms.coupled import columns, for_all_joints, rates_of
from kinetree.algorithms.kinematics import (
    base_transforms,
    body_accelerations,
    body_velocities,
    joint_transforms,
    subspace_rate,
)
from kinetree.model.views import axial_view, condensed_view, uncondensed_view
from kinetree.spatial import Force, Inertia, Plucker, crf, cross
from kinetree.spatial.ops import check_pivot
from kinetree.spatial.vector3 import norm

# --- Momentum and mass centre of the whole mechanism — RBDA §2.12 --------------------------------


def momentum(model, q, qd):
    """Spatial momentum of all bodies, as a ``Force`` in base coordinates.

    Its angular part is about the origin of the base [N·m·s], its linear part [N·s] is the total
    mass times the velocity of the mass centre. Armature does not contribute.
    """
    lam, I = model.parent, model.inertia
    X, v = body_velocities(model, q, qd)
    h = model.sums(Force.zero())
    for i in model.outward():
        h[i] = I[i] @ v[i]
    for i in model.inward():
        h[lam[i]] = h[lam[i]] + X[i].T @ h[i]
    return h[0]


def total_momentum(model, q, qd):
    """The six coordinates of ``momentum``, (6,)."""
    return momentum(model, q, qd).to_array()


def total_mass(model):
    """Mass of all moving bodies together [kg]."""
    mass = model.total()
    for i in model.outward():
        mass.add(model.inertia[i].mass)
    return mass.value


def center_of_mass(model, q):
    """Mass centre of all moving bodies [m], in base coordinates, (3,)."""
    mass, moment = _mass(model), model.total()
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    for i in model.outward():
        I = model.inertia[i]
        moment.add(I.mass * X_0[i].r + X_0[i].E.T @ I.first_moment)
    return moment.value / mass


# --- about the origin of the base, or the mass centre --------------------------------------------


@for_all_joints(columns)
def momentum_matrix(model, q, *, centroidal=False):
    """Momentum matrix ``A`` with ``h = A qd``, (6, nv), about the base origin, or the mass centre.

    With ``centroidal`` they are about the mass centre.
    """
    return Force.from_array(model.columns(_momentum_columns(model, q, centroidal), 6, q))


def _momentum_columns(model, q, centroidal=False):
    """Columns of the momentum matrix by joint: momentum of the bodies beyond, rigidly joined."""
    light = condensed_view(model)  # inertia that it moves to the base has no momentum
    X_0 = _to_bodies(model, joint_transforms(light, q)[0], centroidal)
    IC, S = _composites(axial_view(light), q)
    A = model.table()
    for i in model.outward():
        A[i] = X_0[i].inv_apply(IC[i] @ S[i])
    return A


class _Columns(NamedTuple):
    """Columns of each joint, in base coordinates."""

    A: Any
    """``IC S``: momentum of the bodies beyond the joint, at unit joint velocities."""
    A_rate: Any
    """``IC dS/dt + dIC/dt S`` with ``dI/dt = B + Bᵀ``."""
    h: Any
    """``IC v_J``: momentum of the bodies beyond the joint, at the actual joint velocity."""


def _momentum_column_rates(model, q, qd, centroidal=False):
    """Momentum matrix, its time derivative and the momentum, joint by joint."""
    lam = model.parent
    X, v = body_velocities(model, q, qd)
    X_0 = _to_bodies(model, X, centroidal)
    IC, S = _composites(model, q)
    BC, A, A_rate, h = (model.table() for _ in range(4))
    for i in model.outward():
        BC[i] = BodyCoriolis.of(model.inertia[i], v[i])
    for i in model.inward():
        if lam[i] != 0:
            BC[lam[i]] = BC[lam[i]] + X[i].T @ BC[i] @ X[i]
        A[i] = X_0[i].inv_apply(IC[i] @ S[i])
        Sd = subspace_rate(model, i, q, qd, v[i])
        A_rate[i] = X_0[i].inv_apply(IC[i] @ Sd + BC[i] @ S[i] + BC[i].T @ S[i])
        if model.joint[i].moves_by_itself:
            h[i] = X_0[i].inv_apply(IC[i] @ model.jcalc(i, q, qd)[2])
        else:
            h[i] = A[i] @ qd[model.v_slice[i]]
    return _Columns(A, A_rate, h)


def _to_bodies(model, X, centroidal):
    """Transforms to all bodies, from the base or from axes at the centre of mass."""
    return centroidal_transforms(model, X) if centroidal else base_transforms(model, X)


def momentum_rate(model, q, qd, qdd):
    """Rate of momentum ``dh/dt`` for ``qdd``, (6,): total external force, gravity included."""
    lam, I = model.parent, model.inertia
    X, v, a = body_accelerations(model, q, qd, qdd)
    f = model.sums(Force.zero())
    for i in model.outward():
        f[i] = I[i] @ a[i] + crf(v[i], I[i] @ v[i])
    for i in model.inward():
        f[lam[i]] = f[lam[i]] + X[i].T @ f[i]
    return f[0]


def total_inertia(model, q):
    """Spatial inertia of the mechanism with its joints locked, in base coordinates."""
    return _composites(axial_view(condensed_view(model)), q)[0][0]


def _composites(model, q):
    """Composite inertias ``IC[i]`` in body coordinates (0: all bodies), and axes ``S[i]``."""
    lam = model.parent
    X, S = joint_transforms(model, q)
    IC = model.sums(Inertia.zero() if model.inertia[0] is None else model.inertia[0])
    for i in model.outward():
        IC[i] = model.inertia[i]
    for i in model.inward():
        IC[lam[i]] = IC[lam[i]] + X[i].T @ IC[i] @ X[i]
    return IC, S


# --- about the mass centre -----------------------------------------------------------------------


def centroidal_transforms(model, X):
    """Transforms ``X_G[i]`` to body coordinates from base axes at the mass centre.

    Positions are relative to a body that has mass, not to the base: far from the origin their
    differences would lose digits, and moments of inertia twice as many. ``X[i]`` are the transforms
    from parents to bodies.
    """
    lam, laden, X_0 = model.parent, model.laden, base_transforms(model, X)
    mass, moment, c, known = model.table(), model.table(), model.total(), _path(model, X, X_0)
    d, X_G = model.table(known[0]), model.table()  # positions
    for i in model.outward():
        I = model.inertia[i]
        mass[i], moment[i] = I.mass, I.first_moment
        d[i] = known[i] if i in known else d[lam[i]] + X_0[lam[i]].E.T @ X[i].r
    for i in model.inward():  # mass and first moment of everything a body carries
        if laden[lam[i]]:
            moment[lam[i]] = moment[lam[i]] + mass[i] * X[i].r + X[i].E.T @ moment[i]
            mass[lam[i]] = mass[lam[i]] + mass[i]
        elif laden[i]:
            c.add(mass[i] * d[i] + X_0[i].E.T @ moment[i])
    c = c.value / _mass(model)
    for i in model.outward():
        X_G[i] = Plucker(X_0[i].E, d[i] - c)
    return X_G


def _path(model, X, X_0):
    """Positions of the bodies on the path to the base, relative to the first one with mass.

    General code takes the mean position of the bodies on the base as origin instead, and returns
    the position of the base: any origin near the bodies will do.
    """
    lam, i = model.parent, model.first_laden
    if model.is_general:
        mass, moment = model.total(), model.total(0 * model.identity_transform.r)
        for i in model.outward():
            if lam[i] == 0:
                mass.add(model.inertia[i].mass)
                moment.add(model.inertia[i].mass * X[i].r)
        return {0: -moment.value / mass.value}
    d = {i: 0 * model.identity_transform.r}
    while i != 0:
        d[lam[i]] = d[i] - X_0[lam[i]].E.T @ X[i].r
        i = lam[i]
    return d


def _sum_at_center(model, X_G, X, parts, total):
    """Sum of quantities of the bodies, about the mass centre, along the axes of the base."""
    lam, laden, total = model.parent, model.laden, model.total(total)
    for i in model.inward():
        if laden[lam[i]]:
            parts[lam[i]] = parts[lam[i]] + X[i].inv_apply(parts[i])
        else:
            total.add(X_G[i].inv_apply(parts[i]))
    return total.value


@for_all_joints(columns)
def centroidal_momentum_matrix(model, q):
    """Centroidal momentum matrix ``A_G = ∂h_G/∂qd``, (6, nv)."""
    return model.columns(_momentum_columns(model, q, centroidal=True), 6, q)


@for_all_joints(rates_of(centroidal_momentum_matrix))
def centroidal_momentum_matrix_rate(model, q, qd):
    """Time derivative of the centroidal momentum matrix, ``dA_G/dt``, (6, nv)."""
    A, A_rate, h = _momentum_column_rates(model, q, qd, centroidal=True)
    p, A_G_rate = model.total(), model.table()
    for i in model.inward():
        p.add(h[i].linear)
    c_rate = p.value / _mass(model)
    for i in model.outward():
        A_G_rate[i] = Force(A_rate[i].angular - cross(c_rate, A[i].linear), A_rate[i].linear)
    return model.columns(A_G_rate, 6, q, qd)


def centroidal_momentum(model, q, qd):
    """Centroidal momentum ``h_G``, (6,): angular about the mass centre, then linear."""
    (X, v), h = body_velocities(model, q, qd), model.table()
    for i in model.outward():
        h[i] = model.inertia[i] @ v[i]
    return _sum_at_center(model, centroidal_transforms(model, X), X, h, Force.zero()).to_array()


def centroidal_momentum_rate(model, q, qd, qdd):
    """Rate of centroidal momentum, (6,): ``A_G qdd + dA_G/dt qd``, with prescribed motions."""
    (X, v, a), f, I = body_accelerations(model, q, qd, qdd), model.table(), model.inertia
    for i in model.outward():
        f[i] = I[i] @ a[i] + crf(v[i], I[i] @ v[i])
    return _sum_at_center(model, centroidal_transforms(model, X), X, f, Force.zero()).to_array()


def centroidal_momentum_bias(model, q, qd):
    """Rate of centroidal momentum at ``qdd = 0``, (6,): ``dA_G/dt qd``, with prescribed motions."""
    return centroidal_momentum_rate(model, q, qd, model.zero_velocity)


def centroidal_inertia(model, q):
    """Inertia of the locked mechanism about its mass centre, axes of the base, (6, 6)."""
    X_G = centroidal_transforms(model, joint_transforms(model, q)[0])
    X = joint_transforms(axial_view(uncondensed_view(model)), q)[0]
    I = _sum_at_center(model, X_G, X, model.copy_table(model.inertia), Inertia.zero())
    return Inertia(I.mass, 0 * I.first_moment, I.rotational).to_matrix()


def center_of_mass_velocity(model, q, qd):
    """Velocity of the mass centre [m/s], (3,)."""
    return momentum(model, q, qd).linear / _mass(model)


def center_of_mass_acceleration(model, q, qd, qdd):
    """True acceleration of the mass centre [m/s²], gravity not subtracted, (3,)."""
    return momentum_rate(model, q, qd, qdd).linear / _mass(model)


@for_all_joints(columns)
def center_of_mass_jacobian(model, q):
    """Jacobian ``∂v/∂qd`` of the velocity of the mass centre, (3, nv)."""
    A, J, mass = _momentum_columns(model, q), model.table(), _mass(model)
    for i in model.outward():
        J[i] = A[i].linear / mass
    return model.columns(J, 3, q)


@for_all_joints(rates_of(center_of_mass_jacobian))
def center_of_mass_jacobian_rate(model, q, qd):
    """Time derivative of ``center_of_mass_jacobian``, (3, nv)."""
    rate, J_rate = _momentum_column_rates(model, q, qd).A_rate, model.table()
    mass = _mass(model)
    for i in model.outward():
        J_rate[i] = rate[i].linear / mass
    return model.columns(J_rate, 3, q, qd)


def zero_moment_point(model, q, qd, qdd, point):
    """Zero-moment point on the ground [m], (3,): contact forces have no horizontal moment about it.

    Contact forces are ``dh/dt`` less the weight. ``point`` (3,) [m] lies on the ground, which is
    perpendicular to gravity.
    """
    g, mass = model.gravity, _mass(model)
    size = check_pivot(norm(g), 0, lambda: f"model {model.name!r} has no gravity: nothing is up")
    up = -g / size
    f = momentum_rate(model, q, qd, qdd)
    push = f.linear - mass * g
    moment = f.angular - cross(total_inertia(model, q).first_moment, g)
    pressure = check_pivot(up @ push, mass * size, lambda: _in_flight(model))
    return point + cross(up, moment - cross(point, push)) / pressure


def _in_flight(model):
    """Error message for a motion that ground contact cannot support, such as free fall."""
    return (
        f"model {model.name!r} has no zero-moment point: to accelerate like this the ground would "
        f"have to pull it down, or need not touch it at all"
    )


def _mass(model):
    """Total mass of a model [kg]; an error if it is zero."""
    return check_pivot(
        total_mass(model), 0, lambda: f"model {model.name!r} has no mass, hence no mass centre"
    )
