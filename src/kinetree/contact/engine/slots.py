"""A step with contact in a fixed amount of memory: for GPUs, where every thread has a world.

The scheme and the laws are those of ``stepping.step``, for trees that touch what is fixed to the
base. Of many potential contacts, ``slots`` at most enter a step, the closest ones, by loops over
tables in place of unrolled code. All spatial quantities are along the axes of the world, about the
origin of the tree that they belong to. Rows of a contact are stored along the chain of the
variables that move its body, which begins alike for all bodies of a tree.
"""

from kinetree.codegen.procedures import cross, dot, local, procedure, sqrt, vector, view
from kinetree.contact.engine.mechanism import resistance
from kinetree.contact.settings import MOST_SLOTS

SMOOTH = 3.0  # a contact hits beyond so many times the speed that half a step's rate gives it
NEAR = 0.2  # [m/s] added to the largest speed, for the distance out to which contacts are found
PLAIN = 8  # sweeps at the end that do not mix
FARTHEST = 5.0  # how far ahead of the last change mixtures may lie
ALIKE = 1.01  # growth of the squared change up to which they may lie ahead
WHOLE = 10  # sweeps in which each contact is solved whole
RELAXED = 0.8  # part of the change that later sweeps take
PROXIMAL = 1e-4  # weight of staying in Newton's steps
STEPS = 20  # of Newton's method, at most
NEARLY = 100.0  # times the tolerance, where no more rounds follow them
SAME = 1e-10  # [m²] squared distance within which points of a pair are one
LEAST = 1e-6  # weight of staying, for forces that move nothing
FOUND = 9
"""Numbers that a step reports: errors of velocity, cone and power, contact work, loss, work of the
joints, contacts without a slot, sweeps, and slots in use."""


@procedure
def world_inertias(
    bodies: int, pose: "float[:, 12]", inertia: "float[:, 10]", I: "float[:, 10]"
) -> None:
    """Inertias ``(m, h, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz)`` along the axes of the world."""
    for i in range(1, bodies):
        R = view(pose, i, 3, 3)
        p = vector(pose[i, 9], pose[i, 10], pose[i, 11])
        b = inertia[i]
        m = b[0]
        h = R @ b[1:4]
        T = local("float", 3, 3)
        for r in range(3):
            T[r, 0] = R[r, 0] * b[4] + R[r, 1] * b[5] + R[r, 2] * b[7]
            T[r, 1] = R[r, 0] * b[5] + R[r, 1] * b[6] + R[r, 2] * b[8]
            T[r, 2] = R[r, 0] * b[7] + R[r, 1] * b[8] + R[r, 2] * b[9]
        s = h + 0.5 * m * p
        both = 2.0 * dot(s, p)
        out = I[i]
        out[0] = m
        out[1:4] = h + m * p
        out[4] = dot(T[0], R[0]) + both - 2.0 * s[0] * p[0]
        out[5] = dot(T[1], R[0]) - s[0] * p[1] - s[1] * p[0]
        out[6] = dot(T[1], R[1]) + both - 2.0 * s[1] * p[1]
        out[7] = dot(T[2], R[0]) - s[0] * p[2] - s[2] * p[0]
        out[8] = dot(T[2], R[1]) - s[1] * p[2] - s[2] * p[1]
        out[9] = dot(T[2], R[2]) + both - 2.0 * s[2] * p[2]


@procedure(inline=True)
def momentum(I: "float[10]", x: "float[6]", out: "float[6]") -> None:
    """``I x``, the force that goes with an acceleration or velocity."""
    w = x[:3]
    u = x[3:]
    h = I[1:4]
    out[0] = I[4] * w[0] + I[5] * w[1] + I[7] * w[2] + h[1] * u[2] - h[2] * u[1]
    out[1] = I[5] * w[0] + I[6] * w[1] + I[8] * w[2] + h[2] * u[0] - h[0] * u[2]
    out[2] = I[7] * w[0] + I[8] * w[1] + I[9] * w[2] + h[0] * u[1] - h[1] * u[0]
    out[3:] = I[0] * u - cross(h, w)


