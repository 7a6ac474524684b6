"""Rotations: quaternions, Euler angles, exponential map — RBDA §4.5, tutorial §5.2.

Throughout, ``E`` is a coordinate rotation in the book's sense: it takes parent coordinates to
child coordinates, so its transpose is the usual active rotation matrix of the child.
"""

import sys

import numpy as np

from kinetree.errors import JointError
from kinetree.spatial.ops import atan2, digits, is_symbolic, less, rational, select, sqrt, stumpff
from kinetree.spatial.transform import rx, ry, rz
from kinetree.spatial.vector3 import identity3, norm, skew


def rotation_about(axis, c, s):
    """Coordinate rotation ``E`` about the unit vector ``axis``, by an angle's cosine and sine."""
    x, y, z = axis
    k = 1 - c
    return np.array(
        [
            [c + k * x * x, k * x * y + s * z, k * x * z - s * y],
            [k * y * x - s * z, c + k * y * y, k * y * z + s * x],
            [k * z * x + s * y, k * z * y - s * x, c + k * z * z],
        ]
    )


def rotation_exp(phi):
    """Coordinate rotation ``E`` for a rotation vector (axis times angle) — tutorial (53)."""
    phi = np.asarray(phi)
    c, u = stumpff(phi @ phi), skew(phi)
    return identity3() - c[1] * u + c[2] * (u @ u)


def rotation_log(E):
    """Rotation vector of ``E``, of length at most π; accurate up to 180°.

    ``E`` transforms coordinates, as everywhere here: for the rotation matrix ``R`` of a pose, which
    turns vectors, write ``rotation_log(R.T)``.
    """
    return quaternion_log(quaternion_from_rotation(E))


def rotation_from_quaternion(p):
    """Coordinate rotation ``E`` of unit Euler parameters ``(w, x, y, z)`` — RBDA (4.12)."""
    p0, p1, p2, p3 = p
    return np.array(
        [
            [2 * (p0 * p0 + p1 * p1) - 1, 2 * (p1 * p2 + p0 * p3), 2 * (p1 * p3 - p0 * p2)],
            [2 * (p1 * p2 - p0 * p3), 2 * (p0 * p0 + p2 * p2) - 1, 2 * (p2 * p3 + p0 * p1)],
            [2 * (p1 * p3 + p0 * p2), 2 * (p2 * p3 - p0 * p1), 2 * (p0 * p0 + p3 * p3) - 1],
        ]
    )


def quaternion_from_rotation(E):
    """Unit quaternion ``(w, x, y, z)`` of ``E`` with ``w ≥ 0``; well-conditioned everywhere."""
    d, trace = np.diagonal(E), E[0, 0] + E[1, 1] + E[2, 2]
    # Four equivalent formulas; the one with the largest component loses nothing (Shepperd).
    squares = [1 + trace, *(1 + 2 * d[i] - trace for i in range(3))]
    A, B = _sums_and_differences(E)
    rows = np.array(
        [
            [squares[0], B[0], B[1], B[2]],
            [B[0], squares[1], A[2], A[1]],
            [B[1], A[2], squares[2], A[0]],
            [B[2], A[1], A[0], squares[3]],
        ]
    )
    best, row = squares[0], rows[0]
    for k in (1, 2, 3):
        better = less(best, squares[k])
        best = select(better, squares[k], best)
        row = np.array([select(better, x, y) for x, y in zip(rows[k], row, strict=True)])
    p = row / (2 * sqrt(best))
    return p * select(less(p[0], 0), -1, 1)


def quaternions(rotations) -> np.ndarray:
    """Unit quaternions (w, x, y, z) of rotation matrices (..., 3, 3)."""
    R = np.asarray(rotations)
    diagonal = [R[..., k, k] for k in range(3)]
    trace = sum(diagonal)
    # Four times the products of each pair; the row with the largest square is the best divided.
    products = np.empty((*R.shape[:-2], 4, 4))
    products[..., 0, 0] = 1 + trace
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        products[..., k + 1, k + 1] = 1 + 2 * diagonal[k] - trace
        products[..., 0, k + 1] = products[..., k + 1, 0] = R[..., j, i] - R[..., i, j]
        products[..., i + 1, j + 1] = products[..., j + 1, i + 1] = R[..., i, j] + R[..., j, i]
    squares = np.diagonal(products, axis1=-2, axis2=-1)
    best = np.argmax(squares, axis=-1)[..., None, None]
    row = np.take_along_axis(products, best, axis=-2)[..., 0, :]
    return row / np.linalg.norm(row, axis=-1, keepdims=True)


