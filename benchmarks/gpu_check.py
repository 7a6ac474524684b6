"""Arrays on a GPU: every public function, derivatives, rollouts and errors, checked one by one.

    python benchmarks/gpu_check.py

Needs a CUDA device and CuPy; checks PyTorch and JAX where they are installed. Reference values
come from the definition of the operations, in NumPy, so that no other compiler is needed. Prints
one line for each check and exits with the number of those that failed.
"""

import inspect
import os
import sys
import time
import traceback

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np

import kinetree as kt
from kinetree.codegen.inline import evaluated
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.functional.prepare import PUBLIC

failed = []


def check(name, function, *args):
    """Run one check and say how it went."""
    begin = time.perf_counter()
    try:
        note = function(*args)
    except Exception as error:
        failed.append(name)
        print(f"FAIL  {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        if "-v" in sys.argv:
            traceback.print_exc()
        return
    seconds = time.perf_counter() - begin
    print(f"pass  {name}{f': {note}' if note else ''} ({seconds:.1f} s)", flush=True)


def by_definition(kernel, arrays, batch, dtype, out):
    """In the place of compiled code for the CPU."""
    arrays = [np.asarray(a, float) for a in arrays]
    full = [
        np.broadcast_to(a, (*batch, *i.shape)) for a, i in zip(arrays, kernel.inputs, strict=True)
    ]
    return evaluated(kernel.program, full)


Kernel._run = by_definition


# --- kinds ---------------------------------------------------------------------------------------


def libraries():
    """For every library: from NumPy to a device, back, and the type of its arrays."""
    import cupy

    found = {"cupy": (cupy.asarray, cupy.asnumpy, cupy.ndarray)}
    try:
        import torch

        found["torch"] = (
            lambda x: torch.from_numpy(np.ascontiguousarray(x)).cuda(),
            lambda x: x.detach().cpu().numpy(),
            torch.Tensor,
        )
    except ImportError:
        print("PyTorch is not installed: not checked")
    try:
        import jax

        gpu = jax.devices("gpu")[0]
        found["jax"] = (lambda x: jax.device_put(x, gpu), np.asarray, jax.Array)
    except (ImportError, RuntimeError) as error:
        print(f"JAX with a GPU is not installed: not checked ({error})")
    return found


def on_device(x):
    """Whether an array is on a GPU."""
    if hasattr(x, "devices"):
        return next(iter(x.devices())).platform in ("gpu", "cuda")
    return True if not hasattr(x, "is_cuda") else x.is_cuda


# --- every public function -----------------------------------------------------------------------

OPTIONS = {"frame": "aligned", "rows": "linear", "damping": 0.1}
LEFT_OUT = ("relative_to", "kind", "method", "given", "friction", "rotors", "tolerance")


def arguments(model, function, convert, rng):
    """Arrays for all parameters of a function."""
    n, found = model.body_count, {}
    shapes = {"f_ext": (n, 6), "torques": (n, 3), "velocities": (n, 6)}
    for name in list(inspect.signature(function).parameters)[1:]:
        if name == "name":
            found[name] = model.body_names[-1]
        elif name in OPTIONS:
            found[name] = OPTIONS[name]
        elif name == "q":
            found[name] = convert(np.stack([model.random_configuration(rng) for _ in range(5)]))
        elif name not in LEFT_OUT:
            vectors = ("point", "force", "torque", "at", "acceleration")
            shape = shapes.get(name, (3,) if name in vectors else (model.nv,))
            found[name] = convert(rng.normal(size=(5, *shape)))
    if function is kt.task_freedom:
        found["q"], found["point"] = found["q"][0], None
    return found


def leaves(result):
    """All arrays of a result."""
    if isinstance(result, tuple):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def agrees(model, function, library, kind):
    """The same numbers as by definition, of the same kind."""
    to, back, array = library
    expected = leaves(function(model, **arguments(model, function, np.asarray, rng(0))))
    found = leaves(function(model, **arguments(model, function, to, rng(0))))
    worst = 0.0
    for a, b in zip(expected, found, strict=True):
        if isinstance(a, np.ndarray) and a.ndim:
            assert isinstance(b, array), f"{type(b)} is not of {kind}"
            assert on_device(b), "not on the device"
        a, b = np.asarray(a), back(b) if isinstance(b, array) else np.asarray(b)
        worst = max(worst, float(np.max(np.abs(a - b) / (1 + np.abs(a)), initial=0)))
    assert worst < 1e-10, f"differs by {worst:.1e}"
    return f"{worst:.0e}"


def rng(seed):
    return np.random.default_rng(seed)


def public_functions():
    for module in PUBLIC:
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function) and name != "free_joints":
                yield name, function


