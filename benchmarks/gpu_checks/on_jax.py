"""JAX arrays on a GPU: derivatives, transformations, rollouts, errors, and what a call costs."""

import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads
from support.public_calls import end_of_rollout

import kinetree as kt

__all__ = ["checks"]


def checks(model, report):
    def arrays(batch=4):
        make = np.random.default_rng(1)
        gpu = jax.devices("gpu")[0]
        return [jax.device_put(make.normal(size=(batch, model.nv)), gpu) for _ in range(3)]

    def dynamics(*x):
        return kt.forward_dynamics(model, *x)

    def gradients():
        check_grads(dynamics, arrays(), order=2)
        check_grads(jax.jit(dynamics), arrays(), order=1)

    def transformations():
        x = arrays()
        found = jax.jit(jax.vmap(jax.jacrev(dynamics)))(*x)
        ahead = jax.jit(jax.vmap(jax.jacfwd(dynamics)))(*x)
        expected = kt.differentiate(kt.forward_dynamics, wrt="q")(model, *x)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ahead, expected, rtol=1e-9, atol=1e-9)

    def fused():
        x = arrays(100_000)
        f = jax.jit(lambda q, qd, tau: jnp.sum(dynamics(2 * q, qd, tau / 3) ** 2))
        q, qd, tau = x
        np.testing.assert_allclose(f(*x), (dynamics(2 * q, qd, tau / 3) ** 2).sum(), rtol=1e-9)

    def rollouts():
        walk = end_of_rollout(model, steps=5)

        def end(q0, qd0, tau):
            return walk(q0, qd0, tau[None])

        check_grads(jax.jit(end), arrays(), order=1)
        for a, b in zip(end(*arrays()), jax.jit(end)(*arrays()), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)

    def devices():
        q, qd, tau = arrays()
        try:
            dynamics(q, jax.device_put(qd, jax.devices("cpu")[0]), tau)
        except kt.errors.DeviceError as error:
            return str(error)
        raise AssertionError("no error")

    def overhead():
        x = arrays(1024)
        f = jax.jit(dynamics)
        f(*x).block_until_ready()
        begin = time.perf_counter()
        for _ in range(200):
            y = f(*x)
        y.block_until_ready()
        return f"{(time.perf_counter() - begin) / 200 * 1e6:.0f} us a call of 1024 under jit"

    for f in (gradients, transformations, fused, rollouts, devices, overhead):
        report.run(f"jax {f.__name__}", f)