@procedure
def motion(
    bodies: int, parent: "int[:]", first: "int[:]", count: "int[:]", flies: "int[:]",
    inertia: "float[:, 10]", S: "float[:, 6]", v: "float[:]", twist: "float[:, 6]",
    rate: "float[:, 6]",
) -> None:  # fmt: skip
    """Velocities of bodies, and accelerations in straight motion — RBDA Table 5.1."""
    twist[0] = 0.0
    rate[0] = 0.0
    for i in range(1, bodies):
        up = parent[i]
        own = local("float", 6)
        more = local("float", 6)
        own[:] = 0.0
        more[:] = 0.0
        for n in range(first[i], first[i] + count[i]):
            own += S[n] * v[n]
        if flies[i] > 0:  # its variables are along axes that turn with it
            n = first[i]
            m = inertia[i, 0]
            c = inertia[i, 1:4] * (1.0 / m if m > 0.0 else 0.0)
            w = vector(v[n], v[n + 1], v[n + 2])
            turn = cross(w, vector(v[n + 3], v[n + 4], v[n + 5]) + cross(w, c))
            more[:] = -(S[n + 3] * turn[0] + S[n + 4] * turn[1] + S[n + 5] * turn[2])
        twist[i] = twist[up] + own
        t = twist[i]
        rate[i] = rate[up] + more
        rate[i, :3] += cross(t[:3], own[:3])
        rate[i, 3:] += cross(t[:3], own[3:]) + cross(t[3:], own[:3])


@procedure
def bias_forces(
    bodies: int, parent: "int[:]", first: "int[:]", count: "int[:]", gravity: "float[3]",
    I: "float[:, 10]", S: "float[:, 6]", twist: "float[:, 6]", rate: "float[:, 6]",
    f: "float[:, 6]", out: "float[:]",
) -> None:  # fmt: skip
    """Joint forces of the accelerations ``rate`` and of gravity — RBDA Table 5.1."""
    a, p = local("float", 2, 6)
    for i in range(1, bodies):
        t = twist[i]
        a[:3] = rate[i, :3]
        a[3:] = rate[i, 3:] - gravity
        momentum(I[i], t, p)
        momentum(I[i], a, f[i])
        f[i, :3] += cross(t[:3], p[:3]) + cross(t[3:], p[3:])
        f[i, 3:] += cross(t[:3], p[3:])
    for k in range(1, bodies):
        i = bodies - k
        for n in range(first[i], first[i] + count[i]):
            out[n] = dot(S[n], f[i])
        if parent[i] > 0:
            f[parent[i]] += f[i]


@procedure
def factored(
    bodies: int, nv: int, parent: "int[:]", first: "int[:]", count: "int[:]", up: "int[:]",
    I: "float[:, 10]", S: "float[:, 6]", armature: "float[:]", K: "float[:]", D: "float[:]",
    h: float, alpha: float, lead: "float[:]", lag: "float[:]", L: "float[:]",
) -> None:  # fmt: skip
    """``Lᵀ D L = H + h lag``, with ``D`` on the diagonal — RBDA Tables 6.2, 6.3.

    ``I`` becomes the inertias of composite bodies.
    """
    F = local("float", 6)
    for k in range(1, bodies):
        i = bodies - k
        for n in range(first[i], first[i] + count[i]):
            momentum(I[i], S[n], F)
            j = n
            while j >= 0:
                L[n * nv + j] = dot(F, S[j])
                j = up[j]
            own = L[n * nv + n] + armature[n]
            lead[n] = 0.0
            lag[n] = 0.0
            if K[n] > 0.0 or D[n] > 0.0:
                lead[n], lag[n] = resistance(K[n], D[n], own, h, alpha)
            L[n * nv + n] = own + h * lag[n]
        if parent[i] > 0:
            I[parent[i]] += I[i]
    for m in range(nv):
        k = nv - 1 - m
        i = up[k]
        while i >= 0:
            a = L[k * nv + i] / L[k * nv + k]
            j = i
            while j >= 0:
                L[i * nv + j] -= a * L[k * nv + j]
                j = up[j]
            L[k * nv + i] = a
            i = up[i]


@procedure
def half(nv: int, up: "int[:]", L: "float[:]", x: "float[:]") -> None:
    """``x`` becomes ``L⁻ᵀ x``."""
    for m in range(nv):
        k = nv - 1 - m
        y = x[k]
        i = up[k]
        while i >= 0:
            x[i] -= L[k * nv + i] * y
            i = up[i]


@procedure
def whole(nv: int, up: "int[:]", L: "float[:]", x: "float[:]") -> None:
    """``x`` becomes ``L⁻¹ D⁻¹ x``."""
    for k in range(nv):
        y = x[k] / L[k * nv + k]
        i = up[k]
        while i >= 0:
            y -= L[k * nv + i] * x[i]
            i = up[i]
        x[k] = y


