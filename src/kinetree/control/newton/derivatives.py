"""Derivatives of steps, costs and constraints at the present knots, of first and second order."""

from kinetree.codegen.procedures import lanes, procedure, sqrt, view
from kinetree.control.newton.calls import call
from kinetree.control.newton.contact_derivatives import (
    add_feet_derivatives,
    find_contact_derivatives,
)
from kinetree.control.newton.records import Batch, WorkerArrays
from kinetree.control.newton.values import copy, restore, take_steps

SWEEPS = 30  # of Jacobi's method, at most


@procedure
def turn(A: "float[:]", V: "float[:]", n: int, p: int, r: int):
    """Jacobi rotation that makes ``A[p, r]`` zero; eigenvectors ``V`` rotate with it."""
    theta = 0.5 * (A[r * n + r] - A[p * n + p]) / A[p * n + r]
    sign = 1.0 if theta >= 0.0 else -1.0
    t = sign / (abs(theta) + sqrt(theta * theta + 1.0))
    c = 1.0 / sqrt(t * t + 1.0)
    s = t * c
    for k in range(n):
        x = A[k * n + p]
        y = A[k * n + r]
        A[k * n + p] = c * x - s * y
        A[k * n + r] = s * x + c * y
    for k in range(n):
        x = A[p * n + k]
        y = A[r * n + k]
        A[p * n + k] = c * x - s * y
        A[r * n + k] = s * x + c * y
        x = V[k * n + p]
        y = V[k * n + r]
        V[k * n + p] = c * x - s * y
        V[k * n + r] = s * x + c * y


@procedure
def add_convex(H: "float[:]", C: "float[:]", n: int, room: "float[:]"):
    """Add the positive semidefinite part of ``C`` to ``H``."""
    A = view(room, 0)
    V = view(room, n * n)
    total = 0.0
    for i in range(n):
        for j in range(n):
            A[i * n + j] = 0.5 * (C[i * n + j] + C[j * n + i])
            V[i * n + j] = 1.0 if i == j else 0.0
            total += A[i * n + j] * A[i * n + j]
    if not total < 1e300:  # not finite
        return
    for _ in range(SWEEPS):
        off = 0.0
        for p in range(n):
            for r in range(p + 1, n):
                off += A[p * n + r] * A[p * n + r]
        if off <= 1e-30 * total:
            break
        for p in range(n):
            for r in range(p + 1, n):
                if A[p * n + r] != 0.0:
                    turn(A, V, n, p, r)
    least = 0.0
    for k in range(n):
        least = min(least, A[k * n + k])
    for i in range(n):
        for j in range(n):
            x = 0.5 * (C[i * n + j] + C[j * n + i])
            if least < 0.0:
                x = 0.0
                for k in range(n):
                    x += V[i * n + k] * max(A[k * n + k], 0.0) * V[j * n + k]
            H[i * n + j] += x


@procedure
def simple_steps(b: Batch, w: WorkerArrays, first: int, end: int):
    """Derivatives of semi-implicit Euler steps from those of accelerations."""
    nv, n, m, size, h = b.nv, b.n, b.m, b.size, b.h
    for e in lanes(end - first):
        k = first + e
        A_q = view(w.A_q, k * nv * nv)
        A_v = view(w.A_v, k * nv * nv)
        A_f = view(w.A_f, k * nv * nv)
        f_z = view(w.f_z, k * nv * size)
        for i in range(nv):
            row = view(w.F, (k * n + nv + i) * size)
            for c in range(nv):
                row[m + c] = h * A_q[i * nv + c]
                row[m + nv + c] = h * A_v[i * nv + c]
            if w.derivatives.forced == 0:
                for c in range(m):
                    row[c] = h * A_f[i * nv + b.columns[c]]
            else:
                for c in range(m):
                    row[c] = 0.0
                for j in range(nv):
                    x = h * A_f[i * nv + j]
                    for c in range(size):
                        row[c] += x * f_z[j * size + c]
            row[m + nv + i] += 1.0


@procedure
def choose_row(b: Batch, w: WorkerArrays, row: int):
    """Set the weights whose gradient is one row of the step derivatives."""
    nq, nv, wide = b.nq, b.nv, b.nq + b.nv
    for k, c in lanes(b.steps, wide):
        x = 0.0
        if row >= nv:
            x = 1.0 if c == nq + row - nv else 0.0
        elif b.flat == 1:
            x = 1.0 if c == row else 0.0
        elif c < nq:
            x = w.back[(k * nv + row) * nq + c]
        w.weights[k * wide + c] = x


@procedure
def take_row(b: Batch, w: WorkerArrays, row: int):
    """Store a computed row of the step derivatives."""
    for k, c in lanes(b.steps, b.size):
        w.F[(k * b.n + row) * b.size + c] = w.row[k * b.size + c]


