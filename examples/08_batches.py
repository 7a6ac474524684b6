"""One sample, many samples, float32, threads: the same call."""

from time import perf_counter

import numpy as np

import kinetree as kt

m = kt.samples.arm()
rng = np.random.default_rng(0)


def microseconds(call, samples, repetitions=5):
    """Best time per sample."""
    best = np.inf
    for _ in range(repetitions):
        start = perf_counter()
        call()
        best = min(best, perf_counter() - start)
    return 1e6 * best / samples


n = 20_000
q, qd, qdd = rng.normal(size=(3, n, m.nv))

start = perf_counter()
one = kt.inverse_dynamics(m, q[0], qd[0], qdd[0])
print(f"first call, traced and compiled or from the cache: {perf_counter() - start:.3f} s")
print(f"one sample: {microseconds(lambda: kt.inverse_dynamics(m, q[0], qd[0], qdd[0]), 1):.2f} µs")

tau = kt.inverse_dynamics(m, q, qd, qdd)  # all at once
assert tau.shape == (n, m.nv)
assert np.allclose(tau[0], one)

# Leading axes broadcast: 200 states against 100 accelerations.
grid = kt.inverse_dynamics(m, q[:200, None], qd[:200, None], qdd[:100])
assert grid.shape == (200, 100, m.nv)

# The precision of the result is that of the inputs.
single = [a.astype(np.float32) for a in (q, qd, qdd)]
assert kt.inverse_dynamics(m, *single).dtype == np.float32

# Results do not depend on the number of threads, to the last bit.
for threads in (1, 2):
    kt.set_threads(threads)
    same = kt.inverse_dynamics(m, q, qd, qdd)
    assert np.array_equal(same, tau)
    double = microseconds(lambda: kt.inverse_dynamics(m, q, qd, qdd), n)
    half = microseconds(lambda: kt.inverse_dynamics(m, *single), n)
    print(
        f"batch of {n}, {threads} thread(s): {double:.3f} µs, in float32 {half:.3f} µs per sample"
    )

# A sample that makes no sense is named.
q[1234, 2] = np.nan
try:
    kt.inverse_dynamics(m, q, qd, qdd)
except kt.ShapeError as error:
    print("ShapeError:", error)
