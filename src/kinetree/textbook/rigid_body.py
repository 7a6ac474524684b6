"""The equation of motion of one rigid body — RBDA §2.12–2.15, Lynch & Park §9.2.

In spatial form one line says what Newton's and Euler's equations say about the mass centre; both
are here, and they agree. ``I @ v`` is the momentum.
"""

from kinetree.spatial.vector3 import cross

__all__ = ["bias_force", "force_on_body", "free_acceleration", "kinetic_energy", "newton_euler"]


def kinetic_energy(I, v):
    """``½ v·I v`` [J] — RBDA (2.67)."""
    return (I @ v).dot(v) / 2


def force_on_body(I, v, a):
    """``f = I a + v ×* I v``: total force that gives the body acceleration ``a`` — RBDA (2.68)."""
    return I @ a + v.cross(I @ v)


def bias_force(I, v, known=None):
    """``p`` in ``f = I a + p`` — RBDA (2.69).

    Args:
        I: inertia.
        v: velocity.
        known: forces that act besides ``f``, such as the weight ``I @ a_g``.
    """
    p = v.cross(I @ v)
    return p if known is None else p - known


def free_acceleration(Phi, f, p):
    """``a = Φ f + b`` with ``b = -Φ p``, for a body without constraints — RBDA (2.72)."""
    return Phi @ (f - p)


def newton_euler(m, I_C, w, wd, a_C):
    """Force and moment about the mass centre — RBDA (1.4), Lynch & Park (9.14)–(9.20).

    Args:
        m: mass [kg].
        I_C: rotational inertia about the mass centre [kg m²], (3, 3).
        w: angular velocity [rad/s], (3,).
        wd: angular acceleration [rad/s²], (3,).
        a_C: acceleration of the mass centre [m/s²], (3,).

    Returns:
        f: force [N], (3,).
        n_C: moment about the mass centre [N m], (3,).
    """
    return m * a_C, I_C @ wd + cross(w, I_C @ w)