@procedure
def chosen(
    contacts: int, slots: int, h: float, body: "int[:]", group: "int[:]", gap: "float[:]",
    point: "float[:, 3]", axes: "float[:, 9]", twist: "float[:, 6]", ids: "int[:]",
    near: "float[:]",
) -> "(int, int)":  # fmt: skip
    """How many contacts have slots, and how many have none; ``ids`` are those that have.

    They are those whose gaps can close within the step, the closest ones if there are too many.
    Points of a pair that are one count once.
    """
    fastest = 0.0
    for c in range(contacts):
        t = twist[body[c]]
        u = t[3:] + cross(t[:3], point[c])
        fastest = max(fastest, dot(u, u))
    reach = h * (NEAR + sqrt(fastest))
    used = 0
    left = 0
    for c in range(contacts):
        if gap[c] > 2.0 * reach:
            continue
        t = twist[body[c]]
        u = t[3:] + cross(t[:3], point[c])
        ahead = gap[c] + h * min(dot(axes[c, :3], u), 0.0)
        if ahead > reach:
            continue
        again = False
        for s in range(used):
            if group[ids[s]] == group[c]:
                e = point[c] - point[ids[s]]
                again = again or dot(e, e) < SAME
        if again:
            continue
        if used < slots:
            ids[used] = c
            near[used] = ahead
            used += 1
            continue
        left += 1
        worst = 0
        for s in range(1, used):
            if near[s] > near[worst]:
                worst = s
        if ahead < near[worst]:
            ids[worst] = c
            near[worst] = ahead
    return used, left


@procedure
def chain_rows(
    nv: int, n: int, chain: "int[:]", point: "float[:]", axes: "float[:]", S: "float[:, 6]",
    v: "float[:]", L: "float[:]", deep: int, Y: "float[:]", w: "float[:]",
) -> None:  # fmt: skip
    """``w = G v`` and ``Y = L⁻ᵀ Gᵀ`` of a contact, along the chain of its body."""
    p = vector(point[0], point[1], point[2])
    A = view(axes, 0, 3, 3)
    total = local("float", 3)
    total[:] = 0.0
    for d in range(n):
        k = chain[d]
        g = A @ (S[k, 3:] + cross(S[k, :3], p))
        total += g * v[k]
        for r in range(3):
            Y[r * deep + d] = g[r]
    w[:3] = total
    for m in range(n):
        d = n - 1 - m
        k = chain[d]
        x = Y[d]
        y = Y[deep + d]
        z = Y[2 * deep + d]
        for e in range(d):
            l = L[k * nv + chain[e]]
            Y[e] -= l * x
            Y[deep + e] -= l * y
            Y[2 * deep + e] -= l * z


