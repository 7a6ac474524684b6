"""CuPy arrays: what a call costs, precision, numbers that are wrong, rollouts, and errors."""

import time

import cupy
import numpy as np

import kinetree as kt

__all__ = ["checks"]


def checks(model, report):
    def arrays(batch, dtype="float64"):
        make = np.random.default_rng(1)
        return [cupy.asarray(make.normal(size=(batch, model.nv)), dtype) for _ in range(3)]

    def overhead():
        notes = []
        for kind, x in (("cupy", arrays(1024)), ("torch", None)):
            if x is None:
                import torch

                x = [torch.as_tensor(a, device="cuda") for a in arrays(1024)]
            kt.inverse_dynamics(model, *x)
            cupy.cuda.Device().synchronize()
            begin = time.perf_counter()
            for _ in range(1000):
                kt.inverse_dynamics(model, *x)
            notes.append(f"{kind} {(time.perf_counter() - begin) * 1e3:.1f} us")
            cupy.cuda.Device().synchronize()
        return ", ".join(notes) + " until a call of 1024 returns"

    def single_precision():
        found = kt.inverse_dynamics(model, *arrays(100, "float32"))
        assert found.dtype == "float32"
        worst = float(cupy.abs(found - kt.inverse_dynamics(model, *arrays(100))).max())
        assert worst < 1e-3
        return f"{worst:.0e}"

    def wrong_numbers():
        q, qd, qdd = arrays(4)
        q[1, 0] = np.nan
        found = kt.inverse_dynamics(model, q, qd, qdd)
        assert bool(cupy.isnan(found[1]).all())
        assert bool(cupy.isfinite(found[[0, 2, 3]]).all())

    def rollouts():
        q0, qd0, _ = arrays(64)
        found = kt.rollout(model, q0, qd0, steps=20, dt=1e-3, store_every=7)
        x = np.stack([cupy.asnumpy(q0), cupy.asnumpy(qd0)])
        for _ in range(20):
            x = runge_kutta(model, x, 1e-3)
        worst = np.abs(cupy.asnumpy(found.q)[-1] - x[0]).max()
        assert worst < 1e-11, worst
        return f"{worst:.0e}"

    def loops():
        linkage = kt.samples.four_bar()
        start = cupy.asarray(np.array([linkage.neutral()] * 40))
        found = kt.rollout(linkage, start, steps=50, dt=1e-3)
        assert bool((abs(found.qd[-1]) > 1e-3).any())
        energy = kt.loops.mechanical_energy(linkage, found.q, found.qd)
        worst = float(abs(energy - energy[0]).max())
        worst = max(worst, float(abs(kt.loops.closure_error(linkage, found.q)).max()))
        assert worst < 1e-9, worst
        closed = kt.loops.assemble(linkage, start[0])  # on the CPU
        assert isinstance(closed, cupy.ndarray)
        return f"{worst:.0e}"

    def configurations():
        body = kt.samples.quadruped()
        make = np.random.default_rng(1)
        q, step = body.random_configuration(make, 40), make.normal(size=(40, body.nv))
        found = body.difference(cupy.asarray(q), body.integrate(*map(cupy.asarray, (q, step / 9))))
        worst = float(abs(found - cupy.asarray(step / 9)).max())
        assert worst < 1e-11, worst
        return f"{worst:.0e}"

    def kinds():
        q, qd, qdd = arrays(4)
        try:
            kt.inverse_dynamics(model, q, cupy.asnumpy(qd), qdd)
        except kt.errors.ArrayKindError as error:
            return str(error)
        raise AssertionError("no error")

    def memory():
        q = cupy.broadcast_to(cupy.zeros(model.nq, "float32"), (40_000_000_000, model.nq))
        try:
            kt.mass_matrix(model, q)
        except kt.errors.DeviceMemoryError as error:
            return str(error)
        raise AssertionError("no error")

    for f in (
        overhead, single_precision, wrong_numbers, rollouts, loops, configurations, kinds, memory,
    ):  # fmt: skip
        report.run(f"cupy {f.__name__}", f)


def runge_kutta(model, x, h):
    """One step of the classical method, for states (2, ..., nv)."""

    def rate(x):
        return np.stack([x[1], kt.forward_dynamics(model, x[0], x[1], 0 * x[0])])

    a = rate(x)
    b = rate(x + h / 2 * a)
    c = rate(x + h / 2 * b)
    d = rate(x + h * c)
    return x + h / 6 * (a + 2 * b + 2 * c + d)