def _sums_and_differences(E):
    """Sums and differences of opposite entries of a matrix, off its diagonal."""
    A = np.array([E[1, 2] + E[2, 1], E[0, 2] + E[2, 0], E[0, 1] + E[1, 0]])
    B = np.array([E[1, 2] - E[2, 1], E[2, 0] - E[0, 2], E[0, 1] - E[1, 0]])
    return A, B


def quaternion_product(a, b):
    """Hamilton product of quaternions: rotation ``a``, then ``b`` in its rotated frame."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return np.array(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ]
    )


def quaternion_rate(p, w):
    """Quaternion rate ``dp/dt`` for the angular velocity ``w`` in child coordinates — (4.13)."""
    return quaternion_product(p, np.array([0, *w])) / 2


def quaternion_velocity(p, pd):
    """Angular velocity in child coordinates from ``dp/dt``; inverts ``quaternion_rate``."""
    conjugate = np.array([p[0], -p[1], -p[2], -p[3]])
    return 2 * quaternion_product(conjugate, pd)[1:]


def quaternion_exp(phi):
    """Unit quaternion of the rotation vector ``phi``."""
    phi = np.asarray(phi)
    c = stumpff(phi @ phi / 4)
    return np.array([c[0], *(c[1] / 2 * phi)])


def quaternion_log(p):
    """Rotation vector of the unit quaternion ``p``, of length at most π."""
    p = np.asarray(p)
    p = p * select(less(p[0], 0), -1, 1)
    w, v = p[0], p[1:]
    s2, w2 = v @ v, w * w
    near = sys.modules["sympy"].Eq(s2, 0) if is_symbolic(s2) else less(64 * s2, w2)
    size = sqrt(select(near, 1 + 0 * s2, s2))
    far = atan2(size, w) / size
    w, w2 = select(near, w, 1 + 0 * w), select(near, w2, 64 * s2)
    return 2 * select(near, _arctangent(s2 / w2) / w, far) * v


def _arctangent(t2):
    """``arctan(t)/t`` for ``t² = t2 ≤ 1/64``: half the angle over its tangent."""
    terms = 2 + 3 * digits(t2) // 5
    total = rational(1, 2 * terms + 1, t2)
    for k in range(terms - 1, -1, -1):
        total = rational(1, 2 * k + 1, t2) - t2 * total
    return total


_AXIS_ROTATION = {"x": rx, "y": ry, "z": rz}


def check_euler_sequence(sequence):
    """The Euler sequence, after an error unless it has three axes, neighbours different."""
    valid = (
        isinstance(sequence, str)
        and len(sequence) == 3
        and set(sequence) <= set("xyz")
        and sequence[0] != sequence[1] != sequence[2]
    )
    if not valid:
        raise JointError(
            f"Euler sequence must be three of the letters x, y, z with neighbours different, "
            f"such as 'zyx' or 'xyz', got {sequence!r}"
        )
    return sequence


def euler_rotation(sequence, angles):
    """Coordinate rotation ``E`` for Euler angles about the moving axes ``sequence`` — (4.7)."""
    check_euler_sequence(sequence)
    E = identity3()
    for axis, angle in zip(sequence, angles, strict=True):
        E = _AXIS_ROTATION[axis](angle) @ E
    return E


def euler_angles(sequence, E):
    """Euler angles of ``E``, the middle one in [-π/2, π/2], or [0, π] for 'zxz' and such.

    At the ends of that range only the sum or difference of the other two is determined; the angles
    returned still reproduce ``E`` there.
    """
    check_euler_sequence(sequence)
    i, j = "xyz".index(sequence[0]), "xyz".index(sequence[1])
    R = E.T
    k = 3 - i - j
    sign = 1 if (j - i) % 3 == 1 else -1
    if sequence[0] == sequence[2]:  # proper Euler angles: R[i, i] = cos(second)
        first = atan2(R[j, i], -sign * R[k, i])
        middle = atan2(norm(np.array([R[j, i], R[k, i], 0 * R[k, i]])), R[i, i])
    else:  # Tait-Bryan angles: R[i, k] = sign sin(second)
        first = atan2(-sign * R[j, k], R[k, k])
        middle = atan2(sign * R[i, k], norm(np.array([R[j, k], R[k, k], 0 * R[k, k]])))
    rest = E @ (_AXIS_ROTATION[sequence[1]](middle) @ _AXIS_ROTATION[sequence[0]](first)).T
    a, b = [n for n in range(3) if n != "xyz".index(sequence[2])]
    turn = 1 if (b - a) % 3 == 1 else -1
    return np.array([first, middle, atan2(turn * rest[a, b], rest[a, a])])
