"""Torch tensors on a GPU: derivatives, transformations, streams, rollouts, and errors."""

import numpy as np
import torch
from support.public_calls import end_of_rollout

import kinetree as kt

__all__ = ["checks"]


def checks(model, report):
    def tensors(n=3, batch=4):
        make = np.random.default_rng(1)
        return [
            torch.tensor(make.normal(size=(batch, model.nv)), device="cuda", requires_grad=True)
            for _ in range(n)
        ]

    def dynamics(*x):
        return kt.forward_dynamics(model, *x)

    def gradients():
        assert torch.autograd.gradcheck(dynamics, tensors(), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(dynamics, tensors())

    def transformations():
        q, qd, tau = (t.detach() for t in tensors())
        found = torch.func.vmap(torch.func.jacrev(dynamics))(q, qd, tau)
        expected = kt.differentiate(kt.forward_dynamics, wrt="q")(model, q, qd, tau)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)

    def compiled():
        x = tensors()
        dynamics(*x)
        graph = torch.compile(lambda *x: dynamics(*x).square().sum(), fullgraph=True)
        found = torch.autograd.grad(graph(*x), x)
        expected = torch.autograd.grad(dynamics(*x).square().sum(), x)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)

    def streams():
        x = [t.detach() for t in tensors(batch=200_000)]
        expected = dynamics(*x)
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            y = [2 * t / 2 for t in x]
            found = dynamics(*y)
        side.synchronize()
        torch.testing.assert_close(found, expected)

    def rollouts():
        walk = end_of_rollout(model, steps=5)

        def end(q0, qd0, tau):
            return walk(q0, qd0, tau[None])

        assert torch.autograd.gradcheck(end, tensors())
        x = [t.detach() for t in tensors()]
        for a, b in zip(end(*x), end(*tensors()), strict=True):
            torch.testing.assert_close(a, b.detach(), rtol=1e-12, atol=1e-12)

    def strided():
        q, qd, tau = (t.detach() for t in tensors())
        wide = torch.cat([q, qd, tau], -1)
        n = model.nv
        found = dynamics(wide[:, :n], wide[:, n : 2 * n], tau.T.contiguous().T)
        torch.testing.assert_close(found, dynamics(q, qd, tau), rtol=0, atol=0)

    def devices():
        q, qd, tau = (t.detach() for t in tensors())
        try:
            dynamics(q, qd.cpu(), tau)
        except kt.errors.DeviceError as error:
            return str(error)
        raise AssertionError("no error")

    def memory():
        q = torch.zeros(1, model.nq, device="cuda").expand(40_000_000_000, model.nq)
        try:
            kt.mass_matrix(model, q)
        except kt.errors.DeviceMemoryError as error:
            return str(error)
        raise AssertionError("no error")

    for f in (gradients, transformations, compiled, streams, rollouts, strided, devices, memory):
        report.run(f"torch {f.__name__}", f)