@procedure
def mobility(
    nv: int, used: int, deep: int, bodies: int, ids: "int[:]", body: "int[:]", common: "int[:]",
    chain: "int[:]", L: "float[:]", Y: "float[:]", A: "float[:]",
) -> None:  # fmt: skip
    """Blocks of ``A = Y D⁻¹ Yᵀ``, row by row to the diagonal."""
    B = local("float", 3, 3)
    for s in range(used):
        i = body[ids[s]]
        for t in range(s + 1):
            j = body[ids[t]]
            B[:] = 0.0
            for d in range(common[i * bodies + j]):
                k = chain[i * deep + d]
                a = 1.0 / L[k * nv + k]
                y = view(Y, 3 * s * deep + d)
                z = view(Y, 3 * t * deep + d)
                u = vector(y[0], y[deep], y[2 * deep]) * a
                x = vector(z[0], z[deep], z[2 * deep])
                for r in range(3):
                    B[r] += u[r] * x
            at = 9 * (s * (s + 1) // 2 + t)
            for r in range(3):
                for q in range(3):
                    A[at + 3 * r + q] = B[r, q]


@procedure(inline=True)
def added(A: "float[:]", s: int, t: int, x: "float[3]", w: "float[:]") -> None:
    """``w_s += A_st x``, of the blocks below the diagonal."""
    if s >= t:
        B = view(A, 9 * (s * (s + 1) // 2 + t), 3, 3)
        for r in range(3):
            w[3 * s + r] += dot(B[r], x)
    else:
        C = view(A, 9 * (t * (t + 1) // 2 + s), 3, 3)
        for r in range(3):
            w[3 * s + r] += C[0, r] * x[0] + C[1, r] * x[1] + C[2, r] * x[2]


@procedure
def turned(A: "float[3, 3]", free: "float[3]", mu: float, c: "float[2]") -> None:
    """The direction of friction after a Newton step of its angle: ``traced.Sweeps``."""
    p = vector(-c[1], c[0])
    g = vector(1.0, mu * c[0], mu * c[1])
    Ag = A @ g
    Ap = mu * (A[:, 1:] @ p)
    a = Ag[0]
    d = free[0]
    fp = p[0] * free[1] + p[1] * free[2]
    Agp = p[0] * Ag[1] + p[1] * Ag[2]
    stiff = -d * (p[0] * Ap[1] + p[1] * Ap[2])
    slip = d * (c[0] * Ag[1] + c[1] * Ag[2]) - a * (c[0] * free[1] + c[1] * free[2])
    across = a * fp - d * Agp
    rate = stiff + slip + Ap[0] * fp
    if not rate > stiff / 4.0:
        rate = stiff / 4.0 + abs(slip)
    pressed = 2.0 * across * Ap[0] / (a if a > 0.0 else 1.0)
    rate = max(rate, abs(across), pressed)
    angle = across / rate if rate > 0.0 else 0.0
    part = 1.0 / sqrt(1.0 + angle * angle)
    x = (c[0] - angle * p[0]) * part
    y = (c[1] - angle * p[1]) * part
    c[0] = x
    c[1] = y


@procedure
def solved(A: "float[3, 3]", mu: float, w: "float[:]", lam: "float[:]", new: "float[3]") -> None:
    """The impulse of a contact that obeys its laws if no other one changes: ``traced.Sweeps``."""
    x = vector(lam[0], lam[1], lam[2])
    v = vector(w[0], w[1], w[2])
    free = v - A @ x
    new[:] = 0.0
    if free[0] >= 0.0:
        return
    size = (A[0, 0] + A[1, 1] + A[2, 2]) / 3.0
    a = A[0, 0] + LEAST * size
    b = A[1, 1] + LEAST * size
    e = A[2, 2] + LEAST * size
    C = vector(b * e - A[2, 1] * A[2, 1], A[2, 1] * A[2, 0] - A[1, 0] * e,
               A[1, 0] * A[2, 1] - b * A[2, 0])  # fmt: skip
    one = 1.0 / (a * C[0] + A[1, 0] * C[1] + A[2, 0] * C[2])
    f = a * e - A[2, 0] * A[2, 0]
    g = A[1, 0] * A[2, 0] - a * A[2, 1]
    k = a * b - A[1, 0] * A[1, 0]
    stick = local("float", 3)
    stick[0] = x[0] - one * (C[0] * v[0] + C[1] * v[1] + C[2] * v[2])
    stick[1] = x[1] - one * (C[1] * v[0] + f * v[1] + g * v[2])
    stick[2] = x[2] - one * (C[2] * v[0] + g * v[1] + k * v[2])
    most = mu * stick[0]
    if stick[0] > 0.0 and stick[1] * stick[1] + stick[2] * stick[2] <= most * most:
        new[:] = stick
        return
    c = local("float", 2)
    reach = sqrt(x[1] * x[1] + x[2] * x[2])
    lifted = (A[0, 0] - LEAST * size) * reach + mu * (A[0, 1] * x[1] + A[0, 2] * x[2])
    if lifted > 0.0 and x[1] * v[1] + x[2] * v[2] <= 0.0:
        c[:] = x[1:]
    else:
        c[:] = stick[1:]
        reach = sqrt(c[0] * c[0] + c[1] * c[1])
    c *= 1.0 / reach if reach > 0.0 else 1.0
    turned(A, free, mu, c)
    along = A[0, 0] + mu * (A[0, 1] * c[0] + A[0, 2] * c[1])
    n = max(-free[0] / along, 0.0) if along > 0.0 else 0.0
    new[:] = vector(n, mu * n * c[0], mu * n * c[1])


@procedure
def pushed(A: "float[3, 3]", mu: float, w: "float[:]", lam: "float[:]", new: "float[3]") -> None:
    """The impulse after a step of the normal force, and one of friction for it."""
    x = max(lam[0] - w[0] / A[0, 0], 0.0) if A[0, 0] > 0.0 else 0.0
    d = x - lam[0]
    e = (A[1, 1] - A[2, 2]) / 2.0
    b = (A[1, 1] + A[2, 2]) / 2.0 + sqrt(e * e + A[1, 2] * A[1, 2])
    y = lam[1]
    z = lam[2]
    if b > 0.0:
        y -= (w[1] + A[1, 0] * d) / b
        z -= (w[2] + A[2, 0] * d) / b
    t = sqrt(y * y + z * z)
    part = mu * x / t if t > mu * x else 1.0
    new[:] = vector(x, part * y, part * z)


@procedure
def missed(D: "float[3, 3]", mu: float, w: "float[:]", lam: "float[:]") -> float:
    """By how much a contact misses its laws [m/s]: the functions of Alart and Curnier."""
    a = (D[0, 0] + D[1, 1] + D[2, 2]) / 3.0
    x = a * view(lam, 0, 3)
    y = x - view(w, 0, 3)
    n = max(y[0], 0.0)
    t = sqrt(y[1] * y[1] + y[2] * y[2])
    part = 1.0
    if t > mu * n:
        part = mu * n / t
    return max(abs(x[0] - n), abs(x[1] - part * y[1]), abs(x[2] - part * y[2]))


@procedure
def swept(
    used: int, sweeps: int, enough: float, A: "float[:]", mu: "float[:]", w: "float[:]",
    lam: "float[:]", last: "float[:, 4]",
) -> "(int, float)":  # fmt: skip
    """Sweeps of Gauss and Seidel until no contact misses its laws by more than ``enough``.

    How many, and the error [m/s]. Contacts that obey are passed over. ``w`` are the velocities
    that go with ``lam``, before and after. Each sweep starts from a mixture of the last two
    (Anderson 1965), ahead of both only where changes do not grow; mixtures are linear, and so are
    velocities. Contacts that are solved whole, one after the other, may run in cycles, where
    several slide: after ``WHOLE`` sweeps normal forces and friction take a step each.
    """
    new = local("float", 3)
    D = local("float", 3, 3)
    error = 0.0
    before = 0.0
    ahead = 1.0
    for n in range(sweeps + 1):
        error = 0.0
        for k in range(3 * used):
            last[k, 0] = lam[k]
        for s in range(used):
            own = view(lam, 3 * s)
            D[:] = view(A, 9 * (s * (s + 1) // 2 + s), 3, 3)
            off = missed(D, mu[s], view(w, 3 * s), own)
            error = max(error, off)
            if n == sweeps or off <= enough:
                continue
            if n < WHOLE:
                solved(D, mu[s], view(w, 3 * s), own, new)
            else:
                pushed(D, mu[s], view(w, 3 * s), own, new)
            x = (new - view(own, 0, 3)) * (1.0 if n < WHOLE else RELAXED)
            for r in range(3):
                own[r] += x[r]
            for t in range(used):
                added(A, t, s, x, w)
        if error <= enough or n == sweeps:
            return n, error
        size = 0.0
        along = 0.0
        across = 0.0
        for k in range(3 * used):
            f = lam[k] - last[k, 0]
            change = f - last[k, 1]
            size += f * f
            along += f * change
            across += change * change
            last[k, 1] = f
        part = 0.0
        if n > 0 and n < sweeps - PLAIN and across > 0.0:
            part = along / across
            if part < 0.0 or part > 1.0:  # changes are alike: ahead
                alike = size <= ALIKE * before
                ahead = min(2.0 * ahead, FARTHEST) if alike else 1.0
                part = -ahead if part > 1.0 else max(part, -ahead)
                part = part if alike else 0.0
        before = size
        for k in range(3 * used):
            x1 = lam[k]
            v1 = w[k]
            lam[k] -= part * (x1 - last[k, 2])
            w[k] -= part * (v1 - last[k, 3])
            last[k, 2] = x1
            last[k, 3] = v1
    return sweeps, error


@procedure
def laws(
    used: int, A: "float[:]", mu: "float[:]", w: "float[:]", lam: "float[:]", J: "float[:]"
) -> float:  # fmt: skip
    """By how much contacts miss their laws at most [m/s]: see ``missed``.

    Rows of ``J`` are the derivatives with respect to the impulses, then the error, negated.
    """
    most = 0.0
    dP, B = local("float", 2, 3, 3)
    m = 3 * used
    for s in range(used):
        own = view(A, 9 * (s * (s + 1) // 2 + s), 3, 3)
        a = (own[0, 0] + own[1, 1] + own[2, 2]) / 3.0
        x = a * view(lam, 3 * s, 3)
        y = x - view(w, 3 * s, 3)
        n = max(y[0], 0.0)
        t = sqrt(y[1] * y[1] + y[2] * y[2])
        dP[:] = 0.0
        part = 1.0
        if y[0] > 0.0:
            dP[0, 0] = 1.0
        if t <= mu[s] * n:
            dP[1, 1] = 1.0
            dP[2, 2] = 1.0
        else:
            part = mu[s] * n / t
            c = y[1] / t
            e = y[2] / t
            dP[1, 1] = part * e * e
            dP[1, 2] = -part * c * e
            dP[2, 1] = -part * c * e
            dP[2, 2] = part * c * c
            dP[1, 0] = mu[s] * c if y[0] > 0.0 else 0.0
            dP[2, 0] = mu[s] * e if y[0] > 0.0 else 0.0
        off = vector(x[0] - n, x[1] - part * y[1], x[2] - part * y[2])
        most = max(most, abs(off[0]), abs(off[1]), abs(off[2]))
        for t2 in range(used):
            i = max(s, t2)
            j = min(s, t2)
            C = view(A, 9 * (i * (i + 1) // 2 + j), 3, 3)
            for r in range(3):
                for q in range(3):
                    B[r, q] = C[r, q] if s >= t2 else C[q, r]
            if s == t2:
                for r in range(3):
                    B[r, r] -= a
            for r in range(3):
                for q in range(3):
                    at = (3 * s + r) * (m + 1) + 3 * t2 + q
                    J[at] = dP[r, 0] * B[0, q] + dP[r, 1] * B[1, q] + dP[r, 2] * B[2, q]
                    if s == t2 and r == q:
                        J[at] += (1.0 + PROXIMAL) * a
        for r in range(3):
            J[(3 * s + r) * (m + 1) + m] = -off[r]
    return most


@procedure
def eliminated(m: int, J: "float[:]") -> None:
    """The last column of ``J``, m by m + 1, becomes the solution; by Gauss, with pivots."""
    for k in range(m):
        best = k
        for i in range(k + 1, m):
            if abs(J[i * (m + 1) + k]) > abs(J[best * (m + 1) + k]):
                best = i
        if best != k:
            for j in range(k, m + 1):
                x = J[k * (m + 1) + j]
                J[k * (m + 1) + j] = J[best * (m + 1) + j]
                J[best * (m + 1) + j] = x
        own = J[k * (m + 1) + k]
        one = 1.0 / own if own != 0.0 else 0.0
        for i in range(k + 1, m):
            x = J[i * (m + 1) + k] * one
            if x != 0.0:
                for j in range(k, m + 1):
                    J[i * (m + 1) + j] -= x * J[k * (m + 1) + j]
    for d in range(m):
        k = m - 1 - d
        x = J[k * (m + 1) + m]
        for j in range(k + 1, m):
            x -= J[k * (m + 1) + j] * J[j * (m + 1) + m]
        own = J[k * (m + 1) + k]
        J[k * (m + 1) + m] = x / own if own != 0.0 else 0.0


@procedure
def finished(
    used: int, steps: int, enough: float, A: "float[:]", mu: "float[:]", w: "float[:]",
    lam: "float[:]", last: "float[:, 4]", J: "float[:]",
) -> float:  # fmt: skip
    """The error [m/s] after the best of some steps of Newton from where sweeps end."""
    m = 3 * used
    least = 0.0
    x = local("float", 3)
    for n in range(steps + 1):
        error = laws(used, A, mu, w, lam, J)
        if n == 0 or error < least:
            least = error
            for k in range(m):
                last[k, 0] = lam[k]
                last[k, 1] = w[k]
        if n == steps or error <= enough:
            break
        eliminated(m, J)
        for s in range(used):
            for r in range(3):
                x[r] = J[(3 * s + r) * (m + 1) + m]
                lam[3 * s + r] += x[r]
            for t in range(used):
                added(A, t, s, x, w)
    for k in range(m):
        lam[k] = last[k, 0]
        w[k] = last[k, 1]
    return least


@procedure
def slot_step(
    bodies: int, nv: int, contacts: int, slots: int, deep: int, sweeps: int, passes: int,
    again: int, parent: "int[:]", first: "int[:]", count: "int[:]", flies: "int[:]", up: "int[:]",
    moves: "int[:]", chain: "int[:]", common: "int[:]", body: "int[:]", group: "int[:]",
    inertia: "float[:, 10]", gravity: "float[3]", armature: "float[:]", pose: "float[:, 12]",
    S: "float[:, 6]", v: "float[:]", tau: "float[:]", K: "float[:]", D: "float[:]",
    gap: "float[:]", point: "float[:, 3]", point_rate: "float[:, 3]", axes: "float[:, 9]",
    axes_rate: "float[:, 9]", friction: "float[:]", restitution: "float[:]", force: "float[:]",
    numbers: "float[7]",
    after: "float[:]", held: "float[:]", found: "float[FOUND]", L: "float[:]", Y: "float[:]",
    A: "float[:]", taken: "float[:]", work: "float[:]",
) -> None:  # fmt: skip
    """Velocities after a step, and the forces of the contacts.

    - bodies, nv: numbers of bodies, the base included, and of velocity variables.
    - contacts, slots: potential contacts, and how many may act at once.
    - deep: variables that move a body at most.
    - sweeps, passes: at most, of Gauss and Seidel, and with velocity products of the mean.
    - again: how often steps of Newton, then sweeps again, follow sweeps that do not end.
    - parent, first, count: of bodies, and the variables of their joints.
    - flies: 1 for bodies with a free joint.
    - up: the variable above each, or -1.
    - moves, chain: how many variables move a body, and which, from the base outward.
    - common: how many of them two bodies have in common.
    - body, group: of the contacts, and the number of their pairs.
    - inertia: of the bodies in their own coordinates, ``Inertia.parameters``.
    - gravity, armature: acceleration [m/s²], and of the variables.
    - pose: of the bodies, axes by rows and place.
    - S: columns of the joints.
    - v, tau, K, D: velocities, joint forces, stiffness and damping of the variables.
    - gap, point, point_rate, axes, axes_rate: of the contacts, and the rates.
    - friction, restitution: coefficients.
    - force: for each slot the number of its contact, from 1 on, or 0, and the forces along normal
      and tangents in the step before.
    - numbers: length of the step, time to its middle, tolerance, change of velocities that needs
      no more passes, depth that velocities take out, speed of arrival without rebound, and
      times the tolerance that will do in the first pass.
    - after, held, found: results: velocities, forces like ``force``, and ``FOUND`` numbers.
    - L, Y, A, taken: factors, rows and matrix of the contacts with slots, for ``slot_shift``.
    - work: of ``work_size`` numbers.
    """
    h = numbers[0]
    wait = numbers[1]
    ids = local("int", MOST_SLOTS)
    near = local("float", MOST_SLOTS)
    I = view(work, 0, bodies, 10)
    twist = view(work, 10 * bodies, bodies, 6)
    rate = view(work, 16 * bodies, bodies, 6)
    f = view(work, 22 * bodies, bodies, 6)
    at = 28 * bodies
    lead = view(work, at)
    lag = view(work, at + nv)
    C = view(work, at + 2 * nv)
    mean = view(work, at + 3 * nv)
    z = view(work, at + 4 * nv)
    at += 5 * nv
    before = view(work, at)
    ahead = view(work, at + 3 * slots)
    target = view(work, at + 6 * slots)
    w = view(work, at + 9 * slots)
    lam = view(work, at + 12 * slots)
    mu = view(work, at + 15 * slots)
    last = view(work, at + 16 * slots, 3 * slots, 4)
    speed = local("float", 3)
    motion(bodies, parent, first, count, flies, inertia, S, v, twist, rate)
    used, left = chosen(contacts, slots, h, body, group, gap, point, axes, twist, ids, near)
    world_inertias(bodies, pose, inertia, I)
    bias_forces(bodies, parent, first, count, gravity, I, S, twist, rate, f, C)
    factored(bodies, nv, parent, first, count, up, I, S, armature, K, D, h, wait / h, lead, lag, L)
    time = h - wait
    for s in range(used):
        c = ids[s]
        i = body[c]
        mu[s] = friction[c]
        near[s] = gap[c]
        chain_rows(nv, moves[i], view(chain, i * deep), view(point, c, 3), view(axes, c, 9), S, v,
                   L, deep, view(Y, 3 * s * deep), view(before, 3 * s))  # fmt: skip
        R = view(axes, c, 3, 3)
        T = view(axes_rate, c, 3, 3)
        t = twist[i]
        a = rate[i]
        u = R @ (a[3:] + cross(a[:3], point[c]) + cross(t[:3], point_rate[c]))
        u += T @ (t[3:] + cross(t[:3], point[c]))
        n = 3 * s
        for r in range(3):
            lam[n + r] = 0.0
        for k in range(slots):
            if force[4 * k] == float(c + 1):
                for r in range(3):
                    lam[n + r] = h * force[4 * k + 1 + r]
        goes_on = lam[n] > 0.0 and abs(before[n]) <= SMOOTH * abs(time * u[0])
        ahead[n] = time * u[0] if goes_on else max(time * u[0], 0.0)
        for r in range(1, 3):
            ahead[n + r] = time * u[r] if goes_on else 0.0
    mobility(nv, used, deep, bodies, ids, body, common, chain, L, Y, A)
    for k in range(nv):
        mean[k] = v[k]
    error = 0.0
    rounds = 0
    for m in range(passes):
        if m > 0:
            motion(bodies, parent, first, count, flies, inertia, S, mean, twist, rate)
            world_inertias(bodies, pose, inertia, I)
            bias_forces(bodies, parent, first, count, gravity, I, S, twist, rate, f, C)
        for k in range(nv):
            z[k] = h * (tau[k] - lead[k] * v[k] - C[k])
        half(nv, up, L, z)
        largest = 0.0
        for s in range(used):
            c = ids[s]
            i = body[c]
            rows = view(Y, 3 * s * deep)
            n = 3 * s
            speed[:] = vector(before[n], before[n + 1], before[n + 2])
            for d in range(moves[i]):
                k = chain[i * deep + d]
                part = z[k] / L[k * nv + k]
                speed += vector(rows[d], rows[deep + d], rows[2 * deep + d]) * part
            target[n] = max(near[s], -numbers[4]) / h
            e = restitution[c]
            if e > 0.0 and near[s] + h * speed[0] <= 0.0 and before[n] < -numbers[5]:
                target[n] = e * before[n]
            target[n + 1] = 0.0
            target[n + 2] = 0.0
            for r in range(3):
                w[n + r] = speed[r] + target[n + r] + ahead[n + r]
                largest = max(largest, abs(speed[r]))
        for s in range(used):
            warm = view(lam, 3 * s, 3)
            if warm[0] != 0.0 or warm[1] != 0.0 or warm[2] != 0.0:
                for other in range(used):
                    added(A, other, s, warm, w)
        enough = numbers[2] * (1.0 + largest)
        if m + 1 < passes:
            enough *= numbers[6]
        more, error = swept(used, sweeps, enough, A, mu, w, lam, last)
        rounds += more
        for n in range(again):
            if error <= enough:
                break
            if n > 0:
                more, error = swept(used, sweeps, enough, A, mu, w, lam, last)
                rounds += more
            error = finished(used, STEPS, enough, A, mu, w, lam, last, view(work, at + 28 * slots))
            if error <= NEARLY * enough:  # sweeps would only disturb it
                break
        for s in range(used):
            i = body[ids[s]]
            rows = view(Y, 3 * s * deep)
            warm = view(lam, 3 * s, 3)
            for d in range(moves[i]):
                z[chain[i * deep + d]] += dot(
                    warm, vector(rows[d], rows[deep + d], rows[2 * deep + d])
                )
        whole(nv, up, L, z)
        change = 0.0
        for k in range(nv):
            after[k] = v[k] + z[k]
            moved = (v[k] + after[k]) / 2.0
            change = max(change, abs(moved - mean[k]))
            mean[k] = moved
        if change <= numbers[3] and error <= enough:
            break
    if left > 0:  # what had no slot counts, too
        motion(bodies, parent, first, count, flies, inertia, S, after, twist, rate)
        for c in range(contacts):
            t = twist[body[c]]
            u = t[3:] + cross(t[:3], point[c])
            error = max(error, -(gap[c] / h + dot(axes[c, :3], u)))
    for k in range(4 * slots):
        held[k] = 0.0
    found[:] = 0.0
    found[0] = error
    for s in range(used):
        n = 3 * s
        taken[s] = float(ids[s])
        held[4 * s] = float(ids[s] + 1)
        sliding = sqrt(lam[n + 1] * lam[n + 1] + lam[n + 2] * lam[n + 2])
        found[1] = max(found[1], sliding - mu[s] * lam[n])
        slip = sqrt(w[n + 1] * w[n + 1] + w[n + 2] * w[n + 2])
        slip = lam[n + 1] * w[n + 1] + lam[n + 2] * w[n + 2] + mu[s] * lam[n] * slip
        found[2] = max(found[2], abs(lam[n] * w[n]), abs(slip))
        for r in range(3):
            held[4 * s + 1 + r] = lam[n + r] / h
            there = w[n + r] - target[n + r]
            mid = (before[n + r] + there - ahead[n + r]) / 2.0
            found[3] += lam[n + r] * there
            found[4] += lam[n + r] * (there - mid)
    for k in range(nv):
        found[5] += h * (tau[k] - lead[k] * v[k] - lag[k] * (after[k] - v[k])) * mean[k]
    found[6] = float(left)
    found[7] = float(rounds)
    found[8] = float(used)


def work_size(bodies: int, nv: int, slots: int, again: int) -> int:
    """Numbers of the workspace of ``slot_step``."""
    newton = 3 * slots * (3 * slots + 1) if again else 0
    return 28 * bodies + 5 * nv + 28 * slots + newton


@procedure
def slot_shift(
    nv: int, deep: int, rounds: int, up: "int[:]", moves: "int[:]", chain: "int[:]",
    body: "int[:]", gap: "float[:]", found: "float[FOUND]", L: "float[:]", Y: "float[:]",
    A: "float[:]", taken: "float[:]", shift: "float[:]", work: "float[:]",
) -> None:  # fmt: skip
    """Displacements of the joints that open the gaps of the contacts with slots.

    By so many sweeps along ``M⁻¹ Gᵀ``, with the matrices of ``slot_step``.
    """
    used = int(found[8])
    for k in range(nv):
        shift[k] = 0.0
    for s in range(used):
        work[s] = gap[int(taken[s])]
        work[used + s] = 0.0
    for _ in range(rounds):
        for s in range(used):
            own = A[9 * (s * (s + 1) // 2 + s)]
            x = -work[s] / own if own > 0.0 else 0.0
            x = max(x, -work[used + s])
            if x != 0.0:
                work[used + s] += x
                for t in range(used):
                    i = max(s, t)
                    j = min(s, t)
                    work[t] += A[9 * (i * (i + 1) // 2 + j)] * x
    for s in range(used):
        i = body[int(taken[s])]
        for d in range(moves[i]):
            shift[chain[i * deep + d]] += work[used + s] * Y[3 * s * deep + d]
    whole(nv, up, L, shift)