def runge_kutta(model, x, h):
    """One step of the classical method, for states (2, ..., nv)."""

    def rate(x):
        return np.stack([x[1], kt.forward_dynamics(model, x[0], x[1], 0 * x[0])])

    a = rate(x)
    b = rate(x + h / 2 * a)
    c = rate(x + h / 2 * b)
    d = rate(x + h * c)
    return x + h / 6 * (a + 2 * b + 2 * c + d)


# --- PyTorch -------------------------------------------------------------------------------------


def torch_checks(model):
    import torch

    def tensors(n=3, batch=4):
        make = rng(1)
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
        def end(q0, qd0, tau):
            motion = kt.rollout(model, q0, qd0, tau[None], steps=5, integrator="euler")
            return motion.q[-1], motion.qd[-1]

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
        except kt.DeviceError as error:
            return str(error)
        raise AssertionError("no error")

    def memory():
        q = torch.zeros(1, model.nq, device="cuda").expand(40_000_000_000, model.nq)
        try:
            kt.mass_matrix(model, q)
        except kt.DeviceMemoryError as error:
            return str(error)
        raise AssertionError("no error")

    for f in (gradients, transformations, compiled, streams, rollouts, strided, devices, memory):
        check(f"torch {f.__name__}", f)


# --- JAX -----------------------------------------------------------------------------------------


def jax_checks(model):
    import jax
    import jax.numpy as jnp
    from jax.test_util import check_grads

    def arrays(batch=4):
        make = rng(1)
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
        def end(q0, qd0, tau):
            motion = kt.rollout(model, q0, qd0, tau[None], steps=5, integrator="euler")
            return motion.q[-1], motion.qd[-1]

        check_grads(jax.jit(end), arrays(), order=1)
        for a, b in zip(end(*arrays()), jax.jit(end)(*arrays()), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)

    def devices():
        q, qd, tau = arrays()
        try:
            dynamics(q, jax.device_put(qd, jax.devices("cpu")[0]), tau)
        except kt.DeviceError as error:
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
        check(f"jax {f.__name__}", f)


# --- CuPy ----------------------------------------------------------------------------------------


def cupy_checks(model):
    import cupy

    def arrays(batch, dtype="float64"):
        make = rng(1)
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

    def kinds():
        q, qd, qdd = arrays(4)
        try:
            kt.inverse_dynamics(model, q, cupy.asnumpy(qd), qdd)
        except kt.ArrayKindError as error:
            return str(error)
        raise AssertionError("no error")

    def memory():
        q = cupy.broadcast_to(cupy.zeros(model.nq, "float32"), (40_000_000_000, model.nq))
        try:
            kt.mass_matrix(model, q)
        except kt.DeviceMemoryError as error:
            return str(error)
        raise AssertionError("no error")

    for f in (overhead, single_precision, wrong_numbers, rollouts, kinds, memory):
        check(f"cupy {f.__name__}", f)


if __name__ == "__main__":
    arm = kt.samples.double_pendulum()
    known = libraries()
    for kind, library in known.items():
        for name, function in public_functions():
            check(f"{kind} {name}", agrees, arm, function, library, kind)
    cupy_checks(arm)
    if "torch" in known:
        torch_checks(arm)
    if "jax" in known:
        jax_checks(arm)
    print(f"{len(failed)} failed{': ' + ', '.join(failed) if failed else ''}")
    sys.exit(min(len(failed), 100))
