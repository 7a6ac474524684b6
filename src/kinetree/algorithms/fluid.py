"""Forces of a fluid on bodies: drag, viscous resistance, lift, momentum of fluid carried along.

With angular velocity ``ω`` and linear velocity ``v`` against the fluid, in the frame of the shape,
these are the moments ``n`` and forces ``f`` of MuJoCo's two models. A box with sides ``s`` and mean
side ``d`` has the drag of its faces and Stokes' resistance of a sphere,

    f_x = -ρ/2 s_y s_z |v_x| v_x - 3 π d μ v_x
    n_x = -ρ/64 s_x (s_y⁴ + s_z⁴) |ω_x| ω_x - π d³ μ ω_x

An ellipsoid of radii ``r``, volume ``V`` and mean diameter ``D`` carries momenta ``ρ m v`` and
``ρ I ω`` of the fluid along, rolls off it (Magnus), is lifted where it is inclined (Kutta), and has
drag by its shadow ``A`` along ``v``, of which ``a`` is the largest one:

    f = ρ m v × ω + C_M ρ V ω × v + C_K ρ A cosα (ν × v) × v
        - (3 π D μ + ρ |v| (C_b A + C_s (a - A))) v
    n = ρ m v × v + ρ I ω × ω - (π D³ μ + ρ |C_a J ω + C_s (J_max - J) ω|) ω

``ν`` is the normal of the surface where it is met by ``v``, ``α`` the angle between them. MuJoCo
bounds two denominators at 1e-15, by which it has less lift of ellipsoids below a few centimetres.
"""

from math import pi

import numpy as np

from kinetree.model.coupling import exact
from kinetree.model.geometry import Box
from kinetree.spatial import Force
from kinetree.spatial.ops import less, select, sqrt
from kinetree.spatial.vector3 import cross

_NOTHING = 1e-300  # square of a velocity at which there is no direction


def fluid_force(model, q, qd):
    """Joint forces of the fluids around bodies, (nv,), of a model without couplings."""
    on: dict[int, list] = {}
    for part in model.fluid_forces:
        on.setdefault(part.body, []).append(part)
    bodies = sorted({k for i in on for k in model.support[i]})
    X, S, v, f, E = {}, {}, {0: model.zero_motion}, {0: Force.zero()}, {0: np.eye(3, dtype=int)}
    for i in bodies:
        X_J, S[i], v_J, _ = model.jcalc(i, q, qd)
        X[i] = X_J @ model.tree_transform[i]
        v[i], E[i] = X[i] @ v[model.parent[i]] + v_J, X[i].E @ E[model.parent[i]]
        f[i] = Force.zero()
        for part in on.get(i, ()):
            f[i] = f[i] + part.placement.T @ _of_part(part, part.placement @ v[i], E[i])
    tau = [np.zeros(joint.nv, dtype=int) for joint in model.joint[1:]]
    for i in reversed(bodies):
        tau[i - 1] = S[i].T @ f[i]
        f[model.parent[i]] = f[model.parent[i]] + X[i].T @ f[i]
    return np.concatenate(tau)


def _of_part(part, v, E) -> Force:
    """Fluid force on one shape at velocity ``v``, in its frame; ``E`` turns base to body axes."""
    w, u = v.angular, v.linear
    if any(part.wind):
        u = u - part.placement.E @ (E @ np.array(part.wind))
    return (_of_box if isinstance(part.shape, Box) else _of_ellipsoid)(part, w, u)


def _of_box(part, w, u):
    """Fluid force on a box, in its axes, at angular and linear velocity ``w`` and ``u``."""
    rho, mu, s = exact(part.density), exact(part.viscosity), part.shape.size
    d = sum(s) / 3
    n, f = -mu * pi * d**3 * w, -mu * 3 * pi * d * u
    faces = np.array([s[1] * s[2], s[2] * s[0], s[0] * s[1]])
    arms = np.array([s[i] * (s[i - 2] ** 4 + s[i - 1] ** 4) for i in range(3)])
    return Force(
        n - rho / 64 * arms * np.array([_absolute(x) * x for x in w]),
        f - rho / 2 * faces * np.array([_absolute(x) * x for x in u]),
    )


def _of_ellipsoid(part, w, u):
    """Fluid force on an ellipsoid, in its axes, at angular, linear velocity ``w``, ``u``."""
    rho, mu, r = part.density, part.viscosity, np.array(part.shape.radii, dtype=float)
    blunt, slender, turning, kutta, magnus = part.coefficients
    volume, (_, middle, large) = 4 / 3 * pi * np.prod(r), np.sort(r)
    linear = rho * np.array(part.added_mass) * u
    angular = rho * np.array(part.added_inertia) * w
    n = cross(linear, u) + cross(angular, w)
    f = cross(linear, w) + magnus * rho * volume * cross(w, u)
    # The shadow: sqrt(denominator / numerator) is homogeneous of degree zero in the velocity.
    areas = np.array([r[i - 2] * r[i - 1] for i in range(3)])
    normal, speed = areas**2 * u, _norm(u)
    square, along = normal @ normal, normal @ u
    moves = less(_NOTHING, u @ u)
    one = 1 + 0 * along
    shadow = pi * sqrt(select(moves, square, one) / select(moves, along, one))
    inclined = along / select(moves, speed * square, one)
    lift = kutta * rho * inclined * shadow
    f = f + lift * cross(cross(normal, u), u)
    largest = pi * large * middle
    D = 2 / 3 * np.sum(r)
    J_max = 8 / 15 * pi * middle * large**4
    J = np.array([8 / 15 * pi * r[i] * max(r[i - 2], r[i - 1]) ** 4 for i in range(3)])
    stirred = (turning * J + slender * (J_max - J)) * w
    f = f - (3 * pi * D * mu + rho * speed * (blunt * shadow + slender * (largest - shadow))) * u
    n = n - (pi * D**3 * mu + rho * _norm(stirred)) * w
    return Force(n, f)


def _norm(x):
    """Euclidean norm of a vector, with derivative zero at the zero vector."""
    s = x @ x
    some = less(_NOTHING, s)
    return select(some, sqrt(select(some, s, 1 + 0 * s)), 0 * s)


def _absolute(x):
    """Absolute value of a number of any kind."""
    return select(less(x, 0), -x, x)