@procedure
def take_and_choose(b: Batch, w: WorkerArrays, first: int, end: int):
    """Store row ``first - 1`` of the step derivatives, and set weights for row ``first``."""
    if first > 0:
        take_row(b, w, first - 1)
    if first < b.n:
        choose_row(b, w, first)


@procedure
def steps_by_rows(b: Batch, w: WorkerArrays):
    """Derivatives of steps by one reverse pass per row."""
    if b.flat == 0:
        call(w.derivatives.back, 0, b.steps)
    for row in range(b.n):
        take_and_choose(b, w, row, row + 1)
        call(w.derivatives.rows, 0, b.steps)
    take_and_choose(b, w, b.n, b.n + 1)


@procedure
def clear_costs(b: Batch, w: WorkerArrays):
    """Zero the cost derivatives where no kernel writes them."""
    first = b.steps if w.derivatives.costly == 1 else 0
    end = b.steps if w.derivatives.ending == 1 else b.steps + 1
    for i in lanes((end - first) * b.size):
        w.g[first * b.size + i] = 0.0
    for i in lanes((end - first) * b.size * b.size):
        w.H[first * b.size * b.size + i] = 0.0


@procedure
def add_curves(b: Batch, w: WorkerArrays, first: int, end: int):
    """Add convexified second derivatives of costs that are not half squares."""
    size = b.size
    if w.derivatives.curved == 1:
        for e in lanes(min(end, b.steps) - first):
            at = (first + e) * size * size
            add_convex(view(w.H, at), view(w.curve, at), size, w.scratch)
    if w.derivatives.end_curved == 1 and end > b.steps:
        for _ in lanes(1):
            add_convex(view(w.H, b.steps * size * size), w.end_curve, size, w.scratch)


@procedure
def derive(b: Batch, w: WorkerArrays):
    """All first derivatives, and Gauss-Newton second derivatives of costs."""
    s, ends = w.derivatives, b.steps + 1
    if b.contacts.count > 0:
        if w.search.fresh == 0:
            restore(b, w)
            take_steps(b, w, 0, b.steps)
            call(w.stance.tried.terms, b.steps, 1)
            copy(w.now.qdd, w.tried.qdd, b.steps * b.nv)
        clear_costs(b, w)
    if s.costly == 1:
        call(s.knots, 0, b.steps)
    if s.ending == 1:
        call(s.end, 0, 1)
    add_curves(b, w, 0, ends)
    if b.outside == 1:
        return
    if b.contacts.count > 0:
        add_feet_derivatives(b, w, 0, ends)
        find_contact_derivatives(b, w)
    elif s.simple == 1:
        if s.forced == 1:
            call(s.force, 0, b.steps)
        call(s.accelerate, 0, b.steps)
        simple_steps(b, w, 0, b.steps)
    elif s.by_rows == 1:
        steps_by_rows(b, w)


@procedure
def weigh_curves(b: Batch, w: WorkerArrays, first: int, end: int):
    """Weights of step ends (in coordinates) and path constraints for second derivatives."""
    nq, nv, n, nw = b.nq, b.nv, b.n, w.derivatives.weights_of_knot
    for e in lanes(end - first):
        k = first + e
        at = k * nw
        p = view(w.costates, k * n)
        for c in range(nq):
            x = 0.0
            if b.flat == 1:
                x = p[c]
            else:
                for r in range(nv):
                    x += w.back[(k * nv + r) * nq + c] * p[r]
            w.weights[at + c] = x
            if b.flat == 0:
                w.row[k * nq + c] = x
        for c in range(nv):
            w.weights[at + nq + c] = p[nv + c]
        for c in range(b.nc):
            w.weights[at + nq + nv + c] = w.z[k * b.ni + b.nb + c]


@procedure
def bend(b: Batch, w: WorkerArrays, first: int, end: int):
    """Subtract the curvature of the tangent-space chart at step ends."""
    nv, n, size = b.nv, b.n, b.size
    for e in lanes(end - first):
        k = first + e
        F = view(w.F, k * n * size)
        B = view(w.bending, k * nv * nv)
        H = view(w.exact, k * size * size)
        for i in range(nv):
            for j in range(nv):
                for r in range(size):
                    x = B[i * nv + j] * F[i * size + r]
                    if x != 0.0:
                        for c in range(size):
                            H[r * size + c] -= x * F[j * size + c]


@procedure
def find_curves(b: Batch, w: WorkerArrays):
    """Exact second derivatives of the Lagrangian."""
    if b.outside == 0:
        if b.flat == 0:
            call(w.derivatives.back, 0, b.steps)
        weigh_curves(b, w, 0, b.steps)
        call(w.derivatives.curve, 0, b.steps)
        if b.flat == 0:
            call(w.derivatives.bending, 0, b.steps)
            bend(b, w, 0, b.steps)
    if w.derivatives.ending == 1:
        call(w.derivatives.end_curve, 0, 1)
