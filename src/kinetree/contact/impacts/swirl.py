"""Sliding whose direction turns while an impact lasts; see ``path``.

With ``ζ_t = s (cos φ, sin φ)`` and ``dp = s dτ``, all of

    dφ/dτ = d⊥·r,   d(ln s)/dτ = d·r,   dp/dτ = s,   dλ_t/dτ = -μ s d,   r = W_tn - μ W_tt d

is smooth, also where sliding slows down to nothing. Steps are those of Dormand and Prince.
"""

import math
from dataclasses import replace

import numpy as np

__all__ = ["swirl"]

_A = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_E = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_TOLERANCE = 1e-11
_GONE = math.log(1e-14)  # of the speed at the start: sliding has stopped


def swirl(course, goal):
    """The course up to the goal, or to where sliding stops; and whether it got to the goal."""
    path = _Path(course)
    y, h = path.start, 0.1 / np.linalg.norm(course.W) / (1 + course.friction)
    while True:
        after, error = path.step(y, h)
        if error > 1:
            h *= max(0.2, 0.9 * error**-0.2)
            continue
        if goal.distance(path.course(after)) >= 0:
            return path.course(path.step(y, _located(path, goal, y, h))[0]), True
        if after[1] - path.start[1] < _GONE:
            return _stopped(path.course(after)), False
        y, h = after, h * min(5.0, 0.9 * max(error, 1e-8) ** -0.2)


class _Path:
    """The differential equation: states ``φ, ln s, p, λ_t, work``. Plain floats: few, and quick."""

    def __init__(self, course):
        self.given, self.mu, self.W = course, course.friction, course.W.tolist()
        self.zeta_n = float(course.zeta[0])
        s = float(np.hypot(*course.zeta[1:]))
        angle = math.atan2(course.zeta[2], course.zeta[1])
        self.start = [angle, math.log(s), 0.0, 0.0, 0.0, float(course.work)]
        size = s / float(np.linalg.norm(course.W))  # of impulses
        self.size = [1.0, 1.0, size, size, size, size * course.scale]

    def rates(self, y):
        (nn, n1, n2), (_, a, b), (_, _, c) = self.W
        d1, d2, s, mu = math.cos(y[0]), math.sin(y[0]), math.exp(y[1]), self.mu
        r1, r2 = n1 - mu * (a * d1 + b * d2), n2 - mu * (b * d1 + c * d2)
        zeta_n = self.zeta_n + nn * y[2] + n1 * y[3] + n2 * y[4]
        turn, slow = d1 * r2 - d2 * r1, d1 * r1 + d2 * r2
        return turn, slow, s, -mu * s * d1, -mu * s * d2, zeta_n * s

    def step(self, y, h):
        """State after ``h``, and the error relative to what is tolerated."""
        k, state = [], y
        for a in _A:
            state = _moved(y, h, a, k)
            k.append(self.rates(state))
        error = _moved([0.0] * 6, h, _E, k)
        least = [0.0, 0.0, *(abs(x) for x in y[2:])]
        sizes = (max(a, b) for a, b in zip(self.size, least, strict=True))
        return state, max(abs(e) / (_TOLERANCE * z) for e, z in zip(error, sizes, strict=True))

    def course(self, y):
        """The course at a state."""
        impulse = np.array(y[2:5])
        zeta = self.given.zeta + self.given.W @ impulse
        total = self.given.impulse + impulse
        return replace(self.given, zeta=zeta, impulse=total, work=float(y[5]))


def _moved(y, h, weights, k):
    """``y + h Σ w k``."""
    if not weights:
        return y
    return [
        x + h * sum(w * rate for w, rate in zip(weights, rates, strict=True))
        for x, *rates in zip(y, *k, strict=True)
    ]


def _located(path, goal, y, h):
    """Length of the step that ends at the goal: false position, after Illinois."""

    def distance(length):
        return goal.distance(path.course(path.step(y, length)[0]))

    a, f_a, b, f_b, side = 0.0, distance(0.0), h, distance(h), 0
    for _ in range(100):
        if f_b == 0 or b - a <= 4 * np.spacing(h):
            break
        middle = a - f_a * (b - a) / (f_b - f_a)
        if not a < middle < b:
            middle = (a + b) / 2
        value = distance(middle)
        if value < 0:
            a, f_a, f_b, side = middle, value, f_b / 2 if side < 0 else f_b, -1
        else:
            b, f_b, f_a, side = middle, value, f_a / 2 if side > 0 else f_a, 1
    return b


def _stopped(course):
    """The course with sliding exactly zero: the last of it costs an impulse in the noise."""
    rest = np.linalg.lstsq(course.W[1:, 1:], -course.zeta[1:], rcond=1e-14)[0]
    impulse = np.array([0, *rest])
    zeta = course.zeta + course.W @ impulse
    return replace(
        course,
        zeta=np.array([zeta[0], 0, 0]),
        impulse=course.impulse + impulse,
        arrested=True,
    )
