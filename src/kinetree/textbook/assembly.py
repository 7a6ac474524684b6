"""Joining two articulated bodies by a joint — RBDA §7.2.2, §7.4, Table 7.2.

Dense 6×6 matrices, everything in one coordinate system. Handle 1 is the predecessor of the new
joint and the handle of the result, handle 2 the successor. ``c`` is the full velocity-product
acceleration of the joint (``a2 - a1 = S qdd + c``).

    standard    f = I a + p      through S    both handles with six freedoms
    variant_1   a = Phi f + b    through T    the joint repeats no constraint that is there already;
                                              enough: one handle with six freedoms
    variant_2   f = I a + p      through T    both handles with six freedoms

The formulae agree wherever they exist: ``Phi`` of variant 1 is the inverse of ``I`` of the others
and ``b = -Phi p``. ``derivation`` obtains all three by elimination.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import ltl

__all__ = ["Assembly", "glue", "inverse", "joint_acceleration", "standard", "variant_1"]
__all__ += ["variant_2"]


class Assembly(NamedTuple):
    """Equation of the new handle, and the new joint's unknown as a function of its variable.

    ``f = matrix a1 + bias`` and ``unknown = gain a1 + offset`` for the standard formulae (the
    unknown is ``qdd``) and variant 2 (the constraint force ``lambda``); in variant 1 ``a1`` and
    ``f`` change places.
    """

    matrix: np.ndarray
    bias: np.ndarray
    gain: np.ndarray
    offset: np.ndarray


def glue(matrix_1, bias_1, matrix_2, bias_2):
    """Inertia and bias force of two handles fixed to one another — RBDA §7.1, Figure 7.2."""
    return matrix_1 + matrix_2, bias_1 + bias_2


def standard(I1, p1, I2, p2, S, c, tau):
    """``IA`` and ``pA`` of handle 1 from ``I``, ``p`` and ``S`` — RBDA (7.18)–(7.20)."""
    D_inv = inverse(S.T @ I2 @ S, "Sᵀ I2 S: the joint moves no inertia beyond it")
    z = tau - S.T @ (p2 + I2 @ c)
    gain, offset = -D_inv @ S.T @ I2, D_inv @ z
    return Assembly(I1 + I2 + I2 @ S @ gain, p1 + p2 + I2 @ (c + S @ offset), gain, offset)


def variant_1(Phi1, b1, Phi2, b2, T, Ta, c, tau):
    """``Phi`` and ``b`` of handle 1 from inverse inertias and ``T`` — RBDA Table 7.2."""
    Y_inv = inverse(T.T @ (Phi1 + Phi2) @ T, "Tᵀ (Phi1 + Phi2) T: the joint repeats a constraint")
    z = T.T @ (c + b1 - b2 - (Phi1 + Phi2) @ Ta @ tau)
    gain, offset = Y_inv @ T.T @ Phi1, Y_inv @ z
    return Assembly(Phi1 - Phi1 @ T @ gain, b1 - Phi1 @ Ta @ tau - Phi1 @ T @ offset, gain, offset)


def variant_2(I1, p1, I2, p2, T, Ta, c, tau):
    """``IA`` and ``pA`` of handle 1 from ``I``, ``p`` and ``T`` — RBDA Table 7.2."""
    I2_inv = inverse(I2, "I2: handle 2 does not have six freedoms, or no mass")
    Y_inv = inverse(T.T @ I2_inv @ T, "Tᵀ I2⁻¹ T: the joint repeats a constraint")
    z = T.T @ (c - I2_inv @ (Ta @ tau - p2))
    gain, offset = Y_inv @ T.T, Y_inv @ z
    return Assembly(I1 + T @ gain, p1 + Ta @ tau + T @ offset, gain, offset)


def joint_acceleration(Ta, a1, a2, c):
    """``qdd = T_aᵀ (a2 - a1 - c)``; relies on ``T_aᵀ S = 1`` — RBDA §7.4, footnote 1."""
    return Ta.T @ (a2 - a1 - c)


def inverse(A, what):
    """``A⁻¹`` of a positive-definite matrix, or SingularError that says ``what`` it is."""
    return ltl.inverse(A, ltl.dense(len(A)), lambda k: f"assembly is singular in {what}")
